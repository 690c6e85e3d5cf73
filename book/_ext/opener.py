"""Put together at the top of a chapter what to know: its time and needs, what ran it, where to run it."""

import html
import re

# Chapters are notebooks, whose plain Markdown can hold no more than this.
_TIME = re.compile(r"<p><strong>Time:</strong>.*?</p>\n?", re.DOTALL)
_FIRST = re.compile(r"</h1>\s*<p>.*?</p>\n?", re.DOTALL)


def facts_line(facts):
    """Say what a chapter was run with and when it was last changed.

    Args:
        facts: what `page_facts.facts` gives.

    Returns:
        HTML, empty when nothing is known.
    """
    parts = []
    if facts.get("torch"):
        python = f" and Python {facts['python']}" if facts.get("python") else ""
        parts.append(f"<strong>Run with:</strong> torch {facts['torch']}{python}.")
    if facts.get("changed"):
        day = facts["changed"]
        parts.append(f'<strong>Last changed:</strong> <time datetime="{day}">{day}</time>.')
    return f'<p class="opener-facts">{" ".join(parts)}</p>\n' if parts else ""


def launch_links(buttons):
    """Write the links that open a chapter elsewhere.

    Args:
        buttons: the theme's buttons; those of the group of launch buttons are taken.

    Returns:
        HTML, empty when there are none: the address of the repository is not known then.
    """
    launch = [one for group in buttons if group.get("label") == "launch-buttons" for one in group["buttons"]]
    links = [
        f'<a class="opener-run" href="{html.escape(one["url"])}">Run on {html.escape(one["text"])}</a>'
        for one in launch
        if one.get("url")
    ]
    return f'<p class="opener-launch">{" ".join(links)}</p>\n' if links else ""


def open_chapter(body, facts, buttons):
    """Put the opener below what a chapter promises, its line with the time inside.

    Args:
        body: the chapter as HTML.
        facts: as for `facts_line`.
        buttons: as for `launch_links`.

    Returns:
        The new body.
    """
    known = facts_line(facts) + launch_links(buttons)
    time = _TIME.search(body)
    if time:
        return f'{body[: time.start()]}<div class="opener">\n{time[0]}{known}</div>\n{body[time.end() :]}'
    first = _FIRST.search(body)
    if not first or not known:
        return body
    return f'{body[: first.end()]}<div class="opener">\n{known}</div>\n{body[first.end() :]}'


def _to_context(app, pagename, templatename, context, doctree):
    facts = context.get("page_facts")
    if facts and facts["torch"] and context.get("body"):
        context["body"] = open_chapter(context["body"], facts, context.get("header_buttons", ()))
        # The foot of the page need not say it again.
        context["page_facts"] = {}


def setup(app):
    """Run once the theme has made its buttons, and page_facts its facts."""
    app.connect("html-page-context", _to_context, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

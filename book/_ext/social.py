"""Say in each page's head what others show when somebody shares its address: title, promise and picture."""

import html
import os
import re
from pathlib import Path

from docutils import nodes

import repository

# Drawn by tools/social_picture.py, as wide and high as those who show it want it.
PICTURE, WIDTH, HEIGHT = "_static/social.png", 1200, 630
ALTERNATIVE = "The backward graph of a small loss, drawn by the tool of this book: arrows lead to its leaf w."
# What is longer is cut off by those who show it, in the middle of a word.
LONGEST = 220
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z0-9`(])")


def shorten(text):
    """Keep as many whole sentences as others will show, and the first one in any case."""
    first, *rest = _SENTENCE.split(" ".join(text.split()))
    kept = first
    for sentence in rest:
        if len(kept) + 1 + len(sentence) > LONGEST:
            break
        kept += f" {sentence}"
    return kept.rstrip(":") + "." if kept.endswith(":") else kept


def promise(doctree):
    """Find what a page promises: the paragraph below its title.

    Args:
        doctree: the page as docutils read it.

    Returns:
        A text, empty for a page without one.
    """
    section = next(iter(doctree.findall(nodes.section)), doctree)
    paragraph = next((one for one in section.children if isinstance(one, nodes.paragraph)), None)
    return shorten(paragraph.astext()) if paragraph else ""


def tags(book, title, description, site, path):
    """Write the tags of a page.

    Args:
        book: the title of the book.
        title: the title of the page.
        description: what it promises.
        site: the address of the site with a slash at its end, or None. Others take whole addresses alone,
            so without it neither the page's address nor the picture's is named.
        path: the page, from the top of the site.

    Returns:
        HTML elements, one a line.
    """
    properties = {
        "og:site_name": book,
        "og:type": "website" if title == book else "article",
        "og:title": title,
        "og:description": description,
    }
    names = {"description": description, "twitter:card": "summary", "twitter:title": title}
    names["twitter:description"] = description
    lines = []
    if site:
        properties |= {
            "og:url": site + path,
            "og:image": site + PICTURE,
            "og:image:width": str(WIDTH),
            "og:image:height": str(HEIGHT),
            "og:image:alt": ALTERNATIVE,
        }
        names |= {"twitter:card": "summary_large_image", "twitter:image": site + PICTURE}
        names["twitter:image:alt"] = ALTERNATIVE
        lines.append(f'<link rel="canonical" href="{html.escape(site + path)}">')
    for kind, pairs in (("name", names), ("property", properties)):
        lines += [f'<meta {kind}="{key}" content="{html.escape(value)}">' for key, value in pairs.items()]
    return "\n".join(lines) + "\n"


def _note_promise(app, doctree):
    app.env.metadata[app.env.docname]["promise"] = promise(doctree)


def _about(app, name):
    # The pages of search and of the index have no text of their own: they are the book's.
    metadata = app.env.metadata
    return metadata.get(name, {}).get("promise") or metadata[app.config.root_doc]["promise"]


def _to_context(app, pagename, templatename, context, doctree):
    site = repository.site_url(os.environ, repository.find_url(os.environ, app.srcdir))
    title = html.unescape(re.sub(r"<[^>]*>", "", context.get("title") or app.config.html_title))
    path = app.builder.get_target_uri(pagename)
    context["metatags"] = context.get("metatags", "") + tags(
        app.config.html_title, title, _about(app, pagename), site, path
    )


def _finish(app, exception):
    # The address that people share most is the top of the site, which only leads to the first page.
    if exception is not None or app.builder.format != "html":
        return
    first, book = Path(app.outdir) / "index.html", app.config.html_title
    site = repository.site_url(os.environ, repository.find_url(os.environ, app.srcdir))
    path = app.builder.get_target_uri(app.config.root_doc)
    text = first.read_text(encoding="utf-8")
    added = tags(book, book, _about(app, app.config.root_doc), site, path)
    first.write_text(text.replace("</head>", f"{added}</head>", 1), encoding="utf-8")


def setup(app):
    """Note what each page promises, and write it into its head."""
    app.connect("doctree-read", _note_promise)
    app.connect("html-page-context", _to_context)
    app.connect("build-finished", _finish, priority=940)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

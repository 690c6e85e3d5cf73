"""What others keep of the site: wrong addresses, addresses of pages that were renamed, a list of pages."""

import html
import json
import os
import posixpath
from pathlib import Path

from sphinx.errors import ExtensionError

import repository

REDIRECTS = "book/redirects.json"

# It may be shown at any depth, so it loads nothing and finds the top of the site from the address.
_NOT_FOUND = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Not found · {title}</title>
<link rel="icon" href="data:,">
<style>
:root {{ color-scheme: light dark }}
html {{ background: #fff; color: #1d2733 }}
a {{ color: #1f5fa8 }}
@media (prefers-color-scheme: dark) {{
  html {{ background: #14181e; color: #d9dfe7 }}
  a {{ color: #8fbcf2 }}
}}
body {{ font: 1.1rem/1.6 system-ui, sans-serif; margin: 15vh auto; max-width: 34rem; padding: 0 1rem }}
</style>
</head>
<body>
<main>
<h1>This page is not here</h1>
<p>The address may be old or mistyped. Start at <a href="{top}{first}">the first page of {title}</a>.</p>
</main>
{script}</body>
</html>
"""
_FIND_TOP = """\
<script>
const top_ = location.pathname.match(/^(.*?\\/)(?:book|notebooks)\\//)
if (top_) document.querySelector("a").href = top_[1] + "{first}"
</script>
"""

# The script keeps the part of the address that names a heading, which the forwarding by itself would lose.
_MOVED = """\
<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Moved · {title}</title>
<link rel="icon" href="data:,">
<link rel="canonical" href="{canonical}">
<script>location.replace("{target}" + location.hash)</script>
<meta http-equiv="refresh" content="0; url={target}">
</head>
<body><p>This page has a new address: <a href="{target}">{target}</a>.</p></body>
</html>
"""


def moved(language, title, old, new, site):
    """Write the page that stands at the old address of a page and leads to the new one.

    Args:
        language: the language of the book.
        title: its title.
        old: the old path from the top of the site, such as `notebooks/12_graph.html`.
        new: the new one.
        site: the address of the site with a slash at its end, or None.

    Returns:
        An HTML page that needs no other file.
    """
    target = posixpath.relpath(new, posixpath.dirname(old) or ".")
    canonical = site + new if site else target
    return _MOVED.format(language=language, title=html.escape(title), target=target, canonical=canonical)


def check_redirects(redirects, pages):
    """List what is wrong with the new names of renamed pages.

    Args:
        redirects: a dict from old names to new ones, without suffix.
        pages: the names of all pages.

    Returns:
        A list of sentences.
    """
    wrong = [f"{old} is a page, so it can lead to no other." for old in sorted(redirects) if old in pages]
    return wrong + [
        f"{old} leads to {new}, which is no page."
        for old, new in sorted(redirects.items())
        if new not in pages
    ]


def not_found(language, title, first, site):
    """Write the page for wrong addresses.

    Args:
        language: the language of the book.
        title: its title.
        first: its first page, from the top of the site.
        site: the address of the site with a slash at its end, or None.

    Returns:
        An HTML page that needs no other file.
    """
    script = "" if site else _FIND_TOP.replace("{first}", first)
    return _NOT_FOUND.format(
        language=language, title=html.escape(title), first=first, top=site or "", script=script
    )


def sitemap(site, pages):
    """List the pages for search engines.

    Args:
        site: the address of the site with a slash at its end.
        pages: a dict from each page's path to the day of its last change, or None.

    Returns:
        An XML text, in the order of the paths.
    """
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines.append('<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">')
    for path, day in sorted(pages.items()):
        changed = f"<lastmod>{day}</lastmod>" if day else ""
        lines.append(f"<url><loc>{html.escape(site + path)}</loc>{changed}</url>")
    return "\n".join([*lines, "</urlset>", ""])


def _forward(app, out, site):
    redirects = json.loads((Path(app.srcdir) / REDIRECTS).read_text(encoding="utf-8"))
    wrong = check_redirects(redirects, app.env.found_docs)
    if wrong:
        raise ExtensionError(f"{REDIRECTS}: {' '.join(wrong)}")
    uri = app.builder.get_target_uri
    for old, new in redirects.items():
        path = out / uri(old)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = moved(app.config.language, app.config.html_title, uri(old), uri(new), site)
        path.write_text(text, encoding="utf-8")


def _finish(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    site = repository.site_url(os.environ, repository.find_url(os.environ, app.srcdir))
    first = app.builder.get_target_uri(app.config.root_doc)
    page = not_found(app.config.language, app.config.html_title, first, site)
    (out / "404.html").write_text(page, encoding="utf-8")
    _forward(app, out, site)
    target = out / "sitemap.xml"
    target.unlink(missing_ok=True)
    if site:
        facts, uri = getattr(app.env, "page_facts", {}), app.builder.get_target_uri
        pages = {uri(name): facts.get(name, {}).get("changed") for name in app.env.found_docs}
        target.write_text(sitemap(site, pages), encoding="utf-8")


def setup(app):
    """Run once all pages are written."""
    app.connect("build-finished", _finish, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

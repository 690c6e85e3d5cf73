"""What others read of the site: a page for wrong addresses and, its address known, a list of pages."""

import html
import os
from pathlib import Path

import repository

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


def _finish(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    site = repository.site_url(os.environ, repository.find_url(os.environ, app.srcdir))
    first = app.builder.get_target_uri(app.config.root_doc)
    page = not_found(app.config.language, app.config.html_title, first, site)
    (out / "404.html").write_text(page, encoding="utf-8")
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

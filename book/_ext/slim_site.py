"""Leave out what no page needs, and put the licenses where the footer links to them."""

import html
import shutil
from pathlib import Path

import bundle
import page_html

# What no page loads once its parts are joined, and what none ever did.
UNUSED = (
    *("_static/**/*.map", "_static/*.html", "_static/locales", "_static/scripts", "_static/styles"),
    *("_static/vendor", "_static/copybutton_funcs.js", "_static/basic.css", "_static/pygments.css"),
    *("_static/togglebutton.*", "_static/fonts/*.woff2"),
)
LICENSES = {"LICENSE": "LICENSE.txt", "LICENSE-TEXT": "LICENSE-TEXT.txt"}


def _remove_stale(app, out):
    # Sphinx leaves the page of a chapter that was renamed or removed.
    current = {app.builder.get_outfilename(name) for name in app.env.found_docs}
    for path in out.rglob("*.html"):
        made_by_sphinx = path.parent == out or "_static" in path.parts
        if str(path) not in current and not made_by_sphinx:
            path.unlink()


def _rewrite_pages(out):
    written = {path: path.read_text(encoding="utf-8") for path in sorted(out.rglob("*.html"))}
    pages = {path: page_html.finish(text) for path, text in written.items() if "_static" not in path.parts}
    bundle.build(out, pages)
    for path, text in pages.items():
        if text != written[path]:
            path.write_text(text, encoding="utf-8")


def _write_first_page(app, out):
    # Without an icon of its own the page would ask for /favicon.ico, which is not there.
    first, title = app.builder.get_target_uri(app.config.root_doc), html.escape(app.config.html_title)
    icon = Path(app.config.html_favicon).name
    (out / "index.html").write_text(
        f'<!doctype html>\n<html lang="{app.config.language}">\n<head>\n<meta charset="utf-8">\n'
        f'<title>{title}</title>\n<link rel="icon" href="_static/{icon}">\n'
        f'<meta http-equiv="refresh" content="0; url={first}">\n</head>\n'
        f'<body><p><a href="{first}">{title}</a></p></body>\n</html>\n',
        encoding="utf-8",
    )


def _finish(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    _remove_stale(app, out)
    _rewrite_pages(out)
    for pattern in UNUSED:
        for path in list(out.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _write_first_page(app, out)
    for source, target in LICENSES.items():
        text = (Path(app.srcdir) / source).read_text(encoding="utf-8")
        (out / "_static" / target).write_text(text, encoding="utf-8")


def setup(app):
    """Run once all pages are written."""
    # Jupyter Book always sets this; the extension that would know it is not loaded.
    app.add_config_value("comments_config", {}, "html")
    # After the theme, which then writes the colors of code.
    app.connect("build-finished", _finish, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Leave out what no page needs, and put the licenses where the footer links to them."""

import html
from pathlib import Path

# Source maps, and the icon script: the theme's own icons come from its web font.
UNUSED = ("_static/scripts/fontawesome.js*", "_static/**/*.map")
LICENSES = {"LICENSE": "LICENSE.txt", "LICENSE-TEXT": "LICENSE-TEXT.txt"}


def _remove_stale(app, out):
    # Sphinx leaves the page of a chapter that was renamed or removed.
    current = {app.builder.get_outfilename(name) for name in app.env.found_docs}
    for path in out.rglob("*.html"):
        made_by_sphinx = path.parent == out or "_static" in path.parts
        if str(path) not in current and not made_by_sphinx:
            path.unlink()


def _light_without_scripts(out):
    # No stylesheet knows the mode "auto": the theme's script turns it into the reader's own mode. Without
    # scripts it would stay, and text in the system's colors would stand on backgrounds of the other mode.
    for path in out.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        light = text.replace(' data-theme="auto"', ' data-theme="light"', 1)
        if light != text:
            path.write_text(light, encoding="utf-8")


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
    for pattern in UNUSED:
        for path in out.glob(pattern):
            path.unlink()
    _remove_stale(app, out)
    _light_without_scripts(out)
    _write_first_page(app, out)
    for source, target in LICENSES.items():
        text = (Path(app.srcdir) / source).read_text(encoding="utf-8")
        (out / "_static" / target).write_text(text, encoding="utf-8")


def setup(app):
    """Run once all pages are written."""
    # Jupyter Book always sets this; the extension that would know it is not loaded.
    app.add_config_value("comments_config", {}, "html")
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

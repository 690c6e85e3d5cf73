"""One stylesheet and one script for the whole site, with only what its pages use."""

import hashlib
import re
from pathlib import Path

import fonts
import stylesheet

CSS, JS = "_static/site.css", "_static/site.js"
# Only the search page searches. Elsewhere these would be most of what a first visit loads.
SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")
_LINK = re.compile(r'[ \t]*<link [^>]*href="([^"?]+)[^"]*"[^>]*>\n?')
_SCRIPT = re.compile(r'[ \t]*<script[^>]* src="([^"?]+)[^"]*"[^>]*></script>\n?')
_OPTIONS = re.compile(r"[ \t]*<script>DOCUMENTATION_OPTIONS\.\w+ = [^<]*</script>\n?")
_BUNDLED = re.compile(r'(?<=_static/site\.)(css|js)\?v=\w*"')
# What the stylesheet's classes are looked up in: attributes of pages, and every word of a script.
_ATTRIBUTE = re.compile(r'(?:class|id)="([^"]*)"')
_INLINE = re.compile(r"<script(?![^>]* src=)[^>]*>(.*?)</script>", re.DOTALL)
_ROOT = re.compile(r'data-content_root="([^"]*)"')
_WORD = re.compile(r"[\w-]+")
# Menus and tooltips, which header.py and page_html.py replace: twice as much as all other scripts.
UNUSED_SCRIPT = "bootstrap.js"


def _parts(text):
    # A page's own files, such as those of the index of errors, stand between the theme's: in its body.
    head, end, rest = text.partition("</head>")
    body, last, tail = rest.rpartition("</main>")
    return head, end + body + last, tail


def listed(text):
    """List what the theme lets a page load.

    Args:
        text: the page as the theme wrote it.

    Returns:
        Two lists of paths from the top of the site, in the order of loading: stylesheets, and scripts less
        those of search and the one that is not used.
    """
    head, _, tail = _parts(text)
    sheets = [m[1] for m in _LINK.finditer(head) if 'rel="stylesheet"' in m[0]]
    scripts = [m[1] for part in (head, tail) for m in _SCRIPT.finditer(part)]
    left_out = (*SEARCH, UNUSED_SCRIPT)
    top = lambda path: path.replace("../", "")  # noqa: E731
    return [top(path) for path in sheets], [top(p) for p in scripts if Path(p).name not in left_out]


def rewrite(text, is_search):
    """Let a page load the bundle in place of its parts. A page that does so already stays as it is.

    Args:
        text: the page.
        is_search: True for the page that searches.

    Returns:
        The page's new text.
    """
    root = _ROOT.search(text)
    if CSS in text or not root:
        return text
    root = root[1]
    head, body, tail = _parts(text)
    head = _LINK.sub(lambda m: "" if re.search(r'rel="(?:stylesheet|preload)"', m[0]) else m[0], head)
    search = [m[1] for m in _SCRIPT.finditer(head) if is_search and Path(m[1]).name in SEARCH]
    if search:
        # A query in the address is answered once the index is there: what ranks must come before it.
        index = [path for path in search if path.endswith("searchindex.js")]
        ranking = [f"{root}_static/{name}" for name in ("search_data.js", "search.js")]
        search = [path for path in search if path not in index] + ranking + index
    search = "".join(f'<script defer src="{path}"></script>\n' for path in search)
    head = _OPTIONS.sub("", _SCRIPT.sub("", head))
    head += f'<link rel="stylesheet" href="{root}{CSS}?v=0">\n<script defer src="{root}{JS}?v=0"></script>\n'
    return head + search + body + _SCRIPT.sub("", tail)


def words_in(pages, scripts):
    """Collect the names that a stylesheet could speak of.

    Args:
        pages: texts of the site's pages.
        scripts: texts of its scripts.

    Returns:
        A set of words.
    """
    words = set()
    for page in pages:
        for match in _ATTRIBUTE.finditer(page):
            words.update(match[1].split())
        for match in _INLINE.finditer(page):
            words.update(_WORD.findall(match[1]))
    for script in scripts:
        words.update(_WORD.findall(script))
    return words


def _join_scripts(texts):
    texts = [re.sub(r"^//# sourceMappingURL=.*$", "", text, flags=re.MULTILINE).strip() for text in texts]
    # The theme sets this in each page; here the search page alone searches.
    return ";\n".join([*texts, "DOCUMENTATION_OPTIONS.search_as_you_type = false"]) + ";\n"


def build(out, pages):
    """Write the bundle, let all pages load it, and remove its parts.

    Args:
        out: the folder of the built site.
        pages: text by path, changed in place. Nothing is done when the theme wrote none of them anew.
    """
    raw = [text for text in pages.values() if CSS not in text and _ROOT.search(text)]
    if not raw:
        return
    sheets, scripts = listed(raw[0])
    if not any("sd-tab-set" in text for text in pages.values()):
        (out / "_static/design-tabs.js").unlink()
        scripts.remove("_static/design-tabs.js")
    for path, text in pages.items():
        pages[path] = rewrite(text, path.name == "search.html")
    # The bundle of an earlier build would name what is gone; data is all words and makes no element.
    named = (UNUSED_SCRIPT, "site.js", "search_data.js", "errors_data.js")
    sources = [path for path in (out / "_static").rglob("*.js") if path.name not in named]
    words = words_in(pages.values(), [path.read_text(encoding="utf-8") for path in sorted(sources)])
    files = {
        "css": stylesheet.slim(
            [out / path for path in sheets], words, out / "_static", fonts.formula_codes(pages.values())
        ),
        "js": _join_scripts([(out / path).read_text(encoding="utf-8") for path in scripts]),
    }
    versions = {}
    for kind, text in files.items():
        (out / f"_static/site.{kind}").write_text(text, encoding="utf-8")
        versions[kind] = hashlib.sha256(text.encode()).hexdigest()[:8]
    for path, text in pages.items():
        pages[path] = _BUNDLED.sub(lambda m: f'{m[1]}?v={versions[m[1]]}"', text)
    for path in [*sheets, *scripts]:
        (out / path).unlink()

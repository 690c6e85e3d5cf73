"""Cards: what the helper says in words, as text in a terminal and as a framed block of HTML in a notebook."""

import html
import re
import textwrap
from pathlib import Path

WIDTH = 88

STYLE = " ".join((Path(__file__).parent / "card.css").read_text(encoding="utf-8").split())


class Shown:
    """Something with a text and an HTML face."""

    def text(self) -> str:
        raise NotImplementedError

    def body(self) -> str:
        raise NotImplementedError

    @property
    def css_class(self) -> str:
        return ""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text(), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        return f'<style>{STYLE}</style><div class="iag-x {self.css_class}" role="group">{self.body()}</div>'

    def __repr__(self) -> str:
        return self.text()


def highlight(code: str) -> str:
    """``code`` as HTML, colored by Pygments where it is installed (it comes with Jupyter)."""
    try:
        from pygments import highlight as color
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return f"<pre>{html.escape(code)}</pre>"
    # Classes as on the site and in JupyterLab; the page's own style colors them in both themes.
    return color(code, PythonLexer(), HtmlFormatter(cssclass="highlight"))


def wrap(line: str) -> str:
    """A line of at most 88 columns; what is indented by two spaces stays as it is."""
    if line.startswith("  ") or len(line) <= WIDTH:
        return line
    return textwrap.fill(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def code_words(text: str) -> str:
    """Escaped text with ``backticks`` turned into code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))

"""A notebook as the rules look at it: numbered cells, parsed Markdown, outputs as text."""

import base64
import binascii
import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import nbformat
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

RULES: dict[str, Callable] = {}
PARSER = MarkdownIt("commonmark", {"html": True}).enable("table").use(dollarmath_plugin)
# A payload in quotes runs to the same quote.
DATA_URI = re.compile(
    r"(?P<quote>[\"'])?data:(?P<media>[\w/+.-]*)(?P<options>(?:;[\w=-]+)*),"
    r"(?P<payload>(?(quote)(?:(?!(?P=quote)).)*|[^\s\"'<>)]*))",
    re.DOTALL,
)
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


def rule(function: Callable) -> Callable:
    """Enter a function in `RULES` under its own name, with dashes."""
    RULES[function.__name__.replace("_", "-")] = function
    return function


@dataclass(frozen=True)
class Output:
    """One face of one output.

    Attributes
    ----------
    place
        The cell, in words.
    kind
        ``stdout``, ``stderr``, ``error``, or the media type.
    content
        The text, as stored.
    """

    place: str
    kind: str
    content: str

    @property
    def everything(self) -> str:
        """The content with its data URIs opened, so that what a picture hides is seen too."""
        return " ".join([DATA_URI.sub(" ", self.content), *self.embedded])

    @property
    def embedded(self) -> list[str]:
        """The text of each data URI that holds text."""
        return [_opened(match) for match in DATA_URI.finditer(self.content)]

    @property
    def visible(self) -> str:
        """What a reader sees: without tags, styles and scripts where the content has them."""
        if self.kind not in ("text/html", "image/svg+xml"):
            return self.content
        return " ".join(Page(content).text for content in [self.content, *self.embedded])


def _opened(match: re.Match) -> str:
    payload = html.unescape(match["payload"])
    if "svg" not in match["media"] and "text" not in match["media"]:
        return ""
    if "base64" not in match["options"]:
        return unquote(payload)
    try:
        return base64.b64decode(payload, validate=False).decode("utf-8", errors="replace")
    except binascii.Error:
        return ""


class Page(HTMLParser):
    """HTML, read once: its visible text, its links, and its pictures with their text alternative."""

    def __init__(self, content: str):
        super().__init__(convert_charrefs=True)
        self._words: list[str] = []
        self._open: list[tuple[str, dict]] = []
        self.elements: list[tuple[str, dict]] = []
        # One entry for each <img> and <svg>: the tag and its text alternative (None: hidden from everybody).
        self.pictures: list[list] = []
        self.feed(content)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(self._words)

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        self.elements.append((tag, attributes))
        above = [a for _, a in self._open]
        if tag in ("img", "svg") and not any(t == "svg" for t, _ in self._open):
            hidden = any(a.get("aria-hidden") == "true" for a in [*above, attributes])
            named = [a["aria-label"] for a in above if a.get("role") == "img" and a.get("aria-label")]
            own = attributes.get("alt") if tag == "img" else self._name_of_svg(attributes)
            self.pictures.append([tag, None if hidden else (named[0] if named else own or "")])
        if tag not in VOID:
            self._open.append((tag, attributes))

    @staticmethod
    def _name_of_svg(attributes: dict) -> str:
        return attributes.get("aria-label", "") if attributes.get("role") == "img" else ""

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag):
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == tag:
                del self._open[index:]
                return

    def handle_data(self, data):
        tags = [tag for tag, _ in self._open]
        if "style" in tags or "script" in tags:
            return
        # The first <title> directly inside an <svg role="img"> is its name.
        if tags[-2:] == ["svg", "title"] and tags.count("svg") == 1 and self.pictures[-1][1] == "":
            self.pictures[-1][1] = data.strip() if self._open[-2][1].get("role") == "img" else ""
        if data.strip():
            self._words.append(" ".join(data.split()))


class Notebook:
    """One chapter, read from disk.

    Parameters
    ----------
    path
        An ``.ipynb`` file.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path).resolve()
        self.text = self.path.read_text(encoding="utf-8")
        self.node = nbformat.reads(self.text, as_version=4)

    def cells(self, kind: str) -> Iterator[tuple[str, nbformat.NotebookNode]]:
        """Yield the place in words and the cell, for each ``code``, ``markdown`` or ``raw`` cell."""
        for number, cell in enumerate(self.node.cells, 1):
            if cell.cell_type == kind:
                count = cell.get("execution_count")
                yield f"cell {number}" + (f" (In [{count}])" if count else ""), cell

    @cached_property
    def outputs(self) -> list[Output]:
        """Every face of every output, in order."""
        faces = []
        for place, cell in self.cells("code"):
            for output in cell.outputs:
                if output.output_type == "stream":
                    faces.append(Output(place, output.name, output.text))
                elif output.output_type == "error":
                    faces.append(Output(place, "error", f"{output.ename}: {output.evalue}"))
                else:
                    for media, content in output.data.items():
                        content = content if isinstance(content, str) else str(content)
                        faces.append(Output(place, media, content))
        return faces

    @cached_property
    def markdown(self) -> list[tuple[str, str, list[Token]]]:
        """Each Markdown cell: its place in words, its source, its tokens."""
        return [(place, cell.source, PARSER.parse(cell.source)) for place, cell in self.cells("markdown")]

    @cached_property
    def headings(self) -> list[tuple[str, int, str]]:
        """Each heading: place, level, text."""
        return [
            (place, int(token.tag[1]), tokens[index + 1].content.strip())
            for place, _, tokens in self.markdown
            for index, token in enumerate(tokens)
            if token.type == "heading_open"
        ]

    @cached_property
    def prose(self) -> list[tuple[str, str]]:
        """The place and the running text of each block, without code, formulas and tags."""
        return [
            (place, words)
            for place, _, tokens in self.markdown
            for token in tokens
            if (words := _words(token))
        ]


def _words(token: Token) -> str:
    if token.type == "html_block":
        return Page(re.sub(r"(?is)<(pre|code)\b.*?</\1>", " ", token.content)).text
    if token.type != "inline":
        return ""
    parts = []
    for child in token.children or ():
        if child.type == "text":
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type in ("code_inline", "math_inline"):
            parts.append("…")
        elif child.type == "image":
            parts.append(child.content)
    return "".join(parts).strip()

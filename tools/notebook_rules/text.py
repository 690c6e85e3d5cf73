"""Rules on what Markdown cells say: plain Markdown, links that hold, one shape for each chapter."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat

from .view import PARSER, Notebook, Page, rule

WORDS = (1_000, 2_400)
TAIL = ["When it goes wrong", "Exercises", "In short", "Where next"]
FIRST = "Predict first"
CLINIC = "42_error_clinic"
INDEX_CELL = "<details>\n<summary>In the error index:"  # how the links begin that tools/error_links.py writes
LINES = 5
MINUTES = re.compile(r"\b\d+(?:\s*(?:-|–|to)\s*\d+)?\s+min(?:ute)?s?\b")
FILLER = re.compile(r"\b(?:just|simply)\b", re.IGNORECASE)
QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”")
ROLE = re.compile(r"\{[A-Za-z][\w:+-]*\}$")
MYST_LINES = (
    (re.compile(r":::"), "a MyST block"),
    (re.compile(r"\([^()\s]+\)=\s*$"), "a MyST label"),
    (re.compile(r"\+\+\+(\s|$)"), "a MyST block break"),
    (re.compile(r"%\s"), "a MyST comment"),
    (re.compile(r".*\{\{.+\}\}"), "a MyST substitution"),
    (re.compile(r".*\{[a-z]+(?::[a-z]+)?\}`"), "a MyST role"),
)
CHAPTER = re.compile(r"\d\d_[a-z0-9_]+")


@rule
def plain_markdown(notebook: Notebook) -> Iterator[str]:
    """No MyST: Colab, JupyterLab and GitHub show it raw."""
    for place, _, tokens in notebook.markdown:
        for token in tokens:
            if token.type == "fence" and token.info.lstrip().startswith("{"):
                yield f"{place} has the MyST directive {token.info.strip()}: write plain Markdown."
            children = token.children or ()
            for child, following in zip(children, [*children[1:], None], strict=False):
                if child.type != "text":
                    continue
                if following and following.type == "code_inline" and ROLE.search(child.content):
                    role = ROLE.search(child.content).group()
                    yield f"{place} has the MyST role {role}: write plain Markdown."
                for pattern, what in MYST_LINES:
                    if pattern.match(child.content):
                        yield f"{place} has {what} ({child.content.strip()[:40]!r}): write plain Markdown."


@rule
def details_render(notebook: Notebook) -> Iterator[str]:
    """Markdown inside <details> is shown as Markdown only after a blank line."""
    for place, source, _ in notebook.markdown:
        if len(re.findall(r"<details\b", source)) != source.count("</details>"):
            yield f"{place} opens and closes <details> unequally: close each in the cell that opens it."
        if re.search(r"</summary>[ \t]*\n?[ \t]*\S", source):
            yield f"{place} has text directly after </summary>: leave a blank line between them."


@rule
def markdown_pictures(notebook: Notebook) -> Iterator[str]:
    """Every picture in the text says in words what it shows, and lies in a file."""
    for place, cell in notebook.cells("markdown"):
        if cell.get("attachments"):
            yield f"{place} holds an attached picture: draw it in a code cell, or put it in a file."
    for place, _, tokens in notebook.markdown:
        for token in tokens:
            for child in [token, *(token.children or ())]:
                bare = child.type == "image" and not child.content.strip()
                if child.type in ("html_block", "html_inline"):
                    bare = any(alternative == "" for _, alternative in Page(child.content).pictures)
                if bare:
                    yield f"{place} has a picture without a text alternative: say in words what it shows."


def _links(notebook: Notebook) -> Iterator[tuple[str, str]]:
    for place, _, tokens in notebook.markdown:
        for token in tokens:
            for child in [token, *(token.children or ())]:
                if child.type == "link_open":
                    yield place, child.attrs["href"]
                elif child.type == "image":
                    yield place, child.attrs["src"]
                elif child.type in ("html_block", "html_inline"):
                    for tag, attributes in Page(child.content).elements:
                        address = attributes.get({"a": "href", "img": "src"}.get(tag, ""))
                        if address:
                            yield place, address


@rule
def links_hold(notebook: Notebook) -> Iterator[str]:
    """Links between pages are relative, name the source file, and lead somewhere."""
    root = notebook.path.parent.parent
    for place, address in _links(notebook):
        parts = urlsplit(address)
        file = Path(unquote(parts.path))
        if parts.scheme in ("http", "https"):
            if CHAPTER.fullmatch(file.stem) and file.suffix in (".ipynb", ".html"):
                yield f"{place} links to a chapter by its address {address}: write `{file.stem}.ipynb`."
            continue
        if parts.scheme:
            if parts.scheme not in ("mailto", "data"):
                yield f"{place} links to {address}: use https, or a relative path."
            continue
        target = (notebook.path.parent / file).resolve() if parts.path else notebook.path
        if parts.path.startswith("/") or not target.is_relative_to(root):
            yield f"{place} links to {address}, outside the book: link to a page inside it."
        elif target.suffix == ".html":
            yield f"{place} links to {address}: name the source of that page (.ipynb or .md)."
        elif not target.is_file():
            yield f"{place} links to {address}, which is not there: mend the link or write the name as text."
        elif parts.fragment and parts.fragment not in _anchors(target):
            yield f"{place} links to {address}, but nothing there has that anchor."


def _anchors(path: Path) -> set[str]:
    text = path.read_text(encoding="utf-8")
    sources = [text]
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        sources = [cell.source for cell in cells if cell.cell_type == "markdown"]
    anchors = set()
    for source in sources:
        for token, following in pairwise(PARSER.parse(source)):
            if token.type == "heading_open" and int(token.tag[1]) <= 3:  # as myst_heading_anchors has it
                title = "".join(c.content for c in following.children if c.type in ("text", "code_inline"))
                anchors.add(re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-"))
    return anchors | {term_anchor(term) for term in glossary_terms(text)}


def glossary_terms(text: str) -> list[str]:
    """The terms that a Markdown page defines in its ``{glossary}`` directives, without backticks."""
    blocks = re.findall(r"^```\{glossary\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line.replace("`", "") for block in blocks for line in re.findall(r"^\S.*$", block, re.MULTILINE)]


def term_anchor(term: str) -> str:
    """The anchor that Sphinx gives to a term of a glossary."""
    plain = term.encode("ascii", "ignore").decode()
    return "term-" + re.sub(r"[^a-zA-Z0-9._]+", "-", plain).strip("-")


@rule
def headings_nest(notebook: Notebook) -> Iterator[str]:
    """A heading goes at most one level deeper than the one before it."""
    before = 0
    for place, level, title in notebook.headings:
        if level > before + 1:
            yield f"{place} jumps to heading level {level} ({title!r}): use level {before + 1}."
        before = level


@rule
def chapter_shape(notebook: Notebook) -> Iterator[str]:
    """Each chapter has the same opening and the same end."""
    if not CHAPTER.fullmatch(notebook.path.stem):
        yield "the file's name is not two digits, `_` and small letters, as in 12_grad_fn.ipynb: rename it."
    first = notebook.node.cells[0] if notebook.node.cells else None
    if first is None or first.cell_type != "markdown" or not re.match(r"# \S", first.source):
        yield "the first cell does not begin with the title: begin it with `# Title`."
    titles = [title for _, level, title in notebook.headings if level == 1]
    if len(titles) != 1:
        yield f"there are {len(titles)} headings of level 1, not one: make the others `##`."
    sections = [title for _, level, title in notebook.headings if level == 2]
    if sections[:1] != [FIRST]:
        yield f"the first section is {(sections or ['missing'])[0]!r}: make it `## {FIRST}`."
    if sections[-len(TAIL) :] != TAIL:
        wanted = ", ".join(f"`## {title}`" for title in TAIL)
        yield f"the last sections are {sections[-len(TAIL) :]}: end with {wanted}."
    opening = " ".join(source.split("\n## ")[0] for source in _before_first_section(notebook))
    if not MINUTES.search(opening):
        yield "the opening does not say how many minutes the chapter takes: add it below the title."


def _before_first_section(notebook: Notebook) -> Iterator[str]:
    for _, source, _ in notebook.markdown:
        yield source
        if re.search(r"^## ", source, re.MULTILINE):
            return


@rule
def short_summary(notebook: Notebook) -> Iterator[str]:
    """*In short* is one to five lines: list items or paragraphs."""
    inside, lines = False, 0
    for _, _, tokens in notebook.markdown:
        for index, token in enumerate(tokens):
            if token.type == "heading_open":
                inside = token.tag == "h2" and tokens[index + 1].content.strip() == "In short"
            elif inside:  # a paragraph inside a list item has a level of its own
                lines += (token.type, token.level) == ("paragraph_open", 0) or token.type == "list_item_open"
    if any(title == "In short" for _, _, title in notebook.headings) and not 1 <= lines <= LINES:
        yield f"*In short* has {lines} lines: make it one to {LINES}."


def _words_of(notebook: Notebook, numbers: Iterable[int]) -> Iterator[int]:
    """How many words each block of these cells has; the links into the index are no prose of the chapter."""
    for place, text in notebook.prose:
        number = int(place.split()[1]) - 1
        if number in numbers and not notebook.node.cells[number].source.startswith(INDEX_CELL):
            yield len(re.findall(r"\S*\w\S*", text))


@rule
def length(notebook: Notebook) -> Iterator[str]:
    """A chapter is one sitting. The clinic is a reference: nobody reads all of it."""
    words = sum(_words_of(notebook, range(len(notebook.node.cells))))
    if notebook.path.stem != CLINIC and not WORDS[0] <= words <= WORDS[1]:
        yield f"the text has {words} words: bring it between {WORDS[0]} and {WORDS[1]}."


def minutes(notebook: Notebook) -> int:
    """How long a chapter takes without its exercises, to 5 minutes.

    Counted are 200 words a minute, and a minute for each code cell.
    """
    starts = [
        cell.source.split("\n")[0] if cell.cell_type == "markdown" else "" for cell in notebook.node.cells
    ]
    first, after = (starts.index(f"## {title}") if f"## {title}" in starts else 0 for title in TAIL[1:3])
    counted = [i for i in range(len(starts)) if not first <= i < after]
    code = sum(notebook.node.cells[i].cell_type == "code" for i in counted)
    words = sum(_words_of(notebook, counted))
    return 5 * round((words / 200 + code) / 5)


@rule
def minutes_are_measured(notebook: Notebook) -> Iterator[str]:
    """The time that a chapter promises is counted."""
    headings = [title for _, level, title in notebook.headings if level == 2]
    if notebook.path.stem == CLINIC or headings[-len(TAIL) :] != TAIL:
        return
    said, counted = MINUTES.search(notebook.node.cells[0].source), minutes(notebook)
    if said and said.group() != f"{counted} minutes":
        yield f"the opening says {said.group()}: write {counted} minutes, which is what was counted."


@rule
def no_filler(notebook: Notebook) -> Iterator[str]:
    """Nothing is simple to somebody who learns it."""
    for place, text in notebook.prose:
        for word in FILLER.findall(QUOTED.sub(" ", text)):
            yield f"{place} says {word!r}: take the word out."

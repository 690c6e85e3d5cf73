"""Run the code of a Markdown page, as the page shows it.

A page's ``python`` blocks before its second heading run first, then each section in a namespace of its own
that starts from what they left. What a block prints must stand in the ``text`` block right after it.

A comment at the end of a statement may say more: ``# → value`` says what it gives (its ``repr``),
``# SomeError: words`` what its message has, ``# SomeWarning: words`` likewise. Two spaces end such a value or
message: a note may follow. A warning that nothing announces fails, unless it comes with an announced error.
"""

import ast
import io
import re
import tokenize
import warnings
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import torch
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
MARK = re.compile(r"#\s*(?:(?P<value>→)|(?P<kind>\w+(?:Error|Warning)):)\s*(?P<says>.+)")


@dataclass
class Block:
    code: str
    line: int  # the number of its first line on the page
    printed: str = ""


@dataclass
class Section:
    title: str
    level: int
    text: list[str] = field(default_factory=list)  # its paragraphs
    blocks: list[Block] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)  # of its tables, without their heads


def sections(text: str) -> list[Section]:
    """What stands under each heading of a page, its title first."""
    found: list[Section] = []
    before = None
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open":
            found.append(Section(following.content, int(token.tag[1:])))
        elif token.type == "paragraph_open":
            found[-1].text.append(following.content)
        elif token.type == "tr_open":
            found[-1].rows.append([])
        elif token.type == "td_open":
            found[-1].rows[-1].append(following.content)
        elif token.type == "fence" and token.info == "python":
            found[-1].blocks.append(Block(token.content, token.map[0] + 2))
        elif token.type == "fence" and token.info == "text":
            assert before == "python", f"line {token.map[0] + 1}: this output belongs to no code"
            found[-1].blocks[-1].printed = token.content
        before = token.info if token.type == "fence" else None
    for section in found:
        section.rows = [row for row in section.rows if row]
    return found


def check_section(page: str, first: Section, section: Section, seed: int = 0) -> dict:
    """Run a section after the page's first one, and compare what it does with what it says.

    Returns its names. Raises ``AssertionError`` where the page says something else.
    """
    names: dict = {"__name__": "__main__"}  # messages that name a class read as they would for the reader
    torch.manual_seed(seed)
    for part in [first] if section is first else [first, section]:
        for block in part.blocks:
            printed = io.StringIO()
            with redirect_stdout(printed):
                run(block.code, names, page, block.line)
            got = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
            wanted = block.printed.rstrip("\n")
            assert got == wanted, f"{page}, line {block.line}: printed\n{got}\nbut the page shows\n{wanted}"
    return names


def run(code: str, names: dict, page: str, line: int) -> None:
    """Run code statement by statement, and compare each with the comment at its end."""
    tree = ast.parse("\n" * (line - 1) + code, page)
    marks = marks_of(code, line)
    for statement, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        end = statement.end_lineno
        # Of several statements on one line, the comment is about the last.
        mark = None if following and following.lineno == end else marks.pop(end, None)
        check(statement, mark, names, f"{page}, line {end}")
    assert not marks, f"{page}, line {min(marks)}: nothing checks a comment inside a statement"


def marks_of(code: str, line: int) -> dict[int, re.Match]:
    """The comments that say what a line gives, by line."""
    comments = [t for t in tokenize.generate_tokens(io.StringIO(code).readline) if t.type == tokenize.COMMENT]
    matches = {line - 1 + comment.start[0]: MARK.fullmatch(comment.string) for comment in comments}
    return {number: match for number, match in matches.items() if match}


@contextmanager
def every_warning(action: str):
    """Python's filter set to ``action``, and torch told to warn each time, not only the first."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True, action=action) as caught:
            yield caught
    finally:
        torch.set_warn_always(always)


def check(statement: ast.stmt, mark: re.Match | None, names: dict, place: str) -> None:
    """Run one statement, and compare its value, its error and its warnings with what the comment says."""
    value, error = None, None
    try:
        with every_warning("always") as caught:
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), place, "eval"), names)
            else:
                exec(compile(ast.Module([statement], []), place, "exec"), names)
    except Exception as raised:
        if mark is None or not mark["kind"]:
            raise
        error = raised
    # As Python does by default: a deprecation inside a library is none of the reader's business.
    said = [
        (type(one.message).__name__, str(one.message))
        for one in caught
        if not issubclass(one.category, DeprecationWarning) or one.filename == place
    ]
    kind = mark and mark["kind"]
    if kind and kind.endswith("Error"):
        assert error is not None, f"{place}: no {kind} came"
        came, wanted, said = (type(error).__name__, str(error)), mark, []
    elif kind:
        assert len(said) == 1 and error is None, f"{place}: one {kind} was announced, {said} came"
        came, wanted, said = said[0], mark, []
    else:
        came, wanted = None, None
    if wanted:
        words = re.split(r"\s{2,}", wanted["says"])[0]
        assert came[0] == kind and words in " ".join(came[1].split()), f"{place}: {came} came"
    assert not said, f"{place}: a warning came that the page does not show: {said}"
    if mark and mark["value"]:
        assert isinstance(statement, ast.Expr), f"{place}: a statement has no value"
        shown = re.split(r"\s{2,}", mark["says"])[0]
        assert repr(value) == shown, f"{place}: gives {value!r}"

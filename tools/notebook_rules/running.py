"""Rules on the code and on how it was run."""

import io
import re
import tokenize
from collections.abc import Iterator
from itertools import pairwise

import notebooks

from .view import Notebook, rule

AGAIN = "run `make notebooks FILES=…`"
LARGEST = 1_500_000  # bytes: GitHub stops showing larger notebooks, and a phone has to load them
SHELL = re.compile(
    r"^\s*(?:[\w, ]+=\s*)?(?:!|%{1,2}(?:pip|conda|mamba|micromamba|uv|bash|sh|script|system|sx|cd)\b)",
    re.MULTILINE,
)
CLOCK_MAGIC = re.compile(r"^\s*%{1,2}(?:timeit|time|prun|lprun|memit|mprun)\b", re.MULTILINE)
# nbval's own switches: each turns the comparison of a cell off.
NBVAL_COMMENT = re.compile(r"^\s*#+\s*(?:NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)\s*$", re.MULTILINE)
NBVAL_TAG = re.compile(r"nbval-|raises-exception|pytest-validate")
DISPLAY = re.compile(
    r"\bclear_output\b|\bupdate_display\b|\bdisplay_id\b|\b(?:ipy)?widgets\.Output\b"
    r"|from ipywidgets import [^\n]*\bOutput\b"
)


@rule
def executed(notebook: Notebook) -> Iterator[str]:
    """Every code cell was run. nbval passes a cell that never was."""
    places = [place for place, cell in notebook.cells("code") if cell.execution_count is None]
    if places:
        yield f"never run: {', '.join(places)}; {AGAIN}."


@rule
def counted(notebook: Notebook) -> Iterator[str]:
    """Cells were run once each, from top to bottom, in a fresh kernel."""
    counts = [cell.execution_count for _, cell in notebook.cells("code")]
    if None not in counts and counts != list(range(1, len(counts) + 1)):
        yield f"the cells were run in the order {counts}, not 1 to {len(counts)}: {AGAIN}."


@rule
def has_outputs(notebook: Notebook) -> Iterator[str]:
    """A chapter shows something. Stripped of outputs it would still pass nbval."""
    if not notebook.outputs:
        yield f"no cell has an output: {AGAIN}, and do not strip outputs."


@rule
def no_errors(notebook: Notebook) -> Iterator[str]:
    """An error that is the lesson is printed by `raises`, and never ends a cell."""
    for output in notebook.outputs:
        if output.kind == "error":
            yield f"{output.place} ends in {output.content}: wrap it in `with raises(...)` or repair it."


@rule
def no_empty_code(notebook: Notebook) -> Iterator[str]:
    """No code cell is empty, and none is a raw cell."""
    for place, cell in notebook.cells("code"):
        if not cell.source.strip():
            yield f"{place} is empty: delete it."
    for place, _ in notebook.cells("raw"):
        yield f"{place} is a raw cell, which pages leave out: make it Markdown or delete it."


@rule
def normal_form(notebook: Notebook) -> Iterator[str]:
    """The bytes are what `make notebooks` writes: ids, metadata, outputs, indentation."""
    if notebooks.to_text(notebooks.normalize(notebooks.read(notebook.path))) != notebook.text:
        yield f"the file is not in its normal form (cell ids, metadata, streams or indentation): {AGAIN}."


@rule
def compared(notebook: Notebook) -> Iterator[str]:
    """No cell opts out of the comparison of its output."""
    for place, cell in notebook.cells("code"):
        tags = [tag for tag in cell.metadata.get("tags", ()) if NBVAL_TAG.match(tag)]
        for mark in [*tags, *NBVAL_COMMENT.findall(cell.source)]:
            yield f"{place} carries {mark.strip()}: make its output the same on each run instead."


@rule
def no_shell(notebook: Notebook) -> Iterator[str]:
    """A chapter installs nothing and calls no shell: it must run on a machine without either."""
    for place, cell in notebook.cells("code"):
        for match in SHELL.finditer(cell.source):
            yield f"{place} has the shell line {match.group().strip()!r}: take it out."


@rule
def no_clock_magic(notebook: Notebook) -> Iterator[str]:
    """Timings differ on each run."""
    for place, cell in notebook.cells("code"):
        for match in CLOCK_MAGIC.finditer(cell.source):
            yield f"{place} uses {match.group().strip()}: measure a count or a ratio, and assert on it."


@rule
def no_trailing_semicolon(notebook: Notebook) -> Iterator[str]:
    """A `;` at the end of a line hides an output in Jupyter and means nothing elsewhere."""
    for place, cell in notebook.cells("code"):
        for token, following in pairwise(_tokens(cell.source)):
            ends = following.type in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
            if token.type == tokenize.OP and token.string == ";" and ends:
                yield f"{place}, line {token.start[0]}, ends in `;`: take it out, or assign the value to `_`."


def _tokens(source: str) -> list[tokenize.TokenInfo]:
    # IPython's own lines are no Python: blank them, keeping the numbers of the lines.
    source = re.sub(r"^([ \t]*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)
    try:
        return list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return []


@rule
def no_display_updates(notebook: Notebook) -> Iterator[str]:
    """What is shown and then replaced is not what is stored."""
    for place, cell in notebook.cells("code"):
        for match in DISPLAY.finditer(cell.source):
            yield f"{place} uses {match.group()}: show the final result once."


@rule
def small(notebook: Notebook) -> Iterator[str]:
    """A chapter stays small enough to be shown on GitHub and loaded on a phone."""
    size = len(notebook.text.encode())
    if size > LARGEST:
        yield f"the file has {size / 1e6:.1f} MB, more than {LARGEST / 1e6:.1f}: make its outputs smaller."

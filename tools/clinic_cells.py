"""Write the catalogue of errors into the error clinic, between its first topic and "## When it goes wrong".

    python tools/clinic_cells.py

The entries live in src/inside_autograd/catalogue/. Run ``python tools/notebooks.py`` on the notebook
afterwards, so that the new cells are executed.
"""

import ast
import sys
import warnings
from collections.abc import Callable
from functools import partial

import nbformat
import torch
from nbformat.v4 import new_code_cell, new_markdown_cell

from error_pages import CLINIC
from inside_autograd.catalogue import Entry, slug, topics
from inside_autograd.messages import plain_message
from notebooks import ROOT, Stop, name_of, normalize, read, to_text, write_if_changed

PATH = ROOT / "notebooks" / f"{CLINIC}.ipynb"
AFTER = "## When it goes wrong"


def cells() -> list[nbformat.NotebookNode]:
    """The cells of all topics, in order."""
    found = []
    for topic, entries in topics().items():
        found.append(new_markdown_cell(f"## {topic}"))
        for entry in entries:
            found += entry_cells(entry)
    return found


def entry_cells(entry: Entry) -> list[nbformat.NotebookNode]:
    """One entry: what it means, the code that gives it, why, the repair, the repaired code."""
    causes = "\n".join(f"{i}. {cause}" for i, cause in enumerate(entry.causes, 1))
    since = f"\n\n*Other versions:* {entry.since}" if entry.since else ""
    link = f"{entry.chapter}.ipynb#{slug(entry.section)}"
    repair = (
        f"Usual causes, most common first:\n\n{causes}\n\n**Repair.** {entry.repair}{since}\n\n"
        f"Why it is so: [chapter {entry.chapter[:2]}]({link})."
    )
    found = [new_markdown_cell(f"### {entry.title}\n\n{entry.meaning}"), new_code_cell(broken_cell(entry))]
    if entry.draws:
        found.append(new_code_cell(f"draw({entry.draws})"))
    return [*found, new_markdown_cell(repair), new_code_cell(entry.fixed_code.rstrip())]


def broken_cell(entry: Entry) -> str:
    """The broken code; what gives the error or warning stands in a block that expects it.

    What comes after an error never runs, so it stays in the block. What comes after a warning runs as usual.
    """
    lines = entry.broken_code.rstrip().split("\n")
    guilty, error, others = _guilty(entry)
    start = min([guilty.lineno, *(d.lineno for d in getattr(guilty, "decorator_list", ()))]) - 1
    end = len(lines) if error else guilty.end_lineno
    expects = [f"raises({error.__name__})"] if error else []
    expects += [f"warns({entry.category})"] if entry.is_warning else []
    # A warning that comes with it has an entry of its own.
    expects += ['warnings.catch_warnings(action="ignore")'] if others else []
    block = [f"    {line}" if line else "" for line in lines[start:end]]
    found = [*lines[:start], f"with {', '.join(expects)}:", *block, *lines[end:]]
    if others:
        found.insert(0, "import warnings\n")
    if error and error.__module__ != "builtins":
        found.insert(found.index("import torch") + 1, f"from {error.__module__} import {error.__name__}")
    return "\n".join(found)


def _guilty(entry: Entry) -> tuple[ast.stmt, type[Exception] | None, bool]:
    """The statement that gives the entry's message, the error that ends it, whether it warns besides."""
    variables = {"__name__": "__main__"}
    for statement in ast.parse(entry.broken_code).body:
        code = compile(ast.Module([statement], []), f"<{entry.id}>", "exec")
        said = outcomes(partial(exec, code, variables))
        error = next((kind for kind, _ in said if not issubclass(kind, Warning)), None)
        if any(entry.matches(message) for _, message in said):
            # Python shows a DeprecationWarning only where the code of the cell itself gives it.
            others = any(issubclass(kind, Warning) and kind is not DeprecationWarning for kind, _ in said)
            return statement, error, others and not entry.is_warning
        if error:
            break
    raise Stop(f"The broken code of {entry.id} gives no message of this entry.")


def outcomes(run: Callable[[], object]) -> list[tuple[type, str]]:
    """Class and plain message of each warning that came, and of the error at the end if there was one."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    ended = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                run()
            except Exception as error:
                ended.append((type(error), plain_message(error)))
    finally:
        torch.set_warn_always(always)
    return [(warning.category, plain_message(warning.message)) for warning in caught] + ended


def write() -> bool:
    """Bring the clinic up to date; returns whether the file changed."""
    notebook = read(PATH)
    starts = [c.source.split("\n")[0] if c.cell_type == "markdown" else "" for c in notebook.cells]
    first = f"## {next(iter(topics()))}"
    if first not in starts or AFTER not in starts:
        raise Stop(f'{name_of(PATH)} needs a cell that begins with "{first}" and one with "{AFTER}".')
    start, end = starts.index(first), starts.index(AFTER)
    new = cells()
    if [(c.cell_type, c.source) for c in notebook.cells[start:end]] == [(c.cell_type, c.source) for c in new]:
        return False
    notebook.cells[start:end] = new
    write_if_changed(PATH, to_text(normalize(notebook)))
    return True


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    if arguments:
        print("Usage: python tools/clinic_cells.py", file=sys.stderr)
        return 2
    try:
        print(f"{name_of(PATH)}: {'entries written' if write() else 'up to date'}")
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

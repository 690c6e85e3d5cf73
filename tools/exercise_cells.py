"""Write the exercises of a chapter into its notebook, between "## Exercises" and the next heading.

    python tools/exercise_cells.py [FILE.ipynb ...]     no file: every notebook that has exercises

The exercises themselves live in src/inside_autograd/exercises/. Run ``python tools/notebooks.py``
afterwards, so that the new cells are executed.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from inside_autograd.exercises import Exercise, all_exercises
from notebooks import ROOT, Stop, name_of, normalize, read, to_text, write_if_changed

HEADING = "## Exercises"
OPENING = (
    f"{HEADING}\n\n"
    "Write your answer where the dots are and run the cell: the check tells you what is right, or what is "
    "wrong and why. `ex.name.hint()` gives a hint, one more at each call. While the dots stand there, the "
    "check says that you have not tried yet."
)
IMPORT = "from inside_autograd import exercises as ex"


def cells(exercises: list[Exercise]) -> list[nbformat.NotebookNode]:
    """The cells of one chapter's exercises, from the heading on."""
    found = [new_markdown_cell(OPENING), new_code_cell(IMPORT)]
    for exercise in exercises:
        found += [new_markdown_cell(exercise.markdown()), new_code_cell(exercise.cell())]
    return found


def split(notebook: nbformat.NotebookNode) -> None:
    """Give the heading of the exercises, and the heading after it, cells of their own beginning."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "markdown" or HEADING not in cell.source.split("\n"):
            found.append(cell)
            continue
        parts = re.split(r"\n(?=## )", cell.source)
        at = next(i for i, part in enumerate(parts) if part.split("\n")[0] == HEADING)
        texts = ["\n".join(parts[:at]), parts[at], "\n".join(parts[at + 1 :])]
        found += [new_markdown_cell(text.strip()) for text in texts if text.strip()]
    notebook.cells = found


def bounds(notebook: nbformat.NotebookNode) -> tuple[int, int]:
    """Where the cells of the exercises begin and end.

    Raises
    ------
    Stop
        If the notebook has no cell that begins with "## Exercises".
    """
    headings = [
        i for i, c in enumerate(notebook.cells) if c.cell_type == "markdown" and c.source.startswith("## ")
    ]
    starts = [i for i in headings if notebook.cells[i].source.split("\n")[0] == HEADING]
    if len(starts) != 1:
        raise Stop(f'needs exactly one Markdown cell that begins with "{HEADING}".')
    after = [i for i in headings if i > starts[0]]
    return starts[0], after[0] if after else len(notebook.cells)


def of_chapter(path: Path) -> list[Exercise]:
    """The exercises of the chapter whose notebook is ``path``, told by its number."""
    return [e for e in all_exercises().values() if e.chapter == path.name[:2]]


def write(path: Path) -> bool:
    """Bring the exercises in one notebook up to date; returns whether the file changed."""
    notebook, exercises = read(path), of_chapter(path)
    if not exercises:
        raise Stop(f"{name_of(path)}: no exercises are registered for chapter {path.name[:2]}.")
    split(notebook)
    try:
        start, end = bounds(notebook)
    except Stop as stop:
        raise Stop(f"{name_of(path)} {stop}") from None
    new = cells(exercises)
    if [(c.cell_type, c.source) for c in notebook.cells[start:end]] == [(c.cell_type, c.source) for c in new]:
        return False
    notebook.cells[start:end] = new
    write_if_changed(path, to_text(normalize(notebook)))
    return True


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    paths = [Path(argument) for argument in arguments]
    if not paths:
        paths = [path for path in sorted((ROOT / "notebooks").glob("*.ipynb")) if of_chapter(path)]
    try:
        for path in paths:
            print(f"{name_of(path)}: {'exercises written' if write(path) else 'up to date'}")
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Write what the book's pages take from the package: solutions, index of errors, player of the first page.

python tools/generated_pages.py            write book/solutions.md and book/front_player.html
python tools/generated_pages.py --check    write nothing; exit 1 if one of them is not up to date
"""

import sys
from pathlib import Path

import error_pages
from inside_autograd.exercises import Exercise, Mistake, all_exercises

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "solutions.md"
PLAYER = ROOT / "book" / "front_player.html"
ERRORS = ROOT / "book" / "errors.md"
ERRORS_BOX = ROOT / "book" / "errors_box.html"
ERRORS_DATA = ROOT / "book" / "_static" / "errors_data.js"
OPENING = """\
# Solutions

Every exercise of the book, with its hints, a solution, and what went wrong if you got something else. Open
one line at a time: often a hint is enough.
"""


def page(exercises: list[Exercise], notebooks: dict[str, tuple[str, str]]) -> str:
    """The whole page.

    Parameters
    ----------
    exercises
        In order.
    notebooks
        From a chapter's number to the name of its notebook, such as ``12_grad_fn``, and its title.
    """
    parts, chapter = [OPENING.strip()], None
    for exercise in exercises:
        name, title = notebooks[exercise.chapter]
        if exercise.chapter != chapter:
            chapter = exercise.chapter
            parts.append(f"## Chapter {chapter}: {title}")
        parts.append(entry(exercise, name))
    return "\n\n".join(parts) + "\n"


def entry(exercise: Exercise, notebook: str) -> str:
    """One exercise: the way back, then hints, solution and known wrong answers, each folded."""
    solution = f"{_python(exercise.reference)}\n\n{exercise.explains}"
    parts = [
        f"### {exercise.title}",
        f"[To the exercise](../notebooks/{notebook}.ipynb#{exercise.anchor})",
        *(_folded(f"Hint {i}", hint) for i, hint in enumerate(exercise.hints, 1)),
        _folded("A solution", solution),
    ]
    if exercise.other_right:
        parts.append(_folded("Other right answers", "\n\n".join(map(_python, exercise.other_right))))
    parts += [_folded(*_mistaken(exercise, mistake)) for mistake in exercise.mistakes]
    return "\n\n".join(parts)


def _mistaken(exercise: Exercise, mistake: Mistake) -> tuple[str, str]:
    """The summary and the text of one known wrong answer."""
    code = mistake.code.strip()
    if "\n" in code:
        return f"If yours does this: {mistake.key}", f"{_python(code)}\n\n{mistake.says}"
    answer = code.partition(" = ")[2].strip("\"'") if exercise.choices else code.partition(" = ")[2]
    return f"If you got {answer}", mistake.says


def _folded(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body.strip()}\n\n</details>"


def _python(code: str) -> str:
    return f"```python\n{code.strip()}\n```"


def chapters() -> dict[str, tuple[str, str]]:
    """From a chapter's number to its notebook's name and title."""
    import nbformat

    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title = nbformat.read(path, as_version=4).cells[0].source.split("\n")[0]
        found[path.name[:2]] = (path.stem, title.removeprefix("# "))
    return found


def current() -> str:
    """The page of solutions as it should be now: the exercises of all chapters that have a notebook."""
    notebooks = chapters()
    return page([e for e in all_exercises().values() if e.chapter in notebooks], notebooks)


def front_player() -> str:
    """The player on the first page: a real backward pass over the example of chapter 11."""
    import torch

    from inside_autograd import replay

    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    return replay((w * x) ** 2 + w, params={"x": x, "w": w}).to_html() + "\n"


MADE = {
    PAGE: current,
    PLAYER: front_player,
    ERRORS: error_pages.index_page,
    ERRORS_BOX: error_pages.search_box,
    ERRORS_DATA: error_pages.search_data,
}


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    if arguments not in ([], ["--check"]):
        print("Usage: python tools/generated_pages.py [--check]", file=sys.stderr)
        return 2
    status = 0
    for path, make in MADE.items():
        name, text = path.relative_to(ROOT).as_posix(), make()
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        if arguments:
            print(f"{name} is not up to date: run python tools/generated_pages.py", file=sys.stderr)
            status = 1
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{name}: written")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

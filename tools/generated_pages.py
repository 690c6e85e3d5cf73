"""Write what the book's pages take from the package: solutions, index of errors, player of the first page.

python tools/generated_pages.py            write them into book/
python tools/generated_pages.py --check    write nothing; exit 1 if one of them is not up to date
"""

import re
import sys
from itertools import groupby
from operator import attrgetter
from pathlib import Path

import yaml

import error_pages
from inside_autograd.exercises import Exercise, Mistake, all_exercises

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "solutions.md"  # of those of the parts: solutions_1.md, ...
PLAYER = ROOT / "book" / "front_player.html"
ERRORS = ROOT / "book" / "errors.md"
ERRORS_BOX = ROOT / "book" / "errors_box.html"
ERRORS_DATA = ROOT / "book" / "_static" / "errors_data.js"
ABOUT = """\
Every exercise{of}, with its hints, a solution, and what went wrong if you got something else. Open
one line at a time: often a hint is enough.
"""

Notebooks = dict[str, tuple[str, str]]  # from a chapter's number to its notebook's name and its title


def page(exercises: list[Exercise], notebooks: Notebooks, part: str) -> str:
    """The page of one part, with the exercises of its chapters in order; ``part`` is the part's name."""
    number, name = part.split(", ", 1)
    about = ABOUT.format(of=f" of {number.lower()}, *{name}*").strip()
    parts = [f"# Solutions to {number.lower()}", about]
    for chapter, own in groupby(exercises, attrgetter("chapter")):
        notebook, title = notebooks[chapter]
        parts.append(f"## Chapter {chapter}: {title}")
        parts += [entry(exercise, notebook) for exercise in own]
    return "\n\n".join(parts) + "\n"


def contents(exercises: dict[str, list[Exercise]], notebooks: Notebooks, names: dict[str, str]) -> str:
    """The page that lists them all, by part. Each has its anchor there too: all stood on this page once."""
    parts = ["# Solutions", ABOUT.format(of=" of the book").strip(), "Which part is your exercise in?"]
    for number, part in names.items():
        parts.append(f"## [{part}](solutions_{number}.md)")
        lines = []
        for chapter, own in groupby(exercises[number], attrgetter("chapter")):
            lines.append(f"- Chapter {chapter}: {notebooks[chapter][1]}")
            for exercise in own:
                link = f"[{exercise.title}](solutions_{number}.md#{exercise.anchor})"
                lines.append(f'  - <span id="{exercise.anchor}"></span>{link}')
        parts.append("\n".join(lines))
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


def chapters() -> Notebooks:
    """From a chapter's number to its notebook's name and title."""
    import nbformat

    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        title = nbformat.read(path, as_version=4).cells[0].source.split("\n")[0]
        found[path.name[:2]] = (path.stem, title.removeprefix("# "))
    return found


def part_names() -> dict[str, str]:
    """From a part's number, the first digit of its chapters, to its name, as the list of pages says it."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    captions = [part["caption"] for part in toc["parts"]]
    found = (re.fullmatch(r"Part (\d) · (.+)", caption) for caption in captions)
    return {match[1]: f"Part {match[1]}, {match[2]}" for match in found if match}


def solutions() -> dict[Path, str]:
    """The pages of solutions as they should be now: the exercises of all chapters that have a notebook."""
    notebooks, names = chapters(), part_names()
    known = [e for e in all_exercises().values() if e.chapter in notebooks]
    exercises = {number: [e for e in known if e.chapter[0] == number] for number in names}
    pages = {PAGE: contents(exercises, notebooks, names)}
    for number, name in names.items():
        pages[PAGE.with_name(f"solutions_{number}.md")] = page(exercises[number], notebooks, name)
    return pages


def front_player() -> str:
    """The player on the first page: a real backward pass over the example of chapter 11."""
    import torch

    from inside_autograd import replay

    x = torch.tensor(2.0, requires_grad=True)
    w = torch.tensor(3.0, requires_grad=True)
    return replay((w * x) ** 2 + w, params={"x": x, "w": w}).to_html() + "\n"


MADE = {
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
    for path, text in {**solutions(), **{path: make() for path, make in MADE.items()}}.items():
        name = path.relative_to(ROOT).as_posix()
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

"""Readers' questions: each is answered under a heading that exists, and headings are unambiguous.

``data/question_map.json`` maps a question's number to the places (notebook, heading) of its answer.
"""

import json
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
MAP = json.loads((ROOT / "tests" / "data" / "question_map.json").read_text(encoding="utf-8"))


def headings(name: str) -> list[str]:
    """The headings of a notebook below its title, as written."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return [line.lstrip("#").strip() for line in text.splitlines() if re.match(r"#{2,4} ", line)]


def test_every_question_is_answered():
    assert len(MAP) == 68


@pytest.mark.parametrize("question", MAP)
def test_the_answer_stands_where_the_map_says(question):
    assert re.fullmatch(r"q\d{3}", question)
    assert MAP[question], "name at least one place"
    for name, heading in MAP[question]:
        assert heading in headings(name), f"{name} has no heading {heading!r}"


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_heading_stands_twice_in_a_chapter(path):
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings(path.stem)]
    assert sorted(set(slugs)) == sorted(slugs), "a link would lead to the first of two"

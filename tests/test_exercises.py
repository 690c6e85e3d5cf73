"""Every exercise of the book, automatically: solutions, starters, known-wrong answers, nonsense."""

import re
from pathlib import Path

import nbformat
import pytest
import torch

import exercise_cells
import generated_pages
from inside_autograd.exercises import Exercise, all_exercises
from inside_autograd.exercises._model import KINDS
from inside_autograd.exercises._source import execute

ROOT = Path(__file__).resolve().parent.parent
EXERCISES = list(all_exercises().values())
CHAPTERS = tuple(path.name[:2] for path in sorted((ROOT / "notebooks").glob("*.ipynb")))
NONSENSE = {
    "None": None,
    "a text": "a text",
    "no arguments": lambda: 0,
    "raises": execute("def f(*a, **k):\n    raise ValueError('no')\n", "f"),
    "prints": execute("def f(*a, **k):\n    print('hello')\n", "f"),
    "nan": execute("def f(*a, **k):\n    return torch.tensor(float('nan'))\n", "f"),
    "seeds": execute("def f(*a, **k):\n    torch.manual_seed(1)\n", "f"),
    "no grad": execute("def f(*a, **k):\n    torch.set_grad_enabled(False)\n", "f"),
    "an instance": torch.nn.Linear(2, 2),
    "a class": torch.nn.Linear,
}


def each(exercises=EXERCISES):
    return pytest.mark.parametrize("exercise", exercises, ids=lambda e: e.name)


def wrong_answers():
    return [pytest.param(e, m, id=f"{e.name}-{m.key}") for e in EXERCISES for m in e.mistakes]


def test_each_chapter_has_at_least_four():
    count = {chapter: sum(e.chapter == chapter for e in EXERCISES) for chapter in CHAPTERS}
    assert min(count.values()) >= 4, count


@each()
def test_it_is_complete(exercise: Exercise):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", exercise.name)
    assert 1 <= exercise.minutes <= 30
    assert exercise.difficulty in (1, 2, 3)
    assert exercise.kind in KINDS
    assert 2 <= len(exercise.hints) <= 4
    assert exercise.explains, "say why the solution is right"
    assert len({m.key for m in exercise.mistakes}) == len(exercise.mistakes)
    assert len({m.says for m in exercise.mistakes}) == len(exercise.mistakes)
    written_code = exercise.kind in ("function", "Function", "Module")
    assert len(exercise.mistakes) >= (5 if written_code else 2)
    if exercise.kind == "choice":
        wrong = {execute(m.code, exercise.answer) for m in exercise.mistakes}
        right = {execute(exercise.reference, exercise.answer)}
        assert wrong | right == set(exercise.choices)
        assert not wrong & right
    if exercise.kind == "function":
        assert len(exercise.cases) >= 3, "an example and at least two other inputs"


@each()
def test_its_text_keeps_the_books_style(exercise: Exercise):
    texts = [exercise.statement, exercise.explains, *exercise.hints, *(m.says for m in exercise.mistakes)]
    for text in texts:
        assert not re.search(r"\b(simply|just|obviously|easy|easily)\b", text, re.IGNORECASE), text
        assert "TODO" not in text


@each()
def test_the_starter_is_not_attempted(exercise: Exercise):
    assert exercise.check(execute(exercise.starter, exercise.answer)).status == "not attempted"


@each()
def test_the_solution_passes(exercise: Exercise):
    report = exercise.check(execute(exercise.reference, exercise.answer))
    assert report.passed, report.text()


@each()
def test_other_right_answers_pass(exercise: Exercise):
    for code in exercise.other_right:
        report = exercise.check(execute(code, exercise.answer))
        assert report.passed, f"{code}\n{report.text()}"


@pytest.mark.parametrize(("exercise", "mistake"), wrong_answers())
def test_a_known_wrong_answer_gets_its_own_diagnosis(exercise: Exercise, mistake):
    report = exercise.check(execute(mistake.code, exercise.answer))
    assert not report.passed
    assert report.diagnosis == mistake.key, report.text()
    assert mistake.says in report.message


@each()
def test_the_solution_does_not_stand_in_the_cells(exercise: Exercise):
    shown = exercise.markdown() + exercise.cell()
    lines = [line.strip() for line in exercise.reference.splitlines()]
    telling = [line for line in lines if len(line) > 12 and line not in exercise.starter]
    # A statement may quote the broken code; what repairs it must not stand there.
    assert not telling or [line for line in telling if line not in shown]


@each()
@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_gets_a_polite_report(exercise: Exercise, name):
    before = (torch.get_rng_state().tolist(), torch.is_grad_enabled(), torch.get_default_dtype())
    report = exercise.check(NONSENSE[name])
    assert not report.passed
    assert report.diagnosis is None, f"{name} was taken for {report.diagnosis}"
    assert report.text() and report._repr_html_()
    assert (torch.get_rng_state().tolist(), torch.is_grad_enabled(), torch.get_default_dtype()) == before


@each([e for e in EXERCISES if e.kind == "function"])
def test_a_loop_without_end_is_stopped(exercise: Exercise):
    names = re.search(r"def \w+\((.*?)\)", exercise.starter).group(1)
    loop = execute(f"def f({names}):\n    while True:\n        pass\n", "f")
    usual = exercise.seconds
    object.__setattr__(exercise, "seconds", 0.2)
    try:
        assert exercise.check(loop).status == "too slow"
    finally:
        object.__setattr__(exercise, "seconds", usual)


# ------------------------------------------------------------------ notebooks and the registry


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_notebook_has_exactly_the_registered_exercises(chapter):
    (path,) = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
    notebook, tool = nbformat.read(path, as_version=4), exercise_cells
    start, end = tool.bounds(notebook)
    expected = [(c.cell_type, c.source) for c in tool.cells(tool.of_chapter(path))]
    assert [(c.cell_type, c.source) for c in notebook.cells[start:end]] == expected
    calls = re.findall(r"\bex\.(\w+)\.check\(", "\n".join(c.source for c in notebook.cells))
    assert sorted(calls) == sorted(e.name for e in EXERCISES if e.chapter == chapter)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_stored_reports_say_not_attempted(chapter):
    (path,) = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if (
            cell.cell_type == "code"
            and ".check(" in cell.source
            and cell.source.split("\n")[-1].startswith("ex.")
        ):
            assert "Not attempted yet." in cell.outputs[-1]["data"]["text/plain"]


# ------------------------------------------------------------------ the page of solutions


def test_the_pages_of_solutions_are_up_to_date():
    pages = generated_pages.solutions()
    assert len(pages) == 6
    for path, text in pages.items():
        assert path.read_text(encoding="utf-8") == text, path.name
    assert {path.name for path in (ROOT / "book").glob("solutions*")} == {path.name for path in pages}


def test_the_list_of_solutions_leads_to_every_exercise():
    text = (ROOT / "book" / "solutions.md").read_text(encoding="utf-8")
    for exercise in EXERCISES:
        link = f"](solutions_{exercise.chapter[0]}.md#{exercise.anchor})"
        assert text.count(f'<span id="{exercise.anchor}"></span>[{exercise.title}{link}') == 1


def test_the_player_on_the_first_page_is_up_to_date():
    assert generated_pages.PLAYER.read_text(encoding="utf-8") == generated_pages.front_player()


def test_every_exercise_has_an_entry_with_everything_folded():
    for exercise in EXERCISES:
        page = ROOT / "book" / f"solutions_{exercise.chapter[0]}.md"
        text = page.read_text(encoding="utf-8")
        start = text.index(f"\n### {exercise.title}\n")
        entry = re.split(r"\n##+ ", text[start + 4 :])[0]
        folded = re.findall(r"<details>.*?</details>", entry, re.DOTALL)
        assert len(folded) >= len(exercise.hints) + 1 + len(exercise.mistakes)
        open_text = re.sub(r"<details>.*?</details>", "", entry, flags=re.DOTALL)
        for hidden in (exercise.reference.strip(), exercise.explains, *exercise.hints):
            assert hidden in entry
            assert hidden not in open_text
        assert f"#{exercise.anchor})" in open_text


def test_anchors_are_unique():
    anchors = [e.anchor for e in EXERCISES]
    assert len(set(anchors)) == len(anchors)

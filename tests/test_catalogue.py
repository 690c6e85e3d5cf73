"""Every entry of the catalogue: its message is real, its repair works, no other message matches it."""

import json
import re
import sys
import warnings
from pathlib import Path

import nbformat
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output

from inside_autograd.catalogue import Entry, all_entries, one_space, slug, topics
from ordinary_errors import ORDINARY
from test_question_map import headings

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import clinic_cells  # noqa: E402
import error_links  # noqa: E402
import error_pages  # noqa: E402
import generated_pages  # noqa: E402

ENTRIES = list(all_entries().values())
each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
# Only what Python and JavaScript read alike.
PYTHON_ONLY = re.compile(r"\(\?P|\(\?[aiLmsux#]|\(\?<|\(\?\(|\\[AZ]|[*+?}]\+|\\N\{")


@pytest.fixture(autouse=True)
def torch_as_it_was():
    """Settings that an entry's code must leave alone."""
    # torch.compile switches this off for the rest of the process.
    torch.distributions.Distribution.set_default_validate_args(True)
    before = torch.get_default_dtype(), torch.is_anomaly_enabled(), torch.is_grad_enabled()
    always = torch.is_warn_always_enabled()
    yield
    assert (torch.get_default_dtype(), torch.is_anomaly_enabled(), torch.is_grad_enabled()) == before
    assert torch.is_warn_always_enabled() == always


@pytest.fixture(scope="module", autouse=True)
def forward_mode_is_loaded():
    """The first use of forward mode in a process loads old code that warns of its own age."""
    with warnings.catch_warnings(action="ignore"):
        torch.func.jvp(torch.exp, (torch.ones(()),), (torch.ones(()),))


def outcomes(run) -> list[tuple[str, str]]:
    """(name of the class, message) of the warnings that came, and of the error at the end."""
    return [(kind.__name__, message) for kind, message in clinic_cells.outcomes(run)]


@each_entry
def test_the_broken_code_gives_this_message(entry: Entry):
    found = outcomes(entry.broken)
    assert (entry.category, entry.message) in [(kind, text) for kind, text in found], found
    if not entry.is_warning:
        assert found[-1] == (entry.category, entry.message)


@each_entry
def test_the_fixed_code_runs_and_says_nothing(entry: Entry):
    assert outcomes(entry.fixed) == []
    assert "assert " in entry.fixed_code


@each_entry
def test_exactly_one_pattern_matches_a_message(entry: Entry):
    for message in (entry.message, *entry.variants):
        assert [other.id for other in ENTRIES if other.matches(message)] == [entry.id], message
        assert entry.matches(message.replace(" ", "\n    ")), "however it is wrapped"


@pytest.mark.parametrize("kind, message", ORDINARY, ids=[m[:40] for _, m in ORDINARY])
def test_ordinary_errors_match_nothing(kind, message):
    assert [entry.id for entry in ENTRIES if entry.matches(message)] == []


def test_there_are_enough_entries_and_ordinary_errors():
    assert len(ENTRIES) >= 45
    assert len(set(ORDINARY)) >= 40
    assert all(len(entries) >= 2 for entries in topics().values())


@each_entry
def test_the_entry_is_complete(entry: Entry):
    assert entry.id == slug(entry.title)
    assert len(entry.id) >= 8
    assert re.search(r"(Error|Warning|Exception|Failed|Unsupported)$", entry.category)
    assert not PYTHON_ONLY.search(entry.pattern), "JavaScript reads this otherwise"
    # A pattern of a word or two would match by chance.
    assert len(re.sub(r"[^A-Za-z]", "", entry.pattern)) >= 18
    assert not entry.pattern.startswith((".*", "^", "[")), "it is matched from the beginning"
    assert 2 <= len(re.findall(r"[.?!](?:\s|$)", entry.meaning)) <= 4, "two or three sentences"
    assert entry.causes and all(cause.endswith(".") for cause in entry.causes)
    assert entry.repair.endswith(".")
    for code in (entry.broken_code, entry.fixed_code):
        assert "import torch" in code and code.endswith("\n")
        assert max(map(len, code.splitlines())) <= 88
        assert len(code.splitlines()) <= 24
    words = " ".join((entry.meaning, *entry.causes, entry.repair, entry.since)).lower()
    assert not re.search(r"\b(simply|just|easy|easily|obviously|of course)\b", words)


@each_entry
def test_the_chapter_and_its_section_exist(entry: Entry):
    assert entry.section in headings(entry.chapter)


@pytest.mark.parametrize("name", sorted({entry.chapter for entry in ENTRIES} | {"12_grad_fn"}))
def test_a_chapter_links_to_its_entries_and_to_those_it_meets(name):
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.source.startswith(error_links.INDEX_CELL)]
    wanted = error_links.entries_of(name, notebook)
    assert {entry.id for entry in wanted} >= {entry.id for entry in ENTRIES if entry.chapter == name}
    assert cells == [error_links.cell_text(wanted)], "run python tools/error_links.py"


def test_a_message_that_a_chapter_prints_is_found():
    output = new_output(
        "stream", text=f"a line\n{ENTRIES[0].category}: {ENTRIES[0].message}\nKeyError: 'x'\n"
    )
    notebook = new_notebook(cells=[new_code_cell("f()", outputs=[output])])
    assert error_links.entries_met(notebook) == [ENTRIES[0]]


def test_the_clinic_shows_every_entry():
    notebook = nbformat.read(clinic_cells.PATH, as_version=4)
    sources = [(cell.cell_type, cell.source) for cell in notebook.cells]
    wanted = [(cell.cell_type, cell.source) for cell in clinic_cells.cells()]
    start = sources.index(wanted[0])
    assert sources[start : start + len(wanted)] == wanted, "run python tools/clinic_cells.py"


@pytest.mark.parametrize(
    "path, made",
    [
        (generated_pages.ERRORS, error_pages.index_page),
        (generated_pages.ERRORS_BOX, error_pages.search_box),
        (generated_pages.ERRORS_DATA, error_pages.search_data),
    ],
    ids=["page", "search box", "data"],
)
def test_the_index_is_up_to_date(path, made):
    assert path.read_text(encoding="utf-8") == made(), "run python tools/generated_pages.py"


def test_messages_are_told_apart_by_their_beginning():
    seen = {}
    for entry in ENTRIES:
        start = one_space(entry.message)[:120]
        assert start not in seen, f"{entry.id} and {seen.get(start)} have the same message"
        seen[start] = entry.id


def test_ids_stay():
    """An id is an address that others link to: once here it is not taken away."""
    known = json.loads((ROOT / "tests" / "data" / "error_ids.json").read_text(encoding="utf-8"))
    assert known == sorted(all_entries()), "add new ids to tests/data/error_ids.json; keep the old ones"

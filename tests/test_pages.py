"""Pages with code: each piece runs, and prints, gives and raises what the page says."""

import re
from pathlib import Path

import pytest
import torch

from pages import ROOT, Section, check_section, every_warning, sections

PAGES = ("book/outdated_advice.md", "book/cheat_sheet.md")
SHOWN = {page: sections((ROOT / page).read_text(encoding="utf-8")) for page in PAGES}
CLAIMS = [section for section in SHOWN["book/outdated_advice.md"] if section.level == 3]
SHEET = SHOWN["book/cheat_sheet.md"]
VERDICT = re.compile(r"\*\*(True|False|Half true|Out of date)(\.\*\*|\*\* for )")


def every(page: str):
    """The sections of a page that have code."""
    found = [section for section in SHOWN[page] if section.blocks]
    return [pytest.param(page, section, id=f"{Path(page).stem}: {section.title}") for section in found]


@pytest.mark.parametrize(("page", "section"), [one for page in PAGES for one in every(page)])
def test_the_code_of_a_page_does_what_the_page_says(page, section):
    check_section(page, SHOWN[page][0], section)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.title)
def test_every_claim_has_a_verdict_a_proof_and_a_way_on(claim):
    assert claim.title.startswith('"') and claim.title.endswith('"')
    assert VERDICT.match(claim.text[0]), claim.text[0]
    assert re.search(r"\]\(\.\./notebooks/\w+\.ipynb", claim.text[-1])
    assert len(claim.blocks) == 1
    assert claim.blocks[0].printed, "code that shows nothing proves nothing to a reader"


def test_the_page_of_claims_is_whole():
    assert len(CLAIMS) > 50
    titles = [claim.title for claim in CLAIMS]
    assert len(set(titles)) == len(titles)


def rows(title: str) -> list[list[str]]:
    (section,) = [section for section in SHEET if section.title == title]
    return section.rows


def code_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize(("code", "message", "meaning"), rows("Messages"), ids=lambda cell: cell[:50])
def test_every_message_of_the_cheat_sheet_comes_from_its_line(code, message, meaning):
    names = check_section("book/cheat_sheet.md", SHEET[0], SHEET[0])
    (line,), (words,) = code_in(code), code_in(message)
    assert meaning
    with pytest.raises((RuntimeError, ValueError, IndexError, UserWarning), match=re.escape(words)):
        with every_warning("error"):
            exec(line, names)


@pytest.mark.parametrize(("kept", "operations"), rows("In place"))
def test_the_operations_of_the_cheat_sheet_save_what_it_says(kept, operations):
    names = check_section("book/cheat_sheet.md", SHEET[0], SHEET[0])
    assert len(code_in(operations)) >= 3
    for code in code_in(operations):
        result = eval(code, names)
        values = [getattr(result.grad_fn, name) for name in dir(result.grad_fn) if name.startswith("_saved_")]
        saved = {value.data_ptr() for value in values if isinstance(value, torch.Tensor)}
        tensors = {"its input": names["w"], "its result": result, "the other factor": names["x"]}
        assert saved == ({tensors[kept].data_ptr()} if kept != "nothing" else set()), code


def test_no_line_of_the_cheat_sheet_is_too_long_to_print():
    lines = [line for section in SHEET for block in section.blocks for line in block.code.splitlines()]
    assert len(lines) > 150
    assert [line for line in lines if len(line) > 68] == []


# The runner itself: what a page says must be able to be wrong.

GOOD = """\
# Title

```python
import torch
import warnings

x = torch.ones(2, requires_grad=True)
```

## First

```python
y = 1
print("one"); print("two")
```

```text
one
two
```

## Second

```python
x.sum().item()  # → 2.0  a note
1 / 0  # ZeroDivisionError: by zero
warnings.warn("old", FutureWarning)  # FutureWarning: old
```

| Code | |
| --- | --- |
| `a` | b |
"""


def check_all(text: str) -> None:
    first, *others = sections(text)
    for section in [first, *others]:
        check_section("page.md", first, section)


def test_a_page_is_taken_apart():
    first, second, third = sections(GOOD)
    assert [one.title for one in (first, second, third)] == ["Title", "First", "Second"]
    assert second.blocks[0].printed == "one\ntwo\n"
    assert GOOD.splitlines()[second.blocks[0].line - 1] == "y = 1"
    assert third.rows == [["`a`", "b"]]
    check_all(GOOD)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("one\ntwo\n```", "one\n```", "line 13: printed"),
        ("```text\none\ntwo\n```", "", "line 13: printed"),
        ("# → 2.0", "# → 3.0", "gives 2.0"),
        ("y = 1", "y = 1  # → 1", "a statement has no value"),
        ("1 / 0", "1 / 1", "no ZeroDivisionError came"),
        ("by zero", "by one", "division by zero"),
        ("ZeroDivisionError", "TypeError", "ZeroDivisionError"),
        ("  # FutureWarning: old", "", "a warning came"),
        ("FutureWarning: old", "UserWarning: old", "FutureWarning"),
        ("FutureWarning: old", "FutureWarning: new", "old"),
        ('warnings.warn("old", FutureWarning)', "pass", "one FutureWarning was announced"),
        (
            "x.sum().item()  # → 2.0  a note",
            "if x is not None:\n    y = 1  # → 1\n    y = 2",
            "inside a statement",
        ),
        ('print("one"); print("two")\n```\n', 'print("one"); print("two")\n```\n\nText.\n', "no code"),
    ],
)
def test_a_page_that_is_wrong_fails(old, new, says):
    assert old in GOOD
    with pytest.raises(AssertionError, match=re.escape(says)):
        check_all(GOOD.replace(old, new, 1))


def test_an_error_that_nothing_announces_comes_through():
    with pytest.raises(ZeroDivisionError):
        check_all(GOOD.replace("  # ZeroDivisionError: by zero", ""))


def test_sections_do_not_see_each_other():
    with pytest.raises(NameError):
        check_all(GOOD.replace("x.sum().item()", "y"))


def test_a_section_without_code_runs_nothing():
    assert "x" not in check_section("page.md", Section("a", 1), Section("b", 2))

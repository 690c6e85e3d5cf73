"""The glossary: in order, with the chapter that explains each term; the chapter links its first use to it."""

import re
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import term_links  # noqa: E402
from notebook_rules.text import glossary_terms, term_anchor  # noqa: E402

TEXT = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
TERMS = glossary_terms(TEXT)
HOMES = term_links.homes(TEXT)


def chapter(name: str) -> str:
    """The text of a chapter."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def test_terms_are_in_order_and_stand_once():
    assert sorted(set(TERMS), key=str.lower) == TERMS
    assert len(TERMS) > 100


@pytest.mark.parametrize("term", TERMS)
def test_the_chapter_links_its_definition_to_the_glossary(term):
    text, link = chapter(HOMES[term]), f"](../book/glossary.md#{term_anchor(term)})"
    assert text.count(link) == 1, "run python tools/term_links.py"
    assert re.search(r"\*\*\[[^\]]*" + re.escape(link) + r"\*\*", text), "print the term bold"


def test_every_chapter_has_terms():
    chapters = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} - {"42_error_clinic"}
    assert set(HOMES.values()) == chapters


def test_links_carry_the_titles_of_their_chapters():
    for shown, name in re.findall(r"\[([^\]]+)\]\(\.\./notebooks/(\w+)\.ipynb\)", TEXT):
        title = chapter(name).split("\n")[0].removeprefix("# ").replace("`", "")
        assert title.startswith(" ".join(shown.split()).replace("`", "")), shown


def test_an_anchor_is_the_one_that_sphinx_writes():
    from sphinx.util.nodes import _make_id

    for term in TERMS:
        assert term_anchor(term) == _make_id(f"term-{term}")


def test_a_term_that_is_not_printed_bold_is_named(tmp_path, monkeypatch, capsys):
    (tmp_path / "notebooks").mkdir()
    cell = nbformat.v4.new_markdown_cell("# First\n\nA **leaf** and a **leaf**, and a root.")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbformat.write(notebook, tmp_path / "notebooks" / "11_first.ipynb")
    body = "  Text. [A](../notebooks/11_first.ipynb)"
    page = f"```{{glossary}}\nleaf\n{body}\n\nroot\n{body}\n```\n"
    (tmp_path / "glossary.md").write_text(page)
    monkeypatch.setattr(term_links, "GLOSSARY", tmp_path / "glossary.md")
    monkeypatch.setattr(term_links, "ROOT", tmp_path)
    assert term_links.main([]) == 1
    assert "print 'root' bold" in capsys.readouterr().out
    text = nbformat.read(tmp_path / "notebooks" / "11_first.ipynb", as_version=4).cells[0].source
    assert text == "# First\n\nA **[leaf](../book/glossary.md#term-leaf)** and a **leaf**, and a root."

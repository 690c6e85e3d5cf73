"""The references: entries are complete and sorted, each is shown once, and cited where the page says."""

import re
import unicodedata
from pathlib import Path

import pybtex.errors
import pytest
from pybtex.database import BibliographyData, Entry, parse_string
from pybtex.exceptions import PybtexError

from notebook_rules import Notebook

ROOT = Path(__file__).resolve().parent.parent
BIB = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
PAGE = (ROOT / "book" / "references.md").read_text(encoding="utf-8")
TARGET = "../book/references.md#"


def parsed(text: str) -> BibliographyData:
    # What pybtex would only report, such as a key that stands twice, is raised.
    assert pybtex.errors.strict
    return parse_string(text, "bibtex")


ENTRIES = dict(parsed(BIB).entries)
each_entry = pytest.mark.parametrize("key", ENTRIES)


def surname(person) -> str:
    latex = " ".join([*person.prelast_names, *person.last_names])
    return re.sub(r"\{?\\[\"'^`~c]\{?(\w)\}*", r"\1", latex)


def label(entry: Entry) -> str:
    """How a chapter names a work: two authors are both named, of more only the first is."""
    names = [surname(person) for person in entry.persons["author"]]
    who = " and ".join(names) if len(names) < 3 else f"{names[0]} and others"
    return f"{who}, {entry.fields.get('year', 'no year')}"


class Section:
    """One `##` section of the page: its anchor, the keyword it shows, the chapters it names."""

    def __init__(self, text: str):
        self.title, self.body = text.split("\n", 1)
        self.anchor = re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")
        self.shows = re.findall(
            r'^```\{bibliography\}\n:list: bullet\n:filter: keywords == "([a-z-]+)"\n```$', self.body, re.M
        )
        used = re.search(r"^Used in (.+?)\.\n\n", self.body, re.M | re.S)
        self.chapters = re.findall(r"\]\(\.\./notebooks/(\w+)\.ipynb#", used[1]) if used else []
        self.text = self.body[: used.start()].strip() if used else ""


SECTIONS = [Section(text) for text in re.split(r"^## ", PAGE, flags=re.M)[1:]]


def cited_in(path: Path) -> list[tuple[str, str]]:
    """The links of a chapter to this page: what they say, and the anchor."""
    found = []
    for _, _, tokens in Notebook(path).markdown:
        for token in tokens:
            children = token.children or []
            for index, child in enumerate(children):
                if child.type == "link_open" and "references.md" in child.attrs["href"]:
                    address = child.attrs["href"]
                    assert address.startswith(TARGET), f"{path.stem} links to {address}"
                    found.append((children[index + 1].content, address.removeprefix(TARGET)))
    return found


CITED = {path.stem: cited_in(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
BY_LABEL = {label(entry): key for key, entry in ENTRIES.items()}

# ---------------------------------------------------------------- the entries


def test_a_key_that_stands_twice_is_found():
    with pytest.raises(PybtexError, match="repeated"):
        parsed("@misc{a, title={A}}\n@misc{a, title={B}}")


def test_the_keys_are_sorted_and_the_labels_differ():
    assert list(ENTRIES) == sorted(ENTRIES)
    assert len(BY_LABEL) == len(ENTRIES)
    assert len(ENTRIES) >= 25


def test_the_labels_are_those_of_the_chapters():
    assert label(ENTRIES["griewank2012"]) == "Griewank, 2012"
    assert label(ENTRIES["drucker1992"]) == "Drucker and Le Cun, 1992"
    assert label(ENTRIES["bengio2013"]) == "Bengio and others, 2013"
    assert label(ENTRIES["huang2019"]) == "Huang and others, 2019"


@each_entry
def test_a_key_is_the_first_surname_and_the_year(key):
    first = surname(ENTRIES[key].persons["author"][0]).lower()
    plain = unicodedata.normalize("NFKD", first).encode("ascii", "ignore").decode().replace(" ", "")
    assert key == plain + ENTRIES[key].fields.get("year", " and no year")


@each_entry
def test_an_entry_says_what_it_is_and_where_it_is_found(key):
    entry = ENTRIES[key]
    where = {"article": {"journal", "volume", "pages"}, "inproceedings": {"booktitle"}, "misc": {"eprint"}}
    assert {"title", "year", "keywords"} | where[entry.type] <= set(entry.fields)
    assert re.fullmatch(r"(19|20)\d\d", entry.fields["year"])
    assert {"doi", "eprint", "url"} & set(entry.fields), "a reader needs a way to it"
    assert re.fullmatch(r"10\.\d{4,5}/\S+", entry.fields.get("doi", "10.1000/x"))
    assert re.fullmatch(r"\d{4}\.\d{4,5}", entry.fields.get("eprint", "1234.5678"))
    assert ("eprint" in entry.fields) == (entry.fields.get("archiveprefix") == "arXiv")
    assert re.fullmatch(r"https://\S+", entry.fields.get("url", "https://a.example"))
    assert re.fullmatch(r"\d+--\d+", entry.fields.get("pages", "1--2"))


@each_entry
def test_an_arxiv_number_is_not_younger_than_the_entry(key):
    number = ENTRIES[key].fields.get("eprint")
    if number is not None:  # its first two digits are the year
        assert 0 <= int(ENTRIES[key].fields["year"]) - (2000 + int(number[:2])) <= 1


# ---------------------------------------------------------------- the page


def test_every_entry_is_shown_by_one_section():
    shown = [keyword for section in SECTIONS for keyword in section.shows]
    assert len(shown) == len(set(shown)) == len(SECTIONS) == PAGE.count("{bibliography}")
    assert {entry.fields["keywords"] for entry in ENTRIES.values()} == set(shown)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.title)
def test_a_section_says_what_the_works_gave_and_who_uses_them(section):
    assert 40 < len(section.text) < 700
    assert section.text.endswith(".")
    assert len(section.shows) == 1
    cite = {chapter for chapter, links in CITED.items() for _, anchor in links if anchor == section.anchor}
    assert sorted(section.chapters) == sorted(cite)


def test_the_settings_show_the_file():
    settings = (ROOT / "_config.yml").read_text(encoding="utf-8")
    assert "- sphinxcontrib.bibtex\n" in settings
    assert "bibtex_bibfiles:\n  - book/references.bib\n" in settings


# ---------------------------------------------------------------- the chapters


@pytest.mark.parametrize("chapter", CITED)
def test_a_citation_names_an_entry_and_leads_to_its_section(chapter):
    anchors = {section.shows[0]: section.anchor for section in SECTIONS}
    for text, anchor in CITED[chapter]:
        assert text in BY_LABEL, f"{text!r} is none of {sorted(BY_LABEL)}"
        assert anchor == anchors[ENTRIES[BY_LABEL[text]].fields["keywords"]], text


def test_every_entry_is_cited():
    cited = {BY_LABEL.get(text) for links in CITED.values() for text, _ in links}
    assert set(ENTRIES) - cited == set()


def test_a_chapter_cites_few_works():
    for chapter, links in CITED.items():
        assert len(links) <= 6, f"{chapter} cites {len(links)} works: keep those where the idea is introduced"

"""What search knows beyond Sphinx's index: frequencies, terms of the glossary, messages."""

import json
from types import SimpleNamespace

import pytest
from sphinx.search.en import SearchEnglish

import search_data


@pytest.fixture(scope="module")
def language():
    return SearchEnglish({})


def test_words_are_stems_without_numbers_and_without_what_says_nothing(language):
    assert search_data.words_of("The gradients of `w.grad`, 12 times", language) == [
        "gradient",
        "w",
        "grad",
        "time",
    ]


def test_words_and_pairs_count_from_a_threshold_on(language):
    pages = ["double backward. " * 3 + "backward backward", "double " * 4, ""]
    # Page 0: "backward" 5 times, "double" 3; "double backward" 3, "backward doubl" and "backward backward" 2.
    assert search_data.count(pages, language) == {
        "backward": [0, 2],
        "doubl backward": [0, 1],
        "doubl doubl": [1, 1],
    }


def test_what_a_reader_does_not_see_is_not_counted():
    page = (
        "<html><p>no</p><article class='a'><h1>A &amp; b</h1><script>no()</script><style>no</style>"
        "<svg><text>no</text></svg><p>c</p></article><p>no</p></html>"
    )
    assert search_data.plain(page).split() == ["A", "&", "b", "c"]
    assert search_data.plain("<html></html>") == ""


def test_terms_lead_to_their_chapters(language):
    page = (
        '<dl><dt id="term-chain-rule">chain <code>rules</code><a class="headerlink" href="#x">#</a></dt>'
        '<dd><p>See <a href="../notebooks/11_first.html">x</a>.</p></dd>\n'
        '<dt id="term-b">leaf<a class="headerlink" href="#y">#</a></dt><dd><p>No link.</p></dd></dl>'
    )
    assert search_data.terms(page, language) == {"chain rule": ["notebooks/11_first"], "leaf": []}


def test_messages_come_from_the_script_of_the_index():
    stored = json.dumps([{"id": "a-b", "title": "A b", "messages": ["one", "two"], "pattern": "x"}])
    assert search_data.messages(f"window.errorIndex = {stored}\n") == [["a-b", "A b", "one", "two"]]


def test_the_file_is_written_and_always_the_same(tmp_path, language):
    (tmp_path / "_static").mkdir()
    (tmp_path / search_data.MESSAGES).write_text("window.errorIndex = []\n", encoding="utf-8")
    (tmp_path / "a.html").write_text(f"<article>{'graph ' * 8}</article>", encoding="utf-8")
    builder = SimpleNamespace(
        format="html", indexer=SimpleNamespace(lang=language), get_target_uri=lambda name: f"{name}.html"
    )
    app = SimpleNamespace(outdir=tmp_path, builder=builder, env=SimpleNamespace(found_docs={"a"}))
    search_data._finish(app, None)
    text = (tmp_path / "_static" / search_data.NAME).read_text(encoding="utf-8")
    assert json.loads(text.removeprefix("Search.data = ")) == {
        "pages": ["a"],
        "counts": {"graph": [0, 3], "graph graph": [0, 2]},
        "terms": {},
        "messages": [],
    }

"""The local Sphinx extensions: formulas, what a page says about itself, the repository's address."""

import json
import os
import subprocess

import pytest
from math_core import LatexError

import mathml
import opener
import page_facts
import repository

# ---------------------------------------------------------------- formulas


def test_inline_and_block():
    assert mathml.convert("x^2", display=False) == "<math><msup><mi>x</mi><mn>2</mn></msup></math>"
    assert mathml.convert("\n x \n", display=True).startswith('<math display="block">')


def test_macros_do_not_leak_into_the_next_formula():
    mathml.convert(r"\newcommand{\mine}{x} \mine", display=False)
    with pytest.raises(LatexError):
        mathml.convert(r"\mine", display=False)


def test_the_same_formula_gives_the_same_bytes():
    formula = r"\begin{aligned} a &= b \\ c &= d \end{aligned}"
    assert mathml.convert(formula, display=True) == mathml.convert(formula, display=True)
    assert "id=" not in mathml.convert(formula, display=True)


def test_a_root_is_as_tall_as_a_capital():
    strut = '<mspace height="0.7em" depth="0.2em"/>'
    assert mathml.convert(r"\sqrt{u}", display=False) == f"<math><msqrt><mi>u</mi>{strut}</msqrt></math>"


def test_a_mark_after_a_formula_stays_with_it():
    formula = '<span class="math"><math><mi>x</mi></math>{}</span>{}'
    assert mathml.with_marks(formula.format("", "), so")) == formula.format("),", " so")
    assert mathml.with_marks(formula.format("", " is")) == formula.format("", " is")
    block = '<div class="math"><math><mi>x</mi></math></div>.'
    assert mathml.with_marks(block) == block


# ---------------------------------------------------------------- facts


def git(folder, *arguments, day="2024-05-06"):
    environ = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    for role in ("AUTHOR", "COMMITTER"):
        environ[f"GIT_{role}_NAME"] = environ[f"GIT_{role}_EMAIL"] = "someone"
        environ[f"GIT_{role}_DATE"] = f"{day}T12:00:00+0000"
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=environ, capture_output=True)


@pytest.fixture
def repo(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q")
    metadata = {"language_info": {"version": "3.11.7"}}
    (folder / "a.ipynb").write_text(json.dumps({"metadata": metadata}))
    (folder / "b.md").write_text("words")
    (folder / "requirements.txt").write_text("# torch==1\ntorch==2.13.0  # the engine\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def test_a_notebook_names_its_versions_and_day(repo):
    assert page_facts.facts(repo, repo / "a.ipynb") == {
        "changed": "2024-05-06",
        "torch": "2.13.0",
        "python": "3.11.7",
    }


def test_a_page_without_code_names_only_the_day(repo):
    assert page_facts.facts(repo, repo / "b.md") == {"changed": "2024-05-06", "torch": None, "python": None}


def test_the_day_is_that_of_the_file_not_of_the_last_commit(repo):
    (repo / "b.md").write_text("other words")
    git(repo, "commit", "-qam", "two", day="2024-07-08")
    assert page_facts.last_changed(repo, repo / "b.md") == "2024-07-08"
    assert page_facts.last_changed(repo, repo / "a.ipynb") == "2024-05-06"


def test_no_day_for_a_file_that_is_not_committed_as_it_stands(repo):
    (repo / "b.md").write_text("draft")
    (repo / "c.md").write_text("new")
    assert page_facts.last_changed(repo, repo / "b.md") is None
    assert page_facts.last_changed(repo, repo / "c.md") is None


def test_no_day_in_a_shallow_clone(repo, tmp_path):
    (repo / "b.md").write_text("other words")
    git(repo, "commit", "-qam", "two", day="2024-07-08")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", repo.as_uri(), str(shallow))
    assert page_facts.last_changed(shallow, shallow / "a.ipynb") is None


def test_no_day_outside_git(tmp_path):
    (tmp_path / "a.md").write_text("words")
    assert page_facts.last_changed(tmp_path, tmp_path / "a.md") is None


def test_a_notebook_s_own_torch_wins(repo):
    (repo / "a.ipynb").write_text(json.dumps({"metadata": {"inside_autograd": {"torch": "2.9.1"}}}))
    assert page_facts.facts(repo, repo / "a.ipynb")["torch"] == "2.9.1"


# ---------------------------------------------------------------- the repository


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/some/book",
        "https://github.com/some/book.git",
        "https://github.com/some/book/",
        "https://user:secret@github.com/some/book.git",
        "git@github.com:some/book.git",
        "ssh://git@github.com:22/some/book.git\n",
        "GitHub.com/some/book",
    ],
)
def test_addresses_become_one_web_address(address):
    assert repository.clean_url(address) == "https://github.com/some/book"


@pytest.mark.parametrize(
    "address",
    ["", None, "/srv/git/book", "../book", "https://example.org/some/book", "https://github.com/some"],
)
def test_addresses_without_buttons(address):
    assert repository.clean_url(address) is None


def test_repo_url_comes_first_then_the_workflow_then_git(repo):
    git(repo, "remote", "add", "origin", "git@gitlab.com:from/git.git")
    assert repository.find_url({}, repo) == "https://gitlab.com/from/git"
    workflow = {"GITHUB_REPOSITORY": "from/workflow"}
    assert repository.find_url(workflow, repo) == "https://github.com/from/workflow"
    named = {**workflow, "REPO_URL": "https://github.com/from/variable"}
    assert repository.find_url(named, repo) == "https://github.com/from/variable"


def test_an_empty_repo_url_means_none(repo):
    git(repo, "remote", "add", "origin", "git@gitlab.com:from/git.git")
    assert repository.find_url({"REPO_URL": ""}, repo) is None


def test_no_remote(repo):
    assert repository.find_url({}, repo) is None


def test_report_links():
    page = "notebooks/12_grad_fn"
    assert repository.report_link("https://github.com/a/b", page) == (
        "https://github.com/a/b/issues/new?title=Mistake%20in%20notebooks/12_grad_fn"
    )
    assert "/-/issues/new?issue[title]=" in repository.report_link("https://gitlab.com/a/b", page)


# ---------------------------------------------------------------- the top of a chapter

CHAPTER = """<section><h1>Title</h1>
<p>You will
see.</p>
<p><strong>Time:</strong> about 5
minutes.</p>
<p>Text</p></section>"""
FACTS = {"torch": "2.13.0", "python": "3.11.7", "changed": "2026-01-02"}
BUTTONS = [
    {"label": "download-buttons", "buttons": [{"url": "a.ipynb", "text": ".ipynb"}]},
    {"label": "launch-buttons", "buttons": [{"url": "https://x/?a&b", "text": "Binder"}]},
]


def test_an_opener_holds_time_versions_day_and_links():
    body = opener.open_chapter(CHAPTER, FACTS, BUTTONS)
    assert body.index("see.</p>") < body.index('<div class="opener">') < body.index("<p><strong>Time:")
    inside = body[body.index('<div class="opener">') : body.index("</div>")]
    for part in (
        "about 5\nminutes.",
        "torch 2.13.0 and Python 3.11.7.",
        '<time datetime="2026-01-02">2026-01-02</time>',
        '<a class="opener-run" href="https://x/?a&amp;b">Run on Binder</a>',
    ):
        assert inside.count(part) == 1
    assert ".ipynb" not in inside and body.endswith("</div>\n<p>Text</p></section>")


def test_an_opener_says_only_what_is_known():
    body = opener.open_chapter(CHAPTER, {"torch": None, "python": None, "changed": None}, [])
    assert "Run with" not in body and "Last changed" not in body and "opener-launch" not in body
    assert '<div class="opener">\n<p><strong>Time:' in body


def test_a_chapter_without_a_line_of_its_own_has_an_opener_below_its_first_words():
    body = opener.open_chapter("<h1>T</h1>\n<p>First</p>\n<p>Text</p>", FACTS, [])
    assert body.startswith('<h1>T</h1>\n<p>First</p>\n<div class="opener">\n<p class="opener-facts">')
    assert opener.open_chapter("<h1>T</h1>\n<p>First</p>", {}, []) == "<h1>T</h1>\n<p>First</p>"

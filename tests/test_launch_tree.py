"""What Colab, Binder and a class's hub open: the launch tree, and the buttons that lead there."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

import launch_tree
import lock
import repository

ROOT = Path(__file__).resolve().parent.parent
REPO = "https://github.com/some/book"
SITE = "https://some.github.io/book/"
FILES = "https://raw.githubusercontent.com/some/book/launch/"

# ---------------------------------------------------------------- addresses


def test_the_site_of_a_repository():
    assert repository.site_url({}, REPO) == SITE
    assert repository.site_url({}, "https://github.com/Some/Book") == "https://some.github.io/Book/"
    assert repository.site_url({}, "https://github.com/Some/some.github.io") == "https://some.github.io/"
    assert repository.site_url({}, "https://gitlab.com/some/book") == "https://some.gitlab.io/book/"


def test_a_named_site_comes_first():
    assert repository.site_url({"SITE_URL": "https://book.example/x"}, REPO) == "https://book.example/x/"
    assert repository.site_url({"SITE_URL": " "}, REPO) == SITE
    assert repository.site_url({}, None) is None
    assert repository.site_url({}, "https://bitbucket.org/some/book") is None


def test_single_files_of_a_branch():
    assert repository.files_url(REPO, "launch") == FILES
    assert repository.files_url("https://gitlab.com/a/b", "x") == "https://gitlab.com/a/b/-/raw/x/"
    assert repository.files_url("https://bitbucket.org/a/b", "x") == "https://bitbucket.org/a/b/raw/x/"


def test_the_page_names_the_archive_only_where_it_is_put_beside_the_site():
    published = {"OFFLINE_COPY": "1", "SITE_URL": "https://book.example"}
    link = "[This archive](https://book.example/inside-autograd.zip)"
    assert repository.offline_copy(published, None) == link
    assert repository.offline_copy({"OFFLINE_COPY": "1"}, REPO) == link.replace("https://book.example/", SITE)
    made = "`make zip` writes `_build/inside-autograd.zip`, which"
    assert repository.offline_copy({"OFFLINE_COPY": "1"}, None) == made
    assert repository.offline_copy({"SITE_URL": "https://book.example"}, REPO) == made


def test_the_name_of_the_branch():
    assert repository.launch_branch({}) == "launch"
    assert repository.launch_branch({"LAUNCH_BRANCH": ""}) == "launch"
    assert repository.launch_branch({"LAUNCH_BRANCH": "run"}) == "run"


def build_small_site(folder, environ):
    """Build one notebook as a site with the book's theme; return its page."""
    source = folder / "source"
    (source / "notebooks").mkdir(parents=True)
    (source / "index.md").write_text("# Book\n\n```{toctree}\nnotebooks/12_one\n```\n")
    cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# One\n"]}]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (source / "notebooks" / "12_one.ipynb").write_text(json.dumps(notebook))
    (source / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOT / 'book' / '_ext')!r})\n"
        "extensions = ['myst_nb', 'repository']\nhtml_theme = 'sphinx_book_theme'\n"
        "nb_execution_mode = 'off'\n"
    )
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(source), str(folder / "html")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("REPO_", "GITHUB_"))}
    subprocess.run(command, env={**kept, **environ}, check=True, capture_output=True)
    return (folder / "html" / "notebooks" / "12_one.html").read_text(encoding="utf-8")


def test_buttons_lead_to_the_launch_tree(tmp_path):
    page = build_small_site(tmp_path, {"REPO_URL": REPO})
    hosts = r'href="(https://(?:mybinder\.org|colab\.research\.google\.com)/[^"]*)"'
    assert sorted(set(re.findall(hosts, page))) == [
        "https://colab.research.google.com/github/some/book/blob/launch/notebooks/12_one.ipynb",
        "https://mybinder.org/v2/gh/some/book/launch?urlpath=lab/tree/notebooks/12_one.ipynb",
    ]


def test_no_buttons_without_an_address(tmp_path):
    page = build_small_site(tmp_path, {"REPO_URL": ""})
    assert "mybinder" not in page and "colab" not in page and "launch-buttons" not in page


# ---------------------------------------------------------------- links


def test_headings_become_the_anchors_of_the_page():
    text = "# Title\n\n## `a.b()` isn't `__init__`\n\n```\n# no heading\n```\n\n## When it *goes* wrong\n"
    assert launch_tree.headings(text + "\n## Title\n") == {
        "title": "title",
        "ab-isnt-__init__": "a-b-isn-t-init",
        "when-it-goes-wrong": "when-it-goes-wrong",
        "title-1": None,
    }


@pytest.fixture
def links(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "book").mkdir()
    cells = [{"cell_type": "markdown", "source": ["# Two\n", "\n", "## It's here\n"]}]
    cells.append({"cell_type": "code", "source": ["# Not a heading\n"]})
    (tmp_path / "notebooks" / "12_two.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "book" / "glossary.md").write_text("# Glossary\n")
    return launch_tree.Links(tmp_path, SITE)


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("12_two.ipynb", "notebooks/12_two.html"),
        ("12_two.ipynb#its-here", "notebooks/12_two.html#it-s-here"),
        ("#its-here", "notebooks/12_two.html#it-s-here"),
        ("../book/glossary.md", "book/glossary.html"),
        ("../book/glossary.md#term-leaf", "book/glossary.html#term-leaf"),
    ],
)
def test_relative_links_become_addresses(links, target, address):
    assert links.address("notebooks/12_two.ipynb", target) == SITE + address


def test_addresses_stay(links):
    for target in ("https://pytorch.org/docs#x", "http://a.b", "mailto:someone@a.b"):
        assert links.address("notebooks/12_two.ipynb", target) == target


@pytest.mark.parametrize(
    "target", ["13_gone.ipynb", "../book", "../../other.md", "picture.png", "../book/gone.md#a"]
)
def test_a_link_to_no_page_is_named(links, target):
    with pytest.raises(SystemExit, match=r"12_two\.ipynb links to .*, and there is no such page"):
        links.address("notebooks/12_two.ipynb", target)


def test_a_link_to_no_heading_is_named(links):
    with pytest.raises(SystemExit, match=r"links to 12_two\.ipynb#gone, and that page has no such heading"):
        links.address("notebooks/12_two.ipynb", "12_two.ipynb#gone")


def test_code_blocks_stay_as_they_are(links):
    block = "```\na[0](gone.md)\n```\n"
    text = f"[a](12_two.ipynb)\n\n{block}\n[b](../book/glossary.md)"
    assert links.rewrite("notebooks/12_two.ipynb", text) == (
        f"[a]({SITE}notebooks/12_two.html)\n\n{block}\n[b]({SITE}book/glossary.html)"
    )


# ---------------------------------------------------------------- the tree


def read_tree(folder):
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    """A copy of the sources, which somebody may be editing."""
    copy = tmp_path_factory.mktemp("snapshot")
    made = shutil.ignore_patterns("__pycache__", "*.egg-info", ".ipynb_checkpoints", "_*")
    for name in ("book", "notebooks", ".binder"):
        shutil.copytree(ROOT / name, copy / name, ignore=made)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in (*launch_tree.PACKAGE, *launch_tree.LICENSES, "requirements.txt", "_config.yml"):
        shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def tree(snapshot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "tree"
    launch_tree.write_tree(snapshot, folder, REPO, "launch", SITE, FILES)
    return read_tree(folder)


@pytest.fixture(scope="module")
def wheel(tree):
    (name,) = [name for name in tree if name.startswith("wheels/")]
    return name


CHAPTERS = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))


def cells_of(tree, chapter):
    return json.loads(tree[f"notebooks/{chapter}"].read_text(encoding="utf-8"))["cells"]


def test_the_tree_holds_what_is_needed_and_no_more(tree, wheel):
    binder = [".binder/postBuild", ".binder/requirements.txt", ".binder/runtime.txt"]
    chapters = [f"notebooks/{name}" for name in CHAPTERS]
    assert sorted(tree) == sorted([*binder, *chapters, wheel, "LICENSE", "LICENSE-TEXT", "README.md"])


def test_the_same_sources_give_the_same_bytes(snapshot, tree, tmp_path):
    again = tmp_path / "elsewhere" / "tree"
    old = os.umask(0o077)
    try:
        launch_tree.write_tree(snapshot, again, REPO, "launch", SITE, FILES)
    finally:
        os.umask(old)
    second = read_tree(again)
    assert list(second) == list(tree)
    assert [name for name in tree if tree[name].read_bytes() != second[name].read_bytes()] == []


def test_the_wheel_is_the_helper_package_with_a_sum_in_its_version(snapshot, tree, wheel):
    version = re.fullmatch(r"wheels/inside_autograd-(\d+\.\d+\.\d+\+[0-9a-f]{8})-py3-none-any\.whl", wheel)[1]
    with zipfile.ZipFile(tree[wheel]) as archive:
        names = archive.namelist()
        told = archive.read(f"inside_autograd-{version}.dist-info/METADATA").decode()
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert f"\nVersion: {version}\n" in told
    sources = [path for path in (snapshot / "src").rglob("*") if path.is_file()]
    wanted = {path.relative_to(snapshot / "src").as_posix() for path in sources}
    assert {name for name in names if ".dist-info/" not in name} == wanted


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_gets_one_cell_and_keeps_the_rest(snapshot, tree, chapter):
    before = json.loads((snapshot / "notebooks" / chapter).read_text(encoding="utf-8"))["cells"]
    first, *after = cells_of(tree, chapter)
    assert first["cell_type"] == "code" and first["outputs"] == [] and first["execution_count"] is None
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        if old["cell_type"] == "code":
            assert new == old
        else:
            targets = re.findall(r"\]\(([^)\s]+)\)", "".join(new["source"]))
            assert all(target.startswith("https://") for target in targets), targets


def test_the_first_cell_names_the_wheel_by_its_sum(tree, wheel):
    source = "".join(cells_of(tree, CHAPTERS[0])[0]["source"])
    assert f'"{FILES}{wheel.replace("+", "%2B")}"' in source
    assert f'"{hashlib.sha256(tree[wheel].read_bytes()).hexdigest()}"' in source
    assert max(len(line) for line in source.splitlines()) < 150


def test_packages_that_a_chapter_imports_are_among_those_it_installs(tree):
    for chapter in CHAPTERS:
        code = [cell for cell in cells_of(tree, chapter) if cell["cell_type"] == "code"]
        first, *rest = ["".join(cell["source"]) for cell in code]
        used = set(re.findall(r"^\s*(?:from|import) (\w+)", "\n".join(rest), re.MULTILINE))
        other = used - sys.stdlib_module_names - {"torch", "inside_autograd"}
        # numpy comes with matplotlib, scipy with scikit-learn.
        covered = {"matplotlib", "numpy", "ipywidgets"}
        if '"scikit-learn"' in first:
            covered |= {"sklearn", "scipy"}
        assert other <= covered, chapter


def test_binder_installs_the_wheel_of_the_tree(tree, wheel):
    lines = tree[".binder/postBuild"].read_text().splitlines()
    assert f"python -m pip install --no-cache-dir --no-deps {wheel}" in lines
    assert os.access(tree[".binder/postBuild"], os.X_OK)
    assert tree[".binder/requirements.txt"].read_text() == (ROOT / ".binder" / "requirements.txt").read_text()


def test_binder_installs_the_versions_of_the_book():
    text = (ROOT / ".binder" / "requirements.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", "--"))]
    assert {"torch", "igraph", "matplotlib", "ipywidgets", "scikit-learn", "jupyterlab"} <= {
        line.split("==")[0] for line in lines
    }
    book = lock.read_requirements((ROOT / "requirements.txt").read_text())
    assert set(lines) <= {str(requirement) for requirement in book}


def test_a_changed_postbuild_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(launch_tree, "HELPER_LINE", "pip install .")
    with pytest.raises(SystemExit, match=r"no longer says `pip install \.`"):
        launch_tree.write_tree(ROOT, tmp_path / "tree", REPO, "launch", SITE, FILES)


def test_without_an_address_it_says_how_to_name_one(monkeypatch, tmp_path):
    monkeypatch.setenv("REPO_URL", "")
    with pytest.raises(SystemExit, match=r"name it with --repo https://github.com/…"):
        launch_tree.main(["--out", str(tmp_path / "tree")])
    assert not (tmp_path / "tree").exists()


# ---------------------------------------------------------------- the first cell

INSTALLED = {"torch": "2.9.0+cu126", "igraph": "1.0.0", "ipywidgets": "7.7.1", "matplotlib": "3.10.0"}


def run_first_cell(tree, monkeypatch, installed, status=0, said=""):
    """Run the first cell with pip held back; return its commands and what it left behind."""
    commands = []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(returncode=status, stdout=said)

    def version(name):
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(metadata, "version", version)
    names = {}
    exec("".join(cells_of(tree, "12_grad_fn.ipynb")[0]["source"]), names)
    return commands, set(names) - {"__builtins__"}


def test_it_installs_the_helper_beside_the_torch_that_is_there(tree, wheel, monkeypatch):
    ((*pip, torch, helper),), left = run_first_cell(tree, monkeypatch, INSTALLED)
    assert pip == [sys.executable, "-m", "pip", "install", "--quiet"]
    assert torch == "torch==2.9.0+cu126"
    assert helper.startswith(f"inside_autograd @ {FILES}wheels/inside_autograd-")
    assert helper.endswith("#sha256=" + hashlib.sha256(tree[wheel].read_bytes()).hexdigest())
    assert left == set()


def test_it_installs_what_else_is_missing_with_its_exact_version(tree, monkeypatch):
    installed = {name: INSTALLED[name] for name in ("torch", "matplotlib")}
    (command,), _ = run_first_cell(tree, monkeypatch, installed)
    pins = launch_tree.read_pins(ROOT)
    assert command[6:-1] == [f"igraph=={pins['igraph']}", f"ipywidgets=={pins['ipywidgets']}"]


def test_an_older_helper_is_replaced_and_the_right_one_is_left(tree, wheel, monkeypatch, capsys):
    old = {**INSTALLED, "inside_autograd": "0.1.0+00000000"}
    assert len(run_first_cell(tree, monkeypatch, old)[0]) == 1
    version = wheel.split("-")[1]
    right = {**INSTALLED, "inside_autograd": version}
    assert run_first_cell(tree, monkeypatch, right)[0] == []
    said = capsys.readouterr().out
    assert said.endswith(f"Ready: torch 2.9.0+cu126 and inside_autograd {version}\n")


def test_without_torch_it_says_so_and_installs_nothing(tree, monkeypatch):
    with pytest.raises(SystemExit, match="PyTorch is missing here: install torch"):
        run_first_cell(tree, monkeypatch, {})


def test_when_pip_fails_its_words_are_shown(tree, monkeypatch):
    with pytest.raises(SystemExit, match=r"The set-up failed\. pip said:\nERROR: no network"):
        run_first_cell(tree, monkeypatch, INSTALLED, status=1, said="ERROR: no network")

"""What `make release-check` accepts and what it notices, told without making an environment."""

import urllib.request
from types import SimpleNamespace

import nbformat
import pytest

import binder_trial
import colab_trial
import release_check
import trial

BEFORE = {"torch": "2.9.0", "numpy": "2.0.2"}


def test_the_first_cell_may_add_the_helper_and_what_it_needs():
    after = {**BEFORE, "inside-autograd": "0.1.0+1a2b3c4d", "igraph": "1.0.0", "texttable": "1.7.0"}
    assert colab_trial.check_added(BEFORE, after) == {"inside-autograd", "igraph", "texttable"}


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (BEFORE, "the set-up added nothing"),
        ({**BEFORE, "igraph": "1.0.0"}, "the set-up added igraph"),
        ({**BEFORE, "inside-autograd": "1", "pandas": "3"}, "the set-up added inside-autograd, pandas"),
        ({**BEFORE, "inside-autograd": "1", "torch": "2.10.0"}, "changed what was there: torch"),
        ({"torch": "2.9.0", "inside-autograd": "1"}, "changed what was there: numpy"),
    ],
)
def test_anything_else_that_changed_fails(after, message):
    with pytest.raises(trial.TrialError, match=message):
        colab_trial.check_added(BEFORE, after)


def write(path, counts, output=None):
    cells = [nbformat.v4.new_markdown_cell("# One")]
    for count in counts:
        cell = nbformat.v4.new_code_cell("1")
        cell.execution_count = count
        cell.outputs = [output] if output else []
        cells.append(cell)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


@pytest.mark.parametrize(
    ("counts", "done"), [([1, 2, 3], True), ([None, 1, 2], False), ([1, 2, 2], False), ([2, 3, 4], False)]
)
def test_a_notebook_is_finished_when_it_was_run_anew_from_its_first_cell(tmp_path, counts, done):
    write(tmp_path / "a.ipynb", counts)
    assert binder_trial.finished(tmp_path / "a.ipynb") is done


def test_a_notebook_that_is_being_written_is_not_finished(tmp_path):
    (tmp_path / "a.ipynb").write_text("")
    assert binder_trial.finished(tmp_path / "a.ipynb") is False


def test_a_cell_that_failed_is_named(tmp_path):
    error = nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    write(tmp_path / "a.ipynb", [1, None], error)
    with pytest.raises(trial.TrialError, match="code cell 1 failed: ValueError: no"):
        binder_trial.finished(tmp_path / "a.ipynb")


def test_the_python_that_binder_asks_for(tmp_path, monkeypatch):
    (tmp_path / ".binder").mkdir()
    (tmp_path / ".binder" / "runtime.txt").write_text("python-3.11\n")
    versions = {"/this": (3, 12, 1), "/other": (3, 11, 7)}
    monkeypatch.setattr(binder_trial.setup_env, "version_of", versions.get)
    monkeypatch.setattr(binder_trial, "sys", SimpleNamespace(executable="/this"))
    monkeypatch.setattr(binder_trial.shutil, "which", lambda name: "/other" if name == "python3.11" else None)
    assert binder_trial.find_python(tmp_path) == "/other"
    versions["/other"] = (3, 10, 0)
    with pytest.raises(trial.TrialError, match=r"runtime\.txt names python-3\.11, which is not here"):
        binder_trial.find_python(tmp_path)


def test_torch_put_in_its_place_again_is_noticed(tmp_path, monkeypatch):
    file = tmp_path / "torch.py"
    file.write_text("1")
    code = []

    def run(command):
        code.append(command[-1])
        found = file.stat()
        return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"

    monkeypatch.setattr(trial, "run", run)
    before = trial.torch_state("python")
    assert trial.torch_state("python") == before
    (tmp_path / "new").write_text("1")
    (tmp_path / "new").replace(file)
    assert trial.torch_state("python") != before
    assert "distribution('torch').files" in code[0]


def test_a_command_that_fails_is_told_with_its_words(tmp_path):
    with pytest.raises(trial.TrialError, match="failed:\nwords"):
        trial.run(["sh", "-c", "echo words; exit 3"])
    assert trial.run(["sh", "-c", "echo words"]) == "words\n"


def test_a_clean_environment_has_no_settings_of_ours(monkeypatch, tmp_path):
    for name in ("JUPYTER_PATH", "INSIDE_AUTOGRAD_PROGRESS", "PYTHONPATH", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "ours")
    environ = trial.clean_environ(tmp_path)
    assert "ours" not in environ.values() and environ["HOME"] == str(tmp_path) and environ["PATH"]


def test_the_tree_is_served_to_this_computer_only(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    with trial.served(tmp_path) as address:
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}a.txt", timeout=10) as answer:
            assert answer.read() == b"words"


def test_chapters_are_named_with_or_without_suffix():
    named = release_check.chapter_names(["12_grad_fn", "13_leaves.ipynb"])
    assert named == ["12_grad_fn.ipynb", "13_leaves.ipynb"]
    assert "12_grad_fn.ipynb" in release_check.chapter_names([])
    with pytest.raises(SystemExit, match=r"There is no chapter 99_none\.ipynb"):
        release_check.chapter_names(["99_none"])

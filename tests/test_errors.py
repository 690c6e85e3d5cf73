"""`explain`: from exceptions, pasted text, the last error, the command line and IPython."""

import re
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest
import torch

import inside_autograd
from inside_autograd import explain
from inside_autograd.catalogue import all_entries
from inside_autograd.errors import look_up
from inside_autograd.pasted import Found, read_text
from ordinary_errors import ORDINARY
from pasted_texts import PASTED

SECOND = "backward-through-the-graph-a-second-time"
FAILS = """\
import torch

w = torch.tensor(2.0, requires_grad=True)
loss = w * w
loss.backward()
loss.backward()
"""


def second_backward() -> RuntimeError:
    w = torch.tensor(2.0, requires_grad=True)
    loss = w * w
    loss.backward()
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    return caught.value


def traceback_of(code: str, tmp_path, *command: str) -> str:
    """What a program prints that runs this code."""
    script = tmp_path / "train.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, *command, str(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    return done.stdout + done.stderr


def test_an_exception():
    found = explain(second_backward())
    assert found
    assert (found.id, found.category) == (SECOND, "RuntimeError")
    assert found.message.startswith("Trying to backward through the graph a second time (or directly")


def test_a_warning_and_a_caught_warning():
    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (2 * x).grad  # noqa: B018
    assert explain(caught[0]).id == explain(caught[0].message).id is not None


def test_an_error_that_another_one_caused():
    try:
        raise ValueError("training failed") from second_backward()
    except ValueError as error:
        assert explain(error).id == SECOND
    try:
        try:
            raise second_backward()
        except RuntimeError:
            raise KeyError("while cleaning up")  # noqa: B904
    except KeyError as error:
        assert explain(error).id == SECOND
    try:
        raise ValueError("training failed") from None
    except ValueError as error:
        error.__context__ = second_backward()
        assert not explain(error), "its author has hidden the other error"


def test_causes_that_form_a_circle_end():
    first, second = ValueError("the first of two"), ValueError("the second of two")
    first.__cause__, second.__cause__ = second, first
    assert not explain(first)


class Unprintable(Exception):
    def __str__(self):
        raise OSError("no text")


def test_an_exception_without_a_text():
    assert not explain(Unprintable())
    assert not explain(AssertionError())
    assert "Not in the catalogue" in str(explain(AssertionError()))


@pytest.mark.parametrize("entry", all_entries().values(), ids=list(all_entries()))
def test_every_entry_explains_itself(entry):
    for text in (entry.message, f"{entry.category}: {entry.message}"):
        assert explain(text).entry is entry
    card = explain(entry.message)
    for part in (entry.title, entry.meaning, entry.repair, *entry.causes):
        assert part.split()[0] in card.text()
        assert "<script" not in card._repr_html_()
    assert entry.fixed_code.splitlines()[-1].strip() in card.text()
    assert max(len(line) for line in card.text().split("\n") if not line.startswith("  ")) <= 92
    assert entry.chapter[:2] in card.short()


@pytest.mark.parametrize("kind, message", ORDINARY, ids=[m[:40] for _, m in ORDINARY])
def test_an_ordinary_error_is_not_explained(kind, message):
    found = explain(f"{kind}: {message}")
    assert not found
    assert found.entry is None
    assert len(found.nearest) <= 3
    assert found.text().startswith("Not in the catalogue: ")


def test_the_nearest_entries_are_near():
    found = explain("RuntimeError: you go backward a second time through a graph that was freed")
    assert not found
    assert found.nearest[0].id == SECOND
    assert SECOND in found.text()
    assert SECOND in found._repr_html_()


def test_words_that_stand_nowhere_have_no_neighbors():
    found = explain("ZeroDivisionError: xylophone quux frobnicate")
    assert found.nearest == ()
    assert "No entry of it has similar words." in found.text()


def test_an_error_and_a_warning_are_not_confused():
    message = all_entries()[SECOND].message
    assert look_up("RuntimeError", message)
    assert look_up("UserWarning", message) is None


# Pasted text


def test_a_traceback_of_python(tmp_path):
    text = traceback_of(FAILS, tmp_path)
    assert "Traceback (most recent call last)" in text
    assert explain(text).id == SECOND
    assert explain("Epoch 3\n" + text.replace("\n", "\r\n")).id == SECOND
    for prefix in ("[rank0]: ", "> ", "E   "):
        assert explain("\n".join(prefix + line for line in text.splitlines())).id == SECOND


def test_a_traceback_with_a_cause(tmp_path):
    code = FAILS.replace(
        "loss.backward()\nloss.backward()",
        "loss.backward()\ntry:\n    loss.backward()\nexcept RuntimeError as error:\n"
        "    raise ValueError('training failed') from error",
    )
    text = traceback_of(code, tmp_path)
    assert [one.category for one in read_text(text)] == ["ValueError", "RuntimeError"]
    assert explain(text).id == SECOND


def test_a_traceback_of_ipython(tmp_path):
    text = traceback_of(FAILS, tmp_path, "-m", "IPython", "--colors=Linux")
    assert "\x1b[" in text
    assert explain(text).id == SECOND


def test_a_traceback_of_pytest(tmp_path):
    body = "".join(f"    {line}\n" if line else "\n" for line in FAILS.splitlines())
    text = traceback_of(f"def test_it():\n{body}", tmp_path, "-m", "pytest", "-p", "no:cacheprovider", "-q")
    assert "1 failed" in text
    assert explain(text).id == SECOND


def test_an_error_higher_up_in_a_log_is_not_the_one(tmp_path):
    text = traceback_of(FAILS, tmp_path) + "retrying\n" + traceback_of("{}['batch size']", tmp_path)
    found = explain(text)
    assert not found
    assert (found.category, found.message) == ("KeyError", "'batch size'")


def test_a_warning_above_an_unknown_error_does_not_explain_it(tmp_path):
    code = "import torch\nx = torch.ones(2, requires_grad=True)\n(2 * x).grad\n{}['batch size']"
    text = traceback_of(code, tmp_path)
    assert "UserWarning: The .grad attribute" in text
    assert not explain(text)
    alone = text[: text.index("Traceback")]
    assert explain(alone).category == "UserWarning"
    assert explain(alone)


def test_code_that_mentions_a_message_is_no_message():
    text = (
        "Traceback (most recent call last):\n"
        '  File "train.py", line 3, in <module>\n'
        '    raise KeyError("x")  # RuntimeError: Trying to backward through the graph a second time\n'
        "KeyError: 'x'\n"
    )
    assert not explain(text)


@pytest.mark.parametrize("name", PASTED)
def test_what_people_paste(name):
    text, wanted = PASTED[name]
    assert explain(text).id == wanted


def test_a_message_ends_where_the_next_traceback_begins():
    text = "ValueError: one\ntwo\n\nTraceback (most recent call last):\n"
    assert read_text(text) == [Found("ValueError", "one\ntwo")]


def test_a_long_log_is_read_in_time(tmp_path):
    log = "step 12 loss 0.25 : fine: nothing to see\n" * 100_000
    assert explain(log + traceback_of(FAILS, tmp_path)).id == SECOND


@pytest.mark.parametrize("nothing", ["", "   \n", "Error", "-----"])
def test_too_little_text_is_refused(nothing):
    with pytest.raises(ValueError, match="too short"):
        explain(nothing)


@pytest.mark.parametrize("wrong", [3, RuntimeError, ["RuntimeError: x"], torch.ones(2)])
def test_what_is_no_error_is_refused(wrong):
    with pytest.raises(TypeError, match="explain needs an exception, a warning or the text of one, got"):
        explain(wrong)


# The last error


def test_the_error_being_handled():
    try:
        raise second_backward()
    except RuntimeError:
        assert explain().id == SECOND


@pytest.mark.parametrize("name", ["last_value", "last_exc"])
def test_the_last_error_shown(monkeypatch, name):
    for other in ("last_value", "last_exc"):
        monkeypatch.delattr(sys, other, raising=False)
    with pytest.raises(ValueError, match="There is no last error to explain"):
        explain()
    monkeypatch.setattr(sys, name, second_backward(), raising=False)
    assert explain().id == SECOND


# The command


def command(*arguments: str, given: bytes = b""):
    return subprocess.run(
        [sys.executable, "-m", "inside_autograd", *arguments], input=given, capture_output=True, timeout=120
    )


def test_the_command_reads_standard_input_and_files(tmp_path):
    text = traceback_of(FAILS, tmp_path)
    done = command("explain", given=text.encode() + b"\xff\xfe")
    assert done.returncode == 0
    assert done.stdout.decode().startswith("Backward through the graph a second time (RuntimeError)\n")
    path = tmp_path / "traceback.txt"
    path.write_text(text, encoding="utf-8")
    assert command("explain", str(path)).stdout == done.stdout
    assert command("explain", "-", given=text.encode()).stdout == done.stdout


def test_the_command_tells_by_its_status_what_it_found():
    done = command("explain", given=b"KeyError: 'batch size'")
    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.startswith(b"Not in the catalogue")


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("explain",), b"too short"),
        (("explain", "nowhere.txt"), b"Cannot read nowhere.txt: "),
        (("explain", "."), b"Cannot read .: "),
        ((), b"required: explain"),
        (("explian",), b"invalid choice"),
    ],
)
def test_the_command_refuses_in_a_sentence(arguments, says):
    done = command(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.stdout == b""


# IPython


@pytest.fixture
def shell():
    """Runs a cell in IPython, and returns all that it shows as text."""
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.io import capture_output

    InteractiveShell.clear_instance()
    made = InteractiveShell.instance(colors="nocolor")

    def run(code: str) -> str:
        with capture_output() as captured:
            made.run_cell(code)
        return captured.stdout + "".join(output.data["text/plain"] for output in captured.outputs)

    yield run
    InteractiveShell.clear_instance()


def test_the_extension_adds_a_card_and_leaves_the_traceback(shell):
    plain = shell(FAILS)
    assert "RuntimeError: Trying to backward" in plain
    assert shell("%load_ext inside_autograd") == ""
    with_card = shell(FAILS)
    title = all_entries()[SECOND].title
    traceback, card = with_card[: with_card.index(title)], with_card[with_card.index(title) :]
    assert re.sub(r"In\[\d+\]|\[\d+\]", "", traceback) == re.sub(r"In\[\d+\]|\[\d+\]", "", plain)
    assert with_card.count(title) == 1
    assert title not in plain
    assert "What to do: " in card
    assert shell("%reload_ext inside_autograd") == ""
    assert shell(FAILS).count(title) == 1, "loaded twice, shown once"
    assert shell("{}['x']") == shell("{}['x']"), "an unknown error is left alone"
    assert "Not in the catalogue" not in shell("{}['x']")
    assert shell("%unload_ext inside_autograd") == ""
    assert title not in shell(FAILS)
    assert shell("from inside_autograd import explain\nprint(explain())").startswith(title)


def test_the_extension_in_a_notebook():
    import nbformat
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_notebook

    cells = ["%load_ext inside_autograd", FAILS, "1 / 0", "%unload_ext inside_autograd", FAILS]
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, allow_errors=True, timeout=120).execute()
    nbformat.validate(notebook)
    kinds = [[output.output_type for output in cell.outputs] for cell in notebook.cells]
    assert kinds == [[], ["error", "display_data"], ["error"], [], ["error"]]
    failed, card = notebook.cells[1].outputs
    assert failed.ename == "RuntimeError"
    assert set(card.data) == {"text/plain", "text/html"}
    assert all_entries()[SECOND].title in card.data["text/html"]


def test_a_card_that_fails_adds_no_traceback(shell, monkeypatch):
    shell("%load_ext inside_autograd")
    monkeypatch.setattr("inside_autograd.extension.explain", lambda error: 1 / 0)
    shown = shell(FAILS)
    assert "RuntimeError: Trying to backward" in shown
    assert "ZeroDivisionError" not in shown


def test_unloading_what_was_never_loaded_says_nothing():
    events = SimpleNamespace(callbacks={"post_run_cell": []})
    inside_autograd.unload_ipython_extension(SimpleNamespace(events=events))
    assert events.callbacks == {"post_run_cell": []}

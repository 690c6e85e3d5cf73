"""`raises`, `warns`, `show`, and the cleaning of messages."""

import gc
import subprocess
import sys
import urllib.parse
import warnings
import weakref
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import torch

from inside_autograd import notebook
from inside_autograd.messages import plain_message, wrapped
from inside_autograd.notebook import raises, show, warns


@pytest.fixture
def x():
    return torch.ones(3, requires_grad=True)


# --- messages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("bad. (Triggered internally at /__w/pytorch/aten/Shape.cpp:42.)", "bad."),
        ("bad (function operator())", "bad"),
        ("bad (function validate_outputs)", "bad"),
        ("view (expected 1, got 2)", "view (expected 1, got 2)"),
        (
            "bad\nException raised from meta at /aten/A.cpp:1 (most recent call first):\nframe #0: 0x7f\n",
            "bad",
        ),
        ("<Exp object at 0x7f65a0c1d2e0> is new", "<Exp object> is new"),
        ("pointer 0x7f65a0c1d2e0 is null", "pointer 0x… is null"),
        ("mask 0x1F stays", "mask 0x1F stays"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("cannot open /home/me/data set/run_1.pt", "cannot open data set/run_1.pt"),
        ("cannot open '/home/me/run_1.pt'", "cannot open 'run_1.pt'"),
        (r"cannot open 'C:\Users\me\run_1.pt'", "cannot open 'run_1.pt'"),
        (
            "see https://pytorch.org/docs/stable/autograd.html",
            "see https://pytorch.org/docs/stable/autograd.html",
        ),
        ("see github.com/pytorch/pytorch/pull/30531", "see github.com/pytorch/pytorch/pull/30531"),
        ("a 1/2/3 step and/or more", "a 1/2/3 step and/or more"),
    ],
)
def test_messages_lose_what_belongs_to_one_run(given, plain):
    assert plain_message(given) == plain


def test_a_traceback_in_a_message_keeps_file_names_and_source_lines():
    given = (
        "Traceback of forward call:\n"
        '  File "/home/me/book/run.py", line 3, in <module>\n'
        "    y = f(x)\n"
        '  File "/home/me/book/f.py", line 7, in f\n'
        "    return x.exp()\n"
        "end"
    )
    assert plain_message(given) == (
        'Traceback of forward call:\n  File "run.py", line 3\n    y = f(x)\n'
        '  File "f.py", line 7, in f\n    return x.exp()\nend'
    )


def test_a_traceback_from_a_notebook_keeps_only_the_cells(monkeypatch):
    import IPython
    from IPython.core.compilerop import CachingCompiler

    shell = SimpleNamespace(compile=CachingCompiler())
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    cell = shell.compile.cache("y = x.exp()", 5)
    given = (
        "Traceback:\n"
        '  File "/usr/lib/python3/runpy.py", line 88, in _run_code\n'
        "    exec(code, run_globals)\n"
        f'  File "{cell}", line 1, in <module>\n'
        "    y = x.exp()\n"
        '  File "/usr/lib/torch/nn/module.py", line 9, in forward\n'
        "    return input.exp()\n"
    )
    assert plain_message(given) == "Traceback:\n  In [5], line 1\n    y = x.exp()"
    names = {"plain_message": plain_message, "given": given}
    exec(compile("shown = plain_message(given)", cell, "exec"), names)
    assert names["shown"] == "Traceback:\n  this cell, line 1\n    y = x.exp()"


def test_wrapping_keeps_short_lines_and_indentation():
    long = "word " * 30
    message = f"first\n  short, indented\n  {long.strip()}"
    lines = wrapped("RuntimeError", message).split("\n")
    assert lines[:2] == ["RuntimeError: first", "  short, indented"]
    assert all(len(line) <= 88 and line.startswith("  word") for line in lines[2:])
    assert " ".join(lines[2:]).split() == long.split()
    assert wrapped("ValueError", "") == "ValueError"
    assert wrapped("E", "x" * 200) == "E:\n" + "x" * 200  # a long word is not broken


# --- raises -----------------------------------------------------------------------------------


def test_raises_prints_the_message_wrapped(x, capsys):
    y = (x * x).sum()
    y.backward()
    with raises(RuntimeError, match="second time") as caught:
        y.backward()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "RuntimeError: Trying to backward through the graph a second time (or directly access"
    assert len(lines) > 1 and max(map(len, lines)) <= 88
    assert isinstance(caught.error, RuntimeError)
    assert " ".join(lines) == f"RuntimeError: {caught.message}"


def test_raises_names_the_class_that_came(capsys):
    with raises((ValueError, LookupError)):
        {}["missing"]
    assert capsys.readouterr().out == "KeyError: 'missing'\n"


def test_raises_fails_when_nothing_is_raised():
    with pytest.raises(
        AssertionError, match="Expected RuntimeError, but the code in the block raised nothing"
    ):
        with raises(RuntimeError):
            pass


def test_raises_fails_on_another_error_and_chains_it(capsys):
    with pytest.raises(
        AssertionError, match=r"Expected TypeError or RuntimeError, .* raised ValueError: no"
    ) as failed:
        with raises((TypeError, RuntimeError)):
            raise ValueError("no")
    assert isinstance(failed.value.__cause__, ValueError)
    assert capsys.readouterr().out == ""


def test_raises_fails_on_another_message_and_chains_it():
    with pytest.raises(
        AssertionError, match="Expected a message with 'leaf', but RuntimeError said: no"
    ) as failed:
        with raises(RuntimeError, match="leaf"):
            raise RuntimeError("no")
    assert isinstance(failed.value.__cause__, RuntimeError)


def test_raises_lets_interrupts_through():
    with pytest.raises(KeyboardInterrupt):
        with raises(RuntimeError):
            raise KeyboardInterrupt


def test_raises_keeps_no_tensor_of_the_failed_call_alive():
    kept = []

    def fails():
        local = torch.ones(3)
        kept.append(weakref.ref(local))
        try:
            local.view(7)
        except RuntimeError as error:
            raise ValueError("outer") from error

    with raises(ValueError) as caught:
        fails()
    gc.collect()
    assert caught.message == "outer"
    assert kept[0]() is None


@pytest.mark.parametrize("wrong", ["RuntimeError", RuntimeError("x"), int, ()])
def test_raises_and_warns_want_classes(wrong):
    with pytest.raises(
        TypeError, match="raises needs a class of errors, or a tuple of them, such as RuntimeError"
    ):
        raises(wrong)
    with pytest.raises(TypeError, match="warns needs a class of warnings"):
        warns(wrong)


# --- warns ------------------------------------------------------------------------------------


def test_warns_prints_torchs_once_only_warnings_every_time(x, capsys):
    for _ in range(2):
        with warns(UserWarning, match="not a leaf") as caught:
            (2 * x).grad  # noqa: B018
        out = capsys.readouterr().out
        assert out.startswith(
            "UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being\n"
        )
        assert "Triggered internally" not in out and ".h:" not in out
        assert max(map(len, out.splitlines())) <= 88
        assert " ".join(out.split()) == f"UserWarning: {caught.message}"


def test_warns_restores_filters_and_torchs_setting():
    before = warnings.filters[:]
    for setting in (False, True):
        torch.set_warn_always(setting)
        try:
            with warns(UserWarning):
                assert torch.is_warn_always_enabled()
                warnings.warn("here", stacklevel=1)
            assert torch.is_warn_always_enabled() is setting
        finally:
            torch.set_warn_always(False)
    assert warnings.filters == before


def test_warns_prints_each_message_once_and_counts_all(capsys):
    with warns(UserWarning) as caught:
        for text in ("a", "b", "a"):
            warnings.warn(text, stacklevel=1)
    assert capsys.readouterr().out == "UserWarning: a\nUserWarning: b\n"
    assert caught.messages == ["a", "b", "a"]
    assert caught.message == "a"


def test_warns_passes_other_warnings_on(capsys):
    with warnings.catch_warnings(record=True) as outside:
        warnings.simplefilter("always")
        with warns(UserWarning, match="wanted"):
            warnings.warn("wanted", stacklevel=1)
            warnings.warn("not wanted", FutureWarning, stacklevel=1)
            warnings.warn("another", stacklevel=1)
    assert [(w.category, str(w.message)) for w in outside] == [
        (FutureWarning, "not wanted"),
        (UserWarning, "another"),
    ]
    assert outside[0].filename == __file__
    assert capsys.readouterr().out == "UserWarning: wanted\n"


def test_warns_fails_without_the_warning():
    with pytest.raises(
        AssertionError, match=r"Expected UserWarning, but the code in the block did not warn\."
    ):
        with warns(UserWarning):
            pass
    with (
        pytest.warns(FutureWarning),
        pytest.raises(AssertionError, match="gave other warnings: FutureWarning: x"),
    ):
        with warns(UserWarning, match="leaf"):
            warnings.warn("x", FutureWarning, stacklevel=1)


def test_warns_does_not_replace_an_error_and_still_restores():
    before = warnings.filters[:]
    with pytest.raises(ValueError, match="mine"):
        with warns(UserWarning):
            raise ValueError("mine")
    assert warnings.filters == before
    assert not torch.is_warn_always_enabled()


def test_warns_around_raises(x, capsys):
    with warns(UserWarning, match="Error detected in ExpBackward0"), warns(UserWarning, match="Anomaly"):
        with raises(RuntimeError), torch.autograd.detect_anomaly():
            y = x.exp()
            y.add_(1)
            y.sum().backward()
    out = capsys.readouterr().out
    assert [
        line.split(":")[0] for line in out.splitlines() if line.split(":")[0].endswith(("Error", "Warning"))
    ] == [
        "RuntimeError",
        "UserWarning",
        "UserWarning",
    ]
    assert '  File "test_notebook_helpers.py", line ' in out and "    y = x.exp()" in out


# --- show -------------------------------------------------------------------------------------


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def line_figure(**kwargs):
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(**kwargs)
    ax.plot([0, 1, 2], [0, 1, 4], label='it\'s "x²" <&>')
    ax.fill_between([0, 1, 2], [0, 1, 4], clip_on=True)
    ax.legend()
    return fig


@pytest.fixture
def displayed(monkeypatch):
    """What `show` hands to IPython."""
    import IPython.display

    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    return shown


def test_show_displays_an_image_with_its_text_alternative(displayed):
    import matplotlib.pyplot as plt

    fig = line_figure()
    show(fig, alt='A "steep" line:\n x < y & more')
    assert not plt.fignum_exists(fig.number)
    (picture,) = displayed
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == repr(picture) == 'A "steep" line: x < y & more'
    assert ET.fromstring(bundle["image/svg+xml"]).get("aria-label") == picture.alt
    figure, img = Tags(bundle["text/html"]).tags
    assert figure[0] == "figure" and img[0] == "img"
    assert img[1]["alt"] == 'A "steep" line: x < y & more'
    head, data = img[1]["src"].split(",", 1)
    assert head == "data:image/svg+xml;charset=utf-8"
    root = ET.fromstring(urllib.parse.unquote(data))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert 'it\'s "x²" <&>' in texts  # letters stay text, and survive the quoting
    assert "metadata" not in data and "date" not in data.lower()


def test_show_keeps_the_figures_background_and_fills_a_missing_one():
    def background(fig):
        svg = notebook._picture(fig, "x").svg
        return svg[svg.index('id="patch_1"') :].split("style=")[1].split('"')[1]

    assert background(line_figure()) == "fill: #ffffff"
    assert background(line_figure(facecolor="none")) == "fill: #ffffff"
    assert background(line_figure(facecolor="#ffeecc")) == "fill: #ffeecc"


def test_show_leaves_matplotlibs_settings_alone(displayed):
    import matplotlib

    before = dict(matplotlib.rcParams)
    show(line_figure(), alt="x")
    assert dict(matplotlib.rcParams) == before


SCRIPT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import matplotlib
matplotlib.use("agg")
from test_notebook_helpers import line_figure
from inside_autograd import notebook
print(hashlib.sha256(notebook._picture(line_figure(), "x")._repr_html_().encode()).hexdigest())
"""


def test_show_gives_the_same_bytes_in_two_processes():
    import pathlib

    folder = str(pathlib.Path(__file__).parent)
    runs = [
        subprocess.run([sys.executable, "-c", SCRIPT, folder], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert len(runs[0].stdout.strip()) == 64
    assert runs[0].stdout == runs[1].stdout


def test_show_prints_the_alternative_where_there_is_no_notebook(monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    show(line_figure(), alt="A steep line")
    assert capsys.readouterr().out == "A steep line\n"


def test_show_says_what_is_wrong():
    import matplotlib.pyplot as plt

    fig = line_figure()
    with pytest.raises(
        TypeError, match=r"show needs a matplotlib figure, got Axes: for axes pass ax\.figure"
    ):
        show(fig.axes[0], alt="x")
    with pytest.raises(ValueError, match="alt is empty; say in words what the picture shows"):
        show(fig, alt=" \n")
    with pytest.raises(TypeError, match="alt as text"):
        show(fig, alt=None)
    with pytest.raises(TypeError, match="alt"):
        show(fig)
    plt.close(fig)

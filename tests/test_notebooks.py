"""The chapters keep to the rules, every rule rejects a notebook that breaks it, and nbval really compares."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import notebook_rules  # noqa: E402
import notebooks  # noqa: E402

CHAPTERS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SVG = '<svg role="img" viewBox="0 0 9 9"><title>A graph of one node.</title><circle r="3"/></svg>'
# Harmless, each of them, and close to something that is not.
HARMLESS = [
    "tensor([0.3333, 140737.0000]) 0xff 9007199254740992 0.14063797672755201",
    "See https://pytorch.org/docs/stable/home/notes/autograd.html or /docs at https://example.org/a/b.py",
    "3 sum 2 ms2 node 12 of 34 ratio 1.5 (2, 3) 1:10:2 5 steps, items 4 s2",
    "RuntimeError: trying to backward through the graph a second time\nprocessing 3 values, rapid 3",
]
HARMLESS_HTML = (
    f"<style>a{{transition:200ms}}</style><script>/* 1.5 s */let t=0x1F;</script><div>{SVG}</div>"
    '<figure><img alt="A curve." src="data:image/svg+xml;charset=utf-8,%3Csvg%3E1%3C/svg%3E"></figure>'
    '<div role="img" aria-label="Two nodes."><svg viewBox="0 0 9 9"></svg></div>'
    '<button><svg aria-hidden="true"><path d="M0 0"/></svg>Next</button>'
)
SUMMARY = "- One.\n- Two,\n  on two lines.\n- Three."
MARKDOWN = """# First things

What this is about, in one line. 10 minutes; you need Python.

## Predict first

What does `{x}` print? A set `{a}` and a [page](../book/page.md#a-part). Also f(x)=1 and $x_{1}$.

<details><summary>Answer</summary>

It prints "just a moment" and `simply`.

</details>

## One idea

### A part of it

See [the next one](12_other.ipynb#a-part) and [torch](https://pytorch.org/docs/stable/autograd.html).
"""


def code(source, *outputs, count=None):
    cell = new_code_cell(source, execution_count=count)
    cell.outputs = list(outputs)
    return cell


def stream(text, name="stdout"):
    return new_output("stream", name=name, text=text)


def shown(**data):
    return new_output("display_data", data={name.replace("__", "/"): value for name, value in data.items()})


def html(content):
    return new_output("display_data", data={"text/html": content, "text/plain": "a picture"})


def good_cells():
    prose = new_markdown_cell(("Autograd walks the graph from its output to its leaves. " * 120).strip())
    tail = [
        new_markdown_cell("## When it goes wrong\n\nIt says why."),
        new_markdown_cell("## Exercises\n\nThey come later."),
        new_markdown_cell(f"## In short\n\n{SUMMARY}"),
        new_markdown_cell("## Where next\n\nOn."),
    ]
    return [
        new_markdown_cell(MARKDOWN),
        code("x = 1\nprint(x)", stream("1\n"), count=1),
        code("y = 2; z = 3  # a; b;\ns = ';'", count=2),
        code("show()", html(HARMLESS_HTML), *(stream(text + "\n") for text in HARMLESS), count=3),
        prose,
        *tail,
    ]


def write(tmp_path, cells, name="11_good.ipynb", metadata=None, change_text=None):
    """Put a notebook in normal form into a small book under tmp_path.

    Metadata and the change of the text come last: they are what normal form would take away.
    """
    (tmp_path / "book").mkdir(exist_ok=True)
    (tmp_path / "book" / "page.md").write_text("# Page\n\n## A part\n")
    folder = tmp_path / "notebooks"
    folder.mkdir(exist_ok=True)
    other = new_notebook(cells=[new_markdown_cell("# Other\n\n### A part")])
    (folder / "12_other.ipynb").write_text(notebooks.to_text(other))
    notebook = notebooks.normalize(new_notebook(cells=cells))
    notebook.metadata.update(metadata or {})
    text = notebooks.to_text(notebook)
    (folder / name).write_text(change_text(text) if change_text else text)
    return folder / name


def broken_rules(path):
    notebook = notebook_rules.Notebook(path)
    return {name: found for name, rule in notebook_rules.RULES.items() if (found := list(rule(notebook)))}


# ---------------------------------------------------------------- the chapters


def test_there_are_chapters():
    assert CHAPTERS, "notebooks/ holds no chapter"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapter_keeps_to_the_rules(path):
    problems = notebook_rules.problems(path)
    assert not problems, "\n".join(problems)


# ---------------------------------------------------------------- each rule, by a notebook that breaks it


def with_output(*outputs):
    return lambda cells: cells.insert(2, code("f()", *outputs))


def with_code(source):
    return lambda cells: cells.insert(2, code(source, stream("1\n")))


def with_text(source):
    return lambda cells: cells.insert(4, new_markdown_cell(source))


def both(first, second):
    return lambda cells: (first(cells), second(cells))


def replaced(old, new):
    def change(cells):
        hits = [cell for cell in cells if old in cell.source]
        assert len(hits) == 1, f"{old!r} stands in {len(hits)} cells"
        hits[0].source = hits[0].source.replace(old, new)

    return change


def without_outputs(cells):
    for cell in cells:
        if cell.cell_type == "code":
            cell.outputs = []


def data_uri(text):
    return f"data:image/svg+xml;base64,{base64.b64encode(text.encode()).decode()}"


def attached(cells):
    cells[4].attachments = {"a.png": {"image/png": "iVBORw0KGgo="}}


# rule, what is done to the good notebook, a piece of what the rule must say
BAD = [
    ("executed", lambda cells: cells.insert(2, code("f()", count=0)), "never run: cell 3"),
    ("counted", lambda cells: cells.insert(2, code("f()", stream("1"), count=99)), "[1, 99, 3, 4]"),
    ("has-outputs", without_outputs, "no cell has an output"),
    ("no-errors", with_output(new_output("error", ename="E", evalue="bad", traceback=["x"])), "E: bad"),
    ("no-empty-code", lambda cells: cells.insert(2, code(" \n")), "cell 3 (In [2]) is empty"),
    ("no-empty-code", lambda cells: cells.insert(2, new_raw_cell("x")), "cell 3 is a raw cell"),
    ("compared", with_code("# NBVAL_IGNORE_OUTPUT\nf()"), "NBVAL_IGNORE_OUTPUT"),
    ("compared", with_code("f()\n  #NBVAL_SKIP"), "NBVAL_SKIP"),
    ("no-shell", with_code("!pip install torch"), "'!'"),
    ("no-shell", with_code("files = !ls"), "files = !"),
    ("no-shell", with_code("%pip install torch"), "%pip"),
    ("no-shell", with_code("%%bash\nls"), "%%bash"),
    ("no-clock-magic", with_code("%%timeit\nf()"), "%%timeit"),
    ("no-clock-magic", with_code("%time f()"), "%time"),
    ("no-trailing-semicolon", with_code("f();"), "line 1"),
    ("no-trailing-semicolon", with_code("x = 1\nf() ;  # hidden\n1"), "line 2"),
    ("no-trailing-semicolon", with_code("%matplotlib inline\nf();"), "line 2"),
    ("no-display-updates", with_code("from IPython.display import clear_output"), "clear_output"),
    ("no-display-updates", with_code("display(1, display_id='a')"), "display_id"),
    ("no-display-updates", with_code("out = widgets.Output()"), "widgets.Output"),
    ("no-display-updates", with_code("from ipywidgets import VBox, Output"), "Output"),
    ("small", with_output(stream("1234567 " * 200_000)), "1.6 MB"),
    ("no-address", with_output(stream("<Node object at 0x7f1c2a3b4c50>\n")), "0x7f1c2a3b4c50"),
    ("no-address", with_output(html("<b title='0x7F1C2A3B4C50'>a</b>")), "0x7F1C2A3B4C50"),
    ("no-address", with_output(html(SVG.replace("r=", "id='0x55aabbccddee' r="))), "0x55aabbccddee"),
    ("no-address", with_output(html(f'<img alt="a" src="{data_uri("0x7f1c2a3b4c50")}">')), "0x7f1c2a"),
    ("no-address", with_output(html("<img alt=a src='data:image/svg+xml,%30x7f1c2a3b4c50'>")), "0x7f1c2a"),
    ("no-address", with_output(stream(f"{0x7F1C2A3B4C50}\n")), str(0x7F1C2A3B4C50)),
    ("no-address", with_output(stream(f"id: {0x55AABBCCDDEE}")), str(0x55AABBCCDDEE)),
    ("no-timing", with_output(stream("12.3 ms ± 40 µs per loop\n")), "'3 ms'"),
    ("no-timing", with_output(stream("1.31 s ± 7\n")), "'1.31 s'"),
    ("no-timing", with_output(stream("took 12 seconds\n")), "12 seconds"[1:]),
    ("no-timing", with_output(stream("100%|####| 5/5 [00:01, 3.1it/s]\n")), "it/s"),
    ("no-timing", with_output(stream("CPU times: user 3\nWall time: 4\n")), "Wall time"),
    ("no-timing", with_output(html("<b>4</b> us")), "4 us"),
    ("no-path", with_output(stream("/home/ada/book\n")), "/home/"),
    ("no-path", with_output(stream('  File "/tmp/ipykernel_12/3.py", line 1\n')), "ipykernel_12"),
    ("no-path", with_output(stream("C:\\Users\\ada\n")), "C:"),
    ("no-path", with_output(stream("lib/python3.11/site-packages/torch\n")), "site-packages"),
    ("no-path", with_output(stream("in /py/lib/torch/_tensor.py:12\n")), "/py/lib/torch/_tensor.py"),
    ("no-path", with_output(html("<!-- /Users/ada -->")), "/Users/"),
    ("no-process-id", with_output(stream("pid: 4711\n")), "pid: 4711"),
    ("no-process-id", with_output(stream("Process 4711 ended\n")), "Process 4711"),
    ("no-clock", with_output(stream("2025-03-01\n")), "2025-03-01"),
    ("no-clock", with_output(stream("at 9:15:02\n")), "9:15:02"),
    ("no-clock", with_output(stream("Sat Mar 1 2025\n")), "Sat Mar 1"),
    ("no-clock", with_output(stream("3/1/2025\n")), "3/1/2025"),
    ("no-clock", with_output(stream("1740819302.25\n")), "1740819302.25"),
    ("no-clock", with_output(html(f'<img alt="a" src="{data_uri("<text>2025-03-01</text>")}">')), "2025"),
    ("no-stderr", with_output(stream("UserWarning: x\n", "stderr")), "UserWarning: x"),
    ("no-widgets", with_output(shown(**{notebooks.WIDGET_VIEW: {"model_id": "1"}})), "a live widget"),
    ("allowed-kinds", with_output(shown(image__png="iVBORw0KGgo=")), "image/png"),
    ("allowed-kinds", with_output(shown(image__jpeg="iVBORw0KGgo=")), "image/jpeg"),
    ("allowed-kinds", with_output(shown(application__javascript="1")), "application/javascript"),
    ("allowed-kinds", with_output(shown(text__latex="$x$")), "text/latex"),
    ("picture-alternatives", with_output(shown(**{"image/svg+xml": SVG})), "bare SVG"),
    ("picture-alternatives", with_output(html('<img src="data:image/svg+xml,">')), "<img>"),
    ("picture-alternatives", with_output(html('<img alt="" src="data:image/svg+xml,">')), "<img>"),
    ("picture-alternatives", with_output(html("<svg><title>A graph.</title></svg>")), "<svg>"),
    ("picture-alternatives", with_output(html('<svg role="img"><circle/></svg>')), "<svg>"),
    ("picture-alternatives", with_output(html('<svg role="img"><title> </title></svg>')), "<svg>"),
    (
        "picture-alternatives",
        with_output(html('<svg role="img"><g><title>Not the name of the picture.</title></g></svg>')),
        "<svg>",
    ),
    ("picture-alternatives", with_output(html(SVG + "<svg></svg>")), "<svg>"),
    (
        "picture-alternatives",
        with_output(shown(**{"text/html": SVG, "image/svg+xml": "<svg></svg>"})),
        "<svg>",
    ),
    ("nothing-from-other-hosts", with_output(html('<script src="https://a.org/a.js"></script>')), "a.org"),
    ("nothing-from-other-hosts", with_output(html("<style>@import 'a'</style>")), "a style"),
    ("nothing-from-other-hosts", with_output(html("<b style='background:url(//a.org/x)'></b>")), "a style"),
    ("nothing-from-other-hosts", with_text("![A dog](https://a.org/dog.png)"), "a.org"),
    ("nothing-from-other-hosts", with_text('<img alt="A dog" src="http://a.org/dog.png">'), "a.org"),
    ("plain-markdown", with_text("```{note}\nText\n```"), "{note}"),
    ("plain-markdown", with_text(":::{note}\nText\n:::"), "a MyST block"),
    ("plain-markdown", with_text("A {term}`leaf` is"), "{term}"),
    ("plain-markdown", with_text("A {doc}`leaf <a>` and {py:func}`x`"), "{py:func}"),
    ("plain-markdown", with_text("(my-label)=\n\nText"), "a MyST label"),
    ("plain-markdown", with_text("Version {{ version }}"), "a MyST substitution"),
    ("plain-markdown", with_text("% hidden"), "a MyST comment"),
    ("plain-markdown", with_text("Text\n+++\nText"), "a MyST block break"),
    ("details-render", with_text("<details><summary>A</summary>\nText\n\n</details>"), "</summary>"),
    ("details-render", with_text("<details><summary>A</summary>\n\nText"), "unequally"),
    ("markdown-pictures", with_text("![](../book/page.md)"), "without a text alternative"),
    ("markdown-pictures", with_text('A <img src="../book/page.md"> b'), "without a text alternative"),
    ("markdown-pictures", with_text('<img src="../book/page.md">'), "without a text alternative"),
    ("markdown-pictures", attached, "attached"),
    ("links-hold", with_text("[a](https://a.org/book/notebooks/12_other.html)"), "12_other.ipynb"),
    ("links-hold", with_text("[a](https://a.org/blob/main/12_other.ipynb)"), "12_other.ipynb"),
    ("links-hold", with_text("[a](13_missing.ipynb)"), "13_missing.ipynb, which is not there"),
    ("links-hold", with_text("[a](../book/page.html)"), "name the source"),
    ("links-hold", with_text("[a](../../other/x.md)"), "outside the book"),
    ("links-hold", with_text("[a](/notebooks/12_other.ipynb)"), "outside the book"),
    ("links-hold", with_text("[a](12_other.ipynb#another)"), "nothing there has that anchor"),
    ("links-hold", with_text("[a](#another)"), "nothing there has that anchor"),
    ("links-hold", with_text('<a href="13_missing.ipynb">a</a>'), "which is not there"),
    ("links-hold", with_text('<a href="file:///a">a</a>'), "file:///a"),
    ("headings-nest", replaced("### A part of it", "#### A part of it"), "level 4"),
    ("chapter-shape", replaced("# First things", "Text\n\n# First things"), "`# Title`"),
    ("chapter-shape", with_text("# Second title"), "2 headings of level 1"),
    ("chapter-shape", replaced("## Predict first", "## Guess"), "'Guess'"),
    ("chapter-shape", replaced("## Exercises", "## Work"), "the last sections are"),
    ("chapter-shape", lambda cells: cells.append(new_markdown_cell("## More\n\nText")), "end with"),
    ("chapter-shape", lambda cells: cells.insert(-2, cells.pop()), "end with"),
    ("chapter-shape", replaced("10 minutes; ", ""), "how many minutes"),
    ("short-summary", replaced("- Three.", "- Three.\n- Four.\n- Five.\n- Six."), "6 lines"),
    ("short-summary", replaced(SUMMARY, "\n\n".join("abcdef")), "6 lines"),
    ("short-summary", replaced(SUMMARY, ""), "0 lines"),
    ("length", both(lambda cells: cells.pop(4), replaced("10 minutes", "5 minutes")), "words"),
    ("length", both(with_text("One more word. " * 700), replaced("10 minutes", "20 minutes")), "words"),
    ("minutes-are-measured", replaced("10 minutes; ", "25 minutes; "), "write 10 minutes"),
    ("no-filler", with_text("It is just a number."), "'just'"),
    ("no-filler", with_text("**Simply** call it."), "'Simply'"),
    ("no-filler", with_text("<details><summary>Just look</summary>\n\nText\n\n</details>"), "'Just'"),
    ("no-filler", with_text("| a |\n|---|\n| simply |"), "'simply'"),
]


def number_cells(cells):
    """Count the code cells, except those that a case counted wrongly (99) or left as never run (0)."""
    code_cells = [cell for cell in cells if cell.cell_type == "code"]
    for count, cell in enumerate(code_cells, 1):
        if cell.execution_count == 0:
            cell.execution_count = None
        elif cell.execution_count != 99:
            cell.execution_count = count


def test_a_good_notebook_breaks_no_rule(tmp_path):
    assert broken_rules(write(tmp_path, good_cells())) == {}


@pytest.mark.parametrize(("rule", "change", "message"), BAD, ids=[bad[0] for bad in BAD])
def test_bad_notebook_breaks_its_rule_alone(tmp_path, rule, change, message):
    cells = good_cells()
    change(cells)
    number_cells(cells)
    broken = broken_rules(write(tmp_path, cells))
    assert set(broken) == {rule}
    assert any(message in place for place in broken[rule]), broken[rule]


BARE = '"metadata": {}'
UNUSUAL = {
    "trailing newline": (None, lambda text: text.rstrip("\n")),
    "indentation": (None, lambda text: text.replace("\n ", "\n  ")),
    "escaped letters": (None, lambda text: text.replace("Autograd walks", "Autogr\\u0061d walks")),
    "an id of Jupyter's own": (None, lambda text: text.replace('"id": "', '"id": "a', 1)),
    "a version of Python": ({"language_info": {"name": "python", "version": "3.11.7"}}, None),
    "another kernel": ({"kernelspec": {"name": "conda", "display_name": "C", "language": "python"}}, None),
    "Colab's metadata": ({"colab": {"provenance": []}}, None),
    "timings of a cell": (None, lambda text: text.replace(BARE, '"metadata": {"execution": {}}', 1)),
    "an unknown tag": (None, lambda text: text.replace(BARE, '"metadata": {"tags": ["mine"]}', 1)),
}


@pytest.mark.parametrize("what", UNUSUAL)
def test_anything_but_normal_form_is_rejected(tmp_path, what):
    metadata, change = UNUSUAL[what]
    broken = broken_rules(write(tmp_path, good_cells(), metadata=metadata, change_text=change))
    assert set(broken) == {"normal-form"}


def test_state_of_widgets_in_the_file_is_rejected(tmp_path):
    state = {"widgets": {"application/vnd.jupyter.widget-state+json": {"state": {}, "version_major": 2}}}
    assert set(broken_rules(write(tmp_path, good_cells(), metadata=state))) == {"no-widgets", "normal-form"}


def test_a_tag_that_stops_the_comparison_is_rejected(tmp_path):
    path = write(tmp_path, good_cells())
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[1].metadata["tags"] = ["nbval-ignore-output"]
    path.write_text(notebooks.to_text(notebook))
    assert set(broken_rules(path)) == {"compared", "normal-form"}


def test_a_file_without_a_number_is_rejected(tmp_path):
    path = write(tmp_path, good_cells(), name="good.ipynb")
    assert set(broken_rules(path)) == {"chapter-shape"}


def test_every_rule_is_proven_by_a_bad_notebook():
    proven = {rule for rule, _, _ in BAD} | {"normal-form"}  # the last by UNUSUAL
    assert proven == set(notebook_rules.RULES)


# ---------------------------------------------------------------- nbval


def test_nbval_fails_on_a_changed_output_and_misses_a_cell_that_was_never_run(tmp_path):
    """Three copies of one notebook, one run of nbval: as it is, one digit changed, stripped of outputs."""
    cells = [code("print(6 * 7)", stream("42\n"), count=1), code("x = 2\nx ** 5", count=2)]
    cells[1].outputs = [new_output("execute_result", data={"text/plain": "32"}, execution_count=2)]
    write(tmp_path, cells, name="21_same.ipynb")
    cells[0].outputs[0].text = "43\n"
    write(tmp_path, cells, name="22_changed.ipynb")
    for cell in cells:
        cell.outputs, cell.execution_count = [], None
    stripped = write(tmp_path, cells, name="23_stripped.ipynb")
    files = [tmp_path / "notebooks" / name for name in ("21_same.ipynb", "22_changed.ipynb", stripped)]
    command = [sys.executable, "-m", "pytest", "--nbval", "-n", "2", "--dist", "loadfile", "-rA", "-q"]
    command += ["-p", "no:cacheprovider", "--color=no", f"--rootdir={tmp_path}", *map(str, files)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    said = result.stdout
    assert result.returncode == 1, said + result.stderr
    assert "1 failed, 5 passed" in said, said
    assert "FAILED notebooks/22_changed.ipynb::Cell 0" in said, said
    assert "Cell outputs differ" in said and "43" in said and "42" in said, said
    # What nbval lets through is what the rules are for.
    assert {"executed", "has-outputs"} <= set(broken_rules(stripped))


# ---------------------------------------------------------------- the tool that runs and writes notebooks


def tool(*arguments, expect):
    """Run tools/notebooks.py as a person would, and return what it said on both streams."""
    result = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "notebooks.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    said = result.stdout + result.stderr
    assert result.returncode == expect, said
    assert "Traceback" not in said
    return said


def test_the_tool_runs_and_normalizes_and_a_second_run_changes_nothing(tmp_path):
    widget = (
        "from IPython.display import display\n"
        "live = {'application/vnd.jupyter.widget-view+json': {'model_id': str(id(display))}}\n"
        "display({'text/html': '<b>7</b>', 'text/plain': '7', **live}, raw=True)"
    )
    cells = [
        new_markdown_cell("# Title"),
        code("import sys\nprint(1, flush=True)\nprint(2)\nx = 3", stream("old\n"), count=7),
        code("x + 1"),
        code("x + 1"),
        code(widget),
    ]
    cells[1].metadata = {"tags": ["mine", "hide-input"], "execution": {"iopub.status.busy": "now"}}
    path = tmp_path / "11_run.ipynb"
    notebook = new_notebook(cells=cells, metadata={"kernelspec": {"name": "conda", "display_name": "C"}})
    nbformat.write(notebook, path)
    said = tool(path, expect=1)  # it ran; that it is no whole chapter is then said
    assert "ran" in said and "[chapter-shape]" in said
    first = path.read_bytes()
    done = nbformat.read(path, as_version=4)
    codes = done.cells[1:]
    assert [cell.execution_count for cell in codes] == [1, 2, 3, 4]
    assert codes[0].outputs == [stream("1\n2\n")]
    assert codes[0].metadata == {"tags": ["hide-input"]}
    assert [cell.outputs[0].data for cell in codes[1:3]] == [{"text/plain": "4"}] * 2
    assert codes[3].outputs[0].data == {"text/html": "<b>7</b>", "text/plain": "7"}
    assert codes[2].id == f"{codes[1].id}-2"
    assert done.metadata == {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    assert first.endswith(b"}\n") and not first.endswith(b"\n\n")
    modified = path.stat().st_mtime_ns
    tool(path, expect=1)
    assert path.read_bytes() == first
    assert path.stat().st_mtime_ns == modified, "a file whose text is the same is not written again"
    assert not list(tmp_path.glob("tmp*")), "no half-written file is left"


def test_an_edit_renames_one_cell_only():
    def ids(*sources):
        notebook = new_notebook(cells=[new_code_cell(source) for source in sources])
        return [cell.id for cell in notebooks.normalize(notebook).cells]

    before, after = ids("a", "b", "c", "c"), ids("a", "changed", "c", "c")
    assert len(set(before)) == 4
    assert [old == new for old, new in zip(before, after, strict=True)] == [True, False, True, True]


FAILING = {
    "f()": "cell 2 (In [2]), line 1 raised NameError: name 'f' is not defined; nothing was written.",
    "def g():\n    return 1 / 0\n\ng()": "cell 2 (In [2]), line 4 raised ZeroDivisionError: division by zero",
    "x = = 1": "cell 2 (In [2]) raised SyntaxError: invalid syntax; nothing was written.",
    "import os\nos._exit(3)": "cell 2 (In [2]) ended the kernel; nothing was written.",
}


def test_a_failing_cell_is_named_and_nothing_is_written(tmp_path):
    paths = []
    for number, source in enumerate(FAILING):
        paths.append(tmp_path / f"1{number}_fails.ipynb")
        nbformat.write(new_notebook(cells=[code("print(1)", stream("old\n")), code(source)]), paths[-1])
    before = [path.read_bytes() for path in paths]
    lines = tool("--jobs", "3", "--timeout", "60", *paths, expect=1).splitlines()
    assert len(lines) == len(FAILING), lines
    for path, message in zip(paths, FAILING.values(), strict=True):
        assert any(f"{path}, {message}" in line for line in lines), (message, lines)
    assert [path.read_bytes() for path in paths] == before


def test_a_cell_that_takes_too_long_is_stopped(tmp_path):
    path = tmp_path / "11_slow.ipynb"
    nbformat.write(new_notebook(cells=[code("import time\ntime.sleep(100)", stream("old\n"))]), path)
    before = path.read_bytes()
    said = tool("--timeout", "2", path, expect=1)
    assert said == f"{path}, cell 1 (In [1]) ran longer than 2 s; nothing was written.\n"
    assert path.read_bytes() == before


def test_a_wrong_command_is_answered_in_one_sentence(tmp_path, capsys):
    (tmp_path / "text.ipynb").write_text("{")
    (tmp_path / "other.ipynb").write_text('{"a": 1}')
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe{}")
    (tmp_path / "a.py").write_text("")
    for name, message in {
        "missing.ipynb": "There is no file",
        "a.py": "is not a notebook: name a file that ends in .ipynb.",
        "text.ipynb": "is not valid JSON in UTF-8",
        "bytes.ipynb": "is not valid JSON in UTF-8",
        "other.ipynb": "is JSON but not a notebook that Jupyter can read",
    }.items():
        for options in ([], ["--check"]):
            assert notebooks.main([*options, str(tmp_path / name)]) == 2
            said = capsys.readouterr()
            assert message in said.err and said.err.count("\n") == 1 and not said.out
    with pytest.raises(SystemExit, match="2"):
        notebooks.main(["--jobs", "0"])
    assert "at least 1" in capsys.readouterr().err


def test_check_writes_nothing_and_says_what_to_mend(tmp_path, capsys):
    path = write(tmp_path, good_cells())
    assert notebooks.main(["--check", str(path)]) == 0
    assert capsys.readouterr().out == ""
    text = path.read_text().replace('"id": "', '"id": "a', 1)
    path.write_text(text)
    assert notebooks.main(["--check", str(path)]) == 1
    assert "[normal-form]" in capsys.readouterr().out
    assert path.read_text() == text


def test_an_authors_own_settings_do_not_reach_the_kernel(tmp_path, monkeypatch):
    for name in notebooks.DROPPED_VARIABLES:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("IPYTHONDIR", "mine")
    monkeypatch.setenv("MATPLOTLIBRC", "mine")
    environment = notebooks.kernel_environment(str(tmp_path))
    assert not set(notebooks.DROPPED_VARIABLES) & set(environment)
    assert environment["IPYTHONDIR"] == str(tmp_path)
    assert Path(environment["MATPLOTLIBRC"]).is_file()
    assert environment["PATH"] == os.environ["PATH"]

"""The code of ``make bench``, on subjects so small that they take no time. No peer is needed here."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).resolve().parent.parent / "benchmarks"


def load(name):
    """A module of benchmarks/, by its path: its names are too plain to stand on the path of all tests."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bench():
    sys.path.insert(0, str(HERE))
    try:
        return load("bench")
    finally:
        sys.path.remove(str(HERE))
        for name in ("page", "peers", "subjects"):
            sys.modules.pop(name, None)


measure, page, peers, subjects = map(load, ("measure", "page", "peers", "subjects"))


def told(jobs, runs=2):
    lines = []
    measure.measure(jobs, runs, say=lambda **facts: lines.append(facts))
    return lines


def test_each_run_is_told_and_the_first_does_not_count():
    ran = []
    lines = told({"draw": (list, lambda fresh: ran.append(fresh) or b'<g data-n="0"/><g data-n="r0"/>')})
    assert len(ran) == 3 and len({id(fresh) for fresh in ran}) == 3
    assert (lines[0]["bytes"], lines[0]["boxes"]) == (31, 1)
    assert lines[0]["memory"] >= 0 and "seconds" not in lines[0]
    assert [set(line) for line in lines[1:]] == [{"measure", "seconds"}] * 2


def test_short_runs_are_repeated():
    ran = []
    lines = told({"capture": (None, ran.append)})
    assert len(ran) == 1 + 2 * measure.MOST
    assert all(0 <= line["seconds"] < 0.01 for line in lines[1:])


def test_a_job_that_fails_is_told_and_the_next_one_runs():
    def fail(_):
        raise RecursionError("too deep\nand more")

    lines = told({"capture": (None, fail), "draw": (list, len)}, runs=1)
    assert lines[0] == {"measure": "capture", "error": "RecursionError", "message": "too deep"}
    assert [line["measure"] for line in lines[1:]] == ["draw", "draw"]


def test_all_measures_of_the_helper():
    model, inputs = subjects.Diamonds(2), (torch.ones(4),)
    lines = told(peers.jobs("inside_autograd", model, inputs), runs=1)
    assert not [line for line in lines if "error" in line]
    firsts = {line["measure"]: line for line in lines if "seconds" not in line}
    assert list(firsts) == ["capture", "capture_saved", "unfolded", "folded", "backward", "replay"]
    # sum, 2 times sin, cos and add, one mul, one leaf
    assert firsts["unfolded"]["boxes"] == 1 + 2 * 3 + 1 + 1
    assert firsts["unfolded"]["bytes"] > 1000


@pytest.mark.parametrize("subject", subjects.SUBJECTS, ids=lambda subject: subject.name)
def test_every_subject_gives_a_scalar_with_a_graph(subject):
    model, inputs = subject.make()
    out = model(*inputs)
    assert out.shape == () and out.requires_grad and out.isfinite()


def test_subjects_have_names_of_their_own():
    names = [subject.name for subject in subjects.SUBJECTS]
    assert len(set(names)) == len(names) == 14


def test_weights_of_the_gpt_are_shared():
    model, _ = next(one for one in subjects.SUBJECTS if "GPT" in one.name).make()
    assert model.head.weight is model.token.weight


# --- what comes back from the processes


def python(code):
    return [sys.executable, "-c", code]


def test_lines_are_gathered_by_measure(bench):
    lines = [
        {"nodes": 9},
        {"measure": "a", "bytes": 5},
        {"measure": "a", "seconds": 0.5},
        {"measure": "a", "seconds": 1.5},
    ]
    out = "\n".join(["a tool's own words", *map(json.dumps, lines), "[1]", "7"])
    assert bench.gather(out, False, 0) == {
        "nodes": 9,
        "measures": {"a": {"seconds": [0.5, 1.5], "bytes": 5}},
    }


def test_a_process_that_takes_too_long_is_ended_and_what_it_said_stands(bench):
    code = "import json,time; print(json.dumps({'measure': 'a', 'seconds': 2.0}), flush=True); time.sleep(60)"
    result = bench.run_one(python(code), limit=3)
    assert result == {"measures": {"a": {"seconds": [2.0]}}, "end": "time"}


def test_a_process_that_fails_tells_how(bench):
    assert bench.run_one(python("import nonesuch"), limit=30)["end"] == (
        "ModuleNotFoundError: No module named 'nonesuch'"
    )
    assert bench.run_one(python("import os; os._exit(3)"), limit=30)["end"] == "ended with code 3"


# --- the page


def results():
    ours = {
        "nodes": 1500,
        "measures": {
            "capture": {"seconds": [0.002, 0.001, 0.003]},
            "capture_saved": {"seconds": [0.004]},
            "unfolded": {"seconds": [0.1], "bytes": 40_000, "memory": 3.5, "boxes": 1500},
            "folded": {"seconds": [0.01], "boxes": 12},
            "backward": {"seconds": [0.01]},
            "replay": {"seconds": [0.15]},
        },
    }
    viz = {
        "measures": {
            "capture": {"seconds": [0.012]},
            "capture_saved": {"seconds": [], "error": "RecursionError", "message": "deep"},
            "unfolded": {"seconds": []},
        },
        "end": "time",
    }
    lens = {"measures": {"capture": {"seconds": [], "error": "OddError", "message": ""}}}
    gone = {"measures": {}, "end": "ModuleNotFoundError: No module named 'torchview'"}
    names = ("python", "system", "torch", "torchviz", "torchview", "torchlens", "dot")
    return {
        "versions": {name: f"<{name}>" for name in names},
        "limit": 60,
        "runs": 3,
        "import": [0.05, 0.04, 0.06],
        "subjects": {
            "small": {"inside_autograd": ours, "torchviz": viz, "torchview": gone, "torchlens": lens}
        },
    }


def row(text, number):
    """The cells of the one row of a table, without its name."""
    rows = [line for line in text.splitlines() if line.startswith("| small |")]
    return [cell.strip() for cell in rows[number].strip("|").split("|")][1:]


def test_page_of_a_run():
    text = page.page(results())
    assert row(text, 0) == [
        "1,500",
        "2.0 (1.0–3.0)",
        "12.0 (12.0–12.0)",
        "**6.0**",
        "4.0 (4.0–4.0)",
        "recursion limit",
        "–",
        "failed",
        "OddError",
    ]
    assert row(text, 1) == ["100 (100–100)", "over 60 s", "–", "failed", "–", "10.0 (10.0–10.0)", "12"]
    assert row(text, 2) == ["40", "–", "–", "–", "–", "3.5"]
    assert row(text, 3) == ["10.0 (10.0–10.0)", "150 (150–150)", "**15.0**"]
    assert "after `import torch`: 50.0 (40.0–60.0) ms" in text


def test_tables_are_even():
    tables = [line for line in page.page(results()).splitlines() if line.startswith("|")]
    counts = [line.count("|") for line in tables]
    assert counts == [counts[i - i % 3] for i in range(len(counts))]

"""The code of ``make bench``, on subjects so small that they take no time. No peer is needed here."""

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benchmarks"
NAMES = (
    "cells",
    "aims",
    "gallery",
    "page",
    "peers",
    "subjects",
    "measure",
    "scale",
    "growth",
    "shows",
    "bench",
)


@pytest.fixture(scope="module")
def benchmarks():
    """The modules of benchmarks/. Their names are too plain to stay on the path of all tests."""
    sys.path.insert(0, str(HERE))
    try:
        return SimpleNamespace(**{name: importlib.import_module(name) for name in NAMES})
    finally:
        sys.path.remove(str(HERE))
        for name in NAMES:
            sys.modules.pop(name, None)


@pytest.fixture
def measure(benchmarks):
    return benchmarks.measure


@pytest.fixture
def job(benchmarks):
    return benchmarks.peers.Job


@pytest.fixture
def bench(benchmarks):
    return benchmarks.bench


def told(measure, jobs, runs=2, **options):
    lines = []
    deadline = options.pop("deadline", time.monotonic() + 60)
    measure.measure(jobs, runs, deadline, say=lambda **facts: lines.append(facts), **options)
    starts = [line["start"] for line in lines if "start" in line]
    assert starts == [name for name in jobs if any(line.get("measure") == name for line in lines)]
    return [line for line in lines if "start" not in line]


def test_each_run_is_told_and_the_first_is_told_apart(measure, job):
    ran = []
    draw = job(
        lambda fresh: ran.append(fresh) or b'<g data-n="0"/><path data-e="0-0"/><g data-n="r0"/>', list
    )
    lines = told(measure, {"draw": draw})
    assert len(ran) == 3 and len({id(fresh) for fresh in ran}) == 3
    # An output's mark ("r0") is no box.
    assert (lines[0]["bytes"], lines[0]["boxes"], lines[0]["edges"]) == (51, 1, 1)
    assert "first" in lines[0] and "seconds" not in lines[0]
    assert [set(line) for line in lines[1:]] == [{"measure", "seconds"}] * 2


def test_boxes_and_arrows_of_graphviz_are_counted_too(measure):
    svg = b'<g id="node1" class="node"></g><g id="edge1" class="edge"></g><g id="node2" class="node"></g>'
    assert measure.facts_of(svg) == {"bytes": len(svg), "boxes": 2, "edges": 1}
    assert measure.facts_of("no picture") == {}


def test_short_runs_are_repeated(measure, job):
    ran = []
    lines = told(measure, {"capture": job(ran.append)})
    assert len(ran) == 1 + 2 * measure.MOST
    assert all(0 <= line["seconds"] < 0.01 for line in lines[1:])


def test_jobs_take_turns_and_one_that_goes_on_from_another_counts_both(measure, job):
    def busy(_):
        start = time.process_time()
        while time.process_time() - start < 0.06:
            pass
        return "traced"

    lines = told(
        measure, {"trace": job(busy), "draw": job(lambda given: given.encode(), after="trace")}, runs=1
    )
    assert [line["measure"] for line in lines] == ["trace", "draw", "trace", "draw"]
    assert lines[1]["bytes"] == len("traced")
    assert lines[3]["seconds"] >= lines[2]["seconds"] >= 0.06


def test_a_later_group_goes_on_from_an_earlier_one(measure, job):
    done = {}
    told(measure, {"trace": job(lambda _: "traced", list)}, done=done)
    lines = told(measure, {"draw": job(str.encode, after="trace")}, runs=1, done=done)
    assert lines[0]["bytes"] == len("traced")


def test_a_job_that_fails_is_told_and_the_next_one_runs(measure, job):
    def fail(_):
        raise RecursionError("too deep\nand more")

    jobs = {"capture": job(fail), "after it": job(len, after="capture"), "draw": job(len, list)}
    lines = told(measure, jobs, runs=1)
    assert lines[0] == {"measure": "capture", "error": "RecursionError", "message": "too deep"}
    assert [line["measure"] for line in lines[1:]] == ["draw", "draw"]


def test_no_round_begins_that_would_end_too_late(measure, job):
    lines = told(
        measure, {"slow": job(lambda _: time.sleep(0.2), list)}, runs=7, deadline=time.monotonic() + 0.5
    )
    assert len(lines) in (1, 2)


def test_all_measures_of_the_helper(benchmarks):
    model, inputs = benchmarks.subjects.Diamonds(2), (torch.ones(4),)
    groups = benchmarks.peers.jobs("inside_autograd", model, inputs)
    lines = [line for group in groups for line in told(benchmarks.measure, group, runs=1)]
    assert not [line for line in lines if "error" in line]
    firsts = {line["measure"]: line for line in lines if "first" in line}
    assert list(firsts) == ["capture", "capture_saved", "folded", "unfolded", "backward", "replay"]
    # sum, 2 times sin, cos and add, one mul, one leaf
    assert firsts["unfolded"]["boxes"] == 1 + 2 * 3 + 1 + 1
    # one to each of these but the first, one more into mul and one more into each of two forks, one in
    assert firsts["unfolded"]["edges"] == 1 + (1 + 2 * 4 + 1)
    assert firsts["unfolded"]["bytes"] > 1000


def test_the_memory_of_a_job_is_measured_in_a_copy(benchmarks, job):
    held = []
    jobs = [{"small": job(lambda _: None), "large": job(lambda _: held.append(b"x" * 80_000_000))}]
    scales = [benchmarks.scale.Scale(lambda: jobs, lambda: None) for _ in range(3)]
    try:
        small, large, none = scales[0].go("small"), scales[1].go("large"), scales[2].go("nonesuch")
    finally:
        for scale in scales:
            scale.end()
    assert 0 <= small["own"] < 20 and 70 < large["own"] < 110
    assert none == {} and held == []


def test_the_memory_of_dot_is_its_own(benchmarks, job, tmp_path, monkeypatch):
    dot = tmp_path / "dot"
    dot.write_text(f"#!{sys.executable}\nb'x' * 60_000_000\n", encoding="utf-8")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    jobs = [{"draw": job(lambda _: subprocess.run(["dot"], check=True))}]
    scale = benchmarks.scale.Scale(lambda: jobs, lambda: None)
    try:
        facts = scale.go("draw")
    finally:
        scale.end()
    assert 55 < facts["dot"] < 100 and facts["own"] < 30


# --- the subjects


def test_every_subject_gives_a_scalar_with_a_graph(benchmarks):
    for subject in benchmarks.subjects.SUBJECTS:
        model, inputs = subject.make()
        out = model(*inputs)
        assert out.shape == () and out.requires_grad and out.isfinite(), subject.key


def test_subjects_have_names_of_their_own_and_stand_from_small_to_large(benchmarks):
    subjects = benchmarks.subjects.SUBJECTS
    assert len({one.name for one in subjects}) == len({one.key for one in subjects}) == len(subjects) == 14
    sizes = {}
    for one in subjects:
        if one.key != "gpt-2":
            sizes.setdefault(one.family, []).append(int(one.key.rpartition("-")[2]))
    assert all(numbers == sorted(numbers) for numbers in sizes.values()) and sizes["cnn"] == [1, 8, 32, 128]


def test_weights_of_the_gpt_are_shared(benchmarks):
    model, _ = benchmarks.subjects.find("gpt-2").make()
    assert model.head.weight is model.token.weight


def test_pairs_for_growth_are_ten_times_as_large(benchmarks):
    for name, pair in benchmarks.growth.pairs().items():
        if name == "fan-in":  # takes seconds to make; its keys say its sizes
            assert [one.key for one in pair] == ["fan-in-4900", "fan-in-49000"]
            continue
        small, large = (len(_graph(subject)) for subject in pair)
        assert 9 < large / small < 11, name


def _graph(subject):
    from inside_autograd import Graph

    model, inputs = subject.make()
    return Graph.of(model(*inputs), model, saved=False)


def test_growth_of_one_pair(benchmarks):
    subjects = benchmarks.subjects
    found = benchmarks.growth.growth(subjects.chain(10), subjects.chain(100), rounds=2)
    assert found["nodes"] == [12, 102]
    assert len(found["capture"]) == len(found["folded"]) == 2 and min(found["capture"]) > 0


def test_work_grows_no_more_than_the_graph(benchmarks):
    """Counted, not timed: how many functions are called for a graph, and for ten times its nodes."""
    from inside_autograd import Graph, draw

    def calls(run):
        count = 0

        def counted(frame, event, argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(counted)
        try:
            run()
        finally:
            sys.setprofile(None)
        return count

    s = benchmarks.subjects
    for small, large in (
        (s.chain(140), s.chain(1_400)),
        (s.cnn(11), s.cnn(110)),
        (s.fan_in(400), s.fan_in(4_000)),
    ):
        both = []
        for subject in (small, large):
            model, inputs = subject.make()
            out = model(*inputs)
            graph = Graph.of(out, model)
            draw(graph, fold=True)
            reading = calls(lambda out=out, model=model: Graph.of(out, model))
            drawing = calls(lambda graph=graph: draw(graph, fold=True).svg)
            both.append((len(graph), reading, drawing))
        nodes, reading, drawing = (large / small for small, large in zip(*both, strict=True))
        assert reading <= 1.2 * nodes and drawing <= 1.2 * nodes, (small.key, both)


# --- what a picture tells


def test_this_helper_shows_what_the_page_says(benchmarks):
    found = {q: benchmarks.shows.shows("inside_autograd", q) for q in benchmarks.shows.QUESTIONS}
    assert list(found.values()) == [True] * 7 + ["option"] + [False] * 3
    assert found["both edges of `h * h`"] is True and found["the module that an operation is in"] is False


def test_addresses_are_no_difference_between_pictures(benchmarks):
    same = benchmarks.shows.same_names
    assert same("140123456789 -> 140987654321 <!-- one -->") == same("140555555555 -> 140444444444 ")
    assert same("140123456789 -> 140987654321") != same("140123456789 -> 140123456789")


# --- what comes back from the processes


def python(code):
    return [sys.executable, "-c", code]


def test_lines_are_gathered_by_measure(bench):
    lines = [
        {"nodes": 9},
        {"start": "a"},
        {"measure": "a", "first": 4.5, "bytes": 5},
        {"measure": "a", "seconds": 0.5},
        {"measure": "a", "seconds": 1.5},
    ]
    out = "\n".join(["a tool's own words", *map(json.dumps, lines), "[1]", "7"])
    assert bench.gather(out, False, 0) == {
        "nodes": 9,
        "measures": {"a": {"seconds": [0.5, 1.5], "first": 4.5, "bytes": 5}},
    }


def test_a_process_that_takes_too_long_is_ended_and_what_it_said_stands(bench):
    code = (
        "import json,time; print(json.dumps({'start': 'a'})); print(json.dumps({'start': 'b'}));"
        "print(json.dumps({'measure': 'a', 'seconds': 2.0}), flush=True); time.sleep(60)"
    )
    result = bench.run_one(python(code), limit=3)
    assert result == {"measures": {"a": {"seconds": [2.0]}}, "end": "time", "hung": "b"}


def test_a_process_that_fails_tells_how(bench):
    assert bench.run_one(python("import nonesuch"), limit=30)["end"] == (
        "ModuleNotFoundError: No module named 'nonesuch'"
    )
    assert bench.run_one(python("import os; os._exit(3)"), limit=30)["end"] == "ended with code 3"


def test_what_a_tool_could_not_finish_it_is_not_given_in_a_larger_size(bench, benchmarks):
    commands = []

    def run(command, limit):
        commands.append(command[2:])
        return (
            {"measures": {}, "hung": "unfolded"}
            if command[2:4] == ["lstm-30", "torchviz"]
            else {"measures": {}}
        )

    subjects = [benchmarks.subjects.find(key) for key in ("lstm-30", "lstm-100", "chain-100")]
    results = bench.measure(subjects, 60, run)
    assert commands[1] == ["lstm-30", "torchviz", "7", "60"]
    assert commands[6] == ["lstm-100", "torchviz", "7", "60", "unfolded"]
    assert [len(command) for command in commands] == [4] * 6 + [5] + [4] * 8
    assert results["LSTM, 100 steps"]["torchviz"]["skipped"] == {"unfolded": "LSTM, 30 steps"}


def test_this_helper_is_measured_before_the_others_and_after_them(bench, benchmarks):
    runs = [
        {"nodes": 9, "measures": {"a": {"seconds": [1.0], "bytes": 5}, "b": {"seconds": [4.0]}}},
        {
            "nodes": 9,
            "measures": {"a": {"seconds": [3.0], "bytes": 5}, "c": {"seconds": [7.0]}},
            "end": "time",
        },
    ]
    tools = []

    def run(command, limit):
        tools.append(command[3])
        return runs[tools.count("inside_autograd") - 1]

    results = bench.measure([benchmarks.subjects.find("cnn-1")], 60, run)["CNN, 1 block"]
    assert tools == ["inside_autograd", "torchviz", "torchview", "torchlens", "inside_autograd"]
    assert results["torchviz"] == runs[0]  # the others' results are their own
    assert results["inside_autograd"] == {
        "nodes": 9,
        "measures": {
            "a": {"seconds": [1.0, 3.0], "bytes": 5},
            "b": {"seconds": [4.0]},
            "c": {"seconds": [7.0]},
        },
        "end": "time",
    }


def test_a_subject_that_is_not_there_is_told_in_one_sentence(bench):
    with pytest.raises(SystemExit) as caught:
        bench.main(["cnn-1", "cnn-2"])
    assert str(caught.value).startswith("There is no subject 'cnn-2': choose from cnn-1, cnn-8, ")


def test_without_graphviz_one_sentence_says_so(bench, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"^Graphviz's dot is not on the path: install Graphviz"):
        bench.main(["cnn-1"])


def test_results_are_rounded_and_stand_a_line_for_each_tool(bench):
    results = {"runs": 7, "subjects": {"small": {"a": {"seconds": [0.00123456]}, "b": {"bytes": 5}}}}
    text = bench.text_of(bench.rounded(results))
    assert json.loads(text)["subjects"]["small"]["a"] == {"seconds": [0.001235]}
    assert '\n"a": {"seconds": [0.001235]},\n"b": {"bytes": 5}\n' in text


# --- the page


def results():
    ours = {
        "nodes": 1500,
        "measures": {
            "capture": {"seconds": [0.002, 0.001, 0.003], "first": 9.0},
            "capture_saved": {"seconds": [0.004, 0.005]},
            "unfolded": {"seconds": [0.1] * 3, "bytes": 40_000, "own": 3.4, "boxes": 1500},
            "folded": {"seconds": [0.01] * 3, "boxes": 12, "bytes": 2_000, "own": 2.0},
            "backward": {"seconds": [0.01] * 3},
            "replay": {"seconds": [0.15] * 3},
        },
    }
    viz = {
        "measures": {
            "capture": {"seconds": [0.012] * 3},
            "capture_saved": {"seconds": [], "error": "RecursionError", "message": "deep"},
            "unfolded": {"seconds": [], "first": 2.0, "bytes": 100_000, "own": 1.2, "dot": 10.0},
        },
    }
    lens = {
        "measures": {"capture": {"seconds": [], "error": "OddError", "message": ""}},
        "end": "time",
        "hung": "unfolded",
        "skipped": {"forward": "tiny"},
    }
    gone = {"measures": {}, "end": "ModuleNotFoundError: No module named 'torchview'"}
    names = ("python", "system", "torch", "torchviz", "torchview", "torchlens", "dot")
    shown = {"size": [766, 1291], "bytes": 11_996, "boxes": 25, "edges": 26}
    ours_shown = shown | {"closed": {"size": [424, 576], "boxes": 12, "edges": 11}}
    return {
        "versions": {name: f"<{name}>" for name in names},
        "limit": 60,
        "runs": 3,
        "import": [0.05, 0.04, 0.06],
        "subjects": {
            "small": {"inside_autograd": ours, "torchviz": viz, "torchview": gone, "torchlens": lens}
        },
        "growth": {
            "chain": {"nodes": [142, 1402], "capture": [9.0, 8.0, 10.0], "folded": [13.0, 12.5, 14.0]}
        },
        "shows": {
            "a name": {
                "inside_autograd": True,
                "torchviz": "option",
                "torchlens, backward": "AttributeError",
                "torchlens, forward": False,
                "torchview": False,
            }
        },
        "pictures": {"cnn-32": {"inside_autograd": ours_shown, "torchviz": shown | {"shown": [700, 460]}}},
    }


def rows(text, name):
    """The cells of each row of that name, without the name."""
    lines = text.replace("\u2060", "").splitlines()
    found = [line for line in lines if line.startswith(f"| {name}")]
    return [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in found]


def test_page_of_a_run(benchmarks):
    text = benchmarks.page.page(results())
    reading, saved, drawing, folded, size, memory, replay = rows(text, "small |")
    assert reading == [
        "1,500",
        "2.0 (1.0–3.0)",
        "12.0 (12.0–12.0)",
        "**6.0**",
        "OddError",
    ]
    assert saved == ["4.5 (4.0–5.0, 2\u00a0runs)", "recursion limit", "–"]
    assert drawing == ["100 (100–100)", "2,000 (1\u00a0run)", "**20.0**", "over 60 s"]
    assert folded == ["12", "10.0 (10.0–10.0)", "–", "–", "not tried", "failed"]
    assert size == ["40", "100", "40%", "–", "2", "–", "–", "–"]
    assert memory == ["3", "2", "11", "–", "–", "–"]
    assert replay == ["10.0 (10.0–10.0)", "150 (150–150)", "**15.0**"]
    assert rows(text, "chain |") == [["142 and 1,402", "9.0 (8.0–10.0)", "13.0 (12.5–14.0)"]]
    assert rows(text, "a name |") == [["yes", "on request", "`AttributeError`", "no", "no"]]
    drawn = "25 boxes and 26 arrows on 766 by 1,291 px; 12 kB."
    assert f"`make_dot(loss, params)`**. {drawn}" in text
    closed = "12 boxes and 11 arrows on 424 by 576 px before a click."
    assert f"{closed} The saved file shows one of the repeats as well: {drawn}" in text
    assert 'width="700" height="460" loading="lazy"' in text


def test_aims_say_what_is_reached_and_what_is_missed(benchmarks):
    text = benchmarks.page.page(results())
    assert rows(text, "Reading the graph: 5 times") == [["6.0 times", "reached"]]
    assert rows(text, "A finished SVG") == [["20.0 times", "reached"]]
    assert rows(text, "Its bytes") == [["40% to 40%", "reached"]]
    assert rows(text, "The folded drawing: at most") == [["at most 12", "reached"]]
    assert rows(text, "`replay`") == [["15.0 times; 1\u00a0of\u00a01", "reached"]]
    assert rows(text, "`import") == [["50.0 (40.0–60.0) ms", "reached"]]
    assert rows(text, "Reading, of ten times the nodes") == [["9.0 times", "reached"]]
    assert rows(text, "The folded drawing, of ten times") == [["13.0 times", "missed"]]
    two = results()
    other = json.loads(json.dumps(two["subjects"]["small"]))
    other["inside_autograd"]["measures"]["capture"]["seconds"] = [0.004] * 3
    two["subjects"]["other"] = other
    text = benchmarks.page.page(two)
    assert rows(text, "Reading the graph: 5 times") == [["3.0 to 6.0 times; 1\u00a0of\u00a02", "in part"]]


def test_tables_are_even(benchmarks):
    text = benchmarks.page.page(results())
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) == 10
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1, table


def test_the_page_in_the_book_is_the_one_of_the_results(benchmarks):
    found = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
    assert (ROOT / "book" / "bench.md").read_text(encoding="utf-8") == benchmarks.page.page(found)
    assert (HERE / "results.json").read_text(encoding="utf-8") == benchmarks.bench.text_of(found) + "\n"
    assert list(found["subjects"]) == [one.name for one in benchmarks.subjects.SUBJECTS]


def test_pictures_of_the_page_are_there_and_small():
    text = (ROOT / "book" / "bench.md").read_text(encoding="utf-8")
    shown = re.findall(r'<img src="\.\./_static/bench/([^"]+)"', text)
    assert len(shown) == 6
    folder = ROOT / "book" / "_static" / "bench"
    assert sorted(shown) == sorted(path.name for path in folder.iterdir())
    assert all(path.stat().st_size < 40_000 for path in folder.iterdir())
    drawings = re.findall(r":file: (\S+)", text)
    assert len(drawings) == 2
    assert all("<svg" in (ROOT / "book" / name).read_text(encoding="utf-8") for name in drawings)

"""The results of a run as a page of the book."""

from statistics import median

TITLE = "# How fast it is, next to other tools"
OURS = "inside_autograd"
SAYS = {
    "time": "over {limit:g} s",
    "RecursionError": "recursion limit",
    "CalledProcessError": "`dot` failed",
    "ValueError": "refused",  # by replay: past the limits
}


def page(results: dict) -> str:
    """The whole page, in Markdown."""
    v, limit = results["versions"], results["limit"]
    lines = [
        TITLE,
        "",
        "This page is written by `make bench`. Every figure comes from one run, on one machine: read the",
        "ratios, not the milliseconds.",
        "",
        f"- Python {v['python']}, torch {v['torch']}, {v['system']}; torchviz {v['torchviz']}, torchview "
        f"{v['torchview']}, torchlens {v['torchlens']}, Graphviz {v['dot']}.",
        f"- Each tool gets each subject in a process of its own, for {limit:g} seconds. A time is the median",
        f"  of {results['runs']} measurements, with the fastest and the slowest in brackets; where one run",
        "  is short, each measurement is of many. It is processor time, `dot`'s included.",
        f"- `import inside_autograd`, after `import torch`: {_time(results['import'])} ms.",
        "- torchviz and this helper read the backward graph that is there. torchview and torchlens run the",
        "  model and draw the *forward* pass: their times include that pass, and their pictures show",
        "  something else.",
        "",
        "## Reading the graph",
        "",
        "Like with like: `make_dot(loss, params)` lists names, edges and the shapes of leaves;",
        "`Graph.of(loss, params, saved=False)` reads those, the shape, dtype and device of every output, and",
        "what is freed. With `show_saved=True` and `saved=True` both read saved tensors as well.",
        "Milliseconds.",
        "",
        *_table(
            results,
            "nodes|this helper|torchviz|ratio|with saved|torchviz|ratio|torchview|torchlens",
            lambda s: [
                _nodes(s),
                _cell(s, OURS, "capture", limit),
                _cell(s, "torchviz", "capture", limit),
                _ratio(s, "capture"),
                _cell(s, OURS, "capture_saved", limit),
                _cell(s, "torchviz", "capture_saved", limit),
                _ratio(s, "capture_saved"),
                _cell(s, "torchview", "capture", limit),
                _cell(s, "torchlens", "capture", limit),
            ],
        ),
        "",
        "## From the result to a finished SVG",
        "",
        "`draw(loss, params, fold=False)` against `make_dot` and `dot -Tsvg`; the last columns are the",
        "folded drawing, which `draw` makes of large graphs when it is not told otherwise. Milliseconds.",
        "",
        *_table(
            results,
            "this helper|torchviz|ratio|torchview|torchlens|folded|boxes",
            lambda s: [
                _cell(s, OURS, "unfolded", limit),
                _cell(s, "torchviz", "unfolded", limit),
                _ratio(s, "unfolded"),
                _cell(s, "torchview", "unfolded", limit),
                _cell(s, "torchlens", "unfolded", limit),
                _cell(s, OURS, "folded", limit),
                str(_fact(s, OURS, "folded", "boxes")),
            ],
        ),
        "",
        "## Size and memory",
        "",
        "Kilobytes of the unfolded SVG, and by how many megabytes our process grew to make the first one,",
        "with all that it imports for it. (`dot` is a program of its own: its memory is not measured.)",
        "",
        *_table(
            results,
            "SVG|torchviz|share|torchview|torchlens|memory",
            lambda s: [
                _size(s, OURS),
                _size(s, "torchviz"),
                _share(s),
                _size(s, "torchview"),
                _size(s, "torchlens"),
                str(_fact(s, OURS, "unfolded", "memory")),
            ],
        ),
        "",
        "## Recording a backward pass",
        "",
        "`replay(loss, params=model)` against `loss.backward()`. Milliseconds.",
        "",
        *_table(
            results,
            "backward|replay|times as long",
            lambda s: [_cell(s, OURS, "backward", limit), _cell(s, OURS, "replay", limit), _replay(s)],
        ),
        "",
    ]
    return "\n".join(lines)


def _table(results: dict, heads: str, row) -> list[str]:
    count = heads.count("|") + 1
    lines = ["| | " + heads.replace("|", " | ") + " |", "|:--|" + "--:|" * count]
    return lines + [f"| {name} | " + " | ".join(row(s)) + " |" for name, s in results["subjects"].items()]


def _measure(subject: dict, tool: str, name: str) -> dict:
    return subject.get(tool, {}).get("measures", {}).get(name, {})


def _nodes(subject: dict) -> str:
    return f"{subject[OURS]['nodes']:,}" if "nodes" in subject.get(OURS, {}) else "–"


def _time(seconds: list[float]) -> str:
    low, middle, high = (_figure(value * 1e3) for value in (min(seconds), median(seconds), max(seconds)))
    return f"{middle} ({low}–{high})"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _cell(subject: dict, tool: str, name: str, limit: float) -> str:
    """A time with its spread, or why there is none."""
    entry = _measure(subject, tool, name)
    if entry.get("seconds"):
        return _time(entry["seconds"])
    error = entry.get("error")
    if error:
        return SAYS.get(error, error).format(limit=limit)
    end = subject.get(tool, {}).get("end")
    return SAYS["time"].format(limit=limit) if end == "time" else "failed" if end else "–"


def _ratio(subject: dict, name: str) -> str:
    """How many times as long torchviz takes."""
    both = [_measure(subject, tool, name).get("seconds") for tool in (OURS, "torchviz")]
    return f"**{median(both[1]) / median(both[0]):.1f}**" if all(both) else "–"


def _replay(subject: dict) -> str:
    both = [_measure(subject, OURS, name).get("seconds") for name in ("backward", "replay")]
    return f"**{median(both[1]) / median(both[0]):.1f}**" if all(both) else "–"


def _fact(subject: dict, tool: str, name: str, fact: str):
    return _measure(subject, tool, name).get(fact, "–")


def _size(subject: dict, tool: str) -> str:
    size = _fact(subject, tool, "unfolded", "bytes")
    return size if size == "–" else f"{size / 1e3:,.0f}"


def _share(subject: dict) -> str:
    both = [_fact(subject, tool, "unfolded", "bytes") for tool in (OURS, "torchviz")]
    return "–" if "–" in both else f"{both[0] / both[1]:.0%}"

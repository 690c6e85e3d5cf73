"""The results of a run as a page of the book."""

import cells
from aims import aims
from cells import OURS, bold, count, kilobytes, memory, nodes, ratio, replay_ratio, share, table, time
from gallery import gallery

TOOLS = {
    OURS: "this helper",
    "torchviz": "torchviz",
    "torchlens, backward": "torchlens, backward",
    "torchlens, forward": "torchlens, forward",
    "torchview": "torchview",
}
ANSWERS = {True: "yes", False: "no", "option": "on request"}


def page(results: dict) -> str:
    """The whole page, in Markdown."""
    parts = [
        _opening(results["versions"]),
        ["## What we aim for", "", AIMS, "", *aims(results)],
        _how(results),
        tables(results),
        ["## Ten times the nodes", "", GROWTH, "", *_growth(results["growth"])],
        ["## What a picture tells", "", SHOWS, "", *_shows(results["shows"])],
        gallery(results["pictures"]),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _opening(v: dict) -> list[str]:
    return [
        "# Next to other tools",
        "",
        "The drawings in this book come from its own helper. Other tools draw models too, and draw them",
        "well. This page measures them side by side, and shows what each picture tells you and what it",
        "leaves out, so that you can choose.",
        "",
        f"- **torchviz** {v['torchviz']} draws the backward graph: `make_dot(loss, params)`, then",
        f"  Graphviz's `dot` {v['dot']}.",
        f"- **torchlens** {v['torchlens']} runs your model and draws the forward pass. It can then run a",
        "  backward pass and draw that one's graph as well. It too calls `dot`.",
        f"- **torchview** {v['torchview']} runs your model, draws the forward pass, and calls `dot`.",
        "- This helper draws the backward graph, and needs no Graphviz.",
        "",
        f"Every figure comes from one run of `make bench`, with Python {v['python']} and torch {v['torch']}",
        f"on {v['system']}. Another machine gives other milliseconds: read the ratios.",
    ]


AIMS = "Where an aim is missed, that is what we work on next. A count says on how many subjects it is met."
GROWTH = """\
How many times as long this helper takes for a graph of the same kind with ten times the nodes: 10 is in
proportion, and less means that a part of the work does not grow. Small and large take turns. The processor's
caches are emptied before each run, as the forward pass of a real model empties them."""
SHOWS = """\
Two models differ in one thing. Do a tool's two pictures differ? *On request* means: not by itself, but with
`show_attrs` and `show_saved` (torchviz), `show_saved_for_backward` (torchlens), or with `saved=True` and when
you point at a box (this helper). An error is what the tool raised. The models are small: nothing is folded
here. A folded drawing of this helper does name modules, those that repeat."""


def _how(results: dict) -> list[str]:
    limit, runs = results["limit"], results["runs"]
    return [
        "## How to read the tables",
        "",
        f"A time is the median of {runs} measurements in milliseconds, with the fastest and the slowest in",
        "brackets. Where one run is short, each measurement is the average of many. It is processor time,",
        "and `dot`'s is included. The first run, which imports and warms up, does not count. This helper,",
        "to which all ratios are, is measured twice as often: before the other tools and after them.",
        "",
        f"Each tool has {limit:g} seconds for each subject, in a process of its own. *Over {limit:g} s*",
        "means that the time was up before one run had ended; the larger subject of that kind is then *not",
        "tried*.",
        f"Where there was time for fewer than {runs} measurements, the number stands beside them. A",
        "*recursion limit* is Python's: the tool calls itself once for each step of a chain. A dash means",
        "that no time was left for it, or that there is nothing to compare.",
    ]


def tables(results: dict) -> list[str]:
    """What was measured on each subject."""

    def rows(of) -> list[list[str]]:
        return [[name, *of(subject)] for name, subject in results["subjects"].items()]

    def t(subject: dict, tool: str, name: str) -> str:
        return time(results, subject, tool, name)

    def percent(value: float | None) -> str:
        return "–" if value is None else f"{value:.0%}"

    return [
        "## Reading the graph",
        "",
        "Like with like: `make_dot(loss, params)` lists names, edges and the shapes of leaves;",
        "`Graph.of(loss, params, saved=False)` reads those, the shape, dtype and device of every output, and",
        "what is freed. torchlens runs the model and a backward pass, and keeps all values. The chain of",
        "5,000 is longer than this helper reads: it stops after 1,500 nodes on a path, and says so.",
        "",
        *table(
            "model|nodes|this helper|torchviz|ratio|torchlens",
            rows(
                lambda s: [
                    f"{nodes(s):,}" if nodes(s) else "–",
                    t(s, OURS, "capture"),
                    t(s, "torchviz", "capture"),
                    bold(ratio(s, "capture")),
                    t(s, "torchlens", "capture"),
                ]
            ),
        ),
        "",
        "With `show_saved=True` and `saved=True` both read saved tensors as well:",
        "",
        *table(
            "model|this helper|torchviz|ratio",
            rows(
                lambda s: [
                    t(s, OURS, "capture_saved"),
                    t(s, "torchviz", "capture_saved"),
                    bold(ratio(s, "capture_saved")),
                ]
            ),
        ),
        "",
        "## From the result to a finished picture",
        "",
        "The backward graph as an SVG with nothing folded: `draw(loss, params, fold=False)`, against",
        "`make_dot` and `dot -Tsvg`, and against torchlens's `log_backward` and `draw_backward`.",
        "",
        *table(
            "model|this helper|torchviz|ratio|torchlens",
            rows(
                lambda s: [
                    t(s, OURS, "unfolded"),
                    t(s, "torchviz", "unfolded"),
                    bold(ratio(s, "unfolded")),
                    t(s, "torchlens", "unfolded"),
                ]
            ),
        ),
        "",
        "## Folded, and forward",
        "",
        "`draw(loss, params)` folds what repeats in a large graph. Its boxes are those of the saved file,",
        "which shows below the graph what is in a folded box; on a page that opens with a click. torchlens",
        "folds repeated modules of the forward pass when asked: `draw(fold_repeats=True)`. The last two",
        "columns are the whole forward pass. Times of torchlens and torchview include that pass, which they",
        "run to follow it.",
        "",
        *table(
            "model|boxes|this helper|boxes|torchlens, folded|torchlens, forward|torchview",
            rows(
                lambda s: [
                    count(s, OURS, "folded", "boxes"),
                    t(s, OURS, "folded"),
                    count(s, "torchlens", "forward_folded", "boxes"),
                    t(s, "torchlens", "forward_folded"),
                    t(s, "torchlens", "forward"),
                    t(s, "torchview", "forward"),
                ]
            ),
        ),
        "",
        "## Bytes",
        "",
        "Kilobytes of the SVG. The share is this helper's, unfolded, of torchviz's.",
        "",
        *table(
            "model|this helper|torchviz|share|torchlens"
            "|this helper, folded|torchlens, folded|torchlens, forward|torchview",
            rows(
                lambda s: [
                    kilobytes(s, OURS, "unfolded"),
                    kilobytes(s, "torchviz", "unfolded"),
                    percent(share(s)),
                    kilobytes(s, "torchlens", "unfolded"),
                    kilobytes(s, OURS, "folded"),
                    kilobytes(s, "torchlens", "forward_folded"),
                    kilobytes(s, "torchlens", "forward"),
                    kilobytes(s, "torchview", "forward"),
                ]
            ),
        ),
        "",
        "## Memory",
        "",
        "Megabytes, at the peak, that the picture adds to a process which has run the model: what the tool",
        "imports, what it builds, and all of `dot`. Most of this helper's is the library that lays boxes",
        "out.",
        "",
        *table(
            "model|this helper|this helper, folded|torchviz|torchlens|torchlens, forward|torchview",
            rows(
                lambda s: [
                    memory(s, OURS, "unfolded"),
                    memory(s, OURS, "folded"),
                    memory(s, "torchviz", "unfolded"),
                    memory(s, "torchlens", "unfolded"),
                    memory(s, "torchlens", "forward"),
                    memory(s, "torchview", "forward"),
                ]
            ),
        ),
        "",
        "## Recording a backward pass",
        "",
        "`replay(loss, params=model)` runs the pass and records every step of it, with values. Beside it, a",
        "plain `loss.backward()`. A chain past the limit of 1,500 nodes on a path is refused.",
        "",
        *table(
            "model|backward|replay|times as long",
            rows(lambda s: [t(s, OURS, "backward"), t(s, OURS, "replay"), bold(replay_ratio(s))]),
        ),
    ]


def _growth(growth: dict) -> list[str]:
    rows = []
    for name, found in growth.items():
        small, large = found["nodes"]
        spreads = [cells.spread(found[measure], 1) for measure in ("capture", "folded")]
        rows.append([name, f"{small:,} and {large:,}", *spreads])
    return table("kind|nodes|reading|folded drawing", rows)


def _shows(shows: dict) -> list[str]:
    def answer(value) -> str:
        return ANSWERS.get(value, f"`{value}`")

    rows = [[question, *(answer(found[tool]) for tool in TOOLS)] for question, found in shows.items()]
    return table("|".join(["what differs", *TOOLS.values()]), rows)

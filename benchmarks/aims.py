"""What the helper is to reach, and what a run says of it."""

from statistics import median

from cells import OURS, entry, figure, nodes, ratio, replay_ratio, share, spread, table, typical

LARGE = 1_500  # nodes from which a drawing is to be ten times as fast
OF = "\u00a0of\u00a0"  # a narrow column keeps the count on one line
YES, PARTLY, NO = "reached", "in part", "missed"


def aims(results: dict) -> list[str]:
    """The table of aims, in lines of Markdown."""
    subjects = list(results["subjects"].values())
    rows = [
        _capture(subjects, "capture", "Reading the graph: 5 times as fast as torchviz, on every subject"),
        _capture(subjects, "capture_saved", "The same, with saved tensors"),
        *_drawing(subjects),
        _bytes(subjects),
        *_folded(subjects),
        _replay(subjects),
        _import(results["import"]),
        *_growth(results["growth"]),
    ]
    return table("what we aim for|measured|state", [row for row in rows if row])


def _state(good: list[bool]) -> str:
    return YES if all(good) else PARTLY if any(good) else NO


def _range(values: list[float], unit: str = "") -> str:
    low, high = figure(min(values)), figure(max(values))
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _times(aim: str, ratios: list[float], least: float) -> list[str]:
    if not ratios:
        return []
    good = [one >= least for one in ratios]
    counted = "" if all(good) or len(good) == 1 else f"; {sum(good)}{OF}{len(good)}"
    return [aim, f"{_range(ratios)} times{counted}", _state(good)]


def _capture(subjects: list[dict], name: str, aim: str) -> list[str]:
    return _times(aim, [one for s in subjects if (one := ratio(s, name)) is not None], 5)


def _drawing(subjects: list[dict]) -> list[list[str]]:
    large, small = [], []
    for subject in subjects:
        found = ratio(subject, "unfolded")
        if found is not None:
            (large if nodes(subject) >= LARGE else small).append(found)
    return [
        _times(f"A finished SVG, unfolded: 10 times as fast from {LARGE:,} nodes up", large, 10),
        _times("Below that, not slower", small, 1),
    ]


def _bytes(subjects: list[dict]) -> list[str]:
    shares = [one for s in subjects if (one := share(s)) is not None]
    if not shares:
        return []
    measured = f"{min(shares):.0%} to {max(shares):.0%}"
    return ["Its bytes: at most half of torchviz's", measured, _state([one <= 0.5 for one in shares])]


def _folded(subjects: list[dict]) -> list[list[str]]:
    found = [one for s in subjects if (one := entry(s, OURS, "folded")) and typical(one) is not None]
    boxes, seconds = [one["boxes"] for one in found], [typical(one) for one in found]
    return [
        ["The folded drawing: at most 150 boxes", f"at most {max(boxes)}", _state([b <= 150 for b in boxes])],
        [
            "The folded drawing: under half a second",
            f"at most {figure(max(seconds) * 1e3)} ms",
            _state([one < 0.5 for one in seconds]),
        ],
    ]


def _replay(subjects: list[dict]) -> list[str]:
    ratios = [one for s in subjects if (one := replay_ratio(s)) is not None]
    good = [one < 20 for one in ratios]
    measured = f"{_range(ratios)} times; {sum(good)}{OF}{len(good)}"
    return ["`replay`: less than 20 times a plain backward pass", measured, _state(good)]


def _import(seconds: list[float]) -> list[str]:
    return [
        "`import inside_autograd`, after torch: less than 100 ms",
        f"{spread(seconds)} ms",
        YES if median(seconds) < 0.1 else NO,
    ]


def _growth(growth: dict) -> list[list[str]]:
    rows = []
    for name, aim in (("capture", "Reading"), ("folded", "The folded drawing")):
        ratios = [median(one[name]) for one in growth.values()]
        rows.append(
            [
                f"{aim}, of ten times the nodes: at most 12 times as long",
                f"{_range(ratios)} times",
                _state([one <= 12 for one in ratios]),
            ]
        )
    return rows

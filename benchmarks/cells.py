"""The figures of a run, as the cells of a table show them."""

from statistics import median

OURS = "inside_autograd"
TO = "\u2060–\u2060"  # joined on both sides: a narrow column breaks a line before the bracket, not here
SAYS = {
    "RecursionError": "recursion limit",
    "CalledProcessError": "`dot` failed",
    "ValueError": "refused",  # by replay: past the limits
}


def entry(subject: dict, tool: str, name: str) -> dict:
    return subject.get(tool, {}).get("measures", {}).get(name, {})


def typical(found: dict) -> float | None:
    """The median of the runs; of a tool that had time for no more than the first one, that."""
    return median(found["seconds"]) if found.get("seconds") else found.get("first")


def figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def spread(values: list[float], scale: float = 1e3) -> str:
    """The median, then the smallest and the largest; in milliseconds, of seconds."""
    low, middle, high = (figure(value * scale) for value in (min(values), median(values), max(values)))
    return f"{middle} ({low}{TO}{high})"


def time(results: dict, subject: dict, tool: str, name: str) -> str:
    """A time with its spread, or why there is none."""
    found, whole = entry(subject, tool, name), subject.get(tool, {})
    seconds = found.get("seconds", [])
    if len(seconds) >= results["runs"]:
        return spread(seconds)
    if len(seconds) > 1:
        return f"{spread(seconds)[:-1]}, {len(seconds)}\u00a0runs)"
    if typical(found) is not None:
        return f"{figure(typical(found) * 1e3)} (1\u00a0run)"
    if "error" in found:
        return SAYS.get(found["error"], found["error"])
    if name in whole.get("skipped", {}):
        return "not tried"
    if whole.get("hung") == name:
        return f"over {results['limit']:g} s"
    return "failed" if whole.get("end", "time") != "time" else "–"


def ratio(subject: dict, name: str, tool: str = "torchviz", base: str = OURS) -> float | None:
    """How many times as long the tool takes."""
    both = [typical(entry(subject, one, name)) for one in (base, tool)]
    return both[1] / both[0] if all(both) else None


def replay_ratio(subject: dict) -> float | None:
    both = [typical(entry(subject, OURS, name)) for name in ("backward", "replay")]
    return both[1] / both[0] if all(both) else None


def bold(value: float | None) -> str:
    return "–" if value is None else f"**{value:,.0f}**" if value >= 100 else f"**{value:.1f}**"


def count(subject: dict, tool: str, name: str, fact: str) -> str:
    found = entry(subject, tool, name).get(fact)
    return "–" if found is None else f"{found:,}"


def nodes(subject: dict) -> int:
    return subject.get(OURS, {}).get("nodes", 0)


def kilobytes(subject: dict, tool: str, name: str) -> str:
    size = entry(subject, tool, name).get("bytes")
    return "–" if size is None else f"{size / 1e3:,.0f}"


def share(subject: dict) -> float | None:
    """Our bytes as a part of torchviz's."""
    both = [entry(subject, tool, "unfolded").get("bytes") for tool in (OURS, "torchviz")]
    return both[0] / both[1] if all(both) else None


def memory(subject: dict, tool: str, name: str) -> str:
    """Megabytes of the process and of ``dot``, together."""
    found = entry(subject, tool, name)
    return f"{found['own'] + found.get('dot', 0):,.0f}" if "own" in found else "–"


def table(heads: str, rows: list[list[str]]) -> list[str]:
    """Lines of Markdown; ``heads`` has the names of the columns, with | between them."""
    lines = [f"| {heads.replace('|', ' | ')} |", "|:--|" + "--:|" * heads.count("|")]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]

"""Which module an operation belongs to, told by the names of the parameters that it reads."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise

from .graph import Graph

MARK = "\0"  # stands for the number in the path of a series
NUMBER = re.compile(r"(\d{1,9})")

Instance = tuple[tuple[str, ...], str]  # of layers.3: the path with a mark in place of the number, and "3"


def owners(graph: Graph, order: list[int]) -> list[tuple[str, ...]]:
    """For each operation of the order the path of the module whose parameters it reads; empty if unknown."""
    prepared: dict[int, tuple[str, ...]] = {}  # from one parameter and nothing else, such as its transpose
    found: list[tuple[str, ...]] = []
    for index in reversed(order):
        targets = [edge.target for edge in graph.nodes[index].edges if edge.target is not None]
        leaves = [graph.nodes[target] for target in targets if graph.nodes[target].is_leaf]
        paths = [tuple(name.split(".")[:-1]) for leaf in leaves for name in leaf.names]
        if not leaves:
            paths = [prepared[target] for target in targets if target in prepared]
        path = shared(paths)
        if path and len(graph.nodes[index].edges) == 1:
            prepared[index] = path
        found.append(path)
    return found[::-1]


def shared(paths: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """What all paths begin with."""
    paths = list(paths)
    first, last = min(paths, default=()), max(paths, default=())
    many = 0
    while many < min(len(first), len(last)) and first[many] == last[many]:
        many += 1
    return first[:many]


@lru_cache(maxsize=16384)
def instance_of(path: tuple[str, ...], level: int) -> Instance | None:
    """The module on ``path`` that holds the number ``level`` (0 is the first) of the path."""
    for i, part in enumerate(path):
        pieces = NUMBER.split(part)
        numbers = len(pieces) // 2
        if level < numbers:
            at = 2 * level + 1
            rest = "".join(pieces[at + 1 :])
            return (*path[:i], "".join(pieces[:at]) + MARK + rest), pieces[at]
        level -= numbers
    return None


def title(instances: Iterable[Instance]) -> str:
    """``layers.0…11`` for modules of one series; series of several names one after the other."""
    series: dict[tuple[str, ...], dict[int, str]] = {}
    for parts, number in instances:
        series.setdefault(parts, {})[int(number)] = number
    texts = [".".join(parts).replace(MARK, _numbers(found)) for parts, found in series.items()]
    return ", ".join(texts[:3]) + (", …" if len(texts) > 3 else "")


def _numbers(found: dict[int, str]) -> str:
    numbers = sorted(found)
    texts = [found[number] for number in numbers]
    steps = {b - a for a, b in pairwise(numbers)}
    if len(numbers) == 1:
        return texts[0]
    if steps == {1}:
        return f"{texts[0]}…{texts[-1]}"
    if len(numbers) <= 3:
        return ",".join(texts)
    if len(steps) == 1:
        return f"{texts[0]},{texts[1]}…{texts[-1]}"
    return f"{texts[0]}…{texts[-1]} in part"


Name = Callable[[tuple[str, ...]], str]  # of a module on a path; "" where there is none


def outer(depth: int) -> Name:
    """Names the module on a path that lies ``depth`` deep."""
    return lambda path: ".".join(path[:depth]) if len(path) >= depth else ""


def entry(depth: int) -> Name:
    """Names the first entry of a list on a path; on one without any, the module ``depth`` deep."""

    def name(path: tuple[str, ...]) -> str:
        at = next((i for i in range(depth, len(path)) if path[i].isdecimal()), depth - 1)
        return ".".join(path[: at + 1])

    return name


def numbered(level: int) -> Name:
    """Names the module on a path that holds its number ``level``."""
    return lambda path: title([instance]) if (instance := instance_of(path, level)) else ""


def numbers_in(path: tuple[str, ...]) -> int:
    """How many numbers a path holds."""
    return sum(len(NUMBER.findall(part)) for part in path)

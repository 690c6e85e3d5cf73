"""Find the modules of a numbered series, such as ``layers.0`` to ``layers.11``, in the order of the engine.

Which operation belongs to which module is told by the names of the parameters that it reads. What lies
between two modules of a series belongs to one of them, and nothing says to which: the border is set
where most modules come out alike.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from .graph import Graph, Node
from .modules import Instance, instance_of, title
from .repeats import LEAST_SAVED

MOST_UNITS = 8  # numbers of modules that may repeat together
MOST_SPLITS = 64  # borders that are tried between two modules


@dataclass(slots=True)
class Stretch:
    """Where in the order a module reads its parameters: from the first of them to the last."""

    instance: Instance
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """One of the alike: its positions in the order and its modules. ``trimmed``: operations are missing."""

    start: int
    end: int
    modules: tuple[Instance, ...] = ()
    trimmed: bool = False

    @property
    def label(self) -> str:
        return title(self.modules)


@dataclass(frozen=True, slots=True)
class Run:
    """Repeats that follow each other; ``steps``: they are the same modules, again and again."""

    repeats: tuple[Repeat, ...]
    steps: bool = False


def stretches(paths: list[tuple[str, ...]], start: int, end: int, level: int) -> list[Stretch]:
    """The modules of numbered series in a part of the order, without what lies between them."""
    found: list[Stretch] = []
    known: dict[tuple[str, ...], Instance | None] = {}
    for i in range(start, end):
        path = paths[i]
        if not path:
            continue
        if path not in known:
            known[path] = instance_of(path, level)
        instance = known[path]
        if instance is None:
            continue
        if found and found[-1].instance == instance:
            found[-1].end = i + 1
        else:
            found.append(Stretch(instance, i, i + 1))
    return found


def runs(
    graph: Graph, order: list[int], paths: list, apart: set[int], start: int, end: int, level: int
) -> list[Run]:
    """Modules of a series that are alike and follow each other, none overlapping.

    Parameters
    ----------
    graph, order, paths
        The operations in the order of the engine, and the module of each.
    apart
        Nodes that no fold may hide.
    start, end
        The part of the order to look at.
    level
        Which number of the modules' paths counts them: 0 for the first.
    """
    cores = stretches(paths, start, end, level)
    if len(cores) < 2:
        return []
    part = _Part(graph, order, apart, start, end, level)
    alike: dict[object, int] = {}
    kinds = [alike.setdefault((c.instance[0], part.tokens(c.start, c.end)), len(alike)) for c in cores]
    gaps = [part.tokens(cores[i - 1].end if i else start, core.start) for i, core in enumerate(cores)]
    gaps.append(part.tokens(cores[-1].end, end))
    found = []
    for first, unit, times in _periodic(cores, kinds, gaps):
        one = _bordered(cores, gaps, first, unit, times)
        if len(one.places) > 1:
            one.trimmed = _trimmed(part, cores, one)
            found.append(one)
    found = [one for one in found if one.saved >= LEAST_SAVED]
    # What folds most goes first; of equal ones the one with the smaller repeats.
    found.sort(key=lambda one: (-one.saved, one.unit, one.places[0]))
    taken = bytearray(end - start)
    chosen = []
    for one in found:
        a, b = one.places[0] - start, one.end - start
        if not any(taken[a:b]):
            taken[a:b] = b"\1" * (b - a)
            chosen.append(one)
    return [_named(cores, one) for one in sorted(chosen, key=lambda one: one.places[0])]


@dataclass(slots=True)
class _Found:
    """``places``: where each repeat starts, then where the last ends; ``first``: its first core.

    ``trimmed`` is where one more ends that is like the others but for a few missing operations.
    """

    places: list[int]
    first: int
    unit: int
    trimmed: int | None = None

    @property
    def end(self) -> int:
        return self.trimmed or self.places[-1]

    @property
    def saved(self) -> int:
        """How many operations are drawn less."""
        return self.end - self.places[1]


class _Part:
    """A part of the order, with a number for each operation: equal ones for what is alike."""

    def __init__(self, graph: Graph, order: list[int], apart: set[int], start: int, end: int, level: int):
        self.graph, self.order, self.start, self.level = graph, order, start, level
        self.apart = apart
        numbers: dict[object, int] = {}
        self.numbers = [numbers.setdefault(self._key(order[i]), len(numbers)) for i in range(start, end)]

    def tokens(self, a: int, b: int) -> tuple[int, ...]:
        return tuple(self.numbers[a - self.start : b - self.start])

    def _key(self, index: int) -> object:
        if index in self.apart:
            return index
        node = self.graph.nodes[index]
        inputs = tuple("cut" if edge.cut else self.leaf(edge.target) for edge in node.edges)
        return node.name, node.kind, inputs, tuple((o.shape, o.dtype) for o in node.outputs)

    def leaf(self, target: int | None) -> object:
        """What parameters must have in common to be alike; ``None`` for an operation or an empty slot."""
        if target is None or not self.graph.nodes[target].is_leaf:
            return None
        node = self.graph.nodes[target]
        role = ""
        if len(node.names) == 1:  # a shared one may carry the names of several places
            parts = node.names[0].split(".")
            instance = instance_of(tuple(parts[:-1]), self.level)
            role = ".".join(parts[len(instance[0]) :]) if instance else node.names[0]
        return node.shape, node.dtype, role

    def parameters(self, a: int, b: int) -> Counter:
        """How often which parameters are read between two positions."""
        edges = (edge for i in self.order[a:b] for edge in self.graph.nodes[i].edges)
        return Counter(leaf for edge in edges if (leaf := self.leaf(edge.target)))


def _periodic(cores: list[Stretch], kinds: list[int], gaps: list[tuple]) -> list[tuple[int, int, int]]:
    """``(first core, cores in a unit, times)``: units of equal cores with equal gaps, and some lone ones."""
    last: dict[object, int] = {}
    distances: Counter[int] = Counter()
    for i, kind in enumerate(kinds):
        for one in (kind, (kind, gaps[i])):
            if one in last:
                distances[i - last[one]] += 1
            last[one] = i
    found = []
    for unit in sorted(distances, key=lambda d: (-distances[d], d))[:MOST_UNITS]:
        begin = 0
        for i in range(unit, len(kinds) + 1):
            same = i < len(kinds) and kinds[i] == kinds[i - unit]
            if same and (gaps[i] == gaps[i - unit] or i - unit == begin):
                continue
            found.append((begin, unit, (i - begin) // unit))
            begin = i - unit if same else i - unit + 1
    # Of two modules the second may be like the first but for what the input of all does not need.
    series = [core.instance[0] for core in cores]
    whole = [
        (i, 1, 1) for i in range(len(cores) - 1) if series[i] == series[i + 1] and kinds[i] != kinds[i + 1]
    ]
    for begin, unit, times in found:
        # Where the same modules come again, they repeat together: two cells, at every step.
        numbers = [core.instance for core in cores[begin : begin + unit * times]]
        again = next((i for i in range(1, len(numbers)) if numbers[i] == numbers[0]), unit)
        if (
            again > unit
            and again % unit == 0
            and all(a == b for a, b in zip(numbers, numbers[again:], strict=False))
        ):
            unit, times = again, len(numbers) // again
        if times > 1:
            whole.append((begin, unit, times))
    return whole


def _bordered(cores: list[Stretch], gaps: list[tuple], first: int, unit: int, times: int) -> _Found:
    """Set the borders: the first ``split`` operations of a gap go to the module before it."""
    last = first + unit * times - 1
    gap, before, after = gaps[first + unit], gaps[first], gaps[last + 1]

    def whole(split: int) -> tuple[bool, bool]:
        """Whether the first and the last repeat have all that the others have."""
        head, tail = gap[split:], gap[:split]
        return before[len(before) - len(head) :] == head and len(head) <= len(before), after[:split] == tail

    splits = range(min(len(gap), MOST_SPLITS) + 1)
    # A last repeat may lack something, for example what its input does not need; a first one may not.
    split = max(splits, key=lambda split: (sum(whole(split)), whole(split)[0], -split))
    places = [core.start - len(gap) + split for core in cores[first : last + 1 : unit]]
    places.append(cores[last].end + split)
    if not whole(split)[0]:
        places.pop(0)
        first += unit
    if times > 1 and not whole(split)[1]:
        places.pop()
    return _Found(places, first, unit)


def _named(cores: list[Stretch], found: _Found) -> Run:
    """Say which modules each repeat holds."""
    places, unit = list(found.places), found.unit
    times = len(places) - 1
    if found.trimmed:
        places.append(found.trimmed)
    modules = [
        tuple(core.instance for core in cores[found.first + i * unit : found.first + (i + 1) * unit])
        for i in range(len(places) - 1)
    ]
    made = [Repeat(*ends, modules[i], i >= times) for i, ends in enumerate(pairwise(places))]
    return Run(tuple(made), len(set(modules)) == 1)


def _trimmed(part: _Part, cores: list[Stretch], found: _Found) -> int | None:
    """Where the module after the run ends, if it is one of them whose own input needs no gradient."""
    start, end = found.places[-2:]
    many = found.first + found.unit * (len(found.places) - 1)
    last, following = cores[many - found.unit : many], cores[many : many + found.unit]
    if [core.instance[0] for core in following] != [core.instance[0] for core in last]:
        return None
    stop = following[-1].end
    here = [part.graph.nodes[i] for i in part.order[end:stop]]
    if len(here) >= end - start or any(node.index in part.apart for node in here):
        return None
    if any(edge.cut for node in here for edge in node.edges):
        return None
    whole = [part.graph.nodes[i] for i in part.order[start:end]]
    if _empty_slots(here) <= _empty_slots(whole):
        return None
    there = iter(whole)
    for node in here:
        if not any((other.name, other.outputs) == (node.name, node.outputs) for other in there):
            return None  # something is there that the others lack
    return stop if part.parameters(end, stop) == part.parameters(start, end) else None


def _empty_slots(nodes: list[Node]) -> int:
    return sum(edge.target is None for node in nodes for edge in node.edges)

"""Cut the order of the engine into pieces, each of which becomes one box."""

from dataclasses import dataclass

from .graph import Graph
from .modules import Name, shared, title
from .repeats import kept_apart, repeats, tokens_of
from .series import Repeat, Run, runs, stretches

LONGEST_PATTERN = 4  # longer ones are shown once, where one of what repeats is to stay unfolded
LONGEST_GAP = 8  # operations between two modules that go to the one after them
DEEPEST = 4  # numbers in a name that are looked at
LEAST = 5  # operations of a module that is folded though it does not repeat


@dataclass(frozen=True, slots=True)
class Piece:
    """Positions ``start`` to ``end`` of the order. ``repeats`` holds one entry if nothing repeats.

    ``steps`` says that the same modules run again and again, ``sample`` which repeat shows what all hold.
    """

    start: int
    end: int
    title: str = ""
    repeats: tuple[Repeat, ...] = ()
    steps: bool = False
    sample: int = 0


def _single(start: int, end: int) -> list[Piece]:
    return [Piece(i, i + 1) for i in range(start, end)]


def _gathered(start: int, end: int, name: str = "") -> Piece:
    return Piece(start, end, name, (Repeat(start, end),))


def cover(
    graph: Graph,
    order: list[int],
    paths: list,
    level: int,
    *,
    show_one: bool = False,
    patterns: bool = True,
) -> list[Piece]:
    """Pieces for all of the order: what repeats together, all else alone.

    Parameters
    ----------
    graph, order, paths
        The operations in the order of the engine, and the module of each.
    level
        Which number of the modules' paths is the first to count.
    show_one
        Whether one of what repeats stays alone.
    patterns
        Whether operations that repeat fold where their modules do not.
    """
    return _Cover(graph, order, paths, show_one, patterns).part(0, len(order), level)


class _Cover:
    def __init__(self, graph: Graph, order: list[int], paths: list, show_one: bool, patterns: bool):
        self.graph, self.order, self.paths = graph, order, paths
        self.show_one, self.patterns = show_one, patterns
        self.tokens = tokens_of(graph, order) if patterns else []
        self.apart = kept_apart(graph)

    def part(self, start: int, end: int, level: int) -> list[Piece]:
        """Runs of a series first, then what lies between them."""
        if level > DEEPEST or not stretches(self.paths, start, end, level):
            return self._patterns(start, end)
        pieces: list[Piece] = []
        at = start
        found = runs(self.graph, self.order, self.paths, self.apart, start, end, level)
        series = {
            key
            for run in found
            for core in stretches(self.paths, run.repeats[0].start, run.repeats[-1].end, level)
            for key in [core.instance[0]]
        }
        for run in found:
            pieces += self._between(at, run.repeats[0].start, level, series, bool(pieces))
            pieces += self._run(run)
            at = run.repeats[-1].end
        return pieces + self._between(at, end, level, series, bool(pieces))

    def _between(self, start: int, end: int, level: int, series: set, follows: bool) -> list[Piece]:
        """One box for each module of a series that is folded elsewhere; in others, look for repeats."""
        pieces: list[Piece] = []
        at = start
        for core in stretches(self.paths, start, end, level):
            if core.instance[0] not in series:
                pieces += self.part(at, core.end, level + 1)
                follows = False
            elif core.end - core.start < LEAST or self._any_apart(at, core.end):
                pieces += self._patterns(at, core.end)
                follows = False
            else:
                begin = at if follows and core.start - at <= LONGEST_GAP else core.start
                pieces += self._patterns(at, begin)
                pieces.append(_gathered(begin, core.end, title([core.instance])))
                follows = True
            at = core.end
        return pieces + self._patterns(at, end)

    def _any_apart(self, start: int, end: int) -> bool:
        return any(index in self.apart for index in self.order[start:end])

    def _run(self, run: Run) -> list[Piece]:
        repeats, shown = run.repeats, []
        if self.show_one and repeats[0].end - repeats[0].start > LONGEST_PATTERN:
            shown = _single(repeats[0].start, repeats[0].end)
            repeats = repeats[1:]
        name = title(module for repeat in repeats for module in repeat.modules)
        return [*shown, self._repeated(name, repeats, run.steps)]

    def _repeated(self, name: str, repeats: tuple[Repeat, ...], steps: bool) -> Piece:
        """The sample has the fewest empty slots; of equal ones it is the first by number, or by time."""

        def rank(i: int) -> tuple:
            nodes = (self.graph.nodes[index] for index in self.order[repeats[i].start : repeats[i].end])
            empty = sum(edge.target is None for node in nodes for edge in node.edges)
            return repeats[i].trimmed, empty, [int(number) for _, number in repeats[i].modules], -i

        sample = min(range(len(repeats)), key=rank)
        return Piece(repeats[0].start, repeats[-1].end, name, repeats, steps, sample)

    def _patterns(self, start: int, end: int) -> list[Piece]:
        """Patterns of operations that repeat, whatever their modules are called."""
        pieces: list[Piece] = []
        at = start
        found = repeats(self.tokens[start:end]) if self.patterns and end - start > 1 else []
        for first, period, times in found:
            begin, stop = start + first, start + first + period * times
            name = ""
            if period > 1:
                shift = self._shift(begin, stop, period, end)
                begin, stop = begin + shift, stop + shift
                name = self._step(begin, stop, period)
            if self.show_one and period > LONGEST_PATTERN:
                begin += period
            pieces += _single(at, begin)
            parts = tuple(Repeat(i, i + period) for i in range(begin, stop, period))
            pieces.append(self._repeated(name, parts, bool(name)))
            at = stop
        return pieces + _single(at, end)

    def _shift(self, start: int, stop: int, period: int, end: int) -> int:
        """How far to move a run, within what repeats, so that all repeats use the same modules."""
        most = 0
        while (
            stop + most < end
            and most < period
            and self.tokens[stop + most] == self.tokens[stop + most - period]
        ):
            most += 1
        for shift in range(most + 1):
            ends = (start + shift, start + shift + period, stop + shift - period)
            if len({shared(filter(None, self.paths[i : i + period])) for i in ends}) == 1:
                return shift
        return 0

    def _step(self, start: int, stop: int, period: int) -> str:
        """The module whose parameters every repeat uses anew, if there is one."""
        used = [
            {
                edge.target
                for i in self.order[at : at + period]
                for edge in self.graph.nodes[i].edges
                if edge.target is not None and self.graph.nodes[edge.target].is_leaf
            }
            for at in (start, start + period, stop - period)
        ]
        if used[0] != used[1] or used[1] != used[2]:
            return ""
        return ".".join(shared(filter(None, self.paths[start:stop])))


def modules_whole(paths: list, pieces: list[Piece], name: Name, apart: set[int]) -> list[Piece]:
    """Join what is alone and uses parameters of one module; ``name`` gives the module of a path, or "".

    ``apart`` holds the positions of what no fold may hide.
    """
    made: list[Piece] = []
    pending: list[Piece] = []
    last = ""  # the module that the pieces before the pending ones were joined for
    for piece in pieces:
        module = ""
        if piece.end - piece.start == 1 and piece.start not in apart:
            pending.append(piece)
            module = name(paths[piece.start])
            if not module:
                continue
            if module == last:
                made[-1] = _gathered(made[-1].start, piece.end, module)
            elif last and len(pending) <= LONGEST_GAP + 1:
                made.append(_gathered(pending[0].start, piece.end, module))
            else:
                made += [*pending[:-1], _gathered(piece.start, piece.end, module)]
        else:
            made += [*pending, piece]
        pending, last = [], module
    found: list[Piece] = []
    for piece in [*made, *pending]:
        small = len(piece.repeats) == 1 and piece.end - piece.start < LEAST
        found += _single(piece.start, piece.end) if small else [piece]
    return found


def by_module(paths: list, pieces: list[Piece], depth: int) -> list[Piece]:
    """Join neighbors that use parameters of one module, down to ``depth`` dots in the name."""
    joined: list[Piece] = []
    current = None
    for piece in pieces:
        module = next((path[:depth] for path in paths[piece.start : piece.end] if path), None)
        single = piece.end - piece.start == 1
        if joined and single and (module is None or module == current) and len(joined[-1].repeats) < 2:
            joined[-1] = _gathered(joined[-1].start, piece.end)
        else:
            joined.append(piece)
        current = module or current
    return joined


def by_size(many: int, most: int) -> list[Piece]:
    """At most ``most`` pieces of even size."""
    size = -(-many // most)
    return [_gathered(i, min(i + size, many)) for i in range(0, many, size)]

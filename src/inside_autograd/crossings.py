"""Fewer crossings: reorder the layers by where on its box each link starts and ends."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import pairwise

from .columns import Ends

SMALL = 400  # boxes and lanes; where there are no more, more beginnings are tried

Rows = list[list[int]]
Start = Callable[[Rows, bool], Rows]


def fewest_crossings(rows: Rows, up: Ends, down: Ends, start: Start) -> Rows:
    """The best order found from several first ones.

    Parameters
    ----------
    rows
        The numbers of each layer, from left to right.
    up, down
        As in ``Columns``. Each link leads to the next layer.
    start
        Gives an order to begin with, of layers that follow each other; and another where it is told to
        turn round.
    """
    rank = [0] * len(up)
    for row in rows:
        for place, number in enumerate(row):
            rank[number] = place
    # Links on the two sides of a layer that holds one number never cross: what lies between two such
    # layers is a task of its own, and the repeated blocks of a model are one task.
    waists = [i for i, row in enumerate(rows) if i in (0, len(rows) - 1) or len(row) == 1]
    known: dict[tuple, list[list[int]]] = {}
    found = list(rows)
    for first, last in pairwise(waists):
        part = rows[first : last + 1]
        if last == first + 1 and len(part[0]) == len(part[1]) == 1:
            continue
        key = tuple(
            [
                tuple([tuple([(rank[n], start, end) for n, start, end, _ in down[number]]) for number in row])
                for row in part[:-1]
            ]
        )
        if key not in known:
            known[key] = _places(part, start, rank, up, down)
        for i, places in enumerate(known[key], first):
            found[i] = [rows[i][place] for place in places]
    return found


def _places(rows: Rows, start: Start, rank: list[int], up: Ends, down: Ends) -> list[list[int]]:
    """The best order found of some layers, given by the places that their numbers have in ``rows``."""
    place = {number: i for row in rows for i, number in enumerate(row)}
    first = start(rows, False)
    best, found = _Order(first, rank, up, down).improved()
    for other in _others(rows, first, start):
        if not best:
            break
        fewer, order = _Order(other, rank, up, down).improved()
        if fewer < best:
            best, found = fewer, order
    return [[place[number] for number in row] for row in found]


def _others(rows: Rows, first: Rows, start: Start) -> Iterator[Rows]:
    """More orders to begin with. A mirror image is one: what happened to stand left stands right."""
    yield [row[::-1] for row in first]
    if sum(map(len, rows)) <= SMALL:
        turned = start(rows, True)
        yield turned
        yield [row[::-1] for row in turned]


class _Order:
    """An order of the layers. It knows when each layer changed, and looks at nothing twice in vain."""

    def __init__(self, rows: Rows, rank: list[int], up: Ends, down: Ends):
        self.rows, self.up, self.down = [list(row) for row in rows], up, down
        self.rank = rank  # of each number: its place in its layer
        for row in self.rows:
            for i, number in enumerate(row):
                self.rank[number] = i
        self.clock = 1
        # Times by layer, with one more at the end: it stands for the layer before the first, too.
        self.changed = [0] * (len(rows) + 1)
        self.sorted = {1: [-1] * len(rows), -1: [-1] * len(rows)}
        self.untangled, self.counted = [-1] * len(rows), [-1] * len(rows)
        self.crossings = [0] * len(rows)  # between each layer and the next
        self.wide = [i for i, row in enumerate(rows) if len(row) > 1]

    def improved(self) -> tuple[int, Rows]:
        """The fewest crossings found, and the order that has them."""
        best = self._count(), [list(row) for row in self.rows]
        for _ in range(6 if sum(map(len, self.rows)) < 1000 else 2):
            if not best[0]:
                break
            for i in self.wide:
                if i:
                    self._sort(i, -1, self.up)
            for i in reversed(self.wide):
                if i < len(self.rows) - 1:
                    self._sort(i, 1, self.down)
            for _ in range(4):
                if not sum([self._untangle(i) for i in self.wide]):
                    break
            crossings = self._count()
            if crossings < best[0]:
                best = crossings, [list(row) for row in self.rows]
        return best

    def _set(self, i: int, row: list[int]) -> None:
        self.rows[i] = row
        for place, number in enumerate(row):
            self.rank[number] = place
        self.clock += 1
        self.changed[i] = self.clock

    def _sort(self, i: int, step: int, side: Ends) -> None:
        """Order layer ``i`` by the mean place of what each box is linked with in the layer ``step`` on."""
        if self.sorted[step][i] >= max(self.changed[i], self.changed[i + step]):
            return
        self.sorted[step][i] = self.clock
        rank, row, keys = self.rank, self.rows[i], []
        for number in row:
            ends = side[number]
            if len(ends) == 1:
                n, _, there, _ = ends[0]
                keys.append(round(rank[n] + there / 999, 6))
            elif ends:
                total = sum([rank[n] + there / 999 for n, _, there, _ in ends])
                keys.append(round(total / len(ends), 6))
            else:
                keys.append(rank[number])
        if keys != sorted(keys):
            self._set(i, [row[place] for place in sorted(range(len(row)), key=keys.__getitem__)])

    def _count(self) -> int:
        """How often links cross, between all layers."""
        rank, down = self.rank, self.down
        for i, row in enumerate(self.rows[:-1]):
            if self.counted[i] >= max(self.changed[i], self.changed[i + 1]):
                continue
            self.counted[i] = self.clock
            arrivals: list[tuple[int, float]] = []
            for number in row:
                ends = down[number]
                if len(ends) == 1:
                    n, _, end, _ = ends[0]
                    arrivals.append((rank[n], end))
                else:
                    pairs = sorted([(start, (rank[n], end)) for n, start, end, _ in ends])
                    arrivals += [arrival for _, arrival in pairs]
            self.crossings[i] = _inversions(arrivals)
        return sum(self.crossings)

    def _untangle(self, i: int) -> bool:
        """Swap neighbors whose links cross more than they would after the swap."""
        if self.untangled[i] >= max(self.changed[i - 1], self.changed[i], self.changed[i + 1]):
            return False
        self.untangled[i] = self.clock
        rank, row = self.rank, self.rows[i]
        swapped = False
        for place in range(len(row) - 1):
            a, b = row[place], row[place + 1]
            before = after = 0
            for side in (self.up, self.down):
                ends_a, ends_b = side[a], side[b]
                pairs = len(ends_a) * len(ends_b)
                if pairs > 4000:
                    break
                if not pairs:
                    continue
                if pairs == 1:  # one link each, as most have
                    (n, _, there, _), (m, _, beyond, _) = ends_a[0], ends_b[0]
                    p: float = rank[n]
                    q: float = rank[m]
                    if p == q:
                        p, q = there, beyond
                    before += p > q
                    after += q > p
                    continue
                reached = [(rank[n], there) for n, _, there, _ in ends_b]
                for n, _, there, _ in ends_a:
                    end = rank[n], there
                    for other in reached:
                        before += end > other
                        after += other > end
            if after < before:
                row[place], row[place + 1] = b, a
                rank[a], rank[b] = place + 1, place
                swapped = True
        if swapped:
            self._set(i, row)
        return swapped


def _inversions(values: list[tuple[int, float]]) -> int:
    """How many pairs stand in the wrong order."""
    if values == sorted(values):
        return 0
    total = 0
    seen: list[tuple[int, float]] = []
    for value in values:
        place = bisect_right(seen, value)
        total += len(seen) - place
        seen.insert(place, value)
    return total

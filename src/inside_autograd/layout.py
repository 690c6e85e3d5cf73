"""Place boxes in layers and route the links between them. The only module that uses igraph.

igraph decides the order of the boxes inside each layer. Everything else is done here, because the
boxes have widths: a link that spans layers gets a place of its own in each of them, neighbors keep
their distance, and links run straight where they can.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

MARGIN = 12  # around the picture, in px
GAP = 24  # between neighboring boxes of a layer
LANE = 14  # between a box and a link that passes it, and between two such links
SWEEPS = 8


@dataclass(slots=True)
class Item:
    """What is to be placed: how far it reaches from its center, in px."""

    left: float
    right: float
    up: float
    down: float


@dataclass(slots=True)
class Link:
    """From the bottom of ``source`` to the top of ``target``; ``start`` and ``end`` are x offsets there.

    Links with the same ``dock`` at the same target arrive at one port, ``room`` px wide, side by side.
    """

    source: int
    target: int
    start: float = 0
    end: float = 0
    dock: int = 0
    room: float = 0


@dataclass(slots=True)
class Layout:
    """Where things are: centers of items, and for each link the points that it runs through.

    ``routes[i]`` is a list of ``(x, top, bottom)``: the link runs straight down from top to bottom at
    x, then swings over to the next entry.
    """

    width: int
    height: int
    x: list[int] = field(default_factory=list)
    y: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    routes: list[list[tuple[float, float, float]]] = field(default_factory=list)


def longest_paths(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of each item: the length of the longest path that leads to it.

    Raises
    ------
    ValueError
        If the pairs form a cycle.
    """
    targets: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in pairs:
        targets[source].append(target)
        missing[target] += 1
    layer = [0] * count
    ready = [item for item in range(count) if not missing[item]]
    done = 0
    while ready:
        item = ready.pop()
        done += 1
        for target in targets[item]:
            layer[target] = max(layer[target], layer[item] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    if done < count:
        raise ValueError("The links form a cycle, so there is no order from top to bottom.")
    return layer


def lay_out(items: Sequence[Item], links: Sequence[Link], layers: Sequence[int]) -> Layout:
    """Place ``items`` so that every link runs down, and nothing overlaps.

    Parameters
    ----------
    items
        Sizes, in px.
    links
        Each must lead from a lower layer number to a higher one. Parallel links are allowed.
    layers
        The layer of each item, 0 on top.
    """
    net = _Net(items, links, layers)
    net.order()
    net.place()
    return net.finish()


class _Net:
    """Items, and one lane for each layer that a link passes. Ids: items first, lanes after them."""

    def __init__(self, items: Sequence[Item], links: Sequence[Link], layers: Sequence[int]):
        self.items, self.links = items, links
        self.layer = list(layers)
        self.chains: list[list[int]] = []
        self.down: list[list[tuple[int, float, float, int]]] = [[] for _ in items]
        self.up: list[list[tuple[int, float, float, int]]] = [[] for _ in items]
        leaving = Counter(link.source for link in links)
        for link in links:
            chain = [link.source]
            for layer in range(layers[link.source] + 1, layers[link.target]):
                self.layer.append(layer)
                self.down.append([])
                self.up.append([])
                chain.append(len(self.layer) - 1)
            chain.append(link.target)
            self.chains.append(chain)
            last = len(chain) - 2
            for i, (a, b) in enumerate(pairwise(chain)):
                # A lone link may leave beside the middle: boxes below each other stay in one column.
                start = link.start if i == 0 and leaving[a] > 1 else 0
                end = link.end if i == last else 0
                # Long links are kept straight before short ones: a bend is seen there.
                weight = (1, 2, 8)[(a >= len(items)) + (b >= len(items))]
                self.down[a].append((b, start, end, weight))
                self.up[b].append((a, end, start, weight))
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        self.x = [0.0] * len(self.layer)
        self._rank: dict[int, int] = {}

    def order(self) -> None:
        """Choose the order inside the layers: igraph's, improved by where on its box each link starts."""
        import igraph

        pairs = [pair for chain in self.chains for pair in pairwise(chain)]
        net = igraph.Graph(len(self.layer), pairs, directed=True)
        places = net.layout_sugiyama(layers=self.layer, maxiter=60)
        # Rounded, so that the last bits of igraph's numbers cannot decide.
        for number in sorted(range(len(self.layer)), key=lambda i: (round(places[i][0] * 64), i)):
            self.rows[self.layer[number]].append(number)
        best = min(
            self._improved(self.rows), self._improved([row[::-1] for row in self.rows]), key=lambda r: r[0]
        )
        self.rows = best[1]

    def _improved(self, rows: list[list[int]]) -> tuple[int, list[list[int]]]:
        """The fewest crossings found from ``rows`` on, and the order that has them."""
        self.rows = [list(row) for row in rows]
        best = self._crossings(), rows
        rounds = 6 if len(self.layer) < 1000 else 2
        for _ in range(rounds):
            if not best[0]:
                break
            for row in self.rows[1:]:
                self._sort(row, self.up)
            for row in reversed(self.rows[:-1]):
                self._sort(row, self.down)
            for _ in range(4):
                if not sum(self._untangle(row) for row in self.rows):
                    break
            crossings = self._crossings()
            if crossings < best[0]:
                best = crossings, [list(row) for row in self.rows]
        return best

    def _ranks(self) -> dict[int, int]:
        return {number: i for row in self.rows for i, number in enumerate(row)}

    def _sort(self, row: list[int], side: list) -> None:
        """Order one layer by the mean place of what each box is linked with on one side."""
        rank = self._rank
        for i, number in enumerate(row):
            rank[number] = i

        def mean(number: int) -> float:
            ends = side[number]
            return sum(rank[n] + there / 999 for n, _, there, _ in ends) / len(ends) if ends else rank[number]

        row.sort(key=mean)
        for i, number in enumerate(row):
            rank[number] = i

    def _crossings(self) -> int:
        """How often links cross, between all layers."""
        rank = self._rank = self._ranks()
        total = 0
        for row in self.rows:
            seen: list[tuple[int, float]] = []
            for number in row:
                ends = sorted((start, (rank[n], end)) for n, start, end, _ in self.down[number])
                for _, end in ends:
                    place = bisect_right(seen, end)
                    total += len(seen) - place
                    seen.insert(place, end)
        return total

    def _untangle(self, row: list[int]) -> bool:
        """Swap neighbors whose links cross more than they would after the swap."""
        rank = self._rank
        changed = False
        for i in range(len(row) - 1):
            a, b = row[i], row[i + 1]
            before = after = 0
            for side in (self.up, self.down):
                if len(side[a]) * len(side[b]) > 4000:
                    break
                ends_a = [(rank[n], there) for n, _, there, _ in side[a]]
                ends_b = [(rank[n], there) for n, _, there, _ in side[b]]
                before += sum(p > q for p in ends_a for q in ends_b)
                after += sum(q > p for p in ends_a for q in ends_b)
            if after < before:
                row[i], row[i + 1] = b, a
                rank[a], rank[b] = i + 1, i
                changed = True
        return changed

    def _apart(self, a: int, b: int) -> float:
        """Least distance of the centers of two neighbors."""
        count = len(self.items)
        if a >= count and b >= count:
            return LANE
        right = self.items[a].right if a < count else 0
        left = self.items[b].left if b < count else 0
        return right + left + (GAP if a < count and b < count else LANE)

    def place(self) -> None:
        """Bring linked boxes under each other, layer by layer, down and up again."""
        for row in self.rows:
            x = 0.0
            for i, number in enumerate(row):
                x += self._apart(row[i - 1], number) if i else 0
                self.x[number] = x
            for number in row:
                self.x[number] -= x / 2
        for sweep in range(SWEEPS):
            for row in self.rows:
                self._settle(row, self.up, self.down if sweep >= SWEEPS - 2 else None)
            for row in reversed(self.rows):
                self._settle(row, self.down, self.up if sweep >= SWEEPS - 2 else None)

        self._straighten()

    def _straighten(self) -> None:
        """Bring what hangs on one thread into one column, as far as the neighbors leave room."""
        room = {}
        for row in self.rows:
            for i, number in enumerate(row):
                room[number] = (row[i - 1] if i else None, row[i + 1] if i + 1 < len(row) else None)
        follows = {
            a: ends[0][0]
            for a, ends in enumerate(self.down)
            if len(ends) == 1 and len(self.up[ends[0][0]]) == 1
        }
        inner = set(follows.values())
        threads = []
        for first in follows:
            if first not in inner:
                thread = [first]
                while thread[-1] in follows:
                    thread.append(follows[thread[-1]])
                threads.append(thread)
        for thread in sorted(threads, key=len, reverse=True):
            done = 0
            while done < len(thread):
                done += self._align(thread[done:], room)

    def _align(self, thread: list[int], room: dict) -> int:
        """Move as much of ``thread`` as has room to one x; returns how much that was."""
        least, most, many = float("-inf"), float("inf"), 0
        for number in thread:
            before, after = room[number]
            low = least if before is None else max(least, self.x[before] + self._apart(before, number))
            high = most if after is None else min(most, self.x[after] - self._apart(number, after))
            if low > high and many:
                break
            least, most, many = low, high, many + 1
        if many > 1:
            wish = sorted(self.x[number] for number in thread[:many])[many // 2]
            for number in thread[:many]:
                self.x[number] = min(max(wish, least), most)
        return many

    def _settle(self, row: list[int], near: list, far: list | None) -> None:
        """Move the boxes of one layer as close as they may come to where their links want them."""
        wishes: list[tuple[float, float]] = []
        offsets = [0.0]
        for a, b in pairwise(row):
            offsets.append(offsets[-1] + self._apart(a, b))
        for number, offset in zip(row, offsets, strict=True):
            ends = near[number] + (far[number] if far else [])
            weight = sum(w for *_, w in ends)
            if weight:
                wish = sum(w * (self.x[n] + there - here) for n, here, there, w in ends) / weight
                wishes.append((wish - offset, weight))
            else:
                wishes.append((self.x[number] - offset, 0.1))
        for number, offset, value in zip(row, offsets, _increasing(wishes), strict=True):
            self.x[number] = value + offset

    def finish(self) -> Layout:
        count = len(self.items)
        shift = MARGIN - min(
            (self.x[i] - (self.items[i].left if i < count else 0) for i in range(len(self.x))), default=0
        )
        x = [round(value + shift) for value in self.x]
        width = (
            max((x[i] + (self.items[i].right if i < count else 0) for i in range(len(x))), default=0) + MARGIN
        )
        tops, middles, bottoms = self._bands(x)
        result = Layout(round(width), round(bottoms[-1] + MARGIN if bottoms else 0))
        result.layers = self.layer[:count]
        result.x, result.y = x[:count], [middles[self.layer[i]] for i in range(count)]
        ends = self._docks(x)
        for link, chain, end in zip(self.links, self.chains, ends, strict=True):
            source, target = self.items[link.source], self.items[link.target]
            first, last = self.layer[link.source], self.layer[link.target]
            route = [(x[link.source] + link.start, middles[first] + source.down, bottoms[first])]
            route += [(x[n], tops[self.layer[n]], bottoms[self.layer[n]]) for n in chain[1:-1]]
            route.append((x[link.target] + end, tops[last], middles[last] - target.up))
            result.routes.append(route)
        return result

    def _bands(self, x: list[int]) -> tuple[list[int], list[int], list[int]]:
        """Top, middle and bottom of each layer. Where links swing far, the layers lie further apart."""
        count = len(self.items)
        swing = [0.0] * len(self.rows)
        for chain in self.chains:
            for a, b in pairwise(chain):
                swing[self.layer[b]] = max(swing[self.layer[b]], abs(x[a] - x[b]))
        tops, middles, bottoms = [], [], []
        y = float(MARGIN)
        for i, row in enumerate(self.rows):
            if i:
                y += min(72, 26 + swing[i] * 0.09)
            up = max((self.items[n].up for n in row if n < count), default=0)
            down = max((self.items[n].down for n in row if n < count), default=0)
            tops.append(round(y))
            middles.append(tops[-1] + round(up))
            bottoms.append(middles[-1] + round(down))
            y = bottoms[-1]
        return tops, middles, bottoms

    def _docks(self, x: list[int]) -> list[float]:
        """Where each link arrives: links to one port side by side, in the order they come from."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i, link in enumerate(self.links):
            groups.setdefault((link.target, link.dock), []).append(i)
        ends = [link.end for link in self.links]

        def comes_from(i: int) -> tuple[float, int]:
            before = self.chains[i][-2]
            return x[before] + (self.links[i].start if before == self.links[i].source else 0), i

        for members in groups.values():
            if len(members) == 1:
                # Where a few px make the last piece straight, straight it is.
                (i,) = members
                off = comes_from(i)[0] - x[self.links[i].target] - ends[i]
                if abs(off) <= min(24, self.links[i].room / 2):
                    ends[i] += off
                continue
            members.sort(key=comes_from)
            step = min(14, self.links[members[0]].room / (len(members) - 1))
            for place, i in enumerate(members):
                ends[i] += round(2 * step * (place - (len(members) - 1) / 2)) / 2
        return ends


def _increasing(wishes: Sequence[tuple[float, float]]) -> list[float]:
    """The non-decreasing values closest to the wishes (value, weight), by least squares."""
    blocks: list[list[float]] = []  # value, weight, how many
    for value, weight in wishes:
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value2, weight2, many2 = blocks.pop()
            value1, weight1, many1 = blocks[-1]
            total = weight1 + weight2
            blocks[-1] = [(value1 * weight1 + value2 * weight2) / total, total, many1 + many2]
    return [value for value, _, many in blocks for _ in range(int(many))]

"""Place boxes in layers and route the links between them. The only module that uses igraph.

igraph proposes the order of the boxes inside each layer. Everything else is done here, because the
boxes have widths: a link that spans layers gets a place of its own in each of them, neighbors keep
their distance, and links run straight where they can.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .columns import Columns, Ends
from .crossings import fewest_crossings

MARGIN = 12  # around the picture, in px
GAP = 24  # between neighboring boxes of a layer
LANE = 14  # between a box and a link that passes it, and between two such links


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
    net.x = Columns(net.rows, net.up, net.down, net.apart).place()
    return net.finish()


class _Net:
    """Items, and one lane for each layer that a link passes. Ids: items first, lanes after them."""

    def __init__(self, items: Sequence[Item], links: Sequence[Link], layers: Sequence[int]):
        self.items, self.links = items, links
        self.layer = list(layers)
        self.chains: list[list[int]] = []
        self.down: Ends = [[] for _ in items]
        self.up: Ends = [[] for _ in items]
        count, down, up = len(items), self.down, self.up
        leaving = Counter([link.source for link in links])
        below = [0] * count  # how long the longest way on from each item is
        for link in sorted(links, key=lambda link: -layers[link.source]):
            below[link.source] = max(below[link.source], below[link.target] + 1)
        for link in links:
            source, target = link.source, link.target
            chain = [source]
            for layer in range(layers[source] + 1, layers[target]):
                chain.append(len(self.layer))
                self.layer.append(layer)
                down.append([])
                up.append([])
            chain.append(target)
            self.chains.append(chain)
            # A lone link may leave beside the middle: boxes below each other stay in one column.
            start = link.start if leaving[source] > 1 else 0
            # A leaf, or a node over one, makes room: the main way stays in its column.
            yields = 0.3 if below[target] < 2 else 1
            if len(chain) == 2:
                down[source].append((target, start, link.end, yields))
                up[target].append((source, link.end, start, yields))
                continue
            # Long links are kept straight before short ones: a bend is seen there.
            weights = [2.0] + [8.0] * (len(chain) - 3) + [2 * yields]
            for (a, b), weight in zip(pairwise(chain), weights, strict=True):
                here = start if a == source else 0
                there = link.end if b == target else 0
                down[a].append((b, here, there, weight))
                up[b].append((a, there, here, weight))
        self.rows: list[list[int]] = [[] for _ in range(max(self.layer, default=-1) + 1)]
        self.x = [0.0] * len(self.layer)

    def order(self) -> None:
        """Choose the order inside the layers: igraph's, improved by where on its box each link starts."""
        for number, layer in enumerate(self.layer):
            self.rows[layer].append(number)
        self.rows = fewest_crossings(self.rows, self.up, self.down, self._first_order)

    def _first_order(self, rows: list[list[int]], turned: bool = False) -> list[list[int]]:
        """igraph's order of layers that follow each other; ``turned``: of the last number first."""
        import igraph

        numbers = sorted([number for row in rows for number in row], reverse=turned)
        place = {number: i for i, number in enumerate(numbers)}
        links = [(place[a], place[b]) for row in rows[:-1] for a in row for b, _, _, _ in self.down[a]]
        net = igraph.Graph(len(numbers), links, directed=True)
        top = self.layer[rows[0][0]]
        points = net.layout_sugiyama(layers=[self.layer[number] - top for number in numbers], maxiter=60)
        # Rounded, so that the last bits of igraph's numbers cannot decide.
        key = {number: round(point[0] * 64) for number, point in zip(numbers, points, strict=True)}
        return [sorted(row, key=key.__getitem__) for row in rows]

    def apart(self, a: int, b: int) -> float:
        """Least distance of the centers of two neighbors."""
        count = len(self.items)
        if a >= count and b >= count:
            return LANE
        right = self.items[a].right if a < count else 0
        left = self.items[b].left if b < count else 0
        return right + left + (GAP if a < count and b < count else LANE)

    def finish(self) -> Layout:
        count, items, layer = len(self.items), self.items, self.layer
        lefts = [x - item.left for x, item in zip(self.x, items, strict=False)]
        shift = MARGIN - min(lefts + self.x[count:], default=0)
        # Rounded twice: the last bits of a sum differ between versions of Python, and halves are common.
        x = [round(round(value + shift, 3)) for value in self.x]
        rights = [x + item.right for x, item in zip(x, items, strict=False)]
        tops, middles, bottoms = self._bands(x)
        width = round(max([*rights, *x[count:]], default=0) + MARGIN)
        result = Layout(width, bottoms[-1] + MARGIN if bottoms else 0)
        result.layers = layer[:count]
        result.x, result.y = x[:count], [middles[i] for i in result.layers]
        for link, chain, end in zip(self.links, self.chains, self._docks(x), strict=True):
            source, target = link.source, link.target
            first, last = layer[source], layer[target]
            route: list[tuple[float, float, float]]
            route = [(x[source] + link.start, middles[first] + items[source].down, bottoms[first])]
            if len(chain) > 2:
                route += [(x[n], tops[layer[n]], bottoms[layer[n]]) for n in chain[1:-1]]
            route.append((x[target] + end, tops[last], middles[last] - items[target].up))
            result.routes.append(route)
        return result

    def _bands(self, x: list[int]) -> tuple[list[int], list[int], list[int]]:
        """Top, middle and bottom of each layer. Where links swing far, the layers lie further apart."""
        layer, swing = self.layer, [0] * len(self.rows)
        for a, ends in enumerate(self.down):
            for b, _, _, _ in ends:
                if (far := abs(x[a] - x[b])) > swing[layer[b]]:
                    swing[layer[b]] = far
        ups, downs = [0.0] * len(self.rows), [0.0] * len(self.rows)
        for i, item in zip(layer, self.items, strict=False):
            if item.up > ups[i]:
                ups[i] = item.up
            if item.down > downs[i]:
                downs[i] = item.down
        tops, middles, bottoms = [], [], []
        y = float(MARGIN)
        for i in range(len(self.rows)):
            if i:
                y += min(72, 26 + swing[i] * 0.09)
            tops.append(round(y))
            middles.append(tops[-1] + round(ups[i]))
            bottoms.append(middles[-1] + round(downs[i]))
            y = bottoms[-1]
        return tops, middles, bottoms

    def _docks(self, x: list[int]) -> list[float]:
        """Where each link arrives: links to one port side by side, in the order they come from."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i, link in enumerate(self.links):
            groups.setdefault((link.target, link.dock), []).append(i)
        ends = [link.end for link in self.links]

        def comes_from(i: int) -> tuple[float, int]:
            before, link = self.chains[i][-2], self.links[i]
            return x[before] + (link.start if before == link.source else 0), i

        for members in groups.values():
            if len(members) == 1:
                # Where a few px make the last piece straight, straight it is.
                (i,) = members
                off = comes_from(i)[0] - x[self.links[i].target] - ends[i]
                if abs(off) <= min(30, self.links[i].room / 2):
                    ends[i] += off
                continue
            members.sort(key=comes_from)
            step = min(14, self.links[members[0]].room / (len(members) - 1))
            for place, i in enumerate(members):
                ends[i] += round(2 * step * (place - (len(members) - 1) / 2)) / 2
        return ends

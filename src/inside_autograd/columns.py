"""Where the boxes of each layer stand: linked ones below each other, neighbors at their distance."""

from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise

SWEEPS = 8

Ends = list[list[tuple[int, float, float, float]]]


class Columns:
    """Chooses x for every number in ``rows``, whose order stays as it is.

    Parameters
    ----------
    rows
        The numbers of each layer, from left to right.
    up, down
        For each number its links to the layer above and below, as (neighbor, x offset of the link
        here, x offset there, weight).
    apart
        The least distance between the centers of two neighbors, in px.
    """

    def __init__(self, rows: list[list[int]], up: Ends, down: Ends, apart: Callable[[int, int], float]):
        self.rows, self.up, self.down = rows, up, down
        self.x = [0.0] * len(up)
        self.gaps = [[apart(a, b) for a, b in pairwise(row)] for row in rows]
        # Each number with how far right of the first of its layer it may stand at least.
        self.layers = [
            list(zip(row, accumulate(gaps, initial=0.0), strict=True))
            for row, gaps in zip(rows, self.gaps, strict=True)
        ]

    def place(self) -> list[float]:
        """Bring linked boxes under each other, layer by layer, down and up again."""
        for boxes in self.layers:
            middle = boxes[-1][1] / 2
            for number, offset in boxes:
                self.x[number] = offset - middle
        # All hangs on what nothing leads to. Where that is one box, a second sweep would find what
        # the first did, further left or right.
        tops = sum(not ends for ends in self.up)
        self._sweep(SWEEPS - 2 if tops > 1 else 1, self.up, self.down)
        both = [up + down for up, down in zip(self.up, self.down, strict=True)]
        self._sweep(2, both, both)
        self._straighten()
        return self.x

    def _sweep(self, times: int, going_down: Ends, going_up: Ends) -> None:
        """Settle all layers from top to bottom and back, until nothing moves by itself any more."""
        x, layers = self.x, self.layers
        for _ in range(times):
            before = list(x)
            settle(x, layers, going_down)
            settle(x, reversed(layers), going_up)
            moves = [now - then for now, then in zip(x, before, strict=True)]
            if max(moves, default=0) - min(moves, default=0) < 1e-6:
                break

    def _straighten(self) -> None:
        """Bring what hangs on one thread into one column, as far as the neighbors leave room."""
        # Of a number: its neighbor on that side, and how far away it stays.
        left: dict[int, tuple[int, float]] = {}
        right: dict[int, tuple[int, float]] = {}
        for row, gaps in zip(self.rows, self.gaps, strict=True):
            for (a, b), gap in zip(pairwise(row), gaps, strict=True):
                right[a], left[b] = (b, gap), (a, gap)
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
                done = self._align(thread, done, left, right)

    def _align(self, thread: list[int], first: int, left: dict, right: dict) -> int:
        """Move as much of ``thread`` from ``first`` on as has room to one x; returns where that ends."""
        x = self.x
        least, most, end = float("-inf"), float("inf"), first
        while end < len(thread):
            low, high = least, most
            if thread[end] in left:
                number, gap = left[thread[end]]
                low = max(low, x[number] + gap)
            if thread[end] in right:
                number, gap = right[thread[end]]
                high = min(high, x[number] - gap)
            if low > high and end > first:
                break
            least, most, end = low, high, end + 1
        if end - first > 1:
            part = thread[first:end]
            wish = sorted([x[number] for number in part])[len(part) // 2]
            place = min(max(wish, least), most)
            for number in part:
                x[number] = place
        return end


def settle(x: list[float], layers: Iterable[list[tuple[int, float]]], links: Ends) -> None:
    """Move the boxes of each layer as close as they may come to where their links want them.

    Those that would come too close to each other are one group from then on, which stands where the
    weighted squares of what its boxes are off are least.

    Parameters
    ----------
    x
        Where every number stands, in px; changed in place.
    layers
        One after the other, each from left to right: (number, how far right of the first of its layer
        it may stand at least).
    links
        As ``up`` or ``down`` of ``Columns``.
    """
    for boxes in layers:
        # Groups so far: where the first box of the layer would stand, the weight, and how many boxes.
        places: list[float] = []
        weights: list[float] = []
        counts: list[int] = []
        for number, offset in boxes:
            ends = links[number]
            if len(ends) == 1:
                ((n, here, there, weight),) = ends
                value = x[n] + there - here
            elif ends:
                value = weight = 0.0
                for n, here, there, w in ends:
                    value += w * (x[n] + there - here)
                    weight += w
                value /= weight
            else:
                value, weight = x[number], 0.1
            x[number] = value
            value -= offset
            count = 1
            while places and places[-1] > value:
                before = weights.pop()
                value = (places.pop() * before + value * weight) / (before + weight)
                weight += before
                count += counts.pop()
            places.append(value)
            weights.append(weight)
            counts.append(count)
        if len(places) < len(boxes):
            first = 0
            for place, count in zip(places, counts, strict=True):
                for number, offset in boxes[first : first + count]:
                    x[number] = place + offset
                first += count

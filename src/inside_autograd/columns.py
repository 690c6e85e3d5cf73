"""Where the boxes of each layer stand: linked ones below each other, neighbors at their distance."""

from collections.abc import Callable, Sequence
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
        self.offsets = [list(accumulate(gaps, initial=0.0)) for gaps in self.gaps]

    def place(self) -> list[float]:
        """Bring linked boxes under each other, layer by layer, down and up again."""
        for row, offsets in zip(self.rows, self.offsets, strict=True):
            for number, offset in zip(row, offsets, strict=True):
                self.x[number] = offset - offsets[-1] / 2
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
        x = self.x
        layers = [
            list(zip(row, offsets, strict=True)) for row, offsets in zip(self.rows, self.offsets, strict=True)
        ]
        for _ in range(times):
            before = list(x)
            for boxes in layers:
                _settle(x, boxes, going_down)
            for boxes in reversed(layers):
                _settle(x, boxes, going_up)
            moves = [now - then for now, then in zip(x, before, strict=True)]
            if max(moves, default=0) - min(moves, default=0) < 1e-6:
                break

    def _straighten(self) -> None:
        """Bring what hangs on one thread into one column, as far as the neighbors leave room."""
        room: dict[int, tuple] = {}  # of a number: its neighbors, and how far away they stay
        for row, gaps in zip(self.rows, self.gaps, strict=True):
            for number, before, gap, after, gap_after in zip(
                row, [None, *row], [0, *gaps], [*row[1:], None], [*gaps, 0], strict=False
            ):
                room[number] = before, gap, after, gap_after
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
                done = self._align(thread, done, room)

    def _align(self, thread: list[int], first: int, room: dict[int, tuple]) -> int:
        """Move as much of ``thread`` from ``first`` on as has room to one x; returns where that ends."""
        x = self.x
        least, most, end = float("-inf"), float("inf"), first
        while end < len(thread):
            before, gap, after, gap_after = room[thread[end]]
            low = least if before is None else max(least, x[before] + gap)
            high = most if after is None else min(most, x[after] - gap_after)
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


def _settle(x: list[float], boxes: list[tuple[int, float]], links: Ends) -> None:
    """Move the boxes of one layer as close as they may come to where their links want them.

    ``boxes`` are (number, how far right of the first it may stand at least).
    """
    values, weights = [], []
    fits, least = True, float("-inf")
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
        if value < least:
            fits = False
        least = value
        values.append(value)
        weights.append(weight)
    if not fits:
        for (number, offset), value in zip(boxes, increasing(values, weights), strict=True):
            x[number] = value + offset


def increasing(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing values closest to ``values``, by weighted least squares."""
    if len(values) == 2:  # as most layers have
        (a, b), (of_a, of_b) = values, weights
        return [(a * of_a + b * of_b) / (of_a + of_b)] * 2 if a > b else [a, b]
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for mean, mass in zip(values, weights, strict=True):
        count = 1
        while means and means[-1] > mean:
            before = masses.pop()
            mean = (means.pop() * before + mean * mass) / (before + mass)
            mass += before
            count += counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return [mean for mean, count in zip(means, counts, strict=True) for _ in range(count)]

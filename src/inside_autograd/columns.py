"""Where the boxes of each layer stand: linked ones below each other, neighbors at their distance."""

from collections.abc import Callable, Sequence
from itertools import pairwise

SWEEPS = 8

Ends = list[list[tuple[int, float, float, int]]]


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
        self.rows, self.up, self.down, self.apart = rows, up, down, apart
        self.x = [0.0] * len(up)

    def place(self) -> list[float]:
        """Bring linked boxes under each other, layer by layer, down and up again."""
        for row in self.rows:
            x = 0.0
            for i, number in enumerate(row):
                x += self.apart(row[i - 1], number) if i else 0
                self.x[number] = x
            for number in row:
                self.x[number] -= x / 2
        for sweep in range(SWEEPS):
            for row in self.rows:
                self._settle(row, self.up, self.down if sweep >= SWEEPS - 2 else None)
            for row in reversed(self.rows):
                self._settle(row, self.down, self.up if sweep >= SWEEPS - 2 else None)
        self._straighten()
        return self.x

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
            low = least if before is None else max(least, self.x[before] + self.apart(before, number))
            high = most if after is None else min(most, self.x[after] - self.apart(number, after))
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
            offsets.append(offsets[-1] + self.apart(a, b))
        for number, offset in zip(row, offsets, strict=True):
            ends = near[number] + (far[number] if far else [])
            weight = sum(w for *_, w in ends)
            if weight:
                wish = sum(w * (self.x[n] + there - here) for n, here, there, w in ends) / weight
                wishes.append((wish - offset, weight))
            else:
                wishes.append((self.x[number] - offset, 0.1))
        for number, offset, value in zip(row, offsets, increasing(wishes), strict=True):
            self.x[number] = value + offset


def increasing(wishes: Sequence[tuple[float, float]]) -> list[float]:
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

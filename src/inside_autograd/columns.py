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
        self.offsets = [self._offsets(row) for row in rows]

    def place(self) -> list[float]:
        """Bring linked boxes under each other, layer by layer, down and up again."""
        for row in self.rows:
            x = 0.0
            for i, number in enumerate(row):
                x += self.apart(row[i - 1], number) if i else 0
                self.x[number] = x
            for number in row:
                self.x[number] -= x / 2
        self._sweep(SWEEPS - 2, self.up, self.down)
        both = [up + down for up, down in zip(self.up, self.down, strict=True)]
        both_again = [down + up for up, down in zip(self.up, self.down, strict=True)]
        self._sweep(2, both, both_again)
        self._straighten()
        return self.x

    def _offsets(self, row: list[int]) -> list[float]:
        """How far right of the first box of a layer each may stand at least."""
        offsets = [0.0]
        for a, b in pairwise(row):
            offsets.append(offsets[-1] + self.apart(a, b))
        return offsets

    def _sweep(self, times: int, going_down: Ends, going_up: Ends) -> None:
        """Settle all layers from top to bottom and back, until nothing moves any more."""
        layers = self._boxes(going_down) + self._boxes(going_up)[::-1]
        for _ in range(times):
            before = list(self.x)
            for boxes in layers:
                self._settle(boxes)
            if self.x == before:
                break

    def _boxes(self, links: Ends) -> list[list[tuple]]:
        """For each layer its boxes as (number, offset, sum of the weights of the links, links)."""
        return [
            [
                (number, offset, sum([weight for *_, weight in links[number]]), links[number])
                for number, offset in zip(row, offsets, strict=True)
            ]
            for row, offsets in zip(self.rows, self.offsets, strict=True)
        ]

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

    def _settle(self, boxes: list[tuple]) -> None:
        """Move the boxes of one layer as close as they may come to where their links want them."""
        x = self.x
        wishes: list[tuple[float, float]] = []
        for number, offset, weight, links in boxes:
            if not weight:
                wishes.append((x[number] - offset, 0.1))
                continue
            total = 0.0
            for n, here, there, w in links:
                total += w * (x[n] + there - here)
            wishes.append((total / weight - offset, weight))
        if len(boxes) == 1:
            x[boxes[0][0]] = wishes[0][0]
            return
        for (number, offset, *_), value in zip(boxes, increasing(wishes), strict=True):
            x[number] = value + offset


def increasing(wishes: Sequence[tuple[float, float]]) -> list[float]:
    """The non-decreasing values closest to the wishes (value, weight), by least squares."""
    values = [value for value, _ in wishes]
    if values == sorted(values):
        return values
    blocks: list[list[float]] = []  # value, weight, how many
    for value, weight in wishes:
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value2, weight2, many2 = blocks.pop()
            value1, weight1, many1 = blocks[-1]
            total = weight1 + weight2
            blocks[-1] = [(value1 * weight1 + value2 * weight2) / total, total, many1 + many2]
    return [value for value, _, many in blocks for _ in range(int(many))]

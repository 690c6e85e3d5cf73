"""Fewer crossings: reorder the layers by where on its box each link starts and ends."""

from bisect import bisect_right

from .columns import Ends

Rows = list[list[int]]


def fewest_crossings(rows: Rows, up: Ends, down: Ends) -> Rows:
    """The best order found from ``rows`` and from its mirror image, which knows of no sides.

    Parameters
    ----------
    rows
        The numbers of each layer, from left to right.
    up, down
        As in ``Columns``.
    """
    order = _Order(up, down)
    best, found = order.improved(rows)
    if best:
        fewer, mirrored = order.improved([row[::-1] for row in rows])
        if fewer < best:
            return mirrored
    return found


class _Order:
    def __init__(self, up: Ends, down: Ends):
        self.up, self.down = up, down
        self.rows: Rows = []
        self.rank = [0] * len(up)  # of each number: its place in its layer

    def improved(self, rows: list[list[int]]) -> tuple[int, list[list[int]]]:
        """The fewest crossings found from ``rows`` on, and the order that has them."""
        self.rows = [list(row) for row in rows]
        best = self._crossings(), rows
        rounds = 6 if len(self.up) < 1000 else 2
        for _ in range(rounds):
            if not best[0]:
                break
            for row in self.rows[1:]:
                if len(row) > 1:
                    self._sort(row, self.up)
            for row in reversed(self.rows[:-1]):
                if len(row) > 1:
                    self._sort(row, self.down)
            for _ in range(4):
                if not sum([self._untangle(row) for row in self.rows if len(row) > 1]):
                    break
            crossings = self._crossings()
            if crossings < best[0]:
                best = crossings, [list(row) for row in self.rows]
        return best

    def _sort(self, row: list[int], side: list) -> None:
        """Order one layer by the mean place of what each box is linked with on one side."""
        rank = self.rank
        for i, number in enumerate(row):
            rank[number] = i

        def mean(number: int) -> float:
            ends = side[number]
            if len(ends) == 1:
                n, _, there, _ = ends[0]
                return round(rank[n] + there / 999, 6)
            total = sum(rank[n] + there / 999 for n, _, there, _ in ends)
            return round(total / len(ends), 6) if ends else rank[number]

        row.sort(key=mean)
        for i, number in enumerate(row):
            rank[number] = i

    def _crossings(self) -> int:
        """How often links cross, between all layers."""
        rank = self.rank
        for row in self.rows:
            for i, number in enumerate(row):
                rank[number] = i
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
        rank = self.rank
        changed = False
        for i in range(len(row) - 1):
            a, b = row[i], row[i + 1]
            before = after = 0
            for side in (self.up, self.down):
                pairs = len(side[a]) * len(side[b])
                if pairs > 4000:
                    break
                if not pairs:
                    continue
                if pairs == 1:  # one link each, as most have
                    (n, _, there, _), (m, _, beyond, _) = side[a][0], side[b][0]
                    p, q = (rank[n], there), (rank[m], beyond)
                    before += p > q
                    after += q > p
                    continue
                ends_a = [(rank[n], there) for n, _, there, _ in side[a]]
                ends_b = [(rank[n], there) for n, _, there, _ in side[b]]
                for p in ends_a:
                    for q in ends_b:
                        before += p > q
                        after += q > p
            if after < before:
                row[i], row[i + 1] = b, a
                rank[a], rank[b] = i + 1, i
                changed = True
        return changed

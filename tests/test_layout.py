"""Layers, distances and routes, on layouts small enough to check by hand and on random ones."""

import random
from itertools import combinations, pairwise

import pytest

from inside_autograd.columns import settle
from inside_autograd.crossings import fewest_crossings
from inside_autograd.layout import GAP, LANE, Item, Link, lay_out, longest_paths


def test_a_layer_is_the_longest_way_from_the_top():
    # 0 -> 1 -> 2 -> 3, and the shortcut 0 -> 3: 3 lies below 2.
    assert longest_paths(4, [(0, 1), (1, 2), (2, 3), (0, 3)]) == [0, 1, 2, 3]


def test_a_leaf_lies_one_layer_under_its_lowest_consumer():
    assert longest_paths(5, [(0, 1), (1, 2), (2, 4), (0, 4), (0, 3)])[3:] == [1, 3]


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="form a cycle"):
        longest_paths(3, [(0, 1), (1, 2), (2, 1)])


@pytest.mark.parametrize(
    ("wishes", "weights", "values"),
    [
        ([1, 2, 3], [1, 1, 1], [1, 2, 3]),
        ([3, 1], [1, 1], [2, 2]),
        ([3, 1], [3, 1], [2.5, 2.5]),
        ([0, 5, 1, 9], [1, 1, 1, 1], [0, 3, 3, 9]),
        ([4, 3, 2, 1], [1, 1, 1, 1], [2.5] * 4),
        ([], [], []),
    ],
)
def test_a_layer_settles_where_the_weighted_squares_are_least(wishes, weights, values):
    """Each box hangs on one of its own in the layer above. Neighbors, 10 px wide, may touch."""
    count = len(wishes)
    above = [wish + 10 * i for i, wish in enumerate(wishes)]
    x = [0.0] * count + above
    links = [[(count + i, 0, 0, weight)] for i, weight in enumerate(weights)]
    settle(x, [[(i, 10 * i) for i in range(count)]], links)
    assert x == [value + 10 * i for i, value in enumerate(values)] + above


def test_a_chain_stands_in_one_column():
    items = [Item(w, w, 10, 10) for w in (20, 60, 31, 44)]
    layout = lay_out(items, [Link(0, 1), Link(1, 2), Link(2, 3)], [0, 1, 2, 3])
    assert len(set(layout.x)) == 1
    assert layout.y == sorted(layout.y)
    assert layout.width == 60 + 60 + 24


def test_two_leaves_stand_left_and_right_of_their_consumer():
    items = [Item(50, 50, 10, 10)] * 3
    layout = lay_out(items, [Link(0, 2, 20), Link(0, 1, -20)], [0, 1, 1])
    assert layout.x[1] < layout.x[0] < layout.x[2]
    assert layout.x[2] - layout.x[1] == 100 + GAP
    assert abs(layout.x[1] + layout.x[2] - 2 * layout.x[0]) <= 1


def test_short_branches_make_room_for_the_main_way():
    # 0 -> 1, 2, 3 side by side, and 1 -> 4 -> 5. Neighbors are 124 apart; where the links start, 1 wants to
    # be at -20 from 0, 2 at 0, 3 at 20. With weights 1, 0.3, 0.3 the least squares put 1 at -78.5; with
    # equal ones it would be at -124.
    items = [Item(50, 50, 10, 10)] * 6
    links = [Link(0, 1, -20), Link(0, 2, 0), Link(0, 3, 20), Link(1, 4), Link(4, 5)]
    layout = lay_out(items, links, [0, 1, 1, 1, 2, 3])
    assert layout.x[1] < layout.x[2] < layout.x[3]
    assert abs(layout.x[1] - layout.x[0] + 78.5) <= 1
    assert layout.x[1] == layout.x[4] == layout.x[5]


def test_links_to_one_port_arrive_side_by_side_in_the_order_they_come():
    items = [Item(30, 30, 10, 10)] * 2
    links = [Link(0, 1, 15, room=40), Link(0, 1, -15, room=40)]
    layout = lay_out(items, links, [0, 1])
    right, left = (route[-1][0] for route in layout.routes)
    assert right - left == 14


def test_a_long_link_passes_beside_the_boxes_between():
    items = [Item(40, 40, 10, 10)] * 3
    layout = lay_out(items, [Link(0, 1, -10), Link(1, 2), Link(0, 2, 10)], [0, 1, 2])
    (x, top, bottom) = layout.routes[2][1]
    assert abs(x - layout.x[1]) >= 40 + LANE - 1
    assert top <= layout.y[1] - 10
    assert bottom >= layout.y[1] + 10


@pytest.mark.parametrize("seed", range(12))
def test_boxes_of_random_layouts_never_overlap(seed):
    rng = random.Random(seed)
    count = 40
    pairs = [(rng.randrange(i), i) for i in range(1, count) for _ in range(rng.choice([1, 1, 2, 3]))]
    items = [
        Item(rng.randint(15, 140), rng.randint(15, 200), rng.randint(8, 40), rng.randint(8, 40))
        for _ in range(count)
    ]
    layout = lay_out(items, [Link(a, b) for a, b in pairs], longest_paths(count, pairs))
    for i in range(count):
        assert layout.x[i] - items[i].left >= 0
        assert layout.x[i] + items[i].right <= layout.width
        assert layout.y[i] - items[i].up >= 0
        assert layout.y[i] + items[i].down <= layout.height
        for j in range(i):
            beside = (
                layout.x[i] - items[i].left >= layout.x[j] + items[j].right + GAP - 1
                or layout.x[j] - items[j].left >= layout.x[i] + items[i].right + GAP - 1
            )
            above = (
                layout.y[i] - items[i].up > layout.y[j] + items[j].down
                or layout.y[j] - items[j].up > layout.y[i] + items[i].down
            )
            assert beside or above


def sides(count, pairs):
    """Links as ``fewest_crossings`` takes them, each from and to the middle of its box."""
    up, down = [[] for _ in range(count)], [[] for _ in range(count)]
    for a, b in pairs:
        down[a].append((b, 0, 0, 1))
        up[b].append((a, 0, 0, 1))
    return up, down


def crossings(rows, pairs):
    place = {number: i for row in rows for i, number in enumerate(row)}
    layer = {number: i for i, row in enumerate(rows) for number in row}
    return sum(
        (place[a] - place[c]) * (place[b] - place[d]) < 0
        for (a, b), (c, d) in combinations(pairs, 2)
        if layer[a] == layer[c]
    )


def test_links_that_cross_are_untangled_in_each_part_between_single_boxes():
    # 0 over 1, 2 over 3, 4 over 5, and the same again from 5 on: 1 leads to 4 and 2 to 3, which cross.
    pairs = [(0, 1), (0, 2), (1, 4), (2, 3), (3, 5), (4, 5)]
    pairs += [(a + 5, b + 5) for a, b in pairs]
    rows = [[0], [1, 2], [3, 4], [5], [6, 7], [8, 9], [10]]
    asked = []

    def start(rows, turned):
        asked.append((rows, turned))
        return rows

    found = fewest_crossings(rows, *sides(11, pairs), start)
    assert rows[1] == [1, 2]  # what was handed over stays
    assert [sorted(row) for row in found] == rows
    assert crossings(found, pairs) == 0
    place = {number: i for row in found for i, number in enumerate(row)}
    assert [place[number] for number in (1, 2, 3, 4)] == [place[number] for number in (6, 7, 8, 9)]
    assert asked == [(rows[:4], False)]  # what is alike is ordered once, and what crosses nowhere is done


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_several_orders_is_taken(seed):
    rng = random.Random(seed)
    rows = [list(range(i, i + 6)) for i in range(0, 30, 6)]
    pairs = [(a, b) for upper, lower in pairwise(rows) for a in upper for b in rng.sample(lower, 2)]
    starts = {turned: [rng.sample(row, 6) for row in rows] for turned in (False, True)}
    few = []
    for allowed in ([False], [True], [False, True]):

        def start(part, turned, allowed=allowed):
            return [list(row) for row in starts[allowed[turned % len(allowed)]]]

        found = fewest_crossings(rows, *sides(30, pairs), start)
        assert [sorted(row) for row in found] == rows
        few.append(crossings(found, pairs))
    assert few[2] == min(few) < min(crossings(rows, pairs) for rows in starts.values())

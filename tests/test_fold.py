"""Folding: what one box may hold, what it says, and that the result is never too large or cyclic."""

import time

import pytest
import torch
from torch import nn

from graphs import graph_of, random_graph
from inside_autograd.fold import MOST_BOXES, fold, unfolded
from inside_autograd.graph import Graph
from inside_autograd.layout import longest_paths
from pictures import CAPTURED, captured


def check_whole(folded):
    """Each node is in one box, and the boxes have an order."""
    graph = folded.graph
    assert sorted(i for box in folded.boxes for i in box.members) == list(range(len(graph)))
    for number, box in enumerate(folded.boxes):
        assert all(folded.box_of[i] == number for i in box.members)
        assert bool(box.lines) == box.folded
    pairs = [(folded.box_of[e.source], folded.box_of[e.target]) for e in graph.edges if e.target is not None]
    longest_paths(len(folded.boxes), [(a, b) for a, b in pairs if a != b])  # raises on a cycle


def residual(blocks: int):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2)

        def forward(self, x):
            return torch.relu(x + self.norm(self.conv(x)))

    net = nn.Sequential(*[Block() for _ in range(blocks)])
    return Graph.of(net(torch.ones(2, 2, 4, 4)), net)


@pytest.mark.parametrize("name", CAPTURED)
def test_every_shape_folds_to_a_small_whole_graph(name):
    graph = captured(name)
    folded = fold(graph)
    check_whole(folded)
    assert len(folded.boxes) <= MOST_BOXES


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_fold_whole(seed):
    folded = fold(random_graph(seed, 400))
    check_whole(folded)
    assert len(folded.boxes) <= MOST_BOXES


def test_unfolded_gives_each_node_its_box():
    folded = unfolded(graph_of({0: [1, 1]}))
    check_whole(folded)
    assert [box.members for box in folded.boxes] == [(0,), (1,)]


def test_a_chain_of_one_operation_becomes_one_counted_box():
    names = {0: "SumBackward0"} | dict.fromkeys(range(1, 201), "SinBackward0")
    folded = fold(graph_of({i: [i + 1] for i in range(201)}, names | {201: "x"}))
    assert [box.members for box in folded.boxes] == [(0,), tuple(range(1, 200)), (200,), (201,)]
    assert folded.boxes[1].lines == ("SinBackward0 ×199",)


def test_a_pattern_of_two_says_both_names():
    names = {i: ("ExpBackward0", "SinBackward0")[i % 2] for i in range(200)}
    folded = fold(graph_of({i: [i + 1] for i in range(200)}, names))
    (box,) = [box for box in folded.boxes if box.folded]
    # Node 0 is the output, and node 199 is the only one that leads to a leaf: 198 nodes remain.
    assert box.lines == ("2 operations ×99", "SinBackward0", "ExpBackward0")
    assert box.members == tuple(range(1, 199))


def test_equal_branches_fold_with_their_leaves():
    branches = 150
    edges = {0: list(range(1, branches + 1))} | {i: [branches + i] for i in range(1, branches + 1)}
    names = {0: "CatBackward0"} | {branches + i: f"leaf{i - 1}" for i in range(1, branches + 1)}
    folded = fold(graph_of(edges, names))
    assert len(folded.boxes) == 2
    assert folded.boxes[1].lines == ("MulBackward0 ×150", "→ leaf0…leaf149")


def test_a_leaf_used_outside_stays_outside():
    edges = {i: [i + 1, 201] for i in range(200)}
    folded = fold(graph_of(edges, {201: "shared", 200: "x"}))
    assert [box.members for box in folded.boxes if not box.folded][-2:] == [(200,), (201,)]


def test_many_leaves_of_one_operation_fold():
    folded = fold(graph_of({0: list(range(1, 301))}, {i: f"p{i}" for i in range(1, 301)}))
    assert [box.lines for box in folded.boxes] == [(), ("AccumulateGrad ×300", "p1…p300")]


def test_outputs_with_tags_stay_out_of_folds():
    x = torch.ones(2, requires_grad=True)
    h, kept = x, None
    for i in range(200):
        h = h.sin()
        kept = h if i == 100 else kept
    folded = fold(Graph.of({"last": h, "middle": kept}, {"x": x}))
    check_whole(folded)
    for root in folded.graph.roots:
        assert folded.boxes[folded.box_of[root.node]].members == (root.node,)


def test_one_of_what_repeats_can_stay_unfolded():
    graph = captured("unrolled_cells")  # 20 steps of two cells
    assert [box.lines[0] for box in fold(graph).boxes if box.folded] == ["0…1 ×20 steps"]
    folded = fold(graph, show_one=True)
    check_whole(folded)
    assert [box.lines[0] for box in folded.boxes if box.folded] == ["0…1 ×19 steps"]
    assert len(folded.boxes) > 30


def test_folding_is_fast_and_does_not_depend_on_chance():
    graph = captured("fan_in_1500")
    start = time.perf_counter()
    first = fold(graph)
    assert time.perf_counter() - start < 1
    assert fold(graph) == first

"""Graphs made by hand or at random, for tests that need no tensor."""

import random

from inside_autograd.graph import Edge, Graph, Node, Output, Root


def graph_of(edges: dict[int, list[int | None]], names: dict[int, str] | None = None) -> Graph:
    """A graph from the targets of each node; nodes without an entry are leaves called p0, p1, ..."""
    names = names or {}
    count = 1 + max([*edges, *(t for targets in edges.values() for t in targets if t is not None)])
    nodes = []
    for i in range(count):
        if i in edges:
            out = tuple(
                Edge(i, slot, target, 0, None if target is not None else "needs no gradient")
                for slot, target in enumerate(edges[i])
            )
            nodes.append(
                Node(
                    i,
                    names.get(i, "MulBackward0"),
                    "op",
                    outputs=(Output(0, (2,), "float32", "cpu"),),
                    edges=out,
                )
            )
        else:
            nodes.append(
                Node(i, "AccumulateGrad", "accumulate", (names.get(i, f"p{i}"),), (2,), "float32", "cpu")
            )
    return Graph(tuple(nodes), (Root("", 0, 0, (), "float32"),))


def random_graph(seed: int, count: int = 40) -> Graph:
    """A connected DAG with multi-edges, empty slots, shared leaves and edges of any length."""
    rng = random.Random(seed)
    kinds = ["MulBackward0", "AddBackward0", "NativeBatchNormBackward0", "TBackward0"]
    edges: dict[int, list[int | None]] = {}
    for i in range(count):
        many = rng.choice([1, 1, 2, 2, 3, 5])
        targets: list[int | None] = [i + 1]
        for _ in range(many - 1):
            targets.append(
                rng.choice(
                    [None, i + 1, rng.randint(i + 1, count + 8), rng.randint(i + 1, min(i + 6, count))]
                )
            )
        rng.shuffle(targets)
        edges[i] = targets
    return graph_of(edges, {i: rng.choice(kinds) for i in range(count)})

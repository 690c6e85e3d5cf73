"""Graphs made by hand or at random, for tests that need no tensor."""

import random

from inside_autograd.graph import Cut, Edge, Graph, Node, Output, Root
from inside_autograd.saved import Saved


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


NAMES = [
    "w",
    "encoder.layers.11.linear1.weight",
    "x" * 60,
    "重み.層",
    "ключ_модели",
    "a<b>&c",
    "🔥🔥",
    "b.",
    "naïve",
]
KINDS = {
    "op": ["MulBackward0", "AddmmBackward0", "ScaledDotProductFlashAttentionForCpuBackward0"],
    "custom": ["SwishBackward", "MyVeryLongFunctionNameThatNobodyShouldReallyWriteBackward", "ÜBackward"],
    "recorded": ["TanhBackwardBackward0"],
    "copy_slices": ["CopySlices"],
    "hook": ["BackwardHookFunctionBackward"],
    "checkpoint": ["CheckpointFunctionBackward"],
    "error": ["DelayedError"],
}


def varied_graph(seed: int) -> Graph:
    """Any shape that a drawing must bear: one of everything that ``Graph`` can hold, in random numbers.

    Nodes with many outputs, parallel edges, edges of any length, empty and cut slots, wide fan-in, several
    outputs, leaves without a name or with many, saved tensors, names in any script.
    """
    rng = random.Random(seed)
    count, leaves = rng.choice([1, 3, 8, 20, 45]), rng.choice([1, 2, 6, 15])
    most_edges, most_outputs = rng.choice([2, 3, 8, 30]), rng.choice([1, 1, 3, 12])
    outputs = [rng.choice([1, 1, most_outputs]) for _ in range(count)] + [1] * leaves
    used: set[tuple[int, int]] = {(0, 0)}
    drafts: list[list[Edge]] = []
    for i in range(count):
        edges: list[Edge] = []
        for slot in range(rng.choice([1, 2, 2, rng.randint(1, most_edges)])):
            chance = rng.random()
            if slot and chance < 0.15:
                edges.append(Edge(i, slot, None, 0, "this input needs no gradient"))
            elif slot and chance < 0.2:
                edges.append(Edge(i, slot, None, 0, "past the limits, not read", cut=True))
            else:
                near = min(count + leaves - 1, i + rng.choice([1, 1, 3, 9, count + leaves]))
                target = i + 1 if not slot else rng.choice([edges[0].target, rng.randint(i + 1, near)])
                edges.append(Edge(i, slot, target, rng.randrange(outputs[target])))
                used.add((target, edges[-1].input_nr))
        drafts.append(edges)
    for leaf in set(range(count, count + leaves)) - {edge.target for edges in drafts for edge in edges}:
        edges = rng.choice(drafts)
        edges.append(Edge(edges[0].source, len(edges), leaf, 0))
    names = [
        tuple(f"{rng.choice(NAMES)}{i}" for _ in range(rng.choice([0, 1, 1, 2, 6]))) for i in range(leaves)
    ]
    nodes = []
    for i, edges in enumerate(drafts):
        kind = rng.choice(["op", "op", "op", *KINDS])
        made = tuple(
            Output(
                number, (2, 3)[: rng.randint(0, 2)], "float32", "cpu",
                (rng.choice(NAMES),) * (rng.random() < 0.1), (i, number) in used,
            )
            for number in range(outputs[i])
        )  # fmt: skip
        saved = tuple(
            Saved(
                attr, rng.choice(["alive", "changed", "packed", "freed"]), (4, 4), "float64",
                role=rng.choice(["leaf", "constant"]), names=rng.choice(names)[:1],
            )
            for attr in ["self", "weight", "running_mean"][: rng.choice([0, 0, 1, 3])]
        )  # fmt: skip
        nodes.append(Node(i, rng.choice(KINDS[kind]), kind, outputs=made, edges=tuple(edges), saved=saved))
    for i, called in enumerate(names, count):
        nodes.append(Node(i, "AccumulateGrad", "accumulate", called, (4,), "bfloat16", "cpu"))
    roots = [Root("", 0, 0, (), "float32")]
    for place in range(rng.choice([0, 0, 2])):
        roots.append(Root(f"states[{place}]", rng.randrange(count), 0, (2,), "float32"))
    cut = sum(edge.cut for edges in drafts for edge in edges)
    return Graph(tuple(nodes), tuple(roots), Cut(cut, cut, 1_500, 50_000) if cut else None)

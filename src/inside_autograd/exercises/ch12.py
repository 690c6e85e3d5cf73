"""Exercises of chapter 12: read the graph."""

from collections.abc import Callable

import torch
from torch import nn

from ._model import Case, Exercise, Mistake

count_nodes = Exercise(
    name="count_nodes",
    chapter="12",
    title="How many nodes?",
    minutes=3,
    difficulty=1,
    statement="""
`a` and `b` are leaves that require grad. How many nodes does the backward graph of `y` have, leaves
included,

1. after `s = a + b` and `y = s * s`
2. after `y = (a + b) * (a + b)`

Write both numbers in order. Draw the two graphs afterwards.
""",
    kind="list",
    starter="nodes = (..., ...)",
    answer="nodes",
    hints=(
        "One node for each operation that ran, and one AccumulateGrad for each leaf.",
        "In 1 the addition runs once. How often does it run in 2?",
    ),
    reference="nodes = (4, 5)",
    explains=(
        "One multiplication, one AccumulateGrad for each of `a` and `b`, and one addition in 1 but two in "
        "2: torch does not notice that the two sums are the same."
    ),
    mistakes=(
        Mistake(
            "same",
            "The second line runs the addition twice, and every operation that runs leaves a node. Torch "
            "does not look for equal results.",
            "nodes = (4, 4)",
        ),
        Mistake(
            "no leaves",
            "You counted the operations. Each leaf has a node too, its AccumulateGrad.",
            "nodes = (2, 3)",
        ),
        Mistake(
            "leaf at each use",
            "A leaf has one AccumulateGrad, however often it is used: in 2, two arrows end at each.",
            "nodes = (4, 7)",
        ),
        Mistake(
            "one a use",
            "In 1, `s` is used twice, but the addition that made it ran once. Two arrows end at one node.",
            "nodes = (5, 5)",
        ),
    ),
)


# ------------------------------------------------------------------ leaves of a loss


def _observe_leaves(answer, build: Callable) -> dict:
    y, leaves = build()
    found = answer(y)
    names = []
    for tensor in found:
        names.append(next((name for name, leaf in leaves.items() if leaf is tensor), "something else"))
    return {
        "leaves": tuple(sorted(names)),
        "side effect: .grad was filled": any(leaf.grad is not None for leaf in leaves.values()),
    }


def _graph_case(label: str, build: Callable) -> Case:
    return Case(label, lambda generator: (build,))


def _three() -> dict[str, torch.Tensor]:
    return {name: torch.tensor(float(i + 2), requires_grad=True) for i, name in enumerate("abc")}


def _used_twice():
    leaves = _three()
    return leaves["a"] * leaves["b"] + leaves["a"], leaves


def _with_constants():
    leaves = _three()
    return (leaves["b"] + 1) * torch.tensor(2.0), leaves


def _one_apart():
    leaves = _three()
    return torch.stack([leaves["a"].exp(), leaves["c"], torch.ones(())]).unbind()[0], leaves


def _is_leaf():
    leaves = _three()
    return leaves["c"], leaves


def _equal_values():
    leaves = {name: torch.tensor(1.0, requires_grad=True) for name in "abc"}
    return leaves["a"] * leaves["b"] + leaves["c"], leaves


def _detached():
    leaves = _three()
    return leaves["a"] * leaves["b"].detach() + leaves["c"], leaves


def _chain(length: int = 1_400):
    leaves = _three()
    y = leaves["a"]
    for _ in range(length):
        y = y + 1
    return y * leaves["b"], leaves


def _diamonds():
    leaves = _three()
    y = leaves["a"]
    for _ in range(60):
        y = y + y
    return y, leaves


find_leaves = Exercise(
    name="find_leaves",
    chapter="12",
    title="The leaves of a loss",
    minutes=8,
    difficulty=2,
    statement="""
Write `leaves(y)`. It returns a list of the leaf tensors that `y.backward()` would give a gradient to,
each one once, in any order.

- `.grad` must stay as it is.
- Long chains and graphs with very many paths must work.
- If `y` is itself a leaf that requires grad, the list holds `y`.
""",
    kind="function",
    starter="def leaves(y):\n    ...",
    answer="leaves",
    hints=(
        "Start from `y.grad_fn`, keep a list of nodes that wait, and a set of those you have seen.",
        "A node with an attribute `variable` is the AccumulateGrad of that leaf.",
        "`y.grad_fn` is `None` for a leaf: treat that case first.",
    ),
    reference="""
def leaves(y):
    if y.grad_fn is None:
        return [y]
    found, seen, waiting = [], set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting.extend(target for target, number in node.next_functions)
    return found
""",
    other_right=(
        """
def leaves(y):
    start = torch.autograd.graph.get_gradient_edge(y).node
    seen, layer = {start}, [start]
    while layer:
        layer = [t for node in layer for t, _ in node.next_functions if t is not None]
        layer = [t for t in dict.fromkeys(layer) if t not in seen]
        seen.update(layer)
    return {node.variable for node in seen if type(node).__name__ == "AccumulateGrad"}
""",
    ),
    explains=(
        "A set of seen nodes makes the walk as long as the graph, not as its paths; a list in place of "
        "recursion makes it as deep as you like."
    ),
    mistakes=(
        Mistake(
            "twice",
            "A leaf that is used twice is in your list twice: two arrows end at its node. Remember which "
            "nodes you have seen.",
            """
def leaves(y):
    if y.grad_fn is None:
        return [y]
    found, opened, waiting = [], set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in opened:
            continue
        if hasattr(node, "variable"):
            found.append(node.variable)
            continue
        opened.add(node)
        waiting.extend(target for target, number in node.next_functions)
    return found
""",
        ),
        Mistake(
            "recursion",
            "On a long chain your function calls itself once for each node, and Python stops it near 1,000. "
            "Keep the nodes that wait in a list.",
            """
def leaves(y):
    found, seen = [], set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, number in node.next_functions:
            visit(target)

    if y.grad_fn is None:
        return [y]
    visit(y.grad_fn)
    return found
""",
        ),
        Mistake(
            "first level",
            "You looked at the nodes right below `y` only. Leaves may lie many nodes further down.",
            """
def leaves(y):
    if y.grad_fn is None:
        return [y]
    targets = [target for target, number in y.grad_fn.next_functions]
    return list({t.variable for t in targets if hasattr(t, "variable")})
""",
        ),
        Mistake(
            "leaf itself",
            "For most graphs this is right. When `y` is itself a leaf, its `grad_fn` is `None` and the "
            "answer is `[y]`, and not an empty list.",
            """
def leaves(y):
    found, seen, waiting = [], set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting.extend(target for target, number in node.next_functions)
    return found
""",
        ),
        Mistake(
            "first input only",
            "You followed the first input of every node. The other inputs lead to leaves too.",
            """
def leaves(y):
    node = y.grad_fn
    if node is None:
        return [y]
    while node is not None and not hasattr(node, "variable"):
        node = node.next_functions[0][0]
    return [] if node is None else [node.variable]
""",
        ),
    ),
    cases=(
        _graph_case("the leaf `a` is used twice", _used_twice),
        _graph_case("constants, which have no node", _with_constants),
        _graph_case("one output of an operation with several", _one_apart),
        _graph_case("`y` is a leaf", _is_leaf),
        _graph_case("a detached tensor on the way", _detached),
        _graph_case("three leaves with the same value", _equal_values),
        _graph_case("a chain of 1,400 additions", _chain),
        _graph_case("60 times `y = y + y`", _diamonds),
    ),
    observe=_observe_leaves,
    too_slow="The number of paths doubles with each `y + y`: remember the nodes that you have seen.",
)


# ------------------------------------------------------------------ which outputs are used


def _observe_outputs(answer, build: Callable) -> dict:
    y, node = build()
    found = answer(y, node)
    is_list = isinstance(found, list)
    return {"list of outputs": tuple(found) if is_list else found, "kind of the result": type(found).__name__}


def _table(rows: int = 4) -> torch.Tensor:
    return torch.arange(2.0 * rows).reshape(rows, 2).requires_grad_()


def _rows_0_and_2():
    rows = _table().unbind()
    return rows[0] * rows[2], rows[0].grad_fn


def _turned():
    rows = _table().unbind()
    return rows[3] * rows[1], rows[0].grad_fn


def _row_twice():
    rows = _table().unbind()
    return rows[2] * rows[2], rows[0].grad_fn


def _far_down():
    parts = _table().split(1)
    return (parts[3].exp() + parts[1]).sum(), parts[0].grad_fn


def _values_of_topk():
    values, _ = _table().topk(1)
    return values.sum(), values.grad_fn


def _not_reached():
    rows, other = _table().unbind(), _table()
    return other.sum(), rows[0].grad_fn


def _root_itself():
    rows = _table().unbind()
    return rows[3], rows[0].grad_fn


outputs_used = Exercise(
    name="outputs_used",
    chapter="12",
    title="Which outputs are used?",
    minutes=7,
    difficulty=2,
    statement="""
`node` belongs to an operation with several outputs, such as `unbind`. Write `outputs_used(y, node)`: a
sorted list of the numbers of those outputs that `y` was computed from, each once.

After `rows = table.unbind()` and `y = rows[0] * rows[2]`, the answer is `[0, 2]`. If `y` is one of the
outputs itself, that output counts. If the graph of `y` does not hold `node`, the answer is `[]`.
""",
    kind="function",
    starter="def outputs_used(y, node):\n    ...",
    answer="outputs_used",
    hints=(
        "Walk the graph of `y`, and look at every pair that points to `node`.",
        "The second half of the pair is the number of the output that was used. The slot is something else.",
        "`y` itself has no arrow above it: its `grad_fn` may be `node`, and then its `output_nr` counts.",
    ),
    reference="""
def outputs_used(y, node):
    used, seen, waiting = set(), set(), [y.grad_fn]
    if y.grad_fn is node:
        used.add(y.output_nr)
    while waiting:
        current = waiting.pop()
        if current is None or current in seen:
            continue
        seen.add(current)
        for target, number in current.next_functions:
            if target is node:
                used.add(number)
            waiting.append(target)
    return sorted(used)
""",
    explains=(
        "The number in a pair of `next_functions` says which gradient of the target the arrow delivers, and "
        "so which output was used."
    ),
    mistakes=(
        Mistake(
            "slot",
            "You returned the positions in `next_functions`, which say which input of the later operation "
            "it was. The number of the output is the second half of the pair.",
            """
def outputs_used(y, node):
    used, seen, waiting = set(), set(), [y.grad_fn]
    if y.grad_fn is node:
        used.add(y.output_nr)
    while waiting:
        current = waiting.pop()
        if current is None or current in seen:
            continue
        seen.add(current)
        for slot, (target, number) in enumerate(current.next_functions):
            if target is node:
                used.add(slot)
            waiting.append(target)
    return sorted(used)
""",
        ),
        Mistake(
            "with repeats",
            "An output that is used twice is in your list twice.",
            """
def outputs_used(y, node):
    used, seen, waiting = [], set(), [y.grad_fn]
    if y.grad_fn is node:
        used.append(y.output_nr)
    while waiting:
        current = waiting.pop()
        if current is None or current in seen:
            continue
        seen.add(current)
        for target, number in current.next_functions:
            if target is node:
                used.append(number)
            waiting.append(target)
    return sorted(used)
""",
        ),
        Mistake(
            "root forgotten",
            "No arrow leads to `y` itself. When `y` is one of the outputs, its own `output_nr` is the "
            "answer.",
            """
def outputs_used(y, node):
    used, seen, waiting = set(), set(), [y.grad_fn]
    while waiting:
        current = waiting.pop()
        if current is None or current in seen:
            continue
        seen.add(current)
        for target, number in current.next_functions:
            if target is node:
                used.add(number)
            waiting.append(target)
    return sorted(used)
""",
        ),
        Mistake(
            "one level",
            "You looked at the pairs of the last node only. `node` may be reached further down.",
            """
def outputs_used(y, node):
    if y.grad_fn is node:
        return [y.output_nr]
    return sorted({number for target, number in y.grad_fn.next_functions if target is node})
""",
        ),
        Mistake(
            "all outputs",
            "You listed every output of the operation. Only those with an arrow were used.",
            """
def outputs_used(y, node):
    return list(range(len(node._input_metadata)))
""",
        ),
    ),
    cases=(
        _graph_case("rows 0 and 2 of four", _rows_0_and_2),
        _graph_case("rows 3 and 1, in that order", _turned),
        _graph_case("row 2 times itself", _row_twice),
        _graph_case("parts 1 and 3 of a split, further down", _far_down),
        _graph_case("the values of topk", _values_of_topk),
        _graph_case("`y` is row 3", _root_itself),
        _graph_case("a graph without the node", _not_reached),
    ),
    observe=_observe_outputs,
)


# ------------------------------------------------------------------ parameters without a gradient


class _Net(nn.Module):
    """Two layers that are used, one that is not; every weight is 1 unless a case changes it."""

    def __init__(self, *, frozen: bool = False, cut: bool = False, shared: bool = False, spare: bool = True):
        super().__init__()
        self.body, self.out = nn.Linear(2, 2), nn.Linear(2, 2)
        if spare:
            self.spare = nn.Linear(2, 2)
        if shared:
            self.out.weight = self.body.weight
        if frozen:
            self.body.requires_grad_(False)
        self.cut = cut
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.fill_(1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.body(x))
        return self.out(h.detach() if self.cut else h)


def _observe_parameters(answer, build: Callable) -> dict:
    model, loss = build()
    names = answer(model, loss)
    filled = [name for name, parameter in model.named_parameters() if parameter.grad is not None]
    try:
        loss.backward()
        freed = False
    except RuntimeError:
        freed = True
    return {
        "names": tuple(names) if isinstance(names, list | tuple | set) else names,
        "side effect: .grad was filled": tuple(filled),
        "side effect: the graph was freed": freed,
    }


def _net_case(label: str, **settings: bool) -> Case:
    def build():
        model = _Net(**settings)
        return model, model(torch.ones(1, 2)).sum()

    return _graph_case(label, build)


no_gradient = Exercise(
    name="no_gradient",
    chapter="12",
    title="Which parameters get no gradient?",
    minutes=8,
    difficulty=3,
    statement="""
Write `no_gradient(model, loss)`: a list of the names of those parameters of `model`, in the order of
`named_parameters()`, that `loss.backward()` would leave without a gradient. Say so **before** backward:
leave `.grad` alone, and leave the graph whole, so that backward can still run.

A parameter may be missing because its layer is not used, because it is frozen, or because something
between it and the loss was detached.
""",
    kind="function",
    starter="def no_gradient(model, loss):\n    ...",
    answer="no_gradient",
    hints=(
        "Collect the leaves of the graph of `loss`, as in the exercise on leaves.",
        "Then go through `model.named_parameters()` and keep the names of those that are not among them.",
        "`tensor in list` compares values. Compare the tensors themselves: a set of tensors, or `is`.",
    ),
    reference="""
def no_gradient(model, loss):
    reached, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(node.variable)
        waiting.extend(target for target, number in node.next_functions)
    return [name for name, parameter in model.named_parameters() if parameter not in reached]
""",
    other_right=(
        """
def no_gradient(model, loss):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    grads = torch.autograd.grad(
        loss, [p for _, p in named], retain_graph=True, allow_unused=True
    )
    reached = {n for (n, _), g in zip(named, grads) if g is not None}
    return [n for n, _ in model.named_parameters() if n not in reached]
""",
    ),
    explains="A parameter gets a gradient if and only if its AccumulateGrad is in the graph of the loss.",
    mistakes=(
        Mistake(
            "frozen only",
            "You listed the frozen parameters. One that requires grad gets nothing either, when the loss "
            "does not depend on it.",
            """
def no_gradient(model, loss):
    return [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
""",
        ),
        Mistake(
            "turned",
            "These are the parameters that do get a gradient. The others were asked for.",
            """
def no_gradient(model, loss):
    reached, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(node.variable)
        waiting.extend(target for target, number in node.next_functions)
    return [name for name, parameter in model.named_parameters() if parameter in reached]
""",
        ),
        Mistake(
            "by running it",
            "The names are right, but `.grad` is filled now: a training step would count these gradients "
            "twice.",
            """
def no_gradient(model, loss):
    loss.backward(retain_graph=True)
    return [name for name, parameter in model.named_parameters() if parameter.grad is None]
""",
        ),
        Mistake(
            "grad before",
            "Before backward every `.grad` is `None`, so this lists all parameters. The graph knows more "
            "than `.grad`.",
            """
def no_gradient(model, loss):
    return [name for name, parameter in model.named_parameters() if parameter.grad is None]
""",
        ),
        Mistake(
            "frozen left out",
            "You left the frozen parameters out. They get no gradient either, so they belong in the list.",
            """
def no_gradient(model, loss):
    reached, seen, waiting = set(), set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            reached.add(node.variable)
        waiting.extend(target for target, number in node.next_functions)
    named = model.named_parameters()
    return [name for name, p in named if p.requires_grad and p not in reached]
""",
        ),
    ),
    cases=(
        _net_case("a layer that is not used"),
        _net_case("every parameter is used", spare=False),
        _net_case("a frozen layer", frozen=True),
        _net_case("a detached tensor between the layers", cut=True, spare=False),
        _net_case("a shared weight", shared=True),
    ),
    observe=_observe_parameters,
)

none_in_a_slot = Exercise(
    name="none_in_a_slot",
    chapter="12",
    title="What the None says",
    minutes=2,
    difficulty=1,
    statement="""
`layer = nn.Linear(2, 1)` is called on `row`, a batch of data. The node of the result has three slots: the
bias, then `(None, 0)`, then the way to the weight. What does the `None` say?
""",
    kind="choice",
    starter="none_answer = ...",
    answer="none_answer",
    hints=(
        "The slots follow the tensor inputs of `addmm`: bias, input, weight.",
        "What would change in `next_functions` after `row.requires_grad_()`?",
    ),
    choices={
        "a": "the gradient of the input is zero",
        "b": "the input needs no gradient, so none is computed for it",
        "c": "something between the layer and the loss was detached",
        "d": "the gradient has not been computed yet",
    },
    reference='none_answer = "b"',
    explains=(
        "`row` is data and does not require grad. Its slot stays, so that the others keep their places, and "
        "backward does not compute that gradient at all."
    ),
    mistakes=(
        Mistake(
            "zero",
            "A zero would be computed and passed on. `None` means that nobody asked, and nothing is "
            "computed.",
            'none_answer = "a"',
        ),
        Mistake(
            "detached",
            "Detaching the output would take away the `grad_fn` that you are reading. The `None` is about "
            "this input.",
            'none_answer = "c"',
        ),
        Mistake(
            "not yet",
            "`next_functions` is fixed when the forward pass runs. It holds nodes, and no gradients.",
            'none_answer = "d"',
        ),
    ),
)

EXERCISES = (count_nodes, find_leaves, outputs_used, no_gradient, none_in_a_slot)

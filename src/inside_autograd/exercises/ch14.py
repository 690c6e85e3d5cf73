"""Exercises of chapter 14: what the graph keeps."""

import weakref
from collections.abc import Callable
from typing import ClassVar

import torch

from ._model import Case, Exercise, Mistake
from ._observe import observe_gradient, observe_names

what_is_saved = Exercise(
    name="what_is_saved",
    chapter="14",
    title="Which nodes keep a large tensor?",
    minutes=3,
    difficulty=1,
    statement="""
`x` and `y` are large leaves of the same shape, and both require grad. Which of these results have a node
that keeps a tensor as large as `x`?

- `a`: `x + 2`
- `b`: `x * y`
- `c`: `x.exp()`
- `d`: `x.sum()`
- `e`: `x * 2`
- `f`: `x.relu()`

Answer with a list of letters.
""",
    kind="list",
    starter="large = ...",
    answer="large",
    hints=(
        "Write down the slope of each. Which values of the forward pass does it need?",
        "The slope of `x * 2` is 2. The slope of `exp` is its own result.",
        "For `relu` it is enough to know where the result is above 0.",
    ),
    reference='large = ["b", "c", "f"]',
    explains=(
        "`x * y` keeps both factors, `exp` and `relu` their results. The slopes of the others do not depend "
        "on `x`: `x * 2` keeps the 2, and `x + 2` and `sum` keep no tensor."
    ),
    mistakes=(
        Mistake(
            "times two",
            "`x * 2` needs the 2 for its slope, not `x`. What it keeps is a tensor with one number.",
            'large = ["b", "c", "e", "f"]',
        ),
        Mistake(
            "results forgotten",
            "`exp` and `relu` do not keep their input, but their formulas need the result, so they keep "
            "that.",
            'large = ["b"]',
        ),
        Mistake(
            "relu forgotten",
            "`relu` needs to know where its result is above 0, so it keeps the result.",
            'large = ["b", "c"]',
        ),
        Mistake(
            "everything",
            "A node keeps only what its formula needs. The slope of a sum is 1, whatever `x` is.",
            'large = ["a", "b", "c", "d", "e", "f"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ who keeps a graph alive

keeps_alive = Exercise(
    name="keeps_alive",
    chapter="14",
    title="What keeps the graph alive?",
    minutes=3,
    difficulty=1,
    statement="""
A training loop makes a `loss` at each step, from hidden values `h`, and runs `loss.backward()`. Which of
these lines keep nodes of that step's graph alive after the step?

- `a`: `history.append(loss)`
- `b`: `history.append(loss.item())`
- `c`: `total = total + loss`
- `d`: `total += loss.detach()`
- `e`: `best = h[0]`

Answer with a list of letters.
""",
    kind="list",
    starter="alive = ...",
    answer="alive",
    hints=(
        "A tensor holds its `grad_fn`, a node holds the nodes below it. Which of the lines keep a tensor "
        "with a `grad_fn`?",
        "`item()` gives a Python number, `detach()` a tensor without `grad_fn`. Is an index an operation?",
    ),
    reference='alive = ["a", "c", "e"]',
    explains=(
        "Whoever holds a tensor with a `grad_fn` holds every node below it. Backward frees what the nodes "
        "saved, but not the nodes."
    ),
    mistakes=(
        Mistake(
            "index is a copy",
            "`h[0]` is a tensor with a `grad_fn` of its own, and that node leads down to all that made `h`.",
            'alive = ["a", "c"]',
        ),
        Mistake(
            "sum forgotten",
            "`total + loss` is recorded: its node leads to the graph of each `loss` that was added.",
            'alive = ["a", "e"]',
        ),
        Mistake(
            "detach keeps it",
            "`detach()` gives a tensor without `grad_fn`. It shares the memory of the number, but leads to "
            "no node.",
            'alive = ["a", "c", "d", "e"]',
        ),
        Mistake(
            "backward frees all",
            "Backward frees what the nodes saved. The nodes themselves live as long as something leads to "
            "them.",
            "alive = []",
        ),
    ),
    observe=observe_names,
)


class _Tracked(torch.autograd.Function):
    """The identity, and a way to count how many of its nodes are alive."""

    alive: ClassVar[weakref.WeakSet] = weakref.WeakSet()

    @staticmethod
    def forward(ctx, x):
        _Tracked.alive.add(ctx)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g


def _observe_average(answer, values: list[float]) -> dict:
    w = torch.tensor(1.0, requires_grad=True)
    _Tracked.alive = weakref.WeakSet()
    most = 0

    def losses():
        nonlocal most
        for value in values:
            loss = _Tracked.apply(w * value)
            loss.backward()
            most = max(most, len(_Tracked.alive))
            yield loss
            del loss

    result = answer(losses())
    return {"result": result, "graphs alive at the same time": most}


def _average_case(label: str, values: list[float]) -> Case:
    return Case(label, lambda generator: (values,))


average_loss = Exercise(
    name="average_loss",
    chapter="14",
    title="An average that lets go",
    minutes=5,
    difficulty=2,
    statement="""
`losses` yields the loss of one step after the other, each a tensor on which backward has run. Write
`average(losses)`: it returns their average as a Python `float`.

At no time may the graphs of two steps be alive: the old loss must be gone **before** the next one is
made. Mind the name in your loop, which holds it until then. There may be any number of steps, at least
one.
""",
    kind="function",
    starter="def average(losses):\n    ...",
    answer="average",
    hints=(
        "What you keep from step to step decides. A Python number leads nowhere.",
        "`loss.item()` is that number. Add the numbers up, and count.",
        "The name in your loop still holds the old loss while the next one is made. `del loss` at the end "
        "of the loop's body lets go.",
    ),
    reference="""
def average(losses):
    total, count = 0.0, 0
    for loss in losses:
        total += loss.item()
        count += 1
        del loss
    return total / count
""",
    other_right=(
        """
def average(losses):
    numbers = list(map(torch.Tensor.item, losses))
    return sum(numbers) / len(numbers)
""",
        """
def average(losses):
    total, count = torch.zeros(()), 0
    for loss in losses:
        total += loss.detach()
        count += 1
        del loss
    return float(total / count)
""",
    ),
    explains=(
        "A number from `item()` or a detached tensor leads to no node. A sum of losses, or a list of them, "
        "leads to the graph of every step."
    ),
    mistakes=(
        Mistake(
            "sum of tensors",
            "The average is right, but the graphs of all steps are alive at the same time: you keep the "
            "losses themselves, in a list or in a sum that was recorded.",
            """
def average(losses):
    total, count = 0.0, 0
    for loss in losses:
        total = total + loss
        count += 1
        del loss
    return float(total) / count
""",
        ),
        Mistake(
            "loop variable",
            "Nearly: the name in your loop still holds the last loss while the next one is made, so two "
            "graphs are alive. `del loss` at the end of the body lets go.",
            """
def average(losses):
    total, count = 0.0, 0
    for loss in losses:
        total += loss.item()
        count += 1
    return total / count
""",
        ),
        Mistake(
            "returned a tensor",
            "The number is right, but it is still a tensor. Use `.item()`.",
            """
def average(losses):
    total, count = torch.zeros(()), 0
    for loss in losses:
        total += loss.detach()
        count += 1
        del loss
    return total / count
""",
        ),
        Mistake(
            "sum",
            "This is the sum. Divide by the number of steps.",
            """
def average(losses):
    total = 0.0
    for loss in losses:
        total += loss.item()
        del loss
    return total
""",
        ),
        Mistake(
            "last only",
            "This is the last loss, not the average of all.",
            """
def average(losses):
    for loss in losses:
        last = loss.item()
        del loss
    return last
""",
        ),
    ),
    cases=(
        _average_case("three steps", [1.0, 2.0, 6.0]),
        _average_case("one step", [4.0]),
        _average_case("40 steps", [float(i % 5) for i in range(40)]),
    ),
    observe=_observe_average,
)


# ------------------------------------------------------------------ an iterative walk


def _observe_depth(answer, build: Callable) -> dict:
    return {"result": answer(build())}


def _depth_case(label: str, build: Callable) -> Case:
    return Case(label, lambda generator: (build,))


def _leaf() -> torch.Tensor:
    return torch.tensor(2.0, requires_grad=True)


def _skip() -> torch.Tensor:
    x = _leaf()
    return x * x.exp().sin()


def _skip_first() -> torch.Tensor:
    x = _leaf()
    return x.exp().sin() * x


def _chain() -> torch.Tensor:
    y = _leaf()
    for _ in range(1_400):
        y = y + 1
    return y


def _diamonds() -> torch.Tensor:
    y = _leaf()
    for _ in range(60):
        y = y + y
    return y


def _late() -> torch.Tensor:
    """A node that is first reached by a short way and later by a long one."""
    x = _leaf()
    h = x.exp()
    return h * h.sin().cos().tanh()


longest_path = Exercise(
    name="longest_path",
    chapter="14",
    title="The longest path",
    minutes=12,
    difficulty=3,
    statement="""
Write `depth(y)`: the number of nodes on the longest path from `y.grad_fn` down to a leaf, both ends
counted. For `y = x.exp()` it is 2: the exponential and the AccumulateGrad of `x`.

Chains of 1,400 nodes and graphs with very many paths must work.
""",
    kind="function",
    starter="def depth(y):\n    ...",
    answer="depth",
    hints=(
        "The depth of a node is 1 plus the largest depth among the nodes it points to.",
        "So you need the nodes below first. Put a node on a stack, then those below it; when they are all "
        "known, the node itself can be settled.",
        "Keep a dict from node to depth. Look at the top of the stack: if something below is not in the "
        "dict yet, push it; otherwise pop, and settle.",
    ),
    reference="""
def depth(y):
    known, stack = {}, [y.grad_fn]
    while stack:
        node = stack[-1]
        below = [target for target, number in node.next_functions if target is not None]
        missing = [target for target in below if target not in known]
        if missing:
            stack.extend(missing)
        else:
            known[node] = 1 + max((known[target] for target in below), default=0)
            stack.pop()
    return known[y.grad_fn]
""",
    other_right=(
        """
def depth(y):
    layer, count = {y.grad_fn}, 0
    while layer:
        count += 1
        layer = {t for node in layer for t, _ in node.next_functions if t is not None}
    return count
""",
    ),
    explains=(
        "Each node is settled once, after those below it. That is a depth-first walk with a stack of your "
        "own in place of Python's."
    ),
    mistakes=(
        Mistake(
            "recursion",
            "On the long chain your function calls itself once for each node, and Python stops it near "
            "1,000. Keep a stack of your own.",
            """
def depth(y):
    known = {}

    def visit(node):
        if node not in known:
            below = [visit(target) for target, _ in node.next_functions if target is not None]
            known[node] = 1 + max(below, default=0)
        return known[node]

    return visit(y.grad_fn)
""",
        ),
        Mistake(
            "shortest",
            "This is the length of the shortest path to a leaf. A node that is near the top by one way may "
            "be deep by another.",
            """
def depth(y):
    layer, count = [y.grad_fn], 1
    while not any(hasattr(node, "variable") for node in layer):
        layer = list({t for node in layer for t, _ in node.next_functions if t is not None})
        count += 1
    return count
""",
        ),
        Mistake(
            "first reached",
            "You settle each node when you first reach it, level by level. A longer way may reach it later, "
            "and then it lies deeper.",
            """
def depth(y):
    seen, layer, count = {y.grad_fn}, [y.grad_fn], 0
    while layer:
        count += 1
        layer = [t for node in layer for t, _ in node.next_functions if t is not None]
        layer = [t for t in dict.fromkeys(layer) if t not in seen]
        seen.update(layer)
    return count
""",
        ),
        Mistake(
            "arrows",
            "You counted the arrows on the path. The nodes at both ends count, so it is one more.",
            """
def depth(y):
    layer, count = {y.grad_fn}, -1
    while layer:
        count += 1
        layer = {t for node in layer for t, _ in node.next_functions if t is not None}
    return count
""",
        ),
        Mistake(
            "all nodes",
            "This is the number of nodes in the whole graph, not on one path.",
            """
def depth(y):
    seen, waiting = set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(target for target, _ in node.next_functions)
    return len(seen)
""",
        ),
        Mistake(
            "first input only",
            "You followed the first input at each node. The longest path may leave by another one.",
            """
def depth(y):
    node, count = y.grad_fn, 0
    while node is not None:
        count += 1
        below = [target for target, _ in node.next_functions if target is not None]
        node = below[0] if below else None
    return count
""",
        ),
    ),
    cases=(
        _depth_case("`x.exp()`", lambda: _leaf().exp()),
        _depth_case("`x * x.exp().sin()`", _skip),
        _depth_case("`x.exp().sin() * x`", _skip_first),
        _depth_case("`x.exp() * w`, two leaves", lambda: _leaf().exp() * _leaf()),
        _depth_case("`(x + 1) * 2`, with constants", lambda: (_leaf() + 1) * 2),
        _depth_case("a node that a short and a long way lead to", _late),
        _depth_case("60 times `y = y + y`", _diamonds),
        _depth_case("a chain of 1,400 additions", _chain),
    ),
    observe=_observe_depth,
    too_slow="The number of paths doubles with each `y + y`: settle each node once, and remember its depth.",
)


# ------------------------------------------------------------------ slim a computation


def _observe_slim(answer, x: torch.Tensor) -> dict:
    own = x.untyped_storage().data_ptr()
    sizes: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.numel() and tensor.untyped_storage().data_ptr() != own:
            sizes[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor.detach()

    def watched(x: torch.Tensor) -> torch.Tensor:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            return answer(x)

    seen = observe_gradient(watched, x)
    # Constants of a few bytes are not what this is about.
    large = sum(size for size in sizes.values() if size > 16)
    return {**seen, "bytes saved besides x": large}


def _slim_case(label: str, *shape: int) -> Case:
    return Case(label, lambda generator: (torch.randn(shape, generator=generator).requires_grad_(),))


slim_softplus = Exercise(
    name="slim_softplus",
    chapter="14",
    title="Slim a computation",
    minutes=8,
    difficulty=3,
    statement="""
The softplus function is `log(1 + exp(x))`. Written like that, the graph keeps two tensors as large as
`x`, besides `x`. Write `softplus(x)` with the same values and gradients whose graph keeps **nothing
besides `x`**.

The check counts saved bytes. You may use anything in torch.
""",
    kind="function",
    starter="def softplus(x):\n    ...",
    answer="softplus",
    hints=(
        "The slope is `sigmoid(x)`. Which tensor is enough to compute it?",
        "One fused operation keeps less than three small ones. Is there one for this function?",
        "`torch.nn.functional.softplus` is one. `torch.utils.checkpoint.checkpoint` is another way.",
    ),
    reference="""
def softplus(x):
    return torch.nn.functional.softplus(x)
""",
    other_right=(
        """
def softplus(x):
    from torch.utils.checkpoint import checkpoint
    return checkpoint(lambda x: torch.log(1 + torch.exp(x)), x, use_reentrant=False)
""",
        """
class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log1p(torch.exp(-x.abs())) + x.clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * torch.sigmoid(x)


def softplus(x):
    return Softplus.apply(x)
""",
    ),
    explains=(
        "Each small operation saves what its own formula needs. A fused one knows the formula of the whole: "
        "`sigmoid(x)`, for which the input is enough, and the input is alive anyway."
    ),
    mistakes=(
        Mistake(
            "as given",
            "Values and gradients are right. But the graph keeps as much as that of `log(1 + exp(x))`: two "
            "tensors as large as `x`, besides `x`.",
            "\ndef softplus(x):\n    return torch.log(1 + torch.exp(x))\n",
        ),
        Mistake(
            "log1p",
            "Values and gradients are right. But the graph keeps one tensor as large as `x`, besides `x`. "
            "`log1p(exp(x))` does so too: it shares with `exp` the result that `exp` kept.",
            "\ndef softplus(x):\n    return torch.log1p(torch.exp(x))\n",
        ),
        Mistake(
            "detached",
            "Nothing is saved, since nothing was recorded: there is no gradient any more.",
            "\ndef softplus(x):\n    return torch.log(1 + torch.exp(x.detach()))\n",
        ),
        Mistake(
            "relu",
            "That is `relu`. Softplus is its smooth relative: at 0 it is `log(2)`, and not 0.",
            "\ndef softplus(x):\n    return torch.relu(x)\n",
        ),
        Mistake(
            "silu",
            "That is `x * sigmoid(x)`, another smooth function.",
            "\ndef softplus(x):\n    return torch.nn.functional.silu(x)\n",
        ),
    ),
    cases=(
        _slim_case("200 elements", 200),
        _slim_case("one element", 1),
        _slim_case("a matrix", 20, 30),
        _slim_case("empty", 0),
    ),
    observe=_observe_slim,
    seconds=60,  # the first checkpoint of a process imports a compiler
)

backward_twice = Exercise(
    name="backward_twice",
    chapter="14",
    title="Predict: backward a second time",
    minutes=2,
    difficulty=1,
    statement="""
`x` is a leaf with three elements. `backward()` is called twice on the same result. For which of these
does the second call raise?
""",
    kind="choice",
    starter="twice_answer = ...",
    answer="twice_answer",
    hints=(
        "The first backward frees what was saved. What did each of them save?",
        "`sum` needs the shape of its input, and a shape is no tensor.",
    ),
    choices={
        "a": "for `x.sum()` and for `x.exp().sum()`",
        "b": "for `x.sum()` only",
        "c": "for `x.exp().sum()` only",
        "d": "for neither",
    },
    reference='twice_answer = "c"',
    explains="`exp` saved its result, and that was freed. `x.sum()` saved no tensor, so nothing is missing.",
    mistakes=(
        Mistake(
            "both",
            "The message speaks of what was saved and freed. `x.sum()` saves no tensor, so its second call "
            "works.",
            'twice_answer = "a"',
        ),
        Mistake(
            "sum only",
            "It is the other way round: `sum` saved no tensor, and `exp` did.",
            'twice_answer = "b"',
        ),
        Mistake(
            "neither",
            "`exp` needs its result in backward. The first call freed it, so the second has nothing to "
            "compute with.",
            'twice_answer = "d"',
        ),
    ),
)

EXERCISES = (what_is_saved, keeps_alive, average_loss, longest_path, slim_softplus, backward_twice)

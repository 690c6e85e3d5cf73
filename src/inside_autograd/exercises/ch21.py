"""Exercises of chapter 21: backward and grad."""

from collections.abc import Callable

import torch

from ._model import Case, Exercise, Mistake
from ._observe import observe_call

grad_leaves_grad = Exercise(
    name="grad_leaves_grad",
    chapter="21",
    title="Predict: grad after backward",
    minutes=2,
    difficulty=1,
    statement="""
`x = torch.tensor(3.0, requires_grad=True)`\\
`(x * x).backward()`\\
`g, = torch.autograd.grad(x * x + x, x)`

What are `x.grad` and `g` now?
""",
    kind="choice",
    starter="grad_answer = ...",
    answer="grad_answer",
    hints=(
        "Which of the two calls writes into `.grad`?",
        "Inside one call the paths are summed: `x * x + x` has three paths to `x`.",
    ),
    choices={
        "a": "`x.grad` is 13 and `g` is 13",
        "b": "`x.grad` is 6 and `g` is 13",
        "c": "`x.grad` is 6 and `g` is 7",
        "d": "`x.grad` is 13 and `g` is 7",
    },
    reference='grad_answer = "c"',
    explains=(
        "`autograd.grad` returns its result and leaves `.grad` alone. Its three paths give 3 + 3 + 1 = 7, "
        "and the earlier 6 is not added."
    ),
    mistakes=(
        Mistake(
            "both accumulate",
            "`autograd.grad` neither adds to `.grad` nor starts from what is there.",
            'grad_answer = "a"',
        ),
        Mistake(
            "grad starts from .grad",
            "`autograd.grad` does not look at `.grad`. It sums over the paths of this one call.",
            'grad_answer = "b"',
        ),
        Mistake(
            "grad writes",
            "Only `backward` writes into `.grad`. What `autograd.grad` computes, it returns.",
            'grad_answer = "d"',
        ),
    ),
)


# ------------------------------------------------------------------ a VJP by hand


def _vjp_case(label: str, rows: int, columns: int, turned: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        shape = (columns, rows) if turned else (rows, columns)
        w = torch.randint(-3, 4, shape, generator=generator).float()
        x = torch.randint(-3, 4, (columns,), generator=generator).float()
        v = torch.randint(-3, 4, (rows,), generator=generator).float()
        return (w.t() if turned else w), x, v

    return Case(label, make)


vjp_of_matmul = Exercise(
    name="vjp_of_matmul",
    chapter="21",
    title="The VJP of a matrix product",
    minutes=8,
    difficulty=2,
    statement="""
`y = w @ x` with `w` of shape `(m, n)`, `x` of shape `(n,)`, and `v` of shape `(m,)` arriving at `y`.
Write `matmul_vjp(w, x, v)`: the two gradients that `y.backward(v)` would give, as a tuple `(for w, for
x)`. No autograd, only arithmetic.
""",
    kind="function",
    starter="def matmul_vjp(w, x, v):\n    ...",
    answer="matmul_vjp",
    hints=(
        "A gradient has the shape of what it belongs to: `(m, n)` and `(n,)`.",
        "`y[i]` is the sum over `j` of `w[i, j] * x[j]`. Differentiate it for one `w[i, j]`, and for one "
        "`x[j]`.",
        "For `w[i, j]` only `y[i]` matters: `v[i] * x[j]`. For `x[j]` every `y[i]` does: sum of `v[i] * "
        "w[i, j]`.",
    ),
    reference="""
def matmul_vjp(w, x, v):
    for_w = v[:, None] * x[None, :]
    for_x = (v[:, None] * w).sum(dim=0)
    return for_w, for_x
""",
    other_right=("\ndef matmul_vjp(w, x, v):\n    return torch.outer(v, x), w.t() @ v\n",),
    explains=(
        "The gradient for `w` is an outer product, and the one for `x` multiplies by the transposed matrix. "
        "These two lines are the whole backward of a linear layer without a bias."
    ),
    mistakes=(
        Mistake(
            "outer turned",
            "The gradient for `w` is transposed: its rows belong to `v`, its columns to `x`.",
            "\ndef matmul_vjp(w, x, v):\n    return torch.outer(x, v), w.t() @ v\n",
        ),
        Mistake(
            "v ignored",
            "You left `v` out. That is right only when `v` is all ones, as for `y.sum()`.",
            "\ndef matmul_vjp(w, x, v):\n    return torch.outer(torch.ones_like(v), x), w.sum(dim=0)\n",
        ),
        Mistake(
            "order",
            "Both gradients are right, in the wrong order: the one for `w` comes first.",
            "\ndef matmul_vjp(w, x, v):\n    return w.t() @ v, torch.outer(v, x)\n",
        ),
        Mistake(
            "y for v",
            "You used `y` where the gradient `v` that arrives at `y` belongs.",
            "\ndef matmul_vjp(w, x, v):\n    y = w @ x\n    return torch.outer(y, x), w.t() @ y\n",
        ),
        Mistake(
            "mean over rows",
            "For `x` you took the mean over the outputs. Paths are summed: every `y[i]` adds its share.",
            "\ndef matmul_vjp(w, x, v):\n    return torch.outer(v, x), (v[:, None] * w).mean(dim=0)\n",
        ),
    ),
    cases=(
        _vjp_case("a 2 by 3 matrix", 2, 3),
        _vjp_case("a square matrix", 3, 3),
        _vjp_case("one output", 1, 4),
        _vjp_case("one input", 4, 1),
        _vjp_case("not contiguous", 3, 2, turned=True),
    ),
    observe=observe_call,
)


# ------------------------------------------------------------------ Jacobian rows


def _observe_jacobian(answer, f: Callable, x: torch.Tensor) -> dict:
    calls = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return f(x)

    result = answer(counted, x)
    return {
        "result": result,
        "side effect: .grad was filled": x.grad is not None,
        "side effect: `f` was called more than once": len(calls) > 1,
    }


def _jacobian_case(label: str, f: Callable, *shape: int) -> Case:
    return Case(label, lambda generator: (f, torch.randn(shape, generator=generator).requires_grad_()))


jacobian_rows = Exercise(
    name="jacobian_rows",
    chapter="21",
    title="A Jacobian, row by row",
    minutes=8,
    difficulty=2,
    statement="""
Write `jacobian(f, x)` for a leaf `x` of shape `(n,)` and `y = f(x)` of shape `(m,)`: the matrix of shape
`(m, n)` with the slope of `y[i]` for `x[j]` in row `i`, column `j`. Use `torch.autograd.grad` with
`grad_outputs`, and call `f` once. `.grad` must stay as it is.

When it passes, try it again with `is_grads_batched=True`, which takes all rows in one call.
""",
    kind="function",
    starter="def jacobian(f, x):\n    ...",
    answer="jacobian",
    hints=(
        "With `grad_outputs` 1 at place `i` and 0 elsewhere, the VJP is row `i`.",
        "Several passes over one graph: which argument keeps what the nodes saved?",
        "`torch.eye(len(y))` has the vectors you need as its rows.",
    ),
    reference="""
def jacobian(f, x):
    y = f(x)
    rows = []
    for v in torch.eye(len(y)):
        row, = torch.autograd.grad(y, x, grad_outputs=v, retain_graph=True)
        rows.append(row)
    return torch.stack(rows)
""",
    other_right=(
        """
def jacobian(f, x):
    y = f(x)
    rows, = torch.autograd.grad(y, x, grad_outputs=torch.eye(len(y)), is_grads_batched=True)
    return rows
""",
        """
def jacobian(f, x):
    y = f(x)
    return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))])
""",
    ),
    explains="One backward pass gives one row, and no more: so training wants a loss with one element.",
    mistakes=(
        Mistake(
            "transposed",
            "This is the transposed matrix: row `i` belongs to output `i`.",
            """
def jacobian(f, x):
    y = f(x)
    rows = [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in torch.eye(len(y))]
    return torch.stack(rows, dim=1)
""",
        ),
        Mistake(
            "summed",
            "This is the sum of all rows: the gradient of `y.sum()`.",
            """
def jacobian(f, x):
    row, = torch.autograd.grad(f(x).sum(), x)
    return row
""",
        ),
        Mistake(
            "graph freed",
            "The first pass freed what the nodes had saved, and the second needs it again. Several passes "
            "over one graph are what `retain_graph=True` is for.",
            """
def jacobian(f, x):
    y = f(x)
    return torch.stack([torch.autograd.grad(y, x, v)[0] for v in torch.eye(len(y))])
""",
        ),
        Mistake(
            "f called again",
            "The matrix is right, but `f` was called more than once. One forward pass is enough for all "
            "rows: `retain_graph=True` keeps what its graph has saved.",
            """
def jacobian(f, x):
    rows = [torch.autograd.grad(f(x), x, v)[0] for v in torch.eye(len(f(x)))]
    return torch.stack(rows)
""",
        ),
        Mistake(
            "filled grad",
            "The matrix is right, but it came through `.grad`, which is filled now. `autograd.grad` returns "
            "its result.",
            """
def jacobian(f, x):
    y = f(x)
    rows = []
    for v in torch.eye(len(y)):
        x.grad = None
        y.backward(v, retain_graph=True)
        rows.append(x.grad.clone())
    return torch.stack(rows)
""",
        ),
        Mistake(
            "accumulated",
            "Row `i` holds the sum of the rows up to `i`: `.grad` was not cleared between the passes. It is "
            "filled now, too.",
            """
def jacobian(f, x):
    y = f(x)
    rows = []
    for v in torch.eye(len(y)):
        y.backward(v, retain_graph=True)
        rows.append(x.grad.clone())
    return torch.stack(rows)
""",
        ),
    ),
    cases=(
        _jacobian_case("two outputs, three inputs", lambda x: torch.stack([(x**2).sum(), x.prod()]), 3),
        _jacobian_case("element by element", lambda x: x.exp(), 3),
        _jacobian_case("one output", lambda x: x.sin().sum()[None], 2),
        _jacobian_case("more outputs than inputs", lambda x: torch.cat([x, x**3, x * 2]), 2),
        _jacobian_case("an output without `x`", lambda x: torch.cat([x**2, torch.ones(1)]), 2),
    ),
    observe=_observe_jacobian,
)


# ------------------------------------------------------------------ a gradient penalty


def _observe_penalty(answer, f: Callable, x: torch.Tensor, w: torch.Tensor) -> dict:
    penalty = answer(f, x)
    recorded = isinstance(penalty, torch.Tensor) and penalty.requires_grad and penalty.numel() == 1
    side = x.grad is not None or w.grad is not None
    grad = torch.autograd.grad(penalty.sum(), w, allow_unused=True)[0] if recorded else None
    return {"result": penalty, "gradient for w": grad, "side effect: .grad was filled": side}


def _penalty_case(label: str, kind: Callable, rows: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        w = torch.randn(3, generator=generator).requires_grad_()
        x = torch.randn(rows, 3, generator=generator).requires_grad_()
        return (lambda x: kind(x, w)), x, w

    return Case(label, make)


gradient_penalty = Exercise(
    name="gradient_penalty",
    chapter="21",
    title="A gradient penalty",
    minutes=10,
    difficulty=3,
    statement="""
`f(x)` gives one score for each row of `x`, a leaf of shape `(rows, 3)`. Write `penalty(f, x)`: the mean
over the rows of `(norm - 1) ** 2`, where `norm` is the length of the gradient of that row's score for
that row of `x`.

The penalty is part of a loss, so its own gradient must reach the weights inside `f`. `.grad` must stay as
it is.
""",
    kind="function",
    starter="def penalty(f, x):\n    ...",
    answer="penalty",
    hints=(
        "Each score depends on its own row only, so the gradient of the sum of the scores has all of them "
        "in its rows.",
        "The penalty is computed from a gradient. For it to have a gradient itself, the backward pass must "
        "be recorded.",
        "`torch.autograd.grad(f(x).sum(), x, create_graph=True)`, then `.norm(dim=1)`.",
    ),
    reference="""
def penalty(f, x):
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
    other_right=(
        """
def penalty(f, x):
    scores = f(x)
    g = torch.autograd.grad(scores, x, torch.ones_like(scores), create_graph=True)[0]
    return (g.pow(2).sum(1).sqrt() - 1).square().mean()
""",
    ),
    explains=(
        "`create_graph=True` records the backward pass as a graph of its own, on top of the first. Without "
        "it the gradient is a plain number."
    ),
    mistakes=(
        Mistake(
            "not recorded",
            "The number is right, but it has no graph, so the weights learn nothing from it. Record the "
            "backward pass with `create_graph=True`.",
            """
def penalty(f, x):
    g, = torch.autograd.grad(f(x).sum(), x)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "one norm",
            "You took the length of all rows together. Each row has its own length: `norm(dim=1)`.",
            """
def penalty(f, x):
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return (g.norm() - 1) ** 2
""",
        ),
        Mistake(
            "mean score",
            "You differentiated the mean of the scores, so every length is divided by the number of rows.",
            """
def penalty(f, x):
    g, = torch.autograd.grad(f(x).mean(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "no target",
            "The lengths are pulled to 0. The penalty pulls them to 1: subtract it before you square.",
            """
def penalty(f, x):
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) ** 2).mean()
""",
        ),
        Mistake(
            "summed",
            "You summed over the rows, the mean was asked: off by a factor of the number of rows.",
            """
def penalty(f, x):
    g, = torch.autograd.grad(f(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).sum()
""",
        ),
        Mistake(
            "through .grad",
            "The number is right, but `backward` filled `.grad` of `x` and of the weights on the way. Use "
            "`autograd.grad`.",
            """
def penalty(f, x):
    f(x).sum().backward(create_graph=True)
    return ((x.grad.norm(dim=1) - 1) ** 2).mean()
""",
        ),
    ),
    cases=(
        _penalty_case("four rows", lambda x, w: torch.tanh(x @ w) + (x**2 @ w), 4),
        _penalty_case("one row", lambda x, w: torch.sin(x @ w), 1),
        _penalty_case("seven rows", lambda x, w: (x * w).exp().sum(dim=1), 7),
    ),
    observe=_observe_penalty,
)


# ------------------------------------------------------------------ repairs


def _observe_zeros(answer, build: Callable) -> dict:
    loss, inputs = build()
    found = answer(loss, inputs)
    return {
        "result": tuple(found) if isinstance(found, list | tuple) else found,
        "side effect: .grad was filled": any(t.grad is not None for t in inputs if t.is_leaf),
    }


def _inputs() -> list[torch.Tensor]:
    return [torch.tensor([1.0, 2.0], requires_grad=True), torch.ones(2, 2, requires_grad=True)]


def _second_unused():
    a, b = _inputs()
    return (a * a).sum(), [a, b]


def _all_used():
    a, b = _inputs()
    return (b @ a).sum(), [a, b]


def _none_used():
    a, b = _inputs()
    return torch.ones(3, requires_grad=True).sum(), [b, a]


def _middle():
    a, b = _inputs()
    h = a * 3
    return (h * h).sum(), [h, b]


grads_or_zeros = Exercise(
    name="grads_or_zeros",
    chapter="21",
    title="Repair: appears to not have been used",
    minutes=4,
    difficulty=1,
    statement="""
`torch.autograd.grad(loss, inputs)` raises when one of the inputs is not in the graph of `loss`. Write
`grads(loss, inputs)`: a list of gradients, with zeros of the right shape for inputs that `loss` does not
depend on. `.grad` must stay as it is.
""",
    kind="function",
    starter="def grads(loss, inputs):\n    ...",
    answer="grads",
    hints=(
        "The message names an argument. What does it give for an unused input?",
        "`None` is no tensor. Another argument of `autograd.grad` turns it into zeros.",
    ),
    reference="""
def grads(loss, inputs):
    return list(torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True))
""",
    other_right=(
        """
def grads(loss, inputs):
    found = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, inputs)]
""",
    ),
    explains="`None` says that there is no path; `materialize_grads=True` turns that into zeros.",
    mistakes=(
        Mistake(
            "None left",
            "An unused input gets `None` here. Zeros were asked for: see `materialize_grads`.",
            """
def grads(loss, inputs):
    return list(torch.autograd.grad(loss, inputs, allow_unused=True))
""",
        ),
        Mistake(
            "as before",
            "This is the call that raises.",
            "\ndef grads(loss, inputs):\n    return list(torch.autograd.grad(loss, inputs))\n",
        ),
        Mistake(
            "left out",
            "You left the unused inputs out, so the list no longer lines up with `inputs`.",
            """
def grads(loss, inputs):
    found = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [g for g in found if g is not None]
""",
        ),
        Mistake(
            "backward",
            "`backward` stores its result in `.grad` of leaves, and stores nothing for a tensor in the "
            "middle. Use `autograd.grad`.",
            """
def grads(loss, inputs):
    loss.backward()
    kept = [t.grad if t.is_leaf else None for t in inputs]
    return [torch.zeros_like(t) if g is None else g for g, t in zip(kept, inputs)]
""",
        ),
        Mistake(
            "scalar zeros",
            "The zeros need the shape of their input. Yours have no dimensions.",
            """
def grads(loss, inputs):
    found = torch.autograd.grad(loss, inputs, allow_unused=True)
    return [torch.tensor(0.0) if g is None else g for g in found]
""",
        ),
    ),
    cases=(
        Case("the second input is not used", lambda generator: (_second_unused,)),
        Case("both are used", lambda generator: (_all_used,)),
        Case("neither is used", lambda generator: (_none_used,)),
        Case("the first input is a tensor in the middle", lambda generator: (_middle,)),
    ),
    observe=_observe_zeros,
)


def _observe_two(answer, trunk: Callable, first: Callable, second: Callable, x: torch.Tensor) -> dict:
    calls = []

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return trunk(x)

    answer(counted, first, second, x)
    return {"gradient in x.grad": x.grad, "number of runs of the trunk": len(calls)}


def _two_case(label: str, trunk: Callable, first: Callable, second: Callable, *shape: int) -> Case:
    return Case(
        label,
        lambda generator: (trunk, first, second, torch.randn(shape, generator=generator).requires_grad_()),
    )


two_losses = Exercise(
    name="two_losses",
    chapter="21",
    title="Repair: two losses, one trunk",
    minutes=5,
    difficulty=2,
    statement="""
`h = trunk(x)`, then `first(h).backward()` and `second(h).backward()`: the second call raises, since the
first freed what the trunk had saved. Write `run(trunk, first, second, x)`: afterwards `x.grad` holds the
gradient of both losses together, and the trunk ran **once**.
""",
    kind="function",
    starter="def run(trunk, first, second, x):\n    ...",
    answer="run",
    hints=(
        "Gradients are linear: the gradient of a sum is the sum of the gradients.",
        "`(first(h) + second(h)).backward()` is one pass over the trunk.",
    ),
    reference="""
def run(trunk, first, second, x):
    h = trunk(x)
    loss = first(h) + second(h)
    loss.backward()
""",
    other_right=(
        """
def run(trunk, first, second, x):
    h = trunk(x)
    first(h).backward(retain_graph=True)
    second(h).backward()
""",
        """
def run(trunk, first, second, x):
    h = trunk(x)
    torch.autograd.backward([first(h), second(h)])
""",
    ),
    explains=(
        "One backward over the sum walks the trunk once. `retain_graph=True` on the first call is right "
        "too, and walks it twice."
    ),
    mistakes=(
        Mistake(
            "trunk twice",
            "The gradient is right, but the trunk ran twice: twice the work, and another graph.",
            """
def run(trunk, first, second, x):
    first(trunk(x)).backward()
    second(trunk(x)).backward()
""",
        ),
        Mistake(
            "as before",
            "The second pass finds the trunk's saved tensors freed, as in the code of the statement.",
            """
def run(trunk, first, second, x):
    h = trunk(x)
    first(h).backward()
    second(h).backward()
""",
        ),
        Mistake(
            "second only",
            "`x.grad` holds the gradient of the second loss only.",
            "\ndef run(trunk, first, second, x):\n    second(trunk(x)).backward()\n",
        ),
        Mistake(
            "first only",
            "`x.grad` holds the gradient of the first loss only.",
            """
def run(trunk, first, second, x):
    h = trunk(x)
    first(h).backward()
    second(h.detach())
""",
        ),
        Mistake(
            "cleared between",
            "`x.grad` was cleared between the two passes, so only the second one is left. Adding up is what "
            "`.grad` does by itself. The trunk ran twice, too.",
            """
def run(trunk, first, second, x):
    first(trunk(x)).backward()
    x.grad = None
    second(trunk(x)).backward()
""",
        ),
        Mistake(
            "mean",
            "You took the mean of the two losses, so the gradient is half of what was asked for.",
            """
def run(trunk, first, second, x):
    h = trunk(x)
    ((first(h) + second(h)) / 2).backward()
""",
        ),
    ),
    cases=(
        _two_case("three elements", lambda x: x.exp(), lambda h: h.sum(), lambda h: (h * h).sum(), 3),
        _two_case("one element", lambda x: x.tanh() * x, lambda h: (3 * h).sum(), lambda h: h.sin().sum(), 1),
        _two_case("a matrix", lambda x: x @ x.t(), lambda h: h.mean(), lambda h: h.diagonal().sum(), 2, 2),
    ),
    observe=_observe_two,
)

EXERCISES = (grad_leaves_grad, vjp_of_matmul, jacobian_rows, gradient_penalty, grads_or_zeros, two_losses)

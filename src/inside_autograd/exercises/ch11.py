"""Exercises of chapter 11: from a number to its gradient."""

import torch

from ..graph import Graph
from ._model import Case, Exercise, Mistake
from ._observe import observe_call, observe_gradient

three_gradients = Exercise(
    name="three_gradients",
    chapter="11",
    title="Three gradients by hand",
    minutes=4,
    difficulty=1,
    statement="""
With `x = 3` and `w = 2`, work out on paper what `backward()` would leave:

1. in `x.grad`, after `y = w * x + x * x`
2. in `w.grad`, after `y = (x - w) ** 2`
3. in `x.grad`, after `y = x * w * x`

Write the three numbers in order. Then run the three in a cell of your own and compare.
""",
    kind="list",
    starter="three = (..., ..., ...)",
    answer="three",
    hints=(
        "`x` is used more than once in 1 and 3. Each use is a path from `y` to `x`, and the paths are "
        "summed.",
        "In 2, ask what happens to `x - w` when `w` grows a little.",
        "Go through the uses of `x` in 1 one by one, keep everything else fixed, and add up.",
    ),
    reference="three = (8, -2, 12)",
    explains=(
        "The paths from `y` to the leaf are summed: `w + x + x = 8`, then `-2 * (x - w) = -2`, then `w * x "
        "+ x * w = 12`."
    ),
    mistakes=(
        Mistake(
            "one path",
            "In 1 and 3 you followed one use of `x` where there are two. Each use of a tensor is a path of "
            "its own, and their gradients are summed.",
            "three = (5, -2, 6)",
        ),
        Mistake(
            "sign",
            "The second one has the wrong sign: `w` is subtracted, so the step from `x - w` to `w` "
            "multiplies by -1.",
            "three = (8, 2, 12)",
        ),
        Mistake(
            "values",
            "These are the values of `y`. The gradient says how `y` changes when the leaf changes a little.",
            "three = (15, 1, 18)",
        ),
        Mistake(
            "other leaf",
            "In 1 and 3 you took the gradient for `w`, and in 2 the one for `x`.",
            "three = (3, 2, 9)",
        ),
    ),
)


def _cube(x: torch.Tensor) -> torch.Tensor:
    return (x**3).sum()


def _products(x: torch.Tensor) -> torch.Tensor:
    return (x * x.flatten().flip(0).reshape(x.shape)).sum() + (x**4).sum()


def _numeric(label: str, f, *shape: int, turned: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randint(-4, 5, shape, generator=generator).double() / 2
        return f, (x.t() if turned else x), 2.0**-10

    return Case(label, make)


numeric_gradient = Exercise(
    name="numeric_gradient",
    chapter="11",
    title="A check that does not trust autograd",
    minutes=8,
    difficulty=2,
    statement="""
Write `numeric_gradient(f, x, h)`. It returns the gradient of `f` at `x` by **central differences**: for
each element on its own, `(f(x with +h there) - f(x with -h there)) / (2 * h)`.

- `f` takes a tensor and returns a tensor with one element.
- `x` is a float64 tensor of any shape: without dimensions, empty, or a transposed view too. It must be
  unchanged afterwards.
- The result has the shape and dtype of `x`.

For example, `numeric_gradient(lambda x: (x**3).sum(), x, 2**-10)` is close to `3 * x**2`.
""",
    kind="function",
    starter="def numeric_gradient(f, x, h):\n    ...",
    answer="numeric_gradient",
    hints=(
        "Make one step per element: zeros everywhere, `h` at one place.",
        "Make the step flat: `step = torch.zeros(x.numel(), dtype=x.dtype)`, then `step[i] = h`. "
        "`step.reshape(x.shape)` has the shape of `x`, whatever that is.",
        "Begin with a flat `result` of zeros, put `(f(x + step) - f(x - step)) / (2 * h)` at place `i` for "
        "each `i`, and return `result.reshape(x.shape)`.",
    ),
    reference="""
def numeric_gradient(f, x, h):
    result = torch.zeros(x.shape, dtype=x.dtype)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        step = step.reshape(x.shape)
        difference = (f(x + step) - f(x - step)) / (2 * h)
        result.view(-1)[i] = difference
    return result
""",
    other_right=(
        """
def numeric_gradient(f, x, h):
    flat = x.reshape(-1)
    rows = torch.eye(len(flat), dtype=x.dtype) * h
    up = [f((flat + row).reshape(x.shape)) for row in rows]
    down = [f((flat - row).reshape(x.shape)) for row in rows]
    values = [(u - d) / (2 * h) for u, d in zip(up, down)]
    return torch.stack(values).reshape(x.shape) if values else torch.zeros_like(x)
""",
    ),
    explains=(
        "The two evaluations cancel the even powers of `h`, so the error shrinks with `h**2`, and not with "
        "`h` as for a one-sided difference."
    ),
    mistakes=(
        Mistake(
            "one-sided",
            "You compared `f(x + h)` with `f(x)`. That is a one-sided difference: its error shrinks with "
            "`h`, and the central one's with `h**2`.",
            """
def numeric_gradient(f, x, h):
    result = torch.zeros(x.shape, dtype=x.dtype)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        result.view(-1)[i] = (f(x + step.reshape(x.shape)) - f(x)) / h
    return result
""",
        ),
        Mistake(
            "no two",
            "Every value is twice the true one: the points are `2 * h` apart, so divide by `2 * h`.",
            """
def numeric_gradient(f, x, h):
    result = torch.zeros(x.shape, dtype=x.dtype)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        step = step.reshape(x.shape)
        result.view(-1)[i] = (f(x + step) - f(x - step)) / h
    return result
""",
        ),
        Mistake(
            "all at once",
            "You moved all elements together. That gives one number, the sum of all partial derivatives, at "
            "every place. Move one element at a time.",
            """
def numeric_gradient(f, x, h):
    return torch.full(x.shape, float(f(x + h) - f(x - h)) / (2 * h), dtype=x.dtype)
""",
        ),
        Mistake(
            "one number",
            "You return one number, the slope when all elements move together. Move one element at a time, "
            "and return a tensor of the shape of `x`.",
            """
def numeric_gradient(f, x, h):
    return (f(x + h) - f(x - h)) / (2 * h)
""",
        ),
        Mistake(
            "exact",
            "This is the exact gradient, and not the difference for this `h`. It is what the check is to be "
            "compared with: compute it from two values of `f`, without calculus and without autograd.",
            """
def numeric_gradient(f, x, h):
    x = x.clone().requires_grad_()
    f(x).backward()
    return x.grad
""",
        ),
        Mistake(
            "sign",
            "The sign is turned: it is the value at `+h` minus the value at `-h`.",
            """
def numeric_gradient(f, x, h):
    result = torch.zeros(x.shape, dtype=x.dtype)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        step = step.reshape(x.shape)
        result.view(-1)[i] = (f(x - step) - f(x + step)) / (2 * h)
    return result
""",
        ),
        Mistake(
            "input left changed",
            "The values are right, but `x` is not what it was: after each element, put the old value back.",
            """
def numeric_gradient(f, x, h):
    result = torch.zeros(x.shape, dtype=x.dtype)
    old = x.clone()
    for i in range(x.numel()):
        place = torch.zeros(x.numel(), dtype=x.dtype)
        place[i] = h
        place = place.reshape(x.shape)
        result.view(-1)[i] = (f(old + place) - f(old - place)) / (2 * h)
    x += h
    return result
""",
        ),
        Mistake(
            "flat",
            "The values are right, but the result is flat. Give it the shape of `x`.",
            """
def numeric_gradient(f, x, h):
    result = torch.zeros(x.numel(), dtype=x.dtype)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = h
        step = step.reshape(x.shape)
        result[i] = (f(x + step) - f(x - step)) / (2 * h)
    return result
""",
        ),
    ),
    cases=(
        _numeric("the example, three elements", _cube, 3),
        _numeric("one element", _products, 1),
        _numeric("no dimension", _cube),
        _numeric("two dimensions", _products, 2, 3),
        _numeric("not contiguous", _products, 3, 2, turned=True),
        _numeric("empty", _cube, 0),
    ),
    observe=observe_call,
)


def _observe_branch(answer, x: torch.Tensor, slope: float) -> dict:
    seen = observe_gradient(lambda x: answer(x, slope), x)
    result = seen["result"]
    recorded = isinstance(result, torch.Tensor) and result.requires_grad
    seen["number of nodes in the graph"] = len(Graph.of(result)) if recorded else 0
    return seen


def _branch(label: str, x: float) -> Case:
    return Case(label, lambda generator: (torch.tensor(x, requires_grad=True), 0.5))


one_branch = Exercise(
    name="one_branch",
    chapter="11",
    title="A graph with one branch",
    minutes=5,
    difficulty=1,
    statement="""
Write `bend(x, slope)` for a tensor `x` without dimensions: `x * x` where `x` is above 1, and `slope * x`
otherwise.

The graph of the result must hold **only the branch that was taken**: two nodes, one operation and the
leaf. Values and gradients must be right on both sides, and at 1.
""",
    kind="function",
    starter="def bend(x, slope):\n    ...",
    answer="bend",
    hints=(
        "The graph records what runs. What decides in Python whether a line runs?",
        "A tensor with one element can stand in an `if`: `if x > 1:`. The comparison is not recorded.",
    ),
    reference="""
def bend(x, slope):
    if x > 1:
        return x * x
    return slope * x
""",
    other_right=(
        "\ndef bend(x, slope):\n    return x.mul(x) if x.item() > 1 else x * slope\n",
        "\ndef bend(x, slope):\n    factor = x if x > 1 else slope\n    return x * factor\n",
    ),
    explains=(
        "The graph of a result holds what led to it. An `if` gives you one branch; `torch.where` combines "
        "both, so both are in its graph."
    ),
    mistakes=(
        Mistake(
            "where",
            "Values and gradients are right, but `torch.where` computes both branches, so both are in the "
            "graph.",
            "\ndef bend(x, slope):\n    return torch.where(x > 1, x * x, slope * x)\n",
        ),
        Mistake(
            "mask",
            "Values and gradients are right, but multiplying by a mask computes both branches and adds more "
            "nodes.",
            """
def bend(x, slope):
    above = (x > 1).float()
    return above * (x * x) + (1 - above) * (slope * x)
""",
        ),
        Mistake(
            "swapped",
            "The two branches are swapped: `x * x` belongs to values above 1.",
            "\ndef bend(x, slope):\n    return slope * x if x > 1 else x * x\n",
        ),
        Mistake(
            "at one",
            "Away from 1 this is right. At 1 the statement asks for `slope * x`: above means `>`, and not "
            "`>=`.",
            "\ndef bend(x, slope):\n    return x * x if x >= 1 else slope * x\n",
        ),
        Mistake(
            "left the graph",
            "The values are right, but there is no gradient: you computed with a Python number or a "
            "detached tensor, and the graph ends there.",
            "\ndef bend(x, slope):\n    v = x.detach()\n    return v * v if v > 1 else slope * v\n",
        ),
        Mistake(
            "half of it left the graph",
            "The gradient of `x * x` is half of what it should be: one factor is a number and no longer `x`.",
            "\ndef bend(x, slope):\n    return x * x.item() if x > 1 else slope * x\n",
        ),
    ),
    cases=(
        _branch("x = 3", 3.0),
        _branch("x = -2", -2.0),
        _branch("x = 1, the border", 1.0),
        _branch("x = 1.5", 1.5),
        _branch("x = 0", 0.0),
    ),
    observe=_observe_branch,
)


def _vjp_case(label: str, x: list[float], v: list[float]) -> Case:
    return Case(label, lambda generator: (torch.tensor(x), torch.tensor(v)))


vjp_by_hand = Exercise(
    name="vjp_by_hand",
    chapter="11",
    title="A vector–Jacobian product by hand",
    minutes=7,
    difficulty=2,
    statement="""
Take `y = f(x)` with `x` of two elements and

$$y_0 = x_0 x_1, \\qquad y_1 = x_0^2 .$$

Write `vjp(x, v)`: what `y.backward(v)` would add to `x.grad`, as a tensor of two elements. Use arithmetic
only, no autograd.
""",
    kind="function",
    starter="def vjp(x, v):\n    ...",
    answer="vjp",
    hints=(
        "`v[0]` is the gradient that arrives at `y_0`, `v[1]` the one that arrives at `y_1`.",
        "For each element of `x`, sum over the outputs: `v[i]` times the derivative of `y_i` for it.",
        "`x_0` is in both outputs, with derivatives `x_1` and `2 * x_0`. `x_1` is in the first only.",
    ),
    reference="""
def vjp(x, v):
    for_x0 = v[0] * x[1] + v[1] * 2 * x[0]
    for_x1 = v[0] * x[0]
    return torch.stack([for_x0, for_x1])
""",
    other_right=(
        """
def vjp(x, v):
    J = torch.tensor([[x[1], x[0]], [2 * x[0], 0.0]])
    return v @ J
""",
    ),
    explains=(
        "This is `v` times the Jacobian. Backward multiplies from the left like this at every node, and "
        "never builds the Jacobian."
    ),
    mistakes=(
        Mistake(
            "transposed",
            "This is the Jacobian times `v`, which is what forward mode computes. Backward multiplies `v` "
            "from the left: sum over the outputs, for each input.",
            """
def vjp(x, v):
    J = torch.tensor([[x[1], x[0]], [2 * x[0], 0.0]])
    return J @ v
""",
        ),
        Mistake(
            "v ignored",
            "You summed the rows of the Jacobian and left `v` out. That is right only for `v = (1, 1)`.",
            "\ndef vjp(x, v):\n    return torch.stack([x[1] + 2 * x[0], x[0]])\n",
        ),
        Mistake(
            "first output only",
            "You followed `y_0` only. `x_0` is in `y_1` too, and the two paths are summed.",
            "\ndef vjp(x, v):\n    return torch.stack([v[0] * x[1], v[0] * x[0]])\n",
        ),
        Mistake(
            "element by element",
            "You multiplied the sum of each column by the `v` of the same position. Each `v[i]` belongs to "
            "an output, not to an input.",
            "\ndef vjp(x, v):\n    return torch.stack([x[1] + 2 * x[0], x[0]]) * v\n",
        ),
        Mistake(
            "square not differentiated",
            "The derivative of `x_0 ** 2` is `2 * x_0`; you used `x_0`.",
            "\ndef vjp(x, v):\n    return torch.stack([v[0] * x[1] + v[1] * x[0], v[0] * x[0]])\n",
        ),
    ),
    cases=(
        _vjp_case("x = (2, 3), v = (1, 1)", [2.0, 3.0], [1.0, 1.0]),
        _vjp_case("v picks the first output", [2.0, 3.0], [1.0, 0.0]),
        _vjp_case("v picks the second output", [4.0, -1.0], [0.0, 1.0]),
        _vjp_case("v of any numbers", [-1.0, 0.5], [2.0, -4.0]),
        _vjp_case("x = 0", [0.0, 0.0], [3.0, 5.0]),
    ),
    observe=observe_call,
)

lost_in_argmax = Exercise(
    name="lost_in_argmax",
    chapter="11",
    title="Where did the graph end?",
    minutes=2,
    difficulty=1,
    statement="""
`w` requires grad. What is true after these three lines?

`pred = torch.argmax(w, dim=1)`\\
`pred = pred.float()`\\
`loss = (pred - 1).pow(2).sum()`
""",
    kind="choice",
    starter="argmax_answer = ...",
    answer="argmax_answer",
    hints=(
        "`argmax` returns positions: whole numbers. What happens to them when `w` changes a very little?",
        "Look at `pred.requires_grad` right after the first line, and again after the second.",
    ),
    choices={
        "a": "`loss.backward()` works, and `w.grad` is zero",
        "b": "`loss.backward()` raises, because `pred` has left the graph",
        "c": "`.float()` makes `pred` differentiable again, so `w.grad` is right",
        "d": "`loss.backward()` works, but `w.grad` stays `None`",
    },
    reference='argmax_answer = "b"',
    explains=(
        "A position is a whole number and has no gradient, so `argmax` returns a tensor without `grad_fn`. "
        "Nothing that is computed from it leads back to `w`. Compute the loss from the scores themselves."
    ),
    mistakes=(
        Mistake(
            "zero gradient",
            "A gradient of zero would need a graph to travel along. There is none: `argmax` records nothing.",
            'argmax_answer = "a"',
        ),
        Mistake(
            "float repairs",
            "`.float()` changes the dtype of numbers that are already cut off. It cannot know where they "
            "came from.",
            'argmax_answer = "c"',
        ),
        Mistake(
            "None",
            "`loss` does not require grad at all, so `backward` refuses to start and raises.",
            'argmax_answer = "d"',
        ),
    ),
)

EXERCISES = (three_gradients, numeric_gradient, one_branch, vjp_by_hand, lost_in_argmax)

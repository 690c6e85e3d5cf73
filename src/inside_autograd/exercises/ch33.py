"""Exercises of chapter 33: Functions with several outputs."""

from collections.abc import Callable

import torch

from ..graph import Graph
from ._model import Case, Exercise, Mistake
from ._observe import observe_names

# ------------------------------------------------------------------ what arrives

what_arrives = Exercise(
    name="what_arrives",
    chapter="33",
    title="Predict: what arrives?",
    minutes=3,
    difficulty=1,
    statement="""
`forward` of a Function returns five things:

```python
values, indices = x.sort()
ctx.mark_non_differentiable(indices)
return values, indices, 2 * x, [3 * x], None
```

A caller uses only the first one: `values.sum().backward()`. Nothing was said about materialization. Which
of the five gradient arguments of `backward` hold a tensor of **zeros**?

- `a`: the first, for `values`
- `b`: the second, for `indices`
- `c`: the third, for `2 * x`
- `d`: the fourth, for the list
- `e`: the fifth, for `None`

Answer with a list of letters.
""",
    kind="list",
    starter="zeros = ...",
    answer="zeros",
    hints=(
        "`backward` gets one argument for each returned value, whatever it is.",
        "Zeros are made for tensors: they need a shape. What is there to make for a list?",
        "Marking an output does not take its argument away.",
    ),
    reference='zeros = ["b", "c"]',
    explains=(
        "For each output that is a tensor and that nobody used, torch makes zeros, marked or not. A list and "
        "`None` are no tensors: for them `None` arrives. The first argument holds ones."
    ),
    mistakes=(
        Mistake(
            "not the marked one",
            "A marked output has its argument, too: zeros, of its shape and dtype.",
            'zeros = ["c"]',
        ),
        Mistake(
            "the list",
            "A list is no output that autograd knows. `None` arrives for it, and for `None`.",
            'zeros = ["b", "c", "d"]',
        ),
        Mistake(
            "all unused",
            "Only what is a tensor gets zeros. For the list and for `None`, `None` arrives.",
            'zeros = ["b", "c", "d", "e"]',
        ),
        Mistake(
            "none",
            "`None` for an unused tensor comes only after `ctx.set_materialize_grads(False)`.",
            "zeros = []",
        ),
        Mistake(
            "only the marked one",
            "`2 * x` is a tensor that nobody used: zeros arrive for it as well.",
            'zeros = ["b"]',
        ),
        Mistake(
            "not the list",
            "`None` is handed through like any other Python object: `None` arrives for it, and the list.",
            'zeros = ["b", "c", "e"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ shared looks


def _cotangent(y: torch.Tensor) -> torch.Tensor:
    return torch.linspace(1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)


def _loss(outputs: list) -> torch.Tensor | None:
    """A scalar in which every element of every output that requires grad has a weight of its own."""
    terms = [
        ((number + 1) * _cotangent(y.detach()) * y).sum()
        for number, y in enumerate(outputs)
        if isinstance(y, torch.Tensor) and y.requires_grad
    ]
    return sum(terms) if terms else None


def _gradient(outputs: list, inputs, **options):
    loss = _loss(outputs)
    if loss is None:
        return None
    return torch.autograd.grad(loss, inputs, allow_unused=True, **options)


def _as_list(result) -> list:
    return list(result) if isinstance(result, tuple | list) else [result]


def _saved_bytes(outputs: list) -> int:
    """Bytes of the tensors that the Function's node keeps, each storage once.

    Read from the graph: a look at everything alive, as ``saved_memory`` takes it, is too slow for a check.
    """
    recorded = [t for t in outputs if isinstance(t, torch.Tensor) and t.requires_grad]
    if not recorded:
        return 0
    kept = Graph.of(recorded).nodes[0].saved
    return sum({saved.storage: saved.nbytes or 0 for saved in kept}.values())


# ------------------------------------------------------------------ MinMax with indices


def _observe_min_max(answer, x: torch.Tensor, dim: int) -> dict:
    outputs = _as_list(answer.apply(x, dim))
    return {
        "tuple of outputs": tuple(outputs),
        "gradient": _gradient(outputs, [x]),
        "gradient, only the minimum used": _gradient(_as_list(answer.apply(x, dim))[:1], [x]),
        "gradient, only the maximum used": _gradient(_as_list(answer.apply(x, dim))[1:2], [x]),
    }


def _distinct(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Random, no two values equal: half a step apart at least."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    return (torch.randperm(count, generator=generator) / 2.0 - 1).reshape(shape)


_MIN_MAX = """
class MinMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        low, low_at = x.min(dim)
        high, high_at = x.max(dim)
        ctx.mark_non_differentiable(low_at, high_at)
        ctx.save_for_backward(low_at, high_at)
        ctx.shape, ctx.dim = x.shape, dim
        return low, high, low_at, high_at

    @staticmethod
    def backward(ctx, g_low, g_high, g_low_at, g_high_at):
        low_at, high_at = (at.unsqueeze(ctx.dim) for at in ctx.saved_tensors)
        g = g_low.new_zeros(ctx.shape)
        g = g.scatter_add(ctx.dim, low_at, g_low.unsqueeze(ctx.dim))
        return g.scatter_add(ctx.dim, high_at, g_high.unsqueeze(ctx.dim)), None
"""

min_max = Exercise(
    name="min_max",
    chapter="33",
    title="MinMax with indices",
    minutes=12,
    difficulty=2,
    statement="""
Write a Function `MinMax`. `MinMax.apply(x, dim)` returns four tensors: the smallest values along `dim`,
the largest values along `dim`, the indices of the smallest, and the indices of the largest (all without
that dimension, as `x.min(dim)` gives them). No two values are equal. The dimension may have a single
element.

For `x = [[1, 5, 3]]` and `dim = 1`: `[1]`, `[5]`, `[0]`, `[1]`.
""",
    kind="Function",
    starter="""class MinMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        ...

    @staticmethod
    def backward(ctx, *grads):
        ...""",
    answer="MinMax",
    hints=(
        "Backward needs the two index tensors, the shape of `x` and `dim`, and no values of `x`.",
        "`backward` gets four gradients. The two for the indices are ignored.",
        "`zeros.scatter_add(dim, indices.unsqueeze(dim), g.unsqueeze(dim))` puts a gradient where its value "
        "came from.",
        "With a single element, smallest and largest are the same place: add, do not overwrite.",
    ),
    reference=_MIN_MAX,
    other_right=(
        """
class MinMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        low, high = x.amin(dim), x.amax(dim)
        ctx.save_for_backward(x, low, high)
        ctx.dim = dim
        return low, high, x.argmin(dim), x.argmax(dim)

    @staticmethod
    def backward(ctx, g_low, g_high, *_):
        x, low, high = ctx.saved_tensors
        low, high, g_low, g_high = (t.unsqueeze(ctx.dim) for t in (low, high, g_low, g_high))
        return (x == low) * g_low + (x == high) * g_high, None
""",
    ),
    explains=(
        "Each gradient goes to the element that was chosen, and where both chose the same one, the "
        "two add up. "
        "The indices have arguments in `backward` all the same."
    ),
    mistakes=(
        Mistake(
            "overwritten",
            "With one element along `dim`, smallest and largest are the same element: the second gradient "
            "overwrites the first there. Add them.",
            _MIN_MAX.replace("return g.scatter_add(ctx.dim, high_at,", "return g.scatter(ctx.dim, high_at,"),
        ),
        Mistake(
            "a list",
            "You returned a list. The tensors in it are invisible to autograd and have no gradient: "
            "return a tuple.",
            _MIN_MAX.replace("return low, high, low_at, high_at", "return [low, high, low_at, high_at]"),
        ),
        Mistake(
            "swapped",
            "The gradient of the smallest values went to the largest ones, and the other way around.",
            _MIN_MAX.replace("save_for_backward(low_at, high_at)", "save_for_backward(high_at, low_at)"),
        ),
        Mistake(
            "maximum only",
            "The gradient of the smallest values is lost: `x` gets that of the largest only.",
            _MIN_MAX.replace("g_low.unsqueeze(ctx.dim)", "0 * g_low.unsqueeze(ctx.dim)"),
        ),
        Mistake(
            "minimum only",
            "The gradient of the largest values is lost: `x` gets that of the smallest only.",
            _MIN_MAX.replace("g_high.unsqueeze(ctx.dim)", "0 * g_high.unsqueeze(ctx.dim)"),
        ),
        Mistake(
            "two arguments",
            "`backward` gets one argument for each output, and there are four outputs.",
            _MIN_MAX.replace("g_low, g_high, g_low_at, g_high_at):", "g_low, g_high):"),
        ),
        Mistake(
            "sign",
            "The gradient of the smallest values has the wrong sign.",
            _MIN_MAX.replace("g_low.unsqueeze(ctx.dim)", "-g_low.unsqueeze(ctx.dim)"),
        ),
        Mistake(
            "spread",
            "The gradients went to every element along `dim`. They belong to the one that was chosen.",
            """
class MinMax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim):
        low, low_at = x.min(dim)
        high, high_at = x.max(dim)
        ctx.shape, ctx.dim = x.shape, dim
        return low, high, low_at, high_at

    @staticmethod
    def backward(ctx, g_low, g_high, *_):
        return (g_low + g_high).unsqueeze(ctx.dim).expand(ctx.shape), None
""",
        ),
    ),
    cases=(
        Case("the example", lambda generator: (torch.tensor([[1.0, 5.0, 3.0]], requires_grad=True), 1)),
        Case("three rows", lambda generator: (_distinct(generator, 3, 4).requires_grad_(), 1)),
        Case("one element along dim", lambda generator: (_distinct(generator, 3, 1).requires_grad_(), -1)),
        Case("along dimension 0", lambda generator: (_distinct(generator, 3, 2).requires_grad_(), 0)),
        Case(
            "not contiguous, float64",
            lambda generator: (_distinct(generator, 2, 3, 4).double().transpose(0, 2).requires_grad_(), 1),
        ),
    ),
    observe=_observe_min_max,
)


# ------------------------------------------------------------------ Split into N


def _works(call: Callable) -> bool:
    try:
        call()
    except RuntimeError:
        return False
    return True


def _observe_split_into(answer, x: torch.Tensor, n: int, dim: int) -> dict:
    parts = answer.apply(x, n, dim)
    h = x * 1
    others = _as_list(answer.apply(h, n, dim))
    return {
        "tuple of outputs": tuple(_as_list(parts)),
        "gradient": _gradient(_as_list(parts), [x]),
        "gradient, only the last part used": _gradient(_as_list(answer.apply(x, n, dim))[-1:], [x]),
        "answer to: may a part be changed in place?": _works(lambda: others[0].add_(1)),
        "answer to: was the input left alone?": torch.equal(h, x),
        "bytes that the node saved": _saved_bytes(_as_list(answer.apply(x, n, dim))),
    }


_SPLIT_INTO = """
class SplitInto(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, dim):
        ctx.dim = dim
        return tuple(part.clone() for part in x.chunk(n, dim))

    @staticmethod
    def backward(ctx, *grads):
        return torch.cat(grads, dim=ctx.dim), None, None
"""

split_into = Exercise(
    name="split_into",
    chapter="33",
    title="Split into N",
    minutes=10,
    difficulty=2,
    statement="""
Write a Function `SplitInto`. `SplitInto.apply(x, n, dim)` returns `n` parts of equal size along `dim`, in
order. The size of `x` along `dim` is a multiple of `n`, and `dim` may be negative.

A caller may change a part in place, so no part may share memory with `x`. Nobody has to use every part.
The node must save **no tensor**.

`SplitInto.apply(torch.tensor([1., 2., 3., 4.]), 2, 0)` returns `[1, 2]` and `[3, 4]`.
""",
    kind="Function",
    starter="""class SplitInto(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, dim):
        ...

    @staticmethod
    def backward(ctx, *grads):
        ...""",
    answer="SplitInto",
    hints=(
        "`x.chunk(n, dim)` gives the parts, as views.",
        "Return a tuple of clones.",
        "The gradient of each part belongs where the part was: put them together again. Unused ones "
        "arrive as "
        "zeros.",
    ),
    reference=_SPLIT_INTO,
    other_right=(
        """
class SplitInto(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n, dim):
        ctx.set_materialize_grads(False)
        size = x.shape[dim] // n
        ctx.shape, ctx.dim, ctx.size = x.shape, dim, size
        return tuple(x.narrow(dim, i * size, size).clone() for i in range(n))

    @staticmethod
    def backward(ctx, *grads):
        given = [(i, g) for i, g in enumerate(grads) if g is not None]
        if not given:
            return None, None, None
        out = given[0][1].new_zeros(ctx.shape)
        for i, g in given:
            out.narrow(ctx.dim, i * ctx.size, ctx.size).copy_(g)
        return out, None, None
""",
    ),
    explains=(
        "The derivative of a split holds no value of `x`: joining the gradients is all. Clones belong to the "
        "caller, who may change them."
    ),
    mistakes=(
        Mistake(
            "views",
            "The parts are views, of `x` or of one copy of it: changing one in place raises. "
            "Clone each part.",
            _SPLIT_INTO.replace("part.clone() for part in ", "part for part in "),
        ),
        Mistake(
            "saved input",
            "The values are right, but `x` is saved for backward. At most its shape is needed.",
            _SPLIT_INTO.replace("ctx.dim = dim", "ctx.dim = dim\n        ctx.save_for_backward(x)"),
        ),
        Mistake(
            "a list",
            "You returned a list. The tensors in it are invisible to autograd and have no gradient: "
            "return a tuple.",
            _SPLIT_INTO.replace(
                "return tuple(part.clone() for part in x.chunk(n, dim))",
                "return [part.clone() for part in x.chunk(n, dim)]",
            ),
        ),
        Mistake(
            "always dimension 0",
            "The gradients are joined along dimension 0, whatever `dim` is.",
            _SPLIT_INTO.replace("dim=ctx.dim)", "dim=0)"),
        ),
        Mistake(
            "reversed",
            "The gradients are joined in reverse order.",
            _SPLIT_INTO.replace("torch.cat(grads,", "torch.cat(grads[::-1],"),
        ),
        Mistake(
            "one gradient",
            "`backward` must return one value for each argument of `forward`: `x`, `n` and `dim`.",
            _SPLIT_INTO.replace(", None, None", ""),
        ),
        Mistake(
            "first only",
            "Only the gradient of the first part reaches `x`.",
            _SPLIT_INTO.replace(
                "torch.cat(grads,", "torch.cat([grads[0], *[torch.zeros_like(g) for g in grads[1:]]],"
            ),
        ),
    ),
    cases=(
        Case("the example", lambda generator: (torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True), 2, 0)),
        Case("one part", lambda generator: (torch.randn(3, generator=generator).requires_grad_(), 1, 0)),
        Case(
            "columns, three parts",
            lambda generator: (torch.randn(2, 6, generator=generator).requires_grad_(), 3, -1),
        ),
        Case(
            "not contiguous, float64",
            lambda generator: (torch.randn(4, 3, generator=generator).double().t().requires_grad_(), 4, 1),
        ),
        Case("empty parts", lambda generator: (torch.ones(2, 0, requires_grad=True), 2, 1)),
    ),
    observe=_observe_split_into,
)


# ------------------------------------------------------------------ polar coordinates


def _observe_polar(answer, x: torch.Tensor, y: torch.Tensor) -> dict:
    outputs = _as_list(answer.apply(x, y))
    first = _gradient(outputs, [x, y], create_graph=True)
    seen = {"tuple of outputs": tuple(outputs), "gradient": first}
    seen["gradient, only the radius used"] = _gradient(_as_list(answer.apply(x, y))[:1], [x, y])
    seen["gradient, only the angle used"] = _gradient(_as_list(answer.apply(x, y))[1:2], [x, y])
    seen["gradient of the gradient"] = _gradient(list(first), [x, y]) if first else None
    return seen


_POLAR = """
class Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        r = torch.hypot(x, y)
        ctx.save_for_backward(x, y, r)
        return r, torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g_r, g_angle):
        x, y, r = ctx.saved_tensors
        g_x = g_r * x / r - g_angle * y / r**2
        g_y = g_r * y / r + g_angle * x / r**2
        return g_x, g_y
"""


def _polar_case(label: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, turned: bool = False):
    def make(generator: torch.Generator) -> tuple:
        angle = torch.rand(shape, generator=generator, dtype=dtype) * 1.2 + 0.2
        sign = torch.randint(0, 2, (2, *shape), generator=generator) * 2 - 1
        pair = [angle.cos() * 2 * sign[0], angle.sin() * 2 * sign[1]]
        return tuple((t.t() if turned else t).requires_grad_() for t in pair)

    return Case(label, make)


polar = Exercise(
    name="polar",
    chapter="33",
    title="Polar coordinates",
    minutes=12,
    difficulty=3,
    statement="""
Write a Function `Polar`. `Polar.apply(x, y)` returns the radius `r = sqrt(x² + y²)` and the angle in
radians, from -π to π, that the point `(x, y)` makes with the positive x axis. `x` and `y` have the same
shape; no point is the origin.

Gradients and **second derivatives** must be right. For `x = 3`, `y = 4`: `r = 5`, angle about 0.9273.
""",
    kind="Function",
    starter="""class Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ...

    @staticmethod
    def backward(ctx, g_r, g_angle):
        ...""",
    answer="Polar",
    hints=(
        "`torch.hypot(x, y)` and `torch.atan2(y, x)` give the values, in all four quadrants.",
        "The slopes of the radius are `x / r` and `y / r`, those of the angle `-y / r**2` and `x / r**2`.",
        "Each input gets two contributions, one by way of each output: add them.",
        "For second derivatives, save inputs and outputs with `save_for_backward`. What is neither "
        "counts as a "
        "constant in the second pass.",
    ),
    reference=_POLAR,
    other_right=(
        """
class Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return (x * x + y * y).sqrt(), torch.arctan2(y, x)

    @staticmethod
    def backward(ctx, g_r, g_angle):
        x, y = ctx.saved_tensors
        square = x * x + y * y
        r = square.sqrt()
        return g_r * x / r - g_angle * y / square, g_r * y / r + g_angle * x / square
""",
    ),
    explains=(
        "Each input has two paths to the loss, so its gradient is a sum of two terms. Inputs and "
        "outputs that "
        "were saved keep their history, and so the second derivative is right."
    ),
    mistakes=(
        Mistake(
            "atan",
            "The angle is wrong where `x` is negative: `atan(y / x)` cannot tell opposite points apart. "
            "`atan2(y, x)` can.",
            _POLAR.replace("torch.atan2(y, x)", "torch.atan(y / x)"),
        ),
        Mistake(
            "arguments of atan2",
            "The angle is taken from the y axis: `atan2` takes `y` first.",
            _POLAR.replace("torch.atan2(y, x)", "torch.atan2(x, y)"),
        ),
        Mistake(
            "sign",
            "The slope of the angle for `x` has a minus sign: `-y / r**2`.",
            _POLAR.replace("- g_angle * y", "+ g_angle * y"),
        ),
        Mistake(
            "not squared",
            "The slopes of the angle have `r**2` below, yours have `r`.",
            _POLAR.replace("r**2", "r"),
        ),
        Mistake(
            "angle left out",
            "The gradient by way of the angle is left out: only that of the radius reaches `x` and `y`.",
            _POLAR.replace("g_angle *", "0 * g_angle *"),
        ),
        Mistake(
            "radius left out",
            "The gradient by way of the radius is left out: only that of the angle reaches `x` and `y`.",
            _POLAR.replace("g_r *", "0 * g_r *"),
        ),
        Mistake(
            "no link",
            "The first derivative is right, the second is missing. What your `backward` computes with has no "
            "link to `x` and `y`: it was worked out in `forward`, where nothing is recorded, or cut off. "
            "Compute it in `backward`, from saved inputs and outputs.",
            """
class Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        r = torch.hypot(x, y)
        ctx.save_for_backward(x / r, y / r, r.clone())
        return r, torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g_r, g_angle):
        c, s, r = ctx.saved_tensors
        return g_r * c - g_angle * s / r, g_r * s + g_angle * c / r
""",
        ),
        Mistake(
            "saved in between",
            "The first derivative is right, the second is not. You saved `x**2 + y**2`, which is "
            "neither an input nor "
            "an output: in the second pass it counts as a constant. Compute it in `backward`.",
            """
class Polar(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        square = x**2 + y**2
        ctx.save_for_backward(x, y, square)
        return square.sqrt(), torch.atan2(y, x)

    @staticmethod
    def backward(ctx, g_r, g_angle):
        x, y, square = ctx.saved_tensors
        r = square.sqrt()
        return g_r * x / r - g_angle * y / square, g_r * y / r + g_angle * x / square
""",
        ),
    ),
    cases=(
        Case(
            "the example",
            lambda generator: (torch.tensor(3.0, requires_grad=True), torch.tensor(4.0, requires_grad=True)),
        ),
        Case(
            "all four quadrants",
            lambda generator: (
                torch.tensor([1.0, -1.0, -1.0, 2.0], requires_grad=True),
                torch.tensor([2.0, 1.0, -2.0, -1.0], requires_grad=True),
            ),
        ),
        _polar_case("a matrix, not contiguous, float64", (3, 2), torch.float64, turned=True),
        _polar_case("empty", (0,)),
    ),
    observe=_observe_polar,
)


# ------------------------------------------------------------------ skip work


class _Block(torch.autograd.Function):
    """Passes its input on, and ``None`` back."""

    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, g):
        return None


def _observe_skip(answer, x: torch.Tensor, f, df, g, dg) -> dict:
    seen: dict = {}
    for used, pick in {
        "both used": lambda a, b: [a, b],
        "only the first used": lambda a, b: [a],
        "only the second used": lambda a, b: [b],
        "nothing arrives": lambda a, b: [_Block.apply(a), _Block.apply(b)],
    }.items():
        calls = {"df": 0, "dg": 0}

        def counted(name: str, function: Callable, calls: dict = calls) -> Callable:
            def call(x: torch.Tensor) -> torch.Tensor:
                calls[name] += 1
                return function(x)

            return call

        outputs = _as_list(answer.apply(x, f, counted("df", df), g, counted("dg", dg)))
        if len(outputs) != 2 or not all(isinstance(y, torch.Tensor) for y in outputs):
            return {"tuple of outputs": tuple(outputs)}
        seen.setdefault("tuple of outputs", tuple(outputs))
        seen[f"gradient, {used}"] = _gradient(pick(*outputs), [x])
        seen[f"how often df and dg ran, {used}"] = tuple(calls.values())
    return seen


_SKIP = """
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, df, g, dg):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        ctx.df, ctx.dg = df, dg
        return f(x), g(x)

    @staticmethod
    def backward(ctx, g_f, g_g):
        (x,) = ctx.saved_tensors
        out = None
        if g_f is not None:
            out = g_f * ctx.df(x)
        if g_g is not None:
            more = g_g * ctx.dg(x)
            out = more if out is None else out + more
        return out, None, None, None, None
"""


def _skip_case(label: str, shape: tuple[int, ...], dtype: torch.dtype = torch.float32, one: bool = True):
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()
        if one:
            return x, torch.sin, torch.cos, torch.exp, torch.exp
        return x, lambda x: x**3, lambda x: 3 * x**2, lambda x: x * 2, lambda x: torch.full_like(x, 2)

    return Case(label, make)


skip_work = Exercise(
    name="skip_work",
    chapter="33",
    title="Skip work when a gradient is None",
    minutes=8,
    difficulty=2,
    statement="""
`Pair.apply(x, f, df, g, dg)` returns `f(x)` and `g(x)`, computed element by element. `df` and `dg`
compute their derivatives, and take long.

Write the Function `Pair` so that `df` and `dg` are each called **only in backward, and only if a gradient
for their output arrived**. If none arrived, `x` gets `None`. Saving `x` is fine.
""",
    kind="Function",
    starter="""class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, df, g, dg):
        ...

    @staticmethod
    def backward(ctx, g_f, g_g):
        ...""",
    answer="Pair",
    hints=(
        "By default an unused output arrives as zeros. There is a call for `forward` that changes that.",
        "After `ctx.set_materialize_grads(False)`, test each gradient with `is not None`.",
        "Begin with `out = None`, and add what there is.",
    ),
    reference=_SKIP,
    other_right=(
        """
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, df, g, dg):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        ctx.derivatives = df, dg
        return f(x), g(x)

    @staticmethod
    def backward(ctx, *grads):
        x, = ctx.saved_tensors
        terms = [g * d(x) for g, d in zip(grads, ctx.derivatives) if g is not None]
        return (sum(terms) if terms else None), None, None, None, None
""",
    ),
    explains=(
        "An undefined gradient arrives as `None` when materialization is off, and then its part of "
        "the formula "
        "need not run."
    ),
    mistakes=(
        Mistake(
            "zeros arrive",
            "The numbers are right, but both derivatives always run: unused outputs arrive as zeros "
            "here, never as "
            "`None`. Call `ctx.set_materialize_grads(False)` in `forward`.",
            _SKIP.replace("        ctx.set_materialize_grads(False)\n", ""),
        ),
        Mistake(
            "None not expected",
            "With materialization off, a gradient may be `None`, and `None` cannot be multiplied.",
            """
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, df, g, dg):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        ctx.df, ctx.dg = df, dg
        return f(x), g(x)

    @staticmethod
    def backward(ctx, g_f, g_g):
        x, = ctx.saved_tensors
        return g_f * ctx.df(x) + g_g * ctx.dg(x), None, None, None, None
""",
        ),
        Mistake(
            "all or nothing",
            "If one of the two is missing, `x` gets nothing. The other one's gradient is lost.",
            _SKIP.replace(
                "        out = None\n",
                "        if g_f is None or g_g is None:\n            return (None,) * 5\n"
                "        out = None\n",
            ),
        ),
        Mistake(
            "in forward",
            "`df` and `dg` run in `forward`, where nobody knows yet which outputs will be used.",
            """
class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, f, df, g, dg):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(df(x), dg(x))
        return f(x), g(x)

    @staticmethod
    def backward(ctx, g_f, g_g):
        slopes = ctx.saved_tensors
        terms = [g * slope for g, slope in zip((g_f, g_g), slopes) if g is not None]
        return (sum(terms) if terms else None), None, None, None, None
""",
        ),
        Mistake(
            "zeros for nothing",
            "Where no gradient arrived, you return zeros. `None` was asked for: it says that nothing "
            "flows here.",
            _SKIP.replace(
                "        return out,",
                "        out = torch.zeros_like(x) if out is None else out\n        return out,",
            ),
        ),
        Mistake(
            "swapped",
            "The gradients are exchanged: the one of `f(x)` is multiplied by `dg(x)`, and the other "
            "by `df(x)`.",
            _SKIP.replace("def backward(ctx, g_f, g_g)", "def backward(ctx, g_g, g_f)"),
        ),
        Mistake(
            "overwritten",
            "If both outputs are used, the second term replaces the first. Add them.",
            _SKIP.replace("out = more if out is None else out + more", "out = more"),
        ),
        Mistake(
            "second lost",
            "If both outputs are used, the second one's gradient is left out.",
            _SKIP.replace("        if g_g is not None:", "        elif g_g is not None:"),
        ),
    ),
    cases=(
        _skip_case("sine and exponential", (3,)),
        _skip_case("zero-dim", ()),
        _skip_case("a matrix, float64", (2, 3), torch.float64, one=False),
        _skip_case("empty", (0,)),
    ),
    observe=_observe_skip,
)


# ------------------------------------------------------------------ repairs


def _attempt(call: Callable) -> object:
    """What ``call`` gives, or which error it raises."""
    try:
        return call()
    except RuntimeError:
        return "RuntimeError"


def _observe_halves(answer, leaf: torch.Tensor, build: Callable) -> dict:
    def fresh() -> tuple[torch.Tensor, list]:
        h = build(leaf)
        return h, _as_list(answer.apply(h))

    def change(number: int) -> Callable:
        def call() -> tuple:
            h, halves = fresh()
            before = h.detach().clone()
            halves[number].add_(1)
            return halves[number].detach().clone(), _gradient(halves, [leaf]), torch.equal(before, h)

        return call

    def change_input() -> tuple:
        h, halves = fresh()
        h.add_(1)
        return _gradient([half * 2 for half in halves], [leaf])

    _, halves = fresh()
    return {
        "tuple of outputs": tuple(halves),
        "gradient": _gradient(halves, [leaf]),
        "outcome when the first output is changed": _attempt(change(0)),
        "outcome when the second output is changed": _attempt(change(1)),
        "outcome when the input is changed afterwards": _attempt(change_input),
    }


_HALVES = """
class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        k = len(x) // 2
        return x[:k].clone(), x[k:].clone()

    @staticmethod
    def backward(ctx, g_left, g_right):
        return torch.cat([g_left, g_right])
"""


def _column(table: torch.Tensor) -> torch.Tensor:
    return (table * 1)[:, 0]


def _same(x: torch.Tensor) -> torch.Tensor:
    return x * 1


repair_views = Exercise(
    name="repair_views",
    chapter="33",
    title="Repair: a view is being modified in place",
    minutes=6,
    difficulty=2,
    statement="""
`Halves.apply(x)` returns the two halves of a vector, `x[:k]` and `x[k:]` with `k = len(x) // 2`:

```python
class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        k = len(x) // 2
        return x[:k], x[k:]

    @staticmethod
    def backward(ctx, g_left, g_right):
        return torch.cat([g_left, g_right])
```

Callers get "Output 0 of Halves is a view and is being modified inplace". Repair the Function: a caller
may change either half in place, and may change `x` in place afterwards and go on with the halves. Values
and gradients stay the same. A change of a half must not change `x`.
""",
    kind="Function",
    starter="""class Halves(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ...

    @staticmethod
    def backward(ctx, g_left, g_right):
        ...""",
    answer="Halves",
    hints=(
        "The halves are views of `x`, on its memory. What has memory of its own?",
        "`backward` is right as it stands.",
        "`contiguous()` copies only where it must. `clone()` always does.",
    ),
    reference=_HALVES,
    other_right=(
        _HALVES.replace("x[:k].clone(), x[k:].clone()", "x[:k] + 0, x[k:] + 0"),
        _HALVES.replace("x[:k].clone(), x[k:].clone()", "tuple(half.clone() for half in (x[:k], x[k:]))"),
    ),
    explains=(
        "A clone has memory, a version counter and a history of its own, so nobody's change can "
        "spoil your backward."
    ),
    mistakes=(
        Mistake(
            "still views",
            "The outputs are still views of `x`: a change in place raises, of an output or of `x`.",
            _HALVES.replace(".clone()", ""),
        ),
        Mistake(
            "first only",
            "The first half is a copy now. The second is still a view of `x`.",
            _HALVES.replace("x[k:].clone()", "x[k:]"),
        ),
        Mistake(
            "second only",
            "The second half is a copy now. The first is still a view of `x`.",
            _HALVES.replace("x[:k].clone()", "x[:k]"),
        ),
        Mistake(
            "contiguous",
            "`contiguous()` copies only a tensor that is not contiguous. All others stay views of `x`.",
            _HALVES.replace(".clone()", ".contiguous()"),
        ),
        Mistake(
            "one clone",
            "You cloned `x` and took two views of the clone. They share one memory, and are views "
            "that may not be "
            "changed.",
            _HALVES.replace("k = len(x) // 2", "k, x = len(x) // 2, x.clone()").replace("].clone()", "]"),
        ),
        Mistake(
            "detached",
            "The halves may be changed now, but they still lie on the memory of `x`: what is done to them is "
            "done to `x` as well.",
            _HALVES.replace(".clone()", ".detach()"),
        ),
        Mistake(
            "gradients exchanged",
            "The gradients are joined in the wrong order.",
            _HALVES.replace("[g_left, g_right]", "[g_right, g_left]"),
        ),
    ),
    cases=(
        Case(
            "four elements", lambda generator: (torch.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True), _same)
        ),
        Case(
            "an odd number of elements",
            lambda generator: (torch.randn(5, generator=generator).requires_grad_(), _same),
        ),
        Case(
            "a column, not contiguous, float64",
            lambda generator: (torch.randn(6, 3, generator=generator).double().requires_grad_(), _column),
        ),
        Case("one element", lambda generator: (torch.ones(1, requires_grad=True), _same)),
    ),
    observe=_observe_halves,
)


def _observe_powers(answer, x: torch.Tensor) -> dict:
    result = answer(x)
    values = list(result.values()) if isinstance(result, dict) else []
    tensors = [y for y in values if isinstance(y, torch.Tensor)]
    nodes = {y.grad_fn for y in tensors}
    custom = [isinstance(node, torch.autograd.function.BackwardCFunction) for node in nodes]
    try:
        gradient = _gradient(tensors, [x])
    except Exception as error:  # it comes from the backward of their Function, when `answer` is long done
        own = next((type(node).__name__.removesuffix("Backward") for node in nodes if node), "Powers")
        gradient = f"{type(error).__name__}: {error}".replace(own, "Powers")
    return {
        "result": result,
        "gradient": gradient,
        "answer to: did a Function make them?": all(custom),
        "number of nodes that made them": len(nodes),
    }


_POWERS = """
class Powers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2, x**3

    @staticmethod
    def backward(ctx, g_square, g_cube):
        (x,) = ctx.saved_tensors
        return g_square * 2 * x + g_cube * 3 * x**2


def powers(x):
    square, cube = Powers.apply(x)
    return {"square": square, "cube": cube}
"""

repair_dict = Exercise(
    name="repair_dict",
    chapter="33",
    title="Repair: a dict without gradients",
    minutes=8,
    difficulty=2,
    statement="""
`powers(x)` returns a dict, and nothing in it requires grad:

```python
class Powers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return dict(square=x**2, cube=x**3)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g["square"] * 2 * x + g["cube"] * 3 * x**2

powers = Powers.apply
```

Write `powers(x)` so that it returns a dict with the keys `"square"` and `"cube"`, in this order, with
right gradients, and both tensors come from **one call** of a Function. Put the repaired Function above
it.
""",
    kind="function",
    starter="""class Powers(torch.autograd.Function):
    # yours
    pass


def powers(x):
    ...""",
    answer="powers",
    hints=(
        "A Function sees tensors only where they stand directly in a returned tuple.",
        "`backward` then takes two gradients.",
        "Make the dict outside, in `powers`.",
    ),
    reference=_POWERS,
    other_right=(
        _POWERS.replace("    square, cube = Powers.apply(x)\n", "").replace(
            'return {"square": square, "cube": cube}',
            'return dict(zip(("square", "cube"), Powers.apply(x)))',
        ),
    ),
    explains=(
        "The Function returns a tuple, which autograd sees. The dict is made outside, from tensors that have "
        "their history already."
    ),
    mistakes=(
        Mistake(
            "invisible",
            "The tensors in the dict have no history: the Function returned them in a list or a "
            "dict, or they were "
            "detached.",
            _POWERS.replace("return x**2, x**3", "return [x**2, x**3]"),
        ),
        Mistake(
            "no Function",
            "Values and gradients are right, but the tensors in the dict were not made by a Function.",
            "\ndef powers(x):\n    return {'square': x**2, 'cube': x**3}\n",
        ),
        Mistake(
            "a tuple",
            "A tuple came out. The dict is to be made from it, in `powers`.",
            _POWERS.replace('return {"square": square, "cube": cube}', "return square, cube"),
        ),
        Mistake(
            "called twice",
            "You called the Function twice, so there are two nodes and everything is computed twice.",
            _POWERS.replace("    square, cube = Powers.apply(x)\n", "").replace(
                '"square": square, "cube": cube', '"square": Powers.apply(x)[0], "cube": Powers.apply(x)[1]'
            ),
        ),
        Mistake(
            "cube lost",
            "The gradient of the cube is left out.",
            _POWERS.replace(" + g_cube * 3 * x**2", ""),
        ),
        Mistake(
            "square lost",
            "The gradient of the square is left out.",
            _POWERS.replace("g_square * 2 * x + ", ""),
        ),
        Mistake(
            "keys exchanged",
            "The keys are exchanged: the cube stands under `square`.",
            _POWERS.replace('"square": square, "cube": cube', '"square": cube, "cube": square'),
        ),
        Mistake(
            "one argument",
            "`backward` gets one gradient for each returned tensor: two of them.",
            _POWERS.replace("(ctx, g_square, g_cube)", "(ctx, g_square)").replace("g_cube", "g_square"),
        ),
        Mistake(
            "two values",
            "`forward` takes one tensor, so `backward` returns one gradient: the sum over both outputs.",
            _POWERS.replace("2 * x + g_cube", "2 * x, g_cube"),
        ),
        Mistake(
            "flag set",
            "You set `requires_grad` afterwards. That makes leaves of them, with no way back to `x`.",
            """
class Powers(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {"square": x**2, "cube": x**3}


def powers(x):
    return {key: y.requires_grad_() for key, y in Powers.apply(x).items()}
""",
        ),
    ),
    cases=(
        Case("three elements", lambda generator: (torch.tensor([1.0, 2.0, -1.0], requires_grad=True),)),
        Case("zero-dim", lambda generator: (torch.tensor(3.0, requires_grad=True),)),
        Case(
            "a matrix, float64",
            lambda generator: (torch.randn(2, 3, generator=generator).double().requires_grad_(),),
        ),
        Case("empty", lambda generator: (torch.ones(0, requires_grad=True),)),
    ),
    observe=_observe_powers,
)

EXERCISES = (
    what_arrives,
    min_max,
    split_into,
    polar,
    skip_work,
    repair_views,
    repair_dict,
)

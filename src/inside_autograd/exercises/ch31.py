"""Exercises of chapter 31: a Function of your own."""

from collections.abc import Callable

import torch

from ._model import Case, Exercise, Mistake
from ._observe import observe_gradient, observe_names

# ------------------------------------------------------------------ what is looked at


def _kept(output: torch.Tensor, *known: torch.Tensor) -> int:
    """Bytes that the node of ``output`` keeps, on ``saved_tensors`` or as attributes, besides ``known``."""
    node = getattr(output, "grad_fn", None)  # an answer may return anything
    owned = {tensor.untyped_storage().data_ptr() for tensor in known if isinstance(tensor, torch.Tensor)}
    found = [*getattr(node, "saved_tensors", ()), *_attributes(node)]
    sizes = {
        tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes()
        for tensor in found
        if isinstance(tensor, torch.Tensor) and tensor.numel()
    }
    return sum(size for place, size in sizes.items() if place not in owned)


def _attributes(node: object) -> list:
    return list(getattr(node, "__dict__", {}).values())


def _on_ctx(output: torch.Tensor) -> bool:
    """Whether tensors lie on ``ctx`` as attributes."""
    return any(isinstance(value, torch.Tensor) for value in _attributes(getattr(output, "grad_fn", None)))


def _differentiable(output: object) -> bool:
    return isinstance(output, torch.Tensor) and output.requires_grad


def _after_change(apply: Callable, x: torch.Tensor) -> object:
    """The gradient after the input was changed in place, or the word for torch's complaint."""
    h = x + 0
    y = apply(h)
    if not _differentiable(y):
        return None
    h.add_(1)
    try:
        return torch.autograd.grad(y.sum(), x)[0]
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        return "refused"


def _observe_unary(answer, x: torch.Tensor) -> dict:
    seen = observe_gradient(answer.apply, x)
    y = answer.apply(x)
    return {**seen, "bytes kept besides input and output": _kept(y, x, y)}


def _observe_checked(answer, x: torch.Tensor) -> dict:
    seen = _observe_unary(answer, x)
    return {**seen, "gradient after an in-place change of the input": _after_change(answer.apply, x)}


def _case(label: str, *shape: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return (torch.randn(shape, generator=generator, dtype=dtype).requires_grad_(),)

    return Case(label, make)


def _values(label: str, *values: float) -> Case:
    return Case(label, lambda generator: (torch.tensor(values, requires_grad=True),))


def _transposed(generator: torch.Generator) -> tuple:
    return (torch.randn(3, 2, generator=generator).t().requires_grad_(),)


def _class(name: str, forward: str, backward: str, arguments: str = "x") -> str:
    """The code of a Function; bodies are indented by hand."""
    return (
        f"class {name}(torch.autograd.Function):\n"
        f"    @staticmethod\n    def forward(ctx, {arguments}):\n{_body(forward)}\n"
        f"    @staticmethod\n    def backward(ctx, g):\n{_body(backward)}"
    )


def _body(lines: str) -> str:
    return "".join(f"        {line}\n" for line in lines.strip().splitlines())


# ------------------------------------------------------------------ cube

_SAVE_X = "ctx.save_for_backward(x)\nreturn {}"
_GET_X = "(x,) = ctx.saved_tensors\nreturn {}"

cube_function = Exercise(
    name="cube_function",
    chapter="31",
    title="Your first Function: the cube",
    minutes=5,
    difficulty=1,
    statement="""
Write `Cube`: $y = x^3$, elementwise, for any shape. Save one tensor, so that a change of `x` in place is
noticed. For `x = [1, -2, 3]`, `Cube.apply(x).sum()` gives the gradient `[3, 12, 27]`.
""",
    kind="Function",
    starter=_class("Cube", "...", "..."),
    answer="Cube",
    hints=(
        "The slope is $3x^2$. Which tensor does it need?",
        "`ctx.save_for_backward(x)` in `forward`, `(x,) = ctx.saved_tensors` in `backward`.",
        "`backward` returns the product of the incoming gradient and the slope.",
    ),
    reference=_class("Cube", _SAVE_X.format("x**3"), _GET_X.format("g * 3 * x**2")),
    other_right=(
        _class("Cube", _SAVE_X.format("x * x * x"), "x = ctx.saved_tensors[0]\nreturn g * (3 * x * x),"),
        _class("Cube", _SAVE_X.format("torch.pow(x, 3)"), _GET_X.format("3 * x.square() * g, None")),
    ),
    explains=(
        "The slope needs `x`, and `x` is alive anyway: saving it costs no memory. "
        "`save_for_backward` notes its version, "
        "so a later change in place is refused."
    ),
    mistakes=(
        Mistake(
            "gradient forgotten",
            "You return the slope alone. It must be multiplied by the gradient that arrives, which "
            "is 1 only at the end "
            "of a graph.",
            _class("Cube", _SAVE_X.format("x**3"), _GET_X.format("3 * x**2")),
        ),
        Mistake(
            "attribute",
            "Values and gradients are right, but `x` lies on `ctx` as an attribute. A change in "
            "place goes unnoticed, "
            "and the gradient is wrong then.",
            _class("Cube", "ctx.x = x\nreturn x**3", "return g * 3 * ctx.x**2"),
        ),
        Mistake(
            "made from x",
            "You saved a tensor made from `x`: a copy, or the slope. It is right, but takes as many "
            "bytes as `x` again. Save `x` itself.",
            _class("Cube", "ctx.save_for_backward(x.clone())\nreturn x**3", _GET_X.format("g * 3 * x**2")),
        ),
        Mistake(
            "x and more",
            "Besides `x` you saved a new tensor, as large as `x`. `x` is enough: compute the slope "
            "in `backward`.",
            _class(
                "Cube",
                "ctx.save_for_backward(x, 3 * x**2)\nreturn x**3",
                "_, slope = ctx.saved_tensors\nreturn g * slope",
            ),
        ),
        Mistake(
            "factor 3",
            "The factor 3 is missing: the slope of $x^3$ is $3x^2$.",
            _class("Cube", _SAVE_X.format("x**3"), _GET_X.format("g * x**2")),
        ),
        Mistake(
            "exponent",
            "Your slope is $3x$. The exponent goes down by one: $3x^2$.",
            _class("Cube", _SAVE_X.format("x**3"), _GET_X.format("g * 3 * x")),
        ),
        Mistake(
            "in place",
            "Your `backward` changes the incoming gradient in place. It belongs to others too. Write "
            "a product without "
            "the underscore.",
            _class("Cube", _SAVE_X.format("x**3"), _GET_X.format("g.mul_(3 * x**2)")),
        ),
    ),
    cases=(
        _values("the example", 1.0, -2.0, 3.0),
        _case("zero-dimensional"),
        _case("empty", 0),
        Case("not contiguous", _transposed),
        _case("float64", 4, dtype=torch.float64),
    ),
    observe=lambda answer, x: {**_observe_checked(answer, x), **_observe_shared(answer, x)},
)


def _observe_shared(answer, x: torch.Tensor) -> dict:
    """The incoming gradient is used by a second branch too."""
    h = x * 1
    start = torch.ones_like(h)
    y = answer.apply(h)
    if not _differentiable(y):
        return {"gradient with a second branch": None}
    (total,) = torch.autograd.grad(y + h, x, start)
    return {
        "gradient with a second branch": total,
        "side effect: the incoming gradient was changed": not bool((start == 1).all()),
    }


# ------------------------------------------------------------------ softplus

_STABLE = "ctx.save_for_backward(x)\nreturn x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))"

stable_softplus = Exercise(
    name="stable_softplus",
    chapter="31",
    title="Softplus that holds at 1,000",
    minutes=8,
    difficulty=2,
    statement="""
Softplus is $\\log(1 + e^x)$. Written so, it gives `inf` at 100, and its recorded gradient `nan`. Write the
Function `Softplus` with finite values and gradients for every finite `x`. For `x = [0, 1000, -1000]`:
values `[0.6931, 1000, 0]`, slopes `[0.5, 1, 0]`. Write both formulas yourself.
""",
    kind="Function",
    starter=_class("Softplus", "...", "..."),
    answer="Softplus",
    hints=(
        "The slope is $\\sigma(x)$, and `torch.sigmoid` is stable on both sides.",
        "For the value, pull the large part out: $\\log(1 + e^x) = x + \\log(1 + e^{-x})$, good for $x > 0$.",
        "Both sides at once: $\\max(x, 0) + \\log(1 + e^{-|x|})$.",
    ),
    reference=_class("Softplus", _STABLE, _GET_X.format("g * torch.sigmoid(x)")),
    other_right=(
        _class(
            "Softplus",
            "ctx.save_for_backward(x)\nreturn torch.where(x > 30, x, torch.log1p(torch.exp(x)))",
            _GET_X.format("g * torch.sigmoid(x)"),
        ),
        _class(
            "Softplus",
            "ctx.save_for_backward(x)\nreturn torch.logaddexp(x, torch.zeros_like(x))",
            _GET_X.format("g / (1 + torch.exp(-x))"),
        ),
        _class(
            "Softplus",
            "y = torch.nn.functional.softplus(x)\nctx.save_for_backward(y)\nreturn y",
            "(y,) = ctx.saved_tensors\nreturn g * -torch.expm1(-y)",
        ),
    ),
    explains=(
        "In $\\max(x, 0) + \\log(1 + e^{-|x|})$ `exp` is only ever taken of numbers that are not positive, "
        "so it cannot overflow. Nothing in `forward` is recorded, so in `backward` you are free to use "
        "another formula than the derivative of each step would give."
    ),
    mistakes=(
        Mistake(
            "naive value",
            "The gradient is fine, but the value overflows: `exp` of a large number is `inf`.",
            _class(
                "Softplus",
                "ctx.save_for_backward(x)\nreturn torch.log(1 + torch.exp(x))",
                _GET_X.format("g * torch.sigmoid(x)"),
            ),
        ),
        Mistake(
            "naive slope",
            "The value is fine. The slope `exp(x) / (1 + exp(x))` is `inf / inf`, so `nan`, for large `x`.",
            _class("Softplus", _STABLE, _GET_X.format("g * torch.exp(x) / (1 + torch.exp(x))")),
        ),
        Mistake(
            "both naive",
            "Neither formula holds for large `x`: `exp` overflows in the value and in the slope.",
            _class(
                "Softplus",
                "ctx.save_for_backward(x)\nreturn torch.log(1 + torch.exp(x))",
                _GET_X.format("g * torch.exp(x) / (1 + torch.exp(x))"),
            ),
        ),
        Mistake(
            "large side only",
            "$x + \\log(1 + e^{-x})$ is right for positive `x`, and overflows for very negative ones.",
            _class(
                "Softplus",
                "ctx.save_for_backward(x)\nreturn x + torch.log1p(torch.exp(-x))",
                _GET_X.format("g * torch.sigmoid(x)"),
            ),
        ),
        Mistake(
            "relu",
            "That is `relu`, with softplus's slope. At 0 softplus is `log(2)`.",
            _class(
                "Softplus",
                "ctx.save_for_backward(x)\nreturn x.clamp(min=0)",
                _GET_X.format("g * torch.sigmoid(x)"),
            ),
        ),
        Mistake(
            "slope of the result",
            "You take the sigmoid of the result. The slope is the sigmoid of the input.",
            _class(
                "Softplus",
                "y = torch.nn.functional.softplus(x)\nctx.save_for_backward(y)\nreturn y",
                "(y,) = ctx.saved_tensors\nreturn g * torch.sigmoid(y)",
            ),
        ),
        Mistake(
            "gradient forgotten",
            "You return the slope alone. Multiply it by the gradient that arrives.",
            _class("Softplus", _STABLE, _GET_X.format("torch.sigmoid(x)")),
        ),
    ),
    cases=(
        _values("the example", 0.0, 1000.0, -1000.0),
        _case("moderate values", 2, 3),
        _values("one large element", 100.0),
        _values("one small element", -100.0),
        _case("zero-dimensional, float64", dtype=torch.float64),
        _case("empty", 0, 4),
    ),
    observe=lambda answer, x: observe_gradient(answer.apply, x),
)


# ------------------------------------------------------------------ linear


def _linear_case(label: str, *shape: int, out: int = 2, bias: bool = True, frozen: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(shape, generator=generator)
        weight = torch.randn(out, shape[-1], generator=generator).requires_grad_()
        b = torch.randn(out, generator=generator).requires_grad_() if bias else None
        return (x if frozen else x.requires_grad_()), weight, b

    return Case(label, make)


def _linear(forward: str, x: str, weight: str, bias: str) -> str:
    return _class(
        "MyLinear",
        f"ctx.save_for_backward(x, weight)\n{forward}",
        f"x, weight = ctx.saved_tensors\nwant = ctx.needs_input_grad\n"
        f"gx = {x} if want[0] else None\n"
        f"gw = {weight} if want[1] else None\n"
        f"gb = {bias} if want[2] else None\n"
        "return gx, gw, gb",
        "x, weight, bias",
    )


_FORWARD = "y = x @ weight.T\nreturn y if bias is None else y + bias"
_GW = "g.reshape(-1, weight.shape[0]).T @ x.reshape(-1, weight.shape[1])"
_GB = "g.reshape(-1, g.shape[-1]).sum(0)"

linear_function = Exercise(
    name="linear_function",
    chapter="31",
    title="Linear for every batch",
    minutes=12,
    difficulty=3,
    statement="""
Write `MyLinear` with `forward(ctx, x, weight, bias)`: $y = xW^\\top + b$. `x` has shape (…, n), with any
number of batch dimensions, also none; `weight` (m, n); `bias` (m,) or `None`. m may be 1, and the batch may
be empty.

Work from the formulas, without `torch.nn.functional.linear`.
""",
    kind="Function",
    starter=_class("MyLinear", "...", "...", "x, weight, bias"),
    answer="MyLinear",
    hints=(
        "For one sample, the gradients are $gW$, the outer product of $g$ and $x$, and $g$. Over a "
        "batch, the last two are "
        "sums.",
        "Make one batch dimension of all: `g.reshape(-1, m)` and `x.reshape(-1, n)`.",
        "Then the gradients are `g @ weight`, `g2.T @ x2`, and `g2.sum(0)`, which has shape "
        "(m,) also for "
        "m = 1. Use `needs_input_grad` for a missing bias.",
    ),
    reference=_linear(_FORWARD, "g @ weight", _GW, _GB),
    other_right=(
        _linear(
            _FORWARD,
            'torch.einsum("...m,mn->...n", g, weight)',
            'torch.einsum("...m,...n->mn", g, x)',
            "g.sum_to_size(g.shape[-1:])",
        ),
        _linear(_FORWARD, "g @ weight", _GW, "g"),
    ),
    explains=(
        "The weight and the bias serve every sample, so their gradients are sums over all batch "
        "dimensions. (Torch would sum a "
        "bias gradient of shape (…, m) for you. Doing it yourself says what is meant.)"
    ),
    mistakes=(
        Mistake(
            "squeeze",
            "`squeeze` turns the bias gradient of shape (1,) into () when there is one output. Leave "
            "it out: the sum over the "
            "batch has the right shape already.",
            _linear(_FORWARD, "g @ weight", _GW, f"{_GB}.squeeze(0)"),
        ),
        Mistake(
            "sum of everything",
            "You add up the bias gradient over the outputs, too. Each output has its own bias: sum "
            "over the batch only.",
            _linear(_FORWARD, "g @ weight", _GW, "g.sum().expand(g.shape[-1])"),
        ),
        Mistake(
            "mean",
            "You average the bias gradient over the batch. The bias was used once in each sample, "
            "and paths add up.",
            _linear(_FORWARD, "g @ weight", _GW, "g.reshape(-1, g.shape[-1]).mean(0)"),
        ),
        Mistake(
            "matrices only",
            "`mm` and `t()` take matrices. `@` and a `reshape` to one batch dimension serve any "
            "number of them.",
            _linear(
                "y = x.mm(weight.t())\nreturn y if bias is None else y + bias",
                "g.mm(weight)",
                "g.t().mm(x)",
                "g.sum(0)",
            ),
        ),
        Mistake(
            "bias is never missing",
            "The bias may be `None`, and then there is nothing to add.",
            _linear("return x @ weight.T + bias", "g @ weight", _GW, _GB),
        ),
        Mistake(
            "sum over one dimension",
            "`sum(0)` adds over the first dimension. When `x` has no batch dimension, that one holds "
            "the outputs, and the "
            "bias gradient loses its shape. `reshape(-1, m)` first, or use `sum_to_size`.",
            _linear(_FORWARD, "g @ weight", _GW, "g.sum(0)"),
        ),
        Mistake(
            "no bias gradient",
            "The bias gets no gradient. It is the incoming gradient, summed over the batch.",
            _linear(_FORWARD, "g @ weight", _GW, "None"),
        ),
        Mistake(
            "zero weight",
            "You return zeros for the weight. Its gradient is the sum of outer products of `g` and `x`.",
            _linear(_FORWARD, "g @ weight", "torch.zeros_like(weight)", _GB),
        ),
    ),
    cases=(
        _linear_case("4 samples", 4, 3),
        _linear_case("no bias", 4, 3, bias=False),
        _linear_case("one output", 4, 3, out=1),
        _linear_case("one sample", 1, 3),
        _linear_case("no batch dimension", 3),
        _linear_case("two batch dimensions", 2, 5, 3),
        _linear_case("empty batch", 0, 3),
        _linear_case("x needs no gradient", 4, 3, frozen=True),
    ),
    observe=lambda answer, x, weight, bias: observe_gradient(answer.apply, x, weight, bias),
)


# ------------------------------------------------------------------ slim a Function


def _observe_slim(answer, x: torch.Tensor) -> dict:
    y = answer.apply(x)
    on_ctx = _on_ctx(y)
    return {**_observe_unary(answer, x), "tensors on ctx as attributes": on_ctx}


_TANH = "e = torch.exp(2 * x)\ny = (e - 1) / (e + 1)\n"
_GET_Y = "(y,) = ctx.saved_tensors\nreturn g * (1 - y * y)"

slim_tanh = Exercise(
    name="slim_tanh",
    chapter="31",
    title="Slim a Function",
    minutes=6,
    difficulty=2,
    statement="""
This works for small numbers and keeps three tensors, two of them alive for its sake alone:

```python
class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(2 * x)
        y = (e - 1) / (e + 1)
        ctx.save_for_backward(x, e)
        ctx.slope = 1 - y * y
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.slope
```

Write a `Tanh` that keeps **no bytes besides its input and output**, leaves no tensor on `ctx` as an
attribute, and holds for all `x`. `torch.tanh` may be used in `forward`. The check counts bytes.
""",
    kind="Function",
    starter=_class("Tanh", "...", "..."),
    answer="Tanh",
    hints=(
        "The slope is $1 - y^2$. Which tensor is enough?",
        "Save the output, and compute the slope in `backward`.",
    ),
    reference=_class("Tanh", "y = torch.tanh(x)\nctx.save_for_backward(y)\nreturn y", _GET_Y),
    other_right=(
        _class(
            "Tanh",
            "ctx.save_for_backward(x)\nreturn torch.tanh(x)",
            _GET_X.format("g / torch.cosh(x) ** 2"),
        ),
        _class(
            "Tanh",
            "ctx.save_for_backward(x)\nreturn torch.tanh(x)",
            _GET_X.format("g * (1 - torch.tanh(x) ** 2)"),
        ),
    ),
    explains=(
        "Input and output are tensors that others hold anyway. The slope follows from the output, so "
        "it alone is enough, at the price "
        "of a product in `backward`."
    ),
    mistakes=(
        Mistake(
            "as given",
            "This keeps `e` and the slope, both as large as `x`, and overflows: `exp` of a large "
            "number is `inf`.",
            _class(
                "Tanh",
                _TANH + "ctx.save_for_backward(x, e)\nctx.slope = 1 - y * y\nreturn y",
                "return g * ctx.slope",
            ),
        ),
        Mistake(
            "overflow",
            "Slim, but `exp` overflows for large `x`, and `inf / inf` is `nan`. `torch.tanh` is stable.",
            _class("Tanh", _TANH + "ctx.save_for_backward(y)\nreturn y", _GET_Y),
        ),
        Mistake(
            "new tensor saved",
            "Values and gradients are right. But you saved a new tensor, as large as `x`, that only "
            "this node holds. Save what is alive anyway, itself and not a copy.",
            _class(
                "Tanh",
                "y = torch.tanh(x)\nctx.save_for_backward(1 - y * y)\nreturn y",
                "(slope,) = ctx.saved_tensors\nreturn g * slope",
            ),
        ),
        Mistake(
            "new tensor on ctx",
            "Values and gradients are right. But a new tensor, as large as `x`, lies on `ctx`. Only "
            "this node holds it, and backward does not even free it.",
            _class("Tanh", "y = torch.tanh(x)\nctx.slope = 1 - y * y\nreturn y", "return g * ctx.slope"),
        ),
        Mistake(
            "tensor on ctx",
            "The input or output itself, so no new bytes. But an attribute of `ctx` skips the "
            "version check, is not freed by "
            "backward, and an output makes a cycle. Use `save_for_backward`.",
            _class("Tanh", "ctx.y = torch.tanh(x)\nreturn ctx.y", "return g * (1 - ctx.y**2)"),
        ),
        Mistake(
            "slope",
            "The slope is $1 - y^2$, and not $1 - y$.",
            _class(
                "Tanh",
                "y = torch.tanh(x)\nctx.save_for_backward(y)\nreturn y",
                "(y,) = ctx.saved_tensors\nreturn g * (1 - y)",
            ),
        ),
    ),
    cases=(
        _case("6 elements", 6),
        _values("large elements", 0.0, 200.0, -200.0),
        _case("a matrix", 3, 4),
        _case("zero-dimensional", dtype=torch.float64),
        _case("empty", 0),
    ),
    observe=_observe_slim,
)


# ------------------------------------------------------------------ three to repair


def _observe_power(answer, x: torch.Tensor, exponent: int) -> dict:
    seen = observe_gradient(answer.apply, x, exponent)
    y = answer.apply(x, exponent)
    return {**seen, "bytes kept besides input and output": _kept(y, x, y)}


def _power_case(label: str, exponent: int, *shape: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_(), exponent

    return Case(label, make)


def _power(forward: str, backward: str) -> str:
    return _class("Power", forward, backward, "x, exponent")


_POWER_FORWARD = "ctx.save_for_backward(x)\nctx.exponent = exponent\nreturn x**exponent"
_POWER_SLOPE = "g * ctx.exponent * x ** (ctx.exponent - 1)"

repair_power = Exercise(
    name="repair_power",
    chapter="31",
    title="Repair: an incorrect number of gradients",
    minutes=5,
    difficulty=1,
    statement="""
`exponent` is a Python `int` of at least 1. The Function fails twice, in `forward` and then in `backward`.
Repair it.

```python
class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, exponent):
        ctx.save_for_backward(x, exponent)
        return x**exponent

    @staticmethod
    def backward(ctx, g):
        x, exponent = ctx.saved_tensors
        return g * exponent * x ** (exponent - 1)
```
""",
    kind="Function",
    starter=_class("Power", "...", "...", "x, exponent"),
    answer="Power",
    hints=(
        "`save_for_backward` takes tensors only. Where does a number go?",
        "`backward` returns one value for each argument of `forward`. What stands for a number?",
    ),
    reference=_power(_POWER_FORWARD, _GET_X.format(f"{_POWER_SLOPE}, None")),
    other_right=(_power(_POWER_FORWARD, _GET_X.format(f"{_POWER_SLOPE}, None, None")),),
    explains="Numbers go on `ctx` as attributes, and `None` is returned in their place.",
    mistakes=(
        Mistake(
            "as given",
            "`save_for_backward` takes tensors only. Put the number on `ctx`: `ctx.exponent = exponent`.",
            _power(
                "ctx.save_for_backward(x, exponent)\nreturn x**exponent",
                "x, exponent = ctx.saved_tensors\nreturn g * exponent * x ** (exponent - 1)",
            ),
        ),
        Mistake(
            "one value",
            "`forward` takes two arguments, so `backward` returns two values. For the number it is `None`.",
            _power(_POWER_FORWARD, _GET_X.format(_POWER_SLOPE)),
        ),
        Mistake(
            "gradient in second place",
            "The second place belongs to the number, and torch accepts only `None` there. First the "
            "gradient of `x`, then `None`.",
            _power(_POWER_FORWARD, _GET_X.format(f"None, {_POWER_SLOPE}")),
        ),
        Mistake(
            "number as a tensor",
            "It works, but you made a tensor of the number and saved it. A number needs no tensor: "
            "`ctx.exponent = exponent`.",
            _power(
                "ctx.save_for_backward(x, torch.tensor(exponent))\nreturn x**exponent",
                "x, exponent = ctx.saved_tensors\nreturn g * exponent * x ** (exponent - 1), None",
            ),
        ),
        Mistake(
            "through the result",
            "$n x^n / x$ is the right slope, except at 0: there it is 0/0, which is `nan`. Use "
            "$n x^{n-1}$, which needs no division.",
            _power(
                "y = x**exponent\nctx.save_for_backward(x, y)\nctx.exponent = exponent\nreturn y",
                "x, y = ctx.saved_tensors\nreturn g * ctx.exponent * y / x, None",
            ),
        ),
        Mistake(
            "exponent not lowered",
            "The slope of $x^n$ is $n x^{n-1}$: the exponent goes down by one.",
            _power(_POWER_FORWARD, _GET_X.format("g * ctx.exponent * x**ctx.exponent, None")),
        ),
    ),
    cases=(
        _power_case("3 elements, exponent 3", 3, 3),
        _power_case("exponent 1", 1, 2, 2),
        Case("a zero among them", lambda generator: (torch.tensor([2.0, 0.0], requires_grad=True), 2)),
        _power_case("zero-dimensional, float64", 2, dtype=torch.float64),
        _power_case("empty", 4, 0),
    ),
    observe=_observe_power,
)


_ROWS = ("ctx.shape = x.shape\nreturn x.sum(1)",)

repair_row_sum = Exercise(
    name="repair_row_sum",
    chapter="31",
    title="Repair: an invalid gradient",
    minutes=5,
    difficulty=2,
    statement="""
`RowSum` adds up each row of a matrix. For a matrix of shape (2, 3), backward says "got [2] but expected
shape compatible with [2, 3]". Repair it. Which value of `x` does the slope need? Keep no tensor.

```python
class RowSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sum(1)

    @staticmethod
    def backward(ctx, g):
        return g
```
""",
    kind="Function",
    starter=_class("RowSum", "...", "..."),
    answer="RowSum",
    hints=(
        "Each element of row $i$ went into output $i$ with slope 1. So each gets `g[i]`.",
        "The slope needs no value of `x`, only its shape: `ctx.shape = x.shape`.",
        "`g.unsqueeze(1)` is a column. Let it expand to the shape of `x`.",
    ),
    reference=_class("RowSum", _ROWS[0], "return g.unsqueeze(1).expand(ctx.shape)"),
    other_right=(
        _class(
            "RowSum",
            "ctx.columns = x.shape[1]\nreturn x.sum(1)",
            "return g[:, None].repeat(1, ctx.columns)",
        ),
    ),
    explains=(
        "A sum sends its gradient to each term. `expand` needs no memory for that, and a shape is "
        "all that is kept."
    ),
    mistakes=(
        Mistake(
            "as given",
            "The gradient that you return has one element for each row, and the input has a matrix of them.",
            _class("RowSum", "ctx.save_for_backward(x)\nreturn x.sum(1)", "return g"),
        ),
        Mistake(
            "a row, not a column",
            "`g.expand` puts the values along the rows. Each row must get its own value: make a "
            "column with `unsqueeze(1)` "
            "first.",
            _class("RowSum", _ROWS[0], "return g.expand(ctx.shape)"),
        ),
        Mistake(
            "ones",
            "You return the slope alone. It must be multiplied by the gradient that arrives.",
            _class("RowSum", _ROWS[0], "return torch.ones(ctx.shape, dtype=g.dtype)"),
        ),
        Mistake(
            "tensor kept",
            "The gradient is right. But a tensor as large as `x` is still kept, and the slope needs "
            "no value of it: keep the shape.",
            _class(
                "RowSum",
                "ctx.save_for_backward(x)\nreturn x.sum(1)",
                "(x,) = ctx.saved_tensors\nreturn g.unsqueeze(1).expand(x.shape)",
            ),
        ),
        Mistake(
            "mean",
            "You share the gradient out between the columns. That is the gradient of a mean. A sum "
            "passes all of it to each "
            "term.",
            _class("RowSum", _ROWS[0], "return g.unsqueeze(1).expand(ctx.shape) / ctx.shape[1]"),
        ),
        Mistake(
            "times x",
            "You multiply by `x`. The slope of a sum is 1 for each term.",
            _class(
                "RowSum",
                "ctx.save_for_backward(x)\nreturn x.sum(1)",
                "(x,) = ctx.saved_tensors\nreturn g.unsqueeze(1) * x",
            ),
        ),
    ),
    cases=(
        _case("2 rows, 3 columns", 2, 3),
        _case("a square matrix", 3, 3),
        _case("one column", 3, 1),
        _case("no rows", 0, 3),
        _case("float64", 2, 2, dtype=torch.float64),
    ),
    observe=lambda answer, x: {
        **observe_gradient(answer.apply, x),
        "bytes kept": _kept(answer.apply(x)),
    },
)

repair_square = Exercise(
    name="repair_square",
    chapter="31",
    title="Repair: wrong, and no error",
    minutes=5,
    difficulty=2,
    statement="""
Each of the two methods has a fault that raises nothing. One shows when the input is changed in place
afterwards, the other when the incoming gradient is used elsewhere. Repair both, and copy nothing.

```python
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g.mul_(2).mul_(ctx.x)
```
""",
    kind="Function",
    starter=_class("Square", "...", "..."),
    answer="Square",
    hints=(
        "Which way of keeping a tensor notes its version?",
        "A method that ends in an underscore writes into its tensor. To whom does `g` belong?",
    ),
    reference=_class("Square", _SAVE_X.format("x * x"), _GET_X.format("g * 2 * x")),
    other_right=(_class("Square", _SAVE_X.format("x**2"), _GET_X.format("(2 * x).mul_(g)")),),
    explains=(
        "`save_for_backward` notes the version, so that torch refuses where the attribute gave a "
        "wrong number. And a product "
        "without underscore makes a tensor of your own."
    ),
    mistakes=(
        Mistake(
            "as given",
            "Both faults are still there: `x` lies on `ctx`, and the incoming gradient is changed in place.",
            _class("Square", "ctx.x = x\nreturn x * x", "return g.mul_(2).mul_(ctx.x)"),
        ),
        Mistake(
            "still in place",
            "A change of the input is noticed now. But `backward` still writes into the gradient "
            "that it was given.",
            _class("Square", _SAVE_X.format("x * x"), _GET_X.format("g.mul_(2).mul_(x)")),
        ),
        Mistake(
            "still on ctx",
            "The incoming gradient is left alone now. But a change of the input in place is still "
            "not noticed: use "
            "`save_for_backward`.",
            _class("Square", "ctx.x = x\nreturn x * x", "return g * 2 * ctx.x"),
        ),
        Mistake(
            "made from x",
            "A tensor made from `x`, such as a copy, gives the right gradient after a change, at the "
            "price of as many bytes again. Save `x` itself, and let torch refuse.",
            _class("Square", "ctx.save_for_backward(x.clone())\nreturn x * x", _GET_X.format("g * 2 * x")),
        ),
        Mistake(
            "factor 2",
            "The factor 2 was lost: the slope of $x^2$ is $2x$.",
            _class("Square", _SAVE_X.format("x * x"), _GET_X.format("g * x")),
        ),
        Mistake(
            "gradient forgotten",
            "You return the slope alone. Multiply it by the gradient that arrives.",
            _class("Square", _SAVE_X.format("x * x"), _GET_X.format("2 * x")),
        ),
    ),
    cases=(
        _values("3 elements", 1.0, -2.0, 3.0),
        _case("zero-dimensional"),
        Case("not contiguous", _transposed),
        _case("float64", 4, dtype=torch.float64),
    ),
    observe=lambda answer, x: {**_observe_checked(answer, x), **_observe_shared(answer, x)},
)


# ------------------------------------------------------------------ a prediction

which_returns = Exercise(
    name="which_returns",
    chapter="31",
    title="Predict: which returns raise?",
    minutes=3,
    difficulty=1,
    statement="""
`forward(ctx, x, factor)` multiplies `x`, of shape (3,), by a number. `Scale.apply(x, 2).sum().backward()`
runs. With which endings of `backward` does it raise?

- `a`: `return g * ctx.factor`
- `b`: `return g * ctx.factor, None`
- `c`: `return g * ctx.factor, None, None`
- `d`: `return g * ctx.factor, None, g`
- `e`: `return (g * ctx.factor).expand(4, 3), None`
- `f`: `return g.sum() * ctx.factor, None`

Answer with a list of letters.
""",
    kind="list",
    starter="raising = ...",
    answer="raising",
    hints=(
        "Count: two arguments. What may stand behind the second value?",
        "A shape that sums down to that of the input is accepted, even if the numbers are wrong. "
        "Does () sum down to (3,)?",
    ),
    reference='raising = ["a", "d", "f"]',
    explains=(
        "`a` returns too few values, `d` a surplus one that is not `None`, `f` the shape () for "
        "(3,). `e` is summed down to (3,): "
        "wrong by a factor of 4, in silence."
    ),
    mistakes=(
        Mistake(
            "surplus None",
            "Surplus values are accepted if all of them are `None`.",
            'raising = ["a", "c", "d", "f"]',
        ),
        Mistake(
            "too large",
            "A gradient of shape (4, 3) sums down to (3,), and torch does that without asking. `e` "
            "is wrong, but does not raise.",
            'raising = ["a", "d", "e", "f"]',
        ),
        Mistake(
            "too small",
            "Torch sums a gradient that is too large. It does not expand one that is too small: `f` raises.",
            'raising = ["a", "d"]',
        ),
        Mistake(
            "surplus allowed",
            "Surplus values must be `None`. In `d` the third one is a tensor.",
            'raising = ["a", "f"]',
        ),
    ),
    observe=observe_names,
)

EXERCISES = (
    cube_function,
    stable_softplus,
    linear_function,
    slim_tanh,
    repair_power,
    repair_row_sum,
    repair_square,
    which_returns,
)

"""Exercises of chapter 35: changing gradients."""

from collections.abc import Callable

import numpy as np
import torch

from ._model import Case, Exercise, Mistake
from ._observe import observe_gradient, observe_names


def _randn(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


def _slopes(y: torch.Tensor) -> torch.Tensor:
    """A vector to start backward with: other values in each place, some above 1, some below 0."""
    return torch.linspace(2, -1.5, y.numel(), dtype=y.dtype).reshape(y.shape)


def _gradient(y: object, x: torch.Tensor) -> torch.Tensor | None:
    if not (isinstance(y, torch.Tensor) and y.requires_grad):
        return None
    return torch.autograd.grad(y, x, _slopes(y), allow_unused=True)[0]


# ------------------------------------------------------------------ predictions

which_reach_v = Exercise(
    name="which_reach_v",
    chapter="35",
    title="Predict: which of them reach the parameter?",
    minutes=3,
    difficulty=2,
    statement="""
`layer` is a Module with one parameter `v`, and its `forward(h)` returns `h * v`. Then `h = 1 * w`, `y =
layer(h)`, `(y + h).sum().backward()`. Each line adds one thing. Which change what arrives in
**`layer.v.grad`**?

- `a`: `h.register_hook(lambda g: 2 * g)`
- `b`: `y.register_hook(lambda g: 2 * g)`
- `c`: `layer.register_full_backward_hook(lambda m, g_in, g_out: (2 * g_in[0],))`
- `d`: `layer.register_full_backward_pre_hook(lambda m, g_out: (2 * g_out[0],))`
- `e`: a method of the layer, `def backward(self, g): return 2 * g`
- `f`: `layer.v.register_hook(lambda g: 2 * g)`

Answer with a list of letters.
""",
    kind="list",
    starter="changed = ...",
    answer="changed",
    hints=(
        "The gradient flows from `y` through the product, and there it splits: one part to `h`, one to `v`.",
        "What is changed before the split reaches both. What is changed behind it, on the way of `h`, does "
        "not reach `v`.",
    ),
    reference='changed = ["b", "d", "f"]',
    explains=(
        "`b` and `d` change the gradient before it enters the product, and `f` on its last step. `a` and `c` "
        "act on the way to `h`, and nothing calls `e`."
    ),
    mistakes=(
        Mistake(
            "module hook",
            "In `c` the hook replaces what leaves at the inputs of the layer. The gradient of `v` is "
            "on its way "
            "already. The pre-hook in `d` comes before the layer.",
            'changed = ["b", "c", "d", "f"]',
        ),
        Mistake(
            "module backward",
            "In `e` nothing happens: backward walks the graph, and a method `backward` of a Module "
            "is never called.",
            'changed = ["b", "d", "e", "f"]',
        ),
        Mistake(
            "input hook",
            "In `a` the hook acts on what arrives at `h`. That is behind the product, where `v` has got its "
            "share.",
            'changed = ["a", "b", "d", "f"]',
        ),
        Mistake(
            "leaf hook forgotten",
            "In `f` the hook is on the parameter itself: it changes what arrives there before it is added to "
            "`.grad`.",
            'changed = ["b", "d"]',
        ),
        Mistake(
            "pre-hook forgotten",
            "In `d` the hook replaces the gradient of the layer's *output*, before backward of the "
            "layer begins.",
            'changed = ["b", "f"]',
        ),
        Mistake(
            "all hooks",
            "All the hooks, you say. `a` and `c` act on the way to `h`, behind the point where `v` "
            "has got its "
            "share.",
            'changed = ["a", "b", "c", "d", "f"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ sign with a window


def _tensors_in(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors_in(item)]
    return []


def _kept(result: object) -> int:
    """Bytes of the tensors that the node of a custom Function keeps."""
    node = getattr(result, "grad_fn", None)
    if node is None:
        return 0
    found = [*_tensors_in(getattr(node, "saved_tensors", ())), *_tensors_in(list(vars(node).values()))]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in found}
    return sum(sizes.values())


def _observe_sign(answer, x: torch.Tensor) -> dict:
    y = answer.apply(x)
    few = _kept(y) <= x.numel()
    return {"result": y, "gradient": _gradient(y, x), "at most one byte kept per element": few}


_SIGN = """
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {save}
        return {result}

    @staticmethod
    def backward(ctx, g):
        {load}
        return {gradient}
"""


def _sign(
    save="ctx.save_for_backward(x.abs() <= 1)",
    result="torch.where(x < 0, -1.0, 1.0).to(x.dtype)",
    load="(inside,) = ctx.saved_tensors",
    gradient="g * inside",
) -> str:
    return _SIGN.format(save=save, result=result, load=load, gradient=gradient)


def _values_case(label: str, *values: float, dtype: torch.dtype = torch.float32) -> Case:
    return Case(label, lambda generator: (torch.tensor(values, dtype=dtype).requires_grad_(),))


sign_window = Exercise(
    name="sign_window",
    chapter="35",
    title="Sign, straight through, in a window",
    minutes=6,
    difficulty=1,
    statement="""
Write a Function for `Sign.apply(x)`: −1 where `x < 0`, and 1 elsewhere, **also at 0**, in the dtype of `x`.

Its gradient: `g` passes unchanged where `-1 <= x <= 1`, and is 0 elsewhere. Keep at most one byte for each
element.

For `x = [-2, -0.5, 0, 1, 3]`: `[-1, -1, 1, 1, 1]`, and the gradient passes at the three in the middle.
""",
    kind="Function",
    starter="""
class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Sign",
    hints=(
        "`torch.sign` gives 0 at 0. `torch.where(x < 0, …, …)` does not.",
        "Backward needs to know where `x` was inside the window. That is one `bool` for each element.",
        "Save `x.abs() <= 1`, and multiply `g` by it.",
    ),
    reference=_sign(),
    other_right=(
        _sign(save="ctx.inside = (x >= -1) & (x <= 1)", load="inside = ctx.inside"),
        _sign(result="2 * (x >= 0).to(x.dtype) - 1", gradient="torch.where(inside, g, 0)"),
        _sign(gradient="g.masked_fill(~inside, 0)"),
    ),
    explains=(
        "A mask of `bool`s says where the gradient passes. Far outside the window a small step would not "
        "change the sign, so nothing pushes there."
    ),
    mistakes=(
        Mistake(
            "true slope",
            "The gradient is zero everywhere. That is the true slope of the sign, and nothing can be learned "
            "from it.",
            _sign(gradient="torch.zeros_like(g)"),
        ),
        Mistake(
            "no window",
            "The gradient passes everywhere. It should be 0 where `x` is below −1 or above 1.",
            _sign(gradient="g"),
        ),
        Mistake(
            "edge left out",
            "At −1 and 1 themselves the gradient should pass: use `<=`.",
            _sign(save="ctx.save_for_backward(x.abs() < 1)"),
        ),
        Mistake(
            "zero at zero",
            "At 0 the result should be 1. `torch.sign` gives 0 there.",
            _sign(result="torch.sign(x)"),
        ),
        Mistake(
            "default dtype",
            "The numbers are right, but the result has the default dtype, whatever `x` has. Give it that of "
            "`x`.",
            _sign(result="torch.where(x < 0, -1.0, 1.0)"),
        ),
        Mistake(
            "whole numbers",
            "The result holds integers, through which no gradient comes back. Give it the dtype of `x`.",
            _sign(result="torch.where(x < 0, -1, 1)"),
        ),
        Mistake(
            "gradient clipped",
            "The window is about `x`: it says where the gradient passes. You limited the gradient itself to "
            "−1 … 1.",
            _sign(gradient="g.clamp(-1, 1)"),
        ),
        Mistake(
            "turned round",
            "The gradient passes outside the window, and should pass inside.",
            _sign(gradient="g * ~inside"),
        ),
        Mistake(
            "input kept",
            "Values and gradients are right, but more than one byte per element is kept. Save the mask "
            "`x.abs() <= 1`, a `bool` tensor.",
            _sign(save="ctx.save_for_backward(x)", gradient="g * (inside.abs() <= 1)"),
        ),
    ),
    cases=(
        _values_case("the example", -2.0, -0.5, 0.0, 1.0, 3.0),
        _values_case("the edges, float64", -1.0, 1.0, -1.5, 1.5, 0.25, 0.0, dtype=torch.float64),
        _values_case("one element", -0.25),
        Case("zero-dimensional", lambda generator: (torch.tensor(0.0, requires_grad=True),)),
        Case("empty", lambda generator: (_randn(generator, 0, 2),)),
        Case("not contiguous", lambda generator: (_randn(generator, 4, 3).t(),)),
    ),
    observe=_observe_sign,
)


# ------------------------------------------------------------------ gradient reversal


def _observe_reverse(answer, x: torch.Tensor, strength: float) -> dict:
    h = x + 0
    y = answer.apply(h, strength)
    v = _slopes(h)
    alone = torch.autograd.grad(y, x, v) if y.requires_grad else (None,)
    both = torch.autograd.grad(answer.apply(h, strength) + 3 * h, x, _slopes(h))
    return {
        "result": y,
        "gradient": alone[0],
        "gradient, with another use of x": both[0],
        "side effect: the incoming gradient was changed in place": not torch.equal(v, _slopes(h)),
    }


_REVERSE = """
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return {result}

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""


def _reverse(result="x.view_as(x)", gradient="-ctx.strength * g, None") -> str:
    return _REVERSE.format(result=result, gradient=gradient)


def _reverse_case(label: str, strength: float, *shape: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case(label, lambda generator: (_randn(generator, *shape, dtype=dtype), strength))


gradient_reversal = Exercise(
    name="gradient_reversal",
    chapter="35",
    title="Gradient reversal with a strength",
    minutes=5,
    difficulty=1,
    statement="""
Without looking back: write a Function for `Reverse.apply(x, strength)`. Its result has the values of `x`;
the gradient that reaches `x` is the incoming one times `-strength`. `strength` is a Python number of at
least 0.

With `strength = 0.5`, an incoming `[2, 4]` becomes `[-1, -2]`. What arrives must not be changed in place.
""",
    kind="Function",
    starter="""
class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Reverse",
    hints=(
        "A number goes from forward to backward as an attribute of `ctx`.",
        "Forward changes nothing: return a view or a copy of `x`.",
        "Backward returns two values, one for each argument. What is the gradient of a Python number?",
    ),
    reference=_reverse(),
    other_right=(
        _reverse(result="x.clone()", gradient="g.neg() * ctx.strength, None"),
        _reverse(result="x"),
        _reverse(result="x * 1"),
    ),
    explains="The value passes, the gradient turns: what lies behind goes up the slope that others go down.",
    mistakes=(
        Mistake(
            "not reversed",
            "The gradient is scaled, and keeps its sign.",
            _reverse(gradient="ctx.strength * g, None"),
        ),
        Mistake(
            "strength forgotten",
            "The sign is turned, but the gradient is not multiplied by `strength`.",
            _reverse(gradient="-g, None"),
        ),
        Mistake(
            "forward reversed",
            "The result has the wrong sign. Forward should leave the values as they are.",
            _reverse(result="-x"),
        ),
        Mistake(
            "forward scaled",
            "The result is multiplied by `-strength`. Only the gradient should be.",
            _reverse(result="-strength * x"),
        ),
        Mistake(
            "one value",
            "Backward returned one value, and forward was given two arguments. Add a `None` for `strength`.",
            _reverse(gradient="-ctx.strength * g"),
        ),
        Mistake(
            "gradient for strength",
            "A Python number has no gradient: return `None` for `strength`.",
            _reverse(gradient="-ctx.strength * g, g.sum()"),
        ),
        Mistake(
            "in place",
            "The numbers are right, but backward changed the incoming gradient in place. It may "
            "belong to others: "
            "make a new tensor.",
            _reverse(gradient="g.mul_(-ctx.strength), None"),
        ),
    ),
    cases=(
        _reverse_case("strength = 0.5", 0.5, 2),
        _reverse_case("strength = 2, float64", 2, 2, 3, dtype=torch.float64),
        _reverse_case("strength = 0", 0.0, 3),
        _reverse_case("zero-dimensional", 0.25),
        _reverse_case("empty", 3.0, 0),
        Case("not contiguous", lambda generator: (_randn(generator, 3, 2).t(), 1.5)),
    ),
    observe=_observe_reverse,
)


# ------------------------------------------------------------------ scale, with detach alone


def _observe_scale(answer: Callable, x: torch.Tensor, c: float) -> dict:
    seen = observe_gradient(answer, x, c)
    y = answer(x, c)
    used_twice = y + x if isinstance(y, torch.Tensor) else None
    return {**seen, "gradient, with another use of x": _gradient(used_twice, x)}


def _scale(expression: str) -> str:
    return f"\ndef scale_gradient(x, c):\n    return {expression}\n"


def _scale_case(label: str, c: float, *shape: int, dtype: torch.dtype = torch.float32) -> Case:
    return Case(label, lambda generator: (_randn(generator, *shape, dtype=dtype), c))


scale_gradient = Exercise(
    name="scale_gradient",
    chapter="35",
    title="Scale a gradient with detach alone",
    minutes=5,
    difficulty=2,
    statement="""
Write `scale_gradient(x, c)` as one expression of `x`, `c` and `detach()`. Its result has the values of `x`
(up to rounding), and the gradient that reaches `x` through it is `c` times what comes in. `c` is any Python
number. Other uses of `x` get their gradients unchanged.
""",
    kind="function",
    starter="def scale_gradient(x, c):\n    ...",
    answer="scale_gradient",
    hints=(
        "Write a part that has the right gradient. What value does it have?",
        "`c * x` has the gradient `c`. A detached term has the gradient 0 and can mend the value.",
        "Which term must be added to `c * x` so that the sum is `x`?",
    ),
    reference=_scale("c * x + ((1 - c) * x).detach()"),
    other_right=(
        _scale("c * x + (1 - c) * x.detach()"),
        _scale("c * x + (x - c * x).detach()"),
        _scale("x.detach() + c * (x - x.detach())"),
    ),
    explains=(
        "`c * x` brings the gradient, the detached rest brings the value back. With `c = -1` it is "
        "a reversal."
    ),
    mistakes=(
        Mistake(
            "value scaled",
            "The values are multiplied by `c`, too. Add what is missing, detached.",
            _scale("c * x"),
        ),
        Mistake(
            "exchanged",
            "The two roles are exchanged: the values are `c * x`, and the gradient passes unchanged.",
            _scale("x + (c * x - x).detach()"),
        ),
        Mistake(
            "not detached",
            "The values are right, but the gradient passes unchanged: each term brings its own gradient, and "
            "together they make 1. Which term must count as a constant?",
            _scale("c * x + (1 - c) * x"),
        ),
        Mistake(
            "wrong part detached",
            "The gradient is multiplied by `1 - c`: you detached the part that should bring it.",
            _scale("(c * x).detach() + (1 - c) * x"),
        ),
        Mistake(
            "all detached",
            "No gradient comes through at all. Detach a part of the expression, not the whole.",
            _scale("x.detach()"),
        ),
        Mistake(
            "value added",
            "The gradient is right, but the values are `(1 + c) * x`. Add `(1 - c) * x`, detached.",
            _scale("c * x + x.detach()"),
        ),
        Mistake(
            "hook on x",
            "A hook on `x` changes the sum over all its uses, and the other uses of `x` should stay "
            "as they are.",
            "\ndef scale_gradient(x, c):\n    x.register_hook(lambda g: c * g)\n    return x.view_as(x)\n",
        ),
    ),
    cases=(
        _scale_case("c = 0.25", 0.25, 3),
        _scale_case("c = -1, float64", -1, 2, 2, dtype=torch.float64),
        _scale_case("c = 0", 0, 2),
        _scale_case("c = 4, zero-dimensional", 4.0),
        _scale_case("empty", 2.0, 0),
        Case("not contiguous", lambda generator: (_randn(generator, 3, 2).t(), 3.0)),
    ),
    observe=_observe_scale,
)


# ------------------------------------------------------------------ clip at one place


def _observe_clip(answer: Callable, slopes: torch.Tensor, limit: float) -> dict:
    w = torch.zeros_like(slopes).requires_grad_()
    b = torch.ones_like(slopes).requires_grad_()
    other = 5 * b  # made before h, so backward comes to it later
    h = w + 1  # an addition saves nothing, so it can be run again below
    # The sum hands one and the same tensor to h and to other: whoever changes it in place is found out.
    answer(((h + other) * slopes).sum() + 3 * w.sum(), h, limit)
    first = w.grad
    again = torch.autograd.grad(h, w, 100 * torch.ones_like(h))[0]
    return {
        "gradient of w": first,
        "gradient of b": b.grad,
        "side effect: the hook is still on h": not torch.equal(again, 100 * torch.ones_like(h)),
    }


_CLIP = """
def backward_clipped(loss, h, limit):
    def clip(g):
        {body}
    handle = h.register_hook(clip)
    {then}
    {end}
"""


def _clip(
    body="return g * (limit / g.norm()).clamp(max=1)", then="loss.backward()", end="handle.remove()"
) -> str:
    return _CLIP.format(body=body, then=then, end=end)


def _clip_case(label: str, slopes: list, limit: float) -> Case:
    return Case(label, lambda generator: (torch.tensor(slopes, dtype=torch.float32), limit))


clip_at_h = Exercise(
    name="clip_at_h",
    chapter="35",
    title="Clip by norm at one tensor",
    minutes=7,
    difficulty=2,
    statement="""
`h` is computed from leaves, and `loss` from `h` (and from other things). Write `backward_clipped(loss, h,
limit)`. It runs `loss.backward()`. If the norm of the gradient that arrives at `h` (over all elements) is
above `limit`, that gradient is scaled down to the norm `limit` before it flows on; else it stays. Paths
that do not lead through `h` are not touched. Afterwards **no hook is left** on `h`.

With `limit = 1`, an arriving `[3, 4]` becomes `[0.6, 0.8]`. It may be all zeros.
""",
    kind="function",
    starter="def backward_clipped(loss, h, limit):\n    ...",
    answer="backward_clipped",
    hints=(
        "`h.register_hook` before backward, and `.remove()` on the handle that it returned after it.",
        "The hook must return the new gradient. The factor is `limit / norm`, but never above 1.",
        "`(limit / g.norm()).clamp(max=1)` is 1 for a norm of zero, too.",
    ),
    reference=_clip(),
    other_right=(
        _clip(
            body="norm = g.norm()\n        return g * (limit / norm) if norm > limit else g",
        ),
        _clip(body="norm = float(g.norm())\n        return g * (limit / max(norm, limit))"),
        _clip(body="if g.norm() > limit:\n            return limit * g / g.norm()"),
    ),
    explains="A hook acts where the gradient passes, so everything behind `h` sees the clipped one.",
    mistakes=(
        Mistake(
            "by value",
            "Each element is limited for itself. Scale them all by one factor, so that the direction stays.",
            _clip(body="return g.clamp(-limit, limit)"),
        ),
        Mistake(
            "always scaled",
            "A gradient with a norm below `limit` should stay as it is. Yours is scaled to the norm "
            "`limit` always.",
            _clip(body="return g * (limit / g.norm())"),
        ),
        Mistake(
            "in place",
            "The hook changed the gradient in place. Another path had got the same tensor, and so is clipped "
            "too. Return a new tensor.",
            _clip(body="return g.mul_((limit / g.norm()).clamp(max=1))"),
        ),
        Mistake(
            "one path",
            "Backward ran through `h` alone. What `loss` gets on other paths is missing: run "
            "`loss.backward()`, and clip in a hook.",
            _clip(
                then="(g,) = torch.autograd.grad(loss, h)",
                end="handle.remove()\n    h.backward(g)",
            ),
        ),
        Mistake(
            "not clipped",
            "The gradient flows on as it came. After `loss.backward()` it is too late to clip. A hook that "
            "returns nothing leaves the gradient as it is, and one that is removed before backward does not "
            "run.",
            _clip(body="g * (limit / g.norm()).clamp(max=1)"),
        ),
        Mistake(
            "min for max",
            "The factor is never below 1, so small gradients grow and large ones stay. It must never "
            "be above 1.",
            _clip(body="return g * (limit / g.norm()).clamp(min=1)"),
        ),
        Mistake(
            "hook left",
            "The gradients are right, but the hook is still on `h` and will act in the next pass. Keep the "
            "handle, and call its `remove()`.",
            _clip(end="pass"),
        ),
    ),
    cases=(
        _clip_case("the example", [3.0, 4.0], 1.0),
        _clip_case("below the limit", [0.5, -0.25], 1.0),
        _clip_case("all zeros", [0.0, 0.0, 0.0], 1.0),
        _clip_case("a matrix", [[8.0, 0.5], [-1.0, 4.0]], 2.0),
        _clip_case("one element", [-16.0], 4.0),
    ),
    observe=_observe_clip,
)


# ------------------------------------------------------------------ two halves by hand


def _square(a: np.ndarray) -> np.ndarray:
    return a * a


def _square_slope(a: np.ndarray) -> np.ndarray:
    return 2 * a


def _cube(a: np.ndarray) -> np.ndarray:
    return a * a * a


def _cube_slope(a: np.ndarray) -> np.ndarray:
    return 3 * a * a


def _observe_join(answer: Callable, values: torch.Tensor, block: Callable, slope: Callable) -> dict:
    w = values.clone().requires_grad_()
    v = (torch.arange(values.numel(), dtype=values.dtype) + 1).reshape(values.shape).requires_grad_()
    result = answer(2 * w, block, slope, lambda z: (v * z).sum())
    return {
        "result": result,
        "gradient of the head": v.grad,
        "gradient of the leaf behind h": w.grad,
    }


_JOIN = """
def join(h, block, slope, head):
    a = h.detach().numpy()
    z = torch.from_numpy(block(a)){leaf}
    loss = head(z)
    {first}
    {second}
    return loss
"""


def _join(
    leaf=".requires_grad_()",
    first="loss.backward()",
    second="h.backward(z.grad * torch.from_numpy(slope(a)))",
) -> str:
    return _JOIN.format(leaf=leaf, first=first, second=second)


def _join_case(
    label: str, values: list, block: Callable, slope: Callable, dtype: torch.dtype = torch.float32
) -> Case:
    return Case(label, lambda generator: (torch.tensor(values, dtype=dtype), block, slope))


join_by_hand = Exercise(
    name="join_by_hand",
    chapter="35",
    title="Two graphs, joined by hand",
    minutes=8,
    difficulty=2,
    statement="""
`h` is a tensor with a history. `block` and `slope` are NumPy functions that work element by element: the
block, and its derivative at the same input. `head(z)` returns a scalar and has parameters of its own.

Write `join(h, block, slope, head)` **without a Function**: it computes `loss = head(block(h))`, fills
`.grad` of every leaf on both sides, and returns `loss`.

For `block` a square, `h = 2 * w` and `w = [1, 2]`, and for `head(z) = (v * z).sum()` with `v = [1, 2]`:
`w.grad` is `[8, 32]`, and `v.grad` is `[4, 16]`.
""",
    kind="function",
    starter="def join(h, block, slope, head):\n    ...",
    answer="join",
    hints=(
        "What comes from NumPy has no history. Make it a leaf that requires grad: then backward of "
        "the loss fills "
        "its `.grad`.",
        "Backward of `h` needs a gradient to start with. By the chain rule it is `z.grad` times the slope.",
        "`slope` takes the input of the block: the array of `h`.",
    ),
    reference=_join(),
    other_right=(
        _join(first="loss.backward(retain_graph=True)"),
        _join(
            first="g = torch.autograd.grad(loss, z, retain_graph=True)[0]",
            second="h.backward(g * torch.from_numpy(slope(a))); loss.backward()",
        ),
    ),
    explains=(
        "Two backward passes, and the chain rule between them: this is what a Function does inside one pass."
    ),
    mistakes=(
        Mistake(
            "slope forgotten",
            "The gradient of `z` went to `h` as it is. Multiply it by the slope of the block.",
            _join(second="h.backward(z.grad)"),
        ),
        Mistake(
            "second half missing",
            "The head got its gradients, and nothing arrived behind `h`: no backward started there.",
            _join(second="pass"),
        ),
        Mistake(
            "slope at z",
            "The slope was taken at the block's output. It belongs at its input, the values of `h`.",
            _join(second="h.backward(z.grad * torch.from_numpy(slope(block(a))))"),
        ),
        Mistake(
            "slope alone",
            "Backward of `h` started with the slope alone. What comes from the head, `z.grad`, is a "
            "factor, too.",
            _join(second="h.backward(torch.from_numpy(slope(a)))"),
        ),
        Mistake(
            "first half missing",
            "What lies behind `h` got its gradient, and the parameters of the head got none.",
            _join(
                first="g = torch.autograd.grad(loss, z)[0]",
                second="h.backward(g * torch.from_numpy(slope(a)))",
            ),
        ),
        Mistake(
            "two times",
            "Each gradient is twice the true one: two passes were added into `.grad`.",
            _join(
                first="loss.backward(retain_graph=True); loss.backward()",
            ),
        ),
    ),
    cases=(
        _join_case("a square", [1.0, 2.0], _square, _square_slope),
        _join_case("a cube, float64", [1.0, -0.5, 2.0], _cube, _cube_slope, torch.float64),
        _join_case("a matrix", [[1.0, 2.0], [-3.0, 0.5]], _square, _square_slope),
        _join_case("one element", [1.5], _cube, _cube_slope),
    ),
    observe=_observe_join,
)


# ------------------------------------------------------------------ a filter of scipy.ndimage


def _observe_filter(answer, x: torch.Tensor, weights: list[float]) -> dict:
    y = answer.apply(x, weights)
    return {"result": y, "gradient": _gradient(y, x)}


_FILTER = """
from scipy import ndimage


class Correlate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weights):
        ctx.weights = weights
        return torch.from_numpy({result})

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""


_BACK = 'torch.from_numpy(ndimage.correlate1d(g.numpy(), {}, mode="constant"))'
_TURNED, _SAME = _BACK.format("ctx.weights[::-1]"), _BACK.format("ctx.weights")


def _filter(
    result='ndimage.correlate1d(x.numpy(), weights, mode="constant")',
    gradient=f"{_TURNED}, None",
) -> str:
    return _FILTER.format(result=result, gradient=gradient)


def _filter_case(
    label: str, weights: list[float], *shape: int, dtype: torch.dtype = torch.float32, turn: bool = False
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = _randn(generator, *shape, dtype=dtype)
        return (x.t() if turn else x), list(weights)

    return Case(label, make)


train_a_filter = Exercise(
    name="train_a_filter",
    chapter="35",
    title="A filter of SciPy that can be trained through",
    minutes=9,
    difficulty=3,
    statement="""
Write a Function for `Correlate.apply(x, weights)`. Its value is that of `ndimage.correlate1d(x, weights,
mode="constant")`, from `scipy.ndimage`, along the last dimension, in the dtype of `x`. `weights` is a list
of Python numbers of **odd length** that needs no gradient, and need not be symmetric. `x` has one or two
dimensions and is not empty.

`correlate1d` puts zeros outside, so with `weights = [0, 1, 3]` element `i` becomes `x[i] + 3 * x[i + 1]`:
`[1, 2, 4]` becomes `[7, 14, 4]`.
""",
    kind="Function",
    starter="""
class Correlate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weights):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Correlate",
    hints=(
        "The filter is linear, so the gradient is the transpose applied to `g`. Write the matrix for "
        "three elements "
        "down.",
        "With `[0, 1, 3]`, `x[i]` goes into `y[i]` once and into `y[i - 1]` three times. So its gradient is "
        "`g[i] + 3 * g[i - 1]`.",
        "That is a correlation with the weights turned round: `weights[::-1]`, and zeros outside again.",
    ),
    reference=_filter(),
    other_right=(
        _filter(
            gradient='torch.from_numpy(ndimage.convolve1d(g.numpy(), ctx.weights, mode="constant")), None'
        ),
        _filter(
            result='ndimage.correlate1d(x.detach().cpu().numpy(), weights, mode="constant", cval=0.0)',
        ),
    ),
    explains=(
        "The transpose of a correlation is the correlation with the weights turned round, which is a "
        "convolution."
    ),
    mistakes=(
        Mistake(
            "not turned",
            "Backward runs the same filter as forward. That is right for symmetric weights only. The "
            "transpose has "
            "them turned round.",
            _filter(gradient=f"{_SAME}, None"),
        ),
        Mistake(
            "passed on",
            "The gradient passes unchanged. Each `x[i]` goes into several results, so its gradient "
            "is a weighted sum.",
            _filter(gradient="g, None"),
        ),
        Mistake(
            "forward turned",
            "The values are those of a convolution: the weights are turned round in forward.",
            _filter(
                result='ndimage.convolve1d(x.numpy(), weights, mode="constant")',
                gradient=f"{_SAME}, None",
            ),
        ),
        Mistake(
            "mirrored outside, backward",
            "At the ends the gradient is wrong. Backward continues `g` beyond its ends as a mirror "
            "does, which is "
            "the default `mode`. There should be zeros.",
            _filter(gradient="torch.from_numpy(ndimage.correlate1d(g.numpy(), ctx.weights[::-1])), None"),
        ),
        Mistake(
            "mirrored outside, forward",
            "At the ends the values are wrong: `mode` was left out in forward, and its default "
            "continues `x` as "
            "a mirror does.",
            _filter(result="ndimage.correlate1d(x.numpy(), weights)"),
        ),
        Mistake(
            "one value",
            "Backward returned one value, and forward was given two arguments. Add a `None` for `weights`.",
            _filter(gradient=_TURNED),
        ),
        Mistake(
            "first dimension",
            "For a matrix the filter runs along the first dimension. It should be the last.",
            _filter(
                result='ndimage.correlate1d(x.numpy(), weights, axis=0, mode="constant")',
                gradient="torch.from_numpy(ndimage.correlate1d("
                'g.numpy(), ctx.weights[::-1], axis=0, mode="constant")), None',
            ),
        ),
        Mistake(
            "always float64",
            "The result is float64 for every `x`. It should have the dtype of `x`.",
            _filter(result='ndimage.correlate1d(x.double().numpy(), weights, mode="constant")'),
        ),
        Mistake(
            "array returned",
            "Backward returned a NumPy array. It must be a tensor: `torch.from_numpy`.",
            _filter(gradient='ndimage.correlate1d(g.numpy(), ctx.weights[::-1], mode="constant"), None'),
        ),
    ),
    cases=(
        Case(
            "the example",
            lambda generator: (torch.tensor([1.0, 2.0, 4.0], requires_grad=True), [0.0, 1.0, 3.0]),
        ),
        _filter_case("float64", [1.0, -2.0, 0.5], 6, dtype=torch.float64),
        _filter_case("one weight", [4.0], 3),
        _filter_case("one element", [1.0, 2.0, 5.0], 1),
        _filter_case("more weights than elements", [1.0, 2.0, 3.0, -1.0, 0.5, 4.0, -2.0], 3),
        _filter_case("a matrix", [3.0, 1.0, 0.0, 2.0, -1.0], 2, 5),
        _filter_case("not contiguous", [1.0, 0.0, -1.0], 4, 3, turn=True),
    ),
    observe=_observe_filter,
)

EXERCISES = (
    which_reach_v,
    sign_window,
    gradient_reversal,
    scale_gradient,
    clip_at_h,
    join_by_hand,
    train_a_filter,
)

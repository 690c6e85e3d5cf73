"""Exercises of chapter 34: inputs, state and randomness."""

from collections.abc import Sequence

import torch

from ._model import Case, Exercise, Mistake
from ._observe import observe_names


def _tensors_in(value: object) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors_in(item)]
    return []


def _kept(result: object, inputs: Sequence[torch.Tensor]) -> int:
    """Bytes that the node of a custom Function keeps, besides the memory of its inputs."""
    node = getattr(result, "grad_fn", None)
    if node is None:
        return 0
    own = {t.untyped_storage().data_ptr() for t in inputs}
    found = [*_tensors_in(getattr(node, "saved_tensors", ())), *_tensors_in(list(vars(node).values()))]
    sizes = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in found}
    return sum(size for pointer, size in sizes.items() if pointer not in own)


def _gradients(result: object, inputs: Sequence[torch.Tensor], keep: bool = False) -> dict:
    """Gradients of a result with a fixed vector, one entry for each input that requires grad.

    With ``keep`` the graph can be run once more.
    """
    wanted = [t for t in inputs if t.requires_grad]
    if isinstance(result, torch.Tensor) and result.requires_grad:
        v = torch.linspace(2, -1, result.numel(), dtype=result.dtype).reshape(result.shape)
        found = torch.autograd.grad(result, wanted, v, allow_unused=True, retain_graph=keep)
    else:
        found = [None] * len(wanted)
    return {f"gradient {i}": g for i, g in enumerate(found)}


def _randn(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=generator, dtype=dtype).requires_grad_()


# ------------------------------------------------------------------ dropout


def _observe_rows(answer, x: torch.Tensor, seed: int, options: dict) -> dict:
    generator = torch.Generator().manual_seed(seed)
    arguments = (options["p"], generator) if "p" in options else (0.5, generator)
    result = answer.apply(x, *arguments)
    kept = _kept(result, [x])
    state = generator.get_state()
    gradients = _gradients(result, [x])
    drawn = not torch.equal(state, generator.get_state())
    return {"result": result, **gradients, "bytes kept": kept, "side effect: backward drew numbers": drawn}


def _rows_case(
    label: str, *shape: int, p: float = 0.5, dtype: torch.dtype = torch.float32, turn=False
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = _randn(generator, *shape, dtype=dtype)
        return (x.mT if turn else x), 1, {"p": p}

    return Case(label, make)


_ROWS = """
class DropRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, generator):
        keep = torch.rand(x.shape[0], generator=generator, device=x.device) >= p
        keep = keep.reshape(-1, *[1] * (x.dim() - 1))
        {save}
        ctx.scale = 1 / (1 - p)
        return {result}

    @staticmethod
    def backward(ctx, g):
        {load}
        return {gradient}
"""


def _rows(
    save="ctx.save_for_backward(keep)",
    load="(keep,) = ctx.saved_tensors",
    result="x * keep * ctx.scale",
    gradient="g * keep * ctx.scale, None, None",
) -> str:
    return _ROWS.format(save=save, load=load, result=result, gradient=gradient)


drop_rows = Exercise(
    name="drop_rows",
    chapter="34",
    title="Dropout of whole rows",
    minutes=8,
    difficulty=2,
    statement="""
Write a Function for `DropRows.apply(x, p, generator)`. It sets whole rows of `x` (first dimension) to zero
with probability `p` and multiplies the others by `1 / (1 - p)`.

`x` has one dimension or more, and `0 <= p < 1`. Draw one number for each row, exactly so:
`torch.rand(x.shape[0], generator=generator, device=x.device)`. A row is kept where its number is `>= p`.

Keep no more than **one byte per row** for backward, which must draw nothing.
""",
    kind="Function",
    starter="""
class DropRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p, generator):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="DropRows",
    hints=(
        "The mask has one `bool` per row. Which shape must it have to be multiplied with `x`?",
        "`keep.reshape(-1, *[1] * (x.dim() - 1))` has shape `(rows, 1, …)`, and broadcasting does the rest.",
        "Backward multiplies by what forward multiplied by: the mask and the scale. `p` and "
        "`generator` get `None`.",
    ),
    reference=_rows(),
    other_right=(
        _rows(save="ctx.keep = keep", load="keep = ctx.keep"),
        _rows(
            save="ctx.save_for_backward(keep.flatten())",
            load="keep = ctx.saved_tensors[0].reshape(-1, *[1] * (g.dim() - 1))",
        ),
        _rows(gradient="g.masked_fill(~keep, 0) * ctx.scale, None, None"),
    ),
    explains=(
        "The slope is the mask times the scale, and a mask of `bool`s for whole rows costs one byte per row."
    ),
    mistakes=(
        Mistake(
            "scale forgotten",
            "The gradient lacks the factor `1 / (1 - p)` that forward multiplied by.",
            _rows(gradient="g * keep, None, None"),
        ),
        Mistake(
            "gradient passed on",
            "The gradient goes through unchanged, as for added noise. Here the slope is the mask times "
            "the scale.",
            _rows(gradient="g, None, None"),
        ),
        Mistake(
            "scale only",
            "The gradient has the scale and lacks the mask: a row that was dropped gets a gradient all "
            "the same.",
            _rows(gradient="g * ctx.scale, None, None"),
        ),
        Mistake(
            "drawn again",
            "Backward draws new numbers, and so drops other rows than forward did. Keep the mask.",
            _rows(
                save="ctx.p, ctx.generator = p, generator",
                load="keep = (torch.rand(g.shape[0], generator=ctx.generator) >= ctx.p)"
                ".reshape(-1, *[1] * (g.dim() - 1))",
            ),
        ),
        Mistake(
            "full mask",
            "Values and gradients are right, but the mask is kept as large as `x`. One `bool` per row is "
            "enough.",
            _rows(save="keep = keep.expand_as(x).clone(); ctx.save_for_backward(keep)"),
        ),
        Mistake(
            "float mask",
            "Values and gradients are right, but the mask takes 4 bytes for each row. Keep it as "
            "`bool`, which takes one.",
            _rows(
                save="keep = keep.float(); ctx.save_for_backward(keep)",
                result="x * keep * ctx.scale",
                gradient="(g * keep * ctx.scale).to(g.dtype), None, None",
            ),
        ),
        Mistake(
            "mask of the dtype",
            "Values and gradients are right, but the mask is kept in the dtype of `x`, which takes 4 or 8 "
            "bytes for each row. Keep it as `bool`, which takes one.",
            _rows(save="keep = keep.to(x.dtype); ctx.save_for_backward(keep)"),
        ),
        Mistake(
            "turned round",
            "The rows that should go stay, and the others go. A row is kept where its number is `>= p`.",
            _rows().replace(">= p", "< p"),
        ),
        Mistake(
            "scale of p",
            "The rows that stay are multiplied by `1 / p`. The probability to stay is `1 - p`.",
            _rows(
                save="ctx.save_for_backward(keep)", result="x * keep / p", gradient="g * keep / p, None, None"
            )
            .replace("ctx.scale = 1 / (1 - p)", "ctx.p = p")
            .replace("keep / p, None", "keep / ctx.p, None"),
        ),
    ),
    cases=(
        _rows_case("the example", 8, 3),
        _rows_case("p = 0.25, float64", 8, 2, p=0.25, dtype=torch.float64),
        _rows_case("one dimension", 6),
        _rows_case("three dimensions, not contiguous", 5, 2, 3, turn=True),
        _rows_case("one row", 1, 4),
        _rows_case("no rows", 0, 4),
    ),
    observe=_observe_rows,
)


# ------------------------------------------------------------------ a quantizer


def _observe_quantize(answer, x: torch.Tensor, options: dict) -> dict:
    result = answer.apply(x, *options.values())
    kept = _kept(result, [])
    return {"result": result, **_gradients(result, [x]), "bytes kept": kept}


def _quantize_case(
    label: str, *shape: int, turn: bool = False, dtype: torch.dtype = torch.float32, **options
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = _randn(generator, *shape, dtype=dtype)
        return (x.t() if turn else x), options

    return Case(label, make)


_QUANTIZE = """
class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=4):
        {before}
        return {result}

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""


def _quantize(before="pass", result="torch.round(x * scale) / scale", gradient="g, None") -> str:
    return _QUANTIZE.format(before=before, result=result, gradient=gradient)


integer_quantizer = Exercise(
    name="integer_quantizer",
    chapter="34",
    title="A quantizer with an integer scale",
    minutes=6,
    difficulty=1,
    statement="""
Write a Function that rounds to multiples of `1 / scale`: for `scale = 4` to quarters, so that 0.3 becomes
0.25. `scale` is a Python integer, and 4 if it is left out: both `Quantize.apply(x)` and `Quantize.apply(x,
8)` must work.

The true slope of rounding is 0 almost everywhere, which teaches nothing. Let the gradient for `x` **through
unchanged** instead. Keep no tensor for backward.
""",
    kind="Function",
    starter="""
class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale=4):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Quantize",
    hints=(
        "Make the numbers `scale` times larger, round, and make them smaller again.",
        "Backward needs no value at all. But it returns as many values as `forward` may take arguments.",
        "A surplus `None` at the end is allowed, so one `return` serves both ways to call it.",
    ),
    reference=_quantize(),
    other_right=(
        _quantize(before="ctx.scale = scale"),
        _quantize(gradient="g.clone(), *[None] * (len(ctx.needs_input_grad) - 1)"),
    ),
    explains=(
        "A gradient that passes unchanged needs nothing from forward, and a surplus `None` covers "
        "the call without `scale`."
    ),
    mistakes=(
        Mistake(
            "true slope",
            "The gradient is zero everywhere. That is the true slope of rounding, but the exercise asks "
            "to let the "
            "gradient through.",
            _quantize(gradient="torch.zeros_like(g), None"),
        ),
        Mistake(
            "times scale",
            "The gradient is multiplied by `scale`. Forward multiplies by it and divides again, so "
            "nothing is left of it.",
            _quantize(before="ctx.scale = scale", gradient="g * ctx.scale, None"),
        ),
        Mistake(
            "divided by scale",
            "The gradient is divided by `scale`. Forward multiplies by it and divides again, so nothing "
            "is left of it.",
            _quantize(before="ctx.scale = scale", gradient="g / ctx.scale, None"),
        ),
        Mistake(
            "one value",
            "It works without `scale`. When `scale` is passed there are two arguments, and backward "
            "returns one value.",
            _quantize(gradient="g"),
        ),
        Mistake(
            "gradient for scale",
            "A Python number has no gradient. Return `None` for `scale`.",
            _quantize(gradient="g, g.sum()"),
        ),
        Mistake(
            "not scaled back",
            "The rounded numbers are `scale` times too large: divide after rounding.",
            _quantize(result="torch.round(x * scale)"),
        ),
        Mistake(
            "multiples of scale",
            "The numbers are rounded to multiples of `scale`. They should be multiples of `1 / scale`: "
            "multiply first, then divide.",
            _quantize(result="torch.round(x / scale) * scale"),
        ),
        Mistake(
            "rounded down",
            "The numbers are rounded down. Round to the nearest: `torch.round`.",
            _quantize(result="torch.floor(x * scale) / scale"),
        ),
        Mistake(
            "input kept",
            "Values and gradients are right, but the node keeps a tensor as large as `x`. A gradient "
            "that passes "
            "unchanged needs none.",
            _quantize(before="ctx.save_for_backward(x)"),
        ),
    ),
    cases=(
        _quantize_case("scale left out", 5),
        _quantize_case("scale = 8", 2, 3, scale=8),
        _quantize_case("scale = 1, float64", 4, scale=1, dtype=torch.float64),
        _quantize_case("zero-dimensional", scale=2),
        _quantize_case("empty", 0, scale=2),
        _quantize_case("not contiguous", 3, 2, turn=True, scale=16),
    ),
    observe=_observe_quantize,
)


# ------------------------------------------------------------------ in place


def _observe_relu(answer, x: torch.Tensor) -> dict:
    h = x * 1
    pointer = h.data_ptr()
    y = answer.apply(h)
    kept = _kept(y, [h])
    seen = {
        "result": y,
        "h itself after the call": h,
        "memory is that of h": isinstance(y, torch.Tensor) and y.data_ptr() == pointer,
        "bytes kept besides h": kept,
    }
    return {
        **seen,
        "gradient through the result": _gradients(answer.apply(x * 1), [x])["gradient 0"],
        "gradient through h": _gradients(h, [x])["gradient 0"],
        "a later change is noticed": _notices(answer),
    }


def _notices(answer) -> bool:
    """Whether backward refuses after the result was changed in place."""
    h = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    y = answer.apply(h)
    with torch.no_grad():
        y.mul_(-1)
    try:
        y.sum().backward()
    except RuntimeError:
        return True
    return False


_RELU = """
class ReLU_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        {body}

    @staticmethod
    def backward(ctx, g):
        {load}
        return {gradient}
"""
_SAVE_RESULT = (
    "h.clamp_(min=0)\n        ctx.mark_dirty(h)\n        ctx.save_for_backward(h)\n        return h"
)


def _relu(body=_SAVE_RESULT, load="(y,) = ctx.saved_tensors", gradient="g * (y > 0)") -> str:
    return _RELU.format(body=body, load=load, gradient=gradient)


def _values_case(label: str, *values: float, dtype: torch.dtype = torch.float32) -> Case:
    return Case(label, lambda generator: (torch.tensor(values, dtype=dtype).requires_grad_(),))


relu_in_place = Exercise(
    name="relu_in_place",
    chapter="34",
    title="An in-place ReLU",
    minutes=8,
    difficulty=2,
    statement="""
Write a Function `ReLU_` that sets the negative elements of `h` to zero **in the memory of `h`**, and
returns `h`.

- A caller who goes on with `h`, and one who goes on with the result, must both get the right gradient. At 0
  the slope is 0.
- Keep nothing besides the memory of `h`.
- If somebody changes the result in place before backward, backward must refuse, as it does for torch's own
  operations.
""",
    kind="Function",
    starter="""
class ReLU_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="ReLU_",
    hints=(
        "`h.clamp_(min=0)` changes `h`. Who must be told?",
        "`ctx.mark_dirty(h)` rebinds the history of `h` itself to this Function.",
        "The input is gone, but the result tells where the slope is 1: where it is above 0. "
        "`save_for_backward` checks "
        "that it is unchanged.",
    ),
    reference=_relu(),
    other_right=(
        _relu(gradient="torch.where(y > 0, g, 0)"),
        _relu(body="ctx.mark_dirty(h)\n        ctx.save_for_backward(h)\n        return h.relu_()"),
        _relu(gradient="g.masked_fill(y <= 0, 0)"),
    ),
    explains=(
        "The mark gives `h` itself the new history, and the result, which is there anyway, holds all "
        "that the slope needs."
    ),
    mistakes=(
        Mistake(
            "not marked",
            "`h` was changed without `ctx.mark_dirty(h)`. It keeps its old history, so a caller who goes "
            "on with `h` "
            "gets a wrong gradient.",
            _relu(body=_SAVE_RESULT.replace("        ctx.mark_dirty(h)\n", "")),
        ),
        Mistake(
            "a copy",
            "The result is a new tensor and `h` is unchanged. Work in the memory of `h`.",
            _relu(body="y = h.clamp(min=0)\n        ctx.save_for_backward(y)\n        return y"),
        ),
        Mistake(
            "zero counts",
            "Each gradient passes, also where forward gave 0. The result is never below 0, so a test "
            "for `>= 0` is true everywhere: ask for `> 0`.",
            _relu(gradient="g * (y >= 0)"),
        ),
        Mistake(
            "mask kept",
            "The gradient is right, but a mask is kept besides `h`. The result itself tells where it is "
            "above 0.",
            _relu(
                body="ctx.save_for_backward(h > 0)\n        ctx.mark_dirty(h)\n        return h.clamp_(min=0)"
            ),
        ),
        Mistake(
            "input cloned",
            "The gradient is right, but a copy of the input is kept besides `h`. The result tells enough.",
            _relu(
                body=(
                    "ctx.save_for_backward(h.clone())\n        ctx.mark_dirty(h)\n        return "
                    "h.clamp_(min=0)"
                )
            ),
        ),
        Mistake(
            "on ctx",
            "The result is kept as an attribute of `ctx`. When it is changed before backward, nothing "
            "notices, and the "
            "gradient is wrong. Use `save_for_backward`.",
            _relu(
                body="ctx.mark_dirty(h)\n        ctx.y = h.clamp_(min=0)\n        return h", load="y = ctx.y"
            ),
        ),
        Mistake(
            "sign of g",
            "The mask is taken from the incoming gradient. The slope depends on the result of forward.",
            _relu(gradient="g * (g > 0)"),
        ),
        Mistake(
            "gradient passed on",
            "The gradient passes unchanged where forward gave 0. Multiply it by the slope.",
            _relu(body="ctx.mark_dirty(h)\n        return h.clamp_(min=0)", load="pass", gradient="g"),
        ),
    ),
    cases=(
        _values_case("the example", -1.0, 2.0, 0.0, 4.0),
        _values_case("float64", 3.0, -0.5, dtype=torch.float64),
        _values_case("one element", -2.0),
        Case("two dimensions", lambda generator: (_randn(generator, 3, 4),)),
        Case("zero-dimensional", lambda generator: (torch.tensor(-3.0, requires_grad=True),)),
        _values_case("empty"),
    ),
    observe=_observe_relu,
)


# ------------------------------------------------------------------ noise that is drawn twice


def _observe_noisy(answer, x: torch.Tensor, std: float, seed: int) -> dict:
    result = answer.apply(x, std, seed)
    kept = _kept(result, [])
    first = _gradients(result, [x], keep=True)
    second = _gradients(result, [x])["gradient 0"]
    return {"result": result, **first, "gradient of a second backward": second, "bytes kept": kept}


def _noisy_case(
    label: str,
    *shape: int,
    std: float = 0.5,
    seed: int = 0,
    dtype: torch.dtype = torch.float32,
    turn: bool = False,
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = _randn(generator, *shape, dtype=dtype)
        return (x.t() if turn else x), std, seed

    return Case(label, make)


_NOISY = """
def draw(seed, like):
    generator = torch.Generator(like.device).manual_seed(seed)
    return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, std, seed):
        {keep}
        return x * (1 + std * draw(seed, x))

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""


def _noisy(
    keep="ctx.std, ctx.seed = std, seed", gradient="g * (1 + ctx.std * draw(ctx.seed, g)), None, None"
) -> str:
    return _NOISY.format(keep=keep, gradient=gradient)


noisy_layer = Exercise(
    name="noisy_layer",
    chapter="34",
    title="A noisy layer with a reproducible backward",
    minutes=8,
    difficulty=3,
    statement="""
Write a Function for `Noisy.apply(x, std, seed)`, which returns `x * (1 + std * n)`. `std` and `seed` are
Python numbers. `n` comes from a `torch.Generator` on the device of `x`, seeded with `seed`:
`torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)`.

Keep **no tensor** for backward, and leave the global random state alone, in forward and in backward. A second
backward over the same graph must give the same gradient.
""",
    kind="Function",
    starter="""
class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, std, seed):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Noisy",
    hints=(
        "The noise multiplies, so the slope is `1 + std * n`: backward must know `n`.",
        "A seed is a number. With it, backward can draw the same `n` again.",
        "Write a function `draw(seed, like)` that makes the generator and the numbers, and call it "
        "in both methods.",
    ),
    reference=_noisy(),
    other_right=(
        _noisy(
            keep="ctx.std, ctx.generator = std, seed",
            gradient="g + g * ctx.std * draw(ctx.generator, g), None, None",
        ),
    ),
    explains=(
        "The seed stands for the noise, so no tensor is kept, and a generator of its own touches "
        "nobody's numbers."
    ),
    mistakes=(
        Mistake(
            "noise kept",
            "Values and gradients are right, but a tensor is kept. Keep the seed, and draw the noise again.",
            _noisy(
                keep="ctx.std = std\n        ctx.save_for_backward(draw(seed, x))",
                gradient="g * (1 + ctx.std * ctx.saved_tensors[0]), None, None",
            ),
        ),
        Mistake(
            "as if added",
            "The gradient passes unchanged. That is right for noise that is added. This noise multiplies "
            "`x`.",
            _noisy(gradient="g, None, None"),
        ),
        Mistake(
            "std forgotten",
            "The slope is `1 + std * n`. Your gradient has it without `std`.",
            _noisy(gradient="g * (1 + draw(ctx.seed, g)), None, None"),
        ),
        Mistake(
            "one forgotten",
            "The slope is `1 + std * n`. Your gradient lacks the 1.",
            _noisy(gradient="g * ctx.std * draw(ctx.seed, g), None, None"),
        ),
        Mistake(
            "global seed",
            "Values and gradients are right, but the random state of the whole program is changed, as "
            "`torch.manual_seed` does. Use a `torch.Generator`.",
            _noisy()
            .replace("generator = torch.Generator(like.device).manual_seed(seed)", "torch.manual_seed(seed)")
            .replace("generator=generator, ", ""),
        ),
        Mistake(
            "generator kept",
            "The first backward is right. But it draws from a generator that lives on `ctx`, so a second "
            "backward over the same graph gets other numbers. Keep the seed, and make a generator each time.",
            _noisy(
                keep="ctx.std = std; ctx.generator = torch.Generator(x.device).manual_seed(seed)",
                gradient="g * (1 + ctx.std * torch.randn(g.shape, generator=ctx.generator, "
                "dtype=g.dtype, device=g.device)), None, None",
            ),
        ),
        Mistake(
            "default dtype",
            "The noise is drawn in float32 for every `x`. Give `randn` the dtype of `x`.",
            _noisy().replace(" dtype=like.dtype,", ""),
        ),
        Mistake(
            "added in forward",
            "Forward adds the noise to `x`. It should multiply `x` by `1 + std * n`.",
            _noisy(gradient="g, None, None").replace(
                "x * (1 + std * draw(seed, x))", "x + std * draw(seed, x)"
            ),
        ),
    ),
    cases=(
        _noisy_case("the example", 4),
        _noisy_case("float64, another seed", 2, 3, seed=5, std=2.0, dtype=torch.float64),
        _noisy_case("std = 0", 3, std=0.0),
        _noisy_case("zero-dimensional"),
        _noisy_case("empty", 0, 2),
        _noisy_case("not contiguous", 3, 2, turn=True, seed=9),
    ),
    observe=_observe_noisy,
)


# ------------------------------------------------------------------ a sequence of tensors


def _observe_mix(answer, weights: list[float], *tensors: torch.Tensor) -> dict:
    result = answer.apply(weights, *tensors)
    kept = _kept(result, [])
    return {"result": result, **_gradients(result, tensors), "bytes kept": kept}


def _mix_case(
    label: str, weights: list[float], *shape: int, frozen: Sequence[int] = (), turn: bool = False
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        tensors = [_randn(generator, *shape) for _ in weights]
        tensors = [t.detach() if i in frozen else t for i, t in enumerate(tensors)]
        return list(weights), *[t.t() if turn else t for t in tensors]

    return Case(label, make)


_MIX = """
class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, *tensors):
        ctx.weights = weights
        {more}
        return sum(weight * t for weight, t in zip(weights, tensors))

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""


def _mix(more="pass", gradient="None, *[weight * g for weight in ctx.weights]") -> str:
    return _MIX.format(more=more, gradient=gradient)


mix_tensors = Exercise(
    name="mix_tensors",
    chapter="34",
    title="Any number of tensors",
    minutes=6,
    difficulty=2,
    statement="""
Write a Function for `Mix.apply(weights, *tensors)`. `weights` is a list of Python numbers, one for each
tensor. The tensors have the same shape, and there is at least one. The result is the sum of `weights[i] *
tensors[i]`.

Keep no tensor for backward. Some of the tensors may not require grad.
""",
    kind="Function",
    starter="""
class Mix(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, *tensors):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Mix",
    hints=(
        "Each tensor is an argument of its own, and so is `weights`. How many values does backward return?",
        "The slope for tensor `i` is `weights[i]`, a number.",
        "`return None, *gradients` makes a tuple of a `None` and what is in a list.",
    ),
    reference=_mix(),
    other_right=(
        _mix(gradient="(None,) + tuple(weight * g for weight in ctx.weights)"),
        _mix(
            gradient="None, *[weight * g if needed else None "
            "for weight, needed in zip(ctx.weights, ctx.needs_input_grad[1:])]"
        ),
    ),
    explains=(
        "`*tensors` makes each tensor an argument that autograd sees. The slopes are numbers, and "
        "these are on `ctx`."
    ),
    mistakes=(
        Mistake(
            "a list returned",
            "Backward returned a single value. A list counts as one, too. Return a tuple: `None`, and a "
            "gradient for each tensor.",
            _mix(gradient="[None, *[weight * g for weight in ctx.weights]]"),
        ),
        Mistake(
            "None forgotten",
            "Backward returns one value too few. There is one for each tensor, and one for `weights`, "
            "which comes first and is `None`.",
            _mix(gradient="tuple(weight * g for weight in ctx.weights)"),
        ),
        Mistake(
            "weights forgotten",
            "Each tensor gets `g` itself. The slope for tensor `i` is `weights[i]`.",
            _mix(gradient="None, *[g for weight in ctx.weights]"),
        ),
        Mistake(
            "order reversed",
            "The gradients come in reverse: the first tensor gets the last weight.",
            _mix(gradient="None, *[weight * g for weight in reversed(ctx.weights)]"),
        ),
        Mistake(
            "None last",
            "The first value that backward returns belongs to `weights`, a list of numbers: it must be "
            "`None`. Values come in the order of the arguments.",
            _mix(gradient="*[weight * g for weight in ctx.weights], None"),
        ),
        Mistake(
            "in place",
            "Backward multiplied the incoming gradient itself, which is one tensor for all: each gets the "
            "product of the weights. Make a new tensor for each: `weight * g`.",
            _mix(gradient="None, *[g.mul_(weight) for weight in ctx.weights]"),
        ),
        Mistake(
            "tensors kept",
            "Values and gradients are right, but tensors are kept. The slopes are the weights, and need "
            "no tensor.",
            _mix(more="ctx.save_for_backward(*tensors)"),
        ),
    ),
    cases=(
        _mix_case("three tensors", [1.0, 2.0, -3.0], 4),
        _mix_case("one tensor", [0.5], 2, 3),
        _mix_case("one without gradient", [2.0, 3.0, 5.0], 2, frozen=(1,)),
        _mix_case("zero-dimensional", [2.0, 4.0]),
        _mix_case("empty", [2.0, 4.0], 0),
        _mix_case("not contiguous", [2.0, 4.0], 2, 3, turn=True),
    ),
    observe=_observe_mix,
)


# ------------------------------------------------------------------ devices and dtypes


def _observe_decay(answer, x: torch.Tensor) -> dict:
    if x.is_meta:  # no data: it is enough that it runs
        return _runs_on(answer, x)
    result = answer.apply(x)
    return {"result": result, "dtype": str(getattr(result, "dtype", None)), **_gradients(result, [x])}


def _runs_on(answer, x: torch.Tensor) -> dict:
    """Which of the two methods work with tensors on the device of ``x``."""
    seen = {"forward runs": False, "backward runs": False}
    try:
        result = answer.apply(x)
        seen["forward runs"] = result.device == x.device and result.dtype == x.dtype
        seen["backward runs"] = torch.autograd.grad(result.sum(), x)[0].device == x.device
    except (RuntimeError, AttributeError):
        pass
    return seen


_DECAY = """
class Decay(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return {result}

    @staticmethod
    def backward(ctx, g):
        return {gradient}
"""
_POWERS = "0.5 ** torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)"


def _decay(powers: str = _POWERS, gradient: str | None = None) -> str:
    back = powers.replace("x.", "g.").replace("(x)", "(g)")
    return _DECAY.format(result=f"x * {powers}", gradient=gradient or f"g * {back}")


any_device = Exercise(
    name="any_device",
    chapter="34",
    title="A Function for every dtype and device",
    minutes=6,
    difficulty=2,
    statement="""
Somebody multiplies element `k` of the last dimension by `0.5 ** k`, and wrote

```python
return x * torch.tensor([0.5 ** k for k in range(x.shape[-1])])
```

Write the Function `Decay` so that `Decay.apply(x)` has the **dtype and device of `x`** for each floating
dtype and on each device, in forward and in backward. `x` has one dimension or more. The check uses float32,
float64, bfloat16 and the device `meta`.
""",
    kind="Function",
    starter="""
class Decay(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Decay",
    hints=(
        "Results follow their inputs. Which tensor is made from nothing?",
        "`torch.arange` and `torch.tensor` take `dtype=` and `device=`.",
        "The gradient is multiplied by the same powers. Make them anew from `g`, or keep them.",
    ),
    reference=_decay(),
    other_right=(
        _decay("x.new_tensor([0.5 ** k for k in range(x.shape[-1])])"),
        _decay("torch.tensor([0.5 ** k for k in range(x.shape[-1])]).to(x)"),
    ),
    explains="A tensor that you create gets its dtype and device from an input. Everything else follows.",
    mistakes=(
        Mistake(
            "created on the default device",
            "The powers are made on the default device and in the default dtype. Give them the dtype and "
            "the device of `x`.",
            _decay("torch.tensor([0.5 ** k for k in range(x.shape[-1])])"),
        ),
        Mistake(
            "dtype only",
            "The powers have the right dtype and lie on the CPU. Give them the device of `x` as well.",
            _decay("torch.tensor([0.5 ** k for k in range(x.shape[-1])], dtype=x.dtype)"),
        ),
        Mistake(
            "device only",
            "The powers are on the right device, in float32, so a bfloat16 input gives a float32 result. "
            "Give them the "
            "dtype of `x`.",
            _decay("torch.tensor([0.5 ** k for k in range(x.shape[-1])], device=x.device)"),
        ),
        Mistake(
            "gradient passed on",
            "The gradient passes unchanged. The slope for element `k` is `0.5 ** k`.",
            _decay(gradient="g"),
        ),
        Mistake(
            "backward on the CPU",
            "Forward is right. Backward makes its powers on the CPU, and fails on other devices.",
            _decay(gradient="g * torch.tensor([0.5 ** k for k in range(g.shape[-1])], dtype=g.dtype)"),
        ),
        Mistake(
            "always float32",
            "Each result is converted to float32. It should have the dtype of `x`.",
            _decay(f"({_POWERS})")
            .replace("return x * (", "return x.float() * (")
            .replace("dtype=x.dtype, ", ""),
        ),
    ),
    cases=(
        Case("the example", lambda generator: (_randn(generator, 4),)),
        Case("float64", lambda generator: (_randn(generator, 2, 3, dtype=torch.float64),)),
        Case("bfloat16", lambda generator: (_randn(generator, 3, dtype=torch.bfloat16),)),
        Case("one element", lambda generator: (_randn(generator, 1),)),
        Case("empty", lambda generator: (_randn(generator, 2, 0),)),
        Case("not contiguous", lambda generator: (_randn(generator, 3, 2).t(),)),
        Case("device meta", lambda generator: (torch.ones(2, 3, device="meta", requires_grad=True),)),
    ),
    observe=_observe_decay,
)


# ------------------------------------------------------------------ predictions

reaches_a = Exercise(
    name="reaches_a",
    chapter="34",
    title="Which calls carry a gradient?",
    minutes=3,
    difficulty=1,
    statement="""
`a` and `b` are leaves that require grad. Each call belongs to a Function whose `forward` takes the
arguments as they are passed, adds the two tensors, and whose `backward` is right. After which calls does
the result carry a gradient back to **`a`**?

- `p`: `F.apply(a, b)`
- `q`: `F.apply([a, b])`
- `r`: `F.apply(*[a, b])`
- `s`: `F.apply({"first": a, "second": b})`
- `t`: `F.apply(a.detach(), b)`
- `u`: `F.apply(2, a, b)`

Answer with a list of letters.
""",
    kind="list",
    starter="carried = ...",
    answer="carried",
    hints=(
        "Autograd looks at the arguments of `apply` one by one. Which of them are tensors that require grad?",
        "It does not look into lists and dicts. A `*` takes a list apart before the call.",
    ),
    reference='carried = ["p", "r", "u"]',
    explains=(
        "Only tensors that are arguments themselves get an edge. A list and a dict hide theirs; a "
        "number beside them does no harm."
    ),
    mistakes=(
        Mistake(
            "looks into lists",
            "A list is one argument, and autograd does not look into it. Nothing is recorded for `q`.",
            'carried = ["p", "q", "r", "u"]',
        ),
        Mistake(
            "looks into lists and dicts",
            "Lists and dicts are arguments that hold no edge: autograd does not look into them.",
            'carried = ["p", "q", "r", "s", "u"]',
        ),
        Mistake(
            "star is a list",
            "`*[a, b]` takes the list apart: the call is the same as `F.apply(a, b)`.",
            'carried = ["p", "u"]',
        ),
        Mistake(
            "tensors only",
            "A number may stand beside the tensors. It gets `None` in backward, and the tensors get "
            "their gradients.",
            'carried = ["p", "r"]',
        ),
        Mistake(
            "detach",
            "`a.detach()` is another tensor, without a way back to `a`. In `t` only `b` gets a gradient.",
            'carried = ["p", "r", "t", "u"]',
        ),
    ),
    observe=observe_names,
)

needs_the_dice = Exercise(
    name="needs_the_dice",
    chapter="34",
    title="Who must remember what was drawn?",
    minutes=3,
    difficulty=2,
    statement="""
`x` requires grad. `n` holds random numbers and `m` is a random mask of `bool`s, both drawn in forward. `s`
is a tensor that requires grad. For which results does backward need `n` or `m`?

- `a`: `x + n`
- `b`: `x * m`
- `c`: `x + 0.1 * n`
- `d`: `x + s * n`
- `e`: `torch.where(m, x, 0)`
- `f`: `x.exp() + n`

Answer with a list of letters.
""",
    kind="list",
    starter="needs_them = ...",
    answer="needs_them",
    hints=(
        "Write down the slope for each input that requires grad. Does `n` or `m` stand in it?",
        "In `d` there are two such inputs.",
    ),
    reference='needs_them = ["b", "d", "e"]',
    explains=(
        "The slopes are the mask in `b` and `e`, and `n` for the learned `s`. Where noise is added, "
        "the slope does not depend on it."
    ),
    mistakes=(
        Mistake(
            "everything random",
            "Being random is no reason. Added noise does not stand in the slope of `x + n`.",
            'needs_them = ["a", "b", "c", "d", "e", "f"]',
        ),
        Mistake(
            "masks only",
            "In `d` the slope for `s` is `n`, and `s` requires grad.",
            'needs_them = ["b", "e"]',
        ),
        Mistake(
            "where forgotten",
            "`torch.where` sends the gradient to `x` where `m` is true, so it needs `m`.",
            'needs_them = ["b", "d"]',
        ),
        Mistake(
            "scaled noise",
            "In `c` the factor 0.1 is a number that nobody learns. The slope for `x` is 1.",
            'needs_them = ["b", "c", "d", "e"]',
        ),
        Mistake(
            "exp",
            "In `f` the slope is `exp(x)`. It needs the result of `exp`, and not the noise.",
            'needs_them = ["b", "d", "e", "f"]',
        ),
    ),
    observe=observe_names,
)

EXERCISES = (
    reaches_a,
    integer_quantizer,
    mix_tensors,
    needs_the_dice,
    drop_rows,
    noisy_layer,
    relu_in_place,
    any_device,
)

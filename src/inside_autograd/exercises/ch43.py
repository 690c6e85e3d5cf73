"""Exercises of chapter 43: hooks and memory."""

import gc
import re
import weakref
from collections.abc import Callable

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from ._model import Case, Exercise, Mistake
from ._observe import observe_names

# ------------------------------------------------------------------ the order


def _observe_order(answer: object) -> dict:
    # With its number each name is another item, so that the report counts places.
    return {"answer": tuple(f"{i}: {str(name).strip()}" for i, name in enumerate(answer, 1))}


def _backward(loss: torch.Tensor) -> str | None:
    """Run backward. What hooks made it raise, without the hook's own name, which is the learner's choice."""
    try:
        loss.backward()
    except RuntimeError as error:
        return re.sub(r"hook '.*?'", "the hook", str(error))
    return None


hook_order = Exercise(
    name="hook_order",
    chapter="43",
    title="Predict: the order of six hooks",
    minutes=3,
    difficulty=1,
    statement="""
`x` is a leaf and `h = x * 2`. Hooks are registered in this order: `pre` with `h.grad_fn.register_prehook`,
`post` with `h.grad_fn.register_hook`, `done` with `x.register_post_accumulate_grad_hook`, `first` with
`h.register_hook`, `leaf` with `x.register_hook`, `second` with `h.register_hook`.

In which order does `h.sum().backward()` run them? Answer with a list of six names.
""",
    kind="list",
    starter="order = ...",
    answer="order",
    hints=(
        "Follow the gradient: it arrives at `h`, goes through the node of `h`, and arrives at `x`.",
        "Where it arrives at a tensor, tensor hooks come first, in the order of their registration.",
        "A node's post-hook runs before the gradient arrives at the next tensor.",
    ),
    reference='order = ["first", "second", "pre", "post", "leaf", "done"]',
    other_right=('order = ("first", "second", "pre", "post", "leaf", "done")',),
    explains="The kind of hook decides. Registration decides among hooks of one kind on one tensor or node.",
    mistakes=(
        Mistake(
            "registration",
            "This is the order of registration. It decides only among hooks of one kind in one place.",
            'order = ["pre", "post", "done", "first", "leaf", "second"]',
        ),
        Mistake(
            "pre first",
            "A pre-hook of the node sees the gradient after the tensor hooks, not before.",
            'order = ["pre", "first", "second", "post", "leaf", "done"]',
        ),
        Mistake(
            "last first",
            "Two hooks on one tensor run in the order of their registration, not the other way round.",
            'order = ["second", "first", "pre", "post", "leaf", "done"]',
        ),
        Mistake(
            "done first",
            "The post-accumulate hook runs when `x.grad` is complete. The tensor hook of `x` sees the "
            "gradient before it is added.",
            'order = ["first", "second", "pre", "post", "done", "leaf"]',
        ),
        Mistake(
            "forward",
            "This is the way from `x` up to `h`. Backward goes down: it meets `h` first.",
            'order = ["leaf", "done", "first", "second", "pre", "post"]',
        ),
        Mistake(
            "post last",
            "A post-hook runs when its node is done. Only then does the gradient arrive at `x`.",
            'order = ["first", "second", "pre", "leaf", "done", "post"]',
        ),
    ),
    observe=_observe_order,
)


# ------------------------------------------------------------------ clip per tensor


def _observe_clip(answer, slopes: list, limit: float, frozen: bool) -> dict:
    parameters = [torch.ones_like(slope, requires_grad=True) for slope in slopes]
    # Not among the parameters. A sum hands its gradient on to both sides as one tensor.
    other = torch.zeros_like(slopes[0], requires_grad=True)
    given = [*parameters, torch.ones(2)] if frozen else parameters
    handles = answer(given, limit)
    errors = []

    def backward() -> tuple:
        used = [parameters[0] + other, *parameters[1:]]
        errors.append(_backward(sum((p * slope).sum() for p, slope in zip(used, slopes, strict=True))))
        return tuple(None if p.grad is None else p.grad.clone() for p in parameters)

    once, beside, twice = backward(), other.grad, backward()
    returned = type(handles).__name__
    for handle in handles if isinstance(handles, list) else ():
        handle.remove()
    for p in parameters:
        p.grad = None
    return {
        "error in backward": errors[0],
        "gradient after one backward": once,
        "gradient after a second backward": twice,
        "gradient of a tensor that was added, and is not in the list": beside,
        "type of what was returned": returned,
        "gradient once the handles are removed": backward(),
    }


def _clip_case(label: str, *slopes, limit: float = 5.0, frozen: bool = False) -> Case:
    return Case(label, lambda generator: ([torch.tensor(s) for s in slopes], limit, frozen))


_CLIP = """
def clip(parameters, limit):
    def hook(g):
{body}
    return [p.register_hook(hook) for p in parameters if p.requires_grad]
"""


def _clip(*body: str) -> str:
    return _CLIP.format(body="".join(f"        {line}\n" for line in body))


clip_each = Exercise(
    name="clip_each",
    chapter="43",
    title="Clip each gradient in backward",
    minutes=7,
    difficulty=2,
    statement="""
Write `clip(parameters, limit)`. From then on, a gradient that arrives at a parameter with a norm above
`limit` is scaled down to norm `limit` *before* it is added into `.grad`, each parameter on its own.
Others stay as they are. Skip tensors that do not require grad. Return a list of the handles.

With limit 5, the gradient `[6., 8.]` becomes `[3., 4.]`.
""",
    kind="function",
    starter="def clip(parameters, limit):\n    ...",
    answer="clip",
    hints=(
        "A tensor hook gets the gradient before it is added, and what it returns takes its place.",
        "The norm is `g.norm()`. Scale by `limit / norm`, but only where the norm is above `limit`.",
        "`p.register_hook(hook)` returns a handle. It raises on a tensor that does not require grad.",
    ),
    reference=_clip("norm = g.norm()", "return g * (limit / norm) if norm > limit else g"),
    other_right=(
        _clip("if g.norm() > limit:", "    return g / g.norm() * limit"),
        _clip("return g * (limit / g.norm()).clamp(max=1)"),
        """
def clip(parameters, limit):
    handles = []
    for p in parameters:
        if p.requires_grad:
            handles.append(p.register_hook(lambda g: g * min(1.0, limit / max(g.norm().item(), 1e-30))))
    return handles
""",
    ),
    explains=(
        "The hook sees one backward's gradient, summed over all paths, before accumulation. No hook sees "
        "the norm over all parameters together: for that, wait until backward is over."
    ),
    mistakes=(
        Mistake(
            "each element",
            "You clip each element. The norm of the whole gradient is what must not exceed the limit, and "
            "its direction stays.",
            _clip("return g.clamp(-limit, limit)"),
        ),
        Mistake(
            "always scaled",
            "You scale every gradient to norm `limit`, also those that are small. (And zero divided by its "
            "norm is nan.)",
            _clip("return g * (limit / g.norm())"),
        ),
        Mistake(
            "nothing returned",
            "Your hook computes a clipped gradient and returns nothing, so nothing is replaced.",
            _clip("if g.norm() > limit:", "    g = g / g.norm() * limit"),
        ),
        Mistake(
            "the sum",
            "You clip `.grad` after it was added to. After a second backward that is the sum of two "
            "gradients, not each of them.",
            """
def clip(parameters, limit):
    def hook(p):
        norm = p.grad.norm()
        if norm > limit:
            p.grad = p.grad * (limit / norm)
    return [p.register_post_accumulate_grad_hook(hook) for p in parameters if p.requires_grad]
""",
        ),
        Mistake(
            "no handles",
            "The gradients are right, but nothing is returned: nobody can remove these hooks any more.",
            """
def clip(parameters, limit):
    def hook(g):
        return g * (limit / g.norm()).clamp(max=1)
    for p in parameters:
        if p.requires_grad:
            p.register_hook(hook)
""",
        ),
        Mistake(
            "frozen",
            "Right, until there is a tensor that does not require grad: a hook on it is refused. Skip it.",
            """
def clip(parameters, limit):
    def hook(g):
        return g * (limit / g.norm()).clamp(max=1)
    return [p.register_hook(hook) for p in parameters]
""",
        ),
        Mistake(
            "in place",
            "The parameters are right, but you change the gradient in place. It is on its way to another "
            "tensor as well, through a sum. Return a new one.",
            _clip("norm = g.norm()", "if norm > limit:", "    g.mul_(limit / norm)"),
        ),
        Mistake(
            "largest element",
            "You measure the gradient by its largest element. `g.norm()` is the square root of the sum of "
            "squares.",
            _clip("top = g.abs().max()", "return g * (limit / top).clamp(max=1)"),
        ),
    ),
    cases=(
        _clip_case("the example", [6.0, 8.0]),
        _clip_case("two parameters, one below the limit", [12.0, 16.0], [[1.0, 2.0], [2.0, 0.0]]),
        _clip_case("a gradient of zeros", [0.0, 0.0]),
        _clip_case("zero-dimensional", 8.0, limit=0.5),
        _clip_case("a frozen tensor among them", [6.0, 8.0], frozen=True),
    ),
    observe=_observe_clip,
)


# ------------------------------------------------------------------ log norms


class _Heads(nn.Module):
    """Two layers with whole numbers, and a head that takes part only if asked."""

    def __init__(self, frozen: bool, used: bool):
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 1)
        self.spare = nn.Linear(1, 1, bias=False)
        self.used = used
        with torch.no_grad():
            self.first.weight.copy_(torch.tensor([[3.0, 0.0], [0.0, 4.0]]))
            self.second.weight.copy_(torch.tensor([[1.0, 2.0]]))
            self.second.bias.zero_()
            self.spare.weight.fill_(2.0)
        self.first.weight.requires_grad_(not frozen)

    def forward(self, x):
        y = self.second(self.first(x))
        return self.spare(y) if self.used else y


def _observe_log(answer, frozen: bool, used: bool, passes: int) -> dict:
    model = _Heads(frozen, used)
    norms = answer(model)
    errors = [_backward((model(torch.tensor([[1.0, 2.0]])) * (i + 1)).sum()) for i in range(passes)]
    kept = norms if isinstance(norms, dict) else {}
    lists = {key: list(v) if isinstance(v, (list, tuple)) else v for key, v in kept.items()}
    flat = [item for v in lists.values() if isinstance(v, list) for item in v]
    return {
        "error in backward": errors[0],
        "list of names": tuple(sorted(map(str, lists))) if isinstance(norms, dict) else "no dict",
        "log of norms": tuple((str(key), _floats(lists[key])) for key in sorted(lists, key=str)),
        "type of the entries": _types(flat),
        "gradient of each parameter": tuple(p.grad for p in model.parameters()),
    }


def _types(values: list) -> str:
    """The names of their types, floats if there are none."""
    return ", ".join(sorted({type(value).__name__ for value in values})) or "float"


def _floats(values: object) -> object:
    if not isinstance(values, list):
        return values
    return tuple(float(v) if isinstance(v, (int, float, torch.Tensor)) else repr(v) for v in values)


def _log_case(label: str, frozen: bool = False, used: bool = True, passes: int = 1) -> Case:
    return Case(label, lambda generator: (frozen, used, passes))


log_norms = Exercise(
    name="log_norms",
    chapter="43",
    title="Log the norms of gradients",
    minutes=7,
    difficulty=2,
    statement="""
Write `log_norms(model)`. It returns a dict, at once: for each parameter that requires grad, its name in
`model.named_parameters()` and an empty list. Each backward then appends the norm of the gradient that
*arrives* there, as a `float`; not of the sum in `.grad`. A parameter that gets no gradient keeps its
list as it is. Gradients do not change.
""",
    kind="function",
    starter="def log_norms(model):\n    ...",
    answer="log_norms",
    hints=(
        "One tensor hook for each parameter, which appends to that parameter's list.",
        "A `lambda` in a loop sees the *last* value of the loop's variable. Bind it: `lambda g, name=name: "
        "…`.",
        "`list.append` returns `None`, so the hook replaces nothing. `.item()` makes the float.",
    ),
    reference="""
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            p.register_hook(lambda g, name=name: norms[name].append(g.norm().item()))
    return norms
""",
    other_right=(
        """
def log_norms(model):
    def hook_for(entries):
        def hook(g):
            entries.append(float(g.square().sum().sqrt()))
        return hook
    norms = {name: [] for name, p in model.named_parameters() if p.requires_grad}
    for name, p in model.named_parameters():
        if name in norms:
            p.register_hook(hook_for(norms[name]))
    return norms
""",
    ),
    explains=(
        "The hook holds a name and a dict of floats: no tensor, no node. On a GPU each `.item()` waits for "
        "the device, so there one would collect `g.norm()` and read it later."
    ),
    mistakes=(
        Mistake(
            "last name",
            "All norms land in one list, that of the last parameter: a function made in a loop reads the "
            "loop's variable when it *runs*. Bind it as a default.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            p.register_hook(lambda g: norms[name].append(g.norm().item()))
    return norms
""",
        ),
        Mistake(
            "tensors",
            "The numbers are right, but they are tensors. A float has no link to anything.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            p.register_hook(lambda g, name=name: norms[name].append(g.norm()))
    return norms
""",
        ),
        Mistake(
            "the sum",
            "You log the norm of `.grad`, which is the sum over several passes. Asked for is what arrives.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            hook = lambda p, name=name: norms[name].append(p.grad.norm().item())
            p.register_post_accumulate_grad_hook(hook)
    return norms
""",
        ),
        Mistake(
            "only the last",
            "You keep one number for each parameter, which the next backward overwrites. A list was asked "
            "for.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            p.register_hook(lambda g, name=name: norms.__setitem__(name, g.norm().item()))
    return norms
""",
        ),
        Mistake(
            "replaced",
            "Your hook returns the norm, and what a hook returns takes the place of the gradient. Append "
            "it, and return nothing.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            def hook(g, name=name):
                norms[name].append(g.norm().item())
                return g.norm()
            p.register_hook(hook)
    return norms
""",
        ),
        Mistake(
            "made later",
            "A parameter that gets no gradient is missing: its list should be there from the start, empty.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            p.register_hook(lambda g, name=name: norms.setdefault(name, []).append(g.norm().item()))
    return norms
""",
        ),
        Mistake(
            "frozen",
            "Right, until a parameter does not require grad: a hook on it is refused. Leave it out.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        norms[name] = []
        p.register_hook(lambda g, name=name: norms[name].append(g.norm().item()))
    return norms
""",
        ),
        Mistake(
            "squared",
            "You log the sum of squares. The norm is its square root.",
            """
def log_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        if p.requires_grad:
            norms[name] = []
            p.register_hook(lambda g, name=name: norms[name].append(g.square().sum().item()))
    return norms
""",
        ),
    ),
    cases=(
        _log_case("one backward"),
        _log_case("two backward passes", passes=2),
        _log_case("a frozen layer", frozen=True),
        _log_case("a layer that is not used", used=False, passes=2),
    ),
    observe=_observe_log,
)


# ------------------------------------------------------------------ compress


def _tensors(packed: object) -> list:
    if isinstance(packed, torch.Tensor):
        return [packed]
    if isinstance(packed, dict):
        packed = list(packed.values())
    if isinstance(packed, (tuple, list)):
        return [tensor for item in packed for tensor in _tensors(item)]
    return []


def _observe_halves(answer, build: Callable, dtype_name: str) -> dict:
    pack, unpack = answer()
    dtype = getattr(torch, dtype_name)
    x = torch.tensor([1.0, 2.0, 4.0, 8.0], dtype=dtype, requires_grad=True)
    w = torch.tensor([2.0, 1.0, 4.0, 2.0], dtype=dtype, requires_grad=True)
    new, dtypes = [], []

    def count(tensor):
        packed = pack(tensor)
        own = tensor.untyped_storage().data_ptr()
        kept = [t for t in _tensors(packed) if t.untyped_storage().data_ptr() != own]
        new.append((str(tensor.dtype), tensor.is_leaf, sum(t.nbytes for t in kept)))
        return packed

    def note(packed):
        tensor = unpack(packed)
        dtypes.append(str(tensor.dtype))
        return tensor

    with saved_tensors_hooks(count, note):
        h = w * x
        y = build(h)
    gradients = torch.autograd.grad(y.sum(), [x, w])
    return {
        "gradient for x and w": gradients,
        "count of new bytes by dtype and leaf or not": tuple(sorted(new)),
        "list of dtypes that unpack gave": tuple(dtypes),
        "side effect: an output outlives its name": _outlives(pack, unpack, dtype),
    }


def _outlives(pack: Callable, unpack: Callable, dtype: torch.dtype) -> bool:
    x = torch.zeros(2, dtype=dtype, requires_grad=True)
    with saved_tensors_hooks(pack, unpack):
        y = x.exp()
    watch = weakref.ref(y)
    del y
    gc.collect()
    y = watch()
    if y is None:
        return False
    torch.autograd.grad(y.sum(), x)  # frees what was packed, so that nothing stays behind
    return True


def _halves_case(label: str, build: Callable, dtype_name: str = "float32") -> Case:
    return Case(label, lambda generator: (build, dtype_name))


def _halves(pack: str, unpack: str) -> str:
    return (
        "def halves():\n"
        f"    def pack(t):\n{_indent(pack)}\n"
        f"    def unpack(kept):\n{_indent(unpack)}\n"
        "    return pack, unpack\n"
    )


def _indent(lines: str) -> str:
    return "".join(f"        {line}\n" for line in lines.strip().splitlines())


_KEEP_DTYPE = "dtype, t = kept\nreturn t.to(dtype)"

compress_saved = Exercise(
    name="compress_saved",
    chapter="43",
    title="Compress what is saved",
    minutes=9,
    difficulty=3,
    statement="""
Write `halves()`. It returns two functions `(pack, unpack)` for `saved_tensors_hooks`: a `float32` tensor
that is no leaf is kept as `float16`, everything else without a copy. `unpack` returns a tensor of the
dtype that was saved. An output must not stay alive because of what `pack` returned.
""",
    kind="function",
    starter="def halves():\n    ...",
    answer="halves",
    hints=(
        "`pack` may return anything, so let it return what `unpack` needs to know: the dtype, and a tensor.",
        "Test `t.is_leaf` and `t.dtype == torch.float32`. `t.half()` makes the small one.",
        "What is kept without a copy: not `t` itself, which owns its node, but `t.detach()`.",
    ),
    reference=_halves(
        "small = t.dtype == torch.float32 and not t.is_leaf\n"
        "return t.dtype, t.detach().half() if small else t.detach()",
        _KEEP_DTYPE,
    ),
    other_right=(
        _halves(
            "if t.dtype != torch.float32 or t.is_leaf:\n    return t.detach()\nreturn (t.to(torch.float16),)",
            "return kept[0].float() if isinstance(kept, tuple) else kept",
        ),
        _halves(
            "if t.is_leaf:\n    return {'t': t}\n"
            "return {'t': t.detach().half() if t.dtype == torch.float32 else t.detach(), 'dtype': t.dtype}",
            "return kept['t'].to(kept['dtype']) if 'dtype' in kept else kept['t']",
        ),
    ),
    explains=(
        "A leaf is alive anyway: half of it would be an extra, not a saving. `t.detach()` shares the memory "
        "without owning the node, so it closes no circle."
    ),
    mistakes=(
        Mistake(
            "nothing halved",
            "Right gradients, but no tensor is kept as `float16`.",
            _halves("return t.detach()", "return kept"),
        ),
        Mistake(
            "leaves too",
            "You halve leaves as well. They live anyway, so their `float16` copy costs memory.",
            _halves(
                "return t.dtype, t.detach().half() if t.dtype == torch.float32 else t.detach()", _KEEP_DTYPE
            ),
        ),
        Mistake(
            "every float",
            "You halve `float64` too. Only `float32` was to be halved.",
            _halves(
                "small = t.is_floating_point() and not t.is_leaf\n"
                "return t.dtype, t.detach().half() if small else t.detach()",
                _KEEP_DTYPE,
            ),
        ),
        Mistake(
            "stays half",
            "`unpack` returns the `float16` tensor. It must have the dtype that was saved.",
            _halves(
                "small = t.dtype == torch.float32 and not t.is_leaf\n"
                "return t.detach().half() if small else t.detach()",
                "return kept",
            ),
        ),
        Mistake(
            "all to float32",
            "`unpack` makes `float32` of everything. What was `float64` or an index must come back as it "
            "was.",
            _halves(
                "small = t.dtype == torch.float32 and not t.is_leaf\n"
                "return t.detach().half() if small else t.detach()",
                "return kept.float() if kept.dtype in (torch.float16, torch.float64) else kept",
            ),
        ),
        Mistake(
            "the tensor itself",
            "Bytes and gradients are right. But where nothing is halved, `pack` returns the tensor itself, "
            "and an output kept so owns the node that owns it: it is never freed. Keep `t.detach()`.",
            _halves(
                "small = t.dtype == torch.float32 and not t.is_leaf\n"
                "return t.dtype, t.half() if small else t",
                _KEEP_DTYPE,
            ),
        ),
        Mistake(
            "copies",
            "What is not halved, you copy. It should share the memory of the tensor: `t.detach()`.",
            _halves(
                "small = t.dtype == torch.float32 and not t.is_leaf\n"
                "return t.dtype, t.detach().half() if small else t.detach().clone()",
                _KEEP_DTYPE,
            ),
        ),
    ),
    cases=(
        _halves_case("a product and a square", lambda h: h.square()),
        _halves_case("float64", lambda h: h.square(), "float64"),
        _halves_case("an index is saved", lambda h: h.max(0).values),
        _halves_case("nothing but leaves", lambda h: h + 1),
    ),
    observe=_observe_halves,
)


# ------------------------------------------------------------------ count bytes


checkpoint_bytes = Exercise(
    name="checkpoint_bytes",
    chapter="43",
    title="Predict: bytes of a checkpoint",
    minutes=4,
    difficulty=1,
    statement="""
Eight layers in a row. Each saves its own result of 1,000 bytes, which is also the next one's input. After
the forward pass, how many bytes of these eight results are alive

- without checkpoints,
- with each two layers in one checkpoint,
- with each four layers in one checkpoint?

The last result counts: you hold it. Answer with three numbers.
""",
    kind="list",
    starter="alive_bytes = (..., ..., ...)",
    answer="alive_bytes",
    hints=(
        "A checkpoint keeps the input of its block, and nothing from inside.",
        "The input of a block is the result of the block before. So one result for each block is alive.",
    ),
    reference="alive_bytes = (8_000, 4_000, 2_000)",
    other_right=("alive_bytes = [8e3, 4e3, 2e3]",),
    explains=(
        "One result lives for each block. In backward, the block at hand has all of its own again: few "
        "large blocks keep little now, and need more then."
    ),
    mistakes=(
        Mistake(
            "last one left out",
            "You count the inputs of blocks, without the last result. It is alive too: you hold it.",
            "alive_bytes = (8_000, 3_000, 1_000)",
        ),
        Mistake(
            "inside",
            "You count what is *dropped*, the results inside the blocks. The ends of the blocks live.",
            "alive_bytes = (8_000, 4_000, 6_000)",
        ),
        Mistake(
            "layers in a block",
            "You count the layers of one block. Every block keeps one result.",
            "alive_bytes = (8_000, 2_000, 4_000)",
        ),
        Mistake(
            "all kept",
            "A checkpoint drops what is inside its block: not all results are alive.",
            "alive_bytes = (8_000, 8_000, 8_000)",
        ),
    ),
)


# ------------------------------------------------------------------ checkpoint in segments


class _Times(nn.Module):
    """Multiply by a number that learns. Its product saves the input."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = nn.Parameter(torch.full((2,), factor))

    def forward(self, x):
        return self.factor * x


def _observe_run(answer, factors: list[float], size: int, requires_grad: bool) -> dict:
    layers, made, runs = [_Times(f) for f in factors], [], [0] * len(factors)

    def begins(i: int) -> Callable:
        def hook(module, given):
            runs[i] += 1

        return hook

    for i, layer in enumerate(layers):
        layer.register_forward_pre_hook(begins(i))
        layer.register_forward_hook(lambda module, given, y: made.append(_Storage(y)))
    x = torch.tensor([1.0, 2.0], requires_grad=requires_grad)
    y = answer(layers, x, size)
    first = tuple(runs)
    alive = sum(storage.alive() for storage in made)
    if isinstance(y, torch.Tensor) and y.requires_grad:
        y.sum().backward()
    return {
        "result": y,
        "gradient of each layer": tuple(layer.factor.grad for layer in layers),
        "gradient of x": x.grad,
        "number of runs of each layer in forward": first,
        "number of results alive after forward": alive,
        "number of runs of each layer in all": tuple(runs),
    }


class _Storage:
    """Whether the memory of a tensor is still held by somebody."""

    def __init__(self, tensor: torch.Tensor):
        from torch.multiprocessing.reductions import StorageWeakRef

        self.watch = StorageWeakRef(tensor.untyped_storage())

    def alive(self) -> bool:
        return not self.watch.expired()


def _run_case(label: str, factors: list[float], size: int, requires_grad: bool = True) -> Case:
    return Case(label, lambda generator: (factors, size, requires_grad))


_RUN = """
from torch.utils.checkpoint import checkpoint

def run(layers, x, size):
    def part(start, h):
        for layer in layers[start : start + size]:
            h = layer(h)
        return h
{body}
    return x
"""


def _run(*body: str) -> str:
    return _RUN.format(body="\n".join(f"    {line}" for line in body))


checkpoint_segments = Exercise(
    name="checkpoint_segments",
    chapter="43",
    title="Checkpoint a block",
    minutes=8,
    difficulty=2,
    statement="""
Write `run(layers, x, size)`: it feeds `x` through the list of modules and returns the result. Each `size`
layers in a row form one checkpoint; the last may be shorter. The layers must get their gradients also
when `x` requires none.
""",
    kind="function",
    starter="def run(layers, x, size):\n    ...",
    answer="run",
    hints=(
        "`range(0, len(layers), size)` gives where each part starts, the shorter one included.",
        "`checkpoint(function, start, h, use_reentrant=False)` hands `start` and `h` on to `function`.",
        "Backward calls `function` again, later: it must not read a loop variable that has moved on.",
    ),
    reference=_run(
        "for start in range(0, len(layers), size):",
        "    x = checkpoint(part, start, x, use_reentrant=False)",
    ),
    other_right=(
        """
from torch.utils.checkpoint import checkpoint

def run(layers, x, size):
    while layers:
        x = checkpoint(torch.nn.Sequential(*layers[:size]), x, use_reentrant=False)
        layers = layers[size:]
    return x
""",
        """
from torch.utils.checkpoint import checkpoint

def run(layers, x, size):
    for i in range(0, len(layers), size):
        def part(h, chosen=layers[i : i + size]):
            for layer in chosen:
                h = layer(h)
            return h
        x = checkpoint(part, x, use_reentrant=False)
    return x
""",
    ),
    explains=(
        "Each part keeps its input and runs a second time in backward. `use_reentrant=False` records the "
        "layers' parameters, whatever `x` requires."
    ),
    mistakes=(
        Mistake(
            "no checkpoint",
            "Results and gradients are right, but every layer's result stays alive and no layer runs twice: "
            "there is no checkpoint.",
            _run("for start in range(0, len(layers), size):", "    x = part(start, x)"),
        ),
        Mistake(
            "each layer",
            "You checkpoint each layer alone. Then every input of a layer is kept, and nothing is gained.",
            """
from torch.utils.checkpoint import checkpoint

def run(layers, x, size):
    for layer in layers:
        x = checkpoint(layer, x, use_reentrant=False)
    return x
""",
        ),
        Mistake(
            "one checkpoint",
            "All layers are in one checkpoint, whatever `size` is.",
            """
from torch.utils.checkpoint import checkpoint

def run(layers, x, size):
    return checkpoint(torch.nn.Sequential(*layers), x, use_reentrant=False)
""",
        ),
        Mistake(
            "the loop variable",
            "Forward is right. But in backward, all checkpoints run the *last* part again: your function "
            "reads a variable of the loop when it is called. Hand it on as an argument.",
            _run(
                "for start in range(0, len(layers), size):",
                "    x = checkpoint(lambda h: part(start, h), x, use_reentrant=False)",
            ),
        ),
        Mistake(
            "reentrant",
            "Right where `x` requires grad. Where it does not, a reentrant checkpoint gives the layers no "
            "gradient.",
            _run(
                "for start in range(0, len(layers), size):",
                "    x = checkpoint(part, start, x, use_reentrant=True)",
            ),
        ),
        Mistake(
            "checkpoint_sequential",
            "`checkpoint_sequential` runs its last part without a checkpoint, and shares the layers out in a "
            "way of its own: what it takes is the number of parts.",
            """
from torch.utils.checkpoint import checkpoint_sequential

def run(layers, x, size):
    parts = -(-len(layers) // size)
    return checkpoint_sequential(torch.nn.Sequential(*layers), parts, x, use_reentrant=False)
""",
        ),
        Mistake(
            "rest left out",
            "The last part, which is shorter, is missing.",
            _run(
                "for start in range(0, len(layers) - size + 1, size):",
                "    x = checkpoint(part, start, x, use_reentrant=False)",
            ),
        ),
    ),
    cases=(
        _run_case("four layers, two in a checkpoint", [2.0, 3.0, 4.0, 5.0], 2),
        _run_case("a shorter part at the end", [2.0, 3.0, 4.0, 5.0, 6.0], 3),
        _run_case("x requires no grad", [2.0, 3.0, 4.0, 5.0], 2, requires_grad=False),
        _run_case("more than there are", [2.0, 3.0], 4),
        _run_case("one in a checkpoint", [2.0, 3.0], 1),
    ),
    observe=_observe_run,
)


# ------------------------------------------------------------------ leaks


find_leaks = Exercise(
    name="find_leaks",
    chapter="43",
    title="Find four leaks",
    minutes=5,
    difficulty=2,
    statement="""
A function makes `h = w * x` and `loss = h.square().sum()` from leaves of its own, runs one of these lines
and returns. `kept` is a list outside. After it and `gc.collect()`, where are nodes of the graph still alive?

- `a`: `kept.append(loss)`
- `b`: `kept.append(loss.detach())`
- `c`: `h.register_hook(lambda g: print(h.mean()))`
- `d`: `h.register_hook(lambda g: print(g.mean()))`
- `e`: `loss.backward(create_graph=True)`
- `f`: `torch.autograd.grad(loss, x, create_graph=True)`
- `g`: `kept.extend(torch.autograd.grad(loss, x, create_graph=True))`

Answer with a list of letters.
""",
    kind="list",
    starter="leaks = ...",
    answer="leaks",
    hints=(
        "Ask of each line: what is still there when the function has returned, and does it own a node?",
        "A hook lives with the graph it hangs on. Does the hook own something of that graph?",
        "A gradient owns a graph if the pass was recorded.",
    ),
    reference='leaks = ["a", "c", "e", "g"]',
    other_right=('leaks = "g e c a".split()', 'leaks = {"a", "c", "e", "g"}'),
    explains=(
        "`a` and `g` keep a tensor with a graph in a list. In `c`, the hook owns the tensor `h`, whose node "
        "owns the hook. In `e`, `x.grad` has a graph that owns `x`. `b` keeps a number, `d` owns nothing of "
        "the graph, and in `f` the result is dropped."
    ),
    mistakes=(
        Mistake(
            "every list",
            "A detached loss owns no node: `b` keeps a number.",
            'leaks = ["a", "b", "c", "e", "g"]',
        ),
        Mistake(
            "every hook",
            "The hook in `d` owns nothing of the graph. It goes with it.",
            'leaks = ["a", "c", "d", "e", "g"]',
        ),
        Mistake(
            "no hook",
            "The hook in `c` is called with a gradient, but it *owns* the tensor `h`, and the node of that "
            "tensor owns the hook.",
            'leaks = ["a", "e", "g"]',
        ),
        Mistake(
            "every recording",
            "`autograd.grad` puts nothing into `x.grad`. What it returns in `f` is dropped, and its graph "
            "with it.",
            'leaks = ["a", "c", "e", "f", "g"]',
        ),
        Mistake(
            "three",
            "In `g` the pass is recorded, so the gradient that lands in the list has a graph.",
            'leaks = ["a", "c", "e"]',
        ),
    ),
    observe=observe_names,
)


def _observe_watch(answer, uses: int, named: bool) -> dict:
    seen: list = []
    x = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)

    def forward() -> tuple[torch.Tensor, torch.Tensor, object]:
        h = 2 * x
        returned = answer(h, seen)
        return h, sum((h * 3).sum() for _ in range(uses)), returned

    h, loss, returned = forward()
    node = h.grad_fn
    node.metadata["watched"] = mark = _Mark()
    dropped = forward()[0].grad_fn  # a graph that is dropped without a backward
    dropped.metadata["watched"] = other = _Mark()
    marks = [weakref.ref(mark), weakref.ref(other)]
    del mark, other, node, dropped
    if not named:
        del h
    loss.backward()
    h = loss = None
    gc.collect()
    return {
        "list `seen`": tuple(float(v) if isinstance(v, (float, torch.Tensor)) else repr(v) for v in seen),
        "type of the entries": _types(seen),
        "gradient of x": x.grad,
        "type of what was returned": type(returned).__name__,
        "side effect: a graph outlives its loss": any(mark() is not None for mark in marks),
    }


class _Mark:
    """Tied to a node, it lives as long as the node."""


watch_without_leak = Exercise(
    name="watch_without_leak",
    chapter="43",
    title="Repair: a hook that leaks",
    minutes=6,
    difficulty=3,
    statement="""
`watch(h, seen)` was written as

`h.register_hook(lambda g: seen.append((h * g).sum().item()))`

It works, and no `h` is ever freed. Write it again: each backward appends the same `float` to `seen`, also
when nobody holds `h` by a name any more, and the graph is freed when the loss goes. Nobody changes `h` in
place. Return nothing.
""",
    kind="function",
    starter="def watch(h, seen):\n    ...",
    answer="watch",
    hints=(
        "The hook owns `h`, `h` owns its node, and the node owns the hook. Which of these can go?",
        "The hook needs the numbers of `h`, not its history.",
        "`h.detach()` shares the memory and owns no node. Make it outside of the hook.",
    ),
    reference="""
def watch(h, seen):
    values = h.detach()
    h.register_hook(lambda g: seen.append((values * g).sum().item()))
""",
    other_right=(
        """
def watch(h, seen):
    h.register_hook(lambda g, values=h.detach().clone(): seen.append(float(torch.sum(values * g))))
""",
        """
def watch(h, seen):
    with torch.no_grad():
        values = h * 1
    def hook(g):
        seen.append((values * g).sum().item())
    h.register_hook(hook)
""",
    ),
    explains=(
        "A detached tensor keeps the memory for as long as the hook lives, and the hook lives as long as "
        "the node. No circle: both go with the graph."
    ),
    mistakes=(
        Mistake(
            "as before",
            "The numbers are right, and a graph still outlives its loss, if only one whose backward never "
            "runs: what your hook owns leads back to the node that owns the hook.",
            """
def watch(h, seen):
    h.register_hook(lambda g: seen.append((h * g).sum().item()))
""",
        ),
        Mistake(
            "weak reference",
            "A weak reference to `h` breaks the circle, but where nobody else holds `h` it is gone before "
            "backward comes. Hold its numbers.",
            """
def watch(h, seen):
    import weakref
    watch = weakref.ref(h)
    h.register_hook(lambda g: watch() is not None and seen.append((watch() * g).sum().item()) or None)
""",
        ),
        Mistake(
            "tensors",
            "No leak, but what you append are tensors. A float was asked for.",
            """
def watch(h, seen):
    values = h.detach()
    h.register_hook(lambda g: seen.append((values * g).sum()))
""",
        ),
        Mistake(
            "replaced",
            "Your hook returns a tensor, and that takes the place of the gradient.",
            """
def watch(h, seen):
    values = h.detach()
    def hook(g):
        seen.append((values * g).sum().item())
        return values * g
    h.register_hook(hook)
""",
        ),
        Mistake(
            "without h",
            "You sum the gradient alone. It should be multiplied by `h` first.",
            """
def watch(h, seen):
    h.register_hook(lambda g: seen.append(g.sum().item()))
""",
        ),
        Mistake(
            "now",
            "You append once, at the call, and not in backward.",
            """
def watch(h, seen):
    seen.append(h.detach().sum().item())
""",
        ),
    ),
    cases=(
        Case("somebody holds h", lambda generator: (1, True)),
        Case("nobody else holds h", lambda generator: (1, False)),
        Case("h is used twice", lambda generator: (2, True)),
    ),
    observe=_observe_watch,
)


EXERCISES = (
    hook_order,
    clip_each,
    log_norms,
    compress_saved,
    checkpoint_bytes,
    checkpoint_segments,
    find_leaks,
    watch_without_leak,
)

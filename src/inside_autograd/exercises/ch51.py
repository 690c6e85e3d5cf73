"""Exercises of chapter 51: a Function in a Module."""

from collections.abc import Callable

import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import BackwardCFunction

from ._model import Case, Exercise, Mistake
from ._observe import observe_names


def _cotangent(result: torch.Tensor) -> torch.Tensor:
    return torch.linspace(2, -1, result.numel(), dtype=result.dtype).reshape(result.shape)


def _gradients(result: object, wanted: dict[str, torch.Tensor]) -> dict:
    """Gradients of a result with a fixed vector, one entry for each tensor that requires grad."""
    wanted = {name: t for name, t in wanted.items() if t.requires_grad}
    if isinstance(result, torch.Tensor) and result.requires_grad:
        found = torch.autograd.grad(result, list(wanted.values()), _cotangent(result), allow_unused=True)
    else:
        found = [None] * len(wanted)
    return {f"gradient of {name}": g for name, g in zip(wanted, found, strict=True)}


def _shapes(module: nn.Module) -> dict:
    return {name: tuple(p.shape) for name, p in sorted(module.named_parameters())}


# ------------------------------------------------------------------ what is saved


saved_keys = Exercise(
    name="saved_keys",
    chapter="51",
    title="Predict: what is saved?",
    minutes=4,
    difficulty=1,
    statement="""
This stands in `__init__` of a Module, below `super().__init__()`:

```python
self.a = nn.Parameter(torch.ones(2))
self.b = nn.Parameter(torch.ones(2), requires_grad=False)
self.c = 2 * nn.Parameter(torch.ones(2))
self.register_buffer("d", torch.ones(2))
self.register_buffer("e", torch.ones(2), persistent=False)
self.f = torch.ones(2, requires_grad=True)
self.d = torch.zeros(2)
self.g = [nn.Parameter(torch.ones(2))]
```

Which of the letters are keys of its `state_dict()`? Answer with a list of letters.
""",
    kind="list",
    starter="""
saved = ...
""",
    answer="saved",
    hints=(
        "What is registered counts: parameters, persistent buffers, and those of submodules. "
        "`requires_grad` plays no part.",
        "Which of the eight lines put something into a dict of the Module, and of what type is the "
        "product in the line of `c`?",
        "The second line of `d` assigns a tensor to a name that is a buffer already.",
    ),
    reference="""
saved = ["a", "b", "d"]
""",
    other_right=('saved = ("d", "b", "a")',),
    explains=(
        "`a` and `b` are parameters, frozen or not. `d` stays a buffer when its name gets another tensor. "
        "The product `c` is no parameter, `e` asked not to be saved, `f` is a plain attribute, and a "
        "Python list hides what it holds."
    ),
    mistakes=(
        Mistake(
            "frozen left out",
            "`b` is missing. A frozen parameter is a parameter: `requires_grad` does not decide what is "
            "saved.",
            'saved = ["a", "d"]',
        ),
        Mistake(
            "d lost",
            "`d` is missing. Its name was registered as a buffer, and a tensor assigned to it takes that "
            "place.",
            'saved = ["a", "b"]',
        ),
        Mistake(
            "e saved",
            "`e` is a buffer, but `persistent=False` keeps it out of the `state_dict`.",
            'saved = ["a", "b", "d", "e"]',
        ),
        Mistake(
            "f saved",
            "`f` requires grad, but it is a plain tensor on the module. Only `nn.Parameter` is registered by "
            "an assignment.",
            'saved = ["a", "b", "d", "f"]',
        ),
        Mistake(
            "c saved",
            "`c` is the result of a multiplication, a plain tensor with a history, and no `nn.Parameter`.",
            'saved = ["a", "b", "c", "d"]',
        ),
        Mistake(
            "g saved",
            "`g` is a Python list. A Module does not look into it; `nn.ParameterList` would be seen.",
            'saved = ["a", "b", "d", "g"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ Linear


def _observe_linear(answer, n_in: int, n_out: int, bias: bool, x: torch.Tensor) -> dict:
    module = answer(n_in, n_out, bias=bias)
    seen = {
        "set of parameters": _shapes(module),
        "bias of the layer": "None" if module.bias is None else "given",
    }
    if seen["set of parameters"] != {"weight": (n_out, n_in)} | ({"bias": (n_out,)} if bias else {}):
        return seen
    bound = n_in**-0.5
    starts = {name: p.detach().clone() for name, p in module.named_parameters()}
    for name, start in starts.items():
        seen[f"start of {name}: all within the bound"] = bool((start.abs() <= bound * 1.0001).all())
        if start.numel() >= 30:  # more than half of the range is used, or the odds are astronomical
            seen[f"start of {name}: spread over the range"] = bool(start.max() - start.min() > bound)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.linspace(-1, 2, p.numel(), dtype=p.dtype).reshape(p.shape))
    module = module.to(x.dtype)
    result = module(x)
    node = getattr(result, "grad_fn", None)
    own = isinstance(node, BackwardCFunction)
    seen["result"] = result
    seen |= _gradients(result, {"x": x, "weight": module.weight} | ({"bias": module.bias} if bias else {}))
    # A layer that recorded nothing is told by its missing gradients.
    return seen | {"node of the result": "of a custom Function" if own or node is None else node.name()}


def _linear_case(
    label: str, *shape: int, n_out: int, bias=True, dtype=torch.float32, data=False, turn=False
) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(shape, generator=generator, dtype=dtype)
        x = (x.transpose(0, -2) if turn else x).requires_grad_(not data)
        return shape[-1], n_out, bias, x

    return Case(label, make)


_LINEAR = """
class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        y = x @ weight.T
        return y if bias is None else y + bias

    @staticmethod
    def backward(ctx, g):
        x, weight = ctx.saved_tensors
        grad_weight = {grad_weight}
        return {grad_x}, grad_weight, {grad_bias}


class MyLinear(torch.nn.Module):
    def __init__(self, n_in, n_out, bias=True):
        super().__init__()
        bound = n_in ** -0.5
        self.weight = {weight}
        self.bias = {bias}

    def forward(self, x):
        return {call}
"""


def _linear(
    grad_x="g @ weight",
    grad_weight="torch.einsum('...o,...i->oi', g, x)",
    grad_bias="g.sum_to_size(g.shape[-1]) if ctx.needs_input_grad[2] else None",
    weight="torch.nn.Parameter(torch.empty(n_out, n_in).uniform_(-bound, bound))",
    bias="torch.nn.Parameter(torch.empty(n_out).uniform_(-bound, bound)) if bias else None",
    call="LinearFunction.apply(x, self.weight, self.bias)",
) -> str:
    return _LINEAR.format(
        grad_x=grad_x, grad_weight=grad_weight, grad_bias=grad_bias, weight=weight, bias=bias, call=call
    )


linear_module = Exercise(
    name="linear_module",
    chapter="51",
    title="Linear as a Module",
    minutes=12,
    difficulty=2,
    statement="""
Write `MyLinear(n_in, n_out, bias=True)`. It computes $xW^\\top + b$ for `x` of shape `(…, n_in)`, with **one
call of a Function of yours**, whose node is the result's `grad_fn`.

The parameters are `weight` of shape `(n_out, n_in)` and `bias` of shape `(n_out,)`. With `bias=False`,
`layer.bias` is `None`. All numbers start uniform between $-1/\\sqrt{n_{in}}$ and $1/\\sqrt{n_{in}}$.
""",
    kind="Module",
    starter="""
class LinearFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ...

    @staticmethod
    def backward(ctx, g):
        ...


class MyLinear(torch.nn.Module):
    def __init__(self, n_in, n_out, bias=True):
        ...

    def forward(self, x):
        ...
""",
    answer="MyLinear",
    hints=(
        "`super().__init__()` comes first. Then `self.weight = nn.Parameter(…)`, with numbers from "
        "`torch.empty(n_out, n_in).uniform_(-bound, bound)`.",
        "`self.bias = None` is fine for a layer without bias. Pass it to `apply` all the same.",
        "The gradients: `g @ weight` for `x`, `torch.einsum('...o,...i->oi', g, x)` for the weight, and the "
        "sum of `g` over all but the last dimension for the bias (`None` if there is none).",
    ),
    reference=_linear(),
    other_right=(
        _linear(grad_bias="g if ctx.needs_input_grad[2] else None"),
        _linear(
            grad_weight="g.reshape(-1, g.shape[-1]).T @ x.reshape(-1, x.shape[-1])",
            grad_bias="g.reshape(-1, g.shape[-1]).sum(0) if ctx.needs_input_grad[2] else None",
        ),
        _linear().replace(
            "        self.bias =",
            "        if not bias:\n            self.register_parameter('bias', None)\n            return\n"
            "        self.bias =",
        ),
    ),
    explains=(
        "The Module holds the parameters and passes each of them to `apply`. The Function has their "
        "gradients, for any number of batch dimensions."
    ),
    mistakes=(
        Mistake(
            "no parameters",
            "The layer has no parameters, so no optimizer will find its weights. A tensor becomes one by "
            "`nn.Parameter`.",
            _linear(
                weight="torch.empty(n_out, n_in).uniform_(-bound, bound).requires_grad_()",
                bias="torch.zeros(n_out).requires_grad_() if bias else None",
            ),
        ),
        Mistake(
            "bias always there",
            "With `bias=False` there is a bias all the same. Set `self.bias = None` then.",
            _linear(bias="torch.nn.Parameter(torch.empty(n_out).uniform_(-bound, bound))"),
        ),
        Mistake(
            "weight turned",
            "The weight has the shape `(n_in, n_out)`. It was asked for as `(n_out, n_in)`, as in "
            "`nn.Linear`.",
            _linear(
                weight="torch.nn.Parameter(torch.empty(n_in, n_out).uniform_(-bound, bound))",
                call="LinearFunction.apply(x, self.weight.T, self.bias)",
            ),
        ),
        Mistake(
            "not passed",
            "The result is right and the parameters get no gradient. The Function must get them as "
            "arguments of `apply`, and backward must return their gradients.",
            _linear(
                call="LinearFunction.apply(x, self.weight.detach(), self.bias if self.bias is None "
                "else self.bias.detach())"
            ),
        ),
        Mistake(
            "bias without gradient",
            "The bias gets no gradient. Its gradient is the sum of `g` over all but the last dimension.",
            _linear(grad_bias="None"),
        ),
        Mistake(
            "mean for the bias",
            "The gradient of the bias is a mean over the batch. It is the sum: the bias served every row.",
            _linear(grad_bias="g.reshape(-1, g.shape[-1]).mean(0) if ctx.needs_input_grad[2] else None"),
        ),
        Mistake(
            "normal start",
            "The weight starts with numbers outside the bound. `uniform_(-bound, bound)` draws from the "
            "range that was asked for.",
            _linear(weight="torch.nn.Parameter(torch.randn(n_out, n_in) * 5)"),
        ),
        Mistake(
            "bias starts at 0",
            "The bias starts at 0. It was to start between the same bounds as the weight.",
            _linear(bias="torch.nn.Parameter(torch.zeros(n_out)) if bias else None"),
        ),
        Mistake(
            "bias outside",
            "The bias is added outside of the Function, so the last node is an addition of torch's. Pass "
            "the bias to `apply`, too.",
            _linear(
                call="(lambda y: y if self.bias is None else y + self.bias)"
                "(LinearFunction.apply(x, self.weight, None))"
            ),
        ),
        Mistake(
            "equal start",
            "The weights all start with nearly the same number. Then all outputs are alike, and they "
            "learn the same.",
            _linear(weight="torch.nn.Parameter(torch.full((n_out, n_in), bound))"),
        ),
        Mistake(
            "gradient of x missing",
            "`x` gets no gradient. It is `g @ weight`; without it nothing before this layer learns.",
            _linear(grad_x="None"),
        ),
    ),
    cases=(
        _linear_case("the example", 4, 20, n_out=30),
        _linear_case("no bias, float64", 5, 3, n_out=2, bias=False, dtype=torch.float64),
        _linear_case("three dimensions, not contiguous", 2, 3, 4, n_out=5, turn=True),
        _linear_case("one row without a batch dimension", 3, n_out=4),
        _linear_case("one output, data that needs no gradient", 6, 2, n_out=1, data=True),
        _linear_case("an empty batch", 0, 3, n_out=2),
    ),
    observe=_observe_linear,
    may_change=("torch's random state",),
)


# ------------------------------------------------------------------ a learnable Swish


def _observe_swish(answer, channels: int, beta: float, x: torch.Tensor) -> dict:
    module = answer(channels)
    seen = {
        "set of parameters": _shapes(module),
        "keys of the state_dict": tuple(sorted(module.state_dict())),
        "printed form": repr(module),
    }
    if seen["set of parameters"] != {"beta": (channels,)}:
        return seen
    seen["beta at the start"] = module.beta.detach().clone()
    state = {"beta": torch.linspace(beta / 2, beta, channels)}
    module.load_state_dict(state)
    module = module.to(x.dtype)
    result = module(x)
    return seen | {"result": result, **_gradients(result, {"x": x, "beta": module.beta})}


def _swish_case(label: str, *shape: int, beta: float = 2.0, dtype=torch.float32, turn=False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(shape, generator=generator, dtype=dtype)
        return shape[-1], beta, (x.transpose(0, -2) if turn else x).requires_grad_()

    return Case(label, make)


_SWISH_FUNCTION = """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.save_for_backward(x, beta)
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, g):
        x, beta = ctx.saved_tensors
        s = torch.sigmoid(beta * x)
        grad_x = g * (s + beta * x * s * (1 - s))
        return grad_x, (g * x * x * s * (1 - s)).sum_to_size(beta.shape)
"""
_SWISH = (
    _SWISH_FUNCTION
    + """

class LearnedSwish(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.channels = channels
        {beta}

    def extra_repr(self):
        return {text}

    def forward(self, x):
        return {call}
"""
)


def _swish(
    beta="self.beta = torch.nn.Parameter(torch.ones(channels))",
    text="f'channels={self.channels}'",
    call="Swish.apply(x, self.beta)",
) -> str:
    return _SWISH.format(beta=beta, text=text, call=call)


learned_swish = Exercise(
    name="learned_swish",
    chapter="51",
    title="A Swish that learns its beta",
    minutes=7,
    difficulty=1,
    statement="""
The Function `Swish` is given. Write the Module `LearnedSwish(channels)` that calls it: `x` has the shape
`(…, channels)`, and each channel has a β of its own. The β are **one** parameter called `beta` of shape
`(channels,)`, and start at 1. `print(LearnedSwish(3))` shows `LearnedSwish(channels=3)`.
""",
    kind="Module",
    starter=_SWISH_FUNCTION
    + """

class LearnedSwish(torch.nn.Module):
    def __init__(self, channels):
        ...

    def extra_repr(self):
        ...

    def forward(self, x):
        ...
""",
    answer="LearnedSwish",
    hints=(
        "`super().__init__()` first. Which class makes a tensor a parameter of the Module?",
        "`extra_repr` returns the text between the parentheses: `channels=3`. Keep `channels` on `self`.",
        "`Swish.apply(x, self.beta)`: the last dimension of `x` has `channels` elements, so β broadcasts.",
    ),
    reference=_swish(),
    other_right=(
        _swish(text="f'channels={len(self.beta)}'"),
        _swish(call="x * torch.sigmoid(self.beta * x)"),
        _swish(beta="self.register_parameter('beta', torch.nn.Parameter(torch.ones(channels)))"),
    ),
    explains=(
        "`nn.Parameter` registers β, `apply` gets it as an argument, and `sum_to_size` in the Function "
        "undoes the broadcasting."
    ),
    mistakes=(
        Mistake(
            "plain tensor",
            "There is no parameter, and nothing in the `state_dict`. A tensor on a Module becomes a "
            "parameter by `nn.Parameter`, whether it requires grad or not.",
            _swish(beta="self.beta = torch.ones(channels, requires_grad=True)"),
        ),
        Mistake(
            "a buffer",
            "`beta` is saved with the layer, but it is no parameter: no optimizer will find it. A buffer "
            "is for what is not learned.",
            _swish(beta="self.register_buffer('beta', torch.ones(channels))"),
        ),
        Mistake(
            "one beta",
            "`beta` has no dimension: one number for all channels. Each channel was to have its own.",
            _swish(beta="self.beta = torch.nn.Parameter(torch.tensor(1.0))"),
        ),
        Mistake(
            "one beta in a row",
            "`beta` has one element, which serves all channels. Each channel was to have its own.",
            _swish(beta="self.beta = torch.nn.Parameter(torch.ones(1))"),
        ),
        Mistake(
            "starts at 0",
            "β starts at 0, where Swish is the line `x / 2`. It was to start at 1.",
            _swish(beta="self.beta = torch.nn.Parameter(torch.zeros(channels))"),
        ),
        Mistake(
            "cut off",
            "The result is right, and `beta` gets no gradient. Pass the parameter itself to `apply`, not "
            "what `detach()`, `.data` or `tolist()` make of it.",
            _swish(call="Swish.apply(x, self.beta.detach())"),
        ),
        Mistake(
            "no extra_repr",
            "Values and gradients are right, but the layer prints itself as `LearnedSwish()`. `extra_repr` "
            "must return `channels=3`.",
            _swish(text="''"),
        ),
        Mistake(
            "whole line in extra_repr",
            "`extra_repr` returns the whole line. Return only what stands between the parentheses.",
            _swish(text="f'LearnedSwish(channels={self.channels})'"),
        ),
    ),
    cases=(
        _swish_case("the example", 2, 3),
        _swish_case("one channel", 4, 1, beta=0.5),
        _swish_case("three dimensions, not contiguous, float64", 2, 3, 4, dtype=torch.float64, turn=True),
        _swish_case("no batch dimension", 5, beta=-1.0),
        _swish_case("an empty batch", 0, 2),
    ),
    observe=_observe_swish,
)


# ------------------------------------------------------------------ a running statistic


def _observe_center(answer, momentum: float, first: torch.Tensor, second: torch.Tensor) -> dict:
    module = answer(first.shape[-1], momentum=momentum).to(first.dtype)
    seen = {
        "set of parameters": _shapes(module),
        "keys of the state_dict": tuple(sorted(module.state_dict())),
        "running_mean at the start, in the layer's dtype": module.running_mean.detach().clone(),
    }
    if seen["keys of the state_dict"] != ("running_mean",) or seen["set of parameters"]:
        return seen
    result = module(first)
    seen["result in training"] = result
    seen["running_mean after one call"] = module.running_mean.detach().clone()
    seen["running_mean has a history"] = module.running_mean.requires_grad
    seen["gradient in training"] = _gradients(result, {"x": first})["gradient of x"]
    seen["result of a second call"] = module(second)
    seen["running_mean after two calls"] = module.running_mean.detach().clone()
    module.eval()
    result = module(second)
    seen["result after eval()"] = result
    seen["gradient after eval()"] = _gradients(result, {"x": second})["gradient of x"]
    seen["running_mean after a call in eval()"] = module.running_mean.detach().clone()
    return seen


def _center_case(label: str, rows: int, channels: int, momentum: float, dtype=torch.float32, turn=False):
    def make(generator: torch.Generator) -> tuple:
        def draw():
            shape = (channels, rows) if turn else (rows, channels)
            x = torch.randn(shape, generator=generator, dtype=dtype) + 2
            return (x.t() if turn else x).requires_grad_()

        return momentum, draw(), draw()

    return Case(label, make)


_CENTER = """
class Center(torch.nn.Module):
    def __init__(self, channels, momentum=0.5):
        super().__init__()
        self.momentum = momentum
        {begin}

    def forward(self, x):
        if {training}:
            mean = {mean}
            {update}
            return x - {subtract}
        return x - {later}
"""
_UPDATE = "with torch.no_grad():\n                self.running_mean.lerp_(mean, self.momentum)"


def _center(
    begin="self.register_buffer('running_mean', torch.zeros(channels))",
    training="self.training",
    mean="x.mean(0)",
    update=_UPDATE,
    subtract="mean",
    later="self.running_mean",
) -> str:
    return _CENTER.format(
        begin=begin, training=training, mean=mean, update=update, subtract=subtract, later=later
    )


running_center = Exercise(
    name="running_center",
    chapter="51",
    title="A layer with a running statistic",
    minutes=10,
    difficulty=2,
    statement="""
Write `Center(channels, momentum=0.5)` for `x` of shape `(rows, channels)`, with at least one row.

- In training mode it returns `x` minus the mean over the rows. The gradient goes **through that mean**, too.
  Then `running_mean` becomes `(1 - momentum) * running_mean + momentum * mean`.
- After `eval()` it returns `x - running_mean`, and changes nothing.

`running_mean` starts at zeros. It moves and is saved with the layer, is not learned, and never keeps a graph.
""",
    kind="Module",
    starter="""
class Center(torch.nn.Module):
    def __init__(self, channels, momentum=0.5):
        ...

    def forward(self, x):
        ...
""",
    answer="Center",
    hints=(
        "What is saved and not learned is a buffer. `self.training` tells the mode.",
        "The mean that you subtract is recorded. The update of the buffer must not be: it belongs under "
        "`torch.no_grad()`.",
        "`self.running_mean.lerp_(mean, self.momentum)` is the whole update, and so is "
        "`self.running_mean = (1 - m) * self.running_mean + m * mean` under `no_grad`.",
    ),
    reference=_center(),
    other_right=(
        _center(
            update="self.running_mean = (1 - self.momentum) * self.running_mean "
            "+ self.momentum * mean.detach()"
        ),
        _center(update="self.running_mean.mul_(1 - self.momentum).add_(mean.detach(), alpha=self.momentum)"),
    ),
    explains=(
        "A buffer is saved and moves with the layer. Updated without recording, it stays a plain number "
        "from call to call, while the gradient goes through the mean of this batch."
    ),
    mistakes=(
        Mistake(
            "plain attribute",
            "`running_mean` is neither in the `state_dict` nor a parameter: it will not be saved, and "
            "`.to()` leaves it behind. Register it as a persistent buffer.",
            _center(begin="self.running_mean = torch.zeros(channels)"),
        ),
        Mistake(
            "a parameter",
            "`running_mean` is a parameter, so an optimizer would change it too. It is not learned: "
            "register a buffer.",
            _center(begin="self.running_mean = torch.nn.Parameter(torch.zeros(channels))"),
        ),
        Mistake(
            "not saved",
            "`running_mean` moves with the layer but is not in its `state_dict`. `persistent=False` would do "
            "that; leave it out.",
            _center(begin="self.register_buffer('running_mean', torch.zeros(channels), persistent=False)"),
        ),
        Mistake(
            "history kept",
            "The update was recorded: `running_mean` requires grad and holds the graph of every batch so "
            "far. Update it under `torch.no_grad()`.",
            _center(
                update="self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean"
            ),
        ),
        Mistake(
            "mean of all",
            "The mean is taken over all elements, and is one number. Each channel has its own: take it over "
            "the rows.",
            _center(mean="x.mean()"),
        ),
        Mistake(
            "mean cut off",
            "The gradient passes unchanged, as if the mean were a constant. It depends on `x`: do not detach "
            "the mean that you subtract.",
            _center(subtract="mean.detach()"),
        ),
        Mistake(
            "mode ignored",
            "After `eval()` the layer goes on as in training: it subtracts the mean of the batch and "
            "updates. Ask `self.training`.",
            _center(training="True"),
        ),
        Mistake(
            "batch mean in eval",
            "After `eval()` the mean of the batch is subtracted. It was to be `running_mean`.",
            _center(later="x.mean(0)"),
        ),
        Mistake(
            "momentum turned",
            "The two weights of the update are exchanged. `momentum` is the share of the new mean.",
            _center(update=_UPDATE.replace("self.momentum", "1 - self.momentum")),
        ),
        Mistake(
            "never updated",
            "`running_mean` stays at its start. It must move toward the mean of each batch in training.",
            _center(update="pass"),
        ),
        Mistake(
            "running mean in training",
            "In training the running mean is subtracted, right after its update. Subtract the mean of this "
            "batch; the running one is for `eval()`.",
            _center(subtract="self.running_mean.clone()"),
        ),
    ),
    cases=(
        _center_case("the example", 4, 2, 0.5),
        _center_case("momentum 0.25, float64", 3, 2, 0.25, torch.float64),
        _center_case("one row", 1, 3, 0.125),
        _center_case("not contiguous", 5, 2, 0.75, turn=True),
    ),
    observe=_observe_center,
)


# ------------------------------------------------------------------ the parameter that never learns


never_learns = Exercise(
    name="never_learns",
    chapter="51",
    title="Find the parameters that never learn",
    minutes=6,
    difficulty=2,
    statement="""
`Weighted`, `Peek` and `PeekLayer` are those of the chapter. The optimizer got `net.parameters()`.

```python
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.d, self.e = (nn.Parameter(torch.ones(3)) for _ in range(4))
        self.c = PeekLayer(torch.ones(3))
        self.f = [nn.Parameter(torch.ones(3))]

    def forward(self, x):
        h = Weighted.apply(self.a, x)
        h = Weighted.apply(h, self.b.detach())
        h = Peek.apply(h, self.c)
        h = Weighted.apply(h, 2 * self.d)
        h = Weighted.apply(h, self.f[0])
        with torch.no_grad():
            scale = torch.sigmoid(self.e)
        return Weighted.apply(h, scale * self.e)
```

`x` holds positive numbers, the loss is the sum. Which letters does training **never change**? (`c` stands for
the weights in it.) Answer with a list.
""",
    kind="list",
    starter="""
stuck = ...
""",
    answer="stuck",
    hints=(
        "Two questions for each: does a recorded path lead from the loss to it, and does the optimizer "
        "know it?",
        "An argument's place does not matter to `apply`. What matters is whether the tensor that is passed "
        "has a path to the parameter.",
        "`e` is used twice. One use is recorded.",
    ),
    reference="""
stuck = ["b", "c", "f"]
""",
    other_right=('stuck = ("f", "c", "b")',),
    explains=(
        "`b` is cut off by `detach()`. `c` is read inside forward and is no argument of `apply`. `f` gets a "
        "gradient, but hides in a Python list, so the optimizer does not know it. `a`, `d` and `e` have a "
        "recorded path."
    ),
    mistakes=(
        Mistake(
            "f forgotten",
            "`f` is missing. It does get a gradient. But `net.parameters()` does not look into a Python "
            "list.",
            'stuck = ["b", "c"]',
        ),
        Mistake(
            "c forgotten",
            "`c` is missing. The layer went to `apply`, but a layer is no tensor: its weights have no path.",
            'stuck = ["b", "f"]',
        ),
        Mistake(
            "b forgotten",
            "`b` is missing. `detach()` gives a tensor without a history, so nothing flows back.",
            'stuck = ["c", "f"]',
        ),
        Mistake(
            "e taken for stuck",
            "`e` learns. Its use under `no_grad` counts as a constant, but `scale * self.e` is recorded.",
            'stuck = ["b", "c", "e", "f"]',
        ),
        Mistake(
            "a taken for stuck",
            "`a` learns. It is an argument of `apply`, as `x` is, and `Weighted` has a gradient for both "
            "places.",
            'stuck = ["a", "b", "c", "f"]',
        ),
        Mistake(
            "d taken for stuck",
            "`d` learns. `2 * self.d` is recorded as usual, and the gradient goes on from there.",
            'stuck = ["b", "c", "d", "f"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ which parameters get nothing


class _Weighted(Function):
    """x * weights; ``slope`` multiplies the gradient of the weights, ``None`` drops it."""

    @staticmethod
    def forward(ctx, x, weights, slope):
        ctx.save_for_backward(x, weights)
        ctx.slope = slope
        return x * weights

    @staticmethod
    def backward(ctx, g):
        x, weights = ctx.saved_tensors
        grad_weights = None if ctx.slope is None else ctx.slope * (g * x).sum_to_size(weights.shape)
        return g * weights, grad_weights, None


class _Layer(nn.Module):
    def __init__(self, n: int, slope: float | None = 1.0, frozen: bool = False):
        super().__init__()
        self.weights = nn.Parameter(torch.linspace(1, 2, n), requires_grad=not frozen)
        self.slope = slope

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Weighted.apply(x, self.weights, self.slope)


class _Peek(_Layer):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _Weighted.apply(x, self.weights.detach(), 1.0)


class _Pair(nn.Module):
    """Two names for one parameter, a layer that is never called, and a gradient that is zero."""

    def __init__(self):
        super().__init__()
        self.spare = _Layer(2)
        self.one, self.two, self.zero = _Layer(3), _Layer(3, slope=None), _Layer(3)
        self.two.weights = self.one.weights
        self.frozen = _Layer(3, frozen=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.frozen(self.two(self.one(x)))
        return h + 0 * self.zero(x)


def _observe_module_function(answer, module: nn.Module, x: torch.Tensor) -> dict:
    """The names that come back, and that the module and the input are as they were."""

    def state() -> tuple:
        return tuple(
            (name, t.dtype, t.requires_grad, tuple(t.flatten().tolist()))
            for name, t in [*module.named_parameters(), *module.named_buffers(), ("x", x)]
        )

    def grads() -> list:
        tensors = [*module.parameters(), x]
        return [None if t.grad is None else t.grad.clone() for t in tensors]

    before, old, training = state(), grads(), module.training
    result = answer(module, x)
    kept = [
        (a is None) == (b is None) and (a is None or torch.equal(a, b))
        for a, b in zip(old, grads(), strict=True)
    ]
    return {
        "result": tuple(result) if isinstance(result, list) else result,
        "side effect: .grad of the parameters or of x was changed": not all(kept),
        "side effect: the module or x was changed": state() != before or module.training != training,
    }


def _unreached_case(label: str, make_module: Callable, n: int, data: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        module = make_module()
        for number, p in enumerate(module.parameters()):
            p.grad = None if number % 2 else torch.full_like(p, 7.0)  # from an earlier backward
        return module, torch.rand(2, n, generator=generator).requires_grad_(not data)

    return Case(label, make)


_UNREACHED = """
def unreached(module, x):
    loss = module(x).sum()
    named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    if not {test}:
        return {names}
    grads = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    return [name for (name, _), g in zip(named, grads) if g is None]
"""

unreached = Exercise(
    name="unreached",
    chapter="51",
    title="Who gets no gradient?",
    minutes=10,
    difficulty=2,
    statement="""
Write `unreached(module, x)`: it returns the list of names of the parameters that require grad and get **no**
gradient (`None`, not zeros) from `module(x).sum()`, in the order of `named_parameters()`.

Every `.grad` stays as it was, whatever it held, also that of `x`. The result of the module may not require
grad at all. Then no parameter is reached. At least one parameter requires grad. For the layer `peek` of the
chapter the answer is `["weights"]`.
""",
    kind="function",
    starter="""
def unreached(module, x):
    ...
""",
    answer="unreached",
    hints=(
        "Which call gives gradients without touching `.grad`? It has an option for inputs that are not "
        "reached.",
        "`torch.autograd.grad(loss, parameters, allow_unused=True)` returns `None` for them. Leave frozen "
        "parameters out before.",
        "If `loss.requires_grad` is False, `autograd.grad` would raise: return all names then.",
    ),
    reference=_UNREACHED.format(test="loss.requires_grad", names="[name for name, _ in named]"),
    other_right=(
        """
import copy

def unreached(module, x):
    module = copy.deepcopy(module)
    module.zero_grad(set_to_none=True)
    loss = module(x.detach()).sum()
    if loss.requires_grad:
        loss.backward()
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
""",
    ),
    explains=(
        "`autograd.grad` with `allow_unused=True` answers `None` for what is not reached, and leaves "
        "every `.grad` alone."
    ),
    mistakes=(
        Mistake(
            "old gradients",
            "You look at `.grad` after `backward()`. It was changed by your function, and a value from an "
            "earlier backward hides a parameter that gets nothing now.",
            """
def unreached(module, x):
    loss = module(x).sum()
    if loss.requires_grad:
        loss.backward()
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
""",
        ),
        Mistake(
            "grads cleared",
            "The names are right, but `.grad` is not as it was before the call.",
            """
def unreached(module, x):
    module.zero_grad()
    old = x.grad
    loss = module(x).sum()
    if loss.requires_grad:
        loss.backward()
    x.grad = old
    return [n for n, p in module.named_parameters() if p.requires_grad and p.grad is None]
""",
        ),
        Mistake(
            "frozen ones too",
            "Frozen parameters are in your list. Only those that require grad were asked for.",
            """
def unreached(module, x):
    loss = module(x).sum()
    named = [(n, p) for n, p in module.named_parameters()]
    if not loss.requires_grad:
        return [n for n, p in named]
    live = [p for n, p in named if p.requires_grad]
    grads = iter(torch.autograd.grad(loss, live, allow_unused=True))
    return [n for n, p in named if not p.requires_grad or next(grads) is None]
""",
        ),
        Mistake(
            "zeros count",
            "A gradient of zeros is in your list. The parameter is reached, its slope is zero here.",
            """
def unreached(module, x):
    loss = module(x).sum()
    named = [(n, p) for n, p in module.named_parameters() if p.requires_grad]
    if not loss.requires_grad:
        return [n for n, p in named]
    grads = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    return [n for (n, _), g in zip(named, grads) if g is None or not g.any()]
""",
        ),
        Mistake(
            "no history",
            "It fails where the result does not require grad. Then no parameter is reached: return all "
            "names.",
            _UNREACHED.format(test="True", names="[]"),
        ),
        Mistake(
            "nothing to say",
            "Where the result does not require grad, your list is empty. No parameter is reached then, so "
            "all belong there.",
            _UNREACHED.format(test="loss.requires_grad", names="[]"),
        ),
        Mistake(
            "graph walked",
            "You ask which parameters have a node in the graph. A Function may return `None` for one that is "
            "there, and then it gets nothing.",
            """
def unreached(module, x):
    loss = module(x).sum()
    seen, waiting = set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [target for target, _ in node.next_functions]
    reached = {node.variable for node in seen if hasattr(node, "variable")}
    return [n for n, p in module.named_parameters() if p.requires_grad and p not in reached]
""",
        ),
    ),
    cases=(
        _unreached_case("the example", lambda: _Peek(3), 3),
        _unreached_case("all are reached", lambda: nn.Sequential(_Layer(3), nn.ReLU(), _Layer(3)), 3),
        _unreached_case("a Function that returns None for its weights", lambda: _Layer(3, slope=None), 3),
        _unreached_case("shared, never called, frozen, and zero", _Pair, 3),
        _unreached_case("data first, and nothing recorded", lambda: _Peek(2), 2, data=True),
        _unreached_case("data first, one of two", lambda: nn.Sequential(_Peek(2), _Layer(2)), 2, data=True),
    ),
    observe=_observe_module_function,
)


# ------------------------------------------------------------------ gradcheck, one parameter at a time


def _suspects_case(label: str, make_module: Callable, n: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return make_module(), torch.rand(2, n, generator=generator) + 0.5

    return Case(label, make)


_SUSPECTS = """
import copy

def suspects(module, x):
    {before}
    found = []
    for name, p in module.named_parameters():
        def function(value):
            return torch.func.functional_call(module, {{{key}: value}}, (x,))
        value = {value}
        if not torch.autograd.gradcheck(function, {inputs}, raise_exception=False):
            found.append(name)
    return found
"""


def _suspects(
    before="module, x = copy.deepcopy(module).double(), x.double()",
    key="name",
    value="p.detach().clone().requires_grad_()",
    inputs="(value,)",
) -> str:
    return _SUSPECTS.format(before=before, key=key, value=value, inputs=inputs)


suspects = Exercise(
    name="suspects",
    chapter="51",
    title="Which parameter has a wrong gradient?",
    minutes=10,
    difficulty=3,
    statement="""
Write `suspects(module, x)`: it runs `gradcheck` for each parameter **alone**, in double precision, and
returns the list of names for which it fails, in the order of `named_parameters()`.

`module` and `x` hold single precision, and must come out as they went in. The modules are smooth near `x`,
every parameter requires grad, and there are no random layers. For `PeekLayer(torch.ones(3))` the answer is
`["weights"]`.
""",
    kind="function",
    starter="""
def suspects(module, x):
    ...
""",
    answer="suspects",
    hints=(
        "`functional_call(module, {name: value}, (x,))` replaces one parameter. The others stay the "
        "module's own.",
        "Work on `copy.deepcopy(module).double()`, and on `x.double()`.",
        "`gradcheck(..., raise_exception=False)` returns `False` instead of raising. The value it varies "
        "must require grad: `p.detach().clone().requires_grad_()`.",
    ),
    reference=_suspects(),
    other_right=(
        """
import copy

def suspects(module, x):
    module = copy.deepcopy(module).double()
    found = []
    for name, p in module.named_parameters():
        try:
            torch.autograd.gradcheck(
                lambda v: torch.func.functional_call(module, {name: v}, x.double()), p)
        except RuntimeError:
            found.append(name)
    return found
""",
    ),
    explains=(
        "`functional_call` replaces one parameter, so `gradcheck` varies that one. The copy takes the "
        "change to double."
    ),
    mistakes=(
        Mistake(
            "module converted",
            "The names are right, but the module that was passed is in double precision now. Convert a copy.",
            _suspects(before="module, x = module.double(), x.double()"),
        ),
        Mistake(
            "all of them",
            "Every parameter is in your list, the right ones too: your check fails where it should pass. Two "
            "usual causes: single precision, where the differences are noise, and a value that does not "
            "require grad.",
            _suspects(before="module = copy.deepcopy(module)"),
        ),
        Mistake(
            "all or nothing",
            "You check all parameters in one call: if one is wrong, all are named. Check one at a time.",
            """
import copy

def suspects(module, x):
    module, x = copy.deepcopy(module).double(), x.double()
    names = [name for name, _ in module.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in module.parameters()]
    def function(*values):
        return torch.func.functional_call(module, dict(zip(names, values)), (x,))
    return [] if torch.autograd.gradcheck(function, values, raise_exception=False) else names
""",
        ),
        Mistake(
            "only the input",
            "Your list is always empty. `gradcheck` varies its arguments; the parameters must be among "
            "them, by `functional_call`.",
            """
import copy

def suspects(module, x):
    module = copy.deepcopy(module).double()
    x = x.double().requires_grad_()
    ok = torch.autograd.gradcheck(module, (x,), raise_exception=False)
    return [] if ok else [name for name, _ in module.named_parameters()]
""",
        ),
        Mistake(
            "missing only",
            "You find parameters that get no gradient, but not those that get a wrong one.",
            """
def suspects(module, x):
    y = module(x).sum()
    named = list(module.named_parameters())
    if not y.requires_grad:
        return [n for n, _ in named]
    grads = torch.autograd.grad(y, [p for _, p in named], allow_unused=True)
    return [n for (n, _), g in zip(named, grads) if g is None]
""",
        ),
    ),
    cases=(
        _suspects_case("the example", lambda: _Peek(3), 3),
        _suspects_case(
            "the second of three has a wrong slope",
            lambda: nn.Sequential(_Layer(3), _Layer(3, slope=2.0), _Layer(3)),
            3,
        ),
        _suspects_case("all are right", lambda: nn.Sequential(nn.Linear(2, 2), nn.Tanh(), _Layer(2)), 2),
        _suspects_case(
            "one returns None", lambda: nn.Sequential(_Layer(2), nn.Sigmoid(), _Layer(2, slope=None)), 2
        ),
        _suspects_case("no parameters", nn.Tanh, 2),
    ),
    observe=_observe_module_function,
)


EXERCISES = (
    saved_keys,
    linear_module,
    learned_swish,
    running_center,
    never_learns,
    unreached,
    suspects,
)

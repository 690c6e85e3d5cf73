"""Exercises of chapter 42: the error clinic."""

from collections.abc import Callable

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from ._model import Case, Exercise, Mistake
from ._observe import observe_call

one_message = Exercise(
    name="one_message",
    chapter="42",
    title="Predict: one message, four programs",
    minutes=3,
    difficulty=2,
    statement="""
> one of the variables needed for gradient computation has been modified by an inplace operation:
> [torch.FloatTensor [4, 3]], which is output 0 of Relu, is at version 3; expected version 1 instead.

`x` and `w` are leaves of shape (4, 3) that require grad, and `y.sum().backward()` follows each of these
lines. All four raise. Which of them gives this message?
""",
    kind="choice",
    starter="program = ...",
    answer="program",
    hints=(
        "The two versions tell *when*: how many changes came before the value was saved, and how many after.",
        "`sin` saves its input, `exp` its result. Which tensor is it, and what changed it last?",
        "For a saved input the message names the operation that changed it last.",
    ),
    choices={
        "a": "`h = (x * w).relu_(); y = h.sin(); h.add_(1); h.mul_(2)`",
        "b": "`h = (x * w).mul_(2); y = h.sin(); h.add_(1); h.relu_()`",
        "c": "`h = x * w; y = h.sin(); h.mul_(2); h.add_(1); h.relu_()`",
        "d": "`h = (x * w).mul_(2); y = h.exp(); y.add_(1); y.relu_()`",
    },
    reference='program = "b"',
    explains=(
        "One change before `sin` saved `h`: expected version 1. Two changes after: version 3. The last of "
        "them was a ReLU, and both have to go, or to be made out of place. The change before is harmless."
    ),
    mistakes=(
        Mistake(
            "relu first",
            "The versions fit, but the ReLU came before the value was saved. The message names the last "
            "change of a saved input, and here it says `Mul`.",
            'program = "a"',
        ),
        Mistake(
            "three changes",
            "The name fits, but all three changes came after the value was saved: expected version 0.",
            'program = "c"',
        ),
        Mistake(
            "result saved",
            "`exp` saved its result, which was new then, and its own name stands in the message: output 0 of "
            "`Exp`, at version 2, expected version 0.",
            'program = "d"',
        ),
    ),
)


# ------------------------------------------------------------------ when does it raise?


def _observe_when(answer: object) -> dict:
    # With its letter each word is another item, so that the report counts places and not kinds of words.
    words = [str(word).strip().lower() for word in answer]
    return {"answer": tuple(f"{chr(ord('a') + i)}: {word}" for i, word in enumerate(words))}


when_it_raises = Exercise(
    name="when_it_raises",
    chapter="42",
    title="Predict: in forward, in backward, or never?",
    minutes=4,
    difficulty=2,
    statement="""
`x = torch.tensor([1.0, 4.0], requires_grad=True)`, made anew for each line. Then comes
`y.sum().backward()`.

- `a`: `y = x * x.detach()`
- `b`: `y = x.sqrt().mul_(2)`
- `c`: `y = x.sin().mul_(2)`
- `d`: `y = (x > 2) * 1.0`
- `e`: `y = x[0].mul_(2)`

Which raise in the line itself, which in `backward()`, and which never? Answer with a list of five words,
from `a` to `e`: `"forward"`, `"backward"` or `"never"`.
""",
    kind="list",
    starter="when = ...",
    answer="when",
    hints=(
        "Forward refuses what can never be right. What depends on saved values shows itself in backward.",
        "For `b` and `c`: `sqrt` saves its result, `sin` saves its input. For `a`: one factor still leads to "
        "`x`.",
        "For `d`: does `y` require grad? For `e`: `x[0]` is a view of what kind of tensor?",
    ),
    reference='when = ["never", "backward", "never", "backward", "forward"]',
    explains=(
        "`a` runs, with half the gradient of `x * x`: no message tells you. `b` spoils what `sqrt` saved. "
        "`c` spoils nothing. `d` has no graph, which only backward minds. `e` is refused at once: a view of "
        "a leaf that requires grad."
    ),
    mistakes=(
        Mistake(
            "detach ends all",
            "In `a` the first factor is not detached. `y` requires grad, and backward runs.",
            'when = ["backward", "backward", "never", "backward", "forward"]',
        ),
        Mistake(
            "sin like sqrt",
            "In `c` the *result* of `sin` is changed, and `sin` saved its input.",
            'when = ["never", "backward", "backward", "backward", "forward"]',
        ),
        Mistake(
            "sqrt like sin",
            "In `b` the changed tensor is what `sqrt` saved: its slope is computed from the result.",
            'when = ["never", "never", "never", "backward", "forward"]',
        ),
        Mistake(
            "noticed at once",
            "In `b` nothing is wrong yet when `mul_` runs. Backward compares the versions.",
            'when = ["never", "forward", "never", "backward", "forward"]',
        ),
        Mistake(
            "comparison refused",
            "In `d` forward is content: a comparison is allowed, and its result has no graph. Backward has "
            "nowhere to start.",
            'when = ["never", "backward", "never", "forward", "forward"]',
        ),
        Mistake(
            "nothing to do",
            "In `d` `y` has no graph, so `y.sum()` has none, and backward has nowhere to start: it says "
            '"element 0 of tensors does not require grad".',
            'when = ["never", "backward", "never", "never", "forward"]',
        ),
        Mistake(
            "leaf noticed late",
            "In `e` the rule needs no saved value: a leaf that requires grad is not changed in place, nor is "
            "a view of it. Torch says so at once.",
            'when = ["never", "backward", "never", "backward", "backward"]',
        ),
        Mistake(
            "one element of a leaf",
            "In `e`, `x[0]` lies on the memory of `x`, a leaf that requires grad. One element is enough.",
            'when = ["never", "backward", "never", "backward", "never"]',
        ),
    ),
    observe=_observe_when,
)


# ------------------------------------------------------------------ a graph carried into the next step


def _observe_center(answer: Callable, net: nn.Module, xs: list[torch.Tensor]) -> dict:
    parameters = list(net.parameters())
    center = torch.zeros(2, dtype=xs[0].dtype)
    centers, gradients, attached = [], [], 0
    for x in xs:
        center = answer(net, x, center)
        centers.append(center.detach().clone())
        attached += center.requires_grad
        found = [p.grad for p in parameters]
        gradients.append(None if None in found else torch.cat([g.flatten() for g in found]))
        # In the place of an optimizer: an update that is the same whatever the gradient is, so that a wrong
        # gradient does not show as wrong centers.
        for p in parameters:
            p.grad = None
            with torch.no_grad():
                p.mul_(0.9)
    return {
        "center after each step": centers,
        "gradient of each step": gradients,
        "number of returned centers with a graph": attached,
    }


def _center_case(label: str, steps: int, rows: int = 4, dtype: torch.dtype = torch.float32) -> Case:
    def make(generator: torch.Generator) -> tuple:
        net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).to(dtype)
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape, generator=generator))
        return net, [torch.randn(rows, 2, generator=generator, dtype=dtype) for _ in range(steps)]

    return Case(label, make)


moving_center = Exercise(
    name="moving_center",
    chapter="42",
    title="Repair: a step that drags the last one along",
    minutes=8,
    difficulty=2,
    statement="""
A network is trained to keep its outputs near their moving average:

```python
def step(net, x, center):
    h = net(x)
    center = 0.9 * center + 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward()
    return center
```

The training loop hands the returned center to the next call, and the optimizer steps between two calls. The
second call raises "Trying to backward through the graph a second time". Repair `step`. All numbers of the
centers stay as they were meant. Each step uses the gradient of its own loss: through `h`, and through the
share of `h` in the center, but not into earlier steps. The returned center has no graph.
`retain_graph=True` is no way out.
""",
    kind="function",
    starter="def step(net, x, center):\n    ...",
    answer="step",
    hints=(
        "Which of the three arguments brings a graph along from the step before?",
        "Its numbers are needed, its graph is not. But `0.1 * h.mean(dim=0)` belongs to this step.",
        "Return `center.detach()`, after `backward()`.",
    ),
    reference="""
def step(net, x, center):
    h = net(x)
    center = 0.9 * center + 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward()
    return center.detach()
""",
    other_right=(
        """
def step(net, x, center):
    h = net(x)
    center = center.detach().lerp(h.mean(dim=0), 0.1)
    torch.nn.functional.mse_loss(h, center.expand_as(h), reduction="sum").backward()
    with torch.no_grad():
        return center.clone()
""",
    ),
    explains=(
        "The returned center led to the graph of the step that made it, and that graph is freed. Cut where "
        "one step ends and the next begins, and nowhere else."
    ),
    mistakes=(
        Mistake(
            "as before",
            "The second call still walks into the graph of the first: the center that goes from step to step "
            "still leads there.",
            """
def step(net, x, center):
    h = net(x)
    center = 0.9 * center + 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward()
    return center
""",
        ),
        Mistake(
            "retain_graph",
            "`retain_graph=True` changes the message and leaves the mistake: backward still walks into the "
            "step before, and meets weights that the optimizer has changed since.",
            """
def step(net, x, center):
    h = net(x)
    center = 0.9 * center + 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward(retain_graph=True)
    return center
""",
        ),
        Mistake(
            "all detached",
            "The centers are right, but too much is cut off: this step's own share of the center, "
            "`0.1 * h.mean(dim=0)`, gives no gradient any more.",
            """
def step(net, x, center):
    h = net(x)
    center = (0.9 * center + 0.1 * h.mean(dim=0)).detach()
    ((h - center) ** 2).sum().backward()
    return center
""",
        ),
        Mistake(
            "returned with its graph",
            "It runs, and the gradients are right. But the center that you return still keeps the graph of "
            "its step alive. Detach it.",
            """
def step(net, x, center):
    h = net(x)
    center = 0.9 * center.detach() + 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward()
    return center
""",
        ),
        Mistake(
            "center stays",
            "You return the center that you were given. The average must move on.",
            """
def step(net, x, center):
    h = net(x)
    moved = 0.9 * center + 0.1 * h.mean(dim=0)
    ((h - moved) ** 2).sum().backward()
    return center
""",
        ),
        Mistake(
            "past forgotten",
            "The past centers are gone, with their graph and with their numbers. The numbers must go on.",
            """
def step(net, x, center):
    h = net(x)
    center = 0.1 * h.mean(dim=0)
    ((h - center) ** 2).sum().backward()
    return center.detach()
""",
        ),
        Mistake(
            "no backward",
            "The center moves, but no gradient arrives at the parameters: `backward()` is missing.",
            """
def step(net, x, center):
    h = net(x)
    return (0.9 * center + 0.1 * h.mean(dim=0)).detach()
""",
        ),
    ),
    cases=(
        _center_case("three steps", 3),
        _center_case("one step", 1),
        _center_case("a batch of one row", 3, rows=1),
        _center_case("float64", 2, dtype=torch.float64),
    ),
    observe=_observe_center,
)


# ------------------------------------------------------------------ one change out of place

ENOUGH = 4


class _Counter(TorchDispatchMode):
    """Counts the tensors with memory of their own that operations make."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        given = [a for a in (*args, *(kwargs or {}).values()) if isinstance(a, torch.Tensor)]
        memories = {a.untyped_storage().data_ptr() for a in given}
        for one in result if isinstance(result, list | tuple) else (result,):
            # Numbers in tensors without dimensions are not what this is about.
            if isinstance(one, torch.Tensor) and one.dim():
                self.made += one.untyped_storage().data_ptr() not in memories
        return result


def _observe_attend(answer: Callable, *arguments: torch.Tensor) -> dict:
    counter = _Counter()

    def watched(*given: torch.Tensor) -> torch.Tensor:
        with counter:
            return answer(*given)

    seen = observe_call(watched, *arguments)
    result, error = seen["result"], None
    gradients = [None, None, None]
    if isinstance(result, torch.Tensor) and result.requires_grad:
        cotangent = torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
        try:
            gradients = torch.autograd.grad(result, arguments[:3], cotangent, allow_unused=True)
        except RuntimeError as raised:
            # Torch names the tensor after the first sentence: that part is what to read.
            error = str(raised).partition("which is ")[2].partition(" instead")[0] or str(raised)
    return {
        "result": result,
        "error in backward": error,
        **{f"gradient for {name}": g for name, g in zip("qkv", gradients, strict=True)},
        **seen,
        "number of new tensors": max(counter.made, ENOUGH),
    }


def _attend_case(label: str, n: int, m: int, d: int, dtype=torch.float32, turned: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        def draw(*shape: int) -> torch.Tensor:
            return torch.randn(shape, generator=generator, dtype=dtype)

        q = draw(d, n).t() if turned else draw(n, d)
        keep = 2.0 * torch.randint(0, 2, (n, m), generator=generator).to(dtype)
        keep[0, 0], keep[-1, -1] = 0.0, 2.0
        return q.requires_grad_(), draw(m, d).requires_grad_(), draw(m, d).requires_grad_(), keep

    return Case(label, make)


ATTEND = """
def attend(q, k, v, keep):
    scores = q @ k.t()
    {scale}
    p = scores.softmax(dim=1)
    {drop}
    {add}
"""
DROP, ADD = "dropped = p * keep", "out = dropped @ v\n    return out.add_(q)"


def _attend(drop: str = DROP, add: str = ADD, scale: str = "scores.div_(q.shape[1] ** 0.5)") -> str:
    return ATTEND.format(drop=drop, scale=scale, add=add)


one_out_of_place = Exercise(
    name="one_out_of_place",
    chapter="42",
    title="Repair: one line too many in place",
    minutes=6,
    difficulty=2,
    statement="""
An attention layer that saves memory by working in place three times:

```python
def attend(q, k, v, keep):
    scores = q @ k.t()
    scores.div_(q.shape[1] ** 0.5)
    p = scores.softmax(dim=1)
    p.mul_(keep)
    out = p @ v
    return out.add_(q)
```

Shapes: `q` (n, d), `k` and `v` (m, d), all three require grad; `keep` (n, m) holds 0 and 2 for a dropout,
and does not. Backward says "output 0 of Softmax, is at version 1; expected version 0". Repair it: same
values, right gradients, inputs unchanged, and **no more than four new tensors** (besides those without
dimensions). The check counts them in the forward pass.
""",
    kind="function",
    starter="def attend(q, k, v, keep):\n    ...",
    answer="attend",
    hints=(
        "Three tensors are changed in place. The message names the one that somebody had saved.",
        "The two products and the softmax make a new tensor each. One more is left for you.",
        "`dropped = p * keep`, and `dropped @ v`: what softmax saved stays as it was. The other two changes "
        "may stay.",
    ),
    reference=_attend(),
    other_right=(
        _attend("dropped = p.clone().mul_(keep)"),
        _attend(add="return torch.addmm(q, dropped, v)"),
        _attend("dropped = scores.copy_(p).mul_(keep)"),
    ),
    explains=(
        "Only softmax had saved what was changed. Nobody had saved `scores`, since a division by a number "
        "keeps nothing and softmax keeps its result. Nobody had saved `out`."
    ),
    mistakes=(
        Mistake(
            "still changed",
            "The result of softmax is still changed in place. A copy of another tensor, a copy made "
            "afterwards, or `no_grad` does not help: it is this memory that softmax needs.",
            _attend("dropped = p.mul_(keep)"),
        ),
        Mistake(
            "all out of place",
            "The values and gradients are right, but you make six new tensors. Two of the three changes were "
            "harmless.",
            _attend(add="return dropped @ v + q", scale="scores = scores / q.shape[1] ** 0.5"),
        ),
        Mistake(
            "one more than needed",
            "The values and gradients are right, but you make five new tensors, and one of them is not "
            "needed: a harmless change is out of place now, or something was copied that nobody had saved.",
            _attend(add="return dropped @ v + q"),
        ),
        Mistake(
            "data",
            "The error is gone and the mistake is not: softmax still saved this memory, and computes wrong "
            "gradients from the changed numbers. `.data` and NumPy hide a change from the version counter.",
            _attend("p.data.mul_(keep)", "return (p @ v).add_(q)"),
        ),
        Mistake(
            "detached",
            "The values are right, but `k` gets no gradient, and `q` only that of the last line: the softmax "
            "was cut off.",
            _attend("dropped = p.detach() * keep"),
        ),
        Mistake(
            "scores masked",
            "You multiplied the scores and not the result of softmax. The weights of a row then add up to 1 "
            "again, and a score of 0 still counts.",
            _attend("dropped = p", scale="scores.div_(q.shape[1] ** 0.5).mul_(keep)"),
        ),
        Mistake(
            "keep forgotten",
            "It runs, and the result is that without a dropout: `keep` no longer takes part.",
            _attend("dropped = p"),
        ),
    ),
    cases=(
        _attend_case("three rows", 3, 3, 2),
        _attend_case("two queries, four keys", 2, 4, 3),
        _attend_case("one query, two keys, d = 1", 1, 2, 1),
        _attend_case("not contiguous", 3, 2, 4, turned=True),
        _attend_case("float64", 2, 3, 2, dtype=torch.float64),
    ),
    observe=_observe_attend,
)


# ------------------------------------------------------------------ a loss of whole positions


def _observe_position(answer: Callable, heat: torch.Tensor, target: torch.Tensor) -> dict:
    before = heat.detach().clone()
    loss, metric = answer(heat, target)
    gradient = None
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, heat, allow_unused=True)
    return {
        "requires_grad of the loss": isinstance(loss, torch.Tensor) and loss.requires_grad,
        "loss": loss,
        "gradient for heat": gradient,
        "type of the metric": type(metric).__name__,
        "metric": metric,
        "side effect: heat was changed in place": not torch.equal(heat.detach(), before),
        "side effect: heat.grad was filled": heat.grad is not None,
    }


def _position_case(label: str, rows: int, n: int, dtype=torch.float32, turned=False, scale=1.0) -> Case:
    def make(generator: torch.Generator) -> tuple:
        shape = (n, rows) if turned else (rows, n)
        heat = scale * torch.randn(shape, generator=generator, dtype=dtype)
        target = torch.randint(0, n, (rows,), generator=generator)
        return (heat.t() if turned else heat).requires_grad_(), target

    return Case(label, make)


POSITION = """
def step_loss(heat, target):
    metric = (heat.argmax(dim=1) - target).abs().float().mean()
    places = torch.arange(heat.shape[1])
    p = heat.softmax(dim={dim})
    loss = {loss}
    return loss, {metric}
"""
EXPECTED = "((p * places).sum(dim=1) - target).abs().mean()"


def _position(loss: str = EXPECTED, metric: str = "metric.item()", dim: int = 1) -> str:
    return POSITION.format(loss=loss, metric=metric, dim=dim)


soft_position = Exercise(
    name="soft_position",
    chapter="42",
    title="Repair: a metric in the place of a loss",
    minutes=8,
    difficulty=2,
    statement="""
A network gives a score to each of `n` places in a row. The loss is how far the best place is off, on average:

```python
def step_loss(heat, target):
    loss = (heat.argmax(dim=1) - target).abs().float().mean()
    return loss, loss.item()
```

`loss.backward()` raises "element 0 of tensors does not require grad and does not have a grad_fn". `heat` has
the shape (rows, n) and requires grad, `target` holds integers and has the shape (rows,). Repair `step_loss`,
so that it returns two things:

- the loss, with a graph: the same formula, with the **expected place** $\\sum_i p_i\\,i$ instead of the best
  one. $p$ is the softmax over the places, which are counted from 0. A tensor without dimensions, of the
  dtype of `heat`;
- the metric, as before: how far the best place is off on average, a Python number.
""",
    kind="function",
    starter="def step_loss(heat, target):\n    ...",
    answer="step_loss",
    hints=(
        "`argmax` has no slope: a small change of `heat` changes nothing. Which line may keep it?",
        "`places = torch.arange(n)`. Multiply by `p`, and sum over the places, for each row.",
        "The distance comes last: first the expected place, then `- target`, `abs()`, `mean()`.",
    ),
    reference=_position(),
    other_right=(
        """
def step_loss(heat, target):
    places = torch.arange(heat.shape[1], dtype=heat.dtype)
    loss = torch.nn.functional.l1_loss(heat.softmax(dim=1) @ places, target.to(heat.dtype))
    with torch.no_grad():
        off = heat.max(dim=1).indices - target
    return loss, float(off.abs().double().mean())
""",
    ),
    explains=(
        "The metric may use `argmax`: nobody asks for its gradient. The loss needs a slope, and the expected "
        "place moves a little when a score does."
    ),
    mistakes=(
        Mistake(
            "as before",
            "The loss still comes from whole positions, without a graph.",
            _position("metric"),
        ),
        Mistake(
            "requires_grad_",
            "Backward would start now, and end at once: no gradient reaches `heat`. `requires_grad_()` makes "
            "the loss a leaf, and gives it no history.",
            _position("metric.clone().requires_grad_()"),
        ),
        Mistake(
            "detached",
            "The loss has the right value, and no graph: it was computed from detached numbers, or under "
            "`no_grad`.",
            _position("((p.detach() * places).sum(dim=1) - target).abs().mean()"),
        ),
        Mistake(
            "expected distance",
            "You took the expected distance, $\\sum_i p_i\\,|i - t|$. Asked was the distance of the expected "
            "place.",
            _position("(p * (places - target[:, None]).abs()).sum(dim=1).mean()"),
        ),
        Mistake(
            "no softmax",
            "The places are weighted with the scores themselves. Scores are no probabilities: softmax first.",
            _position("((heat * places).sum(dim=1) - target).abs().mean()"),
        ),
        Mistake(
            "over the rows",
            "Your softmax runs over the rows of the batch. Each row needs one of its own, over its places.",
            _position(dim=0),
        ),
        Mistake(
            "counted from 1",
            "Your places are counted from 1. Python, `argmax` and the target count from 0.",
            _position("((p * (places + 1)).sum(dim=1) - target).abs().mean()"),
        ),
        Mistake(
            "soft metric",
            "The loss is right, but the metric is its value now. It should stay the distance of the best "
            "place.",
            _position(metric="loss.item()"),
        ),
        Mistake(
            "metric as a tensor",
            "Both values are right. The metric is still a tensor: take the number out with `.item()`.",
            _position(metric="metric"),
        ),
        Mistake(
            "cross-entropy",
            "Cross-entropy has a gradient, but it is another loss: it does not know that a place nearby is "
            "better than one far away.",
            _position("torch.nn.functional.cross_entropy(heat, target)"),
        ),
        Mistake(
            "overflow",
            "The formula is right, but `exp` of a large score is infinite, and the quotient NaN. "
            "`heat.softmax(dim=1)` subtracts the largest score first.",
            _position("(((heat.exp() / heat.exp().sum(1, True)) * places).sum(dim=1) - target).abs().mean()"),
        ),
        Mistake(
            "sum",
            "The loss is the sum over the rows. The mean was asked for.",
            _position("((p * places).sum(dim=1) - target).abs().sum()"),
        ),
    ),
    cases=(
        _position_case("three rows, four places", 3, 4),
        _position_case("one row", 1, 5),
        _position_case("two places", 4, 2),
        _position_case("scores of several hundreds", 2, 3, scale=300.0),
        _position_case("not contiguous", 3, 4, turned=True),
        _position_case("float64", 2, 6, dtype=torch.float64),
    ),
    observe=_observe_position,
)


# ------------------------------------------------------------------ the first cause


def _observe_cause(answer: Callable, error: BaseException) -> dict:
    return {"id": answer(error)}


def _second_time() -> None:
    w = torch.tensor(2.0, requires_grad=True)
    loss = w * w
    loss.backward()
    loss.backward()


def _no_graph() -> None:
    torch.tensor(1.0).backward()


def _leaf_changed() -> None:
    torch.ones(2, requires_grad=True).add_(1)


def _no_key() -> None:
    {"momentum": 0.9}["lr"]


def _stop() -> None:
    raise ValueError("step 7 failed")


def _caught(call: Callable) -> Exception:
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("This call was to raise.")


def _one_after_another(*calls: Callable) -> Exception:
    """The last of several errors, each of which was raised while the one before was handled."""

    def run(calls: tuple[Callable, ...]) -> None:
        if len(calls) == 1:
            calls[0]()
        try:
            run(calls[:-1])
        except Exception:
            calls[-1]()

    return _caught(lambda: run(calls))


def _from(call: Callable, cause: Callable | None) -> Exception:
    """``raise … from``: for a cause outside of its handler, and for ``None`` inside one."""
    late, first = _caught(call), _caught(cause or _second_time)

    def stated() -> None:
        raise late from first

    def hidden() -> None:
        try:
            raise first
        except Exception:
            raise late from None

    return _caught(stated if cause else hidden)


def _cause_case(label: str, make: Callable[[], Exception]) -> Case:
    return Case(label, lambda generator: (make(),))


CHAIN = """
from inside_autograd import explain


def first_cause(error):
    chain = []
    while error is not None:
        chain.append(error)
        error = {before}
    for one in {order}:
        found = explain(one)
        if found:
            return {result}
    return None
"""
BEFORE = "error.__cause__ or (None if error.__suppress_context__ else error.__context__)"


def _chain(before: str = BEFORE, order: str = "reversed(chain)", result: str = "found.id") -> str:
    return CHAIN.format(before=before, order=order, result=result)


first_cause = Exercise(
    name="first_cause",
    chapter="42",
    title="The first cause",
    minutes=10,
    difficulty=3,
    statement="""
An error that is raised while another is handled carries it along: Python prints a chain, the first error on
top. `explain(error)` goes through the chain from the last error back, and stops at one that it knows. Often
the first one tells more: the later ones came of it.

Write `first_cause(error)`: the `id` of the catalogue's entry for the **earliest** error in the chain that
the catalogue knows, or `None` if it knows none. `error` is an exception, the last of
its chain. The one before an error is its `__cause__`; if that is `None`, its `__context__`, unless
`__suppress_context__` is true (`raise … from None`). Give `explain` each error itself; what it returns is
false if the message is unknown.
""",
    kind="function",
    starter="from inside_autograd import explain\n\n\ndef first_cause(error):\n    ...",
    answer="first_cause",
    hints=(
        "First collect the chain in a list: the error, the one before it, the one before that, up to `None`.",
        "Then ask `explain` about each, from the end of your list. The first explanation that is true wins.",
        "One step back: `error.__cause__ or (None if error.__suppress_context__ else error.__context__)`.",
    ),
    reference=_chain(),
    other_right=(
        """
from inside_autograd import explain


def first_cause(error):
    before = error.__cause__
    if before is None and not error.__suppress_context__:
        before = error.__context__
    earlier = first_cause(before) if before is not None else None
    return earlier or explain(error).id
""",
    ),
    explains=(
        "From the first error on, the first that is known. What comes after it is often only its echo: a "
        "handler that could not cope, a wrapper that says in which step."
    ),
    mistakes=(
        Mistake(
            "last known",
            "Where the chain holds two known errors, this is the later one. It is what `explain(error)` "
            "gives by itself.",
            """
from inside_autograd import explain


def first_cause(error):
    return explain(error).id
""",
        ),
        Mistake(
            "first only",
            "You look at the first error of the chain alone. If that is unknown, the next one is asked for.",
            _chain(order="chain[-1:]"),
        ),
        Mistake(
            "from None followed",
            "You go on past an error that was raised `from None`. Its author says that what came before "
            "does not matter: `__suppress_context__` is true.",
            _chain("error.__cause__ or error.__context__"),
        ),
        Mistake(
            "cause only",
            "You follow `__cause__` alone. It is set by `raise … from …`; an error that is raised in a "
            "handler without `from` has a `__context__`.",
            _chain("error.__cause__"),
        ),
        Mistake(
            "context only",
            "You follow `__context__` alone. Outside of a handler `raise late from first` sets `__cause__` "
            "and no context, and `raise … from None` leaves a context that should not be followed.",
            _chain("error.__context__"),
        ),
        Mistake(
            "one back",
            "You look one error back. The chain may be longer.",
            f"""
from inside_autograd import explain


def first_cause(error):
    before = {BEFORE}
    return (explain(before).id if before else None) or explain(error).id
""",
        ),
        Mistake(
            "the explanation",
            "You return the whole explanation. Its `id` was asked for.",
            _chain(result="found"),
        ),
        Mistake(
            "title",
            "You return a title. Titles may change; the `id` is stable.",
            _chain(result="found.entry.title"),
        ),
    ),
    cases=(
        _cause_case(
            '"a second time", and then `ValueError("step 7 failed")`',
            lambda: _one_after_another(_second_time, _stop),
        ),
        _cause_case("one error alone", lambda: _caught(_leaf_changed)),
        _cause_case("two known errors", lambda: _one_after_another(_second_time, _no_graph)),
        _cause_case("three known errors", lambda: _one_after_another(_leaf_changed, _second_time, _no_graph)),
        _cause_case(
            "an unknown one, a known one, an unknown one",
            lambda: _one_after_another(_no_key, _leaf_changed, _stop),
        ),
        _cause_case("only unknown ones", lambda: _one_after_another(_no_key, _stop)),
        _cause_case("`raise late from first`", lambda: _from(_no_graph, _second_time)),
        _cause_case("`raise … from None`", lambda: _from(_leaf_changed, None)),
    ),
    observe=_observe_cause,
)

EXERCISES = (one_message, when_it_raises, moving_center, one_out_of_place, soft_position, first_cause)

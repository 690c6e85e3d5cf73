"""Exercises of chapter 22: gradient accumulation."""

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import nn

from ._model import Case, Exercise, Mistake

mean_of_means = Exercise(
    name="mean_of_means",
    chapter="22",
    title="Predict: a mean of means",
    minutes=4,
    difficulty=1,
    statement="""
`w = 1`. A batch holds the five numbers 1, 1, 1, 1, 5, and the loss is `(w * batch).mean()`. Somebody
splits it into micro-batches of four and of one, divides each mean loss by 2, and calls backward on both.

What is `w.grad` for the full batch, and what after the two micro-batches? Write both numbers in order.
""",
    kind="list",
    starter="two_gradients = (..., ...)",
    answer="two_gradients",
    hints=(
        "The gradient of `(w * batch).mean()` for `w` is the mean of the batch.",
        "The two micro-batches have means 1 and 5, and each counts one half.",
    ),
    reference="two_gradients = (1.8, 3.0)",
    other_right=("two_gradients = (9 / 5, 3)",),
    explains=(
        "The full batch gives 9 / 5 = 1.8, the micro-batches (1 + 5) / 2 = 3. The lonely 5 counts as much "
        "as the four others together."
    ),
    mistakes=(
        Mistake(
            "equal",
            "They would agree if the micro-batches had the same size. Here the single 5 gets half of the "
            "weight.",
            "two_gradients = (1.8, 1.8)",
        ),
        Mistake(
            "not divided",
            "The second number is the plain sum of the two means. Each loss was divided by 2.",
            "two_gradients = (1.8, 6.0)",
        ),
        Mistake(
            "sums",
            "These are sums over the elements. The loss is a mean.",
            "two_gradients = (9.0, 9.0)",
        ),
        Mistake(
            "order",
            "Both numbers are right, in the wrong order: the full batch comes first.",
            "two_gradients = (3.0, 1.8)",
        ),
    ),
)


# ------------------------------------------------------------------ exact accumulation


def _observe_accumulation(answer, model, x: torch.Tensor, y: torch.Tensor, sizes: list[int]) -> dict:
    largest = 0

    def watch(module, arguments):
        nonlocal largest
        largest = max(largest, len(arguments[0]))

    handle = model.register_forward_pre_hook(watch)
    try:
        answer(model, list(x.split(sizes)), list(y.split(sizes)))
    finally:
        handle.remove()
    return {
        "gradient of the weight": model.weight.grad,
        "gradient of the bias": model.bias.grad,
        "side effect: the model saw more than one micro-batch at once": largest > max(sizes),
        "side effect: a parameter was changed": not torch.equal(
            model.weight.detach(), torch.full_like(model.weight, 0.5)
        ),
    }


def _accumulation_case(label: str, *sizes: int, before: float | None = None) -> Case:
    def make(generator: torch.Generator) -> tuple:
        count = sum(sizes)
        model = nn.Linear(2, 1)
        nn.init.constant_(model.weight, 0.5)
        nn.init.zeros_(model.bias)
        if before is not None:
            model.weight.grad = torch.full_like(model.weight, before)
        x = torch.randn(count, 2, generator=generator)
        return model, x, torch.randn(count, 1, generator=generator), list(sizes)

    return Case(label, make)


exact_accumulation = Exercise(
    name="exact_accumulation",
    chapter="22",
    title="Unequal micro-batches, exactly",
    minutes=8,
    difficulty=2,
    statement="""
`xs` and `ys` are lists of micro-batches of different sizes. Write `accumulate(model, xs, ys)`: afterwards
the parameters' `.grad` holds the gradient of the **mean** squared error over **all** elements, as if the
full batch had been used. The model may see one micro-batch at a time, never more. Clear old gradients
first; take no step.

The squared error of one micro-batch is `(model(x) - y) ** 2`.
""",
    kind="function",
    starter="def accumulate(model, xs, ys):\n    ...",
    answer="accumulate",
    hints=(
        "The full loss is the sum of all squared errors, divided by the number of all elements.",
        "So take the **sum** in each micro-batch, and divide by the total count, which you know beforehand.",
        "`total = sum(y.numel() for y in ys)`, then `((model(x) - y) ** 2).sum() / total` for each.",
    ),
    reference="""
def accumulate(model, xs, ys):
    model.zero_grad()
    total = sum(y.numel() for y in ys)
    for x, y in zip(xs, ys):
        loss = ((model(x) - y) ** 2).sum() / total
        loss.backward()
""",
    other_right=(
        """
def accumulate(model, xs, ys):
    model.zero_grad()
    total = sum(len(y) for y in ys)
    for x, y in zip(xs, ys):
        weight = len(y) / total
        (weight * ((model(x) - y) ** 2).mean()).backward()
""",
        """
def accumulate(model, xs, ys):
    for p in model.parameters():
        p.grad = None
    total = sum(y.numel() for y in ys)
    losses = [((model(x) - y) ** 2).sum() for x, y in zip(xs, ys)]
    (sum(losses) / total).backward()
""",
    ),
    explains=(
        "A mean over everything weighs each element the same. Dividing each micro-batch's sum by the total "
        "count does that, whatever the sizes are."
    ),
    mistakes=(
        Mistake(
            "divided by their number",
            "You divided each mean by the number of micro-batches. That is right only when all have the "
            "same size: here elements of small micro-batches count more.",
            """
def accumulate(model, xs, ys):
    model.zero_grad()
    for x, y in zip(xs, ys):
        (((model(x) - y) ** 2).mean() / len(xs)).backward()
""",
        ),
        Mistake(
            "means added",
            "You added up the means. `.grad` is the sum over the micro-batches, so it grows with their "
            "number.",
            """
def accumulate(model, xs, ys):
    model.zero_grad()
    for x, y in zip(xs, ys):
        ((model(x) - y) ** 2).mean().backward()
""",
        ),
        Mistake(
            "sum",
            "This is the gradient of the sum, the mean was asked for: off by a factor of the number of all "
            "elements.",
            """
def accumulate(model, xs, ys):
    model.zero_grad()
    for x, y in zip(xs, ys):
        ((model(x) - y) ** 2).sum().backward()
""",
        ),
        Mistake(
            "cleared each time",
            "You cleared the gradient before each micro-batch, so only the last one is left.",
            """
def accumulate(model, xs, ys):
    total = sum(y.numel() for y in ys)
    for x, y in zip(xs, ys):
        model.zero_grad()
        (((model(x) - y) ** 2).sum() / total).backward()
""",
        ),
        Mistake(
            "old gradients kept",
            "Right for a fresh model. Old gradients were there in one case, and you added to them: clear "
            "them first.",
            """
def accumulate(model, xs, ys):
    total = sum(y.numel() for y in ys)
    for x, y in zip(xs, ys):
        (((model(x) - y) ** 2).sum() / total).backward()
""",
        ),
        Mistake(
            "full batch",
            "The gradient is right, but the model saw the whole batch at once. The point is to need memory "
            "for one micro-batch only.",
            """
def accumulate(model, xs, ys):
    model.zero_grad()
    x, y = torch.cat(xs), torch.cat(ys)
    ((model(x) - y) ** 2).mean().backward()
""",
        ),
    ),
    cases=(
        _accumulation_case("sizes 4 and 1", 4, 1),
        _accumulation_case("one micro-batch", 3),
        _accumulation_case("equal sizes", 2, 2, 2),
        _accumulation_case("sizes 1, 5, 2", 1, 5, 2),
        _accumulation_case("an old gradient in place", 4, 1, before=3.0),
    ),
    observe=_observe_accumulation,
)


# ------------------------------------------------------------------ the training loop


class _Recorder(torch.optim.SGD):
    """Plain gradient descent that notes which gradient each step used."""

    def __init__(self, parameters, lr: float):
        super().__init__(parameters, lr=lr)
        self.used: list = []

    def step(self, closure=None):
        self.used.append([_copy(p.grad) for group in self.param_groups for p in group["params"]])
        return super().step(closure)


def _copy(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().clone()


def _observe_loop(answer, values: list[float], dirty: bool) -> dict:
    w = nn.Parameter(torch.tensor(1.0))
    optimizer = _Recorder([w], lr=0.25)
    if dirty:
        w.grad = torch.tensor(8.0)
    answer(optimizer, [lambda v=v: (w - v) ** 2 for v in values])
    return {
        "number of steps": len(optimizer.used),
        "gradients used by the steps": tuple(used[0] for used in optimizer.used),
        "weight at the end": w.detach(),
    }


def _loop_case(label: str, values: list[float], dirty: bool = False) -> Case:
    return Case(label, lambda generator: (values, dirty))


missing_zero_grad = Exercise(
    name="missing_zero_grad",
    chapter="22",
    title="Find the missing zero_grad",
    minutes=4,
    difficulty=1,
    statement="""
This loop learns worse and worse:

`for loss_of_step in losses:`\\
`    loss_of_step().backward()`\\
`    optimizer.step()`

Write `train(optimizer, losses)` with the repair. `losses` is a list of functions, each of which runs a
forward pass and returns the loss of one step. Every step must use the gradient of its own loss alone,
also the first, whoever used the parameters before.
""",
    kind="function",
    starter="def train(optimizer, losses):\n    ...",
    answer="train",
    hints=(
        "`.grad` adds up over calls of backward. Who empties it?",
        "`optimizer.zero_grad()` may stand anywhere but between `backward()` and `step()`.",
        "If something was in `.grad` before the loop, only a call at the start of the body clears it in "
        "time.",
    ),
    reference="""
def train(optimizer, losses):
    for loss_of_step in losses:
        optimizer.zero_grad()
        loss_of_step().backward()
        optimizer.step()
""",
    other_right=(
        """
def train(optimizer, losses):
    for loss_of_step in losses:
        loss = loss_of_step()
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
""",
    ),
    explains=(
        "Clear, backward, step. At the start of the body it also clears what a validation pass or an "
        "earlier loop may have left."
    ),
    mistakes=(
        Mistake(
            "between",
            "`zero_grad` stands between `backward` and `step`: it deletes the gradient, and the step does "
            "nothing.",
            """
def train(optimizer, losses):
    for loss_of_step in losses:
        loss_of_step().backward()
        optimizer.zero_grad()
        optimizer.step()
""",
        ),
        Mistake(
            "as before",
            "This is the loop from the statement: each step uses the sum of all gradients so far.",
            """
def train(optimizer, losses):
    for loss_of_step in losses:
        loss_of_step().backward()
        optimizer.step()
""",
        ),
        Mistake(
            "at the end",
            "Clearing after the step is fine once the loop runs. But the first step also used what was in "
            "`.grad` before: clear at the start.",
            """
def train(optimizer, losses):
    for loss_of_step in losses:
        loss_of_step().backward()
        optimizer.step()
        optimizer.zero_grad()
""",
        ),
        Mistake(
            "before the loop",
            "You cleared once, before the loop. From the second step on, the gradients add up.",
            """
def train(optimizer, losses):
    optimizer.zero_grad()
    for loss_of_step in losses:
        loss_of_step().backward()
        optimizer.step()
""",
        ),
        Mistake(
            "one step",
            "You take one step with the gradients of all losses. Each loss has a step of its own.",
            """
def train(optimizer, losses):
    optimizer.zero_grad()
    for loss_of_step in losses:
        loss_of_step().backward()
    optimizer.step()
""",
        ),
    ),
    cases=(
        _loop_case("three steps", [3.0, -1.0, 2.0]),
        _loop_case("one step", [5.0]),
        _loop_case("an old gradient in place", [3.0, -1.0], dirty=True),
    ),
    observe=_observe_loop,
)


# ------------------------------------------------------------------ clipping


def _observe_clip(answer, micro: list[list[float]], limit: float, dirty: bool) -> dict:
    w = nn.Parameter(torch.ones(2))
    optimizer = _Recorder([w], lr=1.0)
    if dirty:
        w.grad = torch.full_like(w, 8.0)
    answer(optimizer, [w], [lambda m=m: (w * torch.tensor(m)).sum() for m in micro], limit)
    return {
        "number of steps": len(optimizer.used),
        "gradient used by the step": optimizer.used[0][0] if optimizer.used else None,
        "weight at the end": w.detach(),
    }


def _clip_case(label: str, micro: list[list[float]], limit: float, dirty: bool = False) -> Case:
    return Case(label, lambda generator: (micro, limit, dirty))


clip_once = Exercise(
    name="clip_once",
    chapter="22",
    title="Clip at the right place",
    minutes=6,
    difficulty=2,
    statement="""
Write `step(optimizer, parameters, losses, limit)`. `losses` is a list of functions, each of which returns
the loss of one micro-batch; their **sum** is the loss of the step. Clear the gradients, accumulate over
all micro-batches, clip the norm of the result to `limit` with `torch.nn.utils.clip_grad_norm_`, and take
one step.
""",
    kind="function",
    starter="def step(optimizer, parameters, losses, limit):\n    ...",
    answer="step",
    hints=(
        "Which gradient should be limited: that of each micro-batch, or that of the step?",
        "After the first micro-batch `.grad` holds a part of the sum. Clip when it is complete.",
    ),
    reference="""
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        loss().backward()
    torch.nn.utils.clip_grad_norm_(parameters, limit)
    optimizer.step()
""",
    other_right=(
        """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    sum(loss() for loss in losses).backward()
    torch.nn.utils.clip_grad_norm_(parameters, limit)
    optimizer.step()
""",
    ),
    explains=(
        "Clipping belongs between the last backward and the step: there `.grad` is the gradient of the "
        "whole batch."
    ),
    mistakes=(
        Mistake(
            "each time",
            "You clipped after each micro-batch. That shortens parts of a sum that may be small as a whole.",
            """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        loss().backward()
        torch.nn.utils.clip_grad_norm_(parameters, limit)
    optimizer.step()
""",
        ),
        Mistake(
            "not clipped in time",
            "The step used the long gradient: it was not clipped, or only afterwards. Clip between the last "
            "backward and the step.",
            """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        loss().backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(parameters, limit)
""",
        ),
        Mistake(
            "values",
            "You clipped each value on its own, which changes the direction. The norm was asked for.",
            """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        loss().backward()
    torch.nn.utils.clip_grad_value_(parameters, limit)
    optimizer.step()
""",
        ),
        Mistake(
            "a step each",
            "You take a step for each micro-batch. They belong to one step.",
            """
def step(optimizer, parameters, losses, limit):
    for loss in losses:
        optimizer.zero_grad()
        loss().backward()
        torch.nn.utils.clip_grad_norm_(parameters, limit)
        optimizer.step()
""",
        ),
        Mistake(
            "not cleared",
            "Right where `.grad` was empty. In one case an old gradient was there, and your step used it, "
            "too: clear before the first backward.",
            """
def step(optimizer, parameters, losses, limit):
    for loss in losses:
        loss().backward()
    torch.nn.utils.clip_grad_norm_(parameters, limit)
    optimizer.step()
    optimizer.zero_grad()
""",
        ),
        Mistake(
            "mean",
            "You divided by the number of micro-batches. Their sum is the loss of the step.",
            """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        (loss() / len(losses)).backward()
    torch.nn.utils.clip_grad_norm_(parameters, limit)
    optimizer.step()
""",
        ),
        Mistake(
            "loss clipped",
            "You limited the loss. Where the limit bites, its gradient is zero, and nothing is learned.",
            """
def step(optimizer, parameters, losses, limit):
    optimizer.zero_grad()
    for loss in losses:
        loss().clamp(-limit / 4, limit / 4).backward()
    optimizer.step()
""",
        ),
    ),
    cases=(
        _clip_case("two micro-batches that partly cancel", [[6.0, 0.0], [-3.0, 4.0]], 2.5),
        _clip_case("a sum within the limit, of parts that are not", [[8.0, 0.0], [-7.0, 0.0]], 4.0),
        _clip_case("one micro-batch", [[3.0, 4.0]], 1.0),
        _clip_case("within the limit", [[0.25, 0.0], [0.0, 0.5]], 4.0),
        _clip_case("an old gradient in place", [[1.0, 0.0], [0.0, 2.0]], 4.0, dirty=True),
    ),
    observe=_observe_clip,
)


# ------------------------------------------------------------------ a step inside backward


def _observe_inside(answer, build: Callable) -> dict:
    model, x = build()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    expected = torch.autograd.grad(model(x).pow(2).sum(), list(model.parameters()))
    most = 0

    def count(_: torch.Tensor) -> None:
        nonlocal most
        most = max(most, sum(p.grad is not None for p in model.parameters()))

    answer(model, 0.5)
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(count)
    model(x).pow(2).sum().backward()
    moved = [p.detach() - before[name] for name, p in model.named_parameters()]
    return {
        "number of parameters that moved by -lr * gradient": sum(
            torch.allclose(m, -0.5 * g, rtol=1e-4, atol=1e-6) for m, g in zip(moved, expected, strict=True)
        ),
        "first parameter after backward": next(iter(model.parameters())).detach(),
        "number of gradients left after each hook": most,
        "number of gradients left at the end": sum(p.grad is not None for p in model.parameters()),
        "number of parameters that are leaves": sum(p.is_leaf for p in model.parameters()),
    }


def _inside_case(label: str, *widths: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        def build():
            layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
            model = nn.Sequential(*layers)
            with torch.no_grad():
                for i, parameter in enumerate(model.parameters()):
                    values = torch.linspace(-1, 1, parameter.numel()) + 0.25 * i
                    parameter.copy_(values.reshape(parameter.shape))
            return model, torch.linspace(-1, 2, 2 * widths[0]).reshape(2, widths[0])

        return (build,)

    return Case(label, make)


step_in_backward = Exercise(
    name="step_in_backward",
    chapter="22",
    title="An optimizer step inside backward",
    minutes=9,
    difficulty=3,
    statement="""
Write `step_inside(model, lr)`. It registers hooks, so that from then on each `loss.backward()` also
updates the parameters: as soon as a parameter's gradient is complete, `parameter -= lr * parameter.grad`,
and its gradient is dropped. At no time is more than one gradient kept.

Use `register_post_accumulate_grad_hook`.
""",
    kind="function",
    starter="def step_inside(model, lr):\n    ...",
    answer="step_inside",
    hints=(
        "The hook gets the parameter itself, after its gradient was added to `.grad`.",
        "An in-place change of a leaf that requires grad must not be recorded: `torch.no_grad()`.",
        "Dropping a gradient is `parameter.grad = None`.",
    ),
    reference="""
def step_inside(model, lr):
    def hook(parameter):
        with torch.no_grad():
            parameter -= lr * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
""",
    other_right=(
        """
def step_inside(model, lr):
    optimizers = {p: torch.optim.SGD([p], lr=lr) for p in model.parameters()}

    def hook(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
""",
    ),
    explains=(
        "Each gradient lives only until its hook has run, so the memory for all gradients together is never "
        "needed. The price: no clipping by the total norm, since it is never known."
    ),
    mistakes=(
        Mistake(
            "gradient kept",
            "The step is right, but afterwards `.grad` still holds a tensor (of zeros, if you filled it with "
            "them), so memory for all gradients is taken at the end. Drop it: `parameter.grad = None`.",
            """
def step_inside(model, lr):
    def hook(parameter):
        with torch.no_grad():
            parameter -= lr * parameter.grad

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
""",
        ),
        Mistake(
            "wrong direction",
            "The parameters move uphill: a step goes against the gradient.",
            """
def step_inside(model, lr):
    def hook(parameter):
        with torch.no_grad():
            parameter += lr * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
""",
        ),
        Mistake(
            "recorded",
            "An in-place change of a leaf that requires grad is refused while it would be recorded. Wrap it "
            "in `torch.no_grad()`.",
            """
def step_inside(model, lr):
    def hook(parameter):
        with torch.enable_grad():
            parameter -= lr * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(hook)
""",
        ),
        Mistake(
            "tensor hook",
            "Your hook read a `.grad` that was still empty: it ran too early, or for another parameter. A "
            "tensor hook runs before the gradient is added, `register_post_accumulate_grad_hook` after it.",
            """
def step_inside(model, lr):
    def hook(parameter):
        with torch.no_grad():
            parameter -= lr * parameter.grad
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_hook(lambda grad, p=parameter: hook(p))
""",
        ),
        Mistake(
            "weights only",
            "You left the biases out: only parameters whose name ends in `weight` were updated.",
            """
def step_inside(model, lr):
    def hook(parameter):
        with torch.no_grad():
            parameter -= lr * parameter.grad
        parameter.grad = None

    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            parameter.register_post_accumulate_grad_hook(hook)
""",
        ),
    ),
    cases=(
        _inside_case("one layer", 2, 1),
        _inside_case("two layers", 2, 3, 1),
        _inside_case("three layers", 1, 2, 2, 2),
    ),
    observe=_observe_inside,
)

EXERCISES = (mean_of_means, missing_zero_grad, exact_accumulation, clip_once, step_in_backward)

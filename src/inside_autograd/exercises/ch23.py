"""Exercises of chapter 23: in-place, views and version counters."""

from collections.abc import Callable

import torch
from torch import nn

from ._model import Case, Exercise, Mistake
from ._observe import observe_gradient, observe_names

which_fail = Exercise(
    name="which_fail",
    chapter="23",
    title="Six snippets: which fail?",
    minutes=5,
    difficulty=2,
    statement="""
`x` is a leaf with three elements that requires grad. Each snippet is followed by `y.sum().backward()`.
Which of them raise?

- `a`: `y = x ** 2`, then `y.add_(1)`
- `b`: `y = x.exp()`, then `y.add_(1)`
- `c`: `y = x * 2`, then `y.mul_(3)`
- `d`: `y = x.sigmoid()`, then `y[0] = 0`
- `e`: `h = x * 2`, `y = h * h`, then `h.add_(1)`
- `f`: `h = x * 2`, `y = h + 1`, then `h.add_(1)`

Answer with a list of letters.
""",
    kind="list",
    starter="failing = ...",
    answer="failing",
    hints=(
        "A change in place is fatal only to a value that some node has saved.",
        "For each changed tensor, ask who saved it: the node that made it (its output), or a node that used "
        "it.",
        "`exp` and `sigmoid` save their outputs, a product of two tensors saves both. A sum saves neither.",
    ),
    reference='failing = ["b", "d", "e"]',
    explains=(
        "`exp` and `sigmoid` had saved the result that was changed, and `h * h` had saved `h`. In the other "
        "three nobody had saved what was changed."
    ),
    mistakes=(
        Mistake(
            "all",
            "In-place is not fatal by itself. It is when a node has saved the value that you change.",
            'failing = ["a", "b", "c", "d", "e", "f"]',
        ),
        Mistake(
            "square",
            "`x ** 2` saved its input `x`, and not its output. Its output may be changed.",
            'failing = ["a", "b", "d", "e"]',
        ),
        Mistake(
            "one element",
            "`y[0] = 0` changes memory that `sigmoid` has saved. One element is enough.",
            'failing = ["b", "e"]',
        ),
        Mistake(
            "outputs only",
            "Inputs count too: `h * h` has saved `h`, which was changed afterwards.",
            'failing = ["b", "d"]',
        ),
        Mistake(
            "addition",
            "`h + 1` needs no value for its slope, so it saved nothing, and `h` may be changed.",
            'failing = ["b", "d", "e", "f"]',
        ),
    ),
    observe=observe_names,
)

shared_version = Exercise(
    name="shared_version",
    chapter="23",
    title="Predict: the version of a base",
    minutes=2,
    difficulty=1,
    statement="""
`base = torch.zeros(3, 2)`\\
`row = base[1]`\\
`copy = base.clone()`\\
`row.add_(1)`\\
`copy.add_(1)`\\
`base.mul_(2)`

What is `row._version` now?
""",
    kind="choice",
    starter="version_answer = ...",
    answer="version_answer",
    hints=(
        "A view and its base lie on the same memory. How many counters do they have?",
        "`clone` makes new memory, with a counter of its own.",
    ),
    choices={"a": "0", "b": "1", "c": "2", "d": "3"},
    reference='version_answer = "c"',
    explains=(
        "`row` and `base` share one counter, so both of their changes count. The change of `copy` happened "
        "elsewhere."
    ),
    mistakes=(
        Mistake(
            "zero", "`row` itself was changed in place, so its counter moved on.", 'version_answer = "a"'
        ),
        Mistake(
            "own changes only",
            "The counter belongs to the memory, and not to the tensor: `base.mul_(2)` counts for `row` too.",
            'version_answer = "b"',
        ),
        Mistake(
            "copy too",
            "`clone` gave `copy` its own memory and its own counter, so its change does not count here.",
            'version_answer = "d"',
        ),
    ),
)


# ------------------------------------------------------------------ repairs


def _normalize_case(label: str, channels: int, height: int, width: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        image = torch.randn(channels, height, width, generator=generator).requires_grad_()
        mean = [0.5 * (i + 1) for i in range(channels)]
        return image * 1, mean, [2.0 ** (i + 1) for i in range(channels)]

    return Case(label, make)


def _observe_normalized(answer, image: torch.Tensor, mean: list[float], std: list[float]) -> dict:
    return observe_gradient(lambda image: answer(image, mean, std), image)


normalize_image = Exercise(
    name="normalize_image",
    chapter="23",
    title="Repair: Output 0 of Unbind is a view",
    minutes=6,
    difficulty=2,
    statement="""
This loop is refused when `image` requires grad, because iterating calls `unbind`, which returns several
views:

`for t, m, s in zip(image, mean, std):`\\
`    t.sub_(m).div_(s)`

Write `normalize(image, mean, std)`: it returns `(channel - mean) / std` for each channel. `image` has the
shape `(channels, height, width)`, `mean` and `std` are lists of numbers, one per channel. `image` must
stay as it is.
""",
    kind="function",
    starter="def normalize(image, mean, std):\n    ...",
    answer="normalize",
    hints=(
        "Without the loop: turn the lists into tensors, and let broadcasting do the rest.",
        "Broadcasting lines shapes up from the right, and the channels come first. `mean[:, None, None]` "
        "has the shape `(channels, 1, 1)`.",
    ),
    reference="""
def normalize(image, mean, std):
    mean = torch.tensor(mean)[:, None, None]
    std = torch.tensor(std)[:, None, None]
    return (image - mean) / std
""",
    other_right=(
        """
def normalize(image, mean, std):
    return torch.stack([(t - m) / s for t, m, s in zip(image, mean, std)])
""",
        """
def normalize(image, mean, std):
    out = image.clone()
    for i in range(len(mean)):
        out[i].sub_(mean[i]).div_(std[i])
    return out
""",
    ),
    explains=(
        "Out of place, nothing is refused. In place, an index gives one view at a time, which is allowed on "
        "a clone; `unbind` gives several at once, which is not."
    ),
    mistakes=(
        Mistake(
            "as before",
            "This is the loop that is refused.",
            """
def normalize(image, mean, std):
    for t, m, s in zip(image, mean, std):
        t.sub_(m).div_(s)
    return image
""",
        ),
        Mistake(
            "last dimension",
            "You subtracted along the last dimension: broadcasting lines shapes up from the right. The "
            "channels come first.",
            """
def normalize(image, mean, std):
    return (image - torch.tensor(mean)) / torch.tensor(std)
""",
        ),
        Mistake(
            "changed the image",
            "The result is right, but you wrote it into `image`, which somebody else may still need.",
            """
def normalize(image, mean, std):
    for i in range(len(mean)):
        image[i].sub_(mean[i]).div_(std[i])
    return image
""",
        ),
        Mistake(
            "detached",
            "The values are right, but the gradient is gone: the copy was made without a record, by "
            "`detach`, `.data` or under `no_grad`.",
            """
def normalize(image, mean, std):
    out = image.detach().clone()
    for t, m, s in zip(out, mean, std):
        t.sub_(m).div_(s)
    return out
""",
        ),
        Mistake(
            "order",
            "You divided before you subtracted. First `- mean`, then `/ std`.",
            """
def normalize(image, mean, std):
    mean = torch.tensor(mean)[:, None, None]
    std = torch.tensor(std)[:, None, None]
    return image / std - mean
""",
        ),
    ),
    cases=(
        _normalize_case("three channels of 2 by 3", 3, 2, 3),
        _normalize_case("one channel", 1, 2, 2),
        _normalize_case("two channels of one pixel", 2, 1, 1),
    ),
    observe=_observe_normalized,
)


def _observe_update(answer, values: torch.Tensor, lr: float) -> dict:
    model = nn.Linear(len(values), 1, bias=False)
    with torch.no_grad():
        model.weight.copy_(values[None])
    weight, x = model.weight, torch.linspace(-1, 1, len(values))
    model(x).pow(2).sum().backward()
    gradient, version = weight.grad.detach().clone(), weight._version
    answer(model, lr)
    return {
        "parameter object": "the old one" if model.weight is weight else "another one",
        "weight": model.weight.detach(),
        "number of leaves that require grad": int(model.weight.is_leaf and model.weight.requires_grad),
        "version counter": "has moved on" if model.weight._version > version else "has not moved",
        "side effect: the gradient was changed": weight.grad is None
        or not torch.equal(weight.grad, gradient),
    }


def _update_case(label: str, size: int) -> Case:
    return Case(label, lambda generator: (torch.randn(size, generator=generator), 0.25))


update_in_place = Exercise(
    name="update_in_place",
    chapter="23",
    title="Repair: an update by hand",
    minutes=5,
    difficulty=2,
    statement="""
An article updates a layer by hand, under `no_grad`, with `model.weight = 0.1 * model.weight.grad`. That
raises, and it would be wrong if it did not. Write `update(model, lr)`: one step of gradient descent on
`model.weight`.

The parameter must stay the same object, because the optimizer and the graph know it, and autograd must be
able to notice the change. Leave the gradient alone.
""",
    kind="function",
    starter="def update(model, lr):\n    ...",
    answer="update",
    hints=(
        "The parameter has to change, not the attribute of the module: in place.",
        "A recorded in-place change of a leaf is refused. Under `torch.no_grad()` it is not recorded.",
        "`.data` has a version counter of its own, so a change through it goes unnoticed.",
    ),
    reference="""
def update(model, lr):
    with torch.no_grad():
        model.weight -= lr * model.weight.grad
""",
    other_right=(
        """
@torch.no_grad()
def update(model, lr):
    model.weight.add_(model.weight.grad, alpha=-lr)
""",
        "\ndef update(model, lr):\n    torch.optim.SGD([model.weight], lr=lr).step()\n",
    ),
    explains=(
        "In place under `no_grad`: same object, not recorded, and the counter moves, so a graph that still "
        "needs the old weight will say so."
    ),
    mistakes=(
        Mistake(
            "recorded",
            "The change would be recorded, and a leaf that requires grad refuses that.",
            "\ndef update(model, lr):\n    model.weight -= lr * model.weight.grad\n",
        ),
        Mistake(
            "data",
            "The numbers are right, but the version counter did not see the change (as through `.data` or "
            "NumPy): a graph that needs the old weight would silently use the new one.",
            "\ndef update(model, lr):\n    model.weight.data -= lr * model.weight.grad\n",
        ),
        Mistake(
            "new parameter",
            "You put a new parameter in place of the old one. An optimizer would go on updating the old one.",
            """
def update(model, lr):
    with torch.no_grad():
        model.weight = torch.nn.Parameter(model.weight - lr * model.weight.grad)
""",
        ),
        Mistake(
            "uphill",
            "The sign is turned: a step goes against the gradient.",
            """
def update(model, lr):
    with torch.no_grad():
        model.weight += lr * model.weight.grad
""",
        ),
        Mistake(
            "overwritten",
            "You replaced the weight by the scaled gradient. A step subtracts it.",
            """
def update(model, lr):
    with torch.no_grad():
        model.weight.copy_(lr * model.weight.grad)
""",
        ),
    ),
    cases=(_update_case("three weights", 3), _update_case("one weight", 1), _update_case("eight weights", 8)),
    observe=_observe_update,
)


def _observe_rnn(answer, build: Callable) -> dict:
    w, xs = build()
    seen = []

    def cell(x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        seen.append(h.grad_fn is not None)  # a leaf that requires grad leads back to nothing
        return torch.tanh(w * h + x)

    result = answer(cell, xs, torch.zeros(2))
    return {
        "result": result,
        "gradient for w": w.grad,
        "number of steps that lead back to the step before": sum(seen),
        "graph of the result": "there is one" if getattr(result, "grad_fn", None) is not None else "none",
    }


def _rnn_case(label: str, steps: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        xs = list(torch.randn(steps, 2, generator=generator))
        return (lambda: (torch.tensor(0.75, requires_grad=True), xs),)

    return Case(label, make)


hidden_state = Exercise(
    name="hidden_state",
    chapter="23",
    title="Repair: the hidden state of an RNN",
    minutes=7,
    difficulty=2,
    statement="""
The second round of this loop raises "Trying to backward through the graph a second time":

`for x in xs:`\\
`    h = cell(x, h)`\\
`    (h ** 2).sum().backward()`

Write `run(cell, xs, h)` so that each step learns from its own loss alone: the hidden state's **numbers**
go on to the next step, its graph does not. Gradients of all steps add up. Return the last hidden state,
without a graph.
""",
    kind="function",
    starter="def run(cell, xs, h):\n    ...",
    answer="run",
    hints=(
        "The second backward walks from step 2 into the graph of step 1, which is freed. Where should it "
        "stop?",
        "Hand `h.detach()` to the next step.",
    ),
    reference="""
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h)
        (h ** 2).sum().backward()
        h = h.detach()
    return h
""",
    other_right=(
        """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h.detach())
        h.square().sum().backward()
    return h.detach()
""",
        """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h.detach().requires_grad_())
        (h ** 2).sum().backward()
    return h.detach()
""",
        """
def run(cell, xs, h):
    losses = []
    for x in xs:
        h = cell(x, h.detach())
        losses.append((h ** 2).sum())
    sum(losses).backward()
    return h.detach()
""",
    ),
    explains=(
        "`detach` passes the numbers on and ends the graph there. `retain_graph=True` silences the error, "
        "and walks further back at every step."
    ),
    mistakes=(
        Mistake(
            "retain_graph",
            "It runs, but a loss walks back through all earlier steps, by `retain_graph=True` or by a sum "
            "of losses, and the graph grows with every step. Each step was to learn from its own loss alone.",
            """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h)
        (h ** 2).sum().backward(retain_graph=True)
    return h.detach()
""",
        ),
        Mistake(
            "as before",
            "This is the loop that raises.",
            """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h)
        (h ** 2).sum().backward()
    return h.detach()
""",
        ),
        Mistake(
            "state forgotten",
            "Each step starts from zeros again. The numbers of the hidden state must go on.",
            """
def run(cell, xs, h):
    start = h
    for x in xs:
        h = cell(x, start)
        (h ** 2).sum().backward()
    return h.detach()
""",
        ),
        Mistake(
            "returned with its graph",
            "Right, but the state that you return still has its graph. Detach it.",
            """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h.detach())
        (h ** 2).sum().backward()
    return h
""",
        ),
        Mistake(
            "last step only",
            "Only the last step had a backward pass. Every step has a loss.",
            """
def run(cell, xs, h):
    for x in xs:
        h = cell(x, h.detach())
    (h ** 2).sum().backward()
    return h.detach()
""",
        ),
    ),
    cases=(_rnn_case("three steps", 3), _rnn_case("one step", 1), _rnn_case("six steps", 6)),
    observe=_observe_rnn,
)


EXERCISES = (which_fail, shared_version, normalize_image, update_in_place, hidden_state)

"""Exercises of chapter 13: leaf or not."""

from collections.abc import Callable

import torch
from torch import nn

from ._model import Case, Exercise, Mistake
from ._observe import observe_names

which_leaves = Exercise(
    name="which_leaves",
    chapter="13",
    title="Which of these are leaves?",
    minutes=3,
    difficulty=1,
    statement="""
`a = torch.ones(2, requires_grad=True)`\\
`b = a * 2`\\
`c = b.detach()`\\
`d = torch.nn.Parameter(b.detach())`\\
`e = a.double()`\\
`f = torch.zeros(2)`

Give the names of those with `is_leaf` true, such as `["a", "b"]`.
""",
    kind="list",
    starter="leaf_names = ...",
    answer="leaf_names",
    hints=(
        "A leaf was not made by a recorded operation: its `grad_fn` is `None`.",
        "Tensors that do not require grad are leaves too, by convention. That holds for `f`, and for one "
        "more.",
        "`double()` is an operation, and it is recorded when its input requires grad.",
    ),
    reference='leaf_names = ["a", "c", "d", "f"]',
    other_right=('leaf_names = ("f", "d", "c", "a")',),
    explains=(
        "`b` and `e` were made by recorded operations. `c` left the graph, `d` is a new parameter, and `f` "
        "never was in a graph."
    ),
    mistakes=(
        Mistake(
            "only those with a gradient",
            "`a` and `d` are the leaves that require grad. `is_leaf` is true for `c` and `f` as well: "
            "nothing recorded made them.",
            'leaf_names = ["a", "d"]',
        ),
        Mistake(
            "conversion",
            "`double()` changes the dtype, so it makes a new tensor, and that operation is recorded: `e` is "
            "no leaf.",
            'leaf_names = ["a", "c", "d", "e", "f"]',
        ),
        Mistake(
            "detached left out",
            "`detach()` is not recorded: `c` has no `grad_fn`, so it is a leaf.",
            'leaf_names = ["a", "d", "f"]',
        ),
        Mistake(
            "non-leaves",
            "These two are the ones that a recorded operation made. They are not leaves; the other four are.",
            'leaf_names = ["b", "e"]',
        ),
    ),
    observe=observe_names,
)


# ------------------------------------------------------------------ freezing


class _Parts(nn.Module):
    def __init__(self, generator: torch.Generator):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))
        self.body_norm = nn.LayerNorm(4)
        self.head = nn.Linear(4, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body_norm(self.body(x)))


def _observe_freeze(answer, model: nn.Module, prefix: str, x: torch.Tensor) -> dict:
    values = {name: p.detach().clone() for name, p in model.named_parameters()}
    returned = list(answer(model, prefix))
    name_of = {id(p): name for name, p in model.named_parameters()}
    model(x).sum().backward()
    changed = [n for n, p in model.named_parameters() if not torch.equal(p.detach(), values[n])]
    return {
        "parameters that require grad": tuple(n for n, p in model.named_parameters() if p.requires_grad),
        "parameters returned": tuple(sorted(name_of.get(id(p), "something else") for p in returned)),
        "gradient of the input": x.grad,
        "parameters with a .grad": tuple(n for n, p in model.named_parameters() if p.grad is not None),
        "side effect: values were changed": tuple(changed),
    }


def _freeze_case(label: str, prefix: str) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randn(2, 3, generator=generator).requires_grad_()
        return _Parts(generator), prefix, x

    return Case(label, make)


freeze_part = Exercise(
    name="freeze_part",
    chapter="13",
    title="Freeze half a network",
    minutes=6,
    difficulty=2,
    statement="""
Write `freeze(model, part)`. It freezes all parameters of the submodule called `part`, such as `"body"` or
`"body.2"`, and returns a list of the parameters that are still to be trained, for the optimizer.

- A network may have a part `body` and another called `body_norm`. Freezing the one must not touch the
  other.
- Gradients must still flow **through** the frozen part to what lies before it.
""",
    kind="function",
    starter="def freeze(model, part):\n    ...",
    answer="freeze",
    hints=(
        "Freezing a parameter is `parameter.requires_grad_(False)`.",
        "A module has the same method for all its parameters: `module.requires_grad_(False)`.",
        "`model.get_submodule(part)` finds the part. Afterwards keep the parameters with `requires_grad`.",
    ),
    reference="""
def freeze(model, part):
    model.get_submodule(part).requires_grad_(False)
    return [p for p in model.parameters() if p.requires_grad]
""",
    other_right=(
        """
def freeze(model, part):
    train = []
    for name, parameter in model.named_parameters():
        if name.startswith(part + "."):
            parameter.requires_grad = False
        else:
            train.append(parameter)
    return train
""",
    ),
    explains=(
        "`requires_grad=False` takes the parameters out of the graph, and nothing else: the operations "
        "stay, so gradients pass through them."
    ),
    mistakes=(
        Mistake(
            "attribute of the module",
            "Nothing is frozen: `module.requires_grad = False` makes a new attribute on the module, which "
            "nobody reads. Call the method `module.requires_grad_(False)`.",
            """
def freeze(model, part):
    model.get_submodule(part).requires_grad = False
    return [p for p in model.parameters() if p.requires_grad]
""",
        ),
        Mistake(
            "prefix too wide",
            "`body_norm` was frozen together with `body`. Names of parameters of a part begin with `body.`, "
            "with the dot.",
            """
def freeze(model, part):
    for name, parameter in model.named_parameters():
        if name.startswith(part):
            parameter.requires_grad_(False)
    return [p for p in model.parameters() if p.requires_grad]
""",
        ),
        Mistake(
            "returned all",
            "The right ones are frozen, but you returned every parameter. The optimizer should get those "
            "that still train.",
            """
def freeze(model, part):
    model.get_submodule(part).requires_grad_(False)
    return list(model.parameters())
""",
        ),
        Mistake(
            "the other half",
            "You froze everything but the part.",
            """
def freeze(model, part):
    model.requires_grad_(False)
    model.get_submodule(part).requires_grad_(True)
    return [p for p in model.parameters() if p.requires_grad]
""",
        ),
        Mistake(
            "data",
            "`parameter.data` makes a new tensor each time. Setting its `requires_grad` changes that one, "
            "and not the parameter.",
            """
def freeze(model, part):
    frozen = list(model.get_submodule(part).parameters())
    for parameter in frozen:
        parameter.data.requires_grad = False
    return [p for p in model.parameters() if not any(p is f for f in frozen)]
""",
        ),
        Mistake(
            "returned nothing to train",
            "The right ones are frozen, but you returned the frozen parameters. The optimizer should get "
            "the others.",
            """
def freeze(model, part):
    model.get_submodule(part).requires_grad_(False)
    return list(model.get_submodule(part).parameters())
""",
        ),
    ),
    cases=(
        _freeze_case("part `body`", "body"),
        _freeze_case("part `head`", "head"),
        _freeze_case("part `body_norm`", "body_norm"),
        _freeze_case("a part of a part, `body.2`", "body.2"),
    ),
    observe=_observe_freeze,
)


# ------------------------------------------------------------------ the gradient in the middle


def _observe_hidden(answer, f: Callable, g: Callable, x: torch.Tensor) -> dict:
    result = answer(f, g, x)
    return {"gradient of h": result, "gradient in x.grad": x.grad}


def _hidden_case(label: str, f: Callable, g: Callable, *shape: int) -> Case:
    return Case(label, lambda generator: (f, g, torch.randn(shape, generator=generator).requires_grad_()))


hidden_gradient = Exercise(
    name="hidden_gradient",
    chapter="13",
    title="The gradient of a hidden tensor",
    minutes=6,
    difficulty=2,
    statement="""
`h = f(x)` and `loss = g(h)`, where `x` is a leaf. Write `hidden_gradient(f, g, x)`: it returns the
gradient of `loss` for `h`. Afterwards `x.grad` must hold what one `loss.backward()` puts there.

There are at least three ways. Find one, pass the check, then try the others: they all pass.
""",
    kind="function",
    starter="def hidden_gradient(f, g, x):\n    ...",
    answer="hidden_gradient",
    hints=(
        "By default a tensor in the middle keeps no gradient. Which method asks it to?",
        "`h.retain_grad()` before backward is one way.",
        "A tensor hook, `h.register_hook(...)`, sees the gradient pass. `torch.autograd.grad(loss, h)` "
        "returns it, and does not go on to `x`: backward must run as well.",
    ),
    reference="""
def hidden_gradient(f, g, x):
    h = f(x)
    h.retain_grad()
    g(h).backward()
    return h.grad
""",
    other_right=(
        """
def hidden_gradient(f, g, x):
    h = f(x)
    seen = []
    h.register_hook(seen.append)
    g(h).backward()
    return seen[0]
""",
        """
def hidden_gradient(f, g, x):
    h = f(x)
    loss = g(h)
    grad_h, = torch.autograd.grad(loss, h, retain_graph=True)
    loss.backward()
    return grad_h
""",
        """
def hidden_gradient(f, g, x):
    h = f(x)
    grad_h, = torch.autograd.grad(g(h), h)
    h.backward(grad_h)
    return grad_h
""",
    ),
    explains=(
        "`retain_grad` stores it, a hook sees it, `autograd.grad` returns it. Each needs the same tensor "
        "object that the loss was computed from."
    ),
    mistakes=(
        Mistake(
            "not retained",
            "Your function returned `None`. If that was `h.grad`: `h` is not a leaf, so its gradient is "
            "kept only if you ask before backward, on the very tensor that the loss is computed from. Or is "
            "a `return` missing?",
            """
def hidden_gradient(f, g, x):
    h = f(x)
    g(h).backward()
    return h.grad
""",
        ),
        Mistake(
            "x got nothing",
            "The gradient of `h` is right, but nothing arrived in `x.grad`: backward did not go on from `h` "
            "to `x`. Either it never ran, or `h` was cut off by `detach`.",
            """
def hidden_gradient(f, g, x):
    h = f(x).detach().requires_grad_()
    g(h).backward()
    return h.grad
""",
        ),
        Mistake(
            "twice",
            "The gradient of `h` is right, but `x.grad` holds it twice: two backward passes ran, and "
            "`.grad` adds up.",
            """
def hidden_gradient(f, g, x):
    h = f(x)
    h.retain_grad()
    loss = g(h)
    loss.backward(retain_graph=True)
    found = h.grad.clone()
    loss.backward()
    return found
""",
        ),
        Mistake(
            "of x",
            "You returned the gradient of `x`. The one for `h` was asked for.",
            """
def hidden_gradient(f, g, x):
    g(f(x)).backward()
    return x.grad
""",
        ),
        Mistake(
            "another h",
            "You called `f` a second time. That makes a new tensor, which the loss was not computed from.",
            """
def hidden_gradient(f, g, x):
    h = f(x)
    h.retain_grad()
    g(f(x)).backward()
    return h.grad if h.grad is not None else torch.zeros_like(h)
""",
        ),
    ),
    cases=(
        _hidden_case("three elements", lambda x: x * 2, lambda h: (h**2).sum(), 3),
        _hidden_case("no dimension", lambda x: x.exp(), lambda h: h * 3),
        _hidden_case("a matrix", lambda x: x.tanh().t(), lambda h: (h * h).mean(), 2, 3),
        _hidden_case("`h` is used twice", lambda x: x + 1, lambda h: (h * h).sum() + h.sum(), 2),
    ),
    observe=_observe_hidden,
)


# ------------------------------------------------------------------ repairs


def _observe_leaf(answer, values: torch.Tensor) -> dict:
    before = values.clone()
    made = answer(values)
    seen = {
        "result": made.detach().clone(),
        "is_leaf": made.is_leaf,
        "requires_grad": made.requires_grad,
        "side effect: the given tensor was changed": not torch.equal(values, before),
        "side effect: the given tensor requires grad now": values.requires_grad,
    }
    with torch.no_grad():
        made.add_(1)
    seen["side effect: a step of the optimizer changes the given tensor"] = not torch.equal(
        values.detach(), before
    )
    return seen


def _values_case(label: str, *shape: int) -> Case:
    return Case(label, lambda generator: (torch.randn(shape, generator=generator),))


make_leaf = Exercise(
    name="make_leaf",
    chapter="13",
    title="Repair: can't optimize a non-leaf Tensor",
    minutes=4,
    difficulty=1,
    statement="""
Somebody wrote `img = values.requires_grad_() * 0.5` and handed `img` to an optimizer, which refused it.
Write `start(values)`: it returns a tensor with the numbers `values * 0.5` that an optimizer takes **and
moves**: a leaf that requires grad. `values` must stay as it is.
""",
    kind="function",
    starter="def start(values):\n    ...",
    answer="start",
    hints=(
        "The multiplication was recorded, so its result is no leaf. Which comes first, the multiplication "
        "or `requires_grad`?",
        "`requires_grad_()` as the last step makes the product itself the leaf.",
    ),
    reference="""
def start(values):
    return (values * 0.5).requires_grad_()
""",
    other_right=(
        "\ndef start(values):\n    return torch.tensor((values * 0.5).tolist(), requires_grad=True)\n",
        "\ndef start(values):\n    return (values * 0.5).detach().clone().requires_grad_(True)\n",
    ),
    explains="Compute first, ask for gradients last: then the tensor you hold is the leaf.",
    mistakes=(
        Mistake(
            "as before",
            "The multiplication is still recorded, so the result is no leaf. And `values` requires grad now.",
            "\ndef start(values):\n    return values.requires_grad_() * 0.5\n",
        ),
        Mistake(
            "no gradient",
            "It is a leaf, but it does not require grad: it would never get a gradient.",
            "\ndef start(values):\n    return values * 0.5\n",
        ),
        Mistake(
            "in place",
            "You changed `values` itself, and the optimizer would go on changing it.",
            "\ndef start(values):\n    return values.mul_(0.5).requires_grad_()\n",
        ),
        Mistake(
            "not halved",
            "It is a fine leaf, but with the numbers of `values`, not with half of them.",
            "\ndef start(values):\n    return values.clone().requires_grad_()\n",
        ),
        Mistake(
            "not a leaf",
            "It is not a leaf: an operation was recorded after `requires_grad` was set. Optimizers take "
            "leaves only, and `retain_grad` does not change that.",
            "\ndef start(values):\n    return values.clone().requires_grad_() * 0.5\n",
        ),
    ),
    cases=(
        _values_case("three elements", 3),
        _values_case("no dimension"),
        _values_case("a matrix", 2, 2),
        _values_case("empty", 0),
    ),
    observe=_observe_leaf,
)


def _observe_numbers(answer, t: torch.Tensor) -> dict:
    before, required = t.detach().clone(), t.requires_grad
    array = answer(t)
    is_array = type(array).__name__ == "ndarray"
    seen = {
        "kind": type(array).__name__,
        "numbers": torch.from_numpy(array.copy()) if is_array else array,
        "side effect: requires_grad was changed": t.requires_grad != required,
    }
    if is_array:
        array += 1
    seen["side effect: changing the array changes the tensor"] = not torch.equal(t.detach(), before)
    return seen


numbers_out = Exercise(
    name="numbers_out",
    chapter="13",
    title="Repair: can't call numpy()",
    minutes=4,
    difficulty=1,
    statement="""
`t.numpy()` raises when `t` requires grad. Write `numbers(t)`: it returns a NumPy array with the numbers
and the dtype of `t`, which belongs to the caller. Changing the array must not change `t`, and `t` must
stay as it is.
""",
    kind="function",
    starter="def numbers(t):\n    ...",
    answer="numbers",
    hints=(
        "`detach()` gives a tensor without a graph.",
        "Does `detach()` copy? Does `.numpy()`?",
    ),
    reference="""
def numbers(t):
    return t.detach().clone().numpy()
""",
    other_right=(
        "\ndef numbers(t):\n    return t.detach().cpu().numpy().copy()\n",
        "\ndef numbers(t):\n    with torch.no_grad():\n        return t.clone().numpy()\n",
        "\ndef numbers(t):\n    return t.numpy(force=True).copy()\n",
    ),
    explains="Neither `detach` nor `numpy` copies: all three share the memory. `clone` makes the copy.",
    mistakes=(
        Mistake(
            "shared",
            "The numbers are right, but the array lies on the memory of `t`. Whoever changes it changes the "
            "tensor, and autograd does not notice.",
            "\ndef numbers(t):\n    return t.detach().numpy()\n",
        ),
        Mistake(
            "flag changed",
            "You switched `requires_grad` off on `t` itself, so it stops learning.",
            "\ndef numbers(t):\n    return t.requires_grad_(False).numpy().copy()\n",
        ),
        Mistake(
            "as before",
            "This is the call that raises.",
            "\ndef numbers(t):\n    return t.numpy()\n",
        ),
        Mistake(
            "list",
            "A list has the numbers, but a NumPy array was asked for.",
            "\ndef numbers(t):\n    return t.tolist()\n",
        ),
        Mistake(
            "tensor",
            "This is still a tensor. Call `.numpy()` on it.",
            "\ndef numbers(t):\n    return t.detach().clone()\n",
        ),
    ),
    cases=(
        Case("a leaf", lambda g: (torch.randn(3, generator=g).requires_grad_(),)),
        Case("a result", lambda g: (torch.randn(2, 2, generator=g).requires_grad_() * 2,)),
        Case("a tensor without a graph", lambda g: (torch.randn(4, generator=g),)),
    ),
    observe=_observe_numbers,
)

data_or_detach = Exercise(
    name="data_or_detach",
    chapter="13",
    title="Predict: .data against detach()",
    minutes=2,
    difficulty=1,
    statement="""
`s = x.sigmoid()`. Then `s.data.zero_()`, then `s.sum().backward()`. What happens?
""",
    kind="choice",
    starter="data_answer = ...",
    answer="data_answer",
    hints=(
        "`sigmoid` saves its result, since its slope is `s * (1 - s)`.",
        "A change is noticed through the version counter. Does `.data` share it?",
    ),
    choices={
        "a": "an error: a saved tensor was changed in place",
        "b": "no error, and `x.grad` is all zeros",
        "c": "no error, and `x.grad` is right: `.data` is a copy",
    },
    reference='data_answer = "b"',
    explains=(
        "`.data` shares the memory but has a version counter of its own. The saved result is zero now, so "
        "the slope `s * (1 - s)` is zero, and nobody is told. With `detach()` you would get the error."
    ),
    mistakes=(
        Mistake(
            "error",
            "That is what `s.detach().zero_()` gives, because `detach` shares the version counter. `.data` "
            "does not, so the check sees nothing.",
            'data_answer = "a"',
        ),
        Mistake(
            "copy",
            "`.data` is no copy: it lies on the memory of `s`, which the node of `sigmoid` has saved.",
            'data_answer = "c"',
        ),
    ),
)

EXERCISES = (which_leaves, freeze_part, hidden_gradient, make_leaf, numbers_out, data_or_detach)

"""Exercises of chapter 24: gradients of gradients."""

from collections.abc import Callable, Mapping

import torch
from torch import nn

from ._model import Case, Exercise, Mistake
from ._observe import observe_call

predict_mixed = Exercise(
    name="gradient_of_a_gradient",
    chapter="24",
    title="Predict: a gradient inside",
    minutes=2,
    difficulty=1,
    statement="""
`x = torch.tensor(1.0, requires_grad=True)`\\
`g, = torch.autograd.grad(x ** 3, x, create_graph=True)`\\
`(g + x ** 2).backward()`

What is `x.grad`?
""",
    kind="choice",
    starter="inner_answer = ...",
    answer="inner_answer",
    hints=(
        "What is `g` as a function of `x`? With `create_graph=True` torch knows that function.",
        "`backward` differentiates the whole sum. Did the call of `autograd.grad` leave anything in `.grad`?",
    ),
    choices={"a": "2", "b": "5", "c": "8", "d": "11"},
    reference='inner_answer = "c"',
    explains="`g` is $3x^2$ with a graph, so the sum has the slope $6x + 2x$, which is 8 at 1.",
    mistakes=(
        Mistake(
            "a constant",
            "2 is the slope of `x ** 2` alone. That would be right without `create_graph=True`: then `g` is "
            "a plain number.",
            'inner_answer = "a"',
        ),
        Mistake(
            "not differentiated",
            "5 is `g` itself plus the slope of `x ** 2`. `backward` differentiates `g` once more.",
            'inner_answer = "b"',
        ),
        Mistake(
            "accumulated",
            "11 has the first derivative, 3, added. `autograd.grad` leaves `.grad` alone, so nothing was "
            "there.",
            'inner_answer = "d"',
        ),
    ),
)


# ------------------------------------------------------------------ Hessian-vector products


def _observe_hvp(answer, f: Callable, x: torch.Tensor, v: torch.Tensor) -> dict:
    seen = observe_call(answer, f, x, v)
    return {**seen, "side effect: x requires grad now": x.requires_grad}


def _hvp_case(label: str, f: Callable, *shape: int, dtype: torch.dtype = torch.float64) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.randint(1, 4, shape, generator=generator).to(dtype)
        v = torch.randint(1, 6, shape, generator=generator).to(dtype)
        return f, x, v - 3

    return Case(label, make)


def _example(generator: torch.Generator) -> tuple:
    return (lambda x: x[0] ** 2 * x[1] + x[1] ** 3), torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])


hessian_vector = Exercise(
    name="hessian_vector",
    chapter="24",
    title="A Hessian–vector product",
    minutes=8,
    difficulty=2,
    statement="""
`f` makes one number of a tensor. Write `hessian_times(f, x, v)`: the Hessian of `f` at `x`, times `v`. `x`
and `v` have the same shape, any shape, and so has the result. `x` does not require grad, and must be as
before afterwards. Where `f` is linear, the result is zeros.

For `f(x) = x[0] ** 2 * x[1] + x[1] ** 3` at `(1, 2)` and `v = (1, -1)` it is `(2, -10)`.
""",
    kind="function",
    starter="def hessian_times(f, x, v):\n    ...",
    answer="hessian_times",
    hints=(
        "Let `g` be the gradient of `f`. `Hv` says how `g` changes along `v`.",
        "Forward mode gives that: the `jvp` of the function `torch.func.grad(f)`.",
        "By double backward, work on `x.detach().requires_grad_()`. And a linear `f` has a `g` without a "
        "graph: ask `g.requires_grad`.",
    ),
    reference="""
def hessian_times(f, x, v):
    return torch.func.jvp(torch.func.grad(f), (x,), (v,))[1]
""",
    other_right=(
        """
def hessian_times(f, x, v):
    x = x.detach().requires_grad_()
    g, = torch.autograd.grad(f(x), x, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(g, x, grad_outputs=v, materialize_grads=True)[0]
""",
        """
def hessian_times(f, x, v):
    H = torch.func.hessian(f)(x).reshape(x.numel(), x.numel())
    return (H @ v.flatten()).reshape(x.shape)
""",
    ),
    explains=(
        "One product needs one more pass, and the matrix is never built. For a million parameters that is "
        "the difference between possible and not."
    ),
    mistakes=(
        Mistake(
            "v ignored",
            "This is the Hessian times a vector of ones: the gradient of `g.sum()`. `v` goes into "
            "`grad_outputs`.",
            """
def hessian_times(f, x, v):
    return torch.func.grad(lambda x: torch.func.grad(f)(x).sum())(x)
""",
        ),
        Mistake(
            "v afterwards",
            "You summed the rows of the Hessian first and multiplied by `v` afterwards, element by element. "
            "That is right only for a diagonal Hessian.",
            """
def hessian_times(f, x, v):
    return v * torch.func.grad(lambda x: torch.func.grad(f)(x).sum())(x)
""",
        ),
        Mistake(
            "first order",
            "This is the gradient times `v`, element by element. No second derivative was taken.",
            "\ndef hessian_times(f, x, v):\n    return torch.func.grad(f)(x) * v\n",
        ),
        Mistake(
            "a number",
            "You returned `g · v`, one number: how fast `f` itself changes along `v`. Differentiate it once "
            "more.",
            "\ndef hessian_times(f, x, v):\n    return torch.func.jvp(f, (x,), (v,))[1]\n",
        ),
        Mistake(
            "both sides",
            "You returned `v · Hv`, one number: the bend of `f` along `v`. `Hv` is a tensor like `x`.",
            """
def hessian_times(f, x, v):
    return (torch.func.jvp(torch.func.grad(f), (x,), (v,))[1] * v).sum()
""",
        ),
        Mistake(
            "linear raises",
            "Right, except where `f` is linear: its gradient is a constant without a graph, and "
            "`autograd.grad` raises. `g.requires_grad` tells.",
            """
def hessian_times(f, x, v):
    x = x.detach().requires_grad_()
    g, = torch.autograd.grad(f(x), x, create_graph=True)
    return torch.autograd.grad(g, x, grad_outputs=v)[0]
""",
        ),
        Mistake(
            "x changed",
            "The product is right, but you switched `requires_grad` on for the caller's `x`. Work on "
            "`x.detach().requires_grad_()`.",
            """
def hessian_times(f, x, v):
    x.requires_grad_()
    g, = torch.autograd.grad(f(x), x, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(x)
    return torch.autograd.grad(g, x, grad_outputs=v)[0]
""",
        ),
    ),
    cases=(
        Case("the example", _example),
        _hvp_case("three numbers", lambda x: x.prod() + (x**3).sum(), 3),
        _hvp_case("a matrix", lambda x: ((x @ x.t()) ** 2).sum(), 2, 3),
        _hvp_case("one element", lambda x: (x**4).sum(), 1),
        _hvp_case("zero-dimensional", lambda x: x**3),
        _hvp_case("a linear function", lambda x: (3 * x).sum(), 3),
    ),
    observe=_observe_hvp,
)


# ------------------------------------------------------------------ Newton's method


def _rosenbrock(x: torch.Tensor) -> torch.Tensor:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2


def _bowl(x: torch.Tensor) -> torch.Tensor:
    a = torch.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]], dtype=x.dtype)
    return x @ a @ x / 2 - x.sum()


def _newton_case(label: str, f: Callable, start: list[float], steps: int) -> Case:
    return Case(label, lambda generator: (f, torch.tensor(start, dtype=torch.float64), steps))


newton_steps = Exercise(
    name="newton_steps",
    chapter="24",
    title="Newton, step by step",
    minutes=8,
    difficulty=2,
    statement="""
Write `newton(f, x, steps)`: start at `x`, of shape `(n,)`, and do `steps` full Newton steps. Each solves
$Hd = -g$ for the step $d$, with the gradient and the Hessian of `f` at the current point. Return the last
point, and leave `x` as it is.

With Rosenbrock's function of this chapter, from `(0, 0)`, two steps give `(1, 1)`.
""",
    kind="function",
    starter="def newton(f, x, steps):\n    ...",
    answer="newton",
    hints=(
        "`torch.func.grad(f)(x)` has shape `(n,)`, `torch.func.hessian(f)(x)` has shape `(n, n)`.",
        "`torch.linalg.solve(H, g)` gives the vector that `H` turns into `g`.",
        "Inside the loop: `x = x - torch.linalg.solve(H, g)`, with a new `H` and `g` each time.",
    ),
    reference="""
def newton(f, x, steps):
    for _ in range(steps):
        g = torch.func.grad(f)(x)
        H = torch.func.hessian(f)(x)
        x = x - torch.linalg.solve(H, g)
    return x
""",
    other_right=(
        """
def newton(f, x, steps):
    for _ in range(steps):
        g = torch.autograd.functional.jacobian(f, x)
        H = torch.autograd.functional.hessian(f, x)
        x = x + torch.inverse(H) @ -g
    return x
""",
    ),
    explains=(
        "A Newton step lands on the lowest point of the parabola that fits at the current point. For a "
        "quadratic function that is the answer at once."
    ),
    mistakes=(
        Mistake(
            "no Hessian",
            "This is gradient descent with a step of 1: no Hessian is in it.",
            """
def newton(f, x, steps):
    for _ in range(steps):
        x = x - torch.func.grad(f)(x)
    return x
""",
        ),
        Mistake(
            "diagonal",
            "You divided by the diagonal of the Hessian. Its other entries couple the directions: solve with "
            "the whole matrix.",
            """
def newton(f, x, steps):
    for _ in range(steps):
        x = x - torch.func.grad(f)(x) / torch.func.hessian(f)(x).diagonal()
    return x
""",
        ),
        Mistake(
            "multiplied",
            "You multiplied the gradient by the Hessian. The step solves a system with it, which divides.",
            """
def newton(f, x, steps):
    for _ in range(steps):
        x = x - torch.func.hessian(f)(x) @ torch.func.grad(f)(x)
    return x
""",
        ),
        Mistake(
            "uphill",
            "The sign is wrong: you added what is to be subtracted.",
            """
def newton(f, x, steps):
    for _ in range(steps):
        x = x + torch.linalg.solve(torch.func.hessian(f)(x), torch.func.grad(f)(x))
    return x
""",
        ),
        Mistake(
            "one matrix",
            "You took the Hessian once, at the start. It changes with `x`: take it anew in each step.",
            """
def newton(f, x, steps):
    H = torch.func.hessian(f)(x)
    for _ in range(steps):
        x = x - torch.linalg.solve(H, torch.func.grad(f)(x))
    return x
""",
        ),
        Mistake(
            "one step",
            "You did one step, whatever `steps` says.",
            """
def newton(f, x, steps):
    return x - torch.linalg.solve(torch.func.hessian(f)(x), torch.func.grad(f)(x))
""",
        ),
        Mistake(
            "x changed",
            "The last point is right, but you changed the caller's `x` in place. `x = x - …` makes a new "
            "tensor.",
            """
def newton(f, x, steps):
    for _ in range(steps):
        x -= torch.linalg.solve(torch.func.hessian(f)(x), torch.func.grad(f)(x))
    return x
""",
        ),
    ),
    cases=(
        _newton_case("Rosenbrock, two steps", _rosenbrock, [0.0, 0.0], 2),
        _newton_case("a quadratic function, one step", _bowl, [1.0, -1.0, 2.0], 1),
        _newton_case("one variable, three steps", lambda x: (x**4 / 4 - x**2).sum(), [2.0], 3),
        _newton_case("no step", _bowl, [1.0, 2.0, 3.0], 0),
    ),
    observe=observe_call,
)


# ------------------------------------------------------------------ per-sample gradients


def _observe_samples(answer, net: nn.Module, loss: Callable, x: torch.Tensor, y: torch.Tensor) -> dict:
    found = answer(net, loss, x, y)
    filled = any(p.grad is not None for p in net.parameters())
    if isinstance(found, Mapping):
        found = {name: found[name] for name in sorted(found, key=str)}
    return {"result": found, "side effect: .grad was filled": filled}


def _sample_case(label: str, layers: Callable, rows: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        net = layers().double()
        with torch.no_grad():
            for p in net.parameters():
                p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype))
        x = torch.randn(rows, 2, generator=generator, dtype=torch.float64)
        y = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
        return net, nn.functional.mse_loss, x, y

    return Case(label, make)


per_sample_gradients = Exercise(
    name="per_sample_gradients",
    chapter="24",
    title="Per-sample gradients of any network",
    minutes=10,
    difficulty=3,
    statement="""
`loss(net(x), y)` is one number for a batch `x` of shape `(rows, 2)` and `y` of shape `(rows, 1)`. Write
`sample_grads(net, loss, x, y)`: a dict from each parameter's name to a tensor of shape `(rows, *shape of
the parameter)`, whose entry `i` is the gradient for row `i` alone. The net also takes a single sample of
shape `(2,)`. `.grad` must stay as it is.
""",
    kind="function",
    starter="def sample_grads(net, loss, x, y):\n    ...",
    answer="sample_grads",
    hints=(
        "First a function of one sample: `one(params, x, y)`, with the parameters as an argument.",
        "`torch.func.functional_call(net, params, (x,))` runs the net with the parameters you hand in.",
        "`torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))` maps over the rows and shares the "
        "parameters: `{name: p.detach() for name, p in net.named_parameters()}`.",
    ),
    reference="""
def sample_grads(net, loss, x, y):
    def one(params, x, y):
        return loss(torch.func.functional_call(net, params, (x,)), y)

    params = {name: p.detach() for name, p in net.named_parameters()}
    return torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))(params, x, y)
""",
    other_right=(
        """
def sample_grads(net, loss, x, y):
    names, params = zip(*net.named_parameters())
    rows = [torch.autograd.grad(loss(net(x[i]), y[i]), params) for i in range(len(x))]
    return {name: torch.stack(column) for name, column in zip(names, zip(*rows))}
""",
    ),
    explains=(
        "`vmap` runs the function once for all rows and keeps their gradients apart. A loop is right too, "
        "with one backward pass for each row."
    ),
    mistakes=(
        Mistake(
            "whole batch",
            "This is one gradient for the whole batch, the shape of the parameter. The rows must stay apart.",
            """
def sample_grads(net, loss, x, y):
    names, params = zip(*net.named_parameters())
    return dict(zip(names, torch.autograd.grad(loss(net(x), y), params)))
""",
        ),
        Mistake(
            "targets not mapped",
            "Each row met all targets: `y` must be mapped too, `in_dims=(None, 0, 0)`.",
            """
def sample_grads(net, loss, x, y):
    def one(params, x, y):
        return loss(torch.func.functional_call(net, params, (x,)).expand_as(y), y)

    params = {name: p.detach() for name, p in net.named_parameters()}
    return torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, None))(params, x, y)
""",
        ),
        Mistake(
            "divided",
            "Each gradient is divided by the number of rows. That belongs to a mean over the batch; a row "
            "alone is not averaged.",
            """
def sample_grads(net, loss, x, y):
    def one(params, x, y):
        return loss(torch.func.functional_call(net, params, (x,)), y)

    params = {name: p.detach() for name, p in net.named_parameters()}
    found = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0))(params, x, y)
    return {name: g / len(x) for name, g in found.items()}
""",
        ),
        Mistake(
            "accumulated",
            "Row `i` holds the sum of the rows up to `i`: `backward` adds to `.grad`. It is filled now, too.",
            """
def sample_grads(net, loss, x, y):
    found = {name: [] for name, _ in net.named_parameters()}
    for i in range(len(x)):
        loss(net(x[i]), y[i]).backward()
        for name, p in net.named_parameters():
            found[name].append(p.grad.clone())
    return {name: torch.stack(rows) for name, rows in found.items()}
""",
        ),
        Mistake(
            "through .grad",
            "The gradients are right, but they came through `.grad`, which is filled now. Use "
            "`autograd.grad`, or `torch.func.grad`.",
            """
def sample_grads(net, loss, x, y):
    found = {name: [] for name, _ in net.named_parameters()}
    for i in range(len(x)):
        net.zero_grad()
        loss(net(x[i]), y[i]).backward()
        for name, p in net.named_parameters():
            found[name].append(p.grad.clone())
    return {name: torch.stack(rows) for name, rows in found.items()}
""",
        ),
        Mistake(
            "a list",
            "You returned one dict for each row. One dict with stacked tensors was asked for.",
            """
def sample_grads(net, loss, x, y):
    names, params = zip(*net.named_parameters())
    return [dict(zip(names, torch.autograd.grad(loss(net(a), b), params))) for a, b in zip(x, y)]
""",
        ),
    ),
    cases=(
        _sample_case("one layer, four rows", lambda: nn.Linear(2, 1), 4),
        _sample_case(
            "two layers, three rows", lambda: nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), 3
        ),
        _sample_case("one row", lambda: nn.Linear(2, 1), 1),
    ),
    observe=_observe_samples,
)


# ------------------------------------------------------------------ a penalty between real and fake


def _observe_between(answer, critic: Callable, real, fake, alpha, w: torch.Tensor) -> dict:
    result = answer(critic, real, fake, alpha)
    recorded = isinstance(result, torch.Tensor) and result.requires_grad and result.numel() == 1
    side = any(t.grad is not None for t in (w, real, fake))
    slope = torch.autograd.grad(result.sum(), w, allow_unused=True)[0] if recorded else None
    return {
        "result": result,
        "gradient for the critic": slope,
        "side effect: .grad was filled": side,
        "side effect: real or fake requires grad now": real.requires_grad or fake.requires_grad,
    }


def _between_case(label: str, kind: Callable, rows: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        w = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
        real, fake = torch.randn(2, rows, 3, generator=generator, dtype=torch.float64)
        alpha = torch.rand(rows, 1, generator=generator, dtype=torch.float64)
        return (lambda x: kind(x, w)), real.clone(), fake.clone(), alpha, w

    return Case(label, make)


penalty_between = Exercise(
    name="penalty_between",
    chapter="24",
    title="A penalty between real and fake",
    minutes=10,
    difficulty=3,
    statement="""
The gradient penalty of a WGAN. `critic` gives one score for each row. Take the points `alpha * real + (1 -
alpha) * fake`, with `real` and `fake` of shape `(rows, 3)` and `alpha` of shape `(rows, 1)`, none of which
require grad. Write `penalty(critic, real, fake, alpha)`: the mean over the rows of `(norm - 1) ** 2`, where
`norm` is the length of the gradient of that row's score for that row's point. It must train the critic,
fill no `.grad`, and leave its arguments as they are.
""",
    kind="function",
    starter="def penalty(critic, real, fake, alpha):\n    ...",
    answer="penalty",
    hints=(
        "The points are a new tensor. They must require grad before the critic sees them.",
        "The gradient of the sum of the scores has each row's gradient in its row.",
        "`torch.autograd.grad(critic(x).sum(), x, create_graph=True)`, and no `detach` afterwards.",
    ),
    reference="""
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
    other_right=(
        """
def penalty(critic, real, fake, alpha):
    x = torch.lerp(fake, real, alpha)
    g = torch.func.grad(lambda x: critic(x).sum())(x)
    return (torch.linalg.vector_norm(g, dim=1) - 1).square().mean()
""",
    ),
    explains=(
        "The critic's weights reach the penalty only through the gradient `g`, so `g` needs its graph. The "
        "points themselves are data."
    ),
    mistakes=(
        Mistake(
            "no graph",
            "The number is right, but no gradient reaches the critic. It needs the graph of `g`: "
            "`create_graph=True`, and no `detach`.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.detach().norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "not required",
            "The points do not require grad, so there is no gradient for them: `.requires_grad_()` before "
            "the critic is called.",
            """
def penalty(critic, real, fake, alpha):
    x = alpha * real + (1 - alpha) * fake
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "alpha swapped",
            "You swapped the two: `alpha` belongs to `real`, and `1 - alpha` to `fake`.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * fake + (1 - alpha) * real).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "only real",
            "You took the gradient at `real`, not at the points between.",
            """
def penalty(critic, real, fake, alpha):
    x = real.clone().requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "one norm",
            "You took one length over all rows. Each row has its own: `norm(dim=1)`.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (g.norm() - 1) ** 2
""",
        ),
        Mistake(
            "mean score",
            "You differentiated the mean of the scores, so each length is divided by the number of rows.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).mean(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).mean()
""",
        ),
        Mistake(
            "summed",
            "You summed over the rows, the mean was asked: off by a factor of the number of rows.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((g.norm(dim=1) - 1) ** 2).sum()
""",
        ),
        Mistake(
            "no target",
            "The lengths are pulled to 0 here. Subtract 1 before you square.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    g, = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) ** 2).mean()
""",
        ),
        Mistake(
            "through .grad",
            "The number and its gradient are right, but `backward` filled the critic's `.grad` on the way. "
            "Use `autograd.grad`.",
            """
def penalty(critic, real, fake, alpha):
    x = (alpha * real + (1 - alpha) * fake).requires_grad_()
    critic(x).sum().backward(create_graph=True)
    return ((x.grad.norm(dim=1) - 1) ** 2).mean()
""",
        ),
    ),
    cases=(
        _between_case("four rows", lambda x, w: torch.tanh(x @ w) + (x**2 @ w), 4),
        _between_case("one row", lambda x, w: torch.sin(x @ w), 1),
        _between_case("scores of shape (rows, 1)", lambda x, w: (x * w).exp().sum(dim=1, keepdim=True), 5),
        _between_case("a linear critic", lambda x, w: x @ w, 3),
    ),
    observe=_observe_between,
)


# ------------------------------------------------------------------ a mixed partial derivative


def _partial_case(label: str, f: Callable, dtype: torch.dtype = torch.float32) -> Case:
    return Case(label, lambda generator: (f, torch.tensor(2.0, dtype=dtype), torch.tensor(3.0, dtype=dtype)))


mixed_partial = Exercise(
    name="mixed_partial",
    chapter="24",
    title="A mixed partial derivative",
    minutes=6,
    difficulty=2,
    statement="""
Write `mixed(f, x, y)`: the derivative of $f$ for $x$, and of that for $y$, $\\partial^2 f/\\partial y\\,
\\partial x$. `x`, `y` and the result are zero-dimensional tensors; `x` and `y` do not require grad. It must
be 0 for `x ** 2 + y ** 3`, and for `x + y`.

For `x ** 2 * y ** 3` at `x = 2`, `y = 3` it is 108.
""",
    kind="function",
    starter="def mixed(f, x, y):\n    ...",
    answer="mixed",
    hints=(
        "`torch.func.grad(f, argnums=1)` differentiates for the second argument.",
        "Nest two of them: the inner for `x`, the outer for `y`.",
        "With `autograd.grad`: the slope of `x ** 2 + y ** 3` for `x` has no `y` in it "
        "(`allow_unused=True`), and that of `x + y` has no graph at all.",
    ),
    reference="""
def mixed(f, x, y):
    for_x = torch.func.grad(f, argnums=0)
    return torch.func.grad(for_x, argnums=1)(x, y)
""",
    other_right=(
        """
def mixed(f, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    slope, = torch.autograd.grad(f(x, y), x, create_graph=True)
    if not slope.requires_grad:
        return torch.zeros_like(y)
    return torch.autograd.grad(slope, y, allow_unused=True, materialize_grads=True)[0]
""",
    ),
    explains=(
        "The order does not matter for smooth functions. `torch.func` gives zeros where nothing depends on "
        "an argument; `autograd.grad` wants to be told."
    ),
    mistakes=(
        Mistake(
            "unused raises",
            "Right where the slope depends on `y`. Elsewhere `autograd.grad` raises: the slope may have no "
            "`y` in it, or no graph at all.",
            """
def mixed(f, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    slope, = torch.autograd.grad(f(x, y), x, create_graph=True)
    return torch.autograd.grad(slope, y)[0]
""",
        ),
        Mistake(
            "constant raises",
            "Right, except where the slope is a constant, as for `x + y`: it has no graph, and "
            "`allow_unused=True` does not help there. Ask `slope.requires_grad`.",
            """
def mixed(f, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    slope, = torch.autograd.grad(f(x, y), x, create_graph=True)
    return torch.autograd.grad(slope, y, allow_unused=True, materialize_grads=True)[0]
""",
        ),
        Mistake(
            "None left",
            "Where the slope has no `y` in it, you returned `None`, which is what `allow_unused=True` and an "
            "empty `.grad` give. The derivative is 0 there.",
            """
def mixed(f, x, y):
    x, y = x.clone().requires_grad_(), y.clone().requires_grad_()
    slope, = torch.autograd.grad(f(x, y), x, create_graph=True)
    return torch.autograd.grad(slope, y, allow_unused=True)[0]
""",
        ),
        Mistake(
            "twice for x",
            "You differentiated twice for `x`. The second time belongs to `y`.",
            "\ndef mixed(f, x, y):\n    return torch.func.grad(torch.func.grad(f))(x, y)\n",
        ),
        Mistake(
            "twice for y",
            "You differentiated twice for `y`. The first time belongs to `x`.",
            """
def mixed(f, x, y):
    return torch.func.grad(torch.func.grad(f, argnums=1), argnums=1)(x, y)
""",
        ),
        Mistake(
            "product",
            "You multiplied the two first derivatives. Differentiate the first one again.",
            """
def mixed(f, x, y):
    return torch.func.grad(f, argnums=0)(x, y) * torch.func.grad(f, argnums=1)(x, y)
""",
        ),
        Mistake(
            "first order",
            "This is the first derivative for `x`. Differentiate it for `y`.",
            "\ndef mixed(f, x, y):\n    return torch.func.grad(f)(x, y)\n",
        ),
    ),
    cases=(
        _partial_case("the example", lambda x, y: x**2 * y**3),
        _partial_case("a sine", lambda x, y: torch.sin(x * y / 4) + x**3, torch.float64),
        _partial_case("no mixed term", lambda x, y: x**2 + y**3),
        _partial_case("a sum", lambda x, y: x + y),
        _partial_case("a product", lambda x, y: x * y),
    ),
    observe=observe_call,
)


# ------------------------------------------------------------------ the Laplacian


def _laplacian_case(label: str, f: Callable, rows: int, n: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return f, torch.randint(1, 4, (rows, n), generator=generator).double() / 2

    return Case(label, make)


laplacian = Exercise(
    name="laplacian",
    chapter="24",
    title="The Laplacian, for a batch of points",
    minutes=10,
    difficulty=3,
    statement="""
Networks that solve physics equations need the sum of the *unmixed* second derivatives, $\\sum_i \\partial^2
f/\\partial x_i^2$. `f` takes **one** point of shape `(n,)` and gives one number. Write `laplacian(f, x)` for
points `x` of shape `(rows, n)`: a tensor of shape `(rows,)`. It is 0 where `f` is linear.

For `f(x) = x[0] ** 2 * x[1]` at the points `(1, 2)` and `(3, 5)` it is `(4, 10)`.
""",
    kind="function",
    starter="def laplacian(f, x):\n    ...",
    answer="laplacian",
    hints=(
        "For one point: which entries of the Hessian are the unmixed derivatives?",
        "`torch.func.hessian(f)(point)` gives the matrix; the sum of its diagonal is its trace.",
        "`torch.func.vmap` maps a function of one point over the rows.",
    ),
    reference="""
def laplacian(f, x):
    def one(point):
        return torch.func.hessian(f)(point).diagonal().sum()

    return torch.func.vmap(one)(x)
""",
    other_right=(
        """
def laplacian(f, x):
    def one(point):
        units = torch.eye(len(point), dtype=point.dtype)
        slope = torch.func.grad(f)
        return sum((torch.func.jvp(slope, (point,), (e,))[1] * e).sum() for e in units)

    return torch.stack([one(point) for point in x])
""",
    ),
    explains="Only the diagonal of the Hessian counts. `vmap` over the points keeps them apart.",
    mistakes=(
        Mistake(
            "all entries",
            "You summed the whole Hessian, mixed derivatives too. The gradient of `g.sum()` does that: it "
            "adds up rows.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.hessian(f)(point).sum())(x)
""",
        ),
        Mistake(
            "one number",
            "You added up the points as well. Each row has its own value.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.hessian(f)(point).diagonal().sum())(x).sum()
""",
        ),
        Mistake(
            "not summed",
            "You returned the second derivatives one by one. Sum them for each point.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.hessian(f)(point).diagonal())(x)
""",
        ),
        Mistake(
            "mean",
            "You took the mean of the second derivatives. The Laplacian is their sum.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.hessian(f)(point).diagonal().mean())(x)
""",
        ),
        Mistake(
            "first order",
            "You summed the first derivatives. The second ones were asked for.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.grad(f)(point).sum())(x)
""",
        ),
        Mistake(
            "linear raises",
            "Right, except where `f` is linear: its gradient is a constant without a graph, and "
            "`autograd.grad` raises. `torch.func` gives 0 there.",
            """
def laplacian(f, x):
    values = []
    for point in x:
        point = point.clone().requires_grad_()
        g, = torch.autograd.grad(f(point), point, create_graph=True)
        rows = [torch.autograd.grad(slope, point, retain_graph=True)[0] for slope in g]
        values.append(torch.stack(rows).diagonal().sum())
    return torch.stack(values)
""",
        ),
        Mistake(
            "squared slopes",
            "You squared the first derivatives. A second derivative is something else than a square.",
            """
def laplacian(f, x):
    return torch.func.vmap(lambda point: torch.func.grad(f)(point).square().sum())(x)
""",
        ),
    ),
    cases=(
        Case(
            "the example",
            lambda generator: (lambda x: x[0] ** 2 * x[1], torch.tensor([[1.0, 2.0], [3.0, 5.0]])),
        ),
        _laplacian_case("three dimensions", lambda x: x.prod() + (x**3).sum(), 4, 3),
        _laplacian_case("one point", lambda x: torch.sin(x[0]) * x[1] ** 2 * x[0], 1, 2),
        _laplacian_case("one dimension", lambda x: (x**4).sum(), 3, 1),
        _laplacian_case("a linear function", lambda x: 3 * x.sum(), 2, 2),
    ),
    observe=observe_call,
)

EXERCISES = (
    predict_mixed,
    hessian_vector,
    newton_steps,
    per_sample_gradients,
    penalty_between,
    mixed_partial,
    laplacian,
)

"""Exercises of chapter 32: gradcheck."""

from collections.abc import Callable

import torch
from torch.autograd import Function, grad, gradcheck

from ._model import Case, Exercise, Mistake
from ._observe import observe_names

which_gradcheck = Exercise(
    name="which_gradcheck",
    chapter="32",
    title="Five Functions: which pass?",
    minutes=4,
    difficulty=2,
    statement="""
Each line is a Function: what `forward` returns, then what `backward` returns. `gradcheck` runs on
`x = torch.tensor([-2., 0., 1., 3.], dtype=torch.float64, requires_grad=True)`, with its defaults. Which pass?

- `a`: `x * x`, then `g * 2 * x`
- `b`: `x.abs()`, then `g * x.sign()`
- `c`: `x.clamp(min=0)`, then `g * (x > 0)`
- `d`: `x.sum()`, then `torch.ones_like(x)`
- `e`: `3 * x`, then `g.mul_(3)`

Answer with a list of letters. "Passes" is not the same as "is right".
""",
    kind="list",
    starter="passing = ...",
    answer="passing",
    hints=(
        "Two have a kink at 0. What is the mean of the two slopes there, and what does backward say?",
        "For a scalar output, gradcheck also tries a `g` other than 1.",
        "The `g` that gradcheck passes in belongs to nobody else.",
    ),
    reference='passing = ["a", "b", "e"]',
    explains=(
        "At 0 the numerical slope is the mean of both sides: 0 for `abs`, as `sign` says, and 0.5 for the "
        "clamp. `d` ignores `g`. "
        "`e` destroys a `g` that others may need, which gradcheck does not look for."
    ),
    mistakes=(
        Mistake(
            "both kinks",
            "`abs` has a kink at 0, but there the mean of −1 and 1 is 0, and `sign(0)` is 0: they "
            "agree, by luck.",
            'passing = ["a", "e"]',
        ),
        Mistake(
            "no kink",
            "At 0 the clamp goes up on one side only, so the numerical slope is 0.5. Backward says 0.",
            'passing = ["a", "b", "c", "e"]',
        ),
        Mistake(
            "in place",
            "Writing into `g` is a bug, but the numbers that come back are right, and those are compared.",
            'passing = ["a", "b"]',
        ),
        Mistake(
            "g ignored",
            "With `g = 1` the table of `d` is right, so gradcheck tries another `g`: "
            '"backward not multiplied by grad_output".',
            'passing = ["a", "b", "d", "e"]',
        ),
        Mistake(
            "right ones",
            "You listed what is right mathematically. gradcheck fails a right clamp on its kink, and "
            "passes `e`, "
            "which is wrong in use.",
            'passing = ["a", "b", "c"]',
        ),
    ),
    observe=observe_names,
)

read_the_tables = Exercise(
    name="read_the_tables",
    chapter="32",
    title="Name the cause",
    minutes=2,
    difficulty=1,
    statement="""
`gradcheck(f, (x,), eps=2**-10)` raises, in double precision:

`numerical: [[-510., 1536.], [512., -1022.]]`\\
`analytical: [[2., 0.], [0., 2.]]`

Which cause fits?
""",
    kind="choice",
    starter="cause = ...",
    answer="cause",
    hints=(
        "Which of the two tables is the strange one, and from which of your two methods does it come?",
        "Subtract the analytical table: what is left are multiples of 512, which is `1 / (2 * eps)`.",
    ),
    choices={
        "a": "a wrong formula in `backward`",
        "b": "a kink near one entry of `x`",
        "c": "two calls of `forward` on the same input differ",
        "d": "the inputs should be contiguous",
    },
    reference='cause = "c"',
    explains=(
        "The numerical table comes from `forward` alone. A difference of 1 between two calls, divided by "
        "`2 * eps`, is 512. Randomness does that, and so does a forward that overwrites its input."
    ),
    mistakes=(
        Mistake(
            "formula",
            "The analytical table is a plain 2 on the diagonal. The numerical one is wild, and it never "
            "looks at `backward`.",
            'cause = "a"',
        ),
        Mistake(
            "kink",
            "At a kink one entry is wrong, and it lies between two slopes. Here all entries are "
            "wrong and huge.",
            'cause = "b"',
        ),
        Mistake(
            "strides",
            "Ignored strides put right numbers in wrong places. No right slope is near 1536 here.",
            'cause = "d"',
        ),
    ),
)


# ------------------------------------------------------------------ a gradcheck of one's own


def _custom(forward: Callable, slope: Callable) -> Callable:
    """A function with a backward formula of its own: ``slope(g, x)``."""

    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, g):
            return slope(g, ctx.saved_tensors[0])

    return F.apply


# Rows and columns all have the sum 3: a check that adds slopes up cannot tell it from its mirror image.
_W = torch.tensor([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]], dtype=torch.float64)
_V = torch.tensor([[1.0, 2.0, 4.0], [0.0, 1.0, 3.0], [5.0, 0.0, 1.0]], dtype=torch.float64)


def _double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def _observe_check(answer, f: Callable, x: torch.Tensor) -> dict:
    before = x.detach().clone()
    result = answer(f, x)
    if isinstance(result, torch.Tensor) and result.dtype == torch.bool and result.numel() == 1:
        result = result.item()
    return {
        "result": result,
        "side effect: x was changed": not torch.equal(x.detach(), before),
        "side effect: x.grad was filled": x.grad is not None,
    }


def _check_case(label: str, f: Callable, make: Callable) -> Case:
    return Case(label, lambda generator: (f, make()))


tiny_gradcheck = Exercise(
    name="tiny_gradcheck",
    chapter="32",
    title="A tiny gradcheck",
    minutes=12,
    difficulty=3,
    statement="""
Write `check(f, x)`: `True` if the gradients that backward gives for `f` agree with finite differences, else
`False`. `x` is a `float64` leaf of any shape that requires grad, `f(x)` has any shape. **Every** slope of
every output entry with respect to every input entry must agree within `1e-5`.

Leave `x` and `x.grad` as they are, and do not call torch's `gradcheck`.
""",
    kind="function",
    starter="def check(f, x):\n    ...",
    answer="check",
    hints=(
        "One input entry at a time: step it up and down, run `f` twice, divide by `2 * eps`. With doubles, "
        "`eps = 1e-6`.",
        "One output entry at a time: a gradient of 1 there and 0 elsewhere, given to `torch.autograd.grad`.",
        "Stack the first as rows and the second as columns, and compare the largest absolute difference.",
    ),
    reference="""
def check(f, x):
    y = f(x)
    columns = []
    for j in range(y.numel()):
        g = torch.zeros(y.numel(), dtype=y.dtype)
        g[j] = 1
        columns.append(torch.autograd.grad(y, x, g.view(y.shape), retain_graph=True)[0].flatten())
    rows, eps = [], 1e-6
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = eps
        step = step.view(x.shape)
        with torch.no_grad():
            rows.append((f(x + step) - f(x - step)).flatten() / (2 * eps))
    difference = torch.stack(rows) - torch.stack(columns, dim=1)
    return bool(difference.abs().max() <= 1e-5)
""",
    other_right=(
        """
def check(f, x):
    J = torch.autograd.functional.jacobian(f, x).reshape(-1, x.numel())
    for i in range(x.numel()):
        step = torch.zeros_like(x, memory_format=torch.contiguous_format).detach().flatten()
        step[i] = 1e-6
        up = f(x.detach() + step.view(x.shape)).flatten()
        down = f(x.detach() - step.view(x.shape)).flatten()
        if not torch.allclose((up - down) / 2e-6, J[:, i], rtol=0, atol=1e-5):
            return False
    return True
""",
    ),
    explains=(
        "Forward fills the table row by row, backward column by column, and both must give the same table. "
        "A sum over entries would let errors cancel."
    ),
    mistakes=(
        Mistake(
            "sums",
            "You checked the gradient of the sum of the outputs. Errors in different outputs can "
            "cancel there. "
            "Check each output entry by itself.",
            """
def check(f, x):
    g, = torch.autograd.grad(f(x).sum(), x)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = 1e-6
        step = step.view(x.shape)
        with torch.no_grad():
            slope = (f(x + step) - f(x - step)).sum() / 2e-6
        if abs(slope - g.flatten()[i]) > 1e-5:
            return False
    return True
""",
        ),
        Mistake(
            "no abs",
            "You compared the difference without its sign taken off: gradients that are too large pass.",
            """
def check(f, x):
    y = f(x)
    eye = torch.eye(y.numel(), dtype=y.dtype)
    a = torch.stack([torch.autograd.grad(y, x, e.view(y.shape), retain_graph=True)[0].flatten() for e in eye])
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = 1e-6
        step = step.view(x.shape)
        with torch.no_grad():
            slope = (f(x + step) - f(x - step)).flatten() / 2e-6
        if (slope - a[:, i]).max() > 1e-5:
            return False
    return True
""",
        ),
        Mistake(
            "first entry",
            "You moved the first input entry only. The others may be wrong.",
            """
def check(f, x):
    y = f(x)
    eye = torch.eye(y.numel(), dtype=y.dtype)
    a = torch.stack([torch.autograd.grad(y, x, e.view(y.shape), retain_graph=True)[0].flatten() for e in eye])
    step = torch.zeros(x.numel(), dtype=x.dtype)
    step[0] = 1e-6
    step = step.view(x.shape)
    with torch.no_grad():
        slope = (f(x + step) - f(x - step)).flatten() / 2e-6
    return bool((slope - a[:, 0]).abs().max() <= 1e-5)
""",
        ),
        Mistake(
            "large step",
            "A right gradient of a curved function fails: your step is so large that the curve bends "
            "within it.",
            """
def check(f, x):
    y = f(x)
    eye = torch.eye(y.numel(), dtype=y.dtype)
    a = torch.stack([torch.autograd.grad(y, x, e.view(y.shape), retain_graph=True)[0].flatten() for e in eye])
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = 0.1
        step = step.view(x.shape)
        with torch.no_grad():
            slope = (f(x + step) - f(x - step)).flatten() / 0.2
        if (slope - a[:, i]).abs().max() > 1e-5:
            return False
    return True
""",
        ),
        Mistake(
            "transposed",
            "You compared one table with the mirror image of the other, which passes only when it is "
            "symmetric "
            "(or raises, when it is not square).",
            """
def check(f, x):
    y = f(x)
    eye = torch.eye(y.numel(), dtype=y.dtype)
    a = torch.stack([torch.autograd.grad(y, x, e.view(y.shape), retain_graph=True)[0].flatten() for e in eye])
    rows = []
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=x.dtype)
        step[i] = 1e-6
        step = step.view(x.shape)
        with torch.no_grad():
            rows.append((f(x + step) - f(x - step)).flatten() / 2e-6)
    return torch.allclose(torch.stack(rows), a, rtol=0, atol=1e-5)
""",
        ),
        Mistake(
            "moved together",
            "You moved all entries together, and compared with the gradient of the sum. That is right only "
            "where each output depends on one input. Else you compare sums over rows with sums over columns.",
            """
def check(f, x):
    g, = torch.autograd.grad(f(x).sum(), x)
    with torch.no_grad():
        slope = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
    return bool(torch.allclose(slope, g, rtol=0, atol=1e-5))
""",
        ),
        Mistake(
            "relative",
            "An error of 0.01 in a slope of 100 passes. Your tolerance grows with the slope, as that of "
            "torch's `gradcheck` does. Here each slope must agree within `1e-5`, large or small.",
            """
def check(f, x):
    return torch.autograd.gradcheck(f, (x,), raise_exception=False)
""",
        ),
        Mistake(
            "all at once",
            "You moved all input entries together. Errors in different entries can cancel then.",
            """
def check(f, x):
    y = f(x)
    eye = torch.eye(y.numel(), dtype=y.dtype)
    a = torch.stack([torch.autograd.grad(y, x, e.view(y.shape), retain_graph=True)[0].flatten() for e in eye])
    with torch.no_grad():
        slope = (f(x + 1e-6) - f(x - 1e-6)).flatten() / 2e-6
    return bool((slope - a.sum(dim=1)).abs().max() <= 1e-5)
""",
        ),
    ),
    cases=(
        _check_case(
            "a right cube", _custom(lambda x: x**3, lambda g, x: g * 3 * x**2), lambda: _double(1, 2, -1)
        ),
        _check_case(
            "a gradient too small", _custom(lambda x: x**2, lambda g, x: g * x), lambda: _double(1, 2, 3)
        ),
        _check_case(
            "a gradient too large", _custom(lambda x: x**2, lambda g, x: g * 3 * x), lambda: _double(1, 2, 3)
        ),
        _check_case(
            "only the last entry is wrong",
            _custom(lambda x: x**2, lambda g, x: g * 2 * x * torch.tensor([1.0, 1.0, 1.01]).double()),
            lambda: _double(1, 2, 3),
        ),
        _check_case(
            "mirrored, with equal sums",
            _custom(lambda x: x @ _W, lambda g, x: g @ _W),
            lambda: _double(1, 2, 3),
        ),
        _check_case(
            "other slopes, with equal sums",
            _custom(lambda x: x @ _W, lambda g, x: g.sum() * torch.ones_like(x)),
            lambda: _double(1, 2, 3),
        ),
        _check_case(
            "a large slope, off by one part in 10,000",
            _custom(lambda x: 100 * x, lambda g, x: g * 100.01),
            lambda: _double(1, 2),
        ),
        _check_case(
            "mirrored, with sums that differ",
            _custom(lambda x: x @ _V, lambda g, x: g @ _V),
            lambda: _double(1, 2, 3),
        ),
        _check_case(
            "each output has errors that cancel over the inputs",
            _custom(lambda x: 2 * x.sum()[None], lambda g, x: g * torch.tensor([1.0, 2.0, 3.0]).double()),
            lambda: _double(1, 2, 3),
        ),
        _check_case("a right product with a matrix", lambda x: x @ _V, lambda: _double(1, 2, 3)),
        _check_case(
            "a matrix that is not contiguous, right",
            lambda x: x.sin() * x.sum(),
            lambda: torch.tensor([[0.5, 1.0], [2.0, 0.25], [1.5, 3.0]]).double().t().requires_grad_(),
        ),
        _check_case(
            "no dimensions, right", lambda x: x.exp(), lambda: torch.tensor(0.5).double().requires_grad_()
        ),
    ),
    observe=_observe_check,
)


# ------------------------------------------------------------------ passes in float64, fails in use


def _observe_function(answer, x: torch.Tensor) -> dict:
    before = x.detach().clone()
    leaf = x.requires_grad_()
    y = answer.apply(leaf)
    weights = torch.linspace(1, 2, y.numel(), dtype=y.dtype).reshape(y.shape)
    (first,) = grad(y, leaf, weights, allow_unused=True)
    return {"result": y, "gradient": first, "side effect: x was changed": not torch.equal(x.detach(), before)}


def _values_case(label: str, dtype: torch.dtype, *values: float) -> Case:
    return Case(label, lambda generator: (torch.tensor(values, dtype=dtype),))


def _log_cosh(forward: str, backward: str, save: str = "x") -> str:
    return f"""
class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward({save})
        return {forward}

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return {backward}
"""


log_cosh = Exercise(
    name="log_cosh",
    chapter="32",
    title="Repair: passes in float64, fails in use",
    minutes=8,
    difficulty=2,
    statement=r"""
`LogCosh` is a smooth loss, $\log\cosh x$. Its author wrote `x.cosh().log()` and
`g * x.sinh() / x.cosh()`. gradcheck passes for `x` between −5 and 5, in double. In use, with `float32` and
`x = 100`, the value is `inf` and the gradient `nan`: $\cosh 100$ is too large for `float32`.

Write `LogCosh` so that value and gradient are right for every `x` of any size and shape, in `float32` and
`float64`. It must still have the true slope everywhere.
""",
    kind="Function",
    starter="""
class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="LogCosh",
    hints=(
        "sinh/cosh has a name, and torch computes it without overflow.",
        "For large positive `x`, $\\cosh x$ is nearly $e^x/2$, so the value is nearly `x - log(2)`. "
        "What is missing "
        "to make that exact?",
        "$\\log\\cosh x = |x| + \\log(1 + e^{-2|x|}) - \\log 2$, and $e^{-2|x|}$ never overflows.",
    ),
    reference="""
class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        size = x.abs()
        return size + torch.log1p(torch.exp(-2 * size)) - 0.6931471805599453

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * x.tanh()
""",
    other_right=(
        _log_cosh(
            "torch.logaddexp(x, -x) - 0.6931471805599453",
            "g * x.tanh()",
        ),
    ),
    explains=(
        "gradcheck ran in double and near 0, where nothing overflows. Range is a property to test by itself: "
        "large inputs, in the dtype that is used."
    ),
    mistakes=(
        Mistake(
            "backward only",
            "The gradient is repaired. The value still goes through `cosh`, which overflows.",
            _log_cosh("x.cosh().log()", "g * x.tanh()"),
        ),
        Mistake(
            "forward only",
            "The value is repaired. The gradient still divides two numbers that overflow.",
            _log_cosh("torch.logaddexp(x, -x) - 0.6931471805599453", "g * x.sinh() / x.cosh()"),
        ),
        Mistake(
            "as before",
            "This is the author's version: right near 0, and it overflows for large `x`.",
            _log_cosh("x.cosh().log()", "g * x.sinh() / x.cosh()"),
        ),
        Mistake(
            "clamped",
            "A clamp keeps `cosh` in range, but makes the value of every larger `x` the same.",
            _log_cosh("x.clamp(-20, 20).cosh().log()", "g * x.tanh()"),
        ),
        Mistake(
            "no log 2",
            "The value is too large by log 2 everywhere.",
            _log_cosh("torch.logaddexp(x, -x)", "g * x.tanh()"),
        ),
        Mistake(
            "absolute value",
            "You left out the part that matters near 0. For large `x` the value is `|x| - log(2)`, "
            "at 0 it is 0.",
            _log_cosh("x.abs() - 0.6931471805599453", "g * x.tanh()"),
        ),
        Mistake(
            "sign",
            "For large `x` you took the sign as the slope, which jumps at 0. The true slope is smooth there.",
            _log_cosh("torch.logaddexp(x, -x) - 0.6931471805599453", "g * x.sign()"),
        ),
    ),
    cases=(
        _values_case("small and large, float32", torch.float32, 1.0, 100.0),
        _values_case("negative", torch.float32, -100.0, -0.5),
        _values_case("near 0, float64", torch.float64, -1.0, -0.25, 0.0, 0.5, 2.0),
        _values_case("very large, float64", torch.float64, 2000.0, -2000.0),
        _values_case("no elements", torch.float32),
        Case("no dimensions", lambda generator: (torch.tensor(3.0),)),
        Case("not contiguous", lambda generator: (torch.tensor([[0.5, 1.0], [60.0, -200.0]]).t(),)),
    ),
    observe=_observe_function,
)


# ------------------------------------------------------------------ a random operation made checkable


def _drop(x: torch.Tensor) -> torch.Tensor:
    return x * (torch.rand(x.shape) < 0.5) * 2


def _add_noise(x: torch.Tensor) -> torch.Tensor:
    return x * x + torch.randn(x.shape, dtype=x.dtype)


def _scale_noise(x: torch.Tensor) -> torch.Tensor:
    return x * (1 + torch.rand(x.shape, dtype=x.dtype))


def _observe_steady(answer, noisy: Callable, x: torch.Tensor) -> dict:
    calls, start = [], torch.get_rng_state()

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return noisy(x)

    steady = answer(counted)
    made = torch.get_rng_state()
    calls.clear()
    first = steady(x)
    called = torch.get_rng_state()
    torch.rand(1)  # other code draws as well
    second = steady(x)
    seen = {
        "answer to: do two calls give the same?": torch.equal(first, second),
        "number of times the operation ran in two calls": len(calls),
        "answer to: does gradcheck pass?": gradcheck(steady, (x,), raise_exception=False),
        "side effect: making the function changed the random state": not torch.equal(start, made),
        "side effect: a call changed the random state": not torch.equal(made, called),
    }
    torch.set_rng_state(start)
    return seen


def _steady_case(label: str, noisy: Callable, *shape: int) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return noisy, torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()

    return Case(label, make)


steady_noise = Exercise(
    name="steady_noise",
    chapter="32",
    title="Make a random operation checkable",
    minutes=7,
    difficulty=2,
    statement="""
`noisy(x)` draws from torch's global random state at each call, so gradcheck fails on it. Write
`steady(noisy)`: it returns a function of `x` that runs `noisy(x)` with the same noise at each call.

The global random state must be the same after each call as before it: other code draws from it too.
""",
    kind="function",
    starter="def steady(noisy):\n    ...",
    answer="steady",
    hints=(
        "The noise is the same if the random state is the same when `noisy` begins. So seed inside "
        "the function "
        "that you return.",
        "`torch.random.fork_rng()` is a context that puts the random state back at its end.",
    ),
    reference="""
def steady(noisy):
    def fixed(x):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return noisy(x)
    return fixed
""",
    other_right=(
        """
def steady(noisy):
    start = torch.get_rng_state()
    def fixed(x):
        before = torch.get_rng_state()
        torch.set_rng_state(start)
        y = noisy(x)
        torch.set_rng_state(before)
        return y
    return fixed
""",
    ),
    explains=(
        "With its noise held fixed the operation is an ordinary function, and its slopes can be "
        "compared. The seed "
        "is an aid of the test, not a part of the operation."
    ),
    mistakes=(
        Mistake(
            "as before",
            "Two calls still differ: nothing in your function holds the noise fixed. `noisy` draws from the "
            "global random state, so that is what must be set before each call.",
            "\ndef steady(noisy):\n    return noisy\n",
        ),
        Mistake(
            "seeded once",
            "You seeded once. The second call goes on from where the first one ended, so it draws "
            "other noise. And "
            "the global random state was changed.",
            "\ndef steady(noisy):\n    torch.manual_seed(0)\n    return noisy\n",
        ),
        Mistake(
            "global seed",
            "The noise is fixed, but every call resets the global random state, and all other code "
            "draws the same "
            "numbers again. Put it back.",
            """
def steady(noisy):
    def fixed(x):
        torch.manual_seed(0)
        return noisy(x)
    return fixed
""",
        ),
        Mistake(
            "cached",
            "You kept a result and return it again, whatever `x` is. Keep the noise, and let `x` vary.",
            """
def steady(noisy):
    kept = []
    def fixed(x):
        if not kept:
            with torch.random.fork_rng(devices=[]):
                kept.append(noisy(x))
        return kept[0]
    return fixed
""",
        ),
        Mistake(
            "forked only",
            "You put the state back, so the next call finds the same one, as long as nobody draws in "
            "between. Seed inside, so that it does not depend on others.",
            """
def steady(noisy):
    def fixed(x):
        with torch.random.fork_rng(devices=[]):
            return noisy(x)
    return fixed
""",
        ),
        Mistake(
            "without the operation",
            "Your function does not run `noisy`, so nothing of it is checked.",
            "\ndef steady(noisy):\n    return lambda x: x * 1\n",
        ),
    ),
    cases=(
        _steady_case("dropout", _drop, 16),
        _steady_case("added noise", _add_noise, 4),
        _steady_case("a matrix scaled by noise", _scale_noise, 2, 3),
    ),
    observe=_observe_steady,
)


# ------------------------------------------------------------------ a gradient that belongs to others


def _uses(y: torch.Tensor, x: torch.Tensor, weights: torch.Tensor) -> dict[str, torch.Tensor]:
    return {
        "alone": (y * weights).sum(),
        "added to x": ((y + x) * weights).sum(),
        "summed": y.sum(),
        "transposed": (y.t().contiguous() * weights.t()).sum(),
    }


def _observe_shared(answer, x: torch.Tensor) -> dict:
    before = x.detach().clone()
    leaf = x.requires_grad_()
    weights = torch.linspace(1, 2, x.numel(), dtype=x.dtype).reshape(x.shape)
    seen = {"result": answer.apply(leaf)}
    for name in ("alone", "added to x", "summed", "transposed"):
        loss = _uses(answer.apply(leaf), leaf, weights)[name]
        try:
            (seen[f"gradient, {name}"],) = grad(loss, leaf)
        except RuntimeError:
            seen[f"gradient, {name}"] = "an error"
    if torch.equal(x.detach(), before):
        g = weights.clone().requires_grad_()
        (first,) = grad(answer.apply(leaf), leaf, g, create_graph=True)
        linked = isinstance(first, torch.Tensor) and first.requires_grad
        second = grad(first.sum(), [leaf, g], allow_unused=True) if linked else (None, None)
        seen["gradient of the gradient"], seen["gradient of the gradient, for g"] = second
        seen["gradient after an in-place change of the input"] = _after_change(answer.apply, leaf, weights)
    seen["side effect: x was changed"] = not torch.equal(x.detach(), before)
    return seen


def _after_change(apply: Callable, leaf: torch.Tensor, weights: torch.Tensor) -> str:
    """Whether a change of the input before backward is refused, or does no harm."""
    h = leaf * 1
    y = apply(h)
    (before,) = grad(y, leaf, weights.clone(), retain_graph=True)
    with torch.no_grad():
        h.add_(1)
    try:
        (after,) = grad(y, leaf, weights.clone())
    except RuntimeError:
        return "refused, or as before"
    return "refused, or as before" if torch.equal(before, after) else "another one, and no error"


def _cube(backward: str, forward: str = "x**3") -> str:
    body = "\n        ".join(backward.split("\n"))
    return f"""
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        {body}
"""


shared_gradient = Exercise(
    name="shared_gradient",
    chapter="32",
    title="Repair: right alone, wrong in company",
    minutes=4,
    difficulty=1,
    statement="""
This backward passes gradcheck. But `(Cube.apply(x) + x).sum()` gives a wrong gradient or an error:

`x, = ctx.saved_tensors`\\
`return g.mul_(3 * x * x)`

Write `Cube` so that it is right in every use, and may be differentiated twice.
""",
    kind="Function",
    starter="""
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ...

    @staticmethod
    def backward(ctx, g):
        ...
""",
    answer="Cube",
    hints=(
        "To whom else does `g` belong in `Cube.apply(x) + x`?",
        "A sum hands the same `g` to both of its inputs. Do not write into it.",
    ),
    reference=_cube("return g * 3 * x * x"),
    other_right=(_cube("return 3 * x.square() * g"), _cube("g = g.clone()\nreturn g.mul_(3 * x * x)")),
    explains=(
        "`g` is an input of backward like any other: others may hold it, and it may be expanded, "
        "with one number "
        "under many indices. Multiply out of place, or clone first."
    ),
    mistakes=(
        Mistake(
            "as before", "You still write into `g`, which others need.", _cube("return g.mul_(3 * x * x)")
        ),
        Mistake(
            "g ignored",
            "The gradient that arrives, `g`, is not in your result. The chain rule multiplies by it.",
            _cube("return 3 * x * x"),
        ),
        Mistake(
            "factor", "The slope of the cube is three times the square of `x`.", _cube("return g * x * x")
        ),
        Mistake(
            "detached",
            "The first derivative is right. The second is not, since your slope has no link to `x`: "
            "`detach` and `.data` cut it, and what `forward` worked out never had one.",
            _cube("x = x.detach()\nreturn g * 3 * x * x"),
        ),
        Mistake(
            "g detached",
            "The first derivative is right. But you cut `g` off, and the second pass comes through `g` too, "
            "as soon as something follows the cube.",
            _cube("return g.detach() * 3 * x * x"),
        ),
        Mistake(
            "on ctx",
            "Everything is right until somebody changes the input in place: `x` lies on `ctx` as an "
            "attribute, so nobody notices. Use `save_for_backward`.",
            _cube("return g * 3 * x * x")
            .replace("ctx.save_for_backward(x)", "ctx.x = x")
            .replace("x, = ctx.saved_tensors", "x = ctx.x"),
        ),
        Mistake(
            "writes into x",
            "`g` is safe now, but the input `x` is changed by your backward.",
            _cube("return x.data.mul_(x).mul_(3) * g"),
        ),
        Mistake("wrong slope", "`2 * x` is the slope of the square.", _cube("return g * 2 * x")),
    ),
    cases=(
        Case("three elements", lambda generator: (torch.tensor([1.0, 2.0, -1.0]),)),
        Case("one element", lambda generator: (torch.tensor([3.0]),)),
        Case("no dimensions, float64", lambda generator: (torch.tensor(2.0, dtype=torch.float64),)),
        Case("a matrix", lambda generator: (torch.tensor([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]]),)),
        Case("no elements", lambda generator: (torch.zeros(0),)),
    ),
    observe=_observe_shared,
)


# ------------------------------------------------------------------ a kernel that takes float32 only


def _f32(f: Callable) -> Callable:
    def kernel(x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float32:
            raise TypeError("this kernel takes float32 only")
        return f(x)

    return kernel


def _f64(f: Callable) -> Callable:
    def reference(x: torch.Tensor) -> torch.Tensor:
        if x.dtype != torch.float64:
            raise TypeError("this reference wants float64")
        return f(x)

    return reference


def _observe_agrees(answer, kernel: Callable, reference: Callable, x: torch.Tensor) -> dict:
    result = answer(kernel, reference, x)
    if isinstance(result, torch.Tensor) and result.dtype == torch.bool and result.numel() == 1:
        result = result.item()
    return {"result": result, "side effect: x.grad was filled": x.grad is not None}


def _agrees_case(label: str, kernel: Callable, reference: Callable, *values: float) -> Case:
    return Case(
        label, lambda generator: (_f32(kernel), _f64(reference), torch.tensor(values, requires_grad=True))
    )


single_precision = Exercise(
    name="single_precision",
    chapter="32",
    title="Check a kernel that takes only float32",
    minutes=6,
    difficulty=2,
    statement="""
`kernel(x)` refuses everything but `float32`. `reference(x)` computes the same in plain torch and refuses
everything but `float64`. Write `agrees(kernel, reference, x)` for a `float32` leaf `x` that requires grad:
`True` if the gradients of `kernel(x).sum()` and of `reference(...).sum()` agree everywhere within a relative
error of `1e-3`, else `False`.

Leave `x.grad` as it is.
""",
    kind="function",
    starter="def agrees(kernel, reference, x):\n    ...",
    answer="agrees",
    hints=(
        "The reference needs a `float64` leaf with the same numbers: `x.detach().double().requires_grad_()`.",
        "Take both gradients with `torch.autograd.grad`, bring them to one dtype, and compare.",
        "`torch.allclose(mine.double(), true, rtol=1e-3)`: on a float32 result, do not ask for equality.",
    ),
    reference="""
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(exact).sum(), exact)
    return torch.allclose(mine.double(), true, rtol=1e-3, atol=1e-6)
""",
    other_right=(
        """
def agrees(kernel, reference, x):
    a = x.detach().clone().requires_grad_()
    b = x.detach().to(torch.float64).requires_grad_()
    kernel(a).sum().backward()
    reference(b).sum().backward()
    return bool(((a.grad - b.grad).abs() <= 1e-3 * b.grad.abs() + 1e-7).all())
""",
    ),
    explains=(
        "The reference is exact to 16 digits, so the comparison is limited by the kernel alone. "
        "Finite differences in `float32` with the default `eps` are themselves off by more than 1 percent."
    ),
    mistakes=(
        Mistake(
            "values only",
            "You compared the values of the two functions. Their gradients may still differ.",
            """
def agrees(kernel, reference, x):
    return torch.allclose(kernel(x).double(), reference(x.detach().double()), rtol=1e-3)
""",
        ),
        Mistake(
            "exact",
            "You asked for equality. A right `float32` gradient differs from the exact one in the "
            "last digits.",
            """
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(exact).sum(), exact)
    return torch.equal(mine.double(), true)
""",
        ),
        Mistake(
            "loose",
            "Your tolerance is so wide that an error of 1 percent passes. That is a bug, not rounding.",
            """
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(exact).sum(), exact)
    return torch.allclose(mine.double(), true, rtol=5e-2)
""",
        ),
        Mistake(
            "absolute",
            "A small gradient passes, whatever it is: your absolute tolerance is larger than it. A "
            "*relative* error was asked for, so keep `atol` far below the gradients.",
            """
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(exact).sum(), exact)
    return torch.allclose(mine.double(), true, rtol=1e-3, atol=1e-3)
""",
        ),
        Mistake(
            "reference in single",
            "The reference wants a `float64` input. Give it a leaf of its own.",
            """
def agrees(kernel, reference, x):
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(x).sum(), x)
    return torch.allclose(mine, true, rtol=1e-3)
""",
        ),
        Mistake(
            "fills .grad",
            "The answer is right, but `backward` filled `x.grad` on the way. Use `autograd.grad`, or "
            "a leaf of "
            "your own.",
            """
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    kernel(x).sum().backward()
    reference(exact).sum().backward()
    return torch.allclose(x.grad.double(), exact.grad, rtol=1e-3, atol=1e-6)
""",
        ),
        Mistake(
            "summed up",
            "You compared the sums of the two gradients. Errors in different entries can cancel.",
            """
def agrees(kernel, reference, x):
    exact = x.detach().double().requires_grad_()
    mine, = torch.autograd.grad(kernel(x).sum(), x)
    true, = torch.autograd.grad(reference(exact).sum(), exact)
    return torch.allclose(mine.sum().double(), true.sum(), rtol=1e-3)
""",
        ),
    ),
    cases=(
        _agrees_case("a right sine", torch.sin, torch.sin, 0.3, 0.7, 1.1),
        _agrees_case(
            "a factor lost", _custom(lambda x: x**3, lambda g, x: g * x * x), lambda x: x**3, 1.0, 2.0, 3.0
        ),
        _agrees_case(
            "off by 1 percent",
            _custom(lambda x: x.exp(), lambda g, x: g * 1.01 * x.exp()),
            torch.exp,
            0.5,
            1.0,
        ),
        _agrees_case(
            "errors that cancel",
            _custom(lambda x: x**2, lambda g, x: g * 2 * x.flip(0)),
            lambda x: x**2,
            1.0,
            2.0,
            4.0,
        ),
        _agrees_case("one element, right", torch.tanh, torch.tanh, 0.37),
        _agrees_case(
            "small gradients, half of the true ones",
            _custom(lambda x: 1e-4 * x**2, lambda g, x: g * 1e-4 * x),
            lambda x: 1e-4 * x**2,
            1.0,
            2.0,
        ),
    ),
    observe=_observe_agrees,
)

EXERCISES = (
    which_gradcheck,
    read_the_tables,
    tiny_gradcheck,
    steady_noise,
    shared_gradient,
    log_cosh,
    single_precision,
)

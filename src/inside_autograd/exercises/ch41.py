"""Exercises of chapter 41: anomaly mode and NaN."""

from collections.abc import Callable

import torch
from torch import nn

from ._model import Case, Exercise, Mistake
from ._observe import observe_gradient

NAN = float("nan")


def _observe_step(answer: Callable, w: torch.Tensor, *others: object) -> dict:
    """The loss of one training step, and the gradient that it gives to ``w``."""
    loss = answer(w, *others)
    gradient = None
    if isinstance(loss, torch.Tensor) and loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, w, allow_unused=True)
    return {"loss": loss, "gradient for w": gradient, "side effect: w.grad was filled": w.grad is not None}


def _observe_places(answer: object) -> dict:
    # With its number each name is another item, so that the report counts places and not kinds of names.
    return {"answer": tuple(f"{i}: {str(name).strip()}" for i, name in enumerate(answer, 1))}


named_nodes = Exercise(
    name="named_nodes",
    chapter="41",
    title="Predict: which node is named?",
    minutes=4,
    difficulty=2,
    statement="""
The whole step runs under `detect_anomaly()`, and ends in `.sum().backward()`. Which node does the error
name?

1. `(x * 0).sqrt()` at `x = 1`
2. `(x - 2).sqrt()` at `x = 1`
3. `(x * x + 1)`, where `x` is NaN
4. `(x - 2).log()` at `x = 1`

Answer with a list of four names such as `"AddBackward0"`, or `"none"` where no error comes.
""",
    kind="list",
    starter="names = ...",
    answer="names",
    hints=(
        "Anomaly mode looks for NaN in what a node *returns*. Infinities pass.",
        "In 1 the root gets 1 and returns $1 / (2 \\sqrt{0})$. In 2 its saved result is NaN already.",
        "In 3 `AddBackward0` passes on what it gets. In 4 the formula is `grad / (x - 2)`.",
    ),
    reference='names = ["MulBackward0", "SqrtBackward0", "MulBackward0", "none"]',
    explains=(
        "1: the root returns an infinity, and `MulBackward0` makes NaN of it by its 0. 2: the NaN of "
        "forward is in the root's formula. 3: the product's formula meets the NaN that was in the data. "
        "4: the loss is NaN, and the gradient is 1 / -1."
    ),
    mistakes=(
        Mistake(
            "infinity caught",
            "In 1 the root returns an infinity, and anomaly mode looks for NaN alone.",
            'names = ["SqrtBackward0", "SqrtBackward0", "MulBackward0", "none"]',
        ),
        Mistake(
            "log caught",
            "In 4 the loss is NaN, but the gradient is 1 / (x - 2) = -1. Anomaly mode looks at gradients.",
            'names = ["MulBackward0", "SqrtBackward0", "MulBackward0", "LogBackward0"]',
        ),
        Mistake(
            "both at first sight",
            "Anomaly mode looks at what nodes return, for NaN alone: an infinity passes, and so does a "
            "NaN that stays in forward.",
            'names = ["SqrtBackward0", "SqrtBackward0", "MulBackward0", "LogBackward0"]',
        ),
        Mistake(
            "last node blamed",
            "In 3 `AddBackward0` passes on the 1 that it gets. The product's formula is the first to use "
            "`x`.",
            'names = ["MulBackward0", "SqrtBackward0", "AddBackward0", "none"]',
        ),
        Mistake(
            "data not blamed",
            "In 3 the product's gradient is `grad * x`, and `x` is NaN: its node is blamed for the data.",
            'names = ["MulBackward0", "SqrtBackward0", "none", "none"]',
        ),
        Mistake(
            "subtraction blamed",
            "In 2 `SubBackward0` only passes on a NaN. The first node to return one is the root's.",
            'names = ["MulBackward0", "SubBackward0", "MulBackward0", "none"]',
        ),
        Mistake(
            "root not blamed",
            "In 2 the NaN of forward does reach a gradient: the root's formula divides by its result, and "
            "that is NaN. (The formula of 4, `grad / (x - 2)`, has no NaN in it.)",
            'names = ["MulBackward0", "none", "MulBackward0", "none"]',
        ),
    ),
    observe=_observe_places,
)


# ------------------------------------------------------------------ mystery 1


def _observe_fit(answer: Callable, w: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> dict:
    """As for every step; a loss that is off by less than the statement allows counts as the formula's."""
    seen, exact = _observe_step(answer, w, x, y), ((x @ w - y) ** 2).mean().sqrt().detach()
    loss = seen["loss"]
    alike = isinstance(loss, torch.Tensor) and loss.shape == exact.shape and loss.dtype == exact.dtype
    # 0.0001 is allowed; what the square root of 1e-8 rounds to is still that.
    if alike and (loss.detach() - exact).abs() < 2e-4:
        seen["loss"] = exact
    return seen


def _fit_case(label: str, w: list, x: list, error: list, turned: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        weights, data = torch.tensor(w, requires_grad=True), torch.tensor(x)
        if turned:
            data = data.t().contiguous().t()
        return weights, data, (data @ weights).detach() - torch.tensor(error)

    return Case(label, make)


RMSE = """
def step_loss(w, x, y):
    {}
"""

perfect_fit = Exercise(
    name="perfect_fit",
    chapter="41",
    title="Mystery 1: perfect, then NaN",
    minutes=5,
    difficulty=1,
    statement="""
The weights of this step turn into NaN on the day when the fit is perfect:

```python
def step_loss(w, x, y):
    return ((x @ w - y) ** 2).mean().sqrt()
```

`w` has shape (n,), `x` (m, n), `y` (m,). Repair it: a gradient of 0 for a perfect fit, otherwise the same
loss and gradient. (0.0001 more or less in the loss does not matter.)

For `w = [4]`, `x = [[2], [2]]`, `y = [8, 8]`: loss 0, gradient `[0]`.
""",
    kind="function",
    starter="def step_loss(w, x, y):\n    ...",
    answer="step_loss",
    hints=(
        "Run `first_nonfinite(lambda: step_loss(w, x, y), {'w': w})` on the example. Which value had the "
        "node saved?",
        "The root must not meet a 0. A small number *inside* it helps; how small must it be?",
        "Or use the operation that defines its slope at 0: `torch.linalg.vector_norm`.",
    ),
    reference=RMSE.format("return torch.linalg.vector_norm(x @ w - y) / len(y) ** 0.5"),
    other_right=(
        RMSE.format("return (((x @ w - y) ** 2).mean() + 1e-8).sqrt()"),
        RMSE.format("return ((x @ w - y) ** 2).mean().clamp(min=1e-8).sqrt()"),
        RMSE.format("return (((x @ w - y) ** 2).mean() + 1e-10).sqrt()"),
        RMSE.format("return ((x @ w - y) ** 2).mean().clamp(min=1e-10).sqrt()"),
        RMSE.format(
            "mse = ((x @ w - y) ** 2).mean()\n    return torch.where(mse > 0, torch.where(mse > 0, mse, "
            "1.0).sqrt(), 0.0)"
        ),
        RMSE.format("e = x @ w - y\n    return e.norm() / e.numel() ** 0.5"),
    ),
    explains=(
        "The slope of the root at 0 is infinite, and the square behind it multiplies by 0. `vector_norm` "
        "defines the slope there as 0, an `eps` inside the root keeps it finite."
    ),
    mistakes=(
        Mistake(
            "root meets zero",
            "For a perfect fit the gradient is still NaN, as it was. What is added to the *result* of the"
            " root, or a `where` around it, comes too late.",
            RMSE.format("return ((x @ w - y) ** 2).mean().sqrt()"),
        ),
        Mistake(
            "no root",
            "This is the mean squared error. It has no bad point, but it is another loss: the root was "
            "asked for.",
            RMSE.format("return ((x @ w - y) ** 2).mean()"),
        ),
        Mistake(
            "absolute error",
            "This is the mean absolute error, another loss.",
            RMSE.format("return (x @ w - y).abs().mean()"),
        ),
        Mistake(
            "cut off",
            "For a perfect fit your loss has no graph, so `backward()` would raise. Return a 0 that "
            "depends on `w`.",
            RMSE.format(
                "mse = ((x @ w - y) ** 2).mean()\n    return mse.sqrt() if mse > 0 else torch.tensor(0.0)"
            ),
        ),
        Mistake(
            "root held fixed",
            "The loss is right, the gradient twice what it should be: the root in the divisor depends on "
            "`w` too.",
            RMSE.format(
                "mse = ((x @ w - y) ** 2).mean()\n    return mse / mse.detach().sqrt().clamp(min=1e-8)"
            ),
        ),
        Mistake(
            "eps too large",
            "For a perfect fit your loss is 0.001. What you add inside the root comes out as its root: "
            "take less.",
            RMSE.format("return (((x @ w - y) ** 2).mean() + 1e-6).sqrt()"),
        ),
    ),
    cases=(
        _fit_case("a perfect fit", [4.0], [[2.0], [2.0]], [0.0, 0.0]),
        _fit_case("not yet perfect", [3.0], [[2.0], [2.0]], [2.0, 2.0]),
        _fit_case("errors of 2 and -1", [1.0, 2.0], [[1.0, 0.0], [2.0, 1.0]], [2.0, -1.0]),
        _fit_case("one row", [1.0, -1.0, 2.0], [[1.0, 2.0, 4.0]], [3.0]),
        _fit_case("not contiguous", [1.0, 2.0], [[1.0, 3.0], [2.0, 1.0], [0.0, 1.0]], [0.0, 0.5, 1.0], True),
    ),
    observe=_observe_fit,
)


# ------------------------------------------------------------------ mystery 2


def _padded_case(label: str, x: list, mask: list) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(x), torch.tensor(mask)

    return Case(label, make)


PADDED = """
def step_loss(w, x, mask):
    rates = x @ w
    {}
"""

padded_rows = Exercise(
    name="padded_rows",
    chapter="41",
    title="Mystery 2: rows that do not count",
    minutes=5,
    difficulty=2,
    statement="""
The rows of `x` where `mask` is `False` are padding, all zeros. The loss is finite, and after one step `w`
is NaN:

```python
def step_loss(w, x, mask):
    rates = x @ w
    return -torch.where(mask, torch.log(rates), 0.0).sum()
```

`w` has shape (n,), `x` (m, n), `mask` (m,). Where `mask` is `True` the rates are positive, however small.
Repair it; the loss stays the same. For `w = [1, 2]`, `x = [[1, 0], [0, 0]]`, `mask = [True, False]`: loss
0, gradient `[-1, 0]`.
""",
    kind="function",
    starter="def step_loss(w, x, mask):\n    ...",
    answer="step_loss",
    hints=(
        "`where` sends a gradient of 0 to the logarithm of the padding. What is its formula, `grad / "
        "rates`, there?",
        "Give the logarithm a harmless rate where `mask` is `False`, before it runs.",
        "Or leave those rows out: `rates[mask]`.",
    ),
    reference=PADDED.format("return -torch.where(mask, rates, 1.0).log().sum()"),
    other_right=(
        PADDED.format("return -rates[mask].log().sum()"),
        PADDED.format(
            "safe = torch.where(mask, rates, 5.0)\n    return -torch.where(mask, safe.log(), 0.0).sum()"
        ),
        PADDED.format("return -rates.masked_fill(~mask, 1).log().sum()"),
    ),
    explains=(
        "The logarithm of padding still runs, and $0 / 0$ in its backward is NaN. The number that you put"
        " in must be harmless for the logarithm; 1 is harmless for the sum as well."
    ),
    mistakes=(
        Mistake(
            "log meets zero",
            "The loss is right, and the gradient NaN, as it was: a logarithm that runs on padding meets "
            "its zeros. Mend its input, not its result.",
            PADDED.format("return -torch.where(mask, torch.log(rates), 0.0).sum()"),
        ),
        Mistake(
            "product with the mask",
            "With padding even the loss is NaN: the logarithm of 0 is -inf, and -inf times 0 is NaN.",
            PADDED.format("return -(rates.log() * mask).sum()"),
        ),
        Mistake(
            "eps changes small rates",
            "Finite, but what you add to the rates changes the logarithm of the small ones.",
            PADDED.format("return -torch.where(mask, torch.log(rates + 1e-8), 0.0).sum()"),
        ),
        Mistake(
            "harmless number in the loss",
            "The padding adds to the loss: the logarithm of what you put in is not 0. Mask the result as "
            "well, or put in 1.",
            PADDED.format("return -torch.where(mask, rates, 0.5).log().sum()"),
        ),
        Mistake(
            "mean",
            "This is a mean over the rows that count. The sum was there before, so keep it.",
            PADDED.format("return -rates[mask].log().sum() / max(int(mask.sum()), 1)"),
        ),
        Mistake(
            "sign",
            "The sign is lost: the loss is minus the sum of the logarithms.",
            PADDED.format("return rates[mask].log().sum()"),
        ),
    ),
    cases=(
        _padded_case("one row of padding", [[1.0, 0.0], [0.0, 0.0]], [True, False]),
        _padded_case("no padding", [[1.0, 2.0], [3.0, 1.0]], [True, True]),
        _padded_case("a small rate", [[1e-9, 0.0], [0.0, 0.0], [1.0, 4.0]], [True, False, True]),
        _padded_case("nothing but padding", [[0.0, 0.0], [0.0, 0.0]], [False, False]),
        _padded_case("one row", [[0.5, 0.5]], [True]),
    ),
    observe=_observe_step,
)


# ------------------------------------------------------------------ mystery 3


def _logits_case(label: str, w: list, x: list, labels: list) -> Case:
    def make(generator: torch.Generator) -> tuple:
        return torch.tensor(w, requires_grad=True), torch.tensor(x), torch.tensor(labels)

    return Case(label, make)


ENTROPY = """
import torch.nn.functional as F


def step_loss(w, x, labels):
    z = x @ w
    rows = torch.arange(len(labels))
    {}
"""

large_scores = Exercise(
    name="large_scores",
    chapter="41",
    title="Mystery 3: it trained well for an hour",
    minutes=6,
    difficulty=2,
    statement="""
The scores `z` grow as the training goes on. Near 100 the loss is suddenly NaN:

```python
def step_loss(w, x, labels):
    z = x @ w
    p = z.exp() / z.exp().sum(dim=1, keepdim=True)
    rows = torch.arange(len(labels))
    return -p[rows, labels].log().mean()
```

`w` has shape (n, k), `x` (m, n), `labels` (m,), integers below k. Repair it for scores up to ±10,000, with
the value that the formula has in exact arithmetic. For `w = [[0, 200]]`, `x = [[1]]`, `labels = [0]`: loss
200, gradient `[[-1, 1]]`.
""",
    kind="function",
    starter="def step_loss(w, x, labels):\n    ...",
    answer="step_loss",
    hints=(
        "Where does the first infinity come from? And if you mend that: what is the logarithm of a "
        "probability that is too small for float32?",
        "Write the logarithm of the quotient as a difference: `z - log(sum(exp(z)))`.",
        "`torch.logsumexp` and `log_softmax` compute it without large exponentials.",
    ),
    reference=ENTROPY.format("return -torch.log_softmax(z, dim=1)[rows, labels].mean()"),
    other_right=(
        ENTROPY.format("return F.cross_entropy(z, labels)"),
        ENTROPY.format("return (torch.logsumexp(z, dim=1) - z[rows, labels]).mean()"),
        ENTROPY.format(
            "z = z - z.max(dim=1, keepdim=True).values.detach()\n    return (z.exp().sum(dim=1).log() - "
            "z[rows, labels]).mean()"
        ),
    ),
    explains=(
        "`exp` overflows above 88, and a probability underflows to 0, whose logarithm is -inf. Both "
        "vanish when the logarithm is taken before anything large or tiny is made."
    ),
    mistakes=(
        Mistake(
            "overflow",
            "Large scores still give NaN in the loss: `exp` overflows above 88.",
            ENTROPY.format(
                "p = z.exp() / z.exp().sum(dim=1, keepdim=True)\n    return -p[rows, labels].log().mean()"
            ),
        ),
        Mistake(
            "underflow",
            "No overflow any more, but a probability that underflows to 0 has the logarithm -inf, and its"
            " gradient is NaN.",
            ENTROPY.format("return -torch.softmax(z, dim=1)[rows, labels].log().mean()"),
        ),
        Mistake(
            "eps in the log",
            "Finite, but where a probability underflows the loss stops at 18.4, and the gradient is 0: "
            "the worst mistakes teach nothing.",
            ENTROPY.format("return -(torch.softmax(z, dim=1)[rows, labels] + 1e-8).log().mean()"),
        ),
        Mistake(
            "scores clamped",
            "Finite, but scores outside of ±50 are cut: the loss is too small, and they get no gradient.",
            ENTROPY.format("return F.cross_entropy(z.clamp(-50, 50), labels)"),
        ),
        Mistake(
            "sum",
            "This is the sum over the rows; the mean was there before.",
            ENTROPY.format("return F.cross_entropy(z, labels, reduction='sum')"),
        ),
        Mistake(
            "softmax twice",
            "`cross_entropy` takes scores and computes their softmax itself. You hand it probabilities, so "
            "there are two softmaxes in a row.",
            ENTROPY.format("return F.cross_entropy(z.softmax(dim=1), labels)"),
        ),
        Mistake(
            "maximum not put back",
            "The maximum was taken away inside of the logarithm only. Add it again, or take it away from "
            "both.",
            ENTROPY.format(
                "m = z.max(dim=1, keepdim=True).values.detach()\n    return ((z - "
                "m).exp().sum(dim=1).log() - z[rows, labels]).mean()"
            ),
        ),
    ),
    cases=(
        _logits_case("a score of 200", [[0.0, 200.0]], [[1.0]], [0]),
        _logits_case("small scores", [[0.0, 1.0, -1.0]], [[1.0], [2.0]], [0, 1]),
        _logits_case("the label has the large score", [[0.0, 200.0]], [[1.0], [2.0]], [1, 1]),
        _logits_case("a score of -10,000", [[0.0, -10000.0, 3.0]], [[1.0]], [1]),
        _logits_case("one class", [[5.0]], [[1.0], [2.0]], [0, 0]),
    ),
    observe=_observe_step,
)


# ------------------------------------------------------------------ mystery 4


def _mask_case(label: str, mask: list, columns: int = 2) -> Case:
    def make(generator: torch.Generator) -> tuple:
        x = torch.arange(1.0, 1 + len(mask) * columns).reshape(len(mask), columns) / 4
        return torch.eye(columns).requires_grad_(), x, torch.tensor(mask)

    return Case(label, make)


ATTEND = """
def step_loss(w, x, mask):
    h = x @ w
    scores = h @ h.T
    {}
"""

masked_row = Exercise(
    name="masked_row",
    chapter="41",
    title="Mystery 4: one sentence is empty",
    minutes=7,
    difficulty=3,
    statement="""
`mask[i, j]` is `True` where row `i` must not look at row `j`. Most batches train. One with a row that may
look at nothing turns all into NaN:

```python
def step_loss(w, x, mask):
    h = x @ w
    scores = h @ h.T
    p = scores.masked_fill(mask, -float("inf")).softmax(dim=1)
    return (p @ h).square().sum()
```

`w` has shape (n, n), `x` (m, n), `mask` (m, m). Repair it: rows of `p` that are masked whole are 0, so they
add nothing to loss and gradient. The others stay as they are. With `x = [[0.25, 0.5], [0.75, 1]]`, `w` the
unit matrix and a mask of `True` alone: loss 0, gradient 0.
""",
    kind="function",
    starter="def step_loss(w, x, mask):\n    ...",
    answer="step_loss",
    hints=(
        "A row of -inf alone: softmax divides 0 by 0.",
        "`empty = mask.all(dim=1, keepdim=True)` finds those rows. Let softmax never see them masked whole.",
        "Fill with -inf where `mask & ~empty`, and set the rows of `empty` to 0 *afterwards*.",
    ),
    reference=ATTEND.format(
        "empty = mask.all(dim=1, keepdim=True)\n"
        '    p = scores.masked_fill(mask & ~empty, -float("inf")).softmax(dim=1)\n'
        "    return (p.masked_fill(empty, 0.0) @ h).square().sum()"
    ),
    other_right=(
        ATTEND.format(
            "p = scores.masked_fill(mask, -1e9).softmax(dim=1) * ~mask\n    return (p @ h).square().sum()"
        ),
        ATTEND.format(
            "keep = ~mask.all(dim=1)\n"
            '    p = scores.masked_fill(mask, -float("inf"))[keep].softmax(dim=1)\n'
            "    return (p @ h).square().sum()"
        ),
    ),
    explains=(
        "Softmax of nothing is $0 / 0$. It needs one row that is harmless for it, and a mask on its "
        "result: the double where again. `scaled_dot_product_attention` does the same inside. (To mend "
        "`p` alone gives the same numbers here, since `masked_fill` passes 0 to every masked place, whatever "
        "arrives. But backward makes a NaN on the way, and anomaly mode stops at it.)"
    ),
    mistakes=(
        Mistake(
            "nothing to divide by",
            "A row that is masked whole still gives NaN in the loss: softmax divides 0 by 0 there.",
            ATTEND.format(
                'p = scores.masked_fill(mask, -float("inf")).softmax(dim=1)\n'
                "    return (p @ h).square().sum()"
            ),
        ),
        Mistake(
            "shared equally",
            "Finite, but a row that is masked whole now looks at all rows equally: equal scores, however "
            "low, share.",
            ATTEND.format(
                "p = scores.masked_fill(mask, -1e9).softmax(dim=1)\n    return (p @ h).square().sum()"
            ),
        ),
        Mistake(
            "result mended",
            "The loss is right, the gradient NaN: the NaN was taken out of a result, and comes back in "
            "backward.",
            ATTEND.format(
                'p = scores.masked_fill(mask, -float("inf")).softmax(dim=1)\n'
                "    return (p @ h).nan_to_num().square().sum()"
            ),
        ),
        Mistake(
            "no mask",
            "Nothing is masked any more: every row looks at all rows.",
            ATTEND.format("return (scores.softmax(dim=1) @ h).square().sum()"),
        ),
        Mistake(
            "masked after softmax",
            "You masked the result of softmax only: the rest of a row no longer sums to 1.",
            ATTEND.format("p = scores.softmax(dim=1) * ~mask\n    return (p @ h).square().sum()"),
        ),
        Mistake(
            "mask turned",
            "The mask is turned around: `True` means *must not* look.",
            ATTEND.format(
                "p = scores.masked_fill(~mask, -1e9).softmax(dim=1) * mask\n    return (p @ h).square().sum()"
            ),
        ),
    ),
    cases=(
        _mask_case("every row masked whole", [[True, True], [True, True]]),
        _mask_case("no mask", [[False, False], [False, False]]),
        _mask_case("one row masked whole", [[True, True, True], [False, True, False], [False, False, True]]),
        _mask_case("the later rows masked", [[False, True, True], [False, False, True], [False] * 3]),
        _mask_case("one row", [[False]], 3),
    ),
    observe=_observe_step,
)


# ------------------------------------------------------------------ a safe length


def _length_case(label: str, a: list, b: list, turned: bool = False) -> Case:
    def make(generator: torch.Generator) -> tuple:
        pair = [torch.tensor(side) for side in (a, b)]
        if turned:
            pair = [side.t().contiguous().t() for side in pair]
        return tuple(side.requires_grad_() for side in pair)

    return Case(label, make)


safe_length = Exercise(
    name="safe_length",
    chapter="41",
    title="A length without a bad point",
    minutes=7,
    difficulty=3,
    statement="""
Write `length(a, b)`: $\\sqrt{a^2 + b^2}$ for each pair of elements. `a` and `b` have the same shape. Where
both are 0, the value is 0 and both gradients are 0. Numbers up to $10^{30}$ must give finite values and
gradients, though their squares overflow float32. For `a = [3, 0]`, `b = [4, 0]`: `[5, 0]`, and slopes
`[0.6, 0]` and `[0.8, 0]`.
""",
    kind="function",
    starter="def length(a, b):\n    ...",
    answer="length",
    hints=(
        "One operation of torch does not overflow. Look at its row in the table of bad points.",
        "Its only bad point is (0, 0). The double where hides it: a harmless input in front, the value 0 "
        "behind.",
        "`zero = (a == 0) & (b == 0)`, then `torch.where(zero, 1.0, a)` is harmless.",
    ),
    reference="""
def length(a, b):
    zero = (a == 0) & (b == 0)
    safe = torch.where(zero, 1.0, a)
    return torch.where(zero, 0.0, torch.hypot(safe, b))
""",
    other_right=(
        "\ndef length(a, b):\n    return torch.complex(a, b).abs()\n",
        """
def length(a, b):
    zero = (a == 0) & (b == 0)
    scale = torch.where(zero, 1.0, torch.maximum(a.abs(), b.abs())).detach()
    squares = (a / scale) ** 2 + (b / scale) ** 2
    return torch.where(zero, 0.0, scale * torch.where(zero, 1.0, squares).sqrt())
""",
    ),
    explains=(
        "`hypot` holds for large numbers, and the double where holds at (0, 0). The absolute value of a "
        "complex number does both."
    ),
    mistakes=(
        Mistake(
            "the formula",
            "The squares of large numbers overflow, and where both are 0 the slope of the root is infinite.",
            "\ndef length(a, b):\n    return (a**2 + b**2).sqrt()\n",
        ),
        Mistake(
            "bad at the origin",
            "Right for all numbers but one pair: where both are 0 the gradient is NaN. A `where` around "
            "the result does not change that.",
            "\ndef length(a, b):\n    return torch.hypot(a, b)\n",
        ),
        Mistake(
            "norm overflows",
            "Right at (0, 0), but large numbers give an infinity: their squares overflow float32.",
            "\ndef length(a, b):\n    return torch.linalg.vector_norm(torch.stack([a, b]), dim=0)\n",
        ),
        Mistake(
            "ones for zeros",
            "Where both are 0 you return 1: the harmless input is still in the result. Set the result to "
            "0 there.",
            """
def length(a, b):
    zero = (a == 0) & (b == 0)
    return torch.hypot(torch.where(zero, 1.0, a), b)
""",
        ),
        Mistake(
            "squared",
            "This is the square of the length.",
            "\ndef length(a, b):\n    return a**2 + b**2\n",
        ),
        Mistake(
            "sum of sides",
            "This is $|a| + |b|$, and not the length.",
            "\ndef length(a, b):\n    return a.abs() + b.abs()\n",
        ),
    ),
    cases=(
        _length_case("the example", [3.0, 0.0], [4.0, 0.0]),
        _length_case("large numbers", [3e30, -1e30], [4e30, 0.0]),
        _length_case("one side is 0", [0.0, -2.0], [5.0, 0.0]),
        _length_case("no dimension", -6.0, 8.0),
        _length_case("empty", [], []),
        _length_case("not contiguous", [[3.0, 0.0], [6.0, 5.0]], [[-4.0, 0.0], [8.0, 12.0]], True),
    ),
    observe=observe_gradient,
)


# ------------------------------------------------------------------ a finder


class _Log(nn.Module):
    def forward(self, x):
        return x.log()


class _Fails(nn.Module):
    def forward(self, x):
        raise ZeroDivisionError("the model's own")


class _Outermost(nn.Module):
    """Its own code makes the NaN, after its parts have run."""

    def __init__(self):
        super().__init__()
        self.part = nn.Identity()

    def forward(self, x):
        return self.part(x) * NAN


def _model_case(label: str, make_model: Callable, *values: float) -> Case:
    return Case(label, lambda generator: (make_model(), torch.tensor(values)))


def _hooks_of(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def _observe_finder(answer, model: nn.Module, x: torch.Tensor) -> dict:
    calls = []
    model_forward = model.forward

    def counted(*arguments):
        calls.append(1)
        return model_forward(*arguments)

    model.forward = counted
    try:
        result = answer(model, x)
    except ZeroDivisionError:
        result = "the error of the model"
    return {
        "name": result,
        "calls of the model": len(calls),
        "side effect: hooks were left on the model": _hooks_of(model) > 0,
    }


FINDER = """
def first_nan(model, x):
    found, handles = [], []
    def look(name):
        def hook(module, args, output):
            {test}
        return hook
    for name, module in model.named_modules():
        handles.append({register})
    {run}
    return {result}
"""


def _finder(
    test="if output.isnan().any():\n                found.append(name)",
    register="module.register_forward_hook(look(name))",
    run="try:\n        model(x)\n    finally:\n        for handle in handles:\n            handle.remove()",
    result="found[0] if found else None",
) -> str:
    return FINDER.format(test=test, register=register, run=run, result=result)


first_nan_module = Exercise(
    name="first_nan_module",
    chapter="41",
    title="Your own NaN finder",
    minutes=10,
    difficulty=3,
    statement="""
Write `first_nan(model, x)`. It calls `model(x)` once, and returns the qualified name of the first module
that *finishes* with a NaN in its output, `None` if there is none. The model itself is named `""`, as in
`named_modules()`. Infinities do not count. Every output is a tensor. No hook may stay behind, also if the
model raises; its error goes on to the caller. For `nn.Sequential(nn.Identity(), Log())` and `x = [-1]`,
where `Log` computes `x.log()`: `"1"`.
""",
    kind="function",
    starter="def first_nan(model, x):\n    ...",
    answer="first_nan",
    hints=(
        "`module.register_forward_hook(hook)` calls `hook(module, args, output)` when the module has "
        "finished, and returns a handle with `remove()`.",
        "Each hook must know its name: make it in a function that takes the name.",
        "Collect names in a list, in the order in which hooks run. Remove the handles in `finally`.",
    ),
    reference=_finder(),
    other_right=(
        _finder(
            test="if torch.isnan(output).any() and not found:\n                found.append(name)",
            result="next(iter(found), None)",
        ),
    ),
    explains=(
        "Modules finish from the inside to the outside, so the first name is the innermost one that ran "
        "the operation. `first_nonfinite` does the same for each operation, and for backward."
    ),
    mistakes=(
        Mistake(
            "the last",
            "You return the last module with a NaN in its output, and that is the outermost: modules "
            "finish from the inside to the outside.",
            _finder(result="found[-1] if found else None"),
        ),
        Mistake(
            "hooks left",
            "The names are right, but the hooks stay on the model, and will run at every later call.",
            _finder(run="model(x)"),
        ),
        Mistake(
            "hooks left after an error",
            "If the model raises, the hooks stay on it. Remove them in `finally`.",
            _finder(run="model(x)\n    for handle in handles:\n        handle.remove()"),
        ),
        Mistake(
            "infinity counts",
            "You count infinities as well: `isfinite` is false for both.",
            _finder(test="if not output.isfinite().all():\n                found.append(name)"),
        ),
        Mistake(
            "infinity instead of NaN",
            "You look for infinities, and not for NaN.",
            _finder(test="if output.isinf().any():\n                found.append(name)"),
        ),
        Mistake(
            "the input is tested",
            "You test what goes in. That blames the module after the guilty one, or none.",
            _finder(test="if args[0].isnan().any():\n                found.append(name)"),
        ),
        Mistake(
            "class names",
            "You return the name of the class. The same class may stand in many places: return the "
            "qualified name.",
            _finder(
                test="if output.isnan().any():\n                found.append(type(module).__name__)",
            ),
        ),
        Mistake(
            "the loop variable",
            "Every hook reports the module that the loop came to last: your hook reads the variable of the "
            "loop when it *runs*. Bind it as a default, or in a function.",
            _finder(
                test="if output.isnan().any():\n                found.append(latest[0])",
                register="(latest.__setitem__(0, name), module.register_forward_hook(look(name)))[1]",
            ).replace("found, handles = [], []", "found, handles, latest = [], [], [None]"),
        ),
        Mistake(
            "error swallowed",
            "If the model raises, its error must go on to the caller. You catch it.",
            _finder(
                run="try:\n        model(x)\n    except Exception:\n        pass\n    finally:\n"
                "        for handle in handles:\n            handle.remove()"
            ),
        ),
        Mistake(
            "children only",
            "You look at the direct children alone, so what happens further inside, or in the model's own"
            " code, has no name.",
            _finder().replace("named_modules", "named_children"),
        ),
        Mistake(
            "the model left out",
            "You leave out the model itself, whose name is `''`. Its own code can make a NaN too.",
            _finder(test="if name and output.isnan().any():\n                found.append(name)"),
        ),
    ),
    cases=(
        _model_case("the example", lambda: nn.Sequential(nn.Identity(), _Log()), -1.0),
        _model_case("nested", lambda: nn.Sequential(nn.Tanh(), nn.Sequential(_Log(), nn.Tanh())), 1.0, -1.0),
        _model_case("no NaN", lambda: nn.Sequential(nn.Identity(), nn.Tanh()), 1.0),
        _model_case("an infinity", lambda: nn.Sequential(_Log(), nn.Identity()), 0.0),
        _model_case("NaN in the input", lambda: nn.Sequential(nn.Identity(), nn.Tanh()), NAN),
        _model_case("made by the model itself", _Outermost, 1.0),
        _model_case("the model raises", lambda: nn.Sequential(_Log(), _Fails()), -1.0),
    ),
    observe=_observe_finder,
)

EXERCISES = (
    named_nodes,
    perfect_fit,
    padded_rows,
    large_scores,
    masked_row,
    safe_length,
    first_nan_module,
)

"""Claims of chapter 41 that its cells do not hold already: answers to its questions, facts in its text."""

import re
import warnings

import pytest
import torch
from torch.nn import functional as F

from inside_autograd import exercises as ex

NAN = float("nan")


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Anomaly mode warns whenever it finds something; the tests read the error."""


def named(f, value):
    """The node that anomaly mode names for ``f(x).sum().backward()``, or ``none``."""
    x = torch.tensor(value, requires_grad=True)
    try:
        with torch.autograd.set_detect_anomaly(True):
            f(x).sum().backward()
    except RuntimeError as error:
        return re.search("Function '(.+)' returned nan values in its 0th output", str(error))[1]
    return "none"


def test_the_nodes_of_the_prediction():
    answers = [
        named(lambda x: (x * 0).sqrt(), 1.0),
        named(lambda x: (x - 2).sqrt(), 1.0),
        named(lambda x: x * x + 1, NAN),
        named(lambda x: (x - 2).log(), 1.0),
    ]
    assert ex.named_nodes.check(answers).status == "passed"


def test_of_two_roots_the_outer_is_named():
    x = torch.tensor(1.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, torch.autograd.set_detect_anomaly(True):
        warnings.simplefilter("always")
        inner = (x - 2).sqrt()
        outer = inner.sqrt()
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            outer.backward()
    last_line = str(caught[-1].message).partition(" (Triggered")[0].strip().splitlines()[-1]
    assert last_line.strip() == "outer = inner.sqrt()"


def test_the_number_of_the_output_counts_slots():
    x = torch.tensor(0.0, requires_grad=True)
    other = torch.tensor(NAN)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.raises(RuntimeError, match="'MulBackward0' returned nan values in its 1th output"),
    ):
        (other * x).backward()


@pytest.mark.parametrize(
    ("code", "raises"),
    [
        ("((x @ w - y) ** 2).mean().sqrt()", "PowBackward0"),
        ("F.mse_loss(x @ w, y).sqrt()", "MseLossBackward0"),
    ],
)
def test_mystery_1_happens_as_told(code, raises):
    w = torch.tensor([4.0], requires_grad=True)
    x, y = torch.tensor([[2.0], [2.0]]), torch.tensor([8.0, 8.0])
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match=raises):
        eval(code, {"x": x, "w": w, "y": y, "F": F}).backward()


def test_the_mysteries_end_in_nan_weights():
    """The code in the four statements, trained for a step as the statements tell it."""
    found = {}
    for name, arguments in {
        "perfect_fit": ([4.0], [[2.0], [2.0]], [8.0, 8.0]),
        "padded_rows": ([1.0, 2.0], [[1.0, 0.0], [0.0, 0.0]], [True, False]),
        "large_scores": ([[0.0, 200.0]], [[1.0]], [0]),
        "masked_row": ([[1.0, 0.0], [0.0, 1.0]], [[0.25, 0.5], [0.75, 1.0]], [[True, True], [False, False]]),
    }.items():
        names = {"torch": torch}
        exec(re.search("```python\n(.+?)```", getattr(ex, name).statement, re.DOTALL)[1], names)
        w, *others = map(torch.tensor, arguments)
        loss = names["step_loss"](w.requires_grad_(), *others)
        (gradient,) = torch.autograd.grad(loss, w)
        found[name] = bool(loss.isfinite()), bool(gradient.isnan().any())
    # Finite losses in the first two: the forward pass does not give the cause away.
    assert found == {
        "perfect_fit": (True, True),
        "padded_rows": (True, True),
        "large_scores": (False, True),
        "masked_row": (False, True),
    }


def test_torch_s_own_attention_gives_zeros_for_a_row_that_is_masked_whole():
    x = torch.ones(1, 2, 2, requires_grad=True)
    mask = torch.tensor([[[False, False], [True, False]]])  # here True means: may look
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert y[0, 0].tolist() == [0, 0] and y[0, 1].tolist() == [1, 1]
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.isfinite().all()


def test_set_detect_anomaly_is_silent_and_stays_on():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autograd.set_detect_anomaly(True)
        try:
            assert torch.is_anomaly_enabled()
        finally:
            torch.autograd.set_detect_anomaly(False)
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        torch.autograd.detect_anomaly(),
    ):
        pass

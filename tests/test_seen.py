"""Gradients that were described before: found again by their content alone."""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from inside_autograd import replay
from inside_autograd.values import Seen, summarize


def test_equal_content_is_described_once():
    seen = Seen()
    first = seen.describe(torch.tensor([1.0, 2.5]), None)
    assert seen.describe(torch.tensor([1.0, 2.5]), None) is first
    assert first == summarize(torch.tensor([1.0, 2.5]))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.tensor([0.0]), torch.tensor([-0.0])),
        (torch.tensor([1.0]), torch.tensor([[1.0]])),
        (torch.tensor([1.0]), torch.tensor([1.0], dtype=torch.float64)),
        (torch.tensor([0.0]), torch.tensor([0], dtype=torch.int32)),
        (torch.ones(2, 3), torch.ones(3, 2)),
    ],
)
def test_what_differs_is_told_apart(one, other):
    seen = Seen()
    assert repr(seen.describe(one, None)) == repr(summarize(one))
    assert repr(seen.describe(other, None)) == repr(summarize(other)) != repr(summarize(one))


def test_order_of_elements_counts_where_memory_is_the_same():
    seen, table = Seen(), torch.arange(4.0).reshape(2, 2)
    assert seen.describe(table, None).numbers == (0, 1, 2, 3)
    assert seen.describe(table.t(), None).numbers == (0, 2, 1, 3)


def test_nan_is_found_again():
    seen = Seen()
    first = seen.describe(torch.tensor([math.nan]), None)
    assert first.nan == 1
    assert seen.describe(torch.tensor([math.nan]), None) is first


@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor([1.0], dtype=torch.bfloat16),
        torch.eye(2).to_sparse(),
        torch.ones(2, device="meta"),
        torch.tensor([1 + 1j]).conj(),
        torch.nested.nested_tensor([torch.ones(1), torch.ones(2)]),
        torch.nn.Parameter(torch.ones(1)),
        torch.zeros(Seen.LARGEST),
    ],
    ids=["bfloat16", "sparse", "meta", "conjugated", "nested", "subclass", "large"],
)
def test_what_is_not_looked_up_is_described_all_the_same(tensor):
    seen = Seen()
    assert seen.describe(tensor, None) == summarize(tensor)
    assert seen.values == {}


def test_no_more_are_remembered_than_said(monkeypatch):
    monkeypatch.setattr(Seen, "MOST", 3)
    seen = Seen()
    for i in range(10):
        assert seen.describe(torch.tensor([float(i)]), None).numbers == (i,)
        assert len(seen.values) <= 3


def test_a_mode_sees_nothing():
    class Watch(TorchDispatchMode):
        seen = ()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen += (func,)
            return func(*args, **(kwargs or {}))

    tensor = torch.ones(2)
    with Watch() as watch:
        assert Seen().describe(tensor, None).numbers == (1, 1)
    assert watch.seen == ()


def scale_in_place(grad):
    grad.data.mul_(10)


def test_a_change_that_no_version_tells_is_seen():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    h = x * 3
    h.register_hook(scale_in_place)
    recording = replay((h * 2).sum(), params={"x": x})
    received = {step.name: step.received[0].value.numbers for step in recording.steps}
    sent = {step.name: step.sent[0].value.numbers for step in recording.steps if step.sent}
    assert sent["SumBackward0"] == (1, 1)
    assert received["AccumulateGrad"] == (60, 60)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.complex64])
@pytest.mark.parametrize("size", [1, 6, 7, 255, 256, 257, 400])
@pytest.mark.parametrize("bad", [None, math.nan, math.inf])
def test_one_that_is_looked_up_is_described_as_any_other(dtype, size, bad):
    tensor = torch.linspace(-1, 3, size).to(dtype).reshape(1, size)
    if bad is not None:
        tensor[0, size // 2] = bad
    # A subclass is never looked up: it is described by ``summarize``.
    assert repr(Seen().describe(tensor, None)) == repr(summarize(torch.nn.Parameter(tensor)))


@pytest.mark.parametrize("size", [7, 256, 257])
def test_figures_agree_however_they_are_computed(size):
    numbers = torch.sin(torch.arange(float(size), dtype=torch.float64)) + 0.25
    value = Seen().describe(numbers, None)
    assert (value.minimum, value.maximum) == (float(numbers.min()), float(numbers.max()))
    assert value.mean == pytest.approx(float(numbers.mean()), rel=1e-12)
    assert value.norm == pytest.approx(float(numbers.norm()), rel=1e-12)
    assert (value.nan, value.inf, value.first) == (0, 0, tuple(numbers[:3].tolist()))


def test_the_mean_of_a_short_list_has_no_rounding_error_of_its_own():
    # A sum from left to right loses the 1 and gives 0.
    assert summarize(torch.tensor([1e16, 1.0, -1e16] + [0.0] * 5, dtype=torch.float64)).mean == 1 / 8
    assert summarize(torch.tensor([1e16, 1.0, -1e16], dtype=torch.float64)).mean == 1 / 3

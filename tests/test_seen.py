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

"""Every Function of chapter 31, run from the very cells that the chapter shows."""

import functools
import itertools
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.nn import functional as F

from inside_autograd import raises

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "31_custom_function.ipynb"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHAPES = {"zero-dim": (), "empty": (0,), "one": (1,), "vector": (5,), "matrix": (2, 3), "one row": (1, 3)}


@functools.cache
def shown() -> dict:
    """What the chapter's cells define: one cell for each class."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    sources = [c.source for c in cells if c.cell_type == "code" and ".check(" not in c.source]
    names = {
        "raises": raises,
        "torch": torch,
        "nn": nn,
        "F": F,
        "grad": grad,
        "x": torch.ones(3, requires_grad=True),
    }
    for name in (
        "Exp",
        "Scale",
        "KeywordOnly",
        "ReLU",
        "OldReLU",
        "Swish",
        "Linear",
        "Square",
        "Weighted",
        "WeightedLayer",
    ):
        (cell,) = [source for source in sources if f"class {name}(" in source]
        exec(compile(cell, name, "exec"), names)
    (kept,) = [source for source in sources if "class SwishKept(" in source]
    exec(compile(kept.split("\n\n\n")[0], "SwishKept", "exec"), names)
    return names


def values(*shape: int, seed: int = 0, dtype=torch.float64, device="cpu") -> torch.Tensor:
    """Numbers between -2 and 2, at least 0.1 away from the kink at 0."""
    generator = torch.Generator().manual_seed(seed)
    sign = torch.randint(0, 2, shape, generator=generator) * 2 - 1
    size = torch.rand(shape, generator=generator, dtype=torch.float64) * 1.9 + 0.1
    return (sign * size).to(device, dtype).requires_grad_()


def strided() -> torch.Tensor:
    return values(6, 4).detach()[::2, ::2].t().requires_grad_()


def sent(function, y: torch.Tensor) -> tuple:
    """What ``backward`` itself returns, before the engine sums it to the shape of the input."""
    return function.backward(y.grad_fn, torch.ones_like(y))  # the node is ctx


def saved_bytes(make, *known: torch.Tensor) -> tuple[int, int]:
    """Bytes that saved tensors hold besides ``known`` and the result, and how many tensors were saved."""
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = make()
    owned = {t.untyped_storage().data_ptr() for t in (*known, result)}
    new = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in packed}
    return sum(size for place, size in new.items() if place not in owned), len(packed)


# ------------------------------------------------------------------ one tensor

UNARY = {
    "Exp": (lambda x: shown()["Exp"].apply(x), torch.exp),
    "Scale": (lambda x: shown()["Scale"].apply(x, 3), lambda x: 3 * x),
    "scale": (lambda x: shown()["scale"](x), lambda x: 2 * x),
    "ReLU": (lambda x: shown()["ReLU"].apply(x), torch.relu),
    "swish": (lambda x: shown()["swish"](x), F.silu),
    "Square": (lambda x: shown()["Square"].apply(x), torch.square),
}
unary = pytest.mark.parametrize("name", UNARY)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@unary
def test_unary_derivatives_over_shapes(name, shape, device):
    mine, _ = UNARY[name]
    assert gradcheck(mine, values(*shape, device=device))
    assert gradgradcheck(mine, values(*shape, device=device))


@unary
def test_unary_derivatives_of_what_is_not_contiguous(name):
    x = strided()
    assert not x.is_contiguous()
    assert gradcheck(UNARY[name][0], x) and gradgradcheck(UNARY[name][0], x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@unary
def test_unary_agrees_with_torch_in_each_dtype(name, dtype, device):
    mine, theirs = UNARY[name]
    x = values(3, 4, dtype=dtype, device=device)
    start = torch.linspace(-1, 1, 12, device=device).reshape(3, 4).to(dtype)
    results = [(y := f(x), *grad(y, x, start)) for f in (mine, theirs)]
    for ours, true in zip(*results, strict=True):
        assert ours.dtype == dtype and ours.device.type == device
        torch.testing.assert_close(ours, true)


def test_relu_at_the_kink_and_at_infinity():
    x = torch.tensor([0.0, -torch.inf, torch.inf], requires_grad=True)
    start = torch.tensor([1.0, torch.inf, 1.0])
    for name, slope_at_0 in (("ReLU", 0), ("OldReLU", 1)):
        y = shown()[name].apply(x)
        assert y.tolist() == [0, 0, torch.inf]
        assert grad(y, x, start)[0].tolist() == [slope_at_0, 0, 1]
    assert grad(torch.relu(x), x, start)[0].tolist() == [0, 0, 1]


# ------------------------------------------------------------------ two and three tensors

BROADCASTS = {
    "zero-dim beta": ((2, 3), ()),
    "beta of one element": ((2, 3), (1,)),
    "beta by channel": ((2, 3), (3,)),
    "beta by row": ((2, 3), (2, 1)),
    "x is the smaller one": ((3,), (2, 3)),
    "both are broadcast": ((2, 1), (3,)),
    "empty": ((0, 3), (3,)),
    "both zero-dim": ((), ()),
}


@pytest.mark.parametrize("shapes", BROADCASTS.values(), ids=BROADCASTS.keys())
@pytest.mark.parametrize("name", ["Swish", "Weighted"])
def test_broadcasting(name, shapes):
    function = shown()[name]
    x, w = values(*shapes[0]), values(*shapes[1], seed=1)
    assert gradcheck(function.apply, (x, w)) and gradgradcheck(function.apply, (x, w))
    # From backward itself: the engine would sum a gradient that is too large.
    y = function.apply(x, w)
    assert [g.shape for g in sent(function, y)] == [x.shape, w.shape]


@pytest.mark.parametrize("wanted", [(True, False), (False, True)])
def test_swish_computes_only_what_is_wanted(wanted):
    x, beta = values(3).requires_grad_(wanted[0]), values().requires_grad_(wanted[1])
    y = shown()["swish"](x, beta)
    assert tuple(g is not None for g in sent(shown()["Swish"], y)) == wanted


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_swish_takes_numbers_and_keeps_the_dtype(dtype):
    x = values(4, dtype=dtype)
    y = shown()["swish"](x, 2)
    assert y.dtype == dtype
    torch.testing.assert_close(y, x * torch.sigmoid(2 * x))
    assert grad(y.sum(), x)[0].dtype == dtype


def test_a_swish_that_saved_an_intermediate_is_wrong_in_second_order_only():
    kept = shown()["SwishKept"].apply
    assert gradcheck(kept, values(4))
    assert not gradgradcheck(kept, values(4), raise_exception=False)


LINEAR = {
    "batch": ((4, 3), 2),
    "one output": ((4, 3), 1),
    "one input": ((4, 1), 2),
    "one sample": ((1, 3), 2),
    "no batch": ((3,), 2),
    "no batch, one output": ((3,), 1),
    "two batch dimensions": ((2, 2, 3), 2),
    "empty batch": ((0, 3), 2),
    "no inputs": ((2, 0), 3),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize(("shape", "out"), LINEAR.values(), ids=LINEAR.keys())
def test_linear_over_shapes(shape, out, bias, device):
    linear = shown()["linear"]
    x, w = values(*shape, device=device), values(out, shape[-1], seed=1, device=device)
    inputs = (x, w, values(out, seed=2, device=device)) if bias else (x, w)
    assert gradcheck(linear, inputs) and gradgradcheck(linear, inputs)
    torch.testing.assert_close(linear(*inputs), F.linear(*inputs))
    full = [*inputs, None][:3]
    y = linear(*inputs)
    shapes = [None if g is None else g.shape for g in sent(shown()["Linear"], y)]
    assert shapes == [None if i is None else i.shape for i in full]


def test_linear_with_inputs_that_are_not_contiguous():
    inputs = (strided(), values(2, 6).detach()[:, ::2].requires_grad_(), values(2, seed=2))
    assert not inputs[0].is_contiguous() and not inputs[1].is_contiguous()
    assert gradcheck(shown()["linear"], inputs) and gradgradcheck(shown()["linear"], inputs)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_linear_agrees_with_torch_in_each_dtype(dtype):
    inputs = [values(*shape, seed=i, dtype=dtype) for i, shape in enumerate([(4, 3), (2, 3), (2,)])]
    results = [grad(f(*inputs).sum(), inputs) for f in (shown()["linear"], F.linear)]
    for ours, true in zip(*results, strict=True):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours, true)


@pytest.mark.parametrize("wanted", [w for w in itertools.product([True, False], repeat=3) if any(w)])
def test_linear_computes_and_saves_only_what_is_wanted(wanted):
    x, w, b = (
        values(*s).requires_grad_(need) for s, need in zip([(4, 3), (2, 3), (2,)], wanted, strict=True)
    )
    y = shown()["linear"](x, w, b)
    saved_x, saved_w = y.grad_fn.saved_tensors
    assert (saved_x is not None, saved_w is not None) == (wanted[1], wanted[0])
    assert tuple(g is not None for g in sent(shown()["Linear"], y)) == wanted
    inputs = [t for t in (x, w, b) if t.requires_grad]
    assert gradcheck(shown()["linear"], (x, w, b))
    assert len(grad(y.sum(), inputs)) == sum(wanted)


def test_the_module_trains_its_weights():
    layer = shown()["WeightedLayer"](torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64))
    assert [name for name, _ in layer.named_parameters()] == ["weights"]
    x = values(2, 3)
    assert gradcheck(lambda x, w: torch.func.functional_call(layer, {"weights": w}, (x,)), (x, layer.weights))


# ------------------------------------------------------------------ memory


@pytest.mark.parametrize("size", [1, 1000])
def test_saved_bytes(size):
    names = shown()
    x, w = values(size, dtype=torch.float32), values(size, seed=1, dtype=torch.float32)
    beta = torch.tensor(2.0, requires_grad=True)
    h = x + 0
    new = {
        "Exp": saved_bytes(lambda: names["Exp"].apply(h), h),
        "Scale": saved_bytes(lambda: names["Scale"].apply(h, 3), h),
        "ReLU": saved_bytes(lambda: names["ReLU"].apply(h), h),
        "OldReLU": saved_bytes(lambda: names["OldReLU"].apply(h), h),
        "Square": saved_bytes(lambda: names["Square"].apply(h), h),
        "Swish": saved_bytes(lambda: names["swish"](h, beta), h, beta),
        "composed": saved_bytes(lambda: h * torch.sigmoid(beta * h), h, beta),
        "F.silu": saved_bytes(lambda: F.silu(h), h),
        "Weighted": saved_bytes(lambda: names["Weighted"].apply(h, w), h, w),
    }
    assert new == {
        "Exp": (0, 1),
        "Scale": (0, 0),
        "ReLU": (size, 1),  # one byte for each element, the float has four
        "OldReLU": (0, 1),  # nothing besides the input, which it keeps alive
        "Square": (0, 1),
        "Swish": (0, 2),
        "composed": (4 * size, 5),
        "F.silu": (0, 1),
        "Weighted": (0, 2),
    }


def test_the_mask_is_dear_where_the_result_is_saved_anyway():
    names = shown()
    x, w = values(1000, dtype=torch.float32), torch.ones(1000, requires_grad=True)
    cost = {
        name: saved_bytes(lambda relu=relu: relu(x + 1) * w, w)[0]
        for name, relu in {
            "mask": names["ReLU"].apply,
            "input": names["OldReLU"].apply,
            "torch": torch.relu,
        }.items()
    }
    assert cost == {"mask": 5000, "input": 8000, "torch": 4000}


def test_a_frozen_layer_saves_no_weight():
    x, w, b = values(4, 3).detach(), values(2, 3), values(2)
    assert saved_bytes(lambda: shown()["linear"](x, w, b), x) == (0, 1)
    x.requires_grad_()
    frozen = w.detach()
    assert saved_bytes(lambda: shown()["linear"](x, frozen, b), frozen) == (0, 1)

"""The Functions and Modules of chapter 51, tested as the chapter shows them: their source is in its cells."""

import ast
import copy
import io
import re
from pathlib import Path

import nbformat
import pytest
import torch
from torch import nn
from torch.autograd import Function, grad, gradcheck, gradgradcheck
from torch.func import functional_call
from torch.nn import functional as F

from inside_autograd import exercises as ex

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "51_function_in_a_module.ipynb"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SHOWN = {"Weighted", "Rectify", "Double_"}
WRONG = {"Peek", "Forgetful"}  # on purpose


def definitions() -> dict:
    """Every class and function that the chapter defines, from its own source; nothing else of it is run."""
    names = {"torch": torch, "nn": nn, "F": F, "Function": Function, "copy": copy}
    names |= {"gradcheck": gradcheck, "functional_call": functional_call}
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
            exec(compile(tree, str(CHAPTER), "exec"), names)
    return names


SHOW = definitions()
Weighted, Rectify, Double_ = (SHOW[name] for name in ("Weighted", "Rectify", "Double_"))
WeightedLayer, PeekLayer, Scaled, Block = (
    SHOW[name] for name in ("WeightedLayer", "PeekLayer", "Scaled", "Block")
)
ChannelWeights, Rectifier, ForgetfulLayer = (
    SHOW[name] for name in ("ChannelWeights", "Rectifier", "ForgetfulLayer")
)
check_module, replace_relus = SHOW["check_module"], SHOW["replace_relus"]


def random(*shape: int, device: str = "cpu", dtype: torch.dtype = torch.double) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=generator, dtype=dtype).to(device).requires_grad_()


def both(f, *inputs) -> None:
    """First and second derivatives."""
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


def test_every_function_of_the_chapter_is_known_here():
    to_write = {"LinearFunction", "Swish"}  # in cells of exercises
    mine = {n for n, v in SHOW.items() if isinstance(v, type) and issubclass(v, Function)} - {"Function"}
    assert mine - to_write == SHOWN | WRONG


# ------------------------------------------------------------------ Weighted

BROADCASTS = [((), ()), ((3,), (3,)), ((1,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("left", "right"), BROADCASTS)
def test_weighted(left, right, device: str):
    x, w = random(*left, device=device), random(*right, device=device)
    assert torch.equal(Weighted.apply(x, w), x * w)
    both(Weighted.apply, x, w)


def test_weighted_not_contiguous_and_empty():
    both(lambda x, w: Weighted.apply(x.t(), w), random(2, 3), random(2))
    x, w = random(0, 3), random(3)
    g_x, g_w = grad(Weighted.apply(x, w).sum(), [x, w])
    assert g_x.shape == (0, 3) and torch.equal(g_w, torch.zeros_like(w))


@pytest.mark.parametrize("needs", [(True, False), (False, True), (True, True)], ids=str)
def test_weighted_gives_what_is_asked_for(needs):
    x, w = (torch.tensor(v, requires_grad=n) for v, n in zip(([1.0, 2.0], [4.0, 8.0]), needs, strict=True))
    y = Weighted.apply(x, w)
    found = Weighted.backward(y.grad_fn, torch.ones(2))  # the node is the context
    assert [g is not None for g in found] == list(needs)
    for g, other, needed in zip(found, (w, x), needs, strict=True):
        assert not needed or torch.equal(g, other.detach())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.complex64])
def test_dtypes_are_kept(dtype: torch.dtype):
    x = torch.tensor([1.0, -2.0], dtype=dtype, requires_grad=True)
    assert Weighted.apply(x, x.detach()).dtype == dtype
    if not dtype.is_complex:
        assert grad(Rectify.apply(x).sum(), x)[0].tolist() == [1, 0]
        assert Rectify.apply(x).dtype == dtype


# ------------------------------------------------------------------ Rectify, Double_


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 3, 4)])
def test_rectify_is_relu(shape, device: str):
    x = random(*shape, device=device)
    mine, true = Rectify.apply(x), torch.relu(x)
    assert torch.equal(mine, true)
    v = torch.randn_like(x)
    assert torch.equal(grad(mine, x, v)[0], grad(true, x, v)[0])
    both(Rectify.apply, x)


def test_rectify_at_the_kink_at_infinity_and_empty():
    x = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan")], requires_grad=True)
    mine, true = Rectify.apply(x), torch.relu(x)
    assert torch.equal(mine.nan_to_num(7), true.nan_to_num(7))
    assert grad(mine[:4].sum(), x)[0].tolist() == grad(true[:4].sum(), x)[0].tolist() == [0, 0, 1, 0, 0]
    empty = torch.ones(0, 2, requires_grad=True)
    assert grad(Rectify.apply(empty).sum(), empty)[0].shape == (0, 2)


def test_double_changes_its_input():
    x = random(3)
    h = x * 1
    assert Double_.apply(h) is h
    assert torch.equal(h, 2 * x)
    assert torch.equal(grad(h.sum(), x)[0], torch.full_like(x, 2))
    both(lambda x: Double_.apply(x.clone()), x)


# ------------------------------------------------------------------ Modules


@pytest.mark.parametrize(
    "module",
    [
        WeightedLayer(torch.tensor([1.0, -2.0, 3.0])),
        Scaled(torch.tensor([1.0, -2.0, 3.0]), torch.tensor([2.0, 4.0, 8.0])),
        Block(3),
        ChannelWeights(3),
        Rectifier(),
        nn.Sequential(nn.Linear(3, 4), Rectifier(), nn.Dropout(), nn.Linear(4, 1)),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_whole_modules(module: nn.Module, shape):
    before = copy.deepcopy(module.state_dict())
    assert check_module(module, random(*shape))
    assert module.training
    for name, tensor in module.state_dict().items():
        assert tensor.dtype == before[name].dtype and torch.equal(tensor, before[name])


@pytest.mark.parametrize(
    ("module", "place"),
    [
        (PeekLayer(torch.ones(3)), 1),
        (nn.Sequential(WeightedLayer(torch.ones(3)), ForgetfulLayer()), 0),
        (nn.Sequential(WeightedLayer(torch.ones(3)), PeekLayer(torch.ones(3))), 2),
    ],
)
def test_wrong_modules_are_found(module: nn.Module, place: int):
    x = torch.tensor([1.0, -2.0, 4.0], dtype=torch.double, requires_grad=True)
    with pytest.raises(RuntimeError, match=f"with respect to input {place}"):
        check_module(module, x)


def test_what_a_layer_saves_is_what_it_needs():
    layer = Scaled(torch.tensor([3.0, 1.0, 2.0]), torch.tensor([2.0, 2.0, 4.0]))
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    fresh = Scaled(torch.zeros(3), torch.zeros(3))
    fresh.load_state_dict(torch.load(file))
    x = random(3, dtype=torch.float32)
    assert torch.equal(fresh(x), layer(x))


def test_channel_weights_starts_where_it_is_told_to():
    meta = ChannelWeights(5, device="meta", dtype=torch.float16)
    assert meta.weights.device.type == "meta" and meta.weights.dtype == torch.float16
    layer = ChannelWeights(1000, spread=0.25)
    assert layer.weights.min() >= 0.75 and layer.weights.max() <= 1.25
    assert layer.weights.max() - layer.weights.min() > 0.4
    assert repr(layer) == "ChannelWeights(1000, spread=0.25)"


# ------------------------------------------------------------------ replacing


def test_relus_are_replaced_at_any_depth_and_in_every_place():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.ReLU()
            self.same = self.one
            self.deep = nn.Sequential(nn.Sequential(nn.ReLU()), nn.GELU())
            self.named = nn.ModuleDict({"relu": nn.ReLU(inplace=True)})
            self.again = self.deep

    net = Net()
    assert replace_relus(net, Rectifier) is net
    places = dict(net.named_modules(remove_duplicate=False))
    assert not any(isinstance(m, nn.ReLU) for m in places.values())
    mine = ["one", "same", "deep.0.0", "named.relu", "again.0.0"]
    assert all(isinstance(places[name], Rectifier) for name in mine)
    assert isinstance(net.deep[1], nn.GELU)
    assert net.again is net.deep


def test_what_make_returns_is_left_alone():
    net = nn.Sequential(nn.ReLU(), nn.Linear(2, 2))
    replace_relus(net, lambda: nn.Sequential(nn.ReLU(), nn.Dropout()))
    assert isinstance(net[0][0], nn.ReLU)


# ------------------------------------------------------------------ hooks


def test_a_clone_lets_a_hook_and_a_change_in_place_live_together():
    class Clone(nn.Module):
        def forward(self, x):
            return x.clone()

    seen = []
    layer = WeightedLayer(torch.tensor([3.0, -1.0]))
    layer.register_full_backward_hook(lambda module, g_in, g_out: seen.append((*g_in, *g_out)))
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    nn.Sequential(layer, Clone(), nn.ReLU(inplace=True))(x).sum().backward()
    assert [g.tolist() for g in seen[0]] == [[3, 0], [1, 0]]


# ------------------------------------------------------------------ the predictions, by running them


def code_of(exercise) -> str:
    return re.search(r"```python\n(.*?)```", exercise.statement, re.DOTALL).group(1)


def test_saved_keys():
    body = "".join(f"        {line}\n" for line in code_of(ex.saved_keys).splitlines())
    names = {"nn": nn, "torch": torch}
    exec(f"class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n{body}", names)
    assert ex.saved_keys.check(list(names["Net"]().state_dict())).passed


def test_never_learns():
    names = dict(SHOW)
    exec(code_of(ex.never_learns), names)
    net = names["Net"]()
    letters = {name: getattr(net, name) for name in "abde"} | {"c": net.c.weights, "f": net.f[0]}
    before = {name: p.detach().clone() for name, p in letters.items()}
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    net(torch.tensor([1.0, 2.0, 4.0])).sum().backward()
    optimizer.step()
    assert ex.never_learns.check([n for n, p in letters.items() if torch.equal(p, before[n])]).passed
    assert net.f[0].grad.abs().min() > 0  # as the explanation says

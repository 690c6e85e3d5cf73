"""Shapes of backward graphs that the tests share: ``SHAPES[name]()`` gives ``(outputs, params)``.

Each call builds its graph anew. Values are small and fixed; where a module draws random weights
the generator is forked, so that building a shape never changes the caller's random numbers.
"""

import dataclasses
import warnings
from collections import namedtuple

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

SHAPES: dict = {}


def shape(function):
    """Register a builder, run with forked random numbers."""

    def build():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            return function()

    build.__name__, build.__doc__ = function.__name__, function.__doc__
    SHAPES[function.__name__] = build
    return build


def numbers(*size, requires_grad=True, start=1.0):
    """``start``, ``start + 1/2``, ... in the given size."""
    count = int(torch.Size(size).numel())
    return (torch.arange(count, dtype=torch.float32) / 2 + start).reshape(size).requires_grad_(requires_grad)


def named(*modules, **more):
    """Names of the parameters of ``a``, ``b``, ... and of further tensors."""
    letters = nn.ModuleDict(dict(zip("abcdef", modules)))  # noqa: B905
    return dict(letters.named_parameters(), **more)


# --- outputs of several forms


@shape
def no_graph():
    """Computed under no_grad."""
    w = numbers(2)
    with torch.no_grad():
        return w.exp().prod(), {"w": w}


@shape
def leaf_itself():
    """The output is a leaf: no grad_fn, yet it has an AccumulateGrad node."""
    w = numbers(2, 2)
    return w, {"w": w}


@shape
def list_of_two():
    w = numbers(4)
    return [w.mean(), (w + 2).sum()], {"w": w}


@shape
def tuple_over_one_trunk():
    trunk, left, right = nn.Linear(2, 3), nn.Linear(3, 2), nn.Linear(3, 1)
    h = torch.tanh(trunk(numbers(4, 2, requires_grad=False)))
    return (left(h).square().mean(), right(h).sum()), named(trunk, left, right)


@shape
def nested_dict():
    """A dict with a list inside and a None value."""
    w = numbers(2)
    h = w.cos()
    return {"loss": h.prod(), "states": [h, h + 1], "cache": None}, {"w": w}


Pair = namedtuple("Pair", "mean spread")


@dataclasses.dataclass
class ModelOutput:
    loss: torch.Tensor
    logits: torch.Tensor
    cache: tuple | None = None


@shape
def namedtuple_output():
    w = numbers(4)
    return Pair(w.mean(), w.std()), {"w": w}


@shape
def dataclass_output():
    w = numbers(4)
    logits = w * 3
    return ModelOutput(logits.sum(), logits), {"w": w}


@shape
def gradient_edges():
    """No tensor at all: edges handed over directly, one of them to a leaf."""
    w = numbers(4)
    high = w.chunk(2)[1]
    return [get_gradient_edge(high), GradientEdge(w.view_as(w).grad_fn.next_functions[0][0], 0)], {"w": w}


@shape
def some_without_grad():
    """One output has a graph, one does not."""
    w = numbers(2)
    return {"loss": w.sum(), "accuracy": torch.tensor(0.5)}, {"w": w}


# --- structure


@shape
def square_by_itself():
    """``w * w``: two edges from one node to one leaf."""
    w = numbers(3)
    return w * w, {"w": w}


@shape
def doubling_40():
    """40 nodes, 2**40 paths."""
    w = torch.ones((), requires_grad=True)
    h = w
    for _ in range(40):
        h = h + h
    return h, {"w": w}


@shape
def chain_4000():
    """Longer than Python's recursion limit and than the default limit on a path."""
    w = torch.ones(2, requires_grad=True)
    h = w
    for i in range(3998):
        h = h - 1.0 if i % 2 else h * 1.0
    return h.sum(), {"w": w}


@shape
def fan_in_1500():
    leaves = [torch.full((2,), float(i), requires_grad=True) for i in range(1500)]
    names = {f"part{i}": leaf for i, leaf in enumerate(leaves)}
    return torch.stack([leaf + 1 for leaf in leaves]).mean(), names


@shape
def dense_skips():
    """Each node feeds all later ones: the shortest path is 2 steps, the longest is all of them."""
    w = torch.ones(2, requires_grad=True)
    made = [w * 1.0]
    for _ in range(30):
        made.append(torch.stack(made).sum(0))
    return made[-1], {"w": w}


@shape
def long_way_round():
    """A chain of 60 and a shortcut past it: breadth-first depth says 2, the longest path 62."""
    w = torch.ones(2, requires_grad=True)
    start = w.exp()
    h = start
    for _ in range(60):
        h = h + 1.0
    return h * start, {"w": w}


@shape
def some_outputs_unused():
    w = numbers(4, 3)
    top, bottom = w.chunk(2)
    values, _ = bottom.sort(dim=1)
    columns = top.unbind(1)
    values_only, _ = torch.linalg.eigh(bottom @ bottom.t())
    return values[0].sum() + columns[2].sum() + values_only[1], {"w": w}


@shape
def unbind_1000():
    """One node with 1,000 outputs, of which two are used."""
    w = torch.ones(1000, 2, requires_grad=True)
    rows = w.unbind(0)
    return rows[3] + rows[998], {"w": w}


@shape
def scalar_and_constant():
    """A Python number, a constant tensor and a leaf."""
    w = numbers(2)
    constant = torch.tensor([3.0, 4.0])
    return ((w + 1) * constant).sum(), {"w": w, "constant": constant}


# --- modules


@shape
def residual_blocks():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.path = nn.Sequential(
                nn.Conv2d(2, 2, 3, padding=1, bias=False), nn.BatchNorm2d(2), nn.ReLU(inplace=True)
            )

        def forward(self, x):
            return torch.relu_(x + self.path(x))

    net = nn.Sequential(Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 2))
    return net(numbers(2, 2, 4, 4, requires_grad=False)), net


@shape
def shared_and_tied():
    """One Linear applied twice, and an embedding whose weight is the decoder's too."""
    layers = {"emb": nn.Embedding(5, 4), "mix": nn.Linear(4, 4), "dec": nn.Linear(4, 5, bias=False)}
    net = nn.ModuleDict(layers)
    net["dec"].weight = net["emb"].weight
    h = net["emb"](torch.tensor([0, 3]))
    for _ in range(2):
        h = net["mix"](h).sigmoid()
    return nn.functional.cross_entropy(net["dec"](h), torch.tensor([1, 4])), net


@shape
def unrolled_cells():
    cells = nn.ModuleList([nn.LSTMCell(2, 3), nn.LSTMCell(3, 3)])
    state = [(torch.zeros(1, 3), torch.zeros(1, 3)) for _ in cells]
    for step in numbers(20, 1, 2, requires_grad=False):
        for i, cell in enumerate(cells):
            state[i] = cell(step, state[i])
            step = state[i][0]
    return step.mean(), cells


@shape
def fused_lstm():
    net = nn.LSTM(2, 3, num_layers=2, batch_first=True)
    hidden, (last, _) = net(numbers(2, 4, 2, requires_grad=False))
    return {"hidden": hidden, "last": last}, net


@shape
def encoder_layers():
    net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    return net.train()(numbers(1, 3, 8, requires_grad=False)).sum(), net


@shape
def attention():
    net = nn.MultiheadAttention(4, 2, batch_first=True)
    x = numbers(1, 3, 4)
    out, weights = net(x, x, x)
    return (out.sum(), weights), dict(net.named_parameters(), x=x)


@shape
def sparse_embedding():
    net = nn.Embedding(6, 2, sparse=True)
    return net(torch.tensor([1, 1, 5])).sum(), net


@shape
def full_backward_hooks():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid())
    for module in net:
        module.register_full_backward_hook(lambda module, grad_in, grad_out: None)
    x = numbers(2, 2)
    return net(x).mean(), dict(net.named_parameters(), x=x)


# --- custom Functions


class ThreeOut(torch.autograd.Function):
    """Inputs: tensor, tensor, number. Outputs: two with gradient, one index without."""

    @staticmethod
    def forward(ctx, a, b, power):
        ctx.power = power
        product, quotient, order = a * b, a / b, b.argsort()
        ctx.mark_non_differentiable(order)
        ctx.save_for_backward(a, b)
        return product, quotient, order

    @staticmethod
    def backward(ctx, of_product, of_quotient, _):
        _, b = ctx.saved_tensors
        return of_product * b + of_quotient / b, None, None


class KeepsOutput(torch.autograd.Function):
    """Saves its own output, and keeps three tensors as plain attributes."""

    @staticmethod
    def forward(ctx, x, scale):
        out = (x * scale).exp()
        ctx.save_for_backward(out, None, x)
        ctx.scale = scale
        ctx.attribute_out, ctx.mask, ctx.number = out, x > 1, 3
        return out

    @staticmethod
    def backward(ctx, grad):
        out, *_ = ctx.saved_tensors
        return grad * out * ctx.scale, None


class Cube(torch.autograd.Function):
    """Differentiable twice."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class CubeOnce(Cube):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class AddInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, other):
        ctx.mark_dirty(x)
        return x.add_(other)

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


@shape
def custom_three_outputs():
    a, b = numbers(3), numbers(3, start=2.0)
    product, _, _ = ThreeOut.apply(a, b, 2)
    return product.sum(), {"a": a, "b": b}


@shape
def custom_keeps_output():
    x = numbers(2)
    return KeepsOutput.apply(x, torch.tensor(0.5)).sum(), {"x": x}


@shape
def custom_twice():
    """The gradient of a custom Function, recorded."""
    x = numbers(2)
    (grad,) = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    return grad.sum(), {"x": x}


@shape
def custom_once():
    """The same with once_differentiable: an error node waits in the graph."""
    x = numbers(2)
    (grad,) = torch.autograd.grad(CubeOnce.apply(x).square().sum(), x, create_graph=True)
    return grad.sum(), {"x": x}


@shape
def custom_in_place():
    x, other = numbers(2), numbers(2)
    return AddInPlace.apply(x * 2, other).sum(), {"x": x, "other": other}


# --- backward of backward, freed, checkpoints, hooks


@shape
def gradient_penalty():
    net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = numbers(2, 2)
    (grad,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return (grad.square().sum(1) - 1).square().mean(), dict(net.named_parameters(), x=x)


@shape
def freed():
    w = numbers(3)
    loss = (w.sin() * w).sum()
    loss.backward()
    return loss, {"w": w}


@shape
def freed_custom():
    x = numbers(2)
    loss = KeepsOutput.apply(x, torch.tensor(0.5)).sum()
    loss.backward()
    return loss, {"x": x}


@shape
def freed_in_part():
    """``autograd.grad`` ran through one branch only."""
    w = numbers(2)
    left, right = w.exp(), w.sin()
    torch.autograd.grad(left.sum(), w)
    return left * right, {"w": w}


@shape
def kept_after_backward():
    w = numbers(3)
    loss = w.exp().sum()
    loss.backward(retain_graph=True)
    return loss, {"w": w}


@shape
def checkpoint_new():
    block, head = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()), nn.Linear(3, 1)
    x = numbers(2, 2)
    return head(checkpoint(block, x, use_reentrant=False)).sum(), named(block, head, x=x)


@shape
def checkpoint_reentrant():
    block, head = nn.Sequential(nn.Linear(2, 3), nn.Sigmoid()), nn.Linear(3, 1)
    x = numbers(2, 2)
    return head(checkpoint(block, x, use_reentrant=True)).sum(), named(block, head, x=x)


def refuse_to_unpack(packed):
    raise AssertionError("an unpack hook ran")


@shape
def packed_by_hooks():
    w = numbers(2)
    with saved_tensors_hooks(lambda tensor: tensor.shape, refuse_to_unpack):
        packed = w.exp() * w
    return packed.sin().sum(), {"w": w}


@shape
def hooked_tensors():
    """Tensor hooks, retain_grad and hooks on nodes."""
    w = numbers(2)
    h = w.exp()
    h.retain_grad()
    h.register_hook(lambda grad: grad * 2)
    w.register_hook(lambda grad: None)
    w.register_post_accumulate_grad_hook(lambda tensor: None)
    out = h.sum()
    out.grad_fn.register_prehook(lambda grads: None)
    return out, {"w": w, "h": h}


# --- views and in-place changes


@shape
def written_through_views():
    w = numbers(8)
    base = w * 1.0
    base.view(2, 4)[0].mul_(2)
    base[2:4] = 5.0
    base.view(2, 4).t()[3].add_(w[:2])
    return base.view(2, 4).narrow(1, 0, 3), {"w": w}


@shape
def changed_after_save():
    """``exp`` saved its result, which was then changed: backward would raise."""
    w = numbers(2)
    h = w.exp()
    out = h.sum()
    h.add_(1.0)
    return out, {"w": w, "h": h}


@shape
def changed_leaf():
    """A leaf changed under no_grad after ``*`` saved it."""
    w, v = numbers(2), numbers(2)
    out = w * v
    with torch.no_grad():
        w.zero_()
    return out, {"w": w, "v": v}


@shape
def changed_base():
    """A saved view whose base was changed in place."""
    w, v = numbers(4), numbers(2)
    base = w * 1.0
    out = base[:2] * v
    base.mul_(2)
    return out, {"w": w, "v": v}


# --- special tensors


@shape
def complex_numbers():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    w = numbers(2)
    y = torch.fft.ifft(torch.fft.fft(z) * w) * z.conj()
    return torch.view_as_real(y).square().sum() + y.abs().sum(), {"z": z, "w": w}


class Marked(torch.Tensor):
    """A plain subclass."""


@shape
def subclass():
    """``as_subclass`` makes an alias: the name stands for the alias, and the leaf has none."""
    w = numbers(4).as_subclass(Marked)
    return (w + 1).reshape(2, 2), {"w": w}


@shape
def functional():
    """What torch.func leaves behind is an ordinary graph over ordinary leaves."""
    w = numbers(2)
    gradient = torch.func.grad(lambda v: (v**3).sum())(w)
    jacobian = torch.func.jacrev(lambda v: v.sin())(w)
    return {"gradient": gradient, "jacobian": jacobian}, {"w": w}


@shape
def meta_device():
    w = torch.ones(3, 2, device="meta", requires_grad=True)
    return (w.t() @ w).sum(), {"w": w}


@shape
def sparse_product():
    s = torch.eye(2).to_sparse().requires_grad_()
    w = numbers(2, 2)
    return torch.sparse.mm(s, w).sum(), {"s": s, "w": w}


@shape
def jagged():
    a, b = numbers(2, 3), numbers(1, 3)
    nested = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
    return (nested * 2).values().sum(), {"a": a, "b": b}


@shape
def nested_strided():
    a, b = numbers(2, 3), numbers(1, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "prototype stage"
        nested = torch.nested.as_nested_tensor([a, b])
    return (nested * 2).to_padded_tensor(0.0).sum(), {"a": a, "b": b}


@shape
def empty_and_zero_dim():
    none, one = torch.ones(0, 3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    return none.sum() * one, {"none": none, "one": one}


@shape
def half_precision():
    w = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    return w.float().sum() + w.double().sum(), {"w": w}


@shape
def index_with_tensors():
    """``indices`` is saved as a list."""
    w = numbers(3, 3)
    return w[torch.tensor([0, 2]), torch.tensor([1, 1])].sum(), {"w": w}

"""What chapter 43 says of hooks, checkpoints and leaks, where its own cells do not assert it."""

import gc
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.autograd import grad
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from inside_autograd import Graph
from inside_autograd.exercises import all_exercises
from inside_autograd.exercises._source import execute


def data() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 4.0], requires_grad=True)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([3.0, 1.0, 2.0]))

    def forward(self, x):
        return self.w * x


# ------------------------------------------------------------------ the order


def test_hooks_fire_in_the_order_of_the_table():
    layer, x, seen = Layer(), data(), []
    w = layer.w

    def note(name):
        return lambda *given: seen.append(name)

    def passing(name):
        return lambda tensor: (seen.append(name), tensor)[1]

    layer.register_full_backward_pre_hook(note("module pre"))
    layer.register_full_backward_hook(note("module"))
    x.register_hook(note("x"))
    w.register_hook(note("w"))
    register_multi_grad_hook([x, w], note("multi"))
    register_multi_grad_hook([x, w], note("any"), mode="any")
    w.register_post_accumulate_grad_hook(note("w done"))
    accumulate = get_gradient_edge(w).node
    accumulate.register_prehook(note("w pre"))
    accumulate.register_hook(note("w post"))
    with saved_tensors_hooks(passing("pack"), passing("unpack")):
        h = layer(x)
    h.register_hook(note("h 1"))
    h.retain_grad()
    h.register_hook(note("h 2"))
    product = h.grad_fn.next_functions[0][0]
    product.register_prehook(note("pre"))
    product.register_hook(note("post"))
    h.square().sum().backward()

    assert seen == [
        *("pack", "pack", "h 1", "h 2", "module pre", "pre", "unpack", "unpack", "post"),
        *("w", "any", "w pre", "w done", "w post", "module", "x", "multi"),
    ]


def test_the_exercise_on_the_order_is_what_torch_does():
    x, seen = torch.ones(1, requires_grad=True), []
    h = x * 2
    h.grad_fn.register_prehook(lambda grads: seen.append("pre"))
    h.grad_fn.register_hook(lambda sent, got: seen.append("post"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append("done"))
    h.register_hook(lambda g: seen.append("first"))
    x.register_hook(lambda g: seen.append("leaf"))
    h.register_hook(lambda g: seen.append("second"))
    h.sum().backward()
    exercise = all_exercises()["hook_order"]
    assert seen == execute(exercise.reference, "order")


@pytest.mark.parametrize("retain_first", [True, False])
def test_retain_grad_stores_what_the_hooks_made(retain_first):
    x = torch.ones(1, requires_grad=True)
    h = x * 2
    if retain_first:
        h.retain_grad()
    h.register_hook(lambda g: g * 10)
    if not retain_first:
        h.retain_grad()
    h.sum().backward()
    assert (h.grad.item(), x.grad.item()) == (10, 20)


def test_a_hook_stays_with_the_node_and_retain_grad_moves_on():
    x, seen = torch.ones(1, requires_grad=True), {}
    h = x * 1
    h.register_hook(lambda g: seen.update(before=g.item()))
    h.retain_grad()
    h.mul_(2)
    h.register_hook(lambda g: seen.update(after=g.item()))
    h.sum().backward()
    assert seen == {"before": 2, "after": 1}
    assert h.grad.item() == 1


def test_what_a_hook_computes_under_create_graph_is_recorded():
    x = torch.tensor(3.0, requires_grad=True)
    h = x * x
    h.register_hook(lambda g: g * x)  # so the first derivative is 2 x * x
    (first,) = grad(h, x, create_graph=True)
    (second,) = grad(first, x)
    assert (first.item(), second.item()) == (18, 12)


def test_grad_runs_the_hook_of_a_leaf_but_not_what_comes_after_it():
    x, seen = torch.ones(1, requires_grad=True), []
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda p: seen.append("done"))
    edge = get_gradient_edge(x)
    edge.node.register_prehook(lambda grads: seen.append("pre"))
    assert grad((x * 2).sum(), x)[0].item() == 20
    assert seen == []
    assert x.grad is None


# ------------------------------------------------------------------ modules


class Returns(nn.Module):
    """Twice the input, as a tensor or in a container."""

    def __init__(self, kind=None):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        return {"y": 2 * x} if self.kind is dict else self.kind([2 * x]) if self.kind else 2 * x


@pytest.mark.parametrize(("kind", "runs"), [(None, True), (tuple, True), (list, False), (dict, False)])
def test_a_full_hook_sees_tensors_and_tuples(kind, runs):
    module, seen = Returns(kind), []
    module.register_full_backward_hook(lambda m, sent, got: seen.append(sent))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        out = module(data())
        (out if kind is None else out["y"] if kind is dict else out[0]).sum().backward()
    assert bool(seen) is runs
    assert [w.category for w in caught] == ([] if runs else [UserWarning])


@pytest.mark.parametrize("repair", ["not in place", "clone", "hook on the output"])
def test_the_repairs_of_the_view_error(repair):
    linear, relu, seen = nn.Linear(2, 2), nn.ReLU(inplace=repair != "not in place"), []
    nn.init.ones_(linear.weight)
    nn.init.zeros_(linear.bias)

    def note(g):
        seen.append(g.tolist())

    if repair == "hook on the output":
        linear.register_forward_hook(lambda m, given, h: h.register_hook(note) and None)
    else:
        linear.register_full_backward_hook(lambda m, sent, got: note(got[0]))
    h = linear(torch.ones(1, 2, requires_grad=True))
    out = relu(h.clone() if repair == "clone" else h)
    out.sum().backward()
    assert seen == [[[1, 1]]]


# ------------------------------------------------------------------ checkpoint


@pytest.mark.parametrize("reentrant", [True, False])
def test_only_the_reentrant_checkpoint_leaves_parameters_without_gradient(reentrant):
    linear = nn.Linear(2, 1)
    with warnings.catch_warnings(action="ignore"):
        y = checkpoint(linear, torch.ones(1, 2), use_reentrant=reentrant)
    assert y.requires_grad is not reentrant
    if not reentrant:
        y.sum().backward()
        assert linear.weight.grad.tolist() == [[1, 1]]

    x = torch.ones(1, 2, requires_grad=True)  # the old way out
    linear.weight.grad = None
    checkpoint(linear, x, use_reentrant=reentrant).sum().backward()
    assert linear.weight.grad.tolist() == [[1, 1]]


def test_dropout_draws_another_mask_without_the_random_state():
    x = torch.ones(64, requires_grad=True)
    y = checkpoint(nn.Dropout(0.5), x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal(x.grad, y)


# ------------------------------------------------------------------ leaks


class Mark:
    """Tied to a node, it lives as long as the node."""


def outlives(line: str) -> bool:
    """Whether a node of the graph is alive after a function ran ``line`` and returned."""
    kept: list = []

    def function() -> weakref.ref:
        w, x = data(), data()
        h = w * x
        loss = h.square().sum()
        mark = Mark()
        h.grad_fn.metadata["mark"] = mark
        # As a function of its own, so that a lambda owns what it names and nothing else.
        names = {"torch": torch}
        exec(f"def run(kept, w, x, h, loss):\n    {line}\n", names)
        with warnings.catch_warnings(action="ignore"):
            names["run"](kept, w, x, h, loss)
        return weakref.ref(mark)

    watch = function()
    gc.collect()
    return watch() is not None


def test_the_exercise_on_leaks_is_what_torch_does():
    exercise = all_exercises()["find_leaks"]
    lines = {
        text[3]: text.split("`: `", 1)[1].removesuffix("`")
        for text in exercise.statement.splitlines()
        if text.startswith("- `")
    }
    assert list(lines) == list("abcdefg")
    found = [letter for letter, line in lines.items() if outlives(line)]
    assert found == execute(exercise.reference, "leaks")


# ------------------------------------------------------------------ compiled code


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_late_hook_runs_once_the_compiled_code_is_forgotten(backend):
    torch._dynamo.reset()
    model, ran = nn.Sequential(Returns(), Returns()), []
    compiled = torch.compile(model, backend=backend)
    compiled(data())
    model[0].register_full_backward_hook(lambda m, sent, got: ran.append(m))
    compiled(data()).sum().backward()
    assert not ran
    torch._dynamo.reset()
    compiled(data()).sum().backward()
    assert len(ran) == 1
    torch._dynamo.reset()


def test_aot_eager_makes_one_node_of_the_whole():
    torch._dynamo.reset()
    y = torch.compile(Layer(), backend="aot_eager")(data())
    assert [node.name for node in Graph.of(y).nodes] == [
        "CompiledFunctionBackward",
        "AccumulateGrad",
        "AccumulateGrad",
    ]
    torch._dynamo.reset()

"""What may be handed to ``Graph.of``, and the sentence for everything else."""

import collections
import dataclasses
import enum
import types

import numpy
import pytest
import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from inside_autograd.graph import Graph
from inside_autograd.inputs import flatten_outputs, named_tensors
from shapes import CubeOnce, numbers

A, B = torch.zeros(1), torch.ones(1)


def paths(outputs):
    return [path for path, _ in flatten_outputs(outputs)]


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Late:
    loss: torch.Tensor
    extra: torch.Tensor = dataclasses.field(init=False)


class Attention(collections.OrderedDict):
    """Like the outputs of a model: a mapping with attributes."""


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (A, [""]),
        (None, [""]),
        ([A, B], ["[0]", "[1]"]),
        ((A, [B, (A,)]), ["[0]", "[1][0]", "[1][1][0]"]),
        ({"loss": A, "hidden": [A, B]}, ["loss", "hidden[0]", "hidden[1]"]),
        ({"a": {"b": {"c": A}}}, ["a.b.c"]),
        ({"a": {3: A, None: B, True: A}}, ["a[3]", "a[None]", "a[True]"]),
        ({("x", 1): A}, ["[('x', 1)]"]),
        ([{"a": A}], ["[0].a"]),
        ({Color.RED: A, nn.ReLU: B}, ["[Color key 0]", "[type key 1]"]),
        (Late(A), ["loss", "extra"]),
        ([Late(A)], ["[0].loss", "[0].extra"]),
        (Attention(loss=A), ["loss"]),
        (types.MappingProxyType({"loss": A}), ["loss"]),
        (torch.topk(torch.arange(3.0), 1), ["[0]", "[1]"]),
        ([A, None], ["[0]", "[1]"]),
        (nn.Parameter(A), [""]),
    ],
)
def test_paths(outputs, expected):
    assert paths(outputs) == expected


def test_packed_sequence_is_a_namedtuple():
    packed = nn.utils.rnn.pack_sequence([numbers(2, 1), numbers(1, 1)])
    assert paths(packed) == ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]


def test_the_tensors_themselves_come_back():
    found = flatten_outputs({"a": A, "b": [B, None]})
    assert found[0][1] is A and found[1][1] is B and found[2][1] is None


def test_keys_show_no_memory_address():
    assert paths({object(): A, A: B}) == ["[object key 0]", "[Tensor key 1]"]


def test_same_container_twice_is_no_cycle():
    shared = [A]
    assert paths({"a": shared, "b": shared}) == ["a[0]", "b[0]"]


def test_containers_may_nest_deeper_than_recursion():
    deep = A
    for _ in range(5000):
        deep = [deep]
    assert paths(deep) == ["[0]" * 5000]


OUTPUTS = "pass a tensor, a GradientEdge, or a dict, list, tuple or dataclass of them."
MODULE = (
    "a module has no graph until it is called, so pass its output, for example draw(model(x), params=model)."
)


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        (3, f"Got an int, not a tensor: {OUTPUTS}"),
        (2.5, "Got a float, not a tensor: "),
        ("loss", "Got a str, not a tensor: "),
        (numpy.ones(2), "Got a numpy.ndarray, not a tensor: "),
        ({"loss": A, "extra": [A, 3]}, "Got an int at extra[1], not a tensor: "),
        ((A, numpy.float32(1)), "Got a numpy.float32 at [1], not a tensor: "),
        ({A}, "Got a set, not a tensor: "),
        ((a for a in [A]), "Got a generator, not a tensor: "),
        (nn.Linear, "Got the class Linear, not a tensor: "),
        (Late, "Got the class Late, not a tensor: "),
        (lambda: A, "Got a function, not a tensor: "),
        (nn.Linear(1, 1), f"Got the module Linear, not a tensor: {MODULE}"),
        ([nn.ReLU()], "Got the module ReLU at [0], not a tensor: "),
        (
            numbers(1).exp().grad_fn,
            "Got the node ExpBackward0, not a tensor: pass the tensor itself, or "
            "torch.autograd.graph.GradientEdge(node, 0) for one output of the node.",
        ),
        ({"f": CubeOnce.apply(numbers(1)).grad_fn}, "Got the node CubeOnceBackward at f, not a tensor: "),
        (
            GradientEdge(None, 0),
            "The GradientEdge holds None in place of a node: make it with "
            "torch.autograd.graph.get_gradient_edge(tensor).",
        ),
        ([GradientEdge(A, 0)], "The GradientEdge at [0] holds a Tensor in place of a node: "),
    ],
)
def test_what_is_refused(outputs, sentence):
    with pytest.raises(TypeError) as caught:
        Graph.of(outputs)
    text = str(caught.value)
    assert text.startswith(sentence)
    assert "0x" not in text and "\n" not in text


@pytest.mark.parametrize("number", [1, -1, 0.0, True, None])
def test_edge_of_an_output_that_is_not_there(number):
    edge = GradientEdge(numbers(2).exp().grad_fn, number)
    with pytest.raises(ValueError) as caught:
        Graph.of({"edge": edge})
    assert str(caught.value) == (
        f"The GradientEdge at edge asks for output {number!r} of ExpBackward0, "
        "which has 1 output: count from 0."
    )


def test_edge_of_several_outputs():
    node = numbers(4).chunk(2)[0].grad_fn
    assert Graph.of(GradientEdge(node, 1)).roots[0].output_nr == 1
    with pytest.raises(ValueError, match="output 2 of SplitBackward0, which has 2 outputs: count from 0"):
        Graph.of(GradientEdge(node, 2))


def test_cycles():
    loop = [A]
    loop.append(loop)
    with pytest.raises(TypeError) as caught:
        Graph.of(loop)
    assert (
        str(caught.value) == "The outputs contain themselves at [1] again: pass a container without cycles."
    )
    inner = {"a": A}
    inner["again"] = {"deeper": inner}
    with pytest.raises(TypeError, match=r"contain themselves at all\.again\.deeper again"):
        Graph.of({"all": inner})


@pytest.mark.parametrize("empty", [None, [], {}, (), {"a": []}, [None, None], {"cache": None}])
def test_nothing_at_all(empty):
    with pytest.raises(ValueError) as caught:
        Graph.of(empty)
    assert str(caught.value) == "There is nothing to read: the outputs hold no tensor."


def made_under_inference_mode():
    with torch.inference_mode():
        return torch.ones(2) * 2


@pytest.mark.parametrize(
    ("outputs", "sentence"),
    [
        (A, "This tensor has no grad_fn and does not require grad, so there is no backward graph to read: "),
        ({"loss": A}, "This tensor has no grad_fn and does not require grad"),
        ([A, None], "This tensor has no grad_fn and does not require grad"),
        (numbers(2).exp().detach(), "This tensor has no grad_fn and does not require grad"),
        ([A, B], "None of the outputs requires grad, so there is no backward graph to read."),
        (
            torch.tensor(3),
            "This tensor is of dtype int64, so there is no backward graph to read: only floating-",
        ),
        (numbers(2) > 1, "This tensor is of dtype bool"),
        (
            made_under_inference_mode(),
            "This tensor was made under inference_mode, so there is no backward graph",
        ),
    ],
)
def test_no_graph(outputs, sentence):
    with pytest.raises(ValueError) as caught:
        Graph.of(outputs)
    assert str(caught.value).startswith(sentence)


def test_inside_vmap():
    said = []

    def inside(x):
        with pytest.raises(ValueError) as caught:
            Graph.of(x * 2)
        said.append(str(caught.value))
        return x * 2

    out = torch.vmap(inside)(numbers(2, 3))
    assert said == [
        "A tensor inside a torch.func transform such as vmap has no backward graph of its own here: "
        "read the graph of what the transform returns, outside of it."
    ]
    assert [node.name for node in Graph.of(out).nodes] == ["MulBackward0", "AccumulateGrad"]


def test_inside_grad_transform():
    sizes = []

    def inside(x):
        y = (x * x).sum()
        graph = Graph.of(y)
        sizes.append([node.name for node in graph.nodes])
        return y

    torch.func.grad(inside)(numbers(2))
    # The wrapper has a graph of its own level, whose leaf is the wrapped argument.
    assert sizes[0][:2] == ["SumBackward0", "MulBackward0"]


@pytest.mark.parametrize("limit", [0, -1])
@pytest.mark.parametrize("name", ["max_path", "max_nodes"])
def test_limits_that_are_too_small(name, limit):
    with pytest.raises(ValueError) as caught:
        Graph.of(numbers(2).sum(), **{name: limit})
    assert str(caught.value) == f"{name} is {limit}: give a whole number of nodes, 1 or more."


@pytest.mark.parametrize("limit", [None, 2.5, "10", True])
@pytest.mark.parametrize("name", ["max_path", "max_nodes"])
def test_limits_of_another_kind(name, limit):
    with pytest.raises(TypeError) as caught:
        Graph.of(numbers(2).sum(), **{name: limit})
    assert str(caught.value) == f"{name} is {limit!r}: give a whole number of nodes, 1 or more."


# --- names


def test_named_tensors():
    net = nn.Sequential(nn.Linear(1, 1, bias=False), nn.BatchNorm1d(1))
    names = ["0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked"]
    assert [name for name, _ in named_tensors(net)] == names
    assert [name for name, _ in named_tensors({"net": net, "x": A})] == [f"net.{name}" for name in names] + [
        "x"
    ]
    assert [name for name, _ in named_tensors(net.named_parameters())] == names[:3]
    assert named_tensors(None) == []
    assert named_tensors({"nothing": None, "x": A}) == [("x", A)]


def test_both_names_of_a_shared_parameter():
    net = nn.ModuleDict({"a": nn.Linear(1, 1, bias=False), "b": nn.Linear(1, 1, bias=False)})
    net["b"].weight = net["a"].weight
    assert [name for name, _ in named_tensors(net)] == ["a.weight", "b.weight"]


PARAMS = (
    "pass a module, a dict from names to tensors, or (name, tensor) pairs such as model.named_parameters()."
)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        (3, f"params is or holds an int: {PARAMS}"),
        ("w", f"params is or holds a str: {PARAMS}"),
        (A, f"params is or holds a Tensor: {PARAMS}"),
        ([A, B], f"params is or holds a Tensor: {PARAMS}"),
        ([("w", A, B)], f"params is or holds a tuple: {PARAMS}"),
        (nn.Linear, f"params is or holds the class Linear: {PARAMS}"),
        ({3: A}, "params names a tensor by an int: names are strings, as in {'w': w}."),
        ([(A, "w")], "params names a tensor by a Tensor: names are strings, as in {'w': w}."),
        ({"w": 3}, "params names 'w', which is an int: give a tensor or a module."),
        ({"w": [A]}, "params names 'w', which is a list: give a tensor or a module."),
        ({"w": numpy.ones(1)}, "params names 'w', which is a numpy.ndarray: give a tensor or a module."),
    ],
)
def test_params_of_a_wrong_form(params, sentence):
    with pytest.raises(TypeError) as caught:
        Graph.of(numbers(2).sum(), params)
    assert str(caught.value) == sentence


def test_parameters_without_names():
    with pytest.raises(TypeError, match="params is or holds a Parameter: pass a module"):
        Graph.of(numbers(2).sum(), nn.Linear(1, 1).parameters())


def test_edge_of_a_leaf():
    w = numbers(2)
    assert Graph.of(get_gradient_edge(w), {"w": w}).leaves[0].names == ("w",)

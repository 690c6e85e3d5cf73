"""Structure of captured graphs, against expectations written by hand."""

import gc
import threading
import traceback
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge, saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from inside_autograd.graph import Cut, Graph
from shapes import SHAPES, CubeOnce, KeepsOutput, ThreeOut, numbers

NO_GRADIENT = "this input needs no gradient: a constant, absent, or requires_grad=False"


def of(shape, **limits):
    outputs, params = SHAPES[shape]()
    return Graph.of(outputs, params, **limits)


def outline(graph):
    """Each node as ``name: target.input ...``; a dash for an empty slot, a cross for a cut edge."""

    def end(edge):
        return f"{edge.target}.{edge.input_nr}" if edge.target is not None else "x" if edge.cut else "-"

    return [" ".join([f"{node.name}:", *map(end, node.edges)]) for node in graph.nodes]


def places(graph):
    return {root.path: (root.node, root.output_nr) for root in graph.roots}


def only(graph, name):
    (node,) = (node for node in graph.nodes if node.name == name)
    return node


def test_both_edges_of_a_square():
    graph = of("square_by_itself")
    assert outline(graph) == ["MulBackward0: 1.0 1.0", "AccumulateGrad:"]
    assert [edge.slot for edge in graph.edges] == [0, 1]
    leaf = graph.nodes[1]
    assert (leaf.names, leaf.shape, leaf.dtype, leaf.device) == (("w",), (3,), "float32", "cpu")
    assert leaf.is_leaf and graph.leaves == (leaf,)


def test_empty_slots_say_why():
    graph = of("scalar_and_constant")
    assert outline(graph) == [
        "SumBackward0: 1.0",
        "MulBackward0: 2.0 -",
        "AddBackward0: 3.0 -",
        "AccumulateGrad:",
    ]
    assert [edge.reason for edge in graph.edges] == [None, None, NO_GRADIENT, None, NO_GRADIENT]


def test_edge_says_which_output_it_takes():
    graph = of("some_outputs_unused")
    unbind, split = only(graph, "UnbindBackward0"), only(graph, "SplitBackward0")
    assert [(o.shape, o.used) for o in unbind.outputs] == [((2,), False), ((2,), False), ((2,), True)]
    assert [(o.shape, o.used) for o in split.outputs] == [((2, 3), True), ((2, 3), True)]
    into_unbind = [edge for edge in graph.edges if edge.target == unbind.index]
    assert [edge.input_nr for edge in into_unbind] == [2]
    # sort took the second chunk, unbind the first; t() and @ took the second.
    took = {graph.nodes[e.source].name: e.input_nr for e in graph.edges if e.target == split.index}
    assert took == {"UnbindBackward0": 0, "SortBackward0": 1, "TBackward0": 1, "MmBackward0": 1}
    # sort's indices have no gradient, so torch keeps one output; eigh has two.
    assert [o.used for o in only(graph, "SortBackward0").outputs] == [True]
    eigh = only(graph, "LinalgEighBackward0")
    assert [(o.shape, o.used) for o in eigh.outputs] == [((2,), True), ((2, 2), False)]


def test_thousand_outputs():
    graph = of("unbind_1000")
    assert outline(graph) == ["AddBackward0: 1.3 1.998", "UnbindBackward0: 2.0", "AccumulateGrad:"]
    assert len(graph.nodes[1].outputs) == 1000
    assert [o.number for o in graph.nodes[1].outputs if o.used] == [3, 998]


def test_diamonds_are_walked_once():
    graph = of("doubling_40")
    assert len(graph) == 41
    assert outline(graph)[:2] == ["AddBackward0: 1.0 1.0", "AddBackward0: 2.0 2.0"]
    assert graph.cut is None


def test_wide_graph():
    graph = of("fan_in_1500")
    assert len(graph) == 2 + 1500 * 2
    assert graph.nodes[1].name == "StackBackward0" and len(graph.nodes[1].edges) == 1500
    assert sorted(leaf.names for leaf in graph.leaves) == sorted((f"part{i}",) for i in range(1500))
    assert graph.cut is None


def test_later_operations_come_first():
    for shape in ("dense_skips", "long_way_round", "residual_blocks", "unrolled_cells"):
        graph = of(shape)
        inner = [e for e in graph.edges if e.target is not None and not graph.nodes[e.target].is_leaf]
        assert inner and all(edge.source < edge.target for edge in inner), shape


def test_dense_skips():
    graph = of("dense_skips")
    assert len(graph) == 1 + 1 + 30 * 2
    widths = [len(node.edges) for node in graph.nodes if node.name == "StackBackward0"]
    assert widths == list(range(30, 0, -1))


# --- outputs


def test_leaf_as_output():
    graph = of("leaf_itself")
    assert outline(graph) == ["AccumulateGrad:"]
    assert places(graph) == {"": (0, 0)}
    assert graph.nodes[0].names == ("w",)


def test_list():
    graph = of("list_of_two")
    assert outline(graph) == [
        "SumBackward0: 1.0",
        "AddBackward0: 2.0 -",
        "AccumulateGrad:",
        "MeanBackward0: 2.0",
    ]
    assert places(graph) == {"[0]": (3, 0), "[1]": (0, 0)}


def test_nested_dict_with_none():
    graph = of("nested_dict")
    assert places(graph) == {"loss": (1, 0), "states[0]": (2, 0), "states[1]": (0, 0), "cache": (None, 0)}
    assert [root.reason for root in graph.roots] == [None, None, None, "None"]
    assert [(root.shape, root.dtype) for root in graph.roots[:3]] == [
        ((), "float32"),
        ((2,), "float32"),
        ((2,), "float32"),
    ]


def test_namedtuple_and_dataclass():
    assert list(places(of("namedtuple_output"))) == ["mean", "spread"]
    graph = of("dataclass_output")
    assert places(graph) == {"loss": (0, 0), "logits": (1, 0), "cache": (None, 0)}


def test_output_without_grad_beside_one_with():
    graph = of("some_without_grad")
    assert [(root.path, root.node, root.reason) for root in graph.roots] == [
        ("loss", 0, None),
        ("accuracy", None, "does not require grad"),
    ]


def test_gradient_edges():
    graph = of("gradient_edges")
    assert places(graph) == {"[0]": (1, 1), "[1]": (0, 0)}
    assert [root.shape for root in graph.roots] == [(2,), (4,)]
    split = only(graph, "SplitBackward0")
    assert [o.used for o in split.outputs] == [False, True]


def test_gradient_edge_of_a_custom_function():
    x = numbers(3)
    edge = get_gradient_edge(ThreeOut.apply(x, numbers(3), 2)[1])
    graph = Graph.of(edge, {"x": x})
    assert places(graph) == {"": (0, 1)}
    assert outline(graph) == ["ThreeOutBackward: 1.0 2.0", "AccumulateGrad:", "AccumulateGrad:"]


def test_same_tensor_twice_and_one_root_behind_another():
    w = numbers(2)
    h = w.exp()
    graph = Graph.of([h.sum(), h, h], {"w": w})
    assert places(graph) == {"[0]": (0, 0), "[1]": (1, 0), "[2]": (1, 0)}


# --- names


def test_shared_parameter_lists_every_name():
    graph = of("shared_and_tied")
    names = sorted(leaf.names for leaf in graph.leaves)
    assert names == [("emb.weight", "dec.weight"), ("mix.bias",), ("mix.weight",)]
    tied = next(leaf for leaf in graph.leaves if len(leaf.names) == 2)
    users = {graph.nodes[edge.source].name for edge in graph.edges if edge.target == tied.index}
    assert users == {"TBackward0", "EmbeddingBackward0"}
    assert tied.shape == (5, 4)
    mix = next(leaf for leaf in graph.leaves if leaf.names == ("mix.bias",))
    assert sum(edge.target == mix.index for edge in graph.edges) == 2


def test_module_buffers_and_dict_of_modules():
    net = nn.Sequential(nn.BatchNorm1d(2))
    out = net(numbers(3, 2, requires_grad=False)).sum()
    saved = only(Graph.of(out, {"net": net}), "NativeBatchNormBackward0").saved
    names = {s.attr: s.names for s in saved}
    assert names["running_mean"] == ("net.0.running_mean",)
    assert names["weight"] == ("net.0.weight",)


def test_names_of_tensors_that_are_no_leaves():
    w = numbers(2, 2)
    top, bottom = w.unbind(0)
    graph = Graph.of((top * bottom).sum(), {"w": w, "top": top, "bottom": bottom, "again": top})
    assert [o.names for o in only(graph, "UnbindBackward0").outputs] == [("top", "again"), ("bottom",)]


def test_names_that_are_not_in_the_graph():
    w, other = numbers(2), numbers(2)
    graph = Graph.of(w.sum(), {"w": w, "other": other, "constant": torch.ones(1), "nothing": None})
    assert graph.unmatched == ("other",)


def test_pairs_and_module_as_params():
    net = nn.Linear(2, 1)
    out = net(torch.ones(1, 2))
    expected = {("weight",), ("bias",)}
    for params in (net, dict(net.named_parameters()), net.named_parameters(), list(net.named_parameters())):
        assert {leaf.names for leaf in Graph.of(out, params).leaves} == expected
    assert {leaf.names for leaf in Graph.of(out).leaves} == {()}


def test_subclass_alias_takes_the_name():
    graph = of("subclass")
    alias = next(node for node in graph.nodes if node.outputs and node.outputs[0].names == ("w",))
    assert alias.name == "AliasBackward0"
    assert [leaf.names for leaf in graph.leaves] == [()]
    assert graph.roots[0].shape == (2, 2)


# --- kinds


@pytest.mark.parametrize(
    ("shape", "name", "kind"),
    [
        ("square_by_itself", "MulBackward0", "op"),
        ("square_by_itself", "AccumulateGrad", "accumulate"),
        ("custom_three_outputs", "ThreeOutBackward", "custom"),
        ("custom_once", "Error", "error"),
        ("gradient_penalty", "TanhBackwardBackward0", "recorded"),
        ("gradient_penalty", "TanhBackward0", "op"),
        ("written_through_views", "CopySlices", "copy_slices"),
        ("full_backward_hooks", "BackwardHookFunctionBackward", "hook"),
        ("checkpoint_reentrant", "CheckpointFunctionBackward", "checkpoint"),
    ],
)
def test_kind(shape, name, kind):
    nodes = [node for node in of(shape).nodes if node.name == name]
    assert nodes
    assert {node.kind for node in nodes} == {kind}


def test_function_that_bears_a_torch_name_is_custom():
    class CheckpointFunction(KeepsOutput):
        pass

    out = CheckpointFunction.apply(numbers(2), torch.tensor(1.0))
    node = Graph.of(out).nodes[0]
    assert (node.name, node.kind) == ("CheckpointFunctionBackward", "custom")


def test_node_without_a_python_class():
    library = torch.library.Library("inside_autograd_tests", "DEF")
    try:
        library.define("plain(Tensor x) -> Tensor")
        library.impl("plain", lambda x: x.detach().clone(), "CPU")
        out = torch.ops.inside_autograd_tests.plain(numbers(2).exp())
        graph = Graph.of(out)
        assert outline(graph) == ["WarnNotImplemented: 1.0", "ExpBackward0: 2.0", "AccumulateGrad:"]
        assert len(Graph.of(GradientEdge(out.grad_fn, 0))) == 3
        with pytest.raises(TypeError, match="Got the node CppFunction, not a tensor"):
            Graph.of(out.grad_fn)
    finally:
        library._destroy()


def test_foreach_nodes_have_their_own_name():
    first, _ = torch._foreach_exp([numbers(2), numbers(2)])
    assert Graph.of(first).nodes[0].name == "ForeachExpBackward0"


def test_compiled_function():
    compiled = torch.compile(lambda x: (x.sin() * x).sum(), backend="aot_eager")
    x = numbers(2)
    graph = Graph.of(compiled(x), {"x": x})
    assert outline(graph) == ["CompiledFunctionBackward: 1.0", "AccumulateGrad:"]
    assert graph.nodes[0].kind == "custom"


# --- shapes of special graphs


def test_custom_function():
    graph = of("custom_three_outputs")
    assert outline(graph) == [
        "SumBackward0: 1.0",
        "ThreeOutBackward: 2.0 3.0",
        "AccumulateGrad:",
        "AccumulateGrad:",
    ]
    outputs = graph.nodes[1].outputs
    assert [(o.number, o.shape, o.dtype, o.used) for o in outputs] == [
        (0, (3,), "float32", True),
        (1, (3,), "float32", False),
        (2, None, None, False),  # the indices: marked non-differentiable
    ]


def test_custom_function_with_an_unneeded_tensor():
    edges = of("custom_keeps_output").nodes[1].edges
    assert [(e.target, e.reason) for e in edges] == [
        (2, None),
        (None, "this tensor argument does not require grad"),
    ]


def test_error_node_of_once_differentiable():
    graph = of("custom_once")
    assert [node.name for node in graph.nodes if node.kind == "error"] == ["Error"]


def test_custom_function_twice():
    # grad * 3 * x**2 with grad = ones: the recorded formula of Cube.backward.
    graph = of("custom_twice")
    assert outline(graph) == [
        "SumBackward0: 1.0",
        "MulBackward0: - 2.0",
        "PowBackward0: 3.0",
        "AccumulateGrad:",
    ]


def test_in_place_through_views():
    graph = of("written_through_views")
    assert outline(graph) == [
        "SliceBackward0: 1.0",
        "ViewBackward0: 2.0",
        "CopySlices: 5.0 3.0",
        "SliceBackward0: 4.0",
        "AccumulateGrad:",
        "CopySlices: 6.0 -",
        "CopySlices: 7.0 -",
        "MulBackward0: 4.0 -",
    ]
    assert graph.nodes[5].edges[1].reason == "the value written needs no gradient"


def test_custom_in_place():
    graph = of("custom_in_place")
    assert outline(graph)[:2] == ["SumBackward0: 1.0", "AddInPlaceBackward: 3.0 2.0"]
    assert graph.nodes[2].names == ("other",)


def test_full_backward_hooks_stand_around_each_module():
    names = [node.name for node in of("full_backward_hooks").nodes]
    hook = "BackwardHookFunctionBackward"
    assert names[:6] == ["MeanBackward0", hook, "SigmoidBackward0", hook, hook, "AddmmBackward0"]
    assert names[-2:] == [hook, "AccumulateGrad"]
    assert names.count(hook) == 4


def test_reentrant_checkpoint_hides_its_parameters():
    graph = of("checkpoint_reentrant")
    assert only(graph, "CheckpointFunctionBackward").kind == "checkpoint"
    assert graph.unmatched == ("a.0.weight", "a.0.bias")


def test_new_checkpoint_shows_them():
    assert of("checkpoint_new").unmatched == ()


def test_gradient_penalty_uses_parameters_twice():
    graph = of("gradient_penalty")
    assert graph.unmatched == ("2.bias",)  # the bias of the last layer is not in the gradient
    weight = next(leaf for leaf in graph.leaves if leaf.names == ("0.weight",))
    (transposed,) = (e.source for e in graph.edges if e.target == weight.index)
    users = sorted(graph.nodes[e.source].name for e in graph.edges if e.target == transposed)
    assert users == ["AddmmBackward0", "TBackward0"]


def test_fused_lstm():
    graph = of("fused_lstm")
    assert places(graph) == {"hidden": (0, 0), "last": (1, 0)}
    assert len(graph.leaves) == 8
    names = {name for leaf in graph.leaves for name in leaf.names}
    assert names == {
        f"{kind}_l{layer}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for layer in (0, 1)
    }


def test_unrolled_cells_share_their_parameters():
    graph = of("unrolled_cells")
    assert len(graph.leaves) == 8
    bias = next(leaf for leaf in graph.leaves if leaf.names == ("0.bias_ih",))
    assert sum(edge.target == bias.index for edge in graph.edges) == 20


def test_attention_keeps_both_outputs():
    graph = of("attention")
    assert [root.node for root in graph.roots] == [0, 2]
    assert graph.roots[1].shape == (1, 3, 3)
    assert len(graph.leaves) == 5 and graph.unmatched == ()


def test_encoder():
    graph = of("encoder_layers")
    assert len(graph.leaves) == 24 and graph.unmatched == ()


def test_complex_dtypes():
    graph = of("complex_numbers")
    assert {leaf.names[0]: leaf.dtype for leaf in graph.leaves} == {"z": "complex64", "w": "float32"}
    assert only(graph, "ConjBackward0").outputs[0].dtype == "complex64"
    assert only(graph, "AbsBackward0").outputs[0].dtype == "float32"


def test_dtypes_of_casts():
    graph = of("half_precision")
    assert graph.leaves[0].dtype == "bfloat16"
    assert sorted(n.outputs[0].dtype for n in graph.nodes if n.name == "ToCopyBackward0") == [
        "float32",
        "float64",
    ]


def test_meta_device():
    graph = of("meta_device")
    assert graph.leaves[0].device == "meta" and graph.nodes[0].outputs[0].device == "meta"


def test_nested_tensors_have_no_shape():
    for shape in ("jagged", "nested_strided"):
        graph = of(shape)
        output = only(graph, "MulBackward0").outputs[0]
        assert (output.shape, output.dtype) == (None, "float32")
        assert [leaf.names for leaf in graph.leaves] == [("a",), ("b",)]


def test_jagged_tensor_as_output():
    nested = torch.nested.as_nested_tensor([numbers(2, 3), numbers(1, 3)], layout=torch.jagged)
    root = Graph.of(nested).roots[0]
    assert (root.node, root.shape, root.dtype) == (0, None, "float32")


def test_functional_transforms_leave_ordinary_graphs():
    graph = of("functional")
    assert [leaf.names for leaf in graph.leaves] == [("w",)]
    assert [root.path for root in graph.roots] == ["gradient", "jacobian"]
    assert [root.node for root in graph.roots] == [5, 0]


def test_empty_and_zero_dim_shapes():
    leaves = {leaf.names[0]: leaf.shape for leaf in of("empty_and_zero_dim").leaves}
    assert leaves == {"none": (0, 3), "one": ()}


def test_sparse_gradient_is_an_ordinary_leaf():
    assert outline(of("sparse_embedding")) == [
        "SumBackward0: 1.0",
        "EmbeddingBackward0: 2.0",
        "AccumulateGrad:",
    ]


def test_uninitialized_parameter():
    lazy = nn.LazyLinear(2)
    graph = Graph.of(numbers(2).sum(), lazy)
    assert graph.unmatched == ("weight", "bias")
    assert Graph.of(lazy.weight, lazy).leaves[0].names == ("weight",)
    assert Graph.of(lazy.weight, lazy).leaves[0].shape is None


# --- nothing is kept


def test_graph_keeps_nothing_alive():
    def build():
        net = nn.Linear(2, 2)
        x = numbers(1, 2)
        product, _, _ = ThreeOut.apply(net(x), torch.ones(1, 2), 2)
        out = product.sum()
        graph = Graph.of({"out": out, "product": product}, {"net": net, "x": x, "product": product})
        of_edge = Graph.of(get_gradient_edge(product))
        things = (net, net.weight, x, product, out, product.grad_fn)
        return (graph, of_edge), [weakref.ref(thing) for thing in things]

    gc.disable()  # nothing may hang in a cycle that only the collector would find
    try:
        graphs, refs = build()
        assert [ref() for ref in refs] == [None] * 6
    finally:
        gc.enable()
    assert [len(graph) for graph in graphs] == [7, 6]


@pytest.mark.parametrize("case", ["no graph", "not a tensor", "params", "limits"])
def test_error_keeps_nothing_alive(case):
    def call(refs):
        x = numbers(2)
        with torch.no_grad():
            dead = x.exp()
        good = ThreeOut.apply(x, torch.ones(2), 2)[0]
        net = nn.Linear(2, 2)
        refs += [weakref.ref(thing) for thing in (x, dead, good, good.grad_fn, net)]
        if case == "no graph":
            Graph.of([dead], {"x": x, "good": good, "net": net})
        elif case == "not a tensor":
            Graph.of({"good": good, "all": [x, dead, 3]}, net)
        elif case == "params":
            Graph.of(good, {"x": x, "dead": dead, "net": net, "three": 3})
        else:
            Graph.of([good, dead], {"x": x, "net": net}, max_path=0)

    refs = []
    try:
        call(refs)
    except (TypeError, ValueError) as error:
        kept = error
    # A traceback keeps the variables of its frames. Those of the caller are the caller's own.
    frames = [frame for frame, _ in traceback.walk_tb(kept.__traceback__)]
    assert [frame.f_code.co_name for frame in frames] == ["test_error_keeps_nothing_alive", "call", "of"]
    frames[1].clear()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 5
    assert kept.__context__ is None and kept.__cause__ is None


def test_failed_calls_leave_no_garbage():
    x = numbers(2)
    gc.collect()
    gc.disable()
    try:
        ref = weakref.ref(tensor := x.detach())
        with pytest.raises(ValueError, match="no backward graph"):
            Graph.of(tensor)
        del tensor
        assert ref() is None
    finally:
        gc.enable()


# --- nothing is changed


def state_of(outputs, params):
    tensors = {}
    for name, tensor in params.items():
        hooks = (tensor._backward_hooks or {}, tensor._post_accumulate_grad_hooks or {})
        tensors[name] = (tensor._version, tensor.requires_grad, tensor.is_leaf, [list(h) for h in hooks])
    return tensors, torch.is_grad_enabled(), torch.random.get_rng_state().tolist()


BACKWARD_FAILS = {
    "changed_after_save",
    "changed_leaf",
    "changed_base",
    "freed",
    "freed_custom",
    "freed_in_part",
}
NOT_DIFFERENTIABLE = {"no_graph", "gradient_edges", "packed_by_hooks"}


def gradients(outputs, params, capture):
    """Run backward over all outputs; returns gradients, or the error's class where it must fail."""
    from inside_autograd.inputs import flatten_outputs

    if capture:
        before = state_of(outputs, params)
        had = [None if t.grad is None else t.grad.clone() for t in params.values() if t.is_leaf]
        first = Graph.of(outputs, params)
        assert Graph.of(outputs, params) == first
        assert state_of(outputs, params) == before
        now = [t.grad for t in params.values() if t.is_leaf]
        assert all(a is b is None or torch.equal(a, b) for a, b in zip(had, now, strict=True))
    roots = [t for _, t in flatten_outputs(outputs) if t is not None and t.requires_grad]
    total = sum(t.real.sum() if t.is_complex() else t.sum() for t in roots)
    try:
        total.backward()
    except RuntimeError as error:
        return str(error)[:60]
    return [t.grad for t in params.values() if t.is_leaf]


@pytest.mark.parametrize("shape", sorted(set(SHAPES) - NOT_DIFFERENTIABLE - {"chain_4000"}))
def test_reading_changes_nothing(shape):
    def run(capture):
        outputs, params = SHAPES[shape]()
        if isinstance(params, nn.Module):
            params = dict(params.named_parameters())
        return gradients(outputs, params, capture)

    plain, captured = run(False), run(True)
    if shape in BACKWARD_FAILS | {"custom_once"}:
        assert isinstance(plain, str) and captured == plain
        return
    assert isinstance(plain, list)
    for a, b in zip(plain, captured, strict=True):
        assert (a is None) == (b is None)
        if a is not None and a.device.type != "meta":
            a, b = (t.to_dense() if t.layout != torch.strided else t for t in (a, b))
            assert torch.equal(a, b)


def test_capture_twice_after_a_long_cut():
    outputs, params = SHAPES["chain_4000"]()
    assert Graph.of(outputs, params) == Graph.of(outputs, params)


def test_equal_programs_give_equal_graphs():
    for shape in sorted(set(SHAPES) - {"no_graph"}):
        assert of(shape) == of(shape), shape


def test_no_unpack_hook_runs():
    of("packed_by_hooks")  # its hook raises
    w = numbers(2)
    calls = []

    def unpack(packed):
        calls.append("unpack")
        return packed

    with saved_tensors_hooks(lambda t: t.detach(), unpack):
        out = KeepsOutput.apply(w.exp(), torch.tensor(1.0)).sum()
        Graph.of(out, {"w": w})
    Graph.of(out, {"w": w})
    assert calls == []
    out.backward()
    assert calls


def test_checkpoint_is_not_run_again():
    calls = []

    def block(x):
        calls.append("forward")
        return (x.exp() * x).sin()

    x = numbers(2)
    for reentrant in (False, True):
        calls.clear()
        out = checkpoint(block, x, use_reentrant=reentrant).sum()
        Graph.of(out, {"x": x})
        assert calls == ["forward"]
        out.backward()
        assert calls == ["forward"] * 2


def test_leaf_has_no_new_children():
    w = numbers(2)
    Graph.of(w, {"w": w})
    assert w.is_leaf and w.grad_fn is None and w._version == 0 and w.grad is None


class Watch(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


class WatchDispatch(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.append(function)
        return function(*args, **(kwargs or {}))


def in_all_contexts():
    yield "no_grad", torch.no_grad()
    yield "inference", torch.inference_mode()
    yield "anomaly", torch.autograd.set_detect_anomaly(True)
    yield "hooks", saved_tensors_hooks(lambda t: pytest.fail("packed"), lambda t: pytest.fail("unpacked"))
    yield "meta", torch.device("meta")
    yield "function mode", Watch()
    yield "dispatch mode", WatchDispatch()
    yield "no hooks allowed", torch.autograd.graph.disable_saved_tensors_hooks("none here")


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize(
    "shape", ["leaf_itself", "nested_dict", "custom_keeps_output", "subclass", "changed_leaf"]
)
def test_capture_in_any_context(shape):
    outputs, params = SHAPES[shape]()
    expected = Graph.of(outputs, params)
    for name, context in in_all_contexts():
        with context:
            state = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()
            graph = Graph.of(outputs, params)
            after = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()
        assert graph == expected, name
        assert after == state, name
        assert getattr(context, "seen", []) == [], name


def test_subclass_does_not_see_the_reading():
    seen = []

    class Spy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append(function)
            return super().__torch_function__(function, types, args, kwargs or {})

    w = numbers(2).as_subclass(Spy)
    out = (w * w).sum()
    seen.clear()
    graph = Graph.of(out, {"w": w})
    assert seen == []
    assert graph.nodes[-1].name == "AccumulateGrad"


def test_subclass_with_a_broken_shape():
    class Shapeless(torch.Tensor):
        @property
        def shape(self):
            raise AttributeError("no shape here")

    graph = Graph.of(numbers(2).as_subclass(Shapeless) * 2)
    assert graph.roots[0].shape is None
    assert graph.nodes[-1].shape == (2,)


def test_fake_and_symbolic_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment)
    x = mode.from_tensor(torch.ones(5, 3, requires_grad=True), static_shapes=False)
    with mode:
        out = (x * x).sum()
    guards = len(environment.guards)
    graph = Graph.of(out, {"x": x})
    assert outline(graph) == ["SumBackward0: 1.0", "MulBackward0: 2.0 2.0", "AccumulateGrad:"]
    assert graph.leaves[0].shape is None  # its sizes are symbols
    assert len(environment.guards) == guards


def test_set_default_device():
    outputs, params = SHAPES["leaf_itself"]()
    expected = Graph.of(outputs, params)
    torch.set_default_device("meta")
    try:
        assert Graph.of(outputs, params) == expected
    finally:
        torch.set_default_device(None)


def test_capture_on_several_threads():
    outputs, params = SHAPES["unrolled_cells"]()
    expected = Graph.of(outputs, params)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(Graph.of(outputs, params) == expected))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_capture_inside_a_hook_and_inside_backward():
    w = numbers(2)
    h = w.exp()
    found = []
    h.register_hook(lambda grad: found.append(len(Graph.of(h, {"w": w}))))
    h.sum().backward()
    assert found == [2]


# --- the rest of the class


def test_len_edges_and_cut_text():
    graph = of("scalar_and_constant")
    assert len(graph) == len(graph.nodes) == 4
    assert len(list(graph.edges)) == 5
    assert str(Cut(1, 1, 1500, 50000)) == (
        "cut here: 1 edge leads on to nodes that were not read (limits: 1,500 nodes on a path, 50,000 in all)"
    )
    assert str(Cut(1234, 2, 10, 20)).startswith("cut here: 1,234 edges lead on")


def test_once_differentiable_node_is_reached():
    x = numbers(2)
    (grad,) = torch.autograd.grad(CubeOnce.apply(x).square().sum(), x, create_graph=True)
    assert [node.kind for node in Graph.of(grad).nodes] == ["error", "accumulate"]


@pytest.mark.parametrize("running", [True, False])
def test_garbage_collector_is_as_it_was(running):
    before = gc.isenabled()
    (gc.enable if running else gc.disable)()
    try:
        Graph.of(numbers(2).sum())
        assert gc.isenabled() == running
        with pytest.raises(ValueError, match="no grad_fn"):
            Graph.of(torch.ones(2))
        assert gc.isenabled() == running
    finally:
        (gc.enable if before else gc.disable)()


def test_outputs_that_are_alike_are_one_object():
    h = numbers(3)
    for _ in range(3):
        h = h.sin()
    graph = Graph.of(h)
    assert len({id(node.outputs) for node in graph.nodes}) == 1
    assert graph.nodes[0].outputs[0].shape == (3,)

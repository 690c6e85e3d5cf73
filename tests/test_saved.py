"""What a node has saved: alias, state, role, names, source and memory, against hand-made expectations."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from inside_autograd.graph import Graph
from inside_autograd.saved import Saved
from shapes import SHAPES, KeepsOutput, numbers


def of(shape):
    outputs, params = SHAPES[shape]()
    return Graph.of(outputs, params)


def saved(graph, name):
    """What the last node of that name saved, by attribute."""
    node = next(node for node in graph.nodes if node.name == name)
    return {entry.attr: entry for entry in node.saved}


def states(graph, name):
    return {attr: entry.state for attr, entry in saved(graph, name).items()}


def test_a_leaf_saved_twice():
    entries = saved(of("square_by_itself"), "MulBackward0")
    leaf = Saved("self", "alive", (3,), "float32", 12, "leaf", ("w",), None, 0, True, "cpu", 12)
    assert list(entries) == ["other", "self"]
    assert entries["self"] == leaf
    assert entries["other"].storage == 0


def test_roles():
    w, constant = numbers(2), torch.ones(2)
    h = w.exp()
    graph = Graph.of((h * constant).sum() * h.sum(), {"w": w, "constant": constant, "h": h})
    exp = next(node.index for node in graph.nodes if node.name == "ExpBackward0")
    result = saved(graph, "ExpBackward0")["result"]
    assert (result.role, result.source, result.names) == ("output", (exp, 0), ("h",))
    mul = next(node for node in graph.nodes if node.name == "MulBackward0" and node.outputs[0].shape == (2,))
    (other,) = mul.saved  # torch saves only what it needs: the constant's gradient is not wanted
    assert (other.attr, other.role, other.names, other.source) == ("other", "constant", ("constant",), None)


def test_intermediate_tells_which_output_it_was():
    w = numbers(4)
    _, high = w.chunk(2)
    graph = Graph.of(high * w[:2])
    split = next(node.index for node in graph.nodes if node.name == "SplitBackward0")
    entry = saved(graph, "MulBackward0")["self"]
    assert (entry.role, entry.source) == ("intermediate", (split, 1))


def test_lists_are_numbered():
    entries = saved(of("index_with_tensors"), "IndexBackward0")
    assert {attr: (e.shape, e.dtype, e.nbytes, e.role) for attr, e in entries.items()} == {
        "indices[0]": ((2,), "int64", 16, "constant"),
        "indices[1]": ((2,), "int64", 16, "constant"),
    }
    w = numbers(2, 2)
    assert list(saved(Graph.of(w[:, torch.tensor([1])]), "IndexBackward0")) == ["indices[1]"]


def test_absent_tensors_are_not_listed():
    out = nn.functional.batch_norm(numbers(2, 3), None, None, training=True)
    assert set(saved(Graph.of(out), "NativeBatchNormBackward0")) == {"input", "result1", "result2"}


def test_nothing_saved():
    w = numbers(2)
    assert all(node.saved == () for node in Graph.of((w + 1).sum()).nodes)


# --- custom Functions


def test_custom_function():
    entries = saved(of("custom_keeps_output"), "KeepsOutputBackward")
    told = {attr: (e.state, e.role, e.checked, e.dtype) for attr, e in entries.items()}
    assert told == {
        "saved_tensors[0]": ("alive", "output", True, "float32"),  # [1] was None
        "saved_tensors[2]": ("alive", "leaf", True, "float32"),
        "ctx.attribute_out": ("alive", "output", False, "float32"),
        "ctx.mask": ("alive", "constant", False, "bool"),
        "ctx.scale": ("alive", "constant", False, "float32"),
    }
    assert entries["saved_tensors[2]"].names == ("x",)
    assert entries["saved_tensors[0]"].storage == entries["ctx.attribute_out"].storage
    assert entries["saved_tensors[0]"].source == (1, 0)


def test_tensors_in_containers_on_ctx():
    class Hoarder(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.parts = [x, 3, x.detach()]
            ctx.table = {"x": x, "n": 1, 2: x}
            ctx.pair = (x.detach(),)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    graph = Graph.of(Hoarder.apply(numbers(2)))
    assert list(saved(graph, "HoarderBackward")) == [
        "ctx.pair[0]",
        "ctx.parts[0]",
        "ctx.parts[2]",
        "ctx.table['x']",
        "ctx.table[2]",
    ]
    assert all(not entry.checked for entry in graph.nodes[0].saved)


def test_changed_inputs_of_a_custom_function():
    x, scale = numbers(2), torch.tensor(0.5)
    out = KeepsOutput.apply(x, scale)
    with torch.no_grad():
        x.add_(1)
    graph = Graph.of(out, {"x": x})
    told = states(graph, "KeepsOutputBackward")
    assert told["saved_tensors[2]"] == "changed"
    assert told["saved_tensors[0]"] == "alive"
    assert told["ctx.mask"] == "alive"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_changed_output_of_a_custom_function():
    x = numbers(2)
    out = KeepsOutput.apply(x, torch.tensor(0.5))
    total = out.sum()
    out.mul_(2)
    entries = saved(Graph.of(total, {"x": x}), "KeepsOutputBackward")
    assert entries["saved_tensors[0]"].state == "changed"
    assert (entries["saved_tensors[0]"].role, entries["saved_tensors[0]"].source) == ("output", (1, 0))
    assert entries["saved_tensors[2]"].state == "alive"
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_changed_output_and_input_is_not_guessed():
    x = numbers(2)
    out = KeepsOutput.apply(x, torch.tensor(0.5))
    total = out.sum()
    out.mul_(2)
    with torch.no_grad():
        x.add_(1)
    told = states(Graph.of(total), "KeepsOutputBackward")
    # Torch names only the first that fails, so the output may or may not have been changed since.
    assert (told["saved_tensors[0]"], told["saved_tensors[2]"]) == ("unread", "changed")


def test_freed_custom_function():
    graph = of("freed_custom")
    told = states(graph, "KeepsOutputBackward")
    assert told == {
        "saved_tensors": "freed",
        "ctx.attribute_out": "alive",
        "ctx.mask": "alive",
        "ctx.scale": "alive",
    }
    assert [node.freed for node in graph.nodes] == [False, True, False]


# --- states


def test_freed():
    graph = of("freed")
    assert states(graph, "MulBackward0") == {"other": "freed", "self": "freed"}
    assert states(graph, "SinBackward0") == {"self": "freed"}
    freed = saved(graph, "SinBackward0")["self"]
    assert freed == Saved("self", "freed")
    assert [node.freed for node in graph.nodes] == [False, True, False, True]


def test_freed_in_part():
    graph = of("freed_in_part")
    assert {node.name: node.freed for node in graph.nodes} == {
        "MulBackward0": False,
        "ExpBackward0": True,
        "SinBackward0": False,
        "AccumulateGrad": False,
    }


def test_freed_list():
    w = numbers(3, 3)
    out = w[torch.tensor([0, 2]), torch.tensor([1, 1])].sum()
    out.backward()
    assert states(Graph.of(out), "IndexBackward0") == {"indices": "freed"}


def test_retained():
    assert states(of("kept_after_backward"), "ExpBackward0") == {"result": "alive"}


def test_changed_result():
    graph = of("changed_after_save")
    entry = saved(graph, "ExpBackward0")["result"]
    assert (entry.state, entry.role, entry.source, entry.shape) == ("changed", "output", (1, 0), (2,))


def test_changed_leaf():
    entries = saved(of("changed_leaf"), "MulBackward0")
    assert (entries["self"].state, entries["self"].role, entries["self"].names) == ("changed", "leaf", ("w",))
    assert (entries["other"].state, entries["other"].names) == ("alive", ("v",))


def test_changed_base_of_a_saved_view():
    assert states(of("changed_base"), "MulBackward0") == {"self": "changed", "other": "alive"}


def test_changed_intermediate_is_not_an_output_of_its_reader():
    w = numbers(2)
    h = w * 2
    out = h.sin().sum()
    h.add_(1)
    entry = saved(Graph.of(out), "SinBackward0")["self"]
    assert (entry.state, entry.role) == ("changed", "intermediate")


def test_changed_constant():
    w, c = numbers(2), torch.ones(2)
    out = w * c
    c.zero_()
    entry = saved(Graph.of(out, {"c": c}), "MulBackward0")["other"]
    assert (entry.state, entry.role, entry.names) == ("changed", "constant", ("c",))


def test_one_changed_in_a_list():
    w, i, j = numbers(2, 2), torch.tensor([0]), torch.tensor([1])
    out = w[i, j]
    j.sub_(1)
    assert states(Graph.of(out), "IndexBackward0") == {"indices[0]": "alive", "indices[1]": "changed"}
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_detached_in_place():
    y = numbers(2) * 2
    out = y * y
    y.detach_()
    assert states(Graph.of(out), "MulBackward0") == {"self": "changed", "other": "changed"}
    with pytest.raises(RuntimeError, match="detached in-place"):
        out.sum().backward()


def test_detaching_an_output_in_place_harms_nothing():
    y = numbers(2).exp()
    out = y.sum()
    y.detach_()
    assert states(Graph.of(out), "ExpBackward0") == {"result": "alive"}
    out.backward()


def test_result_of_an_in_place_operation():
    h = numbers(2) * 1
    out = h.relu_().sum()
    graph = Graph.of(out)
    entry = saved(graph, "ReluBackward0")["result"]
    assert (entry.state, entry.role) == ("alive", "output")
    out.backward()


def test_unchecked_attribute_stays_alive_when_changed():
    x, scale = numbers(2), torch.tensor(0.5)
    out = KeepsOutput.apply(x, scale)
    scale.mul_(2)
    entry = saved(Graph.of(out), "KeepsOutputBackward")["ctx.scale"]
    assert (entry.state, entry.checked) == ("alive", False)


# --- hooks


def test_packed_is_not_read():
    graph = of("packed_by_hooks")
    assert saved(graph, "MulBackward0") == {
        "other": Saved("other", "packed"),
        "self": Saved("self", "packed"),
    }
    assert states(graph, "ExpBackward0") == {"result": "packed"}
    assert states(graph, "SinBackward0") == {"self": "alive"}


def test_packed_custom_function():
    x = numbers(2)
    with saved_tensors_hooks(lambda t: t.shape, lambda shape: pytest.fail("unpacked")):
        out = KeepsOutput.apply(x, torch.tensor(0.5))
    told = states(Graph.of(out), "KeepsOutputBackward")
    assert told["saved_tensors[0]"] == told["saved_tensors[2]"] == "packed"
    assert told["ctx.scale"] == "alive"


def test_one_packed_in_a_list():
    x = numbers(2)
    out = KeepsOutput.apply(x, torch.tensor(0.5))
    out.grad_fn._raw_saved_tensors[2].register_hooks(lambda t: t.shape, lambda shape: pytest.fail("unpacked"))
    told = states(Graph.of(out), "KeepsOutputBackward")
    assert (told["saved_tensors[0]"], told["saved_tensors[2]"]) == ("alive", "packed")


def test_packed_then_freed():
    w = numbers(2)
    with saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        out = w.exp().sum()
    out.backward()
    assert states(Graph.of(out), "ExpBackward0") == {"result": "freed"}


def test_new_checkpoint_is_packed():
    graph = of("checkpoint_new")
    assert states(graph, "SigmoidBackward0") == {"result": "packed"}


def test_reentrant_checkpoint_keeps_its_input():
    entries = saved(of("checkpoint_reentrant"), "CheckpointFunctionBackward")
    assert (entries["saved_tensors[0]"].role, entries["saved_tensors[0]"].names) == ("leaf", ("x",))


# --- memory


def test_storage_is_shared_by_views():
    w = numbers(2, 3)
    h = w * 1
    graph = Graph.of((h.t() @ h[:, :1]).sum() + (w * w).sum())
    mm = saved(graph, "MmBackward0")
    assert mm["self"].storage == mm["mat2"].storage is not None
    assert (mm["mat2"].nbytes, mm["mat2"].storage_nbytes) == (8, 24)
    square = next(node for node in graph.nodes if {entry.role for entry in node.saved} == {"leaf"})
    assert square.saved[0].storage == square.saved[1].storage != mm["self"].storage


def test_expanded_tensor_is_smaller_than_it_looks():
    w = numbers(1)
    entry = saved(Graph.of(w.expand(1000).sin()), "SinBackward0")["self"]
    assert (entry.shape, entry.nbytes, entry.storage_nbytes) == ((1000,), 4000, 4)


def test_meta_and_wrapped_numbers():
    entries = saved(of("meta_device"), "MmBackward0")
    assert (entries["mat2"].device, entries["mat2"].nbytes, entries["mat2"].names) == ("meta", 24, ("w",))
    entry = saved(of("dataclass_output"), "MulBackward0")["other"]  # the 3 in w * 3
    assert (entry.shape, entry.dtype, entry.role) == ((), "int64", "constant")


def test_two_meta_tensors_share_nothing():
    a, b = (torch.ones(2, device="meta", requires_grad=True) for _ in range(2))
    entries = saved(Graph.of(a * b), "MulBackward0")
    assert entries["self"].storage != entries["other"].storage


def test_sparse():
    entry = saved(of("sparse_product"), "SparseAddmmBackward0")["mat1"]
    assert (entry.names, entry.shape, entry.nbytes) == (("s",), (2, 2), None)
    assert (entry.storage, entry.storage_nbytes) == (None, None)


def test_nested():
    for shape, name in (
        ("jagged", "NestedGetValuesBackward0"),
        ("nested_strided", "ToPaddedTensorBackward0"),
    ):
        entry = saved(of(shape), name)["self"]
        assert (entry.shape, entry.dtype, entry.nbytes, entry.role) == (None, "float32", 36, "intermediate")


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_constant():
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.5, 0, torch.quint8)

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, q):
            ctx.save_for_backward(q)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    entry = saved(Graph.of(Keeps.apply(numbers(2), quantized)), "KeepsBackward")["saved_tensors[0]"]
    assert (entry.dtype, entry.nbytes, entry.role) == ("quint8", 2, "constant")


def test_fused_lstm():
    outputs, params = SHAPES["fused_lstm"]()
    graph = Graph.of(outputs, params)
    layers = [node for node in graph.nodes if len(node.outputs) == 3]
    assert len(layers) == 2
    for layer, number in zip(layers, (1, 0), strict=True):
        entries = {entry.attr: entry for entry in layer.saved}
        assert entries["weight0"].names == (f"weight_ih_l{number}",)
        assert [entries[f"result{i}"].source for i in range(3)] == [(layer.index, i) for i in range(3)]
    second = {entry.attr: entry for entry in layers[0].saved}
    assert second["input"].source == (layers[1].index, 0)


def test_batch_norm_names_its_buffers():
    graph = of("residual_blocks")
    node = next(node for node in graph.nodes if node.name == "NativeBatchNormBackward0")
    entries = {entry.attr: entry for entry in node.saved}
    assert entries["running_var"].names == ("1.path.1.running_var",)
    assert entries["running_var"].role == "constant"
    assert entries["weight"].names == ("1.path.1.weight",)


def test_error_node_saves_nothing():
    node = next(node for node in of("custom_once").nodes if node.kind == "error")
    assert node.saved == ()


# --- graphs read without what their nodes saved


def without_saved(graph):
    """What ``saved=False`` must give: everything but the saved tensors that are still there."""
    nodes = tuple(
        dataclasses.replace(node, saved=tuple(one for one in node.saved if one.state == "freed"))
        for node in graph.nodes
    )
    return dataclasses.replace(graph, nodes=nodes)


@pytest.mark.parametrize("shape", [name for name in SHAPES if name != "no_graph"])
def test_without_saved_all_else_is_the_same(shape):
    outputs, params = SHAPES[shape]()
    whole = Graph.of(outputs, params)
    assert Graph.of(outputs, params, saved=False) == without_saved(whole)


def test_without_saved_tells_what_is_freed():
    w, u = numbers(3), numbers(3)
    kept, spent = (w * u).tanh(), (u * w).exp()
    index = w[torch.tensor([0, 2])].sum()
    done = KeepsOutput.apply(w, 2.0).sum()
    for used in (spent.sum(), index, done):
        used.backward()
    outputs = [kept, spent, index, done]
    graph = Graph.of(outputs, {"w": w, "u": u}, saved=False)
    assert [node.name for node in graph.nodes if node.freed] == [
        "KeepsOutputBackward",
        "IndexBackward0",
        "ExpBackward0",
        "MulBackward0",
    ]
    assert graph == without_saved(Graph.of(outputs, {"w": w, "u": u}))
    assert "freed" in str(graph)


def test_without_saved_runs_no_hook():
    ran = []
    w = numbers(3)
    with saved_tensors_hooks(lambda tensor: tensor, ran.append):
        out = (w * w).exp()
    assert not any(node.freed for node in Graph.of(out, saved=False).nodes)
    assert ran == []

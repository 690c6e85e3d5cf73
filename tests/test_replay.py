"""``replay`` changes nothing about a backward pass: same bits, same errors, same side effects."""

import dataclasses
import gc
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from inside_autograd.graph import Graph
from inside_autograd.inputs import flatten_outputs, named_tensors
from inside_autograd.replay import replay
from shapes import SHAPES

REFUSED = {
    "no_graph": "has no grad_fn and does not require grad",
    "some_without_grad": "The output accuracy does not require grad",
    "chain_4000": "at most 1,500 nodes on one path",
}
FAIL_ON_THE_WAY = {
    "freed": "second time",
    "freed_custom": "second time",
    "freed_in_part": "second time",
    "custom_once": "once_differentiable",
    "packed_by_hooks": "an unpack hook ran",
    "changed_after_save": "inplace operation",
    "changed_leaf": "inplace operation",
    "changed_base": "inplace operation",
}


def tensors_of(outputs):
    return [output for _, output in flatten_outputs(outputs) if output is not None]


def ones_for(outputs):
    """A gradient for each output, where it needs one."""
    found = []
    for output in tensors_of(outputs):
        if isinstance(output, GradientEdge):
            meta = output.node._input_metadata[output.output_nr]
            found.append(torch.ones(tuple(meta.shape), dtype=meta.dtype))
        elif output.numel() == 1 and not output.dtype.is_complex:
            found.append(None)
        else:
            found.append(torch.ones_like(output.detach()))
    return found


def leaves_of(params):
    return [t for _, t in named_tensors(params) if t.is_leaf and t.requires_grad]


def bits(tensor):
    """All that tells one gradient from another: kind, layout, strides, values bit for bit."""
    if tensor is None:
        return None
    if tensor.layout == torch.sparse_coo:
        parts = tensor.detach().coalesce()
        return ("sparse", tuple(tensor.shape), bits(parts.indices()), bits(parts.values()))
    if tensor.is_meta:
        return ("meta", tuple(tensor.shape), tensor.dtype)
    raw = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
    data = raw.reshape(-1).clone().view(torch.uint8)
    return (
        type(tensor),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.dtype,
        tensor.requires_grad,
        data.tolist(),
    )


def grads_of(params):
    return [bits(leaf.grad) for leaf in leaves_of(params)]


@pytest.mark.parametrize("name", [name for name in SHAPES if name not in REFUSED])
@pytest.mark.parametrize("retain", [False, True])
def test_backward_is_bit_identical(name, retain):
    plain, plain_params = SHAPES[name]()
    recorded, params = SHAPES[name]()
    before = torch.get_rng_state()
    error = None
    try:
        torch.autograd.backward(tensors_of(plain), ones_for(plain), retain_graph=retain)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    recording = replay(recorded, gradient=ones_for(recorded), params=params, retain_graph=retain)
    assert grads_of(params) == grads_of(plain_params)
    # Freed, changed and packed tensors, hooks' nodes: all that can be read of the graph afterwards.
    assert Graph.of(recorded, params) == Graph.of(plain, plain_params)
    assert torch.equal(torch.get_rng_state(), before)
    if name in FAIL_ON_THE_WAY:
        assert FAIL_ON_THE_WAY[name] in error
        assert str(recording.error)[:60] == error[:60]
    else:
        assert error is None and recording.error is None
        assert recording.never_ran == ()


# In "subclass" the leaf has no name, so there is nothing to differentiate by.
@pytest.mark.parametrize("name", [name for name in SHAPES if name not in (*REFUSED, "subclass")])
def test_grad_is_bit_identical(name):
    plain, plain_params = SHAPES[name]()
    recorded, params = SHAPES[name]()
    leaves, plain_leaves = leaves_of(params), leaves_of(plain_params)
    error = results = None
    old = grads_of(params)
    try:
        results = torch.autograd.grad(tensors_of(plain), plain_leaves, ones_for(plain), allow_unused=True)
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    recording = replay(
        recorded, gradient=ones_for(recorded), wrt=leaves, params=params, allow_unused=True, keep_grads=True
    )
    assert Graph.of(recorded, params) == Graph.of(plain, plain_params)
    if error is None:
        assert [bits(grad) for grad in recording.grads] == [bits(grad) for grad in results]
        # None of the AccumulateGrad nodes of what was asked for has run, and .grad is as before.
        assert not any(recording.graph.nodes[index].is_leaf for index in recording.order)
        assert grads_of(params) == old
    else:
        assert str(recording.error)[:60] == error[:60]


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_recorded_is_one_sentence(name):
    outputs, params = SHAPES[name]()
    old = grads_of(params)
    with pytest.raises(ValueError, match=REFUSED[name]) as caught:
        replay(outputs, gradient=None, params=params)
    assert "\n" not in str(caught.value)
    assert grads_of(params) == old


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128]
)
def test_dtypes(dtype):
    def build():
        torch.manual_seed(0)
        w, x = (torch.randn(7, 5).to(dtype).requires_grad_() for _ in "wx")
        h = (w * x + w).t() * 0.3
        return (h * h.conj() if dtype.is_complex else h * h), {"w": w, "x": x}

    plain, plain_params = build()
    torch.autograd.backward(plain, torch.ones_like(plain))
    recorded, params = build()
    replay(recorded, gradient=torch.ones_like(recorded))
    assert grads_of(params) == grads_of(plain_params)
    assert plain_params["w"].grad.norm() > 0


def test_accumulation_keeps_the_object_that_was_there():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    replay((w * 3).sum())
    first = w.grad
    replay((w * 4).sum())
    assert w.grad is first
    assert w.grad.tolist() == [7.0, 7.0]


class NewTensor(torch.autograd.Function):
    """Its gradient is a fresh tensor that nobody else holds, or one that somebody does."""

    made, held = (), ()

    @staticmethod
    def forward(ctx, x, hold):
        ctx.hold = hold
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        made = torch.full_like(grad, 5.0)
        NewTensor.made += (made.data_ptr(),)
        if ctx.hold:
            NewTensor.held += (made,)
        return made, None


@pytest.mark.parametrize("hold", [False, True])
@pytest.mark.parametrize("run", ["plain", "replay"])
def test_a_gradient_is_stolen_or_copied_as_without_hooks(run, hold):
    NewTensor.made, NewTensor.held = (), ()
    w = torch.ones(3, requires_grad=True)
    loss = NewTensor.apply(w, hold).sum()
    loss.backward() if run == "plain" else replay(loss)
    stolen = w.grad.data_ptr() == NewTensor.made[0]
    assert stolen is not hold


def test_expanded_gradients_get_memory_of_their_own():
    w = torch.ones(3, 4, requires_grad=True)
    replay(w.sum())
    assert w.grad.stride() == (4, 1)


def test_channels_last_is_kept():
    def run(how):
        w = torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).requires_grad_()
        how((w * w).sum())
        return w.grad.stride()

    assert run(replay) == run(torch.Tensor.backward) == (60, 1, 15, 3)


def test_random_numbers_drawn_in_backward_are_the_same():
    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.rand_like(grad)

    found = []
    for run in (torch.Tensor.backward, replay):
        torch.manual_seed(3)
        w = torch.ones(4, requires_grad=True)
        run(Noise.apply(Noise.apply(w)).sum())
        found.append((w.grad.tolist(), torch.rand(1).item()))
    assert found[0] == found[1]


def test_create_graph_gives_gradients_that_can_be_differentiated():
    x = torch.tensor(3.0, requires_grad=True)
    recording = replay(x**3, wrt=[x], create_graph=True, keep_grads=True)
    (first,) = recording.grads
    assert first.item() == 27
    # The recorded graph is that of a plain call: no node of ours in it.
    y = x**3
    (plain,) = torch.autograd.grad(y, x, create_graph=True)
    assert Graph.of(first, {"x": x}) == Graph.of(plain, {"x": x})
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == 18


def test_create_graph_in_backward():
    x = torch.tensor(3.0, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch warns of the reference cycle
        replay(x**3, create_graph=True)
    assert x.grad.requires_grad and x.grad.item() == 27
    x.grad = None


def test_all_hooks_of_the_user_run_once_and_in_the_plain_order():
    def run(how):
        calls = []
        w = torch.tensor(2.0, requires_grad=True)
        h = w * 3
        h.retain_grad()
        loss = h * h

        def note(name, result=None):
            def hook(*_):
                calls.append(name)
                return result

            return hook

        h.register_hook(note("h", torch.tensor(10.0)))
        h.grad_fn.register_prehook(note("mul before"))
        h.grad_fn.register_hook(note("mul after"))
        w.register_hook(lambda grad: calls.append("w") or grad * 2)
        w.register_post_accumulate_grad_hook(note("w done"))
        node = get_gradient_edge(w).node
        node.register_prehook(note("leaf before"))
        node.register_hook(note("leaf after"))
        how(loss)
        return calls, w.grad.item(), h.grad.item()

    assert run(replay) == run(torch.Tensor.backward)
    calls, w_grad, h_grad = run(replay)
    assert calls == ["h", "mul before", "mul after", "w", "leaf before", "w done", "leaf after"]
    assert (w_grad, h_grad) == (60.0, 10.0)


def test_an_optimizer_step_inside_backward():
    w = torch.tensor(2.0, requires_grad=True)

    @torch.no_grad()
    def step(leaf):
        leaf -= 0.5 * leaf.grad
        leaf.grad = None

    w.register_post_accumulate_grad_hook(step)
    recording = replay(w * 4, params={"w": w})
    assert w.item() == 0 and w.grad is None
    last = recording.steps[-1]
    assert (last.received[0].value.text, last.before, last.after) == ("4", None, None)


def hooks_on(node):
    """How many hooks the node has of each kind, counted by adding one."""
    handles = [node.register_prehook(lambda *_: None), node.register_hook(lambda *_: None)]
    counts = [len(handle.hooks_dict_ref()) - 1 for handle in handles]
    for handle in handles:
        handle.remove()
    return counts


def nodes_of(*tensors):
    stack, found = [tensor.grad_fn for tensor in tensors], []
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.append(node)
            stack += [target for target, _ in node.next_functions]
    return found


class Fails(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        raise ArithmeticError("on purpose")


@pytest.mark.parametrize("function", [Fails, NewTensor])
def test_every_hook_is_removed(function):
    w = torch.ones(3, requires_grad=True)
    h = Fails.apply(w * 2) if function is Fails else NewTensor.apply(w * 2, False)
    loss = h.sum()
    recording = replay(loss, retain_graph=True)
    assert (recording.error is not None) is (function is Fails)
    nodes = nodes_of(loss)
    assert [type(node).__name__ for node in nodes] == [
        "SumBackward0",
        f"{function.__name__}Backward",
        "MulBackward0",
        "AccumulateGrad",
    ]
    assert [hooks_on(node) for node in nodes] == [[0, 0]] * 4
    assert nodes[1].__dict__.get("_forward_cls") is None
    assert nodes[1]._forward_cls is function


def test_interrupting_leaves_no_hook_either():
    class Interrupted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise KeyboardInterrupt

    w = torch.ones(3, requires_grad=True)
    loss = Interrupted.apply(w).sum()
    with pytest.raises(KeyboardInterrupt):
        replay(loss)
    assert [hooks_on(node) for node in nodes_of(loss)] == [[0, 0]] * 3


class Mark:
    pass


@pytest.mark.parametrize("how", ["backward", "grad", "error"])
def test_nothing_is_kept_alive(how):
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    middle = Fails.apply(h) if how == "error" else NewTensor.apply(h, False)
    loss = middle.sum()
    watched = [weakref.ref(thing) for thing in (w, h, loss, middle)]
    for node in nodes_of(loss):  # nodes take no weak reference, what is noted on them does
        node.metadata["mark"] = Mark()
        watched.append(weakref.ref(node.metadata["mark"]))
    del node
    assert len(watched) == 8
    recording = replay(loss, wrt=[h, w] if how == "grad" else None, params={"w": w, "h": h})
    assert len(recording) >= 2
    del w, h, middle, loss
    gc.collect()
    assert [ref() for ref in watched] == [None] * len(watched)


def test_a_recording_is_plain_data():
    w = torch.ones(3, requires_grad=True)
    recording = replay(NewTensor.apply(w, False).sum(), wrt=[w], params={"w": w})

    def check(value):
        assert not isinstance(value, torch.Tensor | torch.autograd.graph.Node)
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                check(getattr(value, field.name))
        elif isinstance(value, tuple | list):
            for entry in value:
                check(entry)
        else:
            assert value is None or isinstance(value, str | int | float | complex | bool)

    check(recording)
    with pytest.raises(ValueError, match="keep_grads=True"):
        recording.grads  # noqa: B018


def test_the_same_run_gives_the_same_recording():
    recordings = []
    for _ in range(2):
        outputs, params = SHAPES["unrolled_cells"]()
        recordings.append(replay(outputs, params=params))
    assert recordings[0] == recordings[1]
    assert str(recordings[0]) == str(recordings[1])


def test_is_grads_batched():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    rows = replay(x * x, wrt=[x], gradient=torch.eye(2), is_grads_batched=True, keep_grads=True)
    assert rows.grads[0].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    (step,) = rows.steps
    assert step.received[0].value.text == "[[1, 0], [0, 1]]"
    assert {sent.value.text for sent in step.sent} == {"[[1, 0], [0, 2]]"}


def test_reentrant_checkpoint_fills_parameters_out_of_sight():
    outputs, params = SHAPES["checkpoint_reentrant"]()
    plain, plain_params = SHAPES["checkpoint_reentrant"]()
    plain.backward()
    recording = replay(outputs, params=params)
    assert grads_of(params) == grads_of(plain_params)
    assert [change.name for change in recording.filled] == ["a.0.bias", "a.0.weight"]
    assert all(change.before is None and change.after is not None for change in recording.filled)
    (step,) = (step for step in recording.steps if step.name == "CheckpointFunctionBackward")
    assert step.filled == recording.filled


def test_reentrant_checkpoint_without_names_says_that_it_is_not_seen():
    w = torch.ones(2, requires_grad=True)
    recording = replay(checkpoint(torch.exp, w, use_reentrant=True).sum())
    assert "What ran inside it is not seen here." in str(recording)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda y, x: replay(nn.Linear(1, 1)), TypeError, "Got the module Linear, not a tensor"),
        (lambda y, x: replay("loss"), TypeError, "Got a str, not a tensor"),
        (lambda y, x: replay([]), ValueError, "the outputs hold no tensor"),
        (
            lambda y, x: replay(y),
            RuntimeError,
            r"the output has shape \(3,\), so pass gradient= of that shape",
        ),
        (lambda y, x: replay({"y": y}), RuntimeError, r"the output y has shape \(3,\)"),
        (lambda y, x: replay(y, gradient=torch.ones(2)), RuntimeError, "Mismatch in shape"),
        (lambda y, x: replay([y, y], gradient=torch.ones(3)), ValueError, "There are 2 outputs"),
        (lambda y, x: replay([y, y], gradient=[torch.ones(3)]), ValueError, "has 1 entries for 2 outputs"),
        (lambda y, x: replay({"y": y}, gradient={"z": torch.ones(3)}), ValueError, "no such output"),
        (lambda y, x: replay(y, gradient=get_gradient_edge(y)), TypeError, "is a GradientEdge"),
        (lambda y, x: replay(y.sum(), wrt=[x], inputs=[x]), ValueError, "not both"),
        (lambda y, x: replay(y.sum(), wrt=[]), ValueError, "wrt= is empty"),
        (lambda y, x: replay(y.sum(), inputs=[]), ValueError, "inputs= is empty"),
        (lambda y, x: replay(y.sum(), wrt=[torch.ones(1)]), ValueError, r"wrt\[0\] does not require grad"),
        (lambda y, x: replay(y.sum(), wrt=[x, None]), ValueError, r"wrt\[1\] is None"),
        (lambda y, x: replay(y.sum(), wrt=3), TypeError, "Got an int, not a tensor"),
        (lambda y, x: replay(y.sum(), allow_unused=True), ValueError, "pass wrt= too"),
        (lambda y, x: replay(y.sum(), keep_grads=True), ValueError, "pass wrt= too"),
        (lambda y, x: replay(y.sum(), params=3), TypeError, "params is or holds an int"),
        (lambda y, x: replay(y.sum().cfloat()), RuntimeError, "real scalar outputs"),
    ],
)
def test_bad_input_is_one_clear_sentence_and_nothing_runs(call, error, says):
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    with pytest.raises(error, match=says) as caught:
        call(y, x)
    assert "\n" not in str(caught.value)
    assert x.grad is None
    assert [hooks_on(node) for node in nodes_of(y)] == [[0, 0]] * 2
    y.sum().backward()  # and the graph can still be run


def test_parameters_as_torch_takes_them():
    net = nn.Linear(2, 1)
    recording = replay(net(torch.ones(1, 2)).sum(), wrt=net.parameters(), params=net, keep_grads=True)
    assert [entry.name for entry in recording.returned] == ["weight", "bias"]
    assert [tuple(grad.shape) for grad in recording.grads] == [(1, 2), (1,)]
    with pytest.raises(TypeError, match=r"wrt=dict\(model.named_parameters\(\)\)"):
        replay(net(torch.ones(1, 2)).sum(), wrt=net)


def test_modes_that_watch_calls_do_not_see_the_recording():
    class Counting(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen.append(str(function))
            return function(*args, **(kwargs or {}))

    calls = []
    for run in (torch.Tensor.backward, replay):
        w = torch.arange(9.0, requires_grad=True)
        loss = (w * w).sin().sum()
        with Counting() as mode:
            run(loss)
        calls.append(mode.seen)
    assert calls[0] == calls[1]
    assert "aten.cos.default" in calls[0]


def test_compiled_functions():
    def build():
        w = torch.arange(4.0).requires_grad_()
        return torch.compile(lambda w: (w * w).sin().sum(), backend="aot_eager")(w), w

    plain, plain_w = build()
    plain.backward()
    loss, w = build()
    recording = replay(loss, params={"w": w})
    assert recording.error is None and len(recording) == 2
    assert bits(w.grad) == bits(plain_w.grad)


def test_inputs_accumulates_into_these_only():
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    recording = replay(x * w, inputs=[x], params={"x": x, "w": w})
    assert (x.grad.item(), w.grad) == (3.0, None)
    assert [recording.graph.nodes[index].names for index in recording.never_ran] == [("w",)]

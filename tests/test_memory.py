"""`saved_memory`: bytes counted by hand, and a program that runs as it would without it."""

import gc
import re
import subprocess
import sys
import weakref
from html.parser import HTMLParser

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from inside_autograd.memory import saved_memory
from inside_autograd.memory_table import SavedTensor, html_table, text_table


@pytest.fixture
def x():
    return torch.ones(4, requires_grad=True)


@pytest.fixture
def w():
    return torch.full((4,), 2.0, requires_grad=True)


def rows(m):
    return [(t.op, t.node, t.attr, t.shape, t.nbytes, t.counted, t.new) for t in m.tensors]


# --- what operations save ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "operation", [lambda x: x + 2, lambda x: -x, lambda x: x.sum(), lambda x: x.view(2, 2)]
)
def test_operations_that_save_nothing(x, operation):
    with saved_memory() as m:
        y = operation(x)
    assert y.requires_grad
    assert (len(m), m.nbytes, m.new_nbytes, m.tensors) == (0, 0, 0, ())
    assert str(m) == (
        "Saved for backward: nothing. "
        "The operations recorded in this block need no tensor for their backward."
    )


@pytest.mark.parametrize(("number", "dtype"), [(2, "int64"), (2.0, "float64")])
def test_a_number_is_saved_as_a_tensor_of_8_bytes(x, number, dtype):
    with saved_memory() as m:
        y = x * number
    assert rows(m) == [(1, "MulBackward0", "other", (), 8, 8, True)]
    assert m.tensors[0].dtype == dtype
    del y


def test_a_product_saves_both_factors_which_were_there_before(x, w):
    with saved_memory({"x": x}) as m:
        y = x * w
    # 4 numbers of 4 bytes each
    assert rows(m) == [
        (1, "MulBackward0", "other", (4,), 16, 16, False),
        (1, "MulBackward0", "self", (4,), 16, 16, False),
    ]
    assert [t.memory for t in m.tensors] == ["a leaf", "x"]
    assert (m.nbytes, m.new_nbytes) == (32, 0)
    del y


def test_a_square_counts_its_factor_once(x):
    with saved_memory() as m:
        y = x * x
    assert [(t.nbytes, t.counted, t.memory) for t in m.tensors] == [
        (16, 16, "a leaf"),
        (16, 0, "same as other of op 1"),
    ]
    assert (len(m), m.nbytes) == (2, 16)
    del y


@pytest.mark.parametrize("operation", ["exp", "relu", "sigmoid", "tanh"])
def test_functions_that_save_their_result(x, operation):
    with saved_memory() as m:
        y = getattr(x, operation)()
    assert [(t.attr, t.nbytes, t.new) for t in m.tensors] == [("result", 16, True)]
    assert (m.nbytes, m.new_nbytes) == (16, 16)
    del y


def test_a_linear_layer_saves_its_input_and_its_weight_only_if_needed():
    layer = nn.Linear(4, 8)
    batch = torch.ones(16, 4)
    with saved_memory(layer) as m:
        y = layer(batch)
    assert [(t.attr, t.shape, t.counted, t.memory) for t in m.tensors] == [
        ("mat1", (16, 4), 256, "there before")
    ]
    batch.requires_grad_()
    with saved_memory({"batch": batch, "layer": layer}) as m:
        y = layer(batch)
    # 16*4 inputs and 4*8 weights of 4 bytes; the transposed weight lies in the weight's memory
    assert [(t.attr, t.shape, t.counted, t.memory) for t in m.tensors] == [
        ("mat1", (16, 4), 256, "batch"),
        ("mat2", (4, 8), 128, "layer.weight"),
    ]
    assert (m.nbytes, m.new_nbytes) == (384, 0)
    del y


def test_a_small_network_in_the_order_it_ran():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    batch = torch.ones(16, 4)
    with saved_memory(net) as m:
        loss = net(batch).sum()
    assert str(m) == (
        "Saved for backward: 4 tensors in 832 bytes, 512 bytes of it new.\n"
        "\n"
        "op  node            saved   shape    dtype    bytes  memory\n"
        " 2  AddmmBackward0  mat1    (16, 4)  float32    256  there before\n"
        " 3  ReluBackward0   result  (16, 8)  float32    512  new\n"
        " 5  AddmmBackward0  mat1    (16, 8)  float32    512  same as result of op 3\n"
        " 5  AddmmBackward0  mat2    (8, 2)   float32     64  2.weight"
    )
    del loss


def test_a_view_keeps_all_of_its_memory(w):
    big = torch.ones(1000)
    with saved_memory() as m:
        y = big[:4] * w
    (row,) = [t for t in m.tensors if not t.leaf]
    assert (row.nbytes, row.counted, row.memory) == (16, 4000, "there before, part of 4,000 bytes")
    del y


def test_a_sparse_tensor_counts_its_indices_and_values(w):
    sparse = torch.eye(4).to_sparse()
    with saved_memory() as m:
        y = sparse @ w.view(4, 1)
    (row,) = [t for t in m.tensors if t.names or t.shape == (4, 4)]
    assert (row.nbytes, row.counted) == (4 * 4 + 2 * 4 * 8, 80)  # 4 floats, and 2 by 4 indices of 8 bytes
    del y


class Keeps(torch.autograd.Function):
    """Saves its input, and keeps a mask as a plain attribute."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.mask = x > 0
        return x * ctx.mask

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.mask


def test_a_custom_function_with_an_attribute(x):
    with saved_memory({"x": x}) as m:
        y = Keeps.apply(x)
    assert rows(m) == [
        (1, "KeepsBackward", "saved_tensors[0]", (4,), 16, 16, False),
        (1, "KeepsBackward", "ctx.mask", (4,), 4, 4, True),  # one byte for each bool
    ]
    del y


def test_names_reach_views_and_shared_parameters():
    net = nn.ModuleDict({"a": nn.Linear(4, 4, bias=False), "b": nn.Linear(4, 4, bias=False)})
    net["b"].weight = net["a"].weight
    batch = torch.ones(2, 4, requires_grad=True)
    with saved_memory(net) as m:
        y = net["b"](net["a"](batch))
    shared = [t for t in m.tensors if t.names]
    assert {t.memory for t in shared} == {"a.weight, b.weight"}
    assert sum(t.counted for t in shared) == 64
    del y


# --- what is alive at the end of the block ----------------------------------------------------


def test_nothing_is_recorded_under_no_grad(x):
    with torch.no_grad(), saved_memory() as m:
        y = x.exp()
    assert m.nbytes == 0 and not y.requires_grad
    assert str(m) == (
        "Saved for backward: nothing. No operation was recorded in this block: under no_grad, "
        "or no input requires grad."
    )


def test_a_graph_that_died_is_not_counted(x):
    with saved_memory() as m:
        x.exp().sum()
    assert m.nbytes == 0
    assert "keep the result, as in y = f(x)" in str(m)


def test_a_graph_that_only_garbage_holds_is_not_counted(x):
    with saved_memory() as m:
        loop = [x.exp()]
        loop.append(loop)
        del loop
    assert len(m) == 0


def test_an_output_on_ctx_is_garbage_once_nobody_holds_it(x):
    class OutputOnCtx(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x.exp()
            return ctx.result

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.result

    with saved_memory() as m:
        y = OutputOnCtx.apply(x)
    assert [(t.node, t.attr, t.nbytes) for t in m.tensors] == [("OutputOnCtxBackward", "ctx.result", 16)]
    del y
    with saved_memory() as m:
        OutputOnCtx.apply(x)
    assert len(m) == 0


def test_a_leak_is_found(x):
    # A hook that packs the output itself: the node holds its output, which holds the node, in C++,
    # where no collector sees it.
    with saved_memory() as m:
        with saved_tensors_hooks(lambda t: t, lambda t: t):
            x.exp()
    assert [(t.node, t.attr, t.state) for t in m.tensors] == [("ExpBackward0", "result", "packed")]


def test_what_backward_freed_is_not_counted(x):
    with saved_memory() as m:
        y = x.exp()
        y.sum().backward()
    assert (len(m), m.nbytes, m.freed) == (0, 0, 1)
    assert str(m) == "Saved for backward: nothing. Backward has freed what was saved."


def test_graphs_made_before_the_block_are_not_counted(x):
    h = x.exp()
    with saved_memory() as m:
        y = h.sin()
    assert [(t.node, t.attr, t.new) for t in m.tensors] == [("SinBackward0", "self", False)]
    del y


def test_a_result_written_into_an_older_tensor_is_found(x):
    out, h = torch.zeros(4), x + 1
    c = torch.ones(4)
    with saved_memory() as m:
        out.add_(x.exp())
        h.mul_(c)
    assert [(t.node, t.attr, t.new) for t in m.tensors] == [
        ("ExpBackward0", "result", True),
        ("MulBackward0", "other", False),
    ]


def test_a_graph_held_by_grad_alone_is_found(x):
    # 3 x^2: the gradient's own graph, made by backward with create_graph=True
    # Torch gives this warning once in a process, and another test may have had it.
    torch.set_warn_always(True)
    try:
        with saved_memory() as m, pytest.warns(UserWarning, match="create_graph=True"):
            (x**3).sum().backward(create_graph=True)
    finally:
        torch.set_warn_always(False)
    assert "PowBackward0" in {t.node for t in m.tensors}
    x.grad = None


def test_a_changed_tensor_is_marked(x):
    with saved_memory() as m:
        y = x.exp()
        y.add_(1)
    (row,) = m.tensors
    assert (row.state, row.memory, row.nbytes) == ("changed", "new; changed in place since", 16)


# --- packed tensors ---------------------------------------------------------------------------


def test_tensors_packed_by_hooks_are_told_apart_and_not_unpacked(x, w):
    calls = []

    def unpack(packed):
        calls.append("unpack")
        return packed

    with saved_memory() as m:
        h = x.exp()
        with saved_tensors_hooks(lambda t: (calls.append("pack"), t)[1], unpack):
            y = h * w
    assert calls == ["pack", "pack"]
    assert (len(m), m.packed, m.nbytes) == (3, 2, 16)
    assert [t.memory for t in m.tensors] == ["new"] + ["packed by a hook, not read"] * 2
    assert str(m).startswith(
        "Saved for backward: 1 tensor in 16 bytes, all new; 2 tensors packed by a hook, not counted.\n"
    )
    y.sum().backward()
    assert calls.count("unpack") == 2


def test_a_checkpoint_is_not_run_again(x):
    runs = []

    def block(x):
        runs.append(1)
        return x.exp().sin()

    with saved_memory() as m:
        y = checkpoint(block, x, use_reentrant=False)
    assert runs == [1]
    assert (m.packed, m.nbytes) == (2, 0)
    assert str(m).startswith("Saved for backward: 2 tensors packed by a hook, not counted.\n")
    y.sum().backward()
    assert runs == [1, 1]


# --- the program is not disturbed -------------------------------------------------------------


def training_step(net, batch):
    out = net(batch)
    loss = (out.log_softmax(1) * out).sum()
    return loss, torch.autograd.grad(loss, list(net.parameters()))


def test_results_and_gradients_are_bit_identical():
    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    batch = torch.randn(5, 4)
    plain = training_step(net, batch)
    with saved_memory(net):
        loss = (net(batch).log_softmax(1) * net(batch)).sum()
        measured = training_step(net, batch)
    assert torch.equal(plain[0], measured[0]) and torch.equal(loss, plain[0])
    assert all(torch.equal(a, b) for a, b in zip(plain[1], measured[1], strict=True))


def test_the_version_check_still_works(x):
    with saved_memory():
        y = x.exp()
    assert y.grad_fn._raw_saved_result.unpack_hook is None
    assert y._version == 0
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_modes_and_random_numbers_are_left_alone(x):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    def run():
        return x.exp() * x.unbind()[0]

    seen = []
    with Log():
        y = run()
    plain, seen = seen, []
    state = torch.get_rng_state()
    with Log(), saved_memory() as m:
        y = run()
    assert plain and seen == plain
    assert torch.equal(torch.get_rng_state(), state)
    assert [t.node for t in m.tensors] == ["ExpBackward0", "MulBackward0", "MulBackward0"]
    del y


def test_subclasses_do_not_notice():
    seen = []

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    loud = torch.ones(3).as_subclass(Loud).requires_grad_()
    seen.clear()
    with saved_memory() as m:
        y = torch.exp(loud)
    assert seen == [torch.exp]
    assert m.nbytes == 12
    del y


def test_nothing_is_kept_alive():
    x = torch.ones(4, requires_grad=True)
    gc.disable()  # what goes must go at once: nothing that was measured stands in a cycle
    try:
        with saved_memory({"x": x}) as m:
            h = Keeps.apply(x)
            y = h.exp()
        gone = [weakref.ref(thing) for thing in (x, h, h.grad_fn, y)]
        del x, h, y
        assert [reference() for reference in gone] == [None] * 4
    finally:
        gc.enable()
    assert m.nbytes == 16 + 4 + 16  # x, its mask, the result of exp


def test_blocks_inside_each_other(x):
    with saved_memory() as outer:
        a = x.exp()
        with saved_memory() as inner:
            b = a.sin()
        c = b * 2
    assert [t.node for t in inner.tensors] == ["SinBackward0"]
    assert [t.node for t in outer.tensors] == ["ExpBackward0", "SinBackward0", "MulBackward0"]
    assert (inner.nbytes, inner.new_nbytes) == (16, 0)
    assert (outer.nbytes, outer.new_nbytes) == (24, 24)
    del c


def test_one_object_can_measure_twice_but_not_inside_itself(x):
    m = saved_memory()
    with m:
        y = x.exp()
        with pytest.raises(RuntimeError, match="make another one for the inner block"):
            m.__enter__()
    assert len(m) == 1
    with m:
        pass
    assert len(m) == 0
    del y


# --- mistakes ---------------------------------------------------------------------------------


def test_reading_too_early_says_so(x):
    with saved_memory() as m:
        with pytest.raises(RuntimeError, match="when the block ends: read it after the with statement"):
            m.nbytes  # noqa: B018
        assert "after the with statement" in repr(m)


def test_an_error_in_the_block_comes_through(x):
    with pytest.raises(ValueError, match="mine"):
        with saved_memory() as m:
            x.exp()
            raise ValueError("mine")
    with pytest.raises(RuntimeError, match="ended with an error, so nothing was measured"):
        len(m)
    assert m._repr_html_() is None


def test_params_of_another_form_are_refused():
    with pytest.raises(TypeError, match="params"):
        saved_memory(3)


# --- long graphs ------------------------------------------------------------------------------

LONG = """
import gc, sys, threading, torch
from inside_autograd.memory import saved_memory

def measure(length, keep):
    x = torch.ones(2, requires_grad=True)
    held, y = [], x
    with saved_memory() as m:
        for _ in range(length):
            y = y.sin()
            if keep:
                held.append(y)
    print(len(m), m.nbytes, m.complete, str(m).split(".")[0], flush=True)
    del y
    held.clear()
    gc.collect()

def work():
    for keep in (False, True):
        measure(1_400, keep)
        measure(100_000, keep)

threading.stack_size(512 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def test_a_long_chain_is_cut_and_freed_without_a_crash():
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    whole = "1400 11200 True Saved for backward: 1,400 tensors in 11,200 bytes, 11,192 bytes of it new"
    cut = "1500 12000 False Saved for backward: at least 1,500 tensors in 12,000 bytes, all new"
    assert done.stdout.splitlines() == [whole, cut, whole, cut]


# --- the table --------------------------------------------------------------------------------


class Cells(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("th", "td", "caption"):
            self.found.append([tag, dict(attrs).get("scope"), ""])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td", "caption"):
            self.found[-1][2] += data


def test_the_html_table_says_the_same_with_header_cells(x):
    with saved_memory({"<x> & co": x}) as m:
        y = x.sin()
    assert Cells(m._repr_html_()).found == [
        ["caption", None, "Saved for backward: 1 tensor in 16 bytes, none of it new."],
        *(["th", "col", name] for name in ("op", "node", "saved", "shape", "dtype", "bytes", "memory")),
        ["td", None, "1"],
        ["th", "row", "SinBackward0"],
        *(["td", None, text] for text in ("self", "(4,)", "float32", "16", "<x> & co")),
    ]
    assert "color" not in m._repr_html_()  # the page's own colors, in light and dark
    del y


def test_an_empty_result_has_no_table(x):
    with saved_memory() as m:
        pass
    assert m._repr_html_() is None


def test_a_long_table_shows_100_rows_and_counts_the_rest():
    many = tuple(
        SavedTensor(i, "MulBackward0", "self", "alive", (1,), "float32", 4, 4) for i in range(1, 1235)
    )
    lines = text_table(many).split("\n")
    assert len(lines) == 1 + 100 + 1
    assert lines[-1] == "and 1,134 more: .tensors has all of them"
    cells = Cells(html_table(many, "many")).found
    assert sum(cell[1] == "row" for cell in cells) == 100
    assert cells[-1] == ["td", None, "and 1,134 more: .tensors has all of them"]


def test_tensors_that_could_not_be_read_have_no_numbers():
    assert SavedTensor(1, "XBackward", "self", "unread").memory == "could not be read"
    line = text_table((SavedTensor(1, "XBackward", "self", "packed"),)).split("\n")[1]
    assert re.fullmatch(r" 1  XBackward  self +packed by a hook, not read", line)


def test_the_same_program_gives_the_same_text():
    def run():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Embedding(5, 4), nn.LSTM(4, 3))
        with saved_memory(net) as m:
            y = F.softmax(net(torch.tensor([[1, 2, 3]]))[0], -1).sum()
        return str(m), m._repr_html_(), y

    first, second = run(), run()
    assert first[:2] == second[:2]
    assert "0x" not in first[0]

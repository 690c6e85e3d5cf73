"""first_nonfinite: what it finds, what it names, and that nothing is left behind."""

import dataclasses
import gc
import math
import weakref

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from inside_autograd import nonfinite_pass
from inside_autograd.nonfinite import first_nonfinite
from inside_autograd.nonfinite_report import NonfiniteReport

INF, NAN = math.inf, math.nan


class Root(nn.Module):
    def forward(self, x):
        h = x - x
        return torch.sqrt(h)


class Divide(torch.autograd.Function):
    """The absolute value, whose backward divides by it."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        sign = x / x.abs()
        return grad * sign


def leaf(*values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


# ------------------------------------------------------------------ forward


def test_nan_born_in_forward_with_module_line_and_values():
    class Log(nn.Module):
        def forward(self, x):
            h = x - 2
            return torch.log(h)

    model = nn.Sequential(nn.Sequential(nn.Identity(), Log()), nn.Flatten(0))
    x = leaf(1.0, 4.0)
    report = first_nonfinite(lambda: model(x).sum(), model)
    assert report
    assert (report.phase, report.kind, report.op, report.born) == ("forward", "nan", "log", True)
    assert (report.module, report.module_class) == ("0.1", "Log")
    assert (report.line.text, report.line.function) == ("return torch.log(h)", "forward")
    assert report.line.file == "test_nonfinite.py"
    assert report.source is None and report.nodes is None
    assert [held.value.numbers for held in report.inputs] == [(-1.0, 2.0)]
    assert str(report.outputs[0]) == "out: [nan, 0.69315] (float32)"
    assert str(report).splitlines()[0] == "NaN in the forward pass, born in log: its input was finite."
    assert "module    0.1 (Log)" in str(report)


def test_infinity_born_in_forward():
    x = leaf(0.0, 1000.0)
    report = first_nonfinite(lambda: x.exp().sum())
    assert (report.phase, report.kind, report.op, report.born) == ("forward", "inf", "exp", True)
    assert str(report).startswith("Infinity in the forward pass, born in exp: its input was finite.")
    assert not first_nonfinite(lambda: (x * x.exp().detach().reciprocal()).sum(), ignore_inf=True)


def test_conversion_to_half_precision_overflows():
    x = leaf(1.0, 1e6)
    report = first_nonfinite(lambda: x.half().float().sum())
    assert (report.op, report.kind, report.born) == ("_to_copy", "inf", True)


def test_the_first_of_two_is_reported():
    x = leaf(-1.0)
    report = first_nonfinite(lambda: (x.sqrt() + x.log()).sum())
    assert report.op == "sqrt"


def test_nan_in_the_data():
    model, data = nn.Linear(2, 1), torch.tensor([[1.0, NAN]])
    report = first_nonfinite(lambda: model(data).sum(), model)
    assert (report.phase, report.kind, report.op, report.born) == ("forward", "nan", "addmm", False)
    assert report.source == "it came in from outside, as mat1"
    assert "look at the data" in report.note
    named = first_nonfinite(lambda: (data * 2).sum(), {"data": data})
    assert named.source == "it came in with data"


@pytest.mark.parametrize("name", ["0.weight", "0.bias", "1.running_var"])
def test_nan_in_a_parameter_or_buffer(name):
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)).eval()
    with torch.no_grad():
        model.get_parameter(name).fill_(NAN) if "running" not in name else model.get_buffer(name).fill_(NAN)
    report = first_nonfinite(lambda: model(torch.ones(3, 2)).sum(), model)
    assert (report.born, report.source) == (False, f"it came in with {name}")
    assert "before this step" in report.note


def test_two_parameters_in_one_memory_are_not_confused():
    memory = torch.ones(4)
    memory[3] = NAN
    a, b = memory[:2].requires_grad_(), memory[2:].requires_grad_()
    assert first_nonfinite(lambda: (a * b).sum(), {"a": a, "b": b}).source == "it came in with b"
    report = first_nonfinite(lambda: (a * b.view(1, 2)).sum(), {"a": a, "b": b})
    assert report.source == "it came in from outside, as other"


def test_a_number_in_the_code():
    x = leaf(1.0, 2.0)
    report = first_nonfinite(lambda: (x * NAN).sum())
    assert (report.op, report.born) == ("mul", False)
    assert report.source == "the code itself passes nan as other"


def test_an_infinite_number_in_the_code_meets_a_zero():
    x = leaf(0.0, 2.0)
    report = first_nonfinite(lambda: (x * INF).sum())
    assert (report.op, report.kind, report.born) == ("mul", "nan", True)
    assert [str(held) for held in report.inputs] == ["input: [0, 2] (float32)", "other: inf (float32)"]
    assert "its inputs held infinity, but no NaN" in str(report)


def test_inside_functions_no_grad_and_in_place():
    x = leaf(1.0, 2.0)

    def in_place():
        h = x * 1
        with torch.no_grad():
            h[0].sub_(1.0)
            scale = 1 / h.detach()
        return (x * scale.clamp(max=9)).sum()

    report = first_nonfinite(in_place)
    assert (report.op, report.kind, report.line.text) == ("reciprocal", "inf", "scale = 1 / h.detach()")

    class Log(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x - 3
            return y.log_()

        @staticmethod
        def backward(ctx, grad):
            return grad

    report = first_nonfinite(lambda: Log.apply(x).sum())
    assert (report.op, report.born, report.line.text) == ("log_", True, "return y.log_()")
    assert report.inputs[0].value.numbers == (-2.0, -1.0)  # as they were before the change in place


def test_memory_that_nobody_has_written_is_no_finding():
    def step():
        buffer = torch.empty(2, 3).fill_(NAN)  # stands in for what may lie in new memory
        buffer.requires_grad_(False)
        return buffer

    assert first_nonfinite(lambda: step().sum()).op == "fill_"  # a number in the code
    x, holder = leaf(1.0, 2.0), torch.full((2,), NAN)

    def fill_it():
        holder.view(2)[:1].copy_(x[:1].detach())  # only looked at, or written
        holder[1] = 3.0
        return (holder * x).sum()

    assert not first_nonfinite(fill_it)


def test_memory_that_is_filled_in_pieces_is_no_finding():
    x, holder = leaf(1.0, 2.0), torch.full((3,), NAN)
    places = torch.tensor([0, 2])

    def step():
        holder.index_copy_(0, places, x.detach())  # one element stays as it was
        return (holder[places] * x).sum()

    assert not first_nonfinite(step)
    out = torch.full((2,), NAN)
    report = first_nonfinite(lambda: (torch.sub(x.detach(), 1, out=out).log() * x).sum())
    assert (report.op, report.kind) == ("log", "inf")
    report = first_nonfinite(lambda: (torch.log(x.detach() - 1.5, out=out) * x).sum())
    assert (report.op, report.born) == ("log", True)


def test_large_tensors_that_are_written_over():
    x = torch.zeros(300, 300, requires_grad=True)
    report = first_nonfinite(lambda: (x * 1).log_().sum())
    assert (report.op, report.born) == ("log_", True)
    assert [str(held) for held in report.inputs] == ["input: (300, 300) (float32)"]


def test_nan_that_is_taken_out_is_no_finding():
    data, x = torch.tensor([1.0, NAN]), leaf(1.0, 2.0)
    assert not first_nonfinite(lambda: (x * data.nan_to_num()).sum())
    assert not first_nonfinite(lambda: (x * torch.where(data.isnan(), 0.0, data)).sum())


def test_a_step_that_raises_after_the_nan():
    x = leaf(-1.0)

    def step():
        raise_if_nan = x.sqrt()
        if raise_if_nan.isnan().any():
            raise ValueError("a check of the user's")
        return raise_if_nan

    report = first_nonfinite(step)
    assert report.op == "sqrt" and report.note == "The step then raised ValueError."


# ------------------------------------------------------------------ infinities on purpose


def attention(q, mask, how="masked_fill"):
    scores = q @ q.T
    if how == "masked_fill":
        scores = scores.masked_fill(mask, -INF)
    elif how == "where":
        scores = torch.where(mask, -INF, scores)
    elif how == "index":
        scores[mask] = -INF
    elif how == "constant":
        scores = torch.where(mask, torch.tensor(-INF), scores)
    elif how == "full":
        scores = scores + torch.full((3, 3), -INF).triu(1)
    return (scores.softmax(-1) @ q).sum()


HOW = ["masked_fill", "where", "index", "constant", "full"]


@pytest.mark.parametrize("how", HOW)
def test_a_mask_of_infinities_is_no_finding(how):
    q = torch.eye(3).requires_grad_()
    report = first_nonfinite(lambda: attention(q, torch.ones(3, 3).triu(1).bool(), how))
    assert not report and report.nodes > 0


@pytest.mark.parametrize("how", HOW[:4])
def test_a_row_that_is_masked_whole_is_found(how):
    q = torch.eye(3).requires_grad_()
    report = first_nonfinite(lambda: attention(q, torch.ones(3, 3).bool(), how))
    assert (report.op, report.kind, report.born) == ("_softmax", "nan", True)
    assert "its input held infinity, but no NaN" in str(report)


def test_a_mask_from_outside_needs_ignore_inf():
    q, mask = torch.eye(3).requires_grad_(), torch.full((3, 3), -INF).triu(1)

    def step():
        return ((q @ q.T + mask).softmax(-1) @ q).sum()

    report = first_nonfinite(step, {"mask": mask})
    assert (report.op, report.kind, report.source) == ("add", "inf", "it came in with mask")
    assert not first_nonfinite(step, ignore_inf=True)


def test_an_overflow_beside_a_mask_is_found():
    q = leaf(1.0, 100.0)
    report = first_nonfinite(lambda: (q.masked_fill(q > 50, -INF).exp() + q.exp()).sum())
    assert (report.op, report.kind, report.born) == ("exp", "inf", True)
    assert report.inputs[0].value.numbers == (1.0, 100.0)


def test_a_written_infinity_that_reaches_the_loss():
    x = leaf(1.0, 2.0)
    report = first_nonfinite(lambda: x.masked_fill(x > 1, INF).sum())
    assert (report.phase, report.kind, report.op) == ("forward", "inf", None)
    assert str(report).startswith(
        "Infinity in the forward pass: an infinity that the code writes itself reaches the loss."
    )


def test_attention_of_torch_itself():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.5, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    x = torch.ones(2, 3, 4)
    report = first_nonfinite(lambda: layer(x, src_mask=mask).sum(), layer)
    assert report.kind == "inf" and not report.born
    clean = first_nonfinite(lambda: layer(x, src_mask=mask).sum(), layer, ignore_inf=True)
    assert not clean and clean.nodes > 10


# ------------------------------------------------------------------ backward


def test_born_in_a_node_of_backward():
    model = nn.Sequential(nn.Flatten(), Root())
    x = torch.ones(1, 2, requires_grad=True)
    report = first_nonfinite(lambda: model(x).sum(), model)
    assert (report.phase, report.kind, report.op, report.born) == ("backward", "inf", "SqrtBackward0", True)
    assert (report.module, report.module_class) == ("1", "Root")
    assert (report.line.text, report.line.function) == ("return torch.sqrt(h)", "forward")
    assert [str(held) for held in report.saved] == ["result: [[0, 0]] (float32)"]
    assert [held.name for held in report.outputs] == ["to SubBackward0"]
    assert report.outputs[0].value.inf == 2 and report.inputs[0].value.numbers == (1.0, 1.0)
    assert report.operations >= 3 and report.nodes >= 2
    nan = first_nonfinite(lambda: (model(x) * 0).sum(), model)
    assert (nan.op, nan.kind) == ("SqrtBackward0", "nan")  # 0 / 0


def test_nan_alone_in_backward_names_where_infinity_meets_zero():
    x = leaf(1.0, 2.0)
    report = first_nonfinite(lambda: (x * 0).sqrt().sum(), {"x": x}, ignore_inf=True)
    assert (report.op, report.kind, report.born) == ("MulBackward0", "nan", True)
    assert [held.name for held in report.outputs] == ["to x"]
    assert "the gradient that arrived held infinity, but no NaN" in str(report)


def test_where_does_not_shield():
    x = leaf(-1.0, 4.0)
    single = first_nonfinite(lambda: torch.where(x > 0, x.sqrt(), 0.0).sum())
    assert (single.phase, single.op) == ("forward", "sqrt")
    zero = leaf(0.0, 4.0)
    single = first_nonfinite(lambda: torch.where(zero > 0, zero.sqrt(), 0.0).sum())
    assert (single.phase, single.op, single.kind) == ("backward", "SqrtBackward0", "nan")
    for z in (x, zero):
        double = first_nonfinite(lambda z=z: torch.where(z > 0, torch.where(z > 0, z, 1.0).sqrt(), 0.0).sum())
        assert not double


def test_the_line_inside_a_custom_backward():
    x = leaf(0.0, 2.0)
    report = first_nonfinite(lambda: Divide.apply(x * 2).sum(), {"x": x})
    assert (report.phase, report.op, report.kind) == ("backward", "DivideBackward", "nan")
    assert (report.inner_op, report.inner_line.text) == ("div", "sign = x / x.abs()")
    assert "Divide.apply(x * 2)" in report.line.text
    assert report.saved[0].value.numbers == (0.0, 4.0)


def test_a_custom_backward_that_leaves_torch():
    class Outside(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return torch.from_numpy(grad.numpy() * NAN)

    x = leaf(1.0)
    report = first_nonfinite(lambda: Outside.apply(x.exp()).sum())
    assert (report.op, report.born, report.inner_op) == ("OutsideBackward", True, None)


def test_an_intermediate_nan_that_a_formula_masks_is_no_finding():
    x = leaf(0.0, 0.0)
    assert not first_nonfinite(lambda: x.norm())  # its formula divides by the norm, and masks
    assert first_nonfinite(lambda: torch.hypot(x[0], x[1])).op == "HypotBackward0"


def test_nan_from_a_hook():
    x = leaf(1.0, 2.0)

    def step():
        h = x * 2
        h.register_hook(lambda grad: grad * NAN)
        return h.exp().sum()

    report = first_nonfinite(step)
    assert (report.op, report.born, report.source) == ("MulBackward0", False, "no node had sent it")


def test_finite_gradients_that_overflow_together():
    x = leaf(1.0)
    report = first_nonfinite(lambda: (x * 3e38 - 3e38 + x * 3e38 - 3e38).sum(), {"x": x})
    assert (report.phase, report.kind, report.op) == ("backward", "inf", None)
    assert "finite gradients of x add up to it" in str(report)


def test_sparse_complex_and_empty():
    table = nn.Embedding(3, 2, sparse=True)
    with torch.no_grad():
        table.weight.zero_()
    report = first_nonfinite(lambda: table(torch.tensor([1, 1])).sqrt().sum(), table)
    assert report.op == "SqrtBackward0"
    assert not first_nonfinite(lambda: table(torch.tensor([1, 1])).sum(), table)
    z = torch.tensor([1 + 1j], requires_grad=True)
    assert not first_nonfinite(lambda: (z * z.conj()).real.sum())
    assert first_nonfinite(lambda: (z / 0).abs().sum()).op == "div"
    nothing = torch.ones(0, requires_grad=True)
    assert not first_nonfinite(lambda: nothing.log().sum())
    assert first_nonfinite(lambda: nothing.mean()).op == "mean"


def deep(x, start):
    h = start(x)
    for _ in range(60):
        h = h * 1
    return h.sum()


def test_a_deep_graph_is_left_to_anomaly_mode(monkeypatch):
    monkeypatch.setattr(nonfinite_pass, "MAX_PATH", 50)
    x = leaf(1.0, 2.0)
    report = first_nonfinite(lambda: deep(x, lambda x: (x * 0).sqrt()), {"x": x})
    assert (report.phase, report.kind, report.op, report.nodes) == ("backward", "nan", "MulBackward0", None)
    assert "(x * 0).sqrt()" in report.line.text
    assert str(report).splitlines()[0] == "NaN in the backward pass, born in MulBackward0."
    assert report.note.endswith("anomaly mode looked for NaN alone.")
    clean = first_nonfinite(lambda: deep(x, torch.exp), {"x": x})
    assert not clean and clean.note == report.note and clean.operations == 62
    loud = first_nonfinite(lambda: deep(x, lambda x: (x - x.detach()).sqrt()), {"x": x})
    assert (loud.kind, loud.op) == ("inf", None)  # seen in the gradient of x
    assert x.grad is None and not torch.is_anomaly_enabled()
    with pytest.raises(ValueError, match=r"too large to watch backward node by node .* name the parameters"):
        first_nonfinite(lambda: deep(x, torch.exp))


# ------------------------------------------------------------------ everything finite


def test_a_clean_report():
    w, x = leaf(2.0), torch.tensor([3.0])
    report = first_nonfinite(lambda: (w * x).sum(), {"w": w})
    assert not report and not report.found
    assert (report.operations, report.nodes) == (2, 2)
    assert str(report) == "Everything is finite: 2 operations in forward and 2 nodes in backward."


def test_without_a_backward():
    report = first_nonfinite(lambda: torch.ones(2).sum())
    assert str(report).splitlines() == [
        "Everything is finite: 2 operations in forward.",
        "Backward did not run: the loss does not require grad.",
    ]
    x = leaf(1.0)
    assert first_nonfinite(lambda: x).nodes == 0


# ------------------------------------------------------------------ a loss that is there already


def test_a_ready_loss():
    x = leaf(1.0, 2.0)
    h = x * 0
    loss = h.sqrt().sum()
    report = first_nonfinite(loss)
    assert (report.phase, report.op, report.line, report.operations) == (
        "backward",
        "SqrtBackward0",
        None,
        None,
    )
    loss.backward()  # its graph was kept
    assert x.grad.isnan().all()
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        recorded = (x * 0).sqrt().sum()
        report = first_nonfinite(recorded)
    assert report.line.text == "recorded = (x * 0).sqrt().sum()"


def test_a_ready_loss_that_is_nan_itself():
    report = first_nonfinite(leaf(-1.0).log().sum())
    assert (report.phase, report.kind, report.op) == ("forward", "nan", None)
    assert "pass a function that runs the forward pass" in str(report)


# ------------------------------------------------------------------ modules of other kinds


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints(reentrant):
    model, x = nn.Sequential(nn.Linear(2, 2), Root()), torch.ones(3, 2, requires_grad=True)
    model[0].weight.grad = before = torch.ones(2, 2)
    calls = []
    model[0].bias.register_post_accumulate_grad_hook(lambda p: calls.append(1))
    report = first_nonfinite(lambda: checkpoint(model, x, use_reentrant=reentrant).sum(), model)
    assert report.phase == "backward"
    assert report.op == ("CheckpointFunctionBackward" if reentrant else "SqrtBackward0")
    assert ("use_reentrant=False" in report.note) is reentrant
    assert report.line.text.startswith("report =" if reentrant else "return torch.sqrt(h)")
    assert model[0].weight.grad is before and before.tolist() == [[1, 1], [1, 1]]
    assert model[0].bias.grad is None and x.grad is None and not calls
    fine = first_nonfinite(lambda: checkpoint(model[0], x, use_reentrant=reentrant).sum(), model)
    assert not fine and model[0].bias.grad is None and x.grad is None
    model(x).sum().backward()
    assert calls  # the hook is back


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_scripted_modules():
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), Root()))
    x = torch.ones(3, 2)
    report = first_nonfinite(lambda: model(x).sum(), model)
    assert report.phase == "backward" and report.op == "SqrtBackward0"
    model = torch.jit.script(nn.BatchNorm1d(2))
    assert not first_nonfinite(lambda: model(x).sum(), model)
    assert model.running_mean.tolist() == [0, 0] and model.num_batches_tracked == 0


@pytest.mark.parametrize("before", [False, True])
def test_compiled_modules_run_uncompiled(before):
    compiled = torch.compile(nn.Sequential(nn.Linear(2, 2), Root()), backend="eager")
    x = torch.ones(3, 2)
    if before:
        compiled(x)
    report = first_nonfinite(lambda: compiled(x).sum(), compiled)
    assert (report.op, report.module) == ("SqrtBackward0", "_orig_mod.1")
    assert report.line.text == "return torch.sqrt(h)"
    assert compiled(x).shape == (3, 2)


def test_recurrent_and_batched():
    lstm = nn.LSTM(2, 3)
    assert not first_nonfinite(lambda: lstm(torch.ones(5, 1, 2))[0].sum(), lstm)
    x = leaf(0.0, 1.0)
    report = first_nonfinite(lambda: torch.vmap(torch.log)(x).sum())
    assert (report.op, report.kind) == ("log", "inf")


def test_a_branch_of_torch_cond():
    x = torch.ones(2)
    report = first_nonfinite(lambda: torch.cond(x.sum() > 0, lambda x: (x - 2).sqrt(), torch.exp, (x,)).sum())
    assert report.phase == "forward" and report.kind == "nan"


def test_gradients_inside_the_loss():
    x = leaf(1.0, 2.0)

    def penalty():
        (g,) = torch.autograd.grad((x**2).sum(), x, create_graph=True)
        return (g - g.detach()).square().sum().sqrt()

    assert first_nonfinite(penalty, {"x": x}).op == "SqrtBackward0"


def test_a_mapping_names_modules_too():
    parts = {"root": Root(), "x": leaf(1.0)}
    report = first_nonfinite(lambda: parts["root"](parts["x"]).sum(), parts)
    assert (report.module, report.module_class) == ("root", "Root")
    alone = first_nonfinite(lambda: parts["root"](parts["x"]).sum(), parts["root"])
    assert alone.module == "" and "the outermost (Root)" in str(alone)


# ------------------------------------------------------------------ nothing is left behind


def state(model, tensors):
    hooks = [(len(m._forward_hooks), len(m._forward_pre_hooks)) for m in model.modules()]
    return (
        hooks,
        torch.get_rng_state().tolist(),
        [b.tolist() for b in model.buffers()],
        [id(b) for b in model.buffers()],
        [None if t.grad is None else (id(t.grad), t.grad.tolist()) for t in tensors],
        torch.is_anomaly_enabled(),
        torch.is_anomaly_check_nan_enabled(),
        torch._C._len_torch_dispatch_stack(),
        torch.is_grad_enabled(),
    )


def noisy():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout(0.5))


@pytest.mark.parametrize("ends", ["finite", "forward", "backward", "raises", "wrong"])
def test_nothing_changes(ends):
    model, x = noisy(), torch.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    for tensor in (x, model[0].weight):
        tensor.grad = torch.ones_like(tensor)
    before = state(model, [x, *model.parameters()])

    def step():
        y = model(x)
        if ends == "raises":
            raise KeyError("from the step")
        end = {"forward": lambda: (y - 1000).log(), "backward": lambda: (y * 0).sqrt(), "wrong": lambda: None}
        result = end.get(ends, lambda: y)()
        return None if result is None else result.sum()

    if ends in ("raises", "wrong"):
        with pytest.raises(KeyError if ends == "raises" else TypeError):
            first_nonfinite(step, model)
    else:
        report = first_nonfinite(step, model)
        assert report.phase == (None if ends == "finite" else ends)
    assert state(model, [x, *model.parameters()]) == before


def test_a_buffer_that_is_replaced_is_put_back():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))
            self.register_buffer("none", None)

        def forward(self, x):
            self.seen = self.seen + 1
            return x

    model, x = Counting(), leaf(1.0)
    seen = model.seen
    first_nonfinite(lambda: model(x).sum(), model)
    assert model.seen is seen and seen == 0


def test_the_next_step_draws_the_same_numbers():
    model, drawn = nn.Dropout(0.5), []
    x = torch.ones(8, requires_grad=True)

    def step():
        y = model(x)
        drawn.append(y.tolist())
        return y.sum()

    first_nonfinite(step, model)
    step()
    assert drawn[0] == drawn[1]


def test_hooks_of_an_error_in_backward_are_gone():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("some error in backward")

    model, x = noisy(), torch.ones(2, 2, requires_grad=True)
    before = state(model, [x])
    with pytest.raises(RuntimeError, match="some error in backward"):
        first_nonfinite(lambda: Fails.apply(model(x)).sum(), model)
    assert state(model, [x]) == before
    # What was found before the error counts.
    report = first_nonfinite(lambda: (Fails.apply(x) * 0).sqrt().sum(), ignore_inf=True)
    assert report.op == "MulBackward0"


def test_a_surrounding_anomaly_mode_does_not_stop_it():
    x = leaf(0.0)
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly():
        report = first_nonfinite(lambda: (x * 0).sqrt().sum(), ignore_inf=True)
        assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
    assert report.op == "MulBackward0"


def test_no_tensor_and_no_node_is_kept():
    x = leaf(1.0)
    alive = []

    def step():
        h = x * 0
        alive.append(weakref.ref(h))
        return h.sqrt().sum()

    report = first_nonfinite(step, {"x": x})
    gc.collect()
    assert report and alive[0]() is None

    def plain(value):
        if dataclasses.is_dataclass(value):
            return all(plain(getattr(value, field.name)) for field in dataclasses.fields(value))
        if isinstance(value, tuple):
            return all(map(plain, value))
        return value is None or isinstance(value, str | int | float | bool)

    assert plain(report)


def test_the_same_text_each_time():
    model = nn.Sequential(nn.Linear(2, 2), Root())
    texts = {str(first_nonfinite(lambda: model(torch.ones(3, 2)).sum(), model)) for _ in range(3)}
    assert len(texts) == 1


def test_code_of_a_cell_has_no_file():
    source = "x = torch.ones(1, requires_grad=True)\nreport = first_nonfinite(lambda: (x - 2).sqrt().sum())\n"
    names = {"torch": torch, "first_nonfinite": first_nonfinite}
    exec(compile(source, "/tmp/ipykernel_1/2.py", "exec"), names)
    line = names["report"].line
    assert (line.file, line.number, line.function) == (None, 2, "<lambda>")
    assert str(line) == "line 2, in <lambda>"


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        (nn.Linear(1, 1), TypeError, r"step is the module Linear: pass a function that calls it"),
        (3, TypeError, r"step is an int: pass a function without arguments"),
        (lambda: None, TypeError, r"step returned None \(is a return missing\?\)"),
        (lambda: 1.0, TypeError, r"step returned a float: return the loss"),
        (
            lambda: torch.ones(2),
            ValueError,
            r"The loss has shape \(2,\), and backward starts from one element",
        ),
        (torch.ones(2, 1), ValueError, r"The loss has shape \(2, 1\)"),
    ],
)
def test_bad_steps(step, error, message):
    with pytest.raises(error, match=message) as caught:
        first_nonfinite(step)
    assert "\n" not in str(caught.value)


def test_bad_params():
    with pytest.raises(TypeError, match="params is or holds an int"):
        first_nonfinite(lambda: torch.ones(()), 3)


def test_a_step_that_runs_backward_itself():
    model = nn.Linear(1, 1)
    model.weight.grad = before = torch.ones(1, 1)

    def step():
        loss = model(torch.ones(1, 1)).exp().sum()
        loss.backward()
        return loss

    with pytest.raises(ValueError, match="freed by an earlier backward: let step run the forward pass alone"):
        first_nonfinite(step, model)
    assert model.weight.grad is before and before == 1 and model.bias.grad is None


def test_the_report_alone_says_nothing_wrong():
    assert not NonfiniteReport(operations=1)
    assert str(NonfiniteReport(operations=1, nodes=1)) == (
        "Everything is finite: 1 operation in forward and 1 node in backward."
    )

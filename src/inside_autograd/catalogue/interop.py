"""Optimizers, NumPy, copies and types."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="deepcopy-of-a-computed-tensor",
        title="deepcopy of a computed tensor",
        category="RuntimeError",
        pattern=(
            r"Only (?:Tensors|Variables) created explicitly by the user \(graph leaves\) "
            r"support the deepcopy protocol"
        ),
        message=(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you were attempting to deepcopy a module, this may be because of a "
            "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001"
        ),
        variants=(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment",
            "Only Variables created explicitly by the user (graph leaves) support the deepcopy protocol at "
            "the moment",
        ),
        meaning=(
            "A copy of a computed tensor would need a copy of the graph behind it, and torch makes none. "
            "Leaves have no graph behind them, so they can be copied."
        ),
        causes=(
            "A module keeps a result as an attribute, such as `self.last = h`, and the module is copied for "
            "an EMA or a best-so-far model.",
            "A list or dict with losses or outputs is copied.",
            "The module uses the old `torch.nn.utils.weight_norm`, which keeps a computed weight.",
        ),
        repair=(
            "Copy `t.detach().clone()`. On a module store `h.detach()`, or keep results out of its "
            "attributes."
        ),
        chapter="51_function_in_a_module",
        section="A tensor with a history on the layer",
        broken_code="""\
import copy

import torch


class Model(torch.nn.Linear):
    def forward(self, x):
        self.last = super().forward(x)
        return self.last


model = Model(2, 1)
y = model(torch.ones(1, 2))
best = copy.deepcopy(model)
""",
        fixed_code="""\
import copy

import torch


class Model(torch.nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        self.last = y.detach()  # the numbers, not their history
        return y


model = Model(2, 1)
y = model(torch.ones(1, 2))
best = copy.deepcopy(model)
assert torch.equal(best.last, y)
""",
        draws="y",
    ),
    Entry(
        id="a-computed-tensor-sent-to-another-process",
        title="A computed tensor sent to another process",
        category="RuntimeError",
        pattern=r"Cowardly refusing to serialize non-leaf tensor which requires_grad",
        message=(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
            "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
            "the tensor before serializing (e.g., putting it on the queue)."
        ),
        meaning=(
            "A tensor goes to another process through shared memory, but its graph cannot go along: the "
            "other process could not run its backward pass. Torch refuses, so that no gradient is lost "
            "unnoticed."
        ),
        causes=(
            "A dataset computes its items with a model, and a data loader with workers sends them.",
            "Results with a graph are put into a `torch.multiprocessing` queue or returned from a pool.",
        ),
        repair=(
            "Send `t.detach()`, or compute the values under `no_grad()`. Work that needs gradients belongs "
            "into the main process."
        ),
        chapter="51_function_in_a_module",
        section="Copies and files",
        broken_code="""\
import torch
from torch.multiprocessing.reductions import reduce_tensor

x = torch.ones(2, requires_grad=True)
reduce_tensor(3 * x)  # what a queue or a data loader's worker calls
""",
        fixed_code="""\
import torch
from torch.multiprocessing.reductions import reduce_tensor

x = torch.ones(2, requires_grad=True)
rebuild, arguments = reduce_tensor((3 * x).detach())
received = rebuild(*arguments)  # what the other process does
assert received.tolist() == [3.0, 3.0] and not received.requires_grad
""",
    ),
    Entry(
        id="the-learning-rate-was-stepped-before-the-optimizer",
        title="The learning rate was stepped before the optimizer",
        category="UserWarning",
        pattern=r"Detected call of `?lr_scheduler\.step\(\)`? before `?optimizer\.step\(\)`?",
        message=(
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
            "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
            "Failure to do this will result in PyTorch skipping the first value of the learning rate "
            "schedule. See more details at "
            "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
        ),
        meaning=(
            "The schedule moved on before the first update was made, so the first learning rate of the "
            "schedule is never used. Torch warns at the first such call."
        ),
        causes=(
            "`scheduler.step()` stands before `optimizer.step()` in the loop, as was right before torch 1.1.",
            "With gradient accumulation the scheduler is called in each micro-batch, the optimizer in every "
            "n-th.",
            "`GradScaler` skipped the first update, because a gradient was infinite.",
        ),
        repair=(
            "Call `optimizer.step()` first, then `scheduler.step()`, once for each update. A single skipped "
            "update of `GradScaler` does no harm."
        ),
        chapter="22_accumulation",
        section="Clip, step and schedule once",
        broken_code="""\
import torch

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
(2 * w).backward()
scheduler.step()
optimizer.step()
""",
        fixed_code="""\
import torch

w = torch.tensor(1.0, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
(2 * w).backward()
optimizer.step()  # with the first learning rate, 0.5
scheduler.step()
assert w == 0
""",
    ),
    Entry(
        id="lbfgs-without-a-closure",
        title="LBFGS without a closure",
        category="TypeError",
        pattern=r"(?:LBFGS\.)?step\(\) missing 1 required positional argument: 'closure'",
        message="LBFGS.step() missing 1 required positional argument: 'closure'",
        variants=("step() missing 1 required positional argument: 'closure'",),
        meaning=(
            "LBFGS computes the loss and its gradient several times within one step, at points of its own "
            "choice. So it needs a function that does this, and `step()` got none."
        ),
        causes=("`SGD` or `Adam` was replaced by `LBFGS`, and the loop stayed as it was.",),
        repair=(
            "Put `zero_grad`, the forward pass and `backward()` into a function that returns the loss, and "
            "pass it to `step`."
        ),
        chapter="22_accumulation",
        section="Clip, step and schedule once",
        broken_code="""\
import torch

w = torch.tensor(3.0, requires_grad=True)
optimizer = torch.optim.LBFGS([w])
(w - 1).square().backward()
optimizer.step()
""",
        fixed_code="""\
import torch

w = torch.tensor(3.0, requires_grad=True)
optimizer = torch.optim.LBFGS([w])


def closure():
    optimizer.zero_grad()
    loss = (w - 1).square()
    loss.backward()
    return loss


optimizer.step(closure)
assert torch.allclose(w.detach(), torch.tensor(1.0))
""",
    ),
    Entry(
        id="the-norm-of-the-gradients-is-not-finite",
        title="The norm of the gradients is not finite",
        category="RuntimeError",
        pattern=r"The total norm of order \S+ for (?:the )?gradients from `parameters` is non-finite",
        message=(
            "The total norm of order 2.0 for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        ),
        meaning=(
            "Some gradient is infinite or NaN, so their common norm is too. Dividing by it would make every "
            "gradient zero or NaN, and you asked with `error_if_nonfinite=True` to be told."
        ),
        causes=(
            "The loss overflowed: a learning rate that is too large, `exp`, or half precision.",
            "An operation gave infinity or NaN in its backward pass, such as `sqrt` at 0.",
            "With `GradScaler`, the gradients were clipped before `unscale_`.",
        ),
        repair=(
            "Find the parameter: test `p.grad.isfinite().all()` for each one. Then find the operation: "
            "`first_nonfinite` of chapter 41 names it, anomaly mode only if it is a NaN and not an infinity. "
            "Without `error_if_nonfinite` the error is gone and the NaN stays."
        ),
        chapter="22_accumulation",
        section="Clip, step and schedule once",
        broken_code="""\
import torch

w = torch.tensor([0.0, 1.0], requires_grad=True)
w.sqrt().sum().backward()  # the slope of sqrt at 0 is infinite
torch.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
""",
        fixed_code="""\
import torch

w = torch.tensor([0.0, 1.0], requires_grad=True)
(w + 0.25).sqrt().sum().backward()
norm = torch.nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True)
assert norm.isfinite() and torch.allclose(w.grad.norm(), torch.tensor(1.0))
""",
    ),
    Entry(
        id="clipping-the-gradients-of-no-parameters",
        title="Clipping the gradients of no parameters",
        category="UserWarning",
        pattern=r"`parameters` is an empty generator, no gradient clipping will occur",
        message="`parameters` is an empty generator, no gradient clipping will occur.",
        meaning=(
            "`model.parameters()` is a generator, and a generator can be read once. This one was read "
            "before, so the clipping saw nothing and did nothing."
        ),
        causes=(
            "`params = model.parameters()` was given to the optimizer and then to `clip_grad_norm_`.",
            "A loop over the same variable ran before.",
            "A filter left no parameter over.",
        ),
        repair="Write `params = list(model.parameters())`, or call `model.parameters()` anew.",
        chapter="22_accumulation",
        section="Clip, step and schedule once",
        broken_code="""\
import torch

model = torch.nn.Linear(2, 1)
params = model.parameters()
optimizer = torch.optim.SGD(params, lr=1.0)  # reads them all
model(torch.full((1, 2), 3.0)).sum().backward()
torch.nn.utils.clip_grad_norm_(params, 1.0)
""",
        fixed_code="""\
import torch

model = torch.nn.Linear(2, 1)
params = list(model.parameters())
optimizer = torch.optim.SGD(params, lr=1.0)
model(torch.full((1, 2), 3.0)).sum().backward()
norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
clipped = torch.nn.utils.get_total_norm([p.grad for p in params])
assert norm > 1 and torch.allclose(clipped, torch.tensor(1.0))
""",
    ),
    Entry(
        id="gradscaler-unscale_-twice-or-too-late",
        title="GradScaler: unscale_ twice, or too late",
        category="RuntimeError",
        pattern=(
            r"unscale_\(\) (?:has already been called on this optimizer since the last "
            r"update\(\)|is being called after step\(\))"
        ),
        message="unscale_() has already been called on this optimizer since the last update().",
        variants=("unscale_() is being called after step().",),
        meaning=(
            "`unscale_` divides the gradients by the scale, and a second division would make them wrong. It "
            "may run once for each optimizer between two calls of `update()`, and before `step`."
        ),
        causes=(
            "The update was skipped in some steps, and `scaler.update()` with it.",
            "With gradient accumulation `unscale_` is called in each micro-batch.",
            "A library clips the gradients, which unscales, and your code does too.",
        ),
        repair=(
            "Once for each update, in this order: `unscale_`, clip, `step`, `update`. Call `update()` also "
            "when you skip the step."
        ),
        chapter="22_accumulation",
        section="Clip, step and schedule once",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu")
for _ in range(2):  # two micro-batches
    scaler.scale((3 * w).sum()).backward()
    scaler.unscale_(optimizer)
scaler.step(optimizer)
scaler.update()
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu")
for _ in range(2):  # two micro-batches
    scaler.scale((3 * w).sum()).backward()
scaler.unscale_(optimizer)
assert w.grad.tolist() == [6.0, 6.0]
scaler.step(optimizer)
scaler.update()
assert w.tolist() == [-5.0, -4.0]
""",
    ),
    Entry(
        id="gradscaler-without-a-scaled-loss",
        title="GradScaler without a scaled loss",
        category="AssertionError",
        pattern=(
            r"(?:Attempted \w+ but _scale is None|No inf checks were recorded (?:for this "
            r"optimizer|prior to update))"
        ),
        message=(
            "Attempted step but _scale is None.  This may indicate your script did not use scaler.scale(loss "
            "or outputs) earlier in the iteration."
        ),
        variants=(
            "No inf checks were recorded for this optimizer.",
            "No inf checks were recorded prior to update.",
        ),
        meaning=(
            "`GradScaler` learns its scale when it scales a loss, and looks for infinities in the gradients "
            "of the optimizer's parameters. One of the two did not happen."
        ),
        causes=(
            "`loss.backward()` was called in place of `scaler.scale(loss).backward()`.",
            "No parameter of this optimizer has a gradient: all frozen, or the optimizer holds other "
            "tensors.",
            "`update()` was called without `step` or `unscale_`.",
        ),
        repair=(
            "Call `scaler.scale(loss).backward()` before `scaler.step(optimizer)`. If that is so, look for "
            "parameters with `grad` of `None`."
        ),
        chapter="41_anomaly_and_nan",
        section="Infinities on purpose",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu")
(3 * w).sum().backward()
scaler.step(optimizer)
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu")
scaler.scale((3 * w).sum()).backward()
scaler.step(optimizer)
scaler.update()
assert w.tolist() == [-2.0, -1.0]
""",
    ),
    Entry(
        id="gradscaler-and-parameters-in-half-precision",
        title="GradScaler and parameters in half precision",
        category="ValueError",
        pattern=r"Attempting to unscale FP16 gradients",
        message="Attempting to unscale FP16 gradients.",
        meaning=(
            "Gradients in `float16` would lose in the division what the scale had saved. `GradScaler` "
            "expects parameters, and so gradients, in `float32`: autocast casts for the forward pass alone."
        ),
        causes=(
            "The model was made `half()`, or loaded with `torch_dtype=torch.float16`, and is trained with "
            "`GradScaler`.",
            "The adapters of a half-precision model were made in `float16` too.",
        ),
        repair=(
            "Keep the trainable parameters in `float32` and run the forward pass under `torch.autocast`. Or "
            "use `bfloat16`, which needs no `GradScaler`."
        ),
        chapter="41_anomaly_and_nan",
        section="Infinities on purpose",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
scaler.scale((3 * w).sum()).backward()
scaler.step(optimizer)
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)  # float32
optimizer = torch.optim.SGD([w], lr=1.0)
scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
scaler.scale((3 * w.half()).sum()).backward()
scaler.unscale_(optimizer)
assert w.grad.tolist() == [3.0, 3.0]
""",
    ),
    Entry(
        id="an-optimizer-and-gradients-that-are-sparse",
        title="An optimizer and gradients that are sparse",
        category="RuntimeError",
        pattern=r"\w+ does not support (?:sparse|dense) gradients",
        message="Adam does not support sparse gradients, please consider SparseAdam instead",
        variants=(
            "SparseAdam does not support dense gradients, please consider Adam instead",
            "RMSprop does not support sparse gradients",
        ),
        meaning=(
            "An embedding with `sparse=True` gets a sparse gradient: the rows that were used and nothing "
            "else. Most optimizers keep averages for every row, so they cannot take it."
        ),
        causes=(
            "`sparse=True` in `nn.Embedding` or `F.embedding`, with `Adam`, `AdamW` or `RMSprop`.",
            "The other way round: `SparseAdam` got parameters whose gradients are dense.",
        ),
        repair=(
            "Give such embeddings an optimizer of their own: `SparseAdam`, or `SGD` without weight decay. Or "
            "leave `sparse` out."
        ),
        chapter="22_accumulation",
        section="When it goes wrong",
        broken_code="""\
import torch

table = torch.nn.Embedding(3, 2, sparse=True)
optimizer = torch.optim.Adam(table.parameters())
table(torch.tensor([1])).sum().backward()
optimizer.step()
""",
        fixed_code="""\
import torch

table = torch.nn.Embedding(3, 2, sparse=True)
before = table.weight.detach().clone()
optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
table(torch.tensor([1])).sum().backward()
optimizer.step()
changed = (table.weight != before).any(dim=1)
assert changed.tolist() == [False, True, False]
""",
    ),
    Entry(
        id="a-tensor-that-requires-grad-and-dlpack",
        title="A tensor that requires grad and DLPack",
        category="BufferError",
        pattern=r"Can't export tensors that require gradient",
        message="Can't export tensors that require gradient, use tensor.detach()",
        meaning=(
            "DLPack hands a tensor's memory to another library, such as NumPy, CuPy or JAX, which knows "
            "nothing of the graph. Torch wants you to say that the graph is left behind."
        ),
        causes=(
            "`np.from_dlpack(t)` or `jax.dlpack.from_dlpack(t)` was called with a model's output or a "
            "parameter.",
            "A library takes any array through `__dlpack__`, and got a tensor that requires grad.",
        ),
        repair=(
            "Pass `t.detach()`: it shares the memory. For a gradient through that library write a Function."
        ),
        chapter="13_leaves",
        section="`detach` shares the memory",
        broken_code="""\
import numpy as np
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
np.from_dlpack(3 * x)
""",
        fixed_code="""\
import numpy as np
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
array = np.from_dlpack((3 * x).detach())
assert array.tolist() == [3.0, 6.0]
""",
    ),
    Entry(
        id="complex-numbers-cast-to-real",
        title="Complex numbers cast to real",
        category="UserWarning",
        pattern=r"Casting complex values to real discards the imaginary part",
        message="Casting complex values to real discards the imaginary part",
        meaning=(
            "A complex tensor was cast to a real one, or written into one, and its imaginary part is gone. "
            "The gradient of the cast is real too: nothing comes back for the imaginary part."
        ),
        causes=(
            "`.float()` or `.to(torch.float32)` on a complex result, such as that of an FFT.",
            "Complex values are written into a buffer made by `torch.zeros`.",
        ),
        repair=(
            "Say which part you mean: `.real`, `.abs()`, `.angle()` or `torch.view_as_real`. Make buffers "
            "with `dtype=torch.complex64`."
        ),
        chapter="34_inputs_and_state",
        section="Devices and dtypes",
        broken_code="""\
import torch

signal = torch.tensor([1.0, 0.0, -1.0, 0.0], requires_grad=True)
spectrum = torch.fft.fft(signal)
power = spectrum.float().square().sum()
""",
        fixed_code="""\
import torch

signal = torch.tensor([1.0, 0.0, -1.0, 0.0], requires_grad=True)
spectrum = torch.fft.fft(signal)
power = spectrum.abs().square().sum()
power.backward()
assert torch.allclose(signal.grad, 2 * 4 * signal.detach())
""",
    ),
    Entry(
        id="jittrace-found-a-tensor-with-a-history",
        title="jit.trace found a tensor with a history",
        category="RuntimeError",
        pattern=r"Cannot insert a Tensor that requires grad as a constant",
        message=(
            "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
            "input, or detaching the gradient\n"
            "Tensor:\n"
            " 1\n"
            " 1\n"
            "[ torch.FloatTensor{2} ]"
        ),
        meaning=(
            "A trace records operations on the inputs, and everything else becomes a constant in the "
            "program. This tensor comes from outside, is neither input nor parameter, and requires grad, so "
            "freezing it would lose its gradient."
        ),
        causes=(
            "A module computed a tensor from its parameters in `__init__`, and `forward` uses the result.",
            "The traced function uses a tensor of the surrounding code.",
        ),
        repair=(
            "Compute it in `forward`, from parameters. If the numbers alone are wanted, `detach()` it or "
            "register it as a buffer."
        ),
        chapter="51_function_in_a_module",
        section="A tensor with a history on the layer",
        broken_code="""\
import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.zeros(2))
        self.scale = self.log_scale.exp()

    def forward(self, x):
        return x * self.scale


torch.jit.trace(Scale(), torch.ones(2))
""",
        fixed_code="""\
import warnings

import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = torch.nn.Parameter(torch.zeros(2))

    def forward(self, x):
        return x * self.log_scale.exp()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it is deprecated: torch.export takes its place
    traced = torch.jit.trace(Scale(), torch.ones(2))
assert traced(torch.ones(2)).tolist() == [1.0, 1.0]
""",
    ),
)

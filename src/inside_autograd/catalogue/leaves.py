"""Leaves and .grad."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="reading-grad-of-a-tensor-that-is-not-a-leaf",
        title="Reading `.grad` of a tensor that is not a leaf",
        category="UserWarning",
        pattern=r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed",
        message=(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
            "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
            "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
            "github.com/pytorch/pytorch/pull/30531 for more information."
        ),
        variants=(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
            "attribute won't be populated during autograd.backward(). If you indeed want the .grad field "
            "to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you "
            "access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
            "github.com/pytorch/pytorch/pull/30531 for more informations.",
        ),
        meaning=(
            "Backward fills `.grad` of leaves alone. This tensor was computed from others, so its `.grad` "
            "stays `None`. The warning changes nothing: it tells you why you read `None`."
        ),
        causes=(
            "The tensor was meant to be a leaf, but a step came after `requires_grad=True`: `* 0.01`, "
            "`.to(...)`, `.reshape(...)`, a slice.",
            "You want the gradient of a hidden tensor.",
            "A library looks at `.grad` of every tensor it meets, for example while it copies or prints "
            "them.",
        ),
        repair=(
            "For a leaf, do the step first and call `requires_grad_()` last. For a hidden tensor, call "
            "`h.retain_grad()` before backward, or use `torch.autograd.grad(loss, h)`."
        ),
        chapter="13_leaves",
        section="The gradient in the middle",
        broken_code="""\
import torch

w = torch.ones(2, requires_grad=True) * 0.5  # the leaf is the tensor before `* 0.5`
loss = (w**2).sum()
loss.backward()
step = w.grad
""",
        fixed_code="""\
import torch

w = (torch.ones(2) * 0.5).requires_grad_()
loss = (w**2).sum()
loss.backward()
step = w.grad
assert step.tolist() == [1, 1]
""",
        draws="loss",
    ),
    Entry(
        id="optimizing-a-tensor-that-is-not-a-leaf",
        title="Optimizing a tensor that is not a leaf",
        category="ValueError",
        pattern=r"can't optimize a non-leaf Tensor",
        message="can't optimize a non-leaf Tensor",
        meaning=(
            "An optimizer changes tensors and reads their `.grad`. A tensor that was computed from others "
            "gets no `.grad`, and a change of it would not reach the tensors it came from."
        ),
        causes=(
            "A step came after `requires_grad=True`: `.to(device)`, `* 0.01`, `.view(...)`, "
            "`torch.stack(...)`.",
            "An output of a layer, or a weight that a parametrization computes, was passed instead of the "
            "parameter behind it.",
        ),
        repair=(
            "Make the tensor a leaf: compute its start value, then `.detach().clone().requires_grad_()`, "
            "or wrap it in `torch.nn.Parameter`. Pass the leaf to the optimizer, and repeat the other "
            "steps in each forward pass."
        ),
        chapter="13_leaves",
        section="Only leaves can be optimized",
        broken_code="""\
import torch

w = torch.tensor([4.0, 8.0], requires_grad=True) / 4
optimizer = torch.optim.SGD([w], lr=0.5)
""",
        fixed_code="""\
import torch

w = (torch.tensor([4.0, 8.0]) / 4).requires_grad_()
optimizer = torch.optim.SGD([w], lr=0.5)
(w**2).sum().backward()
optimizer.step()
assert w.tolist() == [0, 0]
""",
        draws="w",
    ),
    Entry(
        id="whole-numbers-cannot-require-grad",
        title="Whole numbers cannot require grad",
        category="RuntimeError",
        pattern=r"(O|o)nly Tensors of floating point (and complex )?dtype can require gradients",
        message="Only Tensors of floating point and complex dtype can require gradients",
        variants=(
            "only Tensors of floating point and complex dtype can require gradients",
            "only Tensors of floating point dtype can require gradients",
        ),
        meaning=(
            "A gradient says what a small change does, and an integer or a `bool` has no small change. So "
            "only floating point and complex tensors may require grad."
        ),
        causes=(
            "A tensor was made from whole numbers: `torch.tensor([1, 2])` is int64, `torch.arange(3)` as "
            "well.",
            "The data came as integers from NumPy, an image or a tokenizer.",
            "A cast on the way made integers or `bool`s: `.long()`, a comparison.",
        ),
        repair=(
            "Write `1.0`, pass `dtype=torch.float32`, or call `.float()`. Indices and labels stay "
            "integers: they need no gradient."
        ),
        chapter="11_first_gradient",
        section="Ask torch to remember: `requires_grad`",
        broken_code="""\
import torch

x = torch.tensor([1, 2], requires_grad=True)
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
(x**2).sum().backward()
assert x.grad.tolist() == [2, 4]
""",
    ),
    Entry(
        id="switching-off-requires_grad-of-a-computed-tensor",
        title="Switching off `requires_grad` of a computed tensor",
        category="RuntimeError",
        pattern=r"you can only change requires_grad flags of leaf variables",
        message=(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed "
            "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        ),
        meaning=(
            "Whether a computed tensor requires grad follows from what it was computed from. You can't "
            "switch it off there. You can cut the tensor off, which makes a new one."
        ),
        causes=(
            "You want to use a result as a constant, and set `y.requires_grad = False`.",
            "A layer is to be frozen, but its weight is computed by a parametrization such as weight norm.",
        ),
        repair=(
            "Use `y.detach()`. To freeze a layer, call `requires_grad_(False)` on its parameters before "
            "the forward pass."
        ),
        chapter="13_leaves",
        section="When it goes wrong",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
target = w**2
target.requires_grad = False
loss = ((3 * w - target) ** 2).sum()
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
target = (w**2).detach()
loss = ((3 * w - target) ** 2).sum()
loss.backward()
assert w.grad.tolist() == [12, 12]
""",
        draws="target",
    ),
    Entry(
        id="retain_grad-of-a-tensor-that-does-not-require-grad",
        title="`retain_grad` of a tensor that does not require grad",
        category="RuntimeError",
        pattern=r"can't retain_grad on Tensor that has requires_grad=False",
        message="can't retain_grad on Tensor that has requires_grad=False",
        meaning=(
            "`retain_grad()` asks backward to keep the gradient that arrives here. None will arrive: this "
            "tensor has no part in a graph."
        ),
        causes=(
            "Nothing it was computed from requires grad.",
            "It was computed under `torch.no_grad()`, or from a detached tensor.",
            "`backward(inputs=[t])` was called with a tensor that does not require grad: it asks for the "
            "same.",
        ),
        repair=(
            "Make the input or the parameters require grad before the forward pass, or move the forward "
            "pass out of `no_grad`. A leaf needs no `retain_grad()`: its `.grad` is always kept."
        ),
        chapter="13_leaves",
        section="The gradient in the middle",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0])
h = x**2
h.retain_grad()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x**2
h.retain_grad()
(3 * h).sum().backward()
assert h.grad.tolist() == [3, 3]
""",
    ),
    Entry(
        id="a-grad-of-another-shape",
        title="A `.grad` of another shape",
        category="RuntimeError",
        pattern=r"(attempting to assign a gradient of size|assigned grad has data of a different size)",
        message=(
            "attempting to assign a gradient of size '[2, 2]' to a tensor of size '[2]'. Please ensure "
            "that the gradient and the tensor are the same size"
        ),
        variants=("assigned grad has data of a different size",),
        meaning=(
            "`.grad` holds one number for each element of its tensor, so what you assign must have the "
            "tensor's shape. It is not broadcast."
        ),
        causes=(
            "A gradient of your own is per sample, or was summed or flattened.",
            "Gradients and parameters are paired in another order than you think.",
            "`.data` was replaced by a tensor of another shape, and an old gradient is assigned again.",
        ),
        repair=(
            "Compare `g.shape` with `p.shape`. Reduce the extra dimension (`g.mean(0)` for gradients per "
            "sample), or `g.view_as(p)` if only the shape is wrong."
        ),
        chapter="13_leaves",
        section="When it goes wrong",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
per_sample = torch.tensor([[2.0, 4.0], [4.0, 8.0]])
w.grad = per_sample
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
per_sample = torch.tensor([[2.0, 4.0], [4.0, 8.0]])
w.grad = per_sample.mean(0)
assert w.grad.tolist() == [3, 6]
""",
        since="Older versions say `assigned grad has data of a different size` and name no sizes.",
    ),
    Entry(
        id="a-grad-that-is-not-a-tensor",
        title="A `.grad` that is not a tensor",
        category="TypeError",
        pattern=r"assigned grad expected to be a Tensor or None but got grad of type",
        message="assigned grad expected to be a Tensor or None but got grad of type int",
        variants=("assigned grad expected to be a Tensor or None but got grad of type list",),
        meaning=(
            "You assigned something else to `.grad`: a number, a list, an array. Only a tensor or `None` "
            "can stand there."
        ),
        causes=(
            "`p.grad = 0` was meant to clear the gradient.",
            "The gradient was computed with NumPy or as a Python number.",
        ),
        repair=(
            "Clear with `p.grad = None`. Turn your own gradient into a tensor like the parameter: "
            "`torch.as_tensor(g, dtype=p.dtype, device=p.device)`."
        ),
        chapter="22_accumulation",
        section="`None` is not zero",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w**2).sum().backward()
w.grad = 0
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w**2).sum().backward()
w.grad = None
(w**2).sum().backward()
assert w.grad.tolist() == [2, 4]
""",
    ),
    Entry(
        id="a-grad-of-another-dtype",
        title="A `.grad` of another dtype",
        category="RuntimeError",
        pattern=r"(attempting to assign a gradient with dtype|assigned grad has data of a different type)",
        message=(
            "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'. The "
            "gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the "
            "tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
            "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
            "downstream systems that assume they match."
        ),
        variants=("assigned grad has data of a different type",),
        meaning=(
            "A gradient has the dtype of its tensor, and you assigned another. Optimizers rely on this, so "
            "torch does not cast in silence."
        ),
        causes=(
            "The gradient came from NumPy, where numbers are float64 by default.",
            "Parameters are in half precision and the gradients in float32, or the other way round.",
            "In old versions the same message came when the gradient was on another device.",
        ),
        repair=(
            "Cast it: `p.grad = g.to(p.dtype)`. If you want another dtype there on purpose, set "
            "`p.grad_dtype` first."
        ),
        chapter="13_leaves",
        section="When it goes wrong",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
own = torch.tensor([2.0, 4.0], dtype=torch.float64)
w.grad = own
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
own = torch.tensor([2.0, 4.0], dtype=torch.float64)
w.grad = own.to(w.dtype)
assert w.grad.tolist() == [2, 4]
""",
        since="Older versions say `assigned grad has data of a different type` and have no `grad_dtype`.",
    ),
    Entry(
        id="a-grad-on-another-device",
        title="A `.grad` on another device",
        category="RuntimeError",
        pattern=r"(attempting to assign a gradient with device type|assigned grad has data located on)",
        message=(
            "attempting to assign a gradient with device type 'meta' to a tensor with device type 'cpu'. "
            "Please ensure that the gradient and the tensor are on the same device"
        ),
        variants=("assigned grad has data located on a different device",),
        meaning="A tensor and its `.grad` must live on the same device. The message names both.",
        causes=(
            "The gradient was computed by a copy of the model on the GPU and handed to the model on the "
            "CPU, or the other way round.",
            "The parameters were moved after the gradient was computed.",
        ),
        repair=(
            "Move the gradient: `p.grad = g.to(p.device)`. Move a model before you make the optimizer and "
            "compute gradients."
        ),
        chapter="34_inputs_and_state",
        section="Devices and dtypes",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
own = torch.zeros(2, device="meta")
w.grad = own
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
own = torch.zeros(2, device=w.device)
w.grad = own
assert w.grad.tolist() == [0, 0]
""",
    ),
    Entry(
        id="torchtensor-of-a-tensor",
        title="`torch.tensor` of a tensor",
        category="UserWarning",
        pattern=r"To copy construct from a tensor, it is recommended to use",
        message=(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
        ),
        variants=(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than "
            "tensor.new_tensor(sourceTensor).",
            "To copy construct from a tensor, it is recommended to use sourceTensor.clone().detach() or "
            "sourceTensor.clone().detach().requires_grad_(True), rather than torch.tensor(sourceTensor).",
        ),
        meaning=(
            "`torch.tensor(t)` copies the numbers of `t` into a new leaf. It has no history: backward does "
            "not get from the copy to `t`. Torch asks you to say so in the code."
        ),
        causes=(
            "The data is a tensor already, and `torch.tensor(...)` is a leftover from lists and arrays.",
            "A loss or an output was wrapped again, which cuts the graph.",
        ),
        repair=(
            "Use `t` itself, or `t.to(dtype)` to cast: both keep the graph. For a copy without history, "
            "write `t.detach().clone()`."
        ),
        chapter="13_leaves",
        section="`detach` shares the memory",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
doubled = torch.tensor(2 * w)
loss = (w * doubled).sum()
loss.backward()
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
doubled = 2 * w
loss = (w * doubled).sum()
loss.backward()
assert w.grad.tolist() == [4, 8]
""",
        draws="loss",
    ),
    Entry(
        id="a-view-cannot-be-detached-in-place",
        title="A view cannot be detached in place",
        category="RuntimeError",
        pattern=r"Can't detach views in-place",
        message=(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel "
            "(DDP) for training, and gradient_as_bucket_view is set as True, gradients are views of DDP "
            "buckets, and hence detach_() cannot be called on these gradients. To fix this error, please "
            "refer to the Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        ),
        meaning=(
            "`detach_()` cuts a tensor off from its graph in place. A view shares its memory and its "
            "history with a base, so it can't be cut off alone."
        ),
        causes=(
            "`detach_()` was called on a slice, a reshaped tensor or an entry of `unbind`.",
            "An optimizer's `zero_grad(set_to_none=False)` meets gradients that are views of a bucket, as "
            "with distributed training.",
        ),
        repair=(
            "Use `detach()`, which returns a new tensor. Or call `detach_()` on the base, before you take "
            "the view."
        ),
        chapter="13_leaves",
        section="`detach` shares the memory",
        broken_code="""\
import torch

states = torch.tensor([[1.0, 2.0]], requires_grad=True) * 2
hidden = states[0]
hidden.detach_()
""",
        fixed_code="""\
import torch

states = torch.tensor([[1.0, 2.0]], requires_grad=True) * 2
hidden = states[0].detach()
assert not hidden.requires_grad and states.requires_grad
""",
        draws="hidden",
    ),
    Entry(
        id="numpy-and-a-tensor-that-requires-grad",
        title="NumPy and a tensor that requires grad",
        category="RuntimeError",
        pattern=r"Can't call numpy\(\) on (Tensor|Variable) that requires grad",
        message="Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        variants=("Can't call numpy() on Variable that requires grad. Use var.detach().numpy() instead.",),
        meaning=(
            "NumPy knows nothing of the graph. What it computes has no gradient, and a change in the array "
            "would not be seen by autograd. So torch wants you to leave the graph in plain sight."
        ),
        causes=(
            "A result is handed to matplotlib, scikit-learn or NumPy, for a picture or a metric.",
            "A step of the forward pass was written with NumPy. There `detach()` would cut the graph.",
        ),
        repair=(
            "To look at values, use `t.detach().numpy()` (with `.cpu()` for a GPU), or compute them under "
            "`torch.no_grad()`. If the gradient must pass, write the step with torch's functions, or wrap "
            "it in a Function with a backward of your own."
        ),
        chapter="13_leaves",
        section="When it goes wrong",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w**2).sum()
history = [loss.numpy()]
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w**2).sum()
history = [loss.detach().numpy()]
assert history == [5]
""",
        since="Old versions say `Variable` and `var.detach().numpy()`.",
    ),
    Entry(
        id="a-number-from-a-tensor-that-requires-grad",
        title="A number from a tensor that requires grad",
        category="UserWarning",
        pattern=r"Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior",
        message=(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first."
        ),
        meaning=(
            "The tensor became a Python number, and a number has no history. If it goes on into the loss, "
            "no gradient flows back through it."
        ),
        causes=(
            "`float(t)`, `math.exp(t)` or `'%f' % t` was called on a tracked tensor.",
            "Several results were put together by `torch.tensor([a, b])`, which takes their numbers.",
        ),
        repair=(
            "In a forward pass, use torch's functions: `torch.exp(t)`, `torch.stack([a, b])`. For a log or "
            "a printed value, `t.item()` or `t.detach()` says that you mean it."
        ),
        chapter="13_leaves",
        section="`detach` shares the memory",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
a, b = w.sum(), w.prod()
losses = torch.tensor([a, b])  # two numbers, no graph
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
a, b = w.sum(), w.prod()
losses = torch.stack([a, b])
losses.sum().backward()
assert w.grad.tolist() == [1 + 2, 1 + 1]
""",
    ),
    Entry(
        id="one-number-from-a-tensor-of-several-elements",
        title="One number from a tensor of several elements",
        category="RuntimeError",
        pattern=r"(a Tensor with \d+ elements cannot be converted to Scalar|only one element tensors can be)",
        message="a Tensor with 2 elements cannot be converted to Scalar",
        variants=(
            "only one element tensors can be converted to Python scalars",
            "a Tensor with 0 elements cannot be converted to Scalar",
        ),
        meaning=(
            "`item()` and `float()` turn one element into a Python number. This tensor has several "
            "elements, or none."
        ),
        causes=(
            "A loss without reduction, or a loss per device, is logged with `.item()`.",
            "`torch.tensor([a, b])` was given tensors of several elements.",
            "A selection that should give one element gave none or many.",
        ),
        repair=(
            "Reduce first: `loss.mean().item()`. Use `tolist()` for all numbers, and `torch.stack` for a "
            "list of tensors."
        ),
        chapter="11_first_gradient",
        section="Why gradients are of scalars",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = w**2
logged = loss.item()
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w**2).mean()
logged = loss.item()
assert logged == 2.5
""",
        since="`float(t)` raises it as a `ValueError`, in the words of old versions.",
    ),
    Entry(
        id="integers-in-the-data-of-a-parameter",
        title="Integers in the `.data` of a parameter",
        category="RuntimeError",
        pattern=r"data set to a tensor that requires gradients must be floating point or complex dtype",
        message="data set to a tensor that requires gradients must be floating point or complex dtype",
        meaning=(
            "`p.data = ...` swaps the numbers under a tensor that requires grad. Integers can't require "
            "grad, so they can't stand there."
        ),
        causes=("Weights are quantized in place: `p.data = p.data.to(torch.int8)`.",),
        repair=(
            "Call `requires_grad_(False)` first, or register the integers as a buffer and delete the "
            "parameter."
        ),
        chapter="13_leaves",
        section="`.data` is a trap",
        broken_code="""\
import torch

w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
w.data = w.data.to(torch.int8)
""",
        fixed_code="""\
import torch

w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
w.requires_grad_(False)
w.data = w.data.to(torch.int8)
assert w.tolist() == [1, 2]
""",
    ),
    Entry(
        id="a-grad-that-is-still-none",
        title="A `.grad` that is still `None`",
        category="AttributeError",
        pattern=r"'NoneType' object has no attribute '[a-z]+_'",
        message="'NoneType' object has no attribute 'zero_'",
        variants=(
            "'NoneType' object has no attribute 'mul_'",
            "'NoneType' object has no attribute 'clamp_'",
        ),
        meaning=(
            "`.grad` holds `None`, not zeros, until a backward pass has reached the leaf. A method that ends "
            "in `_` was called on that `None`."
        ),
        causes=(
            "The gradient is cleared by hand with `zero_()` before the first backward.",
            "`optimizer.zero_grad()` has set every `.grad` to `None`, as it does unless told otherwise.",
            "The loss does not depend on this parameter, or a new tensor has taken its place under its name.",
        ),
        repair=(
            "Clear with `optimizer.zero_grad()`, or with `w.grad = None`. Where a gradient was expected, see "
            "with `draw(loss, params=model)` whether the leaf is in the graph."
        ),
        chapter="22_accumulation",
        section="`None` is not zero",
        broken_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
w.grad.zero_()
""",
        fixed_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
for _ in range(2):
    w.grad = None
    (w * w).backward()
assert w.grad == 4
""",
        since="Before 2.0 `zero_grad()` filled `.grad` with zeros by default.",
    ),
)

"""Running backward."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="backward-through-the-graph-a-second-time",
        title="Backward through the graph a second time",
        category="RuntimeError",
        pattern=r"Trying to backward through the graph a second time",
        message=(
            "Trying to backward through the graph a second time (or directly access saved tensors after "
            "they have already been freed). Saved intermediate values of the graph are freed when you call "
            ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
            "graph a second time or if you need to access saved tensors after calling backward."
        ),
        variants=(
            "Trying to backward through the graph a second time, but the saved intermediate results have "
            "already been freed. Specify retain_graph=True when calling .backward() or autograd.grad() the "
            "first time.",
        ),
        meaning=(
            "The first backward freed the tensors that the graph had saved, and this pass needs one of "
            "them. The graph itself may still be there: a graph that saved nothing can be run again."
        ),
        causes=(
            "A hidden state or a running loss from the last step is still attached to the last step's graph.",
            "A part of the forward pass stands before the loop: it ran once, and every step goes back "
            "through it.",
            "Two losses share a part of the graph and each calls `backward()`.",
            "The backward pass was run again without a new forward pass: a cell that was run twice.",
            "A Function's `saved_tensors` are read after backward has run.",
        ),
        repair=(
            "Run the whole forward pass again in each step, `detach()` what you carry from step to step, and "
            "add losses that share a graph before one `backward()`. `retain_graph=True` is right only if "
            "you mean to use the same graph twice: in a loop it changes the message, and keeps the memory."
        ),
        chapter="21_backward_and_grad",
        section='"Trying to backward through the graph a second time"',
        broken_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
loss = w * w
loss.backward()
loss.backward()
""",
        fixed_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
for _ in range(2):
    w.grad = None
    loss = w * w  # a new forward pass, a new graph
    loss.backward()
assert w.grad == 4
""",
        draws="loss",
    ),
    Entry(
        id="backward-from-a-tensor-without-a-graph",
        title="Backward from a tensor without a graph",
        category="RuntimeError",
        pattern=r"element \d+ of (tensors|variables) does not require grad and does not have a grad_fn",
        message="element 0 of tensors does not require grad and does not have a grad_fn",
        variants=(
            "element 1 of tensors does not require grad and does not have a grad_fn",
            "element 0 of variables does not require grad and does not have a grad_fn",
        ),
        meaning=(
            "Backward starts at the `grad_fn` of the tensor you give it, and this one has none. Either "
            "nothing it was computed from requires grad, or the recording stopped on the way. The number "
            "says which of the tensors you gave it is."
        ),
        causes=(
            "The way to the loss leads through an operation without a derivative: `argmax`, a comparison, "
            "a cast to integers.",
            "You left the graph yourself: `detach()`, `.data`, `.item()`, NumPy, or a new tensor made from "
            "numbers.",
            "The forward pass ran under `torch.no_grad()` or `torch.inference_mode()`.",
            "No input and no parameter requires grad: all are frozen, or `requires_grad=True` was forgotten.",
            "A checkpoint with `use_reentrant=True` got inputs that require no grad, as behind frozen "
            "layers: then its output requires none, whatever the parameters inside do.",
        ),
        repair=(
            "Print `requires_grad` of each step from the input to the loss. Where it turns `False`, the "
            "graph ends: replace that step. Don't set `loss.requires_grad = True`: the error goes away, "
            "and nothing is trained."
        ),
        chapter="11_first_gradient",
        section='"element 0 of tensors does not require grad and does not have a grad_fn"',
        broken_code="""\
import torch

scores = torch.tensor([1.0, 3.0], requires_grad=True)
target = torch.tensor(0)
loss = (scores.argmax() - target).float() ** 2  # whole numbers have no slope
loss.backward()
""",
        fixed_code="""\
import torch

scores = torch.tensor([1.0, 3.0], requires_grad=True)
target = torch.tensor(0)
loss = torch.nn.functional.cross_entropy(scores, target)
loss.backward()
assert scores.grad[0] < 0 < scores.grad[1]
""",
    ),
    Entry(
        id="backward-from-a-tensor-of-several-elements",
        title="Backward from a tensor of several elements",
        category="RuntimeError",
        pattern=r"grad can be implicitly created only for scalar outputs",
        message="grad can be implicitly created only for scalar outputs",
        meaning=(
            "A gradient belongs to one number. From a tensor of several elements backward can start with "
            "any mixture of them, and torch does not choose one for you."
        ),
        causes=(
            'The loss was never reduced: `reduction="none"`, or a formula without `sum()` or `mean()` at '
            "its end.",
            "`backward()` was called on the model's output instead of the loss.",
            "One of several outputs got `None` as its starting gradient, and it is not a single number.",
        ),
        repair=(
            "Call `backward()` on `loss.mean()` or `loss.sum()`. If you want a certain mixture, pass its "
            "weights, in the shape of the output: `y.backward(gradient=v)` or `torch.autograd.grad(y, x, "
            "grad_outputs=v)`."
        ),
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
y.backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
y.sum().backward()
assert x.grad.tolist() == [2, 4]
""",
        draws="y",
    ),
    Entry(
        id="a-complex-loss",
        title="A complex loss",
        category="RuntimeError",
        pattern=r"grad can be implicitly created only for real scalar outputs but got",
        message="grad can be implicitly created only for real scalar outputs but got torch.complex64",
        variants=("grad can be implicitly created only for real scalar outputs but got torch.complex128",),
        meaning=(
            "The loss is one number, but a complex one. There is no single slope to go down: a loss must "
            "be real."
        ),
        causes=(
            "The loss was computed from complex tensors, as after a Fourier transform, and never made real.",
            "`abs()` or `.real` was taken too early, and a later step made the value complex again.",
        ),
        repair=(
            "End in a real number: `.abs() ** 2`, `(z * z.conj()).real`, or `torch.view_as_real(z)` and a "
            "real loss. To start from a complex output on purpose, pass `gradient=` with a complex dtype."
        ),
        chapter="11_first_gradient",
        section="Why gradients are of scalars",
        broken_code="""\
import torch

z = torch.tensor(1 + 2j, requires_grad=True)
loss = z * z.conj()  # its imaginary part is 0, its dtype is complex
loss.backward()
""",
        fixed_code="""\
import torch

z = torch.tensor(1 + 2j, requires_grad=True)
loss = (z * z.conj()).real
loss.backward()
assert z.grad == 2 + 4j
""",
    ),
    Entry(
        id="a-starting-gradient-of-another-shape",
        title="A starting gradient of another shape",
        category="RuntimeError",
        pattern=r"Mismatch in shape: grad_output\[\d+\] has a shape of",
        message=(
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([1]) and output[0] has a shape of "
            "torch.Size([])."
        ),
        variants=(
            "Mismatch in shape: grad_output[0] has a shape of torch.Size([3]) and output[0] has a shape of "
            "torch.Size([2]).",
        ),
        meaning=(
            "You told backward where to start, with `gradient=` or `grad_outputs=`. It holds one weight "
            "for each element of the output, so it must have exactly the output's shape. It is not "
            "broadcast."
        ),
        causes=(
            "`torch.ones(1)` was passed for a loss without dimensions, as in code written for old versions "
            "of torch.",
            "The output lost or gained a dimension of size 1: `keepdim`, `squeeze`, `view`.",
            "The gradient has the shape of the input instead of the output.",
        ),
        repair=(
            "Leave the argument out if the output has one element. Else build it from the output: "
            "`torch.ones_like(y)`."
        ),
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w**2).sum()
loss.backward(torch.ones(1))
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
loss = (w**2).sum()
loss.backward(torch.ones_like(loss))  # or loss.backward()
assert w.grad.tolist() == [2, 4]
""",
    ),
    Entry(
        id="a-batch-of-starting-gradients-without-a-batch-dimension",
        title="A batch of starting gradients without a batch dimension",
        category="RuntimeError",
        pattern=r"If `is_grads_batched=True`, we interpret the first dimension of each grad_output",
        message=(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
            "dimension. The sizes of the remaining dimensions are expected to match the shape of "
            "corresponding output, but a mismatch was detected: grad_output[0] has a shape of "
            "torch.Size([]) and output[0] has a shape of torch.Size([2]). If you only want some tensors in "
            "`grad_output` to be considered batched, consider using vmap."
        ),
        meaning=(
            "With `is_grads_batched=True`, `grad_outputs` is a stack of starting gradients: its first "
            "dimension counts them, and the rest must be the shape of the output. Here the rest is another "
            "shape."
        ),
        causes=(
            "One gradient was passed, and not a stack of them.",
            "The stack runs along another dimension than the first.",
            "The output has more dimensions than the stack allows for.",
        ),
        repair=(
            "For an output `y` of shape `[n]`, pass a tensor of shape `[number of gradients, n]`. "
            "`torch.eye(n)` gives all rows of the Jacobian."
        ),
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
torch.autograd.grad(y, x, grad_outputs=torch.ones(2), is_grads_batched=True)
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
rows = torch.eye(2)  # two starting gradients, one in each row
(jacobian,) = torch.autograd.grad(y, x, grad_outputs=rows, is_grads_batched=True)
assert jacobian.tolist() == [[2, 0], [0, 4]]
""",
    ),
    Entry(
        id="real-and-complex-at-the-start-of-backward",
        title="Real and complex at the start of backward",
        category="RuntimeError",
        pattern=r"For complex Tensors, both grad_output and output are required to have the same dtype",
        message=(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            "Mismatch in dtype: grad_output[0] has a dtype of torch.float32 and output[0] has a dtype of "
            "torch.complex64."
        ),
        meaning=(
            "The output is complex and the starting gradient real, or the other way round. Torch casts "
            "between real dtypes here, but not between real and complex ones."
        ),
        causes=(
            "`torch.ones(...)` without a dtype was passed for a complex output.",
            "A complex starting gradient was passed for an output that is real.",
        ),
        repair="Build the gradient from the output, with `torch.ones_like(y)`, or pass `dtype=y.dtype`.",
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

z = torch.tensor([1 + 2j, 3j], requires_grad=True)
y = 2 * z
y.backward(torch.ones(2))
""",
        fixed_code="""\
import torch

z = torch.tensor([1 + 2j, 3j], requires_grad=True)
y = 2 * z
y.backward(torch.ones_like(y))
assert z.grad.tolist() == [2 + 0j, 2 + 0j]
""",
    ),
    Entry(
        id="a-starting-gradient-that-is-not-a-tensor",
        title="A starting gradient that is not a tensor",
        category="TypeError",
        pattern=r"gradients can be either Tensors or None, but got",
        message="gradients can be either Tensors or None, but got float",
        variants=("gradients can be either Tensors or None, but got float64",),
        meaning=(
            "What you passed as `gradient=`, `grad_tensors=` or `grad_outputs=` is a list of numbers or an "
            "array. Each output needs a tensor, or `None` if it has one element."
        ),
        causes=(
            "A Python list or a NumPy array was passed for one output: torch takes its entries for the "
            "gradients of several outputs.",
            "A list of numbers was passed for several outputs of one element each.",
        ),
        repair=(
            "Pass a tensor of the output's shape and dtype: `torch.tensor([...])`, or "
            "`torch.as_tensor(array, dtype=y.dtype)`."
        ),
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
y.backward([1.0, 10.0])
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x**2
y.backward(torch.tensor([1.0, 10.0]))
assert x.grad.tolist() == [2, 40]
""",
    ),
    Entry(
        id="several-outputs-and-fewer-starting-gradients",
        title="Several outputs and fewer starting gradients",
        category="RuntimeError",
        pattern=r"got \d+ tensors and \d+ gradients",
        message="got 2 tensors and 1 gradients",
        variants=("got 3 tensors and 1 gradients",),
        meaning=(
            "Backward starts at several outputs, and each needs an entry in the list of starting "
            "gradients. An entry may be `None` if the output has one element."
        ),
        causes=(
            "One tensor was passed for a list of outputs.",
            "An output was added to the list, and its gradient was not.",
        ),
        repair=(
            "Pass one entry for each output: `grad_outputs=[v, None]`. If all outputs are single numbers, "
            "leave the argument out."
        ),
        chapter="21_backward_and_grad",
        section="Where to start: the vector `v`",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y, loss = x**2, x.sum()
torch.autograd.grad([y, loss], x, grad_outputs=torch.ones(2))
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y, loss = x**2, x.sum()
(g,) = torch.autograd.grad([y, loss], x, grad_outputs=[torch.ones(2), None])
assert g.tolist() == [2 + 1, 4 + 1]
""",
    ),
    Entry(
        id="a-tensor-that-the-output-does-not-depend-on",
        title="A tensor that the output does not depend on",
        category="RuntimeError",
        pattern=r"(The differentiated Tensor at index \d+|One of the differentiated Tensors) appears to not",
        message=(
            "The differentiated Tensor at index 1 appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        ),
        variants=(
            "One of the differentiated Tensors appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior.",
        ),
        meaning=(
            "`autograd.grad` found no path from the output to this tensor. The index counts the inputs "
            "that you asked for, from 0. Torch asks whether you meant another tensor."
        ),
        causes=(
            "The output was computed from another tensor: the one before a `clone()`, `view`, `to()` or "
            "slice, and you ask for the copy.",
            "A parameter takes no part in this output: an unused layer, a head of another task, a branch "
            "not taken.",
            "The path is cut by `detach()`, by an operation without a derivative, or by a Function that "
            "returns `None`.",
            "`requires_grad_()` came after the forward pass.",
            "You differentiate twice, and the first gradient no longer depends on this tensor, as with a "
            "linear function.",
        ),
        repair=(
            "Ask for the very tensor that the output was computed from; a drawing of the output shows "
            "which one. If it may be unused, pass `allow_unused=True` and get `None`, or "
            "`materialize_grads=True` and get zeros."
        ),
        chapter="21_backward_and_grad",
        section='"appears to not have been used in the graph"',
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([3.0, 4.0], requires_grad=True)
first = w[0]  # a new tensor, made from w: the loss is not made from it
loss = (w * x).sum()
torch.autograd.grad(loss, [x, first])
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
w = torch.tensor([3.0, 4.0], requires_grad=True)
loss = (w * x).sum()
g_x, g_w = torch.autograd.grad(loss, [x, w])
assert g_w[0] == 1
""",
        draws="loss",
        since="Older versions say `One of the differentiated Tensors` and leave open which.",
    ),
    Entry(
        id="the-gradient-of-a-tensor-that-does-not-require-grad",
        title="The gradient of a tensor that does not require grad",
        category="RuntimeError",
        pattern=r"One of the differentiated Tensors does not require grad",
        message="One of the differentiated Tensors does not require grad",
        meaning=(
            "`autograd.grad` was asked for the gradient for a tensor that was never tracked. Its "
            "`requires_grad` is `False`, so no path in the graph leads to it."
        ),
        causes=(
            "An input of the model, such as an image, was never told to require grad.",
            "Frozen parameters are among those you ask for.",
            "`requires_grad_()` was called on a copy: `x.clone().requires_grad_()` leaves `x` as it was.",
        ),
        repair=(
            "Call `x.requires_grad_()` before the forward pass, or leave the tensor out: `[p for p in "
            "model.parameters() if p.requires_grad]`."
        ),
        chapter="21_backward_and_grad",
        section="Other messages",
        broken_code="""\
import torch

image = torch.tensor([1.0, 2.0])
w = torch.tensor([3.0, 4.0], requires_grad=True)
score = (w * image).sum()
torch.autograd.grad(score, image)
""",
        fixed_code="""\
import torch

image = torch.tensor([1.0, 2.0]).requires_grad_()
w = torch.tensor([3.0, 4.0], requires_grad=True)
score = (w * image).sum()
(saliency,) = torch.autograd.grad(score, image)
assert saliency.tolist() == [3, 4]
""",
        draws="score",
    ),
    Entry(
        id="no-inputs-to-differentiate",
        title="No inputs to differentiate",
        category="RuntimeError",
        pattern=r"`inputs` argument to `(backward|grad)\(\)` cannot be empty",
        message="`inputs` argument to `grad()` cannot be empty.",
        variants=("`inputs` argument to `backward()` cannot be empty.",),
        meaning=(
            "You asked for the gradients for a list of tensors, and the list is empty. Torch takes that "
            "for a mistake."
        ),
        causes=(
            "`model.parameters()` is a generator: it was used up by a loop before.",
            "The filter let nothing through: every parameter is frozen, or no name matched.",
        ),
        repair=(
            "Make a list once, `params = list(model.parameters())`, and look at its length. Leave "
            "`inputs=` out of `backward` if all leaves are meant."
        ),
        chapter="21_backward_and_grad",
        section="Other messages",
        broken_code="""\
import torch

layer = torch.nn.Linear(2, 1)
params = layer.parameters()
count = sum(p.numel() for p in params)  # the generator is at its end
loss = layer(torch.ones(2)).sum()
torch.autograd.grad(loss, params)
""",
        fixed_code="""\
import torch

layer = torch.nn.Linear(2, 1)
params = list(layer.parameters())
count = sum(p.numel() for p in params)
loss = layer(torch.ones(2)).sum()
g_weight, g_bias = torch.autograd.grad(loss, params)
assert g_weight.tolist() == [[1, 1]]
""",
    ),
    Entry(
        id="an-input-of-grad-that-is-not-a-tensor",
        title="An input of `grad` that is not a tensor",
        category="RuntimeError",
        pattern=r"all inputs have to be Tensors( or GradientEdges)?, but got",
        message="all inputs have to be Tensors or GradientEdges, but got tuple",
        variants=(
            "all inputs have to be Tensors, but got tuple",
            "all inputs have to be Tensors or GradientEdges, but got NoneType",
        ),
        meaning=(
            "`autograd.grad` and `backward(inputs=...)` take a flat list of tensors. One entry of yours is "
            "something else, and the message names its type."
        ),
        causes=(
            "`named_parameters()` was passed: it gives pairs of a name and a tensor.",
            "The list is nested, or holds a number or `None` beside the tensors.",
        ),
        repair=(
            "Pass the tensors alone: `model.parameters()`, or `dict(model.named_parameters()).values()` if "
            "you need the names as well."
        ),
        chapter="21_backward_and_grad",
        section="Other messages",
        broken_code="""\
import torch

layer = torch.nn.Linear(2, 1)
loss = layer(torch.ones(2)).sum()
torch.autograd.grad(loss, layer.named_parameters())
""",
        fixed_code="""\
import torch

layer = torch.nn.Linear(2, 1)
named = dict(layer.named_parameters())
loss = layer(torch.ones(2)).sum()
grads = dict(zip(named, torch.autograd.grad(loss, named.values()), strict=True))
assert grads["weight"].tolist() == [[1, 1]]
""",
    ),
    Entry(
        id="zeros-for-unused-inputs-and-no-unused-inputs-allowed",
        title="Zeros for unused inputs, and no unused inputs allowed",
        category="ValueError",
        pattern=r"Expected allow_unused to be True or not passed when materialize_grads=True",
        message=(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        ),
        meaning=(
            "`materialize_grads=True` asks for zeros where an input was not used. `allow_unused=False` "
            "forbids such inputs. You asked for both."
        ),
        causes=("A helper sets `allow_unused=False`, and `materialize_grads=True` was added.",),
        repair="Leave `allow_unused` out: `materialize_grads=True` sets it.",
        chapter="33_multi_output",
        section="`None` from `autograd.grad`",
        broken_code="""\
import torch

x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
torch.autograd.grad(x * x, [x, w], allow_unused=False, materialize_grads=True)
""",
        fixed_code="""\
import torch

x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
g_x, g_w = torch.autograd.grad(x * x, [x, w], materialize_grads=True)
assert (g_x, g_w) == (4, 0)
""",
    ),
    Entry(
        id="backward-with-create_graphtrue",
        title="`backward` with `create_graph=True`",
        category="UserWarning",
        pattern=r"Using backward\(\) with create_graph=True will create a reference cycle",
        message=(
            "Using backward() with create_graph=True will create a reference cycle between the parameter "
            "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
            "creating the graph to avoid this. If you have to use this function, make sure to reset the "
            ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
        ),
        meaning=(
            "With `create_graph=True`, the `.grad` that backward fills has a graph of its own. That graph "
            "holds the parameter, and the parameter holds its `.grad`: a cycle, which keeps both in memory."
        ),
        causes=(
            "A gradient penalty or another second derivative is computed with `backward` instead of "
            "`autograd.grad`.",
            "`create_graph=True` was set to silence an error about a second backward, and no second "
            "derivative is wanted.",
        ),
        repair=(
            "Use `torch.autograd.grad(loss, params, create_graph=True)`: it returns the gradients and "
            "stores nothing. If you need `backward`, set each `.grad` to `None` afterwards."
        ),
        chapter="21_backward_and_grad",
        section="Gradients of gradients: `create_graph`",
        broken_code="""\
import torch

x = torch.tensor(2.0, requires_grad=True)
loss = x**3
loss.backward(create_graph=True)
slope = x.grad
x.grad = None  # breaks the cycle
""",
        fixed_code="""\
import torch

x = torch.tensor(2.0, requires_grad=True)
loss = x**3
(slope,) = torch.autograd.grad(loss, x, create_graph=True)
(curvature,) = torch.autograd.grad(slope, x)
assert (slope, curvature) == (12, 12)
""",
        draws="slope",
    ),
    Entry(
        id="an-operation-without-a-derivative-formula",
        title="An operation without a derivative formula",
        category="NotImplementedError",
        pattern=r"the derivative for '[^']*' is not implemented",
        message="the derivative for 'geqrf' is not implemented.",
        variants=(
            "the derivative for 'igamma: input' is not implemented.",
            "the derivative for '_cudnn_rnn_backward' is not implemented. Double backwards is not "
            "supported for CuDNN RNNs due to limitations in the CuDNN API",
        ),
        meaning=(
            "The forward pass knows this operation, but torch has no backward formula for it, or none for "
            "this argument of it. The graph holds a node that can only raise."
        ),
        causes=(
            "The operation, or its derivative for one argument, was never written: `geqrf`, `zeta`, the "
            "first argument of `igamma`.",
            "A second derivative is wanted of an operation that has only a first one.",
        ),
        repair=(
            "Use another operation with the same result, `detach()` the argument if its gradient is not "
            "wanted, or write the backward yourself in a Function."
        ),
        chapter="31_custom_function",
        section="When you need one",
        broken_code="""\
import torch

a = torch.tensor([[2.0, 0.0], [0.0, 3.0]], requires_grad=True)
packed, _ = torch.geqrf(a)  # a QR decomposition in LAPACK's own format
volume = packed.diagonal().prod().abs()
volume.backward()
""",
        fixed_code="""\
import torch

a = torch.tensor([[2.0, 0.0], [0.0, 3.0]], requires_grad=True)
_, r = torch.linalg.qr(a)
volume = r.diagonal().prod().abs()
volume.backward()
assert torch.allclose(a.grad, torch.tensor([[3.0, 0.0], [0.0, 2.0]]))
""",
        draws="volume",
        since="Old versions raised it as a `RuntimeError`.",
    ),
)

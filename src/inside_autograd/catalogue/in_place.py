"""In-place changes and views."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-leaf-changed-in-place",
        title="A leaf changed in place",
        category="RuntimeError",
        pattern=r"a leaf Variable that requires grad (is being|has been) used in an in-place operation",
        message="a leaf Variable that requires grad is being used in an in-place operation.",
        variants=("a leaf Variable that requires grad has been used in an in-place operation.",),
        meaning=(
            "A leaf is where gradients end up. If the change were recorded, the tensor would be a result "
            "and no leaf any more, and its `.grad` would stay empty. So torch refuses."
        ),
        causes=(
            "An update by hand, such as `w -= lr * w.grad`, outside `torch.no_grad()`.",
            "Values are set after `requires_grad=True`: `w.fill_(0)`, `w.copy_(...)`, `relu(w, "
            "inplace=True)`.",
            "The first layer of a network works in place on an input that requires grad.",
            "A custom Function marked such a tensor dirty: then the message says `has been used`, and the "
            "values are changed already.",
        ),
        repair=(
            "Updates and starting values belong under `torch.no_grad()`. In a forward pass, make a new "
            "tensor: `w = w - ...`, or change `w.clone()`."
        ),
        chapter="23_in_place",
        section="A leaf may not be changed, an update may",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w**2).sum().backward()
w -= 0.5 * w.grad
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
(w**2).sum().backward()
with torch.no_grad():
    w -= 0.5 * w.grad
assert w.tolist() == [0, 0] and w.is_leaf
""",
    ),
    Entry(
        id="a-part-of-a-leaf-changed-in-place",
        title="A part of a leaf changed in place",
        category="RuntimeError",
        pattern=r"a view of a leaf Variable that requires grad is being used in an in-place operation",
        message="a view of a leaf Variable that requires grad is being used in an in-place operation.",
        meaning=(
            "A slice, a reshaped tensor or an index on the left of `=` is a view: it shares the leaf's "
            "memory. The change would change the leaf itself, and a leaf that requires grad may not be "
            "changed."
        ),
        causes=(
            "An entry or a row is set: `w[0] = 1.0`, `embedding.weight[0] = 0`.",
            "A parameter is given its starting values through a view: `layer.weight[:, :3].fill_(0)`.",
            "A mask or a noise is written into an input that requires grad.",
        ),
        repair=(
            "For starting values, put the line under `torch.no_grad()`. In a forward pass, change a copy, "
            "`x = x.clone()`, or use `torch.where` or `torch.cat`."
        ),
        chapter="23_in_place",
        section="A leaf may not be changed, an update may",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
w[0] = 0.0
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
with torch.no_grad():
    w[0] = 0.0
(w**2).sum().backward()
assert w.grad.tolist() == [0, 4, 8]
""",
    ),
    Entry(
        id="a-saved-tensor-was-changed-in-place",
        title="A saved tensor was changed in place",
        category="RuntimeError",
        pattern=(
            r"one of the variables needed for gradient computation has been modified by an inplace "
            r"operation"
        ),
        message=(
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [torch.FloatTensor [3]], which is output 0 of Exp, is at version 1; expected "
            "version 0 instead. Hint: enable anomaly detection to find the operation that failed to "
            "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        ),
        variants=(
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [torch.FloatTensor [3, 1]], which is output 0 of AsStrided, is at version 2; "
            "expected version 1 instead. Hint: enable anomaly detection to find the operation that failed "
            "to compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
            "one of the variables needed for gradient computation has been modified by an inplace operation",
        ),
        meaning=(
            "A node saved this tensor for its formula, and the numbers have been changed since. A gradient "
            "from the new numbers would be wrong. The message tells the tensor's type, shape and maker, "
            "and how often it was changed more than expected."
        ),
        causes=(
            "A step such as `+=`, `x[i] = ...` or `relu(x, inplace=True)` changed a tensor that an "
            "operation before had saved.",
            "`optimizer.step()` came between a forward pass and its backward: parameters are changed in "
            "place.",
            "A hidden state or a buffer is overwritten in a loop, while earlier steps still need it.",
            "The change came through a view or through `detach()`, which share the memory.",
        ),
        repair=(
            "Find the change: look for a tensor of that shape, or turn on anomaly mode, which shows the "
            "forward line of the node that failed. Then write `x = x + 1` instead of `x += 1`, change a "
            "`clone()`, or run backward before the step."
        ),
        chapter="23_in_place",
        section="Read the message",
        broken_code="""\
import torch

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
y = x.exp()  # saves its result
y += 1
loss = y.sum()
loss.backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
y = x.exp()
y = y + 1  # a new tensor: what exp saved stays as it was
loss = y.sum()
loss.backward()
assert torch.equal(x.grad, x.detach().exp())
""",
        draws="loss",
        since=(
            "Older versions name nodes in full, such as `ExpBackward0`, or say nothing after the first part."
        ),
    ),
    Entry(
        id="one-of-several-views-changed-in-place",
        title="One of several views changed in place",
        category="RuntimeError",
        pattern=(
            r"Output \d+ of (?!BackwardHook)\S+ is a view and is being modified inplace\. This view is "
            r"(the|an) output"
        ),
        message=(
            "Output 0 of Unbind is a view and is being modified inplace. This view is the output of a "
            "function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one."
        ),
        variants=(
            "Output 0 of UnbindBackward0 is a view and is being modified inplace. This view is the output "
            "of a function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one.",
            "Output 0 of SplitBackward0 is a view and is being modified inplace. This view is the output "
            "of a function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one.",
        ),
        meaning=(
            "`unbind`, `split` and `chunk` return several views of one tensor from a single node. A change "
            "of one would have to rewrite the history of all, and torch does not do that."
        ),
        causes=(
            "A loop over a tensor, `for row in x:`, calls `unbind`, and its body changes `row` in place.",
            "The parts of `split` or `chunk` are changed: gates of an LSTM, channels of an image.",
            "A custom Function returned several views.",
        ),
        repair=(
            "Make new tensors, `row = row * 2`, and put them together with `torch.stack` or `torch.cat`. "
            "Or take each part by an index, `x[i]`: such a view may be changed."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = x * 1
for row in y:  # unbind: one node, two views
    row *= 2
""",
        fixed_code="""\
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
y = x * 1
for i in range(2):
    y[i] *= 2
y.sum().backward()
assert x.grad.tolist() == [[2, 2], [2, 2]]
""",
        draws="row",
        since="Older versions name the node in full, `UnbindBackward0`.",
    ),
    Entry(
        id="the-base-of-several-views-changed-in-place",
        title="The base of several views changed in place",
        category="RuntimeError",
        pattern=(
            r"Output \d+ of \S+ is a view and its base or another view of its base has been modified "
            r"inplace\. This view is (the|an) output"
        ),
        message=(
            "Output 0 of Unbind is a view and its base or another view of its base has been modified "
            "inplace. This view is the output of a function that returns multiple views. Such functions do "
            "not allow the output views to be modified inplace. You should replace the inplace operation "
            "by an out-of-place one."
        ),
        variants=(
            "Output 0 of ViewBackward0 is a view and its base or another view of its base has been "
            "modified inplace. This view is the output of a function that returns multiple views. Such "
            "functions do not allow the output views to be modified inplace. You should replace the "
            "inplace operation by an out-of-place one.",
        ),
        meaning=(
            "You use a part that `unbind`, `split` or `chunk` returned, after the tensor it is a part of "
            "was changed in place. Its history would have to be rewritten, which torch does not do for "
            "several views of one node."
        ),
        causes=(
            "The whole tensor, or a slice of it, was changed between the split and the use of a part.",
            "A module that works in place ran on the tensor after it was split.",
        ),
        repair=(
            "Change the tensor before you split it, or out of place: `y = y + 1`. To keep the old values, "
            "split a `clone()`."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 1
first, second = y.unbind()
y += 1
loss = first * second
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = x * 1
y += 1
first, second = y.unbind()
loss = first * second
loss.backward()
assert x.grad.tolist() == [3, 2]
""",
        draws="y",
    ),
    Entry(
        id="a-view-from-no_grad-changed-outside-of-it",
        title="A view from `no_grad` changed outside of it",
        category="RuntimeError",
        pattern=(
            r"A view was created in no_grad mode and is being modified inplace with grad mode enabled\. "
            r"Given that"
        ),
        message=(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. "
            "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
            "code by moving both the view and the inplace either both inside the no_grad block (if you "
            "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        ),
        meaning=(
            "The view was made where nothing is recorded, and the change comes where everything is. Should "
            "the base's history change or not? Torch can't know, and refuses."
        ),
        causes=(
            "A slice of a parameter is taken under `torch.no_grad()` and changed outside of it.",
            "The block of `no_grad` ends too early: a line is not indented.",
            "A function under `@torch.no_grad()` returns a view, and the caller changes it.",
        ),
        repair=(
            "If the change is not to be recorded, put it into the block as well. If it is, take the view "
            "outside. If you want a tensor of its own, `clone()` the view."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
with torch.no_grad():
    row = w[0]
row.zero_()
""",
        fixed_code="""\
import torch

w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
with torch.no_grad():
    row = w[0]
    row.zero_()
(w**2).sum().backward()
assert w.grad.tolist() == [[0, 0], [6, 8]]
""",
    ),
    Entry(
        id="the-base-of-a-view-from-no_grad-changed",
        title="The base of a view from `no_grad` changed",
        category="RuntimeError",
        pattern=(
            r"A view was created in no_grad mode and its base or another view of its base has been "
            r"modified inplace with grad mode enabled\. (Given that|This view is)"
        ),
        message=(
            "A view was created in no_grad mode and its base or another view of its base has been modified "
            "inplace with grad mode enabled. Given that this use case is ambiguous and error-prone, it is "
            "forbidden. You can clarify your code by moving both the view and the inplace either both "
            "inside the no_grad block (if you don't want the inplace to be tracked) or both outside (if "
            "you want the inplace to be tracked)."
        ),
        variants=(
            "A view was created in no_grad mode and its base or another view of its base has been modified "
            "inplace with grad mode enabled. This view is the output of a function that returns multiple "
            "views. Such functions do not allow the output views to be modified inplace. You should "
            "replace the inplace operation by an out-of-place one.",
        ),
        meaning=(
            "A view was made under `torch.no_grad()`, and its base was changed outside, where the change "
            "is recorded. Now you use the view: whether it has a history is unclear, so torch refuses."
        ),
        causes=(
            "A slice of a buffer is kept from a `no_grad` block, and the buffer is written to in the "
            "forward pass.",
            "The rows of a buffer that requires no grad were taken by a loop or `unbind`, and the buffer "
            "was changed by a tracked value.",
        ),
        repair=(
            "Take the view again, after the change and outside of `no_grad`. If you want the old values, "
            "`clone()` the view before the change."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

cache = torch.zeros(4)
with torch.no_grad():
    head = cache[:2]
w = torch.tensor([1.0, 2.0], requires_grad=True)
cache[2:] = w
loss = (head + w).sum()
""",
        fixed_code="""\
import torch

cache = torch.zeros(4)
w = torch.tensor([1.0, 2.0], requires_grad=True)
cache[2:] = w
head = cache[:2]
loss = (head + w).sum()
loss.backward()
assert w.grad.tolist() == [1, 1]
""",
    ),
    Entry(
        id="tracked-values-written-into-the-rows-of-a-buffer",
        title="Tracked values written into the rows of a buffer",
        category="RuntimeError",
        pattern=(
            r"A view was created in no_grad mode and is being modified inplace with grad mode enabled\. "
            r"This view is"
        ),
        message=(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This "
            "view is the output of a function that returns multiple views. Such functions do not allow the "
            "output views to be modified inplace. You should replace the inplace operation by an "
            "out-of-place one."
        ),
        meaning=(
            "The rows came from `unbind`, `split` or a loop over a tensor that requires no grad: views "
            "without history, several from one call. Writing a tracked value into one would give the "
            "buffer a history, and that is not allowed through such views. No `no_grad` block need be near."
        ),
        causes=(
            "`for row in out: row.copy_(...)` fills an output tensor that was made with `torch.zeros`.",
            "The views were made by `unbind`, `split` or `chunk` inside `torch.no_grad()`.",
        ),
        repair=(
            "Write with an index, `out[i] = ...`, which is recorded. Better: collect the rows in a list "
            "and `torch.stack` them."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
out = torch.zeros(3, 2)
for row in out:
    row.copy_(2 * w)
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
out = torch.stack([2 * w for _ in range(3)])
out.sum().backward()
assert w.grad.tolist() == [6, 6]
""",
    ),
    Entry(
        id="a-view-from-inference-mode-changed-outside-of-it",
        title="A view from inference mode changed outside of it",
        category="RuntimeError",
        pattern=(
            r"A view was created in inference mode and (is being|its base or another view of its base has "
            r"been) modified inplace in normal mode"
        ),
        message=(
            "A view was created in inference mode and is being modified inplace in normal mode. Given that "
            "this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
            "moving both the view and the inplace either both inside the inference_mode block (if you "
            "don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
        ),
        variants=(
            "A view was created in inference mode and its base or another view of its base has been "
            "modified inplace in normal mode. Given that this use case is ambiguous and error-prone, it is "
            "forbidden. You can clarify your code by moving both the view and the inplace either both "
            "inside the inference_mode block (if you don't want the inplace to be tracked) or both outside "
            "(if you want the inplace to be tracked).",
        ),
        meaning=(
            "The view was made under `torch.inference_mode()`, where nothing is recorded, and it or its "
            "base was changed in normal mode, where everything is. Should its history change or not? Torch "
            "can't know, and refuses."
        ),
        causes=(
            "A slice of a tensor is taken under `inference_mode` and changed after the block.",
            "The tensor is changed after the block, and a slice of it from the block is used.",
        ),
        repair=(
            "Do both inside the block or both outside. `clone()` the view outside if you want a tensor of "
            "its own, or use `torch.no_grad()`."
        ),
        chapter="13_leaves",
        section="Four ways to record nothing",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
h = w * 2
with torch.inference_mode():
    head = h[:1]
head += 1
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
h = w * 2
head = h[:1]
head += 1
h.sum().backward()
assert h.tolist() == [3, 4] and w.grad.tolist() == [2, 2]
""",
        draws="h",
    ),
    Entry(
        id="an-inference-tensor-in-a-tracked-computation",
        title="An inference tensor in a tracked computation",
        category="RuntimeError",
        pattern=r"Inference tensors cannot be saved for backward",
        message=(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make a clone "
            "to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
            "`torch.inference_mode()`."
        ),
        variants=(
            "Inference tensors cannot be saved for backward. To work around you can make a clone to get a "
            "normal tensor and use it in autograd.",
        ),
        meaning=(
            "A tensor made under `torch.inference_mode()` has no version counter. A node that saves it "
            "could never tell whether it was changed, so nothing may save it."
        ),
        causes=(
            "Features, a cache or a teacher's output were computed under `inference_mode` and used in "
            "training.",
            "A model was built or loaded under `inference_mode`, and so are its buffers.",
            "A framework runs evaluation in inference mode and keeps a tensor from there.",
        ),
        repair=(
            "Compute it under `torch.no_grad()` instead. If you can't change that code, `clone()` the "
            "tensor outside of inference mode: the clone is a normal tensor."
        ),
        chapter="13_leaves",
        section="Four ways to record nothing",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.inference_mode():
    features = torch.tensor([3.0, 4.0]) * 2
loss = (w * features).sum()
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
with torch.no_grad():
    features = torch.tensor([3.0, 4.0]) * 2
loss = (w * features).sum()
loss.backward()
assert w.grad.tolist() == [6, 8]
""",
        since="Older versions leave out the middle sentence, about computations tracked by autograd.",
    ),
    Entry(
        id="an-inference-tensor-changed-outside-of-inference-mode",
        title="An inference tensor changed outside of inference mode",
        category="RuntimeError",
        pattern=r"Inplace update to inference tensor outside InferenceMode is not allowed",
        message=(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
            "to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        ),
        meaning=(
            "A tensor made under `torch.inference_mode()` may be changed in place only there. Outside, a "
            "change must be counted for autograd, and this tensor has no counter."
        ),
        causes=(
            "A buffer, a cache or a running average was made under `inference_mode` and is updated in "
            "training.",
            "A model was built under `inference_mode`, and an optimizer or `load_state_dict` writes into it.",
        ),
        repair=(
            "Make the tensor outside, or under `torch.no_grad()`. Else `clone()` it once outside of "
            "inference mode, and change the clone."
        ),
        chapter="13_leaves",
        section="Four ways to record nothing",
        broken_code="""\
import torch

with torch.inference_mode():
    average = torch.zeros(2)
average.add_(1)
""",
        fixed_code="""\
import torch

with torch.inference_mode():
    average = torch.zeros(2)
average = average.clone()  # a normal tensor from here on
average.add_(1)
assert average.tolist() == [1, 1] and not average.is_inference()
""",
    ),
    Entry(
        id="the-version-of-an-inference-tensor",
        title="The version of an inference tensor",
        category="RuntimeError",
        pattern=r"Inference tensors do not track version counter",
        message="Inference tensors do not track version counter.",
        meaning=(
            "`t._version` counts in-place changes. Tensors made under `torch.inference_mode()` save the "
            "cost of counting, so there is nothing to read."
        ),
        causes=("A cache or a debugging tool compares versions, and gets a tensor from inference mode.",),
        repair="Ask `t.is_inference()` first, or make the tensor under `torch.no_grad()`.",
        chapter="23_in_place",
        section="A counter on the memory",
        broken_code="""\
import torch

with torch.inference_mode():
    t = torch.zeros(2)
version = t._version
""",
        fixed_code="""\
import torch

with torch.no_grad():
    t = torch.zeros(2)
    t += 1
version = t._version
assert version == 1
""",
    ),
    Entry(
        id="requires_grad-for-an-inference-tensor",
        title="`requires_grad` for an inference tensor",
        category="RuntimeError",
        pattern=r"Setting requires_grad=True on inference tensor outside InferenceMode is not allowed",
        message="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
        meaning=(
            "A tensor made under `torch.inference_mode()` is kept out of autograd for good. It can't "
            "become a leaf of a graph later."
        ),
        causes=(
            "An input or a parameter was made, loaded or moved under `inference_mode`.",
            "`nn.Parameter(t)` was built from such a tensor.",
        ),
        repair=(
            "`clone()` it outside of inference mode, and let the clone require grad. Or make the tensor "
            "under `torch.no_grad()`."
        ),
        chapter="13_leaves",
        section="Four ways to record nothing",
        broken_code="""\
import torch

with torch.inference_mode():
    x = torch.tensor([1.0, 2.0]) * 2
x.requires_grad_()
""",
        fixed_code="""\
import torch

with torch.inference_mode():
    x = torch.tensor([1.0, 2.0]) * 2
x = x.clone().requires_grad_()
(x**2).sum().backward()
assert x.grad.tolist() == [4, 8]
""",
    ),
    Entry(
        id="writing-into-an-expanded-tensor",
        title="Writing into an expanded tensor",
        category="RuntimeError",
        pattern=(
            r"unsupported operation: more than one element of the written-to tensor refers to a single "
            r"memory location"
        ),
        message=(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        ),
        meaning=(
            "An expanded tensor shows the same memory several times: a row that looks like three is stored "
            "once. Writing to each of them would write to one place three times."
        ),
        causes=(
            "The tensor comes from `expand`, `expand_as` or `broadcast_to`.",
            "A gradient is changed in place, in a hook or after `autograd.grad`: the gradient of `sum()` "
            "is an expanded tensor.",
        ),
        repair=(
            "Write out of place, `x = x + 1`, or `clone()` (or `contiguous()`) first. `repeat` gives "
            "memory of its own at once."
        ),
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
(g,) = torch.autograd.grad(x.sum(), x)
g.mul_(0.5)  # one number in memory, shown twice
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
(g,) = torch.autograd.grad(x.sum(), x)
g = g * 0.5
assert g.tolist() == [0.5, 0.5]
""",
    ),
    Entry(
        id="indexed-writing-into-an-expanded-tensor",
        title="Indexed writing into an expanded tensor",
        category="UserWarning",
        pattern=r"Use of \w+ on expanded tensors is deprecated",
        message=(
            "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
            "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar"
        ),
        variants=(
            "Use of masked_fill_ on expanded tensors is deprecated. Please clone() the tensor before "
            "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar",
        ),
        meaning=(
            "An expanded tensor shows the same memory several times. Writing by a mask or by indices "
            "changes all that share the memory: also places that you did not choose."
        ),
        causes=(
            "`x[mask] = value` or `masked_fill_` on a tensor from `expand` or `expand_as`.",
            "A mask or a position table is expanded over the batch, and then written to.",
        ),
        repair="`clone()` the expanded tensor first, or use `torch.where(mask, value, x)`.",
        chapter="23_in_place",
        section="Views that may not be changed",
        broken_code="""\
import torch

x = torch.zeros(3).expand(2, 3)
mask = torch.tensor([[True, False, False], [False, False, False]])
x[mask] = 1.0  # row 1 changes, too
""",
        fixed_code="""\
import torch

x = torch.zeros(3).expand(2, 3).clone()
mask = torch.tensor([[True, False, False], [False, False, False]])
x[mask] = 1.0
assert x.tolist() == [[1, 0, 0], [0, 0, 0]]
""",
    ),
    Entry(
        id="reading-and-writing-the-same-memory",
        title="Reading and writing the same memory",
        category="RuntimeError",
        pattern=(
            r"unsupported operation: some elements of the input tensor and the written-to tensor refer to "
            r"a single memory location"
        ),
        message=(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
            "single memory location. Please clone() the tensor before performing the operation."
        ),
        meaning=(
            "The tensor that is written and one that is read share a part of their memory, shifted. What "
            "is read would depend on the order of writing."
        ),
        causes=(
            "A shift in place: `x[1:] = x[:-1]`, for example in a buffer of the last steps.",
            "`out=` names a slice of an input.",
        ),
        repair=(
            "`clone()` what is read: `x[1:] = x[:-1].clone()`. Or make a new tensor, with `torch.roll` or "
            "`torch.cat`."
        ),
        chapter="23_in_place",
        section="A counter on the memory",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0, 4.0])
x[1:] = x[:-1]
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0, 4.0])
x[1:] = x[:-1].clone()
assert x.tolist() == [1, 1, 2]
""",
    ),
    Entry(
        id="resizing-a-tensor-that-requires-grad",
        title="Resizing a tensor that requires grad",
        category="RuntimeError",
        pattern=r"cannot resize variables that require grad",
        message="cannot resize variables that require grad",
        meaning=(
            "`resize_` changes shape and memory in place, and has no derivative. On a tensor that requires "
            "grad it is not allowed, even under `torch.no_grad()`."
        ),
        causes=(
            "`resize_` or `resize_as_` is used to reshape, as in NumPy.",
            "A parameter is to get more entries, such as an embedding with new words.",
        ),
        repair=(
            "To reshape, use `reshape` or `view`. For a longer parameter, make a new one, copy the old "
            "values under `torch.no_grad()`, and give the new one to the optimizer."
        ),
        chapter="23_in_place",
        section="When it goes wrong",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
y = x.resize_(2, 2)
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
y = x.reshape(2, 2)
y[0].sum().backward()
assert x.grad.tolist() == [1, 1, 0, 0]
""",
    ),
    Entry(
        id="out-and-tensors-that-require-grad",
        title="`out=` and tensors that require grad",
        category="RuntimeError",
        pattern=r"\w+\(\): functions with out=\.\.\. arguments don't support automatic differentiation",
        message=(
            "mul(): functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        ),
        variants=(
            "exp(): functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad.",
        ),
        meaning=(
            "`out=` writes a result into a tensor that exists already, and records nothing. Torch refuses "
            "where that would lose a gradient."
        ),
        causes=(
            "`out=` was used to save memory in a forward pass.",
            "The tensor behind `out=` requires grad itself, such as a parameter.",
        ),
        repair=(
            "Leave `out=` away and take the returned tensor. For an update without a gradient, put the "
            "line under `torch.no_grad()`."
        ),
        chapter="23_in_place",
        section="A counter on the memory",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.empty(2)
torch.mul(x, 2, out=y)
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
y = torch.mul(x, 2)
y.sum().backward()
assert x.grad.tolist() == [2, 2]
""",
    ),
)

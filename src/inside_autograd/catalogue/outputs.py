"""What a Function returns."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-functions-output-is-a-view-and-was-changed-in-place",
        title="A Function's output is a view and was changed in place",
        category="RuntimeError",
        pattern=(
            r"(Output \d+ of (?!BackwardHook)\S+ is a view|A view was created in no_grad mode) and is "
            r"being modified inplace( with grad mode enabled)?\. This view was created inside a custom "
            r"Function"
        ),
        message=(
            "Output 0 of Reverse is a view and is being modified inplace. This view was created inside a "
            "custom Function (or because an input was returned as-is) and the autograd logic to handle "
            "view+inplace would override the custom backward associated with the custom Function, leading "
            "to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of "
            "the custom Function."
        ),
        variants=(
            "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This "
            "view was created inside a custom Function (or because an input was returned as-is) and the "
            "autograd logic to handle view+inplace would override the custom backward associated with the "
            "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this "
            "by cloning the output of the custom Function.",
        ),
        meaning=(
            "`forward` returned its input, or a view of it, so the output shares the input's memory. A "
            "change of it would give it a new history, and your `backward` would be lost. So torch refuses."
        ),
        causes=(
            "`forward` ends in `return x`, as in a gradient reversal or a hook, and a layer with "
            "`inplace=True` follows.",
            "`forward` returns `x.view(...)`, a slice or a transpose, and the caller changes the result in "
            "place.",
            "`forward` changed its input in place and did not call `ctx.mark_dirty`.",
        ),
        repair=(
            "Return a copy from `forward`, `x.clone()`, or work out of place after it. If `forward` is "
            "meant to change its input, call `ctx.mark_dirty(x)`."
        ),
        chapter="33_multi_output",
        section="Outputs that are views",
        broken_code="""\
import torch


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return -g


x = torch.tensor([1.0, -2.0], requires_grad=True)
y = Reverse.apply(x * 1)
torch.relu_(y)
""",
        fixed_code="""\
import torch


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return -g


x = torch.tensor([1.0, -2.0], requires_grad=True)
y = Reverse.apply(x * 1)
torch.relu_(y)
y.sum().backward()
assert x.grad.tolist() == [-1, 0]
""",
        draws="y",
    ),
    Entry(
        id="the-base-of-a-functions-output-was-changed",
        title="The base of a Function's output was changed",
        category="RuntimeError",
        pattern=(
            r"(Output \d+ of (?!BackwardHook)\S+ is a view|A view was created in no_grad mode) and its "
            r"base or another view of its base has been modified inplace( with grad mode enabled)?\. This "
            r"view was created inside a custom Function"
        ),
        message=(
            "Output 0 of Flat is a view and its base or another view of its base has been modified "
            "inplace. This view was created inside a custom Function (or because an input was returned "
            "as-is) and the autograd logic to handle view+inplace would override the custom backward "
            "associated with the custom Function, leading to incorrect gradients. This behavior is "
            "forbidden. You can fix this by cloning the output of the custom Function."
        ),
        variants=(
            "A view was created in no_grad mode and its base or another view of its base has been modified "
            "inplace with grad mode enabled. This view was created inside a custom Function (or because an "
            "input was returned as-is) and the autograd logic to handle view+inplace would override the "
            "custom backward associated with the custom Function, leading to incorrect gradients. This "
            "behavior is forbidden. You can fix this by cloning the output of the custom Function.",
        ),
        meaning=(
            "The output of your Function shares memory with its input, and the input was changed in place "
            "after the call. Now the output's history would have to be rewritten, past your `backward`."
        ),
        causes=(
            "`forward` returns its input or a view of it, and the caller goes on to change that input, for "
            "example by `h += ...`.",
        ),
        repair=(
            "Return a copy, such as `x.reshape(-1).clone()`, or change the input before the call, or out "
            "of place."
        ),
        chapter="33_multi_output",
        section="Outputs that are views",
        broken_code="""\
import torch


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx, g):
        return g.view(ctx.shape)


x = torch.tensor([[1.0, 2.0]], requires_grad=True)
h = x * 1
y = Flat.apply(h)
h += 1
loss = y.sum()
""",
        fixed_code="""\
import torch


class Flat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.view(-1).clone()

    @staticmethod
    def backward(ctx, g):
        return g.view(ctx.shape)


x = torch.tensor([[1.0, 2.0]], requires_grad=True)
h = x * 1
y = Flat.apply(h)
h += 1
loss = y.sum()
loss.backward()
assert x.grad.tolist() == [[1, 1]]
""",
        draws="h",
    ),
    Entry(
        id="saving-an-input-that-is-returned-unchanged",
        title="Saving an input that is returned unchanged",
        category="RuntimeError",
        pattern=r"An input that has been returned as-is as output is being saved for backward",
        message=(
            "An input that has been returned as-is as output is being saved for backward. This is not "
            "supported if you override setup_context. You should return and save a view of the input "
            "instead, e.g. with x.view_as(x) or setup ctx inside the forward function itself."
        ),
        meaning=(
            "With `setup_context`, the input and the output are one object here. Torch makes a new output "
            "from it, and can't tell which of the two you want to save."
        ),
        causes=("`forward` ends in `return x`, and `setup_context` saves `inputs[0]` or `output`.",),
        repair=(
            "Return `x.view_as(x)` from `forward`. Or save inside a `forward` that takes `ctx`, without "
            "`setup_context`."
        ),
        chapter="33_multi_output",
        section="Returning an input unchanged",
        broken_code="""\
import torch


class Capped(torch.autograd.Function):  # no slope above the value
    @staticmethod
    def forward(x):
        return x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.minimum(g, x)


x = torch.tensor([0.5, 4.0], requires_grad=True)
y = Capped.apply(x)
""",
        fixed_code="""\
import torch


class Capped(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.minimum(g, x)


x = torch.tensor([0.5, 4.0], requires_grad=True)
y = Capped.apply(x)
y.sum().backward()
assert x.grad.tolist() == [0.5, 1]
""",
    ),
    Entry(
        id="a-dirty-input-that-is-not-returned",
        title="A dirty input that is not returned",
        category="RuntimeError",
        pattern=r"Some elements marked as dirty during the forward method were not returned as output",
        message=(
            "Some elements marked as dirty during the forward method were not returned as output. The "
            "inputs that are modified inplace must all be outputs of the Function."
        ),
        meaning=(
            "`ctx.mark_dirty(x)` says that `forward` changed `x` in place. From then on `x` is a result of "
            "your Function, so the very object must be among the outputs."
        ),
        causes=(
            "`forward` returns a new tensor, a view or a copy instead of the changed input.",
            "`forward` changes an input for its side effect and returns nothing, or something else.",
        ),
        repair="`return x`. If the caller needs another result, too, return both: `return x, y`.",
        chapter="34_inputs_and_state",
        section="In place: `mark_dirty`",
        broken_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], requires_grad=True)
y = Double_.apply(x * 1)
""",
        fixed_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], requires_grad=True)
h = x * 1
y = Double_.apply(h)
y.sum().backward()
assert y is h and x.grad.tolist() == [2, 2]
""",
    ),
    Entry(
        id="mark_dirty-on-a-tensor-that-is-no-input",
        title="`mark_dirty` on a tensor that is no input",
        category="UserWarning",
        pattern=r"ctx\.mark_dirty\(\) received a tensor that was not an input",
        message=(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
            "mutated should be passed to ctx.mark_dirty()."
        ),
        meaning=(
            "Only inputs that `forward` changed in place are marked dirty. What it made itself may be "
            "changed freely, without a mark."
        ),
        causes=(
            "An output that was computed in steps, some of them in place, is marked.",
            "A copy or a view of the input is marked instead of the input.",
        ),
        repair=(
            "Leave the mark away for tensors of your own. If an input was changed, mark and return that "
            "very input."
        ),
        chapter="34_inputs_and_state",
        section="`mark_dirty` on a tensor of your own",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y.mul_(2)
        ctx.mark_dirty(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], requires_grad=True)
Double.apply(x).sum().backward()
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y.mul_(2)
        return y

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], requires_grad=True)
Double.apply(x).sum().backward()
assert x.grad.tolist() == [2, 2]
""",
        since="For a view that `forward` made, the same words come as a `RuntimeError`.",
    ),
    Entry(
        id="a-view-changed-by-a-function-with-several-outputs",
        title="A view changed by a Function with several outputs",
        category="RuntimeError",
        pattern=r"If your Function modifies inplace an input that is a view of another Tensor",
        message=(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function "
            "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
            "should either make sure the input is not a view (using .clone() for example) or make your "
            "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
            "inplace that returns a single Tensor and a second one that does the other operations). You "
            "can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
        ),
        meaning=(
            "Your Function changes its input in place, the input is a view, and there is more than one "
            "output. The history of the view's base would have to be rewritten through a node with several "
            "outputs, which torch can't do."
        ),
        causes=(
            "A Function that was written for whole tensors is called with a slice or a reshaped tensor.",
            "An in-place Function returns an extra result, such as a mask or a norm.",
        ),
        repair=(
            "Call it with `x.clone()`, or work out of place. Or split it in two: one Function that changes "
            "the input and returns it alone, and one for the rest."
        ),
        chapter="34_inputs_and_state",
        section="In place: `mark_dirty`",
        broken_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x.sum()

    @staticmethod
    def backward(ctx, g, g_sum):
        return 2 * (g + g_sum)


h = torch.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
y, total = Double_.apply(h[:2])
""",
        fixed_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x.sum()

    @staticmethod
    def backward(ctx, g, g_sum):
        return 2 * (g + g_sum)


h = torch.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
y, total = Double_.apply(h[:2].clone())
assert y.tolist() == [2, 4] and total == 6
""",
    ),
    Entry(
        id="mark_dirty-takes-tensors-alone",
        title="`mark_dirty` takes tensors alone",
        category="RuntimeError",
        pattern=r"mark_dirty can only accept variables, but argument",
        message="mark_dirty can only accept variables, but argument",
        variants=("mark_dirty can only accept variables, but argument 0 is of type tuple",),
        meaning="`ctx.mark_dirty` takes tensors, each as an argument of its own. It got something else.",
        causes=(
            "A list or tuple of tensors was passed as one argument.",
            "A number or an option was passed along.",
        ),
        repair="Write `ctx.mark_dirty(x, y)`, or spread a list: `ctx.mark_dirty(*tensors)`.",
        chapter="34_inputs_and_state",
        section="In place: `mark_dirty`",
        broken_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        for t in tensors:
            t.mul_(2)
        ctx.mark_dirty(tensors)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return tuple(2 * g for g in grads)


x = torch.tensor(1.0, requires_grad=True)
a, b = Double_.apply(x * 1, x * 2)
""",
        fixed_code="""\
import torch


class Double_(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *tensors):
        for t in tensors:
            t.mul_(2)
        ctx.mark_dirty(*tensors)
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return tuple(2 * g for g in grads)


x = torch.tensor(1.0, requires_grad=True)
a, b = Double_.apply(x * 1, x * 2)
(a + b).backward()
assert (a, b, x.grad) == (2, 4, 6)
""",
        since="In torch 2.13 the message breaks off; since 2.14 it ends with the type of what came.",
    ),
    Entry(
        id="mark_non_differentiable-takes-tensors-alone",
        title="`mark_non_differentiable` takes tensors alone",
        category="RuntimeError",
        pattern=r"mark_non_differentiable only accepts variable arguments, but got",
        message="mark_non_differentiable only accepts variable arguments, but got",
        variants=("mark_non_differentiable only accepts variable arguments, but got list",),
        meaning=(
            "`ctx.mark_non_differentiable` takes outputs, each as an argument of its own. It got something "
            "else."
        ),
        causes=(
            "A list or tuple of outputs was passed as one argument.",
            "A number was passed: what is not a tensor needs no mark.",
        ),
        repair="Write `ctx.mark_non_differentiable(index)`, or spread a list with `*`.",
        chapter="33_multi_output",
        section="Outputs that have no gradient",
        broken_code="""\
import torch


class Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        value, index = x.max(0)
        ctx.n = len(x)
        ctx.save_for_backward(index)
        ctx.mark_non_differentiable([index])
        return value, index

    @staticmethod
    def backward(ctx, g, _):
        return torch.nn.functional.one_hot(ctx.saved_tensors[0], ctx.n) * g


x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
value, index = Largest.apply(x)
""",
        fixed_code="""\
import torch


class Largest(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        value, index = x.max(0)
        ctx.n = len(x)
        ctx.save_for_backward(index)
        ctx.mark_non_differentiable(index)
        return value, index

    @staticmethod
    def backward(ctx, g, _):
        return torch.nn.functional.one_hot(ctx.saved_tensors[0], ctx.n) * g


x = torch.tensor([1.0, 3.0, 2.0], requires_grad=True)
value, index = Largest.apply(x)
value.backward()
assert x.grad.tolist() == [0, 1, 0]
""",
        since="In torch 2.13 the message breaks off; since 2.14 it ends with the type of what came.",
    ),
)

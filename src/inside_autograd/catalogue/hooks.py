"""Hooks and modules."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-hook-on-a-tensor-that-does-not-require-grad",
        title="A hook on a tensor that does not require grad",
        category="RuntimeError",
        pattern=r"cannot register a hook on a (?:tensor|variable) that doesn't require gradient",
        message="cannot register a hook on a tensor that doesn't require gradient",
        meaning=(
            "A hook waits for the gradient of this tensor, and no gradient will ever reach it: the tensor is "
            "not part of a graph. So torch refuses the hook at once."
        ),
        causes=(
            "The tensor is data or was detached, and `requires_grad=True` is missing.",
            "The forward pass ran under `no_grad()` or in inference mode, as in an evaluation loop with "
            "hooks for a saliency map.",
            "All parameters are frozen, so the output requires no grad either.",
        ),
        repair=(
            "Make the tensor, or what it is computed from, require grad before the forward pass, and run "
            "that pass with gradients on. Where some tensors need none, ask `t.requires_grad` before you "
            "register."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks that torch refuses",
        broken_code="""\
import torch

seen = []
x = torch.tensor([1.0, 2.0])
h = 3 * x
h.register_hook(seen.append)
""",
        fixed_code="""\
import torch

seen = []
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.register_hook(seen.append)
h.sum().backward()
assert seen[0].tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="a-hook-changed-the-size-of-a-gradient",
        title="A hook changed the size of a gradient",
        category="RuntimeError",
        pattern=r"hook '[^']*' has changed the size of value",
        message="hook '<lambda>' has changed the size of value",
        meaning=(
            "What a hook returns takes the place of the gradient, and a gradient has the shape of its "
            "tensor. The returned tensor has another shape, so the engine stops."
        ),
        causes=(
            "The hook returns a part of the gradient, or a reduced one such as `grad.mean()` or "
            "`grad.norm()`.",
            "The hook ends in an expression whose value Python returns, as a `lambda` does, where it was "
            "meant to look only.",
        ),
        repair=(
            "Return a tensor of the same shape, or return nothing: then the gradient stays as it was. To "
            "record something, store it in a list and return `None`."
        ),
        chapter="35_changing_gradients",
        section="A hook returns something else",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.register_hook(lambda grad: grad[:1])
h.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
mask = torch.tensor([1.0, 0.0])
h.register_hook(lambda grad: grad * mask)  # the same shape
h.sum().backward()
assert x.grad.tolist() == [3.0, 0.0]
""",
        draws="h",
    ),
    Entry(
        id="a-hook-changed-the-type-of-a-gradient",
        title="A hook changed the type of a gradient",
        category="RuntimeError",
        pattern=r"hook '[^']*' has changed the type of value",
        message=(
            "hook '<lambda>' has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)"
        ),
        meaning=(
            "What a hook returns takes the place of the gradient, and the engine wants the dtype and device "
            "that the gradient had. Here the hook returned another one."
        ),
        causes=(
            "The hook computed in `double()` or `half()` and did not cast back.",
            "The hook mixes in a NumPy value or a `float64` tensor, and type promotion did the rest.",
            "The hook moved the gradient to the CPU, or to another device.",
        ),
        repair="Cast back at the end: `return result.to(grad)` takes dtype and device of the gradient.",
        chapter="43_hooks_and_memory",
        section="What a returned value replaces",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
scale = torch.tensor([2.0, 0.5], dtype=torch.float64)
h.register_hook(lambda grad: grad * scale)
h.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
scale = torch.tensor([2.0, 0.5], dtype=torch.float64)
h.register_hook(lambda grad: (grad * scale).to(grad))
h.sum().backward()
assert x.grad.tolist() == [6.0, 1.5]
""",
        draws="h",
    ),
    Entry(
        id="a-tensors-hook-returned-something-else-than-a-tensor",
        title="A tensor's hook returned something else than a tensor",
        category="TypeError",
        pattern=r"expected Variable, but hook returned '\w+'",
        message="expected Variable, but hook returned 'tuple'",
        meaning=(
            "A hook of a tensor gets one gradient and returns one, or `None` to keep it. Here it returned "
            "another type of object."
        ),
        causes=(
            "The hook returns a tuple, as hooks of modules and of nodes do.",
            "A `lambda` returns the value of what it calls: a number, a string or `True`.",
        ),
        repair=(
            "Return the gradient alone, or nothing. Write a `def` without `return` where the hook only looks."
        ),
        chapter="35_changing_gradients",
        section="A hook returns something else",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.register_hook(lambda grad: (2 * grad,))
h.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.register_hook(lambda grad: 2 * grad)
h.sum().backward()
assert x.grad.tolist() == [6.0, 6.0]
""",
    ),
    Entry(
        id="a-post-accumulate-hook-on-a-tensor-that-is-not-a-leaf",
        title="A post-accumulate hook on a tensor that is not a leaf",
        category="RuntimeError",
        pattern=r"post accumulate grad hooks cannot be registered on non-leaf tensors",
        message="post accumulate grad hooks cannot be registered on non-leaf tensors",
        meaning=(
            "This hook runs after a gradient was added to `.grad`, and only leaves get a `.grad`. A computed "
            "tensor has no `AccumulateGrad` node that the hook could stand behind."
        ),
        causes=(
            "The parameter was moved or cast with `.to(...)` after `requires_grad`, so it is a result, not "
            "a leaf.",
            "The gradient in the middle of the graph was meant: that is the task of `register_hook`.",
        ),
        repair=(
            "Register it on the parameter itself. For a computed tensor use `register_hook`, or "
            "`retain_grad()` and look at `.grad` after backward."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks that torch refuses",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.register_post_accumulate_grad_hook(lambda p: None)
""",
        fixed_code="""\
import torch

seen = []
x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
h.sum().backward()
assert seen == [[3.0, 3.0]]
""",
        draws="h",
    ),
    Entry(
        id="a-post-accumulate-hook-returned-a-value",
        title="A post-accumulate hook returned a value",
        category="RuntimeError",
        pattern=r"Tensor post accumulate grad hooks should return None",
        message="Tensor post accumulate grad hooks should return None.",
        meaning=(
            "This hook runs when the gradient is in `.grad` already, so there is nothing left that a "
            "returned value could replace. It gets the parameter, and changes `.grad` itself."
        ),
        causes=(
            "A `lambda` returns what it calls, such as `p.grad.mul_(0.5)`.",
            "The hook was written for `register_hook`, where a returned tensor takes the gradient's place.",
        ),
        repair="Change `p.grad` in place inside a `def` that returns nothing.",
        chapter="43_hooks_and_memory",
        section="Hooks that torch refuses",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
x.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5))
(4 * x).sum().backward()
""",
        fixed_code="""\
import torch


def halve(p):
    p.grad.mul_(0.5)


x = torch.tensor([1.0, 2.0], requires_grad=True)
x.register_post_accumulate_grad_hook(halve)
(4 * x).sum().backward()
assert x.grad.tolist() == [2.0, 2.0]
""",
    ),
    Entry(
        id="a-nodes-hook-did-not-return-a-tuple",
        title="A node's hook did not return a tuple",
        category="TypeError",
        pattern=r"expected tuple, but hook returned '\w+'",
        message="expected tuple, but hook returned 'Tensor'",
        meaning=(
            "A node may have several outputs and inputs, so its hooks get tuples of gradients and return a "
            "tuple, or `None` to change nothing. Here the hook returned one tensor."
        ),
        causes=(
            "The hook was written as one for a tensor, with `register_hook` of a tensor in mind.",
            "A `lambda` returns the value of what it calls.",
        ),
        repair="Return a tuple with one entry for each gradient, or nothing.",
        chapter="43_hooks_and_memory",
        section="What a returned value replaces",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.grad_fn.register_prehook(lambda grads: 2 * grads[0])
h.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.grad_fn.register_prehook(lambda grads: (2 * grads[0],))
h.sum().backward()
assert x.grad.tolist() == [6.0, 6.0]
""",
        draws="h",
    ),
    Entry(
        id="a-nodes-hook-returned-too-many-or-too-few-gradients",
        title="A node's hook returned too many or too few gradients",
        category="RuntimeError",
        pattern=r"hook '[^']*' has returned an incorrect number of values",
        message="hook '<lambda>' has returned an incorrect number of values (got 1, but expected 2)",
        meaning=(
            "The tuple that a node's hook returns needs as many entries as the tuple that it got. For "
            "`register_hook` of a node that is one for each input of the operation, also for inputs that "
            "need no gradient."
        ),
        causes=(
            "An entry for an input without gradient was left out: `3 * x` has two inputs, a number and a "
            "tensor.",
            "The gradients of the outputs were returned in place of those of the inputs.",
        ),
        repair="Return one entry for each that came in, `None` where the entry was `None`.",
        chapter="43_hooks_and_memory",
        section="What a returned value replaces",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.grad_fn.register_hook(lambda g_in, g_out: (2 * g_in[0],))
h.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
h = 3 * x
h.grad_fn.register_hook(lambda g_in, g_out: (2 * g_in[0], None))
h.sum().backward()
assert x.grad.tolist() == [6.0, 6.0]
""",
        draws="h",
    ),
    Entry(
        id="a-modules-backward-hook-of-the-old-kind",
        title="A module's backward hook of the old kind",
        category="FutureWarning",
        pattern=r"Using (?:a )?non-full backward hooks? (?:when|on a Module that)",
        message=(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated "
            "and will be removed in future versions. This hook will be missing some grad_input. Please use "
            "register_full_backward_hook to get the documented behavior."
        ),
        variants=(
            "Using a non-full backward hook when outputs are generated by different autograd Nodes is "
            "deprecated and will be removed in future versions. This hook will be missing some grad_output. "
            "Please use register_full_backward_hook to get the documented behavior.",
            "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of "
            "Tensors is deprecated and will be removed in future versions. This hook will be missing some "
            "of the grad_output. Please use register_full_backward_hook to get the documented behavior.",
        ),
        meaning=(
            "`register_backward_hook` looks at the last node that the module recorded and no further. Where "
            "`forward` made several nodes, its `grad_input` is that of the last one, not that of the "
            "module's input."
        ),
        causes=(
            "Code from before torch 1.8 uses `register_backward_hook`.",
            "A library, such as one for saliency maps, still registers hooks of this kind.",
        ),
        repair=(
            "Use `register_full_backward_hook`: it gives the gradients of the module's own inputs and "
            "outputs. Modules that work in place may then need a change of their own."
        ),
        chapter="43_hooks_and_memory",
        section='"Using a non-full backward hook"',
        broken_code="""\
import torch

seen = []
net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
net.register_backward_hook(lambda m, g_in, g_out: seen.append(g_in))
x = torch.ones(1, 2, requires_grad=True)
y = net(x)
y.sum().backward()
""",
        fixed_code="""\
import torch

seen = []
net = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Sigmoid())
net.register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_in))
x = torch.ones(1, 2, requires_grad=True)
y = net(x)
y.sum().backward()
assert torch.equal(seen[0][0], x.grad)  # the gradient of the module's input
""",
        draws="y",
        since="Older versions give it as a `UserWarning`.",
    ),
    Entry(
        id="two-kinds-of-backward-hooks-on-one-module",
        title="Two kinds of backward hooks on one module",
        category="RuntimeError",
        pattern=r"Cannot use both regular backward hooks and full backward hooks",
        message=(
            "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use "
            "only one of them."
        ),
        variants=(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please "
            "use only one of them.",
        ),
        meaning=(
            "A module runs either hooks of the old kind, from `register_backward_hook`, or full ones. The "
            "two see different gradients, so torch refuses to mix them on one module."
        ),
        causes=(
            "One tool registered an old hook, and another one, or you, a full one.",
            "Code was moved to `register_full_backward_hook` in one place only.",
        ),
        repair=(
            "Register all of them with `register_full_backward_hook`, and take hooks off with the handle's "
            "`remove()` when you are done with them."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks on a module",
        broken_code="""\
import torch

seen = []
layer = torch.nn.Linear(2, 1)
layer.register_backward_hook(lambda m, g_in, g_out: None)
layer.register_full_backward_hook(lambda m, *grads: seen.append(grads))
""",
        fixed_code="""\
import torch

seen = []
layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: None)
layer.register_full_backward_hook(lambda m, *grads: seen.append(grads))
layer(torch.ones(1, 2, requires_grad=True)).sum().backward()
assert len(seen) == 1
""",
    ),
    Entry(
        id="a-full-backward-hook-fires-although-no-input-requires-grad",
        title="A full backward hook fires although no input requires grad",
        category="UserWarning",
        pattern=r"Full backward hook is firing when gradients are computed with respect to module outputs",
        message=(
            "Full backward hook is firing when gradients are computed with respect to module outputs since "
            "no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
            "register_full_backward_hook for more details."
        ),
        meaning=(
            "A full backward hook waits for the gradients of the module's inputs. This module's inputs "
            "require no grad, so that moment never comes: the hook runs early, and its `grad_input` holds "
            "`None`."
        ),
        causes=(
            "It is the first layer, and the data does not require grad.",
            "The layers before it are frozen, or their output was detached.",
            "The module gets its tensors in a dict or as keywords: those are not looked at.",
        ),
        repair=(
            "If `grad_output` is all that you need, the values are right and you may ignore this, or hook "
            "the output tensor itself. If you want the gradient of the input, let the input require grad."
        ),
        chapter="43_hooks_and_memory",
        section='"Full backward hook is firing"',
        broken_code="""\
import torch

seen = []
layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_in))
y = layer(torch.ones(1, 2))
y.sum().backward()
""",
        fixed_code="""\
import torch

seen = []
layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_in))
x = torch.ones(1, 2, requires_grad=True)
y = layer(x)
y.sum().backward()
assert torch.equal(seen[0][0], layer.weight)
""",
        draws="y",
    ),
    Entry(
        id="a-full-backward-hook-returned-gradients-for-inputs-that-have-none",
        title="A full backward hook returned gradients for inputs that have none",
        category="RuntimeError",
        pattern=r"Backward hook for Modules where no input requires gradient should always return None",
        message=(
            "Backward hook for Modules where no input requires gradient should always return None or None "
            "for all gradients."
        ),
        meaning=(
            "No input of the module requires grad, so there is no gradient that a returned value could "
            "replace. The hook returned one all the same."
        ),
        causes=(
            "The hook was written for a layer in the middle of a network, and it is on the first one.",
            "The hook clips or scales what it gets, without asking whether there is anything.",
        ),
        repair=(
            "Return `None` where `grad_input` holds `None`. To change the gradient of a parameter, register "
            "a hook on the parameter."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks on a module",
        broken_code="""\
import torch

layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: (torch.ones(1, 2),))
layer(torch.ones(1, 2)).sum().backward()
""",
        fixed_code="""\
import torch

layer = torch.nn.Linear(2, 1)
layer.weight.register_hook(lambda grad: 10 * grad)  # on the parameter
layer(torch.ones(1, 2)).sum().backward()
assert layer.weight.grad.tolist() == [[10.0, 10.0]]
""",
    ),
    Entry(
        id="a-modules-hook-returned-too-many-or-too-few-gradients",
        title="A module's hook returned too many or too few gradients",
        category="RuntimeError",
        pattern=r"Backward (?:pre )?hook returned an invalid number of grad_(?:in|out)put",
        message="Backward hook returned an invalid number of grad_input, got 2, but expected 1",
        variants=("Backward pre hook returned an invalid number of grad_output, got 2, but expected 1",),
        meaning=(
            "A full backward hook may replace the gradients of the module's inputs, a pre hook those of its "
            "outputs. It has to give one entry for each positional input, or each output, and gave another "
            "number."
        ),
        causes=(
            "The hook also returns gradients of the parameters, as hooks of the old kind saw them.",
            "`forward` takes several inputs, and the hook returns one entry.",
        ),
        repair=(
            "Return a tuple as long as the one that came in: `tuple(None if g is None else f(g) for g in "
            "grad_input)`."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks on a module",
        broken_code="""\
import torch

layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: (g_in[0], None))
x = torch.ones(1, 2, requires_grad=True)
layer(x).sum().backward()
""",
        fixed_code="""\
import torch

layer = torch.nn.Linear(2, 1)
layer.register_full_backward_hook(lambda m, g_in, g_out: (0 * g_in[0],))
x = torch.ones(1, 2, requires_grad=True)
layer(x).sum().backward()
assert x.grad.tolist() == [[0.0, 0.0]]
""",
    ),
    Entry(
        id="an-in-place-layer-after-a-module-with-a-full-backward-hook",
        title="An in-place layer after a module with a full backward hook",
        category="RuntimeError",
        pattern=r"Output \d+ of BackwardHookFunction\w* is a view and is being modified in ?place",
        message=(
            "Output 0 of BackwardHookFunction is a view and is being modified inplace. This view was created "
            "inside a custom Function (or because an input was returned as-is) and the autograd logic to "
            "handle view+inplace would override the custom backward associated with the custom Function, "
            "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
            "output of the custom Function."
        ),
        variants=(
            "Output 0 of BackwardHookFunctionBackward is a view and is being modified inplace. This view "
            "was created inside a custom Function (or because an input was returned as-is) and the autograd "
            "logic to handle view+inplace would override the custom backward associated with the custom "
            "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
            "cloning the output of the custom Function.",
        ),
        meaning=(
            "A full backward hook passes the module's inputs and outputs through a Function of torch, as "
            "views. Changing such a view in place would leave the hook behind, so it is forbidden."
        ),
        causes=(
            "The layer behind the hooked module works in place: `ReLU(inplace=True)`, `x += shortcut`.",
            "The hooked module itself changes its input in place.",
            "A tool for saliency maps or attributions put full backward hooks on every layer of such a "
            "network.",
        ),
        repair=(
            "Set `inplace=False` on the layers around the hook and write `x = x + shortcut`. Or use a "
            "forward hook that calls `register_hook` on the output tensor: that makes no view."
        ),
        chapter="43_hooks_and_memory",
        section='"Output 0 of BackwardHookFunction is a view"',
        broken_code="""\
import torch
from torch import nn

seen = []
net = nn.Sequential(nn.Linear(2, 1), nn.ReLU(inplace=True))
net[0].register_full_backward_hook(lambda m, *grads: seen.append(grads))
h = net[0](torch.ones(1, 2, requires_grad=True))
net[1](h).sum().backward()
""",
        fixed_code="""\
import torch
from torch import nn

seen = []
net = nn.Sequential(nn.Linear(2, 1), nn.ReLU(inplace=False))
net[0].register_full_backward_hook(lambda m, *grads: seen.append(grads))
h = net[0](torch.ones(1, 2, requires_grad=True))
net[1](h).sum().backward()
assert len(seen) == 1
""",
        draws="h",
        since="Torch 1.10 calls the node `BackwardHookFunctionBackward`.",
    ),
    Entry(
        id="a-tensors-backward-hook-is-lost-when-it-is-saved",
        title="A tensor's backward hook is lost when it is saved",
        category="UserWarning",
        pattern=r"backward hook .{1,400} on tensor will not be serialized",
        message=(
            "backward hook <built-in function print> on tensor will not be serialized.  If this is expected, "
            "you can decorate the function with @torch.utils.hooks.unserializable_hook to suppress this "
            "warning"
        ),
        meaning=(
            "`torch.save` and `pickle` store a tensor's numbers and whether it requires grad, not the "
            "functions hooked to it. The loaded tensor has no hooks."
        ),
        causes=(
            "A parameter with a hook was saved, or a whole module with such parameters.",
            "A tensor with a hook goes to another process, as with a data loader or a queue.",
        ),
        repair=(
            "Save the `state_dict()`, whose tensors are detached, and register the hooks again after "
            "loading. The decorator `torch.utils.hooks.unserializable_hook` says that the loss is meant."
        ),
        chapter="51_function_in_a_module",
        section="Copies and files",
        broken_code="""\
import io

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
w.register_hook(print)
torch.save(w, io.BytesIO())
""",
        fixed_code="""\
import io

import torch

w = torch.tensor([1.0, 2.0], requires_grad=True)
w.register_hook(print)
file = io.BytesIO()
torch.save(w.detach(), file)
file.seek(0)
assert torch.load(file).tolist() == [1.0, 2.0]
""",
    ),
    Entry(
        id="a-gradient-edge-of-a-tensor-that-does-not-require-grad",
        title="A gradient edge of a tensor that does not require grad",
        category="RuntimeError",
        pattern=r"It is not possible to get the gradient edge for a Tensor that does not require gradients",
        message="It is not possible to get the gradient edge for a Tensor that does not require gradients",
        meaning=(
            "`get_gradient_edge` names the place where a tensor's gradient arrives: a node and the number of "
            "its output. A tensor outside of every graph has no such place."
        ),
        causes=(
            "The tensor is data, was detached, or was computed under `no_grad()`.",
            "The edge was asked for before `requires_grad_()`.",
        ),
        repair=(
            "Ask for the edge of a tensor that requires grad: a leaf, or a result computed from one with "
            "gradients on."
        ),
        chapter="43_hooks_and_memory",
        section="Every hook, in the order of a run",
        broken_code="""\
import torch
from torch.autograd.graph import get_gradient_edge

x = torch.tensor([1.0, 2.0])
edge = get_gradient_edge(x)
""",
        fixed_code="""\
import torch
from torch.autograd.graph import get_gradient_edge

x = torch.tensor([1.0, 2.0], requires_grad=True)
edge = get_gradient_edge(x)
(grad,) = torch.autograd.grad((3 * x).sum(), edge)
assert grad.tolist() == [3.0, 3.0]
""",
    ),
    Entry(
        id="a-computed-tensor-assigned-as-a-parameter",
        title="A computed tensor assigned as a parameter",
        category="TypeError",
        pattern=(
            r"cannot assign 'torch\.(?:cuda\.)?\w+' as parameter '\w+' \(torch\.nn\.Parameter "
            r"or None expected\)"
        ),
        message=(
            "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"
        ),
        meaning=(
            "The name belongs to a `Parameter`, a leaf that the optimizer holds, and the new value is a "
            "plain tensor: the result of an operation. Torch refuses, because the module would lose its "
            "parameter unnoticed."
        ),
        causes=(
            "Weights were changed by assignment: `layer.weight = layer.weight * mask`.",
            "A weight shall be a function of other parameters, as in weight normalization or a hypernetwork.",
        ),
        repair=(
            "To change the numbers, work in place under `no_grad()`. To compute a weight from parameters, "
            "use `torch.func.functional_call` or `torch.nn.utils.parametrize`."
        ),
        chapter="51_function_in_a_module",
        section="`__init__` was not called, or a parameter was replaced",
        broken_code="""\
import torch

layer = torch.nn.Linear(2, 1)
layer.weight = 0 * layer.weight
""",
        fixed_code="""\
import torch

layer = torch.nn.Linear(2, 1)
with torch.no_grad():
    layer.weight.mul_(0)
assert layer.weight.is_leaf and layer.weight.sum() == 0
""",
    ),
    Entry(
        id="a-parameter-before-the-modules-own-__init__",
        title="A parameter before the Module's own `__init__`",
        category="AttributeError",
        pattern=r"cannot assign (?:parameters?|modules?|buffers?) before Module\.__init__\(\) call",
        message="cannot assign parameters before Module.__init__() call",
        variants=("cannot assign module before Module.__init__() call",),
        meaning=(
            "`nn.Module.__init__` makes the dictionaries in which a module keeps its parameters, buffers and "
            "submodules. They are not there yet, so there is no place to register this one."
        ),
        causes=(
            "`super().__init__()` is missing in your `__init__`.",
            "It is called, but after the first parameter or layer is assigned.",
        ),
        repair="Make `super().__init__()` the first line of `__init__`.",
        chapter="51_function_in_a_module",
        section="`__init__` was not called, or a parameter was replaced",
        broken_code="""\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter(torch.ones(2))


Scale()
""",
        fixed_code="""\
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))


assert len(list(Scale().parameters())) == 1
""",
    ),
    Entry(
        id="a-backward-hook-on-a-module-that-returns-a-dict",
        title="A backward hook on a module that returns a dict",
        category="UserWarning",
        pattern=(
            r"For backward hooks to be called, module output should be a Tensor or a tuple of "
            r"Tensors but received"
        ),
        message=(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
            "received <class 'dict'>"
        ),
        meaning=(
            "Torch attaches a module's backward hook to the tensors that it returns, and looks for them in a "
            "tensor or a tuple. It found another type and gave up, so the hook will not run."
        ),
        causes=("`forward` returns a dict, a list or a dataclass, as many models of libraries do.",),
        repair=(
            "Register the hook on a layer inside that returns a tensor. Or use a forward hook that picks the "
            "tensors out of the result and calls `register_hook` on each."
        ),
        chapter="43_hooks_and_memory",
        section="Modules that return dicts",
        broken_code="""\
import torch


class Heads(torch.nn.Module):
    def forward(self, x):
        return {"double": 2 * x, "triple": 3 * x}


net = Heads()
seen = []
net.register_full_backward_hook(lambda m, g_in, g_out: seen.append(g_out))
out = net(torch.ones(2, requires_grad=True))
""",
        fixed_code="""\
import torch


class Heads(torch.nn.Module):
    def forward(self, x):
        return {"double": 2 * x, "triple": 3 * x}


net = Heads()
seen = []


def hook_the_tensors(module, inputs, out):
    out["double"].register_hook(seen.append)


net.register_forward_hook(hook_the_tensors)
out = net(torch.ones(2, requires_grad=True))
out["double"].sum().backward()
assert seen[0].tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="a-hook-for-several-gradients-and-autogradgrad",
        title="A hook for several gradients, and autograd.grad",
        category="RuntimeError",
        pattern=(
            r"A leaf node was passed to _will_engine_execute_node but we are currently running "
            r"autograd\.grad\(\)"
        ),
        message=(
            "A leaf node was passed to _will_engine_execute_node but we are currently running "
            "autograd.grad(). This is currently not supported."
        ),
        meaning=(
            "A hook from `register_multi_grad_hook` waits until the gradients of all its tensors are there, "
            "so it asks the engine which of them will come. For leaves the engine has an answer in "
            "`backward()` only."
        ),
        causes=("`register_multi_grad_hook` was given parameters, and `torch.autograd.grad` is called.",),
        repair=(
            'Call `backward()`. Or pass `mode="any"`, which runs the hook at the first gradient and asks '
            "nothing."
        ),
        chapter="43_hooks_and_memory",
        section="Hooks that torch refuses",
        broken_code="""\
import torch
from torch.autograd.graph import register_multi_grad_hook

w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(3.0, requires_grad=True)
seen = []
register_multi_grad_hook([w, v], seen.append)
torch.autograd.grad(w * v, [w, v])
""",
        fixed_code="""\
import torch
from torch.autograd.graph import register_multi_grad_hook

w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(3.0, requires_grad=True)
seen = []
register_multi_grad_hook([w, v], seen.append)
(w * v).backward()
assert seen == [[3.0, 2.0]]
""",
    ),
)

"""Checkpoint and saved tensors."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="checkpoint-no-input-requires-grad",
        title="Checkpoint: no input requires grad",
        category="UserWarning",
        pattern=r"None of the inputs have requires_grad=True\. Gradients will be None",
        message="None of the inputs have requires_grad=True. Gradients will be None",
        meaning=(
            "The reentrant checkpoint is a Function, and a Function's output requires grad only if one of "
            "its tensor inputs does. Parameters inside the checkpointed module are not inputs, so they get "
            "no gradient."
        ),
        causes=(
            "The first block is checkpointed, and the data does not require grad.",
            "The embedding or the layers before it are frozen, as in fine-tuning with adapters.",
            "The tensors come in a dict or a list: the reentrant checkpoint looks at tensor arguments alone.",
        ),
        repair=(
            "Use `use_reentrant=False`, which has no such condition. Otherwise let one input require grad: "
            "`x.requires_grad_()` on the input of the first block."
        ),
        chapter="43_hooks_and_memory",
        section='"None of the inputs have requires_grad=True"',
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 1)
x = torch.ones(1, 2)
y = checkpoint(layer, x, use_reentrant=True)
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

layer = torch.nn.Linear(2, 1)
x = torch.ones(1, 2)
y = checkpoint(layer, x, use_reentrant=False)
y.sum().backward()
assert layer.weight.grad.tolist() == [[1.0, 1.0]]
""",
    ),
    Entry(
        id="checkpoint-without-use_reentrant",
        title="Checkpoint without use_reentrant",
        category="UserWarning",
        pattern=(
            r"torch\.utils\.checkpoint(?:\.checkpoint_sequential)?: (?:please pass in "
            r"use_reentrant|the use_reentrant parameter should be passed explicitly)"
        ),
        message=(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, calling checkpoint without use_reentrant will raise an exception. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants."
        ),
        variants=(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. In a future "
            "release, calling checkpoint without use_reentrant will raise an exception. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants.",
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants.",
            "torch.utils.checkpoint: please pass in use_reentrant=True or use_reentrant=False explicitly. "
            "The default value of use_reentrant will be updated to be False in the future. To maintain "
            "current behavior, pass use_reentrant=True. It is recommended that you use use_reentrant=False. "
            "Refer to docs for more details on the differences between the two variants.",
        ),
        meaning=(
            "There are two kinds of checkpoint, and the call does not say which one it wants. It gets the "
            "older, reentrant one; a later version is to make the argument compulsory."
        ),
        causes=(
            "`checkpoint(block, x)` was written before the argument existed.",
            "A library calls it without the argument: look for an option such as "
            "`gradient_checkpointing_kwargs`.",
        ),
        repair=(
            "Pass `use_reentrant=False`: it works with `autograd.grad`, keyword arguments and inputs that "
            "require no grad. Pass `True` only where you rely on how the old kind works."
        ),
        chapter="43_hooks_and_memory",
        section="Checkpoint: keep the input, compute again",
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.zeros(2, requires_grad=True)
y = checkpoint(torch.exp, x)
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.zeros(2, requires_grad=True)
y = checkpoint(torch.exp, x, use_reentrant=False)
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
        since="The text announced an error for torch 2.9; torch 2.13 still warns.",
    ),
    Entry(
        id="a-reentrant-checkpoint-and-autogradgrad",
        title="A reentrant checkpoint and autograd.grad",
        category="RuntimeError",
        pattern=(
            r"(?:When use_reentrant=True, torch\.utils\.checkpoint is incompatible "
            r"with|Checkpointing is not compatible with) \.grad\(\)"
        ),
        message=(
            "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
            "`inputs` parameter to .backward(). To resolve this error, you can either set "
            "use_reentrant=False, or call .backward() without passing the `inputs` argument."
        ),
        variants=(
            "Checkpointing is not compatible with .grad() or when an `inputs` parameter is passed to "
            ".backward(). Please use .backward() and do not pass its `inputs` argument.",
            "Checkpointing is not compatible with .grad(), please use .backward() if possible",
        ),
        meaning=(
            "The reentrant checkpoint starts a backward pass of its own inside the outer one, and that pass "
            "fills `.grad` of every parameter in the block. A call that asks for the gradients of chosen "
            "inputs cannot steer it."
        ),
        causes=(
            "`torch.autograd.grad(...)` goes through a checkpointed block, as for a gradient penalty.",
            "`backward(inputs=[...])` goes through one.",
        ),
        repair="Pass `use_reentrant=False`. Or call plain `backward()` and read `.grad`.",
        chapter="43_hooks_and_memory",
        section='"None of the inputs have requires_grad=True"',
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.zeros(2, requires_grad=True)
y = checkpoint(torch.exp, x, use_reentrant=True)
torch.autograd.grad(y.sum(), x)
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.zeros(2, requires_grad=True)
y = checkpoint(torch.exp, x, use_reentrant=False)
(grad,) = torch.autograd.grad(y.sum(), x)
assert grad.tolist() == [1.0, 1.0]
""",
        draws="y",
    ),
    Entry(
        id="checkpoint-the-second-run-saved-another-number-of-tensors",
        title="Checkpoint: the second run saved another number of tensors",
        category="CheckpointError",
        pattern=(
            r"torch\.utils\.checkpoint: (?:A different number of tensors was saved|trying to "
            r"save more tensors during recomputation)"
        ),
        message=(
            "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
            "recomputation.\n"
            "Number of tensors saved during forward: 2\n"
            "Number of tensors saved during recomputation: 1.\n"
            "\n"
            "Tip: To see a more detailed error message, either pass `debug=True` to\n"
            "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
            "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\n"
            "enable checkpoint‑debug mode globally.\n"
            "\n"
            "If this error occurs under torch.compile with automatic_dynamic_shapes enabled,\n"
            "it may be because the recomputation selected a different compiled graph than the\n"
            "forward pass (e.g., a dynamic graph instead of the original static graph).\n"
            "To fix this, either:\n"
            "  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as\n"
            "    dynamic upfront, avoiding the static-to-dynamic transition.\n"
            "  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache\n"
            "    reordering, which can change which graph is checked first between forward\n"
            "    and recompute.\n"
            "See https://github.com/pytorch/pytorch/issues/166926 for more details and\n"
            "workaround examples."
        ),
        variants=(
            "torch.utils.checkpoint: trying to save more tensors during recomputation than during the "
            "original forward pass.",
        ),
        meaning=(
            "A checkpointed block runs again during backward, and this time it did not record the same "
            "operations. The tensors of the two runs are matched by their order, so torch stops instead of "
            "mixing them up."
        ),
        causes=(
            "The block branches on something that has changed: a counter, a flag, a cache, a buffer, or "
            "`model.eval()` before backward.",
            "The second run is under another autocast or grad mode than the first.",
            "The block draws random numbers and `preserve_rng_state=False` is set.",
        ),
        repair=(
            "Make the block repeatable: what it reads must be the same in both runs, so pass flags as "
            "arguments and call `backward()` before you change modes. `debug=True` in the call lists the "
            "operations of both runs."
        ),
        chapter="43_hooks_and_memory",
        section="Checkpoint: keep the input, compute again",
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

block = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Sigmoid())
x = torch.ones(2, requires_grad=True)
y = checkpoint(block, x, use_reentrant=False)
block.eval()  # before backward: the second run has no dropout
y.sum().backward()
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

block = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Sigmoid())
x = torch.ones(2, requires_grad=True)
y = checkpoint(block, x, use_reentrant=False)
y.sum().backward()
block.eval()  # after backward
assert x.grad.shape == x.shape
""",
        draws="y",
    ),
    Entry(
        id="checkpoint-the-second-run-gave-tensors-of-another-kind",
        title="Checkpoint: the second run gave tensors of another kind",
        category="CheckpointError",
        pattern=(
            r"torch\.utils\.checkpoint: Recomputed values for the following tensors have "
            r"different metadata"
        ),
        message=(
            "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
            "than during the forward pass.\n"
            "tensor at position 0:\n"
            "saved metadata: {'shape': torch.Size([2]), 'dtype': torch.float16, 'device': "
            "device(type='cpu')}\n"
            "recomputed metadata: {'shape': torch.Size([2]), 'dtype': torch.float32, 'device': "
            "device(type='cpu')}\n"
            ".\n"
            "\n"
            "Tip: To see a more detailed error message, either pass `debug=True` to\n"
            "`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
            "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\n"
            "enable checkpoint‑debug mode globally.\n"
            "\n"
            "If this error occurs under torch.compile with automatic_dynamic_shapes enabled,\n"
            "it may be because the recomputation selected a different compiled graph than the\n"
            "forward pass (e.g., a dynamic graph instead of the original static graph).\n"
            "To fix this, either:\n"
            "  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as\n"
            "    dynamic upfront, avoiding the static-to-dynamic transition.\n"
            "  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache\n"
            "    reordering, which can change which graph is checked first between forward\n"
            "    and recompute.\n"
            "See https://github.com/pytorch/pytorch/issues/166926 for more details and\n"
            "workaround examples."
        ),
        meaning=(
            "A checkpointed block runs again during backward, and the tensors that it recomputed differ from "
            "the saved ones in shape, dtype or device. The list shows both for each position."
        ),
        causes=(
            "The dtype differs: autocast or a cast was on in one run and off in the other.",
            "The shape differs: the block reads a batch, a cache or a routing decision that has changed "
            "since.",
            "A shape of 0 in the second run: a sharding tool (FSDP, ZeRO) had given the weights away again.",
            "The device differs, because the module was moved between forward and backward.",
        ),
        repair=(
            "Look at the first position: shape, dtype or device tells which of the causes it is. Read flags "
            "and state once, outside the block, and pass them in as arguments."
        ),
        chapter="43_hooks_and_memory",
        section="Checkpoint: keep the input, compute again",
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

half = True


def block(x):
    return (x.half() if half else x).exp()


x = torch.zeros(2, requires_grad=True)
y = checkpoint(block, x, use_reentrant=False)
half = False
y.sum().backward()
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

half = True


def block(x, half):
    return (x.half() if half else x).exp()


x = torch.zeros(2, requires_grad=True)
y = checkpoint(block, x, half, use_reentrant=False)  # the value of now
half = False
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
        draws="y",
    ),
    Entry(
        id="checkpoint-no-output-requires-grad",
        title="Checkpoint: no output requires grad",
        category="RuntimeError",
        pattern=r"none of output has requires_grad=True, this checkpoint\(\) is not necessary",
        message="none of output has requires_grad=True, this checkpoint() is not necessary",
        meaning=(
            "The reentrant checkpoint ran the block again, and what came out requires no grad. Nothing "
            "inside can be differentiated, yet the first run had promised a gradient."
        ),
        causes=(
            "The block detaches its result, or works under `no_grad()` inside.",
            "The output does not depend on any input or parameter that requires grad.",
        ),
        repair=(
            "Take `detach()` out of the block. If the block needs no gradient, call it without `checkpoint`, "
            "under `no_grad()`."
        ),
        chapter="43_hooks_and_memory",
        section="Checkpoint: keep the input, compute again",
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.ones(2, requires_grad=True)
y = checkpoint(lambda x: x.detach().exp(), x, use_reentrant=True)
y.sum().backward()
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint

x = torch.zeros(2, requires_grad=True)
y = checkpoint(lambda x: x.exp(), x, use_reentrant=True)
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
        draws="y",
    ),
    Entry(
        id="an-unpack-hook-did-not-return-a-tensor",
        title="An unpack hook did not return a tensor",
        category="TypeError",
        pattern=r"Output of saved tensor unpack_hook expected to be a Tensor but got result of type",
        message="Output of saved tensor unpack_hook expected to be a Tensor but got result of type list",
        meaning=(
            "Backward asked for a saved tensor, and the unpack hook answered with something else. The pack "
            "hook may turn a tensor into any object, and the unpack hook has to turn it back."
        ),
        causes=(
            "The unpack hook forgot its `return`.",
            "The pack hook stores an array or a file name, and the unpack hook hands it on as it is.",
        ),
        repair="Return a tensor with the shape, dtype and device of the one that was packed.",
        chapter="43_hooks_and_memory",
        section="Pack what is saved",
        broken_code="""\
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.zeros(2, requires_grad=True)
with saved_tensors_hooks(lambda t: t.tolist(), lambda packed: packed):
    y = x.exp()
y.sum().backward()
""",
        fixed_code="""\
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.zeros(2, requires_grad=True)
with saved_tensors_hooks(lambda t: t.tolist(), torch.tensor):
    y = x.exp()
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
        draws="y",
    ),
    Entry(
        id="a-pack-hook-changed-its-tensor-in-place",
        title="A pack hook changed its tensor in place",
        category="RuntimeError",
        pattern=r"A saved tensor pack hook is modifying its input in place",
        message=(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
            "hook cannot be modified by in-place operations as this can lead to unexpected side-effects. "
            "Please open an issue if you need to perform in-place operations on the input to a pack hook."
        ),
        meaning=(
            "The tensor that a pack hook gets is the one that the forward pass works with, not a copy. "
            "Changing it would change the results of the program, so torch forbids it."
        ),
        causes=(
            "The hook quantizes, scales or clears the tensor with a method that ends in `_`.",
            "The hook calls `detach()` first: that shares the memory, so it is not a copy.",
        ),
        repair="Make a new tensor: `t.half()`, `t * scale` or `t.clone()` followed by in-place work.",
        chapter="43_hooks_and_memory",
        section="Pack what is saved",
        broken_code="""\
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.ones(2, requires_grad=True)
with saved_tensors_hooks(lambda t: t.mul_(0.5), lambda t: 2 * t):
    y = (3 * x).square()
""",
        fixed_code="""\
import torch
from torch.autograd.graph import saved_tensors_hooks

x = torch.ones(2, requires_grad=True)
with saved_tensors_hooks(lambda t: 0.5 * t, lambda t: 2 * t):
    y = (3 * x).square()
y.sum().backward()
assert x.grad.tolist() == [18.0, 18.0]
""",
    ),
    Entry(
        id="saved-tensor-hooks-or-checkpoint-inside-torchfunc",
        title="Saved-tensor hooks or checkpoint inside torch.func",
        category="RuntimeError",
        pattern=r"torch\.func\.\{grad, vjp, jacrev, hessian\} don't yet support saved tensor hooks",
        message=(
            "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
            "issue with your use case."
        ),
        meaning=(
            "The transforms of `torch.func` record in levels of their own, where hooks on saved tensors do "
            "not work. The checkpoint with `use_reentrant=False` is made of such hooks."
        ),
        causes=(
            "The model uses `checkpoint`, and `torch.func.grad`, `vjp`, `jacrev` or `hessian` goes through "
            "it.",
            "`saved_tensors_hooks` or `save_on_cpu` is active around or inside a transformed function.",
        ),
        repair=(
            "Take the checkpoint out for this computation, or use `torch.autograd.grad` and "
            "`torch.autograd.functional`, which allow it."
        ),
        chapter="43_hooks_and_memory",
        section="Pack what is saved",
        broken_code="""\
import torch
from torch.utils.checkpoint import checkpoint


def f(x):
    return checkpoint(torch.exp, x, use_reentrant=False).sum()


x = torch.zeros(2)
torch.func.grad(f)(x)
""",
        fixed_code="""\
import torch
from torch.utils.checkpoint import checkpoint


def f(x):
    return checkpoint(torch.exp, x, use_reentrant=False).sum()


x = torch.zeros(2, requires_grad=True)
(grad,) = torch.autograd.grad(f(x), x)
assert grad.tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="two-pairs-of-hooks-on-one-saved-tensor",
        title="Two pairs of hooks on one saved tensor",
        category="RuntimeError",
        pattern=r"Calling register_hooks on a saved tensor whose hooks have already been set",
        message=(
            "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
            "of hooks is allowed at a time."
        ),
        meaning=(
            "One saved tensor holds one pair of pack and unpack hooks: after the first pair it keeps only "
            "the packed object. There is no second place to put another pair."
        ),
        causes=(
            "The graph was recorded inside `saved_tensors_hooks`, `save_on_cpu` or a checkpoint, and "
            "`register_hooks` is called on top.",
            "A cell that registers the hooks was run twice without a new forward pass.",
        ),
        repair=(
            "Register once for each forward pass. To do two things, write one pair of hooks that does both."
        ),
        chapter="43_hooks_and_memory",
        section="Pack what is saved",
        broken_code="""\
import torch

x = torch.zeros(2, requires_grad=True)
y = x.exp()
saved = y.grad_fn._raw_saved_result
saved.register_hooks(lambda t: t.double(), lambda t: t.float())
saved.register_hooks(lambda t: t.tolist(), torch.tensor)
""",
        fixed_code="""\
import torch

x = torch.zeros(2, requires_grad=True)
y = x.exp()
saved = y.grad_fn._raw_saved_result
saved.register_hooks(lambda t: t.double().tolist(), torch.tensor)
y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
        draws="y",
    ),
    Entry(
        id="backward-outside-of-allow_mutation_on_saved_tensors",
        title="Backward outside of allow_mutation_on_saved_tensors",
        category="AssertionError",
        pattern=r"Trying to backward outside of the 'allow_mutation_on_saved_tensors' context",
        message=(
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph "
            "was originally recorded."
        ),
        meaning=(
            "Inside this context torch copies a saved tensor when somebody changes it, and keeps the copies "
            "until the context ends. The graph was recorded inside, and the copies that it needs are gone."
        ),
        causes=(
            "`backward()` is called after the `with` block.",
            "A loss from inside is kept and used in a later step.",
        ),
        repair="Call `backward()` inside the same `with` block.",
        chapter="23_in_place",
        section="When torch makes the copy",
        broken_code="""\
import torch

x = torch.zeros(2, requires_grad=True)
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    y = x.exp()
    y.add_(1)
y.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.zeros(2, requires_grad=True)
with torch.autograd.graph.allow_mutation_on_saved_tensors():
    y = x.exp()
    y.add_(1)
    y.sum().backward()
assert x.grad.tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="a-saved-tensor-that-the-node-does-not-have",
        title="A saved tensor that the node does not have",
        category="AttributeError",
        pattern=r"'\w+Backward\d*' object has no attribute '_?saved_\w+'",
        message="'ExpBackward0' object has no attribute '_saved_self'",
        variants=("'ExpBackward0' object has no attribute 'saved_tensors'",),
        meaning=(
            "A node has an attribute for each tensor that its formula needs, and no others. Which ones "
            "differ from operation to operation: `exp` keeps its result, `sin` its input."
        ),
        causes=(
            "The attribute of another operation was asked for: `_saved_self` where there is `_saved_result`.",
            "`saved_tensors` was asked of a built-in node: only nodes of your own Functions have it.",
            "The name is from another version of torch.",
        ),
        repair='List what there is: `[name for name in dir(node) if name.startswith("_saved_")]`.',
        chapter="12_grad_fn",
        section="What a node has saved",
        broken_code="""\
import torch

x = torch.tensor(0.0, requires_grad=True)
y = x.exp()
y.grad_fn._saved_self
""",
        fixed_code="""\
import torch

x = torch.tensor(0.0, requires_grad=True)
y = x.exp()
names = [name for name in dir(y.grad_fn) if name.startswith("_saved_")]
assert names == ["_saved_result"] and y.grad_fn._saved_result == 1
""",
        draws="y",
    ),
)

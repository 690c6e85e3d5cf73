"""torch.func, vmap and torch.compile."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="item-under-vmap",
        title="`.item()` under vmap",
        category="RuntimeError",
        pattern=r"vmap: It looks like you're calling \.item\(\) on a Tensor",
        message=(
            "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
            ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error is "
            "occurring somewhere inside PyTorch internals, please file a bug report."
        ),
        meaning=(
            "Under `vmap` the function runs once for the whole batch, and a tensor inside it stands for all "
            "samples at the same time. There is no one number that `.item()` could return."
        ),
        causes=(
            "`.item()`, `float(t)`, `int(t)` or `torch.tensor([a, b])` of tensors is called in the function.",
            "A tensor is used as an index of a list, as a slice or in `range(...)`.",
        ),
        repair=(
            "Stay with tensors: `torch.stack([a, b])` for `torch.tensor([a, b])`, `gather` for indexing by a "
            "value."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

x = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
torch.vmap(lambda row: row / row.sum().item())(x)
""",
        fixed_code="""\
import torch

x = torch.tensor([[1.0, 3.0], [2.0, 2.0]])
y = torch.vmap(lambda row: row / row.sum())(x)
assert y.tolist() == [[0.25, 0.75], [0.5, 0.5]]
""",
    ),
    Entry(
        id="an-if-on-values-under-vmap",
        title="An `if` on values under vmap",
        category="RuntimeError",
        pattern=r"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",
        message=(
            "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
            "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
        ),
        meaning=(
            "A Python `if` takes one way, and a tensor under `vmap` stands for many samples, some of which "
            "would take the other way. So torch refuses to turn it into `True` or `False`."
        ),
        causes=(
            "An `if`, `while`, `and` or `max(a, b)` of Python looks at a tensor's value.",
            "An `assert` or a library's check of arguments does.",
        ),
        repair="Compute both ways and choose with `torch.where`. Take checks of values out of the function.",
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch


def leaky(x):
    return x if x > 0 else 0.5 * x


torch.vmap(leaky)(torch.tensor([2.0, -2.0]))
""",
        fixed_code="""\
import torch


def leaky(x):
    return torch.where(x > 0, x, 0.5 * x)


y = torch.vmap(leaky)(torch.tensor([2.0, -2.0]))
assert y.tolist() == [2.0, -1.0]
""",
    ),
    Entry(
        id="in-place-under-vmap",
        title="In place under vmap",
        category="RuntimeError",
        pattern=r"vmap: inplace arithmetic\(self, \*extra_args\) is not possible",
        message=(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
            "`other` in extra_args that has more elements than `self`. This happened due to `other` being "
            "vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
            "operators instead of inplace arithmetic. If said operator is being called inside the PyTorch "
            "framework, please file a bug report instead."
        ),
        variants=(
            "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
            "`other` in extra_args that has more elements than `self`.",
        ),
        meaning=(
            "A tensor without the hidden batch dimension shall take up values that have it. It has room for "
            "one sample, so the write is impossible."
        ),
        causes=(
            "The function fills a buffer made by `torch.zeros(...)`: that one is not batched.",
            "The function writes into a tensor from outside, or into an argument with `in_dims` of `None`.",
        ),
        repair=(
            "Build the result without writing: `torch.stack`, `torch.cat`, `torch.where`. Or make the buffer "
            "from the input with `torch.zeros_like(x)` or `x.new_zeros(...)`: those are batched like `x`."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch


def shift(x):
    out = torch.zeros(3)
    out[1:] = x[:-1]
    return out


torch.vmap(shift)(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
""",
        fixed_code="""\
import torch


def shift(x):
    out = torch.zeros_like(x)
    out[1:] = x[:-1]
    return out


y = torch.vmap(shift)(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
assert y.tolist() == [[0.0, 1.0, 2.0], [0.0, 4.0, 5.0]]
""",
    ),
    Entry(
        id="random-numbers-under-vmap",
        title="Random numbers under vmap",
        category="RuntimeError",
        pattern=r"vmap: called random operation while in randomness error mode",
        message=(
            "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
            "'different' randomness flags on vmap or perform the randomness operation out of vmap"
        ),
        meaning=(
            "A function that draws random numbers could draw once for the whole batch or once for each "
            "sample. You have to say which is meant."
        ),
        causes=(
            "The model has dropout and is in training mode.",
            "The function adds noise with `torch.randn` or samples from a distribution.",
        ),
        repair=(
            'Pass `randomness="different"` for a draw per sample, or `"same"` for one draw. Or call '
            "`model.eval()`, or draw outside and pass the numbers in."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

x = torch.zeros(3, 2)
torch.vmap(lambda row: row + torch.randn(2))(x)
""",
        fixed_code="""\
import torch

x = torch.zeros(3, 2)
y = torch.vmap(lambda row: row + torch.randn(2), randomness="same")(x)
assert torch.equal(y[0], y[1])
""",
    ),
    Entry(
        id="batches-of-two-sizes-under-vmap",
        title="Batches of two sizes under vmap",
        category="ValueError",
        pattern=r"vmap: Expected all tensors to have the same size in the mapped dimension",
        message=(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [2, 3] for "
            "the mapped dimension"
        ),
        meaning=(
            "`vmap` takes one slice of each argument at a time, so all have to hold the same number of "
            "slices. The message lists the sizes."
        ),
        causes=(
            "Parameters were passed along with the batch, and `vmap` maps over their first dimension too.",
            "The batch dimension of one argument is another one than 0.",
        ),
        repair=(
            "Say with `in_dims` which dimension of each argument is the batch, and `None` for what all "
            "samples share."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

w = torch.tensor([1.0, 2.0])
x = torch.ones(3, 2)
torch.vmap(lambda w, row: w * row)(w, x)
""",
        fixed_code="""\
import torch

w = torch.tensor([1.0, 2.0])
x = torch.ones(3, 2)
y = torch.vmap(lambda w, row: w * row, in_dims=(None, 0))(w, x)
assert y.tolist() == [[1.0, 2.0]] * 3
""",
    ),
    Entry(
        id="a-result-whose-size-depends-on-values-under-vmap",
        title="A result whose size depends on values, under vmap",
        category="RuntimeError",
        pattern=r"vmap: We do not support batching operators that can (?:support|output) dynamic shape",
        message=(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch "
            "over indexing with a boolean mask."
        ),
        variants=(
            "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
            "over aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
            "need this feature.",
        ),
        meaning=(
            "The size of this result would depend on the values, so the samples of a batch could give "
            "results of several sizes. They would not fit into one tensor."
        ),
        causes=(
            "Indexing with a mask: `x[x > 0]`.",
            "`nonzero`, `unique`, `masked_select` or `argwhere` in the function.",
        ),
        repair=(
            "Keep the size: `torch.where(mask, x, 0.0)` and a sum in place of a selection. Or loop over the "
            "samples in Python."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
torch.vmap(lambda row: row[row > 0].sum())(x)
""",
        fixed_code="""\
import torch

x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
y = torch.vmap(lambda row: torch.where(row > 0, row, 0.0).sum())(x)
assert y.tolist() == [1.0, 7.0]
""",
    ),
    Entry(
        id="vmap-over-an-argument-that-is-not-a-tensor",
        title="vmap over an argument that is not a tensor",
        category="ValueError",
        pattern=(
            r"vmap\(.{1,200}, in_dims=.{1,80}, \.\.\.\)\(<inputs>\): Got in_dim=-?\d+ for an "
            r"input but the input is of type"
        ),
        message=(
            "vmap(pow, in_dims=0, ...)(<inputs>): Got in_dim=0 for an input but the input is of type <class "
            "'int'>. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        ),
        meaning=(
            "`vmap` maps over the first dimension of every argument unless `in_dims` says otherwise. This "
            "argument is a number, a string or another object without dimensions."
        ),
        causes=(
            "An option or a number is passed along with the tensors.",
            "A model, a dict with options or `None` is passed as an argument.",
        ),
        repair=(
            "Bind it with a `lambda` or `functools.partial`, pass it as a keyword argument, which `vmap` "
            "does not map over, or put `None` in its place in `in_dims`."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
torch.vmap(torch.pow)(x, 2)
""",
        fixed_code="""\
import torch

x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
y = torch.vmap(torch.pow, in_dims=(0, None))(x, 2)
assert y.tolist() == [[1.0, 4.0], [9.0, 16.0]]
""",
    ),
    Entry(
        id="a-tensor-that-left-its-vmap",
        title="A tensor that left its vmap",
        category="RuntimeError",
        pattern=r"Either your tensor may have escaped from inside a function being vmapped",
        message=(
            "Either your tensor may have escaped from inside a function being vmapped and this is a user "
            "error (see https://pytorch.org/functorch/stable/ux_limitations.html), or there is an internal "
            "functorch error in `gen_vmap_plumbing` Please file an issue if it looks like the latter"
        ),
        meaning=(
            "A tensor inside `vmap` has a hidden batch dimension that exists while the call lasts. This one "
            "was kept, and used when the call was over."
        ),
        causes=(
            "The function stores intermediate tensors in a list, a global or an attribute such as "
            "`self.last`.",
            "A forward hook or a cache of the module keeps activations.",
        ),
        repair="Return what you want to keep, as one of several outputs.",
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

kept = []


def f(x):
    kept.append(x * x)
    return kept[-1].sum()


torch.vmap(f)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
kept[0] + 1
""",
        fixed_code="""\
import torch


def f(x):
    square = x * x
    return square.sum(), square


total, square = torch.vmap(f)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
assert (square + 1).tolist() == [[2.0, 5.0], [10.0, 17.0]]
""",
    ),
    Entry(
        id="batch-norm-under-vmap",
        title="Batch norm under vmap",
        category="RuntimeError",
        pattern=r"Batch norm got a batched tensor as input while the running_mean or running_var",
        message=(
            "Batch norm got a batched tensor as input while the running_mean or running_var, which will be "
            "updated in place, were not batched.\n"
            "If you are using a module and do not need eval mode, please set `track_running_stats` to be "
            "False.If you are using a prebuilt module and do not need eval mode, please see the functorch "
            "website for resources on how to patch your module to work with vmap"
        ),
        meaning=(
            "In training mode batch norm writes its running averages in place, and those have no hidden "
            "batch dimension. There is also no gradient for one sample alone: batch norm mixes the samples."
        ),
        causes=(
            "Per-sample gradients of a model with `BatchNorm` layers.",
            "An ensemble is run with `vmap`, and its buffers were not stacked.",
        ),
        repair=(
            "For per-sample gradients use `GroupNorm` or `LayerNorm`. Otherwise call `eval()`, or set "
            "`track_running_stats=False`."
        ),
        chapter="22_accumulation",
        section="Layers that mix samples",
        broken_code="""\
import torch

norm = torch.nn.BatchNorm1d(2)
x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]] * 3)
torch.vmap(norm)(x)
""",
        fixed_code="""\
import torch

norm = torch.nn.BatchNorm1d(2, track_running_stats=False)
x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]] * 3)
y = torch.vmap(norm)(x)
assert torch.allclose(y[0], norm(x[0]))
""",
    ),
    Entry(
        id="vmap-loops-over-an-operation",
        title="vmap loops over an operation",
        category="UserWarning",
        pattern=r"There is a performance drop because we have not yet implemented the batching rule for",
        message=(
            "There is a performance drop because we have not yet implemented the batching rule for "
            "aten::histc. Please file us an issue on GitHub so that we can prioritize its implementation."
        ),
        meaning=(
            "`vmap` has no rule that runs this operation on a whole batch, so it runs it sample by sample. "
            "The result is right and slow."
        ),
        causes=(
            "The operation is a rare one, such as `bincount` or `histc`, or a custom op without "
            "`register_vmap`.",
        ),
        repair=(
            "If it matters, write the operation with others, move it out of the function, or give your "
            "custom op a rule with `register_vmap`."
        ),
        chapter="24_higher_order",
        section="Under `vmap`",
        broken_code="""\
import torch

x = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
torch.vmap(lambda row: torch.histc(row, bins=2, min=0, max=1))(x)
""",
        fixed_code="""\
import torch

x = torch.tensor([[0.0, 1.0], [1.0, 1.0]])
counts = torch.vmap(lambda row: torch.stack([(row < 0.5).sum(), (row >= 0.5).sum()]))(x)
assert counts.tolist() == [[1, 1], [0, 2]]
""",
    ),
    Entry(
        id="torchfuncgrad-of-several-numbers",
        title="`torch.func.grad` of several numbers",
        category="RuntimeError",
        pattern=r"grad_and_value\(f\)\(\*args\): Expected f\(\*args\) to return a scalar Tensor",
        message=(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with 1 dims. "
            "Maybe you wanted to use the vjp or jacrev APIs instead?"
        ),
        meaning=(
            "`torch.func.grad` is for functions of one number, such as a loss. The function returned a "
            "tensor with dimensions, so there is a Jacobian, not one gradient."
        ),
        causes=(
            "The loss of each sample is returned: the mean or the sum is missing.",
            "The result has shape `[1]`: one element, but not a scalar.",
            "The slope of each element was wanted: that is `vmap(grad(f))`.",
        ),
        repair=(
            "Reduce with `.sum()` or `.mean()`, or `squeeze()` a shape `[1]`. For the matrix use `jacrev`, "
            "for a slope per element `vmap(grad(f))`."
        ),
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch

x = torch.tensor([1.0, 2.0])
torch.func.grad(lambda x: x**3)(x)
""",
        fixed_code="""\
import torch

x = torch.tensor([1.0, 2.0])
slopes = torch.vmap(torch.func.grad(lambda x: x**3))(x)
assert slopes.tolist() == [3.0, 12.0]
""",
    ),
    Entry(
        id="torchfuncgrad-of-something-that-is-not-a-tensor",
        title="`torch.func.grad` of something that is not a tensor",
        category="RuntimeError",
        pattern=(
            r"(?:grad_and_value\(f\)\(\*args\): Expected f\(\*args\) to return a Tensor, "
            r"got|\w+\([^)]*\): expected f\(\*primals\) to return only tensors)"
        ),
        message="grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got <class 'tuple'>",
        variants=(
            "vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type <class "
            "'float'>",
        ),
        meaning=(
            "A transform of `torch.func` needs a tensor at the end of the function, and got another type. "
            "Without a tensor there is no graph to go back through."
        ),
        causes=(
            "The function returns `loss.item()`, `float(...)` or a list.",
            "The `return` is missing, so the function returns `None`.",
            "The function returns a tuple such as loss and prediction, and `has_aux=True` is missing.",
        ),
        repair=(
            "Return the loss as a tensor, and pass `has_aux=True` where the function returns a pair of loss "
            "and extras."
        ),
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch


def loss(w):
    error = w * 2 - 1
    return error**2, error


torch.func.grad(loss)(torch.tensor(1.0))
""",
        fixed_code="""\
import torch


def loss(w):
    error = w * 2 - 1
    return error**2, error


slope, error = torch.func.grad(loss, has_aux=True)(torch.tensor(1.0))
assert slope == 4 and error == 1
""",
    ),
    Entry(
        id="a-number-where-torchfunc-wants-a-tensor",
        title="A number where torch.func wants a tensor",
        category="ValueError",
        pattern=r"Thing passed to transform API must be Tensor, got",
        message="Thing passed to transform API must be Tensor, got <class 'float'>",
        meaning=(
            "The argument that shall be differentiated is a Python number or another object. `torch.func` "
            "differentiates with respect to tensors, alone or in dicts, lists and tuples."
        ),
        causes=(
            "A number was written without `torch.tensor`.",
            "A dict of parameters also holds other objects.",
        ),
        repair="Wrap numbers: `torch.tensor(2.0)`. Put options into arguments that `argnums` does not name.",
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch

torch.func.grad(lambda x: x**2)(3.0)
""",
        fixed_code="""\
import torch

assert torch.func.grad(lambda x: x**2)(torch.tensor(3.0)) == 6
""",
    ),
    Entry(
        id="requires_grad_-inside-a-torchfunc-transform",
        title="`requires_grad_` inside a torch.func transform",
        category="RuntimeError",
        pattern=r"You are attempting to call Tensor\.requires_grad_\(\)",
        message=(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using "
            "torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
            "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, "
            "jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being transformed "
            "instead."
        ),
        meaning=(
            "Inside a transform torch keeps its own account of what is differentiated: `requires_grad` has "
            "no meaning there and may not be switched on. The functions of `torch.autograd.functional` "
            "switch it on as well."
        ),
        causes=(
            "The function calls `x.requires_grad_()` to prepare for `torch.autograd.grad`.",
            "`torch.autograd.functional.jacobian` is called inside `vmap` or `torch.func.grad`.",
        ),
        repair=(
            "Nest transforms instead: `grad(grad(f))`, `vmap(jacrev(f))`. Or call `requires_grad_()` outside."
        ),
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch


def slope(x):
    x.requires_grad_()
    return torch.autograd.grad(x**3, x)[0]


torch.vmap(slope)(torch.tensor([1.0, 2.0]))
""",
        fixed_code="""\
import torch

slope = torch.func.grad(lambda x: x**3)
slopes = torch.vmap(slope)(torch.tensor([1.0, 2.0]))
assert slopes.tolist() == [3.0, 12.0]
""",
    ),
    Entry(
        id="backward-inside-a-torchfunc-transform",
        title="`backward` inside a torch.func transform",
        category="RuntimeError",
        pattern=r"backward\(\) called inside a functorch transform",
        message=(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
        ),
        meaning=(
            "`backward()` writes into `.grad`, a change of state, and transforms take functions without such "
            "effects. So it is refused inside them."
        ),
        causes=(
            "A training step as a whole, `backward()` included, was put under `vmap` or `torch.func.grad`.",
        ),
        repair="Let the function return the loss, and let `torch.func.grad` compute and return the gradient.",
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch


def step(w):
    loss = w * w
    loss.backward()
    return w.grad


torch.vmap(step)(torch.tensor([1.0, 2.0]))
""",
        fixed_code="""\
import torch

step = torch.func.grad(lambda w: w * w)
slopes = torch.vmap(step)(torch.tensor([1.0, 2.0]))
assert slopes.tolist() == [2.0, 4.0]
""",
    ),
    Entry(
        id="a-tensor-from-outside-changed-inside-a-transform",
        title="A tensor from outside changed inside a transform",
        category="RuntimeError",
        pattern=(
            r"During a grad \(vjp, jvp, grad, etc\) transform, the function provided attempted "
            r"to call in-place operation"
        ),
        message=(
            "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
            "operation (aten::add_.Tensor) that would mutate a captured Tensor. This is not supported; "
            "please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as "
            "inputs."
        ),
        meaning=(
            "The function changes a tensor that was made outside of it. The transform would have to track "
            "that change beyond its end, so it is forbidden."
        ),
        causes=(
            "A running total, a counter or a buffer of a module is updated in the function, as batch norm "
            "does in training.",
            "A result is written into a tensor that was allocated before.",
        ),
        repair=(
            "Pass the tensor in and return the new value, with `has_aux=True`. For a module pass its buffers "
            "through `functional_call`."
        ),
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch

total = torch.tensor(0.0)


def f(x):
    total.add_(x)
    return x**2


torch.func.grad(f)(torch.tensor(3.0))
""",
        fixed_code="""\
import torch

total = torch.tensor(0.0)


def f(x, total):
    return x**2, total + x


slope, total = torch.func.grad(f, has_aux=True)(torch.tensor(3.0), total)
assert slope == 6 and total == 3
""",
    ),
    Entry(
        id="numpy-inside-a-torchfunc-transform",
        title="NumPy inside a torch.func transform",
        category="RuntimeError",
        pattern=r"Cannot access data pointer of Tensor that doesn't have storage",
        message="Cannot access data pointer of Tensor that doesn't have storage",
        meaning=(
            "Inside a transform, or while a graph is traced, a tensor is a wrapper without memory of its "
            "own, and NumPy wants the memory. `detach()` does not help: the result is a wrapper too."
        ),
        causes=(
            "The function calls `.numpy()` or `np.asarray`, or under `vmap` `.tolist()`.",
            "A compiled extension reads `data_ptr()`.",
        ),
        repair=(
            "Write that step with torch. Or put it into a custom op, or a Function with `setup_context` and "
            "a `vmap` method, whose `forward` gets plain tensors."
        ),
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import numpy as np
import torch


def f(x):
    return torch.from_numpy(np.square(x.detach().numpy())).sum()


torch.func.grad(f)(torch.tensor([1.0, 2.0]))
""",
        fixed_code="""\
import torch


def f(x):
    return torch.square(x).sum()


slope = torch.func.grad(f)(torch.tensor([1.0, 2.0]))
assert slope.tolist() == [2.0, 4.0]
""",
    ),
    Entry(
        id="a-function-without-setup_context-under-torchfunc",
        title="A Function without `setup_context` under torch.func",
        category="RuntimeError",
        pattern=(
            r"In order to use an autograd\.Function with functorch transforms \(vmap, grad, "
            r"jvp, jacrev, \.\.\.\), it must override the setup_context"
        ),
        message=(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), "
            "it must override the setup_context staticmethod. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        ),
        meaning=(
            "A transform runs `forward` on inner tensors and records on outer ones, so it needs the two "
            "tasks apart. Your `forward(ctx, ...)` does both."
        ),
        causes=(
            "The Function has the older form, `forward(ctx, ...)`.",
            "Torch's own Functions of that form are in the model: `checkpoint` with `use_reentrant=True`.",
            "A custom op without an autograd formula is differentiated by `torch.func`.",
        ),
        repair=(
            "Split it: `forward(x)` without `ctx`, and `setup_context(ctx, inputs, output)` that saves. "
            "Under `vmap` add `generate_vmap_rule = True` or a `vmap` method."
        ),
        chapter="24_higher_order",
        section="A custom Function under `torch.func`",
        broken_code="""\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


torch.func.grad(Cube.apply)(torch.tensor(2.0))
""",
        fixed_code="""\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


assert torch.func.grad(Cube.apply)(torch.tensor(2.0)) == 12
""",
    ),
    Entry(
        id="a-function-without-a-rule-for-vmap",
        title="A Function without a rule for vmap",
        category="RuntimeError",
        pattern=(
            r"You tried to vmap over \w+, but it (?:does not have vmap support|has both "
            r"generate_vmap_rule=True and an overridden vmap)"
        ),
        message=(
            "You tried to vmap over Cube, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        ),
        variants=(
            "You tried to vmap over Cube, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod "
            "to avoid ambiguity. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html",
        ),
        meaning=(
            "`vmap` does not look into a Function, so the Function has to say what it does with a batch. It "
            "says nothing, or two things at once."
        ),
        causes=(
            "`generate_vmap_rule = True` is missing, and there is no `vmap` method.",
            "`jacrev`, `jacfwd` or `hessian` uses `vmap` inside.",
            "Both are there: one of them has to go.",
        ),
        repair=(
            "Write `generate_vmap_rule = True` in the class if `forward` and `backward` are made of torch "
            "operations. Otherwise write a static method `vmap(info, in_dims, *args)`."
        ),
        chapter="24_higher_order",
        section="A custom Function under `torch.func`",
        broken_code="""\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


torch.vmap(torch.func.grad(Cube.apply))(torch.tensor([1.0, 2.0]))
""",
        fixed_code="""\
import torch


class Cube(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


slopes = torch.vmap(torch.func.grad(Cube.apply))(torch.tensor([1.0, 2.0]))
assert slopes.tolist() == [3.0, 12.0]
""",
    ),
    Entry(
        id="torchfuncjvp-wants-tuples",
        title="`torch.func.jvp` wants tuples",
        category="RuntimeError",
        pattern=(
            r"(?:jvp|vjp|linearize)\(f, [^)]*\): Expected (?:primals|tangents|cotangents)(?: "
            r"and tangents)? to (?:be a (?:non-empty )?tuple|have the same python structure)"
        ),
        message=(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call "
            "f(*primals)."
        ),
        variants=(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. "
            "For example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with "
            "structure TreeSpec(tuple, None, [*]) and tangents with structure TreeSpec(tuple, None, [*,\n"
            "  *])",
        ),
        meaning=(
            "`jvp(f, primals, tangents)` takes the arguments of `f` as a tuple and the directions as a tuple "
            "of the same form. A tensor without a tuple around it is refused, even for one argument."
        ),
        causes=(
            "`jvp(f, x, v)` was written for a function of one argument.",
            "`f` takes two arguments, and one direction was given.",
        ),
        repair="Write `jvp(f, (x,), (v,))`.",
        chapter="24_higher_order",
        section="Functions instead of graphs: `torch.func`",
        broken_code="""\
import torch
from torch.func import jvp

x, v = torch.tensor(3.0), torch.tensor(1.0)
jvp(torch.square, x, v)
""",
        fixed_code="""\
import torch
from torch.func import jvp

x, v = torch.tensor(3.0), torch.tensor(1.0)
value, slope = jvp(torch.square, (x,), (v,))
assert value == 9 and slope == 6
""",
    ),
    Entry(
        id="a-second-derivative-through-torchcompile",
        title="A second derivative through torch.compile",
        category="RuntimeError",
        pattern=r"torch\.compile with aot_autograd does not currently support double backward",
        message="torch.compile with aot_autograd does not currently support double backward",
        meaning=(
            "`torch.compile` makes the backward pass ahead of time, as one piece of compiled code, and makes "
            "no second one behind it. The compiled result can be differentiated once."
        ),
        causes=(
            "A gradient penalty, forces in a physics model, or a Hessian goes through a compiled model.",
            "`autograd.grad(..., create_graph=True)` stands inside the compiled function, and the result is "
            "trained on.",
            "`gradgradcheck` was called with a compiled function.",
        ),
        repair=(
            "Leave the part that is differentiated twice uncompiled. Or compute the inner gradient with "
            "`torch.func.grad` inside the compiled function, so that both passes are compiled together."
        ),
        chapter="24_higher_order",
        section="`torch.compile`",
        broken_code="""\
import torch


@torch.compile(backend="aot_eager")
def f(x):
    return x**3


x = torch.tensor(2.0, requires_grad=True)
y = f(x)
(slope,) = torch.autograd.grad(y, x, create_graph=True)
slope.backward()
""",
        fixed_code="""\
import torch


@torch.compile(backend="aot_eager")
def slope(x):
    return torch.func.grad(lambda x: x**3)(x)


x = torch.tensor(2.0, requires_grad=True)
slope(x).backward()
assert x.grad == 12
""",
        draws="y",
    ),
    Entry(
        id="backward-inside-a-compiled-function",
        title="`backward` inside a compiled function",
        category="Unsupported",
        pattern=(
            r"(?:Unsupported Tensor\.backward\(\) call|using `torch\.autograd\.grad` with "
            r"`torch\._dynamo\.config\.trace_autograd_ops=False`|Attempted to call function "
            r"marked as skipped Explanation: Dynamo developers have intentionally marked that "
            r"the function `(?:backward|grad)`)"
        ),
        message=(
            "Unsupported Tensor.backward() call\n"
            "  Explanation: Dynamo currently does not support tracing `Tensor.backward()` when "
            "trace_autograd_ops is off.\n"
            "  Hint: Set torch._dynamo.trace_autograd_ops=True\n"
            "\n"
            "  Developer debug context: call_method TensorVariable() backward None None None None\n"
            "\n"
            " For more details about this graph break, please visit: "
            "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0123.html\n"
            "\n"
            "from user code:\n"
            '   File "<broken code of backward-inside-a-compiled-function>", line 7, in step\n'
            "\n"
            "Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if you're "
            'reporting a bug to PyTorch). For even more developer context, set TORCH_LOGS="+dynamo"'
        ),
        variants=(
            "using `torch.autograd.grad` with `torch._dynamo.config.trace_autograd_ops=False`\n"
            "  Explanation: Attempted to call `torch.autograd.grad` with config "
            "`torch._dynamo.config.trace_autograd_ops` set to `False`.\n"
            "  Hint: Change `torch._dynamo.config.trace_autograd_ops` to `True`.\n",
        ),
        meaning=(
            "With `fullgraph=True` the whole function has to become one graph, and `torch.compile` does not "
            "trace the engine's calls by default. Without `fullgraph` it would break the graph at this line "
            "and go on."
        ),
        causes=(
            "A whole training step, `backward()` included, was compiled.",
            "The model calls `torch.autograd.grad` inside, for forces or a penalty.",
        ),
        repair=(
            "Compile the forward pass and the loss, and call `backward()` outside: its code is compiled as "
            "well. For gradients inside use `torch.func.grad`."
        ),
        chapter="24_higher_order",
        section="`torch.compile`",
        broken_code="""\
import torch


@torch.compile(backend="eager", fullgraph=True)
def step(w):
    loss = w * w
    loss.backward()
    return loss


w = torch.tensor(3.0, requires_grad=True)
step(w)
""",
        fixed_code="""\
import torch


@torch.compile(backend="eager", fullgraph=True)
def loss_of(w):
    return w * w


w = torch.tensor(3.0, requires_grad=True)
loss_of(w).backward()
assert w.grad == 6
""",
    ),
    Entry(
        id="a-compiled-backward-that-gave-its-buffers-away",
        title="A compiled backward that gave its buffers away",
        category="RuntimeError",
        pattern=r"This backward function was compiled with non-empty donated buffers",
        message=(
            "This backward function was compiled with non-empty donated buffers which requires "
            "create_graph=False and retain_graph=False. Please keep backward(create_graph=False, "
            "retain_graph=False) across all backward() function calls, or set "
            "torch._functorch.config.donated_buffer=False to disable donated buffer."
        ),
        meaning=(
            "A compiled backward reuses the memory of saved tensors for its own results, so it can run once. "
            "It was compiled that way in an earlier step, and now `retain_graph=True` or `create_graph=True` "
            "asks for a graph that can run again."
        ),
        causes=(
            "Two losses share a compiled trunk, and only in some steps the first one calls "
            "`backward(retain_graph=True)`.",
            "`create_graph=True` is set in some steps, as for a penalty every few steps.",
        ),
        repair=(
            "Add the losses and call `backward()` once. Otherwise set "
            "`torch._functorch.config.donated_buffer = False` before the first call."
        ),
        chapter="24_higher_order",
        section="`torch.compile`",
        broken_code="""\
import torch


@torch.compile(backend="aot_eager")
def trunk(x):
    return x.exp().sin()


x = torch.zeros(2, requires_grad=True)
trunk(x).sum().backward()  # compiled for one run
h = trunk(x)
h.sum().backward(retain_graph=True)
""",
        fixed_code="""\
import torch


@torch.compile(backend="aot_eager")
def trunk(x):
    return x.exp().sin()


x = torch.zeros(2, requires_grad=True)
trunk(x).sum().backward()
h = trunk(x)
loss = h.sum() + (2 * h).sum()
loss.backward()
assert torch.allclose(x.grad, 4 * torch.cos(torch.ones(2)))
""",
        draws="h",
    ),
    Entry(
        id="torchfuncgrad-called-like-torchautogradgrad",
        title="`torch.func.grad` called like `torch.autograd.grad`",
        category="TypeError",
        pattern=(
            r"grad\(\) (?:got an unexpected keyword argument "
            r"'(?:create_graph|retain_graph|allow_unused|grad_outputs|inputs|outputs)'|missing "
            r"1 required positional argument: 'inputs')"
        ),
        message="grad() got an unexpected keyword argument 'create_graph'",
        variants=("grad() missing 1 required positional argument: 'inputs'",),
        meaning=(
            "There are two functions called `grad`. `torch.func.grad(f)` takes a function and returns a "
            "function; `torch.autograd.grad(y, x)` takes tensors and returns gradients. The arguments belong "
            "to the other one."
        ),
        causes=(
            "`from torch.func import grad` stands where the code means `torch.autograd.grad`, or the other "
            "way round.",
            "`create_graph=True` was passed to `torch.func.grad`, which needs none: its result can be "
            "differentiated as it is.",
        ),
        repair="Write the module in front: `torch.func.grad(f)(x)` or `torch.autograd.grad(y, x)`.",
        chapter="24_higher_order",
        section="The two `grad`s",
        broken_code="""\
import torch
from torch.func import grad

x = torch.tensor(2.0)
grad(lambda x: x**3, create_graph=True)(x)
""",
        fixed_code="""\
import torch
from torch.func import grad

x = torch.tensor(2.0)
second = grad(grad(lambda x: x**3))(x)
assert second == 12
""",
    ),
)

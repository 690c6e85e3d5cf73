"""Gradients of gradients."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-backward-that-may-be-differentiated-only-once",
        title="A backward that may be differentiated only once",
        category="RuntimeError",
        pattern=r"trying to differentiate twice a function that was marked ?with @once_differentiable",
        message="trying to differentiate twice a function that was marked with @once_differentiable",
        variants=("trying to differentiate twice a function that was markedwith @once_differentiable",),
        meaning=(
            "The author of this Function marked its `backward` with `@once_differentiable`: it computes the "
            "gradient with means that autograd cannot follow. A second derivative would go through that "
            "`backward`, so torch stops. `autograd.grad` may say instead that a tensor appears to not have "
            "been used."
        ),
        causes=(
            "A gradient penalty, a Hessian or a meta-learning step goes through a CUDA or NumPy extension "
            "that gives first gradients only.",
            "`create_graph=True` is set although only first gradients are wanted.",
            "You copied the decorator, and your `backward` is made of torch operations.",
        ),
        repair=(
            "Leave the decorator out if `backward` uses torch operations on saved tensors. Otherwise write "
            "the gradient as a Function with a `backward` of its own, or replace the operation by one that "
            "can be differentiated twice."
        ),
        chapter="24_higher_order",
        section="`@once_differentiable`",
        broken_code="""\
import torch
from torch.autograd.function import once_differentiable


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


x = torch.tensor(2.0, requires_grad=True)
y = Cube.apply(x) ** 2
(slope,) = torch.autograd.grad(y, x, create_graph=True)
slope.backward()
""",
        fixed_code="""\
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


x = torch.tensor(2.0, requires_grad=True)
y = Cube.apply(x) ** 2  # x**6
(slope,) = torch.autograd.grad(y, x, create_graph=True)
(second,) = torch.autograd.grad(slope, x)
assert second == 30 * 2**4
""",
        draws="slope",
        since=(
            "Older versions write `markedwith` without the space. Where nothing else in the graph requires "
            "grad, the error is the one about a tensor that `does not require grad`."
        ),
    ),
    Entry(
        id="a-second-derivative-that-torch-does-not-have",
        title="A second derivative that torch does not have",
        category="RuntimeError",
        pattern=r"derivative for (?:aten::)?\w+ is not implemented",
        message=(
            "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented"
        ),
        variants=(
            "derivative for aten::grid_sampler_2d_backward is not implemented",
            "derivative for grid_sampler_2d_backward is not implemented",
            "derivative for aten::bincount is not implemented",
        ),
        meaning=(
            "Torch has a kernel for this operation and no derivative of it. The name tells which: with "
            "`_backward` at its end it is the gradient of an operation that would have to be differentiated "
            "a second time."
        ),
        causes=(
            "A second derivative, as of a gradient penalty, goes through attention, `ctc_loss` or another "
            "operation whose backward is one fused kernel.",
            "The operation has no derivative at all, such as `bincount` with weights, or `heaviside`.",
        ),
        repair=(
            "Use another way to the same result: for attention the `MATH` backend of `sdpa_kernel`, for "
            "others a formula made of common operations. Or write a Function whose `backward` is made of "
            "such operations."
        ),
        chapter="24_higher_order",
        section="Operations of torch",
        broken_code="""\
import torch
import torch.nn.functional as F

q = torch.ones(1, 1, 2, 4, requires_grad=True)
out = F.scaled_dot_product_attention(q, q, q)
(slope,) = torch.autograd.grad(out.sum(), q, create_graph=True)
slope.square().sum().backward()
""",
        fixed_code="""\
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

q = torch.ones(1, 1, 2, 4, requires_grad=True)
with sdpa_kernel(SDPBackend.MATH):
    out = F.scaled_dot_product_attention(q, q, q)
(slope,) = torch.autograd.grad(out.sum(), q, create_graph=True)
slope.square().sum().backward()
assert q.grad is not None
""",
        draws="slope",
        since=(
            "Which operations lack a second derivative changes: `grid_sample`, the subject of many old "
            "threads, has one in torch 2.13."
        ),
    ),
    Entry(
        id="forward-mode-and-a-function-without-jvp",
        title="Forward mode and a Function without jvp",
        category="NotImplementedError",
        pattern=(
            r"You must implement the jvp function for custom autograd\.Function to use it with "
            r"forward mode AD"
        ),
        message=(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        ),
        meaning=(
            "Forward mode carries tangents along with the values, and a Function has to say how: in a static "
            "method `jvp`. Its `backward` is of no use here."
        ),
        causes=(
            "`torch.func.jvp`, `jacfwd` or `hessian` goes through your Function: `hessian` is forward over "
            "reverse mode.",
            "`gradcheck` was called with `check_forward_ad=True`.",
        ),
        repair=(
            "Write `jvp(ctx, *tangents)`, and save what it needs with `ctx.save_for_forward`. Or stay with "
            "reverse mode: `jacrev(jacrev(f))` also gives a Hessian."
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


with torch.autograd.forward_ad.dual_level():
    x = torch.autograd.forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    y = Cube.apply(x)
""",
        fixed_code="""\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x**3

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return tangent * 3 * x**2


with torch.autograd.forward_ad.dual_level():
    x = torch.autograd.forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    y = Cube.apply(x)
    assert torch.autograd.forward_ad.unpack_dual(y).tangent == 12
""",
    ),
    Entry(
        id="forward-mode-and-an-operation-that-does-not-know-it",
        title="Forward mode and an operation that does not know it",
        category="NotImplementedError",
        pattern=r"Trying to use forward AD with \w+ that does not support it",
        message=(
            "Trying to use forward AD with _cdist_forward that does not support it because it has not been "
            "implemented yet.\n"
            "Please file an issue to PyTorch at "
            "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can "
            "prioritize its implementation or submit a PR adding the implementation to derivatives.yaml"
        ),
        variants=(
            "Trying to use forward AD with _scaled_dot_product_flash_attention_for_cpu that does not "
            "support it because it has not been implemented yet.\n"
            "Please file an issue to PyTorch at "
            "https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we can "
            "prioritize its implementation or submit a PR adding the implementation to derivatives.yaml",
        ),
        meaning=(
            "The operation has a backward formula and no formula for forward mode. The name in the message "
            "is that of the inner operation: `_cdist_forward` stands for `torch.cdist`."
        ),
        causes=(
            "`torch.func.jvp`, `jacfwd` or `hessian` goes through `cdist`, `ctc_loss`, an LSTM or fused "
            "attention.",
            "A dual tensor of `torch.autograd.forward_ad` reached such an operation.",
        ),
        repair=(
            "Use reverse mode: `vjp`, `jacrev`, `autograd.grad`. Or write the operation with others that "
            "know forward mode."
        ),
        chapter="24_higher_order",
        section="Functions instead of graphs: `torch.func`",
        broken_code="""\
import torch
from torch.func import jacfwd

x = torch.tensor([[3.0, 4.0]])
origin = torch.zeros(1, 2)
jacfwd(lambda x: torch.cdist(x, origin))(x)
""",
        fixed_code="""\
import torch
from torch.func import jacrev

x = torch.tensor([[3.0, 4.0]])
origin = torch.zeros(1, 2)
jacobian = jacrev(lambda x: torch.cdist(x, origin))(x)
assert torch.allclose(jacobian.flatten(), torch.tensor([0.6, 0.8]))
""",
    ),
    Entry(
        id="a-dual-tensor-outside-of-dual_level",
        title="A dual tensor outside of dual_level",
        category="RuntimeError",
        pattern=r"Trying to create a dual Tensor for forward AD but no level exists",
        message=(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        ),
        meaning=(
            "Tangents live in a level that is opened with `dual_level()` and dropped when it is left. There "
            "was no level to put this one into."
        ),
        causes=(
            "`make_dual` is called without `with forward_ad.dual_level():`.",
            "The level was left already, because the rest of the code is not indented.",
        ),
        repair=(
            "Put the whole computation into the `with` block, and read the tangent there. `torch.func.jvp` "
            "does all of it in one call."
        ),
        chapter="24_higher_order",
        section="Functions instead of graphs: `torch.func`",
        broken_code="""\
import torch
import torch.autograd.forward_ad as fwAD

x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
""",
        fixed_code="""\
import torch
import torch.autograd.forward_ad as fwAD

with fwAD.dual_level():
    x = fwAD.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    tangent = fwAD.unpack_dual(x * x).tangent
assert tangent == 6
""",
    ),
    Entry(
        id="forward-mode-of-whole-numbers",
        title="Forward mode of whole numbers",
        category="ValueError",
        pattern=r"Expected (?:primal|tangent) to be floating point or complex, but got",
        message="Expected primal to be floating point or complex, but got: torch.int64",
        meaning=(
            "A tangent is a direction in which the input moves by a small amount, and whole numbers do not. "
            "Only floating point and complex tensors have tangents."
        ),
        causes=(
            "The input was written without decimal points: `torch.tensor([1, 2])`.",
            "`jacfwd` or `jvp` was asked to differentiate with respect to indices or a mask.",
        ),
        repair=(
            "Make the input floating point. Name the differentiable argument with `argnums`, and bind "
            "indices with a `lambda`."
        ),
        chapter="24_higher_order",
        section="Functions instead of graphs: `torch.func`",
        broken_code="""\
import torch
from torch.func import jacfwd

jacfwd(torch.square)(torch.tensor(3))
""",
        fixed_code="""\
import torch
from torch.func import jacfwd

assert jacfwd(torch.square)(torch.tensor(3.0)) == 6
""",
    ),
    Entry(
        id="a-tangent-of-another-size",
        title="A tangent of another size",
        category="RuntimeError",
        pattern=(
            r"Trying to set a forward gradient that has a different size than that of the "
            r"original Tensor"
        ),
        message=(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            "this is not supported. Tensor is of size [2] while the given forward gradient is of size []."
        ),
        meaning=(
            "A tangent holds one number for each element of its tensor. The one given has another shape, and "
            "forward mode does not broadcast."
        ),
        causes=(
            "One number is given as the direction for a whole tensor.",
            "The tangent was made from the output, as one makes a cotangent for reverse mode.",
        ),
        repair=(
            "Make the tangent with `torch.ones_like(x)`, `torch.randn_like(x)` or a one-hot tensor of the "
            "shape of `x`."
        ),
        chapter="24_higher_order",
        section="Functions instead of graphs: `torch.func`",
        broken_code="""\
import torch
from torch.func import jvp

x = torch.tensor([1.0, 3.0])
jvp(torch.square, (x,), (torch.tensor(1.0),))
""",
        fixed_code="""\
import torch
from torch.func import jvp

x = torch.tensor([1.0, 3.0])
_, tangent = jvp(torch.square, (x,), (torch.ones_like(x),))
assert tangent.tolist() == [2.0, 6.0]
""",
    ),
    Entry(
        id="a-hessian-of-a-function-with-several-outputs",
        title="A Hessian of a function with several outputs",
        category="RuntimeError",
        pattern=(
            r"(?:The function given to (?:hessian|vhp|hvp) should return a single Tensor|The "
            r"Tensor returned by the function given to (?:hessian|vhp|hvp) should contain a "
            r"single element)"
        ),
        message="The Tensor returned by the function given to hessian should contain a single element",
        variants=(
            "The function given to hessian should return a single Tensor",
            "The Tensor returned by the function given to hvp should contain a single element",
        ),
        meaning=(
            "`torch.autograd.functional.hessian`, `vhp` and `hvp` are for functions of one number, such as a "
            "loss. The function returned more than one."
        ),
        causes=(
            "The function returns a value for each sample: the mean or the sum is missing.",
            "The function returns a tuple, such as the loss and the prediction.",
        ),
        repair=(
            "Reduce to one number. For the Hessian of each output use `torch.func.hessian`, which takes "
            "outputs of any shape."
        ),
        chapter="24_higher_order",
        section="A Hessian's product without the Hessian",
        broken_code="""\
import torch
from torch.autograd.functional import hessian

x = torch.tensor([1.0, 2.0])
hessian(lambda x: x**3, x)
""",
        fixed_code="""\
import torch
from torch.autograd.functional import hessian

x = torch.tensor([1.0, 2.0])
h = hessian(lambda x: (x**3).sum(), x)
assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]
""",
    ),
    Entry(
        id="autogradfunctional-wants-tensors-or-tuples-of-them",
        title="autograd.functional wants tensors or tuples of them",
        category="TypeError",
        pattern=(
            r"The (?:inputs|outputs of the user-provided function|v|grad_outputs) given to \w+ "
            r"must be either a Tensor or a tuple of Tensors"
        ),
        message=(
            "The inputs given to jacobian must be either a Tensor or a tuple of Tensors but the given inputs "
            "has type <class 'list'>."
        ),
        variants=(
            "The outputs of the user-provided function given to jacobian must be either a Tensor or a tuple "
            "of Tensors but the given outputs of the user-provided function has type <class 'list'>.",
        ),
        meaning=(
            "The functions of `torch.autograd.functional` take one tensor or a tuple of tensors, and the "
            "function that they call has to return the same. Lists, numbers, arrays and dicts are refused."
        ),
        causes=(
            "The inputs stand in a list, for example `list(model.parameters())`.",
            "The function returns a list, a NumPy array or a Python number.",
            "A plain number was given as the input.",
        ),
        repair=(
            "Turn lists into tuples and numbers into tensors. For dicts of parameters use `torch.func`, "
            "which takes nested structures."
        ),
        chapter="24_higher_order",
        section="What it costs",
        broken_code="""\
import torch
from torch.autograd.functional import jacobian

x = torch.tensor([1.0, 2.0])
jacobian(lambda x: x**2, [x])
""",
        fixed_code="""\
import torch
from torch.autograd.functional import jacobian

x = torch.tensor([1.0, 2.0])
(j,) = jacobian(lambda x: x**2, (x,))
assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
""",
    ),
    Entry(
        id="autogradfunctional-needs-the-vector-v",
        title="autograd.functional needs the vector v",
        category="RuntimeError",
        pattern=r"The vector v can only be None if",
        message=(
            "The vector v can only be None if the user-provided function returns a single Tensor with a "
            "single element."
        ),
        variants=(
            "The vector v can only be None if the input to the user-provided function is a single Tensor "
            "with a single element.",
        ),
        meaning=(
            "A vector-Jacobian product needs a vector of the output's shape, a Jacobian-vector product one "
            "of the input's. Only where that is one number does torch take 1 by itself."
        ),
        causes=(
            "`vjp(f, x)` was called without `v` for a function with several outputs.",
            "`jvp(f, x)` was called without `v` for an input of several elements.",
            "The whole Jacobian was meant.",
        ),
        repair=(
            "Pass `v`: the shape of the output for `vjp`, of the input for `jvp` and `hvp`. For the whole "
            "matrix call `jacobian`."
        ),
        chapter="11_first_gradient",
        section="The chain rule, one vector at a time",
        broken_code="""\
import torch
from torch.autograd.functional import vjp

x = torch.tensor([1.0, 2.0])
vjp(torch.square, x)
""",
        fixed_code="""\
import torch
from torch.autograd.functional import vjp

x = torch.tensor([1.0, 2.0])
_, product = vjp(torch.square, x, torch.ones(2))
assert product.tolist() == [2.0, 4.0]
""",
    ),
    Entry(
        id="autogradfunctional-and-a-vector-v-of-another-size",
        title="autograd.functional and a vector v of another size",
        category="RuntimeError",
        pattern=r"(?:Entry \d+ in )?v has invalid size: should be",
        message="v has invalid size: should be torch.Size([3]) but got torch.Size([2]).",
        meaning=(
            "The vector of a product with the Jacobian has the shape of the output (`vjp`) or of the input "
            "(`jvp`, `hvp`). The message gives the shape that is needed and the one that came."
        ),
        causes=(
            "`vjp` and `jvp` were confused: one takes a vector like the output, the other one like the "
            "input.",
            "A batch dimension is missing in `v`.",
        ),
        repair="Make `v` with `torch.ones_like(output)` for `vjp` and `torch.ones_like(x)` for `jvp`.",
        chapter="11_first_gradient",
        section="The chain rule, one vector at a time",
        broken_code="""\
import torch
from torch.autograd.functional import vjp


def f(x):
    return torch.stack([x.sum(), x.prod(), x.max()])


x = torch.tensor([2.0, 3.0])
vjp(f, x, torch.ones_like(x))
""",
        fixed_code="""\
import torch
from torch.autograd.functional import vjp


def f(x):
    return torch.stack([x.sum(), x.prod(), x.max()])


x = torch.tensor([2.0, 3.0])
_, product = vjp(f, x, torch.ones(3))  # the shape of the output
assert product.tolist() == [1.0 + 3.0, 1.0 + 2.0 + 1.0]
""",
    ),
    Entry(
        id="autogradfunctional-with-stricttrue-found-no-dependence",
        title="autograd.functional with strict=True found no dependence",
        category="RuntimeError",
        pattern=(
            r"(?:Output \d+ of the user-provided function (?:does not require gradients|is "
            r"independent of input)|The (?:output|jacobian|hessian) of the user-provided "
            r"function (?:is|with respect to input \d+ is) independent|While computing the "
            r"hessian, found that the jacobian of the user-provided function|The gradient with "
            r"respect to (?:the )?input)"
        ),
        message=(
            "While computing the hessian, found that the jacobian of the user-provided function with respect "
            "to input 0 is independent of the input. This is not allowed in strict mode. You should ensure "
            "that your function is twice differentiable and that the jacobian depends on the inputs (this "
            "would be violated by a linear function for example)."
        ),
        variants=(
            "Output 0 of the user-provided function does not require gradients. The outputs must be "
            "computed in a differentiable manner from the input when running in strict mode.",
            "Output 0 of the user-provided function is independent of input 0. This is not allowed in "
            "strict mode.",
        ),
        meaning=(
            "With `strict=True` a derivative that is zero because nothing depends on the input counts as an "
            "error. Without it torch would return zeros."
        ),
        causes=(
            "The function detaches its input, or goes through NumPy, `.item()` or a rounding.",
            "The function is linear, so its gradient does not depend on the input and its Hessian is zero.",
            "One of several inputs is not used.",
        ),
        repair=(
            "If the zeros are right, as for a linear function, leave `strict` out. Otherwise find what cuts "
            "the graph inside the function."
        ),
        chapter="24_higher_order",
        section="`no_grad` around it, or inside",
        broken_code="""\
import torch
from torch.autograd.functional import hessian

x = torch.tensor([1.0, 2.0])
hessian(lambda x: 3 * x.sum(), x, strict=True)
""",
        fixed_code="""\
import torch
from torch.autograd.functional import hessian

x = torch.tensor([1.0, 2.0])
h = hessian(lambda x: 3 * x.sum(), x)  # linear: zeros are right
assert h.tolist() == [[0.0, 0.0], [0.0, 0.0]]
""",
    ),
)

"""gradcheck."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="gradcheck-the-analytical-and-the-numerical-jacobian-differ",
        title="gradcheck: the analytical and the numerical Jacobian differ",
        category="GradcheckError",
        pattern=(
            r"(?:While considering the (?:real|imaginary) part of complex (?:inputs|outputs) "
            r"only, )?Jacobian (?:computed with forward mode )?mismatch for output \d+ with "
            r"respect to input \d+"
        ),
        message=(
            "Jacobian mismatch for output 0 with respect to input 0,\n"
            "numerical:tensor([[ 3.0000,  0.0000],\n"
            "        [ 0.0000, 12.0000]], dtype=torch.float64)\n"
            "analytical:tensor([[2., 0.],\n"
            "        [0., 8.]], dtype=torch.float64)"
        ),
        variants=(
            "While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0 "
            "with respect to input 0,\n"
            "numerical:tensor([[4.0000+2.0000j]], dtype=torch.complex128)\n"
            "analytical:tensor([[-4.+2.j]], dtype=torch.complex128)\n",
            "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,\n"
            "numerical:tensor([[2.0000]], dtype=torch.float64)\n"
            "analytical:tensor([[1.]], dtype=torch.float64)\n",
        ),
        meaning=(
            "`gradcheck` computed each slope twice: once from your `backward`, once from small steps of the "
            "input, and the two disagree. Both matrices are printed, one row for each input element. "
            "`gradgradcheck` gives the same message about the second derivative."
        ),
        causes=(
            "The formula in `backward` is wrong: compare the two matrices entry by entry for the factor or "
            "the sign.",
            "`backward` returns `None`, or reads a detached value, for an input that matters: the "
            "analytical matrix is zero.",
            "The test point sits on a kink, such as `relu` at 0, or the function is random: no step is "
            "repeatable.",
            "Inputs, or numbers inside `forward`, are single precision: the numerical slopes are off by "
            "percents.",
        ),
        repair=(
            "Read which entries differ and mend `backward` there. Test in double precision, at points away "
            "from kinks, with the randomness seeded inside the function."
        ),
        chapter="32_gradcheck",
        section="Read the two matrices",
        broken_code="""\
import torch
from torch.autograd import gradcheck


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x**2


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
y = Cube.apply(x)
gradcheck(Cube.apply, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2  # the derivative of x**3


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(Cube.apply, x)
""",
        draws="y",
    ),
    Entry(
        id="gradcheck-an-input-is-not-double-precision",
        title="gradcheck: an input is not double precision",
        category="UserWarning",
        pattern=r"Input #\d+ requires gradient and is not a double precision floating point or complex",
        message=(
            "Input #0 requires gradient and is not a double precision floating point or complex. This check "
            "will likely fail if all the inputs are not of double precision floating point or complex."
        ),
        meaning=(
            "`gradcheck` takes steps of 1e-6, and in single precision such a step drowns in rounding. The "
            "check goes on, and most often fails although the formula is right."
        ),
        causes=(
            "The test input was made without `dtype=torch.float64`.",
            "The module under test holds `float32` parameters.",
        ),
        repair=(
            "Make the inputs double precision, and call `module.double()` on a module. Where a kernel takes "
            "only `float32`, loosen `eps` and `atol` and know that the check is a weak one."
        ),
        chapter="32_gradcheck",
        section="Why double precision",
        broken_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, 2.0], requires_grad=True)
gradcheck(torch.exp, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(torch.exp, x)
""",
    ),
    Entry(
        id="gradcheck-backward-is-not-reentrant",
        title="gradcheck: backward is not reentrant",
        category="GradcheckError",
        pattern=r"Backward is not reentrant",
        message=(
            "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
            "times gives different values, although analytical gradient matches numerical gradient.The "
            "tolerance for nondeterminism was 0.0.\n"
            "\n"
            "NOTE: If your op relies on non-deterministic operations i.e., it is listed here:\n"
            "https://pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html\n"
            "this failure might be expected.\n"
            "\n"
            "If you are adding a new operator, please file an issue and then use one of the\n"
            "workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.\n"
            "If the test\n"
            "- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck\n"
            "  with `nondet_tol=<tol>` as a keyword argument.\n"
            "- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test\n"
            "  to have `gradcheck_nondet_tol=<tol>`.\n"
            "- is a Module test (e.g., in common_nn.py), then modify the corresponding\n"
            "  module_test entry to have `gradcheck_nondet_tol=<tol>`"
        ),
        meaning=(
            "The slopes are right within tolerance, but two runs of `backward` with the same input gave "
            "different values. `gradcheck` runs it twice for this and allows no difference unless you pass "
            "`nondet_tol`."
        ),
        causes=(
            "`backward` draws random numbers, such as a dropout mask that `forward` did not save.",
            "`backward` keeps state between calls, or changes a saved tensor in place.",
            "The operation adds in an order that varies, as some CUDA kernels do.",
        ),
        repair=(
            "Save in `forward` what was drawn, and leave saved tensors unchanged. For a kernel that adds in "
            "a varying order pass a small `nondet_tol`."
        ),
        chapter="32_gradcheck",
        section="Backward is not reentrant",
        broken_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g + 1e-9 * torch.rand_like(g)


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
gradcheck(Double.apply, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(Double.apply, x)
""",
    ),
    Entry(
        id="gradcheck-no-input-requires-grad",
        title="gradcheck: no input requires grad",
        category="ValueError",
        pattern=r"gradcheck expects (?:at least one|all) input tensors? to require gradient",
        message=(
            "gradcheck expects at least one input tensor to require gradient, but none of them have "
            "requires_grad=True."
        ),
        meaning=(
            "`gradcheck` checks slopes with respect to inputs that require grad, and it found none. It "
            "cannot guess which inputs you mean."
        ),
        causes=(
            "The test tensors were made without `requires_grad=True`.",
            "Only parameters of a module require grad, and they were not passed as inputs.",
            "The inputs stand inside a list or a dict, where `gradcheck` does not look.",
        ),
        repair=(
            "Give each input whose slope you want `requires_grad=True`, and pass tensors as a flat tuple. To "
            "check parameters, pass them as inputs of a small function around the module."
        ),
        chapter="32_gradcheck",
        section="Two tables of slopes",
        broken_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, 2.0], dtype=torch.float64)
gradcheck(torch.exp, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(torch.exp, x)
""",
    ),
    Entry(
        id="gradcheck-an-input-shares-memory-with-itself",
        title="gradcheck: an input shares memory with itself",
        category="RuntimeError",
        pattern=r"The \d+th input has a dimension with stride 0",
        message=(
            "The 0th input has a dimension with stride 0. gradcheck only supports inputs that are "
            "non-overlapping to be able to compute the numerical gradients correctly. You should call "
            ".contiguous on the input before passing it to gradcheck."
        ),
        meaning=(
            "Several elements of this input are one number in memory, as after `expand`. A step in one of "
            "them moves the others too, so a numerical slope would be a sum of slopes."
        ),
        causes=(
            "The input was made by `expand`, `broadcast_to` or `expand_as`.",
            "A bias or a mask was broadcast by hand before the check.",
        ),
        repair=(
            "Call `contiguous()` or `clone()` on the input and make the result a leaf that requires grad. To "
            "test that the operation takes expanded inputs, expand inside the checked function."
        ),
        chapter="32_gradcheck",
        section="Memory: non-contiguous and shared",
        broken_code="""\
import torch
from torch.autograd import gradcheck

x = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
gradcheck(torch.exp, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck

x = torch.ones(1, dtype=torch.float64, requires_grad=True)
assert gradcheck(lambda x: torch.exp(x.expand(3)), x)  # expanded inside
""",
    ),
    Entry(
        id="gradcheck-the-output-has-no-graph-but-depends-on-the-input",
        title="gradcheck: the output has no graph but depends on the input",
        category="GradcheckError",
        pattern=r"Numerical gradient for function expected to be zero",
        message="Numerical gradient for function expected to be zero",
        meaning=(
            "No output requires grad, so autograd says that every slope is zero. The steps of the input say "
            "otherwise: the output moved."
        ),
        causes=(
            "The function detaches: `detach()`, `.data`, `no_grad()` or `torch.tensor(...)` inside it.",
            "A Function's `forward` marked the output as non-differentiable, but it varies with the input.",
            "The output went through NumPy and back.",
        ),
        repair="Remove what cuts the graph, or write a Function around the part that autograd cannot follow.",
        chapter="32_gradcheck",
        section="Name the cause",
        broken_code="""\
import torch
from torch.autograd import gradcheck


def f(x):
    return x.detach().exp()


x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
y = f(x)
gradcheck(f, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck


def f(x):
    return x.exp()


x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
assert gradcheck(f, x)
""",
    ),
    Entry(
        id="gradcheck-the-functions-output-changes-its-shape",
        title="gradcheck: the function's output changes its shape",
        category="AssertionError",
        pattern=r"Expected `func` to return outputs with the same (?:shape|dtype) when inputs are perturbed",
        message=(
            "Expected `func` to return outputs with the same shape when inputs are perturbed on index (1,) "
            "by 1e-06, but got: shapes torch.Size([1]) and torch.Size([2])."
        ),
        meaning=(
            "`gradcheck` moved one input element by 1e-6 and the output came back with another shape or "
            "dtype. A slope needs two outputs that can be subtracted."
        ),
        causes=(
            "The function selects by a condition, such as `x[x > 0]`, and the test point sits on its border.",
            "The function is random and returns a varying number of elements.",
        ),
        repair=(
            "Move the test point away from the border. Or test a function whose shape is fixed: "
            "`torch.where` or a multiplication by the mask."
        ),
        chapter="32_gradcheck",
        section="Kinks",
        broken_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, 0.0], dtype=torch.float64, requires_grad=True)
gradcheck(lambda x: x[x > 0], x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck

x = torch.tensor([1.0, -1.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(lambda x: x[x > 0], x)
""",
    ),
    Entry(
        id="gradcheck-backward-ignores-the-incoming-gradient",
        title="gradcheck: backward ignores the incoming gradient",
        category="GradcheckError",
        pattern=r"backward not multiplied by grad_output",
        message="backward not multiplied by grad_output",
        meaning=(
            "`gradcheck` sent a gradient of zeros into `backward` and got something else than zeros. A "
            "vector-Jacobian product of a zero vector is zero, so the incoming gradient is not used as a "
            "factor."
        ),
        causes=(
            "`backward` returns the local derivative alone, without the gradient that came in.",
            "`backward` adds a constant, or builds its result with `ones_like(g)`.",
        ),
        repair=(
            "Multiply the local derivative by the gradient that arrives. Such a Function is right only at "
            "the end of a computation, where that gradient happens to be 1."
        ),
        chapter="32_gradcheck",
        section="Name the cause",
        broken_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return torch.full_like(g, 2)


x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
gradcheck(Double.apply, x)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
assert gradcheck(Double.apply, x)
""",
    ),
    Entry(
        id="gradcheck-backward-cannot-run-on-a-batch-of-gradients",
        title="gradcheck: backward cannot run on a batch of gradients",
        category="GradcheckError",
        pattern=r"While computing batched gradients, got:",
        message=(
            "While computing batched gradients, got: Batching rule not implemented for aten::item. We could "
            "not generate a fallback.\n"
            "\n"
            "gradcheck or gradgradcheck failed while testing batched gradient computation.\n"
            "This could have been invoked in a number of ways (via a test that calls\n"
            "gradcheck/gradgradcheck directly or via an autogenerated test).\n"
            "\n"
            "If you are adding a new operator, please file an issue and then use one of the\n"
            "workarounds. The workaround depends on how your test invokes gradcheck/gradgradcheck.\n"
            "If the test\n"
            "- manually invokes gradcheck/gradgradcheck, then call gradcheck/gradgradcheck\n"
            "  with `check_batched_grad=False` as a keyword argument.\n"
            "- is OpInfo-based (e.g., in test_ops_gradients.py), then modify the OpInfo for the test\n"
            "  to have `check_batched_grad=False` and/or `check_batched_gradgrad=False`.\n"
            "\n"
            "If you're modifying an existing operator that supports batched grad computation,\n"
            "or wish to make a new operator work with batched grad computation, please read\n"
            "the following.\n"
            "\n"
            "To compute batched grads (e.g., jacobians, hessians), we vmap over the backward\n"
            "computation. The most common failure case is if there is a 'vmap-incompatible\n"
            "operation' in the backward pass. Please see\n"
            "NOTE: [How to write vmap-compatible backward formulas]\n"
            "in the codebase for an explanation of how to fix this."
        ),
        meaning=(
            "With `check_batched_grad=True` the backward pass is run once under `vmap`, for all rows of the "
            "Jacobian together. The message goes on with what `vmap` could not do in `backward`."
        ),
        causes=(
            "`backward` calls `.item()`, `.tolist()` or `float(...)` on a gradient.",
            "`backward` branches on a gradient's value, or works in place on a tensor of its own.",
            "`backward` goes through NumPy.",
        ),
        repair=(
            "Write `backward` with tensor operations alone. If you never compute Jacobians with "
            "`is_grads_batched=True`, `vectorize=True` or `torch.func`, leave the check off: it is off by "
            "default."
        ),
        chapter="32_gradcheck",
        section="What a pass leaves open",
        broken_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return torch.tensor([2 * value.item() for value in g], dtype=g.dtype)


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
gradcheck(Double.apply, x, check_batched_grad=True)
""",
        fixed_code="""\
import torch
from torch.autograd import gradcheck


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
assert gradcheck(Double.apply, x, check_batched_grad=True)
""",
    ),
)

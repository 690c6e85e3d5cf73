"""Your own Function."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="an-incorrect-number-of-gradients",
        title="An incorrect number of gradients",
        category="RuntimeError",
        pattern=r"function (?!GeneratedBackwardFor_)\S+ returned an incorrect number of gradients",
        message="function PowerBackward returned an incorrect number of gradients (expected 2, got 1)",
        variants=(
            "function CheckpointFunctionBackward returned an incorrect number of gradients (expected 3, "
            "got 4)",
        ),
        meaning=(
            "`backward` returns one value for each argument of `apply`, in the same order: also for "
            "numbers and options, whose value is `None`. Only extra `None`s at the end are forgiven."
        ),
        causes=(
            "An argument was added to `forward`, and no `None` for it to `backward`.",
            "`forward` takes `*tensors`, and `backward` returns a fixed number.",
            "`backward` returns a list: only a tuple is taken for several gradients.",
            "A value was returned for `ctx`, which is no argument of `apply`.",
        ),
        repair=(
            "Count the arguments in the call of `apply` and return as many values, separated by commas: "
            "`return g * s, None`. For `*tensors`, return `(None, *grads)`."
        ),
        chapter="31_custom_function",
        section="Arguments, and a function around `apply`",
        broken_code="""\
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1)


x = torch.tensor(2.0, requires_grad=True)
y = Power.apply(x, 3)
y.backward()
""",
        fixed_code="""\
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


x = torch.tensor(2.0, requires_grad=True)
y = Power.apply(x, 3)
y.backward()
assert x.grad == 12
""",
        draws="y",
    ),
    Entry(
        id="a-gradient-of-the-wrong-shape",
        title="A gradient of the wrong shape",
        category="RuntimeError",
        pattern=(
            r"(Function \S+ returned an )?invalid gradient at index \d+ - (got \[[^\]]*\] but )?expected "
            r"shape"
        ),
        message=(
            "Function LinearBackward returned an invalid gradient at index 1 - got [3, 2] but expected "
            "shape compatible with [2, 3]"
        ),
        variants=(
            "Function FBackward returned an invalid gradient at index 1 - got [5] but expected shape "
            "compatible with [4]",
            "Function SaccadeAutoGradFnBackward returned an invalid gradient at index 0 - expected shape "
            "[16, 3] but got [48, 1, 32, 32]",
        ),
        meaning=(
            "The gradient for an input must have that input's shape. Index 1 is the second argument of "
            "`apply`. A gradient that is larger only by broadcasting is summed for you, and then no error "
            "comes."
        ),
        causes=(
            "A matrix product in `backward` is transposed, or its factors are swapped.",
            "The gradients are returned in another order than the arguments.",
            "An input was reshaped, padded or sliced in `forward`, and `backward` does not undo it.",
            "A Function for one sample was called with a batch.",
        ),
        repair=(
            "Print the shapes of inputs and returned gradients side by side, and fix the formula rather "
            "than the shape: a reshape can hide a wrong gradient. Then run `gradcheck`."
        ),
        chapter="31_custom_function",
        section='"returned an invalid gradient at index 1"',
        broken_code="""\
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, x.T @ g


x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
w = torch.ones(2, 3, requires_grad=True)
y = Linear.apply(x, w)
y.sum().backward()
""",
        fixed_code="""\
import torch


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w.T

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return g @ w, g.T @ x


x = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
w = torch.ones(2, 3, requires_grad=True)
y = Linear.apply(x, w)
y.sum().backward()
assert w.grad.tolist() == [[1, 2, 3], [1, 2, 3]]
""",
        draws="y",
    ),
    Entry(
        id="a-gradient-on-another-device",
        title="A gradient on another device",
        category="RuntimeError",
        pattern=r"(Function \S+ returned an )?invalid gradient at index \d+ - expected (device|type)",
        message=(
            "Function RampBackward returned an invalid gradient at index 0 - expected device meta but got cpu"
        ),
        variants=(
            "invalid gradient at index 0 - expected device cpu but got meta",
            "Function MulBackward0 returned an invalid gradient at index 0 - expected device cuda:0 but "
            "got cuda:1",
            "Function SubBackward0 returned an invalid gradient at index 0 - expected type "
            "torch.FloatTensor but got torch.DoubleTensor",
        ),
        meaning=(
            "A gradient must lie on the device of the tensor it belongs to. If no Function is named, it is "
            "the starting gradient that lies elsewhere."
        ),
        causes=(
            "`backward` makes a tensor without `device=`, so it lands on the CPU.",
            "`forward` moves its data to another device, and `backward` returns the gradient from there.",
            "`y.backward(gradient=v)` was called with `v` on another device.",
        ),
        repair=(
            "Make new tensors from what you have: `torch.zeros_like(g)`, `g.new_ones(n)`, or "
            "`device=g.device`. If `forward` moves data, move the gradient back."
        ),
        chapter="34_inputs_and_state",
        section="Devices and dtypes",
        broken_code="""\
import torch


class Ramp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.arange(2, dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx, g):
        return torch.arange(2.0)  # for a g of ones; but on the CPU


x = torch.ones(2, device="meta", requires_grad=True)  # stands for a GPU here
Ramp.apply(x).sum().backward()
""",
        fixed_code="""\
import torch


class Ramp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * torch.arange(2, dtype=x.dtype, device=x.device)

    @staticmethod
    def backward(ctx, g):
        return g * torch.arange(2, dtype=g.dtype, device=g.device)


x = torch.ones(2, device="meta", requires_grad=True)
Ramp.apply(x).sum().backward()
assert x.grad.device == x.device
""",
        since=(
            "Old versions refused another dtype as well, with `expected type`. Today such a gradient is cast."
        ),
    ),
    Entry(
        id="a-gradient-that-is-not-a-tensor",
        title="A gradient that is not a tensor",
        category="RuntimeError",
        pattern=r"expected Variable or None \(got [\w.]+\)",
        message="expected Variable or None (got float)",
        variants=("expected Variable or None (got numpy.ndarray)",),
        meaning="`backward` returned something else than tensors and `None`. The message names its type.",
        causes=(
            "A constant slope was returned as a Python number.",
            "The gradient was computed with NumPy and not turned back into a tensor.",
        ),
        repair=(
            "Return a tensor: multiply the number by the incoming gradient, `g * 2.0`, or use "
            "`torch.as_tensor(array, dtype=g.dtype, device=g.device)`. For no gradient, return `None`."
        ),
        chapter="35_changing_gradients",
        section="NumPy in backward",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2.0


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2.0 * g


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
assert x.grad == 2
""",
    ),
    Entry(
        id="a-gradient-for-an-argument-that-is-no-tensor",
        title="A gradient for an argument that is no tensor",
        category="RuntimeError",
        pattern=(
            r"(?:function \S+ returned a gradient different than None at position \d+"
            r"|The backward formula for \S+ returned a non-None gradient for an input)"
        ),
        message=(
            "function ScaleBackward returned a gradient different than None at position 2, but the "
            "corresponding forward input was not a Variable"
        ),
        variants=(
            "The backward formula for cat.d.default returned a non-None gradient for an input that was not "
            "passed to the operator. Defaulted inputs that were not passed through autograd must return "
            "None.",
        ),
        meaning=(
            "That argument of `apply` was a number, a string or another object, and `backward` returned a "
            "gradient for it. The position counts from 1."
        ),
        causes=(
            "The gradients are in the wrong order, or one `None` is at the wrong place.",
            "An argument used to be a tensor, and is passed as a Python number now.",
            "A custom op was called without this argument, which has a default.",
        ),
        repair=(
            "Return `None` at this position. If you want a gradient for the number, pass it as a tensor "
            "that requires grad."
        ),
        chapter="31_custom_function",
        section="Arguments, and a function around `apply`",
        broken_code="""\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.s


x = torch.tensor(2.0, requires_grad=True)
Scale.apply(x, 3.0).backward()
""",
        fixed_code="""\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, g):
        return g * ctx.s, None


x = torch.tensor(2.0, requires_grad=True)
Scale.apply(x, 3.0).backward()
assert x.grad == 3
""",
    ),
    Entry(
        id="a-complex-gradient-for-a-real-input",
        title="A complex gradient for a real input",
        category="RuntimeError",
        pattern=(
            r"Expected isFloatingType\(grad\.scalar_type\(\)\) \|\| \(input_is_complex == "
            r"grad_is_complex\) to be true"
        ),
        message=(
            "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be "
            "true, but got false.  (Could this error message be improved?  If so, please report an "
            "enhancement request to PyTorch.)"
        ),
        meaning=(
            "`backward` returned a complex gradient for an input that is real. The gradient for a real "
            "number is real."
        ),
        causes=(
            "The Function goes from real to complex numbers, as a Fourier transform does, and `backward` "
            "returns the complex result as it is.",
        ),
        repair="Return its real part, `.real`. Torch's own operations on complex numbers do the same.",
        chapter="31_custom_function",
        section="When it goes wrong",
        broken_code="""\
import torch


class Spectrum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.fft.fft(x)

    @staticmethod
    def backward(ctx, g):
        return torch.fft.ifft(g) * g.numel()


x = torch.tensor([1.0, 2.0], requires_grad=True)
Spectrum.apply(x).real.sum().backward()
""",
        fixed_code="""\
import torch


class Spectrum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.fft.fft(x)

    @staticmethod
    def backward(ctx, g):
        return (torch.fft.ifft(g) * g.numel()).real


x = torch.tensor([1.0, 2.0], requires_grad=True)
Spectrum.apply(x).real.sum().backward()
assert x.grad.tolist() == [2, 0]
""",
    ),
    Entry(
        id="a-function-without-forward",
        title="A Function without `forward`",
        category="NotImplementedError",
        pattern=r"You must implement the forward function for custom autograd\.Function",
        message="You must implement the forward function for custom autograd.Function.",
        meaning=(
            "`apply` runs the method `forward` of your class, and there is none. The one of "
            "`torch.autograd.Function` is a placeholder that raises this."
        ),
        causes=(
            "The method has another name, such as `__call__` or `fwd`, or a spelling mistake.",
            "It is indented wrongly, so that it is not part of the class.",
        ),
        repair="Write `@staticmethod def forward(ctx, ...)` in the class.",
        chapter="31_custom_function",
        section="The contract: `Exp`",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def fwd(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
y = Double.apply(x)
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
y = Double.apply(x)
y.backward()
assert (y, x.grad) == (6, 2)
""",
    ),
    Entry(
        id="a-function-without-backward",
        title="A Function without `backward`",
        category="NotImplementedError",
        pattern=r"You must implement either the backward or vjp method for your custom autograd\.Function",
        message=(
            "You must implement either the backward or vjp method for your custom autograd.Function to use "
            "it with backward mode AD."
        ),
        meaning=(
            "Backward came to a node of your Function, and the class has neither `backward` nor `vjp` (two "
            "names for the same method). The forward pass had worked, since it needs none."
        ),
        causes=(
            "`backward` was never written, or the class was meant for inference only.",
            "The method is spelled otherwise, or is indented so that it lies inside of `forward`.",
        ),
        repair=(
            "Write `backward(ctx, g)`. If no gradient is wanted, call the Function under "
            "`torch.no_grad()`, or `detach()` its input."
        ),
        chapter="31_custom_function",
        section="The contract: `Exp`",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


x = torch.tensor(3.0, requires_grad=True)
y = Double.apply(x)
y.backward()
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
y = Double.apply(x)
y.backward()
assert x.grad == 2
""",
        draws="y",
    ),
    Entry(
        id="a-function-with-both-backward-and-vjp",
        title="A Function with both `backward` and `vjp`",
        category="RuntimeError",
        pattern=r"Implementing both 'backward' and 'vjp' for a custom Function is not allowed",
        message=(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
            "implement one of them."
        ),
        meaning=(
            "`vjp` is another name for `backward`. Your class, or a class it inherits from, defines both, "
            "and torch can't know which you mean."
        ),
        causes=(
            "A class that has `backward` inherits from one that has `vjp`, or the other way round.",
            "Both were written in the belief that forward mode needs `vjp`. It needs `jvp`.",
        ),
        repair="Keep one of them. For forward mode, write `jvp` beside it.",
        chapter="31_custom_function",
        section="The contract: `Exp`",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g

    vjp = backward


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
assert x.grad == 2
""",
    ),
    Entry(
        id="an-instance-of-a-function-was-called",
        title="An instance of a Function was called",
        category="RuntimeError",
        pattern=r"Legacy autograd function with non-static forward method is deprecated",
        message=(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        ),
        variants=(
            "Legacy autograd function with non-static forward method is deprecated and will be removed in "
            "1.3. Please use new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)",
        ),
        meaning=(
            "You wrote `F()(x)`. That was the way years ago, when `forward` was a method of an instance. "
            "Today a Function is never instantiated: its methods are static, and you call `F.apply(x)`."
        ),
        causes=(
            "The code is from the first years of torch: `forward(self, x)`, options in `__init__`, and "
            "`F(option)(x)`.",
            "The methods are static already, and the call is still the old one.",
        ),
        repair=(
            "Make `forward` and `backward` static with `ctx` as their first argument, pass options as "
            "arguments of `apply`, and call `F.apply(x, option)`."
        ),
        chapter="31_custom_function",
        section="Calling an instance",
        broken_code="""\
import torch


class Scale(torch.autograd.Function):
    def __init__(self, s):
        self.s = s

    def forward(self, x):
        return x * self.s

    def backward(self, g):
        return g * self.s


x = torch.tensor(2.0, requires_grad=True)
y = Scale(3.0)(x)
""",
        fixed_code="""\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, s):
        ctx.s = s
        return x * s

    @staticmethod
    def backward(ctx, g):
        return g * ctx.s, None


x = torch.tensor(2.0, requires_grad=True)
y = Scale.apply(x, 3.0)
y.backward()
assert (y, x.grad) == (6, 3)
""",
        since="A warning in torch 1.2 and 1.3, an error since 1.5.",
    ),
    Entry(
        id="a-function-was-instantiated",
        title="A Function was instantiated",
        category="DeprecationWarning",
        pattern=r"<class '[^']*'> should not be instantiated\. Methods on autograd functions",
        message=(
            "<class '__main__.Double'> should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd function "
            "will raise an error in a future version of PyTorch."
        ),
        meaning=(
            "`F()` makes an object that is good for nothing: all methods of a Function are static. Python "
            "hides this warning by default outside of the main program, so you may see the error that "
            "follows first."
        ),
        causes=(
            "`F()(x)` or `F(x)` was written instead of `F.apply(x)`.",
            "An instance is stored, as one stores a module, and its `apply` is called later.",
        ),
        repair=(
            "Call `F.apply(x)` on the class. To keep an operation with options, store a function around "
            "`apply`, or write a module that calls it."
        ),
        chapter="31_custom_function",
        section="Calling an instance",
        broken_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


double = Double()
y = double.apply(torch.tensor(3.0))
""",
        fixed_code="""\
import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


double = Double.apply
y = double(torch.tensor(3.0))
assert y == 6
""",
    ),
    Entry(
        id="saving-something-that-is-not-a-tensor",
        title="Saving something that is not a tensor",
        category="TypeError",
        pattern=r"save_for_backward can only save variables, but argument \d+ is of type",
        message="save_for_backward can only save variables, but argument 1 is of type int",
        variants=("save_for_backward can only save variables, but argument 1 is of type tuple",),
        meaning=(
            "`ctx.save_for_backward` takes tensors and `None`, as separate arguments. Torch watches over "
            "them: it frees them and notices changes in place. Everything else is kept in an attribute of "
            "`ctx`."
        ),
        causes=(
            "A number, a shape or a flag was passed along with the tensors.",
            "A list of tensors was passed as one argument: a `*` is missing.",
        ),
        repair=(
            "Write `ctx.n = n` for numbers and options. Spread a list: `ctx.save_for_backward(*tensors)`."
        ),
        chapter="31_custom_function",
        section="`save_for_backward`, or an attribute?",
        broken_code="""\
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x, n)
        return x**n

    @staticmethod
    def backward(ctx, g):
        x, n = ctx.saved_tensors
        return g * n * x ** (n - 1), None


x = torch.tensor(2.0, requires_grad=True)
y = Power.apply(x, 3)
""",
        fixed_code="""\
import torch


class Power(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, n):
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.n * x ** (ctx.n - 1), None


x = torch.tensor(2.0, requires_grad=True)
Power.apply(x, 3).backward()
assert x.grad == 12
""",
    ),
    Entry(
        id="the-old-name-saved_variables",
        title="The old name `saved_variables`",
        category="DeprecationWarning",
        pattern=r"'saved_variables' is deprecated; use 'saved_tensors'",
        message="'saved_variables' is deprecated; use 'saved_tensors'",
        meaning=(
            "`ctx.saved_variables` is the old name of `ctx.saved_tensors`. It still works, and may go away."
        ),
        causes=("The Function is from an old tutorial or repository.",),
        repair="Write `ctx.saved_tensors`.",
        chapter="31_custom_function",
        section="The contract: `Exp`",
        broken_code="""\
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_variables
        return 2 * x * g


x = torch.tensor(3.0, requires_grad=True)
Square.apply(x).backward()
""",
        fixed_code="""\
import torch


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


x = torch.tensor(3.0, requires_grad=True)
Square.apply(x).backward()
assert x.grad == 6
""",
    ),
    Entry(
        id="custom_bwd-without-custom_fwd",
        title="`custom_bwd` without `custom_fwd`",
        category="AttributeError",
        pattern=r"'\w+' object has no attribute '_fwd_used_autocast'",
        message="'DoubleBackward' object has no attribute '_fwd_used_autocast'",
        meaning=(
            "`custom_bwd` reads what `custom_fwd` has noted on `ctx`: whether autocast was on. Nothing was "
            "noted here."
        ),
        causes=(
            "Only `backward` was decorated.",
            "The Function has a `setup_context`. Its `forward` gets no `ctx`, so `custom_fwd` does not go "
            "together with it.",
        ),
        repair="Decorate both methods, and let `forward` take `ctx` as its first argument.",
        chapter="34_inputs_and_state",
        section="Autocast",
        broken_code="""\
import torch
from torch.amp import custom_bwd


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
""",
        fixed_code="""\
import torch
from torch.amp import custom_bwd, custom_fwd


class Double(torch.autograd.Function):
    @staticmethod
    @custom_fwd(device_type="cpu")
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx, g):
        return 2 * g


x = torch.tensor(3.0, requires_grad=True)
Double.apply(x).backward()
assert x.grad == 2
""",
    ),
)

"""Custom ops."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-custom-op-without-an-autograd-formula",
        title="A custom op without an autograd formula",
        category="RuntimeError",
        pattern=r"Trying to backward through \S+ but no autograd formula was registered",
        message=(
            "Trying to backward through catalogue.no_formula.default but no autograd formula was registered. "
            "Please use register_autograd to add one."
        ),
        meaning=(
            "Autograd does not look into a custom op: its result carries a node that stands for a formula to "
            "be registered. Backward came to that node and there is none."
        ),
        causes=(
            "`register_autograd` was never called for this op.",
            "The op is meant to have no gradient, and its result is part of the loss all the same.",
            "It was called for another op of a similar name.",
        ),
        repair=(
            "Call `op.register_autograd(backward, setup_context=...)`. If no gradient is wanted, pass "
            "`x.detach()` to the op."
        ),
        chapter="35_changing_gradients",
        section='"No autograd formula was registered"',
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::no_formula", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


x = torch.ones(2, requires_grad=True)
y = double(x)
y.sum().backward()
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::formula", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


double.register_autograd(lambda ctx, grad: 2 * grad)
x = torch.ones(2, requires_grad=True)
y = double(x)
y.sum().backward()
assert x.grad.tolist() == [2.0, 2.0]
""",
        draws="y",
    ),
    Entry(
        id="a-custom-op-that-returns-its-input",
        title="A custom op that returns its input",
        category="RuntimeError",
        pattern=(
            r"\S+ \(with implementation in [^)]*\): The output of this custom operator \(1\) "
            r"must not also be an input"
        ),
        message=(
            "same (with implementation in <module 'torch._library.custom_ops' from 'custom_ops.py'>): The "
            "output of this custom operator (1) must not also be an input to this custom operator and (2) "
            "may not alias any inputs to this custom operator or other returns. The most common way to "
            "trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please "
            "instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor "
            "the custom operator to not return y."
        ),
        meaning=(
            "The output of a custom op has to be new memory. This one is an input, or a view of one, and "
            "autograd and `torch.compile` would not know about it."
        ),
        causes=(
            "A branch returns the input unchanged: `return x` where there is nothing to do.",
            "The op returns a view, `x.view(...)` or `x[:n]`, or an `x.contiguous()` or `x.to(...)` that "
            "changed nothing.",
        ),
        repair=(
            "Return `x.clone()`. An op that changes its input declares it in `mutates_args` and returns "
            "nothing."
        ),
        chapter="35_changing_gradients",
        section='"May not alias any inputs": what is forbidden',
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::same", mutates_args=())
def at_most_three(x: torch.Tensor) -> torch.Tensor:
    return x if x.numel() <= 3 else x[:3].clone()


at_most_three(torch.ones(2))
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::fresh", mutates_args=())
def at_most_three(x: torch.Tensor) -> torch.Tensor:
    return x[:3].clone()


assert at_most_three(torch.ones(2)).tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="a-custom-op-without-type-annotations",
        title="A custom op without type annotations",
        category="ValueError",
        pattern=(
            r"infer_schema\(func\): (?:Parameter \w+ must have a type annotation|No return "
            r"type annotation was provided)"
        ),
        message="infer_schema(func): Parameter x must have a type annotation. Got func with signature (x))",
        variants=(
            "infer_schema(func): No return type annotation was provided. Please add one. Got func with "
            "signature (x: torch.Tensor))",
        ),
        meaning=(
            "Torch reads the schema of the op from the annotations of your Python function: a type for each "
            "argument and for the result. One of them is missing."
        ),
        causes=(
            "An argument has no annotation.",
            "The result has none: also `-> None` has to be written.",
        ),
        repair='Annotate every argument and the result, or pass `schema="(Tensor x) -> Tensor"`.',
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::bare", mutates_args=())
def double(x):
    return 2 * x
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::annotated", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


assert double(torch.ones(2)).tolist() == [2.0, 2.0]
""",
    ),
    Entry(
        id="a-name-in-mutates_args-that-is-no-argument",
        title="A name in `mutates_args` that is no argument",
        category="ValueError",
        pattern=(
            r"infer_schema\(func\): \{.{1,200}\} in mutates_args were not found in the custom "
            r"op's signature"
        ),
        message=(
            "infer_schema(func): {'y'} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain the names of all args that the custom op mutates, or just the "
            "string 'unknown' if you don't know. Got func with signature (x: torch.Tensor) -> None)"
        ),
        meaning=(
            "`mutates_args` names the arguments that the op changes in place, and one of the names is not an "
            "argument of the function. A wrong list would let autograd miss a change."
        ),
        causes=(
            "The argument was renamed in the function and not in `mutates_args`.",
            "The list was copied from another op.",
        ),
        repair="Name the arguments as the function does, in a tuple or a list.",
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::misnamed", mutates_args=("y",))
def double_(x: torch.Tensor) -> None:
    x.mul_(2)
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::named", mutates_args=("x",))
def double_(x: torch.Tensor) -> None:
    x.mul_(2)


x = torch.ones(2)
double_(x)
assert x.tolist() == [2.0, 2.0]
""",
    ),
    Entry(
        id="a-custom-op-that-changes-an-argument-in-secret",
        title="A custom op that changes an argument in secret",
        category="OpCheckError",
        pattern=(
            r"opcheck\(op, \.\.\.\): test_schema failed with Argument \w+ is not defined as "
            r"mutable but was mutated"
        ),
        message=(
            "opcheck(op, ...): test_schema failed with Argument x is not defined as mutable but was mutated "
            "(scroll up for stack trace)"
        ),
        meaning=(
            "`opcheck` ran the op and found an argument changed that `mutates_args` does not name. A normal "
            "call says nothing about it: then autograd's version counter stays behind, and gradients may be "
            "wrong."
        ),
        causes=(
            "The kernel works in place on its input, and `mutates_args=()` was copied from an example.",
            "A NumPy view of the input is written to.",
        ),
        repair=(
            "Clone the input first and change the copy. If the change is wanted, declare it: "
            '`mutates_args=("x",)`.'
        ),
        chapter="35_changing_gradients",
        section='"May not alias any inputs": what is forbidden',
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::secret", mutates_args=())
def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1).clone()


torch.library.opcheck(plus_one, (torch.ones(2),), test_utils="test_schema")
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::open", mutates_args=())
def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x.clone().add_(1)


x = torch.ones(2)
torch.library.opcheck(plus_one, (x,), test_utils="test_schema")
assert plus_one(x).tolist() == [2.0, 2.0] and x.tolist() == [1.0, 1.0]
""",
    ),
    Entry(
        id="an-autograd-formula-for-an-op-that-works-in-place",
        title="An autograd formula for an op that works in place",
        category="RuntimeError",
        pattern=r"Cannot register autograd formula for non-functional operator",
        message=(
            "Cannot register autograd formula for non-functional operator <CustomOpDef(catalogue::in_place)> "
            "with schema catalogue::in_place(Tensor(a0!) x) -> (). Please create a functional operator and "
            "register an autograd formula for that."
        ),
        meaning=(
            "`register_autograd` is for ops that read their inputs and return new tensors. This one changes "
            "an argument, or returns a view, and torch has no formula that fits that."
        ),
        causes=("`mutates_args` names an argument of the op, and the op shall be differentiated.",),
        repair=(
            "Write an op that returns a new tensor and register the formula for that one. A Function with "
            "`mark_dirty` is the way to an in-place operation with a gradient."
        ),
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::in_place", mutates_args=("x",))
def double_(x: torch.Tensor) -> None:
    x.mul_(2)


double_.register_autograd(lambda ctx, grad: 2 * grad)
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::out_of_place", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


double.register_autograd(lambda ctx, grad: 2 * grad)
x = torch.ones(2, requires_grad=True)
double(x).sum().backward()
assert x.grad.tolist() == [2.0, 2.0]
""",
    ),
    Entry(
        id="a-custom-op-and-an-incorrect-number-of-gradients",
        title="A custom op and an incorrect number of gradients",
        category="RuntimeError",
        pattern=(
            r"(?:function GeneratedBackwardFor_\w+|The backward formula for \S+) returned an incorrect "
            r"number of gradients"
        ),
        message=(
            "function GeneratedBackwardFor_catalogue_scale_short_defaultBackward returned an incorrect "
            "number of gradients (expected 3, got 2)"
        ),
        variants=(
            "The backward formula for catalogue.scale_short.default returned an incorrect number of "
            "gradients (expected 2, got 1). Expected one gradient for each forward input, or for each "
            "positional input to the operator. Use None for inputs that do not require a gradient.",
        ),
        meaning=(
            "The formula of a custom op returns one gradient for each argument of the op. Torch 2.13 adds "
            "one hidden argument of its own, so both numbers in its message are greater by one than yours."
        ),
        causes=(
            "An argument was added to the op, and `backward` still returns one gradient less.",
            "An argument that is not a tensor was left out: it needs a `None`.",
            "Since torch 2.14 also: an argument is a list, and its gradients came one by one, not as a list.",
        ),
        repair=(
            "Return a tuple with one entry for each argument of the op, `None` for numbers, options and "
            "inputs that need no gradient."
        ),
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::scale_short", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


scale.register_autograd(lambda ctx, grad: 3.0 * grad)
x = torch.ones(2, requires_grad=True)
y = scale(x, 3.0)
y.sum().backward()
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::scale_full", mutates_args=())
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    return x * factor


scale.register_autograd(lambda ctx, grad: (3.0 * grad, None))
x = torch.ones(2, requires_grad=True)
y = scale(x, 3.0)
y.sum().backward()
assert x.grad.tolist() == [3.0, 3.0]
""",
        draws="y",
        since="Torch 2.14 and later begin with `The backward formula for`, and count your arguments alone.",
    ),
    Entry(
        id="a-custom-op-with-a-list-and-gradients-that-are-no-list",
        title="A custom op with a list, and gradients that are no list",
        category="RuntimeError",
        pattern=r"Expected the return from backward to be of the same structure as the inputs",
        message=(
            "Expected the return from backward to be of the same structure as the inputs. Got: "
            "TreeSpec(tuple, None, [*,\n"
            "  *,\n"
            "  *]) (return from backward), TreeSpec(tuple, None, [TreeSpec(list, None, [*,\n"
            "    *]),\n"
            "  *]) (inputs)"
        ),
        meaning=(
            "An argument of this op is a list of tensors, and its gradient has to be a list of the same "
            "length. The message shows the structure that came and the one that the inputs have."
        ),
        causes=(
            "`backward` returns the gradients one by one, as a tuple of tensors.",
            "An entry for another argument of the op is missing.",
        ),
        repair="Return a list in the place of the list: `return [g1, g2], None`.",
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::total_flat", mutates_args=())
def total(xs: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(xs).sum(0)


total.register_autograd(lambda ctx, grad: (grad, grad))
x = torch.ones(2, requires_grad=True)
total([x, 2 * x]).sum().backward()
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::total_nested", mutates_args=())
def total(xs: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(xs).sum(0)


total.register_autograd(lambda ctx, grad: [grad, grad])
x = torch.ones(2, requires_grad=True)
total([x, 2 * x]).sum().backward()
assert x.grad.tolist() == [3.0, 3.0]
""",
        since=(
            "Torch 2.14 and later count first: where the number of gradients is wrong as well, they say that "
            "`The backward formula for` the op `returned an incorrect number of gradients`."
        ),
    ),
    Entry(
        id="a-custom-op-without-a-fake-version",
        title="A custom op without a fake version",
        category="RuntimeError",
        pattern=r"There was no fake impl registered for <CustomOpDef\(",
        message=(
            "There was no fake impl registered for <CustomOpDef(catalogue::no_fake)>. This is necessary for "
            "torch.compile/export/fx tracing to work. Please use `double.register_fake` to add an fake impl."
        ),
        meaning=(
            "Tracing runs the program on fake tensors that have a shape and no values. Your kernel needs "
            "values, so tracing needs a second function that makes an empty result of the right shape."
        ),
        causes=(
            "The op is used under `torch.compile` or `torch.export`, or on the `meta` device.",
            "`register_fake` was called for another op of a similar name.",
        ),
        repair=(
            "Register one: `@op.register_fake` over a function that returns `torch.empty_like(x)`, or what "
            "has the shape and dtype of the result."
        ),
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch


@torch.library.custom_op("catalogue::no_fake", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


double(torch.ones(2, device="meta"))
""",
        fixed_code="""\
import torch


@torch.library.custom_op("catalogue::fake", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@double.register_fake
def _(x):
    return torch.empty_like(x)


assert double(torch.ones(2, device="meta")).shape == (2,)
""",
    ),
    Entry(
        id="an-op-without-a-kernel-for-autograd",
        title="An op without a kernel for autograd",
        category="UserWarning",
        pattern=r"\w+::\w+: an autograd kernel was not registered to the Autograd key\(s\)",
        message=(
            "catalogue_cpu::double: an autograd kernel was not registered to the Autograd key(s) but we are "
            "trying to backprop through it. This may lead to silently incorrect behavior. This behavior is "
            "deprecated and will be removed in a future version of PyTorch. If your operator is "
            "differentiable, please ensure you have registered an autograd kernel to the correct Autograd "
            "key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is "
            "not differentiable, or to squash this warning and use the previous behavior, please register "
            "torch::CppFunction::makeFallthrough() to DispatchKey::Autograd."
        ),
        meaning=(
            "The op was registered for a device, and nothing says what autograd shall do with it. Backward "
            "went on all the same, through whatever operations ran inside, and that may be wrong."
        ),
        causes=(
            '`Library.impl(..., "CPU")` or a C++ `TORCH_LIBRARY_IMPL` was written without a part for '
            "`Autograd`.",
            "An `autograd.Function` was registered under the key of a device.",
        ),
        repair=(
            "Use `torch.library.custom_op` with `register_autograd`. Ops made of torch operations alone "
            "belong to the key `CompositeImplicitAutograd`."
        ),
        chapter="35_changing_gradients",
        section="A custom op",
        broken_code="""\
import torch

lib = torch.library.Library("catalogue_cpu", "DEF")
lib.define("double(Tensor x) -> Tensor")
lib.impl("double", lambda x: 2 * x, "CPU")
x = torch.ones(2, requires_grad=True)
y = torch.ops.catalogue_cpu.double(x)
y.sum().backward()
del lib  # the op is gone with it
""",
        fixed_code="""\
import torch

lib = torch.library.Library("catalogue_composite", "DEF")
lib.define("double(Tensor x) -> Tensor")
lib.impl("double", lambda x: 2 * x, "CompositeImplicitAutograd")
x = torch.ones(2, requires_grad=True)
y = torch.ops.catalogue_composite.double(x)
y.sum().backward()
assert x.grad.tolist() == [2.0, 2.0]
del lib  # the op is gone with it
""",
    ),
)

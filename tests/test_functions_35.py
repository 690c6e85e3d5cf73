"""Every Function of chapter 35, and its custom op, run from the very cells that the chapter shows."""

import functools
import warnings
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import nn
from torch.autograd import Function, grad, gradcheck, gradgradcheck

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "35_changing_gradients.ipynb"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHAPES = {"zero-dim": (), "empty": (0,), "one": (1,), "vector": (5,), "matrix": (2, 3), "three": (2, 1, 3)}
CLASSES = ("Weighted", "Round", "Reverse", "Sqrt", "Solve", "Measured", "Square")


@functools.cache
def sources() -> tuple[str, ...]:
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    last = next(i for i, c in enumerate(cells) if c.source.startswith("## Exercises"))
    return tuple(c.source for c in cells[:last] if c.cell_type == "code")


@functools.cache
def shown() -> dict:
    """What the chapter's cells define: imports, and the definitions of each cell that holds a class."""
    names: dict = {}
    exec(compile(sources()[0], "imports", "exec"), names)
    for name in CLASSES:
        (cell,) = [source for source in sources() if f"class {name}(" in source]
        parts = cell.split("\n\n\n")  # a constant, a class, or what is done with them
        wanted = [p for p in parts if p.startswith(("class ", "def ", "K = "))]
        exec(compile("\n\n\n".join(wanted), name, "exec"), names)
    return names


def values(*shape: int, seed: int = 0, dtype=torch.float64, device="cpu") -> torch.Tensor:
    """Between −2 and 2, and none of them near a place where rounding jumps."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(shape, generator=generator, dtype=torch.float64) * 4 - 2
    x = torch.where((x % 1 - 0.5).abs() < 0.01, x + 0.05, x)
    return x.to(device, dtype).requires_grad_()


def strided() -> torch.Tensor:
    return values(6, 4).detach()[::2, ::2].t().requires_grad_()


def slopes(y: torch.Tensor) -> torch.Tensor:
    return torch.linspace(2, -1, y.numel(), dtype=y.dtype, device=y.device).reshape(y.shape)


def gradient(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return grad(y, x, slopes(y))[0]


each_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
each_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=str)
each_device = pytest.mark.parametrize("device", DEVICES)


def test_every_function_of_the_chapter_is_known_here():
    mine = {
        name for name, value in shown().items() if isinstance(value, type) and issubclass(value, Function)
    }
    defined = {
        line.split("(")[0].removeprefix("class ")
        for source in sources()
        for line in source.splitlines()
        if line.startswith("class ")
    }
    assert defined - {"Weighted"} == mine - {"Function"}
    assert mine - {"Function"} == {*CLASSES, "SquareOnce", "SquareArray"} - {"Weighted"}


# ------------------------------------------------------------------ a Module's backward


def test_the_backward_of_a_module_is_never_called():
    layer = shown()["Weighted"]()
    x = torch.ones(3, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [1, 2, 4] and layer.w.grad.tolist() == [1, 1, 1]
    with pytest.raises(AssertionError, match="somebody called"):
        layer.backward(x)


# ------------------------------------------------------------------ Round


@each_device
@each_shape
def test_round_passes_the_gradient(shape, device: str):
    x = values(*shape, device=device)
    y = shown()["Round"].apply(x)
    assert torch.equal(y, torch.round(x))
    assert not y.grad_fn.saved_tensors
    assert torch.equal(gradient(y, x), slopes(y))


@each_dtype
def test_round_keeps_the_dtype(dtype: torch.dtype):
    x = values(5, dtype=dtype)
    y = shown()["Round"].apply(x)
    assert y.dtype == gradient(y, x).dtype == dtype


def test_round_where_arithmetic_fails():
    """Infinite, and far from the rounded value in a short dtype: the one line spoils these values."""
    x = torch.tensor([float("inf"), -float("inf")], requires_grad=True)
    y = shown()["Round"].apply(x)
    assert torch.equal(y, x) and grad(y.sum(), x)[0].tolist() == [1, 1]
    assert (x + (torch.round(x) - x).detach()).isnan().all()


def test_round_not_contiguous_and_second_derivative():
    x = strided()
    y = shown()["Round"].apply(x)
    assert torch.equal(gradient(y, x), slopes(y))
    (first,) = grad((y**2).sum(), x, create_graph=True)
    assert torch.equal(first, 2 * y)
    assert torch.equal(grad(first.sum(), x)[0], torch.full_like(x, 2))


def test_round_fails_gradcheck_and_must():
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(shown()["Round"].apply, values(3))


def test_a_window_by_clamping_first():
    x = torch.tensor([-2.0, -1.0, -0.25, 1.0, 1.5], requires_grad=True)
    y = shown()["Round"].apply(x.clamp(-1, 1))
    assert y.tolist() == [-1, -1, 0, 1, 1]
    assert grad(y.sum(), x)[0].tolist() == [0, 1, 1, 1, 0]


# ------------------------------------------------------------------ Reverse


@each_device
@each_shape
@pytest.mark.parametrize("strength", [0, 0.5, 2])
def test_reverse(shape, strength: float, device: str):
    x = values(*shape, device=device)
    y = shown()["Reverse"].apply(x, strength)
    assert torch.equal(y, x)
    assert torch.equal(gradient(y, x), -strength * slopes(y))


@each_dtype
def test_reverse_keeps_the_dtype(dtype: torch.dtype):
    x = values(4, dtype=dtype)
    y = shown()["Reverse"].apply(x, 0.5)
    assert y.dtype == gradient(y, x).dtype == dtype


def test_reverse_twice_is_the_identity():
    x, reverse = strided(), shown()["Reverse"].apply
    assert gradcheck(lambda x: reverse(reverse(x, 2), 0.5), x)
    assert gradgradcheck(lambda x: reverse(reverse(x, 2), 0.5), x)


def test_reverse_acts_on_one_path_and_a_hook_on_all():
    x = values(3)
    h = 1 * x
    mixed = shown()["Reverse"].apply(h, 1.0) + 3 * h
    assert torch.equal(grad(mixed.sum(), x)[0], torch.full_like(x, 2))
    h = 1 * x
    h.register_hook(lambda g: -g)
    assert torch.equal(grad((h + 3 * h).sum(), x)[0], torch.full_like(x, -4))


# ------------------------------------------------------------------ Sqrt


def positive(*shape: int, **options) -> torch.Tensor:
    return (values(*shape, **options).detach().abs() + 0.25).requires_grad_()


@each_device
@each_shape
def test_sqrt(shape, device: str):
    x = positive(*shape, device=device)
    y = shown()["Sqrt"].apply(x)
    assert y.device == x.device and torch.allclose(y, x.sqrt())
    assert torch.allclose(gradient(y, x), gradient(x.sqrt(), x))
    if x.numel():
        assert gradcheck(shown()["Sqrt"].apply, x)
        assert gradgradcheck(shown()["Sqrt"].apply, x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_sqrt_keeps_the_dtype(dtype: torch.dtype):
    x = positive(3, dtype=dtype)
    y = shown()["Sqrt"].apply(x)
    assert y.dtype == gradient(y, x).dtype == dtype


def test_numpy_has_no_bfloat16():
    with pytest.raises(TypeError, match="BFloat16"):
        shown()["Sqrt"].apply(positive(3, dtype=torch.bfloat16))


def test_sqrt_not_contiguous_and_its_memory():
    x = positive(4, 3).detach().t().requires_grad_()
    assert gradcheck(shown()["Sqrt"].apply, x)
    y = shown()["Sqrt"].apply(x)
    assert y.data_ptr() != x.data_ptr()
    (saved,) = y.grad_fn.saved_tensors
    assert saved.data_ptr() == y.data_ptr()


# ------------------------------------------------------------------ Solve and Measured


def test_solve():
    solve = shown()["Solve"].apply
    b = torch.tensor([6.0, 8.0], dtype=torch.float64, requires_grad=True)
    K = torch.from_numpy(shown()["K"])
    assert torch.equal(K @ solve(b), b)
    assert gradcheck(solve, b)
    assert gradcheck(solve, values(2, 3))  # several right-hand sides
    assert solve(b.detach().float()).dtype == torch.float32


def test_solve_takes_no_second_derivative():
    b = values(2)
    (first,) = grad((shown()["Solve"].apply(b) ** 2).sum(), b, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_solve_says_when_the_size_is_wrong():
    with pytest.raises(ValueError, match=r"shape"):
        shown()["Solve"].apply(values(3))


BLOCKS = {
    "convolve": lambda a: np.convolve(a.ravel(), a.ravel()),
    "square": lambda a: a * a,
    "scalar": lambda a: (a * a).sum(),
    "filter": lambda a: ndimage.uniform_filter(a, 3),
}


@pytest.mark.parametrize("shape", [(1,), (4,), (2, 3)], ids=str)
@pytest.mark.parametrize("block", BLOCKS)
def test_measured(block: str, shape):
    """Blocks that are linear or quadratic: central differences of any step are exact."""
    x = values(*shape)
    assert gradcheck(lambda x: shown()["Measured"].apply(x, BLOCKS[block], 0.5), x)


def test_measured_calls_the_block_twice_for_each_element():
    calls = []

    def block(a):
        calls.append(a.shape)
        return a * a

    x = values(2, 3)
    y = shown()["Measured"].apply(x, block, 0.25)
    assert len(calls) == 1
    y.sum().backward()
    assert len(calls) == 1 + 2 * 6
    assert torch.allclose(x.grad, 2 * x)


def test_measured_keeps_the_dtype():
    x = values(3, dtype=torch.float32)
    y = shown()["Measured"].apply(x, np.square, 0.5)
    assert y.dtype == gradient(y, x).dtype == torch.float32


# ------------------------------------------------------------------ NumPy in backward


def test_a_numpy_backward_loses_the_second_derivative():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    square = shown()["Square"].apply
    assert torch.equal(grad(square(x).sum(), x)[0], 2 * x)
    (first,) = grad((square(x) ** 2).sum(), x, create_graph=True)
    assert torch.equal(first, 4 * x**3)
    assert grad(first.sum(), x)[0].tolist() == [8, 32]  # the truth is 12 x²: 12 and 48


def test_once_differentiable_says_so():
    x = torch.ones(2, requires_grad=True)
    (first,) = grad((shown()["SquareOnce"].apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()


def test_an_array_is_no_gradient():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got numpy.ndarray\)"):
        shown()["SquareArray"].apply(x).sum().backward()


# ------------------------------------------------------------------ hooks


def layer_run(register) -> list:
    layer = shown()["Weighted"]()
    w = torch.ones(3, requires_grad=True)
    h = 1 * w
    after = register(layer, h)
    y = layer(h)
    if after:
        after(y)
    (y + h).sum().backward()
    return layer.w.grad.tolist()


WAYS = {
    "a": lambda layer, h: h.register_hook(lambda g: 2 * g) and None,
    "b": lambda layer, h: lambda y: y.register_hook(lambda g: 2 * g),
    "c": lambda layer, h: layer.register_full_backward_hook(lambda m, gi, go: (2 * gi[0],)) and None,
    "d": lambda layer, h: layer.register_full_backward_pre_hook(lambda m, go: (2 * go[0],)) and None,
    "e": lambda layer, h: setattr(layer, "backward", lambda g: 2 * g),
    "f": lambda layer, h: layer.w.register_hook(lambda g: 2 * g) and None,
}


def test_the_answer_to_which_of_them_reach_the_parameter():
    from inside_autograd import exercises

    changed = [letter for letter, way in WAYS.items() if layer_run(way) == [2, 2, 2]]
    same = [letter for letter, way in WAYS.items() if layer_run(way) == [1, 1, 1]]
    assert sorted(changed + same) == list("abcdef")
    assert exercises.which_reach_v.check(changed).passed


def test_a_full_backward_hook_refuses_in_place_changes_behind_it():
    layer = shown()["Weighted"]()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    y = layer(torch.ones(3, requires_grad=True))
    with pytest.raises(RuntimeError, match="BackwardHookFunction is a view"):
        nn.ReLU(inplace=True)(y)
    assert torch.equal(nn.ReLU()(y), y)


# ------------------------------------------------------------------ the custom op


@functools.cache
def root():
    names: dict = {}
    exec(compile(sources()[0], "imports", "exec"), names)
    cells = [s for s in sources() if "def root(" in s or "root.register_autograd" in s]
    assert len(cells) == 2
    code = "\n\n\n".join(p for s in cells for p in s.split("\n\n\n") if p.startswith(("@", "def ")))
    # Registered for the whole process: a name of its own.
    exec(compile(code.replace("book::root", "book_test::root"), "root", "exec"), names)
    (registered,) = [
        p for s in cells for p in s.split("\n\n") if p.strip().startswith("root.register_autograd")
    ]
    return names["root"], lambda: exec(compile(registered, "registered", "exec"), names)


def test_the_custom_op_before_and_after_its_formula():
    op, register = root()
    x = torch.tensor([1.0, 4.0], dtype=torch.float64, requires_grad=True)
    assert op(x).requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        op(x).sum().backward()
    with torch.no_grad():
        assert op(x).tolist() == [1, 2]
    register()
    assert grad(op(x).sum(), x)[0].tolist() == [0.5, 0.25]
    assert gradcheck(op, x) and gradgradcheck(op, x)
    with warnings.catch_warnings(action="ignore"):
        assert set(torch.library.opcheck(op, (x,)).values()) == {"SUCCESS"}


def test_what_a_custom_op_may_return():
    op = torch.library.custom_op

    @op("book_test::itself", mutates_args=())
    def itself(x: torch.Tensor) -> torch.Tensor:
        return x

    @op("book_test::two_on_one", mutates_args=())
    def two_on_one(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.clone()
        return y, y[:1]

    @op("book_test::undeclared_return", mutates_args=("x",))
    def undeclared_return(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    for wrong in (itself, two_on_one, undeclared_return):
        with pytest.raises(RuntimeError, match="may not alias any inputs"):
            wrong(torch.ones(2))

    @op("book_test::twice_", mutates_args=("x",))
    def twice_(x: torch.Tensor) -> None:
        x.mul_(2)

    x = torch.ones(2)
    assert twice_(x) is None and x.tolist() == [2, 2]


@pytest.mark.skipif(torch.__version__ < "2.13", reason="the tag came with torch 2.13")
def test_the_tag_inplace_allows_the_changed_argument():
    @torch.library.custom_op("book_test::double_back", mutates_args=("x",), tags=torch.Tag.inplace)
    def double_back(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    x = torch.ones(2)
    assert double_back(x) is x and x.tolist() == [2, 2]

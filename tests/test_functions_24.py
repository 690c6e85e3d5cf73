"""The Functions and helpers of chapter 24, tested as the chapter shows them: read from its own cells."""

import ast
from pathlib import Path

import nbformat
import pytest
import torch
from torch import func
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.autograd.function import once_differentiable

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "24_higher_order.ipynb"
TWICE_DIFFERENTIABLE = {"Twice": lambda x: x**3, "Square": lambda x: x**2, "Sine": torch.sin}


def definitions() -> dict:
    """Every class and function that the chapter defines, from its own source; nothing else of it is run."""
    names = {"torch": torch, "func": func, "grad": grad, "once_differentiable": once_differentiable}
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if cell.cell_type == "code" and ".check(" not in cell.source:
            tree = ast.parse(cell.source)
            tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
            exec(compile(tree, str(CHAPTER), "exec"), names)
    return names


SHOW = definitions()


def points(*shape: int) -> torch.Tensor:
    """Values between 0.5 and 1.5: away from 0, where ``Square`` divides by its input."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return (torch.rand(shape, generator=generator, dtype=torch.double) + 0.5).requires_grad_()


def each():
    return pytest.mark.parametrize("name", TWICE_DIFFERENTIABLE)


def test_every_function_of_the_chapter_is_known_here():
    base = torch.autograd.Function
    found = {name for name, value in SHOW.items() if isinstance(value, type) and issubclass(value, base)}
    assert found == {*TWICE_DIFFERENTIABLE, "Once", "CubeSlope"}


@each()
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,)], ids=str)
def test_first_and_second_derivatives(name, shape):
    apply = SHOW[name].apply
    x = points(*shape)
    assert gradcheck(apply, x)
    if x.numel():  # gradgradcheck finds nothing to compare in an empty tensor
        assert gradgradcheck(apply, x)
    assert gradcheck(apply, points(3, 2).detach().t().requires_grad_())


@each()
def test_second_derivatives_are_those_of_the_plain_operation(name):
    x = points(4)

    def second(f):
        (g,) = grad(f(x).sum(), x, create_graph=True)
        return grad(g.sum(), x)[0]

    torch.testing.assert_close(second(SHOW[name].apply), second(TWICE_DIFFERENTIABLE[name]))


def test_the_slope_of_the_cube_has_both_of_its_derivatives():
    assert gradcheck(SHOW["CubeSlope"].apply, (points(3), points(3) + 1))


def test_once_differentiable_drops_its_part_without_an_error():
    x = points(3)
    (g,) = grad((SHOW["Once"].apply(x) + x**3).sum(), x, create_graph=True)
    torch.testing.assert_close(g, 6 * x**2)
    torch.testing.assert_close(grad(g.sum(), x)[0], 6 * x)  # 12 * x would be right


def test_sine_works_under_transforms():
    x = points(3).detach()
    apply = SHOW["Sine"].apply
    torch.testing.assert_close(func.vmap(func.grad(apply))(x), x.cos())
    torch.testing.assert_close(func.vmap(func.jacrev(func.jacrev(apply)))(x), -x.sin())
    with pytest.raises(NotImplementedError, match="jvp"):
        func.hessian(apply)(x[0])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_both_products_agree_with_the_hessian(n):
    generator = torch.Generator().manual_seed(n)
    a = torch.randn(n, n, generator=generator, dtype=torch.double)

    def f(x):
        return torch.tanh(a @ x).square().sum() + x.prod()

    x, v = points(n), points(n).detach() * 2
    expected = torch.autograd.functional.hessian(f, x.detach()) @ v
    torch.testing.assert_close(SHOW["hvp"](f, x, v), expected)
    torch.testing.assert_close(SHOW["hvp_forward"](f, x.detach(), v), expected)


def test_newton_pictures_say_what_is_true():
    words = SHOW["newton_words"]
    assert "opens upward" in words(1.0) and words(1.0).endswith("next point is 2.")
    assert "opens downward" in words(0.5) and words(0.5).endswith("next point is -0.2.")

"""The Functions of chapter 32, right and wrong, run from the very cells that the chapter shows."""

import ast
import re
from itertools import product
from pathlib import Path

import nbformat
import pytest
import torch
from torch.autograd import Function, grad, gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError

from inside_autograd import saved_memory
from inside_autograd.exercises.ch32 import which_gradcheck

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "32_gradcheck.ipynb"
NAMES = ("EPS", "generator", "uses")  # values that the functions of the chapter read
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
EPS = 2.0**-10


def _chapter() -> dict:
    """Imports, classes and functions of the chapter, and the few values they need; no other line is run."""
    namespace: dict = {}
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    last = next(i for i, c in enumerate(cells) if c.source.startswith("## Exercises"))
    for cell in cells[:last]:
        if cell.cell_type != "code":
            continue
        for line in ast.parse(cell.source).body:
            named = isinstance(line, ast.Assign) and getattr(line.targets[0], "id", "") in NAMES
            kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef)
            if isinstance(line, kinds) or named:
                exec(compile(ast.Module([line], []), NOTEBOOK.name, "exec"), namespace)
    return namespace


CHAPTER = _chapter()
FUNCTIONS = {k: v for k, v in CHAPTER.items() if isinstance(v, type) and issubclass(v, Function)}
FUNCTIONS.pop("Function")
numerical, analytical = CHAPTER["numerical"], CHAPTER["analytical"]
REFERENCES = {"Square": lambda x: x * x, "Cube": lambda x: x**3}
RIGHT = sorted(REFERENCES)


def apply(name: str):
    return FUNCTIONS[name].apply


def x124(dtype: torch.dtype = torch.float64, device: str = "cpu") -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 4.0], dtype=dtype, device=device, requires_grad=True)


def leaf(shape: tuple, dtype: torch.dtype = torch.float64, device: str = "cpu") -> torch.Tensor:
    values = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return values.to(dtype=dtype, device=device).requires_grad_()


def test_each_function_of_the_chapter_is_tested_here():
    assert sorted(FUNCTIONS) == sorted(
        ["Square", "Cube", "Linear"]
        + ["NoFactor", "WrongCube", "Transposed", "NoChain", "Lost", "Noise", "Shaky", "Spoils"]
        + [
            "Kernel",
            "Flat",
            "Overwrites",
            "SavedSlope",
            "ThroughNumpy",
            "WritesG",
            "OtherBranch",
            "Sigmoid",
            "OldLinear",
            "Both",
        ]
    )


# ------------------------------------------------------------------ the right ones


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_pass_both_checks(name, shape, device):
    x = leaf(shape, device=device)
    assert gradcheck(apply(name), (x,))
    assert gradgradcheck(apply(name), (x,))


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_take_strided_and_broadcast_inputs(name):
    strided = leaf((3, 2)).detach().t().requires_grad_()
    sliced = leaf((3, 4)).detach()[:, ::2].requires_grad_()
    assert not strided.is_contiguous() and not sliced.is_contiguous()
    for x in (strided, sliced):
        assert gradcheck(apply(name), (x,)) and gradgradcheck(apply(name), (x,))
    assert gradcheck(lambda x: apply(name)(x.expand(2, 3)), (leaf((3,)),))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_equal_plain_torch_in_each_dtype(name, dtype):
    x = x124(dtype)
    mine, true = apply(name)(x), REFERENCES[name](x)
    assert mine.dtype == dtype and torch.equal(mine, true)
    first, expected = grad(mine.sum(), x)[0], grad(true.sum(), x)[0]
    assert first.dtype == dtype and torch.equal(first, expected)  # small integers are exact


@pytest.mark.parametrize("name", RIGHT)
def test_right_functions_save_their_input_and_nothing_new(name):
    x = leaf((8, 8))
    with saved_memory(params={"x": x}) as memory:
        y = apply(name)(x)
    assert memory.new_nbytes == 0
    assert y.grad_fn.saved_tensors[0] is x


def test_the_saved_slope_costs_a_tensor_of_its_own():
    x = leaf((8, 8))
    with saved_memory(params={"x": x}) as memory:
        y = apply("SavedSlope")(x)
    assert memory.new_nbytes == 8 * 8 * 8
    assert torch.equal(y.detach(), x.detach() ** 3)


# ------------------------------------------------------------------ Linear


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("needs", [n for n in product((True, False), repeat=3) if any(n)], ids=str)
@pytest.mark.parametrize(
    "shapes",
    [[(2, 3), (4, 3), (4,)], [(2, 3), (1, 3), (1,)], [(1, 1), (1, 1), (1,)], [(2, 2, 3), (4, 3), (4,)]]
    + [[(3,), (4, 3), (4,)], [(0, 3), (4, 3), (4,)]],
    ids=str,
)
def test_linear(shapes, needs, device):
    inputs = [leaf(s, device=device).requires_grad_(n) for s, n in zip(shapes, needs, strict=True)]
    assert gradcheck(apply("Linear"), inputs)
    assert gradgradcheck(apply("Linear"), inputs)


def test_linear_takes_strided_inputs_and_equals_torch():
    x, w, b = (
        leaf((3, 2)).detach().t().requires_grad_(),
        leaf((3, 4)).detach().t().requires_grad_(),
        leaf((4,)),
    )
    assert gradcheck(apply("Linear"), (x, w, b))
    torch.testing.assert_close(apply("Linear")(x, w, b), torch.nn.functional.linear(x, w, b))


def test_linear_on_20_by_20_doubles_in_fast_mode():
    assert gradcheck(apply("Linear"), [leaf(s) for s in ((20, 20), (30, 20), (30,))], fast_mode=True)


def test_linear_saves_nothing_new():
    x, w, b = leaf((8, 4)), leaf((5, 4)), leaf((5,))
    with saved_memory(params={"x": x, "w": w, "b": b}) as memory:
        y = apply("Linear")(x, w, b)
    assert memory.new_nbytes == 0
    assert len(y.grad_fn.saved_tensors) == 2


def test_the_old_linear_passes_once_and_breaks_elsewhere():
    assert gradcheck(apply("OldLinear"), [leaf(s) for s in ((2, 3), (4, 3), (4,))])
    with pytest.raises(RuntimeError, match=r"got \[\] but expected shape compatible with \[1\]"):
        gradcheck(apply("OldLinear"), [leaf(s) for s in ((2, 3), (1, 3), (1,))])
    with pytest.raises(RuntimeError, match="must be a matrix"):
        gradcheck(apply("OldLinear"), [leaf(s) for s in ((2, 2, 3), (4, 3), (4,))])


# ------------------------------------------------------------------ the two tables


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_the_chapters_tables_are_the_jacobian_with_a_row_for_each_input_entry(shape):
    x = leaf(shape)

    def f(x):
        return x.flatten().cumsum(0) ** 2

    true = torch.autograd.functional.jacobian(f, x).reshape(x.numel(), x.numel()).t()
    torch.testing.assert_close(analytical(f, x), true)
    torch.testing.assert_close(
        numerical(f, x), true
    )  # central differences of a square have no error of their own


def fails(f, inputs, **options) -> str:
    with pytest.raises(GradcheckError) as caught:
        gradcheck(f, inputs, eps=EPS, **options)
    return str(caught.value)


def tables(message: str) -> tuple[torch.Tensor, torch.Tensor]:
    found = re.findall(r"(?:numerical|analytical):tensor\((\[\[.*?\]\])", message, re.DOTALL)
    first, second = (torch.tensor(ast.literal_eval(table)) for table in found)
    return first, second


def test_a_missing_factor_has_a_constant_ratio():
    found, given = tables(fails(apply("NoFactor"), (x124(),)))
    assert torch.equal(found, 2 * given)


def test_a_wrong_formula_has_ratios_that_follow_x():
    found, given = tables(fails(apply("WrongCube"), (x124(),)))
    ratios = (found.diag() / given.diag()).tolist()
    assert ratios == [3, 6, 12]


def test_a_transposed_matrix_gives_the_mirror_image_unless_it_is_symmetric():
    row = torch.tensor([[1.0, 2.0]], dtype=torch.float64, requires_grad=True)
    w = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=torch.float64, requires_grad=True)
    found, given = tables(fails(apply("Transposed"), (row, w)))
    assert torch.equal(found, given.t()) and not torch.equal(found, given)
    assert torch.equal(found, w.detach().float())
    assert gradcheck(apply("Transposed"), (row, torch.ones(2, 2).double().requires_grad_()))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        grad(apply("Transposed")(row, leaf((2, 3))).sum(), row)


def test_a_forgotten_gradient_fills_rows_or_is_named():
    found, given = tables(fails(apply("NoChain"), (x124(),)))
    assert torch.equal(given, found.diag()[:, None].expand(3, 3))
    assert fails(apply("NoChain"), (leaf(()),)) == "backward not multiplied by grad_output"


def test_a_lost_path_gives_zeros_or_is_named():
    _, given = tables(fails(apply("Lost"), (x124(),)))
    assert not given.any()
    assert "expected to be zero" in fails(lambda x: x.detach() * 2, (x124(),))


def test_single_precision_warns_and_fails_by_a_few_percent():
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(GradcheckError) as caught:
        gradcheck(apply("Square"), (x124(torch.float32),))
    found, given = tables(str(caught.value))
    off = (found.diag() / given.diag() - 1).abs()
    assert given.diag().tolist() == [2, 4, 8] and (off > 0.01).all() and (off < 0.06).all()


def test_a_kink_spoils_one_entry_and_only_within_eps():
    at = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True)
    found, given = tables(fails(torch.relu, (at,)))
    assert (found - given).nonzero().tolist() == [[1, 1]] and found[1, 1] == 0.5
    assert fails(torch.relu, (torch.tensor([EPS / 2], dtype=torch.float64, requires_grad=True),))
    assert gradcheck(torch.relu, (torch.tensor([2 * EPS], dtype=torch.float64, requires_grad=True),), eps=EPS)
    assert gradcheck(torch.abs, (at,), eps=EPS)


def test_noise_is_huge_until_it_is_held_fixed():
    CHAPTER["generator"].manual_seed(0)
    found, given = tables(fails(apply("Noise"), (x124(),)))
    assert torch.equal(given, torch.eye(3)) and (found - given).abs().max() >= 512
    assert gradcheck(CHAPTER["held_fixed"], (x124(),), eps=EPS)


def test_not_reentrant_is_said_before_the_tables_are_compared():
    assert fails(apply("Shaky"), (x124(),)).startswith("Backward is not reentrant")
    assert gradcheck(apply("Shaky"), (x124(),), eps=EPS, nondet_tol=1e-4)
    assert fails(apply("Spoils"), (x124(),)).startswith("Backward is not reentrant")
    assert fails(apply("Spoils"), (x124(),), nondet_tol=1e9).startswith("Jacobian mismatch")


def test_ignored_strides_put_right_numbers_in_wrong_places():
    table = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=torch.float64)
    assert gradcheck(apply("Kernel"), (table.clone().requires_grad_(),), eps=EPS)
    found, given = tables(fails(apply("Kernel"), (table.t().requires_grad_(),)))
    assert sorted(found.diag().tolist()) == sorted(given.diag().tolist()) and not torch.equal(found, given)
    with pytest.raises(RuntimeError, match=r"Use .reshape"):
        gradcheck(apply("Flat"), (table.t().requires_grad_(),))


def test_shared_memory():
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(apply("Square"), (torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),))
    memory = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    found, given = tables(fails(torch.mul, (memory[:2].requires_grad_(), memory[1:].requires_grad_())))
    assert (found - given).tolist() == [[0, 0], [1, 0]]


def test_an_overwritten_input_looks_like_noise_and_repeats():
    once, again = (fails(apply("Overwrites"), (x124(),)) for _ in range(2))
    found, _ = tables(once)
    assert once == again and found.min() == 2 and found.max() > 1000
    x = torch.tensor([1.0, 2.0, 4.0])
    apply("Overwrites")(x)
    assert x.tolist() == [2, 4, 8]


def test_gradients_that_do_not_arrive_raise_a_type_error():
    with pytest.raises(TypeError, match="NoneType"):
        gradcheck(apply("Both"), (x124(),))


# ------------------------------------------------------------------ what passes and is wrong


@pytest.mark.parametrize("name", ["SavedSlope", "ThroughNumpy", "WritesG", "OtherBranch", "Sigmoid"])
def test_they_pass_gradcheck(name):
    assert gradcheck(apply(name), (x124(),))


def test_a_saved_slope_has_no_second_derivative():
    ones = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError) as caught:
        gradgradcheck(apply("SavedSlope"), (x124(),), grad_outputs=(ones,), eps=EPS)
    found, given = tables(str(caught.value))
    assert found.diag().tolist() == [6, 12, 24] and not given.any()
    assert not gradgradcheck(apply("ThroughNumpy"), (x124(),), raise_exception=False)
    one = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    seconds = {}
    for name in ("Cube", "SavedSlope"):
        (first,) = grad(apply(name)(one) ** 2, one, create_graph=True)
        seconds[name] = grad(first, one)[0].item()
    assert seconds == {"Cube": 30, "SavedSlope": 18}


def test_writing_into_g_spoils_a_sum():
    x = x124(torch.float32)
    (wrong,) = grad(apply("WritesG")(x) + x, x, torch.ones(3))
    assert wrong.tolist() == [4, 8, 16]  # 2x + 1 is 3, 5, 9
    with pytest.raises(RuntimeError, match="single memory location"):
        grad(apply("WritesG")(x).sum(), x)


def test_the_sigmoid_overflows_in_single_precision_only():
    assert apply("Sigmoid")(torch.tensor(128.0)).isnan()
    assert apply("Sigmoid")(torch.tensor(128.0, dtype=torch.float64)).item() == 1


def test_the_property_test_finds_what_gradcheck_does_not():
    broken = CHAPTER["broken"]
    for name in RIGHT:
        assert broken(apply(name), REFERENCES[name]) == "nothing"
    assert set(broken(apply("SavedSlope"), REFERENCES["Cube"]).replace(";", ":").split(": ")) == {
        "summed",
        "transposed",
        "shared g",
        "second order",
    }
    assert "shared g: gradient" in broken(apply("WritesG"), REFERENCES["Square"])
    assert "gradient" in broken(apply("OtherBranch"), REFERENCES["Square"])
    assert "gradient" in broken(apply("Kernel"), REFERENCES["Square"])
    assert "value" in broken(apply("Sigmoid"), torch.sigmoid)


def test_loose_tolerances_let_a_lost_factor_pass():
    assert not gradcheck(apply("NoFactor"), (x124(),), raise_exception=False)
    assert gradcheck(apply("NoFactor"), (x124(),), atol=8)


# ------------------------------------------------------------------ an exercise whose answer can be run


def test_the_answer_of_which_gradcheck_is_what_gradcheck_says():
    def custom(forward, backward):
        class F(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return forward(x)

            @staticmethod
            def backward(ctx, g):
                return backward(g, ctx.saved_tensors[0])

        return F.apply

    candidates = {
        "a": custom(lambda x: x * x, lambda g, x: g * 2 * x),
        "b": custom(lambda x: x.abs(), lambda g, x: g * x.sign()),
        "c": custom(lambda x: x.clamp(min=0), lambda g, x: g * (x > 0)),
        "d": custom(lambda x: x.sum(), lambda g, x: torch.ones_like(x)),
        "e": custom(lambda x: 3 * x, lambda g, x: g.mul_(3)),
    }
    passing = []
    for letter, f in candidates.items():
        x = torch.tensor([-2.0, 0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
        if gradcheck(f, (x,), raise_exception=False):
            passing.append(letter)
    assert which_gradcheck.check(passing).passed, passing

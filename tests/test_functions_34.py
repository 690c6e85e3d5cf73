"""Every Function of chapter 34, run from the very cells that the chapter shows."""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import torch
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function, grad, gradcheck, gradgradcheck

NOTEBOOK = Path(__file__).resolve().parent.parent / "notebooks" / "34_inputs_and_state.ipynb"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
SHAPES = {"zero-dim": (), "empty": (0,), "one": (1,), "vector": (5,), "matrix": (2, 3), "one row": (1, 3)}
CLASSES = ("Scale", "Weigh", "Concat", "Noise", "Dropout", "Restored", "Redrawn", "Cube", "ScaleNew")
CLASSES += ("DropoutNew", "AddTo", "Square_", "Exp_", "Ramp", "Product", "Look")


@functools.cache
def shown() -> dict:
    """What the chapter's cells define: the whole cell of each class, down to its first statement."""
    sources = [c.source for c in nbformat.read(NOTEBOOK, as_version=4).cells if c.cell_type == "code"]
    names = {"torch": torch, "Function": Function, "custom_fwd": custom_fwd, "custom_bwd": custom_bwd}
    for name in CLASSES:
        (cell,) = [source for source in sources if f"class {name}(" in source]
        parts = cell.split("\n\n\n")  # a class, a function or what is done with them
        definitions = "\n\n\n".join(p for p in parts if p.startswith(("class ", "def ")))
        exec(compile(definitions, name, "exec"), names)
    return names


def values(*shape: int, seed: int = 0, dtype=torch.float64, device="cpu") -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (
        (torch.rand(shape, generator=generator, dtype=torch.float64) * 4 - 2)
        .to(device, dtype)
        .requires_grad_()
    )


def strided() -> torch.Tensor:
    return values(6, 4).detach()[::2, ::2].t().requires_grad_()


def generator(device="cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(1)


def seeded(f: Callable) -> Callable:
    """``f`` with the same random numbers at each call, and the program's own left alone."""

    def call(x: torch.Tensor):
        with torch.random.fork_rng():
            torch.manual_seed(1)
            return f(x)

    return call


def kept_bytes(make: Callable, *known: torch.Tensor) -> int:
    """Bytes that saved tensors hold, and tensors on ``ctx``, besides ``known`` and the result."""
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        result = make()
    packed += [v for v in vars(result.grad_fn).values() if isinstance(v, torch.Tensor)]
    owned = {t.untyped_storage().data_ptr() for t in (*known, result)}
    new = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in packed}
    return sum(size for place, size in new.items() if place not in owned)


def masked(x: torch.Tensor) -> torch.Tensor:
    """What a dropout of one half gives with the numbers of ``generator``."""
    keep = torch.rand(x.shape, generator=generator(x.device), device=x.device) >= 0.5
    return x * keep * 2


def noisy(x: torch.Tensor) -> torch.Tensor:
    return x + 0.5 * torch.randn(x.shape, generator=generator(x.device), dtype=x.dtype, device=x.device)


def redrawn(x: torch.Tensor) -> torch.Tensor:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        seed = int(torch.randint(2**31, ()))
    keep = torch.rand(x.shape, generator=torch.Generator(x.device).manual_seed(seed), device=x.device) >= 0.5
    return x * keep * 2


@seeded
def restored(x: torch.Tensor) -> torch.Tensor:
    return x * (torch.rand_like(x) >= 0.5) * 2


# Each with what torch's own operations give for the same input.
UNARY = {
    "Scale": (lambda x: shown()["Scale"].apply(x, 3), lambda x: 3 * x),
    "Scale, default": (lambda x: shown()["Scale"].apply(x), lambda x: 2 * x),
    "ScaleNew": (lambda x: shown()["ScaleNew"].apply(x, 3), lambda x: 3 * x),
    "ScaleNew, default": (lambda x: shown()["ScaleNew"].apply(x), lambda x: 2 * x),
    "weigh, no weight": (lambda x: shown()["weigh"](x), lambda x: x * 1),
    "concat, one": (lambda x: shown()["concat"]([x.reshape(-1)]), lambda x: x.reshape(-1) * 1),
    "Noise": (lambda x: shown()["Noise"].apply(x, 0.5, generator(x.device)), noisy),
    "Dropout": (lambda x: shown()["Dropout"].apply(x, 0.5, generator(x.device)), masked),
    "DropoutNew": (seeded(lambda x: shown()["DropoutNew"].apply(x, 0.5)[0]), masked),
    "Redrawn": (seeded(lambda x: shown()["Redrawn"].apply(x)), redrawn),
    "Cube": (lambda x: shown()["Cube"].apply(x, torch.empty_like(x)), lambda x: x**3),
    "Square_": (lambda x: shown()["Square_"].apply(x.clone()), lambda x: x * x),
    "Exp_": (lambda x: shown()["Exp_"].apply(x.clone()), torch.exp),
}
FIRST_ORDER_ONLY = {"Square_"}  # the chapter says so
unary = pytest.mark.parametrize("name", UNARY)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@unary
def test_unary_derivatives_over_shapes(name, shape, device):
    x = values(*shape, device=device)
    assert gradcheck(UNARY[name][0], x)
    if name not in FIRST_ORDER_ONLY:
        assert gradgradcheck(UNARY[name][0], x)


@unary
def test_unary_derivatives_of_what_is_not_contiguous(name):
    x = strided()
    assert not x.is_contiguous()
    assert gradcheck(UNARY[name][0], x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@unary
def test_unary_agrees_with_torch_in_each_dtype(name, dtype, device):
    x = values(3, 4, dtype=dtype, device=device)
    results = []
    for f in UNARY[name]:
        y = f(x)
        start = torch.linspace(-1, 1, y.numel(), device=device).reshape(y.shape).to(dtype)
        results.append((y, *grad(y, x, start)))
    for ours, true in zip(*results, strict=True):
        assert ours.dtype == dtype and ours.device.type == device
        # Cube multiplies four times, and each product is rounded once.
        close = {"rtol": 4 * torch.finfo(dtype).eps, "atol": 0} if name == "Cube" else {}
        torch.testing.assert_close(ours, true, **close)


def test_the_square_in_place_is_wrong_in_second_order():
    assert not gradgradcheck(UNARY["Square_"][0], values(3), raise_exception=False)


# ------------------------------------------------------------------ a tensor that may be missing

WANTED = [wanted for wanted in itertools.product([True, False], repeat=2) if any(wanted)]
BROADCASTS = {
    "same": ((2, 3), (2, 3)),
    "zero-dim weight": ((2, 3), ()),
    "weight by column": ((2, 3), (3,)),
    "weight by row": ((2, 3), (2, 1)),
    "x is the smaller one": ((3,), (2, 3)),
    "both are broadcast": ((2, 1), (3,)),
    "empty": ((0, 3), (3,)),
    "both zero-dim": ((), ()),
}


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("shapes", BROADCASTS.values(), ids=BROADCASTS.keys())
def test_weigh_over_shapes_and_wanted_gradients(shapes, wanted):
    x, w = values(*shapes[0]).requires_grad_(wanted[0]), values(*shapes[1], seed=1).requires_grad_(wanted[1])
    assert gradcheck(shown()["weigh"], (x, w)) and gradgradcheck(shown()["weigh"], (x, w))
    torch.testing.assert_close(shown()["weigh"](x, w), x * w)


@pytest.mark.parametrize(("wanted", "tensors"), [((True, False), 1), ((False, True), 1), ((True, True), 2)])
def test_weigh_saves_and_computes_only_what_is_wanted(wanted, tensors):
    x, w = values(4).requires_grad_(wanted[0]), values(4, seed=1).requires_grad_(wanted[1])
    y = shown()["weigh"](x, w)
    assert sum(t is not None for t in y.grad_fn.saved_tensors) == tensors
    assert tuple(g is not None for g in y.grad_fn.apply(torch.ones_like(y))) == wanted
    assert kept_bytes(lambda: shown()["weigh"](x, w), x, w) == 0


# ------------------------------------------------------------------ a sequence of tensors


@pytest.mark.parametrize("wanted", [w for w in itertools.product([True, False], repeat=3) if any(w)])
def test_concat_over_wanted_gradients(wanted):
    tensors = [
        values(*s, seed=i).requires_grad_(need)
        for i, (s, need) in enumerate(zip([(2, 3), (0, 3), (1, 3)], wanted, strict=True))
    ]

    def concat(*parts):
        return shown()["concat"](parts)

    assert gradcheck(concat, tensors) and gradgradcheck(concat, tensors)
    torch.testing.assert_close(concat(*tensors), torch.cat(tensors))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_concat_along_each_dimension_of_what_is_not_contiguous(dim):
    tensors = [strided(), strided()]

    def concat(*parts):
        return shown()["concat"](parts, dim)

    assert gradcheck(concat, tensors)
    torch.testing.assert_close(concat(*tensors), torch.cat(tensors, dim))


def test_concat_of_one_tensor_given_twice():
    x = values(3)
    (g,) = grad(shown()["concat"]([x, x]), x, torch.tensor([1, 2, 3, 10, 20, 30]).to(x))
    assert g.tolist() == [11, 22, 33]


# ------------------------------------------------------------------ randomness


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_dropout_over_p(p):
    x = values(64)
    y = shown()["Dropout"].apply(x, p, generator())
    (g,) = grad(y.sum(), x)
    kept = int((g != 0).sum())
    assert kept == int((torch.rand(64, generator=generator()) >= p).sum())
    assert set(g.tolist()) <= {0.0, 1 / (1 - p) if p < 1 else 0.0}
    torch.testing.assert_close(y, x * g)


@pytest.mark.parametrize(
    ("name", "size"), [("Noise", 0), ("Dropout", 256), ("Redrawn", 0), ("Restored", 5056)]
)
def test_bytes_kept_by_random_functions(name, size):
    x = values(256)
    options = (0.5,) if name in ("Noise", "Dropout") else ()
    assert kept_bytes(lambda: shown()[name].apply(x, *options), x) == size


def test_bytes_kept_by_the_others():
    x = values(256)
    cases = {
        "Scale": lambda: shown()["Scale"].apply(x, 3),
        "ScaleNew": lambda: shown()["ScaleNew"].apply(x, 3),
        "Concat": lambda: shown()["concat"]([x, x]),
        "Cube": lambda: shown()["Cube"].apply(x, torch.empty_like(x)),
        "Ramp": lambda: shown()["Ramp"].apply(x),
        "Square_": lambda: shown()["Square_"].apply(x.clone()),
        "Exp_": lambda: shown()["Exp_"].apply(x.clone()),
    }
    kept = {name: kept_bytes(make, x) for name, make in cases.items()}
    assert kept == dict.fromkeys(cases, 0) | {"Square_": 256 * 8}


@pytest.mark.parametrize("name", ["Noise", "Dropout", "Restored", "Redrawn"])
def test_backward_leaves_the_random_state_alone(name):
    x = values(16)
    y = shown()[name].apply(x, *((0.5,) if name in ("Noise", "Dropout") else ()))
    before = torch.get_rng_state()
    (g,) = grad(y.sum(), x)
    assert torch.equal(before, torch.get_rng_state())
    if name != "Noise":
        torch.testing.assert_close(y, x * g)


def test_the_restored_state_gives_the_right_mask():
    assert gradcheck(seeded(shown()["Restored"].apply), values(8))
    torch.testing.assert_close(seeded(shown()["Restored"].apply)(values(8)), restored(values(8)))


def test_each_call_of_a_random_function_draws_anew():
    x = values(64)
    for name, options in {"Dropout": (0.5,), "Noise": (0.5,), "Redrawn": (), "Restored": ()}.items():
        first, second = (shown()[name].apply(x, *options) for _ in range(2))
        assert not torch.equal(first, second), name


# ------------------------------------------------------------------ a workspace, setup_context, in place


def test_cube_does_not_depend_on_its_workspace_later():
    x, space = values(3), torch.empty(3, dtype=torch.float64)
    y = shown()["Cube"].apply(x, space)
    space.fill_(torch.nan)
    torch.testing.assert_close(grad(y.sum(), x)[0], 3 * x * x)


def test_setup_context_works_with_torch_func():
    x = values(3).detach()
    gradient = torch.func.grad(lambda x: shown()["ScaleNew"].apply(x, 3).sum())(x)
    assert gradient.tolist() == [3, 3, 3]


@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.parametrize("rest", [(2,), (1,), ()], ids=["same", "broadcast", "zero-dim"])
def test_add_to_over_wanted_gradients(rest, wanted):
    x, w = values(3).requires_grad_(wanted[0]), values(*rest, seed=1).requires_grad_(wanted[1])

    def add_to(x, w):
        return shown()["AddTo"].apply(x.clone(), w)

    assert gradcheck(add_to, (x, w)) and gradgradcheck(add_to, (x, w))


@pytest.mark.parametrize("name", ["AddTo", "Square_", "Exp_"])
def test_the_changed_input_itself_gets_the_new_history(name):
    x, w = values(3), values(2, seed=1)
    h = x * 1
    place = h.data_ptr()
    y = shown()[name].apply(h, *([w] if name == "AddTo" else []))
    assert y is h and h.data_ptr() == place and type(h.grad_fn).__name__ == f"{name}Backward"
    h.sum().backward()
    true = {"AddTo": torch.ones_like(x), "Square_": 2 * x, "Exp_": x.exp()}[name]
    torch.testing.assert_close(x.grad, true.detach())
    assert (w.grad is not None) == (name == "AddTo")


@pytest.mark.parametrize("name", ["AddTo", "Square_", "Exp_"])
def test_a_leaf_is_refused(name):
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        shown()[name].apply(values(3), *([values(2)] if name == "AddTo" else []))


def test_a_later_change_of_the_saved_result_is_noticed():
    h = values(3) * 1
    y = shown()["Exp_"].apply(h)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# ------------------------------------------------------------------ devices, dtypes, subclasses


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (0,), (2, 0)], ids=str)
def test_ramp_over_shapes(shape):
    x = values(*shape)
    assert gradcheck(shown()["Ramp"].apply, x) and gradgradcheck(shown()["Ramp"].apply, x)


def test_ramp_of_what_is_not_contiguous():
    assert gradcheck(shown()["Ramp"].apply, strided())


@pytest.mark.parametrize("device", [*DEVICES, "meta"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ramp_follows_its_input(dtype, device):
    x = values(2, 3, dtype=dtype, device=device)
    y = shown()["Ramp"].apply(x)
    (g,) = grad(y.sum(), x)
    for t in (y, g):
        assert t.dtype == dtype and t.device.type == device
    if device != "meta":
        assert g.tolist() == [[1, 2, 3], [1, 2, 3]]


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 2)), ((1, 1), (1, 1)), ((0, 3), (3, 2)), ((2, 2, 3), (2, 3, 1))]
)
def test_product_over_shapes(shapes):
    x, w = values(*shapes[0]), values(*shapes[1], seed=1)
    product = shown()["Product"].apply
    assert gradcheck(product, (x, w)) and gradgradcheck(product, (x, w))


@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=["no autocast", "autocast"])
def test_product_gives_gradients_in_the_dtype_of_its_inputs(dtype):
    x, w = values(2, 3, dtype=torch.float32), values(3, 2, seed=1, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is not None):
        y = shown()["Product"].apply(x, w)
    assert y.dtype == (dtype or torch.float32)
    y.sum().backward()
    assert x.grad.dtype == w.grad.dtype == torch.float32
    torch.testing.assert_close(x.grad, w.sum(1).expand(2, 3).detach(), rtol=2e-2, atol=2e-2)


def test_look_sees_the_subclass_of_the_input_only(capsys):
    class Tagged(torch.Tensor):
        pass

    x = torch.ones(2, requires_grad=True).as_subclass(Tagged)
    x.note = "input"
    shown()["Look"].apply(x).sum().backward()
    printed = capsys.readouterr().out
    assert "saved input: Tagged, note input" in printed
    assert "saved output: Tensor, note None" in printed
    assert "ctx.note: input" in printed

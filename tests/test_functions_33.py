"""The Functions of chapter 33, tested as the chapter shows them: their source is read from its cells."""

import ast
from itertools import product
from pathlib import Path

import nbformat
import pytest
import torch
from torch.autograd import Function, grad, gradcheck, gradgradcheck

from inside_autograd import saved_memory

CHAPTER = Path(__file__).resolve().parent.parent / "notebooks" / "33_multi_output.ipynb"
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
SHOWN = {
    *("Split", "OldSplit", "SplitN", "SumProduct", "Block", "Sort", "Max", "ReluStats"),
    *("Head", "TenTimes", "AddTo", "Return"),
}


def definitions() -> dict:
    """Every class and function that the chapter defines, from its own source; nothing else of it is run."""
    names = {"torch": torch, "Function": Function}
    for cell in nbformat.read(CHAPTER, as_version=4).cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
            exec(compile(tree, str(CHAPTER), "exec"), names)
    return names


SHOW = definitions()
CLASSES = {name: value for name, value in SHOW.items() if isinstance(value, type) and value is not Function}


def random(*shape: int, device: str = "cpu", dtype: torch.dtype = torch.double) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, generator=generator, dtype=dtype).to(device).requires_grad_()


def distinct(*shape: int, device: str = "cpu", dtype: torch.dtype = torch.double) -> torch.Tensor:
    """No two values closer than a half, so that a finite difference does not change an order."""
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    count = torch.Size(shape).numel()
    values = torch.randperm(count, generator=generator) / 2.0 - 1.25
    return values.reshape(shape).to(device, dtype).requires_grad_()


def both(f, *inputs) -> None:
    """First and second derivatives, in eager mode; forward-mode is not claimed by the chapter."""
    assert gradcheck(f, inputs)
    assert gradgradcheck(f, inputs)


def saved_bytes(call) -> int:
    with saved_memory() as memory:
        result = call()
    del result
    return memory.nbytes


def test_every_function_of_the_chapter_is_known_here():
    looking = {"Spy", "Size", "SpySort", "SpySumProduct", "CloningHead"}  # subclasses that look, or repair
    to_write = {"MinMax", "SplitInto", "Polar", "Pair", "Halves", "Powers"}  # in cells of exercises
    wrong = {"Hides", "NoneForgotten", "OneArgument"}  # fail on purpose
    mine = {name for name, value in CLASSES.items() if issubclass(value, Function)}
    assert mine - looking - wrong - to_write == SHOWN


# ------------------------------------------------------------------ Split, OldSplit, SplitN

# shape, dim, size; a view that is not contiguous is taken of it
SPLITS = [
    ((4,), 0, 1),
    ((4,), -1, 4),
    ((1,), 0, 0),
    ((3, 5), 1, 2),
    ((5, 3), -2, 5),
    ((2, 3, 4), 1, 1),
    ((0, 3), 0, 0),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("shape", "dim", "size"), SPLITS)
@pytest.mark.parametrize("name", ["Split", "OldSplit"])
def test_splits_in_two(name: str, shape, dim: int, size: int, device: str):
    split, x = SHOW[name], random(*shape, device=device)
    reference = x.split([size, x.shape[dim] - size], dim)
    for mine, true in zip(split.apply(x, dim, size), reference, strict=True):
        assert torch.equal(mine, true)
    if x.numel():
        both(lambda x: split.apply(x, dim, size), x)
        both(lambda x: split.apply(x.transpose(0, -1), dim, 0), x)
    else:
        assert grad(split.apply(x, dim, size)[1].sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("name", ["Split", "OldSplit"])
def test_a_split_needs_a_dimension(name: str):
    with pytest.raises((RuntimeError, IndexError), match="dim"):
        SHOW[name].apply(torch.tensor(1.0, requires_grad=True), 0, 0)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64]
)
@pytest.mark.parametrize("name", ["Split", "SplitN"])
def test_splits_keep_the_dtype(name: str, dtype: torch.dtype):
    x = torch.ones(4, dtype=dtype, requires_grad=True)
    parts = SHOW[name].apply(x, 0, 1) if name == "Split" else SHOW["split_n"](x, (1, 3))
    assert {part.dtype for part in parts} == {dtype}
    (g,) = grad((parts[1] * 2).sum().abs(), x)
    assert g.dtype == dtype
    assert g.tolist() == [0, 2, 2, 2]


def test_what_the_splits_save():
    """The memory claim: 4,096 bytes against none for 1,024 floats."""
    x = torch.ones(1024, requires_grad=True)
    assert saved_bytes(lambda: SHOW["OldSplit"].apply(x + 1, 0, 256)) == 4096
    assert saved_bytes(lambda: SHOW["Split"].apply(x + 1, 0, 256)) == 0
    assert saved_bytes(lambda: SHOW["split_n"](x + 1, (256, 0, 768))) == 0


@pytest.mark.parametrize("name", ["Split", "OldSplit"])
def test_a_split_without_a_graph(name: str):
    parts = SHOW[name].apply(torch.ones(4), 0, 1)
    assert not any(part.requires_grad for part in parts)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "dim", "sizes"),
    [
        ((4,), 0, (1, 2, 1)),
        ((4,), -1, (4,)),
        ((1,), 0, (1,)),
        ((4, 3), 0, (1, 0, 3)),
        ((4, 3), -1, (1, 1, 1)),
        ((2, 3, 4), -2, (2, 1)),
    ],
)
def test_split_n(shape, dim: int, sizes, device: str):
    split_n, x = SHOW["split_n"], random(*shape, device=device)
    for mine, true in zip(split_n(x, sizes, dim), x.split(sizes, dim), strict=True):
        assert torch.equal(mine, true)
    both(lambda x: split_n(x, sizes, dim), x)
    both(lambda x: split_n(x.transpose(0, -1), [x.shape[0]], -1), x)


def test_split_n_of_used_and_unused_parts():
    x = random(6)
    w = torch.arange(1.0, 7.0, dtype=torch.double)
    for used in product([False, True], repeat=3):
        parts = SHOW["split_n"](x, (1, 2, 3))
        chosen = [
            (part * v).sum() for part, v, one in zip(parts, w.split((1, 2, 3)), used, strict=True) if one
        ]
        expected = torch.cat([v * one for v, one in zip(w.split((1, 2, 3)), used, strict=True)])
        if chosen:
            assert torch.equal(grad(sum(chosen), x)[0], expected)


def test_split_n_passes_none_on():
    x = random(3)
    part = SHOW["split_n"](x, (1, 2))[0]
    assert grad(SHOW["Block"].apply(part).sum(), x, allow_unused=True) == (None,)


@pytest.mark.parametrize(
    ("shape", "sizes", "dim", "message"),
    [
        ((4, 3), (1, 2), 0, "add up to 4"),
        ((4, 3), (5,), 0, "add up to 4"),
        ((4, 3), (), 1, "add up to 3"),
        ((4, 3), (-1, 5), 0, "at least 0"),
        ((4, 3), (4,), 2, "dim is 2, but x has 2 dimensions"),
        ((4, 3), (4,), -3, "dim is -3"),
        ((), (1,), 0, "x has 0 dimensions"),
    ],
)
def test_split_n_says_what_is_wrong(shape, sizes, dim: int, message: str):
    with pytest.raises(ValueError, match=message):
        SHOW["split_n"](torch.ones(shape), sizes, dim)


def test_split_n_of_nothing():
    assert SHOW["split_n"](torch.ones(0), []) == ()
    x = torch.ones(0, 2, requires_grad=True)
    (part,) = SHOW["split_n"](x, [0])
    assert grad(part.sum(), x)[0].shape == (0, 2)


# ------------------------------------------------------------------ SumProduct

BROADCASTS = [((), ()), ((3,), (3,)), ((1,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("left", "right"), BROADCASTS)
def test_sum_product(left, right, device: str):
    a, b = random(*left, device=device), random(*right, device=device)
    total, prod = SHOW["SumProduct"].apply(a, b)
    assert torch.equal(total, a + b) and torch.equal(prod, a * b)
    both(SHOW["SumProduct"].apply, a, b)


def test_sum_product_not_contiguous_and_empty():
    a, b = random(2, 3), random(3, 2)
    both(lambda a, b: SHOW["SumProduct"].apply(a.t(), b), a, b)
    empty = torch.ones(0, 2, requires_grad=True)
    assert grad(SHOW["SumProduct"].apply(empty, empty)[1].sum(), empty)[0].shape == (0, 2)


@pytest.mark.parametrize("used", list(product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("needs", [(True, False), (False, True), (True, True)], ids=str)
def test_sum_product_of_used_outputs_and_needed_inputs(used, needs):
    a, b = (torch.tensor(v, requires_grad=n) for v, n in zip(([1.0, 2.0], [4.0, 8.0]), needs, strict=True))
    total, prod = SHOW["SumProduct"].apply(a, b)
    inputs = [t for t in (a, b) if t.requires_grad]
    slopes = [t for t, n in zip((b, a), needs, strict=True) if n]
    pieces = [y if one else SHOW["Block"].apply(y) for y, one in zip((total, prod), used, strict=True)]
    found = grad((pieces[0] + 10 * pieces[1]).sum(), inputs, allow_unused=True)
    for g, other in zip(found, slopes, strict=True):
        if used == (False, False):
            assert g is None
        else:
            assert torch.equal(g, used[0] * torch.ones(2) + used[1] * 10 * other)


def test_sum_product_saves_its_inputs_and_nothing_new():
    a, b = (torch.ones(8, requires_grad=True) for _ in range(2))
    with saved_memory() as memory:
        outputs = SHOW["SumProduct"].apply(a, b)
    assert len(outputs) == 2
    assert (memory.nbytes, memory.new_nbytes) == (64, 0)


# ------------------------------------------------------------------ Sort, Max, ReluStats


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "dim"), [((), 0), ((1,), 0), ((5,), -1), ((3, 4), 0), ((3, 4), -1), ((2, 3, 2), 1)]
)
def test_sort(shape, dim: int, device: str):
    x, sort = distinct(*shape, device=device), SHOW["Sort"]
    for mine, true in zip(sort.apply(x, dim), x.sort(dim), strict=True):
        assert torch.equal(mine, true)
    both(lambda x: sort.apply(x, dim), x)
    if len(shape) > 1:
        both(lambda x: sort.apply(x.transpose(0, -1), dim), x)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("shape", "dim"), [((), 0), ((1,), 0), ((5,), -1), ((3, 4), 0), ((3, 4), -1), ((2, 3, 2), 1)]
)
def test_max(shape, dim: int, device: str):
    x, largest = distinct(*shape, device=device), SHOW["Max"]
    for mine, true in zip(largest.apply(x, dim), x.max(dim), strict=True):
        assert torch.equal(mine, true)
    both(lambda x: largest.apply(x, dim), x)
    if len(shape) > 1:
        both(lambda x: largest.apply(x.transpose(0, -1), dim), x)


@pytest.mark.parametrize("name", ["Sort", "Max"])
def test_empty_batches_and_marked_indices(name: str):
    x = torch.ones(0, 3, requires_grad=True)
    values, indices = SHOW[name].apply(x, 1)
    assert values.requires_grad and not indices.requires_grad
    assert grad(values.sum(), x)[0].shape == (0, 3)


@pytest.mark.parametrize("name", ["Sort", "Max"])
def test_sort_and_max_save_the_indices_only(name: str):
    x = torch.arange(8.0).reshape(2, 4).requires_grad_()
    count = 8 if name == "Sort" else 2
    assert saved_bytes(lambda: SHOW[name].apply(x, 1)) == count * 8  # int64


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3)])
def test_relu_stats(shape):
    x = distinct(*shape)  # no zero among the values: they lie a quarter beside the halves
    mark = SHOW["ReluStats"]
    both(lambda x: mark.apply(x, lambda m, count, share: m(count, share)), x)
    y, count, share = mark.apply(x, lambda m, count, share: m(count, share))
    assert torch.equal(y, x.relu())
    assert count == (x > 0).sum() and share == (x > 0).double().mean()
    assert saved_bytes(lambda: mark.apply(x, lambda m, count, share: m(count, share))) == x.numel()  # a mask


def test_a_second_mark_replaces_the_first():
    x = distinct(4)
    share = SHOW["ReluStats"].apply(x, lambda m, count, share: [m(share), m(count)])[2]
    assert share.requires_grad
    share = SHOW["ReluStats"].apply(x, lambda m, count, share: [m(count), m(share)])[2]
    assert not share.requires_grad


# ------------------------------------------------------------------ views and returned inputs


@pytest.mark.parametrize(("shape", "size"), [((4,), 2), ((1,), 1), ((3, 2), 2), ((4,), 0)])
@pytest.mark.parametrize("name", ["Head", "CloningHead"])
def test_head(name: str, shape, size: int):
    x, head = random(*shape), SHOW[name]
    assert torch.equal(head.apply(x, size), x[:size])
    if size:
        both(lambda x: head.apply(x, size), x)
        both(lambda x: head.apply(x.transpose(0, -1), 1), x)
    assert grad(head.apply(x, size).sum(), x)[0].shape == x.shape
    assert saved_bytes(lambda: head.apply(x, size)) == 0


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3)])
def test_ten_times(shape):
    x = random(*shape)
    y = SHOW["TenTimes"].apply(x)
    assert torch.equal(y, x) and y.data_ptr() == x.data_ptr()
    assert torch.equal(grad(y.sum(), x)[0], torch.full_like(x, 10))
    if x.numel():  # its backward is not the derivative of what it computes: that is its purpose
        with pytest.raises(RuntimeError, match="Jacobian mismatch"):
            gradcheck(SHOW["TenTimes"].apply, (x,))


def test_add_to_in_place():
    h, b = random(3), random(1)
    both(lambda h, b: SHOW["AddTo"].apply(h.clone(), b, True), h, b)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        SHOW["AddTo"].apply(h, b, True)


def test_block_passes_nothing_on():
    x = random(2)
    assert grad(SHOW["Block"].apply(x).sum(), x, allow_unused=True) == (None,)


MESSAGES = {
    "several views": (
        "OldSplit",
        "view",
        False,
        "is a view and is being modified inplace",
        "returns multiple views",
    ),
    "one view": (
        "Head",
        "view",
        False,
        "is a view and is being modified inplace",
        "inside a custom Function",
    ),
    "base changed": (
        "Head",
        "base",
        False,
        "its base or another view of its base",
        "inside a custom Function",
    ),
    "under no_grad": ("Head", "view", True, "created in no_grad mode", "inside a custom Function"),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_the_four_messages(case: str):
    name, change, no_grad, did, kind = MESSAGES[case]
    h = random(4) * 1
    with torch.set_grad_enabled(not no_grad):
        y = SHOW[name].apply(h, 2) if name == "Head" else SHOW[name].apply(h, 0, 2)[0]
    with pytest.raises(RuntimeError, match=did) as caught:
        (y if change == "view" else h).add_(1)
        y * 2
    assert kind in str(caught.value)


# ------------------------------------------------------------------ what is returned


def test_only_tensors_directly_in_a_tuple_are_seen():
    x = random(2)
    seen = {
        "tensor": SHOW["Return"].apply(x, torch.clone),
        "tuple": SHOW["Return"].apply(x, lambda x: (x.clone(), x.clone())),
        "list": SHOW["Return"].apply(x, lambda x: [x.clone()]),
        "dict": SHOW["Return"].apply(x, lambda x: {"copy": x.clone()}),
    }
    flags = {name: SHOW["flags"](value) for name, value in seen.items()}
    assert flags == {
        "tensor": "grad",
        "tuple": ("grad", "grad"),
        "list": ["NO grad"],
        "dict": {"copy": "NO grad"},
    }


def test_a_gradient_argument_for_everything_returned(capsys):
    x = torch.ones(2, requires_grad=True)
    first, info, last = SHOW["Return"].apply(x, lambda x: (x.clone(), {"info": 1}, x.clone()))
    assert info == {"info": 1}
    assert grad((first + last).sum(), x)[0].tolist() == [2, 2]
    assert "[[1.0, 1.0], None, [1.0, 1.0]]" in capsys.readouterr().out


# ------------------------------------------------------------------ the ones that fail on purpose


def test_a_forgotten_none_is_found():
    x = random(2)
    assert grad(sum(SHOW["NoneForgotten"].apply(x)).sum(), x)[0].tolist() == [5, 5]
    with pytest.raises(TypeError, match="NoneType"):
        gradcheck(SHOW["NoneForgotten"].apply, (x,))


def test_a_missing_argument_is_named():
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        SHOW["OneArgument"].apply(random(2))[0].sum().backward()


def test_gradcheck_does_not_see_a_wrong_mark():
    assert gradcheck(SHOW["Hides"].apply, (random(2),))


def test_gradcheck_in_single_precision_fails_with_a_warning():
    x = torch.tensor([1.0, 2.0, 4.0, 8.0], requires_grad=True)
    with pytest.warns(UserWarning, match="double precision"), pytest.raises(RuntimeError, match="Jacobian"):
        gradcheck(lambda x: SHOW["OldSplit"].apply(x, 0, 1), (x,))

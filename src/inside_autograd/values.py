"""Say in a few characters what a gradient is: exact numbers where it is small, a summary where it is large.

Nothing here keeps a tensor, and nothing raises: a gradient that has no plain numbers (on the meta
device, inside a transform) is described by its shape.
"""

import cmath
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .saved import dtype_name, shape_of

MAX_EXACT = 6  # up to so many elements every one is shown
MAX_LISTED = 256  # up to so many a list of numbers is faster than tensor operations
FIRST = 3  # so many are shown of a large tensor
_HALF, _SINGLE, _DOUBLE = struct.Struct("e"), struct.Struct("f"), struct.Struct("d")
_PACK = {
    "float16": _HALF,
    "complex32": _HALF,
    "float32": _SINGLE,
    "complex64": _SINGLE,
    "bfloat16": _SINGLE,
}
_COARSE = ("float16", "complex32", "bfloat16")  # less than five digits of precision
_SMALL = 1e-30  # so have numbers close to the smallest that float32 can tell from zero

_function_modes, _dispatch_modes = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack

Number = int | float | complex | bool
Shape = tuple[int, ...]
# Minimum, maximum, mean and norm, then how many are NaN and how many infinite.
Figures = tuple[float | None, float | None, Number | None, float | None, int, int]


@dataclass(slots=True, unsafe_hash=True)
class Value:
    """A gradient as plain data, to be treated as read-only. ``str(value)`` says all that is known of it.

    Attributes
    ----------
    text
        Short: ``2``, ``[1, 2, 4]``, or ``(64, 10) norm 3.5`` for a tensor of more than six elements.
    shape, dtype
        ``shape`` is ``None`` for a nested tensor, which has no single one.
    layout
        ``strided``, ``sparse_coo``, ``nested``, ... For a sparse gradient the figures are those of
        the stored elements.
    numbers
        All elements in row-major order where there are at most six of them, else ``None``.
    first
        The first elements: all of them, or three of a large tensor.
    minimum, maximum, mean, norm
        Over the finite elements, in double precision; ``norm`` is the Euclidean norm. ``None`` where
        they cannot be told: complex numbers have no minimum, an empty tensor has no mean.
    nan, inf
        How many elements are NaN and how many are infinite; ``None`` where that cannot be told.
    """

    text: str
    shape: Shape | None
    dtype: str
    layout: str = "strided"
    numbers: tuple[Number, ...] | None = None
    first: tuple[Number, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    mean: Number | None = None
    norm: float | None = None
    nan: int | None = None
    inf: int | None = None

    @property
    def nonfinite(self) -> bool:
        """Whether a NaN or an infinity is in it."""
        return bool(self.nan or self.inf)

    @property
    def is_zero(self) -> bool:
        """Whether every element is known to be zero."""
        return self.norm == 0 and not self.nonfinite

    def __str__(self) -> str:
        if self.numbers is not None and self.layout == "strided":
            return f"{self.text} ({self.dtype})"
        figures = [
            f"{name} {figure_text(figure)}"
            for name, figure in (
                ("min", self.minimum),
                ("max", self.maximum),
                ("mean", self.mean),
                ("norm", self.norm),
            )
            if figure is not None
        ]
        if self.first:
            figures.append("first values " + ", ".join(number_text(n, self.dtype) for n in self.first))
        figures += [f"{count:,} {name}" for name, count in (("NaN", self.nan), ("inf", self.inf)) if count]
        what = "" if self.layout == "strided" else f" {self.layout}"
        head = f"{_shape_text(self.shape)} {self.dtype}{what}"
        return f"{head}: {', '.join(figures)}" if figures else head


@contextmanager
def unseen() -> Iterator[None]:
    """Tensor operations inside are hidden from modes and subclasses that watch the caller's own."""
    modes = _disable_current_modes() if _dispatch_modes() else nullcontext()
    with torch._C.DisableTorchFunction(), modes:
        yield


def implicit_gradient(shape: Shape | None, dtype: str) -> Value:
    """The gradient that torch starts with where none is given: 1, in the shape of the scalar output."""
    text = "[" * len(shape or ()) + "1" + "]" * len(shape or ())
    return Value(text, shape, dtype, "strided", (1.0,), (1.0,), 1.0, 1.0, 1.0, 1.0, 0, 0)


def _watched() -> bool:
    """Whether a mode of the caller's would see what is done to a plain tensor here."""
    return bool(_function_modes() or _dispatch_modes())


@contextmanager
def _hidden() -> Iterator[None]:
    with torch.no_grad(), unseen():
        yield


class Seen:
    """Values that were described before, by the bytes of their tensors.

    What one node sends the next receives, so at least half of what a recording describes is not new.
    Told by content: the tensors themselves are not kept, and a change in place is never missed.
    """

    LARGEST = 4_096  # bytes of a tensor that is looked up
    MOST = 4_096  # values that are remembered

    def __init__(self) -> None:
        self.values: dict[tuple, Value] = {}

    def describe(self, tensor: torch.Tensor, batch: tuple[int, int] | None) -> Value:
        """As ``summarize``."""
        array = self._array(tensor)
        if array is None:
            return summarize(tensor, batch)
        key = tensor.dtype, array.shape, array.tobytes()
        found = self.values.get(key)
        if found is None:
            if len(self.values) >= self.MOST:
                self.values.clear()
            if array.size <= MAX_LISTED:
                listed = array.reshape(-1).tolist()
                found = _listed(listed, array.shape, dtype_name(tensor.dtype), "strided", array)
            else:
                found = summarize(tensor, batch)
            self.values[key] = found
        return found

    def _array(self, tensor: torch.Tensor) -> Any:
        """``tensor`` as NumPy sees it; ``None`` where it is too large, or not a plain one in memory."""
        if type(tensor) is not torch.Tensor or _watched():
            return None
        try:
            if tensor.nbytes <= self.LARGEST:
                return tensor.detach().numpy()
        except Exception:  # on another device, bfloat16, sparse, conjugated, under a transform, ...
            pass
        return None


def summarize(tensor: torch.Tensor, batch: tuple[int, int] | None = None) -> Value:
    """Describe ``tensor`` without keeping it, changing it, or recording a graph.

    Parameters
    ----------
    tensor
        Any gradient: dense, sparse, complex, empty, nested, on any device.
    batch
        ``(level, size)`` of the ``vmap`` that ``is_grads_batched=True`` runs under, if it does.
    """
    # A plain tensor that nothing watches needs no hiding: that costs as much as the rest.
    plain = type(tensor) is torch.Tensor and not torch.is_grad_enabled()
    with nullcontext() if plain and not _watched() else _hidden():
        try:
            return _summarize(tensor, batch)
        except Exception:  # values of exotic tensors may be out of reach; the run must go on
            return _without_numbers(tensor)


def _summarize(tensor: torch.Tensor, batch: tuple[int, int] | None) -> Value:
    if batch is not None and torch._C._functorch.is_legacy_batchedtensor(tensor):
        tensor = torch._remove_batch_dim(tensor, *batch, 0)
    tensor = tensor.detach()
    if tensor.is_meta:
        return _without_numbers(tensor)
    layout = _layout(tensor)
    numbers = _stored_elements(tensor, layout)
    shape, dtype = _shape(tensor), dtype_name(tensor.dtype)
    if numbers.numel() <= MAX_LISTED:
        return _listed(numbers.reshape(-1).tolist(), shape, dtype, layout, numbers)
    first = tuple(numbers.reshape(-1)[:FIRST].tolist())
    return _large(first, shape, dtype, layout, _figures(numbers))


def _listed(listed: list, shape: Shape | None, dtype: str, layout: str, nested: Any) -> Value:
    """Describe a tensor by the list of its stored elements. ``nested.tolist()`` has them by dimensions."""
    if len(listed) > MAX_EXACT:
        return _large(tuple(listed[:FIRST]), shape, dtype, layout, _list_figures(listed))
    exact = tuple(listed) if layout == "strided" else None
    text = _nested_text(nested.tolist(), dtype) if listed else f"empty {_shape_text(shape)}"
    if layout != "strided":
        text = f"{_shape_text(shape)} {layout} {text}".removeprefix("nested ")
    return Value(text, shape, dtype, layout, exact, tuple(listed), *_list_figures(listed))


def _large(first: tuple, shape: Shape | None, dtype: str, layout: str, figures: Figures) -> Value:
    what = "" if layout == "strided" else f" {layout}"
    text = f"{_shape_text(shape)}{what} {_in_short(figures, dtype)}"
    return Value(text.removeprefix("nested "), shape, dtype, layout, None, first, *figures)


def _in_short(figures: Figures, dtype: str) -> str:
    low, high, _, norm, nan, inf = figures
    if nan or inf:
        return ", ".join(f"{count:,} {name}" for name, count in (("NaN", nan), ("inf", inf)) if count)
    if low is not None and low == high:
        return f"all {number_text(low, dtype)}"
    assert norm is not None  # as it is where all elements are finite
    return f"norm {figure_text(norm)}"


def _without_numbers(tensor: torch.Tensor) -> Value:
    shape, dtype = _shape(tensor), dtype_name(tensor.dtype)
    where = " meta" if tensor.is_meta else ""
    return Value(f"{_shape_text(shape)}{where}", shape, dtype)


def _shape(tensor: torch.Tensor) -> Shape | None:
    return None if tensor.is_nested else shape_of(tensor)


def _layout(tensor: torch.Tensor) -> str:
    if tensor.is_nested:
        return "nested"
    return str(tensor.layout).removeprefix("torch.")


def _stored_elements(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The elements as a dense tensor; the caller's own tensor is not changed by what is done to it."""
    if layout == "nested":
        return torch.cat([part.reshape(-1) for part in tensor.unbind()])
    if layout == "sparse_coo":
        return tensor.coalesce().values()
    if layout.startswith("sparse"):
        return tensor.values()
    if layout != "strided":
        return tensor.to_dense()
    if tensor._is_zerotensor():
        return torch.zeros(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return tensor.resolve_conj().resolve_neg()


def _figures(numbers: torch.Tensor) -> Figures:
    wide = numbers.to(torch.complex128 if numbers.is_complex() else torch.float64).reshape(-1)
    nan = inf = 0
    norm = float(torch.linalg.vector_norm(wide))
    if not math.isfinite(norm):  # a norm is finite where every element is
        nan = int(wide.isnan().sum())
        inf = int((wide.isinf() & ~wide.isnan()).sum())
        wide = wide[wide.isfinite()]
        if not wide.numel():
            return None, None, None, None, nan, inf
        norm = float(torch.linalg.vector_norm(wide))
    low, high = (None, None) if wide.is_complex() else (float(end) for end in wide.aminmax())
    return low, high, wide.mean().item(), norm, nan, inf


def _list_figures(numbers: list) -> Figures:
    """The same for a list, without the price of tensor operations, and without their rounding."""
    try:
        norm = math.hypot(*numbers)
        if math.isfinite(norm) and numbers:  # a norm is finite where every element is
            return float(min(numbers)), float(max(numbers)), math.fsum(numbers) / len(numbers), norm, 0, 0
    except TypeError:  # complex numbers
        pass
    finite = [number for number in numbers if cmath.isfinite(number)]
    nan = sum(cmath.isnan(number) for number in numbers)
    inf = len(numbers) - len(finite) - nan
    if not finite:
        return None, None, None, None if numbers else 0.0, nan, inf
    norm = math.hypot(*(part for number in finite for part in (number.real, number.imag)))
    mean = math.fsum(number.real for number in finite) / len(finite)
    if any(isinstance(number, complex) for number in finite):
        return None, None, complex(mean, math.fsum(n.imag for n in finite) / len(finite)), norm, nan, inf
    return float(min(finite)), float(max(finite)), mean, norm, nan, inf


def _nested_text(values: Any, dtype: str) -> str:
    if isinstance(values, list):
        return "[" + ", ".join(_nested_text(value, dtype) for value in values) + "]"
    return number_text(values, dtype)


def _shape_text(shape: Sequence[int] | None) -> str:
    if shape is None:
        return "nested"
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def number_text(number: Number, dtype: str = "float64") -> str:
    """Write a number short: all its digits where they are few, else five significant ones."""
    if isinstance(number, bool):
        return str(number)
    if isinstance(number, complex):
        real, imaginary = number_text(number.real, dtype), number_text(number.imag, dtype)
        if number.real == 0 and number.imag != 0:
            return f"{imaginary}j"
        return f"{real}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if not math.isfinite(number):
        return {math.inf: "inf", -math.inf: "-inf"}.get(number, "nan")
    if float(number).is_integer() and abs(number) < 1e9:
        return str(int(number))
    # 0.1, not the 0.10000000149 that float32 makes of it. Where a number has more than five digits of
    # its own, five say whether fewer would do: zeros at their end are left out.
    few = dtype in _COARSE or abs(number) < _SMALL
    for digits in range(1 if few else 5, 6):
        short = f"{number:.{digits}g}"
        if _rounded(float(short), dtype) == number:
            return short
    # A power of two in the denominator, as examples checked by hand have: show it whole.
    whole = f"{number:.9g}"
    if float(whole) == number and float(number * 1024).is_integer() and "e" not in whole:
        return whole
    return short


def figure_text(figure: Number) -> str:
    """A statistic, to four significant digits: the last bits of a sum depend on the machine."""
    if isinstance(figure, complex):
        return number_text(complex(float(f"{figure.real:.4g}"), float(f"{figure.imag:.4g}")))
    return number_text(float(f"{figure:.4g}"))


def _rounded(number: float, dtype: str) -> float:
    """``number`` as ``dtype`` would store it."""
    form = _PACK.get(dtype, _DOUBLE)
    try:
        packed = form.pack(number)
    except OverflowError:
        return math.inf
    if dtype == "bfloat16":  # the upper half of a float32, rounded to even
        bits = struct.unpack("I", packed)[0]
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        packed = struct.pack("I", bits & 0xFFFFFFFF)
    return form.unpack(packed)[0]

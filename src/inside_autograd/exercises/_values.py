"""Compare a learner's values with the true ones, and write both down briefly."""

import math
from collections.abc import Mapping

import torch

# Relative tolerance by dtype: wide enough for another order of summation, far below any real mistake.
_RTOL = {torch.float16: 1e-2, torch.bfloat16: 3e-2, torch.float32: 1e-4, torch.float64: 1e-8}


def freeze(value: object) -> object:
    """A copy of ``value`` that later in-place changes cannot reach: tensors detached and cloned."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, Mapping):
        return {key: freeze(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def same(mine: object, true: object) -> bool:
    """Whether two frozen values agree: same structure, shape and dtype, close numbers."""
    if isinstance(true, torch.Tensor) or isinstance(mine, torch.Tensor):
        return _same_tensor(mine, true)
    if isinstance(true, Mapping):
        if not isinstance(mine, Mapping) or list(mine) != list(true):
            return False
        return all(same(mine[key], true[key]) for key in true)
    if isinstance(true, tuple):
        return isinstance(mine, tuple) and len(mine) == len(true) and all(map(same, mine, true))
    if isinstance(true, bool) or isinstance(mine, bool):
        return mine is true
    if isinstance(true, int | float) and isinstance(mine, int | float):
        return (
            mine == true or (math.isnan(mine) and math.isnan(true)) or math.isclose(mine, true, rel_tol=1e-6)
        )
    try:
        return type(mine) is type(true) and bool(mine == true)
    except Exception:  # a learner's own __eq__
        return False


def _same_tensor(mine: object, true: object) -> bool:
    if not (isinstance(mine, torch.Tensor) and isinstance(true, torch.Tensor)):
        return False
    if mine.shape != true.shape or mine.dtype != true.dtype:
        return False
    if not true.is_floating_point() and not true.is_complex():
        return bool(torch.equal(mine, true))
    rtol = _RTOL.get(true.dtype, 1e-4)
    return bool(torch.allclose(mine, true, rtol=rtol, atol=rtol, equal_nan=True))


def write(value: object, digits: int = 5) -> str:
    """``value`` in a few words, for a report: ``2``, ``[1, 2.5]``, ``a tensor of shape (3, 4), …``."""
    if isinstance(value, torch.Tensor):
        return _write_tensor(value, digits)
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return f"{value:.{digits}g}" if isinstance(value, float) else str(value)
    if isinstance(value, tuple | list):
        inner = ", ".join(write(item, digits) for item in value[:8])
        end = ", …" if len(value) > 8 else "," if len(value) == 1 else ""
        return f"({inner}{end})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {write(item, digits)}" for key, item in list(value.items())[:8]) + "}"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"an object of type {type(value).__name__}"


def _write_tensor(tensor: torch.Tensor, digits: int) -> str:
    try:
        if tensor.numel() > 12 or tensor.is_sparse:
            first = _numbers(tensor.flatten()[:4].tolist(), digits)
            return f"a tensor of shape {tuple(tensor.shape)}, first values {first}"
        dtype = "" if tensor.dtype in (torch.float32, torch.int64, torch.bool) else f" ({_dtype(tensor)})"
        if tensor.numel() == 0:
            return f"an empty tensor of shape {tuple(tensor.shape)}{dtype}"
        return _numbers(tensor.tolist(), digits) + dtype
    except RuntimeError:
        return f"a tensor of type {_dtype(tensor)}"


def _numbers(value: object, digits: int) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_numbers(item, digits) for item in value) + "]"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def difference(mine: object, true: object) -> str:
    """How two values differ, where that is more than the numbers: type, shape, dtype, one factor."""
    if isinstance(true, torch.Tensor) and not isinstance(mine, torch.Tensor):
        return f"A tensor was expected, yours is {write(mine)}."
    if not isinstance(true, torch.Tensor) or not isinstance(mine, torch.Tensor):
        return ""
    if mine.shape != true.shape:
        return f"The shape is {tuple(mine.shape)}, expected {tuple(true.shape)}."
    if mine.dtype != true.dtype:
        return f"The dtype is {_dtype(mine)}, expected {_dtype(true)}."
    factor = _factor(mine, true)
    if factor is None or f"{factor:.4g}" == "1":
        return ""
    return f"Every value is {factor:.4g} times the true one."


def _factor(mine: torch.Tensor, true: torch.Tensor) -> float | None:
    if not true.is_floating_point() or not (true != 0).any():
        return None
    ratio = mine[true != 0] / true[true != 0]
    first = ratio.flatten()[0]
    steady = torch.allclose(ratio, first.expand_as(ratio), rtol=1e-4) and bool((mine[true == 0] == 0).all())
    return float(first) if steady and bool(torch.isfinite(first)) and float(first) != 0 else None

"""Whether NaN or infinity is in a value: of a tensor, and of numbers among an operation's arguments."""

import cmath
from dataclasses import dataclass

import torch

from .values import Value, _layout, _shape_text, _stored_elements, figure_text


@dataclass(frozen=True, slots=True)
class Health:
    """Which kinds of non-finite numbers are there."""

    nan: bool = False
    inf: bool = False

    def __or__(self, other: "Health") -> "Health":
        return Health(self.nan or other.nan, self.inf or other.inf)

    def __bool__(self) -> bool:
        return self.nan or self.inf


FINE = Health()


def health(value: object) -> Health:
    """What is in ``value``: a tensor or a Python number; ``FINE`` for anything else. Never raises."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            try:
                return _of_tensor(value)
            except Exception:  # values of exotic tensors may be out of reach; the run must go on
                return FINE
    if isinstance(value, float | complex):
        return Health(cmath.isnan(value), cmath.isinf(value))
    return FINE


def _of_tensor(tensor: torch.Tensor) -> Health:
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_meta:
        return FINE
    layout = _layout(tensor)
    if layout != "strided":
        tensor = _stored_elements(tensor.detach(), layout)
    if not tensor.numel():
        return FINE
    if tensor.element_size() == 1:  # the eight-bit floats have few operations
        tensor = tensor.float()
    if bool(tensor.isfinite().all()):
        return FINE
    nan = tensor.isnan()
    return Health(bool(nan.any()), bool((tensor.isinf() & ~nan).any()))


def brief(value: Value | None) -> str:
    """A value in half a line: exact where it is small, its range where it is large."""
    if value is None:
        return "none"
    if value.numbers is not None or value.minimum is None or value.maximum is None:
        return f"{value.text} ({value.dtype})"
    figures = [f"min {figure_text(value.minimum)}, max {figure_text(value.maximum)}"]
    figures += [f"{count:,} {name}" for name, count in (("NaN", value.nan), ("inf", value.inf)) if count]
    return f"{_shape_text(value.shape)} {value.dtype}: {', '.join(figures)}"

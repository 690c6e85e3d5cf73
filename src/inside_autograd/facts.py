"""What one of torch's nodes is: its name, its kind, why a slot is empty, which node a leaf has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.checkpoint import CheckpointFunction

OP, CUSTOM, ACCUMULATE, RECORDED = "op", "custom", "accumulate", "recorded"
COPY_SLICES, HOOK, CHECKPOINT, ERROR = "copy_slices", "hook", "checkpoint", "error"

AccumulateGrad = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]  # torch's stubs lack it


def is_custom(node: object) -> bool:
    """Whether the node belongs to a ``torch.autograd.Function``."""
    return isinstance(node, torch._C._FunctionBase)


def name_of(node: Any) -> str:
    """The name of a node's class, as ``grad_fn`` prints it.

    A node without a Python class of its own prints as ``CppFunction``: that gets its name in C++,
    without namespaces.
    """
    name = type(node).__name__
    if name != "CppFunction":
        return name
    return node.name().partition("<")[0].rpartition("::")[2] or name


def kind_of(node: object, name: str) -> str:
    if type(node) is AccumulateGrad:
        return ACCUMULATE
    if is_custom(node):
        made_by = getattr(type(node), "_forward_cls", None)
        if made_by is torch.nn.modules._functions.BackwardHookFunction:
            return HOOK
        return CHECKPOINT if made_by is CheckpointFunction else CUSTOM
    if name == "CopySlices":
        return COPY_SLICES
    if name in ("Error", "DelayedError", "NotImplemented"):
        return ERROR
    # MulBackward0 is an operation, TanhBackwardBackward0 the backward of a formula.
    return RECORDED if name.count("Backward") > 1 else OP


def why_empty(node: object) -> tuple[str, str]:
    """Why ``next_functions`` of such a node holds ``None``: in slot 0, and in any other."""
    if is_custom(node):
        reason = "this tensor argument does not require grad"
    else:
        reason = "this input needs no gradient: a constant, absent, or requires_grad=False"
    return reason, "the value written needs no gradient" if type(node).__name__ == "CopySlices" else reason


@contextmanager
def unseen() -> Iterator[None]:
    """Read tensors so that no mode and no subclass of the caller's sees it, or stops it."""
    with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.inference_mode(False):
        yield


def leaf_node(leaf: torch.Tensor) -> Any:
    """The ``AccumulateGrad`` of a leaf that requires grad.

    Torch hands it out only through an operation on the leaf. A view of it is the least: it
    touches no version and saves nothing.
    """
    with unseen(), torch.enable_grad():
        view: Any = leaf.view_as(leaf)
        return view.grad_fn.next_functions[0][0]

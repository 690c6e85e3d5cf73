"""Find the first value that is not finite, in forward and in backward: ``first_nonfinite``."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from .health import health
from .inputs import _article, named_tensors
from .module_watch import Modules
from .nonfinite_forward import Forward
from .nonfinite_pass import backward_pass
from .nonfinite_report import Held, NonfiniteReport
from .put_back import buffers_kept, grads_aside, random_state_kept, uncompiled
from .saved import shape_of
from .values import summarize

_PASS_A_FUNCTION = "it is in the loss; pass a function that runs the forward pass, to see where it is made"
_WRITTEN = "an infinity that the code writes itself reaches the loss"
_UNSEEN = "it is in the loss, and no operation that was watched made it"


def first_nonfinite(
    step: Callable[[], torch.Tensor] | torch.Tensor, params: object = None, *, ignore_inf: bool = False
) -> NonfiniteReport:
    """Run one forward and backward pass, and name where the first NaN or infinity comes from.

    Nothing is left behind: ``.grad`` of parameters, buffers (such as the running statistics of a batch norm)
    and torch's random state are as before, so the training step that you run next draws the same random
    numbers and meets the same NaN. All hooks are removed, also after an error.

    Parameters
    ----------
    step
        A function without arguments that runs the forward pass and returns the loss, a tensor of one
        element: ``lambda: loss_fn(model(x), y)``. It must not call ``backward``.
        Or a loss that you have already: then only backward is watched, which keeps its graph for you,
        and lines of forward are known only if the forward ran under ``detect_anomaly``.
    params
        Where names come from: a module, or a mapping from names to modules or tensors.
    ignore_inf
        Look for NaN alone. Infinities that your code writes itself, such as the ``-inf`` of
        ``masked_fill(mask, -inf)``, are not reported in either case, and neither are the places that
        hand them on; this is for masks that were made before the step, and for mixed precision, where
        infinite gradients are expected: ``GradScaler`` skips such steps.

    Returns
    -------
    NonfiniteReport
        Plain data that holds no tensor. ``print`` shows it in words, ``if report:`` asks whether
        anything was found.

    Raises
    ------
    TypeError
        If ``step`` is neither callable nor a tensor, does not return a tensor, or ``params`` has
        another form.
    ValueError
        If the loss has more than one element, ``step`` has run ``backward`` itself, or ``params`` is
        missing for a graph past the limits of ``Graph.of``.
    Exception
        What ``step`` or a ``backward`` raises, if nothing non-finite was seen before.

    Notes
    -----
    In forward every operation is looked at below autograd, also inside of modules, scripts and Functions,
    and under ``no_grad``. ``torch.compile`` is set aside for the call: compiled code runs uncompiled. What
    NumPy or another library computes is seen when it comes back into torch, as a value from outside.
    In backward gradients are looked at node by node. Hooks of your own run. With a reentrant
    checkpoint, what happens inside it counts as one node. A graph past the limits of ``Graph.of`` is left
    to anomaly mode, which looks for NaN alone.

    Examples
    --------
    >>> x = torch.zeros(2, requires_grad=True)
    >>> report = first_nonfinite(lambda: (x * 3).sqrt().sum(), {"x": x})
    >>> report.phase, report.kind, report.op
    ('backward', 'inf', 'SqrtBackward0')
    """
    named = _check(step, params)
    names, modules = _names(named), Modules(params)
    given = isinstance(step, torch.Tensor)
    with random_state_kept(), buffers_kept(modules.all), grads_aside([t for _, t in named]), uncompiled():
        if isinstance(step, torch.Tensor):
            loss, operations = step, None
            found = _in_the_loss(loss, ignore_inf, _PASS_A_FUNCTION)
        else:
            loss, operations, found = _forward(step, names, modules, ignore_inf)
        if found is not None:
            return replace(found, operations=operations)
        report = backward_pass(loss, named, names, modules, ignore_inf, keep=given)
        return replace(report, operations=operations)


def _forward(step: Callable, names: dict, modules: Modules, ignore_inf: bool) -> tuple:
    watching = Forward(names, modules, ignore_inf, __file__)
    note = ""
    loss: Any = None
    try:
        # Anomaly mode keeps for each node the stack of the line that made it; it looks for nothing here.
        with torch.enable_grad(), torch.autograd.set_detect_anomaly(True, check_nan=False):
            with modules.watched(), watching:
                loss = step()
    except Exception as error:
        if watching.report is None:
            raise
        note = f"The step then raised {type(error).__name__}."
    found = watching.report
    if found is None:
        _check_loss(loss)
        found = _in_the_loss(loss, ignore_inf, _WRITTEN if watching.wanted_inf else _UNSEEN)
    elif note:
        found = replace(found, note=f"{found.note} {note}".strip())
    return loss, watching.operations, found


def _check(step: object, params: object) -> list[tuple[str, torch.Tensor]]:
    if isinstance(step, torch.nn.Module):
        raise TypeError(
            f"step is the module {type(step).__name__}: pass a function that calls it and returns the loss, "
            "for example first_nonfinite(lambda: loss_fn(model(x), y), model)."
        )
    if isinstance(step, torch.Tensor):
        _check_loss(step)
    elif not callable(step):
        raise TypeError(
            f"step is {_article(step)}: pass a function without arguments that runs the forward pass and "
            "returns the loss, or the loss itself."
        )
    return named_tensors(params)


def _check_loss(loss: object) -> None:
    if not isinstance(loss, torch.Tensor):
        forgotten = " (is a return missing?)" if loss is None else ""
        raise TypeError(
            f"step returned {_article(loss)}{forgotten}: return the loss, a tensor of one element."
        )
    if shape_of(loss) is not None and loss.numel() != 1:
        raise ValueError(
            f"The loss has shape {shape_of(loss)}, and backward starts from one element: reduce it first, "
            "for example with .sum() or .mean()."
        )


def _in_the_loss(loss: torch.Tensor, ignore_inf: bool, source: str) -> NonfiniteReport | None:
    state = health(loss)
    if not (state.nan or (state.inf and not ignore_inf)):
        return None
    kind = "nan" if state.nan else "inf"
    return NonfiniteReport("forward", kind, source=source, outputs=(Held("loss", summarize(loss)),))


def _names(named: list) -> dict[int, str]:
    """Names by the identity of a tensor, and by the memory in which one named tensor lies alone."""
    names = {id(tensor): name for name, tensor in reversed(named)}
    owners: dict[int, set[int]] = {}
    for _, tensor in named:
        with suppress(RuntimeError, NotImplementedError):  # no storage
            owners.setdefault(tensor.untyped_storage().data_ptr(), set()).add(id(tensor))
    for place, tensors in owners.items():
        if place and len(tensors) == 1:
            names.setdefault(place, names[tensors.pop()])
    return names

"""Run one backward pass for ``first_nonfinite``, without filling any ``.grad``."""

import re
import warnings
from collections.abc import Callable
from dataclasses import replace

import torch

from .facts import CHECKPOINT, AccumulateGrad, kind_of, name_of, unseen
from .health import health
from .module_watch import Modules
from .nonfinite_backward import Backward
from .nonfinite_report import Held, NonfiniteReport
from .put_back import grads_aside
from .user_lines import line_in_traceback
from .values import summarize
from .walk import MAX_NODES, MAX_PATH, walk

_FREED = (
    "A part of the graph has been freed by an earlier backward: let step run the forward pass alone, since "
    "backward is run here, or pass a loss that has not been through backward."
)
_TOO_LARGE = "The graph is too large to watch backward node by node; anomaly mode looked for NaN alone."
_NAME_THEM = (
    f"The graph is too large to watch backward node by node (at most {MAX_PATH:,} nodes on one path and "
    f"{MAX_NODES:,} in all): name the parameters by params=, and anomaly mode will look for NaN in it."
)
_NAMED = re.compile(r"Function '(\w+)' returned nan values in its \d+th output")


def backward_pass(
    loss: torch.Tensor, named: list, names: dict[int, str], modules: Modules, ignore_inf: bool, keep: bool
) -> NonfiniteReport:
    """What is found behind ``loss``, whose graph is kept if ``keep``. ``named`` are (name, tensor) pairs."""
    if not loss.requires_grad:
        return NonfiniteReport(note="Backward did not run: the loss does not require grad.")
    if loss.grad_fn is None:
        return NonfiniteReport(nodes=0)
    with unseen():
        found = walk([loss.grad_fn], MAX_PATH, MAX_NODES)
    nodes, cut = found.nodes, found.cut_edges
    leaves = [node.variable for node in nodes if type(node) is AccumulateGrad]
    reentrant = any(kind_of(node, name_of(node)) == CHECKPOINT for node in nodes)
    if cut:
        seen = {id(leaf) for leaf in leaves}
        leaves += [t for _, t in named if t.is_leaf and t.requires_grad and id(t) not in seen]
        if not leaves:
            raise ValueError(_NAME_THEM)
    watching = None if cut else Backward(nodes, names, modules, ignore_inf)
    del nodes, found

    def call() -> tuple | None:
        if reentrant:  # such a checkpoint refuses autograd.grad
            with grads_aside(leaves):
                torch.autograd.backward(loss, retain_graph=keep)
            return None
        return torch.autograd.grad(loss, leaves, retain_graph=keep, allow_unused=True)

    results = report = None
    try:
        if watching is None:
            report, results = _by_anomaly_mode(call)
        elif leaves:
            with torch.autograd.set_detect_anomaly(False):
                results = watching.run(call)
    except Exception as error:
        if watching is None or watching.report is None:
            if "a second time" in str(error):
                raise ValueError(_FREED) from None
            raise
    if watching is not None:
        report = watching.report
    if report is None:
        report = _in_results(leaves, results or (), names, ignore_inf) or NonfiniteReport()
    if watching is None:
        return replace(report, note=f"{report.note} {_TOO_LARGE}".strip())
    return replace(report, nodes=watching.ran)


def _by_anomaly_mode(call: Callable) -> tuple[NonfiniteReport | None, tuple | None]:
    """Where a graph has more nodes than Python may safely see, anomaly mode looks at them in C++."""
    results = name = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.set_detect_anomaly(True, check_nan=True):
            try:
                results = call()
            except RuntimeError as error:
                named = _NAMED.search(str(error))
                if named is None:
                    raise
                name = named[1]
    if name is None:
        return None, results
    told = [str(warning.message) for warning in caught if "Error detected in" in str(warning.message)]
    return NonfiniteReport("backward", "nan", name, True, line=line_in_traceback("".join(told[-1:]))), None


def _in_results(leaves: list, results: tuple, names: dict, ignore_inf: bool) -> NonfiniteReport | None:
    """Where all nodes sent finite gradients, and their sum for one leaf is none."""
    for leaf, gradient in zip(leaves, results, strict=False):
        state = health(gradient)
        if state.nan or (state.inf and not ignore_inf):
            name = names.get(id(leaf), "a leaf without a name")
            source = f"finite gradients of {name} add up to it, or a hook made it"
            held = (Held(name, summarize(gradient)),)
            return NonfiniteReport("backward", "nan" if state.nan else "inf", source=source, outputs=held)
    return None

"""What ``replay`` is given, checked before anything runs."""

from collections.abc import Iterator, Mapping

import torch
from torch.autograd.graph import GradientEdge

from .graph import MAX_NODES, MAX_PATH, Graph
from .inputs import flatten_outputs
from .saved import shape_of


def check_options(outputs: object, wrt: object, inputs: object, only_grad: dict) -> None:
    if isinstance(outputs, torch.nn.Module):
        name = type(outputs).__name__
        raise TypeError(
            f"Got the module {name}, not a tensor: backward starts from a result, so pass the loss that "
            "you computed with it, for example replay(model(x).sum(), params=model)."
        )
    if wrt is not None and inputs is not None:
        raise ValueError(
            "Pass wrt= to run autograd.grad, or inputs= to run backward on a part of the leaves, not both."
        )
    for option, value in only_grad.items():
        if wrt is None and value not in (None, False):
            raise ValueError(
                f"{option} belongs to autograd.grad: pass wrt= too, the tensors to differentiate by."
            )


def check_graph(graph: Graph) -> None:
    for root in graph.roots:
        if root.node is None and root.reason not in ("None", "past the limits, not read"):
            raise ValueError(
                f"The output {root.path} {root.reason}, so backward cannot start there: leave it out."
            )
    if graph.cut is not None:
        raise ValueError(
            f"This graph is too large to record: replay hooks every node, and reads at most {MAX_PATH:,} "
            f"nodes on one path and {MAX_NODES:,} in all; replay a smaller piece (fewer layers or steps)."
        )


def match_gradients(roots: list, gradient: object) -> list[torch.Tensor | None]:
    if gradient is None:
        return [None] * len(roots)
    if isinstance(gradient, torch.Tensor):
        if len(roots) == 1:
            return [gradient]
        raise ValueError(
            f"There are {len(roots)} outputs: pass gradient= in the same form, one entry for each."
        )
    found = []
    for path, entry in flatten_outputs(gradient):
        if isinstance(entry, GradientEdge):
            raise TypeError(f"gradient{path} is a GradientEdge: pass a tensor or None.")
        found.append((path, entry))
    if isinstance(gradient, Mapping):
        by_path = dict(found)
        for path, entry in found:
            if entry is not None and path not in dict(roots):
                raise ValueError(f"gradient= has an entry {path}, and there is no such output.")
        return [by_path.get(path) for path, _ in roots]
    if len(found) != len(roots):
        raise ValueError(f"gradient= has {len(found)} entries for {len(roots)} outputs: pass one for each.")
    return [entry for _, entry in found]


def check_gradients(roots: list, gradients: list) -> None:
    for (path, output), gradient in zip(roots, gradients, strict=True):
        if isinstance(output, GradientEdge):
            output = output.node._input_metadata[output.output_nr]
        shape = shape_of(output)
        if gradient is None and shape is not None and any(size != 1 for size in shape):
            where = f"output {path}" if path else "output"
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs: the {where} has shape {shape}, "
                "so pass gradient= of that shape, or reduce it to a scalar first."
            )


def targets_of(option: str, given: object) -> list | None:
    """``(path, tensor)`` for everything to differentiate by; ``None`` where nothing was said."""
    if given is None:
        return None
    if isinstance(given, torch.nn.Module):
        raise TypeError(
            f"{option}= is a module: pass its parameters, {option}=dict(model.named_parameters())."
        )
    found = flatten_outputs(tuple(given) if isinstance(given, Iterator) else given)
    if not found:
        raise ValueError(f"{option}= is empty: name at least one tensor.")
    for path, target in found:
        if target is None or (isinstance(target, torch.Tensor) and not target.requires_grad):
            what = "is None" if target is None else "does not require grad"
            raise ValueError(
                f"{option}{'.' if path[:1].isalpha() else ''}{path} {what}, so it has no gradient."
            )
    return found

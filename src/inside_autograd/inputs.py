"""What a caller hands over: nested outputs made flat, and names for parameters.

All of this only looks at containers and attributes; it runs no tensor operation.
"""

import dataclasses
from collections.abc import Iterable, Mapping

import torch
from torch.autograd.graph import GradientEdge, Node

from .saved import dtype_name

Output = torch.Tensor | GradientEdge


def flatten_outputs(outputs: object) -> list[tuple[str, Output | None]]:
    """List the tensors inside ``outputs`` with the path that leads to each.

    Parameters
    ----------
    outputs
        A tensor, a ``GradientEdge``, or a nested mapping, list, tuple or dataclass
        of them. ``None`` entries are allowed.

    Returns
    -------
    list of (path, output)
        Paths read like Python: ``""`` for a single tensor, ``[0]``, ``loss``, ``hidden[1]``.
        A key that has no plain text is told by its class and position.
        A ``None`` entry is kept as ``None``, so that a reader can see it was there.

    Raises
    ------
    TypeError
        If something in ``outputs`` is neither a tensor nor a container of tensors, a container
        holds itself, or a ``GradientEdge`` has no node.
    ValueError
        If a ``GradientEdge`` asks for an output that its node does not have.
    """
    found: list[tuple[str, Output | None]] = []
    on_path: set[int] = set()
    # A stack of its own, so that containers may nest deeper than Python's limit on recursion.
    stack: list[tuple[object, str, bool]] = [(outputs, "", False)]
    while stack:
        value, path, leaving = stack.pop()
        if leaving:
            on_path.discard(id(value))
            continue
        if isinstance(value, GradientEdge):
            _check_edge(value, path)
        if value is None or isinstance(value, Output):
            found.append((path, value))
            continue
        children = _children(value)
        if children is None:
            raise TypeError(_refusal(value, path))
        if id(value) in on_path:
            where = f"at {path} " if path else ""
            raise TypeError(f"The outputs contain themselves {where}again: pass a container without cycles.")
        on_path.add(id(value))
        stack.append((value, path, True))
        for step, child in reversed(children):
            stack.append((child, path + step if step[:1] == "[" or not path else f"{path}.{step}", False))
    return found


def _children(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, Mapping):
        return [(_step(key, i), entry) for i, (key, entry) in enumerate(value.items())]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, list | tuple):
        return [(f"[{i}]", entry) for i, entry in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)]
    return None


def _step(key: object, position: int) -> str:
    """How a key reads in a path; never through a ``repr`` that may hold a memory address."""
    if isinstance(key, str):
        return str(key)
    if key is None or isinstance(key, bool | int | float):
        return f"[{key!r}]"
    if isinstance(key, tuple) and all(isinstance(part, str | bool | int | float) for part in key):
        return f"[{key!r}]"
    return f"[{type(key).__name__} key {position}]"


def _check_edge(edge: GradientEdge, path: str) -> None:
    where = f" at {path}" if path else ""
    if not _is_node(edge.node):
        raise TypeError(
            f"The GradientEdge{where} holds {_article(edge.node)} in place of a node: "
            "make it with torch.autograd.graph.get_gradient_edge(tensor)."
        )
    number = edge.output_nr
    count = len(edge.node._input_metadata)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
        outputs = "1 output" if count == 1 else f"{count} outputs"
        raise ValueError(
            f"The GradientEdge{where} asks for output {number!r} of {type(edge.node).__name__}, "
            f"which has {outputs}: count from 0."
        )


def _is_node(value: object) -> bool:
    # Nodes whose operation has no Python class are not registered as ``Node``.
    return isinstance(value, Node) or type(value).__name__ == "CppFunction"


def _refusal(value: object, path: str) -> str:
    where = f" at {path}" if path else ""
    kind = type(value).__name__
    if isinstance(value, torch.nn.Module):
        return (
            f"Got the module {kind}{where}, not a tensor: a module has no graph until it is called, "
            "so pass its output, for example draw(model(x), params=model)."
        )
    if _is_node(value):
        return (
            f"Got the node {kind}{where}, not a tensor: pass the tensor itself, or "
            "torch.autograd.graph.GradientEdge(node, 0) for one output of the node."
        )
    return (
        f"Got {_article(value)}{where}, not a tensor: pass a tensor, a GradientEdge, "
        "or a dict, list, tuple or dataclass of them."
    )


def _article(value: object) -> str:
    """``an int``, ``a numpy.ndarray``, ``the class Linear``."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind, home = type(value).__name__, type(value).__module__.partition(".")[0]
    if home not in ("builtins", "__main__", "torch"):
        kind = f"{home}.{kind}"
    return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"


def named_tensors(params: object) -> list[tuple[str, torch.Tensor]]:
    """List ``(name, tensor)`` for everything that ``params`` names.

    Parameters
    ----------
    params
        ``None``, a ``torch.nn.Module`` (its parameters and buffers, every name of a shared
        one), a mapping from names to tensors or modules, or an iterable of
        ``(name, tensor)`` pairs such as ``model.named_parameters()``.

    Raises
    ------
    TypeError
        If ``params`` has another form, or names something that is not a tensor.
    """
    if params is None:
        return []
    if isinstance(params, torch.nn.Module):
        buffers = params.named_buffers(remove_duplicate=False)
        return [*params.named_parameters(remove_duplicate=False), *buffers]
    if isinstance(params, Mapping):
        pairs = list(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, torch.Tensor | str):
        pairs = list(params)
    else:
        raise TypeError(_params_refusal(params))
    named: list[tuple[str, torch.Tensor]] = []
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise TypeError(_params_refusal(pair))
        name, value = pair
        if not isinstance(name, str):
            raise TypeError(
                f"params names a tensor by {_article(name)}: names are strings, as in {{'w': w}}."
            )
        if isinstance(value, torch.nn.Module):
            named += [(f"{name}.{inner}", tensor) for inner, tensor in named_tensors(value)]
        elif isinstance(value, torch.Tensor):
            named.append((name, value))
        elif value is not None:
            raise TypeError(f"params names {name!r}, which is {_article(value)}: give a tensor or a module.")
    return named


def _params_refusal(value: object) -> str:
    return (
        f"params is or holds {_article(value)}: pass a module, a dict from names to tensors, "
        "or (name, tensor) pairs such as model.named_parameters()."
    )


def nothing_to_read(outputs: list) -> str:
    """Why flat ``outputs`` of which none requires grad have no graph, and what to do."""
    tensors = [output for _, output in outputs if output is not None]
    if not tensors:
        return "There is nothing to read: the outputs hold no tensor."
    if any(torch._C._functorch.is_functorch_wrapped_tensor(tensor) for tensor in tensors):
        return (
            "A tensor inside a torch.func transform such as vmap has no backward graph of its own here: "
            "read the graph of what the transform returns, outside of it."
        )
    if len(tensors) > 1:
        return "None of the outputs requires grad, so there is no backward graph to read."
    if tensors[0].is_inference():
        return (
            "This tensor was made under inference_mode, so there is no backward graph to read: "
            "compute it outside, with gradients on."
        )
    if not (tensors[0].is_floating_point() or tensors[0].is_complex()):
        return (
            f"This tensor is of dtype {dtype_name(tensors[0].dtype)}, so there is no backward graph to read: "
            "only floating-point and complex tensors have gradients."
        )
    return (
        "This tensor has no grad_fn and does not require grad, so there is no backward graph to read: it was "
        "made under no_grad, detached, or computed from tensors that do not require grad."
    )

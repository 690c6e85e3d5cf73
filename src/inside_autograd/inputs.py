"""What a caller hands over: nested outputs made flat, and names for parameters.

Both functions only look at containers and attributes; they run no tensor operation.
"""

import dataclasses
from collections.abc import Iterable, Mapping

import torch
from torch.autograd.graph import GradientEdge

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
        A ``None`` entry is kept as ``None``, so that a reader can see it was there.

    Raises
    ------
    TypeError
        If something in ``outputs`` is neither a tensor nor a container of tensors.
    """
    found: list[tuple[str, Output | None]] = []
    on_path: set[int] = set()

    def visit(value: object, path: str) -> None:
        if value is None or isinstance(value, Output):
            found.append((path, value))
            return
        children = _children(value)
        if children is None:
            raise TypeError(_refusal(value, path))
        if id(value) in on_path:
            raise TypeError(f"The outputs contain themselves at {path or 'the top'}; pass a container without cycles.")
        on_path.add(id(value))
        for step, child in children:
            visit(child, path + step if step.startswith("[") or not path else f"{path}.{step}")
        on_path.discard(id(value))

    visit(outputs, "")
    return found


def _children(value: object) -> list[tuple[str, object]] | None:
    if isinstance(value, Mapping):
        return [(k if isinstance(k, str) else f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(name, getattr(value, name)) for name in value._fields]
    if isinstance(value, list | tuple):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None


def _refusal(value: object, path: str) -> str:
    where = f" at {path}" if path else ""
    kind = type(value).__name__
    if isinstance(value, torch.nn.Module):
        return (
            f"Got the module {kind}{where}, not a tensor: a module has no graph until it is called, "
            "so pass its output, for example draw(model(x), params=model)."
        )
    if isinstance(value, torch.autograd.graph.Node):
        return (
            f"Got the node {kind}{where}, not a tensor: pass the tensor itself, or "
            "torch.autograd.graph.GradientEdge(node, 0) for one output of the node."
        )
    return (
        f"Got {_article(kind)}{where}, not a tensor: pass a tensor, a GradientEdge, "
        "or a dict, list, tuple or dataclass of them."
    )


def _article(kind: str) -> str:
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
        named = list(params.named_parameters(remove_duplicate=False))
        return named + list(params.named_buffers(remove_duplicate=False))
    if isinstance(params, Mapping):
        pairs = list(params.items())
    elif isinstance(params, Iterable) and not isinstance(params, torch.Tensor | str):
        pairs = list(params)
    else:
        raise TypeError(_params_refusal(params))
    named = []
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(_params_refusal(pair))
        name, value = pair
        if isinstance(value, torch.nn.Module):
            named += [(f"{name}.{inner}", tensor) for inner, tensor in named_tensors(value)]
        elif isinstance(value, torch.Tensor):
            named.append((name, value))
        elif value is not None:
            raise TypeError(
                f"params names {name!r}, which is {_article(type(value).__name__)}: give each name a tensor or a module."
            )
    return named


def _params_refusal(value: object) -> str:
    return (
        f"params is or holds {_article(type(value).__name__)}: pass a module, a dict from names to tensors, "
        "or (name, tensor) pairs such as model.named_parameters()."
    )

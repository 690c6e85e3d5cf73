"""What a node of the backward graph has saved, read without side effects.

``_saved_*`` unpacks: it runs a user's unpack hook, or the forward of a checkpoint. So this
module looks at ``_raw_saved_*`` first, which tells whether a hook stands in the way, and
unpacks only where none does.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import torch

from .facts import is_custom

ALIVE, CHANGED, PACKED, FREED, UNREAD = "alive", "changed", "packed", "freed", "unread"


@dataclass(slots=True, unsafe_hash=True)
class Saved:
    """One tensor that a node keeps for its backward formula; plain data, no tensor.

    Attributes
    ----------
    attr
        Where it stands on the node: ``self``, ``result``, ``indices[0]``,
        ``saved_tensors[1]`` for ``ctx.save_for_backward``, ``ctx.name`` or ``ctx.name[0]`` for
        what a custom Function keeps on ``ctx`` itself.
    state
        ``alive``, ``changed`` (in place since it was saved: using it raises), ``packed``
        (a hook or a checkpoint holds it: not read), ``freed``, or ``unread`` (torch did not let it
        be read, or did not tell whether it has changed).
        Once freed, a list no longer tells its length, so one entry stands for all of it; for a
        custom Function ``saved_tensors`` stands for all that it had saved, if anything.
    shape, dtype, device, nbytes
        Of the saved tensor; ``None`` where it could not be read. ``nbytes`` is in bytes, number of
        elements times size of one; ``None`` for sparse tensors.
    role
        ``leaf``, ``output`` (of this node), ``intermediate`` (made by another node) or
        ``constant`` (needs no gradient); ``None`` where it could not be read.
    names
        The names that ``params`` gives it.
    source
        ``(node index, output number)`` of the node that made it, where that node was read.
    storage
        A number for the memory it lies in: equal numbers share memory. ``None`` if unknown.
    storage_nbytes
        Size of that memory in bytes: less than ``nbytes`` for an expanded tensor, more for a view.
    checked
        Whether autograd compares its version before use. ``False`` for plain ``ctx`` attributes.
    """

    attr: str
    state: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    nbytes: int | None = None
    role: str | None = None
    names: tuple[str, ...] = ()
    source: tuple[int, int] | None = None
    storage: int | None = None
    checked: bool = True
    device: str | None = None
    storage_nbytes: int | None = None


@dataclass(slots=True)
class RawSaved:
    """A saved tensor while it is being read. Internal: it holds the tensor."""

    attr: str
    state: str
    tensor: torch.Tensor | None = None
    checked: bool = True
    output_nr: int | None = None  # told by an error text where the tensor itself no longer tells


def read_saved(node: torch.autograd.graph.Node, attributes: tuple | None = None) -> list[RawSaved]:
    """List what ``node`` saved. Runs no hook, and bumps no version.

    ``attributes`` is what ``saved_attributes`` says of the node, where that is known already.
    """
    if attributes is None:
        attributes = saved_attributes(node)
    found: list[RawSaved] = []
    if attributes is not CUSTOM_ATTRIBUTES:
        for raw_name, name, label in attributes:
            try:  # the way of most, at a fraction of the price of the other
                raw = getattr(node, raw_name)
                if raw.unpack_hook is None:
                    tensor = getattr(node, name)
                    if tensor is not None:
                        state = ALIVE if tensor.requires_grad else _state(raw, tensor)
                        found.append(RawSaved(label, state, tensor))
                    continue
            except (AttributeError, RuntimeError):  # a list, or it is freed, changed, or out of sight
                pass
            found += _read_attribute(node, raw_name, name, label)
        return found
    found += _read_attribute(node, "_raw_saved_tensors", "saved_tensors", "saved_tensors")
    for name, value in sorted(vars(node).items()):
        for label, tensor in _tensors_in(f"ctx.{name}", value):
            found.append(RawSaved(label, ALIVE, tensor, checked=False))
    return found


def read_freed(node: torch.autograd.graph.Node, attributes: tuple) -> list[RawSaved]:
    """The entries of ``read_saved`` that are freed. No more is read than it takes to know them.

    A node gives up all that it saved at once: one tensor that is still there tells that all are.
    """
    try:
        for raw_name, _, _ in attributes:
            raw = getattr(node, raw_name)
            if attributes is CUSTOM_ATTRIBUTES or raw.data is not None:
                return []
    except (AttributeError, RuntimeError):  # a list, or a custom Function that is freed
        pass
    # There is none, a hook holds it, or it is freed.
    return [raw for raw in read_saved(node, attributes) if raw.state == FREED]


def freed_of(node: torch.autograd.graph.Node, attrs: list[str]) -> tuple[str, ...]:
    """Those of ``attrs`` that ``node`` has given up; all are of entries that it had before."""
    try:
        # A tensor that was there is freed, or held by a hook, where there is no data.
        raws = [getattr(node, f"_raw_saved_{attr}") for attr in attrs]
        empty = [raw.data is None and raw.unpack_hook is None for raw in raws]
        return tuple([attr for attr, freed in zip(attrs, empty, strict=True) if freed])
    except (AttributeError, RuntimeError):  # a list, a custom Function, a hook that is out of sight
        gone = {raw.attr for raw in read_saved(node) if raw.state == FREED}
        return tuple([attr for attr in attrs if attr in gone or attr.split("[")[0] in gone])


# What read_saved needs to know of a custom Function, whose nodes have no attributes of their own for it.
CUSTOM_ATTRIBUTES = (("_raw_saved_tensors", "saved_tensors", "saved_tensors"),)


def saved_attributes(node: torch.autograd.graph.Node) -> tuple[tuple[str, str, str], ...]:
    """For each tensor or list that ``node`` may have saved: its raw name, its name, its label."""
    return CUSTOM_ATTRIBUTES if is_custom(node) else _class_attributes(type(node))


@cache  # classes of nodes that torch itself defines live as long as the process
def _class_attributes(node_class: type) -> tuple[tuple[str, str, str], ...]:
    labels = [name.removeprefix("_raw_saved_") for name in dir(node_class) if name.startswith("_raw_saved_")]
    return tuple((f"_raw_saved_{label}", f"_saved_{label}", label) for label in labels)


def _tensors_in(label: str, value: object) -> Iterator[tuple[str, torch.Tensor]]:
    """A tensor, or those that stand directly in a list, tuple or dict."""
    if isinstance(value, torch.Tensor):
        yield label, value
    elif isinstance(value, list | tuple):
        for i, entry in enumerate(value):
            if isinstance(entry, torch.Tensor):
                yield f"{label}[{i}]", entry
    elif isinstance(value, dict):
        for key, entry in value.items():
            if isinstance(key, str | int) and isinstance(entry, torch.Tensor):
                yield f"{label}[{key!r}]", entry


def _read_attribute(node: Any, raw_name: str, name: str, label: str) -> list[RawSaved]:
    try:
        raw = getattr(node, raw_name)
    except AttributeError:  # a torch that does not show it
        return []
    except RuntimeError:  # a custom Function whose backward ran
        return [RawSaved(label, FREED)]
    several = isinstance(raw, tuple)
    raws = raw if several else (raw,)
    labels = [f"{label}[{i}]" for i in range(len(raws))] if several else [label]
    held = [_held_by(one) for one in raws]
    error = ""
    if not any(held):
        try:
            value = getattr(node, name)
        except RuntimeError as caught:
            error = str(caught)
        else:
            read = zip(labels, raws, value if several else (value,), strict=True)
            return [RawSaved(at, _state(one, got), got) for at, one, got in read if got is not None]
    if "already been freed" in error:
        return [RawSaved(at, FREED) for at in labels]
    found = [
        RawSaved(at, state) if state else _read_alone(at, one)
        for at, one, state in zip(labels, raws, held, strict=True)
        if one is not None
    ]
    _judge_outputs(found, error)
    return [one for one in found if one.tensor is not None or one.state != ALIVE]


def _held_by(raw: Any) -> str | None:
    """``packed`` where a hook holds the tensor, ``unread`` where torch cannot tell."""
    if raw is None:
        return None
    try:
        return PACKED if raw.unpack_hook is not None else None
    except AttributeError:  # torch before SavedTensor.unpack_hook
        return UNREAD
    except RuntimeError:  # a hook written in C++
        return PACKED


def _state(raw: Any, tensor: torch.Tensor) -> str:
    """State of a tensor that could be read: ``detach_()`` shows only when backward runs."""
    if tensor.requires_grad:
        return ALIVE
    try:
        raw.unpack()
    except RuntimeError as error:
        return CHANGED if "detached in-place" in str(error) else ALIVE
    return ALIVE


def _read_alone(label: str, raw: Any) -> RawSaved:
    """Read one of several, where reading them all together failed or was not tried."""
    try:
        return RawSaved(label, ALIVE, raw.unpack())
    except RuntimeError as error:
        changed = "modified by an inplace operation" in str(error)
        # Without its node torch cannot make an output whole: _judge_outputs has the last word.
        return RawSaved(label, CHANGED if changed else UNREAD, raw.data)


def _judge_outputs(found: list[RawSaved], error: str) -> None:
    """Decide on outputs of the node, which only the node itself can unpack.

    The error is about the first tensor that has changed, and says which output it is.
    """
    said = re.search(r"which is output (\d+) of", error)
    unclear = [(one, one.tensor._version) for one in found if one.state == UNREAD and one.tensor is not None]
    changed = [one for one, version in unclear if version > 0]
    for one, version in unclear:
        if version == 0:
            one.state = ALIVE  # never changed at all
    if len(changed) == 1 and said and all(one.state != CHANGED for one in found):
        changed[0].state = CHANGED
        changed[0].output_nr = int(said[1])


def describe_saved(
    raw: RawSaved,
    node: torch.autograd.graph.Node,
    index_of: dict,
    names_of: dict[int, tuple[str, ...]],
    storage_numbers: dict[tuple, int],
    output_names: dict[tuple[int, int], list[str]] | None = None,
) -> Saved:
    """Turn a read tensor into plain data, without keeping the tensor."""
    tensor = raw.tensor
    if tensor is None:
        return Saved(raw.attr, raw.state, checked=raw.checked)
    if tensor.requires_grad:
        role, source = _origin(tensor, node, index_of)
    elif raw.output_nr is not None:
        role, source = "output", (index_of[node], raw.output_nr)
    else:
        role, source = "constant", None
    names = names_of.get(id(tensor), ()) if names_of else ()
    if output_names and source and not names:
        names = tuple(output_names.get(source, ()))
    shape, dtype, nbytes, device = facts_of(tensor)
    storage = storage_nbytes = None
    try:
        memory = tensor.untyped_storage()
        storage_nbytes = memory.nbytes()
    except (RuntimeError, NotImplementedError):  # sparse tensors have no storage
        pass
    else:
        # ``_cdata`` is the storage object's own address: it also tells tensors without memory apart.
        storage = storage_numbers.setdefault((device, memory._cdata), len(storage_numbers))
        if type(storage_nbytes) is not int:
            storage_nbytes = None
    return Saved(
        raw.attr,
        raw.state,
        shape,
        dtype,
        nbytes,
        role,
        names,
        source,
        storage,
        raw.checked,
        device,
        storage_nbytes,
    )


def facts_of(tensor: torch.Tensor) -> tuple[tuple[int, ...] | None, str | None, int | None, str]:
    """Shape, dtype, number of bytes and device."""
    try:
        shape = tensor.shape
        if type(shape) is torch.Size and tensor.layout is torch.strided:
            return _dense_facts(shape, tensor.dtype, tensor.device)
    except (RuntimeError, TypeError, AttributeError):  # a shape that is not of plain numbers
        pass
    return shape_of(tensor), dtype_name(tensor.dtype), _nbytes(tensor), device_name(tensor.device)


@lru_cache(maxsize=1024)  # a graph has tensors of few kinds
def _dense_facts(shape: torch.Size, dtype: torch.dtype, device: torch.device) -> tuple:
    nbytes = shape.numel() * dtype.itemsize
    return tuple(shape), dtype_name(dtype), nbytes, device_name(device)


def _origin(tensor: torch.Tensor, node: object, index_of: dict) -> tuple[str, tuple[int, int] | None]:
    """Role and source of a tensor that requires grad."""
    maker = tensor.grad_fn
    if maker is None:
        return "leaf", None
    index = index_of.get(maker)
    source = None if index is None else (index, tensor.output_nr)
    return ("output" if maker is node else "intermediate"), source


def shape_of(thing: Any) -> tuple[int, ...] | None:
    """Shape of a tensor or of a node's input metadata.

    ``None`` where there is none in plain numbers: nested tensors, sizes that are symbols.
    """
    try:
        shape = tuple(thing.shape)
    except (RuntimeError, TypeError, AttributeError):  # the last from a subclass with a shape of its own
        return None
    for size in shape:
        if type(size) is not int:
            return None
    return shape


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


@cache
def device_name(device: torch.device) -> str:
    """``cpu``, ``cuda:0``."""
    return str(device)


def _nbytes(tensor: torch.Tensor) -> int | None:
    if tensor.layout is not torch.strided and tensor.layout is not torch.jagged:
        return None  # the elements of a sparse tensor are not all there
    try:
        nbytes = tensor.numel() * tensor.element_size()
    except RuntimeError:
        return None
    return nbytes if type(nbytes) is int else None

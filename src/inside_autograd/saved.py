"""What a node of the backward graph has saved, read without side effects.

``_saved_*`` unpacks: it runs a user's unpack hook, or the forward of a checkpoint. So this
module looks at ``_raw_saved_*`` first, which tells whether a hook stands in the way, and
unpacks only where none does.
"""

from dataclasses import dataclass

import torch

ALIVE, CHANGED, PACKED, FREED = "alive", "changed", "packed", "freed"


@dataclass(frozen=True, slots=True)
class Saved:
    """One tensor that a node keeps for its backward formula; plain data, no tensor.

    Attributes
    ----------
    attr
        Where it stands on the node: ``self``, ``result``, ``indices[0]``,
        ``saved_tensors[1]`` for ``ctx.save_for_backward``, ``ctx.name`` for a plain attribute.
    state
        ``alive``, ``changed`` (in place since it was saved: reading it raises), ``packed``
        (a hook or a checkpoint holds it: not read) or ``freed``.
    shape, dtype, nbytes
        Of the saved tensor; ``None`` where it could not be read. ``nbytes`` is in bytes.
    role
        ``leaf``, ``output`` (of this node), ``intermediate`` (made by another node) or
        ``constant`` (needs no gradient); ``None`` where it could not be read.
    names
        The names that ``params`` gives it.
    source
        ``(node index, output number)`` of the node that made it, where that node was read.
    storage
        A number for the memory it lies in: equal numbers share memory. ``None`` if unknown.
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


@dataclass(slots=True)
class RawSaved:
    """A saved tensor while it is being read. Internal: it holds the tensor."""

    attr: str
    state: str
    tensor: torch.Tensor | None
    checked: bool = True
    is_output: bool = False  # told by the error text where the tensor itself no longer tells


def read_saved(node: torch.autograd.graph.Node) -> list[RawSaved]:
    """List what ``node`` saved. Never raises, runs no hook, and bumps no version."""
    found: list[RawSaved] = []
    for name in dir(type(node)):
        if name == "_raw_saved_tensors":
            found += _read_attribute(node, name, "saved_tensors")
        elif name.startswith("_raw_saved_"):
            found += _read_attribute(node, name, "_" + name.removeprefix("_raw_"))
    for name, value in sorted(getattr(node, "__dict__", {}).items()):
        if isinstance(value, torch.Tensor):
            found.append(RawSaved(f"ctx.{name}", ALIVE, value, checked=False))
    return found


def _read_attribute(node: torch.autograd.graph.Node, raw_name: str, name: str) -> list[RawSaved]:
    label = name.removeprefix("_saved_")
    try:
        raw = getattr(node, raw_name)
    except RuntimeError:  # a custom Function whose backward ran
        return [RawSaved(label, FREED, None)]
    if isinstance(raw, tuple):
        labels = [f"{label}[{i}]" for i in range(len(raw))]
        return _read_many(node, name, raw, labels)
    return _read_many(node, name, (raw,), [label])


def _read_many(node, name: str, raws: tuple, labels: list[str]) -> list[RawSaved]:
    packed = [raw is not None and raw.unpack_hook is not None for raw in raws]
    values: list | None = None
    freed = is_output = False
    if not any(packed):
        try:
            value = getattr(node, name)
            values = list(value) if isinstance(value, tuple | list) else [value]
        except RuntimeError as error:
            freed = "already been freed" in str(error)
            is_output = "which is output" in str(error)
    if freed:
        return [RawSaved(label, FREED, None) for label in labels]
    found = []
    for i, (raw, label) in enumerate(zip(raws, labels, strict=True)):
        if packed[i]:
            found.append(RawSaved(label, PACKED, None))
        elif values is not None:
            if values[i] is not None:
                found.append(RawSaved(label, ALIVE, values[i]))
        elif raw is not None and raw.data is not None:
            alone = len(raws) == 1
            found.append(RawSaved(label, _state_of(raw, alone), raw.data, is_output=alone and is_output))
    return found


def _state_of(raw, alone: bool) -> str:
    """State of one saved tensor where reading the whole attribute failed or was not tried."""
    if alone:
        return CHANGED  # the only other reason for a failed read
    try:
        raw.unpack()
    except RuntimeError as error:
        return CHANGED if "modified by an inplace operation" in str(error) else ALIVE
    return ALIVE


def describe_saved(
    raw: RawSaved,
    node: torch.autograd.graph.Node,
    index_of: dict,
    names_of: dict[int, tuple[str, ...]],
    storage_numbers: dict[tuple, int],
) -> Saved:
    """Turn a read tensor into plain data, without keeping the tensor."""
    tensor = raw.tensor
    if tensor is None:
        return Saved(raw.attr, raw.state, checked=raw.checked)
    role, source = _origin(tensor, node, index_of)
    if raw.is_output and role == "constant":
        role = "output"
    return Saved(
        attr=raw.attr,
        state=raw.state,
        shape=shape_of(tensor),
        dtype=dtype_name(tensor.dtype),
        nbytes=_nbytes(tensor),
        role=role,
        names=names_of.get(id(tensor), ()),
        source=source,
        storage=_storage_number(tensor, storage_numbers),
        checked=raw.checked,
    )


def _origin(tensor: torch.Tensor, node, index_of: dict) -> tuple[str, tuple[int, int] | None]:
    if not tensor.requires_grad:
        return "constant", None
    maker = tensor.grad_fn
    if maker is None:
        return "leaf", None
    index = index_of.get(maker)
    source = None if index is None else (index, tensor.output_nr)
    return ("output" if maker is node else "intermediate"), source


def shape_of(thing) -> tuple[int, ...] | None:
    """Shape of a tensor or of a node's input metadata; ``None`` for nested tensors, which have none."""
    try:
        return tuple(int(size) for size in thing.shape)
    except (RuntimeError, TypeError):
        return None


def dtype_name(dtype: torch.dtype | None) -> str | None:
    """``float32`` for ``torch.float32``."""
    return None if dtype is None else str(dtype).removeprefix("torch.")


def _nbytes(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.numel() * tensor.element_size()
    except RuntimeError:
        return None


def _storage_number(tensor: torch.Tensor, numbers: dict[tuple, int]) -> int | None:
    try:
        # ``_cdata`` is the storage object's own address: it also tells tensors without memory apart.
        key = (str(tensor.device), tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse tensors have no storage
        return None
    return numbers.setdefault(key, len(numbers))

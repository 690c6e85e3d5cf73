"""``with saved_memory() as m: y = f(x)``: what autograd keeps for the backward of ``y``, by node.

Nothing is hooked and no mode is on while the block runs: a saved-tensor hook would switch off the
version check, never see the number in ``x * 2``, and mark everything as packed. Instead, the graphs
that are alive when the block ends are found from the tensors that Python holds, and read.
"""

import gc
import weakref
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from .facts import name_of
from .inputs import named_tensors
from .memory_scan import Before, BlockWalk, StorageKey, holders, storages_of
from .memory_table import SavedTensor, html_table, text_table
from .saved import FREED, PACKED, RawSaved, describe_saved, read_saved
from .walk import number


class saved_memory:
    """Measure what autograd has saved for backward in a block of code.

    Counted is what is alive when the block ends: keep the result, as in ``y = f(x)``. Garbage is
    collected first, so that only what something holds is counted. The code in the block runs as it
    would without it, and afterwards nothing is kept alive.

    Parameters
    ----------
    params
        Where names come from: a module, a mapping from names to tensors or modules, or pairs as in
        ``model.named_parameters()``.

    Attributes
    ----------
    tensors : tuple of SavedTensor
        Each saved tensor, in the order in which the operations ran; ``len(m)`` is their number.
    nbytes : int
        Memory that the saved tensors lie in, in bytes. Memory that several share is counted once,
        and a view counts with all of the memory that it keeps alive.
    new_nbytes : int
        The part of ``nbytes`` that was allocated inside the block: the price of being able to run
        backward. The rest (parameters, inputs) belongs to tensors that were there before.
    packed : int
        How many were packed by a hook or a checkpoint. They are in ``tensors``, without bytes.
    freed : int
        How many were saved by graphs still alive, and freed by a backward inside the block.
    complete : bool
        ``False`` if the graph is longer than what can be read safely (1,500 nodes on a path,
        50,000 in all), so that the numbers are lower bounds.

    Raises
    ------
    RuntimeError
        When a result is read before the block has ended, or after it ended with an error.
    TypeError
        If ``params`` has another form.

    Notes
    -----
    Only the graphs of this thread are counted, and what a custom Function keeps as a plain
    attribute of ``ctx`` only where that is a tensor. What a checkpoint itself holds is not seen.

    Examples
    --------
    >>> x = torch.ones(4, requires_grad=True)
    >>> with saved_memory({"x": x}) as m:
    ...     y = x.exp() * 2
    >>> m.nbytes, m.new_nbytes
    (24, 24)
    >>> m
    Saved for backward: 2 tensors in 24 bytes, all new.
    <BLANKLINE>
    op  node          saved   shape  dtype    bytes  memory
     1  ExpBackward0  result  (4,)   float32     16  new
     2  MulBackward0  other   ()     int64        8  new
    """

    def __init__(self, params: object = None):
        self._named = [(name, weakref.ref(tensor)) for name, tensor in named_tensors(params)]
        self._before: Before | None = None
        self._result: _Reading | None = None
        self._why_empty = "saved_memory measures when the block ends: read it after the with statement."

    def __enter__(self) -> "saved_memory":
        if self._before is not None:
            raise RuntimeError(
                "This saved_memory is measuring already: make another one for the inner block."
            )
        self._result = None
        self._before = Before()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before, self._before = self._before, None
        if error is not None or before is None:
            self._why_empty = "The block of saved_memory ended with an error, so nothing was measured."
            return
        named = [(name, tensor) for name, ref in self._named if (tensor := ref()) is not None]
        self._result = _Reading(before, named)

    def _measured(self) -> "_Reading":
        if self._result is None:
            raise RuntimeError(self._why_empty)
        return self._result

    def __len__(self) -> int:
        return len(self.tensors)

    @property
    def tensors(self) -> tuple[SavedTensor, ...]:
        return self._measured().tensors

    @property
    def nbytes(self) -> int:
        return sum(tensor.counted for tensor in self.tensors)

    @property
    def new_nbytes(self) -> int:
        return sum(tensor.counted for tensor in self.tensors if tensor.new)

    @property
    def packed(self) -> int:
        return sum(tensor.state == PACKED for tensor in self.tensors)

    @property
    def freed(self) -> int:
        return self._measured().freed

    @property
    def complete(self) -> bool:
        return self._measured().complete

    def __repr__(self) -> str:
        if self._result is None:
            return self._why_empty
        return "\n".join([self._headline(), *(["", text_table(self.tensors)] if len(self) else [])])

    def _repr_html_(self) -> str | None:
        if self._result is None or not len(self):
            return None  # the text says it all
        return html_table(self.tensors, self._headline())

    def _headline(self) -> str:
        read = sum(tensor.shape is not None or tensor.nbytes is not None for tensor in self.tensors)
        if not len(self):
            return f"Saved for backward: nothing. {self._measured().why_nothing}"
        parts = []
        if read:
            new = {0: "none of it new", self.nbytes: "all new"}.get(
                self.new_nbytes, f"{self.new_nbytes:,} bytes of it new"
            )
            parts.append(f"{_count(read, 'tensor')} in {_count(self.nbytes, 'byte')}, {new}")
        if self.packed:
            parts.append(f"{_count(self.packed, 'tensor')} packed by a hook, not counted")
        if unread := len(self) - read - self.packed:
            parts.append(f"{_count(unread, 'tensor')} that could not be read")
        at_least = "" if self.complete else "at least "
        end = "" if self.complete else " The graph is too long to be read whole."
        return f"Saved for backward: {at_least}{'; '.join(parts)}.{end}"


class _Reading:
    """What was found at the end of the block, as plain data."""

    def __init__(self, before: Before, named: list[tuple[str, torch.Tensor]]):
        gc.collect()
        end = torch.autograd._get_sequence_nr()
        # Modes and subclasses that watch calls of torch must not see the reading.
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            walk = BlockWalk(before.sequence_nr)
            walk.read(holders(before), end)
            nodes = sorted(walk.targets, key=number)
            self.complete = walk.complete
            self.freed = 0
            self.tensors = tuple(self._read(nodes, before.storages(), named))
        self.why_nothing = _why_nothing(nodes, self.freed, end > before.sequence_nr)

    def _read(self, nodes: list, old: set[StorageKey], named: list) -> Iterator[SavedTensor]:
        names: dict[StorageKey, list[str]] = {}
        for name, tensor in named:
            for key in storages_of(tensor):
                names.setdefault(key, []).append(name)
        first: dict[StorageKey, str] = {}
        for op, node in enumerate(nodes, 1):
            for raw in read_saved(node):
                if raw.state == FREED:
                    self.freed += 1
                else:
                    yield _row(op, node, raw, old, names, first)


def _row(op: int, node: Any, raw: RawSaved, old: set, names: dict, first: dict) -> SavedTensor:
    saved = describe_saved(raw, node, {node: 0}, {}, {})
    head = op, name_of(node), saved.attr, saved.state
    if raw.tensor is None:
        return SavedTensor(*head)
    storages = storages_of(raw.tensor)
    shared_with = next((first[key] for key in storages if key in first), None)
    fresh = {key: nbytes for key, nbytes in storages.items() if key not in first}
    first.update(dict.fromkeys(fresh, f"{saved.attr} of op {op}"))
    return SavedTensor(
        *head,
        shape=saved.shape,
        dtype=saved.dtype,
        nbytes=saved.nbytes if len(storages) == 1 else sum(storages.values()),
        counted=sum(fresh.values()),
        new=not any(key in old for key in storages),
        leaf=saved.role == "leaf",
        names=tuple(dict.fromkeys(name for key in storages for name in names.get(key, ()))),
        shared_with=shared_with,
    )


def _why_nothing(nodes: list, freed: int, recorded: bool) -> str:
    if freed:
        return "Backward has freed what was saved."
    if nodes:
        return "The operations recorded in this block need no tensor for their backward."
    if recorded:
        return "No graph made in this block is alive at its end: keep the result, as in y = f(x)."
    return "No operation was recorded in this block: under no_grad, or no input requires grad."


def _count(number: int, one: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {one}s"

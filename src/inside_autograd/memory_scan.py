"""Find what autograd holds at one moment: live tensors, the nodes behind them, and their memory.

The collector of garbage knows every tensor that Python holds. Nothing here runs a torch operation.
"""

import gc
import heapq
import itertools
import weakref
from collections.abc import Iterator
from typing import Any

import torch

from .facts import AccumulateGrad
from .walk import MAX_NODES, MAX_PATH, number

StorageKey = tuple[str, int]


class Before:
    """What was there when the block began. Holds weak references only."""

    def __init__(self) -> None:
        self.sequence_nr = torch.autograd._get_sequence_nr()
        self.tensors: list[weakref.ref] = []
        self.versions: dict[int, int] = {}  # of results of operations, by id
        with torch._C.DisableTorchFunction():
            for tensor in _live(torch.Tensor):
                self.tensors.append(weakref.ref(tensor))
                if _is_result(tensor):
                    self.versions[id(tensor)] = _version(tensor)

    def unchanged(self) -> set[int]:
        """Ids of the results that were there before, and have not been changed in place."""
        alive = [tensor for reference in self.tensors if (tensor := reference()) is not None]
        return {id(t) for t in alive if id(t) in self.versions and self.versions[id(t)] == _version(t)}

    def storages(self) -> set[StorageKey]:
        alive = [tensor for reference in self.tensors if (tensor := reference()) is not None]
        return {key for tensor in alive for key in storages_of(tensor)}


class BlockWalk:
    """Finds the nodes made since the block began.

    Asking a tensor for its ``grad_fn`` makes a Python object for the node, just as walking does, and
    too long a chain of these cannot be freed (see `walk`). A loop that holds all its states holds
    such a chain. So tensors are asked one after the other, newest first, and no more of them once a
    limit was met: what the newest leads to costs nothing when it is met again.
    """

    def __init__(self, start: int):
        self.start = start
        self.depth: dict = {}  # node -> number of nodes on the longest known path that ends in it
        self.targets: dict = {}  # node -> the nodes of the block that it leads to
        self.count = itertools.count()
        self.complete = True

    def read(self, held_by: Iterator, end: int) -> None:
        """Find the nodes numbered below ``end`` that ``held_by`` leads to, within the limits."""
        for holder in held_by:
            try:
                node = holder.grad_fn if isinstance(holder, torch.Tensor) else holder
            except RuntimeError:  # a view whose base was changed in a way that autograd forbids
                continue
            if node not in self.depth and self.start <= number(node) < end:
                self._follow(node)
            if not self.complete:
                return

    def _follow(self, root: object) -> None:
        """Read on from one node, later operations first.

        In that order the longest path to a node is known when its turn comes. A path found later,
        from a node that is newer than those read before, makes the nodes behind it wait again.
        """
        heap: list[tuple[int, int, Any]] = []
        self._wait(heap, root, 1)
        while heap:
            node = heapq.heappop(heap)[2]
            length = self.depth[node]
            if length > MAX_PATH or (len(self.targets) >= MAX_NODES and node not in self.targets):
                self.complete = False
                return
            if node not in self.targets:
                ahead = [target for target, _ in node.next_functions if target is not None]
                self.targets[node] = [
                    t for t in ahead if type(t) is not AccumulateGrad and number(t) >= self.start
                ]
            for target in self.targets[node]:
                if self.depth.get(target, 0) <= length:
                    self._wait(heap, target, length + 1)

    def _wait(self, heap: list, node: object, length: int) -> None:
        if node not in self.depth or self.depth[node] < length:
            self.depth[node] = length
            # The count breaks ties, so that equal graphs are read in equal order.
            heapq.heappush(heap, (-number(node), next(self.count), node))


def holders(before: Before) -> Iterator:
    """What Python holds a graph by, newest first: results that are new or changed, then nodes."""
    unchanged = before.unchanged()
    tensors = [tensor for tensor in reversed(_live(torch.Tensor)) if id(tensor) not in unchanged]
    yield from filter(_is_result, tensors)
    # backward(create_graph=True) leaves graphs behind whose only holder is the .grad of a leaf.
    yield from filter(_is_result, (t.grad for t in tensors if _is_leaf(t) and t.grad is not None))
    yield from reversed(_live(torch.autograd.graph.Node))


def _live(kind: type) -> list:
    """The objects of a class that Python holds."""
    wanted: dict[type, bool] = {}
    found = []
    for thing in gc.get_objects():
        cls = type(thing)  # not isinstance: that would run the code of proxies
        if cls not in wanted:
            wanted[cls] = issubclass(cls, kind)
        if wanted[cls]:
            found.append(thing)
    return found


def _is_result(tensor: torch.Tensor) -> bool:
    """Whether an operation recorded by autograd made it. Does not touch ``grad_fn``."""
    try:
        return tensor.requires_grad and not tensor.is_leaf
    except RuntimeError:  # what is left of a transform such as vmap
        return False


def _is_leaf(tensor: torch.Tensor) -> bool:
    try:
        return tensor.requires_grad and tensor.is_leaf
    except RuntimeError:
        return False


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # inference tensors have none
        return -1


def storages_of(tensor: torch.Tensor) -> dict[StorageKey, int]:
    """The memory that a tensor lies in: bytes by storage. Sparse tensors lie in several."""
    try:
        if tensor.layout == torch.sparse_coo:
            parts = [tensor._indices(), tensor._values()]
        elif tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            parts = [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
        elif tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            parts = [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
        else:
            parts = [tensor]
        stores = [part.untyped_storage() for part in parts]
        return {(str(store.device), store._cdata): store.nbytes() for store in stores}
    except (RuntimeError, NotImplementedError, ValueError):  # not initialized yet, or no memory of its own
        return {}

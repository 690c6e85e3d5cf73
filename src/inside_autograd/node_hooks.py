"""Hooks on torch's nodes for the length of one backward pass.

They hold an integer and a weak reference, never a node or a tensor: a closure that holds its own node is
never freed. They never raise: a watcher may lose a value, but the user's backward must not stop for it.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any


class Hook:
    """Tells the watcher, if it is still there, about the node with this index."""

    __slots__ = ("index", "watcher")

    def __init__(self, watcher: weakref.ref, index: int):
        self.watcher, self.index = watcher, index

    def tell(self, method: str, *values: tuple) -> None:
        watcher = self.watcher()
        if watcher is not None:
            with suppress(Exception):
                getattr(watcher, method)(self.index, *values)


class _Before(Hook):
    def __call__(self, received: tuple) -> None:
        self.tell("node_starts", received)


class _After(Hook):
    def __call__(self, sent: tuple, received: tuple) -> None:
        self.tell("node_ends", sent, received)


@contextmanager
def hooked(nodes: Iterable[tuple[int, Any]], watcher: weakref.ref) -> Iterator[None]:
    """Call the watcher's ``node_starts(index, received)`` and ``node_ends(index, sent, received)``.

    Parameters
    ----------
    nodes
        Pairs of an index and a torch node.
    watcher
        A weak reference. All hooks are removed at the end of the block, whatever happens in it.
    """
    handles = []
    try:
        for index, node in nodes:
            handles.append(node.register_prehook(_Before(watcher, index)))
            handles.append(node.register_hook(_After(watcher, index)))
        yield
    finally:
        for handle in handles:
            handle.remove()

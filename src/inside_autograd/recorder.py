"""Watch the real nodes for the length of one backward pass, and note what they receive and send.

What is seen is described at once, since a formula that works in place would change it later.
"""

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.function import Function

from .graph import ACCUMULATE, CHECKPOINT, Graph
from .node_hooks import Hook, hooked
from .reading import collector_paused
from .saved import FREED, freed_of
from .values import Seen, Value


@dataclass(slots=True)
class Event:
    """One run of one node, as the hooks saw it."""

    node: int
    received: list[Value | None] = field(default_factory=list)
    sent: list[Value | None] | None = None  # None until the node has finished
    given: dict[int, Value] = field(default_factory=dict)  # tensors made for undefined gradients
    before: Value | None = None
    after: Value | None = None
    grads_before: list[Value | None] = field(default_factory=list)
    grads_after: list[Value | None] = field(default_factory=list)


class Recorder:
    """Watches one run over ``graph``, whose torch nodes are ``live`` in the order of their index.

    ``watched`` are tensors whose ``.grad`` may be filled out of sight, inside a reentrant checkpoint.
    """

    def __init__(self, graph: Graph, live: list, watched: list[torch.Tensor], batch: tuple[int, int] | None):
        self.graph, self.live, self.watched, self.batch = graph, live, watched, batch
        self.events: list[Event] = []
        self.open: dict[int, list[Event]] = {}
        self.seen = Seen()

    def run(self, call: Callable) -> Any:
        """Call ``call`` with hooks on every node, and take them off again whatever happens."""
        this, replaced = weakref.ref(self), []
        try:
            with ExitStack() as hooks:
                with collector_paused():
                    hooks.enter_context(hooked(enumerate(self.live), this))
                    for index, node in enumerate(self.live):
                        if isinstance(node, torch._C._FunctionBase):
                            custom: Any = node  # torch's stubs lack what is read and set
                            custom._forward_cls = _Watched(this, index, custom._forward_cls)
                            replaced.append(node)
                return call()
        finally:
            for node in replaced:
                node.__dict__.pop("_forward_cls", None)

    def unfinished(self) -> int | None:
        """Position in ``events`` of the node that was running last and did not finish."""
        for position in reversed(range(len(self.events))):
            if self.events[position].sent is None:
                return position
        return None

    def freed(self) -> dict[int, tuple[str, ...]]:
        """What each node that ran has given up: names of saved tensors that it still had before."""
        found = {}
        for index in {event.node for event in self.events}:
            had = [saved.attr for saved in self.graph.nodes[index].saved if saved.state != FREED]
            found[index] = freed_of(self.live[index], had) if had else ()
        return found

    def grads(self) -> list[Value | None]:
        """``.grad`` of the watched tensors now."""
        return [self._grad(tensor) for tensor in self.watched]

    def node_starts(self, index: int, gradients: tuple) -> None:
        event = Event(index)
        self.events.append(event)
        self.open.setdefault(index, []).append(event)
        event.received = [self._value(gradient) for gradient in gradients]
        kind = self.graph.nodes[index].kind
        if kind == ACCUMULATE:
            event.before = self._grad(self.live[index].variable)
        elif kind == CHECKPOINT:
            event.grads_before = self.grads()

    def function_starts(self, index: int, arguments: tuple) -> None:
        event = self.open[index][-1]
        for number, argument in enumerate(arguments):
            arrived = number < len(event.received) and event.received[number] is not None
            if isinstance(argument, torch.Tensor) and not arrived:
                event.given[number] = self.seen.describe(argument, self.batch)

    def node_ends(self, index: int, sent: tuple, received: tuple) -> None:
        event = self.open[index].pop()
        event.sent = [self._value(gradient) for gradient in sent]
        kind = self.graph.nodes[index].kind
        if kind == ACCUMULATE:
            event.after = self._grad(self.live[index].variable)
        elif kind == CHECKPOINT:
            event.grads_after = self.grads()

    def _value(self, gradient: torch.Tensor | None) -> Value | None:
        return None if gradient is None else self.seen.describe(gradient, self.batch)

    def _grad(self, tensor: torch.Tensor) -> Value | None:
        # Reading .grad of a tensor that is no leaf any more would warn.
        return self._value(tensor.grad) if tensor.is_leaf else None


class _Watched(Hook):
    """Stands in for an ``autograd.Function`` on one node, to see what its own ``backward`` is given.

    Node hooks see ``None`` for an undefined gradient even where torch then makes zeros of it.
    """

    __slots__ = ("function",)

    def __init__(self, watcher: weakref.ref, index: int, function: Any):
        super().__init__(watcher, index)
        self.function = function

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    @property
    def backward(self) -> Callable:
        return self._watch(self.function.backward, Function.backward)

    @property
    def vjp(self) -> Callable:
        return self._watch(self.function.vjp, Function.vjp)

    def _watch(self, method: Callable, default: Callable) -> Callable:
        if method is default:  # torch compares, to tell which of the two was written
            return method

        def watched(ctx: object, *gradients: Any) -> Any:
            boxed = getattr(self.function, "boxed_grads_call", False)
            self.tell("function_starts", tuple(gradients[0]) if boxed else gradients)
            return method(ctx, *gradients)

        return watched

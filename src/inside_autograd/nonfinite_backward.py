"""Watch a backward pass, node by node, for the first gradient that is not finite."""

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .facts import CHECKPOINT, AccumulateGrad, is_custom, kind_of, name_of
from .health import Health, health
from .module_watch import Modules
from .node_hooks import hooked
from .nonfinite_forward import name_of_operation, only_looks, sum_of
from .nonfinite_report import Held, NonfiniteReport
from .saved import read_saved
from .user_lines import Line, recorded_line, running_line
from .values import summarize


class Backward:
    """Watches ``nodes`` for one pass."""

    def __init__(self, nodes: list, names: dict[int, str], modules: Modules, ignore_inf: bool):
        self.nodes, self.names, self.modules, self.ignore_inf = nodes, names, modules, ignore_inf
        self.ran = 0
        # The first bad operation of the custom backward that runs, and its line.
        self.inside: tuple[str, Line | None] | None = None
        self.custom = False
        self.report: NonfiniteReport | None = None

    def run(self, call: Callable) -> Any:
        this = weakref.ref(self)
        nodes = ((i, node) for i, node in enumerate(self.nodes) if type(node) is not AccumulateGrad)
        inner = _Inside(this) if any(map(is_custom, self.nodes)) else nullcontext()
        with hooked(nodes, this), inner:
            return call()

    def bad(self, state: Health) -> bool:
        return state.nan or (state.inf and not self.ignore_inf)

    def node_starts(self, index: int, received: tuple) -> None:
        self.custom, self.inside = is_custom(self.nodes[index]), None
        if self.report is None:
            state = sum_of(map(health, received))
            if self.bad(state):
                self.report = self._report(index, state, received, (), False)

    def node_ends(self, index: int, sent: tuple, received: tuple) -> None:
        self.custom = False
        self.ran += 1
        if self.report is None:
            state = sum_of(map(health, sent))
            if self.bad(state):
                self.report = self._report(index, state, received, sent, True)

    def _report(self, index: int, state: Health, received: tuple, sent: tuple, born: bool) -> NonfiniteReport:
        node = self.nodes[index]
        inner_op, inner_line = self.inside or (None, None)
        source, note = None, ""
        if not born:
            source = "no node had sent it"
            note = "A hook made it, or finite gradients added up to it."
        elif kind_of(node, name_of(node)) == CHECKPOINT:
            note = "It was born inside this checkpoint: use_reentrant=False shows where."
        return NonfiniteReport(
            "backward",
            "nan" if state.nan else "inf",
            name_of(node),
            born,
            source,
            *self.modules.that_made(node),
            recorded_line(node),
            _held(received),
            tuple(self._sent(node, sent)),
            tuple(self._saved(node)),
            inner_op,
            inner_line,
            note=note,
        )

    def _sent(self, node: Any, sent: tuple) -> Iterator[Held]:
        for (target, _), gradient in zip(node.next_functions, sent, strict=False):
            if target is not None and gradient is not None:
                name = name_of(target)
                if type(target) is AccumulateGrad:
                    name = self.names.get(id(target.variable), "a leaf")
                yield Held(f"to {name}", summarize(gradient))

    def _saved(self, node: Any) -> Iterator[Held]:
        for raw in read_saved(node):
            if raw.tensor is not None and not raw.attr.startswith("ctx.fwd_"):  # a checkpoint's random state
                yield Held(self.names.get(id(raw.tensor), raw.attr), summarize(raw.tensor))


def _held(gradients: tuple) -> tuple[Held, ...]:
    several = len(gradients) > 1
    return tuple(
        Held(f"gradient {i}" if several else "gradient", None if one is None else summarize(one))
        for i, one in enumerate(gradients)
    )


class _Inside(TorchDispatchMode):
    """Sees the operations inside the ``backward`` of custom Functions."""

    supports_higher_order_operators = True

    def __init__(self, watcher: weakref.ref):
        super().__init__()
        self.watcher = watcher

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        watcher = self.watcher()
        if watcher is None or not watcher.custom or watcher.inside or watcher.report:
            return result
        if not only_looks(func) and watcher.bad(sum_of(map(health, tree_leaves(result)))):
            watcher.inside = (name_of_operation(func), running_line(sys._getframe(1), __file__))
        return result

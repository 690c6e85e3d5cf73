"""Watch a forward pass, operation by operation, for the first value that is not finite."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .health import FINE, Health, health
from .nonfinite_report import Held, NonfiniteReport
from .user_lines import running_line
from .values import summarize

_UNFILLED = ("empty", "new_empty", "_empty", "resize")  # memory that nobody has written yet

Which = tuple[str | None, str | None]  # a module's qualified name and its class


class Modules:
    """Which module is running, and which ran when a node was made."""

    def __init__(self, params: object):
        self.named: list[tuple[str, torch.nn.Module]] = []
        if isinstance(params, torch.nn.Module):
            self.named = list(params.named_modules())
        elif isinstance(params, Mapping):
            for name, value in params.items():
                if isinstance(value, torch.nn.Module):
                    self.named += list(value.named_modules(prefix=str(name)))
        self.open: list[tuple[str, int]] = []
        self.done: list[tuple[int, int, int, str]] = []  # first node, end, depth, name

    @property
    def all(self) -> list[torch.nn.Module]:
        return [module for _, module in self.named]

    @contextmanager
    def watched(self) -> Iterator[None]:
        with ExitStack() as hooks:
            for name, module in self.named:
                if isinstance(module, torch.jit.ScriptModule):
                    continue  # takes no hooks
                for handle in (
                    module.register_forward_pre_hook(self._enters(name), prepend=True),
                    module.register_forward_hook(self._leaves(), always_call=True),
                ):
                    hooks.callback(handle.remove)
            yield

    def _enters(self, name: str):
        def enters(module, args) -> None:
            self.open.append((name, _next_node()))

        return enters

    def _leaves(self):
        def leaves(module, args, output) -> None:
            if self.open:
                name, first = self.open.pop()
                self.done.append((first, _next_node(), len(self.open), name))

        return leaves

    @property
    def running(self) -> Which:
        return self._which(self.open[-1][0] if self.open else None)

    def that_made(self, node) -> Which:
        """The innermost module that ran when torch made ``node``."""
        number = node._sequence_nr()
        around = [(depth, name) for first, end, depth, name in self.done if first <= number < end]
        return self._which(max(around, default=(0, None))[1])

    def _which(self, name: str | None) -> Which:
        return name, None if name is None else type(dict(self.named)[name]).__name__


def _next_node() -> int:
    """The number that torch will give to the next node of this thread."""
    return torch._C._autograd._get_sequence_nr()


class Forward(TorchDispatchMode):
    """Sees every operation below autograd: in modules, in scripts, in the ``forward`` of Functions."""

    def __init__(self, names: dict[int, str], modules: Modules, ignore_inf: bool, caller: str):
        super().__init__()
        self.names, self.modules, self.ignore_inf = names, modules, ignore_inf
        self.caller = caller  # the file whose frames are not the user's any more
        self.operations = 0
        self.wanted_inf = False  # the code has written an infinity, as for a mask
        self.report: NonfiniteReport | None = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.report is not None:
            return func(*args, **kwargs)
        arguments = self._arguments(func, args, kwargs) if func._schema.is_mutable else None
        result = func(*args, **kwargs)
        self.operations += 1
        name = func.overloadpacket.__name__
        outputs = tree_leaves(result)
        if name == "lift_fresh":  # a constant in the code, such as torch.tensor(-math.inf)
            self.wanted_inf |= any(health(one).inf for one in outputs)
        elif not only_looks(func) and not name.startswith(_UNFILLED):
            found = sum_of(health(one) for one in outputs)
            if found.nan or (found.inf and not self.ignore_inf):
                self._judge(func, arguments or self._arguments(func, args, kwargs), found, outputs)
        return result

    def _arguments(self, func, args: tuple, kwargs: dict) -> list[tuple[str, object, Health, Held | None]]:
        """Name, value, health and description of each argument, as it is now."""
        names = [argument.name for argument in func._schema.arguments]
        found = []
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            values = tree_leaves(value)
            for i, one in enumerate(values):
                label = "input" if name == "self" else name
                label = label if len(values) == 1 else f"{label}[{i}]"
                held = None
                if isinstance(one, torch.Tensor):
                    held = Held(self._name(one) or label, summarize(one))
                found.append((label, None if held else one, health(one), held))
        return found

    def _name(self, tensor: torch.Tensor) -> str | None:
        try:
            return self.names.get(id(tensor)) or self.names.get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # no storage to ask
            return None

    def _judge(self, func, arguments: list, found: Health, outputs: list) -> None:
        kind = "nan" if found.nan else "inf"
        tensors = [(held.name, state) for _, _, state, held in arguments if held]
        numbers = [(label, value, state) for label, value, state, held in arguments if not held]
        if kind == "inf":
            if any(state.inf for _, _, state in numbers):
                self.wanted_inf = True
            if self.wanted_inf and any(state.inf for *_, state in [*tensors, *numbers]):
                return  # passed on, or written by the code itself
        guilty = [name for name, state in tensors if getattr(state, kind)]
        given = [(label, value) for label, value, state in numbers if getattr(state, kind)]
        source = note = None
        if guilty:
            source, note = self._from_outside(guilty[0])
        elif given:
            source = f"the code itself passes {given[0][1]} as {given[0][0]}"
        named = [
            Held(f"out {i}" if len(outputs) > 1 else "out", summarize(one))
            for i, one in enumerate(outputs)
            if isinstance(one, torch.Tensor)
        ]
        self.report = NonfiniteReport(
            "forward",
            kind,
            func.overloadpacket.__name__,
            source is None,
            source,
            *self.modules.running,
            running_line(sys._getframe(2), self.caller),
            tuple(
                held or Held(label, summarize(torch.tensor(value)))
                for label, value, state, held in arguments
                if held or state
            ),
            tuple(named),
            note=note or "",
        )

    def _from_outside(self, name: str) -> tuple[str, str]:
        if name in self.names.values():
            note = "It was there before this step: an earlier update, or the initialization, put it there."
            return f"it came in with {name}", note
        note = "No operation of this step made it: look at the data, and at what was prepared before."
        return f"it came in from outside, as {name}", note


def sum_of(states) -> Health:
    total = FINE
    for state in states:
        total |= state
    return total


def only_looks(func) -> bool:
    """Whether the operation returns a view: it computes nothing, and its base may be unfilled."""
    return any(a.alias_info is not None and not a.alias_info.is_write for a in func._schema.arguments)

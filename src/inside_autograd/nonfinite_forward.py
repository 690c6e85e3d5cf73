"""Watch a forward pass, operation by operation, for the first value that is not finite."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .health import FINE, Health, health
from .module_watch import Modules
from .nonfinite_report import Held, NonfiniteReport
from .user_lines import running_line
from .values import Value, _without_numbers, summarize

_UNFILLED = ("empty", "new_empty", "_empty", "resize")  # memory that nobody has written yet
_LARGE = 1 << 16  # elements: what is about to be written over is described only below that


@dataclass(slots=True)
class Argument:
    """One tensor or number among an operation's arguments, as it was before."""

    label: str
    state: Health
    value: Value | None  # of a tensor, and of a number that is not finite
    number: object = None
    written: bool = False


class Forward(TorchDispatchMode):
    """Sees every operation below autograd: in modules, in scripts, in the ``forward`` of Functions."""

    supports_higher_order_operators = True

    def __init__(self, names: dict[int, str], modules: Modules, ignore_inf: bool, caller: str):
        super().__init__()
        self.names, self.modules, self.ignore_inf = names, modules, ignore_inf
        self.caller = caller  # the file whose frames are not the user's any more
        self.operations = 0
        self.wanted_inf = False  # the code has written an infinity, as for a mask
        self.report: NonfiniteReport | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if self.report is not None:
            return func(*args, **kwargs)
        schema = getattr(func, "_schema", None)  # torch.cond and its like have none
        before = self._arguments(schema, args, kwargs) if schema is not None and schema.is_mutable else None
        result = func(*args, **kwargs)
        outputs = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
        name, looks = name_of_operation(func), only_looks(func)
        self.operations += not looks
        if name == "lift_fresh":  # a constant in the code, such as torch.tensor(-math.inf)
            self.wanted_inf |= any(health(one).inf for one in outputs)
        elif not looks and not name.startswith(_UNFILLED):
            found = sum_of(map(health, outputs))
            if found.nan or (found.inf and not self.ignore_inf):
                arguments = self._arguments(schema, args, kwargs) if before is None else before
                self._judge(name, arguments, found, outputs)
        return result

    def _arguments(self, schema: Any, args: tuple, kwargs: dict) -> list[Argument]:
        declared = {} if schema is None else {one.name: one for one in schema.arguments}
        names = list(declared) or [f"operand {i}" for i in range(len(args))]
        found = []
        for name, given in [*zip(names, args, strict=False), *kwargs.items()]:
            alias = declared[name].alias_info if name in declared else None
            written = alias is not None and alias.is_write
            if written and declared[name].kwarg_only:
                continue  # out=: what was in it does not count
            values = tree_leaves(given)
            for i, one in enumerate(values):
                label = "input" if name == "self" else name
                label = label if len(values) == 1 else f"{label}[{i}]"
                state = health(one)
                if isinstance(one, torch.Tensor):
                    describe = _without_numbers if written and one.numel() > _LARGE else summarize
                    found.append(Argument(self._name(one) or label, state, describe(one), None, written))
                elif state:
                    found.append(Argument(label, state, summarize(torch.tensor(one)), one))
        return found

    def _name(self, tensor: torch.Tensor) -> str | None:
        try:
            return self.names.get(id(tensor)) or self.names.get(tensor.untyped_storage().data_ptr())
        except (RuntimeError, NotImplementedError):  # no storage to ask
            return None

    def _judge(self, name: str, arguments: list[Argument], found: Health, outputs: list) -> None:
        kind = "nan" if found.nan else "inf"
        if kind == "inf":
            self.wanted_inf |= any(one.number is not None for one in arguments if one.state.inf)
            if self.wanted_inf and any(one.state.inf for one in arguments):
                return  # passed on, or written by the code itself
        guilty = [one for one in arguments if getattr(one.state, kind)]
        if guilty and all(one.written for one in guilty):
            return  # it was in the memory already, and stays where this operation did not write
        source, note = self._from_outside(guilty) if guilty else (None, "")
        several = len(outputs) > 1
        self.report = NonfiniteReport(
            "forward",
            kind,
            name,
            source is None,
            source,
            *self.modules.running,
            running_line(sys._getframe(2), self.caller),
            tuple(Held(one.label, one.value) for one in arguments),
            tuple(Held(f"out {i}" if several else "out", summarize(one)) for i, one in enumerate(outputs)),
            note=note,
        )

    def _from_outside(self, guilty: list[Argument]) -> tuple[str, str]:
        first = next((one for one in guilty if one.number is None and not one.written), guilty[0])
        if first.number is not None:
            return f"the code itself passes {first.number} as {first.label}", ""
        if first.label in self.names.values():
            note = "It was there before this step: an earlier update, or the initialization, put it there."
            return f"it came in with {first.label}", note
        note = "No operation of this step made it: look at the data, and at what was prepared before."
        return f"it came in from outside, as {first.label}", note


def sum_of(states: Iterable[Health]) -> Health:
    total = FINE
    for state in states:
        total |= state
    return total


def name_of_operation(func: Any) -> str:
    packet = getattr(func, "overloadpacket", None)
    return packet.__name__ if packet is not None else func.name()


def only_looks(func: object) -> bool:
    """Whether the operation returns a view: it computes nothing, and its base may be unfilled."""
    schema = getattr(func, "_schema", None)
    arguments = () if schema is None else schema.arguments
    return any(one.alias_info is not None and not one.alias_info.is_write for one in arguments)

"""What ``first_nonfinite`` found, as plain data and in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from .health import brief
from .user_lines import Line
from .values import Value

WORD = {"nan": "NaN", "inf": "infinity"}


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that took part: what it is called there, and what was in it. ``value`` may be ``None``."""

    name: str
    value: Value | None

    def __str__(self) -> str:
        return f"{self.name}: {brief(self.value)}"


@dataclass(frozen=True, slots=True, repr=False)
class NonfiniteReport:
    """The first non-finite value of a forward and backward pass. True in an ``if`` where there is one.

    Attributes
    ----------
    phase
        ``forward`` or ``backward``; ``None`` where everything was finite.
    kind
        ``nan`` or ``inf``; ``nan`` where both came at once.
    op
        The operation (``log``, ``addmm``) or, in backward, the node (``SqrtBackward0``).
    born
        ``True`` where it was made there of values that held none; ``False`` where it came in from
        outside: with the data, in a parameter, as a number in the code, or from a hook.
    source
        Where it came from if it was not born there: a parameter's name, or what is known in words.
    module, module_class
        The qualified name of the module that ran the operation, ``""`` for the outermost one, and its
        class; ``None`` where no module of ``params`` did.
    line
        The line of your code that ran the operation: for a node, its forward.
    inputs, outputs
        What went in and what came out. In backward these are gradients.
    saved
        In backward: what the node had saved in forward.
    inner_op, inner_line
        For a custom Function in backward: the operation inside it, and its line.
    operations, nodes
        How many operations of forward (views not counted) and nodes of backward were looked at; ``None``
        for a part that did not run.
    note
        What else there is to know.
    """

    phase: str | None = None
    kind: str | None = None
    op: str | None = None
    born: bool = False
    source: str | None = None
    module: str | None = None
    module_class: str | None = None
    line: Line | None = None
    inputs: tuple[Held, ...] = ()
    outputs: tuple[Held, ...] = ()
    saved: tuple[Held, ...] = ()
    inner_op: str | None = None
    inner_line: Line | None = None
    operations: int | None = None
    nodes: int | None = None
    note: str = ""

    @property
    def found(self) -> bool:
        """Whether there is a non-finite value."""
        return self.phase is not None

    def __bool__(self) -> bool:
        return self.found

    def __str__(self) -> str:
        return "\n".join([*(self._found() if self.found else self._clean()), *self._notes()])

    __repr__ = __str__

    def _clean(self) -> list[str]:
        looked = [
            f"{count:,} {what}{'' if count == 1 else 's'} in {phase}"
            for count, what, phase in (
                (self.operations, "operation", "forward"),
                (self.nodes, "node", "backward"),
            )
            if count is not None
        ]
        return [f"Everything is finite: {' and '.join(looked)}."]

    def _found(self) -> list[str]:
        forward = self.phase == "forward"
        rows: list[tuple[str, Sequence[str | Held]]] = []
        rows += [("made by", [self.inner_op])] if self.inner_op else []
        rows += [("in its backward", [str(self.inner_line)])] if self.inner_line else []
        rows += [("line" if forward else "forward line", [str(self.line)])] if self.line else []
        if self.module is not None:
            rows += [("module", [f"{self.module or 'the outermost'} ({self.module_class})"])]
        rows += [("went in" if forward else "arrived", self.inputs)]
        rows += [("saved", self.saved), ("came out" if forward else "sent on", self.outputs)]
        width = max((len(name) for name, entries in rows if entries), default=0)
        lines = [self._headline()]
        for name, entries in rows:
            lines += [f"  {name if i == 0 else '':{width}}  {entry}" for i, entry in enumerate(entries)]
        return lines

    def _headline(self) -> str:
        what = WORD[self.kind or "nan"]
        what = f"{what[0].upper()}{what[1:]} in the {self.phase} pass"
        if self.op is None:
            return f"{what}: {self.source}."
        if not self.born:
            return f"{what}, first seen in {self.op}: {self.source}."
        if not self.inputs:
            return f"{what}, born in {self.op}."
        values = [held.value for held in self.inputs if held.value is not None]
        s = "" if len(values) == 1 else "s"
        came = f"its input{s}" if self.phase == "forward" else f"the gradient{s} that arrived"
        how = f"{came} {'were' if s else 'was'} finite"
        if any(value.inf for value in values):
            how = f"{came} held infinity, but no NaN"
        return f"{what}, born in {self.op}: {how}."

    def _notes(self) -> list[str]:
        return [self.note] if self.note else []

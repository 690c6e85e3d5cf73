"""What one backward pass did, as plain data: no tensor and no node is kept alive.

Treat the parts as read-only. They are not frozen, for the reason that ``data.py`` gives.
"""

from dataclasses import dataclass, field

import torch

from .graph import Graph
from .values import Value


@dataclass(slots=True, unsafe_hash=True)
class Received:
    """The gradient that arrived at one input of a node, that is, for one output of its operation.

    ``value`` is ``None`` where nothing arrived (an undefined gradient). ``given`` is then what the
    ``backward`` of a custom Function was handed in its place, zeros as a rule; it is ``None`` where
    the Function saw ``None``, and for built-in nodes, which do not tell.
    """

    number: int
    value: Value | None
    given: Value | None = None


@dataclass(slots=True, unsafe_hash=True)
class Sent:
    """The gradient that a node computed for one input of its operation.

    Attributes
    ----------
    slot
        Position in ``next_functions``.
    target, input_nr
        The node that gets it, and at which of its inputs; ``target`` is ``None`` for an empty slot.
    value
        ``None`` where the node computed none.
    wanted
        ``False`` where the call did not ask for it: ``autograd.grad`` goes only where ``wrt`` leads, and
        drops what a custom Function computes besides.
    """

    slot: int
    target: int | None
    input_nr: int
    value: Value | None
    wanted: bool = True


@dataclass(slots=True, unsafe_hash=True)
class Filled:
    """The ``.grad`` of a named tensor before and after, where it changed out of the recording's sight."""

    name: str
    before: Value | None
    after: Value | None


@dataclass(slots=True, unsafe_hash=True)
class Step:
    """One node's run.

    Attributes
    ----------
    number
        1 for the node that the engine ran first.
    node
        Its index in ``recording.graph``.
    name
        As torch prints it: ``MulBackward0``, ``AccumulateGrad``.
    received
        One entry per output of the operation.
    sent
        One entry per slot; empty for a leaf, and for a node that failed.
    before, after
        For a leaf: its ``.grad`` before and after the step; ``None`` where it had none.
    freed
        Saved tensors that the node gave up once it had run.
    filled
        For a reentrant checkpoint: what the backward pass inside it did to named tensors.
    finished
        ``False`` for the node that raised.
    nonfinite
        Whether NaN or infinity comes out of this step though none went in.
    """

    number: int
    node: int
    name: str
    received: tuple[Received, ...]
    sent: tuple[Sent, ...] = ()
    before: Value | None = None
    after: Value | None = None
    freed: tuple[str, ...] = ()
    filled: tuple[Filled, ...] = ()
    finished: bool = True
    nonfinite: bool = False


@dataclass(slots=True, unsafe_hash=True)
class Start:
    """Where the pass begins: an output, its node, and the gradient it was given (1 for a scalar)."""

    path: str
    node: int
    input_nr: int
    value: Value


@dataclass(slots=True, unsafe_hash=True)
class Returned:
    """One result of ``autograd.grad``; ``value`` is ``None`` for an input that was not used.

    ``node`` and ``input_nr`` say where in the graph it was taken; ``node`` is ``None`` outside of it.
    """

    name: str
    node: int | None
    input_nr: int
    value: Value | None


@dataclass(slots=True, unsafe_hash=True)
class Failure:
    """The error that ended the pass. ``step`` is the number of the step that raised, if one did."""

    type: str
    message: str
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, repr=False)
class Recording:
    """One backward pass, step by step; ``replay`` makes it. ``str(recording)`` lists the steps in words.

    Attributes
    ----------
    call
        ``backward`` or ``grad``, whichever of ``torch.autograd`` ran.
    graph
        The graph as it was before the run.
    starts
        Where the pass began, and with which gradients.
    steps
        In the engine's own order.
    returned
        The results of ``autograd.grad``; empty for ``backward``.
    filled
        Named tensors outside the graph whose ``.grad`` changed all the same.
    error
        What ended the pass early, or ``None``.

    Examples
    --------
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> recording = replay(2 * x, params={"x": x})
    >>> [step.name for step in recording.steps]
    ['MulBackward0', 'AccumulateGrad']
    >>> recording.error is None
    True
    """

    call: str
    graph: Graph
    starts: tuple[Start, ...]
    steps: tuple[Step, ...]
    returned: tuple[Returned, ...] = ()
    filled: tuple[Filled, ...] = ()
    error: Failure | None = None
    _kept: tuple | None = field(default=None, compare=False)

    @property
    def grads(self) -> tuple[torch.Tensor | None, ...]:
        """What ``autograd.grad`` returned, in the order of ``wrt``; only after ``keep_grads=True``."""
        if self._kept is None:
            raise ValueError("This recording kept no tensors: call replay(..., wrt=..., keep_grads=True).")
        return self._kept

    @property
    def never_ran(self) -> tuple[int, ...]:
        """Indices of nodes that did not run."""
        ran = {step.node for step in self.steps}
        return tuple(node.index for node in self.graph.nodes if node.index not in ran)

    @property
    def order(self) -> tuple[int, ...]:
        """Indices of the nodes in the order in which they ran."""
        return tuple(step.node for step in self.steps)

    @property
    def first_nonfinite(self) -> Step | None:
        """The first step that made a NaN or an infinity of finite gradients."""
        return next((step for step in self.steps if step.nonfinite), None)

    def __len__(self) -> int:
        return len(self.steps)

    def __str__(self) -> str:
        from .narrate import listing

        return listing(self)

    __repr__ = __str__

    def to_html(self) -> str:
        """The player: a self-contained HTML fragment that steps through the drawing."""
        from .player import player

        return player(self)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict:
        return {"text/html": self.to_html(), "text/plain": str(self)}

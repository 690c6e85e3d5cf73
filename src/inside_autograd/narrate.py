"""A recording in words: one sentence for each step."""

import math
from collections import Counter
from typing import Any

from .graph import ACCUMULATE, CHECKPOINT, Graph, Node
from .recording import Filled, Recording, Returned, Sent, Start, Step
from .values import Value

MAX_SUM = 60  # characters of a sum that is written out
MAX_TARGETS = 6  # that a sentence lists
MAX_LISTED = 400  # steps that ``str(recording)`` lists


def labels(graph: Graph) -> tuple[str, ...]:
    """What to call each node: a leaf by its names, an operation by its own, with ``#index`` if not unique."""
    counts = Counter(_base(node) for node in graph.nodes)
    return tuple(
        base if counts[base] == 1 else f"{base} #{node.index}"
        for node, base in ((node, _base(node)) for node in graph.nodes)
    )


def _base(node: Node) -> str:
    if node.kind != ACCUMULATE:
        return node.name
    return " = ".join(node.names) or "leaf"


class Narrator:
    """Sentences about one recording, in plain text."""

    def __init__(self, recording: Recording):
        self.recording = recording
        self.labels = labels(recording.graph)
        # Everything that is sent to an input of a node before the node runs, in order.
        self.parts: dict[tuple[int, int], list[Value | None]] = {}
        for start in recording.starts:
            self.parts.setdefault((start.node, start.input_nr), []).append(start.value)
        for step in recording.steps:
            for sent in step.sent:
                if sent.target is not None and sent.value is not None and sent.wanted:
                    self.parts.setdefault((sent.target, sent.input_nr), []).append(sent.value)

    def start(self) -> str:
        starts = self.recording.starts
        call = "backward" if self.recording.call == "backward" else "autograd.grad"
        given = [f"{start.value.text} to {self._start_name(start)}" for start in starts]
        return f"{call} starts: gradient {_and(given)}."

    def _start_name(self, start: Start) -> str:
        return self.labels[start.node] + self._input(start.node, start.input_nr)

    def _input(self, node: int, number: int) -> str:
        return f" (output {number})" if len(self.recording.graph.nodes[node].outputs) > 1 else ""

    def step(self, step: Step) -> str:
        label = self.labels[step.node]
        node = self.recording.graph.nodes[step.node]
        received = self._received(step)
        if not step.finished:
            return f"{label} received {received}, and raised {one_line(str(self.recording.error))}"
        if node.kind == ACCUMULATE:
            whose = f"{node.names[0]}.grad" if node.names else "its .grad"
            return (
                f"{label} received {received}: {whose} {_change(step.before, step.after)}.{self._marks(step)}"
            )
        return f"{label} received {received}, {self._sent(step)}.{self._marks(step)}"

    def _received(self, step: Step) -> str:
        if len(step.received) == 1:
            return self._arrived(step, 0)
        return _and(
            [f"{self._arrived(step, entry.number)} for output {entry.number}" for entry in step.received]
        )

    def _arrived(self, step: Step, number: int) -> str:
        entry = step.received[number]
        if entry.value is None:
            if entry.given is None:
                return "nothing"
            zeros = "zeros" if entry.given.is_zero else entry.given.text
            return f"nothing (its backward was given {zeros})"
        parts = [part for part in self.parts.get((step.node, number), []) if part is not None]
        return entry.value.text + _sum_text(entry.value, parts)

    def _sent(self, step: Step) -> str:
        edges = [entry for entry in step.sent if entry.target is not None]
        wanted = [entry for entry in edges if entry.wanted]
        pieces = [f"{_text(entry)} to {self._goal(entry)}" for entry in wanted[:MAX_TARGETS]]
        if len(wanted) > MAX_TARGETS:
            pieces.append(f"more to {len(wanted) - MAX_TARGETS:,} others")
        said = f"sent {_and(pieces)}" if pieces else "sent nothing on"
        dropped = [entry for entry in edges if not entry.wanted]
        for verb, some in (
            ("computed nothing", [entry for entry in dropped if entry.value is None]),
            ("dropped what it computed", [entry for entry in dropped if entry.value is not None]),
        ):
            if some:
                said += (
                    f", and {verb} for {_some(list(dict.fromkeys(map(self._goal, some))))} (not asked for)"
                )
        return said

    def _goal(self, entry: Sent) -> str:
        assert entry.target is not None  # what leads nowhere is neither computed nor dropped
        return self.labels[entry.target] + self._input(entry.target, entry.input_nr)

    def _marks(self, step: Step) -> str:
        said = ""
        if step.freed:
            said += f" Freed: {', '.join(step.freed)}."
        if step.filled:
            said += " Inside it, a backward pass of its own ran: " + _filled(step.filled)
        elif self.recording.graph.nodes[step.node].kind == CHECKPOINT:
            said += " What ran inside it is not seen here."
        if step.nonfinite:
            said += f" {self._nonfinite_name(step)} appears here."
        return said

    def _nonfinite_name(self, step: Step) -> str:
        values = [entry.value for entry in step.sent] + [step.after]
        return "NaN" if any(value is not None and value.nan for value in values) else "Infinity"

    def _asked(self, entry: Returned) -> str:
        if entry.name and not entry.name.startswith("["):
            return entry.name
        if entry.node is not None:
            return self.labels[entry.node]
        return f"wrt{entry.name}"

    def end(self) -> str:
        recording = self.recording
        ran = len(recording.graph) - len(recording.never_ran)
        said = f"{ran:,} of {_nodes(len(recording.graph))} ran."
        if recording.error is not None and recording.error.step:
            said = f"Ended by the error in step {recording.error.step:,}: {said}"
        elif recording.error is not None:
            said = f"Ended by an error in no node's own step: {one_line(str(recording.error))} {said}"
        else:
            said = f"Done: {said}"
        if recording.returned:
            results = [f"{_value_text(entry.value)} for {self._asked(entry)}" for entry in recording.returned]
            said += f" autograd.grad returned {_some(results)}; .grad was left alone."
        if recording.never_ran:
            said += f" Never ran: {_some([self.labels[index] for index in recording.never_ran])}."
        if recording.filled:
            said += " Out of sight, inside a node: " + _filled(recording.filled)
        return said


def _nodes(count: int) -> str:
    return f"{count:,} node{'' if count == 1 else 's'}"


def one_line(message: str) -> str:
    return " ".join(message.split())


def _some(parts: list[str]) -> str:
    more = len(parts) - MAX_TARGETS
    return _and(parts[:MAX_TARGETS] + ([f"{more:,} more"] if more > 0 else []))


def _filled(changes: tuple[Filled, ...]) -> str:
    shown = [f"{change.name}.grad {_change(change.before, change.after)}" for change in changes[:MAX_TARGETS]]
    more = len(changes) - MAX_TARGETS
    return _and(shown + ([f"{more:,} more changed"] if more > 0 else [])) + "."


def _change(before: Value | None, after: Value | None) -> str:
    if before is None and after is None:
        return "stays empty"
    return f"goes from {_value_text(before)} to {_value_text(after)}"


def _value_text(value: Value | None) -> str:
    return "None" if value is None else value.text


def _text(entry: Sent) -> str:
    return "nothing" if entry.value is None else entry.value.text


def _and(parts: list[str]) -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def _sum_text(value: Value, parts: list[Value]) -> str:
    """How ``value`` came about: `` (2 + 2)``, or that it was changed on the way, by a hook or in place."""
    known = [part.numbers for part in parts if part.numbers is not None]
    own = value.numbers
    if not parts or own is None or len(known) < len(parts) or any(len(part) != len(own) for part in known):
        return f" (a sum of {len(parts)})" if len(parts) > 1 else ""
    sums = [sum(column) for column in zip(*known, strict=True)]
    total = " + ".join(part.text for part in parts)
    if not all(_close(number, expected) for number, expected in zip(own, sums, strict=True)):
        return f" (changed on the way, by a hook or in place, from {total})"
    if len(parts) == 1:
        return ""
    return f" ({total})" if len(total) <= MAX_SUM else f" (a sum of {len(parts)})"


def _close(number: Any, expected: Any) -> bool:
    if number == expected or (number != number and expected != expected):
        return True
    try:
        return abs(number - expected) <= 1e-2 * max(abs(number), abs(expected)) or math.isinf(abs(expected))
    except (OverflowError, TypeError):
        return True


def listing(recording: Recording) -> str:
    """All steps as numbered lines; what ``str(recording)`` gives."""
    narrator = Narrator(recording)
    width = len(str(len(recording.steps)))
    lines = [narrator.start()]
    lines += [f"{step.number:>{width}}. {narrator.step(step)}" for step in recording.steps[:MAX_LISTED]]
    if len(recording.steps) > MAX_LISTED:
        lines.append(
            f"... and {len(recording.steps) - MAX_LISTED:,} more steps (recording.steps has them all)"
        )
    lines.append(narrator.end())
    return "\n".join(lines)

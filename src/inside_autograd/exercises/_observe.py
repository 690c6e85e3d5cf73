"""What is looked at when an answer runs, and how two such looks are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch

from ._values import difference, freeze, same, write

SIDE = "side effect: "
NOTHING_RETURNED = "Your function returned None. Is a `return` missing?"


@dataclass(frozen=True)
class Raised:
    """What is observed of a case in which the code raised."""

    kind: str
    message: str


class Called:
    """A learner's function that remembers what it returned last, and whether it returned at all."""

    def __init__(self, function: Callable):
        self.function, self.returned, self.done = function, None, False

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        self.returned, self.done = None, False
        self.returned = self.function(*arguments, **named)
        self.done = True
        return self.returned


@dataclass(frozen=True)
class Observation:
    """What was seen of one answer in one case."""

    case: str
    arguments: str
    values: Any  # dict, Raised, or None after a time-out
    fatal: bool = False
    status: str = "wrong value"
    message: str = ""
    size: int = 0  # elements in all tensor arguments
    printed: str = ""

    def equals(self, other: "Observation") -> bool:
        if isinstance(self.values, Raised) or isinstance(other.values, Raised):
            return self.values == other.values
        return same(self.values, other.values)

    def against(self, true: "Observation") -> tuple[str, tuple[tuple[str, str], ...]]:
        """The status, and the evidence as rows of (what, value). The truth itself never raised."""
        if isinstance(self.values, Raised):
            key = next(iter(true.values))
            rows = [("input", true.arguments), (f"expected {key}", write(true.values[key]))]
            return "raised", tuple(row for row in rows if row[1])
        key = self.first_difference(true)
        status = "wrong value"
        if key.startswith("gradient"):
            status = "wrong gradient"
        elif key.startswith(SIDE):
            status = "side effect"
        mine, expected = self.values.get(key), true.values[key]
        if key == "answer":
            # The expected answer would give the exercise away.
            rows = [("your answer", write(mine)), ("so far", _so_far(mine, expected))]
        elif key.startswith(SIDE):
            rows = [("input", self.arguments)]
        else:
            shown, wanted = write(mine), write(expected)
            if shown == wanted:
                shown, wanted = write(mine, digits=12), write(expected, digits=12)
            rows = [("input", self.arguments), (f"your {key}", shown), (f"expected {key}", wanted)]
            rows.append(("difference", difference(mine, expected)))
        return status, tuple(row for row in rows if row[1])

    def first_difference(self, true: "Observation") -> str:
        """The first thing in which this differs from the truth."""
        return next(key for key in true.values if not same(self.values.get(key), true.values[key]))

    def headline(self, true: "Observation") -> str:
        """What is wrong, where no known mistake explains it."""
        if isinstance(self.values, Raised):
            return self.message
        key = self.first_difference(true)
        mine = self.values.get(key)
        if key.startswith(SIDE):
            which = "" if isinstance(mine, bool) else ": " + ", ".join(map(str, mine))
            return f"Right so far, but {key.removeprefix(SIDE)}{which}."
        if mine is None and true.values[key] is not None and key == "result":
            return NOTHING_RETURNED
        if key == "answer":
            return "Not right."
        if " " in key:
            return f"Not right: {key}. The cause is unknown to this check."
        return f"The {key} is wrong, cause unknown to this check."


def _so_far(mine: object, true: object) -> str:
    """How much of a list is right, without saying what the rest should be."""
    if not (isinstance(mine, tuple) and isinstance(true, tuple)):
        return ""
    # Names without an order, as `observe_names` gives them; words in an order are compared place by place.
    if all(isinstance(item, str) for item in true) and all(t == tuple(sorted(set(t))) for t in (mine, true)):
        right = len(set(mine) & set(true))
        wrong, missing = len(set(mine)) - right, len(true) - right
        parts = (
            f"{right} of yours belong{'s' * (right == 1)} there",
            f"{wrong} {'does' if wrong == 1 else 'do'} not",
            f"{missing} {'is' if missing == 1 else 'are'} missing",
        )
        return ", ".join(parts)
    if len(mine) != len(true):
        return f"{len(true)} values were asked for, yours are {len(mine)}"
    places = [str(i) for i, pair in enumerate(zip(mine, true, strict=True), 1) if same(*pair)]
    return f"right at place {', '.join(places)}" if places else "none of the places is right yet"


def observe_names(answer: Any) -> dict:
    """For ``kind="list"``: which names are in it. Order and repetition do not matter."""
    return {"answer": tuple(sorted({str(item) for item in answer}))}


def observe_call(answer: Callable, *arguments: object) -> dict:
    """The default observation of a function: its result, and that its arguments are as they were."""
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    values = [cast(torch.Tensor, freeze(a)) for a in tensors]
    grads = [a.grad if a.is_leaf else None for a in tensors]
    result = answer(*arguments)
    changed = [not torch.equal(a.detach(), old) for a, old in zip(tensors, values, strict=True)]
    filled = [a.is_leaf and a.grad is not old for a, old in zip(tensors, grads, strict=True)]
    return {
        "result": result,
        "side effect: an input was changed in place": any(changed),
        "side effect: .grad of an input was changed": any(filled),
    }


def observe_gradient(answer: Callable, *arguments: object) -> dict:
    """Result and gradients of a differentiable function, from one backward pass with a fixed cotangent."""
    seen = observe_call(answer, *arguments)
    result = seen["result"]
    inputs = [a for a in arguments if isinstance(a, torch.Tensor) and a.requires_grad]
    if isinstance(result, torch.Tensor) and result.requires_grad and inputs:
        cotangent = torch.linspace(1, 2, result.numel(), dtype=result.dtype).reshape(result.shape)
        grads: Sequence = torch.autograd.grad(result, inputs, cotangent, allow_unused=True)
    else:
        grads = [None] * len(inputs)
    return {"result": result, **{f"gradient {i}": g for i, g in enumerate(grads)}, **seen}

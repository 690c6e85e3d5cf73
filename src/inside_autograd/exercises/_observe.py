"""What is looked at when an answer runs, and how two such looks are compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ._values import difference, freeze, same, write


@dataclass(frozen=True)
class Raised:
    """What is observed of a case in which the code raised."""

    kind: str
    message: str


@dataclass(frozen=True)
class Observation:
    """What was seen of one answer in one case."""

    case: str
    arguments: str
    values: object  # dict, Raised, or None after a time-out
    fatal: bool = False
    status: str = "wrong value"
    message: str = ""
    size: int = 0  # elements in all tensor arguments

    def equals(self, other: "Observation") -> bool:
        if isinstance(self.values, Raised) or isinstance(other.values, Raised):
            return self.values == other.values
        return same(self.values, other.values)

    def against(self, true: "Observation") -> tuple[str, tuple[tuple[str, str], ...]]:
        """The status, and the evidence as rows of (what, value)."""
        if isinstance(self.values, Raised) or isinstance(true.values, Raised):
            rows = [("input", self.arguments or true.arguments)]
            if not isinstance(true.values, Raised) and true.values:
                key = next(iter(true.values))
                rows.append((f"expected {key}", write(true.values[key])))
            status = "raised" if isinstance(self.values, Raised) else "wrong value"
            return status, tuple(row for row in rows if row[1])
        key = next(key for key in true.values if not same(self.values.get(key), true.values[key]))
        status = "wrong value"
        if key.startswith("gradient"):
            status = "wrong gradient"
        elif key.startswith("side effect"):
            status = "side effect"
        mine, expected = self.values.get(key), true.values[key]
        rows = [("input", self.arguments), (f"your {key}", write(mine)), (f"expected {key}", write(expected))]
        note = difference(mine, expected)
        if note:
            rows.append(("difference", note))
        if key == "answer":
            rows = rows[1:2]  # the expected answer would give the exercise away
        return status, tuple(row for row in rows if row[1])


def observe_names(answer: object) -> dict:
    """For ``kind="list"``: which names are in it. Order and repetition do not matter."""
    return {"answer": tuple(sorted({str(item) for item in answer}))}


def observe_call(answer: Callable, *arguments: object) -> dict:
    """The default observation of a function: its result, and that its arguments are as they were."""
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    values = [freeze(a) for a in tensors]
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

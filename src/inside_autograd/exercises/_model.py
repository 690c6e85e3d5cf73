"""What an exercise is made of, and how an answer is judged.

An exercise names *observations*: what is looked at after the answer ran on a case. The reference
solution, the learner's answer and every known-wrong answer are observed in the same way. An answer is
right when its observations equal the solution's in every case, and it gets the diagnosis of a known
mistake only when its observations equal that mistake's in every case.
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch

from . import _progress, _sandbox, _source
from ._observe import NOTHING_RETURNED, Called, Observation, Raised, observe_call
from ._report import Report, Solution, Text
from ._values import freeze, write

KINDS = ("function", "Function", "Module", "tensor", "number", "choice", "list", "any")


@dataclass(frozen=True)
class Case:
    """One trial. ``make(generator)`` returns fresh arguments; it is called anew for each observer.

    ``label`` says in words what is special about it: "one element", "not contiguous".
    """

    label: str
    make: Callable[[torch.Generator], tuple]


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that learners give: its code, and the diagnosis it must get.

    ``says`` speaks to the learner: what they did and why it is wrong.
    """

    key: str
    says: str
    code: str


@dataclass(frozen=True, eq=False, repr=False)
class Exercise:
    """One exercise. ``check``, ``hint`` and ``solution`` are what a learner calls.

    Attributes
    ----------
    name, chapter
        Its name in the registry, and the chapter's number: ``"12"``.
    title, minutes, difficulty, statement
        What stands above it in the notebook. ``difficulty`` is 1, 2 or 3; ``statement`` is Markdown.
    kind
        What the answer is, one of ``KINDS``.
    starter, answer
        The code of the notebook cell, and the name in it that holds the answer.
    hints
        Two to four texts, shown one more at each call.
    reference
        The code of the solution.
    cases, observe
        The trials, and ``observe(answer, *arguments) -> dict`` from what is looked at to its value.
        Without ``cases`` the answer itself is observed. Keys that begin with ``gradient`` are reported as
        wrong gradients, keys that begin with ``side effect`` as side effects. Case 0 is the example in the
        statement.
    mistakes, other_right
        Known-wrong answers, and other code that is right.
    choices
        For ``choice``: from key to text.
    explains
        Shown when it is right: why it is so.
    may_change
        Names of global state that the exercise allows an answer to change.
    seconds, too_slow
        The time for one case, and what to say when it is over.
    """

    name: str
    chapter: str
    title: str
    minutes: int
    difficulty: int
    statement: str
    kind: str
    starter: str
    answer: str
    hints: tuple[str, ...]
    reference: str
    mistakes: tuple[Mistake, ...]
    cases: tuple[Case, ...] = ()
    observe: Callable[..., dict] | None = None
    other_right: tuple[str, ...] = ()
    choices: dict[str, str] = field(default_factory=dict)
    explains: str = ""
    may_change: tuple[str, ...] = ()
    seconds: float = _sandbox.SECONDS
    too_slow: str = "Look for a loop that never ends."

    def check(self, answer: object = ...) -> Report:
        """Say whether ``answer`` is right, or what is wrong with it. Never raises on a learner's mistake."""
        report = self._judge(answer)
        if report.status != "not attempted":
            _progress.record(self.name, report.passed)
        return report

    def hint(self) -> Text:
        """The first hint; at each further call one more."""
        shown = _progress.next_hint(self.name, len(self.hints))
        lines = [f"Hint {i + 1} of {len(self.hints)}: {hint}" for i, hint in enumerate(self.hints[:shown])]
        if shown == len(self.hints):
            lines.append(f"That was the last hint. `{self.call('solution')}` shows a solution.")
        return Text(lines)

    def solution(self) -> Solution:
        """The reference solution, highlighted."""
        return Solution(self.title, self.reference.strip(), self.explains)

    # ------------------------------------------------------------------ the notebook's cells

    def markdown(self) -> str:
        """The Markdown cell above the exercise."""
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes} minutes"
        level = ("easy", "medium", "hard")[self.difficulty - 1]
        lines = [f"### {self.title}", "", f"*{minutes}, {level}*", "", self.statement.strip()]
        if self.choices:
            lines += ["", *(f"- `{key}`: {text}" for key, text in self.choices.items())]
        lines += ["", f"[Hints and a solution](../book/solutions_{self.chapter[0]}.md#{self.anchor})"]
        return "\n".join(lines)

    def cell(self) -> str:
        """The code cell: the starter, and the call that checks it."""
        return f"{self.starter.strip()}\n\n{self.call('check', self.answer)}"

    @property
    def anchor(self) -> str:
        """The anchor of its heading, in the notebook and on the pages of solutions, as Markdown makes it."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    def call(self, method: str, argument: str = "") -> str:
        """How a learner calls ``method`` of this exercise: ``ex.cube.hint()``."""
        return f"ex.{self.name}.{method}({argument})"

    def __repr__(self) -> str:
        minutes = "1 minute" if self.minutes == 1 else f"{self.minutes} minutes"
        return f"{self.title} ({minutes}). Call {self.call('check', self.answer)} to check your answer."

    # ------------------------------------------------------------------ judging

    def _judge(self, answer: object) -> Report:
        if _source.not_attempted(answer):
            return self._report("not attempted", "Not attempted yet.", choices=self.verdicts())
        answer = self._plain(answer)
        problem = self._wrong_kind(answer)
        if problem:
            return self._report("wrong type", problem)
        unfinished = _source.unfinished_methods(answer)
        if unfinished:
            return self._report("unfinished", f"{' and '.join(unfinished)} still holds only `...`.")
        # The solution first: what torch imports at its first use must not count against the learner's time.
        truth = self._truth
        return self._compare(self._observe_all(answer, self.seconds), truth)

    def _plain(self, answer: object) -> object:
        """The answer as it was meant: numbers out of tensors in a list, a choice without case or spaces."""
        if self.kind == "list":
            if isinstance(answer, torch.Tensor):
                answer = answer.tolist()
            if isinstance(answer, list | tuple):
                one = torch.Tensor
                return tuple(a.item() if isinstance(a, one) and a.numel() == 1 else a for a in answer)
        if self.kind == "choice" and isinstance(answer, str):
            return answer.strip().lower()
        return answer

    def verdicts(self) -> tuple[tuple[str, str, bool, str], ...]:
        """For a question: each choice with its text, whether it is right, and what there is to say."""
        says = {_source.execute(m.code, self.answer): m.says for m in self.mistakes} if self.choices else {}
        return tuple((k, text, k not in says, says.get(k, self.explains)) for k, text in self.choices.items())

    def _report(self, status: str, message: str, **more: Any) -> Report:
        return Report(self.title, status, message, hint=self.call("hint"), **more)

    def _compare(self, mine: list[Observation], truth: list[Observation]) -> Report:
        stopped = next((one for one in mine if one.fatal), None)
        if stopped:
            return self._report(stopped.status, stopped.message, case=stopped.case)
        wrong = [i for i, (one, true) in enumerate(zip(mine, truth, strict=True)) if not one.equals(true)]
        if not wrong:
            return Report(self.title, "passed", "Right.", explains=self.explains)
        diagnosis = self._diagnose(mine)
        # The smallest failing input says most, unless it is empty; the example, where it fails, is what the
        # learner knows.
        first = 0 if wrong[0] == 0 else min(wrong, key=lambda i: (mine[i].size == 0, mine[i].size))
        status, evidence = mine[first].against(truth[first])
        if 0 not in wrong and self.cases:
            status, lead = "right by accident", "Right for some inputs, wrong for others. "
        else:
            lead = ""
        message = mine[first].headline(truth[first])
        if diagnosis:
            raised = message if isinstance(mine[first].values, Raised) else ""
            message = f"{diagnosis.says} {raised}".strip()
        if mine[first].printed:
            evidence += (("your code printed", mine[first].printed),)
        return self._report(
            status,
            lead + message,
            case=mine[first].case if self.cases else "",
            evidence=evidence,
            diagnosis=diagnosis.key if diagnosis else None,
        )

    def _diagnose(self, mine: list[Observation]) -> Mistake | None:
        """The one known mistake that behaves like the answer in every case; None if none or several do."""

        def behaves_like(wrong: list[Observation]) -> bool:
            return len(wrong) == len(mine) and all(map(Observation.equals, mine, wrong))

        matching = [m for m in self.mistakes if behaves_like(self._wrong_truths[m.key])]
        return matching[0] if len(matching) == 1 else None

    @cached_property
    def _truth(self) -> list[Observation]:
        truth = self._observe_all(_source.execute(self.reference, self.answer))
        for one in truth:
            if one.fatal or isinstance(one.values, Raised):
                raise RuntimeError(
                    f"The solution of exercise {self.name!r} fails in case {one.case!r}: {one.message}"
                )
        return truth

    @cached_property
    def _wrong_truths(self) -> dict[str, list[Observation]]:
        return {
            m.key: self._observe_all(_source.execute(m.code, self.answer), self.seconds)
            for m in self.mistakes
        }

    def _observe_all(self, answer: Any, seconds: float = 60) -> list[Observation]:
        if not self.cases:
            outcome = _sandbox.run(
                lambda: self.observe(answer) if self.observe else {"answer": answer}, seconds
            )
            outcome = replace(outcome, value=("", outcome.value))
            return [self._observation(Case("", lambda _: ()), outcome, answer)]
        found: list[Observation] = []
        for number, case in enumerate(self.cases):
            arguments = self._arguments(case, number)
            call = Called(answer) if self.kind == "function" else answer
            outcome = _sandbox.run(partial(self._observe, call, arguments), seconds)
            size = sum(a.numel() for a in arguments if isinstance(a, torch.Tensor))
            seen = self._observation(case, outcome, call)
            found.append(replace(seen, size=size, printed=" ".join(outcome.printed.split())[:200]))
            if found[-1].fatal:
                break
        return found

    def _arguments(self, case: Case, number: int) -> tuple:
        # Seeded by the case: a learner who runs the check again sees the same failing input again. In the
        # sandbox too: making a module draws from the global random state.
        made = _sandbox.run(lambda: case.make(torch.Generator().manual_seed(number)), seconds=60)
        if made.error is not None:
            raise RuntimeError(f"Case {case.label!r} of {self.name!r} cannot be made.") from made.error
        return made.value

    def _observe(self, answer: Any, arguments: tuple) -> tuple[str, dict]:
        # Written before the call, which may change them.
        written = ", ".join(write(a) for a in arguments if not callable(a))
        watch = self.observe or observe_call
        return written, watch(answer, *arguments)

    def _observation(self, case: Case, outcome: _sandbox.Outcome, call: object) -> Observation:
        if outcome.expired:
            limit = f"{self.seconds:g}"
            message = f"Stopped after more than {limit} seconds, still running. {self.too_slow}"
            return Observation(case.label, "", None, fatal=True, status="too slow", message=message)
        if outcome.error is not None:
            error = outcome.error
            line = _source.own_line(error)
            where = f" in line {line[0]} of your code: `{line[1]}`" if line else ""
            text = " ".join(str(error).split())
            message = f"Your code raised {type(error).__name__}{where}. The message: {text or '(none)'}"
            if isinstance(call, Called) and call.done and not _source.passes_through(error, call.function):
                # It was the check that could not use what came back.
                message = f"Your function returned {write(call.returned)}, which is not what was asked for."
                if call.returned is None:
                    message = NOTHING_RETURNED
                elif _source.in_backward(error):
                    message = (
                        "Your function returned, and the backward pass through its result raised "
                        f"{type(error).__name__}. The message: {text or '(none)'}"
                    )
            # A node bears the name of the learner's class, which is theirs to choose.
            raised = Raised(type(error).__name__, re.sub(r"\b\w+Backward\b", "…Backward", text))
            return Observation(case.label, "", raised, status="raised", message=message)
        written, values = outcome.value
        changed = tuple(name for name in outcome.changed if name not in self.may_change)
        values = {key: freeze(value) for key, value in values.items()}
        values["side effect: global state changed"] = changed
        return Observation(case.label, written, values)

    # ------------------------------------------------------------------ kinds of answers

    def _wrong_kind(self, answer: Any) -> str | None:
        """One sentence if ``answer`` is not the kind of thing that was asked for."""
        got = write(answer)
        if self.kind == "function":
            if inspect.isclass(answer) or not callable(answer):
                call = self.call("check", self.answer)
                return f"A function was expected, got {got}. Pass the function itself: {call}."
            return self._wrong_arity(answer)
        if self.kind in ("Function", "Module"):
            base = torch.autograd.Function if self.kind == "Function" else torch.nn.Module
            if isinstance(answer, base):
                call = self.call("check", self.answer)
                return f"Got an instance, the class was expected: {call}, without parentheses."
            if not (inspect.isclass(answer) and issubclass(answer, base)):
                return f"A subclass of {base.__module__}.{base.__name__} was expected, got {got}."
        if self.kind == "tensor" and not isinstance(answer, torch.Tensor):
            return f"A tensor was expected, got {got}."
        if self.kind == "number" and (isinstance(answer, bool) or not isinstance(answer, int | float)):
            if isinstance(answer, torch.Tensor) and answer.numel() == 1:
                return "A number was expected, got a tensor with one element. Use .item()."
            return f"A number was expected, got {got}."
        if self.kind == "choice" and not (isinstance(answer, str) and answer in self.choices):
            return f"Answer with one of {', '.join(map(repr, self.choices))}; got {got}."
        if self.kind == "list" and not isinstance(answer, list | tuple | set | frozenset):
            return f"A list was expected, got {got}."
        if self.kind == "list" and ... in answer:
            return "A part of your answer is still `...`."
        return None

    def _wrong_arity(self, answer: Callable) -> str | None:
        wanted: Any = _source.execute(self.starter, self.answer)
        try:
            parameters = inspect.signature(wanted).parameters.values()
            needed = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
            inspect.signature(answer).bind(*needed)
        except TypeError:
            names = ", ".join(p.name for p in needed)
            return f"Your function must take ({names}); it cannot be called with {_count(len(needed))}."
        except ValueError:  # no signature to read, as for some built-in functions
            return None
        return None


def _count(number: int) -> str:
    return "1 argument" if number == 1 else f"{number} arguments"

"""The book's exercises: ``from inside_autograd import exercises as ex``.

Each exercise is one object: ``ex.name.check(answer)``, ``ex.name.hint()``, ``ex.name.solution()``.
``ex.progress()`` shows what is done. One module holds the exercises of one chapter.

A check runs your code in this process, with a limit of a few seconds. It cannot stop one long call into
torch, a loop that catches every exception, or ``os._exit``.

Examples
--------
>>> from inside_autograd import exercises as ex
>>> ex.three_gradients.check(...).status
'not attempted'
"""

import importlib
import pkgutil
from functools import cache

from . import _progress
from ._model import Case, Exercise, Mistake
from ._observe import observe_call, observe_gradient, observe_names
from ._report import Progress, Report

__all__ = [
    "Case",
    "Exercise",
    "Mistake",
    "Progress",
    "Report",
    "all_exercises",
    "observe_call",
    "observe_gradient",
    "observe_names",
    "progress",
]


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise by name, in the order of the chapters."""
    found: dict[str, Exercise] = {}
    modules = sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name.startswith("ch"))
    for module in modules:
        for exercise in importlib.import_module(f"{__name__}.{module}").EXERCISES:
            if exercise.name in found:
                raise ValueError(f"Two exercises are called {exercise.name!r}; rename one in {module}.py.")
            found[exercise.name] = exercise
    return found


def progress() -> Progress:
    """A table of what is done, by chapter.

    Returns
    -------
    Progress
        ``rows`` hold the chapter, how many of its exercises are done, how many it has, and which are open.

    Examples
    --------
    >>> table = progress()
    >>> chapter, done, total, still_open = table.rows[0]
    >>> chapter
    'Chapter 11'
    >>> done + len(still_open) == total
    True
    """
    done = _progress.read()
    rows = []
    chapters = dict.fromkeys(e.chapter for e in all_exercises().values())
    for chapter in chapters:
        names = [e.name for e in all_exercises().values() if e.chapter == chapter]
        still = tuple(name for name in names if not done.get(name, {}).get("passed"))
        rows.append((f"Chapter {chapter}", len(names) - len(still), len(names), still))
    return Progress(tuple(rows), _progress.take_notes())


def __getattr__(name: str) -> Exercise:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return all_exercises()[name]
    except KeyError:
        import difflib

        near = difflib.get_close_matches(name, all_exercises(), 1)
        advice = f" Did you mean ex.{near[0]}?" if near else " ex.progress() lists them all."
        raise AttributeError(f"There is no exercise called {name!r}.{advice}") from None


def __dir__() -> list[str]:
    return [*__all__, *all_exercises()]

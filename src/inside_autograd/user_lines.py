"""Which line of the user's own code is running, or made a node of the graph."""

import linecache
import os
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from .messages import FRAME

_TORCH = os.path.dirname(torch.__file__) + os.sep
_HERE = os.path.dirname(__file__) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

Place = tuple[str, int, str]  # file, line number, function


@dataclass(frozen=True, slots=True)
class Line:
    """A line of Python code.

    Attributes
    ----------
    text
        The source, without indentation; empty where it cannot be read.
    number
        Its number in the file, or in the notebook cell.
    function
        The function it stands in; empty at the top of a file or cell.
    file
        The file's name without its folder; ``None`` for code that was typed into a notebook or a
        prompt.
    """

    text: str
    number: int
    function: str = ""
    file: str | None = None

    def __str__(self) -> str:
        where = f"line {self.number}" + (f" of {self.file}" if self.file else "")
        inside = f", in {self.function}" if self.function else ""
        return f"{self.text}   ({where}{inside})" if self.text else f"{where}{inside}"


def running_line(frame: FrameType | None, caller: str) -> Line | None:
    """The innermost line of the user's own code between ``frame`` and the file that called it."""
    places = []
    while frame is not None and frame.f_code.co_filename != caller:
        places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return _first_own(places)


def recorded_line(node: Any) -> Line | None:
    """The line that made ``node``, where anomaly mode was on when it ran; else ``None``."""
    stack = node.metadata.get("traceback_") or ()
    return line_in_traceback("".join(stack))


def line_in_traceback(text: str) -> Line | None:
    """The same for a traceback in ``text``."""
    return _first_own(reversed(_places_in(text)))


def _places_in(text: str) -> list[Place]:
    """The frames of a printed traceback, as it lists them: the innermost last."""
    return [
        (found[2], int(found[3]), found[4] or "") for found in map(FRAME.match, text.splitlines()) if found
    ]


def _first_own(places: Iterable[Place]) -> Line | None:
    """The user's own line; where all code is installed, the innermost that is not torch's."""
    installed = None
    for file, number, function in places:
        if file.startswith((_TORCH, _HERE, "<frozen ", "<eval_with_key>")):
            continue
        if not file.startswith(_STDLIB) and not any(folder in file for folder in _INSTALLED):
            return _line(file, number, function)
        installed = installed or (file, number, function)
    return _line(*installed) if installed else None


def _line(file: str, number: int, function: str) -> Line:
    text = linecache.getline(file, number).strip()
    # The code of a cell has a file name, but as a rule no file.
    typed = not os.path.isfile(file) or "ipykernel_" in file
    return Line(
        text, number, "" if function == "<module>" else function, None if typed else os.path.basename(file)
    )

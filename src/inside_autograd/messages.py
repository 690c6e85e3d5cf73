"""Messages of errors and warnings as plain text: the same on every machine, fit for a page."""

import os
import re
import sys
import textwrap
from types import FrameType

WIDTH = 88

# What torch appends for its own developers.
_INTERNAL = re.compile(r"\s*\(Triggered internally at [^)]*\)")
_FUNCTION = re.compile(r"\s*\(function [^()]*(?:\(\))?[^()]*\)(?=\s*$)", re.MULTILINE)
_CPP_STACK = re.compile(r"\n?Exception raised from .*", re.DOTALL)
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_AT_ADDRESS = re.compile(r"\s+at 0x[0-9a-fA-F]+")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
# An absolute path, not the end of a URL and not a fraction: keep the file's name alone.
_UNIX_PATH = re.compile(r"(?<![\w:/.\\])(?:/[\w.+~-]+)+/([\w.+~-]+)")
_WINDOWS_PATH = re.compile(r"\b[A-Za-z]:\\(?:[^\\\s\"'<>|]+\\)*([^\\\s\"'<>|]+)")
FRAME = re.compile(r'^(\s*)File "([^"]+)", line (\d+)(?:, in (.+))?$')


def plain_message(message: object) -> str:
    """The message of an error or warning, without what belongs to one machine or one run.

    Drops colors, C++ stacks and places in torch's sources, memory addresses, and folders. In a
    traceback inside the message, a notebook's cell is called ``this cell`` while it runs and ``In [5]``
    later, and where there are such frames, the others (of the kernel and of torch) are left out.

    Parameters
    ----------
    message
        An exception, a warning, or its text.

    Returns
    -------
    str
        Not wrapped: line breaks are those of the message.
    """
    text = _ANSI.sub("", str(message)).replace("\r\n", "\n")
    for pattern in (_INTERNAL, _CPP_STACK, _FUNCTION, _AT_ADDRESS):
        text = pattern.sub("", text)
    text = _ADDRESS.sub("0x…", text)
    text = "\n".join(_plain_frames(text.split("\n")))
    text = _WINDOWS_PATH.sub(r"\1", _UNIX_PATH.sub(r"\1", text))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def wrapped(name: str, message: str, width: int = WIDTH) -> str:
    """``name: message`` with long lines wrapped; short lines and indentation stay as they are."""
    lines = (f"{name}: {message}" if message else name).split("\n")
    return "\n".join(_wrap_line(line, width) for line in lines)


def _wrap_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _plain_frames(lines: list[str]) -> list[str]:
    """Rewrite the frames of a traceback that stands in a message."""
    frames = [FRAME.match(line) for line in lines]
    cells = [_cell_name(frame[2]) if frame else None for frame in frames]
    only_cells = any(cells)
    found = []
    hidden_below: int | None = None  # indentation of a frame left out, while its source lines follow
    for line, frame, cell in zip(lines, frames, cells, strict=True):
        if not frame:
            depth = len(line) - len(line.lstrip())
            if hidden_below is not None and line.strip() and depth > hidden_below:
                continue
            hidden_below = None
            found.append(line)
        elif only_cells and not cell:
            hidden_below = len(frame[1])
        else:
            hidden_below = None
            filename = re.split(r"[/\\]", frame[2])[-1]
            place = cell or f'File "{filename}"'
            inside = f", in {frame[4]}" if frame[4] and frame[4] != "<module>" else ""
            found.append(f"{frame[1]}{place}, line {frame[3]}{inside}")
    return found


def _cell_name(filename: str) -> str | None:
    """``this cell`` or ``In [5]`` for the name that IPython gives to the code of a cell, else ``None``."""
    ipython = sys.modules.get("IPython")  # where it was never imported, there are no cells
    shell = ipython.get_ipython() if ipython else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named = name_of(filename) if name_of else None
    number = re.search(r"\d+", named[1]) if named else None
    if number:
        # The cell that runs now: its number is another one in tools that check notebooks.
        return "this cell" if _runs_now(filename) else f"In [{number[0]}]"
    # A cell of this kernel that IPython has no number for.
    return "In [?]" if "ipykernel_" in os.path.dirname(filename) else None


def _runs_now(filename: str) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) != (filename, "<module>"):
        frame = frame.f_back
    return frame is not None

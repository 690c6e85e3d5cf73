"""Find the errors and warnings in a pasted text: a traceback, a log, or a message alone."""

import re
from dataclasses import dataclass

from .messages import plain_message

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What a launcher, pytest, a quotation or a box puts in front of each line.
_FRONT = re.compile(r"^\s*(?:(?:\[\w+\]:|E {1,7}|>|\|)\s?)*")
# "RuntimeError: message", also with a module before it.
_ERROR = re.compile(
    r"^\s*(?:[A-Za-z_]\w*\.)*"
    r"(?P<name>Exception|Unsupported|[A-Z]\w*(?:Error|Exception|Failed|Interrupt|Exit|Warning))"
    r"(?:: ?(?P<message>.*)|)$"
)
# "train.py:12: UserWarning: message": how Python prints a warning.
_WARNING = re.compile(r"^.{0,300}?:\d+: (?P<name>[A-Za-z_]\w*Warning): (?P<message>.*)$")
_CHAINED = re.compile(r"^\s*(?:During handling of the above exception|The above exception was the direct)")
_END = re.compile(
    r"^\s*(?:Traceback \(most recent|File \"|-{20,}|={10,}|[\w./\\-]+:\d+: )|" + _CHAINED.pattern
)
LONGEST = 60  # lines of one message: matrices of gradcheck are long, whole logs are longer


@dataclass(frozen=True)
class Found:
    """An error or warning in a text: the name of its class (empty when unknown) and its message."""

    category: str
    message: str


def read_text(text: str) -> list[Found]:
    """The error that a text ends with, then those that led to it; or its warnings, if it has no error.

    Parameters
    ----------
    text
        A traceback of Python, IPython or pytest, with or without colors, or a message alone.

    Returns
    -------
    list of Found
        From the last to the first. A text that names no class is one message.
    """
    lines = [_FRONT.sub("", line) for line in _ANSI.sub("", text).splitlines()]
    errors: list[Found] = []
    warnings: list[Found] = []
    chained = False
    for i, line in enumerate(lines):
        chained = chained or _CHAINED.match(line) is not None
        head = _ERROR.match(line) or _WARNING.match(line)
        # The first line of IPython's tracebacks names the class too, without a message.
        if head is None or head["message"] is None:
            continue
        message = "\n".join([head["message"], *_continued(lines[i + 1 :])])
        one = Found(head["name"], plain_message(message))
        if one.category.endswith("Warning"):
            warnings.append(one)
        else:
            # An error that stands alone, above in a log, has nothing to do with the last one.
            errors = [*errors, one] if chained else [one]
            chained = False
    return errors[::-1] or warnings[::-1] or [Found("", plain_message("\n".join(lines)))]


def _continued(lines: list[str]) -> list[str]:
    taken = []
    for line in lines[:LONGEST]:
        if _END.match(line) or _ERROR.match(line) or _WARNING.match(line):
            break
        taken.append(line)
    return taken

"""Find the errors and warnings in a pasted text: a traceback, a log, or a message alone.

The index of errors on the site reads a text in the same way, in JavaScript (book/_static/errors.js).
"""

import re
from dataclasses import dataclass

from .messages import plain_message

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# What a launcher, pytest, a quotation or a box puts in front of each line.
_FRONT = re.compile(r"^(?:\s|\[\w+\]:|E\s(?=\s)|[>|+`*\"'])*")
_NAME = (
    r"(?:[A-Za-z_]\w*\.)*(Exception|Unsupported|[A-Z]\w*(?:Error|Exception|Failed|Interrupt|Exit|Warning))"
)
# "RuntimeError: message", also with a module before it; the class alone, where the message is empty.
_ERROR = re.compile(rf"^{_NAME}(?:: ?(.*))?$")
# "train.py:12: UserWarning: message": how Python prints a warning.
_WARNING = re.compile(r"^.{0,300}?:\d+: ([A-Za-z_]\w*Warning): (.*)$")
_WITHIN = re.compile(rf"(?<![\w.]){_NAME}: (.*)$")
_TRACEBACK = re.compile(r"^Traceback \(most recent call last\)")
_CHAINED = re.compile(r"^(?:During handling of the above exception|The above exception was the direct)")
_END = re.compile(r"^(?:Traceback \(most recent|File \"|-{20,}|={10,}|[\w./\\-]+:\d+: )")
# What a launcher raises because a process that it had started has failed.
_WRAPPERS = ("ChildFailedError",)
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
        From the last to the first. Where no line begins with a class, classes are looked for inside of
        lines; where there are none, the text is one message, and so is each line with what follows it.
    """
    written = _ANSI.sub("", text).splitlines()
    lines = [_FRONT.sub("", line) for line in written]
    # A message alone may begin with a quotation mark of its own.
    return _headed(lines) or _within(lines) or [*_lone(written), *_lone(lines)]


def _headed(lines: list[str]) -> list[Found]:
    errors: list[Found] = []
    warnings: list[Found] = []
    chained = in_traceback = False
    for i, line in enumerate(lines):
        chained = chained or _CHAINED.match(line) is not None
        in_traceback = in_traceback or _TRACEBACK.match(line) is not None
        head = _head(line)
        if head is None or (head[2] is None and not in_traceback) or head[1] in _WRAPPERS:
            continue
        one = Found(head[1], plain_message("\n".join([head[2] or "", *_continued(lines[i + 1 :])])))
        if one.category.endswith("Warning"):
            warnings.append(one)
        else:
            # An error that stands alone, above in a log, has nothing to do with the last one.
            errors = [*errors, one] if chained else [one]
            chained = in_traceback = False
    return errors[::-1] or warnings[::-1]


def _within(lines: list[str]) -> list[Found]:
    heads = [(i, found) for i, line in enumerate(lines) if (found := _WITHIN.search(line))]
    return [
        Found(head[1], plain_message("\n".join([head[2], *_continued(lines[i + 1 :])])))
        for i, head in heads[::-1]
    ]


def _lone(lines: list[str]) -> list[Found]:
    starts = range(min(len(lines), LONGEST))
    texts = [re.sub(r"^Error: ", "", "\n".join(lines[i : i + LONGEST])) for i in starts]
    return [Found("", plain_message(text)) for text in texts]


def _head(line: str) -> re.Match | None:
    return _ERROR.match(line) or _WARNING.match(line)


def _continued(lines: list[str]) -> list[str]:
    taken = []
    for line in lines[:LONGEST]:
        if _END.match(line) or _CHAINED.match(line) or _head(line):
            break
        taken.append(line)
    return taken

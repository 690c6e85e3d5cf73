"""From an error to its explanation: ``explain(error)``, ``explain("pasted traceback")``, ``explain()``."""

import html
import math
import re
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache

from .cards import Shown, code_words, highlight, wrap
from .catalogue import Entry, all_entries, one_space
from .messages import plain_message
from .pasted import Found, read_text

_WORD = re.compile(r"[A-Za-z_][A-Za-z_]+")
ALIKE = 0.05  # how alike a message and an entry must be: book/_static/errors.js uses the same measure
_SHORT = 8  # a message of fewer letters names nothing


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """What `explain` found. It shows itself as a card in a notebook and as text in a terminal.

    Attributes
    ----------
    category, message
        The class and the message it is about; the class is empty when the text did not name one.
    entry
        The entry of the catalogue, or ``None`` if the message is not in it.
    nearest
        If it is not: up to three entries with similar words, the most similar first.

    Examples
    --------
    >>> explanation = explain("RuntimeError: an unheard-of xylophone")
    >>> bool(explanation)
    False
    """

    category: str
    message: str
    entry: Entry | None
    nearest: tuple[Entry, ...] = ()

    @property
    def id(self) -> str | None:
        """The stable name of the entry, or ``None``."""
        return self.entry.id if self.entry else None

    css_class = "open"

    def __bool__(self) -> bool:
        return self.entry is not None

    def text(self) -> str:
        return "\n".join(wrap(line) for line in self._lines())

    def _lines(self) -> list[str]:
        if self.entry is None:
            start = _start(self.message)
            if not self.nearest:
                return [f"Not in the catalogue: {start!r}.", "No entry of it has similar words."]
            near = [f"  {one.title}: chapter {one.chapter[:2]}, id {one.id}" for one in self.nearest]
            return [f"Not in the catalogue: {start!r}.", "The nearest entries, which may not fit:", *near]
        entry = self.entry
        lines = [f"{entry.title} ({entry.category})", entry.meaning, "Usual causes, most common first:"]
        lines += [f"- {cause}" for cause in entry.causes]
        lines.append(f"What to do: {entry.repair}")
        if entry.since:
            lines.append(f"Other versions: {entry.since}")
        lines.append("A repaired example:")
        lines += [f"    {line}" if line else "" for line in entry.fixed_code.rstrip().split("\n")]
        return [*lines, f"Read on: {where(entry)}"]

    def body(self) -> str:
        if self.entry is None:
            first, *rest = self._lines()
            near = "".join(
                f"<li>{code_words(one.title)}: chapter {one.chapter[:2]}, id <code>{one.id}</code></li>"
                for one in self.nearest
            )
            listed = f"<ul>{near}</ul>" if near else ""
            return f'<p class="s">{html.escape(first)}</p><p>{html.escape(rest[0])}</p>{listed}'
        entry = self.entry
        causes = "".join(f"<li>{code_words(cause)}</li>" for cause in entry.causes)
        since = f"<p>Other versions: {code_words(entry.since)}</p>" if entry.since else ""
        return (
            f'<p><span class="s">{code_words(entry.title)}</span> ({html.escape(entry.category)})</p>'
            f"<p>{code_words(entry.meaning)}</p><p>Usual causes, most common first:</p><ol>{causes}</ol>"
            f"<p>What to do: {code_words(entry.repair)}</p>{since}"
            f"<details><summary>A repaired example</summary>{highlight(entry.fixed_code)}</details>"
            f"<p>Read on: {code_words(where(entry))}</p>"
        )

    def short(self) -> str:
        """Three lines, for below a traceback: what it is, what to do, where to read on."""
        if self.entry is None:
            return self.text()
        entry = self.entry
        lines = (f"{entry.title}. {entry.meaning}", f"What to do: {entry.repair}")
        return "\n".join(map(wrap, (*lines, f"Read on: {where(entry)}; `explain()` tells more.")))


def explain(error: BaseException | warnings.WarningMessage | str | None = None) -> Explanation:
    """Say what an error or warning of autograd means, its usual causes, and the repair.

    Parameters
    ----------
    error
        An exception or a warning; or text: a message, or a whole traceback as it was printed; or
        nothing, for the error being handled, or else the last one that was shown. Of an error that
        another one caused, both are looked up.

    Returns
    -------
    Explanation
        It is true if the message is in the catalogue. If not, it names up to three entries with
        similar words.

    Raises
    ------
    TypeError
        If ``error`` is none of these.
    ValueError
        If the text is empty, or if there was no error to explain.

    Examples
    --------
    >>> explanation = explain("RuntimeError: Trying to backward through the graph a second time")
    >>> explanation.id
    'backward-through-the-graph-a-second-time'
    """
    found = _found(error)
    for one in found:
        entry = look_up(one.category, one.message)
        if entry is not None:
            return Explanation(one.category or entry.category, one.message, entry)
    return Explanation(found[0].category, found[0].message, None, nearest(found[0].message))


def look_up(category: str, message: str) -> Entry | None:
    """The entry of a plain message, or ``None``. An empty ``category`` stands for any class."""
    text = one_space(message)
    for entry in all_entries().values():
        if entry.begins(text) and (not category or _same_kind(category, entry.category)):
            return entry
    return None


def nearest(message: str, count: int = 3) -> tuple[Entry, ...]:
    """The entries that hold this text, then those with the most similar words, nearest first.

    The measure is the cosine between the sets of words, a word weighing the more the fewer entries have
    it. Words that no entry has do not count.
    """
    weights, words, sizes = _vocabulary()
    asked, part = sorted(set(_words(message)) & weights.keys()), one_space(message).lower()
    size = sum(weights[word] for word in asked)
    scores = {}
    for entry in all_entries().values():
        common = sum(weights[word] for word in asked if word in words[entry.id])
        score = common / (size * sizes[entry.id]) ** 0.5 if common else 0.0
        score += any(part in one_space(text).lower() for text in _texts(entry))
        if score > ALIKE:
            scores[entry.id] = score
    best = sorted(scores, key=lambda name: scores[name], reverse=True)[:count]
    return tuple(all_entries()[name] for name in best)


def where(entry: Entry) -> str:
    """The chapter and the section that explain it, in words."""
    section = entry.section.strip('"')
    return f'chapter {entry.chapter[:2]}, "{section}"; entry {entry.id} of the error clinic'


def _same_kind(category: str, wanted: str) -> bool:
    # A pasted warning may be an error (warnings as errors); classes of errors move between versions, and a
    # wrapper of torch.compile has its own: only a warning and an error are told apart.
    return category.endswith("Warning") == wanted.endswith("Warning") or category == wanted


@cache
def _vocabulary() -> tuple[dict[str, float], dict[str, set[str]], dict[str, float]]:
    """The weight of each word; the words of each entry; the sum of their weights."""
    words = {entry.id: set(_words(" ".join(_texts(entry)))) for entry in all_entries().values()}
    counts = Counter(word for found in words.values() for word in found)
    weights = {word: math.log(len(words) / count) + 0.1 for word, count in counts.items()}
    return weights, words, {name: sum(weights[w] for w in sorted(found)) for name, found in words.items()}


def _texts(entry: Entry) -> tuple[str, ...]:
    return entry.title, entry.message, *entry.variants


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _start(message: str, length: int = 70) -> str:
    line = one_space(message)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _found(error: object) -> list[Found]:
    if error is None:
        error = _last_error()
    if isinstance(error, warnings.WarningMessage):
        error = error.message
    if isinstance(error, BaseException):
        return _with_causes(error)
    if not isinstance(error, str):
        raise TypeError(
            f"explain needs an exception, a warning or the text of one, got {type(error).__name__}: "
            "call explain(error) in an `except … as error` block, or paste the message as text."
        )
    if len(re.sub(r"\W", "", error)) < _SHORT:
        raise ValueError("explain needs the text of a message or a traceback: this is too short.")
    return read_text(error)


def _with_causes(error: BaseException) -> list[Found]:
    found, seen = [], set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        found.append(Found(type(one).__name__, _message_of(one)))
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
    return found


def _message_of(error: BaseException) -> str:
    try:
        return plain_message(error)
    except Exception:  # an exception of the reader's own whose __str__ fails
        return type(error).__name__


def _last_error() -> BaseException:
    error = sys.exc_info()[1] or getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, BaseException):
        raise ValueError(
            "There is no last error to explain: call explain(error), or paste its message as text, "
            "explain('RuntimeError: …')."
        )
    return error

"""One entry of the catalogue of errors and warnings."""

import re
from dataclasses import dataclass
from functools import cached_property


def slug(title: str) -> str:
    """The anchor that GitHub, JupyterLab and the site give to a heading with this text."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def one_space(text: str) -> str:
    """Text with each run of white space as one space: messages are wrapped differently everywhere."""
    return " ".join(text.split())


@dataclass(frozen=True, kw_only=True)
class Entry:
    """An error or warning that users of autograd meet.

    Attributes
    ----------
    id
        Its stable name: the slug of ``title``, so that links to it hold in every viewer.
    title
        What the reader did, or what is missing, in a few words.
    category
        Name of the class of error or warning, such as ``RuntimeError``.
    pattern
        A regular expression that must match from the beginning of the message, with each run of white
        space made one space. It holds for other versions' names as well. Only what Python and
        JavaScript read alike: the site's search uses it too.
    message
        What ``broken`` gives on the pinned torch, word for word, as `messages.plain_message` returns it.
    variants
        Other real messages that mean the same: of other versions, or of other operations.
    meaning
        Two or three sentences. Backticks make code, here and in ``causes``, ``repair`` and ``since``.
    causes
        From most to least common.
    repair
        What to do about it.
    chapter, section
        The notebook (such as ``21_backward_and_grad``) and the heading in it that explains it.
    broken_code, fixed_code
        The smallest code that gives it, and code that does what was wanted; each runs alone. The second
        holds an ``assert`` on what was wanted.
    draws
        The name of a tensor in the broken code's variables whose graph tells the reason, or empty.
    since
        What other versions say or do, or empty.
    """

    id: str
    title: str
    category: str
    pattern: str
    message: str
    meaning: str
    causes: tuple[str, ...]
    repair: str
    chapter: str
    section: str
    broken_code: str
    fixed_code: str
    variants: tuple[str, ...] = ()
    draws: str = ""
    since: str = ""

    @property
    def is_warning(self) -> bool:
        return self.category.endswith("Warning")

    @cached_property
    def _compiled(self) -> re.Pattern:
        return re.compile(self.pattern)

    def matches(self, message: str) -> bool:
        """Whether this is the entry of a message (plain text, without the name of its class)."""
        return self.begins(one_space(message))

    def begins(self, text: str) -> bool:
        """The same for a text that `one_space` has made."""
        return self._compiled.match(text) is not None

    def broken(self) -> dict:
        """Run the code that raises or warns. Returns its variables where it only warns."""
        return self._run(self.broken_code, "broken")

    def fixed(self) -> dict:
        """Run the repaired code, and return its variables."""
        return self._run(self.fixed_code, "fixed")

    def _run(self, code: str, which: str) -> dict:
        variables: dict = {"__name__": "__main__"}
        exec(compile(code, f"<{which} code of {self.id}>", "exec"), variables)
        return variables

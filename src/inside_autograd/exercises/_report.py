"""What a learner sees: reports, hints, solutions and the progress table, as text and as HTML."""

import html
from dataclasses import dataclass, field

from ..cards import Shown, code_words, highlight, wrap

_MARKS = {"passed": "✓", "not attempted": "○"}


@dataclass(frozen=True, repr=False)
class Report(Shown):
    """The answer of ``check``.

    Attributes
    ----------
    status
        ``passed``, ``not attempted``, ``unfinished``, ``wrong type``, ``raised``, ``too slow``,
        ``wrong value``, ``wrong gradient``, ``side effect`` or ``right by accident``.
    diagnosis
        The key of the known mistake that was recognized, or ``None``.
    message, evidence, case
        What is wrong, in words; rows of (what, value); and what was special about the input.
    choices
        For a question: (key, text, right or not, what to say), to be opened one by one.
    """

    title: str
    status: str
    message: str
    case: str = ""
    evidence: tuple[tuple[str, str], ...] = ()
    diagnosis: str | None = None
    explains: str = ""
    hint: str = ""
    choices: tuple[tuple[str, str, bool, str], ...] = field(default=())

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def css_class(self) -> str:
        return {"passed": "passed", "not attempted": "open"}.get(self.status, "failed")

    def text(self) -> str:
        mark = _MARKS.get(self.status, "✗")
        lines = [f"{mark} {self.title}: {self.message}"]
        if self.explains:
            lines.append(self.explains)
        if self.case:
            lines.append(f"Seen with: {self.case}.")
        width = max((len(key) for key, _ in self.evidence), default=0)
        lines += [f"  {key:<{width}}  {value}" for key, value in self.evidence]
        lines += [f"  {key}  {text}" for key, text, _, _ in self.choices]
        if self.hint and not self.passed:
            lines.append(f"For a hint: {self.hint}")
        return "\n".join(wrap(line) for line in lines)

    def body(self) -> str:
        mark = _MARKS.get(self.status, "✗")
        message = code_words(self.message)
        stop = "" if self.title.endswith(("?", "!", ".")) else "."
        parts = [f'<p><span class="s">{mark} {html.escape(self.title)}{stop}</span> {message}</p>']
        if self.explains:
            parts.append(f"<p>{code_words(self.explains)}</p>")
        if self.case:
            parts.append(f"<p>Seen with: {code_words(self.case)}.</p>")
        if self.evidence:
            rows = "".join(
                f'<tr><th scope="row">{code_words(key)}</th><td><code>{html.escape(value)}</code></td></tr>'
                for key, value in self.evidence
            )
            parts.append(f"<table>{rows}</table>")
        if self.choices:
            parts.append("<p>Choose, then open your choice:</p>")
            for key, text, right, says in self.choices:
                verdict = "Right." if right else "No."
                summary = f"<summary>{html.escape(key)}: {code_words(text)}</summary>"
                parts.append(f"<details>{summary}<p>{verdict} {code_words(says)}</p></details>")
        if self.hint and not self.passed:
            parts.append(f"<p>For a hint: <code>{html.escape(self.hint)}</code></p>")
        return "".join(parts)


class Text(Shown):
    """A few lines of text, such as hints."""

    def __init__(self, lines: list[str]):
        self.lines = lines

    def text(self) -> str:
        return "\n".join(wrap(line) for line in self.lines)

    def body(self) -> str:
        return "".join(f"<p>{code_words(line)}</p>" for line in self.lines)


@dataclass(frozen=True, repr=False)
class Solution(Shown):
    """The code of a solution, highlighted where HTML is shown."""

    title: str
    code: str
    explains: str = ""

    def text(self) -> str:
        lines = [f"A solution of: {self.title}", "", self.code]
        return "\n".join(lines + (["", wrap(self.explains)] if self.explains else []))

    def body(self) -> str:
        after = f"<p>{code_words(self.explains)}</p>" if self.explains else ""
        return f"<p>A solution of: {html.escape(self.title)}</p>{highlight(self.code)}{after}"


@dataclass(frozen=True, repr=False)
class Progress(Shown):
    """How far a learner is: rows of (chapter, done, all, names still open)."""

    rows: tuple[tuple[str, int, int, tuple[str, ...]], ...]
    note: str = ""

    def text(self) -> str:
        lines = []
        for chapter, done, total, _ in self.rows:
            bar = "█" * round(10 * done / total) if total else ""
            lines.append(f"{chapter:<12} {bar:<10} {done} of {total}")
        return "\n".join(lines + ([wrap(self.note)] if self.note else []))

    def body(self) -> str:
        cells = []
        for chapter, done, total, still in self.rows:
            still_open = ", ".join(f"<code>ex.{html.escape(name)}</code>" for name in still) or "all done"
            label, count = html.escape(chapter), f"{done} of {total}"
            bar = f'<progress value="{done}" max="{total}" aria-label="{label}: {count}"></progress>'
            first, second = (words.replace(" ", "&nbsp;") for words in (label, count))
            cells.append(
                f'<tr><th scope="row">{first}</th><td>{bar}&nbsp;{second}</td><td>{still_open}</td></tr>'
            )
        head = '<tr><th scope="col">Chapter</th><th scope="col">Done</th><th scope="col">Still open</th></tr>'
        note = f"<p>{html.escape(self.note)}</p>" if self.note else ""
        return f"<table>{head}{''.join(cells)}</table>{note}"

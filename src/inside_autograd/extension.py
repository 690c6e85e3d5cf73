"""``%load_ext inside_autograd``: a short card below the traceback of an error that the catalogue knows."""

import html
from typing import Any

from .cards import Shown, code_words
from .catalogue import Entry
from .errors import Explanation, explain, where

_EVENT = "post_run_cell"


class Card(Shown):
    """The short form of an explanation, for below a traceback."""

    css_class = "open"

    def __init__(self, explanation: Explanation, entry: Entry):
        self.explanation, self.entry = explanation, entry

    def text(self) -> str:
        return self.explanation.short()

    def body(self) -> str:
        entry = self.entry
        return (
            f'<p><span class="s">{code_words(entry.title)}.</span> {code_words(entry.meaning)}</p>'
            f"<p>What to do: {code_words(entry.repair)}</p>"
            f"<p>Read on: {html.escape(where(entry))}. <code>explain()</code> tells more.</p>"
        )


def load_ipython_extension(shell: Any) -> None:
    """Show a card below each traceback that the catalogue explains; the traceback stays as it is."""
    if _show_card not in shell.events.callbacks[_EVENT]:
        shell.events.register(_EVENT, _show_card)


def unload_ipython_extension(shell: Any) -> None:
    """Show tracebacks alone again."""
    if _show_card in shell.events.callbacks[_EVENT]:
        shell.events.unregister(_EVENT, _show_card)


def _show_card(result: object) -> None:
    from IPython.display import display

    error = getattr(result, "error_in_exec", None)
    if error is None:
        return
    # A card is an extra: whatever goes wrong with it must not add a second traceback to the reader's own.
    try:
        explanation = explain(error)
        if explanation.entry is not None:
            display(Card(explanation, explanation.entry))
    except Exception:
        return

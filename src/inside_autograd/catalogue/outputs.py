"""What a Function returns."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

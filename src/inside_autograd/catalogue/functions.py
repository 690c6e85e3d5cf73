"""Your own Function."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

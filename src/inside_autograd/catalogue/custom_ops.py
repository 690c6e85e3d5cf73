"""Custom ops."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

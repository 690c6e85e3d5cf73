"""In-place changes and views."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

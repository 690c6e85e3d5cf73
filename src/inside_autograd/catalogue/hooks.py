"""Hooks and modules."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

"""Leaves and .grad."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

"""Optimizers, NumPy, copies and types."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

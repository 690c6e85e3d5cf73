"""Checkpoint and saved tensors."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

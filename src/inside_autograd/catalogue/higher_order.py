"""Gradients of gradients."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

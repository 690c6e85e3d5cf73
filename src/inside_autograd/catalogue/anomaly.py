"""NaN and anomaly mode."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

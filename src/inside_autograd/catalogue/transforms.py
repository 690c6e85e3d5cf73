"""torch.func, vmap and torch.compile."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = ()

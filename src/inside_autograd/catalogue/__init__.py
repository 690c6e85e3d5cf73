"""The catalogue of errors and warnings: data for `explain`, the error clinic and the site's index.

One module holds the entries of one topic. Its docstring is the topic's name; ``ENTRIES`` are in the order
in which a reader would meet them.
"""

import importlib
from functools import cache

from ._model import Entry, one_space, slug

__all__ = ["Entry", "all_entries", "one_space", "slug", "topics"]

# In the order of the clinic: from what beginners meet to what experts meet.
MODULES = (
    "backward",
    "leaves",
    "in_place",
    "functions",
    "outputs",
    "checks",
    "anomaly",
    "hooks",
    "memory",
    "higher_order",
    "transforms",
    "custom_ops",
    "interop",
)


@cache
def topics() -> dict[str, tuple[Entry, ...]]:
    """The entries by the name of their topic, in order."""
    modules = [importlib.import_module(f"{__name__}.{name}") for name in MODULES]
    return {str(module.__doc__).strip().rstrip("."): module.ENTRIES for module in modules}


@cache
def all_entries() -> dict[str, Entry]:
    """Every entry by its id, in order.

    Raises
    ------
    ValueError
        If two entries have the same id.
    """
    found: dict[str, Entry] = {}
    for entries in topics().values():
        for entry in entries:
            if entry.id in found:
                raise ValueError(f"Two entries of the catalogue are called {entry.id!r}: rename one.")
            found[entry.id] = entry
    return found

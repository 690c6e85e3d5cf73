"""See, run and break PyTorch's backward pass.

``draw(loss, params=model)`` shows the backward graph, ``replay(loss)`` steps through the real engine,
``explore(f, x=(0, 9))`` puts sliders on a function, ``saved_memory()`` measures what autograd keeps,
``explain(error)`` says what a message means and what to do, and ``exercises`` holds the book's exercises.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# Functions that bear the name of their module are imported at once: read later, the name would give
# the module wherever that had been imported first.
from .explore import explore
from .graph import Graph
from .recording import Recording
from .replay import replay

if TYPE_CHECKING:
    from . import exercises
    from .drawing import Drawing, draw
    from .errors import Explanation, explain
    from .exercises import progress
    from .memory import saved_memory
    from .nonfinite import first_nonfinite
    from .notebook import raises, show, warns

__version__ = "0.1.0"

__all__ = [
    "Drawing",
    "Explanation",
    "Graph",
    "Recording",
    "draw",
    "exercises",
    "explain",
    "explore",
    "first_nonfinite",
    "progress",
    "raises",
    "replay",
    "saved_memory",
    "show",
    "warns",
]

# The rest is read when it is first asked for, so that the package costs little to import.
_HOME = {
    "Drawing": "drawing",
    "Explanation": "errors",
    "draw": "drawing",
    "exercises": "exercises",
    "explain": "errors",
    "first_nonfinite": "nonfinite",
    "progress": "exercises",
    "raises": "notebook",
    "saved_memory": "memory",
    "show": "notebook",
    "warns": "notebook",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOME[name]}")
    value = module if name == _HOME[name] else getattr(module, name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext inside_autograd``: a short card below the traceback of each error that is known."""
    from .extension import load_ipython_extension

    load_ipython_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext inside_autograd``: tracebacks alone again."""
    from .extension import unload_ipython_extension

    unload_ipython_extension(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Look at a learner's source: is it still the starter, and which of their lines raised?"""

import ast
import inspect
import itertools
import linecache
import sysconfig
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

_counter = itertools.count(1)
# Whatever lies here was not written by the learner: this package, installed ones, Python's own modules.
_NOT_THEIRS = (
    str(Path(__file__).parent.parent),
    str(Path(torch.__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)


def execute(code: str, name: str) -> object:
    """Run ``code`` in a namespace that has ``torch`` and return what it binds to ``name``.

    Its lines are registered with ``linecache``, so that ``inspect.getsource`` and tracebacks see them.
    """
    filename = f"<exercise {next(_counter)}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(keepends=True), filename)
    namespace: dict = {"torch": torch, "__name__": "exercise"}
    exec(compile(code, filename, "exec"), namespace)
    return namespace[name]


def not_attempted(answer: object) -> bool:
    """True for ``...``, a function whose body is only ``...``, and a class whose methods all are.

    A docstring beside the ``...`` does not count. Where the source cannot be read the answer counts as
    attempted: what a function returns never decides this.
    """
    if answer is ...:
        return True
    if isinstance(answer, tuple | list) and answer and all(part is ... for part in answer):
        return True
    bodies = _bodies(answer)
    return bool(bodies) and all(map(_only_ellipsis, bodies.values()))


def unfinished_methods(answer: object) -> list[str]:
    """Names of a class's methods whose body is still only ``...``."""
    if not inspect.isclass(answer):
        return []
    return [name for name, body in _bodies(answer).items() if _only_ellipsis(body)]


def _bodies(answer: Any) -> dict[str, list[ast.stmt]]:
    """Statements of a function, or of each method of a class, where the source can be read."""
    if inspect.isclass(answer):
        # One by one: inspect cannot find the source of a class that was made in a notebook cell.
        members = {name: getattr(value, "__func__", value) for name, value in vars(answer).items()}
        bodies = {name: _body(value) for name, value in members.items() if inspect.isfunction(value)}
        return {name: body for name, body in bodies.items() if body}
    body = _body(answer) if inspect.isfunction(answer) else None
    return {answer.__name__: body} if body else {}


def _body(function: Callable) -> list[ast.stmt] | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    top = tree.body[0] if tree.body else None
    return top.body if isinstance(top, ast.FunctionDef) else None


def _only_ellipsis(body: list[ast.stmt]) -> bool:
    values = [s.value if isinstance(s, ast.Expr) else None for s in body]
    constants = [v.value if isinstance(v, ast.Constant) else None for v in values]
    return ... in constants and all(c is ... or isinstance(c, str) for c in constants)


def own_line(error: BaseException) -> tuple[int, str] | None:
    """Line number and text of the last line of the learner's own code in the traceback of ``error``."""
    found = None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith((*_NOT_THEIRS, "<frozen ")):
            continue
        if frame.line:
            found = (frame.lineno or 0, frame.line.strip())
    return found


def passes_through(error: BaseException, function: object) -> bool:
    """Whether the traceback of ``error`` has a frame from the file (or notebook cell) of ``function``."""
    code = getattr(function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    return code is not None and any(frame.filename == code.co_filename for frame in frames)


def in_backward(error: BaseException) -> bool:
    """Whether torch's engine ran a backward pass when ``error`` came."""
    return any(frame.name == "_engine_run_backward" for frame in traceback.extract_tb(error.__traceback__))

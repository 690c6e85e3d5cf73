"""What a learner has done, in a small JSON file whose path is in ``INSIDE_AUTOGRAD_PROGRESS``.

Without that variable nothing is written, and what was done is known until the kernel stops.
"""

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

VARIABLE = "INSIDE_AUTOGRAD_PROGRESS"
VERSION = 1

_memory: dict[str, dict] = {}
_notes: list[str] = []


def record(name: str, passed: bool) -> None:
    """Count one try of exercise ``name``. Once passed, it stays passed."""

    def change(entry: dict) -> None:
        entry["tries"] = entry.get("tries", 0) + 1
        entry["passed"] = entry.get("passed", False) or passed

    _update(name, change)


def next_hint(name: str, available: int) -> int:
    """How many hints to show now: one more than last time."""
    shown = 0

    def change(entry: dict) -> None:
        nonlocal shown
        shown = entry["hints"] = min(entry.get("hints", 0) + 1, available)

    _update(name, change)
    return shown


def read() -> dict[str, dict]:
    """What is known by exercise: ``passed``, ``tries``, ``hints``."""
    path = _path()
    if path is None:
        return _memory
    try:
        with _locked(path):
            return _load(path)
    except OSError as error:
        _notes.append(f"Progress could not be read from {path.name}: {error.strerror or error}.")
        return _memory


def take_notes() -> str:
    """What there is to say about the file, once."""
    said, _notes[:] = " ".join(_notes), []
    return said


def _path() -> Path | None:
    value = os.environ.get(VARIABLE)
    return Path(value) if value else None


def _update(name: str, change: Callable[[dict], None]) -> None:
    path = _path()
    if path is None:
        change(_memory.setdefault(name, {}))
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            entries = _load(path)
            change(entries.setdefault(name, {}))
            _store(path, entries)
    except OSError as error:
        _notes.append(f"Progress could not be stored in {path.name}: {error.strerror or error}.")
        change(_memory.setdefault(name, {}))


def _locked(path: Path) -> AbstractContextManager:
    from filelock import FileLock  # comes with torch

    # Hidden, so that it does not stand between the learner's files.
    return FileLock(path.with_name(f".{path.name}.lock"), timeout=5)


def _load(path: Path) -> dict[str, dict]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["version"] == VERSION and all(isinstance(e, dict) for e in content["exercises"].values()):
            return content["exercises"]
        found = f"has version {content['version']}, not {VERSION}"
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        found = "could not be read"
    aside = _free_name(path)
    os.replace(path, aside)
    _notes.append(f"The progress file {found}. It was kept as {aside.name}, and a new one was started.")
    return {}


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.kept-{number}")).exists():
        number += 1
    return aside


def _store(path: Path, entries: dict[str, dict]) -> None:
    text = json.dumps({"version": VERSION, "exercises": dict(sorted(entries.items()))}, indent=1)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.replace(temporary, path)

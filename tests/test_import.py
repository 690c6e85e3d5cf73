"""The package's front door: what it offers, what importing it costs, and what it leaves alone."""

import ast
import json
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import inside_autograd

PUBLIC = {
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
}


def in_a_new_process(code, *args):
    done = subprocess.run([sys.executable, *args, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names_are_the_ones_listed_and_all_exist():
    assert set(inside_autograd.__all__) == PUBLIC
    assert list(inside_autograd.__all__) == sorted(inside_autograd.__all__)
    for name in inside_autograd.__all__:
        assert getattr(inside_autograd, name) is not None
        assert name in dir(inside_autograd)
    names = {}
    exec("from inside_autograd import *", names)
    assert set(names) >= PUBLIC


def test_a_name_that_does_not_exist_is_refused():
    with pytest.raises(AttributeError, match="module 'inside_autograd' has no attribute 'drew'"):
        inside_autograd.drew  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'drew'"):
        exec("from inside_autograd import drew")


def test_functions_stay_functions_when_their_module_was_imported_first():
    out = in_a_new_process(
        "import inside_autograd.replay, inside_autograd.explore, inside_autograd.drawing\n"
        "from inside_autograd import replay, explore, draw, exercises\n"
        "print(*(type(thing).__name__ for thing in (replay, explore, draw, exercises)))"
    )
    assert out.split() == ["function", "function", "function", "module"]


def test_the_version_is_the_one_of_the_package():
    root = Path(__file__).parent.parent
    assert (
        inside_autograd.__version__
        == tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    )


def test_the_package_tells_type_checkers_that_it_is_typed():
    assert (Path(inside_autograd.__file__).parent / "py.typed").is_file()


COST = """
import json, sys, time, torch
before = set(sys.modules)
start = time.process_time()
import inside_autograd
cost = time.process_time() - start
print(json.dumps([cost, sorted({name.split(".")[0] for name in set(sys.modules) - before})]))
"""


def test_importing_costs_less_than_100_ms_and_loads_no_big_library():
    runs = [json.loads(in_a_new_process(COST)) for _ in range(3)]
    # Time of the processor, not of the clock: other programs on the machine do not count.
    assert statistics.median(cost for cost, _ in runs) < 0.1
    loaded = set(runs[0][1])
    assert "inside_autograd" in loaded
    assert not loaded & {"igraph", "matplotlib", "ipywidgets", "IPython", "numpy", "pandas"}


UNTOUCHED = """
import random, sys, warnings, torch
torch.manual_seed(3)
random.seed(3)
def state():
    return (
        torch.get_rng_state().tolist(), random.getstate(), list(warnings.filters), torch.is_grad_enabled(),
        torch.get_default_dtype(), torch.is_warn_always_enabled(), torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(), sys.excepthook, sys.getrecursionlimit(),
    )
before = state()
import inside_autograd
for name in inside_autograd.__all__:
    getattr(inside_autograd, name)
print([a == b for a, b in zip(before, state())])
"""


def test_importing_seeds_mutes_and_prints_nothing():
    assert in_a_new_process(UNTOUCHED, "-W", "error").strip() == str([True] * 10)


def imports_of(path):
    """Modules of the package that a file imports when it is loaded."""
    found = set()
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom) and statement.level == 1:
            names = [statement.module] if statement.module else [alias.name for alias in statement.names]
            found.update(name.split(".")[0] for name in names)
    return found


def above(module, direct):
    """All modules that loading ``module`` loads."""
    loaded, waiting = set(), [module]
    while waiting:
        for name in direct.get(waiting.pop(), ()):
            if name not in loaded:
                loaded.add(name)
                waiting.append(name)
    return loaded


def test_lower_modules_never_load_higher_ones():
    folder = Path(inside_autograd.__file__).parent
    direct = {path.stem: imports_of(path) for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
    assert direct["drawing"] and "graph" in above("drawing", direct)  # the test sees something
    circles = [module for module in direct if module in above(module, direct)]
    assert circles == []
    shows = {"text", "words", "fold", "layout", "svg", "drawing", "notebook", "memory", "replay", "player"}
    assert not above("graph", direct) & shows
    assert not above("memory", direct) & {"drawing", "replay", "notebook", "text"}
    assert not above("messages", direct)

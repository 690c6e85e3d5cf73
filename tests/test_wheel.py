"""The helper package alone: what its wheel holds, what it asks for, and that it works with only that."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lock

ROOT = Path(__file__).resolve().parent.parent
NEEDS = {"torch", "igraph", "ipywidgets", "matplotlib"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # From a copy: a build leaves folders behind.
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*command, "-w", source / "dist", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = (source / "dist").glob("*.whl")
    return zipfile.ZipFile(path)


def test_it_holds_every_file_of_the_package_and_nothing_else(wheel):
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    src = ROOT / "src"
    files = (path for path in (src / "inside_autograd").rglob("*") if path.is_file())
    wanted = {str(path.relative_to(src)) for path in files if "__pycache__" not in path.parts}
    assert inside == wanted
    assert {"inside_autograd/py.typed", "inside_autograd/player.js", "inside_autograd/card.css"} <= inside


def test_it_asks_for_what_it_needs_and_no_more(wheel):
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    asked = Parser().parsestr(wheel.read(name).decode()).get_all("Requires-Dist")
    assert {Requirement(line).name for line in asked} == NEEDS


# Hides every library that the four do not bring, then uses the package.
ALONE = """
import sys
from importlib.machinery import PathFinder
blocked = set(sys.argv[2].split(","))
class Alone(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in blocked else super().find_spec(name, path, target)
sys.meta_path[sys.meta_path.index(PathFinder)] = Alone
sys.path.insert(0, sys.argv[1])
import inside_autograd, torch
assert inside_autograd.__file__.startswith(sys.argv[1])
from inside_autograd import draw, explain, explore, first_nonfinite, replay, saved_memory
x = torch.tensor(3.0, requires_grad=True)
assert "<svg" in draw(x * x).svg
assert "6" in str(replay(x * x, params={"x": x}))
assert explain("RuntimeError: Trying to backward through the graph a second time").id
assert not first_nonfinite(lambda: x * x)
assert "<script>" in explore(lambda k: k * k, k=(0, 3))._repr_html_()
print("done")
"""


def test_it_works_where_nothing_else_is_installed(wheel, tmp_path):
    wheel.extractall(tmp_path)
    installed, _ = lock.closure([Requirement(name) for name in NEEDS], lock.environments())
    blocked = {
        module
        for module, owners in metadata.packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & set(installed) and module != "inside_autograd"
    }
    assert {"sklearn", "pytest", "sphinx"} <= blocked  # the test hides something
    command = [sys.executable, "-c", ALONE, str(tmp_path), ",".join(blocked)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"

"""Every direct dependency has its exact version, and the lock has everything else."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import lock

ROOT = Path(__file__).resolve().parent.parent


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(text):
    return {canonicalize_name(r.name): str(r.specifier) for r in lock.read_requirements(text)}


def test_every_requirement_has_an_exact_version():
    for requirement in lock.read_requirements(read("requirements.txt") + read("constraints.txt")):
        assert re.fullmatch(r"==[\w.!+]+", str(requirement.specifier)), requirement
        assert requirement.url is None


def test_the_lock_covers_all_that_the_requirements_pull_in():
    requirements = lock.read_requirements(read("requirements.txt"))
    versions, missing = lock.closure(requirements, lock.environments())
    direct, locked = pins(read("requirements.txt")), pins(read("constraints.txt"))
    for name in {*versions, *missing}:
        if name not in direct and not lock.LEFT_OUT.fullmatch(name):
            assert name in locked, f"{name} is missing: run tools/lock.py"


def test_the_lock_says_what_is_installed():
    requirements = lock.read_requirements(read("requirements.txt"))
    versions, _ = lock.closure(requirements, lock.environments())
    pinned = {**pins(read("requirements.txt")), **pins(read("constraints.txt"))}
    wrong = {
        name: version
        for name, version in versions.items()
        if not lock.LEFT_OUT.fullmatch(name) and pinned.get(name) != f"=={version.split('+')[0]}"
    }
    assert wrong == {}


def test_the_lock_has_no_package_twice_and_none_that_only_builds_for_gpus_need():
    direct, locked = pins(read("requirements.txt")), pins(read("constraints.txt"))
    assert not set(direct) & set(locked)
    assert not [name for name in locked if lock.LEFT_OUT.fullmatch(name)]


def test_the_lock_covers_other_systems():
    locked = pins(read("constraints.txt"))
    assert {"colorama", "appnope", "pywinpty", "pexpect"} <= set(locked)


def test_the_helper_package_admits_the_pinned_versions():
    direct = pins(read("requirements.txt"))
    for line in tomllib.loads(read("pyproject.toml"))["project"]["dependencies"]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(direct[canonicalize_name(requirement.name)].removeprefix("=="))


def test_jupyter_book_stays_below_2():
    assert Requirement("jupyter-book>=1.0.4.post1,<2").specifier.contains(
        pins(read("requirements.txt"))["jupyter-book"].removeprefix("==")
    )


def test_binder_gets_the_same_versions():
    direct = pins(read("requirements.txt"))
    lines = [line for line in read(".binder/requirements.txt").splitlines() if not line.startswith("--")]
    binder = pins("\n".join(lines))
    assert binder == {name: direct[name] for name in binder}
    assert "torch" in binder


def test_a_lock_leaves_out_direct_dependencies_and_local_labels():
    requirements = lock.read_requirements("torch==2.0\na==1  # why\n")
    text = lock.lock_text(requirements, {"a": "1", "b": "2+cpu", "torch": "2.0", "nvidia-x": "3"})
    assert text == lock.HEADER + "b==2\n"

"""Write constraints.txt: the exact version of everything that requirements.txt pulls in.

    .venv/bin/python tools/lock.py

It reads the versions from the environment it runs in, so first install what you want there:
`pip install --upgrade -r requirements.txt`. Packages that only other systems or newer Pythons need are not
installed here; their newest fitting version is asked from the package index.

Left out: torch, which is pinned in requirements.txt, and the packages that exist only for its builds with a
GPU (names below), whose versions torch itself demands exactly.
"""

import json
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = re.compile(r"torch|triton|nvidia-.*|cuda-.*")
HEADER = """\
# Made by tools/lock.py from requirements.txt; do not edit by hand.
# Exact versions of everything that is not pinned in requirements.txt, on Linux, macOS and Windows with
# Python 3.11 to 3.13. Not here: what only torch's builds for GPUs need.
"""
SYSTEMS = (
    {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    {"sys_platform": "darwin", "platform_system": "Darwin", "os_name": "posix"},
    {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
)
PYTHONS = ("3.11", "3.12", "3.13")


def environments():
    """List the marker environments that the lock must hold in."""
    return [
        {**default_environment(), **system, "python_version": python, "python_full_version": python + ".0"}
        for system in SYSTEMS
        for python in PYTHONS
    ]


def read_requirements(text):
    """Parse the lines of a requirements file.

    Args:
        text: the content of the file.

    Returns:
        A list of `packaging.requirements.Requirement`.
    """
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [Requirement(line) for line in lines if line]


def _applies(requirement, extras, everywhere):
    if requirement.marker is None:
        return True
    return any(
        requirement.marker.evaluate({**environment, "extra": extra})
        for environment in everywhere
        for extra in extras or {""}
    )


def closure(requirements, everywhere):
    """Find every package that the requirements need, directly or not, in any of the environments.

    Args:
        requirements: a list of `Requirement`.
        everywhere: marker environments, as `environments` lists them.

    Returns:
        Two dicts by canonical name: installed packages with their version, and missing ones with the
        requirement that asks for them.
    """
    installed, missing = {}, {}
    todo, seen = list(requirements), set()
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or not _applies(requirement, {""}, everywhere):
            continue
        seen.add(key)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing.setdefault(name, requirement)
            continue
        installed[name] = found.version
        for line in found.requires or ():
            needed = Requirement(line)
            if _applies(needed, requirement.extras, everywhere):
                needed.marker = None
                todo.append(needed)
    return installed, missing


def newest(requirement):
    """Ask the package index for the newest version of a package that is not for this system.

    Args:
        requirement: what asks for it.

    Returns:
        The version as text.

    Raises:
        SystemExit: the index has no such package, or does not answer.
    """
    asked = f"{requirement.name}{requirement.specifier}"
    with tempfile.TemporaryDirectory() as folder:
        for platform in ("any", "win_amd64", "macosx_11_0_arm64"):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
            command += ["--no-deps", "--report", "-", "--target", folder, "--only-binary", ":all:"]
            command += ["--platform", platform, "--python-version", "3.11", asked]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode == 0:
                return json.loads(done.stdout)["install"][0]["metadata"]["version"]
    raise SystemExit(f"The package index has no version of {asked} that fits.")


def lock_text(requirements, versions):
    """Write the lock.

    Args:
        requirements: the direct requirements, which stay out of it.
        versions: version by canonical name.

    Returns:
        The text of constraints.txt.
    """
    direct = {canonicalize_name(requirement.name) for requirement in requirements}
    lines = [
        f"{name}=={version.split('+')[0]}\n"
        for name, version in sorted(versions.items())
        if name not in direct and not LEFT_OUT.fullmatch(name)
    ]
    return HEADER + "".join(lines)


def main():
    """Write constraints.txt from the environment that this runs in."""
    requirements = read_requirements((ROOT / "requirements.txt").read_text(encoding="utf-8"))
    versions, missing = closure(requirements, environments())
    direct = {canonicalize_name(requirement.name) for requirement in requirements}
    if direct & set(missing):
        names = ", ".join(sorted(direct & set(missing)))
        raise SystemExit(f"Not installed here: {names}. Run `pip install -r requirements.txt` first.")
    for name, requirement in missing.items():
        if not LEFT_OUT.fullmatch(name):
            versions[name] = newest(requirement)
    (ROOT / "constraints.txt").write_text(lock_text(requirements, versions), encoding="utf-8")
    print(f"constraints.txt: {len(lock_text(requirements, versions).splitlines()) - 3} packages")


if __name__ == "__main__":
    main()

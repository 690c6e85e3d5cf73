"""How much memory a job takes: what it adds to a process that has run the model, and what ``dot`` takes."""

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path

UNIT = 1024 if sys.platform == "linux" else 1024**2  # of ru_maxrss, in a megabyte
# Stands in for dot on the path. A program counts as its own what the process that starts it has, so
# this one, which has little, starts the real one and asks how much that took.
STAND_IN = """\
import resource, subprocess, sys
code = subprocess.run([{dot!r}, *sys.argv[1:]]).returncode
with open({peaks!r}, "a") as file:
    file.write(f"{{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}}\\n")
sys.exit(code)
"""


class Scale:
    """A copy of this process, made now, that waits until it is asked to run one job.

    Parameters
    ----------
    make_groups
        Gives groups of jobs, as ``peers.jobs`` does: called in the copy, so that what it imports counts.
    warm
        Called first in the copy: a copy has to fetch again what it shares with the original.
    """

    def __init__(self, make_groups, warm):
        asked, self._ask = os.pipe()
        self._answer, answer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                name = os.read(asked, 1000).decode()
                if name:
                    os.write(answer, json.dumps(weighed(name, make_groups, warm)).encode())
            finally:
                os._exit(0)
        os.close(asked)
        os.close(answer)

    def go(self, name: str) -> dict:
        """The megabytes of the process (``own``) and, where it was called, of ``dot``; {} if it failed."""
        os.write(self._ask, name.encode())
        text = os.read(self._answer, 1000)
        return json.loads(text) if text else {}

    def end(self) -> None:
        """The copy ends, asked or not."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._ask)
        os.close(self._answer)


def weighed(name: str, make_groups, warm) -> dict:
    """Run a job, and those that it goes on from, in this process; what :meth:`Scale.go` returns."""
    warm()
    with tempfile.TemporaryDirectory() as folder:
        peaks = Path(folder) / "peaks"
        put_stand_in(Path(folder), peaks)
        before = megabytes(resource.RUSAGE_SELF)
        jobs = {one: job for group in make_groups() for one, job in group.items()}
        chain = [jobs[name]]
        while chain[0].after:
            chain.insert(0, jobs[chain[0].after])
        result = None
        for job in chain:
            result = job.run(job.prepare() if job.prepare else result)
        facts = {"own": round(megabytes(resource.RUSAGE_SELF) - before, 1)}
        if peaks.exists():
            facts["dot"] = round(max(map(int, peaks.read_text().split())) / UNIT, 1)
    return facts


def megabytes(who: int) -> float:
    """The most memory that a process has had so far."""
    return resource.getrusage(who).ru_maxrss / UNIT


def put_stand_in(folder: Path, peaks: Path) -> None:
    """Make ``dot`` mean the stand-in."""
    real = shutil.which("dot")
    if real is None:
        return
    script = folder / "dot.py"
    script.write_text(STAND_IN.format(dot=real, peaks=str(peaks)), encoding="utf-8")
    command = folder / "dot"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"

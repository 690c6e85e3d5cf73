"""``make bench``: this helper and its peers side by side, on all subjects, in one run.

Each subject is given to each tool in a process of its own, which has 60 seconds. Times are processor
time (of the process and of ``dot``), so that a busy machine matters less. Writes
``_build/bench.json`` and the page ``book/bench.md``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import page
import peers
from subjects import SUBJECTS

HERE = Path(__file__).parent
ROOT = HERE.parent
RUNS = 7
LIMIT = 60  # seconds for one tool on one subject


def run_one(command: list[str], limit: float) -> dict:
    """Run ``measure.py`` and gather what it printed; never raises for what happens in there."""
    timed_out = False
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            out, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, 9)  # with the dot that it may be waiting for
            out, errors = process.communicate()
    return gather(out, timed_out, process.returncode, errors)


def gather(out: str, timed_out: bool, code: int, errors: str = "") -> dict:
    """What the lines of one process say: the number of nodes, and its measures."""
    result: dict = {"measures": {}}
    for line in out.splitlines():
        try:
            facts = json.loads(line)
        except json.JSONDecodeError:  # something that a tool printed
            continue
        if not isinstance(facts, dict):
            continue
        if "nodes" in facts:
            result["nodes"] = facts["nodes"]
        if "measure" not in facts:
            continue
        entry = result["measures"].setdefault(facts.pop("measure"), {"seconds": []})
        if "seconds" in facts:
            entry["seconds"].append(facts.pop("seconds"))
        entry.update(facts)
    if timed_out:
        result["end"] = "time"
    elif code:
        said = errors.strip().splitlines()
        result["end"] = said[-1][:200] if said else f"ended with code {code}"
    return result


def import_seconds(runs: int = RUNS) -> list[float]:
    """What ``import inside_autograd`` costs once torch is there, each time in a new process."""
    code = "import torch,time; a=time.process_time(); import inside_autograd; print(time.process_time()-a)"
    command = [sys.executable, "-c", code]
    done = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(runs)]
    return [float(one.stdout) for one in done]


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for name in ("torch", *peers.NAMES[1:]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    said = subprocess.run(["dot", "-V"], capture_output=True, text=True).stderr
    found["dot"] = said.partition("version ")[2].strip()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only subjects with this in their name; writes no page")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one tool on one subject")
    options = parser.parse_args()
    results: dict = {"versions": versions(), "limit": options.limit, "runs": RUNS, "import": import_seconds()}
    results["subjects"] = {}
    for subject in SUBJECTS:
        if options.only not in subject.name:
            continue
        entry = results["subjects"][subject.name] = {}
        for tool in peers.NAMES:
            print(f"{subject.name}: {tool}", flush=True)
            command = [sys.executable, str(HERE / "measure.py"), subject.name, tool, str(RUNS)]
            entry[tool] = run_one(command, options.limit)
    if options.only:
        print(page.page(results))
        return
    (ROOT / "_build").mkdir(exist_ok=True)
    (ROOT / "_build" / "bench.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (ROOT / "book" / "bench.md").write_text(page.page(results), encoding="utf-8")
    print("Wrote _build/bench.json and book/bench.md.")


if __name__ == "__main__":
    main()

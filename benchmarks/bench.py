"""``make bench``: this helper and its peers side by side, on all subjects, in one run.

Each subject is given to each tool in a process of its own, one after the other. Times are processor time
(of the process and of ``dot``), so that a busy machine matters less. Writes ``benchmarks/results.json``,
the page ``book/bench.md`` that is made of it, and the pictures on that page.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import page
import peers
from subjects import SUBJECTS, find

HERE = Path(__file__).parent
ROOT = HERE.parent
RESULTS = HERE / "results.json"
PAGE = ROOT / "book" / "bench.md"
PICTURES = ROOT / "book" / "_static" / "bench"
RUNS = 7
LIMIT = 60  # seconds for one tool on one subject
START = 5  # seconds more, in which a process imports torch and makes the model


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
    """What the lines of one process say: the number of nodes, and its measures.

    ``end`` says why it ended early, and ``hung`` names the measure at which it ran out of time before
    that was done once.
    """
    result: dict = {"measures": {}}
    started: list[str] = []
    for facts in facts_in(out):
        if "nodes" in facts:
            result["nodes"] = facts["nodes"]
        if "start" in facts:
            started.append(facts["start"])
        if "measure" not in facts:
            continue
        entry = result["measures"].setdefault(facts.pop("measure"), {"seconds": []})
        if "seconds" in facts:
            entry["seconds"].append(facts.pop("seconds"))
        entry.update(facts)
    if timed_out:
        result["end"] = "time"
        left = [name for name in started if name not in result["measures"]]
        result |= {"hung": left[0]} if left else {}
    elif code:
        said = errors.strip().splitlines()
        result["end"] = said[-1][:200] if said else f"ended with code {code}"
    return result


def joined(first: dict, second: dict) -> dict:
    """Two results of one tool, as one with the runs of both."""
    measures = dict(second["measures"])
    for name, entry in first["measures"].items():
        seconds = entry["seconds"] + measures.get(name, {"seconds": []})["seconds"]
        measures[name] = measures.get(name, {}) | entry | {"seconds": seconds}
    return second | first | {"measures": measures}


def facts_in(out: str):
    """The objects among the lines; the others are what a tool printed."""
    for line in out.splitlines():
        try:
            facts = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(facts, dict):
            yield facts


def measure(subjects: list, limit: float, run=run_one) -> dict[str, dict]:
    """All tools on all subjects, by the subject's name; ``run`` starts a process.

    This helper goes before the others and once more after them: all ratios are to its times, and a busy
    moment of the machine would count in all of them.
    """
    results: dict[str, dict] = {}
    too_long: dict[tuple[str, str], dict[str, str]] = {}
    for subject in subjects:
        entry = results[subject.name] = {}
        for tool in (*peers.NAMES, peers.NAMES[0]):
            print(f"{subject.name}: {tool}", flush=True)
            # What a tool could not finish, it is not given again in a larger size.
            skip = too_long.setdefault((tool, subject.family), {})
            command = [sys.executable, str(HERE / "measure.py"), subject.key, tool, str(RUNS), str(limit)]
            found = run([*command, *skip], limit + START)
            entry[tool] = joined(entry[tool], found) if tool in entry else found
            if skip:
                entry[tool]["skipped"] = dict(skip)
            if "hung" in entry[tool]:
                skip[entry[tool]["hung"]] = subject.name
    return results


def other_lines(script: str, *arguments: str) -> list[dict]:
    """What another script of this folder prints."""
    command = [sys.executable, str(HERE / script), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return list(facts_in(done.stdout))


def pictures() -> dict[str, dict]:
    """Draw them; what is known of each, by subject and tool."""
    if PICTURES.exists():
        shutil.rmtree(PICTURES)
    found: dict[str, dict] = {}
    for facts in other_lines("pictures.py", str(PICTURES)):
        key, tool = facts.pop("picture")
        found.setdefault(key, {})[tool] = facts
    return found


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
    found["dot"] = said.partition("version ")[2].partition(" ")[0].strip()
    return found


def rounded(value):
    """Seconds to four digits: more is noise, and makes a long file."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def text_of(value, depth: int = 3) -> str:
    """As JSON, one line for each tool on each subject."""
    if not depth or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    names = [json.dumps(name, ensure_ascii=False) for name in value]
    lines = [f"{name}: {text_of(one, depth - 1)}" for name, one in zip(names, value.values(), strict=True)]
    return "{\n" + ",\n".join(lines) + "\n}"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", help="only these; prints tables and writes nothing")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one tool on one subject")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page again")
    options = parser.parse_args(arguments)
    if options.page:
        PAGE.write_text(page.page(json.loads(RESULTS.read_text(encoding="utf-8"))), encoding="utf-8")
        return
    try:
        subjects = [find(key) for key in options.subjects] or SUBJECTS
    except LookupError as error:
        sys.exit(str(error))
    if shutil.which("dot") is None:
        sys.exit("Graphviz's dot is not on the path: install Graphviz (Debian: apt install graphviz).")
    results: dict = {"versions": versions(), "limit": options.limit, "runs": RUNS, "import": import_seconds()}
    results["subjects"] = measure(subjects, options.limit)
    if options.subjects:
        print("\n".join(page.tables(rounded(results))))
        return
    for name, script in (("growth", "growth.py"), ("shows", "shows.py")):
        print(name, flush=True)
        results[name] = other_lines(script)[-1][name]
    print("pictures", flush=True)
    results["pictures"] = pictures()
    results = rounded(results)
    RESULTS.write_text(text_of(results) + "\n", encoding="utf-8")
    PAGE.write_text(page.page(results), encoding="utf-8")
    print("Wrote benchmarks/results.json, book/bench.md and the pictures that it shows.")


if __name__ == "__main__":
    main(sys.argv[1:])

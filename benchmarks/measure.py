"""Measure one tool on one subject, in a process of its own: ``measure.py SUBJECT TOOL RUNS``.

Prints one line of JSON as soon as each run is done, so that what was measured stands even where the
process is ended before it is through.
"""

import json
import re
import resource
import sys
from pathlib import Path

LEAST = 0.05  # seconds that one measurement takes at least
MOST = 300  # runs in one measurement


def cpu_seconds() -> float:
    """Processor time of this process and of the programs that it ran: others on the machine do not count."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def peak_megabytes() -> float:
    """The most memory that this process has had so far.

    Programs that it runs are left out: until they start, they count what this process has as theirs.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tell(**facts) -> None:
    print(json.dumps(facts), flush=True)


def measure(jobs: dict, runs: int, say=tell) -> None:
    """Run every job once to warm up and ``runs`` times with the clock on; tell of each."""
    for name, (prepare, run) in jobs.items():
        try:
            seconds, facts = first_run(prepare, run)
            say(measure=name, **facts)
            # What takes no time at all is done many times over, unless each needs a graph of its own.
            many = 1 if prepare else min(max(round(LEAST / max(seconds, 1e-6)), 1), MOST)
            for _ in range(runs):
                prepared = prepare() if prepare else None
                before = cpu_seconds()
                for _ in range(many):
                    run(prepared)
                say(measure=name, seconds=(cpu_seconds() - before) / many)
        except Exception as error:  # a tool that cannot do it is part of the result
            text = str(error).strip().splitlines()
            say(measure=name, error=type(error).__name__, message=text[0][:200] if text else "")


def first_run(prepare, run) -> tuple[float, dict]:
    """How long a run takes, how much memory it adds, and what it returns if that is an SVG."""
    prepared = prepare() if prepare else None
    before, memory = cpu_seconds(), peak_megabytes()
    result = run(prepared)
    facts: dict = {"memory": round(peak_megabytes() - memory, 1)}
    seconds = cpu_seconds() - before
    if isinstance(result, bytes):
        facts |= {"bytes": len(result), "boxes": len(re.findall(rb'data-n="\d', result))}
    return seconds, facts


def main(subject: str, tool: str, runs: int) -> None:
    import peers
    import torch
    from subjects import SUBJECTS

    torch.set_num_threads(1)
    model, inputs = next(one for one in SUBJECTS if one.name == subject).make()
    if tool == "inside_autograd":
        from inside_autograd import Graph

        tell(nodes=len(Graph.of(model(*inputs), model, saved=False)))
    measure(peers.jobs(tool, model, inputs), runs)


if __name__ == "__main__":
    # Pieces of one folder: no package, so that nothing of it is ever installed.
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

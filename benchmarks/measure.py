"""Measure one tool on one subject, in a process of its own: ``measure.py SUBJECT TOOL RUNS SECONDS [SKIP]``.

Prints one line of JSON as soon as each run is done, so that what was measured stands even where the
process is ended before it is through. SKIP names measures that are left out, with commas between them.
"""

import json
import re
import resource
import sys
import time
from pathlib import Path

LEAST = 0.05  # seconds that one measurement takes at least
MOST = 300  # runs in one measurement
WEIGHED = 3  # jobs whose memory is measured, at most
BOX, EDGE = rb'data-n="\d|class="node"', rb'data-e="|class="edge"'  # ours or Graphviz's


def cpu_seconds() -> float:
    """Processor time of this process and of the programs that it ran: others on the machine do not count."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def tell(**facts) -> None:
    print(json.dumps(facts), flush=True)


def measure(jobs: dict, runs: int, deadline: float, done: dict | None = None, say=tell) -> dict[str, float]:
    """Run a group of jobs once to warm up, then ``runs`` times in turns with the clock on; tell of each.

    No round begins that would not end before ``deadline``, a time of ``time.monotonic``. Returns how
    long one has to wait for the first run of each job, for those that can do it. ``done`` holds the
    last result of each job, for jobs of a later group to go on from.
    """
    done = {} if done is None else done
    firsts: dict[str, float] = {}
    waits: dict[str, float] = {}
    wall = 0.0
    for turn in range(runs + 1):
        started = time.monotonic()
        if turn and started + wall > deadline:
            break
        for name, job in jobs.items():
            if (turn and name not in firsts) or (job.after and job.after not in done):
                continue
            before, given = done[job.after] if job.after else (0.0, job.prepare and job.prepare())
            # What takes no time at all is done many times over, unless it uses something up.
            single = not turn or job.prepare or job.after
            many = 1 if single else min(max(round(LEAST / max(firsts[name], 1e-6)), 1), MOST)
            if not turn:
                say(start=name)
            begun = time.monotonic()
            try:
                seconds, result = timed(job.run, given, many)
            except Exception as error:  # a tool that cannot do it is part of the result
                firsts.pop(name, None)
                waits.pop(name, None)
                done.pop(name, None)
                text = str(error).strip().splitlines()
                say(measure=name, error=type(error).__name__, message=text[0][:200] if text else "")
                continue
            done[name] = before + seconds, result
            if turn:
                say(measure=name, seconds=before + seconds)
            else:
                firsts[name] = before + seconds
                waits[name] = time.monotonic() - begun + waits.get(job.after, 0.0)
                say(measure=name, first=before + seconds, **facts_of(result))
        wall = max(wall, time.monotonic() - started)
    return waits


def timed(run, given, many: int) -> tuple[float, object]:
    """How long a run takes, on average over ``many``, and what it returns."""
    before = cpu_seconds()
    for _ in range(many):
        result = run(given)
    return (cpu_seconds() - before) / many, result


def facts_of(result) -> dict[str, int]:
    """Of an SVG, its bytes and what is drawn in it."""
    if not isinstance(result, bytes):
        return {}
    return {
        "bytes": len(result),
        "boxes": len(re.findall(BOX, result)),
        "edges": len(re.findall(EDGE, result)),
    }


def main(subject: str, tool: str, runs: int, seconds: float, skip: tuple[str, ...]) -> None:
    import peers
    import torch
    from scale import Scale
    from subjects import find

    deadline = time.monotonic() + seconds
    torch.set_num_threads(1)
    model, inputs = find(subject).make()
    # Each is a copy of the process as it is now, before it has imported the tool.
    made = [Scale(lambda: peers.jobs(tool, model, inputs), lambda: model(*inputs)) for _ in range(WEIGHED)]
    scales = list(made)
    try:
        groups = [
            {name: job for name, job in group.items() if name not in skip and job.after not in skip}
            for group in peers.jobs(tool, model, inputs)
        ]
        if tool == "inside_autograd":
            from inside_autograd import Graph

            tell(nodes=len(Graph.of(model(*inputs), model, saved=False)))
        done: dict = {}
        for number, group in enumerate(groups):
            now = time.monotonic()
            share = (deadline - now) / (len(groups) - number)  # the last groups may never end
            waits = measure(group, runs, now + 0.8 * share, done)
            for name in [name for name in waits if group[name].weighed]:
                if time.monotonic() + 2 * waits[name] < now + share:
                    tell(measure=name, **scales.pop().go(name))
    finally:
        for scale in made:
            scale.end()


if __name__ == "__main__":
    # Pieces of one folder: no package, so that nothing of it is ever installed.
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), tuple(sys.argv[5:]))

"""How time grows with size: a graph of ten times the nodes, in one process, small and large in turns.

Prints one line of JSON: for each family the nodes of both and, for each measure, one ratio a round,
made as large as exactly ten times the nodes would make it. It is ten if time grows as nodes do.

Before each run the processor's caches are emptied, as the pass of a real model empties them. A small
graph that is read again and again stays there, and each of its nodes then costs up to a third less.
"""

import json
import time

import torch
from subjects import chain, cnn, fan_in, lstm, transformer

ROUNDS = 15
CACHE = 64_000_000  # bytes: more than the caches hold


def pairs() -> dict[str, tuple]:
    """A small and a large subject of each kind; the large fan-in nears the limit of nodes."""
    return {
        "CNN": (cnn(11), cnn(110)),
        "transformer": (transformer(2), transformer(20)),
        "LSTM": (lstm(9), lstm(90)),
        "chain": (chain(140), chain(1_400)),
        "fan-in": (fan_in(4_900), fan_in(49_000)),
    }


def growth(small, large, rounds: int = ROUNDS) -> dict:
    """The entry of one family."""
    from inside_autograd import Graph, draw

    runs = {
        "capture": lambda model, out: Graph.of(out, model, saved=False),
        "folded": lambda model, out: draw(out, model, fold=True).svg,
    }
    both = []
    for subject in (small, large):
        model, inputs = subject.make()
        both.append((model, model(*inputs)))
    nodes = [len(runs["capture"](*one)) for one in both]
    cache = torch.zeros(CACHE, dtype=torch.uint8)
    entry: dict = {"nodes": nodes}
    for measure, run in runs.items():
        run(*both[0])  # imports what it needs
        entry[measure] = []
        for _ in range(rounds):
            took = []
            for one in both:
                cache.add_(1)
                start = time.process_time()
                run(*one)
                took.append(time.process_time() - start)
            entry[measure].append(took[1] / took[0] * 10 * nodes[0] / nodes[1])
    return entry


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps({"growth": {name: growth(*pair) for name, pair in pairs().items()}}))

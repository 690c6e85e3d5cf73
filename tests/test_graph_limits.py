"""Limits: what is cut, what is counted, and that no process dies of a graph that was read.

Torch frees a path of nodes that Python has seen by recursion (see ``inside_autograd.walk``), so the
last tests here run in processes of their own, on small stacks.
"""

import resource
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch

from inside_autograd.graph import Graph
from inside_autograd.walk import SLACK
from shapes import SHAPES, numbers


def chain(length, start=None):
    h = torch.ones(2, requires_grad=True) if start is None else start
    made = []
    for _ in range(length):
        h = h + 1.0
        made.append(h)
    return made


def longest_path(graph):
    """Number of nodes on the longest path through nodes that were read, leaves not counted."""
    waiting = dict.fromkeys(range(len(graph)), 0)
    for edge in graph.edges:
        if edge.target is not None:
            waiting[edge.target] += 1
    ready = [node for node, count in waiting.items() if count == 0]
    length = dict.fromkeys(range(len(graph)), 1)
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for edge in graph.nodes[node].edges:
            if edge.target is None:
                continue
            length[edge.target] = max(length[edge.target], length[node] + 1)
            waiting[edge.target] -= 1
            if waiting[edge.target] == 0:
                ready.append(edge.target)
    assert done == len(graph)
    return max([length[node.index] for node in graph.nodes if not node.is_leaf], default=0)


def check_cut(graph):
    """The count agrees with the edges that are marked."""
    marked = [edge for edge in graph.edges if edge.cut]
    lost_roots = [root for root in graph.roots if root.reason == "past the limits, not read"]
    if graph.cut is None:
        assert marked == lost_roots == []
        return
    assert graph.cut.edges == len(marked) + len(lost_roots) > 0
    assert 1 <= graph.cut.nodes <= graph.cut.edges
    assert all(edge.target is None and edge.reason == "past the limits, not read" for edge in marked)


def test_chain_is_cut_at_the_limit():
    outputs, params = SHAPES["chain_4000"]()
    graph = Graph.of(outputs, params)
    assert len(graph) == longest_path(graph) == 1500
    assert (graph.cut.edges, graph.cut.nodes) == (1, 1)
    assert (graph.cut.max_path, graph.cut.max_nodes) == (1500, 50_000)
    last = graph.nodes[-1].edges[0]
    assert (last.target, last.input_nr, last.cut, last.reason) == (None, 0, True, "past the limits, not read")
    assert graph.unmatched == ("w",)
    check_cut(graph)


@pytest.mark.parametrize("max_path", [1, 2, 3, 4, 5])
def test_path_limit_does_not_count_the_leaf(max_path):
    w = numbers(2)
    out = chain(3, w)[-1]
    graph = Graph.of(out, {"w": w}, max_path=max_path)
    whole = max_path >= 3
    assert len(graph) == (4 if whole else max_path)
    assert (graph.cut is None) == whole
    check_cut(graph)


@pytest.mark.parametrize(
    ("max_nodes", "names", "cut"),
    [
        (1, ["MulBackward0"], (2, 2)),
        (2, ["MulBackward0", "SinBackward0"], (2, 2)),
        (3, ["MulBackward0", "SinBackward0", "AccumulateGrad"], (1, 1)),
        (4, ["MulBackward0", "SinBackward0", "AccumulateGrad", "ExpBackward0"], (1, 1)),
        (5, ["MulBackward0", "SinBackward0", "AccumulateGrad", "ExpBackward0", "AccumulateGrad"], None),
    ],
)
def test_node_limit(max_nodes, names, cut):
    a, b = numbers(2), numbers(2)
    graph = Graph.of(a.exp() * b.sin(), max_nodes=max_nodes)
    assert [node.name for node in graph.nodes] == names
    assert (graph.cut and (graph.cut.edges, graph.cut.nodes)) == cut
    check_cut(graph)


def test_roots_past_the_limits():
    w = numbers(2)
    first, second = w.exp(), w.sin()
    graph = Graph.of([first, second], max_nodes=2)
    assert [root.node for root in graph.roots] == [None, 0]
    assert [root.reason for root in graph.roots] == ["past the limits, not read", None]
    assert (graph.cut.edges, graph.cut.nodes) == (1, 1)
    check_cut(graph)


def test_node_is_never_both_read_and_cut():
    # From the sum every step of the chain is near, and along the chain most are past the limit.
    made = chain(50)
    graph = Graph.of(torch.stack(made).sum(), max_path=10)
    assert longest_path(graph) == 10
    assert len(graph) == 10
    # The other edges of stack lead on to the 42 steps that were not read, and so does the chain.
    assert (graph.cut.edges, graph.cut.nodes) == (42 + 1, 42)
    check_cut(graph)


def test_shortcut_does_not_hide_the_long_way():
    outputs, params = SHAPES["long_way_round"]()  # exp, 60 additions, mul
    assert Graph.of(outputs, params, max_path=62).cut is None
    graph = Graph.of(outputs, params, max_path=61)
    assert graph.cut is not None
    assert "ExpBackward0" not in [node.name for node in graph.nodes]
    assert longest_path(graph) == 61
    check_cut(graph)


@pytest.mark.parametrize("max_path", [1, 7, 20, 61, 62])
def test_dense_skips(max_path):
    outputs, params = SHAPES["dense_skips"]()  # 30 times stack and sum over all before, and one mul
    graph = Graph.of(outputs, params, max_path=max_path)
    assert longest_path(graph) == min(max_path, 61)
    assert (graph.cut is None) == (max_path >= 61)
    check_cut(graph)


@pytest.mark.parametrize("shape", ["residual_blocks", "unrolled_cells", "encoder_layers", "gradient_penalty"])
def test_limits_hold_on_real_graphs(shape):
    outputs, params = SHAPES[shape]()
    whole = Graph.of(outputs, params)
    for max_path in (1, 2, 3, 5, 8, 13, longest_path(whole) - 1, longest_path(whole)):
        graph = Graph.of(outputs, params, max_path=max_path)
        # The first node that is too far ends the walk, so the path can stay a step or two below.
        assert min(max_path, longest_path(whole)) - 2 <= longest_path(graph) <= max_path
        assert (graph.cut is None) == (max_path >= longest_path(whole))
        check_cut(graph)
    for max_nodes in (1, 2, 3, 5, 8, 13, len(whole) - 1, len(whole)):
        graph = Graph.of(outputs, params, max_nodes=max_nodes)
        assert len(graph) == max_nodes
        assert (graph.cut is None) == (max_nodes == len(whole))
        check_cut(graph)


def test_skips_that_wait_count_towards_the_limit():
    """A U: each of the later steps takes an earlier one too, so all of those have been seen."""
    down = chain(1000)
    h = down[-1]
    for skip in reversed(down[:-1]):
        h = h + skip
    graph = Graph.of(h)
    seen_early = sum(edge.cut for edge in graph.edges)
    assert longest_path(graph) + seen_early <= 1500 + 1
    assert longest_path(graph) >= 700
    check_cut(graph)


def test_wide_operation_over_many_branches_is_not_cut():
    branches = []
    for i in range(3000):
        branches.append((numbers(1) + i).sin().exp())
    h = torch.cat(branches).sum()
    trunk = chain(2 * SLACK, h)[-1]
    graph = Graph.of(trunk)
    assert graph.cut is None
    assert len(graph) == 2 * SLACK + 2 + 3000 * 4


def test_sum_over_all_steps_of_a_loop():
    """The sum shows all 5,000 steps at once, so going along them shows nothing new."""
    graph = Graph.of(torch.stack(chain(5000)).sum())
    assert longest_path(graph) == 1500
    # From the sum and from the last step that was read.
    assert (graph.cut.edges, graph.cut.nodes) == (5000 - 1498 + 1, 5000 - 1498)
    check_cut(graph)


def test_sum_over_all_steps_with_more_between_them():
    """Between the steps there is more that has not been seen, and all may be one path."""
    states = []
    h = numbers(2)
    for _ in range(2000):
        h = h.sin() * 2 + 1
        states.append(h)
    graph = Graph.of(torch.stack(states).sum())
    assert SLACK < longest_path(graph) < 2 * SLACK
    check_cut(graph)


def test_running_sum_over_the_steps_of_a_loop():
    h, total = numbers(2), 0.0
    for _ in range(2000):
        h = h.sin() * 2
        total = total + h.sum()
    graph = Graph.of(total)
    assert 1498 <= longest_path(graph) <= 1500
    check_cut(graph)


# --- numbers that do not follow the graph


def tamper(tensors, first):
    """Give the nodes of these tensors falling numbers, from ``first`` on."""
    for i, tensor in enumerate(tensors):
        tensor.grad_fn._set_sequence_nr(first - i)


def joined(length, bottom_first):
    """``length`` steps above ``length`` steps, and a shortcut from the root to the lower ones."""
    lower = chain(length)
    upper = chain(length, lower[-1])
    root = upper[-1] * lower[-1]
    root.grad_fn._set_sequence_nr(10**9)
    tamper(reversed(lower), 10**8 if bottom_first else 10**6)
    tamper(reversed(upper), 10**7)
    return root, 2 * length + 1


@pytest.mark.parametrize("length", [20, 40, 50, 99])
def test_tampered_numbers_cannot_pass_twice_the_limit(length):
    root, whole = joined(length, bottom_first=True)
    graph = Graph.of(root, max_path=100)
    # The edge that joins the pieces is known only when all has been read.
    assert longest_path(graph) == whole <= 2 * 100
    check_cut(graph)
    assert Graph.of(root, max_path=whole).cut is None


@pytest.mark.parametrize("length", [101, 150, 400])
def test_tampered_numbers_with_pieces_past_the_limit(length):
    root, _ = joined(length, bottom_first=True)
    graph = Graph.of(root, max_path=100)
    assert longest_path(graph) == 100
    assert graph.cut is not None
    check_cut(graph)


def test_true_numbers_hold_it_exactly():
    root, whole = joined(99, bottom_first=False)
    assert longest_path(Graph.of(root, max_path=100)) == 100
    assert longest_path(Graph.of(root, max_path=whole)) == whole


def test_many_pieces_joined_late_end_the_walk():
    """Ten pieces of 90, each found from the root before it is known what lies above it."""
    pieces, h = [], torch.ones(2, requires_grad=True)
    for _ in range(10):
        pieces.append(chain(90, h))
        h = pieces[-1][-1]
    root = torch.stack([piece[-1] for piece in pieces]).sum()
    stack = root.grad_fn.next_functions[0][0]
    root.grad_fn._set_sequence_nr(10**9)
    stack._set_sequence_nr(10**9 - 1)
    for i, piece in enumerate(pieces):  # the lowest piece first
        tamper(reversed(piece), 10**8 - 1000 * i)
    graph = Graph.of(root, max_path=100)
    assert longest_path(graph) <= 2 * 100
    assert graph.cut is not None
    check_cut(graph)


def test_equal_numbers():
    made = chain(300)
    for tensor in made:
        tensor.grad_fn._set_sequence_nr(5)
    graph = Graph.of(made[-1] * made[100], max_path=200)
    assert longest_path(graph) <= 2 * 200
    check_cut(graph)
    assert Graph.of(made[-1] * made[100]).cut is None


def test_graph_made_on_several_threads():
    """Each thread of torch's counts for itself, so a worker's later nodes have lower numbers."""
    h = chain(80)[-1]
    results = []
    for _ in range(4):
        thread = threading.Thread(target=lambda start=h: results.append(chain(80, start)[-1]))
        thread.start()
        thread.join()
        h = results[-1] * h
    whole = Graph.of(h)
    length = longest_path(whole)
    assert length == 80 + 4 * 81
    assert whole.cut is None
    assert len(whole) == length + 1
    for max_path in (10, 79, 100, 200, length - 1, length):
        graph = Graph.of(h, max_path=max_path)
        assert longest_path(graph) <= 2 * max_path
        if max_path >= length or 2 * max_path < length:
            assert (graph.cut is None) == (max_path >= length)
        check_cut(graph)


def test_double_backward_on_a_thread():
    """Backward on another thread records nodes with that thread's numbers, as on a GPU."""
    w = numbers(3)
    h = w
    for _ in range(30):
        h = torch.tanh(h) * h
    results = []

    def run():
        results.extend(torch.autograd.grad(h.sum(), w, create_graph=True))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    graph = Graph.of(results[0].sum(), {"w": w})
    assert graph.cut is None and [leaf.names for leaf in graph.leaves] == [("w",)]
    (same,) = torch.autograd.grad(h.sum(), w, create_graph=True)
    again = Graph.of(same.sum(), {"w": w})
    assert sorted(node.name for node in graph.nodes) == sorted(node.name for node in again.nodes)


# --- cost


def test_cost_grows_with_the_graph_only():
    """Four times the nodes take about four times as long: quadratic cost would take sixteen times."""

    def seconds(count):
        out = torch.stack([(numbers(1) * i).sin() for i in range(count)]).sum()
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            graph = Graph.of(out)
            best = min(best, time.process_time() - start)
            assert len(graph) == 2 + 3 * count
        return best

    small = seconds(1000)
    assert seconds(4000) < 9 * small


def test_fan_in_of_20000():
    leaves = [torch.full((1,), 1.0, requires_grad=True) for _ in range(20_000)]
    graph = Graph.of(torch.cat([leaf * 2 for leaf in leaves]), {"first": leaves[0]})
    assert graph.cut is None and len(graph) == 40_001


# --- processes that must live

PRELUDE = """
import sys, threading
sys.setrecursionlimit(200)
import torch
from inside_autograd.graph import Graph

def chain(length, h):
    for i in range(length):
        h = h * 1.0 if i % 2 else h + 1.0
    return h

def leaf():
    return torch.ones(1, requires_grad=True)
"""

CASES = {
    "a million in a row": """
        out = chain(1_000_000, leaf())
        graph = Graph.of(out)
        assert len(graph) == 1500 and graph.cut.edges == 1, graph.cut
        """,
    "two ends of a long chain": """
        out = chain(100_000, leaf())
        graph = Graph.of([out, out.sum(), out * out])
        assert graph.cut.edges == 1 and 1500 <= len(graph) <= 1503, (graph.cut, len(graph))
        """,
    "a running sum": """
        h, total = leaf(), 0.0
        for _ in range(20_000):
            h = h.sin() * 2
            total = total + h.sum()
        out = total
        graph = Graph.of(out)
        assert graph.cut is not None
        """,
    "a U of 20,000": """
        h, down = leaf(), []
        for _ in range(10_000):
            h = h + 1.0
            down.append(h)
        for skip in reversed(down):
            h = h + skip
        out = h
        del down, skip
        graph = Graph.of(out)
        assert graph.cut is not None
        """,
    "wide": """
        out = torch.cat([leaf() * 2 for _ in range(20_000)])
        graph = Graph.of(out)
        assert graph.cut is None and len(graph) == 40_001
        """,
    "custom Functions": """
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2
            @staticmethod
            def backward(ctx, grad):
                return grad * 2
        h = leaf()
        for _ in range(20_000):
            h = Twice.apply(h) + 1.0
        out = h
        graph = Graph.of(out)
        assert len(graph) == 1500
        """,
}


def function(number, body):
    """The case as a function that drops the graph before it returns."""
    lines = textwrap.indent(textwrap.dedent(body), "    ")
    return f"def case{number}():\n{lines}\n    return len(graph)\n"


def run(bodies, start, stack):
    """Run a program in a process whose main stack has the given size in bytes."""
    cases = "\n".join(function(number, body) for number, body in enumerate(bodies))
    every = ", ".join(f"case{number}" for number in range(len(bodies)))
    code = f"{PRELUDE}\n{cases}\nCASES = [{every}]\n{textwrap.dedent(start)}"

    def small_stack():
        resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))

    return subprocess.run(
        [sys.executable, "-c", code], preexec_fn=small_stack, capture_output=True, text=True, timeout=300
    )


IN_MAIN = """
    for case in CASES:
        print(case(), flush=True)
    """

IN_THREAD = """
    threading.stack_size(512 * 1024)
    for case in CASES:
        thread = threading.Thread(target=lambda: print(case(), flush=True))
        thread.start()
        thread.join()
    """


@pytest.mark.parametrize(
    ("start", "stack"), [(IN_MAIN, 2**20), (IN_THREAD, 8 * 2**20)], ids=["1 MiB", "thread of 512 KiB"]
)
def test_process_survives(start, stack):
    done = run(CASES.values(), start, stack)
    said = done.stdout.split()
    survived = dict(zip(CASES, said, strict=False))
    assert (done.returncode, list(survived)) == (0, list(CASES)), done.stderr[-2000:]
    assert survived["a million in a row"] == "1500" and survived["wide"] == "40001"


def test_the_danger_is_real():
    """Without the limit the process dies: if torch mends that, the limit can go."""
    body = """
        graph = Graph.of(chain(20_000, leaf()), max_path=20_000)
        assert graph.cut is None
        """
    done = run([body], IN_MAIN, 2**20)
    assert done.returncode < 0
    assert done.stdout == "" and "Error" not in done.stderr


def test_pieces_read_one_by_one_add_up():
    """What the notes of ``Graph.of`` warn of: seen nodes add up over calls."""
    body = """
        h, ends = leaf(), []
        for _ in range(14):
            h = chain(1400, h)
            ends.append(h)
        sizes = [len(Graph.of(end)) for end in ends]
        assert sizes == [1401] + [1500] * 13, sizes
        graph = sizes
        del ends  # while they are held, the chain would be freed piece by piece
        """
    done = run([body], IN_MAIN, 2**20)
    assert done.returncode < 0
    assert done.stdout == "" and "Error" not in done.stderr

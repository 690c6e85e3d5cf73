"""Run the real backward pass and record it: ``replay(loss)``."""

from collections.abc import Callable
from functools import partial

import torch
from torch.autograd.graph import GradientEdge

from .arguments import check_gradients, check_graph, check_options, match_gradients, targets_of
from .graph import Graph, read_graph
from .inputs import flatten_outputs, named_tensors
from .messages import plain_message
from .reading import collector_paused
from .recorder import Event, Recorder
from .recording import Failure, Filled, Received, Recording, Returned, Sent, Start, Step
from .values import Value, implicit_gradient, summarize, unseen


def replay(
    outputs: object,
    *,
    gradient: object = None,
    wrt: object = None,
    inputs: object = None,
    params: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
    is_grads_batched: bool = False,
    keep_grads: bool = False,
) -> Recording:
    """Run backward once, for real, and record what every node received and sent.

    ``replay(loss)`` does what ``loss.backward()`` does: gradients accumulate into ``.grad``, saved
    tensors are freed, hooks run. ``replay(y, wrt=[x])`` does what ``torch.autograd.grad(y, [x])`` does:
    ``.grad`` stays as it is, and only the nodes between ``y`` and ``x`` run. The numbers are those of a
    plain call, bit for bit.

    Parameters
    ----------
    outputs
        A tensor, a ``GradientEdge``, or a nested dict, list, tuple or dataclass of them.
        ``None`` entries are skipped.
    gradient
        The gradient to start with: a tensor of the shape of the output, or for several outputs the
        same nesting as ``outputs``. ``None`` stands for 1, and is for scalar outputs only.
    wrt
        Run ``torch.autograd.grad`` with respect to these: a tensor, a ``GradientEdge``, or a
        dict, list or tuple of them. Keys of a dict serve as names.
    inputs
        Run ``backward(inputs=...)``: accumulate into these only. Not together with ``wrt``.
    params
        Where names come from, as for ``draw``: a module, or a mapping from names to tensors.
    retain_graph, create_graph
        As for ``backward``.
    allow_unused, materialize_grads, is_grads_batched
        As for ``torch.autograd.grad``; only with ``wrt``.
    keep_grads
        With ``wrt``: keep the results as tensors in ``recording.grads``. A recording holds no tensor
        otherwise.

    Returns
    -------
    Recording
        In a notebook it shows as a player; ``print`` lists the steps. **If the pass fails after
        it has begun, no exception leaves this function**: the recording ends with the node that
        raised, and ``recording.error`` says what happened.

    Raises
    ------
    TypeError
        If ``outputs``, ``wrt``, ``inputs``, ``gradient`` or ``params`` hold something else than tensors.
    ValueError
        If there is nothing to run, the graph is past the limits of ``Graph.of``, or options do not
        go together.
    RuntimeError
        If the pass cannot begin: no ``gradient`` for an output that is not a scalar, or torch's own
        complaint about the arguments.

    Examples
    --------
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> print(replay(x * x, params={"x": x}))
    backward starts: gradient 1 to MulBackward0.
    1. MulBackward0 received 1, sent 3 to x and 3 to x. Freed: other, self.
    2. x received 6 (3 + 3): x.grad goes from None to 6.
    Done: 2 of 2 nodes ran.
    """
    options = {"retain_graph": retain_graph, "create_graph": create_graph}
    only_grad = {
        "allow_unused": allow_unused,
        "is_grads_batched": is_grads_batched,
        "materialize_grads": materialize_grads,
    }
    try:
        check_options(outputs, wrt, inputs, {**only_grad, "keep_grads": keep_grads})
        roots = [(path, output) for path, output in flatten_outputs(outputs) if output is not None]
        gradients = match_gradients(roots, gradient)
        named = named_tensors(params)
        targets = targets_of("inputs" if wrt is None else "wrt", inputs if wrt is None else wrt)
        with unseen(), collector_paused():
            graph, index_of = read_graph(flatten_outputs(outputs), named)
        check_graph(graph)
        check_gradients(roots, gradients)
    except (TypeError, ValueError, RuntimeError) as error:
        # One sentence says what to do; the frames of these checks would not help.
        raise error.with_traceback(None) from None
    places = _places(targets or [], index_of)
    live = list(index_of)  # in the order of their index
    del index_of
    call = _plain_call(
        roots, gradients, targets, options if wrt is None else options | only_grad, wrt is None
    )
    starts = _starts(graph, gradients)
    leaves = {id(tensor): (name, tensor) for name, tensor in reversed(named) if _is_parameter(tensor)}
    watched = sorted(leaves.values(), key=lambda pair: pair[0])
    # vmap has one level here: grad opens it itself. Under a vmap of the caller's, values show as shapes.
    batch = (1, gradients[0].shape[0]) if is_grads_batched and gradients[0] is not None else None
    recorder = Recorder(graph, live, [tensor for _, tensor in watched], batch)
    before = recorder.grads()
    results = None
    failure: Failure | None = None
    try:
        results = recorder.run(call)
    except Exception as caught:
        if not recorder.events:  # it never began: that is an error of the call, not of a node
            raise
        failure = _failure(caught, recorder)
    names = [name for name, _ in watched]
    inside = {name for node in graph.leaves for name in node.names}
    filled = [change for change in _changes(names, before, recorder.grads()) if change.name not in inside]
    wanted = None if targets is None else _wanted(graph, {node for node, _ in places if node is not None})
    with collector_paused():
        steps = _steps(graph, recorder, names, wanted, set(places))
    returned = _returned(graph, targets, places, results, named) if results is not None else ()
    kept = tuple(results) if keep_grads and results is not None else None
    call_name = "backward" if wrt is None else "grad"
    return Recording(call_name, graph, starts, steps, returned, tuple(filled), failure, kept)


def _plain_call(
    roots: list, gradients: list, targets: list | None, options: dict, accumulate: bool
) -> Callable:
    """The call that is recorded, as a reader would write it."""
    tensors = [output for _, output in roots]
    asked = None if targets is None else [target for _, target in targets]
    if accumulate:
        return partial(torch.autograd.backward, tensors, gradients, inputs=asked, **options)
    return partial(torch.autograd.grad, tensors, asked, gradients, **options)


def _places(targets: list, index_of: dict) -> list[tuple[int | None, int]]:
    """``(node, input number)`` where each target's gradient arrives; no node outside the graph."""
    leaves = {id(node.variable): index for node, index in index_of.items() if hasattr(node, "variable")}
    found = []
    for _, target in targets:
        if isinstance(target, GradientEdge):
            found.append((index_of.get(target.node), target.output_nr))
        elif target.grad_fn is None:
            found.append((leaves.get(id(target)), 0))
        else:
            found.append((index_of.get(target.grad_fn), target.output_nr))
    return found


def _is_parameter(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf and tensor.requires_grad


def _starts(graph: Graph, gradients: list) -> tuple[Start, ...]:
    starts = []
    places = ((root, root.node) for root in graph.roots if root.node is not None)
    for (root, node), gradient in zip(places, gradients, strict=True):
        value = implicit_gradient(root.shape, root.dtype or "") if gradient is None else summarize(gradient)
        starts.append(Start(root.path, node, root.output_nr, value))
    return tuple(starts)


def _failure(error: Exception, recorder: Recorder) -> Failure:
    position = recorder.unfinished()
    message = plain_message(error)
    if position is None and "returned nan values" in message:  # anomaly mode looks after the node has run
        position = len(recorder.events) - 1
    return Failure(type(error).__name__, message, None if position is None else position + 1)


def _changes(names: list[str], before: list, after: list) -> list[Filled]:
    both = zip(names, before, after, strict=True)
    # By their text, since NaN is not equal to itself.
    return [Filled(name, old, new) for name, old, new in both if old is not new and repr(old) != repr(new)]


def _wanted(graph: Graph, ends: set[int]) -> set[int]:
    """Nodes that the engine goes through on its way to ``ends``."""
    sources: dict[int, list[int]] = {}
    for edge in graph.edges:
        if edge.target is not None:
            sources.setdefault(edge.target, []).append(edge.source)
    found, stack = set(ends), list(ends)
    while stack:
        for source in sources.get(stack.pop(), ()):
            if source not in found:
                found.add(source)
                stack.append(source)
    return found


def _steps(
    graph: Graph, recorder: Recorder, names: list[str], wanted: set | None, ends: set
) -> tuple[Step, ...]:
    with unseen():
        freed = recorder.freed()
    steps: list[Step] = []
    for number, event in enumerate(recorder.events, start=1):
        received = tuple(Received(i, value, event.given.get(i)) for i, value in enumerate(event.received))
        sent = _sent(graph, event, wanted, ends)
        came_in = [entry.value for entry in received] + [event.before]
        came_out = [entry.value for entry in sent] + [event.after]
        steps.append(
            Step(
                number,
                event.node,
                graph.nodes[event.node].name,
                received,
                sent,
                event.before,
                event.after,
                freed[event.node],
                tuple(_changes(names, event.grads_before, event.grads_after)) if event.grads_after else (),
                event.sent is not None,
                _any_nonfinite(came_out) and not _any_nonfinite(came_in),
            )
        )
    return tuple(steps)


def _sent(graph: Graph, event: Event, wanted: set | None, ends: set) -> tuple[Sent, ...]:
    if event.sent is None:
        return ()
    sent = []
    for edge, value in zip(graph.nodes[event.node].edges, event.sent, strict=False):
        asked = wanted is None or edge.target in wanted or (edge.target, edge.input_nr) in ends
        sent.append(Sent(edge.slot, edge.target, edge.input_nr, value, asked and edge.target is not None))
    return tuple(sent)


def _any_nonfinite(values: list[Value | None]) -> bool:
    return any(value.nonfinite for value in values if value is not None)


def _returned(
    graph: Graph, targets: list | None, places: list, results: tuple, named: list
) -> tuple[Returned, ...]:
    if not results or targets is None:
        return ()
    names = {id(tensor): name for name, tensor in reversed(named)}
    found = []
    for (path, target), (node, number), result in zip(targets, places, results, strict=True):
        name = path if path and not path.startswith("[") else names.get(id(target), path)
        found.append(Returned(name, node, number, None if result is None else summarize(result)))
    return tuple(found)

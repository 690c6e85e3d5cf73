"""What each tool is asked to do with a subject. Tools are imported where they are used."""

import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NAMES = ("inside_autograd", "torchviz", "torchview", "torchlens")


@dataclass(frozen=True)
class Job:
    """One thing that is measured. A drawing's ``run`` returns its SVG, as bytes.

    Attributes
    ----------
    run
        What is timed. It takes what ``prepare`` or the job named ``after`` returned, or ``None``.
    prepare
        What is done before each run and not timed. ``None`` where nothing is used up, so that a
        short run can be repeated.
    after
        The name of the job whose last result it goes on from; that one's time counts too.
    weighed
        Whether its memory is measured.
    """

    run: Callable
    prepare: Callable | None = None
    after: str | None = None
    weighed: bool = False


def jobs(tool: str, model, inputs: tuple) -> list[dict[str, Job]]:
    """Groups of jobs: those of a group take turns. What may never end comes last."""
    return {
        "inside_autograd": _inside_autograd,
        "torchviz": _torchviz,
        "torchview": _torchview,
        "torchlens": _torchlens,
    }[tool](model, inputs)


def _inside_autograd(model, inputs):
    from inside_autograd import Graph, draw, replay

    def loss():
        return model(*inputs)

    out = loss()
    params = dict(model.named_parameters())  # as the others get them
    return [
        {
            "capture": Job(lambda _: Graph.of(out, params, saved=False)),
            "capture_saved": Job(lambda _: Graph.of(out, params)),
        },
        {
            "folded": Job(lambda _: draw(out, model, fold=True).svg.encode(), weighed=True),
            "unfolded": Job(lambda _: draw(out, params, fold=False).svg.encode(), weighed=True),
        },
        # A pass frees its graph, so each run has one of its own.
        {
            "backward": Job(lambda out: out.backward(), loss),
            "replay": Job(lambda out: replay(out, params=model), loss),
        },
    ]


def _torchviz(model, inputs):
    from torchviz import make_dot

    out = model(*inputs)
    params = dict(model.named_parameters())
    return [
        {
            "capture": Job(lambda _: make_dot(out, params=params)),
            "capture_saved": Job(lambda _: make_dot(out, params=params, show_saved=True)),
        },
        {"unfolded": Job(lambda _: dot(make_dot(out, params=params).source), weighed=True)},
    ]


def _torchview(model, inputs):
    """It follows the forward pass, and runs it to do so."""
    from torchview import draw_graph

    def trace(_):
        return draw_graph(model, input_data=inputs, expand_nested=True, depth=20, device="cpu").visual_graph

    return [
        {"trace": Job(trace)},
        {"forward": Job(lambda _: dot(trace(None).source), weighed=True)},
    ]


def _torchlens(model, inputs):
    """It follows the forward pass, and runs it to do so; then it can follow a backward pass as well."""
    import torchlens
    from torchlens.options import CaptureOptions

    warnings.simplefilter("ignore")
    options = CaptureOptions(backward_ready=True)

    def backward(trace):
        return trace.log_backward(trace[trace.output_layers[0]].out)

    return [
        {
            "trace": Job(lambda _: torchlens.trace(model, list(inputs), capture=options)),
            "forward_folded": Job(lambda t: saved(t.draw, fold_repeats=True), after="trace", weighed=True),
            "forward": Job(lambda t: saved(t.draw), after="trace", weighed=True),
            "capture": Job(backward, after="trace"),
        },
        {
            "unfolded": Job(lambda t: saved(t.draw_backward), after="capture", weighed=True),
        },
    ]


def saved(draw: Callable, kind: str = "svg", **options) -> bytes:
    """What torchlens draws, which it writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph"
        draw(vis_outpath=str(path), vis_save_only=True, vis_fileformat=kind, **options)
        return path.with_suffix(f".{kind}").read_bytes()


def dot(source: str, *options: str) -> bytes:
    """What Graphviz makes of a text."""
    command = ["dot", *(options or ("-Tsvg",))]
    return subprocess.run(command, input=source.encode(), capture_output=True, check=True).stdout

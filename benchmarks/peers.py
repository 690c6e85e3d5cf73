"""What each tool is asked to do with a subject. Tools are imported where they are used."""

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

NAMES = ("inside_autograd", "torchviz", "torchview", "torchlens")


def jobs(tool: str, model, inputs: tuple) -> dict[str, tuple[Callable, Callable]]:
    """For each measure: ``prepare()``, which is not timed, and ``run(prepared)``, which is.

    ``prepare`` is ``None`` where nothing is used up, so that a run can be repeated. What a drawing's
    ``run`` returns is its SVG, as bytes.
    """
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
    return {
        "capture": (None, lambda _: Graph.of(out, model, saved=False)),
        "capture_saved": (None, lambda _: Graph.of(out, model)),
        "unfolded": (None, lambda _: draw(out, model, fold=False).svg.encode()),
        "folded": (None, lambda _: draw(out, model, fold=True).svg.encode()),
        # A pass frees its graph, so each run has one of its own.
        "backward": (loss, lambda out: out.backward()),
        "replay": (loss, lambda out: replay(out, params=model)),
    }


def _torchviz(model, inputs):
    from torchviz import make_dot

    out = model(*inputs)
    params = dict(model.named_parameters())
    return {
        "capture": (None, lambda _: make_dot(out, params=params)),
        "capture_saved": (None, lambda _: make_dot(out, params=params, show_saved=True)),
        "unfolded": (None, lambda _: _dot(make_dot(out, params=params).source)),
    }


def _torchview(model, inputs):
    """It follows the forward pass, and runs it to do so."""
    from torchview import draw_graph

    def capture(_=None):
        return draw_graph(model, input_data=inputs, expand_nested=True, depth=20, device="cpu").visual_graph

    return {"capture": (None, capture), "unfolded": (None, lambda _: _dot(capture().source))}


def _torchlens(model, inputs):
    """It follows the forward pass, and runs it to do so; it draws that pass."""
    import warnings

    import torchlens

    warnings.simplefilter("ignore")

    def capture(_=None):
        return torchlens.trace(model, list(inputs))

    def draw(_=None):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "graph"
            capture().draw(vis_outpath=str(path), vis_save_only=True, vis_fileformat="svg")
            return path.with_suffix(".svg").read_bytes()

    return {"capture": (None, capture), "unfolded": (None, draw)}


def _dot(source: str) -> bytes:
    return subprocess.run(["dot", "-Tsvg"], input=source.encode(), capture_output=True, check=True).stdout

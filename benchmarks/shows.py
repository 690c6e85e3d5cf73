"""What a picture tells: two models that differ in one thing are drawn, and the drawings compared.

A tool shows that thing if its two pictures differ in what a reader sees. Prints one line of JSON:
for each question, for each tool, ``true``, ``false`` or the name of the error.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

SIZE = 6


class Probe(nn.Module):
    """``run(self, h, x)`` with ``h`` the product of the input ``x`` and a parameter.

    The parameter has all of the ``names``. ``passed`` says that a backward pass was made before the
    graph is drawn.
    """

    def __init__(self, run: Callable, *names: str, passed: bool = False):
        super().__init__()
        self.run, self.passed, self.names = run, passed, names or ("w",)
        weight = nn.Parameter(torch.ones(SIZE))
        for name in self.names:
            self.register_parameter(name, weight)
        self.register_buffer("known", torch.full((SIZE,), 2.0))
        self.part = Double()

    def forward(self, x):
        return self.run(self, getattr(self, self.names[0]) * x, x).sum()

    def result(self, x):
        out = self(x)
        if self.passed:
            out.backward()
        return out


class Double(nn.Module):
    """An operation in a module of its own."""

    def forward(self, h):
        return h * 2.0


QUESTIONS: dict[str, tuple[Probe, Probe]] = {
    "the parameter's name": (
        Probe(lambda self, h, x: h),
        Probe(lambda self, h, x: h, "bias"),
    ),
    "every name of a shared parameter": (
        Probe(lambda self, h, x: h, "w", "head"),
        Probe(lambda self, h, x: h, "w", "embedding"),
    ),
    "both edges of `h * h`": (
        Probe(lambda self, h, x: h * h),
        Probe(lambda self, h, x: h * self.known),
    ),
    "which output of `unbind` is used": (
        Probe(lambda self, h, x: h.unbind(0)[0]),
        Probe(lambda self, h, x: h.unbind(0)[1]),
    ),
    "how many outputs `split` has": (
        Probe(lambda self, h, x: h.split([2, 4])[0]),
        Probe(lambda self, h, x: h.split([2, 2, 2])[0]),
    ),
    "which input needs no gradient": (
        Probe(lambda self, h, x: torch.cat([h, self.known])),
        Probe(lambda self, h, x: torch.cat([self.known, h])),
    ),
    "that a pass has freed what was saved": (
        Probe(lambda self, h, x: h * h),
        Probe(lambda self, h, x: h * h, passed=True),
    ),
    "the shape of a result in between": (
        Probe(lambda self, h, x: h.sum(0, keepdim=True).expand(4)),
        Probe(lambda self, h, x: h.sum(0, keepdim=True).expand(8)),
    ),
    "an argument, such as `beta` of `softplus`": (
        Probe(lambda self, h, x: nn.functional.softplus(h, beta=2.0)),
        Probe(lambda self, h, x: nn.functional.softplus(h, beta=4.0)),
    ),
    "the module that an operation is in": (
        Probe(lambda self, h, x: self.part(h)),
        Probe(lambda self, h, x: h * 2.0),
    ),
    "an operation that needs no gradient": (
        Probe(lambda self, h, x: h * x.sin()),
        Probe(lambda self, h, x: h * x.cos()),
    ),
}


def _ours(model, x, full: bool) -> str:
    from inside_autograd import draw

    svg = draw(model.result(x), model, saved=full).svg
    words = "desc|style" if full else "title|desc|style"  # a title shows when a reader points at a box
    return re.sub(rf"<({words})>.*?</\1>", "", svg)


def _torchviz(model, x, full: bool) -> str:
    from torchviz import make_dot

    params = dict(model.named_parameters(remove_duplicate=False))
    return make_dot(model.result(x), params=params, show_attrs=full, show_saved=full).source


def _torchview(model, x, full: bool) -> str:
    from torchview import draw_graph

    return draw_graph(model, input_data=(x,), expand_nested=True, depth=20, device="cpu").visual_graph.source


def _torchlens(model, x, full: bool, backward: bool = False) -> str:
    import warnings

    import torchlens
    from peers import saved
    from torchlens.options import CaptureOptions

    warnings.simplefilter("ignore")
    trace = torchlens.trace(model, [x], capture=CaptureOptions(backward_ready=True))
    if backward:
        trace.log_backward(trace[trace.output_layers[0]].out)
    draw = trace.draw_backward if backward else trace.draw
    options = {"show_saved_for_backward": True} if full and not backward else {}
    return saved(draw, **options).decode()


TOOLS = {
    "inside_autograd": _ours,
    "torchviz": _torchviz,
    "torchlens, backward": lambda *given: _torchlens(*given, backward=True),
    "torchlens, forward": _torchlens,
    "torchview": _torchview,
}


def same_names(text: str) -> str:
    """The text with addresses numbered in the order in which they come, and without comments."""
    found: dict[str, str] = {}
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\d{9,}", lambda match: found.setdefault(match[0], f"#{len(found)}"), text)


def shows(tool: str, question: str) -> bool | str:
    """Whether the tool's pictures differ: by itself, or only with all that it can add (``"option"``)."""
    for full in (False, True):
        try:
            first, second = (same_names(TOOLS[tool](m, torch.ones(SIZE), full)) for m in QUESTIONS[question])
        except Exception as error:  # what a tool cannot draw is part of the result
            return type(error).__name__
        if first != second:
            return "option" if full else True
    return False


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    torch.manual_seed(0)
    print(json.dumps({"shows": {q: {tool: shows(tool, q) for tool in TOOLS} for q in QUESTIONS}}))

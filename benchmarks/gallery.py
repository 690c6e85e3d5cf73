"""The part of the page that shows the same models as each tool draws them."""

from html import escape

OURS = "inside_autograd"
SCREEN = 900  # px: the height of a screen
FOLDER = "_static/bench"
TITLES = {
    "cnn-32": "A residual network of 32 blocks",
    "transformer-12": "A transformer encoder of 12 layers",
}
NAMES = {
    OURS: "This helper: `draw(loss, params=model)`",
    "torchviz": "torchviz: `make_dot(loss, params)`",
    "torchlens": "torchlens: `trace(model, inputs).draw()`",
    "torchlens-folded": "torchlens, folded: `draw(fold_repeats=True)`",
}
WORDS = {
    OURS: """\
The backward graph, the way gradients flow. Modules that repeat are one box, with their names and a count:
click on it, and one of them is drawn below. Parameters have their names and shapes. Left out: the forward
pass, with its inputs, its constants and the arguments of its calls; the names of modules that do not
repeat; shapes between the boxes, until you point at one; and the other repeats, until you draw with
`fold=False`.""",
    "torchviz": """\
The backward graph in full, with names and shapes of parameters; its arrows run against the gradients, from
parameters to the output. Left out: any folding, so that no screen shows how the model is built; which
output of an operation an arrow comes from; inputs that need no gradient; what is freed.""",
    "torchlens": """\
The forward pass in full, drawn from below: each result with its shape and bytes, the parameters of a call,
some of its arguments, such as a kernel size, and a frame around each module. None of this is in a backward
graph. Left out: the backward pass. torchlens draws that too, in a picture as large, without the names of
parameters.""",
    "torchlens-folded": """\
The forward pass, each module a box, equal ones counted: it shows at a glance how the model is built. Left
out: everything inside of a module, and the backward pass.""",
}
ALTS = {
    "torchviz": "A slanting thread of boxes too small to read; beside it its top at full size, a few boxes.",
    "torchlens": "A thread of ovals too small to read; beside it its top at full size, three results.",
    "torchlens-folded": "A column of ovals and boxes, the input below, the output above; one box is counted.",
}
INTRODUCTION = """\
The same models by each tool, as it draws them when told no more than what stands above the picture. A
picture that is far larger than this page is shown twice: on the left all of it, shrunk to one screen; on the
right its top at full size."""


def gallery(pictures: dict) -> list[str]:
    """Lines of Markdown; ``pictures`` has what is known of each, by subject and tool.

    Of a drawing with folded boxes, ``closed`` is what a page shows of it before a click.
    """
    lines = ["## The same model, drawn", "", INTRODUCTION]
    for key, tools in pictures.items():
        lines += ["", f"### {TITLES[key]}"]
        for tool, facts in tools.items():
            lines += ["", f"**{NAMES[tool]}**. {_size(facts)} {WORDS[tool]}", "", *_picture(key, tool, facts)]
    return lines


def _size(facts: dict) -> str:
    drawn = f"{_counts(facts)}; {facts['bytes'] / 1e3:,.0f} kB."
    closed = facts.get("closed")
    if not closed:
        return drawn
    return f"{_counts(closed)} before a click. The saved file shows one of the repeats as well: {drawn}"


def _counts(facts: dict) -> str:
    width, height = facts["size"]
    screens = round(height / SCREEN)
    tall = f", {screens} screens tall" if screens > 1 else ""
    return f"{facts['boxes']} boxes and {facts['edges']} arrows on {width:,} by {height:,} px{tall}"


def _picture(key: str, tool: str, facts: dict) -> list[str]:
    if tool == OURS:
        return ["```{raw} html", f":file: bench_{key}.html", "```"]
    width, height = facts["shown"]
    source = f"../{FOLDER}/{key}-{tool}.webp"
    style = "display:block;max-width:100%;height:auto;margin-bottom:2rem"
    alt = f"{TITLES[key]}, drawn by {tool.partition('-')[0]}. {ALTS[tool]}"
    return [
        "```{raw} html",
        f'<img src="{source}" width="{width}" height="{height}" loading="lazy" style="{style}"',
        f'alt="{escape(alt)}">',
        "```",
    ]

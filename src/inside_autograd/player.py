"""A recording as an HTML fragment that steps through the drawing."""

import json
from collections import Counter
from dataclasses import dataclass, fields
from functools import cache
from html import escape
from importlib.resources import files

from .drawing import html as drawing_html
from .drawing import picture as draw_picture
from .graph import ACCUMULATE
from .marks import arrow_of, arrows, grey, labels, short, stubs
from .narrate import Narrator
from .recording import Recording, Step
from .svg import Picture

FOLD_ABOVE = 120  # nodes, as for ``draw``
ROOM = 8  # px below the lowest boxes, for what `.grad` holds
MAX_STEPS = 300  # that a page shows
MAX_DETAILED = 60  # steps; in longer recordings the large values are not spelled out


def player(recording: Recording) -> str:
    """The recording as a self-contained HTML fragment: the drawing, stepped.

    It brings its own style and script and needs nothing else. Without JavaScript, or where a viewer
    does not trust a notebook, it is the drawing and an ordered list of the steps. At most 300 steps
    are shown; ``recording.steps`` has them all.
    """
    return _Player(recording).html()


@cache
def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class _Marked(Picture):
    """A picture with marks that only a page with style and script can use; a file of its own goes without."""

    extra: str = ""

    def svg(self, *, alone: bool = False, label: bool = True) -> str:
        if alone:
            return super().svg(alone=True)
        return super().svg(label=label).removesuffix("</svg>") + self.extra + "</svg>"


class _Player:
    def __init__(self, recording: Recording):
        self.recording = recording
        self.graph = recording.graph
        self.steps = recording.steps[:MAX_STEPS]
        self.narrator = Narrator(recording)
        self.picture = draw_picture(self.graph, fold=len(self.graph) > FOLD_ABOVE, room=ROOM)
        self.drawn = arrows(self.picture)
        self.arrow_of = arrow_of(self.graph, self.picture, self.drawn)

    def html(self) -> str:
        items = [self._start(), *(self._step(step) for step in self.steps), self._end()]
        count = f"{len(self.steps):,} step{'' if len(self.steps) == 1 else 's'}"
        left_out = len(self.recording.steps) - len(self.steps)
        note = (
            f"<p>{left_out:,} more steps are not shown here: recording.steps has them all.</p>"
            if left_out
            else ""
        )
        drawing = drawing_html(self._marked())
        return (
            '<div class="iap" role="group" aria-label="Backward pass, step by step" tabindex="-1" '
            f'data-lm-suppress-shortcuts="true"><style>{_file("player.css")}</style>{drawing}{note}'
            f"<details open><summary>{count} in words</summary>"
            f'<ol start="0">{"".join(items)}</ol></details><script>{_file("player.js")}</script></div>'
        )

    def _marked(self) -> "_Marked":
        """The drawing with everything on it that steps bring to light."""
        ran = {self.picture.key_of[step.node] for step in self.recording.steps}
        never = {key for key in self.picture.key_of if key not in ran}
        body = grey(self.picture.body, never)
        ports = {str(node.index) for node in self.graph.nodes if len(node.outputs) > 1}
        boxes = [
            (x, y - 12, w, h + 12) if key in ports else (x, y, w, h)
            for key, (x, y, w, h) in self.picture.boxes.items()
        ]
        extra = labels(self._values(), self.drawn, boxes + stubs(self.picture))
        members = Counter(self.picture.key_of)
        first = {step.node: step.number for step in reversed(self.steps)}
        for index, key in enumerate(self.picture.key_of):
            if members[key] > 1:
                continue
            x, y, width, height = self.picture.boxes[key]
            if self.narrator.labels[index].endswith(f" #{index}"):
                extra += _index(index, x, y)
            if index in first:
                extra += _badge(key, first[index], x + width, y)
            if self.graph.nodes[index].kind == ACCUMULATE:
                place = f'x="{x + width // 2}" y="{y + height + 12}"'
                extra += f'<text class="iap-g" data-g="{key}" {place}></text>'
        facts = {field.name: getattr(self.picture, field.name) for field in fields(Picture)}
        return _Marked(**{**facts, "body": body}, extra=extra)

    def _values(self) -> dict[str, str]:
        """The label of each arrow that stands for one edge alone."""
        shared: dict[str, int] = {}
        for key in self.arrow_of.values():
            shared[key] = shared.get(key, 0) + 1
        found = {}
        for start, key in zip(self.recording.starts, self._root_keys(), strict=True):
            if key in self.drawn:
                found[key] = short(start.value)
        for step in self.steps:
            for sent in step.sent:
                arrow = self.arrow_of.get((step.node, sent.slot))
                if arrow and shared[arrow] == 1 and sent.wanted:
                    found[arrow] = "nothing" if sent.value is None else short(sent.value)
        return found

    def _root_keys(self) -> list[str]:
        """The key of the arrow of each start; outputs into one folded box share an arrow."""
        members = Counter(self.picture.key_of)
        groups: dict[tuple, str] = {}
        keys = []
        for number, start in enumerate(self.recording.starts):
            box = self.picture.key_of[start.node]
            folded = members[box] > 1
            keys.append(groups.setdefault((box, None if folded else number), f"r{len(groups)}"))
        return keys

    def _start(self) -> str:
        state = {"e": [[key, 1] for key in dict.fromkeys(self._root_keys())]}
        return _item(state, self.narrator.start())

    def _step(self, step: Step) -> str:
        key = self.picture.key_of[step.node]
        state: dict = {"n": key, "i": step.node}
        edges: dict[str, int] = {}
        for sent in step.sent:
            arrow = self.arrow_of.get((step.node, sent.slot))
            if arrow and sent.wanted:
                kind = 0 if sent.value is None else 2 if sent.value.nonfinite else 1
                edges[arrow] = max(edges.get(arrow, 0), kind)
        if edges:
            state["e"] = [list(pair) for pair in edges.items()]
        if self.graph.nodes[step.node].kind == ACCUMULATE and step.finished:
            state["g"] = [short(step.before), short(step.after)]
        if not step.finished:
            state["x"] = 1
        elif step.nonfinite:
            state["f"] = 1
        details = self._details(step) if len(self.steps) <= MAX_DETAILED else []
        return _item(state, self.narrator.step(step), details)

    def _details(self, step: Step) -> list[str]:
        """What is known of large values, which the sentence only names."""
        values = [("received", entry.value) for entry in step.received]
        values += [
            (f"sent to {self.narrator.labels[e.target]}", e.value) for e in step.sent if e.target is not None
        ]
        values.append((".grad after", step.after))
        return [f"{name}: {value}" for name, value in values if value is not None and value.numbers is None]

    def _end(self) -> str:
        state: dict = {}
        returned = {
            self.picture.key_of[entry.node]: short(entry.value)
            for entry in self.recording.returned
            if entry.node is not None
        }
        if returned:
            state["r"] = [list(pair) for pair in returned.items()]
        if len(self.steps) < len(self.recording.steps):
            state["a"] = 1
        return _item(state, self.narrator.end())


def _item(state: dict, sentence: str, details: list[str] | None = None) -> str:
    more = f"<small>{'<br>'.join(escape(line, quote=False) for line in details)}</small>" if details else ""
    data = escape(json.dumps(state, separators=(",", ":")))
    return f'<li data-s="{data}"><span>{escape(sentence, quote=False)}</span>{more}</li>'


def _index(index: int, x: int, y: int) -> str:
    """The number of a node left of its box, or above it where the picture ends."""
    text = f"#{index}"
    place = f'x="{x - 3}" y="{y + 11}"'
    if x - 3 < 6 * len(text):
        place = f'x="{x}" y="{y - 3}" style="text-anchor: start"'
    return f'<text class="iap-i" {place}>{text}</text>'


def _badge(key: str, number: int, right: int, y: int) -> str:
    width = 10 + 6 * len(str(number))
    x = right + 2 - width
    return (
        f'<g class="iap-k" data-k="{key}"><rect x="{x}" y="{y - 10}" width="{width}" height="16" rx="8"/>'
        f'<text x="{x + width // 2}" y="{y + 1}">{number}</text></g>'
    )

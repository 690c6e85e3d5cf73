"""Nothing in a drawing covers anything else: measured on the SVG, over every shape and at random."""

import random
from collections import Counter
from itertools import combinations, pairwise

import pytest
import torch

from geometry import SVG, Arrow, Box, Index, Piece, Seen, Words, grown, overlap, see, within
from graphs import NAMES, random_graph, varied_graph
from inside_autograd import Drawing, Graph, draw
from inside_autograd.graph import Edge, Node, Output, Root
from inside_autograd.svg import Picture
from pictures import CAPTURED, captured, panels_of

BESIDE, BELOW = 23, 20  # px between boxes of a layer, and between layers
CLEAR = 3  # px between an arrow and a box that it passes
WIDE = 10_000  # px: such a drawing is panned, not looked at
APART = 4  # px between parallel arrows, where not more than five arrive at one place


def neighbors(boxes: dict[str, Box], dx: float, dy: float) -> list[tuple[str, str]]:
    """Pairs that are less than dx px apart sideways and less than dy px apart in height."""
    index = Index(boxes)
    near = {key: index.near((b[0] - dx, b[1] - dy, b[2] + dx, b[3] + dy)) for key, b in boxes.items()}
    return [(a, b) for a, found in near.items() for b in found if a < b]


def check_boxes(seen: Seen) -> None:
    found = neighbors(seen.extents, BESIDE, BELOW)
    assert not found, f"boxes too close: {found[:5]}"
    sheet = (0, 0, seen.width, seen.height)
    outside = [key for key, box in seen.extents.items() if not within(box, sheet)]
    assert not outside, f"boxes beyond the edge of the picture: {outside[:5]}"
    outside = [words.text for words in seen.captions + seen.labels if not within(words.box, sheet)]
    assert not outside, f"words beyond the edge of the picture: {outside[:5]}"


def check_words(seen: Seen) -> None:
    """Words stand inside what they label, and cover no other words."""
    for key, words in seen.words.items():
        left, top, right, bottom = seen.outlines[key]
        homes = [(left + 1, top, right - 1, bottom), *seen.ports[key]]
        homes += [seen.panels[key]] if key in seen.panels else []
        stubs = (left, bottom, right, bottom + 22)
        for one in words:
            below = one.box[1] > bottom and "ag-p" not in one.style
            home = stubs if below else next((h for h in homes if overlap(one.box, h)), None)
            assert home and within(one.box, home), f"{one.text!r} leaves box {key}"
        _no_overlap(words)
    solid = {f"box {key}": box for key, box in seen.outlines.items()}
    solid |= {f"panel {key}": box for key, box in seen.panels.items()}
    solid |= {f"port {key}.{i}": box for key, ports in seen.ports.items() for i, box in enumerate(ports)}
    solid |= {f"{one.text!r} {key}.{i}": one.box for key, w in seen.words.items() for i, one in enumerate(w)}
    index = Index(solid)
    for words in seen.labels:
        found = index.near(words.box)
        assert not found, f"label {words.text!r} lies on {found[0]}"
        met = [arrow.key for arrow in seen.arrows if any(piece.meets(words.box) for piece in arrow.pieces)]
        assert not met, f"arrow {met[0]} crosses label {words.text!r}"
    _no_overlap(seen.labels)
    _no_overlap(seen.captions)


def _no_overlap(words: list[Words]) -> None:
    index = Index({str(i): one.box for i, one in enumerate(words)})
    for i, one in enumerate(words):
        found = [words[int(j)].text for j in index.near(one.box) if int(j) != i]
        assert not found, f"{one.text!r} lies on {found[0]!r}"


class Ends:
    """Finds the boxes that an arrow leaves and reaches, and the port there, by where it starts and ends."""

    def __init__(self, seen: Seen):
        self.outlines = seen.outlines
        self.ports = {
            (key, i): port
            for key, box in seen.outlines.items()
            for i, port in enumerate(seen.ports[key] or [box])
        }
        self.bottoms, self.tops = Index(self.outlines), Index(self.ports)

    def of(self, arrow: Arrow) -> tuple[str, str, Box]:
        (x0, y0), (x1, y1) = arrow.start, arrow.end
        source = [k for k in self.bottoms.near(around(x0, y0)) if self.outlines[k][3] == y0]
        target = [k for k in self.tops.near(around(x1, y1)) if self.ports[k][1] == y1]
        assert len(source) == len(target) == 1, f"arrow {arrow.key} leaves {source} and reaches {target}"
        return source[0], target[0][0], self.ports[target[0]]


def around(x: float, y: float) -> Box:
    return x - 0.1, y - 0.1, x + 0.1, y + 0.1


def check_arrows(graph: Graph, picture: Picture, seen: Seen) -> None:
    # An arrow that swings very far leaves its layer at a slant.
    above = CLEAR if seen.width < WIDE else 0
    extents = {k: (b[0] - CLEAR, b[1] - above, b[2] + CLEAR, b[3] + above) for k, b in seen.extents.items()}
    index = Index(extents)
    ends = Ends(seen)
    targets = {f"{edge.source}-{edge.slot}": edge.target for edge in graph.edges}
    parallel: dict[tuple[str, str, Box], list[Arrow]] = {}
    for arrow in seen.arrows:
        source, target, port = ends.of(arrow)
        if "-" in arrow.key:
            assert source == picture.key_of[int(arrow.key.split("-")[0])]
            node = targets[arrow.key]
            assert target == ("cut" if node is None else picture.key_of[node])
        _check_path(seen, index, extents, arrow, {source, target})
        parallel.setdefault((source, target, port), []).append(arrow)
    for arrow in seen.dotted:
        own = [k for k, panel in seen.panels.items() if panel[2] <= arrow.start[0] <= panel[2] + 150
               and panel[1] < arrow.start[1] < panel[3]]  # fmt: skip
        own += [k for k, b in seen.outlines.items() if b[1] == arrow.end[1] and b[0] <= arrow.end[0] <= b[2]]
        _check_path(seen, index, extents, arrow, set(own))
    arrivals = Counter(pair[1:] for pair, arrows in parallel.items() for _ in arrows)
    for pair, arrows in parallel.items():
        # The narrowest box has 20 px for all that arrive; half px are the finest that is drawn.
        least = min(APART, max(0.5, 20 / max(1, arrivals[pair[1:]] - 1) - 0.5))
        for one, other in combinations(arrows, 2):
            far = distance(one, other)
            assert far >= least, (
                f"arrows {one.key} and {other.key} from {pair[0]} to {pair[1]}: {far:.1f} px apart"
            )


def _check_path(seen: Seen, index: Index, extents: dict[str, Box], arrow: Arrow, own: set[str]) -> None:
    for piece in arrow.pieces:
        assert piece.y1 >= piece.y0, f"arrow {arrow.key} runs up"
        left, right = sorted((piece.x0, piece.x1))
        assert left >= 0 and right <= seen.width
        for key in index.near((left, piece.y0, right + 0.01, piece.y1)):
            if key in own:
                # What hangs on its own boxes keeps clear of it too; it may touch the edge of the box.
                hanging = [w.box for w in seen.words[key] if w.box[1] > seen.outlines[key][3]]
                for inner in [grown(seen.outlines[key], -0.5), *hanging]:
                    assert not piece.meets(inner), f"arrow {arrow.key} crosses its own box {key}"
            else:
                assert not piece.meets(extents[key]), f"arrow {arrow.key} crosses box {key}"
    for one, two in pairwise(arrow.pieces):
        assert (one.x1, one.y1) == (two.x0, two.y0), f"arrow {arrow.key} breaks off"


def distance(one: Arrow, other: Arrow) -> float:
    """The least distance sideways, at any height where both are; negative where they cross."""
    top, bottom = max(one.start[1], other.start[1]), min(one.end[1], other.end[1])
    heights = {top, bottom} | {piece.y1 for arrow in (one, other) for piece in arrow.pieces}
    heights = sorted(y for y in heights if top <= y <= bottom)
    heights += [a + (b - a) * part / 8 for a, b in pairwise(heights) for part in range(1, 8)]
    apart = [one.x_at(y) - other.x_at(y) for y in heights]
    return max(min(apart), -max(apart))


def check(drawing: Drawing) -> None:
    """Nothing covers anything in the drawing, nor in what its boxes hold."""
    for picture in [drawing.picture, *(panel.picture for panel in panels_of(drawing))]:
        seen = see(picture.svg(alone=True))
        assert set(seen.outlines) == set(picture.boxes)
        check_boxes(seen)
        check_words(seen)
        check_arrows(drawing.graph, picture, seen)


@pytest.mark.parametrize("fold", [False, True], ids=["whole", "folded"])
@pytest.mark.parametrize("name", CAPTURED)
def test_shapes(name, fold):
    check(draw(captured(name), fold=fold))
    if len(captured(name)) < 700:
        check(draw(captured(name), fold=fold, saved=True))


@pytest.mark.parametrize("seed", range(140))
def test_random_graphs(seed):
    graph = varied_graph(seed) if seed % 4 else random_graph(seed)
    for fold in (False, True):
        check(draw(graph, fold=fold, saved=seed % 2 == 0, title="A heading" if seed % 5 == 0 else None))


def named_function(name: str) -> type[torch.autograd.Function]:
    """A custom Function of any name that takes two tensors and gives three, the second without gradient."""

    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        order = a.argsort()
        ctx.mark_non_differentiable(order)
        return a * b, order, a + b

    def backward(ctx, of_product, _, of_sum):
        a, b = ctx.saved_tensors
        return of_product * b + of_sum, of_product * a + of_sum

    parts = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type(name, (torch.autograd.Function,), parts)


def random_program(seed: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """A few real operations on real tensors, and the names of the leaves."""
    rng = random.Random(seed)
    leaves = {f"{rng.choice(NAMES)}.{i}": torch.ones(6, requires_grad=True) for i in range(rng.randint(1, 9))}
    made = list(leaves.values())
    function = named_function(rng.choice(["F", "Ünïcode", "A" * 60, "Layer_Norm_2d"]))

    def pick() -> torch.Tensor:
        return rng.choice(made[-rng.choice([2, 5, len(made)]) :])

    for _ in range(rng.choice([3, 12, 40])):
        a, b = pick(), pick()
        step = rng.randrange(8)
        if step == 0:
            made.append(a * b)
        elif step == 1:
            made.append(torch.where(a > 2, a.sin(), b))
        elif step == 2:
            made.append(torch.cat(rng.sample(a.split(rng.choice([1, 2, 3])), 2)).sum() * b)
        elif step == 3:
            made.append(torch.stack([pick() for _ in range(rng.choice([2, 5, 30]))]).mean(0))
        elif step == 4:
            made += function.apply(a, b)[::2]
        elif step == 5:
            changed = a * 1
            changed[1:3].mul_(b[0])
            made.append(changed)
        elif step == 6:
            made.append(a.topk(6).values + a.sort().values * 2)
        else:
            made.append(torch.nn.functional.layer_norm(a, (6,), b, None))
    return made[-1].sum() + made[0].sum(), leaves


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    graph = Graph.of(*random_program(seed))
    for fold in (False, True):
        check(draw(graph, fold=fold, saved=seed % 2 == 0))


def node(index: int, name: str, edges: list[Edge], outputs: int = 1) -> Node:
    made = tuple(Output(i, (2,), "float32", "cpu") for i in range(outputs))
    return Node(index, name, "op" if edges else "accumulate", outputs=made, edges=tuple(edges))


def test_many_arrows_between_two_boxes_stay_apart():
    """Eight parallel arrows to one port, and thirty to another box."""
    nodes = (
        node(0, "AddBackward0", [Edge(0, slot, 1, 0) for slot in range(8)]),
        node(1, "StackBackward0", [Edge(1, slot, 2, 0) for slot in range(30)]),
        node(2, "AccumulateGrad", []),
    )
    drawing = draw(Graph(nodes, (Root("", 0, 0, ()),)))
    check(drawing)
    assert len(see(drawing.svg).arrows) == 39


# --- the measure itself: each check finds what is wrong


@pytest.fixture
def sound() -> Seen:
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seen = see(draw((a * b).sum(), {"a": a, "b": b}).svg)
    check_boxes(seen)
    check_words(seen)
    return seen


def test_a_curve_is_where_its_formula_says():
    curve = Piece(0, 0, 100, 40)
    assert curve.x_at(0) == pytest.approx(0, abs=1e-6)
    assert curve.x_at(20) == pytest.approx(50)
    # t = 1/4: x = 100 * (3/16 - 2/64), y = 40 * (1.5 * 3/16 + 1/64).
    assert curve.x_at(40 * 19 / 64) == pytest.approx(15.625)
    assert curve.meets((40, 15, 60, 25))
    assert not curve.meets((60, 5, 90, 15))
    assert not Piece(5, 0, 5, 10).meets((6, 2, 8, 4))
    assert Piece(5, 0, 5, 10).meets((4, 2, 8, 4))


def test_letters_are_measured():
    text = '<text x="50" y="20">abcd</text>'
    (words,) = see(f'<svg xmlns="{SVG[1:-1]}" width="9" height="9" viewBox="0 0 9 9">{text}</svg>').labels
    assert words.box == pytest.approx((50 - 2 * 7.224, 11, 50 + 2 * 7.224, 22.4), abs=0.02)


def test_boxes_too_close_are_found(sound):
    _, top, right, bottom = sound.extents["2"]
    sound.extents["3"] = (right + 22, top, right + 50, bottom)
    with pytest.raises(AssertionError, match="boxes too close"):
        check_boxes(sound)


def test_a_box_beyond_the_edge_is_found(sound):
    sound.width = sound.extents["3"][2] - 1
    with pytest.raises(AssertionError, match="beyond the edge"):
        check_boxes(sound)


def test_words_that_leave_their_box_are_found(sound):
    left, top, right, bottom = sound.outlines["0"]
    sound.outlines["0"] = (left + 30, top, right - 30, bottom)
    with pytest.raises(AssertionError, match="'SumBackward0' leaves box 0"):
        check_words(sound)


def test_a_label_on_a_box_is_found(sound):
    sound.labels.append(Words("×2", sound.outlines["1"], ()))
    with pytest.raises(AssertionError, match="label '×2' lies on"):
        check_words(sound)


def test_a_box_in_an_arrows_way_is_found(sound):
    a = torch.ones(2, requires_grad=True)
    drawing = draw((a.sin() * a).sum(), {"a": a})
    seen = see(drawing.svg)
    check_arrows(drawing.graph, drawing.picture, seen)
    (long,) = [arrow for arrow in seen.arrows if arrow.key == "1-1"]
    x, y = long.pieces[1].x1, long.pieces[1].y1
    seen.extents["3"] = (x + 2, y - 5, x + 9, y + 5)  # that of sin, which the arrow passes
    with pytest.raises(AssertionError, match="arrow 1-1 crosses box 3"):
        check_arrows(drawing.graph, drawing.picture, seen)


def test_parallel_arrows_that_touch_are_found():
    a = torch.ones(2, requires_grad=True)
    drawing = draw(a * a, {"a": a})
    seen = see(drawing.svg)
    one, other = (arrow for arrow in seen.arrows if arrow.key in ("0-0", "0-1"))
    far = distance(one, other)
    assert far >= 12
    aside = far - 2 if one.start[0] > other.start[0] else 2 - far
    other.pieces = [Piece(p.x0 + aside, p.y0, p.x1 + aside, p.y1) for p in other.pieces]
    with pytest.raises(AssertionError, match=r"arrows 0-0 and 0-1 from 0 to 1: 2\.0 px apart"):
        check_arrows(drawing.graph, drawing.picture, seen)

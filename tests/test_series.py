"""Folding by module path: what a person who knows the model would call one box."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from inside_autograd import Graph, draw
from inside_autograd.fold import MOST_BOXES, fold
from inside_autograd.inside import insides
from inside_autograd.modules import instance_of, owners, title
from inside_autograd.repeats import run_order
from test_fold import check_whole


class Block(nn.Module):
    """Seven operations: two linear layers (each with the transpose of its weight), tanh, relu, sum."""

    def __init__(self, width: int = 4, extra: bool = False):
        super().__init__()
        self.lin1, self.lin2, self.extra = nn.Linear(width, width), nn.Linear(width, width), extra

    def forward(self, x):
        h = torch.tanh(self.lin1(x))
        return x + torch.relu(self.lin2(h.sin() if self.extra else h))


class Stack(nn.Module):
    """An input layer, then the blocks ``layers`` in the order given; the loss is the mean square."""

    def __init__(self, blocks, order=None, stem: bool = True):
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.order = range(len(self.layers)) if order is None else order
        self.stem = nn.Linear(4, 4) if stem else nn.Identity()

    def forward(self, x):
        x = self.stem(x)
        for number in self.order:
            x = self.layers[number](x)
        return x.square().mean()


def blocks(many: int) -> list[Block]:
    return [Block() for _ in range(many)]


def graph_of_model(model, x=None, params=None, **limits) -> Graph:
    x = torch.ones(2, 4) if x is None else x
    return Graph.of(model(x), model if params is None else params, **limits)


def heads(graph: Graph) -> list[str]:
    """The first lines of the folded boxes, in the order of the engine."""
    folded = fold(graph)
    check_whole(folded)
    return [box.lines[0] for box in folded.boxes if box.folded]


def test_a_series_of_equal_layers_is_one_box():
    folded = fold(graph_of_model(Stack(blocks(12))))
    (box,) = [box for box in folded.boxes if box.folded]
    assert box.lines == ("layers.0…11 ×12", "7 operations each", "→ 4 parameters each")
    assert len(box.members) == 12 * (7 + 4)
    # mean, pow, and the stem: addmm, its bias; its weight is transposed
    assert len(folded.boxes) == 1 + 2 + 4


@pytest.mark.parametrize(
    ("order", "head"),
    [
        (range(11, -1, -1), "layers.0…11 ×12"),
        ([0, 2, 4, 6, 8], "layers.0,2…8 ×5"),
        ([0, 1, 3, 4, 7, 9, 11], "layers.0…11 in part ×7"),
        ([3, 5], "layers.3,5 ×2"),
        ([6, 7], "layers.6…7 ×2"),
        ([0, 1, 2] * 6, "layers.0…2 ×6 steps"),
        ([4] * 9, "layers.4.lin1…2 ×9 steps"),
    ],
)
def test_the_title_says_which_layers(order, head):
    assert heads(graph_of_model(Stack(blocks(12), order))) == [head]


def test_a_layer_that_differs_stays_apart():
    model = Stack([Block(extra=i == 5) for i in range(12)])
    folded = fold(graph_of_model(model))
    lines = [box.lines[:2] for box in folded.boxes if box.folded]
    assert lines == [
        ("layers.6…11 ×6", "7 operations each"),
        ("layers.5", "8 operations"),
        ("layers.0…4 ×5", "7 operations each"),
    ]


def test_layers_that_alternate_fold_in_pairs():
    folded = fold(graph_of_model(Stack([Block(extra=i % 2 == 0) for i in range(12)])))
    (box,) = [box for box in folded.boxes if box.folded]
    assert box.lines[:2] == ("layers.0…11 ×6", "15 operations in 2 modules each")


def test_shapes_must_be_equal():
    """Four layers of other widths each: nothing is alike, and so few nodes stay as they are."""
    widths = [3, 4, 5, 6, 7]
    model = nn.Sequential(*[nn.Linear(a, b) for a, b in pairwise(widths)])
    folded = fold(graph_of_model(model, torch.ones(2, 3)))
    assert not any(box.folded for box in folded.boxes if len(box.members) > 2)


def test_an_input_without_gradient_is_said():
    """Without a stem the input needs no gradient: the products of layers.0 with it are missing."""

    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))

        def forward(self, x):
            return (x.exp() * self.w).sin() + x.cos().sqrt()

    folded = fold(graph_of_model(Stack([Scaled() for _ in range(5)], stem=False)))
    (box,) = [box for box in folded.boxes if box.folded]
    # exp, mul, sin, add, cos, sqrt; in layers.0 only mul, sin and add need a gradient
    assert box.lines == (
        "layers.0…4 ×5",
        "6 operations each",
        "3 in layers.0; its input needs no gradient",
        "→ 1 parameter each",
    )
    assert box.repeats[box.sample][0] == "layers.1"


def test_two_layers_fold_although_the_first_is_smaller():
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    (box,) = [b for b in fold(graph_of_model(net, torch.ones(2, 5, 16))).boxes if b.folded]
    assert box.lines[0] == "layers.0…1 ×2"
    assert box.lines[2].endswith("in layers.0; its input needs no gradient")


def test_names_missing_for_some_layers_split_the_series():
    model = Stack(blocks(12))
    some = {k: v for k, v in model.named_parameters() if not k.startswith(("layers.3.", "layers.4."))}
    graph = graph_of_model(model, params=some)
    assert heads(graph) == ["layers.5…11 ×7", "7 operations ×2", "layers.0…2 ×3"]


def test_without_names_the_pattern_folds_as_such():
    graph = Graph.of(Stack(blocks(12))(torch.ones(2, 4)))
    assert heads(graph) == ["7 operations ×12"]


@pytest.mark.parametrize(
    ("prefix", "head"),
    [
        ("model.layers.", "model.layers.0…11 ×12"),
        ("h", "h0…11 ×12"),
        (r"la(y+e[rs].*\d", r"la(y+e[rs].*\d0…11 ×12"),
        ("2x.", "2x.0…11 ×12"),
    ],
)
def test_any_name_may_hold_the_number(prefix, head):
    model = Stack(blocks(12))
    params = {k.replace("layers.", prefix): v for k, v in model.named_parameters()}
    assert heads(graph_of_model(model, params=params)) == [head]
    assert draw(graph_of_model(model, params=params), fold=True)._repr_html_()


def test_a_number_in_the_middle_counts():
    model = Stack(blocks(5))
    params = {
        k.replace("layers.", "enc_").replace(".lin", "_block.lin"): v for k, v in model.named_parameters()
    }
    assert heads(graph_of_model(model, params=params)) == ["enc_0…4_block ×5"]


def test_lists_in_lists_fold_outside_first():
    stages = nn.ModuleList([nn.ModuleList(blocks(4)) for _ in range(5)])

    class Staged(nn.Module):
        def __init__(self):
            super().__init__()
            self.stages = stages

        def forward(self, x):
            for stage in self.stages:
                for block in stage:
                    x = block(x)
                x = x.sin()
            return x.mean()

    folded = fold(graph_of_model(Staged()))
    assert [b.lines[:2] for b in folded.boxes if b.folded] == [("stages.0…4 ×5", "29 operations each")]


def test_stages_of_other_shapes_fold_inside():
    """As in a residual net: the stages differ in width, the blocks of a stage are alike."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Linear(4, 4)
            self.stage1 = nn.Sequential(*[Block(4) for _ in range(3)])
            self.down = nn.Linear(4, 6)
            self.stage2 = nn.Sequential(*[Block(6) for _ in range(5)])

        def forward(self, x):
            return self.stage2(self.down(self.stage1(self.stem(x)))).mean()

    assert heads(graph_of_model(Net())) == [
        "stage2.0…4 ×5",
        "stage1.0…2 ×3",
    ]


def test_layers_without_parameters_between_belong_to_the_series():
    net = nn.Sequential(*[m for _ in range(40) for m in (nn.Linear(4, 4), nn.GELU())])
    folded = fold(graph_of_model(net))
    (box,) = [box for box in folded.boxes if box.folded]
    assert box.lines[0] == "0,2…78 ×40"
    # addmm, the transposed weight, gelu
    assert sorted(box.lines[1:4]) == ["AddmmBackward0", "GeluBackward0", "TBackward0"]


def test_an_unrolled_cell_is_counted_in_steps():
    cell, head = nn.LSTMCell(4, 8), nn.Linear(8, 1)
    h, c = torch.zeros(2, 8), torch.zeros(2, 8)
    for _ in range(30):
        h, c = cell(torch.ones(2, 4), (h, c))
    params = {"head": head, "cell": cell}
    folded = fold(Graph.of(head(h).mean(), params))
    (box,) = [box for box in folded.boxes if box.folded]
    assert box.lines == (
        "cell ×30 steps",
        "15 operations each",
        "→ 4 parameters, the same at each step",
    )
    # The head is no part of a step, although its transposed weight stands where a step's does.
    names = {folded.graph.nodes[i].names for i in box.members} - {()}
    assert names == {(f"cell.{kind}_{of}",) for kind in ("weight", "bias") for of in ("ih", "hh")}


def test_one_layer_under_many_names_is_counted_in_steps():
    block = Block()
    assert heads(graph_of_model(Stack([block] * 12))) == ["layers ×12 steps"]


def test_the_cut_stays_outside():
    graph = graph_of_model(Stack(blocks(40)), max_path=50)
    folded = fold(graph)
    check_whole(folded)
    (box,) = [
        box
        for box in folded.boxes
        if box.lines and box.lines[0].startswith("layers.") and "×" in box.lines[0]
    ]
    assert box.lines[0].endswith("layers.31…39 ×9")
    assert "cut here" in draw(graph, fold=True).svg


def test_outputs_and_named_values_stay_out_of_a_series():
    model = Stack(blocks(12))
    x, kept = torch.ones(2, 4), None
    x = model.stem(x)
    for number, layer in enumerate(model.layers):
        x = layer(x)
        kept = x if number == 5 else kept
    graph = Graph.of({"last": x, "middle": kept}, model)
    folded = fold(graph)
    check_whole(folded)
    for root in graph.roots:
        assert folded.boxes[folded.box_of[root.node]].members == (root.node,)


def test_where_nothing_repeats_modules_are_boxes():
    widths = list(range(3, 25))
    model = nn.ModuleDict()
    for number, (a, b) in enumerate(pairwise(widths)):
        model[f"part{number}"] = nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, b))
    x = torch.ones(2, 3)
    for number in range(len(model)):
        x = model[f"part{number}"](x)
    folded = fold(Graph.of(x.mean(), model))
    check_whole(folded)
    assert len(folded.boxes) <= 60
    assert {"part0", "part7", "part20"} <= {box.lines[0] for box in folded.boxes if box.folded}


def test_thousands_of_repeats_are_one_box():
    leaves = [torch.ones(2, requires_grad=True) for _ in range(3000)]
    graph = Graph.of(
        torch.stack([(w * 2).sin() for w in leaves]), {f"b.{i}.w": w for i, w in enumerate(leaves)}
    )
    folded = fold(graph)
    check_whole(folded)
    assert [box.lines[0] for box in folded.boxes if box.folded] == ["b.0…2999 ×3,000"]


@pytest.mark.parametrize("seed", range(12))
def test_random_names_on_random_models_fold_whole(seed):
    generator = torch.Generator().manual_seed(seed)

    def pick(most: int) -> int:
        return int(torch.randint(most, (), generator=generator))

    made = [Block(extra=bool(pick(2))) for _ in range(8)]
    model = Stack(made, [pick(8) for _ in range(40)])
    words = ["a", "b.0", "b.1", "c3", "c4.x", "7", "d.1.2"]
    params = {f"{words[pick(len(words))]}.{i}.{pick(3)}": p for i, p in enumerate(model.parameters())}
    folded = fold(graph_of_model(model, params=params))
    check_whole(folded)
    assert len(folded.boxes) <= MOST_BOXES
    for inside in insides(folded):
        assert inside.folded.part


def test_which_module_an_operation_belongs_to():
    graph = graph_of_model(Stack([Block()]))
    order = run_order(graph)
    named = {graph.nodes[i].name: path for i, path in zip(order, owners(graph, order), strict=True) if path}
    assert named == {"AddmmBackward0": ("stem",), "TBackward0": ("stem",)}  # the last ones of each name
    paths = owners(graph, order)
    assert [".".join(path) for path in paths if path] == [
        *["layers.0.lin2"] * 2, *["layers.0.lin1"] * 2, *["stem"] * 2,
    ]  # fmt: skip


def test_instances_and_their_titles():
    path = ("encoder", "layers", "3", "head2", "q")
    outer, inner = instance_of(path, 0), instance_of(path, 1)
    assert (title([outer]), title([inner])) == ("encoder.layers.3", "encoder.layers.3.head2")
    assert instance_of(path, 2) is None and instance_of((), 0) is None
    numbers = [instance_of(("net", str(n)), 0) for n in (0, 4, 2)]
    assert title(numbers) == "net.0,2,4"
    assert (
        title([instance_of((f"conv{n}",), 0) for n in (1, 2)] + [instance_of(("bn1",), 0)]) == "conv1…2, bn1"
    )
    assert instance_of(("9" * 5000,), 0)  # too long for one number

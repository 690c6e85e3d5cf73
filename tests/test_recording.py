"""What a recording holds, against runs worked out by hand."""

from functools import partial

import pytest
import torch
from torch.autograd.graph import get_gradient_edge

from inside_autograd.narrate import labels
from inside_autograd.replay import replay
from inside_autograd.values import Value, number_text, summarize
from shapes import SHAPES


def xw():
    return torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)


def lines(recording):
    return str(recording).split("\n")


def texts(entries):
    return [entry.value and entry.value.text for entry in entries]


def test_a_product_by_hand():
    """y = x w w at x = 2, w = 3: dy/dx = 9, dy/dw = 2 x w = 12, in two parts of 6."""
    x, w = xw()
    recording = replay(x * w * w, params={"x": x, "w": w})
    assert lines(recording) == [
        "backward starts: gradient 1 to MulBackward0 #0.",
        "1. MulBackward0 #0 received 1, sent 3 to MulBackward0 #2 and 6 to w. Freed: other, self.",
        "2. MulBackward0 #2 received 3, sent 9 to x and 6 to w. Freed: other, self.",
        "3. x received 9: x.grad goes from None to 9.",
        "4. w received 12 (6 + 6): w.grad goes from None to 12.",
        "Done: 4 of 4 nodes ran.",
    ]
    first = recording.steps[0]
    assert (first.number, first.node, first.name) == (1, 0, "MulBackward0")
    assert [(sent.slot, sent.input_nr, sent.value.text) for sent in first.sent] == [(0, 0, "3"), (1, 0, "6")]
    assert [recording.graph.nodes[sent.target].name for sent in first.sent] == [
        "MulBackward0",
        "AccumulateGrad",
    ]
    assert [(start.path, start.node, start.value.text) for start in recording.starts] == [("", 0, "1")]
    assert (recording.call, recording.error, recording.never_ran) == ("backward", None, ())


def test_a_second_pass_adds_to_grad():
    x, w = xw()
    replay(x * w, params={"x": x, "w": w})
    again = replay(x * w, params={"x": x, "w": w})
    assert lines(again)[2:4] == [
        "2. x received 3: x.grad goes from 3 to 6.",
        "3. w received 2: w.grad goes from 2 to 4.",
    ]
    step = again.steps[1]
    assert (step.before.text, step.after.text, step.sent, step.finished) == ("3", "6", (), True)


def test_the_order_is_the_engine_s_own():
    seen = []

    def note(name, _):
        seen.append(name)

    outputs, params = SHAPES["tuple_over_one_trunk"]()
    stack = [output.grad_fn for output in outputs]
    while stack:
        node = stack.pop()
        if node is not None and "mark" not in node.metadata:
            node.metadata["mark"] = True
            node.register_prehook(partial(note, node.name().split("::")[-1]))
            stack += [target for target, _ in node.next_functions]
    recording = replay(outputs, params=params)
    assert [step.name for step in recording.steps] == seen
    assert len(seen) == len(recording.graph) == 16


def test_autograd_grad_leaves_out_what_nobody_asked_for():
    x, w = xw()
    recording = replay(x * w * w, wrt=[x], params={"x": x, "w": w})
    names = labels(recording.graph)
    assert [names[index] for index in recording.order] == ["MulBackward0 #0", "MulBackward0 #2"]
    assert sorted(names[index] for index in recording.never_ran) == ["w", "x"]
    assert [(sent.value and sent.value.text, sent.wanted) for sent in recording.steps[0].sent] == [
        ("3", True),
        (None, False),
    ]
    (returned,) = recording.returned
    assert (names[returned.node], returned.input_nr, returned.value.text) == ("x", 0, "9")
    assert lines(recording)[1:] == [
        "1. MulBackward0 #0 received 1, sent 3 to MulBackward0 #2, and computed nothing for w (not asked "
        "for). Freed: other, self.",
        "2. MulBackward0 #2 received 3, sent 9 to x, and computed nothing for w (not asked for). "
        "Freed: other, self.",
        "Done: 2 of 4 nodes ran. autograd.grad returned 9 for x; .grad was left alone. Never ran: w and x.",
    ]
    assert (x.grad, w.grad) == (None, None)


def test_autograd_grad_of_something_in_the_middle():
    x, w = xw()
    h = x * w
    recording = replay(h * h, wrt={"middle": h, "edge": get_gradient_edge(h)}, params={"x": x})
    assert [(entry.name, entry.value.text) for entry in recording.returned] == [
        ("middle", "12"),
        ("edge", "12"),
    ]
    assert recording.order == (0,)
    assert recording.steps[0].sent[0].wanted


def test_a_custom_function_computes_what_is_dropped():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a + b

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, grad * 5

    recording = replay(Both.apply(a, b).sum(), wrt=[a], params={"a": a, "b": b})
    sent = recording.steps[1].sent
    assert [(entry.value.text, entry.wanted) for entry in sent] == [("[2, 2, 2]", True), ("[5, 5, 5]", False)]
    assert "sent [2, 2, 2] to a, and dropped what it computed for b (not asked for)." in str(recording)


def test_an_input_that_is_not_used():
    x, w = xw()
    recording = replay(x * 2, wrt=[x, w], params={"x": x, "w": w})
    assert recording.error.type == "RuntimeError" and recording.error.step is None
    assert "not have been used in the graph" in recording.error.message
    assert lines(recording)[-1].startswith("Ended by an error in no node's own step: RuntimeError: ")
    allowed = replay(x * 2, wrt=[x, w], params={"x": x, "w": w}, allow_unused=True)
    assert [(entry.name, entry.node, entry.value) for entry in allowed.returned[1:]] == [("w", None, None)]
    assert "returned 2 for x and None for w" in str(allowed)
    zeros = replay(x * 2, wrt=[x, w], materialize_grads=True, keep_grads=True)
    assert [grad.item() for grad in zeros.grads] == [2.0, 0.0]


class TwoOut(torch.autograd.Function):
    materialize = True
    seen = ()

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(TwoOut.materialize)
        return x * 1, x * 2

    @staticmethod
    def backward(ctx, first, second):
        TwoOut.seen += ((first is None, second is None),)
        return second * 2


@pytest.mark.parametrize("materialize", [True, False])
def test_undefined_is_told_apart_from_the_zeros_that_a_function_was_given(materialize):
    TwoOut.materialize, TwoOut.seen = materialize, ()
    x = torch.ones(3, requires_grad=True)
    _, second = TwoOut.apply(x)
    recording = replay(second.sum(), params={"x": x})
    assert TwoOut.seen == ((not materialize, False),)
    first, other = recording.steps[1].received
    assert (first.number, first.value, other.value.text, other.given) == (0, None, "[1, 1, 1]", None)
    if materialize:
        assert first.given.text == "[0, 0, 0]" and first.given.is_zero
        said = "received nothing (its backward was given zeros) for output 0 and [1, 1, 1] for output 1"
    else:
        assert first.given is None
        said = "received nothing for output 0 and [1, 1, 1] for output 1"
    assert said in str(recording)


def test_zeros_that_arrive_are_not_undefined():
    x = torch.ones(3, requires_grad=True)
    first, second = TwoOut.apply(x)
    TwoOut.materialize = True
    recording = replay((first * 0 + second).sum(), params={"x": x})
    received = next(step for step in recording.steps if step.name == "TwoOutBackward").received
    assert texts(received) == ["[0, 0, 0]", "[1, 1, 1]"]
    assert [entry.given for entry in received] == [None, None]


def test_vjp_and_boxed_functions_are_seen_too():
    class Boxed(torch.autograd.Function):
        boxed_grads_call = True

        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, grads):
            return grads[0] + grads[1]

    class Vjp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1, x * 2

        @staticmethod
        def vjp(ctx, first, second):
            return first + second

    for function in (Boxed, Vjp):
        x = torch.ones(3, requires_grad=True)
        recording = replay(function.apply(x)[1].sum(), params={"x": x})
        assert recording.error is None
        assert recording.steps[1].received[0].given.is_zero
        assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_unused_outputs_of_built_in_operations():
    outputs, params = SHAPES["some_outputs_unused"]()
    recording = replay(outputs, params=params)
    unbind = next(step for step in recording.steps if step.name == "UnbindBackward0")
    assert texts(unbind.received) == [None, None, "[1, 1]"]


def test_an_undefined_gradient_reaches_a_leaf():
    class NoneForB(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    recording = replay(NoneForB.apply(a, b).sum(), params={"a": a, "b": b})
    assert "sent [1, 1] to a and nothing to b." in str(recording)
    assert "b received nothing: b.grad stays empty." in str(recording)
    assert b.grad is None


def test_what_was_freed():
    x, w = xw()
    loss = (x * w).exp()
    kept = replay(loss, retain_graph=True)
    assert [step.freed for step in kept.steps] == [(), (), (), ()]
    run = replay(loss)
    assert [step.freed for step in run.steps] == [("result",), ("other", "self"), (), ()]
    again = replay(loss)
    assert [step.freed for step in again.steps] == [()]
    assert [node.freed for node in again.graph.nodes] == [True, True, False, False]


def test_the_recording_ends_with_the_node_that_raised():
    x, w = xw()
    h = x * w
    torch.autograd.grad(h, x)
    recording = replay(h + 1, params={"x": x, "w": w})
    assert [step.name for step in recording.steps] == ["AddBackward0", "MulBackward0"]
    last = recording.steps[-1]
    assert (last.finished, last.sent, texts(last.received)) == (False, (), ["1"])
    assert (recording.error.type, recording.error.step) == ("RuntimeError", 2)
    assert "backward through the graph a second time" in recording.error.message
    assert lines(recording)[2].startswith("2. MulBackward0 received 1, and raised RuntimeError: Trying to")
    assert lines(recording)[3] == "Ended by the error in step 2: 2 of 4 nodes ran. Never ran: x and w."
    assert (x.grad, w.grad) == (None, None)


def test_errors_of_functions_and_hooks():
    class WrongShape(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return torch.ones(7)

    x = torch.ones(3, requires_grad=True)
    recording = replay(WrongShape.apply(x).sum())
    assert recording.error.step == 2
    assert "returned an invalid gradient at index 0 - got [7]" in recording.error.message

    h = x * 2
    h.register_hook(lambda grad: 1 / 0)
    recording = replay(h.sum())
    assert (recording.error.type, recording.error.step, len(recording)) == ("ZeroDivisionError", None, 1)

    h = x * 2
    h.grad_fn.register_hook(lambda *_: 1 / 0)
    recording = replay(h.sum())
    assert (recording.error.type, recording.error.step) == ("ZeroDivisionError", 2)


def test_anomaly_mode_names_the_step_that_made_the_nan():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="Error detected in Sqrt"):
        recording = replay(torch.where(x > 0, x.sqrt(), 0).sum())
    assert "Function 'SqrtBackward0' returned nan values" in recording.error.message
    assert recording.steps[recording.error.step - 1].name == "SqrtBackward0"


def test_nan_and_infinity_are_marked_where_they_first_appear():
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    recording = replay((torch.where(x > 0, x.sqrt(), 0) * 2).sum(), params={"x": x})
    assert [step.name for step in recording.steps if step.nonfinite] == ["SqrtBackward0"]
    assert recording.first_nonfinite.name == "SqrtBackward0"
    assert "sent [nan, 1] to x. Freed: result. NaN appears here." in str(recording)

    y = torch.tensor(0.0, requires_grad=True)
    recording = replay(y.sqrt(), params={"y": y})
    assert "sent inf to y. Freed: result. Infinity appears here." in str(recording)
    assert [step.number for step in recording.steps if step.nonfinite] == [1]

    # It came in with the first gradient: no step made it.
    recording = replay(y * 2, gradient=torch.tensor(float("nan")))
    assert recording.first_nonfinite is None

    # Finite gradients whose sum in .grad overflows.
    z = torch.tensor(1.0, dtype=torch.float16, requires_grad=True)
    z.grad = torch.tensor(60000.0, dtype=torch.float16)
    recording = replay(z * 60000.0, params={"z": z})
    assert recording.first_nonfinite.node == 1
    assert "z.grad goes from 60000 to inf. Infinity appears here." in str(recording)


def test_several_roots_and_explicit_gradients():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    outputs = {"a": x * 3, "b": [(x * x).sum(), None]}
    recording = replay(outputs, gradient={"a": torch.tensor([1.0, 10.0])}, params={"x": x})
    assert x.grad.tolist() == [3.0 + 2.0, 30.0 + 4.0]
    assert [(start.path, start.value.text) for start in recording.starts] == [("a", "[1, 10]"), ("b[0]", "1")]
    assert "x received [5, 34] ([1, 2] + [1, 2] + [3, 30])" in str(recording)


def test_the_same_output_twice():
    x, w = xw()
    y = x * w
    recording = replay([y, y], params={"x": x, "w": w})
    assert x.grad.item() == 6
    assert "MulBackward0 received 2 (1 + 1)" in str(recording)


def test_a_hook_that_changes_a_gradient_is_seen():
    x, w = xw()
    h = x * w
    h.register_hook(lambda grad: grad * 10)
    recording = replay(h * 2, params={"x": x, "w": w})
    assert "MulBackward0 #1 received 20 (changed on the way, by a hook or in place, from 2)" in str(recording)


def test_what_is_recorded_is_what_was_there_at_the_time():
    """The second backward formula overwrites the gradient that it received."""

    class InPlace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(100)

    x = torch.ones(2, requires_grad=True)
    recording = replay((InPlace.apply(x * 3) * 2).sum(), params={"x": x})
    assert [texts(step.received) for step in recording.steps] == [
        ["1"],
        ["[1, 1]"],
        ["[2, 2]"],
        ["[200, 200]"],
        ["[600, 600]"],
    ]


def test_reentrant_runs_are_recorded_where_they_use_the_same_graph():
    x, w = xw()
    inner = x * w

    class RunsInner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, h):
            return h * 1

        @staticmethod
        def backward(ctx, grad):
            (found,) = torch.autograd.grad(inner, x, retain_graph=True)
            return grad * found

    recording = replay(RunsInner.apply(inner), params={"x": x, "w": w})
    assert recording.error is None
    assert [step.name for step in recording.steps[:3]] == [
        "RunsInnerBackward",
        "MulBackward0",
        "MulBackward0",
    ]
    assert [texts(step.received) for step in recording.steps[:3]] == [["1"], ["1"], ["3"]]
    assert [step.finished for step in recording.steps] == [True] * 5


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (torch.tensor(2.0), "2"),
        (torch.tensor([1.0, 2.0, 4.0]), "[1, 2, 4]"),
        (torch.tensor([[0.1, 0.25], [1 / 3, 1.140625]]), "[[0.1, 0.25], [0.33333, 1.140625]]"),
        (torch.tensor([float("nan"), -float("inf"), -0.0]), "[nan, -inf, 0]"),
        (torch.tensor([1 + 2j, -1j]), "[1+2j, -1j]"),
        (torch.tensor(0.1, dtype=torch.float16), "0.1"),
        (torch.tensor(0.1, dtype=torch.bfloat16), "0.1"),
        (torch.tensor([True, False]), "[True, False]"),
        (torch.tensor(2.0**60), "1.1529e+18"),
        (torch.tensor(16777216.0), "16777216"),
        (torch.ones(3, 4), "(3, 4) all 1"),
        (torch.arange(8.0), "(8,) norm 11.83"),  # 0 + 1 + 4 + ... + 49 = 140
        (torch.tensor([float("nan")] * 2 + [1.0] * 6), "(8,) 2 NaN"),
        (torch.tensor([float("inf"), float("nan")] + [1.0] * 6), "(8,) 1 NaN, 1 inf"),
        (torch.empty(0, 3), "empty (0, 3)"),
        (torch.empty(3, 4, device="meta"), "(3, 4) meta"),
        (torch.eye(3).to_sparse(), "(3, 3) sparse_coo [1, 1, 1]"),
        (
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
            "nested [1, 1, 1, 1, 1]",
        ),
        (torch.ones(2, 2).to_mkldnn(), "(2, 2) _mkldnn [[1, 1], [1, 1]]"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_values_in_short(tensor, text):
    assert summarize(tensor).text == text


def test_a_large_value_in_full():
    value = summarize(torch.arange(-1.0, 9.0, dtype=torch.float64).reshape(2, 5))
    assert (value.shape, value.dtype, value.numbers, value.first) == (
        (2, 5),
        "float64",
        None,
        (-1.0, 0.0, 1.0),
    )
    assert (value.minimum, value.maximum, value.mean, value.nan, value.inf) == (-1.0, 8.0, 3.5, 0, 0)
    assert value.norm == pytest.approx((1 + 140 + 64) ** 0.5)
    assert str(value) == "(2, 5) float64: min -1, max 8, mean 3.5, norm 14.32, first values -1, 0, 1"


def test_figures_of_a_value_with_nan_are_those_of_the_rest():
    for size in (3, 9):  # below and above the limit of what is shown whole
        tensor = torch.full((size,), 2.0)
        tensor[0] = float("nan")
        value = summarize(tensor)
        assert (value.nan, value.inf, value.minimum, value.maximum, value.mean) == (1, 0, 2.0, 2.0, 2.0)
        assert value.norm == pytest.approx((4 * (size - 1)) ** 0.5)
        assert value.nonfinite


def test_describing_a_value_changes_nothing():
    tensor = torch.ones(3, requires_grad=True) * 2
    version = tensor._version
    assert summarize(tensor) == Value(
        "[2, 2, 2]",
        (3,),
        "float32",
        "strided",
        (2.0, 2.0, 2.0),
        (2.0, 2.0, 2.0),
        2.0,
        2.0,
        2.0,
        12**0.5,
        0,
        0,
    )
    assert tensor._version == version
    sparse = torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,), check_invariants=True)
    assert summarize(sparse).text == "(2,) sparse_coo [3]"
    assert not sparse.is_coalesced()


def test_values_of_subclasses_do_not_call_back():
    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            raise AssertionError("called back")

    assert summarize(torch.ones(2).as_subclass(Loud)).text == "[1, 1]"


@pytest.mark.parametrize(
    ("number", "dtype", "text"),
    [
        (0.10000000149011612, "float32", "0.1"),
        (0.10000000149011612, "float64", "0.1"),
        (1 / 3, "float64", "0.33333"),
        (0.0009765625, "float32", "0.0009765625"),
        (1e-30, "float64", "1e-30"),
        (123456.789, "float64", "1.2346e+05"),
        (-100000.0, "float32", "-100000"),
        (3, "int64", "3"),
        (1234567890, "int64", "1.2346e+09"),
    ],
)
def test_numbers(number, dtype, text):
    assert number_text(number, dtype) == text


def test_long_recordings_are_cut_in_text_only():
    outputs, params = SHAPES["fan_in_1500"]()
    recording = replay(outputs, params=params)
    said = lines(recording)
    assert len(recording) == len(recording.graph) == 3002
    assert len(said) == 1 + 400 + 1 + 1
    assert said[-2] == "... and 2,602 more steps (recording.steps has them all)"
    assert said[2].endswith(" and more to 1,494 others.")


def test_a_gradient_changed_in_place_is_not_said_to_come_from_a_hook():
    class Spoils(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(2)

    x = torch.ones(2, requires_grad=True)
    text = str(replay((Spoils.apply(x) + x).sum(), params={"x": x}))
    assert "a hook changed" not in text

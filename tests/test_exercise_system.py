"""The machinery behind ``ex.name.check``: sandbox, sources, values, reports, progress."""

import json
import multiprocessing
import random
import sys
import threading
import time
import warnings

import numpy
import pytest
import torch

from inside_autograd import exercises as ex
from inside_autograd.exercises import Case, Exercise, Mistake, _progress, _sandbox, _source, observe_gradient
from inside_autograd.exercises._values import difference, same, write


def code(text: str, name: str = "cubed"):
    return _source.execute(text, name)


def case(label: str, *shape: int) -> Case:
    return Case(label, lambda g: (torch.randn(shape, generator=g).requires_grad_(),))


def toy(**changes) -> Exercise:
    facts = {
        "name": "cubed",
        "chapter": "00",
        "title": "Cube",
        "minutes": 2,
        "difficulty": 1,
        "statement": "Return the cube of `x`.",
        "kind": "function",
        "starter": "def cubed(x):\n    ...\n",
        "answer": "cubed",
        "hints": ("Multiply.", "Three factors."),
        "reference": "def cubed(x):\n    return x * x * x\n",
        "mistakes": (
            Mistake("squared", "You squared it.", "def cubed(x):\n    return x * x\n"),
            Mistake("tripled", "You multiplied by 3.", "def cubed(x):\n    return 3 * x\n"),
            Mistake("summed", "You summed.", "def cubed(x):\n    return (x**3).sum()\n"),
        ),
        "cases": (case("the example", 3), case("one element", 1), case("no dimension"), case("empty", 0)),
        "observe": observe_gradient,
    }
    return Exercise(**(facts | changes))


QUESTION = toy(
    name="which",
    kind="choice",
    starter="answer = ...",
    answer="answer",
    reference='answer = "b"',
    mistakes=(Mistake("a", "Not a, because.", 'answer = "a"'),),
    choices={"a": "one", "b": "two"},
    explains="It is two.",
    cases=(),
    observe=None,
)


# ------------------------------------------------------------------ verdicts


@pytest.mark.parametrize(
    "answer",
    [..., "def cubed(x):\n    ...\n", 'def cubed(x):\n    """Doc."""\n    ...\n'],
)
def test_dots_are_not_attempted(answer):
    answer = code(answer) if isinstance(answer, str) else answer
    assert toy().check(answer).status == "not attempted"


@pytest.mark.parametrize("body", ["pass", "return None", "return ...", "x = ...", '"""Only a docstring."""'])
def test_anything_else_is_an_attempt(body):
    assert toy().check(code(f"def cubed(x):\n    {body}\n")).status == "wrong value"


def test_a_class_of_dots_is_not_attempted_and_a_half_written_one_is_unfinished():
    task = toy(kind="Function", starter="class cubed(torch.autograd.Function): ...")
    head = "class cubed(torch.autograd.Function):\n"
    forward = "    @staticmethod\n    def forward(ctx, x):\n        {}\n"
    backward = "    @staticmethod\n    def backward(ctx, g):\n        ...\n"
    assert task.check(code(head + forward.format("...") + backward)).status == "not attempted"
    report = task.check(code(head + forward.format("return x**3") + backward))
    assert report.status == "unfinished"
    assert "backward still holds only" in report.message


@pytest.mark.parametrize("body", ["x**3", "x * x**2", "x.pow(3)"])
def test_right_answers_pass(body):
    assert toy().check(code(f"def cubed(x):\n    return {body}\n")).passed


@pytest.mark.parametrize(
    ("body", "key"), [("x**2", "squared"), ("x + x + x", "tripled"), ("sum(x**3)", None)]
)
def test_a_diagnosis_needs_the_same_behavior_in_every_case(body, key):
    report = toy().check(code(f"def cubed(x):\n    return {body}\n"))
    assert not report.passed
    assert report.diagnosis == key
    if key is None:
        assert "cause unknown" in report.message


def test_two_mistakes_that_fit_give_no_diagnosis():
    twice = (toy().mistakes[0], Mistake("also", "Another.", "def cubed(x):\n    return x.square()\n"))
    assert toy(mistakes=twice).check(lambda x: x * x).diagnosis is None


def test_a_right_value_with_a_wrong_gradient():
    report = toy().check(lambda x: x.detach() ** 3)
    assert report.status == "wrong gradient"
    assert ("your gradient 0", "None") in report.evidence


def test_right_for_the_example_only():
    report = toy().check(lambda x: x**3 if x.dim() and x.numel() != 1 else x)
    assert report.status == "right by accident"
    assert report.message.startswith("Right for some inputs, wrong for others.")


def test_the_smallest_failing_input_is_shown():
    report = toy(cases=(case("the example", 3), case("large", 50), case("small", 2))).check(
        lambda x: x**3 if x.numel() == 3 else x
    )
    assert report.case == "small"


def test_a_factor_is_named():
    rows = dict(toy().check(lambda x: 8 * x**3).evidence)
    assert rows["difference"] == "Every value is 8 times the true one."


def test_an_error_shows_the_learners_own_line():
    report = toy().check(code("def cubed(x):\n    y = x * 2\n    return y.cube()\n"))
    assert report.status == "raised"
    assert "AttributeError in line 3 of your code: `return y.cube()`" in report.message


@pytest.mark.parametrize("body", ["pass", "return None", "print(x**3)"])
def test_a_forgotten_return_is_named(body):
    report = toy().check(code(f"def cubed(x):\n    {body}\n"))
    assert report.message == "Your function returned None. Is a `return` missing?"


@pytest.mark.parametrize(
    ("value", "says"), [("None", "Is a `return` missing?"), ("3", "Your function returned 3,")]
)
def test_what_the_check_cannot_use_is_not_called_the_learners_error(value, says):
    task = toy(observe=lambda answer, x: {"result": answer(x).sum()})
    report = task.check(code(f"def cubed(x):\n    return {value}\n"))
    assert says in report.message
    assert "raised" not in report.message


def test_what_was_printed_is_shown_beside_what_is_wrong():
    report = toy().check(code("def cubed(x):\n    print('x is', x.shape[0])\n    return x\n"))
    assert ("your code printed", "x is 3") in report.evidence


def test_lines_of_the_standard_library_are_not_the_learners():
    report = toy().check(code("def cubed(x):\n    import json\n    return json.loads('{')\n"))
    assert "in line 3 of your code: `return json.loads('{')`" in report.message


def test_numbers_that_look_alike_are_shown_with_more_digits():
    rows = dict(toy().check(lambda x: x**3 * 1.0003).evidence)
    assert rows["your result"] != rows["expected result"]
    assert "difference" not in rows or "1 times" not in rows["difference"]


def test_an_error_in_backward_is_told_and_not_called_a_wrong_result():
    answer = code(
        "import torch\nclass Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x**3\n    @staticmethod\n    def backward(ctx, g):\n        return g, g, g\n"
        "def cubed(x):\n    return Cube.apply(x)\n"
    )
    report = toy().check(answer)
    assert report.message.startswith("Your function returned, and the backward pass through its result")
    assert "returned an incorrect number of gradients" in report.message


def test_the_name_of_the_learners_class_does_not_matter_for_the_diagnosis():
    function = (
        "class {0}(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x**3\n    @staticmethod\n    def backward(ctx, g):\n        return g, g\n"
        "def cubed(x):\n    return {0}.apply(x)\n"
    )
    mistake = Mistake("two", "One gradient for each argument.", "import torch\n" + function.format("Mine"))
    exercise = toy(mistakes=(mistake,))
    report = exercise.check(code("import torch\n" + function.format("Other")))
    assert report.diagnosis == "two"


def test_an_empty_input_is_shown_only_if_no_other_fails():
    shown = toy().check(code("def cubed(x):\n    return x**3 + (x.numel() < 3)\n"))
    assert shown.case == "one element"
    only = toy().check(code("def cubed(x):\n    return x**3 if x.numel() else x[None]\n"))
    assert only.case == "empty"


def test_what_was_looked_at_is_named_in_a_whole_sentence():
    exercise = toy(observe=lambda f, x: {"bytes kept": f(x).sum()}, mistakes=())
    report = exercise.check(code("def cubed(x):\n    return x**3 + 1\n"))
    assert report.message == "Not right: bytes kept. The cause is unknown to this check."


def test_lists_take_tensors_and_say_what_is_right_so_far():
    three = {"kind": "list", "starter": "cubed = (..., ...)", "cases": (), "observe": None}
    three |= {"reference": "cubed = (1, 8)", "mistakes": (Mistake("m", "No.", "cubed = (1, 4)"),)}
    assert toy(**three).check((torch.tensor(1), torch.tensor(8.0))).passed
    assert toy(**three).check(torch.tensor([1, 8])).passed
    assert ("so far", "right at place 1") in toy(**three).check((1, 9)).evidence
    assert ("so far", "2 values were asked for, yours are 1") in toy(**three).check((1,)).evidence
    words = three | {"reference": "cubed = ('b', 'a', 'b')"}
    words["mistakes"] = (Mistake("m", "No.", "cubed = ('a', 'a', 'a')"),)
    assert ("so far", "right at place 1, 2") in toy(**words).check(("b", "a", "a")).evidence
    assert ("so far", "3 values were asked for, yours are 2") in toy(**words).check(("b", "a")).evidence


def test_choices_do_not_mind_capitals():
    assert QUESTION.check(" B ").passed


def test_changing_an_input_is_a_side_effect():
    def cubed(x):
        x.data.mul_(1.5)
        return (x / 1.5) ** 3 * (1.5**3) / 3.375

    report = toy(observe=None, cases=(Case("the example", lambda g: (torch.ones(2),)),)).check(cubed)
    assert report.status == "side effect"
    assert report.message == "Right so far, but an input was changed in place."


def test_filling_grad_is_a_side_effect():
    def cubed(x):
        (x**3).sum().backward()
        return x**3

    assert toy().check(cubed).status == "side effect"


def test_questions():
    assert QUESTION.check().status == "not attempted"
    assert QUESTION.check("b").passed
    assert QUESTION.check("a").diagnosis == "a"
    assert QUESTION.check("c").status == "wrong type"
    page = QUESTION.check()._repr_html_()
    assert "<details><summary>a: one</summary><p>No. Not a, because.</p></details>" in page
    assert "<details><summary>b: two</summary><p>Right. It is two.</p></details>" in page


@pytest.mark.parametrize(
    ("kind", "answer", "says"),
    [
        ("function", 3, "A function was expected, got 3"),
        ("function", "x**3", "A function was expected, got 'x**3'"),
        ("function", None, "A function was expected, got None"),
        ("function", int, "got the class int"),
        ("function", lambda: 3, "must take (x); it cannot be called with 1 argument"),
        ("Function", torch.nn.ReLU, "A subclass of torch.autograd.function.Function was expected"),
        ("Module", torch.nn.ReLU(), "Got an instance, the class was expected"),
        ("tensor", 3.0, "A tensor was expected, got 3"),
        ("number", "3", "A number was expected, got '3'"),
        ("number", True, "A number was expected, got True"),
        ("number", torch.ones(1), "Use .item()"),
        ("list", 3, "A list was expected, got 3"),
    ],
)
def test_a_wrong_kind_of_answer_gets_one_sentence(kind, answer, says):
    report = toy(kind=kind).check(answer)
    assert report.status == "wrong type"
    assert says in report.message


class Hostile:
    """Raises whatever is asked of it."""

    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "kind", ["function", "Function", "Module", "tensor", "number", "choice", "list", "any"]
)
@pytest.mark.parametrize(
    "answer", [None, "text", Hostile(), Hostile, object(), torch.ones(2), float("nan"), [...], {}]
)
def test_nothing_makes_check_raise(kind, answer):
    exercise = QUESTION if kind == "choice" else toy(kind=kind)
    report = exercise.check(answer)
    assert not report.passed
    assert report.text()
    assert report._repr_html_()


# ------------------------------------------------------------------ sandbox


def state() -> tuple:
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        numpy.random.get_state()[1].tolist(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch._C._len_torch_function_stack(),
        torch.is_grad_enabled(),
        torch.is_anomaly_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        list(warnings.filters),
    )


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("torch.manual_seed(1)", "torch's random state"),
        ("import random; random.seed(1)", "Python's random state"),
        ("import numpy; numpy.random.seed(1)", "NumPy's random state"),
        ("torch.set_default_dtype(torch.float64)", "the default dtype"),
        ("torch.set_default_device('meta')", "the default device"),
        ("torch.set_grad_enabled(False)", "gradient mode"),
        ("torch.autograd.set_detect_anomaly(True)", "anomaly mode"),
        ("torch.use_deterministic_algorithms(True)", "deterministic mode"),
    ],
)
def test_global_state_is_put_back_and_named(line, name):
    before = state()
    answer = code(f"def cubed(x):\n    y = x**3\n    {line}\n    return y\n")
    # The deterministic switch imports a compiler at its first use, which takes its time.
    outcome = _sandbox.run(lambda: answer(torch.ones(1)), seconds=120)
    assert name in outcome.changed
    assert state() == before
    assert not toy().check(answer).passed
    assert state() == before


def test_warning_filters_are_put_back():
    before = list(warnings.filters)
    _sandbox.run(lambda: warnings.simplefilter("error"))
    assert list(warnings.filters) == before


def test_printing_is_caught(capsys):
    assert toy().check(code("def cubed(x):\n    print('hello')\n    return x**3\n")).passed
    assert capsys.readouterr().out == ""


LOOPS = {
    "for ever": """while True:
        pass""",
    "swallows Exception": """while True:
        try:
            x = x + 1
        except Exception:
            pass""",
    "swallows everything once": """try:
        while True:
            pass
    except BaseException:
        while True:
            pass""",
}


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_an_endless_loop_is_stopped(body):
    started = time.monotonic()
    report = toy(seconds=0.3).check(code(f"def cubed(x):\n    {body}\n"))
    assert report.status == "too slow"
    assert time.monotonic() - started < 5


def in_thread(call):
    """What ``call`` returns in another thread."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    thread.join(40)
    return found[0]


def test_an_endless_loop_is_stopped_in_a_thread():
    answer = code(f"def cubed(x):\n    {LOOPS['for ever']}\n")
    assert in_thread(lambda: toy(seconds=0.3).check(answer)).status == "too slow"


in_both = pytest.mark.parametrize(
    "where", [lambda call: call(), in_thread], ids=["main thread", "other thread"]
)


@in_both
def test_waiting_counts_less_than_computing(where):
    """On a busy machine an answer waits for its turn, and one that waits for ever is stopped all the same."""
    waited = where(lambda: _sandbox.run(lambda: time.sleep(0.6) or "waited", seconds=0.3))
    assert waited.value == "waited"
    hung = where(lambda: _sandbox.run(lambda: [time.sleep(0.1) for _ in range(300)], seconds=0.3))
    assert hung.expired


@in_both
def test_an_import_is_not_cut_short(tmp_path, monkeypatch, where):
    (tmp_path / "slow_to_import.py").write_text("import time\nfor _ in range(12):\n    time.sleep(0.1)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    answer = code("def cubed(x):\n    import slow_to_import\n    return x**3\n")
    assert where(lambda: _sandbox.run(lambda: answer(2), seconds=0.3)).value == 8


def test_the_alarm_never_escapes():
    """A call that ends as the alarm rings: the alarm must not reach what runs afterwards."""
    for _ in range(60):
        _sandbox.run(lambda: time.sleep(0.0101), seconds=0.01)
        _sandbox.run(lambda: list(range(200_000)), seconds=0.001)
    time.sleep(0.05)


def test_an_alarm_of_the_caller_is_kept():
    import signal

    rang = []
    previous = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    try:
        _sandbox.run(lambda: None)
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        time.sleep(0.05)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert rang == [1]


def test_exit_is_caught_and_an_interrupt_is_not():
    assert toy().check(code("def cubed(x):\n    raise SystemExit\n")).status == "raised"
    with pytest.raises(KeyboardInterrupt):
        toy().check(code("def cubed(x):\n    raise KeyboardInterrupt\n"))


def test_a_solution_that_fails_is_our_mistake_and_says_so():
    with pytest.raises(RuntimeError, match="The solution of exercise 'cubed' fails in case 'the example'"):
        toy(reference="def cubed(x):\n    return x.cube()\n").check(lambda x: x)


# ------------------------------------------------------------------ values


@pytest.mark.parametrize(
    ("mine", "true", "equal"),
    [
        (torch.ones(2), torch.ones(2), True),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), False),
        (torch.ones(1), torch.ones(()), False),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, float("nan")]), True),
        (torch.tensor(1.0), 1.0, False),
        (1, 1.0, True),
        (True, 1, False),
        (0.1 + 0.2, 0.3, True),
        ((1, (2, None)), (1, (2, None)), True),
        ((1, 2), (1, 2, 3), False),
        ({"a": 1}, {"b": 1}, False),
        ("a", "a", True),
        (None, None, True),
        (torch.zeros(0), torch.zeros(0), True),
        (torch.zeros(0, 2), torch.zeros(0), False),
    ],
)
def test_same(mine, true, equal):
    assert same(mine, true) is equal


def test_write_is_brief_and_exact():
    assert write(torch.tensor([1.0, 2.5])) == "[1, 2.5]"
    assert write(torch.tensor(3)) == "3"
    assert write(torch.zeros(2, dtype=torch.float64)) == "[0, 0] (float64)"
    assert write(torch.zeros(0, 3)) == "an empty tensor of shape (0, 3)"
    assert write(torch.arange(20.0)) == "a tensor of shape (20,), first values [0, 1, 2, 3]"
    assert write((1, None)) == "(1, None)"
    assert write(object()) == "an object of type object"


def test_difference_names_what_is_more_than_numbers():
    ones = torch.ones(2)
    assert difference(torch.ones(1, 2), ones) == "The shape is (1, 2), expected (2,)."
    assert difference(ones.double(), ones) == "The dtype is float64, expected float32."
    assert difference(3, ones) == "A tensor was expected, yours is 3."
    assert difference(-ones, ones) == "Every value is -1 times the true one."
    assert difference(torch.tensor([1.0, 2.0]), ones) == ""


# ------------------------------------------------------------------ hints, solution, progress


@pytest.fixture
def progress_file(tmp_path, monkeypatch):
    monkeypatch.setenv(_progress.VARIABLE, str(tmp_path / "folder" / "progress.json"))
    return tmp_path / "folder" / "progress.json"


def test_hints_come_one_more_each_call(progress_file):
    first, second, third = (toy().hint().text() for _ in range(3))
    assert first == "Hint 1 of 2: Multiply."
    assert second.startswith("Hint 1 of 2: Multiply.\nHint 2 of 2: Three factors.")
    assert "ex.cubed.solution()" in second
    assert third == second


def test_solution_is_code_in_color():
    solution = toy(explains="Three factors.").solution()
    assert "return x * x * x" in solution.text()
    assert "Three factors." in solution.text()
    assert 'class="highlight"' in solution._repr_html_()
    assert "<script" not in solution._repr_html_()


def test_progress_is_stored(progress_file):
    toy().check(lambda x: x)
    toy().check(lambda x: x**3)
    toy().check(lambda x: x)
    toy().check(...)
    assert json.loads(progress_file.read_text()) == {
        "version": 1,
        "exercises": {"cubed": {"passed": True, "tries": 3}},
    }
    assert sorted(path.name for path in progress_file.parent.iterdir()) == [
        ".progress.json.lock",
        "progress.json",
    ]


@pytest.mark.parametrize("content", ["{", '{"version": 0, "exercises": {}}', "[]", "\xff", '{"version": 1}'])
def test_a_file_that_cannot_be_used_is_kept_and_told(progress_file, content):
    progress_file.parent.mkdir()
    progress_file.write_bytes(content.encode("latin-1"))
    toy().check(lambda x: x)
    kept = progress_file.with_name("progress.json.kept-1")
    assert kept.read_bytes() == content.encode("latin-1")
    assert "kept as progress.json.kept-1" in ex.progress().text()
    assert "kept" not in ex.progress().text()
    assert json.loads(progress_file.read_text())["exercises"]["cubed"]["tries"] == 1


def test_a_file_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(_progress.VARIABLE, str(tmp_path / "file" / "progress.json"))
    assert toy().check(lambda x: x**3).passed
    assert "Progress could not be" in ex.progress().text()


def _try_many(path: str) -> None:
    import os

    os.environ[_progress.VARIABLE] = path
    for _ in range(25):
        _progress.record("cubed", False)


def test_several_kernels_at_once_lose_nothing(progress_file):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_try_many, args=(str(progress_file),)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert json.loads(progress_file.read_text())["exercises"]["cubed"]["tries"] == 50


def test_without_the_variable_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.delenv(_progress.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    toy().check(lambda x: x)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_name_is_told():
    with pytest.raises(AttributeError, match=r"There is no exercise called 'nonsense'"):
        _ = ex.nonsense

"""The player: what stands in its HTML, and what it does in a real browser."""

import html as html_module
import json
import re
from importlib.resources import files

import pytest
import torch

from inside_autograd.marks import arrows, short
from inside_autograd.narrate import Narrator
from inside_autograd.player import MAX_STEPS, player
from inside_autograd.recording import Recording
from inside_autograd.replay import replay
from inside_autograd.values import summarize
from shapes import SHAPES


def product() -> Recording:
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return replay(x * w * w, params={"x": x, "w": w})


def one_side() -> Recording:
    """autograd.grad: half of the graph never runs."""
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    return replay(x * w + w.exp(), wrt=[x], params={"x": x, "w": w})


def failing() -> Recording:
    x, w = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    h = x * w
    torch.autograd.grad(h, x)
    return replay(h + 1, params={"x": x, "w": w})


def making_nan() -> Recording:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    return replay(torch.where(x > 0, x.sqrt(), 0).sum(), params={"x": x})


def shape(name: str) -> Recording:
    outputs, params = SHAPES[name]()
    return replay(outputs, params=params)


RECORDINGS = {
    "product": product,
    "one side": one_side,
    "failing": failing,
    "making NaN": making_nan,
    "two roots": lambda: shape("tuple_over_one_trunk"),
    "unused outputs": lambda: shape("some_outputs_unused"),
    "folded": lambda: shape("encoder_layers"),
}


def sentences(recording: Recording) -> list[str]:
    narrator = Narrator(recording)
    return [narrator.start(), *map(narrator.step, recording.steps), narrator.end()]


def items(fragment: str) -> list[tuple[dict, str]]:
    found = re.findall(r'<li data-s="([^"]*)"><span>(.*?)</span>', fragment)
    return [(json.loads(html_module.unescape(state)), html_module.unescape(text)) for state, text in found]


# ------------------------------------------------------------------ the fragment


def test_script_and_style_are_small():
    size = sum(
        len(files("inside_autograd").joinpath(name).read_bytes()) for name in ("player.js", "player.css")
    )
    assert size < 12_000


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_fragment_holds_every_step_in_words_and_needs_nothing_else(name):
    recording = RECORDINGS[name]()
    fragment = player(recording)
    assert [text for _, text in items(fragment)] == sentences(recording)
    assert [state["i"] for state, _ in items(fragment) if "i" in state] == list(recording.order)
    assert not re.search(r"(?:src|href|url|import)\W{1,3}(?!data:)\w*:?//", fragment)
    assert ' id="' not in fragment  # a page may show a player twice
    assert fragment == player(RECORDINGS[name]())
    bundle = recording._repr_mimebundle_()
    assert bundle == {"text/html": fragment, "text/plain": str(recording)}


def test_markup_in_names_and_messages_is_text():
    x = torch.tensor(2.0, requires_grad=True)

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("</script><b>\"'&")

    fragment = player(replay(Fails.apply(x * 1), params={"<i>&": x}))
    assert "</script><b>" not in fragment and "<i>&" not in fragment
    assert items(fragment)[1][1] == "FailsBackward received 1, and raised ValueError: </script><b>\"'&"


def test_values_in_as_few_characters_as_a_label_has():
    cases = {
        "None": None,
        "2": torch.tensor(2.0),
        "[1, 2, 4]": torch.tensor([1.0, 2.0, 4.0]),
        "(3, 4) all 0.5": torch.full((3, 4), 0.5),
        "all 0.5": torch.full((30, 40, 5), 0.5).double(),
        "norm 5": torch.tensor([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]),
        "NaN": torch.full((100, 100, 10), float("nan")),
        "inf": torch.tensor([[float("inf"), 1.0, 2.0], [1.0, 2.0, 3.0]]),
        "(100, 100) meta": torch.empty(100, 100, device="meta"),
        "(1000, 1000, 10…": torch.empty(1000, 1000, 1000, device="meta"),
    }
    for text, tensor in cases.items():
        assert short(None if tensor is None else summarize(tensor)) == text


def test_labels_stand_on_their_arrows_and_off_the_boxes():
    recording = shape("tuple_over_one_trunk")
    fragment = player(recording)
    from inside_autograd.drawing import picture

    drawn = picture(recording.graph)
    label = r'<g class="iap-v" data-v="([^"]+)"><rect [^>]*/><text x="(\d+)" y="(\d+)">([^<]*)<'
    found = re.findall(label, fragment)
    assert len(found) >= 12
    for key, x, y, text in found:
        middle = int(x), int(y) - 3
        points = arrows(drawn)[key].points
        assert min(abs(px - middle[0]) + abs(py - middle[1]) for px, py in points) <= 2
        half = len(text) * 3
        for left, top, width, height in drawn.boxes.values():
            apart = middle[0] + half <= left or middle[0] - half >= left + width
            assert apart or middle[1] + 5 <= top or middle[1] - 5 >= top + height


def test_long_recordings_say_what_is_left_out():
    recording = shape("fan_in_1500")
    fragment = player(recording)
    assert len(items(fragment)) == MAX_STEPS + 2
    assert f"{3002 - MAX_STEPS:,} more steps are not shown here" in fragment


# ------------------------------------------------------------------ in a browser


@pytest.fixture
def show(browser, tmp_path):
    """``show(recordings, **context)`` opens a page with their players, which may log and ask for nothing."""
    contexts, complaints = [], []

    def open_page(*recordings, body="", **options):
        (tmp_path / "page.html").write_text(
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>players</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<body style='margin:8px'>{body}{'<hr>'.join(map(player, recordings))}",
            encoding="utf-8",
        )
        address = (tmp_path / "page.html").as_uri()
        context = browser.new_context(**{"viewport": {"width": 800, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(("data:", address)) or complaints.append(request.url),
        )
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def picture_of(page, which=0):
    """What the picture shows: the node that stands out, those that ran, lit arrows and their labels."""
    return (
        page.locator(".iap")
        .nth(which)
        .evaluate(
            """root => {
              const all = (selector) => [...root.querySelectorAll(selector)];
              const keys = (selector, name) => all(selector).map((el) => el.dataset[name]);
              const texts = (list, name) => Object.fromEntries(
                list.map((el) => [el.dataset[name], el.textContent]));
              return {
                now: keys(".ag-n.iap-now", "n"),
                ran: keys(".ag-n.iap-ran", "n"),
                error: keys(".ag-n.iap-err", "n"),
                never: keys(".ag-n.iap-never", "n"),
                got: keys(".ag-n.iap-got", "n"),
                lit: keys(".ag-e.iap-lit", "e"),
                fresh: keys(".ag-e.iap-new", "e"),
                bad: keys(".ag-e.iap-bad", "e"),
                labels: texts(all(".iap-v").filter((el) => getComputedStyle(el).display !== "none"), "v"),
                numbers: keys(".iap-k.iap-ran", "k"),
                grads: texts(all(".iap-g"), "g"),
                text: root.querySelector(".iap-say").textContent,
                count: root.querySelector("output").textContent,
                slider: root.querySelector("input").valueAsNumber,
              };
            }"""
        )
    )


def check_step(page, recording, number, which=0):
    """Text and picture agree with step ``number`` of the recording; 0 is the start, the last one the end."""
    found = picture_of(page, which)
    said = sentences(recording)
    assert (found["text"], found["slider"]) == (said[number], number)
    if 1 <= number <= len(recording):
        step = recording.steps[number - 1]
        assert found["now"] == [str(step.node)]
        assert found["count"] == f"Step {number} of {len(recording)}"
        carried = {f"{step.node}-{sent.slot}" for sent in step.sent if sent.wanted and sent.value is not None}
        assert set(found["fresh"]) == carried
    else:
        assert found["now"] == []
        assert found["count"] == ("Start" if number == 0 else "End")
    assert set(found["ran"]) == {str(step.node) for step in recording.steps[: max(0, number - 1)]}
    done = recording.steps[:number]
    assert found["numbers"] == sorted({str(step.node) for step in done}, key=int)
    lit = {f"{s.node}-{sent.slot}" for s in done for sent in s.sent if sent.wanted and sent.value is not None}
    assert set(found["lit"]) - {"r0", "r1"} == lit
    assert "r0" in found["lit"]
    return found


@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name in ("product", "one side", "failing") for way in ("click", "keys", "slider")]
    + [("two roots", "keys"), ("unused outputs", "slider")],
)
def test_every_step_is_reached_and_text_and_picture_agree(show, name, way):
    recording = RECORDINGS[name]()
    page = show(recording)
    last = len(recording) + 1
    slider = page.get_by_role("slider", name="Step")
    go = {
        "click": lambda to: page.get_by_role("button", name="Step forward").click(),
        "keys": lambda to: page.keyboard.press("ArrowRight"),
        "slider": lambda to: slider.fill(str(to)),
    }[way]
    back = {
        "click": lambda to: page.get_by_role("button", name="Step back").click(),
        "keys": lambda to: page.keyboard.press("ArrowLeft"),
        "slider": lambda to: slider.fill(str(to)),
    }[way]
    slider.focus()
    check_step(page, recording, 0)
    for number in range(1, last + 1):
        go(number)
        check_step(page, recording, number)
    for number in range(last - 1, -1, -1):
        back(number)
        check_step(page, recording, number)


def test_first_and_last_by_button_and_key(show):
    recording = product()
    page = show(recording)
    last = len(recording) + 1
    page.get_by_role("button", name="Last step").click()
    check_step(page, recording, last)
    page.get_by_role("button", name="Step forward").click(force=True)  # there is no step further on
    check_step(page, recording, last)
    page.get_by_role("button", name="First step").click()
    check_step(page, recording, 0)
    page.keyboard.press("ArrowRight")  # the button keeps the focus, and so the keys work on
    check_step(page, recording, 1)
    page.keyboard.press("End")
    check_step(page, recording, last)
    page.keyboard.press("Home")
    check_step(page, recording, 0)
    page.keyboard.press("ArrowLeft")
    check_step(page, recording, 0)


def test_play_pauses_ends_and_starts_over(show):
    recording = product()
    page = show(recording)
    page.clock.install()
    page.reload()
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(1500)
    check_step(page, recording, 1)
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(5000)
    check_step(page, recording, 1)
    page.get_by_role("slider").focus()
    page.keyboard.press(" ")
    page.clock.run_for(20000)
    check_step(page, recording, 5)
    assert page.get_by_role("button", name="Play").is_visible()
    page.keyboard.press(" ")
    check_step(page, recording, 0)
    page.get_by_role("button", name="Pause").click()


def test_two_players_on_a_page_do_not_disturb_each_other(show):
    first, second = product(), product()
    page = show(first, second)
    page.get_by_role("button", name="Step forward").nth(1).click()
    page.keyboard.press("ArrowRight")
    check_step(page, second, 2, which=1)
    check_step(page, first, 0, which=0)
    page.get_by_role("slider").nth(0).fill("4")
    check_step(page, second, 2, which=1)
    check_step(page, first, 4, which=0)


def test_grad_of_leaves_before_and_after(show):
    recording = product()
    page = show(recording)
    slider = page.get_by_role("slider")
    x, w = (next(n.index for n in recording.graph.nodes if n.names == (name,)) for name in "xw")
    assert [step.node for step in recording.steps[2:]] == [x, w]
    for number, of_x, of_w in [
        (0, ".grad None", ".grad None"),
        (3, ".grad None → 9", ".grad None"),
        (4, ".grad 9", ".grad None → 12"),
        (5, ".grad 9", ".grad 12"),
    ]:
        slider.fill(str(number))
        assert picture_of(page)["grads"] == {str(x): of_x, str(w): of_w}


def test_values_on_arrows(show):
    recording = product()
    page = show(recording)
    assert picture_of(page)["labels"] == {"r0": "1"}
    page.get_by_role("slider").fill("1")
    assert picture_of(page)["labels"] == {"r0": "1", "0-0": "3", "0-1": "6"}
    page.get_by_role("slider").fill("5")
    assert picture_of(page)["labels"] == {"r0": "1", "0-0": "3", "0-1": "6", "2-0": "9", "2-1": "6"}


def test_what_never_ran_is_gray_and_what_was_returned_is_marked(show):
    recording = one_side()
    page = show(recording)
    names = {node.index: node.names or node.name for node in recording.graph.nodes}
    gray = [names[int(key)] for key in picture_of(page)["never"]]
    assert sorted(map(str, gray)) == ["('w',)", "('x',)", "ExpBackward0"]
    style = "(el, name) => getComputedStyle(el)[name]"
    outlines = page.locator(".iap-never > rect")
    assert [outlines.nth(i).evaluate(style, "strokeDasharray") for i in range(3)] == ["3px, 3px"] * 3
    assert [outlines.nth(i).evaluate(style, "fill") for i in range(3)] == ["none"] * 3
    assert page.locator(".iap-more").inner_text().endswith("dashed gray boxes never run.")
    page.get_by_role("button", name="Last step").click()
    found = picture_of(page)
    (got,) = found["got"]
    assert names[int(got)] == ("x",)
    assert found["grads"][got] == "returned 3"


def test_the_node_that_raised_and_nan_stand_out(show):
    recording = failing()
    page = show(recording)
    page.get_by_role("slider").fill("1")
    assert picture_of(page)["error"] == []
    page.get_by_role("slider").fill("2")
    found = check_step(page, recording, 2)
    assert found["error"] == found["now"] == [str(recording.steps[1].node)]
    assert "raised RuntimeError: Trying to backward through the graph a second time" in found["text"]

    recording = making_nan()
    page = show(recording)
    page.get_by_role("slider").fill("2")
    assert picture_of(page)["bad"] == []
    page.get_by_role("slider").fill("3")
    found = check_step(page, recording, 3)
    assert found["bad"] == [f"{recording.first_nonfinite.node}-0"]
    assert found["text"].endswith("NaN appears here.")


def test_folded_boxes_stand_for_the_nodes_in_them(show):
    recording = shape("encoder_layers")
    page = show(recording)
    said = sentences(recording)
    boxes = set(page.locator("[data-n]").evaluate_all("all => all.map((el) => el.dataset.n)"))
    assert len(boxes) < len(recording.graph)
    seen = set()
    for number in range(0, len(said), 7):
        page.get_by_role("slider").fill(str(number))
        found = picture_of(page)
        assert found["text"] == said[number]
        assert set(found["now"]) <= boxes
        assert len(found["now"]) == (1 if 1 <= number <= len(recording) else 0)
        seen.update(found["now"])
    assert len(seen) > 5


def test_the_current_node_is_scrolled_into_view(show):
    outputs, params = SHAPES["doubling_40"]()
    recording = replay(outputs, params=params)
    page = show(recording, viewport={"width": 380, "height": 700}, reduced_motion="reduce")
    frame = page.locator(".ag-frame")
    assert frame.evaluate("el => el.scrollHeight > 2 * el.clientHeight")
    for number in (1, 20, 41, 3):
        page.get_by_role("slider").fill(str(number))
        assert page.locator(".iap-now").evaluate(
            """el => {
              const a = el.getBoundingClientRect(), b = el.closest(".ag-frame").getBoundingClientRect();
              return a.top >= b.top && a.bottom <= b.bottom;
            }"""
        )


def test_without_javascript_the_picture_and_the_list_are_there(show):
    recording = product()
    page = show(recording, java_script_enabled=False)
    assert page.locator("svg.ag").is_visible()
    assert page.get_by_role("listitem").all_inner_texts() == sentences(recording)
    assert page.get_by_role("listitem").last.is_visible()
    assert page.locator("button, input").count() == 0
    assert page.locator(".iap-v:visible, .iap-k:visible").count() == 0


def test_what_jupyterlab_leaves_of_an_untrusted_notebook_is_an_image_and_the_list(show):
    """It drops style and script, the tags of the SVG but not their texts, and attributes without a value."""
    recording = product()
    fragment = re.sub(r"<(style|script)\b.*?</\1>", "", player(recording), flags=re.DOTALL)
    fragment = re.sub(r"</?(svg|g|path|rect|text|title|desc)\b[^>]*>", "", fragment)
    fragment = re.sub(r" hidden(?=[ >])", "", fragment)
    page = show(body=fragment)
    image = page.get_by_role("img")
    assert image.is_visible()
    assert image.evaluate("el => el.naturalWidth") > 100
    assert page.get_by_role("listitem").all_inner_texts() == sentences(recording)
    seen = [line for line in page.locator("body").inner_text().split("\n") if line]
    assert seen == ["4 steps in words", *sentences(recording)]


def test_with_javascript_the_list_is_folded_and_marks_the_step(show):
    recording = product()
    page = show(recording)
    assert not page.get_by_role("listitem").first.is_visible()
    page.get_by_text("4 steps in words").click()
    page.get_by_role("slider").fill("2")
    assert page.locator("li[aria-current=step]").inner_text() == sentences(recording)[2]


@pytest.mark.parametrize("name", ["product", "two roots", "failing"])
def test_a_phone_shows_it_without_scrolling_sideways(show, name):
    recording = RECORDINGS[name]()
    page = show(recording, viewport={"width": 380, "height": 740}, has_touch=True, is_mobile=True)
    for number in range(len(recording) + 2):
        page.get_by_role("slider").fill(str(number))
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
    for button in page.get_by_role("button").all():
        size = button.bounding_box()
        assert size["width"] >= 40 and size["height"] >= 40
    page.get_by_role("slider").fill("0")
    page.get_by_role("button", name="Step forward").tap()
    check_step(page, recording, 1)


def test_swiping_over_a_drawing_that_fits_steps(show):
    recording = making_nan()
    page = show(recording, viewport={"width": 800, "height": 740}, has_touch=True)

    def swipe(x0, x1):
        page.locator(".ag-frame").evaluate(
            """(frame, [x0, x1]) => {
              const touch = (x) => new Touch({ identifier: 1, target: frame, clientX: x, clientY: 90 });
              const from = [touch(x0)], to = [touch(x1)];
              frame.dispatchEvent(new TouchEvent("touchstart", { touches: from, changedTouches: from }));
              frame.dispatchEvent(new TouchEvent("touchend", { touches: [], changedTouches: to }));
            }""",
            [x0, x1],
        )

    swipe(200, 100)
    check_step(page, recording, 1)
    swipe(100, 200)
    check_step(page, recording, 0)
    swipe(100, 110)
    check_step(page, recording, 0)


def contrast(colors: list[list[float]]) -> float:
    def luminance(color):
        parts = [c / 255 for c in color[:3]]
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted(map(luminance, colors))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colors_stand_out_in_light_and_dark(show, scheme):
    ground = {"light": "#ffffff", "dark": "#14181f"}[scheme]
    page = show(making_nan(), color_scheme=scheme, body=f"<style>body{{background:{ground}}}</style>")
    page.get_by_role("slider").fill("3")
    page.wait_for_timeout(400)  # the transition of the outline
    rgb = "(el, name) => getComputedStyle(el)[name].match(/[\\d.]+/g).map(Number)"
    behind = [int(ground[i : i + 2], 16) for i in (1, 3, 5)]
    for selector, name, least in [
        (".ag-n.iap-now > rect", "stroke", 3),
        (".ag-e.iap-lit:not(.iap-bad)", "stroke", 3),
        (".ag-e.iap-bad", "stroke", 3),
        (".iap-v.iap-bad text", "fill", 4.5),
        (".iap-v.iap-lit:not(.iap-bad) text", "fill", 4.5),
        (".iap-g", "fill", 4.5),
        (".iap-k.iap-ran rect", "fill", 3),
    ]:
        color = page.locator(selector).first.evaluate(rgb, name)
        assert contrast([color, behind]) >= least, selector
    badge = [page.locator(f".iap-k.iap-ran {part}").first.evaluate(rgb, "fill") for part in ("rect", "text")]
    assert contrast(badge) >= 4.5


def test_names_roles_and_focus(show):
    page = show(product())
    group = page.get_by_role("group", name="Backward pass, step by step")
    names = ["First step", "Step back", "Play", "Step forward", "Last step"]
    assert [button.get_attribute("aria-label") for button in group.get_by_role("button").all()] == names
    say = page.locator(".iap-say")
    assert say.get_attribute("aria-live") == "polite"
    page.get_by_role("slider").fill("2")
    assert page.get_by_role("slider").get_attribute("aria-valuetext") == "Step 2 of 4"
    page.keyboard.press("Shift+Tab")
    focused = page.locator(":focus")
    assert focused.get_attribute("aria-label") == "Last step"
    assert focused.evaluate("el => getComputedStyle(el).outlineWidth") == "3px"


@pytest.mark.parametrize(("motion", "duration"), [("reduce", "0s"), ("no-preference", "0.2s, 0.2s")])
def test_reduced_motion_is_respected(show, motion, duration):
    page = show(product(), reduced_motion=motion)
    seen = page.locator(".ag-e").first.evaluate("el => getComputedStyle(el).transitionDuration")
    assert seen in (duration, duration.split(",")[0])

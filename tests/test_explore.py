"""explore: controls, frames, the stored face in a browser, the live face in a real kernel."""

import os
import re
import subprocess
import sys
import time

import pytest

from inside_autograd.explore import Explorer, explore


def square(x):
    return x * x


# ------------------------------------------------------------------ controls


@pytest.mark.parametrize(
    ("control", "values"),
    [
        ((0, 3), [0, 1, 2, 3]),
        ((0, 6, 2), [0, 2, 4, 6]),
        ((0, 7, 2), [0, 2, 4, 6]),
        ((0.0, 1.0), [0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0]),
        ((0, 0.3, 0.1), [0, 0.1, 0.2, 0.3]),
        ([3, 1], [3, 1]),
        ({"one": 1, "two": 2}, [1, 2]),
        (True, [False, True]),
        (False, [False, True]),
        ((2, 2), [2]),
    ],
)
def test_values_of_a_control(control, values):
    explorer = explore(square, x=control)
    assert [explorer.arguments(position)["x"] for position in explorer.positions()] == values


def test_the_default_of_the_function_is_where_it_starts():
    assert explore(lambda x=2: x, x=(0, 3)).controls[0].start == 2
    assert explore(lambda x=7: x, x=(0, 3)).controls[0].start == 0
    assert explore(lambda x="b": x, x=["a", "b"]).controls[0].start == 1
    assert explore(lambda x: x, x=True).controls[0].start == 1


def test_several_controls_give_all_combinations():
    explorer = explore(lambda a, b, c: (a, b, c), a=(0, 1), b=["x", "y"], c=True)
    seen = [tuple(explorer.arguments(position).values()) for position in explorer.positions()]
    assert seen == [(a, b, c) for a in (0, 1) for b in ("x", "y") for c in (False, True)]


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: explore(3, x=(0, 1)), TypeError, "explore needs a function, got int."),
        (lambda: explore(square), TypeError, "explore needs at least one control"),
        (lambda: explore(square, y=(0, 1)), TypeError, "cannot be called with the controls y"),
        (lambda: explore(square, x=3), TypeError, "The control x must be (low, high)"),
        (lambda: explore(square, x=(0,)), TypeError, "The control x must be (low, high)"),
        (lambda: explore(square, x=[]), TypeError, "The control x must be (low, high)"),
        (lambda: explore(square, x=("a", "b")), TypeError, "The control x must be (low, high)"),
        (lambda: explore(square, x=(True, False)), TypeError, "The control x must be (low, high)"),
        (lambda: explore(square, x=(3, 0)), ValueError, "The slider x has no values"),
        (lambda: explore(square, x=(0, 3, 0)), ValueError, "The slider x has no values"),
        (lambda: explore(square, x=(0, float("nan"), 1)), ValueError, "The slider x has no values"),
        (lambda: explore(square, x=(0, 500)), ValueError, "501 combinations"),
    ],
)
def test_a_wrong_call_gets_one_sentence(call, error, says):
    with pytest.raises(error) as caught:
        call()
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


# ------------------------------------------------------------------ frames


def test_text_shows_every_frame():
    assert repr(explore(square, x=(0, 2))) == "x = 0: 0\nx = 1: 1\nx = 2: 4"


def test_a_function_that_raises_shows_the_error_in_its_frame():
    explorer = explore(lambda x: 1 / x, x=(0, 1))
    assert "ZeroDivisionError: division by zero" in explorer.frame((0,))
    assert "1.0" in explorer.frame((1,))
    assert repr(explorer) == "x = 0: ZeroDivisionError: division by zero\nx = 1: 1.0"


def test_what_is_printed_is_shown_and_escaped():
    explorer = explore(lambda x: print("<b>", x), x=(0, 1))
    assert explorer.frame((1,)) == "<pre>&lt;b&gt; 1</pre>"


def test_html_of_the_result_is_used():
    class Shown:
        def _repr_html_(self):
            return "<em>shown</em>"

        def __repr__(self):
            return "words"

    explorer = explore(lambda x: Shown(), x=(0, 0))
    assert explorer.frame((0,)) == "<em>shown</em>"
    assert repr(explorer) == "x = 0: words"


def test_a_result_without_html_is_shown_as_text():
    class Nothing:
        def _repr_html_(self):
            return None

        def __str__(self):
            return "nothing <here>"

    assert explore(lambda x: Nothing(), x=(0, 0)).frame((0,)) == "<pre>nothing &lt;here&gt;</pre>"


def figure(x):
    from matplotlib.figure import Figure

    fig = Figure(figsize=(2, 1))
    fig.subplots().plot([0, x])
    return fig


def test_a_figure_needs_words_and_gets_them():
    pytest.importorskip("matplotlib")
    assert 'alt="a line up to 1"' in explore(figure, alt="a line up to {x}", x=(0, 1)).frame((1,))
    assert 'alt="up 1"' in explore(figure, alt=lambda x: f"up {x}", x=(0, 1)).frame((1,))
    assert "explore needs alt for a figure" in explore(figure, x=(0, 1)).frame((1,))


def test_the_function_runs_once_a_frame():
    calls = []
    explorer = explore(lambda x: calls.append(x), x=(0, 4))
    explorer._repr_mimebundle_()
    explorer._repr_mimebundle_()
    assert calls == [0, 1, 2, 3, 4]


def test_same_input_same_bytes():
    code = (
        "from inside_autograd.explore import explore;"
        "print(explore(lambda x, s: (x, s), x=(0, 4), s=['b', 'a'])._repr_html_())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


# ------------------------------------------------------------------ the live face


def test_live_and_stored_show_the_same():
    pytest.importorskip("ipywidgets")
    explorer = explore(lambda x=1, kind="a", on=False: f"{x}{kind}{on}", x=(0, 2), kind=["a", "b"], on=False)
    box = explorer._widget()
    slider, choice, check, picture = box.children
    assert picture.value == explorer.frame((1, 0, 0))
    for position in explorer.positions():
        slider.value, choice.value, check.value = position[0], position[1], bool(position[2])
        stored = re.search(
            f'data-at="{",".join(map(str, position))}"[^>]*>(.*?)</div>', explorer._repr_html_()
        ).group(1)
        assert picture.value == stored


def test_without_a_kernel_there_is_no_widget():
    assert set(explore(square, x=(0, 1))._repr_mimebundle_()) == {"text/plain", "text/html"}


def test_in_a_real_kernel_a_moved_slider_recomputes():
    """Over the kernel's own protocol: what a front end does when a reader moves the slider."""
    client_module = pytest.importorskip("jupyter_client")
    manager, client = client_module.manager.start_new_kernel(kernel_name="python3")
    try:
        client.execute(
            "from inside_autograd.explore import explore\ncalls = []\n"
            "explore(lambda x: (calls.append(x), f'square {x * x}')[1], x=(0, 5))"
        )
        models, view, busy = {}, None, True
        while busy or view is None:
            message = client.get_iopub_msg(timeout=60)
            content = message["content"]
            if message["msg_type"] == "error":
                pytest.fail(content["evalue"])
            if message["msg_type"] == "comm_open":
                models[content["comm_id"]] = content["data"]["state"]
            if message["msg_type"] == "comm_msg" and content["data"].get("method") == "update":
                models[content["comm_id"]].update(content["data"]["state"])
            if message["msg_type"] == "execute_result":
                view = content["data"].get("application/vnd.jupyter.widget-view+json")
                assert "square 25" in content["data"]["text/html"]
            busy = not (message["msg_type"] == "status" and content["execution_state"] == "idle")
        assert view["model_id"] in models
        (slider,) = [i for i, s in models.items() if s["_model_name"] == "SelectionSliderModel"]
        (picture,) = [i for i, s in models.items() if s["_model_name"] == "HTMLModel"]
        assert "square 0" in models[picture]["value"]
        data = {"method": "update", "state": {"index": 4}, "buffer_paths": []}
        client.shell_channel.send(client.session.msg("comm_msg", {"comm_id": slider, "data": data}))
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = client.get_iopub_msg(timeout=30)
            if message["msg_type"] == "comm_msg" and message["content"]["comm_id"] == picture:
                assert "square 16" in message["content"]["data"]["state"]["value"]
                break
        else:
            pytest.fail("The picture was not updated.")
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


# ------------------------------------------------------------------ the stored face in a browser


def page_of(tmp_path, *explorers: Explorer) -> str:
    path = tmp_path / "page.html"
    body = "".join(e._repr_html_() for e in explorers)
    path.write_text(f"<!doctype html><html lang=en><title>t</title><body>{body}", encoding="utf-8")
    return path.as_uri()


def test_slider_and_keys_reach_every_frame(browser, tmp_path):
    explorer = explore(lambda x, on: f"frame {x} {on}", x=(0, 3), on=False)
    page, errors = browser.new_page(), []
    page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: errors.append(str(e)))
    page.goto(page_of(tmp_path, explorer))
    slider = page.get_by_role("slider", name="x")
    slider.focus()
    for x in range(4):
        assert page.locator(".iax-frame:visible").inner_text() == f"frame {x} False"
        assert page.locator("output").inner_text() == str(x)
        assert slider.get_attribute("aria-valuetext") == str(x)
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    page.get_by_role("checkbox", name="on").check()
    assert page.locator(".iax-frame:visible").inner_text() == "frame 0 True"
    assert errors == []
    page.close()


def test_two_on_a_page_do_not_disturb_each_other(browser, tmp_path):
    one, two = explore(lambda x: f"one {x}", x=(0, 3)), explore(lambda k: f"two {k}", k=["a", "b"])
    page = browser.new_page()
    page.goto(page_of(tmp_path, one, one, two))
    page.locator("input").nth(0).fill("2")
    page.get_by_role("combobox", name="k").select_option("b")
    assert page.locator(".iax-frame:visible").all_inner_texts() == ["one 2", "one 0", "two b"]
    page.close()


def test_without_javascript_the_first_frame_and_a_word(browser, tmp_path):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(page_of(tmp_path, explore(lambda x=1: f"frame {x}", x=(0, 3))))
    assert page.locator(".iax-frame:visible").inner_text() == "frame 1"
    assert "This is the picture for x = 1." in page.locator(".iax").inner_text()
    assert page.locator("input:visible").count() == 0
    page.close()


def test_a_phone_has_room_for_it(browser, tmp_path):
    page = browser.new_page(viewport={"width": 360, "height": 700})
    page.goto(
        page_of(tmp_path, explore(lambda x, on, kind: "wide " * 40, x=(0, 3), on=True, kind=["a", "b"]))
    )
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.close()

"""Chapters in a real JupyterLab: seen before they are trusted and after, run, played with and answered."""

import html
import io
import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from contrast import assert_words_stand_out
from PIL import Image
from playwright.sync_api import expect

ROOT = Path(__file__).resolve().parents[2]
STARTS_IN = 60  # seconds
FRAME = ".jp-OutputArea-output .ag-frame:not(.iax *, .iap *)"
# Everything on the page at once, and no questions about news.
SETTINGS = {
    "labconfig/page_config.json": {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    },
    "lab/user-settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"windowingMode": "none"},
}
METADATA = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
FAILING = (
    "%load_ext inside_autograd",
    "import torch\nloss = torch.ones(3, requires_grad=True) * 2\nloss.backward()",
    "{}['x']",
    "from inside_autograd import explain\nexplain()",
)
LINES = """element => {
    const words = document.createRange()
    words.selectNodeContents(element)
    return words.getClientRects().length
}"""
PLAYED, EXPLORED = "12_grad_fn.ipynb", "13_leaves.ipynb"
THEMES = "lab/user-settings/@jupyterlab/apputils-extension/themes.jupyterlab-settings"


def chapter_with_drawings():
    """Of the chapters with a player, the one with the fewest drawings, but some, and how many it has."""
    counts = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        outputs = [
            output.get("data", {}).get("text/html", "") for c in cells for output in c.get("outputs", ())
        ]
        drawings = [
            html for html in outputs if 'class="ag-frame"' in html and not re.search(r'class="ia[xp]', html)
        ]
        counts[path] = len(drawings) if any('class="iap' in html for html in outputs) else 0
    assert any(counts.values()), "no chapter has a drawing and a player"
    return min((count, path) for path, count in counts.items() if count)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of its own on 127.0.0.1: home, settings and trust are those of a new user."""
    home = tmp_path_factory.mktemp("home")
    count, chapter = chapter_with_drawings()
    folder = home / "notebooks"
    folder.mkdir()
    for path in (chapter, ROOT / "notebooks" / PLAYED, ROOT / "notebooks" / EXPLORED):
        shutil.copy(path, folder)
    cells = [nbformat.v4.new_code_cell(source) for source in FAILING]
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=METADATA), folder / "failing.ipynb")
    for name, content in SETTINGS.items():
        path = home / "config" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    themes = home / "config" / THEMES
    themes.parent.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JUPYTER")}
    environment.update(
        HOME=str(home),
        JUPYTER_CONFIG_DIR=str(home / "config"),
        JUPYTER_DATA_DIR=str(home / "data"),
        JUPYTER_RUNTIME_DIR=str(home / "runtime"),
        IPYTHONDIR=str(home / "ipython"),
        INSIDE_AUTOGRAD_PROGRESS=str(home / "progress.json"),
    )
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1"]
    command += ["--ServerApp.port=0", f"--ServerApp.root_dir={folder}", f"--IdentityProvider.token={token}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    with (home / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        address = wait_for(process, home, token)
        yield {
            "url": f"{address}lab/tree/{chapter.name}?token={token}",
            "file": folder / chapter.name,
            "drawings": count,
            "theme": themes,
            "environment": environment,
        }
        stop(address, token)
        process.wait(20)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)


def wait_for(process, home, token):
    """Wait until the server answers, and return its address: it chose the port itself."""
    end = time.monotonic() + STARTS_IN
    while time.monotonic() < end and process.poll() is None:
        for file in (home / "runtime").glob("jpserver-*.json"):
            try:
                address = json.loads(file.read_text())["url"]
                request = urllib.request.Request(f"{address}api/status?token={token}")
                with urllib.request.urlopen(request, timeout=5):
                    return address
            except (OSError, ValueError, KeyError):
                continue  # half written, or not listening yet
        time.sleep(0.2)
    log = (home / "log.txt").read_text(errors="replace")[-2000:]
    pytest.fail(f"JupyterLab did not start within {STARTS_IN} s. It said:\n{log}", pytrace=False)


def stop(address, token):
    """Ask the server to end, kernels first."""
    headers = {"Authorization": f"token {token}"}
    request = urllib.request.Request(f"{address}api/shutdown", data=b"", headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=10):
        pass


@pytest.fixture
def notebook(browser, lab):
    """The chapter, opened in a browser that was never here before."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.goto(lab["url"])
    expect(page.locator(FRAME)).to_have_count(lab["drawings"], timeout=60_000)
    yield page
    context.close()


def assert_seen(picture):
    """A picture is on the page, has a size, and is not of one color only."""
    picture.scroll_into_view_if_needed()
    expect(picture).to_be_visible()
    box = picture.bounding_box()
    assert box["width"] > 50 and box["height"] > 30, box
    image = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    colors = image.getcolors(maxcolors=image.width * image.height)
    most = max(count for count, _ in colors)
    assert len(colors) > 10 and most < 0.98 * image.width * image.height, "the picture is blank"


def test_an_untrusted_notebook_shows_each_drawing_once(notebook, lab):
    for frame in notebook.locator(FRAME).all():
        expect(frame.locator("svg")).to_have_count(0)  # JupyterLab took it out: so this is the untrusted case
        expect(frame.locator("img:visible")).to_have_count(1)
        image = frame.locator("img")
        assert image.evaluate("image => image.complete && image.naturalWidth > 50")
        assert len(image.get_attribute("alt")) > 20
        assert_seen(image)
    player = notebook.locator(".iap").first
    expect(player.locator("ol > li").first).to_be_visible()
    expect(player.locator("button")).to_have_count(0)


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_a_trusted_notebook_shows_each_drawing_once(lab, request, theme):
    """The drawing follows JupyterLab's own theme: the system of this browser is light."""
    lab["theme"].write_text(json.dumps({"theme": theme}))
    command = [sys.executable, "-m", "jupyter", "trust", str(lab["file"])]
    done = subprocess.run(
        command, env=lab["environment"], capture_output=True, text=True, timeout=60, check=True
    )
    assert re.search(r"^(Signing notebook|Notebook already signed)", done.stdout)
    notebook = request.getfixturevalue("notebook")
    light = "true" if theme == "JupyterLab Light" else "false"
    expect(notebook.locator("body")).to_have_attribute("data-jp-theme-light", light)
    for frame in notebook.locator(FRAME).all():
        expect(frame.locator("svg.ag:visible")).to_have_count(1)
        expect(frame.locator("img:visible")).to_have_count(0)
        expect(frame.locator("svg.ag")).to_have_role("img")
        assert_seen(frame.locator("svg.ag"))
        assert assert_words_stand_out(frame.locator("svg.ag"), "text") > 1
    player = notebook.locator(".iap").first
    player.get_by_role("button", name="Step forward").click()
    expect(player.get_by_role("slider")).to_have_value("1")


def run_all(page):
    """Run all cells, once there is a kernel: JupyterLab drops, without a word, what is asked for before.

    The mark in the notebook's toolbar says "idle" before there is a kernel too; the status bar names it.
    """
    expect(page.get_by_text("Python 3 (ipykernel) | Idle", exact=True)).to_be_visible(timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()


def test_a_card_stands_below_a_known_error(browser, lab):
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    context.set_default_timeout(60_000)
    page = context.new_page()
    # A workspace of its own: JupyterLab would open again what the tests before had open.
    page.goto(lab["url"].replace("lab/tree/" + lab["file"].name, "lab/workspaces/card/tree/failing.ipynb"))
    expect(page.locator(".jp-CodeCell")).to_have_count(len(FAILING), timeout=60_000)
    run_all(page)
    # An error ends "run all": the cells after it are run one by one.
    known, unknown, asked = (page.locator(".jp-CodeCell").nth(i) for i in (1, 2, 3))
    card = known.locator(".iag-x")
    expect(card).to_contain_text("Backward from a tensor of several elements", timeout=60_000)
    expect(card).to_contain_text("What to do:")
    outputs = known.locator(".jp-OutputArea-output")
    expect(outputs).to_have_count(2)
    expect(outputs.first).to_contain_text("grad can be implicitly created only for scalar outputs")
    assert_seen(card)
    for cell in (unknown, asked):
        cell.locator(".jp-InputArea-editor").click()
        page.keyboard.press("Control+Enter")
        expect(cell.locator(".jp-OutputArea-output").first).to_be_visible()
    expect(unknown.locator(".iag-x")).to_have_count(0)
    expect(asked.locator(".iag-x")).to_contain_text("Not in the catalogue")
    context.close()


@pytest.fixture
def open_run(browser, lab):
    """A function that opens a chapter in a workspace of its own, runs all its cells and waits for the end."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(60_000)

    def open_(name):
        page = context.new_page()
        page.goto(
            lab["url"].replace("lab/tree/" + lab["file"].name, f"lab/workspaces/run-{name[:2]}/tree/{name}")
        )
        code = [
            cell for cell in nbformat.read(ROOT / "notebooks" / name, 4).cells if cell.cell_type == "code"
        ]
        expect(page.locator(".jp-CodeCell")).to_have_count(len(code), timeout=60_000)
        run_all(page)
        # Numbers stand there from the start, so first it must be seen to run.
        expect(page.locator(".jp-InputPrompt", has_text="[*]").first).to_be_attached()
        expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0, timeout=120_000)
        expect(page.locator(".jp-CodeCell .jp-InputPrompt").last).to_have_text(f"[{len(code)}]:")
        expect(page.locator(".jp-OutputArea-output[data-mime-type*=error]")).to_have_count(0)
        return page

    yield open_
    context.close()


def answer(page, cell, code):
    """Write into a cell and run it."""
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(code)
    page.keyboard.press("Control+Enter")
    return cell.locator(".jp-OutputArea-output .iag-x")


def test_a_chapter_is_run_its_player_stepped_and_an_exercise_solved(open_run):
    page = open_run(PLAYED)
    player = page.locator(".jp-OutputArea-output .iap").first
    player.get_by_role("button", name="Step forward").click()
    expect(player.get_by_role("slider")).to_have_value("1")
    player.get_by_role("slider").press("ArrowRight")
    expect(player.get_by_role("slider")).to_have_value("2")
    player.get_by_role("slider").fill("3")
    # By hand: y3 = 8 * small; the gradient doubles at each of the three sums.
    expect(player.locator(".iap-say")).to_have_text(re.compile(r"sent 4 to .* and 4 to small"))
    cells = page.locator(".jp-CodeCell").count()
    player.focus()
    page.keyboard.press("b")  # in JupyterLab's command mode: a new cell
    page.keyboard.press("End")
    expect(player.locator("output")).to_have_text("End")
    assert page.locator(".jp-CodeCell").count() == cells
    at = page.locator(".jp-CodeCell").evaluate_all(
        "cells => cells.findIndex(cell => cell.textContent.includes('ex.none_in_a_slot.check'))"
    )
    cell, check = page.locator(".jp-CodeCell").nth(at), "ex.none_in_a_slot.check(none_answer)"
    expect(cell.locator(".iag-x")).to_contain_text("Not attempted yet.")
    report = answer(page, cell, f'none_answer = "a"\n{check}')
    expect(report).to_contain_text("A zero would be computed and passed on.")
    told = report.locator("td", has_text="'a'")
    expect(told).to_have_css("text-align", "left")  # JupyterLab's own tables stand at the right
    expect(answer(page, cell, "ex.none_in_a_slot.hint()")).to_contain_text("Hint 1 of 2")
    expect(answer(page, cell, f'none_answer = "b"\n{check}')).to_contain_text("Right.")
    expect(cell.locator(".iag-x")).to_have_class(re.compile("passed"))
    table = answer(page, cell, "from inside_autograd import progress\nprogress()")
    row = table.locator("tr", has_text="Chapter 12")
    expect(row).to_contain_text("1 of 5")
    assert row.locator("th").evaluate(LINES) == 1
    assert_seen(table)


def test_a_chapter_is_run_and_its_explorer_recomputes(open_run):
    page = open_run(EXPLORED)
    explorer = page.locator(".jp-OutputArea-output .widget-vbox").first
    stored = [
        output["data"]["text/html"]
        for cell in nbformat.read(ROOT / "notebooks" / EXPLORED, 4).cells
        for output in cell.get("outputs", ())
        if 'class="iax ' in output.get("data", {}).get("text/html", "")
    ]
    frames = re.split(r'<div class="iax-frame"', stored[0])[1:]
    words = [html.unescape(re.search(r"<desc[^>]*>(.*?)</desc>", frame)[1]) for frame in frames]
    assert len(set(words)) > 1
    other = next(i for i, text in enumerate(words) if text != words[0])
    for position in (0, other):
        explorer.locator("select").select_option(index=position)
        expect(explorer.locator("svg.ag desc")).to_have_text(words[position])
    assert_seen(explorer.locator("svg.ag"))

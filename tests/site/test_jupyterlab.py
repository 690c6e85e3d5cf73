"""A chapter in a real JupyterLab: its drawings are seen before the notebook is trusted, and after."""

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
    shutil.copy(chapter, folder)
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


def test_a_card_stands_below_a_known_error(browser, lab):
    context = browser.new_context(viewport={"width": 1280, "height": 1200})
    context.set_default_timeout(60_000)
    page = context.new_page()
    # A workspace of its own: JupyterLab would open again what the tests before had open.
    page.goto(lab["url"].replace("lab/tree/" + lab["file"].name, "lab/workspaces/card/tree/failing.ipynb"))
    expect(page.locator(".jp-CodeCell")).to_have_count(len(FAILING), timeout=60_000)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    # An error ends "run all": the cells after it are run one by one.
    known, unknown, asked = (page.locator(".jp-CodeCell").nth(i) for i in (1, 2, 3))
    card = known.locator(".iag-x")
    expect(card).to_contain_text("Backward from a tensor of several elements")
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

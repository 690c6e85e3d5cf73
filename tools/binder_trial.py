"""Make an environment from .binder/ by Binder's steps, and run a chapter in its JupyterLab in a browser.

What is not tried: the container itself. Binder's own tool reads the configuration and writes the container's
recipe without an engine; building it takes one.
"""

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import nbformat
from playwright.sync_api import Error, sync_playwright

import setup_env
import trial

REPO2DOCKER = "jupyter-repo2docker==2026.4.0"
# Read by Binder's own code: which way to build it finds, and the recipe it writes.
DETECT = """
import json
from repo2docker.app import Repo2Docker

tool = Repo2Docker()
# The first kind is a guard against an old way, and takes no base image.
kinds = [kind(tool.base_image) for kind in tool.buildpacks if kind.__name__ != "LegacyBinderDockerBuildPack"]
pack = next(kind for kind in kinds if kind.detect())
pack.platform = "linux/amd64"
print(json.dumps({"kind": type(pack).__name__, "python": pack.python_version, "recipe": pack.render({})}))
"""
STARTS_IN = 90  # seconds
RUNS_IN = 900
SETTINGS = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


def read_as_binder(work, tree):
    """Let Binder's tool read the configuration.

    Args:
        work: an empty folder.
        tree: the launch tree.

    Raises:
        trial.TrialError: it does not find the configuration, or does something else with it than meant.
    """
    python = trial.new_environment(work / "repo2docker", sys.executable)
    trial.run([python, "-m", "pip", "install", "--quiet", REPO2DOCKER])
    told = json.loads(trial.run([python, "-c", DETECT], cwd=tree, stderr=None).splitlines()[-1])
    wanted = (tree / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    if (told["kind"], told["python"]) != ("PythonBuildPack", wanted):
        raise trial.TrialError(f"repo2docker takes it for {told['kind']} with Python {told['python']}")
    for file in (".binder/requirements.txt", ".binder/postBuild"):
        if file not in told["recipe"]:
            raise trial.TrialError(f"repo2docker's recipe does not use {file}")
    print(f"Binder: repo2docker builds it as {told['kind']} with Python {told['python']}", flush=True)


def find_python(tree):
    """Find the Python that runtime.txt names.

    Args:
        tree: the launch tree.

    Returns:
        A path.

    Raises:
        trial.TrialError: it is not here.
    """
    text = (tree / ".binder" / "runtime.txt").read_text(encoding="utf-8").strip()
    version = tuple(int(part) for part in text.removeprefix("python-").split("."))
    for candidate in (sys.executable, shutil.which(text.replace("-", ""))):
        if candidate and (setup_env.version_of(candidate) or ())[: len(version)] == version:
            return candidate
    raise trial.TrialError(f"runtime.txt names {text}, which is not here")


def answers(address):
    """Tell whether an index of packages answers.

    Args:
        address: its address.

    Returns:
        True or False.
    """
    try:
        with urllib.request.urlopen(f"{address.rstrip('/')}/torch/", timeout=15):
            return True
    except OSError:
        return False


def make_environment(home, folder, python):
    """Do what Binder does with the configuration: install the requirements, then run postBuild.

    Args:
        home: a copy of the launch tree, which is the home folder on Binder too.
        folder: where to put the environment.
        python: the Python to make it with.

    Returns:
        The path of its Python and the variables that everything in it runs with.
    """
    inside = trial.new_environment(folder, python)
    environ = trial.clean_environ(home)
    environ["PATH"] = f"{folder / 'bin'}{os.pathsep}{environ['PATH']}"
    # An index that is out of reach is passed by: pip would ask it again for each package.
    requirements = home / ".binder" / "requirements.txt"
    text = requirements.read_text(encoding="utf-8")
    for index in re.findall(r"^--extra-index-url (\S+)$", text, re.MULTILINE):
        if not answers(index):
            print("  the index of CPU builds does not answer from here; torch comes from the default index")
            text = text.replace(f"--extra-index-url {index}\n", "")
    (folder / "requirements.txt").write_text(text, encoding="utf-8")
    pip = [inside, "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    trial.run([*pip, "-r", folder / "requirements.txt"], env=environ, cwd=home)
    trial.run(["./.binder/postBuild"], env=environ, cwd=home)
    return inside, environ


@contextmanager
def jupyterlab(python, environ, home):
    """Run a JupyterLab while the block runs.

    Args:
        python: the environment's Python.
        environ: its variables.
        home: the folder it shows.

    Yields:
        Its address, with a slash at its end, and its token.
    """
    config = home / ".jupyter" / "labconfig"
    config.mkdir(parents=True, exist_ok=True)
    (config / "page_config.json").write_text(json.dumps(SETTINGS))
    token, runtime = secrets.token_hex(16), home / ".runtime"
    command = [python, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0"]
    command += [f"--ServerApp.root_dir={home}", f"--IdentityProvider.token={token}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    environ = {**environ, "JUPYTER_RUNTIME_DIR": str(runtime)}
    with (home / ".lab.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=home, env=environ, stdout=log, stderr=log)
    try:
        yield _wait_for(process, runtime, home / ".lab.log", token), token
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def _wait_for(process, runtime, log, token):
    end = time.monotonic() + STARTS_IN
    while time.monotonic() < end and process.poll() is None:
        for file in runtime.glob("jpserver-*.json"):
            try:
                address = json.loads(file.read_text())["url"]
                with urllib.request.urlopen(f"{address}api/status?token={token}", timeout=5):
                    return address
            except (OSError, ValueError, KeyError):
                continue  # half written, or not listening yet
        time.sleep(0.3)
    raise trial.TrialError(f"JupyterLab did not start: {log.read_text(errors='replace')[-2000:]}")


def finished(path):
    """Tell how far a notebook on disk was run since it was opened.

    The first cell has no count in the launch tree, so the counts are 1 to n only after a whole new run.

    Args:
        path: the notebook, as JupyterLab saved it.

    Returns:
        True when every code cell was run, in order.

    Raises:
        trial.TrialError: a cell failed.
    """
    try:
        notebook = nbformat.read(path, as_version=4)
    except nbformat.reader.NotJSONError:
        return False  # it is being written
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(cells, 1):
        for output in cell.outputs:
            if output.output_type == "error":
                raise trial.TrialError(f"code cell {number} failed: {output.ename}: {output.evalue}")
    return [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def run_in_browser(address, token, path, picture=None):
    """Open a notebook in Chromium, run all cells, and wait for the last.

    Args:
        address: JupyterLab's address, with a slash at its end.
        token: its token.
        path: the notebook on disk, in the folder `notebooks/` that JupyterLab shows.
        picture: where to keep a picture of the end, or None.

    Raises:
        trial.TrialError: a cell failed, or the end did not come in time.
    """
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.set_default_timeout(90_000)
            page.goto(f"{address}lab/tree/notebooks/{path.name}?token={token}")
            page.locator(".jp-NotebookPanel-toolbar").wait_for()
            # The notebook shows before its kernel is there; "run" then asks for one.
            page.locator(".jp-StatusBar-Widget").get_by_text("| Idle").wait_for()
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
            end = time.monotonic() + RUNS_IN
            while not finished(path):
                if time.monotonic() > end:
                    raise trial.TrialError(f"{path.name} was not run to its end in {RUNS_IN} s")
                time.sleep(2)
                page.keyboard.press("Control+s")
            if picture:
                page.screenshot(path=picture)
        except Error as error:
            raise trial.TrialError(f"the browser could not go on: {error}") from None
        finally:
            browser.close()


def try_one(tree, work, chapter):
    """Make the environment and run a chapter.

    Args:
        tree: the launch tree.
        work: an empty folder.
        chapter: its file name.

    Returns:
        What failed: always nothing, since the first failure is raised.

    Raises:
        trial.TrialError: a step failed.
    """
    read_as_binder(work, tree)
    home = work / "home"
    shutil.copytree(tree, home)
    print("Binder: making the environment", flush=True)
    python, environ = make_environment(home, work / "environment", find_python(tree))
    print(f"Binder: running {chapter} in JupyterLab", flush=True)
    before, started = trial.installed(python), time.monotonic()
    with jupyterlab(python, environ, home) as (address, token):
        run_in_browser(address, token, home / "notebooks" / chapter, os.environ.get("RELEASE_PICTURE"))
    if trial.installed(python) != before:
        raise trial.TrialError("the first cell installed something that .binder/ should have")
    print(f"  {chapter}: passed in {time.monotonic() - started:.0f} s, nothing was installed")
    return []

"""Run every chapter of the launch tree in an environment shaped like Colab's."""

import json
import os
import time
import urllib.request

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import trial

# Colab's own old line of Jupyter, from the list of packages that it publishes, and what it has besides.
COLAB = (
    "ipython==7.34.0",
    "ipykernel==6.17.1",
    "ipywidgets==7.7.1",
    "jupyter-client==7.4.9",
    "traitlets==5.7.1",
    "numpy==2.0.2",
    "matplotlib==3.10.0",
    "scikit-learn==1.6.1",
)
# What the first cell may add there.
MAY_ADD = {"inside-autograd", "igraph", "texttable"}
KERNEL = "colab-shaped"
CELL_TIMEOUT = 900  # seconds


def make_environment(folder, python, torch):
    """Make the environment: torch is there, the helper package is not.

    Args:
        folder: where.
        python: the Python to make it with.
        torch: the version of torch.

    Returns:
        The path of its Python.
    """
    inside = trial.new_environment(folder, python)
    trial.install_torch(inside, torch, os.environ)
    trial.run([inside, "-m", "pip", "install", "--quiet", f"torch=={torch}", *COLAB])
    return inside


def make_kernel(folder, python, home):
    """Describe the environment's kernel where Jupyter looks for kernels.

    Args:
        folder: a folder for JUPYTER_PATH.
        python: the environment's Python.
        home: the kernel's home folder.
    """
    place = folder / "kernels" / KERNEL
    place.mkdir(parents=True)
    home.mkdir(parents=True)
    spec = {
        "argv": [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": KERNEL,
        "language": "python",
        "env": {
            "HOME": str(home),
            "PYTHONPATH": "",
            # Warnings about this machine, not about the book: pip as root, a debugger in a frozen Python.
            "PIP_ROOT_USER_ACTION": "ignore",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        },
    }
    (place / "kernel.json").write_text(json.dumps(spec))


def run_chapter(address, folder):
    """Load a notebook as Colab does, from an address and without a file beside it, and run it.

    Args:
        address: where the notebook is served.
        folder: an empty folder to run in.

    Returns:
        The text that the first cell printed.

    Raises:
        trial.TrialError: a cell failed.
    """
    with urllib.request.urlopen(address, timeout=30) as answer:
        notebook = nbformat.reads(answer.read().decode(), as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT, kernel_name=KERNEL, resources={"metadata": {"path": str(folder)}}
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise trial.TrialError(f"a cell failed:\n{error}") from None
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if any(cell.execution_count is None for cell in code if "".join(cell.source).strip()):
        raise trial.TrialError("a cell was not run")
    return "".join(output.get("text", "") for output in code[0].outputs)


def check_added(before, after):
    """Check what the first cell changed.

    Args:
        before: name to version, as `trial.installed` lists them.
        after: the same, later.

    Returns:
        The names that were added.

    Raises:
        trial.TrialError: the helper package is not there, something else came, went or changed.
    """
    changed = {name for name in before if after.get(name) != before[name]}
    added = set(after) - set(before)
    if changed:
        raise trial.TrialError(f"the set-up changed what was there: {', '.join(sorted(changed))}")
    if not {"inside-autograd"} <= added <= MAY_ADD:
        raise trial.TrialError(f"the set-up added {', '.join(sorted(added)) or 'nothing'}")
    return added


def try_all(tree, address, work, python, torch, chapters):
    """Run chapters, each in an environment without the helper package.

    Args:
        tree: the launch tree.
        address: where it is served, with a slash at its end.
        work: an empty folder.
        python: the Python to make the environment with.
        torch: the version of torch.
        chapters: file names.

    Returns:
        What failed, a list of texts.
    """
    print("Colab: making the environment", flush=True)
    inside = make_environment(work / "environment", python, torch)
    make_kernel(work / "jupyter", inside, work / "home")
    os.environ["JUPYTER_PATH"] = str(work / "jupyter")
    before, state = trial.installed(inside), trial.torch_state(inside)
    if "inside-autograd" in before:
        raise trial.TrialError("the helper package is there before any chapter ran")
    print(f"Colab: {', '.join(COLAB[:3])}, torch {before['torch']}, no helper package", flush=True)
    failed = []
    for name in chapters:
        folder = work / name.removesuffix(".ipynb")
        folder.mkdir()
        started = time.monotonic()
        try:
            said = run_chapter(f"{address}notebooks/{name}", folder)
            added = check_added(before, trial.installed(inside))
            if trial.torch_state(inside) != state:
                raise trial.TrialError("torch was installed again")
            if not said.startswith(f"Ready: torch {before['torch']} and inside_autograd"):
                raise trial.TrialError(f"the first cell said {said!r}")
            print(f"  {name}: passed in {time.monotonic() - started:.0f} s, added {', '.join(sorted(added))}")
        except trial.TrialError as error:
            failed.append(f"Colab, {name}: {error}")
            print(f"  {name}: FAILED", flush=True)
        extra = sorted(set(trial.installed(inside)) - set(before))
        if extra:
            trial.run([inside, "-m", "pip", "uninstall", "--quiet", "--yes", *extra])
    return failed

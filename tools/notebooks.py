"""Run the chapters again from top to bottom and write them back in one normal form.

    python tools/notebooks.py [FILE.ipynb ...]            run and write (no file: all of notebooks/)
    python tools/notebooks.py --check [FILE.ipynb ...]    write nothing, run nothing, only look

A notebook is written when every cell ran. Then the rules of notebook_rules.py are read over it, and what
they find is printed, one line each. Exit status: 0 all is well, 1 a cell failed or a rule is broken,
2 the command itself was wrong.
"""

import argparse
import asyncio
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import IO

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# No version here: the bytes must not change with a patch release of Python.
LANGUAGE = {"name": "python"}
# What a page may do with a cell. Everything else (timings, collapsed state, slide marks) is an editor's own.
KEPT_TAGS = ("hide-cell", "hide-input", "hide-output", "remove-cell", "remove-input")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# An author's own settings must not reach the stored output. The seed of hashes is left random and the
# number of threads alone: an output that depends on either has to show up as a difference, not be hidden.
DROPPED_VARIABLES = (
    *("PYTHONHASHSEED", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONBREAKPOINT"),
    *("MPLBACKEND", "MPLSTYLE", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"),
    *("TORCH_LOGS", "TORCH_SHOW_CPP_STACKTRACES", "TORCH_CPP_LOG_LEVEL", "ANOMALY_MODE"),
)


class Stop(Exception):
    """One sentence for the person at the keyboard."""


def name_of(path: str | Path) -> str:
    """Say a path the way a reader of the repository would, relative to its root where it lies inside."""
    path = Path(path).resolve()
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def read(path: str | Path) -> NotebookNode:
    """Read a notebook.

    Parameters
    ----------
    path
        An ``.ipynb`` file.

    Returns
    -------
    The notebook as format 4, a ``NotebookNode``.

    Raises
    ------
    Stop
        The file is missing, is no notebook, or does not hold what a notebook must hold.
    """
    path, name = Path(path), name_of(path)
    if path.suffix != ".ipynb":
        raise Stop(f"{name} is not a notebook: name a file that ends in .ipynb.")
    if not path.is_file():
        raise Stop(f"There is no file {name}: check the name.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # cells without an id: the normal form gives them one
            notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
            nbformat.validate(notebook)
    except (nbformat.reader.NotJSONError, UnicodeDecodeError):
        raise Stop(f"{name} is not valid JSON in UTF-8: mend it or take it back from git.") from None
    except Exception as error:  # nbformat raises half a dozen unrelated types for a wrong structure
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise Stop(f"{name} is JSON but not a notebook that Jupyter can read: {first}") from None
    return notebook


# ---------------------------------------------------------------- normal form


def normalize(notebook: NotebookNode) -> NotebookNode:
    """Bring a notebook into the one form that is committed, in place.

    Cell ids come from the source, so that an edit renames one cell and not those after it. Outputs of the
    same stream that follow one another become one, because where a stream is cut depends on the clock.

    Parameters
    ----------
    notebook
        A ``NotebookNode`` of format 4.

    Returns
    -------
    The same notebook.
    """
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": LANGUAGE})
    seen = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] += 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        tags = sorted(set(cell.metadata.get("tags", ())) & set(KEPT_TAGS))
        cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
        if cell.cell_type == "code":
            cell.outputs = normal_outputs(cell.outputs)
    return notebook


def normal_outputs(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Merge streams, and leave the live face of a widget out where it has a still one.

    Parameters
    ----------
    outputs
        The list of outputs of one code cell.

    Returns
    -------
    A new list.
    """
    merged = []
    for output in outputs:
        before = merged[-1] if merged else None
        if output.output_type == "stream" and before and before.get("name") == output.name:
            before.text += output.text
            continue
        if "text/html" in output.get("data", {}):
            output.data.pop(WIDGET_VIEW, None)
        merged.append(output)
    return merged


def to_text(notebook: NotebookNode) -> str:
    """Write a notebook as text, the way Jupyter does: indent of one, sorted keys, a newline at the end."""
    return nbformat.writes(notebook, version=4).rstrip("\n") + "\n"


def write_if_changed(path: str | Path, text: str) -> None:
    """Replace a file in one step, and only if its text differs, so that no page is rebuilt for nothing."""
    path = Path(path)
    if path.read_text(encoding="utf-8") == text:
        return
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as new:
        new.write(text.encode())
    os.chmod(new.name, path.stat().st_mode)
    os.replace(new.name, path)


# ---------------------------------------------------------------- running


def kernel_environment(ipython_directory: str) -> dict[str, str]:
    """Make the environment that cells run in: the caller's, without what would show in an output.

    Parameters
    ----------
    ipython_directory
        An empty folder to stand for the author's IPython profile.

    Returns
    -------
    A dict of environment variables.
    """
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED_VARIABLES}
    environment.update(IPYTHONDIR=str(ipython_directory), CUDA_VISIBLE_DEVICES="")
    matplotlib = importlib.util.find_spec("matplotlib")
    if matplotlib:
        environment["MATPLOTLIBRC"] = str(Path(matplotlib.origin).parent / "mpl-data" / "matplotlibrc")
    return environment


async def execute(path: str | Path, timeout: int) -> None:
    """Run a notebook in a fresh kernel, in its own folder, and write it back in normal form.

    Parameters
    ----------
    path
        An ``.ipynb`` file.
    timeout
        The longest one cell may take, in seconds.

    Raises
    ------
    Stop
        A cell raised, took too long or ended the kernel. The file is then as it was.
    """
    notebook = read(path)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    running = [0]  # the numbers of the cells that were begun
    client = NotebookClient(
        notebook,
        on_cell_execute=lambda cell, cell_index: running.append(cell_index + 1),
        kernel_name="python3",
        timeout=timeout,
        resources={"metadata": {"path": str(Path(path).resolve().parent)}},
        record_timing=False,
        store_widget_state=False,
    )
    # What the kernel process itself writes is its own log, no output of a cell.
    with tempfile.TemporaryDirectory() as profile, tempfile.TemporaryFile() as log:
        try:
            await client.async_execute(env=kernel_environment(profile), stdout=log, stderr=log)
        except CellExecutionError as error:
            raise Stop(f"{place(path, notebook, running[-1])}{describe(error)}") from None
        except CellTimeoutError:
            cell = place(path, notebook, running[-1])
            raise Stop(f"{cell} ran longer than {timeout} s; nothing was written.") from None
        except DeadKernelError:
            cell = place(path, notebook, running[-1])
            raise Stop(f"{cell} ended the kernel; nothing was written.{last(log)}") from None
        except (RuntimeError, OSError):
            raise Stop(f"{name_of(path)}: no kernel started; nothing was written.{last(log)}") from None
    write_if_changed(path, to_text(normalize(notebook)))


def place(path: str | Path, notebook: NotebookNode, number: int) -> str:
    """Name a cell: its number in the file, from 1, and the count that a run gives it."""
    run = [cell for cell in notebook.cells[:number] if cell.cell_type == "code" and cell.source.strip()]
    return f"{name_of(path)}, cell {number} (In [{len(run)}])"


def last(log: IO[bytes]) -> str:
    """Give the last line of a kernel's log, or nothing where it is empty."""
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    lines = [line for line in lines if line.strip() and "WARNING" not in line]
    return f" Its last words: {lines[-1].strip()}" if lines else ""


def describe(error: CellExecutionError) -> str:
    """Say which line of a cell raised what, as the rest of a sentence."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
    lines = re.findall(r"^Cell In\[\d+\], line (\d+)", plain, re.MULTILINE)
    line = f", line {lines[0]}" if lines else ""
    message = re.sub(r" ?\(\d+\.py, line \d+\)$", "", re.sub(r"\x1b\[[0-9;]*m", "", error.evalue))
    said = f"{error.ename}: {' '.join(message.split())}".rstrip(": ")
    return f"{line} raised {said}; nothing was written."


# ---------------------------------------------------------------- the command


def findings(path: Path) -> list[str]:
    """Look at a notebook as it stands on disk.

    Parameters
    ----------
    path
        An ``.ipynb`` file.

    Returns
    -------
    A list of lines, one for each thing to mend.
    """
    try:
        import notebook_rules
    except ImportError:
        return []
    return [f"{name_of(path)}: {problem}" for problem in notebook_rules.problems(path)]


async def execute_all(paths: list[Path], jobs: int, timeout: int) -> list[Path]:
    """Run several notebooks, some at a time.

    Parameters
    ----------
    paths
        The files.
    jobs
        How many kernels at once.
    timeout
        The longest one cell may take, in seconds.

    Returns
    -------
    The paths that were written.
    """
    free = asyncio.Semaphore(jobs)

    async def one(path):
        async with free:
            try:
                await execute(path, timeout)
            except Stop as stop:
                print(stop, file=sys.stderr, flush=True)
                return None
            print(f"{name_of(path)}: ran", flush=True)
            return path

    return [path for path in await asyncio.gather(*map(one, paths)) if path]


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments
        The words after the command's name, or None for those of this process.

    Returns
    -------
    The exit status.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE.ipynb", help="default: every chapter")
    parser.add_argument("--check", action="store_true", help="run and write nothing, only look")
    parser.add_argument("--jobs", type=int, default=2, help="notebooks run at once (default 2)")
    parser.add_argument("--timeout", type=int, default=600, help="seconds one cell may take (default 600)")
    options = parser.parse_args(arguments)
    if options.jobs < 1 or options.timeout < 1:
        parser.error("--jobs and --timeout take a whole number of at least 1")
    paths = [Path(file) for file in options.files] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    try:
        if not paths:
            raise Stop("There is no notebook in notebooks/: name a file.")
        for path in paths:
            read(path)
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    done = paths if options.check else asyncio.run(execute_all(paths, options.jobs, options.timeout))
    problems = [line for path in done for line in findings(path)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems or len(done) < len(paths) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("Stopped. Notebooks that had not finished are as they were.", file=sys.stderr)
        sys.exit(130)

"""What the trials of release_check.py share: clean environments, what is in them, a server for a folder."""

import functools
import hashlib
import json
import os
import subprocess
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import setup_env

# Names from elsewhere that would make an environment less clean than it says.
PYTHON_NAMES = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX")


class TrialError(Exception):
    """What went wrong in a trial, in words."""


def clean_environ(home):
    """Make the environment variables of a new user.

    Args:
        home: the folder that is home.

    Returns:
        A dict: this process's variables without Jupyter's, Python's and this book's.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("JUPYTER", "INSIDE_AUTOGRAD", "IPYTHON")) and name not in PYTHON_NAMES
    }
    return {**kept, "HOME": str(home)}


def run(command, **options):
    """Run a command to its end.

    Args:
        command: a list.
        options: passed on to `subprocess.run`.

    Returns:
        What it wrote, errors included.

    Raises:
        TrialError: it failed; with the end of what it wrote.
    """
    options = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, **options}
    done = subprocess.run([str(part) for part in command], **options)
    if done.returncode != 0:
        raise TrialError(f"{' '.join(str(part) for part in command[:6])} … failed:\n{done.stdout[-3000:]}")
    return done.stdout


def new_environment(folder, python):
    """Make an empty virtual environment.

    Args:
        folder: where.
        python: the Python to make it with.

    Returns:
        The path of its Python.
    """
    run([python, "-m", "venv", folder])
    return setup_env.venv_python(str(folder))


def install_torch(python, version, environ):
    """Install torch, from the index of CPU builds where that answers.

    Args:
        python: the environment's Python.
        version: the version of torch.
        environ: the environment variables; TORCH_INDEX as in setup_env.py.
    """
    commands = setup_env.torch_commands(python, version, environ.get("TORCH_INDEX", setup_env.CPU_INDEX))
    for command in commands[:-1]:
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return
        print("  the index of CPU builds does not answer from here; torch comes from the default index")
    run(commands[-1])


def installed(python):
    """List what an environment holds.

    Args:
        python: its Python.

    Returns:
        A dict from name to version.
    """
    listed = run([python, "-m", "pip", "list", "--format", "json"], stderr=subprocess.DEVNULL)
    return {entry["name"].lower().replace("_", "-"): entry["version"] for entry in json.loads(listed)}


def torch_state(python):
    """Sum up the torch that is installed, so that one put in its place is noticed, the same version too.

    Args:
        python: the environment's Python.

    Returns:
        A text that changes when torch's files were written again.
    """
    code = (
        "from importlib.metadata import distribution\n"
        "for file in distribution('torch').files:\n"
        "    stat = file.locate().stat()\n"
        "    print(file, stat.st_size, stat.st_mtime_ns, stat.st_ino)\n"
    )
    return hashlib.sha256(run([python, "-c", code]).encode()).hexdigest()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextmanager
def served(folder):
    """Serve a folder to this computer while the block runs.

    Args:
        folder: the folder.

    Yields:
        Its address, with a slash at its end.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)

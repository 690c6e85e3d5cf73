"""Trust your copies and open them in JupyterLab, on this computer only and with its token.

    .venv/bin/python tools/lab.py [further options of jupyter lab]
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import learner_copies

ROOT = Path(__file__).resolve().parent.parent
LIVE = "application/vnd.jupyter.widget-view+json"


def lab_command(root, options):
    """Build the command that starts JupyterLab.

    Args:
        root: the folder of the book.
        options: more options, passed on as they are.

    Returns:
        A list. The whole book is in view, so that links from the chapters to its pages work.
    """
    start = "--LabApp.default_url=/lab/tree/work/START.ipynb"
    return [sys.executable, "-m", "jupyterlab", "--ip=127.0.0.1", f"--notebook-dir={root}", start, *options]


def is_open(root):
    """Tell whether a JupyterLab is already open on the book.

    Args:
        root: the folder of the book.

    Returns:
        True when a server of this user has it as its folder: then kernels may still run.
    """
    from jupyter_server.serverapp import list_running_servers

    return any(Path(server.get("root_dir") or "/").resolve() == root for server in list_running_servers())


def keep_still_faces(path):
    """Leave out the live face of an explorer where it has a still one.

    Its widgets ended with the kernel. JupyterLab would show "Error displaying widget: model not found" in the
    place of the frames that are stored beside them.

    Args:
        path: a notebook, which is written again only if something was left out. What cannot be read stays.
    """
    try:
        page = json.loads(path.read_bytes())
        outputs = [output.get("data", {}) for cell in page["cells"] for output in cell.get("outputs", ())]
        ended = [data for data in outputs if LIVE in data and "text/html" in data]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for data in ended:
        del data[LIVE]
    if ended:
        learner_copies.write(path, (json.dumps(page, indent=1, ensure_ascii=False) + "\n").encode("utf-8"))


def main(options):
    """Start JupyterLab and wait for it.

    Args:
        options: more options for JupyterLab.

    Returns:
        Its exit status.
    """
    copies = sorted(str(path) for path in (ROOT / "work").glob("*.ipynb"))
    if not copies:
        raise SystemExit("There are no copies in work/ yet: run `make lab`.")
    if not is_open(ROOT):
        for copy in copies:
            keep_still_faces(Path(copy))
    # An untrusted notebook shows drawings as plain pictures; these are the book's own.
    trust = [sys.executable, "-c", "from nbformat.sign import TrustNotebookApp as app; app.launch_instance()"]
    done = subprocess.run([*trust, *copies], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        print("The copies could not be marked as trusted; drawings will still show.", file=sys.stderr)
    # Root in a container is common in class; JupyterLab refuses it without being told.
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options = ["--allow-root", *options]
    # Kernels inherit it: what is solved is noted beside the copies.
    environment = {"INSIDE_AUTOGRAD_PROGRESS": str(ROOT / "work" / "progress.json"), **os.environ}
    print("JupyterLab opens in your browser, or follow the address below (Ctrl+C stops it)", flush=True)
    try:
        return subprocess.run(lab_command(ROOT, options), env=environment).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

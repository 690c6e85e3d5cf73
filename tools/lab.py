"""Trust your copies and open them in JupyterLab, on this computer only and with its token.

    .venv/bin/python tools/lab.py [further options of jupyter lab]
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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

"""Build the site with warnings as errors, and say where it is.

    .venv/bin/python tools/build_book.py

Only pages that changed are built again. When a setting, a template, a local extension or a version changed,
all of them are.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What decides how every page looks: a page's own source is not among them.
SHARED = ("_config.yml", "_toc.yml", "requirements.txt", "constraints.txt", "LICENSE", "LICENSE-TEXT")
# What book/_ext/repository.py reads.
ADDRESSES = (
    *("REPO_URL", "LAUNCH_BRANCH", "SITE_URL", "OFFLINE_COPY"),
    *("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"),
)
SHARED_FOLDERS = ("book/_ext", "book/_static", "book/_templates")


def settings_hash(root, environ):
    """Sum up what all pages depend on.

    Args:
        root: the folder of the book.
        environ: the environment variables; those that name the repository count.

    Returns:
        A text that changes when any of it does.
    """
    digest = hashlib.sha256()
    files = [root / name for name in SHARED]
    for folder in SHARED_FOLDERS:
        files += [path for path in (root / folder).rglob("*") if "__pycache__" not in path.parts]
    for path in sorted(path for path in files if path.is_file()):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in ADDRESSES:
        digest.update(f"{name}={environ.get(name)}\0".encode())
    digest.update(sys.version.encode())
    return digest.hexdigest()


def main():
    """Build the site.

    Returns:
        0, or 1 after the warnings and one sentence on standard error.
    """
    build = ROOT / "_build"
    build.mkdir(exist_ok=True)
    stamp, log = build / "settings.stamp", build / "build.log"
    wanted = settings_hash(ROOT, os.environ)
    fresh = not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted
    stamp.unlink(missing_ok=True)
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(ROOT)]
    command += ["-W", "-n", "--keep-going", *(["--all"] if fresh else [])]
    print("Building the site:", "all pages" if fresh else "the pages that changed", flush=True)
    started = time.monotonic()
    # A fixed seed, so that the same sources give the same bytes.
    environ = {**os.environ, "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        lines = []
        for line in process.stdout:
            # Jupyter Book colors its output even when that goes to a file.
            line = re.sub(r"\x1b\[[0-9;]*m", "", line)
            file.write(line)
            lines.append(line)
            if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line):
                print(line.rstrip(), file=sys.stderr, flush=True)
    if process.wait() != 0:
        if not any("WARNING" in line for line in lines):
            sys.stderr.writelines(lines[-15:])
        print(f"The site was not built: see above, or all of it in {log.relative_to(ROOT)}.", file=sys.stderr)
        return 1
    stamp.write_text(wanted, encoding="utf-8")
    print(f"Done in {time.monotonic() - started:.0f} s. Open this file in a browser:")
    print(build / "html" / "index.html")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped. Run `make book` again to finish.")

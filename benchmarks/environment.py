"""Make .venv-bench: the tools that the helper is compared with, beside the book's environment.

It holds only what .venv lacks, and takes torch and all else from there. A second run installs nothing.
"""

import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
HOME = ROOT / ".venv-bench"


def main() -> int:
    """Run with the Python of .venv."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    stamp = HOME / "installed.txt"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return 0
    venv.create(HOME, with_pip=True, clear=True)
    python = HOME / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own, book = (
        subprocess.run([one, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        for one in (str(python), sys.executable)
    )
    (Path(own) / "book.pth").write_text(f"{book}\n{ROOT / 'src'}\n", encoding="utf-8")
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--requirement",
        str(HERE / "requirements.txt"),
    ]
    if subprocess.run(command).returncode:
        print("The tools to compare with could not be installed: see what pip says above.", file=sys.stderr)
        return 1
    stamp.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

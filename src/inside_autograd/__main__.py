"""``python -m inside_autograd explain [FILE]``: explain a traceback from a file or from standard input."""

import argparse
import sys
from pathlib import Path

from .errors import explain

LARGEST = 5_000_000  # characters: of a longer log the end counts, where the error stands


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Returns
    -------
    int
        0 if the message is in the catalogue, 1 if it is not, 2 if there was nothing to read.
    """
    parser = argparse.ArgumentParser(
        prog="python -m inside_autograd", description="Explain errors and warnings of PyTorch's autograd."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="explain")
    command = commands.add_parser(
        "explain",
        help="explain a traceback",
        description="Say what an error or warning means, its usual causes, and the repair. Status 0: the "
        "message is in the catalogue; 1: it is not; 2: there was nothing to read.",
    )
    command.add_argument(
        "file",
        nargs="?",
        default="-",
        help="a text file with the traceback; without it, standard input is read",
    )
    try:
        text = _read(parser.parse_args(arguments).file)
        explanation = explain(text[-LARGEST:])
    except (OSError, ValueError) as error:
        print(_sentence(error), file=sys.stderr)
        return 2
    print(explanation)
    return 0 if explanation else 1


def _read(file: str) -> str:
    if file != "-":
        return Path(file).read_text(encoding="utf-8", errors="replace")
    if sys.stdin.isatty():
        print("Paste the traceback, then press Ctrl-D (on Windows Ctrl-Z and Enter).", file=sys.stderr)
    return sys.stdin.buffer.read().decode("utf-8", errors="replace")


def _sentence(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return f"Cannot read {error.filename}: {error.strerror}. Name a text file that holds the traceback."


if __name__ == "__main__":
    sys.exit(main())

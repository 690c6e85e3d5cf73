"""Try the launch tree the way Colab and Binder run it, before a release.

    .venv/bin/python tools/release_check.py [--only colab|binder] [--chapters 11_first_gradient …]

The tree is made for an address on this computer and served there. Colab's part runs each chapter from its
first cell to its last in an environment with Colab's versions, and checks that torch was not installed again.
Binder's part lets Binder's own tool read .binder/, makes an environment from it step by step, starts
JupyterLab there, opens a chapter in Chromium and runs it to its end. It takes 15 minutes or more on two
cores; packages come from the package index.

Environment variables: RELEASE_PYTHON (the Python of the environments; this one when not set), CHROMIUM,
TORCH_INDEX.
"""

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path

import binder_trial
import colab_trial
import launch_tree
import setup_env
import trial

ROOT = Path(__file__).resolve().parent.parent
# Any address: the links in the chapters lead there, and nothing is loaded from it.
REPO = "https://github.com/owner/name"


def chapter_names(named):
    """Check the chapters that were asked for.

    Args:
        named: file names with or without suffix; none means all.

    Returns:
        File names in order.

    Raises:
        SystemExit: there is no such chapter.
    """
    every = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
    wanted = [name.removesuffix(".ipynb") + ".ipynb" for name in named]
    for name in wanted:
        if name not in every:
            raise SystemExit(f"There is no chapter {name}.")
    return wanted or every


def main(arguments=None):
    """Run the trials.

    Args:
        arguments: the command line; that of the process when not given.

    Returns:
        0 when everything passed, else 1.
    """
    parser = argparse.ArgumentParser(description="Try the launch tree the way Colab and Binder run it.")
    parser.add_argument("--only", choices=("colab", "binder"), help="run one of the two")
    parser.add_argument("--chapters", nargs="*", default=[], help="chapters for Colab's part; all when none")
    parser.add_argument("--browse", default="11_first_gradient", help="the chapter that Binder's part opens")
    options = parser.parse_args(arguments)
    chapters, (browse,) = chapter_names(options.chapters), chapter_names([options.browse])
    python = os.environ.get("RELEASE_PYTHON") or sys.executable
    torch = setup_env.pinned((ROOT / "requirements.txt").read_text(encoding="utf-8"), "torch")
    failed = []
    with tempfile.TemporaryDirectory(prefix="release-check-") as temporary:
        work = Path(temporary)
        tree = work / "tree"
        with trial.served(tree) as address:
            launch_tree.write_tree(ROOT, tree, REPO, "launch", "https://owner.github.io/name/", address)
            if options.only != "binder":
                (work / "colab").mkdir()
                failed += _tried(colab_trial.try_all, tree, address, work / "colab", python, torch, chapters)
            if options.only != "colab":
                (work / "binder").mkdir()
                failed += _tried(binder_trial.try_one, tree, work / "binder", browse)
    for text in failed:
        print(f"\n{text}", file=sys.stderr)
    print(f"release-check: {'passed' if not failed else f'{len(failed)} failed'}")
    return 1 if failed else 0


def _tried(part, *arguments):
    try:
        return part(*arguments)
    except trial.TrialError as error:
        return [re.sub(r"_trial$", "", part.__module__).capitalize() + f": {error}"]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped.")

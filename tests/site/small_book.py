"""Books of a few of the pages, built in a folder of their own: with an address, or as Jupyter Book comes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("_config.yml", "requirements.txt", "LICENSE", "LICENSE-TEXT", "book/references.bib")
# What Jupyter Book asks of a book, and no setting more; it would run the notebooks otherwise.
STOCK = {
    "title": "Inside Autograd",
    "author": "The Inside Autograd authors",
    "only_build_toc_files": True,
    "execute": {"execute_notebooks": "off"},
}


def _build(folder, **environ):
    # Links to pages that were left out give warnings, so none counts here.
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(folder)]
    known = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env={**known, "REPO_URL": "", **environ}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder / "_build" / "html"


def _copy(folder, names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)


def _write_pages(folder, pages):
    first, *rest = pages
    _copy(folder, [next(f"{p}{s}" for s in (".md", ".ipynb") if (ROOT / f"{p}{s}").exists()) for p in pages])
    _copy(folder, [path.relative_to(ROOT).as_posix() for path in (ROOT / "book").glob("*.html")])
    toc = {"format": "jb-book", "root": first, "chapters": [{"file": name} for name in rest]}
    (folder / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")


def build_own(folder, pages, day, redirects=None, **environ):
    """Build a book of some of the pages with the settings and extensions of this one.

    Args:
        folder: an empty folder; it becomes a git repository.
        pages: names of pages without suffix, the first page first.
        day: the day of its only commit, YYYY-MM-DD.
        redirects: a dict from old names of pages to new ones.
        environ: environment variables, such as the addresses.

    Returns:
        The folder of the site.
    """
    _copy(folder, NEEDED)
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(
            ROOT / "book" / name, folder / "book" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    _write_pages(folder, pages)
    (folder / "book" / "redirects.json").write_text(json.dumps(redirects or {}), encoding="utf-8")
    who = {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (
            ("NAME", "someone"),
            ("EMAIL", "someone@example.org"),
            ("DATE", f"{day}T12:00:00+0000"),
        )
    }
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "all"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, env={**os.environ, **who})
    return _build(folder, **environ)


def build_stock(folder, pages):
    """Build a book of some of the pages as Jupyter Book does when nothing is set.

    Args:
        folder: an empty folder.
        pages: as for `build_own`.

    Returns:
        The folder of the site.
    """
    (folder / "_config.yml").write_text(yaml.safe_dump(STOCK), encoding="utf-8")
    _write_pages(folder, pages)
    return _build(folder)

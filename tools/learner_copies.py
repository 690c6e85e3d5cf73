"""Copy the chapters into work/, where you may change them; never overwrite what you changed.

    .venv/bin/python tools/learner_copies.py

What happens to each chapter, told from its bytes:
- no copy yet, or you deleted it: it is copied;
- the copy is as it was made: it is replaced by the book's version;
- you changed the copy and the book's chapter is the same as then: nothing;
- you changed the copy and the book's chapter changed too: the new version is put beside yours, as
  `12_grad_fn.new-1a2b3c4d.ipynb`, once. The eight digits are the start of its SHA-256.

work/.copies.json remembers what was copied. Without it, every copy that differs counts as changed by you.
"""

import hashlib
import json
import os
import re
import sys
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START = "START.ipynb"


def digest(data):
    """Sum up what a person wrote in a notebook: its cells without their outputs.

    Args:
        data: the bytes of a notebook; of anything else all bytes count.

    Returns:
        A SHA-256 as text. Running cells does not change it, editing them does.
    """
    try:
        cells = json.loads(data)["cells"]
        written = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha256(json.dumps(written).encode()).hexdigest()


def write(path, data):
    """Write a file so that a stop halfway leaves the old one whole.

    Args:
        path: the file.
        data: its bytes.
    """
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    os.replace(part, path)


def title_of(data, fallback):
    """Read a chapter's title.

    Args:
        data: the bytes of a notebook.
        fallback: what to say when it has none.

    Returns:
        The text of its first heading.
    """
    for cell in json.loads(data)["cells"]:
        for line in "".join(cell["source"]).splitlines():
            if cell["cell_type"] == "markdown" and line.startswith("# "):
                return line[2:].strip()
    return fallback


def start_page(chapters):
    """Make the page that opens first.

    Args:
        chapters: bytes of the notebooks by file name.

    Returns:
        The bytes of a notebook: where to begin, and a cell that shows what is done.
    """
    lines = [
        "# Start here",
        "",
        "These are your own copies: change and break whatever you like. They stay yours when the book is "
        "updated; a newer version of a chapter that you changed is put beside yours, with `.new` in its "
        "name. To begin a chapter afresh, delete its file and run `make lab` again.",
        "",
        "Run a cell with Shift+Enter, and a chapter from its top: its cells build on each other (menu *Run*, "
        "*Run All Cells*). Open a chapter:",
        "",
        *(f"- {name[:2]} [{title_of(data, name)}]({name})" for name, data in chapters.items()),
        "",
        "## What you have done",
        "",
        "Each exercise that you solve is noted. Run this cell to see how far you are:",
    ]
    source = [line + "\n" for line in lines[:-1]] + [lines[-1]]
    cell = {"cell_type": "markdown", "id": "start", "metadata": {}, "source": source}
    code = ["from inside_autograd import progress\n", "\n", "progress()"]
    shown = {"cell_type": "code", "id": "progress", "metadata": {}, "source": code}
    shown |= {"execution_count": None, "outputs": []}
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    page = {"cells": [cell, shown], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return (json.dumps(page, indent=1, ensure_ascii=False) + "\n").encode()


def anchors_for_jupyter(data, book):
    """Make links to headings of the book's pages work in JupyterLab.

    The site writes an anchor in small letters and without signs, as GitHub does; JupyterLab keeps the heading
    as it is, with hyphens for blanks. With an anchor that it does not know it stays at the top of the page.

    Args:
        data: the bytes of a notebook.
        book: the folder of the pages.

    Returns:
        The bytes with anchors as JupyterLab has them. What leads to no heading stays as it is.
    """

    def change(match):
        page, anchor = match.groups()
        if page not in headings:
            path = book / page
            headings[page] = _headings(path.read_text(encoding="utf-8")) if path.exists() else {}
        found = headings[page].get(anchor)
        return f"](../book/{page}#{found})" if found else match[0]

    headings = {}
    text = data.decode("utf-8")
    return re.sub(r"\]\(\.\./book/([\w-]+\.md)#([\w-]+)\)", change, text).encode("utf-8")


def _headings(text):
    """Anchors of a page in Markdown: from GitHub's form to JupyterLab's."""
    found = {}
    for line in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE):
        words = line.replace("`", "").strip()
        anchor = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.setdefault(anchor, urllib.parse.quote(words.replace(" ", "-"), safe="-:,=?'!()"))
    return found


def read_manifest(work):
    """Read what earlier runs copied.

    Args:
        work: the learner's folder.

    Returns:
        A dict by file name, empty when the file is missing or broken: then nothing counts as untouched.
    """
    try:
        found = json.loads((work / ".copies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    entries = found.items() if isinstance(found, dict) else ()
    return {name: entry for name, entry in entries if isinstance(entry, dict)}


def update_one(work, name, data, entry):
    """Bring one copy up to date.

    Args:
        work: the learner's folder.
        name: the file name.
        data: the bytes of the book's version.
        entry: what the manifest says about it: `copied` and, if a newer version was put beside, `offered`,
            both SHA-256.

    Returns:
        The new entry and what happened: "copied", "updated", "same", "yours" or "beside".
    """
    copy, book = work / name, digest(data)
    if not copy.exists():
        write(copy, data)
        return {"copied": book}, "copied"
    mine = digest(copy.read_bytes())
    if mine == book:
        return {"copied": book}, "same"
    if mine == entry.get("copied"):
        write(copy, data)
        return {"copied": book}, "updated"
    if book in (entry.get("copied"), entry.get("offered")):
        return entry, "yours"
    old = entry.get("offered")
    if old:
        _remove_if_untouched(beside(copy, old), old)
    write(beside(copy, book), data)
    return {**entry, "offered": book}, "beside"


def beside(copy, book):
    """Name the file for a newer version of a copy that the learner changed.

    Args:
        copy: the path of the learner's copy.
        book: the SHA-256 of the newer version.

    Returns:
        A path in the same folder.
    """
    return copy.with_name(f"{copy.stem}.new-{book[:8]}{copy.suffix}")


def _remove_if_untouched(path, known):
    if path.exists() and digest(path.read_bytes()) == known:
        path.unlink()


def update(notebooks, work):
    """Bring every copy up to date.

    Args:
        notebooks: the folder of the chapters.
        work: the learner's folder; made when it is not there.

    Returns:
        What happened, by file name, as `update_one` says it.

    Raises:
        SystemExit: there are no chapters, or work/ is not a folder.
    """
    chapters = {path.name: path.read_bytes() for path in sorted(notebooks.glob("*.ipynb"))}
    book = notebooks.parent / "book"
    chapters = {name: anchors_for_jupyter(data, book) for name, data in chapters.items()}
    if not chapters:
        raise SystemExit("There are no chapters in notebooks/ to copy.")
    if work.exists() and not work.is_dir():
        raise SystemExit("work is a file, but your copies need a folder of that name: move it away first.")
    work.mkdir(exist_ok=True)
    manifest, happened = read_manifest(work), {}
    for name, data in {START: start_page(chapters), **chapters}.items():
        manifest[name], happened[name] = update_one(work, name, data, manifest.get(name, {}))
        # After each file, so that a stop halfway forgets nothing.
        write(work / ".copies.json", (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode())
    return happened


def main():
    """Update work/ and tell what is new there."""
    happened = update(ROOT / "notebooks", ROOT / "work")
    for name, what in happened.items():
        if what == "copied":
            print(f"new: work/{name}")
        elif what == "updated":
            print(f"updated: work/{name}")
        elif what == "beside":
            print(f"work/{name} stays as you changed it; the newer one is beside it, with .new in its name")


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"Your copies could not be written: {error}.")

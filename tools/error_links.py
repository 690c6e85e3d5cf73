"""Write into each chapter's "When it goes wrong" the links to the entries of the index that it explains.

    python tools/error_links.py

They are the last cell of the section, folded. It lists the entries whose home the chapter is,
and those whose message the chapter shows.
"""

import re
import sys

from nbformat.v4 import new_markdown_cell

from error_pages import CLINIC
from inside_autograd.catalogue import Entry, all_entries
from inside_autograd.errors import look_up
from notebook_rules.text import INDEX_CELL
from notebooks import ROOT, Stop, name_of, normalize, read, to_text, write_if_changed

NEXT = "## Exercises"  # the section after "When it goes wrong"
SHOWN = re.compile(r"^([A-Z]\w*(?:Error|Warning)): (.*?)(?=^[A-Z]\w*(?:Error|Warning): |\Z)", re.M | re.S)


def entries_met(notebook) -> list[Entry]:
    """The entries whose message a cell of the notebook printed, in order of their first sight."""
    found = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            for category, message in SHOWN.findall(output.get("text", "")):
                entry = look_up(category, message)
                if entry is not None:
                    found[entry.id] = entry
    return list(found.values())


def entries_of(name: str, notebook) -> list[Entry]:
    """The entries that a chapter links: those it is the home of first, then those it meets."""
    home = [entry for entry in all_entries().values() if entry.chapter == name]
    met = [entry for entry in entries_met(notebook) if entry.chapter != name]
    return home + met


def cell_text(entries: list[Entry]) -> str:
    """The folded list of links."""
    count = f"{len(entries)} messages" if len(entries) > 1 else "one message"
    links = "\n".join(f"- [{entry.title}](../book/errors.md#{entry.id})" for entry in entries)
    return f"{INDEX_CELL} {count} on the subjects of this chapter</summary>\n\n{links}\n\n</details>"


def write(path) -> bool:
    """Bring the line in one chapter up to date; returns whether the file changed."""
    before, notebook = path.read_text(encoding="utf-8"), read(path)
    starts = [c.source.split("\n")[0] if c.cell_type == "markdown" else "" for c in notebook.cells]
    if NEXT not in starts:
        raise Stop(f'{name_of(path)} needs a cell that begins with "{NEXT}".')
    end = starts.index(NEXT)
    entries = entries_of(path.stem, notebook)
    new = [new_markdown_cell(cell_text(entries))] if entries else []
    old = notebook.cells[end - 1].source.startswith(INDEX_CELL)
    notebook.cells[end - old : end] = new
    text = to_text(normalize(notebook))
    write_if_changed(path, text)
    return text != before


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    if arguments:
        print("Usage: python tools/error_links.py", file=sys.stderr)
        return 2
    try:
        for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
            if path.stem != CLINIC:
                print(f"{name_of(path)}: {'links written' if write(path) else 'up to date'}")
    except Stop as stop:
        print(stop, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

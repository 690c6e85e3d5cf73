"""Link the first use of each glossary term, printed bold in its chapter, to the glossary.

    python tools/term_links.py

A term's chapter is the first that its entry in book/glossary.md links to. Says which terms it did not find.
"""

import re
import sys

from notebook_rules.text import glossary_terms, term_anchor
from notebooks import ROOT, name_of, normalize, read, to_text, write_if_changed

GLOSSARY = ROOT / "book" / "glossary.md"
PAGE = "../book/glossary.md"
KINDS = ("operation", "output", "gradient")


def homes(text: str) -> dict[str, str]:
    """From each term to the name of the chapter that explains it."""
    found, plain = {}, text.replace("`", "")
    for term in glossary_terms(text):
        entry = re.search(rf"^{re.escape(term)}$\n((?:  .*\n|\n(?=  ))+)", plain, re.MULTILINE)
        found[term] = re.search(r"notebooks/(\w+)\.ipynb", entry[1])[1]
    return found


def link(notebook, term: str) -> bool:
    """Link the term where it is first printed bold; returns whether it is linked now.

    A short form in parentheses may stand outside of the bold text, and so may the word that says what kind
    of thing it is: "**fused** operations" is where "fused operation" is defined.
    """
    target = f"{PAGE}#{term_anchor(term)}"
    words = re.sub(r" \(.*\)$", "", term).split()
    kind = rf"(?:\s+{words.pop()})?" if len(words) > 1 and words[-1] in KINDS else ""
    name = r"\s+".join(map(re.escape, words))
    bold = re.compile(rf"\*\*(`?{name}{kind}(?:s|es)?`?)\*\*", re.IGNORECASE)
    cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    if any(f"]({target})" in cell.source for cell in cells):
        return True
    for cell in cells:
        cell.source, count = bold.subn(rf"**[\1]({target})**", cell.source, count=1)
        if count:
            return True
    return False


def main(arguments: list[str]) -> int:
    """Run the command; returns its exit status."""
    if arguments:
        print("Usage: python tools/term_links.py", file=sys.stderr)
        return 2
    chapters = homes(GLOSSARY.read_text(encoding="utf-8"))
    missing = []
    for name in sorted(set(chapters.values())):
        path = ROOT / "notebooks" / f"{name}.ipynb"
        notebook = read(path)
        missing += [
            f"{name_of(path)}: print {term!r} bold where the chapter defines it"
            for term, home in chapters.items()
            if home == name and not link(notebook, term)
        ]
        write_if_changed(path, to_text(normalize(notebook)))
    print("\n".join(missing) or "Every term is linked.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

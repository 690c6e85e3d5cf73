"""The page of the book that is made from the catalogue of errors: the index, with its search box."""

import html
import json

from inside_autograd.catalogue import Entry, all_entries, slug, topics
from notebook_rules.text import CLINIC

LONGEST = 400  # characters of a message on the index page: matrices and tracebacks are in the clinic
OPENING = """\
# Index of errors and warnings

Paste a message, or a whole traceback, into the box. Your text stays in this page: nothing is sent anywhere.
Without scripts, use your browser's search in the list below.

```{raw} html
:file: errors_box.html
```

The same index answers in Python: `explain(error)`, `explain("pasted text")`, or `explain()` for the last
error. In a terminal, `python -m inside_autograd explain FILE` reads a traceback from a file. [The error
clinic](../notebooks/42_error_clinic.ipynb) runs each entry, broken and repaired. Messages are those of the
torch version named at the top of the clinic; older names in them are found too.
"""


def index_page() -> str:
    """The page ``book/errors.md``."""
    parts = [OPENING.strip()]
    for topic, entries in topics().items():
        parts.append(f"## {topic}")
        parts += [_entry(entry) for entry in entries]
    return "\n\n".join(parts) + "\n"


def _entry(entry: Entry) -> str:
    # A message may hold backticks: the fence is longer than any run of them.
    message = f"{entry.category}: {entry.message}"
    if len(message) > LONGEST:
        message = message[:LONGEST].rsplit(" ", 1)[0].rstrip() + " …"
    fence = "```" + "`" * ("```" in message)
    clinic = f"[causes, code and repaired code](../notebooks/{CLINIC}.ipynb#{entry.id})"
    chapter = f"[chapter {entry.chapter[:2]}](../notebooks/{entry.chapter}.ipynb#{slug(entry.section)})"
    return (
        f"### {entry.title}\n\n{fence}text\n{message}\n{fence}\n\n"
        f"{entry.meaning}\n\n**Repair.** {entry.repair}\n\nIn the clinic: {clinic}. Why it is so: {chapter}."
    )


def search_data() -> str:
    """The file ``book/_static/errors_data.js``: what the text box searches, loaded at its first use."""
    data = [
        {
            "id": entry.id,
            "title": entry.title,
            "category": entry.category,
            "pattern": entry.pattern,
            "messages": [" ".join(text.split()) for text in (entry.message, *entry.variants)],
        }
        for entry in all_entries().values()
    ]
    return f"window.errorIndex = {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n"


def search_box() -> str:
    """The file ``book/errors_box.html``: the text box."""
    return (
        '<link rel="stylesheet" href="../_static/errors.css">\n'
        '<form id="error-box" role="search" hidden>\n'
        '<label for="error-text">Your message or traceback</label>\n'
        '<textarea id="error-text" rows="5" spellcheck="false" autocomplete="off" '
        f'placeholder="{html.escape("RuntimeError: …")}"></textarea>\n'
        '<button type="reset">Clear</button>\n'
        '<p id="error-says" role="status"></p>\n'
        "</form>\n"
        '<script src="../_static/errors.js" defer></script>\n'
    )

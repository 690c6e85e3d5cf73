"""Rules on stored outputs: the same on each run, complete in each viewer, and with words for each picture."""

import re
from collections.abc import Iterator

from .view import Notebook, Page, rule

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
ALLOWED = ("text/plain", "text/html", "image/svg+xml", WIDGET_VIEW)  # the last has a rule of its own
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
# What id() and data_ptr() give on 64-bit Linux: 0x7e… and 0x7f… from mmap, 0x55… and 0x56… from the heap.
NUMBER = re.compile(r"(?<![\w.])\d{14,15}(?![\w.])")
MAPPED = (range(0x7E0000000000, 0x800000000000), range(0x550000000000, 0x570000000000))
TIMING = re.compile(
    r"\d\s?(?:ns|µs|μs|us|ms)\b|\d\s?±|it/s\b|\d\s?s/it\b|\bWall time\b|\bCPU times\b"
    r"|\d\.\d+\s?(?:s|sec|secs)\b|\d\s?(?:seconds|minutes|hours)\b"
)
PATH = re.compile(
    r"(?<![\w/])/(?:home|tmp|root|usr|opt|var|etc|mnt|srv|work|workspace|content|Users|private|Library)/"
    r"|\b[A-Z]:\\\w|\b(?:site|dist)-packages\b|\bipykernel_\d+|Triggered internally at"
    r"|(?<![\w:/.<])/(?:[\w.+-]+/)+[\w.+-]+\.(?:py|pyc|ipynb|cpp|cc|cu|h|so)\b"
)
URL = re.compile(r"https?://[^\s\"'<>)]+")
PROCESS = re.compile(r"\bpid\b\W{0,4}\d+|\bprocess\s+(?:id\s+)?\d+", re.IGNORECASE)
CLOCK = re.compile(
    r"\b20\d\d-[01]\d-[0-3]\d\b|\b\d{1,2}/\d{1,2}/20\d\d\b|\b[0-2]?\d:[0-5]\d:[0-5]\d\b"
    r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w*,? (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* \d"
    r"|(?<![\w.])1[6-9]\d{8}(?:\.\d+)?(?![\w.])"
)
LOADS = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "image": "href"}
CSS_LOAD = re.compile(r"@import\b|url\(\s*[\"']?(?:https?:)?//")


def _found(pattern: re.Pattern, text: str) -> list[str]:
    # Each different finding once, in order.
    return list(dict.fromkeys(match.group().strip() for match in pattern.finditer(text)))


@rule
def no_address(notebook: Notebook) -> Iterator[str]:
    """No memory address: it differs on each run, also inside HTML and pictures."""
    for output in notebook.outputs:
        text = output.everything
        numbers = [n for n in _found(NUMBER, text) if any(int(n) in mapped for mapped in MAPPED)]
        for address in _found(ADDRESS, text) + numbers:
            yield f"{output.place} shows the memory address {address}: print a name, such as `node.name()`."


@rule
def no_timing(notebook: Notebook) -> Iterator[str]:
    """No measured time."""
    for output in notebook.outputs:
        for timing in _found(TIMING, output.visible):
            yield f"{output.place} shows the timing {timing!r}: show a count or a ratio, and assert on it."


@rule
def no_path(notebook: Notebook) -> Iterator[str]:
    """No path of the machine it was run on."""
    for output in notebook.outputs:
        for path in _found(PATH, URL.sub(" ", output.everything)):
            yield f"{output.place} shows the path {path!r}: print only what is the same on each machine."


@rule
def no_process_id(notebook: Notebook) -> Iterator[str]:
    """No number of a process."""
    for output in notebook.outputs:
        for number in _found(PROCESS, output.visible):
            yield f"{output.place} shows {number!r}, which differs on each run: take it out."


@rule
def no_clock(notebook: Notebook) -> Iterator[str]:
    """No date and no time of day."""
    for output in notebook.outputs:
        for moment in _found(CLOCK, output.visible):
            yield f"{output.place} shows the date or time {moment!r}: take it out."


@rule
def no_stderr(notebook: Notebook) -> Iterator[str]:
    """Warnings and logs come in no fixed order: what is the lesson is printed by `warns`."""
    for output in notebook.outputs:
        if output.kind == "stderr":
            first = output.content.strip().splitlines()[0] if output.content.strip() else "nothing"
            yield f"{output.place} writes to stderr ({first!r}): use `with warns(...)`, or mend the cause."


@rule
def no_widgets(notebook: Notebook) -> Iterator[str]:
    """A widget without a kernel is a blank: what is stored must stand alone."""
    if "widgets" in notebook.node.metadata:
        yield "the file holds the state of widgets: run `make notebooks FILES=…`."
    for output in notebook.outputs:
        if output.kind == WIDGET_VIEW:
            yield f"{output.place} stores a live widget: use `explore`, which stores pictures beside it."


@rule
def allowed_kinds(notebook: Notebook) -> Iterator[str]:
    """Outputs are text, HTML or SVG: each viewer shows them, and nbval compares them byte by byte."""
    for output in notebook.outputs:
        if output.kind.startswith("image/") and output.kind not in ALLOWED:
            yield f"{output.place} stores {output.kind}: show figures with `show(fig, alt=...)`."
        elif "/" in output.kind and output.kind not in ALLOWED:
            yield f"{output.place} stores {output.kind}: return text, HTML or SVG instead."


@rule
def picture_alternatives(notebook: Notebook) -> Iterator[str]:
    """Every picture in an output says in words what it shows."""
    for place, cell in notebook.cells("code"):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data and "text/html" not in data:
                yield f"{place} stores a bare SVG: show figures with `show(fig, alt=...)`."
    for output in notebook.outputs:
        if output.kind not in ("text/html", "image/svg+xml"):
            continue
        for tag, alternative in Page(output.content).pictures:
            if alternative == "" and tag == "img":
                yield f"{output.place} shows an <img> without `alt`: say in words what it shows."
            elif alternative == "":
                yield f'{output.place} shows an <svg> without role="img" and a <title>: give it both.'


@rule
def nothing_from_other_hosts(notebook: Notebook) -> Iterator[str]:
    """A page loads nothing from anybody else's server."""
    pages = [
        (output.place, content)
        for output in notebook.outputs
        if output.kind in ("text/html", "image/svg+xml")
        for content in [output.content, *output.embedded]
    ]
    pages += [
        (place, child.content if child.type != "image" else f'<img src="{child.attrs["src"]}">')
        for place, _, tokens in notebook.markdown
        for token in tokens
        for child in [token, *(token.children or ())]
        if child.type in ("html_block", "html_inline", "image")
    ]
    for place, content in pages:
        for tag, attributes in Page(content).elements:
            address = attributes.get(LOADS.get(tag, ""), "")
            if re.match(r"(?:https?:)?//", address):
                yield f"{place} loads {address} from another host: put what it needs into the page itself."
        if CSS_LOAD.search(content):
            yield f"{place} loads a style from another host: put what it needs into the page itself."

"""The rows of `saved_memory`, as text and as an HTML table."""

from dataclasses import dataclass
from html import escape

from .saved import CHANGED, PACKED

MAX_ROWS = 100
COLUMNS = ("op", "node", "saved", "shape", "dtype", "bytes", "memory")
NUMBERS = (0, 5)  # columns that are aligned to the right


@dataclass(frozen=True, slots=True)
class SavedTensor:
    """One tensor that a node keeps for its backward; plain data.

    Attributes
    ----------
    op
        Number of the operation, in the order in which they ran: 1, 2, ...
    node, attr
        Name of the node, and where the tensor stands on it (as in ``Saved.attr``).
    state
        ``alive``, ``changed`` (in place since: backward will raise) or ``packed`` (by a hook).
    shape, dtype
        Of the tensor; ``None`` where it is packed.
    nbytes
        Bytes of the tensor itself; ``None`` where it is packed.
    counted
        Bytes that it adds to the total: all memory that it keeps alive, unless an earlier row does.
    new
        Whether its memory was allocated inside the block.
    leaf
        Whether it is a leaf that requires grad.
    names
        The names in ``params`` of tensors that lie in the same memory.
    shared_with
        The earlier row that lies in the same memory, as ``"result of op 2"``; ``None`` if none does.
    """

    op: int
    node: str
    attr: str
    state: str
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    nbytes: int | None = None
    counted: int = 0
    new: bool = False
    leaf: bool = False
    names: tuple[str, ...] = ()
    shared_with: str | None = None

    @property
    def memory(self) -> str:
        """Whose memory it is, in words."""
        if self.state == PACKED:
            return "packed by a hook, not read"
        if self.nbytes is None and self.shape is None:
            return "could not be read"
        if self.names:
            words = ", ".join(self.names)
        elif self.shared_with:
            words = f"same as {self.shared_with}"
        elif self.leaf:
            words = "a leaf, new" if self.new else "a leaf"
        else:
            words = "new" if self.new else "there before"
        if self.nbytes is not None and self.counted > self.nbytes:
            words += f", part of {self.counted:,} bytes"
        return words + ("; changed in place since" if self.state == CHANGED else "")


def _rows(tensors: tuple[SavedTensor, ...]) -> list[tuple[str, ...]]:
    return [
        (
            str(tensor.op),
            tensor.node,
            tensor.attr,
            "" if tensor.shape is None else str(tensor.shape),
            tensor.dtype or "",
            "" if tensor.nbytes is None else f"{tensor.nbytes:,}",
            tensor.memory,
        )
        for tensor in tensors[:MAX_ROWS]
    ]


def _rest(tensors: tuple[SavedTensor, ...]) -> str | None:
    more = len(tensors) - MAX_ROWS
    return f"and {more:,} more: .tensors has all of them" if more > 0 else None


def text_table(tensors: tuple[SavedTensor, ...]) -> str:
    """An aligned table for terminals."""
    rows = [COLUMNS, *_rows(tensors)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            f"{cell:>{width}}" if i in NUMBERS else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines + [line for line in [_rest(tensors)] if line])


def html_table(tensors: tuple[SavedTensor, ...], caption: str) -> str:
    """A table with caption and header cells.

    It has no colors of its own. The class ``dataframe`` is what the site's theme and JupyterLab
    know how to show in the dark.
    """

    def cell(i: int, text: str, tag: str, scope: str = "") -> str:
        align = "right" if i in NUMBERS else "left"
        return f'<{tag}{scope} style="text-align: {align}">{escape(text)}</{tag}>'

    head = "".join(cell(i, name, "th", ' scope="col"') for i, name in enumerate(COLUMNS))
    body = "\n".join(
        "<tr>"
        + "".join(
            cell(i, text, "th", ' scope="row"') if i == 1 else cell(i, text, "td")
            for i, text in enumerate(row)
        )
        + "</tr>"
        for row in _rows(tensors)
    )
    rest = _rest(tensors)
    foot = f'\n<tfoot><tr><td colspan="{len(COLUMNS)}">{escape(rest)}</td></tr></tfoot>' if rest else ""
    return (
        '<div style="overflow-x: auto"><table class="dataframe">\n'
        f'<caption style="caption-side: top; text-align: left">{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table></div>"
    )

"""``draw(loss)``: the backward graph as a picture."""

from html import escape
from pathlib import Path
from urllib.parse import quote

from .fold import fold as fold_graph
from .fold import unfolded
from .graph import MAX_NODES, MAX_PATH, Graph
from .panels import CSS as PANEL_CSS
from .panels import SHRINK, Panel, draw_folded, panels, size, stage, with_panels
from .reading import collector_paused
from .svg import Picture

# The site's theme puts a light box behind outputs in dark mode; its Bootstrap hides [hidden] for good.
FRAME_CSS = (
    ".ag-still{display:none}.ag-live[hidden]{display:block!important}"
    'html[data-theme="dark"] .bd-content div.cell_output .text_html.text_html:has(.ag-frame)'
    "{background:none;padding:0}"
)
FOCUS_ABOVE = 640  # px: a page's column is about 700 px wide; what fits into it needs no tab stop


class Drawing:
    """A picture of a backward graph. A notebook shows it when it is the last value of a cell.

    ``drawing.svg`` is the text of the SVG, ``drawing.save("graph.svg")`` writes it to a file,
    ``print(drawing)`` gives the graph as text, and ``drawing.graph`` is the graph itself.
    ``drawing.panels`` are the drawings of what folded boxes hold.

    Examples
    --------
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> print(draw(-x, params={"x": x}))
    Backward graph: 2 nodes, 1 leaf. Gradients flow along the arrows. Dtype float32 unless shown.
    output  () float32  → #0 NegBackward0
    <BLANKLINE>
    #0  NegBackward0    ()
        slot 0  → #1 AccumulateGrad x
    #1  AccumulateGrad  x  () float32
    """

    def __init__(self, graph: Graph, picture: Picture, panels: tuple[Panel, ...] = ()):
        self.graph = graph
        self.picture = picture
        self.panels = panels

    @property
    def svg(self) -> str:
        """The drawing as a standalone SVG file, light or dark as the reader's system is.

        What folded boxes hold stands below it.
        """
        whole = with_panels(self.picture, self.panels) if self.panels else self.picture
        return whole.svg(alone=True)

    def save(self, path: str | Path) -> None:
        """Write the drawing to ``path``, an ``.svg`` file.

        Raises
        ------
        ValueError
            If the name does not end in ``.svg``.
        FileNotFoundError
            If the folder does not exist.
        """
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ValueError(
                f"A drawing is saved as SVG: use a name that ends in .svg instead of {path.name!r}."
            )
        if not path.parent.is_dir():
            raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist: make it first.")
        path.write_text(self.svg, encoding="utf-8", newline="\n")

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.graph):,} nodes>"

    def _repr_html_(self) -> str:
        return html(self.picture, self.panels)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "image/svg+xml": self.svg, "text/plain": str(self)}


def draw(
    outputs: object,
    params: object = None,
    saved: bool = False,
    *,
    fold: bool | None = None,
    fold_above: int = 120,
    max_path: int = MAX_PATH,
    max_nodes: int = MAX_NODES,
    title: str | None = None,
) -> Drawing:
    """Draw the backward graph of ``outputs``: arrows run the way gradients flow.

    Parameters
    ----------
    outputs
        A tensor, a ``torch.autograd.graph.GradientEdge``, a nested dict, list, tuple or dataclass
        of them, or a ``Graph``.
    params
        Where names come from: a module, a mapping from names to tensors or modules, or pairs as
        in ``model.named_parameters()``.
    saved
        Whether to read and show what each node keeps for its backward formula. Otherwise the picture
        and its text tell only what has been freed.
    fold
        Whether what repeats is folded into counted boxes. By default that is done where there are
        more than ``fold_above`` nodes. With ``params``, modules that are alike are one box, named by
        their numbers: ``layers.0…11 ×12``. In a notebook or on a page a click on a box, or Enter,
        opens a drawing of what one of them holds; the file shows it below.
    fold_above
        The number of nodes above which a graph is folded.
    max_path, max_nodes
        As in ``Graph.of``.
    title
        A heading above the drawing.

    Raises
    ------
    TypeError, ValueError
        As in ``Graph.of``; also if ``params`` is given together with a ``Graph``, or ``fold_above``
        is less than 1.

    Examples
    --------
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> drawing = draw(x * x, params={"x": x})
    >>> drawing.svg.startswith("<svg")
    True
    >>> len(drawing.graph.nodes)
    2
    """
    if fold_above < 1:
        raise ValueError("fold_above must be at least 1; fold=True folds any graph.")
    if isinstance(outputs, Graph) and params is not None:
        raise ValueError("A Graph has its names already: give params to Graph.of(outputs, params) instead.")
    with collector_paused():
        if isinstance(outputs, Graph):
            graph = outputs
        else:
            graph = Graph.of(outputs, params, saved=saved, max_path=max_path, max_nodes=max_nodes)
        if fold is None:
            fold = len(graph) > fold_above
        folded = fold_graph(graph) if fold else unfolded(graph)
        return Drawing(graph, draw_folded(folded, saved, title), panels(folded, saved) if fold else ())


def picture(
    graph: Graph, *, saved: bool = False, fold: bool = False, title: str | None = None, room: int = 0
) -> Picture:
    """Fold, lay out and render ``graph``; parameters as of ``draw``, ``room`` as of ``render``.

    Of what repeats one stays unfolded, for nothing opens in this picture.
    """
    with collector_paused():
        folded = fold_graph(graph, show_one=True) if fold else unfolded(graph)
        return draw_folded(folded, saved, title, room)


def html(picture: Picture, panels: tuple[Panel, ...] = ()) -> str:
    """The drawing for a page: inline SVG that follows the page's dark mode, in a frame that scrolls.

    JupyterLab strips the SVG and the style of a notebook that it does not trust, but keeps the SVG's
    texts, ``hidden``, and images. So the SVG stands in a hidden part that only our style reveals, and
    an image, which only our style hides, takes its place.
    """
    width = picture.width
    focus = ""
    if width * SHRINK > FOCUS_ABOVE:
        focus = ' tabindex="0" role="region" aria-label="Drawing, scrolls sideways"'
    svg = picture.svg().replace('<svg class="ag"', f'<svg class="ag" style="{size(picture)}"', 1)
    css = FRAME_CSS
    if panels:
        svg, css = stage(picture, panels, svg), css + PANEL_CSS
    uri = "data:image/svg+xml," + quote(picture.svg(alone=True).strip(), safe=" /:=;,()'!*?@$-_.~")
    alt = escape(f"{picture.title}. {picture.description}")
    return (
        f'<div class="ag-frame" style="max-width:100%;overflow-x:auto"{focus}>'
        f'<style>{css}</style><div class="ag-live" hidden="hidden">{svg}</div>'
        f'<img class="ag-still" alt="{alt}" src="{uri}"></div>'
    )

"""Write formulas as MathML while the book is built, so that no page loads a script to show them."""

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

# Under a low letter Chromium hangs the root sign below the line. As tall as a capital, it stands on it.
_STRUT = '<mspace height="0.7em" depth="0.2em"/>'
_MARK = re.compile(r"</math></span>([.,:;!?)]+)")


def convert(latex, display):
    """Turn LaTeX into MathML.

    Args:
        latex: the formula, without its dollar signs.
        display: True for a formula on a line of its own.

    Returns:
        A `<math>` element as text.

    Raises:
        math_core.LatexError: the formula has a command or a form that has no MathML.
    """
    # A new converter each time: macros and counters must not leak from one formula into the next.
    formula = LatexToMathML(fancy_error=False).convert_with_local_state(latex.strip(), displaystyle=display)
    return formula.replace("</msqrt>", f"{_STRUT}</msqrt>")


def _convert_or_warn(self, node, display):
    latex = node.astext()
    try:
        return convert(latex, display)
    except LatexError as error:
        logger.warning("no MathML for the formula %r: %s", latex, error, location=node, type="mathml")
        return f"<code>{self.encode(latex)}</code>"


def visit_inline(self, node):
    """Write an inline formula into the page."""
    self.body.append(self.starttag(node, "span", "", CLASS="math"))
    self.body.append(_convert_or_warn(self, node, display=False) + "</span>")
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula on a line of its own, with its number and a link to it if it has a label."""
    # A keyboard user must be able to scroll a formula that is wider than a phone.
    self.body.append(self.starttag(node, "div", "", CLASS="math", tabindex="0"))
    self.body.append(_convert_or_warn(self, node, display=True))
    if node.get("number"):
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def with_marks(body):
    """Take the mark after an inline formula into its span, which the style does not break.

    A browser may break a line between a formula and whatever follows, even a full stop.

    Args:
        body: a page as HTML.

    Returns:
        The new body.
    """
    return _MARK.sub(r"</math>\1</span>", body)


def _to_context(app, pagename, templatename, context, doctree):
    if context.get("body"):
        context["body"] = with_marks(context["body"])


def setup(app):
    """Register the renderer; `html_math_renderer: mathml` selects it."""
    app.connect("html-page-context", _to_context)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

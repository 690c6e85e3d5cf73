"""What notebooks show besides graphs: errors, warnings and figures, the same bytes on each run."""

import html
import re
import sys
import urllib.parse
import warnings as python_warnings
from io import StringIO
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from .messages import plain_message, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ErrorTypes = type[BaseException] | tuple[type[BaseException], ...]


class raises:
    """Run code that must fail, and print the error instead of stopping.

    Prints ``RuntimeError: message``, wrapped at 88 columns, without colors, paths, addresses, or
    what torch adds about its own sources.

    Parameters
    ----------
    error_type
        The class of error that must come, or a tuple of classes.
    match
        A regular expression that must be found in the message (as printed, before wrapping).

    Attributes
    ----------
    error
        The exception, after the block. Its traceback is dropped: it would keep every local
        variable of the failed call alive, tensors included.
    message
        Its message, plain and not wrapped.

    Raises
    ------
    AssertionError
        If the block raised nothing, another class of error, or a message that does not match.

    Examples
    --------
    >>> with raises(RuntimeError):
    ...     torch.ones(3).sum().backward()
    RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn
    """

    def __init__(self, error_type: ErrorTypes, match: str | None = None):
        _require_classes("raises", error_type, BaseException)
        self.error_type, self.match = error_type, match
        self.error: BaseException | None = None
        self.message: str | None = None

    def __enter__(self) -> "raises":
        self.error = self.message = None
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        wanted = _names(self.error_type)
        if error is None:
            raise AssertionError(f"Expected {wanted}, but the code in the block raised nothing.")
        message = plain_message(error)
        if not isinstance(error, self.error_type):
            if not isinstance(error, Exception):
                return False  # an interrupt or an exit is nobody's wrong answer
            raise AssertionError(
                f"Expected {wanted}, but the code in the block raised {type(error).__name__}: {message}"
            ) from error
        if self.match is not None and not re.search(self.match, message):
            raise AssertionError(
                f"Expected a message with {self.match!r}, but {type(error).__name__} said: {message}"
            ) from error
        _drop_tracebacks(error)
        self.error, self.message = error, message
        print(wrapped(type(error).__name__, message))
        return True


class warns:
    """Run code that must warn, and print the warning where it belongs.

    The warning comes on every run: Python's filters and torch's own "warn once" are lifted inside
    the block, and restored after it. Each different message is printed once, as
    ``UserWarning: message``, cleaned and wrapped as by `raises`. Warnings that are not asked for
    are passed on after the block.

    Parameters
    ----------
    category
        The class of warning that must come, or a tuple of classes.
    match
        A regular expression that must be found in the message (as printed, before wrapping).
        Warnings without it are passed on.

    Attributes
    ----------
    messages
        After the block: the messages, plain and not wrapped, one entry per warning.
    message
        The first of them.

    Raises
    ------
    AssertionError
        If no such warning came. An error in the block is not replaced.

    Examples
    --------
    >>> x = torch.ones(3, requires_grad=True)
    >>> with warns(UserWarning, match="not a leaf"):
    ...     (2 * x).grad  # doctest: +ELLIPSIS
    UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being
    accessed. Its .grad attribute won't be populated during autograd.backward(). ...
    """

    def __init__(self, category: type[Warning] | tuple[type[Warning], ...], match: str | None = None):
        _require_classes("warns", category, Warning)
        self.category, self.match = category, match
        self.messages: list[str] = []

    @property
    def message(self) -> str | None:
        return self.messages[0] if self.messages else None

    def __enter__(self) -> "warns":
        self.messages = []
        self._torch_always = torch.is_warn_always_enabled()
        self._catcher = python_warnings.catch_warnings(record=True)
        self._caught = self._catcher.__enter__()
        python_warnings.simplefilter("always")
        torch.set_warn_always(True)
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        torch.set_warn_always(self._torch_always)
        self._catcher.__exit__(error_type, error, traceback)
        caught, self._caught = self._caught, []
        printed, others = set(), []
        for warning in caught:
            message = plain_message(warning.message)
            if not issubclass(warning.category, self.category) or not re.search(self.match or "", message):
                others.append(warning)
                continue
            self.messages.append(message)
            line = wrapped(warning.category.__name__, message)
            if line not in printed:
                printed.add(line)
                print(line)
        for warning in others:
            python_warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno, source=warning.source
            )
        if error is None and not self.messages:
            raise AssertionError(self._nothing(others))

    def _nothing(self, others: list) -> str:
        wanted = _names(self.category) + (f" with {self.match!r}" if self.match is not None else "")
        if not others:
            return f"Expected {wanted}, but the code in the block did not warn."
        came = "; ".join(f"{w.category.__name__}: {plain_message(w.message)}" for w in others)
        return f"Expected {wanted}, but the code in the block gave other warnings: {came}"


class ShownFigure:
    """A finished picture with its text alternative. `show` makes and displays it.

    Attributes
    ----------
    svg
        The picture, as SVG text.
    alt
        What it shows, in words.
    """

    def __init__(self, svg: str, alt: str):
        self.svg, self.alt = svg, alt

    def __repr__(self) -> str:
        return self.alt

    def _repr_html_(self) -> str:
        # An <img> and not the SVG itself: JupyterLab removes <svg> from an untrusted notebook, ids of two
        # figures on a page cannot meet, and quoted text compresses better than base64.
        one_line = re.sub(r"\s*\n\s*", " ", self.svg)
        data = html.escape(urllib.parse.quote(one_line, safe=" !$&'()*+,-./:;=?@_~"), quote=False)
        return (
            '<figure style="margin: 0.5em 0"><img '
            f'alt="{html.escape(self.alt)}" src="data:image/svg+xml;charset=utf-8,{data}" '
            'style="max-width: 100%; height: auto; background-color: #fff; border-radius: 6px"></figure>'
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "image/svg+xml": self.svg, "text/plain": self.alt}


def show(fig: "Figure", alt: str) -> None:
    """Display a matplotlib figure as SVG with a text alternative, and close it.

    The same figure gives the same bytes on each run. Letters stay text, so they can be read at any
    size. The figure keeps its own background (white if it has none): it reads as a light card in
    dark mode.

    Parameters
    ----------
    fig
        A ``matplotlib.figure.Figure``.
    alt
        What the picture shows, in words, for readers who do not see it. Must not be empty.

    Raises
    ------
    TypeError
        If ``fig`` is no figure or ``alt`` is no text.
    ValueError
        If ``alt`` is empty.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> line = ax.plot([0, 1], [0, 1])
    >>> show(fig, alt="A line that rises from 0 to 1.")  # a notebook shows the figure
    A line that rises from 0 to 1.
    """
    picture = _picture(fig, alt)
    import matplotlib.pyplot as plt

    plt.close(fig)
    # Where IPython was never imported there is no notebook: print what the picture shows.
    if "IPython" in sys.modules:
        from IPython.display import display

        display(picture)
    else:
        print(picture)


def _picture(fig: object, alt: str) -> ShownFigure:
    import matplotlib
    from matplotlib.colors import to_rgba
    from matplotlib.figure import Figure

    if not isinstance(fig, Figure):
        raise TypeError(f"show needs a matplotlib figure, got {type(fig).__name__}: for axes pass ax.figure.")
    if not isinstance(alt, str):
        raise TypeError("show needs alt as text: say in words what the picture shows.")
    alt = " ".join(alt.split())
    if not alt:
        raise ValueError("show needs a text alternative: alt is empty; say in words what the picture shows.")
    face = fig.get_facecolor() if to_rgba(fig.get_facecolor())[3] > 0 else "white"
    buffer = StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "inside_autograd", "svg.fonttype": "none"}):
        fig.savefig(
            buffer,
            format="svg",
            bbox_inches="tight",
            facecolor=face,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    svg = buffer.getvalue()
    # Without matplotlib's XML header, which HTML does not take; the words go in for viewers of the SVG alone.
    label = f'<svg role="img" aria-label="{html.escape(alt)}" '
    return ShownFigure(label + svg[svg.index("<svg ") + 5 :].strip(), alt)


def _drop_tracebacks(error: BaseException) -> None:
    errors: list[BaseException | None] = [error]
    seen = set()
    while errors:
        one = errors.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = None
            errors += [one.__cause__, one.__context__]


def _require_classes(caller: str, classes: object, base: type) -> None:
    each = classes if isinstance(classes, tuple) else (classes,)
    if not each or not all(isinstance(c, type) and issubclass(c, base) for c in each):
        kind = "errors" if base is BaseException else "warnings"
        example = "RuntimeError" if base is BaseException else "UserWarning"
        raise TypeError(f"{caller} needs a class of {kind}, or a tuple of them, such as {example}.")


def _names(classes: ErrorTypes) -> str:
    each = classes if isinstance(classes, tuple) else (classes,)
    return " or ".join(c.__name__ for c in each)

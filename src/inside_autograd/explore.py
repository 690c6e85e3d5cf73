"""A function with sliders: live where there is a kernel, stored frames where there is none."""

import contextlib
import hashlib
import html
import inspect
import io
import itertools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .messages import plain_message

MAX_FRAMES = 200
STEPS = 9  # values of a slider between two floats when no step is given


@dataclass(frozen=True, slots=True)
class Control:
    """One slider, choice or checkbox: its name, its values in order, and the first one's position."""

    name: str
    kind: str  # "slider", "choice" or "checkbox"
    values: tuple
    start: int

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")


def explore(f: Callable, *, alt: str | Callable[..., str] | None = None, **controls: object) -> "Explorer":
    """Show what ``f`` returns, for values that a reader chooses.

    With a kernel the reader moves live widgets and ``f`` runs again. On a static page the results for
    all combinations of values are stored as frames behind an ordinary slider.

    Parameters
    ----------
    f
        Called with one keyword argument per control. It may return a matplotlib figure (then give
        ``alt``), anything with ``_repr_html_`` such as a drawing or a recording, or a value, which is
        shown as text. What it prints is shown too. If it raises, the frame shows the error.
    alt
        For figures: what the picture shows, in words. A text with the controls' names in braces, such
        as ``"a parabola and its tangent at x = {x}"``, or a function of the same arguments as ``f``.
    **controls
        ``x=(low, high)`` or ``x=(low, high, step)`` is a slider (whole numbers step by 1, others in 9
        values); ``x=[…]`` or ``x={label: value}`` a choice; ``x=True`` or ``x=False`` a checkbox. The
        reader starts at the default value of ``f``'s parameter, where it is one of the values.

    Raises
    ------
    TypeError
        If ``f`` cannot be called with these controls, or a control has another form.
    ValueError
        If a slider has no values, or the combinations are more than 200.

    Examples
    --------
    >>> print(explore(lambda x: x * x, x=(0, 3)))
    x = 0: 0
    x = 1: 1
    x = 2: 4
    x = 3: 9
    """
    if not callable(f):
        raise TypeError(f"explore needs a function, got {type(f).__name__}.")
    if not controls:
        raise TypeError("explore needs at least one control, such as x=(-3, 3).")
    defaults = _defaults(f, controls)
    made = [_control(name, value, defaults.get(name)) for name, value in controls.items()]
    count = 1
    for control in made:
        count *= len(control.values)
    if count > MAX_FRAMES:
        raise ValueError(
            f"These controls have {count} combinations and explore stores at most {MAX_FRAMES}: "
            "use fewer values."
        )
    return Explorer(f, tuple(made), alt)


def _defaults(f: Callable, controls: dict) -> dict:
    try:
        signature = inspect.signature(f)
    except ValueError:
        return {}
    try:
        signature.bind(**controls)
    except TypeError as error:
        raise TypeError(
            f"The function cannot be called with the controls {', '.join(controls)}: {error}."
        ) from None
    empty = inspect.Parameter.empty
    return {name: p.default for name, p in signature.parameters.items() if p.default is not empty}


def _control(name: str, value: object, start: object) -> Control:
    if isinstance(value, bool):
        return Control(name, "checkbox", (False, True), int(value))
    if isinstance(value, dict) and value:
        pairs = tuple((str(label), item) for label, item in value.items())
        position = next((i for i, (_, item) in enumerate(pairs) if item == start), 0)
        return Control(name, "choice", pairs, position)
    if isinstance(value, list) and value:
        pairs = tuple((str(item), item) for item in value)
        position = next((i for i, (_, item) in enumerate(pairs) if item == start), 0)
        return Control(name, "choice", pairs, position)
    if (
        not isinstance(value, tuple)
        or len(value) not in (2, 3)
        or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in value)
    ):
        raise TypeError(
            f"The control {name} must be (low, high), (low, high, step), a list or dict of choices, "
            "or True or False."
        )
    values = _steps(name, *value)
    return Control(name, "slider", values, values.index(start) if start in values else 0)


def _steps(name: str, low: float, high: float, step: float | None = None) -> tuple:
    if step is None:
        step = 1 if isinstance(low, int) and isinstance(high, int) else (high - low) / (STEPS - 1)
    if not step > 0 or not high >= low:
        raise ValueError(f"The slider {name} has no values: it needs low <= high and a step above 0.")
    count = int((high - low) / step + 1e-9) + 1
    # Rounded, so that 0.1 * 3 is shown, and given to the function, as 0.3.
    return tuple(low + i * step if isinstance(step, int) else round(low + i * step, 10) for i in range(count))


class Explorer:
    """What `explore` returns. Its frames are computed when it is first shown on a static page."""

    def __init__(self, f: Callable, controls: tuple[Control, ...], alt: str | Callable[..., str] | None):
        self.f, self.controls, self._alt = f, controls, alt

    # ------------------------------------------------------------------ frames

    def positions(self) -> list[tuple[int, ...]]:
        """All combinations, as positions of each control."""
        return list(itertools.product(*(range(len(c.values)) for c in self.controls)))

    def arguments(self, position: Sequence[int]) -> dict[str, object]:
        """The keyword arguments of ``f`` at a position."""
        found = {}
        for control, at in zip(self.controls, position, strict=True):
            value = control.values[at]
            found[control.name] = value[1] if control.kind == "choice" else value
        return found

    def frame(self, position: Sequence[int]) -> str:
        """The HTML of one combination: the same for the live and for the stored face."""
        return self._run(position)[0]

    @cached_property
    def _stored(self) -> dict[tuple[int, ...], tuple[str, str]]:
        return {position: self._run(position) for position in self.positions()}

    def _run(self, position: Sequence[int]) -> tuple[str, str]:
        arguments = self.arguments(position)
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                value = self.f(**arguments)
                shown, text = self._face(value, arguments)
        except Exception as error:
            message = f"{type(error).__name__}: {plain_message(error)}"
            shown, text = f'<pre class="iax-error">{html.escape(message)}</pre>', message
        before = printed.getvalue().rstrip("\n")
        if before:
            shown = f"<pre>{html.escape(before)}</pre>{shown}"
        return shown, "\n".join(part for part in (before, text) if part)

    def _face(self, value: object, arguments: dict) -> tuple[str, str]:
        matplotlib = sys.modules.get("matplotlib.figure")
        if matplotlib is not None and isinstance(value, matplotlib.Figure):
            import matplotlib.pyplot as plt

            from .notebook import _picture

            try:
                value = _picture(value, self._words(arguments))
            finally:
                plt.close("all")
        if value is None:
            return "", ""
        # An object may have no HTML for its present state, and then says None.
        page = value._repr_html_() if hasattr(value, "_repr_html_") else None
        if page is not None:
            return page, repr(value)
        return f"<pre>{html.escape(str(value))}</pre>", str(value)

    def _words(self, arguments: dict) -> str:
        if self._alt is None:
            raise ValueError("explore needs alt for a figure: say in words what the picture shows.")
        return self._alt(**arguments) if callable(self._alt) else self._alt.format(**arguments)

    def _named(self, position: Sequence[int]) -> str:
        return ", ".join(f"{c.label} = {_shown(c, i)}" for c, i in zip(self.controls, position, strict=True))

    # ------------------------------------------------------------------ faces

    def __repr__(self) -> str:
        lines = []
        for position, (_, text) in self._stored.items():
            lines.append(f"{self._named(position)}:{chr(10) if chr(10) in text else ' '}{text}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The stored face: frames, ordinary controls, and a script of a few lines."""
        start = tuple(c.start for c in self.controls)
        frames = [(position, shown) for position, (shown, _) in self._stored.items()]
        digest = hashlib.sha256(json.dumps([[c.label for c in self.controls], frames]).encode()).hexdigest()
        name = f"iax-{digest[:10]}"
        inputs = "".join(map(_input, self.controls))
        words = html.escape(", ".join(c.label for c in self.controls))
        divs = []
        for position, shown in frames:
            at, hidden = ",".join(map(str, position)), "" if position == start else " hidden"
            divs.append(f'<div class="iax-frame" data-at="{at}"{hidden}>{shown}</div>')
        return (
            f"<style>{_asset('explore.css')}</style>"
            f'<div class="iax {name}" role="group" aria-label="Explorer: {words}">'
            f'<div class="iax-controls" hidden>{inputs}</div>'
            f"<noscript><p>This is the picture for {html.escape(self._named(start))}. "
            f"With JavaScript on you can change it.</p></noscript>{''.join(divs)}</div>"
            f"<script>{_asset('explore.js').replace('NAME', name)}</script>"
        )

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        bundle: dict[str, object] = {"text/plain": repr(self), "text/html": self._repr_html_()}
        widget = self._widget() if _has_kernel() else None
        if widget is not None:
            # Built from the model's id: ipywidgets 7 has no ``_repr_mimebundle_``.
            view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
            bundle["application/vnd.jupyter.widget-view+json"] = view
        return bundle

    def _widget(self) -> Any:
        """The live face: ipywidgets that run ``f`` again when a value changes."""
        try:
            import ipywidgets
        except ImportError:
            return None
        widgets = [_live(ipywidgets, control) for control in self.controls]
        picture = ipywidgets.HTML()

        def update(change: object = None) -> None:
            picture.value = self.frame([int(widget.value) for widget in widgets])

        for widget in widgets:
            widget.observe(update, "value")
        update()
        return ipywidgets.VBox([*widgets, picture])


def _live(ipywidgets: Any, control: Control) -> Any:
    description = control.label
    if control.kind == "checkbox":
        return ipywidgets.Checkbox(value=bool(control.start), description=description)
    options = [(_shown(control, i), i) for i in range(len(control.values))]
    kind = ipywidgets.SelectionSlider if control.kind == "slider" else ipywidgets.Dropdown
    # The options' values are positions, so that equal labels or unhashable values do no harm.
    return kind(
        options=options, value=control.start, description=description, style={"description_width": "initial"}
    )


def _input(control: Control) -> str:
    # Each input stands inside its label, so that no ids are needed: two copies on a page do not meet.
    label = html.escape(control.label)
    shown = [_shown(control, i) for i in range(len(control.values))]
    if control.kind == "checkbox":
        return f'<label><input type="checkbox"{" checked" if control.start else ""}> {label}</label>'
    if control.kind == "choice":
        options = "".join(
            f"<option{' selected' if i == control.start else ''}>{html.escape(text)}</option>"
            for i, text in enumerate(shown)
        )
        return f"<label>{label} <select>{options}</select></label>"
    values, now = html.escape(json.dumps(shown)), html.escape(shown[control.start])
    return (
        f'<span class="iax-range"><label>{label} <input type="range" min="0" '
        f'max="{len(shown) - 1}" value="{control.start}" '
        f'data-values="{values}" aria-valuetext="{now}"></label> <output>{now}</output></span>'
    )


def _shown(control: Control, position: int) -> str:
    value = control.values[position]
    if control.kind == "choice":
        return value[0]
    return f"{value:g}" if isinstance(value, float) else str(value)


def _has_kernel() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _asset(name: str) -> str:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return " ".join(text.split())

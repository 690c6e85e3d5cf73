"""What a committed chapter must keep to, as small functions: tests and `tools/notebooks.py` read them both.

A rule takes a `view.Notebook` and yields one sentence for each place that breaks it: where, what, what to do.
"""

from pathlib import Path

from . import outputs, running, text
from .view import RULES, Notebook

__all__ = ["RULES", "Notebook", "outputs", "problems", "running", "text"]


def problems(path: str | Path) -> list[str]:
    """Read every rule over one notebook.

    Parameters
    ----------
    path
        An ``.ipynb`` file that `notebooks.read` accepts.

    Returns
    -------
    list of str
        One line for each place to mend, each with the name of its rule; empty when all is well.
    """
    notebook = Notebook(path)
    return [f"{place} [{name}]" for name, rule in RULES.items() for place in rule(notebook)]

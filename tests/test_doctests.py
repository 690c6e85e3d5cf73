"""Each public name shows how it is used, and the example gives what it says."""

import doctest
import inspect
import re
from pathlib import Path

import matplotlib
import pytest
import torch

import inside_autograd


@pytest.mark.parametrize("name", inside_autograd.__all__)
def test_the_example_of_a_public_name_runs(name):
    thing = getattr(inside_autograd, name)
    text = inspect.getdoc(thing)
    names = {public: getattr(inside_autograd, public) for public in inside_autograd.__all__}
    names["torch"] = torch
    example = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert example.examples, f"{name} has no example in its docstring"
    shown = []
    with matplotlib.rc_context({"backend": "svg"}):
        result = doctest.DocTestRunner().run(example, out=shown.append)
    assert result.failed == 0, "".join(shown)


@pytest.mark.parametrize("name", inside_autograd.__all__)
def test_the_reference_names_it(name):
    page = (Path(__file__).parent.parent / "book" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf":: inside_autograd\.{name}\b", page)

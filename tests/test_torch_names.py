"""Torch's own names that the helper calls: each is listed with the torch that brought it.

Looked up in torch 2.3 to 2.15. ``2.5`` also stands for what 2.3 or 2.4 had already.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import torch
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "inside_autograd"

SINCE = {
    "_cdata": "2.5",
    "_forward_cls": "2.5",
    "_indices": "2.5",
    "_input_metadata": "2.5",
    "_is_zerotensor": "2.5",
    "_post_accumulate_grad_hooks": "2.5",
    "_sequence_nr": "2.5",
    "data": "2.10",
    "unpack": "2.12",
    "unpack_hook": "2.10",
    "torch._C.DisableTorchFunction": "2.5",
    "torch._C._FunctionBase": "2.5",
    "torch._C._functions.AccumulateGrad": "2.5",
    "torch._C._functorch.is_functorch_wrapped_tensor": "2.5",
    "torch._C._functorch.is_legacy_batchedtensor": "2.5",
    "torch._C._len_torch_dispatch_stack": "2.5",
    "torch._C._len_torch_function_stack": "2.5",
    "torch._remove_batch_dim": "2.5",
    "torch.autograd._get_sequence_nr": "2.5",
    "torch.compiler.set_stance": "2.6",
    "torch.nn.modules._functions.BackwardHookFunction": "2.5",
    "torch.utils._python_dispatch.TorchDispatchMode": "2.5",
    "torch.utils._python_dispatch._disable_current_modes": "2.5",
    "torch.utils._pytree.tree_leaves": "2.5",
}

# Attributes with an underscore that are not torch's.
OTHERS = {"_fields", "_getframe", "_buffers", "_repr_html_"}


def trees():
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.glob("*.py"))]


def dotted(node):
    """``torch.a.b`` as text, or an empty one for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) and node.id == "torch" else ""


def own_names():
    """What the package itself defines or assigns."""
    names = set()
    for node in (node for tree in trees() for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def private_names():
    """Torch's private names in the package, as they stand in ``SINCE``."""
    found, own = set(), own_names() - {"_forward_cls"}
    for tree in trees():
        inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Attribute) and id(node) not in inner and dotted(node):
                found.add(dotted(node))
            elif isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr) and not dotted(node):
                found.add(node.attr)
    return {name for name in found - own - OTHERS if re.search(r"(^|\.)_[A-Za-z]", name)}


def test_every_private_name_is_listed_with_its_torch():
    assert {"_input_metadata", "torch._C._FunctionBase"} <= private_names()  # the test sees something
    assert private_names() - set(SINCE) == set()


def test_none_is_listed_that_is_not_called():
    text = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("*.py"))
    unused = [name for name in SINCE if not re.search(rf"\b{re.escape(name.rpartition('.')[2])}\b", text)]
    assert unused == []


def test_the_package_asks_for_a_torch_that_has_them_all():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oldest,) = [line.removeprefix("torch>=") for line in project["dependencies"] if line.startswith("torch")]
    assert max(map(Version, SINCE.values())) <= Version(oldest)


@pytest.mark.parametrize("name", [name for name in SINCE if name.startswith("torch.")])
def test_this_torch_has_it(name):
    found = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)


def test_this_torch_has_what_nodes_and_saved_tensors_tell():
    x = torch.ones(2, requires_grad=True)
    node = (x * x).grad_fn
    assert node._sequence_nr() >= 0
    assert len(node._input_metadata) == 1
    raw = node._raw_saved_self
    assert raw.unpack_hook is None and raw.data is not None and raw.unpack() is x

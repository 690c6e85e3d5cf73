"""Run something on the side: what it changes in a model, or in torch, is put back afterwards."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch


def random_state_kept() -> AbstractContextManager:
    """Torch's generators draw afterwards what they would have drawn now."""
    cuda = torch.cuda.is_initialized()
    return torch.random.fork_rng(devices=range(torch.cuda.device_count()) if cuda else [])


def uncompiled() -> AbstractContextManager:
    """Compiled code runs as it was written: the operations and lines inside it can be seen then."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


@contextmanager
def buffers_kept(modules: list[torch.nn.Module]) -> Iterator[None]:
    """Put buffers back, those written in place and those replaced."""
    before = []
    for module in modules:
        values = [(name, buffer, buffer.clone()) for name, buffer in module.named_buffers(recurse=False)]
        if values:
            before.append((module, values))
    try:
        yield
    finally:
        for module, values in before:
            for name, buffer, value in values:
                if getattr(module, name) is not buffer and not isinstance(module, torch.jit.ScriptModule):
                    module._buffers[name] = buffer
                if not torch.equal(buffer, value):
                    with torch.no_grad():
                        buffer.copy_(value)


@contextmanager
def grads_aside(tensors: list[torch.Tensor]) -> Iterator[None]:
    """Take ``.grad`` away from leaves, and what waits for it; give both back."""
    leaves = list({id(tensor): tensor for tensor in tensors if tensor.is_leaf}.values())
    kept = [(leaf, leaf.grad, dict(leaf._post_accumulate_grad_hooks or {})) for leaf in leaves]
    for leaf, _, hooks in kept:
        leaf.grad = None
        if hooks:
            leaf._post_accumulate_grad_hooks.clear()
    try:
        yield
    finally:
        for leaf, gradient, hooks in kept:
            leaf.grad = gradient
            if hooks:
                leaf._post_accumulate_grad_hooks.update(hooks)

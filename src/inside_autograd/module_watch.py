"""Which module is running, and which one ran when torch made a node."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import torch

from .walk import number

Which = tuple[str | None, str | None]  # a module's qualified name and its class


class Modules:
    """Which module is running, and which ran when a node was made."""

    def __init__(self, params: object):
        self.named: list[tuple[str, torch.nn.Module]] = []
        if isinstance(params, torch.nn.Module):
            self.named = list(params.named_modules())
        elif isinstance(params, Mapping):
            for name, value in params.items():
                if isinstance(value, torch.nn.Module):
                    self.named += list(value.named_modules(prefix=str(name)))
        self.open: list[tuple[str, int]] = []  # name, and the number that torch gives to the next node
        self.done: list[tuple[int, int, int, str]] = []  # first node, end, depth, name

    @property
    def all(self) -> list[torch.nn.Module]:
        return [module for _, module in self.named]

    @contextmanager
    def watched(self) -> Iterator[None]:
        with ExitStack() as hooks:
            for name, module in self.named:
                if isinstance(module, torch.jit.ScriptModule):
                    continue  # takes no hooks
                for handle in (
                    module.register_forward_pre_hook(self._enters(name), prepend=True),
                    module.register_forward_hook(self._leaves(), always_call=True),
                ):
                    hooks.callback(handle.remove)
            yield

    def _enters(self, name: str) -> Callable:
        def enters(module: torch.nn.Module, args: object) -> None:
            self.open.append((name, torch.autograd._get_sequence_nr()))

        return enters

    def _leaves(self) -> Callable:
        def leaves(module: torch.nn.Module, args: object, output: object) -> None:
            if self.open:
                name, first = self.open.pop()
                self.done.append((first, torch.autograd._get_sequence_nr(), len(self.open), name))

        return leaves

    @property
    def running(self) -> Which:
        return self._which(self.open[-1][0] if self.open else None)

    def that_made(self, node: object) -> Which:
        """The innermost module that ran when torch made ``node``."""
        made = number(node)
        around = [(depth, name) for first, end, depth, name in self.done if first <= made < end]
        return self._which(max(around, default=(0, None))[1])

    def _which(self, name: str | None) -> Which:
        return name, None if name is None else type(dict(self.named)[name]).__name__

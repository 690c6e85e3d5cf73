"""What is measured: models of ordinary kinds in several sizes, and graphs that are hard to draw.

Each subject is a module with its inputs, so that tools which follow the forward pass can take it too.
Widths are small: what is measured is the graph, not the arithmetic.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Subject:
    """``make()`` gives the module and its inputs; calling the module gives a scalar."""

    name: str
    make: Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]


class Block(nn.Module):
    """A residual block: two convolutions, each with batch norm."""

    def __init__(self, width: int):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(h)) + x)


class ResidualCNN(nn.Module):
    def __init__(self, blocks: int):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(4) for _ in range(blocks)])
        self.head = nn.Linear(4, 10)

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.stem(x))).mean((2, 3))).square().mean()


class Encoder(nn.Module):
    """A transformer encoder, in training mode and without dropout."""

    def __init__(self, layers: int):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x).square().mean()


class UnrolledLSTM(nn.Module):
    """A cell that is called once for each time step."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps = steps
        self.cell = nn.LSTMCell(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        h, c = x.new_zeros(2, 8), x.new_zeros(2, 8)
        for step in range(self.steps):
            h, c = self.cell(x[step], (h, c))
        return self.head(h).square().mean()


class Chain(nn.Module):
    """``h = h * w``, again and again."""

    def __init__(self, length: int):
        super().__init__()
        self.length = length
        self.w = nn.Parameter(torch.full((4,), 0.999))

    def forward(self, x):
        h = x * self.w
        for _ in range(self.length - 1):
            h = h * self.w
        return h.sum()


class FanIn(nn.Module):
    """Many parameters joined by one operation."""

    def __init__(self, count: int):
        super().__init__()
        self.parts = nn.ParameterList([torch.ones(1) for _ in range(count)])

    def forward(self, x):
        return torch.cat([x, *self.parts]).sum()


class Diamonds(nn.Module):
    """Each step goes two ways that meet again."""

    def __init__(self, count: int):
        super().__init__()
        self.count = count
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        h = x * self.w
        for _ in range(self.count):
            h = h.sin() + h.cos()
        return h.sum()


class GPTBlock(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.ln1(x)).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    """GPT-2 with twelve narrow layers. Its first and last layer share one weight, as the real one's do."""

    def __init__(self, layers: int = 12, width: int = 16, vocabulary: int = 50, length: int = 6):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([GPTBlock(width, 2) for _ in range(layers)])
        self.ln = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln(x))
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def _subject(name: str, model: Callable[[], nn.Module], *inputs: torch.Tensor) -> Subject:
    def make():
        torch.manual_seed(0)
        return model(), inputs

    return Subject(name, make)


IMAGES, WORDS, TOKENS = torch.ones(2, 3, 8, 8), torch.ones(2, 5, 16), torch.arange(12).reshape(2, 6)

SUBJECTS = [
    *[
        _subject(f"CNN, {n} block" + "s" * (n > 1), lambda n=n: ResidualCNN(n), IMAGES)
        for n in (1, 8, 32, 128)
    ],
    *[_subject(f"transformer, {n} layers", lambda n=n: Encoder(n), WORDS) for n in (2, 12)],
    *[_subject(f"LSTM, {n} steps", lambda n=n: UnrolledLSTM(n), torch.ones(n, 2, 4)) for n in (30, 100)],
    *[_subject(f"chain of {n:,}", lambda n=n: Chain(n), torch.ones(4)) for n in (100, 900, 5_000)],
    _subject("fan-in of 2,000", lambda: FanIn(2_000), torch.ones(1)),
    _subject("60 diamonds", lambda: Diamonds(60), torch.ones(4)),
    _subject("GPT-2, tied weights", GPT, TOKENS),
]

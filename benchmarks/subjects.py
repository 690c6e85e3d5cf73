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
    """``make()`` gives the module and its inputs; calling the module gives a scalar.

    ``key`` is what a person types, ``name`` what a page says, ``family`` what it is a size of.
    """

    key: str
    name: str
    make: Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]

    @property
    def family(self) -> str:
        return self.key.rpartition("-")[0]


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


def _subject(key: str, name: str, model: Callable[[], nn.Module], *inputs: torch.Tensor) -> Subject:
    def make():
        torch.manual_seed(0)
        return model(), inputs

    return Subject(key, name, make)


IMAGES, WORDS, TOKENS = torch.ones(2, 3, 8, 8), torch.ones(2, 5, 16), torch.arange(12).reshape(2, 6)


def cnn(blocks: int) -> Subject:
    name = f"CNN, {blocks} block" + "s" * (blocks > 1)
    return _subject(f"cnn-{blocks}", name, lambda: ResidualCNN(blocks), IMAGES)


def transformer(layers: int) -> Subject:
    name = f"transformer, {layers} layers"
    return _subject(f"transformer-{layers}", name, lambda: Encoder(layers), WORDS)


def lstm(steps: int) -> Subject:
    return _subject(
        f"lstm-{steps}", f"LSTM, {steps} steps", lambda: UnrolledLSTM(steps), torch.ones(steps, 2, 4)
    )


def chain(length: int) -> Subject:
    return _subject(f"chain-{length}", f"chain of {length:,}", lambda: Chain(length), torch.ones(4))


def fan_in(count: int) -> Subject:
    return _subject(f"fan-in-{count}", f"fan-in of {count:,}", lambda: FanIn(count), torch.ones(1))


SUBJECTS = [
    *map(cnn, (1, 8, 32, 128)),
    *map(transformer, (2, 12)),
    *map(lstm, (30, 100)),
    *map(chain, (100, 900, 5_000)),
    fan_in(2_000),
    _subject("diamonds-60", "60 diamonds", lambda: Diamonds(60), torch.ones(4)),
    _subject("gpt-2", "GPT-2, tied weights", GPT, TOKENS),
]


def find(key: str) -> Subject:
    """The subject with this key.

    Raises
    ------
    LookupError
        If there is none; the message names those there are.
    """
    for subject in SUBJECTS:
        if subject.key == key:
            return subject
    raise LookupError(f"There is no subject {key!r}: choose from {', '.join(one.key for one in SUBJECTS)}.")

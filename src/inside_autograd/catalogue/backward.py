"""Running backward."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="backward-through-the-graph-a-second-time",
        title="Backward through the graph a second time",
        category="RuntimeError",
        pattern=r"Trying to backward through the graph a second time",
        message=(
            "Trying to backward through the graph a second time (or directly access saved tensors after "
            "they have already been freed). Saved intermediate values of the graph are freed when you call "
            ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
            "graph a second time or if you need to access saved tensors after calling backward."
        ),
        variants=(
            "Trying to backward through the graph a second time, but the saved intermediate results have "
            "already been freed. Specify retain_graph=True when calling .backward() or autograd.grad() the "
            "first time.",
        ),
        meaning=(
            "The first backward freed the tensors that the graph had saved, and this pass needs one of them. "
            "The graph itself may still be there: a graph that saved nothing can be run again."
        ),
        causes=(
            "The backward pass was run again without a new forward pass: a cell that was run twice.",
            "A hidden state or a running loss from the last step is still attached to the last step's graph.",
            "Two losses share a part of the graph and each calls `backward()`.",
        ),
        repair=(
            "Run the forward pass again for each step, `detach()` what you carry from step to step, and add "
            "losses that share a graph before one `backward()`. `retain_graph=True` is right only if you "
            "mean to use the same graph twice."
        ),
        chapter="21_backward_and_grad",
        section='"Trying to backward through the graph a second time"',
        broken_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
loss = w * w
loss.backward()
loss.backward()
""",
        fixed_code="""\
import torch

w = torch.tensor(2.0, requires_grad=True)
for step in range(2):
    w.grad = None
    loss = w * w  # a new forward pass, a new graph
    loss.backward()
assert w.grad == 4
""",
        draws="loss",
    ),
)

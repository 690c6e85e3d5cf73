"""NaN and anomaly mode."""

from ._model import Entry

ENTRIES: tuple[Entry, ...] = (
    Entry(
        id="a-backward-node-returned-nan",
        title="A backward node returned NaN",
        category="RuntimeError",
        pattern=r"Function '\w+' returned nan values in its \d+th output",
        message="Function 'SqrtBackward0' returned nan values in its 0th output.",
        variants=(
            "Function 'BmmBackward0' returned nan values in its 1th output.",
            "Function 'MseLossBackward' returned nan values in its 0th output.",
        ),
        meaning=(
            "Anomaly mode looks at what each backward node returns and stops at the first NaN. The name is "
            "that of the node, so of the operation of the forward pass, and the number says which of its "
            "inputs the gradient was for. The values of the forward pass may all be fine."
        ),
        causes=(
            "An infinite slope met a zero: `sqrt`, `x**0.5` or `torch.hypot` at 0, as in the root of a "
            "squared error that is 0, or in the branch that `torch.where` threw away.",
            "A division by zero or the logarithm of zero stood in a part whose result was masked out "
            "afterwards.",
            "The NaN or infinity is older: it was in the data, the weights or the forward pass, such as "
            "`softmax` over a row that is masked whole.",
            "The `backward` of your own Function computes a NaN.",
        ),
        repair=(
            "The warning that comes with the error names the line of the forward pass. If values of that "
            "line are NaN or infinite already, go back to where they came from. Otherwise make the input "
            "safe before the operation, not the output after it: `torch.where` on the input, a `clamp`, an "
            "`eps` inside the root, or `vector_norm`, whose slope at 0 is 0."
        ),
        chapter="41_anomaly_and_nan",
        section='"returned nan values in its 0th output"',
        broken_code="""\
import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    y = torch.where(x > 0, x.sqrt(), 0.0)
    y.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    safe = torch.where(x > 0, x, 1.0)  # before the root
    y = torch.where(x > 0, safe.sqrt(), 0.0)
    y.sum().backward()
assert x.grad.tolist() == [0.0, 0.25]
""",
        draws="y",
        since="Older versions write some names without the number: `SqrtBackward`.",
    ),
    Entry(
        id="anomaly-mode-shows-the-forward-line",
        title="Anomaly mode shows the forward line",
        category="UserWarning",
        pattern=r"Error detected in \w+\. Traceback of forward call that caused the error",
        message=(
            "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n"
            '  File "<broken code of anomaly-mode-shows-the-forward-line>", line 9'
        ),
        variants=(
            "Error detected in PowBackward0. Traceback of forward call that caused the error:\n"
            '  File "train.py", line 12, in <module>\n'
            "    y = x**1.5\n",
        ),
        meaning=(
            "A backward pass failed in anomaly mode, and this traceback says where in the forward pass the "
            "failing node was made. The error itself follows. Read the traceback from its last line upward "
            "to the first line that is yours."
        ),
        causes=(
            "The node returned NaN, or the tensor it had saved was changed in place.",
            "The `backward` of your own Function raised an error.",
        ),
        repair=(
            "Go to the line of the traceback and mend what the error below it says. Then switch anomaly mode "
            "off: it slows every step down."
        ),
        chapter="41_anomaly_and_nan",
        section="Anomaly mode: two tracebacks",
        broken_code="""\
import sys

import torch

x = torch.tensor(0.0, requires_grad=True)
sys.tracebacklimit = 2  # show the last line of your code alone
try:
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt() * 0
        y.backward()
finally:
    del sys.tracebacklimit
""",
        fixed_code="""\
import torch

x = torch.tensor(0.0, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    y = (x + 1).sqrt() * 0  # the root is taken away from 0
    y.backward()
assert x.grad == 0
""",
        draws="y",
    ),
    Entry(
        id="anomaly-mode-came-after-the-forward-pass",
        title="Anomaly mode came after the forward pass",
        category="UserWarning",
        pattern=r"Error detected in \w+\. No forward pass information available",
        message=(
            "Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly "
            "during forward pass for more information."
        ),
        meaning=(
            "The backward pass ran in anomaly mode, but the graph was recorded before the mode was on. So "
            "torch can name the failing node and cannot tell which line made it."
        ),
        causes=(
            "`detect_anomaly()` wraps `backward()` alone.",
            "The failing part of the graph was recorded by earlier code, such as a hidden state that was "
            "carried over.",
        ),
        repair="Switch anomaly mode on before the forward pass, and run that pass again.",
        chapter="41_anomaly_and_nan",
        section='"No forward pass information available"',
        broken_code="""\
import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
y = torch.where(x > 0, x.sqrt(), 0.0)
with torch.autograd.set_detect_anomaly(True):
    y.sum().backward()
""",
        fixed_code="""\
import torch

x = torch.tensor([0.0, 4.0], requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    safe = torch.where(x > 0, x, 1.0)
    y = torch.where(x > 0, safe.sqrt(), 0.0)  # recorded in anomaly mode
    y.sum().backward()
assert x.grad.tolist() == [0.0, 0.25]
""",
        draws="y",
    ),
    Entry(
        id="anomaly-mode-is-on",
        title="Anomaly mode is on",
        category="UserWarning",
        pattern=r"Anomaly Detection has been enabled",
        message=(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging."
        ),
        meaning=(
            "`detect_anomaly()` says that it is working, each time that it is entered. In this mode torch "
            "stores a traceback for every node and tests every gradient for NaN, so each step takes longer."
        ),
        causes=(
            "You asked for it with `torch.autograd.detect_anomaly()`.",
            "A training library has an option such as `detect_anomaly=True`, and it is still set.",
        ),
        repair=(
            "Nothing is wrong. Take it out when you have found the fault; `set_detect_anomaly(True)` does "
            "the same work without this warning."
        ),
        chapter="41_anomaly_and_nan",
        section='"Anomaly Detection has been enabled"',
        broken_code="""\
import torch

x = torch.tensor(3.0, requires_grad=True)
with torch.autograd.detect_anomaly():
    (x * x).backward()
""",
        fixed_code="""\
import torch

x = torch.tensor(3.0, requires_grad=True)
with torch.autograd.set_detect_anomaly(True):
    (x * x).backward()
assert x.grad == 6
""",
    ),
    Entry(
        id="nan-reached-a-probability-distribution",
        title="NaN reached a probability distribution",
        category="ValueError",
        pattern=(
            r"(?:Expected parameter \w+ \(Tensor of shape \([^)]*\)\) of "
            r"distribution|probability tensor contains either `inf`, `nan` or element < 0)"
        ),
        message=(
            "Expected parameter logits (Tensor of shape (2,)) of distribution Categorical(logits: "
            "torch.Size([2])) to satisfy the constraint IndependentConstraint(Real(), 1), but found invalid "
            "values:\n"
            "tensor([nan, nan], grad_fn=<SubBackward0>)"
        ),
        variants=("probability tensor contains either `inf`, `nan` or element < 0",),
        meaning=(
            "`torch.distributions` tests its arguments when a distribution is made, and these hold NaN or "
            "values outside the allowed range. It is most often the first place where anybody looks: the NaN "
            "was born earlier, in most cases in the gradient of the step before."
        ),
        causes=(
            "An earlier backward pass gave a NaN gradient, and the optimizer wrote it into the weights.",
            "The network put out infinity, and a subtraction or normalization turned it into NaN.",
            "Sampling in half precision overflowed: `torch.multinomial` then says `probability tensor "
            "contains either`.",
            "The argument was not brought into range: a scale without `softplus`, or probabilities that are "
            "negative.",
        ),
        repair=(
            "Find the first NaN before this line: test the gradients and the weights after each step, or run "
            "the previous step in anomaly mode. Bring arguments into range with `softplus`, `softmax` or "
            "`logits=`."
        ),
        chapter="41_anomaly_and_nan",
        section="NaN after some steps, and none of these",
        broken_code="""\
import torch

w = torch.tensor([0.0, 1.0], requires_grad=True)
loss = torch.where(w > 0, w.sqrt(), 0.0).sum()
loss.backward()
with torch.no_grad():
    w -= 0.5 * w.grad  # the gradient of w[0] is NaN
torch.distributions.Categorical(logits=w)
""",
        fixed_code="""\
import torch

w = torch.tensor([0.0, 1.0], requires_grad=True)
safe = torch.where(w > 0, w, 1.0)
loss = torch.where(w > 0, safe.sqrt(), 0.0).sum()
loss.backward()
with torch.no_grad():
    w -= 0.5 * w.grad
policy = torch.distributions.Categorical(logits=w)
assert policy.probs.isfinite().all()
""",
        draws="loss",
    ),
)

"""How people paste an error: texts, and the id that must be found in each, or None."""

SECOND = "backward-through-the-graph-a-second-time"
MESSAGE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Saved intermediate values of the graph are freed when you call .backward()"
)
ERROR = f"RuntimeError: {MESSAGE}"
TRACEBACK = f'Traceback (most recent call last):\n  File "train.py", line 3, in f\n    step()\n{ERROR}\n'
WARNING = (
    "train.py:3: UserWarning: The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. "
    "Its .grad attribute won't be populated during autograd.backward().\n"
)

PASTED = {
    "a traceback": (TRACEBACK, SECOND),
    "a message alone": (MESSAGE, SECOND),
    "a message over several lines": (MESSAGE.replace(" ", "\n  "), SECOND),
    "a class on a line of its own": (f"RuntimeError\n{MESSAGE}", SECOND),
    "a class without a name": (f"Error: {MESSAGE}", SECOND),
    "in a fence": (f"```\n{TRACEBACK}```\n", SECOND),
    "as code": (f"`{ERROR}`", SECOND),
    "bold": (f"**{ERROR}**", SECOND),
    "quoted": ("".join(f"> {line}\n" for line in TRACEBACK.splitlines()), SECOND),
    "in a sentence": (f"My loop stops with {ERROR} What can I do?", SECOND),
    "behind the clock of a log": (f"2026-01-31 10:00:00,123 ERROR train: {ERROR}", SECOND),
    "with windows' line ends": (TRACEBACK.replace("\n", "\r\n"), SECOND),
    "with colors": (f"\x1b[31mRuntimeError\x1b[39m: {MESSAGE}", SECOND),
    "from pytest": (f">       loss.backward()\nE       {ERROR}\n\ntrain.py:12: RuntimeError\n", SECOND),
    "in a group of exceptions": (
        "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: two (1 sub-exception)\n"
        f"  +-+---------------- 1 ----------------\n    | {ERROR}\n    +------------------\n",
        SECOND,
    ),
    "from one of several processes": (
        "".join(f"[rank1]: {line}\n" for line in TRACEBACK.splitlines())
        + "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
        + "=" * 60
        + "\ntrain.py FAILED",
        SECOND,
    ),
    "a cause": (
        f"{TRACEBACK}\nThe above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\nValueError: training failed\n",
        SECOND,
    ),
    "another error after it": (f"{TRACEBACK}retrying\nKeyError: 'batch size'\n", None),
    "another error without a message after it": (
        f"{TRACEBACK}retrying\nTraceback (most recent call last):\nAssertionError\n",
        None,
    ),
    "code that mentions the message": (
        f"Traceback (most recent call last):\n    raise KeyError('x')  # {ERROR}\nKeyError: 'x'\n",
        None,
    ),
    "a warning before an unknown error": (
        f"{WARNING}  x.grad\nKeyError: 'batch size'\n",
        None,
    ),
    "a warning": (
        WARNING,
        "reading-grad-of-a-tensor-that-is-not-a-leaf",
    ),
    "an unknown class": ("torch._dynamo.exc.Unsupported: something else", None),
    "a question": ("Why is my gradient None after the backward pass?", None),
}

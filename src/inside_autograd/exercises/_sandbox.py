"""Run a learner's code: with a time limit, its printing caught, and global state put back.

What cannot be stopped from inside the process: one long call into C++ (the alarm is served when it
returns), a loop that catches every exception, and ``os._exit``.
"""

import contextlib
import ctypes
import io
import random
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

SECONDS = 4.0
AGAIN = 0.5  # seconds after which one who has not stopped is told again
PATIENCE = 4  # times the limit that code may take which hardly computes: on a busy machine it waits its turn


class Expired(BaseException):
    """The time limit ran out. A ``BaseException``, so that ``except Exception`` does not swallow it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one call: a value or an error, what was printed, and which global state it changed."""

    value: Any = None
    error: BaseException | None = None
    printed: str = ""
    changed: tuple[str, ...] = ()

    @property
    def expired(self) -> bool:
        return isinstance(self.error, Expired)


def run(call: Callable[[], object], seconds: float = SECONDS) -> Outcome:
    """Call ``call`` under the limit of ``seconds`` (see ``time_limit``); raises nothing that ``call`` raised.

    The random number generators, default dtype and device, gradient mode, anomaly mode, and warning
    filters are the same afterwards as before.
    """
    before = _State()
    printed = io.StringIO()
    value = error = None
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(printed),
        ):
            warnings.simplefilter("ignore")
            try:
                with time_limit(seconds):
                    value = call()
            except KeyboardInterrupt:
                raise
            except BaseException as caught:
                error = caught
    finally:
        changed = before.restore()
    return Outcome(value, error, printed.getvalue(), changed)


def time_limit(seconds: float) -> contextlib.AbstractContextManager[None]:
    """Raise ``Expired`` in this thread once the block has computed for ``seconds`` of processor time.

    Code that waits instead is stopped after ``PATIENCE`` times as long.
    """
    main = threading.current_thread() is threading.main_thread()
    return _alarm(seconds) if main and hasattr(signal, "setitimer") else _watchdog(seconds)


def _importing(frame: FrameType | None) -> bool:
    """Whether the code that ``run`` called is importing a module.

    Torch imports parts of itself at their first use, which takes seconds. An import that is cut short would
    leave a broken module behind, so the learner gets more time instead.
    """
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


class _Limit:
    """Tells when ``seconds`` are over; to be asked once they have passed, and then now and again."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.computed, self.started = time.process_time(), time.monotonic()

    def over(self) -> bool:
        # Not all of the time goes to the code: a tenth is left to the rest of the process and the machine.
        computed = time.process_time() - self.computed >= 0.9 * self.seconds
        return computed or time.monotonic() - self.started >= PATIENCE * self.seconds


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    limit = _Limit(seconds)

    def ring(signum: int, frame: FrameType | None) -> None:
        if _importing(frame):
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
        elif limit.over():
            raise Expired

    # The alarm is disarmed inside an outer ``try``: one that rings while we leave the block is caught
    # here and turned into the answer, and cannot escape into the notebook.
    previous = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            # Repeats, so that code which swallows the first alarm meets another.
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextlib.contextmanager
def _watchdog(seconds: float) -> Iterator[None]:
    """For threads and systems without ``setitimer``: another thread raises ``Expired`` in this one."""
    target, lock, done = ctypes.c_ulong(threading.get_ident()), threading.Lock(), threading.Event()
    limit, fired = _Limit(seconds), False

    def watch() -> None:
        nonlocal fired
        if done.wait(seconds):
            return
        while (importing := _importing(sys._current_frames().get(target.value))) or not limit.over():
            if done.wait(seconds if importing else AGAIN):
                return
        with lock:
            if not done.is_set():
                fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(Expired))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    landed = False
    try:
        try:
            yield
        except Expired:
            landed = True
            raise
        finally:
            with lock:
                done.set()
            thread.join()
        if fired and not landed:
            # It was sent and has not arrived: wait for it here, so that it cannot arrive later.
            for _ in range(1_000):
                time.sleep(0.001)
    except Expired:
        if fired and not landed:
            raise Expired from None
        raise


class _State:
    """The global state that a check must leave as it was."""

    def __init__(self) -> None:
        self.torch_rng = torch.get_rng_state()
        self.python_rng = random.getstate()
        self.numpy_rng = _numpy_rng()
        self.dtype = torch.get_default_dtype()
        self.device = torch.get_default_device()
        # Where none was ever set, "cpu" is not the same: it would leave a mode behind that sees every call.
        was_set = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None) is not None
        self.chosen = self.device if was_set else None
        self.grad = torch.is_grad_enabled()
        self.anomaly = (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
        self.deterministic = torch.are_deterministic_algorithms_enabled()

    def restore(self) -> tuple[str, ...]:
        """Put everything back; returns the names of what was different."""
        changed = []
        if not torch.equal(torch.get_rng_state(), self.torch_rng):
            changed.append("torch's random state")
            torch.set_rng_state(self.torch_rng)
        if random.getstate() != self.python_rng:
            changed.append("Python's random state")
            random.setstate(self.python_rng)
        if self.numpy_rng is not None and not _same_numpy(_numpy_rng(), self.numpy_rng):
            import numpy

            changed.append("NumPy's random state")
            numpy.random.set_state(self.numpy_rng)
        if torch.get_default_dtype() != self.dtype:
            changed.append("the default dtype")
            torch.set_default_dtype(self.dtype)
        if torch.get_default_device() != self.device:
            changed.append("the default device")
            torch.set_default_device(self.chosen)
        if torch.is_grad_enabled() != self.grad:
            changed.append("gradient mode")
            torch.set_grad_enabled(self.grad)
        if (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()) != self.anomaly:
            changed.append("anomaly mode")
            torch.autograd.set_detect_anomaly(*self.anomaly)
        if torch.are_deterministic_algorithms_enabled() != self.deterministic:
            changed.append("deterministic mode")
            torch.use_deterministic_algorithms(self.deterministic)
        return tuple(changed)


def _numpy_rng() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random.get_state()


def _same_numpy(one: Any, other: Any) -> bool:
    return one[0] == other[0] and one[2:] == other[2:] and bool((one[1] == other[1]).all())

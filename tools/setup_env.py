"""Make .venv and install what the book needs, or say in plain words what is missing.

    python3 tools/setup_env.py [--with-browser]

Standard library only. This file must parse on any Python 3.6 or newer, however old the reader's `python3` is:
it only looks for a Python that is new enough and lets that one do the work. A second run finds the stamp of
the first and installs nothing.

Environment variables: PYTHON (the Python to use), TORCH_INDEX (the index asked first for torch; empty: none),
CHROMIUM (the browser to use).
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OLDEST = (3, 11)
NEWEST_LOCKED = (3, 13)
NAMES = ("python3", "python3.13", "python3.12", "python3.11", "python3.14", "python")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
NEEDED_GB = 3
# Raised when the way of installing changes, so that older environments are brought up to date.
SCHEME = 1
NO_NETWORK = re.compile(
    r"NewConnectionError|Failed to establish a new connection|Failed to resolve|NameResolutionError"
    r"|name resolution|ConnectTimeout|Read timed out|ReadTimeout|Network is unreachable|Connection refused"
    r"|Connection reset|ConnectionResetError|ProxyError|Could not fetch URL|Connection broken"
    r"|Max retries exceeded|RemoteDisconnected"
)
NO_DISK = re.compile(r"No space left on device|Errno 28|not enough space|Disk quota exceeded")
NO_MATCH = re.compile(r"No matching distribution found for (\S+)")
# The lines of pip that tell a reader how far it is.
NEWS = ("Collecting", "Downloading", "Installing", "Building", "Preparing", "Obtaining")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER_FILES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
PLAYWRIGHT_PATH = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p: print(p.chromium.executable_path)\n"
)


class Stop(Exception):
    """What is missing, in words for the person at the keyboard."""


# ---------------------------------------------------------------- Python


def version_of(python):
    """Ask a Python for its version.

    Args:
        python: a command or a path.

    Returns:
        A tuple of three numbers, or None when it does not run.
    """
    code = "import sys; print('%d %d %d' % sys.version_info[:3])"
    try:
        out = subprocess.check_output([python, "-c", code], stderr=subprocess.DEVNULL)
        return tuple(int(part) for part in out.split())
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def find_python(environ, which=shutil.which, ask=version_of):
    """Choose the Python that makes the environment.

    Args:
        environ: the environment variables; PYTHON overrides the search.
        which: finds a command on the PATH.
        ask: tells the version of a Python, or None.

    Returns:
        The path and the version of the first one that is new enough.

    Raises:
        Stop: there is none.
    """
    wanted = ".".join(str(part) for part in OLDEST)
    named = environ.get("PYTHON")
    if named:
        version = ask(named)
        if version is None:
            raise Stop(f"PYTHON is set to {named}, but that does not run.")
        if version < OLDEST:
            raise Stop(
                f"PYTHON is set to {named}, which is Python {_dotted(version)}; "
                f"this book needs Python {wanted} or newer."
            )
        return which(named) or named, version
    older = newer = None
    for name in NAMES:
        path = which(name)
        version = ask(path) if path else None
        if version is None:
            continue
        if OLDEST <= version[:2] <= NEWEST_LOCKED:
            return path, version
        if version >= OLDEST:
            newer = newer or (path, version)
        else:
            older = older or (path, version)
    # The lock was not made for this one, but it may well work.
    if newer:
        return newer
    found = f"only {_dotted(older[1])} ({older[0]}) is here" if older else "no Python is on the PATH"
    raise Stop(
        f"This book needs Python {wanted} or newer, and {found}. Install a newer one, or say where it is "
        f"with PYTHON=/path/to/python{wanted}."
    )


def _dotted(version):
    return ".".join(str(part) for part in version)


def check_modules(python, version, run=subprocess.call):
    """Make sure that a Python can make environments.

    Args:
        python: its path.
        version: its version.
        run: runs a command and returns its exit status.

    Raises:
        Stop: it lacks `venv` or `ensurepip`, which Debian and Ubuntu ship in a package of their own.
    """
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if run([python, "-c", "import venv, ensurepip"], **silent) != 0:
        raise Stop(
            f"{python} cannot make environments: its venv or ensurepip module is missing. On Debian or "
            f"Ubuntu, install it with: apt-get install python{_dotted(version[:2])}-venv (or python3-venv)."
        )


# ---------------------------------------------------------------- the environment


def venv_python(folder):
    """Tell where the Python of an environment is.

    Args:
        folder: the environment.

    Returns:
        The path, for this system.
    """
    if os.name == "nt":
        return os.path.join(folder, "Scripts", "python.exe")
    return os.path.join(folder, "bin", "python")


def fingerprint(root, version):
    """Sum up everything that decides what gets installed.

    Args:
        root: the folder of the book.
        version: the version of the environment's Python.

    Returns:
        A short text that changes when any of it does. The folder counts too: an environment that was moved
        or copied points back at the old place.
    """
    digest = hashlib.sha256(json.dumps([SCHEME, list(version), os.path.abspath(root)]).encode())
    for name in ("requirements.txt", "constraints.txt", "pyproject.toml"):
        with open(os.path.join(root, name), "rb") as file:
            digest.update(file.read() + b"\0")
    return digest.hexdigest()


def recorded_version(folder):
    """Read from an environment which Python it was made with, without starting it.

    Args:
        folder: the environment.

    Returns:
        A tuple of three numbers, or None when there is no whole environment.
    """
    try:
        with open(os.path.join(folder, "pyvenv.cfg"), encoding="utf-8") as file:
            match = re.search(r"^version(?:_info)?\s*=\s*(\d+)\.(\d+)\.(\d+)", file.read(), re.MULTILINE)
    except OSError:
        return None
    if match is None or not os.path.exists(venv_python(folder)):
        return None
    return tuple(int(part) for part in match.groups())


def is_ready(root, folder, named=None, ask=version_of):
    """Tell whether an earlier run finished and nothing changed since.

    Args:
        root: the folder of the book.
        folder: the environment.
        named: the Python that the reader asks for, if any.
        ask: tells the version of a Python.

    Returns:
        True when there is nothing to install.
    """
    version = recorded_version(folder)
    if version is None or (named and ask(named) != version):
        return False
    try:
        with open(os.path.join(folder, "inside_autograd.stamp"), encoding="utf-8") as file:
            return file.read() == fingerprint(root, version)
    except OSError:
        return False


def pinned(requirements, name):
    """Read the exact version of a direct dependency.

    Args:
        requirements: the text of requirements.txt.
        name: the package.

    Returns:
        The version.

    Raises:
        Stop: it is not pinned.
    """
    match = re.search(rf"^{re.escape(name)}==([^\s;#]+)", requirements, re.MULTILINE)
    if not match:
        raise Stop(f"requirements.txt does not pin {name} with ==.")
    return match.group(1)


def torch_commands(python, version, index):
    """List the commands that install torch, in the order to try them.

    Args:
        python: the environment's Python.
        version: the version of torch.
        index: the index asked first, or an empty text for none.

    Returns:
        A list of commands. The first asks the index that serves CPU builds, which are ten times smaller; the
        last asks the default index. What torch needs is installed afterwards, with everything else.
    """
    install = [python, "-m", "pip", "install", "--no-deps", f"torch=={version}"]
    first = [install + ["--index-url", index, "--retries", "1", "--timeout", "15"]] if index else []
    return first + [install]


def explain(output, version, machine=None):
    """Say in a sentence why pip failed.

    Args:
        output: what pip wrote.
        version: the version of the environment's Python.
        machine: the system and its processor; this one's when not given.

    Returns:
        A sentence, or None when the reason is none of the known ones.
    """
    machine = machine or f"{platform.system()} on {platform.machine()}"
    if NO_DISK.search(output):
        return f"The disk is full: about {NEEDED_GB} GB must be free for the first set-up."
    # Without a network pip also says that nothing matches, so this comes first.
    if NO_NETWORK.search(output):
        return (
            "The package index does not answer. The first set-up needs a network: check the connection or "
            "the proxy, then run the same command again."
        )
    match = NO_MATCH.search(output)
    if match:
        place = f"{machine} with Python {_dotted(version[:2])}"
        if match.group(1).startswith("torch=="):
            return f"There is no build of {match.group(1)} for {place}."
        return f"The package index has no {match.group(1)} for {place}."
    return None


def say(text):
    """Print a line at once, also when the output goes to a file."""
    print(text)
    sys.stdout.flush()


def run_logged(command, log, every=15):
    """Run a command, keep what it writes, and tell every few seconds that it is still at work.

    Args:
        command: the command as a list.
        log: the path of the file that the output is added to.
        every: seconds between two signs of life.

    Returns:
        The exit status and the output.
    """
    env = dict(os.environ, PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PYTHONUNBUFFERED="1")
    # A reader's own setting of --user would not work inside an environment.
    env.update(PIP_PROGRESS_BAR="off", PIP_USER="0")
    lines = []
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env
        )
    except OSError as error:
        return 127, str(error)
    done = threading.Event()
    started = time.time()

    def sign_of_life():
        while not done.wait(every):
            news = [line.strip() for line in list(lines) if line.startswith(NEWS)]
            last = news[-1][:70] if news else "at work"
            say(f"      {time.time() - started:.0f} s: {last}")

    threading.Thread(target=sign_of_life, daemon=True).start()
    try:
        with open(log, "a", encoding="utf-8") as file:
            file.write("$ {}\n".format(" ".join(command)))
            for raw in process.stdout:
                line = raw.decode("utf-8", "replace")
                lines.append(line)
                file.write(line)
    except KeyboardInterrupt:
        process.terminate()
        raise
    finally:
        done.set()
        status = process.wait()
    return status, "".join(lines)


def install(root, folder, environ, run=run_logged, which=shutil.which, ask=version_of, modules=check_modules):
    """Make the environment and install everything into it.

    Args:
        root: the folder of the book.
        folder: the environment.
        environ: the environment variables.
        run: runs a command with a log, as `run_logged` does.
        which: finds a command on the PATH.
        ask: tells the version of a Python.
        modules: checks that a Python can make environments.

    Raises:
        Stop: something is missing; the message says what.
    """
    with open(os.path.join(root, "requirements.txt"), encoding="utf-8") as file:
        torch = pinned(file.read(), "torch")
    python = venv_python(folder)
    # Outside the environment, which may have to be made anew.
    log = os.path.join(tempfile.gettempdir(), f"inside_autograd_setup_{os.getpid()}.log")
    unfinished = os.path.join(folder, "inside_autograd.unfinished")
    stamp = os.path.join(folder, "inside_autograd.stamp")

    def must(command):
        status, output = run(command, log)
        if status != 0:
            fail(output)

    def fail(output):
        # Without a network pip stops before it unpacks anything: what is there can be used again.
        if (NO_NETWORK.search(output) or NO_MATCH.search(output)) and not NO_DISK.search(output):
            _remove(unfinished)
        raise Stop(failure(output, log, version))

    base, version = find_python(environ, which, ask)
    here = recorded_version(folder)
    # A run that was stopped may have left half a package behind, which pip takes for a whole one.
    broken = os.path.exists(unfinished) or _moved(folder)
    usable = here is not None and here >= OLDEST and not broken
    if environ.get("PYTHON") and here != version:
        usable = False
    # One that was stopped while it was made has no pip yet.
    if usable and run([python, "-m", "pip", "--version"], log)[0] == 0:
        version = here
        say(f"[1/4] Using .venv with Python {_dotted(version)}")
    else:
        modules(base, version)
        _check_disk(root)
        say(f"[1/4] Making .venv with Python {_dotted(version)} ({base})")
        must([base, "-m", "venv", "--clear", folder])
    _remove(stamp)
    with open(unfinished, "w", encoding="utf-8") as file:
        file.write(os.path.abspath(root))

    say(f"[2/4] Installing torch {torch}: 200 MB or more to download the first time")
    index = environ.get("TORCH_INDEX", CPU_INDEX)
    commands = torch_commands(python, torch, index)
    for number, command in enumerate(commands, 1):
        status, output = run(command, log)
        if status == 0:
            break
        if number < len(commands):
            say(f"      {index} does not serve it; asking the default index")
        else:
            fail(output)
    say("[3/4] Installing the other packages: one to three minutes the first time")
    pip = [python, "-m", "pip", "install"]
    files = [os.path.join(root, name) for name in ("requirements.txt", "constraints.txt")]
    must(pip + ["-r", files[0], "-c", files[1]])
    say("[4/4] Installing the helper package and checking that torch loads")
    must(pip + ["--no-deps", "--no-build-isolation", "-e", root])
    status, output = run([python, "-c", "import torch"], log)
    if status != 0:
        raise Stop(f"torch was installed but does not load here: {_last_line(output)}")
    with open(stamp, "w", encoding="utf-8") as file:
        file.write(fingerprint(root, version))
    _remove(unfinished)
    _remove(log)


def _remove(path):
    if os.path.exists(path):
        os.remove(path)


def _moved(folder):
    try:
        with open(os.path.join(folder, "pyvenv.cfg"), encoding="utf-8") as file:
            match = re.search(r"^command = .* -m venv (?:--\S+ )*(.*)$", file.read(), re.MULTILINE)
    except OSError:
        return False
    return bool(match) and os.path.realpath(match.group(1)) != os.path.realpath(folder)


def _check_disk(root):
    free = shutil.disk_usage(root).free / 1e9
    if free < NEEDED_GB:
        raise Stop(f"Only {free:.1f} GB of disk are free here; the set-up needs about {NEEDED_GB}.")


def _last_line(output):
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "it gave no reason"


def failure(output, log, version):
    """Say why a step of the set-up failed.

    Args:
        output: what the command wrote.
        log: the file that keeps the whole of it.
        version: the version of the environment's Python.

    Returns:
        A sentence, the reason as pip gave it when it is not a known one, and where to read more.
    """
    sentence = explain(output, version)
    if sentence is None:
        errors = [line.strip() for line in output.splitlines() if line.startswith("ERROR")]
        sentence = f"The set-up failed: {errors[-1] if errors else _last_line(output)}"
    return f"{sentence} (The whole output is in {log}.)"


# ---------------------------------------------------------------- the browser


def browser_runs(path):
    """Tell whether a browser starts at all.

    Args:
        path: the browser.

    Returns:
        True when it prints its version.
    """
    try:
        command = [path, "--version"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.call(command, stdin=subprocess.DEVNULL, timeout=60, **silent) == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _quiet(command, timeout):
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        done = subprocess.run(command, timeout=timeout, **pipes)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        return 124, f"it did not finish within {timeout} seconds"
    except OSError as error:
        return 127, str(error)


def find_browser(python, environ, which=shutil.which, runs=browser_runs, quiet=_quiet):
    """Find a Chromium that is already there.

    Args:
        python: the environment's Python.
        environ: the environment variables; CHROMIUM overrides the search.
        which: finds a command on the PATH.
        runs: tells whether a browser starts.
        quiet: runs a command with a time limit and returns its status and output.

    Returns:
        A path, or None.

    Raises:
        Stop: CHROMIUM is set to something that does not run.
    """
    named = environ.get("CHROMIUM")
    if named:
        if not runs(named):
            raise Stop(f"CHROMIUM is set to {named}, but that does not run.")
        return which(named) or named
    for candidate in [which(name) for name in BROWSERS] + list(BROWSER_FILES):
        if candidate and runs(candidate):
            return candidate
    status, output = quiet([python, "-c", PLAYWRIGHT_PATH], 60)
    path = _last_line(output)
    return path if status == 0 and os.path.exists(path) and runs(path) else None


def ensure_browser(python, environ, find=find_browser, quiet=_quiet, which=shutil.which, root=None):
    """Find a Chromium for the tests, or install one.

    Args:
        python: the environment's Python.
        environ: the environment variables.
        find: finds one that is there.
        quiet: runs a command with a time limit and returns its status and output.
        which: finds a command on the PATH.
        root: True when this runs as the system's administrator; found out when not given.

    Returns:
        The path of the browser.

    Raises:
        Stop: there is none and none can be installed.
    """
    path = find(python, environ)
    if path:
        return path
    say("Installing Chromium for the tests of the site (a few minutes)")
    tries = [[[python, "-m", "playwright", "install", "chromium"]]]
    if root is None:
        root = hasattr(os, "geteuid") and os.geteuid() == 0
    if root and which("apt-get"):
        apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
        tries.append([apt + ["update"], apt + ["install", "-y", "--no-install-recommends", "chromium"]])
    for commands in tries:
        if all(quiet(command, 300)[0] == 0 for command in commands):
            path = find(python, environ)
            if path:
                return path
    raise Stop(
        "The tests of the site need Chromium, and it could not be installed from here: install chromium with "
        "your system's package manager, or say where a browser is with CHROMIUM=/path/to/chromium."
    )


def remembered_browser(python, folder, environ, ensure=ensure_browser):
    """Find the browser of the last run again without starting it.

    Args:
        python: the environment's Python.
        folder: the environment; the path is kept in it, in the file chromium.path.
        environ: the environment variables.
        ensure: finds or installs a browser.

    Returns:
        The path of the browser.

    Raises:
        Stop: there is none and none can be installed.
    """
    note = os.path.join(folder, "chromium.path")
    if not environ.get("CHROMIUM") and os.path.exists(note):
        with open(note, encoding="utf-8") as file:
            path = file.read().strip()
        if os.path.exists(path):
            return path
    path = ensure(python, environ)
    with open(note, "w", encoding="utf-8") as file:
        file.write(path + "\n")
    return path


def main(arguments=None):
    """Do the set-up.

    Args:
        arguments: the command line; that of the process when not given.

    Returns:
        0, or 1 with one sentence on standard error.
    """
    parser = argparse.ArgumentParser(description="Make .venv and install what the book needs.")
    parser.add_argument("--with-browser", action="store_true", help="also find or install Chromium")
    options = parser.parse_args(arguments)
    folder = os.path.join(ROOT, ".venv")
    try:
        if not is_ready(ROOT, folder, os.environ.get("PYTHON")):
            say("Setting up: this happens once")
            install(ROOT, folder, os.environ)
        if options.with_browser:
            remembered_browser(venv_python(folder), folder, os.environ)
    except Stop as stop:
        print(f"\n{stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to finish the set-up.", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"\nThe set-up failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

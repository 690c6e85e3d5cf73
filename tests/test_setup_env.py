"""The set-up says in plain words what is missing, and installs nothing the second time.

Most tests run the real script as a program. The Pythons it finds are small shell scripts that write down how
they were called and answer as each test says, so that nothing is installed and no network is asked.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import setup_env

ROOT = Path(__file__).resolve().parent.parent

FAKE = """#!/bin/sh
# Answers like a Python and its pip; each file in $FAKE says how.
echo "$*" >> "$FAKE/calls"
answer() { if [ -f "$FAKE/$1" ]; then cat "$FAKE/$1"; exit 1; fi; exit 0; }
case "$*" in
  "-c import sys"*) cat "$FAKE/$(basename "$0").version" 2>/dev/null || cat "$FAKE/version" ;;
  "-c import venv"*) answer no-venv ;;
  "-m venv --clear "*)
    rm -rf "$4"; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"
    echo "version = $(tr ' ' . < "$FAKE/version")" > "$4/pyvenv.cfg" ;;
  "-m pip --version") answer no-pip ;;
  *"--index-url"*) answer first-index-fails ;;
  *"--no-deps torch=="*) answer default-index-fails ;;
  *"-r "*) answer packages-fail ;;
  "-c import torch") answer torch-does-not-load ;;
esac
"""
OFFLINE = """\
WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(...):
Failed to establish a new connection: [Errno -3] Temporary failure in name resolution': /simple/torch/
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""
NO_TORCH = """\
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: 2.14.0)
ERROR: No matching distribution found for torch==2.13.0
"""


class Machine:
    """A copy of the files that the set-up reads, and a PATH with nothing but fake Pythons."""

    def __init__(self, folder):
        self.folder, self.fake, self.bin = folder / "book", folder / "fake", folder / "bin"
        for path in (self.folder / "tools", self.fake, self.bin):
            path.mkdir(parents=True)
        for name in ("tools/setup_env.py", "requirements.txt", "constraints.txt", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        for tool in ("sh", "cat", "cp", "rm", "mkdir", "tr", "basename"):
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.python("python3")
        self.say("version", "3 12 1")

    def python(self, name):
        path = self.bin / name
        path.write_text(FAKE)
        path.chmod(0o755)
        return path

    def say(self, name, text):
        (self.fake / name).write_text(text)

    def unsay(self, name):
        (self.fake / name).unlink()

    def run(self, *arguments, **variables):
        script = str(self.folder / "tools" / "setup_env.py")
        environ = {"PATH": str(self.bin), "FAKE": str(self.fake), "HOME": str(self.folder), **variables}
        (self.fake / "calls").write_text("")
        done = subprocess.run(
            [sys.executable, script, *arguments], env=environ, capture_output=True, text=True, timeout=60
        )
        assert "Traceback" not in done.stderr
        return done

    def calls(self):
        return (self.fake / "calls").read_text().splitlines()

    def installs(self):
        return [call for call in self.calls() if call.startswith("-m pip install")]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_first_run_installs_in_order_and_shows_steps(machine):
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[\d/4\]", done.stdout) == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    torch, rest, own = machine.installs()
    assert "torch==" in torch and "--index-url https://" in torch and "--retries 1 --timeout 15" in torch
    assert "requirements.txt" in rest and "constraints.txt" in rest
    assert "--no-deps" in own and own.endswith(f"-e {machine.folder}")


def test_second_run_installs_nothing_and_is_quick(machine):
    machine.run()
    started = time.monotonic()
    done = machine.run()
    assert done.returncode == 0
    assert machine.calls() == []
    assert done.stdout == ""
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("name", ["requirements.txt", "constraints.txt", "pyproject.toml"])
def test_a_changed_file_installs_again_into_the_same_environment(machine, name):
    machine.run()
    with (machine.folder / name).open("a") as file:
        file.write("# changed\n")
    machine.run()
    assert len(machine.installs()) == 3
    assert not any("-m venv" in call for call in machine.calls())


def test_torch_falls_back_to_the_default_index(machine):
    machine.say("first-index-fails", OFFLINE)
    done = machine.run(TORCH_INDEX="https://cpu.example/whl")
    assert done.returncode == 0, done.stderr
    first, second = machine.installs()[:2]
    assert "--index-url https://cpu.example/whl" in first
    assert "--index-url" not in second and "torch==" in second
    assert "https://cpu.example/whl does not serve it" in done.stdout


def test_an_empty_torch_index_asks_only_the_default(machine):
    machine.run(TORCH_INDEX="")
    assert not any("--index-url" in call for call in machine.installs())


def test_no_network(machine):
    machine.say("first-index-fails", OFFLINE)
    machine.say("default-index-fails", OFFLINE)
    done = machine.run()
    assert done.returncode == 1
    assert "needs a network" in done.stderr
    assert "no build" not in done.stderr


def test_no_network_keeps_the_environment_for_the_next_run(machine):
    machine.say("packages-fail", OFFLINE)
    assert machine.run().returncode == 1
    machine.unsay("packages-fail")
    assert machine.run().returncode == 0
    assert not any("-m venv" in call for call in machine.calls())
    assert len(machine.installs()) == 3


def test_no_torch_for_this_machine(machine):
    machine.say("first-index-fails", NO_TORCH)
    machine.say("default-index-fails", NO_TORCH)
    done = machine.run()
    assert done.returncode == 1
    assert "There is no build of torch==2.13.0 for " in done.stderr
    assert "with Python 3.12." in done.stderr


def test_full_disk_is_named_and_the_environment_made_anew(machine):
    machine.say("packages-fail", "ERROR: Could not install packages: [Errno 28] No space left on device\n")
    done = machine.run()
    assert done.returncode == 1
    assert "The disk is full" in done.stderr
    machine.unsay("packages-fail")
    assert machine.run().returncode == 0
    assert any("-m venv --clear" in call for call in machine.calls())


def test_an_unknown_failure_gives_pip_s_own_reason_and_the_log(machine):
    machine.say("packages-fail", "Collecting x\nERROR: the dog ate it\nmore\n")
    done = machine.run()
    assert "the dog ate it" in done.stderr
    log = re.search(r"output is in (\S+)\.\)", done.stderr).group(1)
    assert "Collecting x" in Path(log).read_text()
    os.remove(log)


def test_torch_that_does_not_load(machine):
    machine.say("torch-does-not-load", "Traceback ...\nImportError: libgomp.so.1: cannot open\n")
    done = machine.run()
    assert done.returncode == 1
    assert "libgomp.so.1" in done.stderr


def test_an_interrupted_run_is_repaired(machine):
    machine.run()
    # What a run leaves that was stopped halfway: the mark, and no stamp.
    (machine.folder / ".venv" / "inside_autograd.stamp").unlink()
    (machine.folder / ".venv" / "inside_autograd.unfinished").write_text("")
    done = machine.run()
    assert done.returncode == 0
    assert any("-m venv --clear" in call for call in machine.calls())
    assert not (machine.folder / ".venv" / "inside_autograd.unfinished").exists()


def test_an_environment_stopped_while_it_was_made_is_made_anew(machine):
    machine.run()
    (machine.folder / ".venv" / "inside_autograd.stamp").unlink()
    machine.say("no-pip", "No module named pip\n")
    done = machine.run()
    assert done.returncode == 0
    assert any("-m venv --clear" in call for call in machine.calls())


def test_a_removed_python_makes_the_environment_anew(machine):
    machine.run()
    (machine.folder / ".venv" / "bin" / "python").unlink()
    assert machine.run().returncode == 0
    assert any("-m venv --clear" in call for call in machine.calls())


def test_a_moved_folder_is_not_taken_for_ready(machine, tmp_path):
    machine.run()
    moved = tmp_path / "elsewhere"
    machine.folder.rename(moved)
    machine.folder = moved
    assert machine.run().returncode == 0
    assert machine.installs()


def test_older_python(machine):
    machine.say("version", "3 8 10")
    done = machine.run()
    assert done.returncode == 1
    assert "needs Python 3.11 or newer, and only 3.8.10" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (machine.folder / ".venv").exists()


def test_a_newer_python_beside_an_older_one_is_used(machine):
    machine.say("version", "3 12 4")
    machine.say("python3.version", "3 9 2")
    machine.python("python3.12")
    done = machine.run()
    assert done.returncode == 0
    assert f"Python 3.12.4 ({machine.bin / 'python3.12'})" in done.stdout


def test_a_python_that_the_lock_was_made_for_comes_first(machine):
    machine.say("version", "3 12 4")
    machine.say("python3.version", "3 15 0")
    machine.python("python3.12")
    assert str(machine.bin / "python3.12") in machine.run().stdout


def test_a_python_newer_than_the_lock_is_better_than_none(machine):
    machine.say("version", "3 15 0")
    assert "Python 3.15.0" in machine.run().stdout


def test_no_python_at_all(machine):
    (machine.bin / "python3").unlink()
    done = machine.run()
    assert "no Python is on the PATH" in done.stderr


@pytest.mark.parametrize(
    ("version", "message"), [("3 10 2", "which is Python 3.10.2"), ("oops", "does not run")]
)
def test_python_variable_that_will_not_do(machine, version, message):
    machine.python("mine")
    machine.say("mine.version", version)
    done = machine.run(PYTHON=str(machine.bin / "mine"))
    assert done.returncode == 1
    assert message in done.stderr


def test_python_variable_replaces_an_environment_of_another_version(machine):
    machine.run()
    machine.python("mine")
    machine.say("mine.version", "3 13 0")
    machine.say("version", "3 13 0")
    done = machine.run(PYTHON=str(machine.bin / "mine"))
    assert done.returncode == 0
    assert any("-m venv --clear" in call for call in machine.calls())


def test_missing_venv_module(machine):
    machine.say("no-venv", "No module named ensurepip\n")
    done = machine.run()
    assert done.returncode == 1
    assert "venv or ensurepip module is missing" in done.stderr
    assert "apt-get install python3.12-venv" in done.stderr


def test_little_disk(monkeypatch, tmp_path):
    usage = type("Usage", (), {"free": 200_000_000})
    monkeypatch.setattr(setup_env.shutil, "disk_usage", lambda path: usage)
    with pytest.raises(setup_env.Stop, match=r"Only 0\.2 GB"):
        setup_env._check_disk(tmp_path)


def test_parses_on_old_pythons():
    source = (ROOT / "tools" / "setup_env.py").read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 6))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    allowed = {"argparse", "hashlib", "json", "os", "platform", "re", "shutil", "subprocess", "sys"}
    allowed |= {"tempfile", "threading", "time"}
    assert {name.name for node in imports for name in node.names} == allowed
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_long_steps_give_signs_of_life(tmp_path, capsys):
    code = "import time; print('Collecting something', flush=True); time.sleep(0.7)"
    status, output = setup_env.run_logged([sys.executable, "-c", code], tmp_path / "log", every=0.2)
    assert status == 0
    assert output == "Collecting something\n"
    assert "s: Collecting something" in capsys.readouterr().out


# ---------------------------------------------------------------- the browser


def nothing(command, timeout):
    return 1, "no"


def test_browser_on_the_path(machine):
    chromium = machine.bin / "chromium"
    chromium.write_text("#!/bin/sh\necho Chromium 1\n")
    chromium.chmod(0o755)
    assert machine.run("--with-browser").returncode == 0
    assert (machine.folder / ".venv" / "chromium.path").read_text().strip() == str(chromium)


def test_the_browser_of_the_last_run_is_remembered(tmp_path):
    asked = []
    (tmp_path / "browser").write_text("")

    def ensure(python, environ):
        asked.append(python)
        return str(tmp_path / "browser")

    for _ in range(2):
        path = setup_env.remembered_browser("python", str(tmp_path), {}, ensure)
    assert path == str(tmp_path / "browser")
    assert len(asked) == 1
    (tmp_path / "browser").unlink()
    setup_env.remembered_browser("python", str(tmp_path), {}, ensure)
    assert len(asked) == 2


def test_chromium_variable_comes_first():
    found = setup_env.find_browser(
        "python", {"CHROMIUM": "/mine"}, which=lambda name: None, runs=lambda path: True, quiet=nothing
    )
    assert found == "/mine"


def test_chromium_variable_that_does_not_run():
    with pytest.raises(setup_env.Stop, match="CHROMIUM is set to /mine, but that does not run"):
        setup_env.find_browser("python", {"CHROMIUM": "/mine"}, runs=lambda path: False, quiet=nothing)


def test_a_browser_that_does_not_start_is_passed_over(tmp_path):
    (tmp_path / "own").write_text("")
    found = setup_env.find_browser(
        "python",
        {},
        which=lambda name: "/usr/bin/broken" if name == "chromium" else None,
        runs=lambda path: "broken" not in path and "Applications" not in path,
        quiet=lambda command, timeout: (0, f"{tmp_path / 'own'}\n"),
    )
    assert found == str(tmp_path / "own")


@pytest.mark.parametrize("root", [True, False])
def test_browser_installed_by_playwright_first_then_by_the_system(root):
    ran = []

    def quiet(command, timeout):
        ran.append(" ".join(command))
        return (1, "") if "playwright" in command else (0, "")

    def find(python, environ):
        return "/usr/bin/chromium" if any("install -y" in command for command in ran) else None

    arguments = {"find": find, "quiet": quiet, "which": lambda name: f"/usr/bin/{name}", "root": root}
    if root:
        assert setup_env.ensure_browser("python", {}, **arguments) == "/usr/bin/chromium"
        assert [command.split()[-1] for command in ran] == ["chromium", "update", "chromium"]
    else:
        with pytest.raises(setup_env.Stop, match="CHROMIUM=/path/to/chromium"):
            setup_env.ensure_browser("python", {}, **arguments)
        assert len(ran) == 1

"""The files at the top, README, `make help` and .ci/run tell the same story."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def targets():
    return re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, flags=re.MULTILINE)


def tracked():
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files"], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout:
        pytest.skip("not a git checkout: an archive has no list of tracked files")
    return done.stdout.splitlines()


def table():
    return [name.rstrip("/") for name in re.findall(r"^\| `([^`]+)` \|", README, flags=re.MULTILINE)]


def test_readme_lists_what_is_at_the_top_and_nothing_else():
    assert sorted(table()) == sorted({path.split("/")[0] for path in tracked()})


def test_every_entry_of_the_table_says_its_job():
    rows = re.findall(r"^\| `[^`]+` \| (.*) \|$", README, flags=re.MULTILINE)
    assert len(rows) == len(table())
    assert all(len(row) > 5 for row in rows)


def test_readme_gives_one_command_for_the_book_and_one_for_the_tests():
    assert re.findall(r"^```\n(.*?)\n```$", README, flags=re.MULTILINE) == ["make book", "make test"]
    assert {"book", "test"} <= set(targets())


def test_every_command_named_in_the_docs_is_a_target():
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert set(re.findall(r"`make ([a-z-]+)", text)) <= set(targets())


def test_help_is_the_default_and_lists_every_target():
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(["make", "-s", "-C", str(ROOT)], capture_output=True, text=True, env=environ)
    assert done.returncode == 0, done.stderr
    listed = re.findall(r"^  make ([a-z-]+) +(\S.*)$", done.stdout, flags=re.MULTILINE)
    assert [name for name, what in listed] == targets()


def test_every_target_is_phony():
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, flags=re.MULTILINE).group(1).split()
    assert sorted(phony) == sorted(targets())


def test_every_script_the_makefile_calls_is_there():
    for path in re.findall(r"tools/\w+\.py", MAKEFILE):
        assert (ROOT / path).is_file(), path


def test_ci_runs_the_command_of_the_readme():
    script = ROOT / ".ci" / "run"
    assert "exec make test " in script.read_text(encoding="utf-8")
    assert os.access(script, os.X_OK)
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "- run: .ci/run" in workflow


def test_what_git_ignores_is_not_tracked():
    made = (".venv/", "_build/", "work/")
    assert not [path for path in tracked() if path.startswith(made) or "__pycache__" in path]


def test_both_licenses_are_whole():
    code = (ROOT / "LICENSE").read_text(encoding="utf-8")
    text = (ROOT / "LICENSE-TEXT").read_text(encoding="utf-8")
    assert "BSD 3-Clause License" in code and "The Inside Autograd authors" in code
    assert "https://creativecommons.org/licenses/by/4.0/" in text
    assert all(f"Section {number}" in text for number in range(1, 9))

"""The workflows: valid, pinned, with few rights, and calling only what is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.y*ml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in FILES}
# YAML 1.2, in which the key `on` is a word and not a truth value.
FLOWS = {name: YAML(typ="safe").load(text) for name, text in TEXTS.items()}
every_flow = pytest.mark.parametrize("name", list(FLOWS))


def steps(name):
    return [step for job in FLOWS[name]["jobs"].values() for step in job["steps"]]


def check(schema, *paths):
    """Validate files against a schema that check-jsonschema ships; nothing is downloaded."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)


def test_there_are_the_three():
    assert sorted(FLOWS) == ["ci.yml", "pages.yml", "weekly.yml"]


@pytest.mark.parametrize("schema", ["vendor.github-workflows", "custom.github-workflows-require-timeout"])
def test_they_fit_the_schema(schema):
    done = check(schema, *FILES)
    assert done.returncode == 0, done.stdout


def test_the_schema_finds_a_wrong_one(tmp_path):
    wrong = tmp_path / "ci.yml"
    wrong.write_text(TEXTS["ci.yml"].replace("runs-on:", "run-on:"))
    assert check("vendor.github-workflows", wrong).returncode == 1


def test_every_action_is_pinned_by_its_commit_and_says_its_version():
    pins = {}
    for text in TEXTS.values():
        lines = [line for line in text.splitlines() if re.search(r"\buses:", line)]
        for line in lines:
            found = re.fullmatch(r"\s*(?:- )?uses: ([\w./-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line)
            assert found, line
            pins.setdefault(found[1], set()).add(found.groups()[1:])
    assert pins and all(len(versions) == 1 for versions in pins.values()), pins


@every_flow
def test_a_workflow_may_read_and_a_job_asks_for_more(name):
    flow = FLOWS[name]
    assert flow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in flow["on"] and "write-all" not in TEXTS[name]
    more = {job: what["permissions"] for job, what in flow["jobs"].items() if "permissions" in what}
    wanted = {
        "build": {"contents": "write", "pages": "read"},
        "deploy": {"pages": "write", "id-token": "write"},
    }
    assert more == (wanted if name == "pages.yml" else {})


@every_flow
def test_no_step_keeps_the_token_or_mixes_values_into_a_script(name):
    for step in steps(name):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        # A value such as a branch's name would be run as a part of the script: it goes through env.
        assert "${{" not in step.get("run", ""), step
    tokens = [step["run"] for step in steps(name) if "token" in str(step.get("env", "")).lower()]
    assert all("tools/push_launch.py" in run for run in tokens)


@every_flow
def test_what_it_calls_is_there(name):
    targets = re.findall(r"^([a-z-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for run in [step["run"] for step in steps(name) if "run" in step]:
        assert set(re.findall(r"\bmake ([a-z-]+)", run)) <= set(targets), run
        for path in re.findall(r"(?:tools/\w+\.py|\.ci/run)", run):
            assert (ROOT / path).is_file(), path


def test_the_strict_gate_is_the_command_of_the_readme():
    assert [step.get("run") for step in FLOWS["ci.yml"]["jobs"]["test"]["steps"]][-1] == ".ci/run"


def test_chapters_run_on_all_pythons_and_on_the_oldest_and_newest_torch():
    job = FLOWS["ci.yml"]["jobs"]["other-versions"]
    matrix = job["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    # Written as text: 3.10 as a number would be 3.1.
    assert all(isinstance(version, str) for version in matrix["python"])
    (pinned,) = re.findall(r"^torch==(\d+\.\d+)", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert matrix["torch"] == [f">={pinned}"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (oldest,) = [line.removeprefix("torch>=") for line in project["dependencies"] if "torch" in line]
    assert matrix["include"] == [{"python": "3.11", "torch": f"=={oldest}.*"}]
    assert project["requires-python"] == f">={matrix['python'][0]}"
    assert any("pytest --nbval-lax" in step.get("run", "") for step in job["steps"])


def test_a_site_is_published_only_from_main():
    assert FLOWS["pages.yml"]["on"]["push"] == {"branches": ["main"]}
    assert "pull_request" not in FLOWS["pages.yml"]["on"]
    assert FLOWS["pages.yml"]["jobs"]["deploy"]["needs"] == "build"


def test_the_week_tries_the_next_torch_and_the_links():
    runs = [step.get("run", "") for step in steps("weekly.yml")]
    assert any("--pre torch" in run and "/nightly/cpu" in run for run in runs)
    assert any("--builder linkcheck" in run for run in runs)
    assert len(FLOWS["weekly.yml"]["on"]["schedule"]) == 1


def test_the_readme_names_the_oldest_torch_and_python():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (torch,) = [line.removeprefix("torch>=") for line in project["dependencies"] if line.startswith("torch")]
    python = project["requires-python"].removeprefix(">=")
    words = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"torch {torch} or newer" in words
    assert f"on Python {python} or newer" in words


def test_style_and_types_are_checked_before_the_tests():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("test", "lint"):
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[1]
        assert "-m ruff check ." in recipe and "-m mypy" in recipe, target

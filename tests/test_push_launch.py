"""The launch tree reaches its branch: made when missing, replaced but for wheels, left if nothing changed."""

import subprocess

import pytest

import push_launch


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def remote(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LAUNCH_TOKEN", raising=False)
    folder = tmp_path / "remote.git"
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare")
    return folder


@pytest.fixture
def tree(tmp_path):
    folder = tmp_path / "tree"
    fill(folder, {"notebooks/11_a.ipynb": "{}", "notebooks/12_b.ipynb": "{}", "wheels/a-1.whl": "one"})
    fill(folder, {".binder/postBuild": "#!/bin/sh\n", "README.md": "words"})
    (folder / ".binder" / "postBuild").chmod(0o755)
    return folder


def fill(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def branch_files(remote):
    return git(remote, "ls-tree", "-r", "--name-only", "launch").split()


def test_the_first_push_makes_the_branch(remote, tree):
    assert push_launch.push(tree, str(remote), "launch") is True
    assert branch_files(remote) == sorted(
        path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()
    )
    assert git(remote, "ls-tree", "launch", ".binder/postBuild").startswith("100755")
    assert git(remote, "rev-list", "--count", "launch").strip() == "1"


def test_nothing_is_pushed_when_nothing_changed(remote, tree):
    push_launch.push(tree, str(remote), "launch")
    assert push_launch.push(tree, str(remote), "launch") is False
    assert git(remote, "rev-list", "--count", "launch").strip() == "1"


def test_old_wheels_stay_and_what_else_is_gone_goes(remote, tree):
    push_launch.push(tree, str(remote), "launch")
    (tree / "wheels" / "a-1.whl").rename(tree / "wheels" / "a-2.whl")
    (tree / "notebooks" / "12_b.ipynb").unlink()
    assert push_launch.push(tree, str(remote), "launch") is True
    files = branch_files(remote)
    assert {"wheels/a-1.whl", "wheels/a-2.whl"} <= set(files)
    assert "notebooks/12_b.ipynb" not in files
    assert git(remote, "rev-list", "--count", "launch").strip() == "2"


def test_files_that_a_reader_s_git_ignores_are_pushed(remote, tree, tmp_path):
    (tmp_path / "ignore").write_text("*.whl\n")
    (tmp_path / ".gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path / 'ignore'}\n")
    push_launch.push(tree, str(remote), "launch")
    assert "wheels/a-1.whl" in branch_files(remote)


def test_without_a_tree_it_says_so(remote, tmp_path):
    with pytest.raises(SystemExit, match=r"run tools/launch_tree\.py first"):
        push_launch.push(tmp_path, str(remote), "launch")


def test_a_remote_that_is_not_there_is_told_in_git_s_words(tree, tmp_path):
    with pytest.raises(SystemExit, match=r"git ls-remote failed: fatal: .*gone"):
        push_launch.push(tree, str(tmp_path / "gone"), "launch")


def test_the_token_stays_out_of_the_command_line(remote, tree, monkeypatch):
    monkeypatch.setenv("LAUNCH_TOKEN", "a-secret")
    commands = []
    run = subprocess.run

    def watched(command, **options):
        commands.append(command)
        return run(command, **options)

    monkeypatch.setattr(subprocess, "run", watched)
    assert push_launch.push(tree, str(remote), "launch") is True
    assert commands and not [part for command in commands for part in command if "a-secret" in part]
    # What git would ask it: a name and the token.
    asked = "protocol=https\nhost=example.org\n\n"
    command = ["git", "-c", "credential.helper=", "-c", f"credential.helper={push_launch.HELPER}"]
    done = run([*command, "credential", "fill"], input=asked, capture_output=True, text=True)
    assert "username=x-access-token" in done.stdout and "password=a-secret" in done.stdout


def test_three_things_are_named():
    with pytest.raises(SystemExit, match="Name three things"):
        push_launch.main(["tree"])

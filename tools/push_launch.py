"""Put the launch tree on its branch of a repository.

    .venv/bin/python tools/push_launch.py TREE REMOTE BRANCH

What is on the branch is replaced, but for wheels: copies of older chapters still install theirs. Nothing is
pushed when nothing changed. The branch is made when there is none, without the history of the sources.

Environment variables: LAUNCH_TOKEN, where the remote asks for one. Git reads it from there alone.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

AUTHOR = ("Launch tree", "launch-tree@users.noreply.github.com")
HELPER = '!f() { echo username=x-access-token; echo "password=$LAUNCH_TOKEN"; }; f'


def git(folder, *arguments, check=True):
    """Run git.

    Args:
        folder: where.
        arguments: its arguments.
        check: whether a failure ends the script.

    Returns:
        What it wrote to standard output, or None when it failed and `check` is off.

    Raises:
        SystemExit: it failed; with what it said.
    """
    name, mail = AUTHOR
    command = ["git", "-C", str(folder), "-c", f"user.name={name}", "-c", f"user.email={mail}"]
    if os.environ.get("LAUNCH_TOKEN"):
        command += ["-c", f"credential.helper={HELPER}"]
    environ = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    done = subprocess.run([*command, *arguments], env=environ, capture_output=True, text=True)
    if done.returncode != 0:
        if not check:
            return None
        raise SystemExit(f"git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def push(tree, remote, branch):
    """Put the tree on the branch.

    Args:
        tree: the launch tree.
        remote: the address of the repository.
        branch: the branch.

    Returns:
        True when something was pushed.

    Raises:
        SystemExit: there is no tree, or git failed; with one sentence.
    """
    if not (tree / "notebooks").is_dir() or not (tree / "wheels").is_dir():
        raise SystemExit(f"There is no launch tree in {tree}: run tools/launch_tree.py first.")
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "branch"
        copy.mkdir()
        git(copy, "init", "--quiet")
        git(copy, "remote", "add", "origin", remote)
        known = git(copy, "ls-remote", "--heads", "origin", f"refs/heads/{branch}").strip()
        if known:
            git(copy, "fetch", "--quiet", "--depth", "1", "origin", f"refs/heads/{branch}")
            git(copy, "checkout", "--quiet", "-b", branch, "FETCH_HEAD")
        else:
            git(copy, "checkout", "--quiet", "--orphan", branch)
        for entry in copy.iterdir():
            if entry.name in (".git", "wheels"):
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        shutil.copytree(tree, copy, dirs_exist_ok=True)
        git(copy, "add", "--all", "--force")
        if known and git(copy, "diff", "--cached", "--quiet", check=False) is not None:
            return False
        git(copy, "commit", "--quiet", "--message", "Launch tree")
        git(copy, "push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    return True


def main(arguments):
    """Put the tree on the branch and say so.

    Args:
        arguments: tree, remote and branch.
    """
    if len(arguments) != 3:
        raise SystemExit("Name three things: the launch tree's folder, the repository's address, the branch.")
    tree, remote, branch = arguments
    print("Pushed" if push(Path(tree), remote, branch) else "Nothing changed", "on", branch)


if __name__ == "__main__":
    main(sys.argv[1:])

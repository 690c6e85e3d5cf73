"""Say on each page when it was last changed and, for a notebook, what it was run with."""

import json
import re
import subprocess
from pathlib import Path


def pinned_torch(requirements):
    """Read the torch version that the book is built and tested with.

    Args:
        requirements: the text of requirements.txt.

    Returns:
        The version as text, or None when torch has no exact pin there.
    """
    match = re.search(r"^torch==([^\s;]+)", requirements, flags=re.MULTILINE)
    return match.group(1) if match else None


def _git(root, *args):
    try:
        done = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def last_changed(root, path):
    """Ask git for the day a file was last changed.

    Args:
        root: the folder of the repository.
        path: the file.

    Returns:
        The day as YYYY-MM-DD, or None when git does not know: no git, no repository, a file that is not
        committed as it stands, or a shallow clone, whose oldest commit seems to have changed every file.
    """
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return None
    if _git(root, "status", "--porcelain", "--", str(path)) != "":
        return None
    return _git(root, "log", "-1", "--format=%cs", "--", str(path)) or None


def facts(root, path):
    """Collect what a page says about itself.

    Args:
        root: the folder of the repository.
        path: the source of the page.

    Returns:
        A dict with `changed` (a day or None), and `torch` and `python` (versions, or None for a page
        that runs no code).
    """
    found = {"changed": last_changed(root, path), "torch": None, "python": None}
    if path.suffix == ".ipynb":
        metadata = json.loads(path.read_text(encoding="utf-8")).get("metadata", {})
        requirements = root / "requirements.txt"
        pinned = pinned_torch(requirements.read_text(encoding="utf-8")) if requirements.exists() else None
        # The strict tests compare every output under the pinned torch, so the pin is the truth
        # unless the notebook names its own.
        found["torch"] = metadata.get("inside_autograd", {}).get("torch") or pinned
        found["python"] = metadata.get("language_info", {}).get("version")
    return found


def _outdated(app, env, added, changed, removed):
    # A commit changes the day without changing the file: such a page must be written again.
    root = Path(app.srcdir)
    now = {name: facts(root, Path(env.doc2path(name))) for name in env.found_docs}
    before = getattr(env, "page_facts", {})
    env.page_facts = now
    return [name for name in sorted(now) if before.get(name) != now[name] and name not in added]


def _to_context(app, pagename, templatename, context, doctree):
    context["page_facts"] = getattr(app.env, "page_facts", {}).get(pagename)


def _substitute(app, config):
    # Pages write {{ torch_version }}, so that the number stands in one place.
    path = Path(app.srcdir) / "requirements.txt"
    version = pinned_torch(path.read_text(encoding="utf-8")) if path.exists() else None
    if version:
        config.myst_substitutions = {**config.myst_substitutions, "torch_version": version}


def setup(app):
    """Connect to the build; the template page-facts.html shows the facts."""
    app.connect("config-inited", _substitute)
    app.connect("env-get-outdated", _outdated)
    app.connect("html-page-context", _to_context)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Add launch and source buttons when the address of the repository is known, and none when it is not."""

import os
import re
import subprocess
from urllib.parse import quote

# The theme knows how to link into these and stops with an error at any other.
PROVIDERS = ("github.com", "gitlab.com", "bitbucket.org")
# What tools/offline_copy.py makes of the site.
ARCHIVE = "inside-autograd.zip"


def clean_url(address):
    """Turn a git address into the web address of a repository.

    Args:
        address: what git or a workflow calls the repository, such as `git@host:owner/name.git`.

    Returns:
        `https://host/owner/name` without user names, passwords or a closing `.git`, or None when the
        address is not one of a repository on a host the theme can link to.
    """
    match = re.fullmatch(
        r"(?:(?:https?|ssh|git)://)?(?:[^@/\s]*@)?([\w.-]+)(?::\d+)?[:/]+([\w.-]+)/([\w.-]+?)(?:\.git)?/?",
        (address or "").strip(),
    )
    if not match or match.group(1).lower() not in PROVIDERS:
        return None
    host, owner, name = match.groups()
    return f"https://{host.lower()}/{owner}/{name}"


def find_url(environ, root):
    """Find the address of the repository.

    Args:
        environ: the environment variables. `REPO_URL` comes first; set but empty, it means "no buttons".
            Then a workflow's `GITHUB_REPOSITORY`, then the git remote `origin`.
        root: the folder of the repository.

    Returns:
        A web address, or None.
    """
    if "REPO_URL" in environ:
        return clean_url(environ["REPO_URL"])
    if environ.get("GITHUB_REPOSITORY"):
        server = environ.get("GITHUB_SERVER_URL", "https://github.com")
        return clean_url(f"{server}/{environ['GITHUB_REPOSITORY']}")
    try:
        done = subprocess.run(
            ["git", "-C", str(root), "remote", "get-url", "origin"], capture_output=True, text=True
        )
    except OSError:
        return None
    return clean_url(done.stdout) if done.returncode == 0 else None


def launch_branch(environ):
    """Name the branch that holds the launch tree, which tools/launch_tree.py makes.

    Args:
        environ: the environment variables; `LAUNCH_BRANCH` overrides the name.

    Returns:
        The name of a branch.
    """
    return environ.get("LAUNCH_BRANCH") or "launch"


def site_url(environ, url):
    """Find the address of the published site.

    Args:
        environ: the environment variables; `SITE_URL` comes first.
        url: the web address of the repository, as `clean_url` gives it, or None.

    Returns:
        An address with a slash at its end: the one that the host gives to a repository's pages when none is
        named. None when neither is known.
    """
    named = (environ.get("SITE_URL") or "").strip()
    if named:
        return named.rstrip("/") + "/"
    match = re.fullmatch(r"https://(github|gitlab)\.com/([^/]+)/([^/]+)", url or "")
    if not match:
        return None
    host, owner, name = match[1], match[2].lower(), match[3]
    home = f"{owner}.{host}.io"
    # A repository with that name is the owner's own site, at the top.
    return f"https://{home}/" if name.lower() == home else f"https://{home}/{name}/"


def files_url(url, branch):
    """Find where single files of a branch can be loaded from.

    Args:
        url: the web address of the repository.
        branch: the branch.

    Returns:
        An address with a slash at its end.
    """
    if url.startswith("https://github.com/"):
        return f"https://raw.githubusercontent.com/{url.removeprefix('https://github.com/')}/{branch}/"
    return f"{url}/-/raw/{branch}/" if "gitlab.com" in url else f"{url}/raw/{branch}/"


def offline_copy(environ, url):
    """Say where the whole site can be had as one archive.

    Args:
        environ: the environment variables; with `OFFLINE_COPY` set, the archive is put beside the site.
        url: the web address of the repository, or None.

    Returns:
        The start of a sentence, in Markdown.
    """
    site = site_url(environ, url)
    if site and environ.get("OFFLINE_COPY"):
        return f"[This archive]({site}{ARCHIVE})"
    return f"`make zip` writes `_build/{ARCHIVE}`, which"


def _configure(app, config):
    url = find_url(os.environ, app.srcdir)
    # A page writes {{ offline_copy }}.
    substitutions = getattr(config, "myst_substitutions", None) or {}
    config.myst_substitutions = {**substitutions, "offline_copy": offline_copy(os.environ, url)}
    options = dict(config.html_theme_options)
    if url:
        options["repository_url"] = url
        # The theme takes it for the launch buttons, which open the launch tree and not the sources.
        options["repository_branch"] = launch_branch(os.environ)
        options["use_repository_button"] = True
        launch = {"notebook_interface": "jupyterlab", "binderhub_url": "https://mybinder.org"}
        if "github.com" in url:
            launch["colab_url"] = "https://colab.research.google.com"
        options["launch_buttons"] = launch
    else:
        for name in ("repository_url", "repository_branch", "launch_buttons"):
            options.pop(name, None)
    config.html_theme_options = options


def report_link(url, pagename):
    """Build the link to report a mistake on a page.

    Args:
        url: the web address of the repository.
        pagename: the page, such as `notebooks/12_grad_fn`.

    Returns:
        The address of a new issue with a title filled in.
    """
    title = quote(f"Mistake in {pagename}")
    if "gitlab.com" in url:
        return f"{url}/-/issues/new?issue[title]={title}"
    return f"{url}/issues/new?title={title}"


def _to_context(app, pagename, templatename, context, doctree):
    url = app.config.html_theme_options.get("repository_url")
    if url and doctree is not None:
        context["report_url"] = report_link(url, pagename)


def setup(app):
    """Set the theme's options before it reads them."""
    app.connect("config-inited", _configure, priority=100)
    app.connect("html-page-context", _to_context)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

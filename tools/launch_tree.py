"""Make the launch tree: what Colab, Binder and a class's hub open, for one repository address.

    .venv/bin/python tools/launch_tree.py [--repo https://github.com/owner/name] [--out _build/launch]

It holds the chapters, each with a first cell that installs what is missing, the helper package as a wheel,
and Binder's files. The `pages` workflow puts it on a branch of its own. Same sources, same bytes.

Environment variables: REPO_URL, LAUNCH_BRANCH and SITE_URL, as for the site (see book/_ext/repository.py).
"""

import argparse
import hashlib
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

from docutils.nodes import make_id
from markdown_it import MarkdownIt
from myst_parser.mdit_to_docutils.base import default_slugify

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import repository  # noqa: E402

# What the wheel is built from.
PACKAGE = ("pyproject.toml", "README.md", "LICENSE")
LICENSES = ("LICENSE", "LICENSE-TEXT")
# A zip file cannot hold an earlier day, and any fixed one will do: the wheel must not hold a clock.
EPOCH = "315532800"
# What may be missing elsewhere, besides torch: always, or where a chapter imports it.
ALWAYS = ("igraph", "ipywidgets", "matplotlib")
BY_IMPORT = {"sklearn": "scikit-learn"}
HELPER_LINE = "python -m pip install --no-cache-dir --no-deps ."
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
SETUP = '''\
# @title Set-up: run this cell first
# It installs what is missing here, and leaves torch as it is. The chapter as a page:
# {page}
def _set_up():
    import subprocess
    import sys
    from importlib import invalidate_caches, metadata

    helper = "{version}"
    helper_url = "{url}"
    helper_sha256 = "{sha256}"
    pins = {pins}

    def version(name):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            return None

    torch = version("torch")
    if torch is None:
        raise SystemExit("PyTorch is missing here: install torch, restart the kernel, run this cell again.")
    missing = [name + "==" + pin for name, pin in pins.items() if version(name) is None]
    if version("inside_autograd") != helper:
        missing.append("inside_autograd @ " + helper_url + "#sha256=" + helper_sha256)
    if missing:
        # The torch that is here is asked for by its exact version, so nothing can put another in its place.
        command = [sys.executable, "-m", "pip", "install", "--quiet", "torch==" + torch, *missing]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise SystemExit("The set-up failed. pip said:\\n" + done.stdout)
        invalidate_caches()
    print("Ready: torch", torch, "and inside_autograd", version("inside_autograd"))


_set_up()
del _set_up
'''
README = """\
# {title}: to run

This branch is made from the sources by `tools/launch_tree.py` each time the site is published. Changes made
here are lost; make them in the sources.

- `notebooks/`: the chapters. The first cell of each installs what is missing.
- `wheels/`: the helper package. Older files stay, so that copies of older chapters keep working.
- `.binder/`: what Binder installs.

The book: {site}

Sources, and where to report a mistake: {repo}
"""


def headings(text):
    """Map the anchors that Markdown links use to those of the built page.

    Args:
        text: the Markdown of a page.

    Returns:
        A dict from the slug of each heading, as GitHub and MyST make it, to the id that the page has.
    """
    found, ids = {}, set()
    for title in _titles(text):
        slug, number = default_slugify(title), 1
        while slug in found:
            slug, number = f"{slug}-{number}", number + 1
        # An id that is empty or taken is numbered by Sphinx while it builds, so it is not known here.
        name = make_id(title)
        found[slug] = name if name and name not in ids else None
        ids.add(name)
    return found


def _titles(text):
    for before, token in pairwise(MarkdownIt().parse(text)):
        if before.type == "heading_open":
            parts = [child.content for child in token.children if child.type in ("text", "code_inline")]
            yield "".join(parts)


def read_markdown(path):
    """Read the Markdown of a page.

    Args:
        path: a .md file or a notebook.

    Returns:
        A text.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


class Links:
    """Turns relative links between the sources into addresses of the site.

    Args:
        root: the folder of the book.
        site: the address of the site, with a slash at its end.
    """

    def __init__(self, root, site):
        self.root, self.site, self.known = root, site, {}

    def address(self, source, target):
        """Find the address of a link's target.

        Args:
            source: the page that links, relative to the book, such as `notebooks/12_grad_fn.ipynb`.
            target: what it links to, as written.

        Returns:
            An address. One that is an address already stays as it is.

        Raises:
            SystemExit: there is no such page, or it has no such heading.
        """
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return target
        path, _, anchor = target.partition("#")
        page = posixpath.normpath(posixpath.join(posixpath.dirname(source), path)) if path else source
        file = self.root / page
        if page.startswith("..") or file.suffix not in (".ipynb", ".md") or not file.is_file():
            raise SystemExit(f"{source} links to {target}, and there is no such page.")
        if page not in self.known:
            self.known[page] = headings(read_markdown(file))
        address = self.site + quote(posixpath.splitext(page)[0]) + ".html"
        if not anchor:
            return address
        # Terms of the glossary have anchors of their own (book/_ext/glossary_links.py).
        if not anchor.startswith("term-"):
            if anchor not in self.known[page]:
                raise SystemExit(f"{source} links to {target}, and that page has no such heading.")
            anchor = self.known[page][anchor]
        return f"{address}#{quote(anchor)}" if anchor else address

    def rewrite(self, source, text):
        """Rewrite every relative link in a piece of Markdown, code blocks left out.

        Args:
            source: the page it stands on.
            text: the Markdown.

        Returns:
            The text with addresses.
        """
        parts, end = [], 0
        for fence in FENCE.finditer(text):
            parts += [self._plain(source, text[end : fence.start()]), fence.group()]
            end = fence.end()
        return "".join([*parts, self._plain(source, text[end:])])

    def _plain(self, source, text):
        return LINK.sub(lambda found: found[1] + self.address(source, found[2]) + found[3], text)


def package_files(root):
    """List what the wheel is built from.

    Args:
        root: the folder of the book.

    Returns:
        Paths relative to it, sorted.
    """
    files = [root / name for name in PACKAGE]
    for path in (root / "src").rglob("*"):
        made = "__pycache__" in path.parts or any(part.endswith(".egg-info") for part in path.parts)
        if path.is_file() and not made and path.suffix != ".pyc":
            files.append(path)
    return sorted(path.relative_to(root).as_posix() for path in files)


def build_wheel(root, folder):
    """Build the helper package.

    Its version ends in the first digits of a sum of its sources, such as 0.1.0+1a2b3c4d: a changed package
    has another name, and the old one can stay beside it.

    Args:
        root: the folder of the book.
        folder: where to put the wheel.

    Returns:
        The path of the wheel and its version.

    Raises:
        SystemExit: pip could not build it; with what pip said.
    """
    digest = hashlib.sha256()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        copy = Path(temporary) / "package"
        for name in package_files(root):
            data = (root / name).read_bytes()
            digest.update(name.encode() + b"\0" + data + b"\0")
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes(data)
            (copy / name).chmod(0o644)
        project = copy / "pyproject.toml"
        text = project.read_text(encoding="utf-8")
        version = re.search(r'^version = "([^"+]+)"$', text, re.MULTILINE)[1] + "+" + digest.hexdigest()[:8]
        project.write_text(re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', text), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
        environ = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONHASHSEED": "0"}
        command += ["--wheel-dir", str(folder), str(copy)]
        # A wheel keeps the modes of its files.
        mode = {"umask": 0o022} if os.name == "posix" else {}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, **mode)
    if done.returncode != 0:
        raise SystemExit(f"The helper package could not be built:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob(f"*{version}-*.whl")
    wheel.chmod(0o644)
    return wheel, version


def read_pins(root):
    """Read the exact versions that requirements.txt names.

    Args:
        root: the folder of the book.

    Returns:
        A dict from name to version.
    """
    text = (root / "requirements.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([^\s;#]+)", text, re.MULTILINE))


def needs(notebook, pins):
    """List what a chapter needs besides torch and the helper package.

    Args:
        notebook: the notebook as JSON.
        pins: exact versions by name.

    Returns:
        A dict from name to exact version.
    """
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    used = [
        name for module, name in BY_IMPORT.items() if re.search(rf"^\s*(import|from) {module}\b", code, re.M)
    ]
    return {name: pins[name] for name in (*ALWAYS, *used)}


def launch_notebook(name, data, links, setup):
    """Make a chapter that runs anywhere.

    Args:
        name: its path relative to the book.
        data: its bytes.
        links: a `Links`.
        setup: a function from the notebook to the source of its first cell.

    Returns:
        The bytes of the notebook.
    """
    notebook = json.loads(data)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = links.rewrite(name, "".join(cell["source"])).splitlines(keepends=True)
    first = {"cell_type": "code", "execution_count": None, "id": "set-up", "metadata": {}, "outputs": []}
    # Colab folds it to its title.
    first["metadata"] = {"cellView": "form"}
    first["source"] = setup(notebook).rstrip("\n").splitlines(keepends=True)
    notebook["cells"].insert(0, first)
    return (json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def write_tree(root, out, repo, branch, site, files):
    """Write the launch tree.

    Args:
        root: the folder of the book.
        out: the folder to write; what was in it is removed.
        repo: the web address of the repository.
        branch: the branch that the tree will be on.
        site: the address of the site, with a slash at its end.
        files: the address under which the tree's files can be loaded, with a slash at its end.
    """
    if out.exists():
        shutil.rmtree(out)
    wheel, version = build_wheel(root, out / "wheels")
    pins, links = read_pins(root), Links(root, site)

    def setup(notebook, page):
        return SETUP.format(
            page=page,
            pins=json.dumps(needs(notebook, pins)),
            version=version,
            url=f"{files}wheels/{quote(wheel.name)}",
            sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        )

    (out / "notebooks").mkdir()
    for path in sorted((root / "notebooks").glob("*.ipynb")):
        name = f"notebooks/{path.name}"
        first = partial(setup, page=links.address(name, path.name))
        (out / name).write_bytes(launch_notebook(name, path.read_bytes(), links, first))
    (out / ".binder").mkdir()
    for path in sorted((root / ".binder").iterdir()):
        text = path.read_text(encoding="utf-8")
        if path.name == "postBuild":
            if text.count(HELPER_LINE) != 1:
                raise SystemExit(f".binder/postBuild no longer says `{HELPER_LINE}`, which is changed here.")
            text = text.replace(HELPER_LINE, f"{HELPER_LINE.removesuffix(' .')} wheels/{wheel.name}")
        (out / ".binder" / path.name).write_text(text, encoding="utf-8")
        (out / ".binder" / path.name).chmod(0o755 if path.name == "postBuild" else 0o644)
    for name in LICENSES:
        (out / name).write_bytes((root / name).read_bytes())
    title = re.search(r"^title: (.*)$", (root / "_config.yml").read_text(encoding="utf-8"), re.MULTILINE)[1]
    (out / "README.md").write_text(README.format(title=title, site=site, repo=repo), encoding="utf-8")


def main(arguments=None):
    """Write the launch tree for the address that is known.

    Args:
        arguments: the command line; that of the process when not given.
    """
    parser = argparse.ArgumentParser(description="Make what Colab, Binder and a class's hub open.")
    parser.add_argument("--repo", help="address of the repository; found as for the site when not given")
    parser.add_argument("--branch", default=repository.launch_branch(os.environ), help="its branch")
    parser.add_argument("--site", help="address of the site; that of the host's pages when not given")
    parser.add_argument("--files", help="where the tree's files are loaded from; its branch when not given")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "launch", help="the folder to write")
    options = parser.parse_args(arguments)
    repo = repository.clean_url(options.repo) if options.repo else repository.find_url(os.environ, ROOT)
    if repo is None:
        raise SystemExit("The address of the repository is not known: name it with --repo https://github.com/…")
    site = options.site or repository.site_url(os.environ, repo)
    files = options.files or repository.files_url(repo, options.branch)
    write_tree(ROOT, options.out, repo, options.branch, site.rstrip("/") + "/", files.rstrip("/") + "/")
    print(f"Launch tree for {repo}, branch {options.branch}: {options.out}")


if __name__ == "__main__":
    main()

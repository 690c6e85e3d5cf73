"""The addresses of the site that stand in the launch tree lead to pages and headings of the site as built."""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("SITE_DIR") or ROOT / "_build" / "html")
sys.path.insert(0, str(ROOT / "tools"))

import launch_tree  # noqa: E402

ADDRESS = "https://owner.github.io/name/"


def test_every_address_of_a_heading_is_there():
    links, seen, missing = launch_tree.Links(ROOT, ADDRESS), {}, []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        source = f"notebooks/{path.name}"
        text = links.rewrite(source, launch_tree.read_markdown(path))
        for target in re.findall(rf"\]\({ADDRESS}([^)\s]+)\)", text):
            page, _, anchor = target.partition("#")
            if page not in seen:
                file = SITE / page
                html = file.read_text(encoding="utf-8") if file.is_file() else ""
                seen[page] = set(re.findall(r'\bid="([^"]+)"', html)) if html else None
            if seen[page] is None or (anchor and anchor not in seen[page]):
                missing.append(f"{source}: {target}")
    assert len(seen) > 10
    assert not missing, "\n".join(missing)

"""Draw the picture that is shown where somebody shares a page of the book: book/_static/social.png.

    .venv/bin/python tools/social_picture.py

Needs a Chromium: the one in $CHROMIUM, the one on PATH, or Playwright's own. Sites that show such pictures
take no SVG. The file names the page that it was made from, so that a test can say when it is out of date.
"""

import hashlib
import io
import os
import shutil
import sys
from pathlib import Path

import torch
from PIL import Image, PngImagePlugin

from inside_autograd import draw

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "book" / "_static" / "social.png"
SIZE = (1200, 630)
KEY = "Source-SHA-256"
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Inside Autograd</title>
<style>
body {{ align-items: center; background: #fff; color: #1d2733; display: flex; margin: 0 }}
div {{ border-left: 14px solid #1f5fa8; box-sizing: border-box; flex: 1; height: 630px }}
div {{ padding: 150px 20px 0 66px }}
h1 {{ font: 600 84px/1.05 Charter, "Bitstream Charter", "Noto Serif", "DejaVu Serif", serif }}
h1 {{ margin: 0 0 36px }}
p {{ font: 32px/1.4 system-ui, "DejaVu Sans", sans-serif; margin: 0 }}
code {{ font: 29px ui-monospace, "DejaVu Sans Mono", monospace }}
svg {{ flex: none; height: 570px; margin-right: 50px; width: auto }}
</style>
<div>
<h1>Inside Autograd</h1>
<p>You call <code>loss.backward()</code> and gradients appear. This book opens that call.</p>
</div>
{svg}
</html>
"""


def page():
    """Write the page behind the picture: the book's name, and a drawing by the tool as it is today."""
    x = torch.tensor(2.0)
    w = torch.tensor(3.0, requires_grad=True)
    return PAGE.format(svg=draw({"loss": (w * x) ** 2 + w}, params={"w": w}).svg)


def digest(text):
    """Sum up a page, as the picture names it."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def photograph(text):
    """Take a picture of a page.

    Args:
        text: the page.

    Returns:
        The bytes of a PNG of 1200 by 630 points.
    """
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        shown = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        shown.set_content(text)
        data = shown.screenshot()
        browser.close()
    return data


def main():
    """Write the picture.

    Returns:
        0.
    """
    text = page()
    info = PngImagePlugin.PngInfo()
    info.add_text(KEY, digest(text))
    # Few colors are enough, and take a third of the bytes.
    image = Image.open(io.BytesIO(photograph(text))).convert("RGB").quantize(64)
    image.save(PICTURE, pnginfo=info, optimize=True)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The Chromium that tests drive: the one in $CHROMIUM, the one on PATH, or Playwright's own."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Error, expect, sync_playwright

# Chromium's own traffic would be noise, and its sandbox does not start for root.
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
# A page is waited for longer than Playwright's 5 s: on a busy machine a kernel answers late.
expect.set_options(timeout=30_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the length of the block; the test fails with one sentence where it does not start."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or None
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error as error:
            reason = str(error).strip().splitlines()[0]
            pytest.fail(f"Chromium does not start ({reason}): set CHROMIUM to its path.", pytrace=False)
        yield browser
        browser.close()

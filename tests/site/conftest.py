"""The built site, served to one Chromium. Nothing here is skipped: without a site or a browser tests fail."""

import functools
import os
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from chromium import chromium

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("SITE_DIR") or ROOT / "_build" / "html")


def pytest_terminal_summary(terminalreporter):
    """Print what tests measured: `record_property("to print", …)`."""
    lines = [
        text
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for key, text in report.user_properties
        if key == "to print" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def address():
    """The address of the built site, without a slash at its end."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"There is no built site in {SITE}: run `make book` first.", pytrace=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(10)


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of the site."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, address):
    """A function that opens a page of the site: ``open_page("book/index.html", color_scheme="dark")``.

    Whatever a test does with it, the test fails if a page logged an error or asked another host for anything.
    """
    contexts, problems = [], []

    def record(page):
        page.on("pageerror", lambda error: problems.append(f"{page.url}: page error: {error}"))
        page.on(
            "console",
            lambda message: (
                message.type == "error" and problems.append(f"{page.url}: console error: {message.text}")
            ),
        )
        page.on("requestfailed", lambda request: fail(page, request))
        page.on("request", lambda request: ask(page, request.url))
        page.on("websocket", lambda socket: ask(page, socket.url))

    def fail(page, request):
        # Leaving a page ends what it still loads. "csp" is said of scripts where JavaScript is off.
        if request.failure not in ("net::ERR_ABORTED", "csp"):
            problems.append(f"{page.url}: not loaded: {request.url} ({request.failure})")

    def ask(page, url):
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob", "about") and f"http://{parts.netloc}" != address:
            problems.append(f"{page.url}: asked another host: {url}")

    def open_(path, **options):
        context = browser.new_context(**options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        record(page)
        response = page.goto(f"{address}/{path}", wait_until="load")
        assert response.status == 200, f"{path}: status {response.status}"
        return page

    yield open_
    found = "\n".join(dict.fromkeys(problems))
    for context in contexts:
        context.close()
    assert not found, found

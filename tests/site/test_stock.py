"""The same chapters as Jupyter Book builds them when nothing is set: what its pages cost next to ours.

What those ask of other hosts is refused and counted, not weighed: it would come on top, with what it loads.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from small_book import build_stock
from weighing import open_scale

SITE = Path(os.environ.get("SITE_DIR") or Path(__file__).resolve().parents[2] / "_build" / "html")
# One with drawings and players, one with formulas as well.
PAGES = ("notebooks/12_grad_fn", "notebooks/24_higher_order")
# Of the bytes and of the requests of a stock page, without those to other hosts.
BYTES, REQUESTS = 0.15, 0.4


def visit(browser, folder, name):
    """Visit a page with an empty cache; gives bytes as sent, requests, and the addresses on other hosts."""
    scale, context, foreign = open_scale(folder), browser.new_context(), []
    home = f"127.0.0.1:{scale.server_port}"

    def pass_or_refuse(route):
        if urlsplit(route.request.url).netloc in (home, ""):
            route.continue_()
        else:
            foreign.append(route.request.url)
            route.abort()

    context.route("**/*", pass_or_refuse)
    page = context.new_page()
    page.goto(f"http://{home}/{name}.html", wait_until="networkidle")
    context.close()
    scale.shutdown()
    scale.server_close()
    return sum(size for _, size, _ in scale.sent), len(scale.sent), foreign


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    return build_stock(tmp_path_factory.mktemp("stock"), PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_costs_a_part_of_a_stock_page(browser, stock, name, record_property):
    ours, our_requests, our_foreign = visit(browser, SITE, name)
    theirs, their_requests, their_foreign = visit(browser, stock, name)
    hosts = ", ".join(sorted({urlsplit(url).netloc for url in their_foreign}))
    record_property(
        "to print",
        f"{name}: {ours / 1000:.0f} kB in {our_requests} requests; a stock Jupyter Book page "
        f"{theirs / 1000:.0f} kB in {their_requests}, and {len(their_foreign)} to other hosts ({hosts}): "
        f"{ours / theirs:.0%} of the bytes, {our_requests / their_requests:.0%} of the requests",
    )
    assert our_foreign == [] and their_foreign != []
    assert ours <= BYTES * theirs
    assert our_requests <= REQUESTS * their_requests

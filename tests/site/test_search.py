"""Search finds chapters by concept, by the text of an error and by the name of an API, at once."""

import os
from pathlib import Path

from playwright.sync_api import expect

SITE = Path(os.environ.get("SITE_DIR") or Path(__file__).resolve().parents[2] / "_build" / "html")
# A query, and a page that must be among the first five that it finds.
QUERIES = {
    # concepts
    "Hessian-vector product": "notebooks/24_higher_order",
    "vector-Jacobian product": "notebooks/21_backward_and_grad",
    "gradient accumulation": "notebooks/22_accumulation",
    "leaf tensor": "notebooks/13_leaves",
    "straight-through": "notebooks/35_changing_gradients",
    "memory hooks": "notebooks/43_hooks_and_memory",
    # messages, whole or with parts of one's own
    "Trying to backward through the graph a second time": "book/errors",
    "element 0 of tensors does not require grad and does not have a grad_fn": "book/errors",
    "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
    "operation: [torch.FloatTensor [64, 128]], which is output 0 of ReluBackward0, is at version 7": (
        "book/errors"
    ),
    # names
    "once_differentiable": "notebooks/24_higher_order",
    "gradcheck": "notebooks/32_gradcheck",
    "saved_tensors_hooks": "notebooks/43_hooks_and_memory",
    "AccumulateGrad": "notebooks/12_grad_fn",
    "first_nonfinite": "book/api",
}
# Counts from the query to the last result, in the page itself.
SEARCH = """async query => {
    const start = performance.now()
    document.querySelector('#search-results').replaceChildren()
    Search.performSearch(query)
    const done = () => /found|did not match/.test(document.querySelector('#search-results').innerText)
    while (!done() && performance.now() - start < 5000) await new Promise(r => setTimeout(r, 5))
    const links = [...document.querySelectorAll('#search-results ul.search > li > a')]
    const pages = links.map(a => new URL(a.href).pathname.split('/').slice(-2).join('/').replace('.html', ''))
    return [performance.now() - start, [...new Set(pages)]]
}"""


def test_queries_find_their_pages_first(open_page):
    page = open_page("search.html")
    missed, times = [], []
    for query, wanted in QUERIES.items():
        took, found = page.evaluate(SEARCH, query)
        times.append(took)
        if wanted not in found[:5]:
            missed.append(f"{query[:50]!r}: {wanted} is not in {found[:8]}")
    assert not missed, "\n".join(missed)
    assert sorted(times)[len(times) // 2] < 1000, times


def test_a_word_that_no_page_has_finds_nothing(open_page):
    page = open_page("search.html")
    assert page.evaluate(SEARCH, "hippopotamus")[1] == []


def test_a_page_s_search_box_leads_to_results(open_page):
    page = open_page("notebooks/12_grad_fn.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("gradcheck")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=gradcheck")
    expect(page.locator("#search-results a", has_text="Trust, but check").first).to_be_visible()


def test_search_works_from_the_disk(browser):
    page, noise = browser.new_page(), []
    page.on("console", lambda message: message.type in ("error", "warning") and noise.append(message.text))
    page.goto(f"{(SITE / 'search.html').as_uri()}?q=gradcheck")
    expect(page.locator("#search-results a", has_text="Trust, but check").first).to_be_visible()
    assert not noise
    page.close()

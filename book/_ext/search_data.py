"""Write down what the index of search leaves out: how often pages say words, who explains terms, messages.

The search page alone loads it, before search.js, which ranks with it.
"""

import functools
import html
import itertools
import json
import re
from collections import Counter
from math import log2
from pathlib import Path

NAME = "search_data.js"
# A word or two neighbors count for a page from here on: below, a page says them in passing.
FEWEST = {1: 5, 2: 3}
GLOSSARY, ERRORS = "book/glossary", "book/errors"
# What the box on the index of errors searches, as tools/generated_pages.py writes it.
MESSAGES, _BEGINNING = "_static/errors_data.js", "window.errorIndex ="
# Catalogues say every word often. Beginnings of names: solutions have a page for each part.
UNCOUNTED = (ERRORS, "book/solutions", "book/outdated_advice", "notebooks/42_error_clinic")
_ARTICLE = re.compile(r"<article\b.*?</article>", re.DOTALL)
_HIDDEN = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]*>", re.DOTALL)
_TERM = re.compile(r'<dt id="term-[^"]*">(.*?)<a class="headerlink".*?</dt>\s*<dd>(.*?)</dd>', re.DOTALL)
_LINK = re.compile(r'href="\.\./(notebooks/\w+)\.html')


def words_of(text, language):
    """List the words of a text as search knows them.

    Args:
        text: plain text.
        language: Sphinx's language of search, which splits and stems.

    Returns:
        Stems in order, without those that say nothing and without numbers.
    """
    stem = functools.lru_cache(maxsize=None)(language.stem)
    stems = (stem(word) for word in language.split(text.lower()) if not word.isdigit())
    return [one for one in stems if language.word_filter(one)]


def count(pages, language):
    """Count what each page says often.

    Args:
        pages: a list of plain texts.
        language: as for `words_of`.

    Returns:
        A dict from a word, or two neighbors with a space between them, to a flat list: number of a page, then
        the logarithm of how often it says them, and so on.
    """
    found = {}
    for number, text in enumerate(pages):
        words = words_of(text, language) if text else []
        counts = Counter(words)
        counts.update(" ".join(pair) for pair in itertools.pairwise(words))
        for key, times in counts.items():
            if times >= FEWEST[1 + key.count(" ")]:
                found.setdefault(key, []).extend((number, int(log2(times))))
    return dict(sorted(found.items()))


def plain(page):
    """Take the words that a reader sees out of a built page."""
    article = _ARTICLE.search(page)
    return html.unescape(_HIDDEN.sub(" ", article[0])) if article else ""


def terms(glossary, language):
    """List the terms of the glossary with the chapters that explain them.

    Args:
        glossary: the built page.
        language: as for `words_of`.

    Returns:
        A dict from the words of a term, spaces between them, to names of pages.
    """
    found = {}
    for name, text in _TERM.findall(glossary):
        key = " ".join(words_of(html.unescape(_HIDDEN.sub("", name)), language))
        found[key] = sorted(set(_LINK.findall(text)))
    return found


def messages(script):
    """List the messages of the index of errors.

    Args:
        script: the text of the script that holds them.

    Returns:
        A list of lists: id, title, then each message.
    """
    stored = json.loads(script.removeprefix(_BEGINNING))
    return [[one["id"], one["title"], *one["messages"]] for one in stored]


def _finish(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    out, language = Path(app.outdir), app.builder.indexer.lang
    names = sorted(app.env.found_docs)
    pages = {name: (out / app.builder.get_target_uri(name)).read_text(encoding="utf-8") for name in names}
    data = {
        "pages": names,
        "counts": count(
            ["" if name.startswith(UNCOUNTED) else plain(pages[name]) for name in names], language
        ),
        "terms": terms(pages.get(GLOSSARY, ""), language),
        "messages": messages((out / MESSAGES).read_text(encoding="utf-8")),
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    (out / "_static" / NAME).write_text(f"Search.data = {text}\n", encoding="utf-8")


def setup(app):
    """Run once all pages are written, and before their scripts are joined."""
    app.connect("build-finished", _finish, priority=850)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Let plain Markdown link to a term: ``[leaf](glossary.md#term-leaf)``, as chapters must, being notebooks."""

from docutils import nodes


def _note_terms(app, doctree):
    # MyST looks a fragment up among the headings of the page alone; a term has an anchor as well.
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    for term in doctree.findall(nodes.term):
        for anchor in term["ids"]:
            if anchor.startswith("term-"):
                slugs[anchor] = (term.line, anchor, term.astext())


def setup(app):
    """Note the terms of each page that has been read."""
    app.connect("doctree-read", _note_terms)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

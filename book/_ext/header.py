"""Plain buttons above a page in place of the theme's menus, whose script outweighs all others together."""


def flatten(buttons, name):
    """Take the menus apart.

    Args:
        buttons: the theme's buttons, each a dict; a "group" is a menu of others.
        name: what the page is called in words, "notebook" or "page".

    Returns:
        A new list without groups, and without what opens a chapter elsewhere: its opener has that.
    """
    flat = []
    for button in buttons:
        if button["type"] != "group":
            flat.append(dict(button))
        elif button["label"] != "launch-buttons":
            flat += [{**one, "text": None} for one in button["buttons"]]
    for button in flat:
        label = button.get("label")
        if label == "download-source-button":
            button |= {"icon": "fas fa-download", "tooltip": f"Download the source of this {name}"}
        elif label == "download-pdf-button":
            button |= {"icon": "fas fa-print", "tooltip": "Print, or save as PDF"}
        elif label == "source-repository-button":
            # The theme's icon is one of a font of brands, which would be loaded for it alone.
            button |= {"icon": "fas fa-code-branch"}
        if button["type"] == "javascript":
            button["classes"] = f"{button.get('classes', '')} pst-js-only".strip()
    return flat


def _to_context(app, pagename, templatename, context, doctree):
    name = "notebook" if context.get("page_source_suffix") == ".ipynb" else "page"
    context["header_buttons"] = flatten(context.get("header_buttons", ()), name)


def setup(app):
    """Run after all that makes or reads the buttons."""
    app.connect("html-page-context", _to_context, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

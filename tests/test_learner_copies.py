"""A learner's file is never overwritten, and an untouched copy follows the book."""

import json

import pytest

import learner_copies as copies


def chapter(text):
    cell = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": [f"# {text}\n", "words"]}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


class Desk:
    """A book with one chapter and a learner's folder."""

    def __init__(self, folder):
        self.notebooks, self.work = folder / "notebooks", folder / "work"
        self.notebooks.mkdir()
        self.book("one")

    def book(self, text, name="12_a.ipynb"):
        (self.notebooks / name).write_bytes(chapter(text))

    def mine(self, text):
        (self.work / "12_a.ipynb").write_bytes(chapter(text))

    def update(self):
        return copies.update(self.notebooks, self.work)["12_a.ipynb"]

    def files(self):
        return {path.name: path.read_bytes() for path in self.work.glob("12_*")}


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def new_name(text):
    return f"12_a.new-{copies.digest(chapter(text))[:8]}.ipynb"


def test_copies_and_then_leaves_alone(desk):
    assert desk.update() == "copied"
    assert desk.files() == {"12_a.ipynb": chapter("one")}
    assert desk.update() == "same"


def test_an_untouched_copy_follows_the_book(desk):
    desk.update()
    desk.book("two")
    assert desk.update() == "updated"
    assert desk.files() == {"12_a.ipynb": chapter("two")}


def test_a_changed_copy_stays_when_the_book_did_not_change(desk):
    desk.update()
    desk.mine("my answer")
    assert desk.update() == "yours"
    assert desk.files() == {"12_a.ipynb": chapter("my answer")}


def test_a_newer_version_is_put_beside_a_changed_copy(desk):
    desk.update()
    desk.mine("my answer")
    desk.book("two")
    assert desk.update() == "beside"
    assert desk.files() == {"12_a.ipynb": chapter("my answer"), new_name("two"): chapter("two")}
    assert desk.update() == "yours"


def test_a_deleted_newer_version_does_not_come_back(desk):
    desk.update()
    desk.mine("my answer")
    desk.book("two")
    desk.update()
    (desk.work / new_name("two")).unlink()
    assert desk.update() == "yours"
    assert set(desk.files()) == {"12_a.ipynb"}


def test_a_third_version_replaces_an_untouched_second_one(desk):
    desk.update()
    desk.mine("my answer")
    desk.book("two")
    desk.update()
    desk.book("three")
    assert desk.update() == "beside"
    assert set(desk.files()) == {"12_a.ipynb", new_name("three")}


def test_a_third_version_leaves_a_changed_second_one(desk):
    desk.update()
    desk.mine("my answer")
    desk.book("two")
    desk.update()
    (desk.work / new_name("two")).write_bytes(chapter("I went on here"))
    desk.book("three")
    desk.update()
    assert desk.files()[new_name("two")] == chapter("I went on here")
    assert desk.files()[new_name("three")] == chapter("three")


def test_a_deleted_copy_is_made_afresh(desk):
    desk.update()
    desk.mine("my answer")
    desk.update()
    (desk.work / "12_a.ipynb").unlink()
    assert desk.update() == "copied"
    assert desk.files() == {"12_a.ipynb": chapter("one")}


@pytest.mark.parametrize("manifest", ["not json", "[]", '{"12_a.ipynb": 3}', None])
def test_without_a_manifest_nothing_is_overwritten(desk, manifest):
    desk.update()
    desk.mine("my answer")
    desk.book("two")
    if manifest is None:
        (desk.work / ".copies.json").unlink()
    else:
        (desk.work / ".copies.json").write_text(manifest)
    assert desk.update() == "beside"
    assert desk.files()["12_a.ipynb"] == chapter("my answer")


def test_a_file_of_the_learner_s_own_with_a_chapter_s_name_stays(desk):
    desk.work.mkdir()
    desk.mine("here before")
    desk.update()
    assert desk.files()["12_a.ipynb"] == chapter("here before")


def test_other_files_are_left_alone(desk):
    desk.work.mkdir()
    (desk.work / "12_notes.txt").write_text("mine")
    desk.update()
    assert (desk.work / "12_notes.txt").read_text() == "mine"


def test_going_back_to_the_book_s_version_counts_as_untouched(desk):
    desk.update()
    desk.mine("my answer")
    desk.update()
    desk.mine("one")
    assert desk.update() == "same"
    desk.book("two")
    assert desk.update() == "updated"


def test_a_copy_like_the_book_s_is_known_again_without_a_manifest(desk):
    desk.update()
    (desk.work / ".copies.json").unlink()
    assert desk.update() == "same"
    desk.book("two")
    assert desk.update() == "updated"


def test_a_stop_halfway_leaves_the_old_file_whole(desk, monkeypatch):
    desk.update()
    desk.book("two")

    def stop(*paths):
        raise KeyboardInterrupt

    monkeypatch.setattr(copies.os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        desk.update()
    assert desk.files()["12_a.ipynb"] == chapter("one")


def test_the_start_page_links_every_chapter_by_its_title(desk):
    desk.book("Two", "13_b.ipynb")
    desk.update()
    page = json.loads((desk.work / copies.START).read_text(encoding="utf-8"))
    text = "".join(page["cells"][0]["source"])
    assert "- 12 [one](12_a.ipynb)\n- 13 [Two](13_b.ipynb)" in text


def test_no_chapters(tmp_path):
    with pytest.raises(SystemExit, match="no chapters"):
        copies.update(tmp_path, tmp_path / "work")


def test_work_is_a_file(desk):
    desk.work.write_text("")
    with pytest.raises(SystemExit, match="work is a file"):
        desk.update()


def test_running_cells_is_not_changing_them(desk):
    desk.update()
    page = json.loads((desk.work / "12_a.ipynb").read_bytes())
    page["metadata"]["kernelspec"] = {"name": "python3"}
    page["cells"][0]["metadata"] = {"collapsed": True}
    (desk.work / "12_a.ipynb").write_text(json.dumps(page))
    desk.book("two")
    assert desk.update() == "updated"


def test_the_start_page_shows_progress(desk):
    desk.update()
    page = json.loads((desk.work / copies.START).read_text(encoding="utf-8"))
    assert "progress()" in "".join(page["cells"][1]["source"])
    assert page["cells"][1]["outputs"] == []


def test_links_to_headings_of_pages_have_the_form_that_jupyterlab_knows(desk):
    """JupyterLab keeps a heading's letters and signs; the site has them small and without signs."""
    pages = desk.notebooks.parent / "book"
    pages.mkdir()
    (pages / "page.md").write_text("# A page\n\n### How many `x`, and why?\n\n## A–B\n", encoding="utf-8")
    links = (
        "[a](../book/page.md#how-many-x-and-why) [b](../book/page.md#ab) [c](../book/page.md#term-x) "
        "[d](../book/gone.md#how-many-x-and-why) [e](12_a.ipynb#how-many-x-and-why) [f](../book/page.md)"
    )
    desk.book(links)
    desk.update()
    text = json.loads(desk.files()["12_a.ipynb"])["cells"][0]["source"][0]
    assert text == (
        "# [a](../book/page.md#How-many-x,-and-why?) [b](../book/page.md#A%E2%80%93B) "
        "[c](../book/page.md#term-x) [d](../book/gone.md#how-many-x-and-why) "
        "[e](12_a.ipynb#how-many-x-and-why) [f](../book/page.md)\n"
    )
    assert desk.update() == "same"

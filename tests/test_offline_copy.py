"""The archive of the site: the same bytes each time, and nothing that a reader has no use for."""

import zipfile

import pytest

import offline_copy


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "html"
    for name in ("index.html", "book/index.html", "_static/b.css", *offline_copy.LEFT_OUT):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name * 100)
    return folder


def test_what_is_packed(site, tmp_path):
    assert offline_copy.pack(site, tmp_path / "copy.zip") == 3
    with zipfile.ZipFile(tmp_path / "copy.zip") as archive:
        assert archive.namelist() == ["copy/_static/b.css", "copy/book/index.html", "copy/index.html"]
        assert archive.read("copy/index.html") == b"index.html" * 100
        assert archive.testzip() is None
    assert not (tmp_path / "copy.zip.part").exists()


def test_search_does_not_read_other_pages_from_the_disk(site, tmp_path):
    (site / offline_copy.OPTIONS).write_text("const OPTIONS = { A: 1, SHOW_SEARCH_SUMMARY: true, B: 2 };")
    offline_copy.pack(site, tmp_path / "copy.zip")
    with zipfile.ZipFile(tmp_path / "copy.zip") as archive:
        changed = archive.read(f"copy/{offline_copy.OPTIONS}").decode()
    assert changed == "const OPTIONS = { A: 1, SHOW_SEARCH_SUMMARY: false, B: 2 };"


def test_the_same_site_gives_the_same_bytes(site, tmp_path):
    offline_copy.pack(site, tmp_path / "copy.zip")
    first = (tmp_path / "copy.zip").read_bytes()
    text = (site / "index.html").read_text()
    (site / "index.html").unlink()
    (site / "index.html").write_text(text)
    (site / "index.html").chmod(0o600)
    offline_copy.pack(site, tmp_path / "copy.zip")
    assert (tmp_path / "copy.zip").read_bytes() == first


def test_without_a_site_it_says_so(tmp_path):
    with pytest.raises(SystemExit, match="run `make book` first"):
        offline_copy.pack(tmp_path, tmp_path / "copy.zip")
    assert not (tmp_path / "copy.zip").exists()

"""The small scripts behind `make book`, `make serve` and `make lab`."""

import json
import socket
import threading
import urllib.request

import pytest

import build_book
import lab
import serve


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text("the first page")
    return tmp_path


def test_serves_the_site_on_this_computer_only(site):
    with serve.open_server("0", site) as server:
        assert server.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/index.html", timeout=10) as page:
            assert page.read() == b"the first page"
        server.shutdown()


def test_a_taken_port_is_named(site):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SystemExit, match=f"Port {port} is taken"):
            serve.open_server(str(port), site)


@pytest.mark.parametrize("port", ["", "http", "70000", "-1", "80 80", "８０"])
def test_a_port_that_is_none(site, port):
    with pytest.raises(SystemExit, match="PORT must be a number"):
        serve.open_server(port, site)


def test_no_site_yet(tmp_path):
    with pytest.raises(SystemExit, match="run `make book` first"):
        serve.open_server("0", tmp_path)


def test_lab_listens_here_only_and_keeps_its_token(tmp_path):
    command = lab.lab_command(tmp_path, [])
    assert "--ip=127.0.0.1" in command
    assert not [option for option in command if "token" in option.lower() or "password" in option.lower()]
    assert any(option.endswith("/lab/tree/work/START.ipynb") for option in command)


LIVE = "application/vnd.jupyter.widget-view+json"


def test_a_live_face_of_yesterday_is_left_out_where_there_is_a_still_one(tmp_path):
    bundles = [
        {LIVE: {"model_id": "1"}, "text/html": "frames"},
        {LIVE: {"model_id": "2"}},
        {"text/plain": "é"},
    ]
    outputs = [{"output_type": "display_data", "data": data, "metadata": {}} for data in bundles]
    cells = [{"cell_type": "markdown", "source": "words"}, {"cell_type": "code", "outputs": outputs}]
    path = tmp_path / "12_a.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    lab.keep_still_faces(path)
    left = json.loads(path.read_text(encoding="utf-8"))["cells"][1]["outputs"]
    assert [output["data"] for output in left] == [{"text/html": "frames"}, bundles[1], bundles[2]]
    written = path.stat().st_mtime_ns
    lab.keep_still_faces(path)
    assert path.stat().st_mtime_ns == written


@pytest.mark.parametrize("content", ["", "[]", '{"cells": [{"outputs": [3]}]}', "{"])
def test_what_is_no_notebook_is_left_alone(tmp_path, content):
    path = tmp_path / "12_a.ipynb"
    path.write_text(content)
    lab.keep_still_faces(path)
    assert path.read_text() == content


def test_a_lab_that_is_open_on_the_book_is_noticed(tmp_path, monkeypatch):
    from jupyter_server import serverapp

    found = [{"root_dir": str(tmp_path)}, {"url": "an old one"}]
    monkeypatch.setattr(serverapp, "list_running_servers", lambda: iter(found))
    assert lab.is_open(tmp_path)
    assert not lab.is_open(tmp_path / "other")


@pytest.fixture
def book(tmp_path):
    for name in build_book.SHARED:
        (tmp_path / name).write_text(name)
    for name in build_book.SHARED_FOLDERS:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(name)
    (tmp_path / "book" / "page.md").write_text("words")
    return tmp_path


def test_what_shapes_every_page_rebuilds_all(book):
    before = build_book.settings_hash(book, {})
    assert before == build_book.settings_hash(book, {"HOME": "elsewhere"})
    (book / "book" / "page.md").write_text("other words")
    assert before == build_book.settings_hash(book, {})
    assert before != build_book.settings_hash(book, {"REPO_URL": "https://github.com/a/b"})
    for name in ("_config.yml", "book/_ext/file", "book/_templates/file", "book/_static/file"):
        (book / name).write_text("changed " + name)
        after = build_book.settings_hash(book, {})
        assert after != before
        before = after

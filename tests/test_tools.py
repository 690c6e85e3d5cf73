"""The small scripts behind `make book`, `make serve` and `make lab`."""

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

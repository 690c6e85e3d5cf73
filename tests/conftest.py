"""Options and fixtures that the tests share."""

from pathlib import Path

import pytest

from chromium import chromium

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--overwrite-golden",
        action="store_true",
        help="Write tests/golden anew from what the code gives now; read the difference before committing.",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest):
    """Compare a text with a file in tests/golden; with --overwrite-golden, write the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--overwrite-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"{path.name} is missing: run pytest --overwrite-golden and look at it."
        assert text == path.read_text(encoding="utf-8"), f"{name} changed; --overwrite-golden accepts it."

    return compare


@pytest.fixture(scope="module")
def browser():
    """One Chromium for a file: while it is open no other event loop can run in this process."""
    with chromium() as browser:
        yield browser

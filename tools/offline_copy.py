"""Put the built site into one archive that opens without a server: unpack it and open index.html.

    .venv/bin/python tools/offline_copy.py

The same site gives the same bytes.
"""

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book" / "_ext"))

from repository import ARCHIVE  # noqa: E402

# The builder's own notes, and what only other books ask of this one.
LEFT_OUT = {".buildinfo", ".nojekyll", "objects.inv", ARCHIVE}
# A browser lets no page read another one from the disk, as search does for the lines below each result.
OPTIONS = "_static/documentation_options.js"
SUMMARIES = (b"SHOW_SEARCH_SUMMARY: true", b"SHOW_SEARCH_SUMMARY: false")
DAY = (1980, 1, 1, 0, 0, 0)


def pack(site, archive):
    """Write the archive.

    Args:
        site: the folder of the built site.
        archive: the file to write; everything in it lies in a folder of the same name without suffix.

    Returns:
        The number of files.

    Raises:
        SystemExit: there is no site.
    """
    if not (site / "index.html").is_file():
        raise SystemExit("There is no site to pack yet: run `make book` first.")
    files = [path for path in site.rglob("*") if path.is_file() and path.name not in LEFT_OUT]
    part = archive.with_name(archive.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(files, key=lambda path: path.relative_to(site).as_posix()):
            entry = zipfile.ZipInfo(f"{archive.stem}/{path.relative_to(site).as_posix()}", DAY)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            data = path.read_bytes()
            packed.writestr(entry, data.replace(*SUMMARIES) if path == site / OPTIONS else data)
    part.replace(archive)
    return len(files)


def main():
    """Write the archive beside the built site and say where it is."""
    archive = ROOT / "_build" / ARCHIVE
    count = pack(ROOT / "_build" / "html", archive)
    print(f"{count} files, {archive.stat().st_size / 1e6:.1f} MB. Unpack this and open its index.html:")
    print(archive)


if __name__ == "__main__":
    main()

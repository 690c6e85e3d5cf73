"""Serve the built site to this computer only.

    .venv/bin/python tools/serve.py [PORT]
"""

import errno
import functools
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "_build" / "html"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


def open_server(port, site):
    """Listen on 127.0.0.1.

    Args:
        port: the port as the reader wrote it.
        site: the folder to serve.

    Returns:
        A server, ready for `serve_forever`.

    Raises:
        SystemExit: with one sentence: the port is no port, is taken or not allowed, or there is no site.
    """
    if not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise SystemExit(f"PORT must be a number from 0 to 65535, not {port!r}.")
    if not (site / "index.html").exists():
        raise SystemExit("There is no site to serve yet: run `make book` first.")
    try:
        return ThreadingHTTPServer(("127.0.0.1", int(port)), functools.partial(_Quiet, directory=str(site)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SystemExit(
                f"Port {port} is taken by another program: choose another with `make serve PORT=8001`."
            ) from None
        if isinstance(error, PermissionError):
            raise SystemExit(f"Port {port} needs more rights: choose one above 1023.") from None
        raise SystemExit(f"Port {port} cannot be used: {error.strerror}.") from None


def main(arguments):
    """Serve until Ctrl+C.

    Args:
        arguments: at most one: the port.
    """
    server = open_server(arguments[0] if arguments else "8000", SITE)
    print(f"The site is at http://127.0.0.1:{server.server_port}/ (Ctrl+C stops it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
    finally:
        server.server_close()


if __name__ == "__main__":
    main(sys.argv[1:])

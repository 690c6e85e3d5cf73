"""A server that compresses, as those that publish sites do, and writes down what it sends."""

import functools
import gzip
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from urllib.parse import urlsplit

COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".txt", ".xml", ".ipynb", ".md")


class Scale(SimpleHTTPRequestHandler):
    """Serves a folder; `server.sent` lists (path, bytes of the body as sent, status) of each answer."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def log_request(self, code="-", size="-"):
        self.status = int(code)

    def end_headers(self):
        # Kept by the browser for ten minutes, as most hosts say: a second page reads them from its cache.
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def do_GET(self):
        path = urlsplit(self.path).path
        name = self.translate_path(self.path)
        if not path.endswith(COMPRESSED):
            source = self.send_head()
            body = source.read() if source else b""
            if source:
                source.close()
        else:
            try:
                with open(name, "rb") as file:
                    body = gzip.compress(file.read(), 6, mtime=0)
            except OSError:
                self.send_error(404)
                body = b""
            else:
                self.send_response(200)
                self.send_header("Content-Type", self.guess_type(name))
                self.send_header("Content-Encoding", "gzip")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
        self.server.sent.append((path, len(body), self.status))
        self.copyfile(BytesIO(body), self.wfile)


def open_scale(folder):
    """Serve a folder on 127.0.0.1 until `shutdown` is called on what this returns."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Scale, directory=str(folder)))
    server.daemon_threads = True
    server.sent = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server

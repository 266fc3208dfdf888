"""Offers one file over HTTP for as long as a BMC needs to fetch it."""

from __future__ import annotations

import secrets
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import TracebackType


class Offer:
    """A server on `address` of `image` alone, at a name that cannot be guessed; `taken` is set when it was read."""

    def __init__(self, image: Path, address: str) -> None:
        self.taken = Event()
        path = f"/{secrets.token_hex(8)}/{image.name}"
        self._server = ThreadingHTTPServer((address, 0), _handler(image, path, self.taken))
        self._server.daemon_threads = True
        self.uri = f"http://{address}:{self._server.server_port}{path}"

    def __enter__(self) -> Offer:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler(image: Path, path: str, taken: Event) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != path:
                self.send_error(404)
                return
            self._head()
            with image.open("rb") as content:
                shutil.copyfileobj(content, self.wfile)
            taken.set()

        def do_HEAD(self) -> None:
            self._head()

        def _head(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(image.stat().st_size))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the signature is http.server's
            """Say nothing: standard error is the caller's."""

    return Handler

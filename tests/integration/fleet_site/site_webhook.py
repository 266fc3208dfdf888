"""A webhook receiver of the site: where tickets and messages go. It notes each request."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.integration.fleet_site.recorded_bmcs import SiteRequest
from tests.support.bmc_rehearsal import QuietServer, reply

NAME = "webhook"


@contextmanager
def serve_webhook(place: tuple[str, int], requests: list[SiteRequest]) -> Iterator[None]:
    """Serve at an address and port. `requests` grows with each request."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode(errors="replace")
            requests.append(SiteRequest(NAME, self.command, self.path, body, ""))
            reply(self, 200, b"{}")

        def log_message(self, *words: Any) -> None:
            """Keep quiet."""

    server = QuietServer(place, Handler)
    server.daemon_threads = True
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()

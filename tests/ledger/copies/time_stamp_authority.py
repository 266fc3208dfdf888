"""A time-stamp authority (RFC 3161) of our own: `openssl ts -reply` behind real HTTP."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

SETTINGS = """
[tsa]
default_tsa = own
[own]
dir = {home}
serial = {home}/serial
signer_cert = {home}/tsa.pem
certs = {home}/ca.pem
signer_key = {home}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
[stamping]
extendedKeyUsage = critical,timeStamping
basicConstraints = CA:FALSE
keyUsage = digitalSignature
"""


class Authority:
    """One authority at `url`, trusted by its root certificate `ca`. `ended` makes its certificates ones of the past."""

    def __init__(self, home: Path) -> None:
        self.home, self.ca, self.asked, self.refusal = home, home / "ca.pem", 0, b""
        (home / "ts.cnf").write_text(SETTINGS.format(home=home))
        (home / "serial").write_text("01\n")
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        usage = ("-addext", "keyUsage=critical,keyCertSign")
        self._openssl(
            "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=root", *usage
        )
        self._openssl("req", *key, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=tsa")
        signed = (
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-extfile",
            "ts.cnf",
            "-extensions",
            "stamping",
        )
        self._openssl("x509", "-req", "-in", "tsa.csr", *signed, "-days", "2", "-out", "tsa.pem")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/tsr"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, query: bytes) -> bytes:
        """Return the reply to a query."""
        self.asked += 1
        if self.refusal:
            return self.refusal
        (self.home / "query").write_bytes(query)
        self._openssl("ts", "-reply", "-config", "ts.cnf", "-queryfile", "query", "-out", "reply")
        return (self.home / "reply").read_bytes()

    def _openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        authority = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                reply = authority.answer(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Type", "application/timestamp-reply")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler


def serve_authority() -> Iterator[Authority]:
    """Yield an authority for a test, as a fixture does. Skips where openssl is not installed."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl: apt-get install openssl")
    with tempfile.TemporaryDirectory(prefix="assay-tsa-") as home:
        authority = Authority(Path(home))
        yield authority
        authority.close()

"""`assay status` and `assay explain` with --server: over real HTTP, with a token from a file."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.cli.app import load_verb
from assay.model.errors import AssayError
from tests.tell.asgi_calls import Caller

explain_app = load_verb("explain")
status_app = load_verb("status")


@pytest.fixture(scope="module")
def url(stranger: Caller) -> Iterator[str]:
    """Yield the address of a server that hands each request to the application."""

    class Bridge(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = stranger.send("GET", self.path, b"", [("authorization", self.headers.get("authorization", ""))])
            self.send_response(reply.status)
            for name, text in reply.headers.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Bridge) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Return the file of an operator's token."""
    path = tmp_path / "token"
    path.write_text("token-of-ann\n")
    return path


def run(app: object, *words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=True)  # type: ignore[arg-type]


def test_status_shows_what_the_server_has(url: str, token: Path, ann: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.cli.fleet_server.PAGE_NODES", 7)
    told = json.loads(run(status_app, "--server", url, "--token-file", token, "--format", "json").stdout)
    assert told["nodes"] == ann.get("/api/v1/nodes").json["nodes"]
    text = run(status_app, "--server", url, "--token-file", token).stdout
    assert "n0005" in text
    assert "held by" in text


def test_explain_shows_the_chain_to_staff_and_plain_words_to_customers(url: str, token: Path) -> None:
    assert "gpu.xid.79" in run(explain_app, "n0007", "--server", url, "--token-file", token).stdout
    token.write_text("token-of-acme")
    told = run(explain_app, "n0007", "--server", url, "--token-file", token).stdout
    assert told.startswith("n0007, as of ")
    assert "gpu.xid.79" not in told


@pytest.mark.parametrize("place", ["http://assay.example.org:8443", "ftp://127.0.0.1", "assay.example.org"])
def test_a_token_does_not_travel_in_the_clear(place: str, token: Path) -> None:
    refused = run(status_app, "--server", place, "--token-file", token).exception
    assert isinstance(refused, AssayError)
    assert "no address of a server" in refused.what


def test_a_refusal_says_what_to_do(url: str, tmp_path: Path) -> None:
    refused = run(status_app, "--server", url).exception
    assert isinstance(refused, AssayError)
    assert refused.fix == "give --token-file FILE"
    missing = run(status_app, "--server", url, "--token-file", tmp_path / "none").exception
    assert "No such file" in str(missing)
    silent = run(status_app, "--server", "http://127.0.0.1:1").exception
    assert "does not answer" in str(silent)


def test_an_explanation_of_the_server_says_what_differs_from_the_repository(url: str, token: Path) -> None:
    told = json.loads(run(explain_app, "n0005", "--server", url, "--token-file", token, "--format", "json").stdout)
    assert told["sync"]["state"] in ("unknown", "held")
    assert "not known to be in sync" in run(explain_app, "n0005", "--server", url, "--token-file", token).stdout

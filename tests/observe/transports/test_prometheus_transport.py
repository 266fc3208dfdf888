"""A Prometheus as the way to nodes: one round of queries for all, over a verified line, and never a false value."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from assay.declare.loader import load_fleet
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from assay.observe.transports.transport import TransportRegistry, run_remote_probe
from assay.observe.transports.transport_protocol import TransportContext
from tests.support.places import ROOT

NODES = [f"n{number:04}" for number in range(1, 51)]


@dataclass
class Stand:
    """A Prometheus of one temperature a node. `odd` answers instead, where it is set."""

    port: int = 0
    asked: list[dict[str, str]] = field(default_factory=list)
    odd: Callable[[BaseHTTPRequestHandler], None] | None = None
    warnings: list[str] = field(default_factory=list)
    token: str = ""

    def answer(self, path: str) -> dict[str, Any]:
        labels = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "pci_bus_id": "00000000:1B:00.0"}
        result = [
            {"metric": {**labels, "Hostname": name}, "values": [[time.time() - 3, "61"]]}
            for name in NODES
            if not self.asked[1:]
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}, "warnings": self.warnings}


@pytest.fixture
def stand(ca_file: Path, authority: trustme.CA) -> Iterator[Stand]:
    told = Stand()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            told.asked.append({name: text[0] for name, text in form.items()})
            if told.odd:
                told.odd(self)
                return
            good = not told.token or self.headers.get("Authorization") == f"Bearer {told.token}"
            body = json.dumps(told.answer(self.path) if good else {"status": "error", "error": "no"}).encode()
            self.send_response(200 if good else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Refused certificates are what a test is about."""

    server = Quiet(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    told.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield told
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def maps() -> Any:
    return load_fleet(ROOT).monitorings


def node(stand: Stand, ca: Path | None, name: str = "n0001", **more: Any) -> Node:
    metrics = {"url": f"https://127.0.0.1:{stand.port}", "match": {"Hostname": "{name}", "cluster": 'a"b'}, **more}
    if ca:
        metrics["ca"] = str(ca)
    variables = {"transport": "prometheus", "metrics": metrics}
    return Node(name, "h100-a", "lab1", "r01", 7, "S42", "hgx-h100", "managed", settings=make_node_settings(variables))


def test_one_round_of_queries_answers_for_all_nodes(stand: Stand, ca_file: Path, maps: Any) -> None:
    transports = TransportRegistry(TransportContext(monitorings=maps))
    found = {name: run_remote_probe(node(stand, ca_file, name), [], 10, transports) for name in NODES}
    assert len(stand.asked) == 4, (
        "the metrics, what of them is too old, the gauge of XIDs, and what that stood at before"
    )
    assert stand.asked[0]["query"].endswith('",cluster="a\\"b"}[180s]))')
    assert all(one["timeout"].removesuffix("ms").isdecimal() for one in stand.asked), "it takes no fractions"
    for tree in found.values():
        assert tree["probe"]["gpu"]["devices"]["0000:1b:00.0"]["temperature"]["gpu_c"] == {"value": 61}
        assert tree["probe"]["metric_events"] == {"lines": {"value": []}}


def test_a_node_of_which_nothing_is_known_reads_failed(stand: Stand, ca_file: Path, maps: Any) -> None:
    tree = run_remote_probe(
        node(stand, ca_file, "n9999"), [], 10, TransportRegistry(TransportContext(monitorings=maps))
    )["probe"]
    assert tree["failed"].endswith('has no series with Hostname="n9999"')


def test_what_is_missing_while_prometheus_warns_is_not_absent(stand: Stand, ca_file: Path, maps: Any) -> None:
    stand.warnings = ["store-2 is down"]
    tree = run_remote_probe(node(stand, ca_file), [], 10, TransportRegistry(TransportContext(monitorings=maps)))[
        "probe"
    ]
    assert tree["host"]["uptime_s"] == {"failed": "node_boot_time_seconds: store-2 is down"}


def test_a_token_is_shown_and_never_told(
    stand: Stand, ca_file: Path, maps: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand.token = "canary-5c1e"
    monkeypatch.setenv("PROMETHEUS_TOKEN", stand.token)
    with_token = node(stand, ca_file, token={"env": "PROMETHEUS_TOKEN"})
    tree = run_remote_probe(with_token, [], 10, TransportRegistry(TransportContext(monitorings=maps)))["probe"]
    assert "gpu" in tree
    assert stand.token not in json.dumps(tree)
    refused = run_remote_probe(node(stand, ca_file), [], 10, TransportRegistry(TransportContext(monitorings=maps)))[
        "probe"
    ]
    assert "answers 401: no" in refused["failed"]


def test_a_stranger_is_not_asked(stand: Stand, maps: Any) -> None:
    tree = run_remote_probe(node(stand, None), [], 10, TransportRegistry(TransportContext(monitorings=maps)))["probe"]
    assert tree["failed"].endswith("its certificate is not trusted")
    assert stand.asked == []


def test_a_service_that_drips_is_cut_off(stand: Stand, ca_file: Path, maps: Any) -> None:
    over = threading.Event()

    def drip(call: BaseHTTPRequestHandler) -> None:
        call.send_response(200)
        call.send_header("Content-Length", "100000")
        call.end_headers()
        while not over.wait(0.05):
            call.wfile.write(b" ")

    stand.odd = drip
    begun = time.monotonic()
    tree = run_remote_probe(node(stand, ca_file), [], 1, TransportRegistry(TransportContext(monitorings=maps)))["probe"]
    over.set()
    assert "no answer within 1.0 s" in tree["failed"]
    assert time.monotonic() - begun < 20


def test_nothing_is_started_through_metrics(stand: Stand, ca_file: Path, maps: Any) -> None:
    found = run_remote_probe(
        node(stand, ca_file),
        ["--active", "memory"],
        10,
        TransportRegistry(TransportContext(monitorings=maps)),
    )
    assert "nothing can be started there" in found["active"]["failed"]
    assert stand.asked == []

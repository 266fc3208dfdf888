"""Fixtures for tests of redfish and observe: a lab of four nodes, and a small BMC that misbehaves on demand."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.message import Message
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

from assay.declare.loader import load_fleet
from assay.lab import process_control
from assay.lab.process_control import build_world
from assay.lab.world import LabWorld
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.node_settings import make_node_settings
from tests.support.places import ROOT

NODES = ("n0001", "n0002", "n0003", "n0017")
RATE = 300.0
USER, PASSWORD = "watcher", 'ca"nary-9f2c'

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Rehearsal:
    """A fleet repository at `root` whose lab is up; `world` may be changed by any test that puts it back."""

    root: Path
    world: LabWorld

    @property
    def fleet(self) -> Fleet:
        overlay = self.world.home / "inventory.yml"
        return _load_unchanged(self.root, overlay, overlay.read_text())


@lru_cache(maxsize=1)
def _load_unchanged(root: Path, overlay: Path, _: str) -> Fleet:
    """Load the fleet again only after the overlay's text changed: the rest is this repository's."""
    return load_fleet(root, [overlay])


@pytest.fixture(scope="session")
def rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    root = tmp_path_factory.mktemp("fleet")
    for part in ("inventory", "specs"):
        (root / part).symlink_to(ROOT / part)
    declared = load_fleet(root)
    world = LabWorld(root / ".assay-lab/world")
    few = replace(declared, nodes={name: declared.nodes[name] for name in NODES}, designs={})
    build_world(few, world, datetime(2026, 11, 20, 8, 0, tzinfo=UTC), RATE)
    process_control.start_lab(world)
    yield Rehearsal(root, world)
    process_control.stop_lab(world)


@dataclass
class TinyBmc:
    """A Redfish service with sessions. `odd` maps a path to what it does instead of answering."""

    port: int = 0
    tree: dict[str, Any] = field(default_factory=dict)
    odd: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    closing: threading.Event = field(default_factory=threading.Event)
    basic: bool = False
    leaf: trustme.LeafCert | None = None
    renewed: ssl.SSLContext | None = None
    """What shows the certificate of connections from now on."""

    def status(self, code: int, text: str = "") -> Answer:
        """Answer with an error."""
        body = json.dumps({"error": {"message": text}}).encode()
        return lambda call: reply(call, code, body)

    def whole(self, body: Any) -> Answer:
        """Answer with a document."""
        return lambda call: reply(call, 200, json.dumps(body).encode())

    def silence(self, call: BaseHTTPRequestHandler) -> None:
        """Answer nothing at all."""
        self.closing.wait(20)

    def trickle(self, call: BaseHTTPRequestHandler) -> None:
        """Answer a byte now and then: each of them would start an ordinary timeout anew."""
        call.send_response(200)
        call.send_header("Content-Length", "10000")
        call.end_headers()
        while not self.closing.wait(0.1):
            call.wfile.write(b" ")

    def node(self, **variables: Any) -> Node:
        """Return the node that this BMC belongs to."""
        address = variables.pop("bmc_address", "127.0.0.1")
        plain = {"bmc_port": self.port, "bmc_credentials": {"env": "TINY_BMC"}, **variables}
        place = ("n0042", "h100-a", "lab1", "r01", 7, "S42", "hgx-h100", "managed")
        return Node(*place, bmc_address=address, settings=make_node_settings(plain))


def reply(call: BaseHTTPRequestHandler, code: int, body: bytes, **headers: str) -> None:
    call.send_response(code)
    for name, text in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
        call.send_header(name.replace("_", "-"), text)
    call.end_headers()
    call.wfile.write(body)


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
def tiny(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[TinyBmc]:
    monkeypatch.setenv("TINY_BMC", f"{USER}:{PASSWORD}")
    with serve_tiny(authority, "127.0.0.1") as bmc:
        yield bmc


@contextlib.contextmanager
def serve_tiny(authority: trustme.CA, host: str) -> Iterator[TinyBmc]:
    """Serve a small BMC at an address of this machine, IPv4 or IPv6. Its credentials are in `TINY_BMC`."""
    bmc = TinyBmc(tree=resources())
    kind = type("Server", (QuietServer,), {"address_family": socket.AF_INET6 if ":" in host else socket.AF_INET})
    server = kind((host, 0), _handler(bmc))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    bmc.leaf = authority.issue_cert(host)
    bmc.leaf.configure_cert(context)

    def choose(connection: Any, *_: object) -> None:
        connection.context = bmc.renewed or context

    context.sni_callback = choose  # it is called without a server name, too
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    bmc.port = server.server_port
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield bmc
    bmc.closing.set()
    server.shutdown()
    server.server_close()


class QuietServer(ThreadingHTTPServer):
    """A client that refuses the certificate or hangs up is what these tests are about, not an error."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


def knows(bmc: TinyBmc, headers: Message) -> bool:
    """Whether a request comes with a session, or, where the BMC takes that, with basic credentials."""
    words = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    return headers["X-Auth-Token"] in bmc.sessions or (bmc.basic and headers["Authorization"] == f"Basic {words}")


def _handler(bmc: TinyBmc) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            answer_read(bmc, self)

        def do_POST(self) -> None:
            bmc.asked.append(f"POST {self.path}")
            content = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path in bmc.odd:
                self.rfile = io.BytesIO(content)
                bmc.odd[self.path](self)
                return
            body = json.loads(content)
            if body != {"UserName": USER, "Password": PASSWORD}:
                reply(self, 401, json.dumps({"error": {"message": f"wrong: {body}"}}).encode())
            else:
                token = f"token-{time.monotonic_ns()}"
                bmc.sessions.add(token)
                reply(self, 201, b"{}", X_Auth_Token=token, Location="/redfish/v1/SessionService/Sessions/1")

        def do_PATCH(self) -> None:
            bmc.asked.append(f"PATCH {self.path}")
            bmc.tree[self.path] |= json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply(self, 200, json.dumps(bmc.tree[self.path]).encode())

        def do_DELETE(self) -> None:
            bmc.asked.append(f"DELETE {self.path}")
            bmc.sessions.discard(str(self.headers.get("X-Auth-Token")))
            reply(self, 200, b"{}")

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    return Handler


def answer_read(bmc: TinyBmc, call: BaseHTTPRequestHandler) -> None:
    path, _, query = call.path.partition("?")
    path = call.path if call.path in bmc.tree else path.rstrip("/")
    bmc.asked.append(call.path)
    if path in bmc.odd:
        bmc.odd[path](call)
    elif path != "/redfish/v1" and not knows(bmc, call.headers):
        reply(call, 401, b"{}")
    elif path not in bmc.tree:
        reply(call, 404, b"{}")
    else:
        depth = int(query[-2]) if "expand" in query else 0
        reply(call, 200, json.dumps(expanded(bmc.tree, bmc.tree[path], depth)).encode())


def expanded(tree: dict[str, Any], resource: Any, depth: int) -> Any:
    """Return a resource with what is below it, `depth` levels deep, as $expand=. does."""
    if isinstance(resource, list):
        return [expanded(tree, one, depth) for one in resource]
    if not isinstance(resource, dict) or depth == 0:
        return resource
    if set(resource) == {"@odata.id"}:
        return expanded(tree, tree.get(resource["@odata.id"], resource), depth - 1)
    return {key: one if key == "Links" else _opened(tree, one, depth) for key, one in resource.items()}


def _opened(tree: dict[str, Any], part: Any, depth: int) -> Any:
    if isinstance(part, list):
        return [_opened(tree, one, depth) for one in part]
    if isinstance(part, dict) and set(part) == {"@odata.id"} and part["@odata.id"] in tree:
        return expanded(tree, tree[part["@odata.id"]], depth - 1)
    return part


def resources() -> dict[str, Any]:
    """Return a small node: two systems, three power supply bays of which one is empty, two fans, some firmware."""
    tree: dict[str, Any] = {}

    def put(path: str, **properties: Any) -> dict[str, str]:
        tree[f"/redfish/v1{path}"] = {"@odata.id": f"/redfish/v1{path}", **properties}
        return {"@odata.id": f"/redfish/v1{path}"}

    def collect(path: str, *members: dict[str, str]) -> dict[str, str]:
        return put(path, Members=list(members))

    ok = {"State": "Enabled", "Health": "OK"}
    box = "/Chassis/Box"
    supplies = [
        put(
            f"{box}/PowerSubsystem/PowerSupplies/PSU{bay}",
            Id=f"PSU{bay}",
            Status=ok,
            Metrics=put(
                f"{box}/PowerSubsystem/PowerSupplies/PSU{bay}/Metrics",
                InputVoltage={"Reading": 230.5},
                OutputPowerWatts={"Reading": None},
            ),
        )
        for bay in (0, 2)
    ]
    supplies.append(put(f"{box}/PowerSubsystem/PowerSupplies/PSU1", Id="PSU1", Status={"State": "Absent"}))
    fans = [
        put(f"{box}/ThermalSubsystem/Fans/F{n}", Id=f"FAN_{n}_F", Status=ok, SpeedPercent={"SpeedRPM": 8000 + n})
        for n in (1, 2)
    ]
    put(
        box,
        PowerSubsystem=put(
            f"{box}/PowerSubsystem", PowerSupplies=collect(f"{box}/PowerSubsystem/PowerSupplies", *supplies)
        ),
        ThermalSubsystem=put(
            f"{box}/ThermalSubsystem",
            Fans=collect(f"{box}/ThermalSubsystem/Fans", *fans),
            ThermalMetrics=put(
                f"{box}/ThermalSubsystem/ThermalMetrics", TemperatureSummaryCelsius={"Intake": {"Reading": 24}}
            ),
        ),
    )
    entry = {"Created": "2026-11-20T08:00:00Z", "Severity": "OK", "Message": "Power on", "MessageId": "Base.1.0.Ok"}
    logs = "/Systems/Host/LogServices"
    host = put(
        "/Systems/Host",
        PowerState="On",
        SerialNumber="S42",
        Model=None,
        BiosVersion="2.7.3",
        Status=ok,
        LogServices=collect(
            logs,
            put(f"{logs}/BIOS", Id="BIOS", Entries=collect(f"{logs}/BIOS/Entries")),
            put(
                f"{logs}/SEL",
                Id="SEL",
                Entries=collect(f"{logs}/SEL/Entries", put(f"{logs}/SEL/Entries/1", Id="1", **entry)),
            ),
        ),
        Links={"Chassis": [{"@odata.id": "/redfish/v1/Chassis/Box"}]},
    )
    versions = {"BMC": " 01.05.11 ", "BIOS": "2.7.3", "HGX_FW_BMC_0": ""}
    parts = [put(f"/UpdateService/Firm/{one}", Id=one, Version=version) for one, version in versions.items()]
    tree["/redfish/v1"] = {
        "RedfishVersion": "1.17.0",
        "@odata.id": "/redfish/v1/",
        "Systems": collect("/Systems", put("/Systems/HGX_Baseboard_0", PowerState="On"), host),
        "Chassis": collect("/Chassis", {"@odata.id": "/redfish/v1/Chassis/Box"}),
        "UpdateService": put("/UpdateService", FirmwareInventory=collect("/UpdateService/Firm", *parts)),
        "Links": {"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}},
    }
    return tree

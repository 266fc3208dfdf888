"""BMCs over TLS at loopback addresses of their own. They answer from the recording, and note every request.

The user name of a login is the mark of the command that logs in, so each request says who caused it.
"""

from __future__ import annotations

import json
import secrets
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import trustme

from tests.support.bmc_rehearsal import QuietServer, expanded, reply

SESSIONS = "/redfish/v1/SessionService/Sessions"
SYSTEM = "/redfish/v1/Systems/System_0"


@dataclass(frozen=True)
class SiteRequest:
    """A request that reached the site; `mark` is the command that caused it, "" for one before its login."""

    machine: str
    method: str
    path: str
    body: str
    mark: str

    @property
    def is_change(self) -> bool:
        """Whether it asks for a change: everything but reading, and logging in or out."""
        is_login = self.path.partition("?")[0].rstrip("/").startswith(SESSIONS) and self.method in {"POST", "DELETE"}
        return self.method not in {"GET", "HEAD"} and not is_login


@dataclass
class RecordedBmc:
    """One BMC. `asked` grows with each request; `tree` is what it answers.

    `restart` does what a ResetType asks of the machine, and returns its power state.
    """

    machine: str
    tree: dict[str, Any]
    password: str
    now: Callable[[], datetime]
    port: int
    restart: Callable[[str], str]
    asked: list[SiteRequest] = field(default_factory=list)
    sessions: dict[str, str] = field(default_factory=dict)

    def note(self, call: BaseHTTPRequestHandler, body: str, mark: str) -> None:
        """Note a request before it is answered, so that none is missing when its sender is killed."""
        self.asked.append(SiteRequest(self.machine, call.command, call.path, body, mark))

    def read(self, path: str, depth: int, user: str) -> bytes | None:
        """Return a resource with `depth` levels of what is below it, None if there is none, as `user` sees it."""
        if path not in self.tree:
            return None
        text = json.dumps(expanded(self.tree, self.tree[path], depth))
        return text.replace("<now>", self.now().isoformat()).replace("<user>", user).encode()

    def change(self, method: str, path: str, body: str) -> None:
        """Do what a request asks for: a reset of the system, or other properties."""
        if path.endswith("ComputerSystem.Reset"):
            self.tree[SYSTEM]["PowerState"] = self.restart(json.loads(body).get("ResetType", ""))
        elif method == "PATCH" and path in self.tree:
            _merge(self.tree[path], json.loads(body))


@contextmanager
def serve_bmc(bmc: RecordedBmc, address: str, authority: trustme.CA) -> Iterator[RecordedBmc]:
    """Serve a BMC at a loopback address, on its port."""
    server = QuietServer((address, bmc.port), _make_handler(bmc))
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(address).configure_cert(context)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        yield bmc
    finally:
        server.shutdown()
        server.server_close()


def _make_handler(bmc: RecordedBmc) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            _answer_read(bmc, self)

        def do_POST(self) -> None:
            _answer_change(bmc, self)

        def do_PATCH(self) -> None:
            _answer_change(bmc, self)

        def do_PUT(self) -> None:
            _answer_change(bmc, self)

        def do_DELETE(self) -> None:
            _answer_change(bmc, self)

        def log_message(self, *words: object) -> None:
            """Keep quiet."""

    return Handler


def _answer_read(bmc: RecordedBmc, call: BaseHTTPRequestHandler) -> None:
    path, _, query = call.path.partition("?")
    mark = bmc.sessions.get(str(call.headers["X-Auth-Token"]))
    bmc.note(call, "", mark or "")
    if mark is None and path.rstrip("/") != "/redfish/v1":
        return reply(call, 401, b"{}")
    body = bmc.read(path.rstrip("/"), int(query[-2]) if "expand" in query else 0, mark or "")
    return reply(call, 200, body) if body else reply(call, 404, b"{}")


def _answer_change(bmc: RecordedBmc, call: BaseHTTPRequestHandler) -> None:
    body = call.rfile.read(int(call.headers["Content-Length"] or 0)).decode(errors="replace")
    mark = bmc.sessions.get(str(call.headers["X-Auth-Token"]))
    if call.command == "POST" and call.path.rstrip("/") == SESSIONS:
        login = json.loads(body)
        bmc.note(call, "", login["UserName"])
        if login["Password"] != bmc.password:
            return reply(call, 401, b"{}")
        token = secrets.token_hex(8)
        bmc.sessions[token] = login["UserName"]
        return reply(call, 201, b"{}", X_Auth_Token=token, Location=f"{SESSIONS}/{token}")
    bmc.note(call, body, mark or "")
    if mark is None:
        return reply(call, 401, b"{}")
    if call.command == "DELETE" and call.path.startswith(SESSIONS):
        bmc.sessions.pop(call.path.rpartition("/")[2], None)
    else:
        bmc.change(call.command, call.path, body)
    return reply(call, 200, b"{}")


def _merge(resource: dict[str, Any], changes: dict[str, Any]) -> None:
    for name, wanted in changes.items():
        if isinstance(wanted, dict) and isinstance(resource.get(name), dict):
            _merge(resource[name], wanted)
        else:
            resource[name] = wanted


def write_authority(authority: trustme.CA, path: Path) -> None:
    """Write the certificate of the site's own authority."""
    authority.cert_pem.write_to_path(str(path))

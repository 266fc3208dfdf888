"""The application of `assay serve` in this process: its state, and requests from any address, with any header."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message

from assay.act.loop.context import ControllerContext
from assay.act.loop.fleet_reload import CurrentContext
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.fleet import Fleet
from assay.model.specs.serving import AccessRules
from assay.observe.evidence_store import EvidenceStore
from assay.tell.server.agent_tokens import READER_TOKEN, AgentTokens
from assay.tell.server.app_state import AppState
from assay.tell.server.batch_writer import BatchWriter
from assay.tell.server.requests import RefusalLog

LOOPBACK, ELSEWHERE = "127.0.0.1", "198.51.100.9"
READER = "token-of-the-local-reader"


def let_in(fleet: Fleet, access: Mapping[str, Any] | None) -> Fleet:
    """Return the fleet with this `access` in its policy."""
    policy = fleet.policy.model_copy(update={"access": AccessRules.model_validate(access) if access else None})
    return replace(fleet, policies={policy.name: policy})


def make_state(fleet: Fleet, home: Path) -> AppState:
    """Return the state of a server with an empty ledger in `home`; `state.said` is what it reports."""
    ledger = Ledger.open(home / "ledger.sqlite")
    (home / READER_TOKEN).write_text(f"{READER}\n")
    evidence = EvidenceStore(home / "evidence")
    current = CurrentContext(ControllerContext(fleet, ledger, evidence, SystemClock(), home, home / "reports"))
    refusals = RefusalLog(home / "refusals.jsonl")
    return AppState(current, AgentTokens(fleet.root), BatchWriter(current, lambda _: None), refusals)


@dataclass(frozen=True)
class Reply:
    """What the application replied."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The JSON document."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Caller:
    """Calls an application as a client at `address`, which names the server `host`."""

    app: ASGIApp
    address: str = LOOPBACK
    host: str = "127.0.0.1"
    scheme: str = "https"
    headers: Mapping[str, str] = field(default_factory=dict)

    def showing(self, token: str) -> Caller:
        """Return a caller with a bearer token."""
        return replace(self, headers={"authorization": f"Bearer {token}"})

    @classmethod
    def reading(cls, app: ASGIApp) -> Caller:
        """Return who reads where nobody is declared, with the token of that server's file."""
        return cls(app).showing(READER)

    def get(self, path: str, **headers: str) -> Reply:
        """Send a GET."""
        return self.send("GET", path, b"", list(headers.items()))

    def post(self, path: str, body: bytes | Mapping[str, Any] = b"", **headers: str) -> Reply:
        """Send a POST, with JSON unless the body is bytes."""
        return self.send(
            "POST", path, body if isinstance(body, bytes) else json.dumps(body).encode(), list(headers.items())
        )

    def send(self, method: str, path: str, body: bytes, headers: list[tuple[str, str]]) -> Reply:
        """Send a request. `_` in the name of a header is `-`; a header may come twice."""
        named = [("host", self.host), *self.headers.items(), *headers]
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "scheme": self.scheme,
            "server": (self.host, 443),
            "client": (self.address, 40000),
            "headers": [(name.replace("_", "-").lower().encode(), text.encode("latin-1")) for name, text in named],
            "http_version": "1.1",
        }
        return asyncio.run(_call(self.app, scope, body))


async def _call(app: ASGIApp, scope: dict[str, Any], body: bytes) -> Reply:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    headers = {name.decode(): text.decode() for name, text in sent[0]["headers"]}
    return Reply(sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:]))

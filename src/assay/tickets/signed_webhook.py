"""Tickets as signed messages to a web service.

The body is one JSON object: `event` (how the history ends), `state`, `ticket`, `history`, `reopened`, `version`.
`X-Assay-Signature-256` is `sha256=` and the HMAC of `TIMESTAMP.BODY`, where `X-Assay-Timestamp` is the first. What is
sent again after a failure has the same `Idempotency-Key`: a receiver takes a key once.
"""

from __future__ import annotations

import hashlib
import hmac
import time

import requests

from assay.model.ledger_entry import derive_id
from assay.model.specs.ticket_routes_and_checklists import WebhookRoute
from assay.model.ticket import TicketRecord
from assay.tickets.sink_http_client import SinkHttpClient


class SignedWebhookSink:
    """A POST for each change; the receiver may answer with the `url` or `id` that it gives the ticket."""

    def __init__(self, about: WebhookRoute, key: str, where: str) -> None:
        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            at, body = str(int(time.time())), request.body
            content = at.encode() + b"." + (body if isinstance(body, bytes) else b"")
            request.headers["X-Assay-Timestamp"] = at
            code = hmac.new(key.encode(), content, hashlib.sha256).hexdigest()
            request.headers["X-Assay-Signature-256"] = f"sha256={code}"
            return request

        self._remote = SinkHttpClient(about.url, where, sign)

    def deliver(self, listed: TicketRecord, version: str, external: str) -> str:
        """Send the ticket as it now is."""
        key = derive_id("delivery", listed.ticket.id, version)
        answer = self._remote.request("POST", "", _build_body(listed, version), headers={"Idempotency-Key": key})
        data = answer.data if isinstance(answer.data, dict) else {}
        return str(data.get("url") or data.get("id") or answer.headers.get("Location") or external)

    def holds(self, external: str) -> bool:  # noqa: ARG002 — the protocol's
        """Say that it is there: a message cannot be looked up."""
        return True


def _build_body(listed: TicketRecord, version: str) -> dict[str, object]:
    return {
        "event": listed.history[-1].what,
        "state": "closed" if listed.closed_at else "open",
        "ticket": listed.ticket.as_json(),
        "history": [{"at": one.at, "what": one.what, "why": one.why} for one in listed.history],
        "reopened": listed.reopen_count,
        "version": version,
    }

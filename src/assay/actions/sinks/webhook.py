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

from assay.actions.sinks.remote import Remote
from assay.model.entry import derived_id
from assay.model.ticket import Listed
from assay.model.ticket_route import Webhook


class SignedWebhook:
    """A POST for each change; the receiver may answer with the `url` or `id` that it gives the ticket."""

    def __init__(self, about: Webhook, key: str, where: str) -> None:
        def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
            at, body = str(int(time.time())), request.body
            content = at.encode() + b"." + (body if isinstance(body, bytes) else b"")
            request.headers["X-Assay-Timestamp"] = at
            code = hmac.new(key.encode(), content, hashlib.sha256).hexdigest()
            request.headers["X-Assay-Signature-256"] = f"sha256={code}"
            return request

        self._remote = Remote(about.url, where, sign)

    def deliver(self, listed: Listed, version: str, external: str) -> str:
        """Send the ticket as it now is."""
        key = derived_id("delivery", listed.ticket.id, version)
        answer = self._remote.ask("POST", "", _body(listed, version), headers={"Idempotency-Key": key})
        data = answer.data if isinstance(answer.data, dict) else {}
        return str(data.get("url") or data.get("id") or answer.headers.get("Location") or external)

    def holds(self, external: str) -> bool:  # noqa: ARG002 — the protocol's
        """Say that it is there: a message cannot be looked up."""
        return True


def _body(listed: Listed, version: str) -> dict[str, object]:
    return {
        "event": listed.history[-1].what,
        "state": "closed" if listed.closed_at else "open",
        "ticket": listed.ticket.as_json(),
        "history": [{"at": one.at, "what": one.what, "why": one.why} for one in listed.history],
        "reopened": listed.reopened,
        "version": version,
    }

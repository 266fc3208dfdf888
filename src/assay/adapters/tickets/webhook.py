"""The ticket sink `webhook`: a signed HTTP request to a web service for each change of a ticket.

The body is one JSON object: `event` (the last event of the history), `state`, `ticket`, `history`, `reopened`,
`version`. `X-Assay-Signature-256` is `sha256=` and the HMAC-SHA256 of `TIMESTAMP.BODY`; the timestamp is in
`X-Assay-Timestamp`. A repeated request has the same `Idempotency-Key`, so that the receiver can ignore it.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import TYPE_CHECKING, ClassVar

from assay.adapters.tickets.sink import SinkContext
from assay.model.facts import to_json
from assay.model.ledger_entry import derive_id
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.technician_work import SinkSettings, SinkUrl
from assay.model.ticket import TicketRecord

if TYPE_CHECKING:
    import requests

    from assay.adapters.tickets.sink import RequestSigner


def make_signer(secret: str) -> RequestSigner:
    """Return what signs a request with a key: its timestamp and its body."""

    def sign(request: requests.PreparedRequest) -> requests.PreparedRequest:
        at, body = str(int(time.time())), request.body
        content = at.encode() + b"." + (body if isinstance(body, bytes) else b"")
        request.headers["X-Assay-Timestamp"] = at
        code = hmac.new(secret.encode(), content, hashlib.sha256).hexdigest()
        request.headers["X-Assay-Signature-256"] = f"sha256={code}"
        return request

    return sign


class WebhookRoute(SinkSettings):
    """A POST of JSON for each change of a ticket, signed with the key that `credentials` lead to.

    `url`: where each change is posted.
    """

    destination_fields: ClassVar = ("url",)

    url: SinkUrl
    credentials: CredentialReference


class SignedWebhookSink:
    """A POST for each change. The receiver may answer with the `url` or `id` that it gives the ticket."""

    settings_model = WebhookRoute
    is_local = False

    def __init__(self, settings: WebhookRoute, context: SinkContext) -> None:
        from assay.adapters.tickets.sink import SinkHttpClient

        self._client = SinkHttpClient(settings.url, context.where, make_signer(context.secret))

    def deliver(self, record: TicketRecord, version: str, external_id: str) -> str:
        """Send the ticket as it is now."""
        key = derive_id("delivery", record.ticket.id, version)
        body = {
            "event": record.history[-1].what,
            "state": "closed" if record.closed_at else "open",
            "ticket": to_json(record.ticket),
            "history": [{"at": event.at, "what": event.what, "why": event.why} for event in record.history],
            "reopened": record.reopen_count,
            "version": version,
        }
        answer = self._client.request("POST", "", body, headers={"Idempotency-Key": key})
        data = answer.data if isinstance(answer.data, dict) else {}
        return str(data.get("url") or data.get("id") or answer.headers.get("Location") or external_id)

    def holds(self, external_id: str) -> bool:  # noqa: ARG002 — the protocol's
        """Return True: a webhook cannot be asked for a ticket."""
        return True

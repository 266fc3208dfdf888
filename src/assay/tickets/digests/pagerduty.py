"""The digest sink `pagerduty`: one incident for each digest, through the Events API v2.

The digest's id is the `dedup_key`: a repeated event makes no second incident. When all tickets of a digest are closed,
its incident is resolved.
"""

from __future__ import annotations

from typing import Any, ClassVar

from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.sink_settings import DigestSettings, SinkUrl
from assay.tickets.digests.digest import Digest
from assay.tickets.digests.digest_text import find_worst_severity, format_digest_lines, format_headline
from assay.tickets.sink_protocol import SinkContext

SEVERITIES = {"catastrophic": "critical", "degraded": "error", "informational": "info"}
"""PagerDuty's word for each of ours."""
MAX_SUMMARY = 1024


class PagerDutyRoute(DigestSettings):
    """Incidents of the service whose integration key `credentials` lead to.

    `service`: its name, for people. `url`: the address of the Events API; `https://events.eu.pagerduty.com` in the EU.
    """

    destination_fields: ClassVar = ("url", "service")

    service: str
    url: SinkUrl = "https://events.pagerduty.com"
    credentials: CredentialReference


class PagerDutyService:
    """An event that triggers an incident, and one that resolves it."""

    settings_model = PagerDutyRoute
    is_local = False

    def __init__(self, settings: PagerDutyRoute, context: SinkContext) -> None:
        from assay.tickets.sink_http_client import SinkHttpClient, send_unsigned

        self._client, self._key = SinkHttpClient(settings.url, context.where, send_unsigned), context.secret

    def announce(self, digest: Digest) -> None:
        """Trigger an incident for the open tickets, and resolve those of the settled digests."""
        if any(item.is_open for item in digest.items):
            self._send("trigger", digest.id, payload=_make_payload(digest))
        for ident in digest.settled:
            self._send("resolve", ident)

    def _send(self, action: str, ident: str, **more: Any) -> None:
        event = {"routing_key": self._key, "event_action": action, "dedup_key": f"assay-{ident}"}
        self._client.request("POST", "/v2/enqueue", {**event, **more})


def _make_payload(digest: Digest) -> dict[str, Any]:
    return {
        "summary": format_headline(digest)[:MAX_SUMMARY],
        "source": f"assay, route {digest.route}",
        "severity": SEVERITIES.get(find_worst_severity(digest), "warning"),
        "custom_details": {"tickets": "\n".join(format_digest_lines(digest))},
    }

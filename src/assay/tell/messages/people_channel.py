"""The sink `notify`: digests to people by apprise, which knows Slack, Teams, mail, PagerDuty and a hundred others."""

from __future__ import annotations

import logging
import re
from typing import Any, ClassVar
from urllib.parse import urlencode

from pydantic import Field

from assay.adapters.tickets.sink import SinkContext, SinkUnavailable
from assay.model.errors import AssayError, require_extra
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.technician_work import DigestSettings
from assay.model.text.safe_text import escape_line
from assay.tell.messages.digest import Digest, find_worst_severity, format_digest_lines, format_headline

DELIVERY_S = 60.0
"""Of a whole message: a server may send a byte now and then."""
THIS_MACHINE = ("localhost", "127.0.0.1")
TYPES = {"catastrophic": "failure", "degraded": "warning"}
"""apprise's word for the worst severity."""
STATUS = re.compile(r"error=(\d{3})\b")


class PeopleRoute(DigestSettings):
    """Messages to people in a `channel`, whose name is for people.

    `credentials`: where the URL of the channel for apprise is, such as `slack://…`; it is secret.
    """

    destination_fields: ClassVar = ("channel",)

    channel: str = Field(min_length=1)
    credentials: CredentialReference


class PeopleChannel:
    """One channel. Nothing that apprise logs is shown: it may hold the secret."""

    settings_model = PeopleRoute
    is_local = False

    def __init__(self, settings: PeopleRoute, context: SinkContext) -> None:  # noqa: ARG002 — the URL knows its channel
        require_extra("notify")
        log = logging.getLogger("apprise")
        log.propagate, log.handlers = False, [logging.NullHandler()]
        self._where, self._url = context.where, context.secret
        self._open(self._url)

    def announce(self, digest: Digest) -> None:
        """Send one message. PagerDuty opens one incident for a digest, and ends those whose tickets are all closed."""
        if not self._url.lower().startswith("pagerduty://"):
            self._send(self._url, digest)
            return
        events = [("trigger", digest.id)] if any(item.is_open for item in digest.items) else []
        for action, ident in [*events, *(("resolve", ident) for ident in digest.settled)]:
            more = urlencode({"action": action, "dedup": f"assay-{ident}"})
            self._send(f"{self._url}{'&' if '?' in self._url else '?'}{more}", digest)

    def _send(self, url: str, digest: Digest) -> None:
        headline, *lines = map(escape_line, (format_headline(digest), *format_digest_lines(digest)))
        title = headline if url.lower().startswith("mailto") else ""  # Teams reads titles as Markdown
        body = "\n".join(lines if title else [headline, *lines])
        kind = TYPES.get(find_worst_severity(digest), "info")
        with self._open(url).notify(body, title, kind, body_format="text", timeout=DELIVERY_S) as sent:
            if sent:
                return
            status = next((match[1] for entry in sent.logs() if (match := STATUS.search(entry.message))), "")
        answer = f"answers {status}" if status else "the message could not be sent"
        raise SinkUnavailable(answer, where=self._where, soon=status in ("", "429") or status >= "500")

    def _open(self, url: str) -> Any:
        """Return apprise with this one URL. Raises AssayError, without the URL, for one that is none or not safe."""
        from apprise import Apprise, AppriseAsset

        channels = Apprise(asset=AppriseAsset(app_id="assay", async_mode=False, http_redirects=False))
        if not channels.add(url) or len(channels) != 1:
            fix = "put one URL of apprise there: docs/people.md"
            raise AssayError("the secret is not the URL of a channel", where=self._where, fix=fix)
        (channel,) = channels
        safe = channel.secure_protocol or ()
        schemes: tuple[str, ...] = ("https", safe) if isinstance(safe, str) else ("https", *safe)
        is_safe = url.partition(":")[0].lower() in schemes and getattr(channel, "secure_mode", "") != "insecure"
        if (not is_safe and channel.host not in THIS_MACHINE) or not channel.verify_certificate:
            fix = f"use {' or '.join(schemes)}, without verify=no or mode=insecure"
            raise AssayError("the secret would travel in the clear", where=self._where, fix=fix)
        return channels

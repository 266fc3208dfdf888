"""The incoming webhook of a chat, whose address is itself the secret: how a route declares it, and posts to it."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from pydantic import Field

from assay.model.errors import AssayError
from assay.model.specs.credential_reference import CredentialReference
from assay.model.specs.sink_settings import SECURE_URL, DigestSettings
from assay.tickets.sink_protocol import SinkContext


class ChatRoute(DigestSettings):
    """Messages in the `channel` to which a webhook belongs; `credentials`: where its address is."""

    destination_fields: ClassVar = ("channel",)

    channel: str = Field(min_length=1)
    credentials: CredentialReference


class ChatWebhook:
    """One incoming webhook. Raises AssayError, without the address, if the secret is no address of a service."""

    def __init__(self, context: SinkContext) -> None:
        from assay.tickets.sink_http_client import SinkHttpClient, send_unsigned

        if not re.fullmatch(SECURE_URL, context.secret):
            fix = "put the whole address of the incoming webhook there; it begins with https://"
            raise AssayError("the secret is not the address of a webhook", where=context.where, fix=fix)
        self._client = SinkHttpClient(context.secret, context.where, send_unsigned)

    def post(self, body: dict[str, Any]) -> None:
        """Post one message. Raises SinkUnavailable or TicketRefusal."""
        self._client.request("POST", "", body)

"""The digest sink `teams`: Adaptive Cards in a channel of Microsoft Teams, through a webhook of its Workflows."""

from __future__ import annotations

from typing import Any

from assay.tickets.digests.chat_webhook import ChatRoute, ChatWebhook
from assay.tickets.digests.digest import Digest
from assay.tickets.digests.digest_text import format_digest_lines, format_headline
from assay.tickets.sink_protocol import SinkContext

CARD_TYPE = "application/vnd.microsoft.card.adaptive"


class TeamsRoute(ChatRoute):
    """Cards in the `channel` to which the webhook belongs.

    `credentials`: where the address of the webhook is; it is secret.
    """


class TeamsChannel:
    """A card of RichTextBlocks, which, unlike TextBlocks, read nothing as Markdown."""

    settings_model = TeamsRoute
    is_local = False

    def __init__(self, settings: TeamsRoute, context: SinkContext) -> None:  # noqa: ARG002 — the webhook knows its channel
        self._webhook = ChatWebhook(context)

    def announce(self, digest: Digest) -> None:
        """Post the card."""
        blocks = [_make_block(format_headline(digest), weight="Bolder"), *map(_make_block, format_digest_lines(digest))]
        card = {"type": "AdaptiveCard", "version": "1.4", "msteams": {"width": "Full"}, "body": blocks}
        self._webhook.post({"type": "message", "attachments": [{"contentType": CARD_TYPE, "content": card}]})


def _make_block(text: str, weight: str = "Default") -> dict[str, Any]:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, "weight": weight}]}

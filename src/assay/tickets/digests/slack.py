"""The digest sink `slack`: messages in a channel, through an incoming webhook."""

from __future__ import annotations

from assay.tickets.digests.chat_webhook import ChatRoute, ChatWebhook
from assay.tickets.digests.digest import Digest
from assay.tickets.digests.digest_text import format_digest_lines, format_headline
from assay.tickets.sink_protocol import SinkContext


class SlackRoute(ChatRoute):
    """Messages in the `channel` to which the incoming webhook belongs.

    `credentials`: where the address of the webhook is; it is secret.
    """


class SlackChannel:
    """A message without any markup: what a device says can mention nobody."""

    settings_model = SlackRoute
    is_local = False

    def __init__(self, settings: SlackRoute, context: SinkContext) -> None:  # noqa: ARG002 — the webhook knows its channel
        self._webhook = ChatWebhook(context)

    def announce(self, digest: Digest) -> None:
        """Post the message."""
        text = "\n".join([format_headline(digest), *format_digest_lines(digest)])
        self._webhook.post({"text": _escape(text), "mrkdwn": False, "unfurl_links": False})


def _escape(text: str) -> str:
    """Escape the three characters that Slack gives a meaning even in plain text: `<!channel>` would call everybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

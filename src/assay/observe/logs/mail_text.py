"""Reads a log that somebody sent by mail: the text of its body and of its attachments, whatever their encoding."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from email.message import MIMEPart
from email.policy import default

ENCODED = re.compile(rb"(?im)^content-(?:transfer-encoding: *(?:base64|quoted-printable)|type: *multipart/)")
"""Without these, a mail is read as any text."""


def decode_mail(content: bytes) -> list[bytes]:
    """Return the body of a mail and its attachments, texts as UTF-8; none where the mail encodes nothing."""
    if not ENCODED.search(content):
        return []
    return list(_read_parts(email.message_from_bytes(content, policy=default)))


def _read_parts(mail: MIMEPart) -> Iterator[bytes]:
    """Yield the body, as text rather than HTML, and the attachments."""
    body = mail.get_body(("plain", "html"))
    for part in [*([body] if body else []), *mail.iter_attachments()]:
        if part.get_content_type() == "message/rfc822":
            yield from (text for inner in part.iter_parts() for text in _read_parts(inner))
        else:
            yield _read_part(part)


def _read_part(part: MIMEPart) -> bytes:
    try:
        content = part.get_content()
    except (LookupError, ValueError):  # a charset or a type that nobody knows
        content = part.get_payload(decode=True)
    return content.encode(errors="replace") if isinstance(content, str) else content

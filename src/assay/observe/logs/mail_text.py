"""Reads a log that somebody sent by mail: the text of its body and of its attachments, whatever their encoding."""

from __future__ import annotations

import email
import re
from collections.abc import Iterator
from email.message import MIMEPart
from email.policy import default

ENCODED = re.compile(rb"(?im)^content-(?:transfer-encoding: *(?:base64|quoted-printable)|type: *multipart/)")
"""Without these, a mail is read as any text."""
MAIL_FOLLOWS = re.compile(rb"(?m)^From \S[^\n]*\b\d{4}\b[^\n]*\n(?=[A-Z][\w-]*: ?)")
"""What stands before each mail in a mailbox (mbox)."""


def decode_mails(content: bytes) -> list[bytes]:
    """Return the body and the attachments of a mail, or of each mail in a mailbox, texts as UTF-8.

    A mail that encodes nothing stays as it is. None where no mail encodes anything.
    """
    if not ENCODED.search(content):
        return []
    return [part for mail in _split_mailbox(content) for part in _decode_mail(mail)]


def _split_mailbox(content: bytes) -> list[bytes]:
    return [mail for mail in MAIL_FOLLOWS.split(content) if mail.strip()] if content.startswith(b"From ") else [content]


def _decode_mail(content: bytes) -> list[bytes]:
    if not ENCODED.search(content):
        return [content]
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

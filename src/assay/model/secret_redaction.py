"""The secrets that this process came to know, so that nothing which is written down repeats them.

Whoever reads a secret remembers it here; whoever writes down words that came from elsewhere hides it in them.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

MIN_SECRET_LENGTH = 4
"""Shorter ones would turn up by chance in any text."""

REDACTION = "•••"
_registered: dict[str, tuple[str, ...]] = {}


def register_secret(secret: str) -> None:
    """Hide a secret from now on. Of `user:password`, the password is hidden alone as well."""
    for text in (secret, secret.partition(":")[2]):
        if len(text) >= MIN_SECRET_LENGTH and text not in _registered:
            _registered[text] = _spellings(text)


def redact(text: str) -> str:
    """Return a text with every known secret covered, however it is spelt."""
    for spelling in _all_spellings():
        text = text.replace(spelling, REDACTION)
    return text


def redact_bytes(content: bytes) -> bytes:
    """Return the content of a file with every known secret covered."""
    for spelling in _all_spellings():
        content = content.replace(spelling.encode(errors="surrogateescape"), REDACTION.encode())
    return content


def _all_spellings() -> list[str]:
    """Return every spelling of every secret, longest first, so that none is left in part."""
    return sorted({spelling for known in list(_registered.values()) for spelling in known}, key=len, reverse=True)


def _spellings(text: str) -> tuple[str, ...]:
    """Return a secret as it stands in plain text, in JSON, in a URL, and in an Authorization header."""
    raw = text.encode(errors="surrogateescape")
    escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
    return (text, *escaped, quote(raw, safe=""), base64.b64encode(raw).decode().rstrip("="), repr(text)[1:-1])

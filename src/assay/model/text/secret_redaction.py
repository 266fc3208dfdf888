"""The secrets that this process knows, so that nothing it writes repeats them.

Code that reads a secret registers it here. Code that writes text from elsewhere redacts it first.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

MIN_SECRET_LENGTH = 4
"""Characters. A shorter secret would occur by chance in any text."""

REDACTION = "•••"
_registered: dict[str, tuple[str, ...]] = {}


def register_secret(secret: str) -> None:
    """Redact this secret from now on. Of `user:password`, the password alone is redacted too."""
    for text in (secret, secret.partition(":")[2]):
        if len(text) >= MIN_SECRET_LENGTH and text not in _registered:
            _registered[text] = _spellings(text)


def redact(text: str) -> str:
    """Return a text with every known secret replaced, in each of its spellings."""
    for spelling in _all_spellings():
        text = text.replace(spelling, REDACTION)
    return text


def redact_bytes(content: bytes) -> bytes:
    """Return the content of a file with every known secret replaced."""
    for spelling in _all_spellings():
        content = content.replace(spelling.encode(errors="surrogateescape"), REDACTION.encode())
    return content


def _all_spellings() -> list[str]:
    """Return every spelling of every secret, longest first, so that no part of one remains."""
    return sorted({spelling for known in list(_registered.values()) for spelling in known}, key=len, reverse=True)


def _spellings(text: str) -> tuple[str, ...]:
    """Return a secret as plain text, in JSON, in a URL, in an Authorization header, and as Python prints it."""
    raw = text.encode(errors="surrogateescape")
    escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
    return (text, *escaped, quote(raw, safe=""), base64.b64encode(raw).decode().rstrip("="), repr(text)[1:-1])

r"""Keeps out of texts what could mislead a reader, and what nobody may read.

Control and invisible characters of devices, tenants and files are escaped as in JSON (`\u001b`), so that a JSON
document stays the same document. Code that reads a secret registers it here; code that writes text from elsewhere
redacts it first.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

_INVISIBLE = (
    "\x7f-\x9f"  # DEL and C1, of which CSI begins sequences as ESC [ does
    "\u061c\u180e\u200b-\u200f\u202a-\u202e\u2061-\u206f\ufeff\ufff9-\ufffb"  # bidi and zero width
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # surrogates without a partner
    "\U000e0000-\U000e007f"  # tags
)
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_STYLE = re.compile("(\x1b\\[(?:(?:[0-4]|[2-4][0-9]|9[0-7])(?:;[0-9]{1,3}){0,4})?m)")
"""Colours, bold and dim, as the libraries that print for us write them."""
_IN_A_LINE = re.compile(f"[\x00-\x1f{_INVISIBLE}]")


def escape_controls(text: str) -> str:
    """Return a text in which only line breaks and tabs are left of all control and invisible characters."""
    return _CONTROLS.sub(_escape, text)


def escape_all_but_styles(text: str) -> str:
    """Return a text for a terminal: as `escape_controls` does, but with its colours."""
    if _CONTROLS.search(text) is None:
        return text
    return "".join(part if _STYLE.fullmatch(part) else escape_controls(part) for part in _STYLE.split(text))


def escape_document(document: Any) -> Any:
    """Return a JSON document with every text and name in it escaped by `escape_controls`."""
    if isinstance(document, str):
        return escape_controls(document)
    if isinstance(document, Mapping):
        return {escape_controls(str(name)): escape_document(part) for name, part in document.items()}
    return [escape_document(part) for part in document] if isinstance(document, list | tuple) else document


def escape_line(text: str) -> str:
    r"""Return a text as one line without control and invisible characters; a line break is written as `\n`."""
    return _IN_A_LINE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    if (short := {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(match[0])) is not None:
        return short
    code = ord(match[0])
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
    return f"\\u{code:04x}"


MIN_SECRET_LENGTH = 4
"""Characters. A shorter secret would occur by chance in any text."""

REDACTION = "•••"
_registered: dict[str, tuple[str, ...]] = {}


def register_secret(secret: str) -> None:
    """Redact this secret from now on. Of `user:password`, the password alone is redacted too."""
    for text in (secret, secret.partition(":")[2]):
        if len(text) >= MIN_SECRET_LENGTH and text not in _registered:
            # as plain text, in JSON, in a URL, in an Authorization header, and as Python prints it
            raw = text.encode(errors="surrogateescape")
            escaped = [json.dumps(text, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
            encoded = base64.b64encode(raw).decode().rstrip("=")
            _registered[text] = (text, *escaped, quote(raw, safe=""), encoded, repr(text)[1:-1])


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

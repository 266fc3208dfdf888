"""Writes one line for each frame of a syslog stream that counts octets: `137 <3>1 2026-11-10T03:11:07Z n1 kernel …`.

RFC 6587, 3.4.1: such a stream needs no newline between its messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

FRAME = re.compile(rb"[\r\n]*(?P<octets>[1-9]\d{0,4}) (?=<\d{1,3}>)")
"""How a frame begins."""
NEXT = re.compile(rb"[\r\n]*(?:[1-9]\d{0,4} <\d{1,3}>|(?:[1-9]\d{0,4}(?: (?:<\d{0,3})?)?)?\Z)")
"""What may stand after a frame: another one, of which a piece may hold less than its beginning."""


def begins_with_frame(piece: bytes) -> bool:
    """Whether a log begins with a frame, and another one or nothing follows where it ends."""
    found = FRAME.match(piece)
    return found is not None and _is_next(piece, found.end() + int(found["octets"]))


def write_frames(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the log with one line for each frame. From where the count does not hold, it stays as it is."""
    rest, holds = b"", True
    for piece in pieces:
        rest += piece
        lines, start = _read_frames(rest) if holds else (b"", 0)
        rest = rest[start:]
        holds = holds and NEXT.match(rest) is not None and not _is_broken(rest)
        if lines or not holds:
            yield lines if holds else lines + rest
        rest = rest if holds else b""
    if rest:
        yield rest


def _read_frames(text: bytes) -> tuple[bytes, int]:
    """Return the whole frames with which a text begins, one a line, and where they end."""
    lines, start = bytearray(), 0
    while found := FRAME.match(text, start):
        end = found.end() + int(found["octets"])
        if end > len(text) or not _is_next(text, end):
            break
        lines += text[found.end() : end].strip(b"\r\n") + b"\n"
        start = end
    return bytes(lines), start


def _is_next(text: bytes, end: int) -> bool:
    return NEXT.match(text, end) is not None if end <= len(text) else True


def _is_broken(rest: bytes) -> bool:
    """Whether a frame is whole, and no other one follows it."""
    found = FRAME.match(rest)
    return found is not None and not _is_next(rest, found.end() + int(found["octets"]))

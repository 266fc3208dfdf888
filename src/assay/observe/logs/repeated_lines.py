"""Writes out what a syslog says in short: `last message repeated 4 times` is the line before it, four times more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from assay.model.log_message import LineTally
from assay.observe.logs.dmesg_pieces import DmesgPieces

SHORT = b"message repeated "
MOST_COPIES, MOST_COPIES_OF_A_LOG = 1000, 10_000
"""No threshold is higher than the first. In a log that tells of more, each further message counts once more."""
MOST_COPIED_BYTES = 256 * 1024
LOOKED_BACK = 64 * 1024
LEAST_ENVELOPE = 20
DAY_SECONDS = 86_400
_STAMP = (
    rb"(?P<day>[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[T ])(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
    rb"(?P<zone>[.,]?\d{0,9}(?:Z|[+-]\d\d:?\d\d)?)"
)
_LINE = re.compile(rb"^" + _STAMP + rb" (?P<host>\S{1,255}) (?P<said>[^\n]+)", re.MULTILINE)
_REPEATED = re.compile(
    rb"^"
    + _STAMP
    + rb" (?P<host>\S{1,255}) (?P<program>\S{1,64}: )?(?:last )?message repeated (?P<times>\d{1,9}) times?"
    rb"(?:: \[ ?(?P<message>[^\n]+?) ?\])?[ \t]*$",
    re.MULTILINE,
)


class _Line(NamedTuple):
    """What a line says, and when: the seconds of its day, and the words before and after them."""

    host: bytes
    said: bytes
    day: bytes
    at: int
    zone: bytes

    @classmethod
    def of(cls, found: re.Match[bytes], said: bytes) -> _Line:
        at = (int(found["hour"]) * 60 + int(found["minute"])) * 60 + int(found["second"])
        return cls(found["host"], said, found["day"], at, found["zone"])


def write_repeated_lines(pieces: Iterable[bytes], tally: LineTally, dmesg: DmesgPieces) -> Iterator[bytes]:
    """Yield the log with each repeated message as often as it was said, evenly from its last time to the time told.

    `tally` counts the lines of the log, not those that are written out here.
    """
    writer, before = _RepeatedLines(tally), b""
    for piece in pieces:
        is_plain = dmesg.holds_only_dmesg(piece) or SHORT not in piece
        before = piece if is_plain else writer.write(piece, before)
        yield before


class _RepeatedLines:
    def __init__(self, tally: LineTally) -> None:
        self._tally, self._left = tally, MOST_COPIES_OF_A_LOG
        self._last: tuple[int, _Line] | None = None
        self._piece_before = b""

    def write(self, piece: bytes, before: bytes) -> bytes:
        """Return a piece with its repeated messages. The line that was repeated may stand in the piece before it."""
        self._last, self._piece_before = None, before
        return _REPEATED.sub(self._copy, piece)

    def _copy(self, found: re.Match[bytes]) -> bytes:
        before = self._find_before(found)
        if before is None and not found["message"]:
            return found[0]
        said = (found["program"] or b"") + found["message"] if found["message"] else before.said if before else b""
        end = _Line.of(found, said)
        self._last = found.end(), end
        room = MOST_COPIED_BYTES // (len(said) + LEAST_ENVELOPE)
        copies = max(1, min(int(found["times"]), MOST_COPIES, self._left, room))
        self._left, self._tally.lines = self._left - copies, self._tally.lines - copies + 1
        return b"\n".join(_write_copies(before or end, end, copies))

    def _find_before(self, found: re.Match[bytes]) -> _Line | None:
        """Return the line that was repeated: the one before, or the last that says the message in brackets."""
        start, text = found.start(), found.string
        if self._last and self._last[0] == start - 1:
            return self._last[1] if self._last[1].host == found["host"] else None
        end = _find_said(text, start, found["message"])
        if end <= 0 and start < LOOKED_BACK:
            text = self._piece_before
            end = _find_said(text, len(text), found["message"])
        line = _LINE.match(text, text.rfind(b"\n", 0, max(end - 1, 0)) + 1) if end > 0 else None
        return _Line.of(line, line["said"]) if line and line["host"] == found["host"] else None


def _find_said(text: bytes, end: int, message: bytes | None) -> int:
    """Return a place in the line before `end`, or in the last one that says `message`; none is at most 0."""
    return text.rfind(message, max(0, end - LOOKED_BACK), end) if message else end


def _write_copies(start: _Line, end: _Line, copies: int) -> Iterator[bytes]:
    """Yield the lines. The last one has the time of `end`."""
    length = (end.at - start.at) % DAY_SECONDS
    for copy in range(1, copies + 1):
        at = start.at + length * copy // copies
        day = end.day if at >= DAY_SECONDS or end.at >= start.at else start.day
        clock = b"%02d:%02d:%02d" % (at // 3600 % 24, at // 60 % 60, at % 60)
        yield b"%s%s%s %s %s" % (day, clock, end.zone, end.host, end.said)

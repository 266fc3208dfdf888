"""Finds lines of a log that are not as they were written: cut, clipped at a width, wrapped, or told in short.

`cut -c1-80`, a table or a terminal clips every line that is longer; some tools mark it (`…`, `...`, `>`). A mail wraps
them. A syslog says `last message repeated 4 times` for four more lines.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from assay.model.log_message import LineTally
from assay.observe.logs.log_form import DmesgPieces

MARKS = ("…", "...", ">")
FEWEST_CLIPPED = 3
LEAST_WIDTH = 24
LONGEST_LINE = 16 * 1024
ENDING_LETTERS = 3
CLOSED = re.compile(rb"[\]}]\s*\Z")
FIELD = re.compile(rb'"([^"\\\n]{1,64})"\s*(?::|=>)\s*"((?:[^"\\]|\\.)*)"')
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
_LINE = re.compile(rb"^" + _STAMP + rb" (?P<host>\S{1,255}) (?P<text>[^\n]+)", re.MULTILINE)
_REPEATED = re.compile(
    rb"^"
    + _STAMP
    + rb" (?P<host>\S{1,255}) (?P<program>\S{1,64}: )?(?:last )?message repeated (?P<times>\d{1,9}) times?"
    rb"(?:: \[ ?(?P<message>[^\n]+?) ?\])?[ \t]*$",
    re.MULTILINE,
)
NARROWEST, WIDEST = 32, 256
MOST_LINES = 8
"""No message of a fault fills more lines of a narrow text."""
_QUOTES = rb"[ \t>|*`]*"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = (
    rb"\[ *\d+\.\d|\[" + _MONTH + rb"|<\d{1,3}>|" + _MONTH + rb" {1,2}\d|\[?(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) "
    rb"|\[?\d{4}[-/]\d\d[-/]\d\d|\d{1,2}[./]\d{1,2}[./]\d{4}|1\d{9}\b|kern *:|[{]"
)
BEGINS_LINE = re.compile(_QUOTES + rb"(?:[\w.-]{1,64}:? +(?:kernel: )?)?(?:" + _TIME + rb")|[\w.-]{1,64} kernel: ")
"""How a line of a log begins, perhaps behind a host."""
_FIRST_WORD = re.compile(_QUOTES + rb"(\S+)")


class CutLines:
    """Watches the pieces of a log as they are read, and knows of a message in the newest one whether it was cut."""

    def __init__(self) -> None:
        self._piece = b""
        self._widths = _PieceWidths(b"")

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the pieces."""
        for piece in pieces:
            self._piece = piece
            self._widths = _PieceWidths(piece)
            yield piece

    def find_last_line(self) -> str:
        """Return the last line of the log where it lacks its end, "" for one with its end, or for whole JSON."""
        line = self._piece[self._piece.rfind(b"\n") + 1 :]
        return "" if len(line) > LONGEST_LINE or CLOSED.search(line) else line.decode(errors="replace")

    def is_clipped(self, text: str) -> bool:
        """Whether a message ends where the log clips its lines or fields."""
        if text.endswith(MARKS):
            return True
        message = text.encode(errors="replace")
        return self._widths.ends_line(message) or self._widths.fills_field(message)


class _PieceWidths:
    """The widths at which a piece clips its lines, and its fields by name. Each is found once, when it is asked for."""

    def __init__(self, piece: bytes) -> None:
        self._piece = piece
        self._ends: dict[int, set[bytes]] = {}

    def ends_line(self, message: bytes) -> bool:
        """Whether a line of the full width ends so."""
        if not self._clipped_lines:
            return False
        length = len(message)
        if length not in self._ends:
            self._ends[length] = {line[-length:] for line in self._clipped_lines}
        return message in self._ends[length]

    def fills_field(self, message: bytes) -> bool:
        """Whether the first field that says so is of the full width of all fields of its name."""
        return message in self._clipped_texts

    @cached_property
    def _clipped_lines(self) -> list[bytes]:
        lines = self._piece.split(b"\n")
        width = _find_width(lines)
        return [line for line in lines if len(line) == width] if width else []

    @cached_property
    def _clipped_texts(self) -> set[bytes]:
        name_of: dict[bytes, bytes] = {}
        texts: dict[bytes, set[bytes]] = defaultdict(set)
        for name, text in FIELD.findall(self._piece) if b'"' in self._piece else ():
            name_of.setdefault(text, name)
            texts[name].add(text)
        widths = {name: _find_width(of_name) for name, of_name in texts.items()}
        return {text for text, name in name_of.items() if len(text) == widths[name]}


def _find_width(lines: Iterable[bytes]) -> int:
    """Return the width at which several of these were clipped, 0 where they were not: each of them ends differently."""
    longest: dict[int, set[bytes]] = {}
    for line in lines:
        longest.setdefault(len(line), set()).add(line[-ENDING_LETTERS:])
    width = max(longest, default=0)
    return width if width >= LEAST_WIDTH and len(longest[width]) >= FEWEST_CLIPPED else 0


class _Line(NamedTuple):
    """What a line says, and when: the seconds of its day, and the words before and after them."""

    host: bytes
    text: bytes
    day: bytes
    at: int
    zone: bytes

    @classmethod
    def of(cls, match: re.Match[bytes], message: bytes) -> _Line:
        at = (int(match["hour"]) * 60 + int(match["minute"])) * 60 + int(match["second"])
        return cls(match["host"], message, match["day"], at, match["zone"])


def write_repeated_lines(pieces: Iterable[bytes], tally: LineTally, dmesg: DmesgPieces) -> Iterator[bytes]:
    """Yield the log with each repeated message as often as it was said, evenly from its last time to the time told.

    `tally` counts the lines of the log, not those that are written out here.
    """
    writer = _RepeatedLines(tally)
    before = b""
    for piece in pieces:
        is_plain = dmesg.holds_only_dmesg(piece) or SHORT not in piece
        before = piece if is_plain else writer.write(piece, before)
        yield before


class _RepeatedLines:
    def __init__(self, tally: LineTally) -> None:
        self._tally = tally
        self._left = MOST_COPIES_OF_A_LOG
        self._last: tuple[int, _Line] | None = None
        self._piece_before = b""

    def write(self, piece: bytes, before: bytes) -> bytes:
        """Return a piece with its repeated messages. The line that was repeated may stand in the piece before it."""
        self._last = None
        self._piece_before = before
        return _REPEATED.sub(self._copy, piece)

    def _copy(self, repeat: re.Match[bytes]) -> bytes:
        before = self._find_before(repeat)
        if before is None and not repeat["message"]:
            return repeat[0]
        if repeat["message"]:
            message = (repeat["program"] or b"") + repeat["message"]
        else:
            message = before.text if before else b""
        end = _Line.of(repeat, message)
        self._last = repeat.end(), end
        room = MOST_COPIED_BYTES // (len(message) + LEAST_ENVELOPE)
        copies = max(1, min(int(repeat["times"]), MOST_COPIES, self._left, room))
        self._left -= copies
        self._tally.lines -= copies - 1
        return b"\n".join(_write_copies(before or end, end, copies))

    def _find_before(self, repeat: re.Match[bytes]) -> _Line | None:
        """Return the line that was repeated: the one before, or the last that says the message in brackets."""
        start = repeat.start()
        text = repeat.string
        if self._last and self._last[0] == start - 1:
            return self._last[1] if self._last[1].host == repeat["host"] else None
        end = _find_said(text, start, repeat["message"])
        if end <= 0 and start < LOOKED_BACK:
            text = self._piece_before
            end = _find_said(text, len(text), repeat["message"])
        line = _LINE.match(text, text.rfind(b"\n", 0, max(end - 1, 0)) + 1) if end > 0 else None
        return _Line.of(line, line["text"]) if line and line["host"] == repeat["host"] else None


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
        yield b"%s%s%s %s %s" % (day, clock, end.zone, end.host, end.text)


class LineRun(NamedTuple):
    """Some lines of a piece, from `start` to `end`. `is_wrapped`: they were one line of a log."""

    start: int
    end: int
    is_wrapped: bool


def find_width(piece: bytes) -> int:
    """Return the width at which a text was wrapped, 0 where no line of a log in it was.

    A line was wrapped if the first word of the next one did not fit behind it, and the next one begins as no line of a
    log does.
    """
    lines = piece.split(b"\n")
    width = max(map(len, lines))
    if not NARROWEST <= width <= WIDEST:
        return 0
    return width if any(run.is_wrapped for run in split_runs(piece, width)) else 0


def split_runs(piece: bytes, width: int) -> Iterator[LineRun]:
    """Yield the wrapped lines of a log, and all that stands between them. `width` 0: nothing was wrapped."""
    done = 0
    if width:
        for start, end in _find_wrapped(piece, width):
            if done < start:
                yield LineRun(done, start, False)
            yield LineRun(start, end, True)
            done = end
    if done < len(piece):
        yield LineRun(done, len(piece), False)


def _find_wrapped(piece: bytes, width: int) -> Iterator[tuple[int, int]]:
    begun = -1
    last = b""
    lines = place = 0
    for line in piece.split(b"\n"):
        begins = BEGINS_LINE.match(line) is not None
        goes_on = False
        if begun >= 0 and not begins and lines < MOST_LINES:
            word = _FIRST_WORD.match(line)
            goes_on = word is not None and len(last) + 1 + len(word[1]) > width
        if not goes_on:
            if lines > 1:
                yield begun, place
            begun = place if begins else -1
            lines = 0
        last = line
        lines += 1
        place += len(line) + 1
    if begun >= 0 and lines > 1:
        yield begun, len(piece)


def hold_last_lines(pieces: Iterable[bytes], is_wrapped: bool) -> Iterator[bytes]:
    """Yield a wrapped text in pieces that end before a line of a log; another one as it is."""
    rest = b""
    for piece in pieces:
        if not is_wrapped:
            yield piece
            continue
        whole = rest + piece
        end = _find_last_beginning(whole)
        rest = whole[end:]
        if end:
            yield whole[:end]
    if rest:
        yield rest


def _find_last_beginning(piece: bytes) -> int:
    """Return where the last line of a log begins, the end where none does near it."""
    end = len(piece)
    for _ in range(MOST_LINES):
        start = piece.rfind(b"\n", 0, end - 1) + 1 if end else 0
        if BEGINS_LINE.match(piece, start):
            return start
        end = start
    return len(piece)


def join_lines(lines: Sequence[bytes]) -> Iterator[bytes]:
    """Yield what wrapped lines may have been: cut within a word, and between words. Which of the two cannot be seen."""
    yield b"".join(lines)
    yield b" ".join([lines[0].rstrip(), *(re.sub(rb"^" + _QUOTES, b"", line).rstrip() for line in lines[1:])])

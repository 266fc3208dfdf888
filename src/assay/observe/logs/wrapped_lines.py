"""Finds the lines that a mail or a terminal wrapped at its width, and what each may have been before.

A line was wrapped if the first word of the next one did not fit behind it, and the next one begins as no line of a log
does. Whether it was wrapped between words or within one cannot be seen: both readings are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

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


class LineRun(NamedTuple):
    """Some lines of a piece, from `start` to `end`. `is_wrapped`: they were one line of a log."""

    start: int
    end: int
    is_wrapped: bool


def find_width(piece: bytes) -> int:
    """Return the width at which a text was wrapped, 0 where no line of a log in it was."""
    lines = piece.split(b"\n")
    width = max(map(len, lines))
    if not NARROWEST <= width <= WIDEST:
        return 0
    return width if any(run.is_wrapped for run in split_runs(piece, width)) else 0


def split_runs(piece: bytes, width: int) -> Iterator[LineRun]:
    """Yield the wrapped lines of a log, and all that stands between them. `width` 0: nothing was wrapped."""
    told = 0
    if width:
        for start, end in _find_wrapped(piece, width):
            if told < start:
                yield LineRun(told, start, False)
            yield LineRun(start, end, True)
            told = end
    if told < len(piece):
        yield LineRun(told, len(piece), False)


def _find_wrapped(piece: bytes, width: int) -> Iterator[tuple[int, int]]:
    begun, last, lines, place = -1, b"", 0, 0
    for line in piece.split(b"\n"):
        if BEGINS_LINE.match(line) or not (begun >= 0 and lines < MOST_LINES and _goes_on(last, line, width)):
            if lines > 1:
                yield begun, place
            begun, lines = place if BEGINS_LINE.match(line) else -1, 0
        last, lines, place = line, lines + 1, place + len(line) + 1
    if begun >= 0 and lines > 1:
        yield begun, len(piece)


def _goes_on(last: bytes, line: bytes, width: int) -> bool:
    word = _FIRST_WORD.match(line)
    return word is not None and len(last) + 1 + len(word[1]) > width


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
    """Yield what wrapped lines may have been: cut within a word, and between words."""
    yield b"".join(lines)
    yield b" ".join([lines[0].rstrip(), *(re.sub(rb"^" + _QUOTES, b"", line).rstrip() for line in lines[1:])])

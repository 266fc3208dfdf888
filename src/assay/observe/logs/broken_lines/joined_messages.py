r"""Finds where a line holds several messages: lines that a tool joined by `#012`, `\n`, `<br>`, blanks or nothing.

A line is cut where a line end was written as text, and before a time as only a log has it. A part without a fault
stays with the part that follows it, since it may be that part's envelope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from assay.observe.logs.broken_lines.wrapped_lines import find_width
from assay.observe.logs.line_envelope import CLOCK, DAY, ISO, LEVEL, WEEKDAY, ZONE

LINE_END = (
    r"(?:\\+[nr])+|(?:#01[25])+|</?(?:br|p|div|li|pre|tr|td|th)\b[^<>]{0,80}>"
    r"|[\r\n\v\f\x00\x1c-\x1e\x85\u2028\u2029]+"
)
_KERNEL_TIME = rf"\[ *\d+\.\d{{6}}\]|\[{WEEKDAY} {DAY} {CLOCK} \d{{4}}\]"
_SYSLOG_TIME = rf"(?:{DAY} {CLOCK}(?:\.\d{{1,9}})?|{ISO}(?:{ZONE})?) \S{{1,255}} kernel: "
_TIME = re.sub(r"\?P<\w+>", "?:", rf"(?:kern *: *{LEVEL} *: *)?(?:{_KERNEL_TIME})|{_SYSLOG_TIME}")
_HOST = r"[\w.-]{1,64}: +"
CUT = re.compile(rf"{LINE_END}|(?={_TIME})")
CUT_BEFORE_HOST = re.compile(rf"{LINE_END}|(?=(?<!\S){_HOST}(?:{_TIME}))")
BEGINS_WITH_HOST = re.compile(rf"(?!kernel:){_HOST}(?:{_TIME})")
CELL = re.compile(r"</?t[dh]\b")
_BYTE_SIGNS = {b"\\": rb"\\[nr]", b"#": rb"#01[25]", b"<": rb"<(?:/|br|p>|td|tr|li|div)", b"\0": rb"\0"}
BYTE_SIGNS = {first: re.compile(sign) for first, sign in _BYTE_SIGNS.items()}


_WRAP = rb"[ \t]*\n[ \t>|]*"
WRAPPED = re.compile(
    rb"(NVRM:)" + _WRAP + rb"(?=Xid +\()|(Xid)" + _WRAP + rb"(?=\([^()\n]{4,64}\):)"
    rb"|(Xid \([^()\n]{4,64}\):)" + _WRAP + rb"(?=\d{1,6},)"
)
"""Where a mail or a terminal wrapped the head of an XID over two lines."""
WRAPPED_COLUMNS = 100
"""A wrapped text has no longer line. To look for wrapped heads in every log would cost more than all other searches."""
ENDS_LINE = re.compile(rb"Xid(?: \([^()\n]{4,64}\):)?[ \t]*\n")
ENDS_WITHIN_HEAD = re.compile(rb"(?:NVRM:|Xid|Xid \([^()\n]{4,64}\):)[ \t]*\n\Z")
LONGEST_HEAD = 80


def join_wrapped_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a log in which the head of an XID stands in one line, where lines of no common width were wrapped.

    The first piece shows whether the log is wrapped.
    """
    is_narrow: bool | None = None
    rest = b""
    for read in pieces:
        if is_narrow is None:
            is_narrow = max(map(len, read.split(b"\n"))) <= WRAPPED_COLUMNS and not find_width(read)
        piece = rest + read
        rest = piece[_find_last_line(piece) :] if is_narrow and _ends_within_head(piece) else b""
        piece = piece[: len(piece) - len(rest)]
        if piece:
            yield WRAPPED.sub(_join, piece) if is_narrow and _is_wrapped(piece) else piece
    if rest:
        yield rest


def _ends_within_head(piece: bytes) -> bool:
    return ENDS_WITHIN_HEAD.search(piece, max(0, len(piece) - LONGEST_HEAD)) is not None


def _find_last_line(piece: bytes) -> int:
    return piece.rfind(b"\n", 0, -1) + 1


def _is_wrapped(piece: bytes) -> bool:
    """Whether a line ends next to `Xid`: quick, since most pieces hold few."""
    at = piece.find(b"Xid")
    while at >= 0:
        if ENDS_LINE.match(piece, at) or b"\n" in piece[max(0, at - 6) : at]:
            return True
        at = piece.find(b"Xid", at + 3)
    return False


def _join(found: re.Match[bytes]) -> bytes:
    return (found[1] or found[2] or found[3]) + b" "


def holds_written_line_ends(piece: bytes) -> bool:
    """Whether a line end was written as text in a piece of a log."""
    return any(first in piece and sign.search(piece) for first, sign in BYTE_SIGNS.items())


def may_be_joined(text: str) -> bool:
    """Whether a message may hold a further one: quick, true too often, and false for heads that follow on a blank."""
    return (
        text.find("NVRM: ", 1) > 0
        or "[" in text
        or "\\" in text
        or "#01" in text
        or "</" in text
        or "<br" in text
        or "kernel: " in text
        or text.find("-nvswitch", 20) > 0
        or not text.isprintable()
    )


def split_at_cuts(line: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a line without written line ends, and whether a line ends there, not only a table's cell."""
    start = 0
    cuts = CUT_BEFORE_HOST if BEGINS_WITH_HOST.match(line) else CUT
    for cut in cuts.finditer(line):
        part = line[start : cut.start()]
        yield f"{part} " if cut[0] else part, bool(cut[0]) and not CELL.match(cut[0])
        start = cut.end()
    yield line[start:], True

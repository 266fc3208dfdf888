"""Searches a kernel log as a stream: chunks are searched for what faults begin with; few lines become messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from assay.model.log_message import LineTally, LogMessage
from assay.model.specs.kernel_log_and_xid_patterns import KernelLogMatcher, is_truncated_xid
from assay.observe.logs.log_form_protocol import LogQuery

CHUNK_BYTES = 256 * 1024
MAX_LINE_BYTES = 1024 * 1024  # a longer line is no line of a log
REBOOT_JUMP_S = 10.0  # processors may write a little out of order; a larger jump back is a boot
ReadBytes = Callable[[int], bytes]
ParsedStamp = tuple[float, str]
"""Seconds on the log's clock, and the time as text: ISO 8601, or `boot+12.5s`."""
StampParser = Callable[[str, datetime], ParsedStamp]
"""(a line's stamp, the time when the log was last written) → its time. Raises ValueError or OverflowError."""
_NEWLINE = rb"\n"
_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


@dataclass(frozen=True)
class KernelLogForm:
    """A form of kernel logs, one message a line.

    - `line`: matches a whole line, with the groups `text` and, unless `stamp` is None, `stamp`.
    - `prefix`: a regular expression for what comes right before a message.
    - `first_bytes`: the bytes with which a line may begin, as a set of a regular expression.
    - `stamp`: parses the stamp of a line. `from_boot` says that stamps count from the boot.
    - `unpack`: parses a line in place of `line`, for forms that are no plain text.
    """

    is_bmc_log: ClassVar[bool] = False

    name: str
    line: re.Pattern[bytes]
    prefix: bytes
    first_bytes: bytes
    stamp: StampParser | None = None
    from_boot: bool = False
    unpack: Callable[[bytes, datetime], LogMessage | None] | None = None

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return the share of lines that are of this form."""
        return sum(map(self.matches, sample)) / len(sample)

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, and count all lines."""
        return find_kernel_messages(self, query.matcher, pieces, query.written_at, query.tally)

    def matches(self, line: bytes) -> bool:
        """Return whether a line is of this form."""
        return self.line.match(line) is not None

    def parse_line(self, line: bytes, written_at: datetime) -> LogMessage | None:
        """Return the message of a line, None where the line is not of this form."""
        if self.unpack:
            return self.unpack(line, written_at)
        match = self.line.match(line)
        if match is None:
            return None
        text = _unescape(match["text"])
        if self.stamp is None:
            return LogMessage(text)
        try:
            at, stamp = self.stamp(match["stamp"].decode(), written_at)
        except (ValueError, OverflowError):
            return None
        return LogMessage(text, at, stamp, at if self.from_boot else None)


UNSTAMPED_FORM = KernelLogForm("dmesg -t", re.compile(rb"(?P<text>[^\r\n]*)"), _NEWLINE, rb"\x00-\xff")
"""Messages alone. Any text is of this form, so it is tried last, and only if a message names a fault."""


def read_chunks(read: ReadBytes) -> Iterator[bytes]:
    """Yield the log in pieces that end with a line; the last may lack its newline. Lines that are too long are cut."""
    rest = b""
    while piece := read(CHUNK_BYTES):
        rest += piece
        end = rest.rfind(b"\n") + 1
        if end or len(rest) > MAX_LINE_BYTES:
            end = end or len(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def find_kernel_messages(
    form: KernelLogForm, matcher: KernelLogMatcher, pieces: Iterable[bytes], written_at: datetime, tally: LineTally
) -> Iterator[LogMessage]:
    """Yield the messages of a log that `matcher` may match, and count all lines.

    A line that matches but is not of the log's form becomes a message without a time, so that it is not lost.
    """
    found = _find_messages(form, matcher, pieces, written_at, tally)
    return _join_boots(found) if form.from_boot else found


def _find_messages(
    form: KernelLogForm, matcher: KernelLogMatcher, pieces: Iterable[bytes], written_at: datetime, tally: LineTally
) -> Iterator[LogMessage]:
    search = KernelLineSearch(form, matcher)
    for chunk in pieces:
        tally.lines += chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        foreign = search.find_foreign_lines(chunk)
        tally.unreadable += len(foreign)
        for line in search.find_lines(chunk, foreign):
            message = form.parse_line(line, written_at) or LogMessage(line.decode(errors="replace").strip())
            tally.unreadable += is_truncated_xid(message.text)
            yield message


def _join_boots(messages: Iterable[LogMessage]) -> Iterator[LogMessage]:
    """Let the seconds of a log that counts from the boot go on after each further boot in it."""
    start = last = 0.0
    for message in messages:
        if message.uptime_s is not None:
            start += last if message.uptime_s < last - REBOOT_JUMP_S else 0.0
            last = message.uptime_s
        yield message._replace(at=start + last) if start and message.uptime_s is not None else message


class KernelLineSearch:
    """Finds the lines that a matcher may match, in chunks of a log of one form.

    A fault class with neither `begins` nor `holds` makes this every line.
    """

    def __init__(self, form: KernelLogForm, matcher: KernelLogMatcher) -> None:
        self._heads = re.compile(form.prefix + rb"(?:" + matcher.prefix_regex().encode() + rb")")
        self._words = [word.encode() for word in matcher.holds]
        self._first = [0] if form.prefix == _NEWLINE else []  # no newline comes before the first line
        self._every = bool(matcher.patterns)
        self._start = re.compile(rb"[" + form.first_bytes + rb"\r\n]")
        self._foreign = re.compile(rb"\n[^" + form.first_bytes + rb"\r\n]")

    def find_foreign_lines(self, chunk: bytes) -> list[int]:
        """Return the offsets of all lines of a chunk that do not begin as lines of the form do."""
        first = [] if self._start.match(chunk) else [0]
        return first + [match.end() for match in self._foreign.finditer(chunk)]

    def find_lines(self, chunk: bytes, foreign: list[int]) -> Iterator[bytes]:
        """Yield the lines of a chunk that may match, and the foreign ones, each once and in order."""
        if self._every:
            yield from filter(None, chunk.split(b"\n"))
            return
        end = -1
        for offset in sorted(self._find_offsets(chunk) + foreign):
            if offset > end:
                start = chunk.rfind(b"\n", 0, offset) + 1
                end = chunk.find(b"\n", offset)
                end = len(chunk) if end < 0 else end
                yield chunk[start:end]

    def _find_offsets(self, chunk: bytes) -> list[int]:
        offsets = self._first + [match.end() for match in self._heads.finditer(chunk)]
        for word in self._words:
            offset = chunk.find(word)
            while offset >= 0:
                offsets.append(offset)
                offset = chunk.find(word, offset + 1)
        return offsets


def _unescape(text: bytes) -> str:
    plain = text.decode(errors="replace")
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), plain) if "\\x" in plain else plain

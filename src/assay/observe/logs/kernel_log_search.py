"""A kernel log as a stream: chunks are searched for what faults begin with; only lines of interest become messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from assay.model.log_message import LineTally, LogMessage
from assay.model.specs.kernel_log_patterns import KernelLogMatcher, is_truncated_xid
from assay.observe.logs.log_formats import UNSTAMPED_FORMAT, LogFormat

CHUNK = 256 * 1024
MAX_LINE_BYTES = 1024 * 1024  # bytes of one line; what is longer is no line of a log
REBOOT_JUMP_S = 10.0  # seconds; processors may write a little out of order, but so far back only a boot goes
ReadBytes = Callable[[int], bytes]


def read_chunks(read: ReadBytes) -> Iterator[bytes]:
    """Yield the log in pieces that end with a line; the last may lack its newline. A line too long is cut."""
    rest = b""
    while piece := read(CHUNK):
        rest += piece
        end = rest.rfind(b"\n") + 1
        if end or len(rest) > MAX_LINE_BYTES:
            end = end or len(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


class KernelLineSearch:
    """What is looked for in a log of one form. A class with neither `begins` nor `holds` makes it every line."""

    def __init__(self, form: LogFormat, recogniser: KernelLogMatcher) -> None:
        self._heads = re.compile(form.prefix + rb"(?:" + recogniser.prefix_regex().encode() + rb")")
        self._words = [word.encode() for word in recogniser.holds]
        self._first = [0] if form is UNSTAMPED_FORMAT else []  # no newline stands before it
        self._every = bool(recogniser.patterns)
        self._start = re.compile(rb"[" + form.first_bytes + rb"\r\n]")
        self._strange = re.compile(rb"\n[^" + form.first_bytes + rb"\r\n]")

    def find_foreign_lines(self, chunk: bytes) -> list[int]:
        """Return the places of all lines of a chunk that do not begin as lines of the form do."""
        first = [] if self._start.match(chunk) else [0]
        return first + [match.end() for match in self._strange.finditer(chunk)]

    def find_lines(self, chunk: bytes, strange: list[int]) -> Iterator[bytes]:
        """Yield the lines of a chunk that may be of interest, the strange ones too, each once, in their order."""
        if self._every:
            yield from filter(None, chunk.split(b"\n"))
            return
        end = -1
        for place in sorted(self._places(chunk) + strange):
            if place > end:
                start = chunk.rfind(b"\n", 0, place) + 1
                end = chunk.find(b"\n", place)
                end = len(chunk) if end < 0 else end
                yield chunk[start:end]

    def _places(self, chunk: bytes) -> list[int]:
        found = self._first + [match.end() for match in self._heads.finditer(chunk)]
        for word in self._words:
            place = chunk.find(word)
            while place >= 0:
                found.append(place)
                place = chunk.find(word, place + 1)
        return found


def find_kernel_messages(
    form: LogFormat, recogniser: KernelLogMatcher, parts: Iterable[bytes], before: datetime, tally: LineTally
) -> Iterator[LogMessage]:
    """Yield the messages of a log that may be of interest, and count all lines.

    A line of interest that is not of the log's form is a message without a time: it is not lost for that.
    """
    found = _find_messages(form, recogniser, parts, before, tally)
    return _on_one_clock(found) if form.from_boot else found


def _find_messages(
    form: LogFormat, recogniser: KernelLogMatcher, parts: Iterable[bytes], before: datetime, tally: LineTally
) -> Iterator[LogMessage]:
    sought = KernelLineSearch(form, recogniser)
    for chunk in parts:
        tally.lines += chunk.count(b"\n") + (not chunk.endswith(b"\n"))
        strange = sought.find_foreign_lines(chunk)
        tally.unreadable += len(strange)
        for line in sought.find_lines(chunk, strange):
            message = form.parse_line(line, before) or LogMessage(line.decode(errors="replace").strip())
            tally.unreadable += is_truncated_xid(message.text)
            yield message


def _on_one_clock(found: Iterable[LogMessage]) -> Iterator[LogMessage]:
    """Let the seconds of a log that counts from the boot go on after each further boot in it."""
    began = last = 0.0
    for message in found:
        if message.uptime_s is not None:
            began += last if message.uptime_s < last - REBOOT_JUMP_S else 0.0
            last = message.uptime_s
        yield message._replace(at=began + last) if began and message.uptime_s is not None else message

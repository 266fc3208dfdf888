"""The forms in which kernel messages are written down: how a line begins, what stands before the message, its time.

The times that logs are stamped with. Each reader returns seconds on one clock, and the time in ISO 8601.

A log that names no zone is taken as it stands, and its times are written without one. RFC 3164 names no year: that of
`before` is taken, or the one before it where the day would lie after `before`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from assay.model.log_message import LogMessage, replace_unencodable

ParsedStamp = tuple[float, str]
StampParser = Callable[[str, datetime], ParsedStamp]
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def parse_seconds_since_boot(text: str, _before: datetime) -> ParsedStamp:
    """`1234.567890`, seconds since the boot."""
    return float(text), f"boot+{text.strip()}s"


def parse_microseconds_since_boot(text: str, _before: datetime) -> ParsedStamp:
    """`1234567890`, as /dev/kmsg has it."""
    seconds = int(text) / 1e6
    return seconds, f"boot+{seconds:.6f}s"


def parse_ctime(text: str, _before: datetime) -> ParsedStamp:
    """`Sun Feb 23 16:24:18 2025`, as dmesg -T has it."""
    _, month, day, clock, year = text.split()
    return _to_stamp(_at(int(year), month, int(day), clock))


def parse_syslog_time(text: str, before: datetime) -> ParsedStamp:
    """`Nov 21 18:00:00`, RFC 3164 and journalctl's own."""
    month, day, clock = text.split()
    for year in range(before.year, before.year - 9, -1):
        try:
            at = _at(year, month, int(day), clock)
        except ValueError:
            continue  # the 29th of February
        if at <= before.replace(tzinfo=None) + timedelta(days=1):
            return _to_stamp(at)
    raise ValueError(f"no such day: {text}")


@functools.lru_cache(maxsize=4096)
def parse_iso_time(text: str, _before: datetime) -> ParsedStamp:
    """`2026-11-21T18:00:00.123456+00:00`, RFC 5424, and with a comma or a zone without a colon."""
    return _to_stamp(datetime.fromisoformat(text.replace(",", ".")))


def parse_epoch_microseconds(text: str, _before: datetime) -> ParsedStamp:
    """`1700000000123456`, as the journal has it."""
    return _to_stamp(datetime.fromtimestamp(int(text) / 1e6, UTC))


@functools.lru_cache(maxsize=4096)
def _at(year: int, month: str, day: int, clock: str) -> datetime:
    hour, minute, second = clock.split(":")
    return datetime(year, MONTHS.index(month) + 1, day, int(hour), int(minute), int(second))  # noqa: DTZ001 — none is named


def _to_stamp(at: datetime) -> ParsedStamp:
    seconds = at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    return seconds, at.isoformat()


PRINTK = rb"(?:\[ *\d+\.\d+\] ?)?(?:\[ *[TC]\d+\] ?)?"  # journals and syslogs may keep the kernel's own stamp
MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY = MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
FRACTION = rb"(?:\.\d+)?"
ZONE = rb"(?:Z|[+-]\d\d:?\d\d)"


@dataclass(frozen=True)
class LogFormat:
    """One form. `line`: a whole line, with the groups `stamp` (if any) and `text`. `lead`: what stands right before a
    message. `starts`: the bytes with which a line may begin, as a set of a regular expression.
    """  # noqa: D205

    name: str
    line: re.Pattern[bytes]
    prefix: bytes
    first_bytes: bytes
    stamp: StampParser | None = None
    from_boot: bool = False
    unpack: Callable[[bytes, datetime], LogMessage | None] | None = None

    def parse_line(self, line: bytes, before: datetime) -> LogMessage | None:
        """Return what a line says, None where it is none of this form. `before`: when the log was written at last."""
        if self.unpack:
            return self.unpack(line, before)
        match = self.line.match(line)
        if match is None:
            return None
        text = _unescape(match["text"])
        if self.stamp is None:
            return LogMessage(text)
        try:
            at, stamp = self.stamp(match["stamp"].decode(), before)
        except (ValueError, OverflowError):
            return None
        return LogMessage(text, at, stamp, at if self.from_boot else None)

    def matches(self, line: bytes) -> bool:
        """Whether a line is of this form."""
        return self.line.match(line) is not None


def _unescape(text: bytes) -> str:
    plain = text.decode(errors="replace")
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), plain) if "\\x" in plain else plain


_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


def _parse_journal_entry(line: bytes, before: datetime) -> LogMessage | None:
    """Read one entry of `journalctl -o json`; a message with odd bytes is a list of numbers."""
    try:
        entry = json.loads(line)
        said, micros = entry["MESSAGE"], entry.get("__REALTIME_TIMESTAMP")
        text = bytes(said).decode(errors="replace") if isinstance(said, list) else replace_unencodable(said)
        at, stamp = parse_epoch_microseconds(micros, before) if micros else (None, None)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError, RecursionError):
        return None
    return LogMessage(text, at, stamp)


def _log_format(
    name: str, before_text: bytes, lead: bytes, starts: bytes, stamp: StampParser, from_boot: bool = False
) -> LogFormat:
    return LogFormat(name, re.compile(before_text + rb"(?P<text>[^\r\n]*)"), lead, starts, stamp, from_boot)


LOG_FORMATS = (
    _log_format(
        "/dev/kmsg",
        rb"\d+,\d+,(?P<stamp>\d+),[^;\n]*;",
        rb";",
        rb"\d ",
        parse_microseconds_since_boot,
        from_boot=True,
    ),
    _log_format(
        "dmesg",
        rb"(?:<\d+>|\w+ *: *\w+ *: )?\[ *(?P<stamp>\d+\.\d+)\](?:\[ *[TC]\d+\])? ?",
        rb"\] ",
        rb"\[<a-z",
        parse_seconds_since_boot,
        from_boot=True,
    ),
    _log_format(
        "dmesg -T",
        rb"(?:<\d+>|\w+ *: *\w+ *: )?\[(?P<stamp>\w{3} " + DAY + rb" \d{4})\](?:\[ *[TC]\d+\])? ?",
        rb"\] ",
        rb"\[<a-z",
        parse_ctime,
    ),
    _log_format(
        "dmesg --time-format iso", rb"(?P<stamp>" + ISO + rb",\d+" + ZONE + rb") ", rb"\d ", rb"\d", parse_iso_time
    ),
    _log_format(
        "RFC 5424",
        rb"<\d+>1 (?P<stamp>"
        + ISO
        + rb"(?:\.\d+)?"
        + ZONE
        + rb")(?: \S+){4} (?:-|\[[^\]\n]*\]) (?:\xef\xbb\xbf)?"
        + PRINTK,
        rb"[-\]\xbf] ?",
        rb"<",
        parse_iso_time,
    ),
    _log_format(
        "journalctl -o short-iso",
        rb"(?P<stamp>" + ISO + FRACTION + ZONE + rb") \S+ [^\s:\[]+(?:\[\d+\])?: " + PRINTK,
        rb"[:\]] ",
        rb"\d",
        parse_iso_time,
    ),
    _log_format(
        "syslog",
        rb"(?:<\d+>)?(?P<stamp>" + DAY + rb")(?:\.\d+)? \S+ [^\s:\[]+(?:\[\d+\])?: " + PRINTK,
        rb"[:\]] ",
        rb"A-Z<",
        parse_syslog_time,
    ),
    LogFormat(
        "journalctl -o json", re.compile(rb'\{.*"MESSAGE"'), rb'"MESSAGE" ?: ?"', rb"{", unpack=_parse_journal_entry
    ),
)
UNSTAMPED_FORMAT = LogFormat("dmesg -t", re.compile(rb"(?P<text>[^\r\n]*)"), rb"\n", rb"\x00-\xff")
"""Messages alone. Any text is of this form, so it is tried last, and only where a line is one of interest."""


def detect_log_format(lines: list[bytes]) -> LogFormat | None:
    """Return the form that most of these lines have, None where none of them has any."""
    fitting = [(sum(map(form.matches, lines)), -number) for number, form in enumerate(LOG_FORMATS)]
    most, number = max(fitting)
    return LOG_FORMATS[-number] if most else None

"""The forms in which kernel messages are written down: how a line begins, and how it stamps the time.

A log that names no zone is read as it stands, and its times are written without one. RFC 3164 names no year: the year
is the one in which the log was last written, or an earlier one where the day would be later than that.
"""

from __future__ import annotations

import functools
import json
import re
from datetime import UTC, datetime, timedelta

from assay.model.log_message import LogMessage, replace_unencodable
from assay.observe.logs.kernel_log_search import KernelLogForm, ParsedStamp, StampParser

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
PRINTK = rb"(?:\[ *\d+\.\d+\] ?)?(?:\[ *[TC]\d+\] ?)?"  # journals and syslogs may have the kernel's own stamp too
MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY = MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
FRACTION = rb"(?:\.\d+)?"
ZONE = rb"(?:Z|[+-]\d\d:?\d\d)"
LEVEL = rb"(?:<\d+>|\w+ *: *\w+ *: )?"
THREAD = rb"(?:\[ *[TC]\d+\])? ?"
TAG = rb" \S+ [^\s:\[]+(?:\[\d+\])?: "
HEADER_5424 = rb"(?: \S+){4} (?:-|\[[^\]\n]*\]) (?:\xef\xbb\xbf)?"


def parse_seconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234.567890`, seconds since the boot."""
    return float(text), f"boot+{text.strip()}s"


def parse_microseconds_since_boot(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1234567890`, the form in /dev/kmsg."""
    seconds = int(text) / 1e6
    return seconds, f"boot+{seconds:.6f}s"


def parse_ctime(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `Sun Feb 23 16:24:18 2025`, the form of dmesg -T."""
    _, month, day, clock, year = text.split()
    return _to_stamp(_at(int(year), month, int(day), clock))


def parse_syslog_time(text: str, written_at: datetime) -> ParsedStamp:
    """Parse `Nov 21 18:00:00`, the form of RFC 3164 and of journalctl by default."""
    month, day, clock = text.split()
    for year in range(written_at.year, written_at.year - 9, -1):
        try:
            at = _at(year, month, int(day), clock)
        except ValueError:
            continue  # 29 February
        if at <= written_at.replace(tzinfo=None) + timedelta(days=1):
            return _to_stamp(at)
    raise ValueError(f"no such day: {text}")


@functools.lru_cache(maxsize=4096)
def parse_iso_time(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `2026-11-21T18:00:00.123456+00:00` (RFC 5424), also with a comma or with a zone without a colon."""
    return _to_stamp(datetime.fromisoformat(text.replace(",", ".")))


def parse_epoch_microseconds(text: str, _written_at: datetime) -> ParsedStamp:
    """Parse `1700000000123456`, the form in the journal."""
    return _to_stamp(datetime.fromtimestamp(int(text) / 1e6, UTC))


@functools.lru_cache(maxsize=4096)
def _at(year: int, month: str, day: int, clock: str) -> datetime:
    hour, minute, second = clock.split(":")
    return datetime(year, MONTHS.index(month) + 1, day, int(hour), int(minute), int(second))  # noqa: DTZ001 — no zone is named


def _to_stamp(at: datetime) -> ParsedStamp:
    seconds = at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    return seconds, at.isoformat()


def _parse_journal_entry(line: bytes, written_at: datetime) -> LogMessage | None:
    """Parse one entry of `journalctl -o json`. A message with odd bytes is a list of numbers."""
    try:
        entry = json.loads(line)
        content, micros = entry["MESSAGE"], entry.get("__REALTIME_TIMESTAMP")
        text = bytes(content).decode(errors="replace") if isinstance(content, list) else replace_unencodable(content)
        at, stamp = parse_epoch_microseconds(micros, written_at) if micros else (None, None)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError, RecursionError):
        return None
    return LogMessage(text, at, stamp)


def _text_form(
    name: str, header: bytes, prefix: bytes, first_bytes: bytes, stamp: StampParser, from_boot: bool = False
) -> KernelLogForm:
    """Return a form whose lines are a header with the group `stamp`, and the message."""
    return KernelLogForm(name, re.compile(header + rb"(?P<text>[^\r\n]*)"), prefix, first_bytes, stamp, from_boot)


KMSG = _text_form(
    "/dev/kmsg", rb"\d+,\d+,(?P<stamp>\d+),[^;\n]*;", rb";", rb"\d ", parse_microseconds_since_boot, from_boot=True
)
DMESG = _text_form(
    "dmesg",
    LEVEL + rb"\[ *(?P<stamp>\d+\.\d+)\]" + THREAD,
    rb"\] ",
    rb"\[<a-z",
    parse_seconds_since_boot,
    from_boot=True,
)
DMESG_CTIME = _text_form(
    "dmesg -T", LEVEL + rb"\[(?P<stamp>\w{3} " + DAY + rb" \d{4})\]" + THREAD, rb"\] ", rb"\[<a-z", parse_ctime
)
DMESG_ISO = _text_form(
    "dmesg --time-format iso", rb"(?P<stamp>" + ISO + rb",\d+" + ZONE + rb") ", rb"\d ", rb"\d", parse_iso_time
)
SYSLOG_5424 = _text_form(
    "RFC 5424",
    rb"<\d+>1 (?P<stamp>" + ISO + FRACTION + ZONE + rb")" + HEADER_5424 + PRINTK,
    rb"[-\]\xbf] ?",
    rb"<",
    parse_iso_time,
)
JOURNAL_SHORT_ISO = _text_form(
    "journalctl -o short-iso",
    rb"(?P<stamp>" + ISO + FRACTION + ZONE + rb")" + TAG + PRINTK,
    rb"[:\]] ",
    rb"\d",
    parse_iso_time,
)
SYSLOG = _text_form(
    "syslog", rb"(?:<\d+>)?(?P<stamp>" + DAY + rb")(?:\.\d+)?" + TAG + PRINTK, rb"[:\]] ", rb"A-Z<", parse_syslog_time
)
JOURNAL_JSON = KernelLogForm(
    "journalctl -o json", re.compile(rb'\{.*"MESSAGE"'), rb'"MESSAGE" ?: ?"', rb"{", unpack=_parse_journal_entry
)

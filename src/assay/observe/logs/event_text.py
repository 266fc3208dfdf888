"""Reads an event log as text: finds its form by its own heads, reads its entries, and the order of their dates.

Times stand there in any order of day, month and year, by a clock of 12 or 24 hours: ipmitool since 1.8.19 prints them
as its user's locale has them. `21.11.2026` is German, `2026年11月21日` Japanese; `05/06/2026` is American or British,
which only the other entries of the log can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import NamedTuple

from assay.model.log_message import LineTally, LogMessage
from assay.model.text.lists import NODE_SET
from assay.observe.logs.event_forms import RECORD_FORMS, SelTable, TextEntry, TextForm, UnreadLine
from assay.observe.logs.line_envelope import MONTHS, ZONE_HOURS

NAMED_MONTH = re.compile(rf"\b({'|'.join(MONTHS)})[a-z]*\b", re.IGNORECASE)
NUMBERS = re.compile(r"\d+")
CLOCK = re.compile(r"(\d{1,2})\D{1,3}(\d{2})(?:\D{1,3}(\d{2})(?:\.\d+)?)?")
AFTERNOON = re.compile(r"p\.?m\b|午後|오후|下午|μμ", re.IGNORECASE)
MORNING = re.compile(r"a\.?m\b|午前|오전|上午|πμ", re.IGNORECASE)
OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)\b")
ZONE = re.compile(r"\b[A-Z]{3,4}\b")
EARLIEST_YEAR = 1970
CENTURY = 2000
PARTS_OF_A_DATE = 3
TEXT_FORMS: Sequence[TextForm] = (
    SelTable("ipmitool sel list, ipmi-sel", "|"),
    SelTable("ipmitool -c sel list, ipmi-sel --comma-separated-output", ","),
    *RECORD_FORMS,
)
MIN_SHARE = 0.5
SAMPLE_LINES = 200
HOST = re.compile(rf"(?P<host>{NODE_SET}):(?: (?P<line>.*)|$)", re.DOTALL)
"""How pdsh, clush and FreeIPMI begin the lines of several hosts."""


class LogTime(NamedTuple):
    """When an entry was made: as text, and in seconds since 1970, None where only the day is known."""

    stamp: str
    at: float | None


def is_day_first(days: Sequence[str]) -> bool:
    """Whether the day stands before the month in the dates with slashes of a log. False where nothing tells it.

    A number above 12 tells it, else the order of the entries: a log grows by time.
    """
    pairs = []
    for day in days:
        numbers = NUMBERS.findall(day)
        if day.count("/") == PARTS_OF_A_DATE - 1 == len(numbers) - 1 and len(numbers[0]) < 4:  # no year comes first
            pairs.append((int(numbers[0]), int(numbers[1]), int(numbers[2])))
    if any(first > 12 for first, _, _ in pairs) != any(second > 12 for _, second, _ in pairs):
        return any(first > 12 for first, _, _ in pairs)
    by_month = [(year, first, second) for first, second, year in pairs]
    by_day = [(year, second, first) for first, second, year in pairs]
    return by_month != sorted(by_month) and by_day == sorted(by_day)


def parse_time(day: str, clock: str, day_first: bool) -> LogTime | None:
    """Return a time as printed, None where it makes no sense. Without a zone that is known, it has none."""
    time_of_day = CLOCK.search(clock)
    try:
        parsed = _parse_date(day, day_first)
        if time_of_day is None:
            return LogTime(parsed.isoformat(), None)
        zone = _find_zone(clock[time_of_day.end() :])
        at = datetime.combine(parsed, _parse_clock(clock, time_of_day), zone or UTC)
    except ValueError:
        return None
    return LogTime(at.replace(tzinfo=zone).isoformat(), at.timestamp())


def _parse_date(text: str, day_first: bool) -> date:
    """Raises ValueError for what is no date."""
    numbers = [int(number) for number in NUMBERS.findall(text)]
    if named := NAMED_MONTH.search(text):
        first, second = numbers
        year, day = (first, second) if first > 31 else (second, first)
        return date(_full_year(year), MONTHS.index(named[1].capitalize()) + 1, day)
    first, second, third = numbers
    if first > 31:
        return date(_full_year(first), second, third)
    day, month = (first, second) if day_first or "/" not in text else (second, first)
    return date(_full_year(third), month, day)


def _full_year(year: int) -> int:
    year += CENTURY if year < 100 else 0
    if not EARLIEST_YEAR <= year < CENTURY + 100:
        raise ValueError(f"no year of a log: {year}")
    return year


def _parse_clock(clock: str, time_of_day: re.Match[str]) -> time:
    """Raises ValueError for what is no time of day. A leap second is the one before it."""
    hour, minute, second = int(time_of_day[1]), int(time_of_day[2]), int(time_of_day[3] or 0)
    is_afternoon = AFTERNOON.search(clock)
    is_morning = MORNING.search(clock)
    if is_afternoon or is_morning:
        if not 1 <= hour <= 12:
            raise ValueError(f"no hour of 12: {clock}")
        hour = hour % 12 + (12 if is_afternoon else 0)
    return time(hour, minute, 59 if second == 60 else second)


def _find_zone(rest: str) -> timezone | None:
    if offset := OFFSET.search(rest):
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-span if offset[1] == "-" else span) if span < timedelta(hours=15) else None
    named = ZONE.search(rest)
    hours = {**ZONE_HOURS, "UTC": 0, "GMT": 0}.get(named[0]) if named else None
    return None if hours is None else timezone(timedelta(hours=hours))


def find_text_form(sample: Sequence[str]) -> tuple[TextForm | None, float]:
    """Return the form of an event log by its first lines, and their share that is of it. None below one half."""
    lines = [line for line in sample if line.strip()]
    form, share = _find_form(lines)
    return (form, share) if form else _find_form([line for _, line in _split_hosts(lines)])


def _find_form(lines: Sequence[str]) -> tuple[TextForm | None, float]:
    if not lines:
        return None, 0.0
    shares = [form.counts_lines(lines) / len(lines) for form in TEXT_FORMS]
    share = max(shares)
    return (TEXT_FORMS[shares.index(share)], share) if share >= MIN_SHARE else (None, 0.0)


def read_event_text(lines: Iterable[str], tally: LineTally) -> Iterator[tuple[str, LogMessage]]:
    """Yield the id and message of each entry that reports a problem, the oldest first, and count all lines.

    A last line without its end is one that was cut.

    Of several hosts, one after the other. An entry that cannot be read is noted in `tally` as what could not be
    counted. A log of no form yields nothing.
    """
    every = [line for line in lines if line.strip()]
    tally.lines += len(every)
    form, by_host = group_by_host(every)
    if form is not None:
        for host, own in by_host.items():
            yield from _read_host(host, own, form, tally)


def group_by_host(lines: Sequence[str]) -> tuple[TextForm | None, dict[str, list[str]]]:
    """Return the form of an event log, and its lines by the host that stands before each, "" for none."""
    form, _ = _find_form(lines[:SAMPLE_LINES])
    if form is not None:
        return form, {"": list(lines)}
    by_host: dict[str, list[str]] = {}
    for host, line in _split_hosts(lines):
        by_host.setdefault(host, []).append(line)
    return _find_form([line for _, line in _split_hosts(lines[:SAMPLE_LINES])])[0], by_host


def _split_hosts(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the host that stands before each line, "" for none, and the line without it, unless that is blank."""
    for line in lines:
        match = HOST.match(line)
        host, own = (match["host"], match["line"] or "") if match else ("", line)
        if own.strip():
            yield host, own


def _read_host(host: str, lines: Sequence[str], form: TextForm, tally: LineTally) -> Iterator[tuple[str, LogMessage]]:
    read = list(form.read_entries(lines))
    day_first = is_day_first([entry.date for entry in read if isinstance(entry, TextEntry) and entry.date])
    for unread in (entry for entry in read if isinstance(entry, UnreadLine)):
        (tally.note_uncounted if unread.is_entry else tally.note_unread)(unread.line)
    problems = [entry for entry in read if isinstance(entry, TextEntry) and not entry.is_over]
    messages = [(entry.ident, _make_message(entry, day_first)._replace(host=host)) for entry in problems]
    times = [message.at for _, message in messages if message.at is not None]
    yield from reversed(messages) if times and times[0] > times[-1] and times == sorted(times)[::-1] else messages


def _make_message(entry: TextEntry, day_first: bool) -> LogMessage:
    """Return the message of an entry. A time that makes no sense is told as it is printed."""
    time = parse_time(entry.date, entry.clock, day_first) if entry.date else None
    at, stamp = (time.at, time.stamp) if time else (None, f"{entry.date} {entry.clock}".strip() or None)
    message = LogMessage(entry.text, at, stamp, part=entry.part, message_id=entry.message_id)
    return message._replace(severity=entry.severity, is_cut=entry.is_cut)

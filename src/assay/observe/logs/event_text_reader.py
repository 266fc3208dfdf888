"""Reads an event log as text: finds its form by its own heads, reads its entries, and the order of their dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.model.log_message import LineTally, LogMessage
from assay.model.text.node_sets import NODE_SET
from assay.observe.logs.bmc_clock import is_day_first, parse_time
from assay.observe.logs.event_records import RECORD_FORMS
from assay.observe.logs.sel_tables import LegacySelTable, SelTable
from assay.observe.logs.text_entry import TextEntry, TextForm, UnreadLine

TEXT_FORMS: Sequence[TextForm] = (
    SelTable("ipmitool sel list, ipmi-sel", "|"),
    SelTable("ipmitool -c sel list, ipmi-sel --comma-separated-output", ","),
    LegacySelTable(),
    *RECORD_FORMS,
)
MIN_SHARE = 0.5
SAMPLE_LINES = 200
HOST = re.compile(rf"(?P<host>{NODE_SET}):(?: (?P<line>.*)|$)", re.DOTALL)
"""How pdsh, clush and FreeIPMI begin the lines of several hosts."""


def find_text_form(sample: Sequence[str]) -> tuple[TextForm | None, float]:
    """Return the form of an event log by its first lines, and their share that is of it. None below one half."""
    lines = [line for line in sample if line.strip()]
    form, share = _find_form(lines)
    return (form, share) if form else _find_form([line for _, line in _split_hosts(lines)])


def _find_form(lines: Sequence[str]) -> tuple[TextForm | None, float]:
    if not lines:
        return None, 0.0
    share, form = max(((form.counts_lines(lines) / len(lines), form) for form in TEXT_FORMS), key=lambda one: one[0])
    return (form, share) if share >= MIN_SHARE else (None, 0.0)


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
        found = HOST.match(line)
        host, own = (found["host"], found["line"] or "") if found else ("", line)
        if own.strip():
            yield host, own


def _read_host(host: str, lines: Sequence[str], form: TextForm, tally: LineTally) -> Iterator[tuple[str, LogMessage]]:
    read = list(form.read_entries(lines))
    day_first = is_day_first([entry.date for entry in read if isinstance(entry, TextEntry) and entry.date])
    for unread in (one for one in read if isinstance(one, UnreadLine)):
        (tally.note_uncounted if unread.is_entry else tally.note_unread)(unread.line)
    problems = [one for one in read if isinstance(one, TextEntry) and not one.is_over]
    messages = [(entry.ident, _make_message(entry, day_first)._replace(host=host)) for entry in problems]
    times = [message.at for _, message in messages if message.at is not None]
    yield from reversed(messages) if times and times[0] > times[-1] and times == sorted(times)[::-1] else messages


def _make_message(entry: TextEntry, day_first: bool) -> LogMessage:
    """Return the message of an entry. A time that makes no sense is told as it is printed."""
    time = parse_time(entry.date, entry.clock, day_first) if entry.date else None
    at, stamp = (time.at, time.stamp) if time else (None, f"{entry.date} {entry.clock}".strip() or None)
    message = LogMessage(entry.text, at, stamp, part=entry.part, message_id=entry.message_id)
    return message._replace(severity=entry.severity, is_cut=entry.is_cut)

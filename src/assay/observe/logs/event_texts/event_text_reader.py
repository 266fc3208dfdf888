"""Reads an event log as text: finds its form by its own heads, reads its entries, and the order of their dates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from assay.model.log_message import LineTally, LogMessage
from assay.observe.logs.event_texts.bmc_clock import is_day_first, parse_time
from assay.observe.logs.event_texts.event_records import RECORD_FORMS
from assay.observe.logs.event_texts.iml_documents import HplogForm, RibclForm
from assay.observe.logs.event_texts.sel_tables import LegacySelTable, SelTable
from assay.observe.logs.event_texts.text_entry import TextEntry, TextForm, UnreadLine

TEXT_FORMS: Sequence[TextForm] = (
    SelTable("ipmitool sel list, ipmi-sel", "|"),
    SelTable("ipmitool -c sel list, ipmi-sel --comma-separated-output", ","),
    LegacySelTable(),
    *RECORD_FORMS,
    RibclForm(),
    HplogForm(),
)
MIN_SHARE = 0.5
SAMPLE_LINES = 200


def find_text_form(sample: Sequence[str]) -> tuple[TextForm | None, float]:
    """Return the form of an event log by its first lines, and their share that is of it. None below one half."""
    lines = [line for line in sample if line.strip()]
    if not lines:
        return None, 0.0
    share, form = max(((form.counts_lines(lines) / len(lines), form) for form in TEXT_FORMS), key=lambda one: one[0])
    return (form, share) if share > MIN_SHARE else (None, 0.0)


def read_event_text(lines: Iterable[str], tally: LineTally) -> Iterator[tuple[str, LogMessage]]:
    """Yield the id and message of each entry that reports a problem, the oldest first, and count all lines.

    An entry that cannot be read is noted in `tally` as what could not be counted. A log of no form yields nothing.
    """
    every = [line for line in lines if line.strip()]
    form, _ = find_text_form(every[:SAMPLE_LINES])
    if form is None:
        return
    read = list(form.read_entries(every))
    day_first = is_day_first([entry.date for entry in read if isinstance(entry, TextEntry) and entry.date])
    tally.lines += len(every)
    for unread in (one for one in read if isinstance(one, UnreadLine)):
        (tally.note_uncounted if unread.is_entry else tally.note_unread)(unread.line)
    problems = [one for one in read if isinstance(one, TextEntry) and not one.is_over]
    messages = [(entry.ident, _make_message(entry, day_first)) for entry in problems]
    times = [message.at for _, message in messages if message.at is not None]
    yield from reversed(messages) if times and times[0] > times[-1] and times == sorted(times)[::-1] else messages


def _make_message(entry: TextEntry, day_first: bool) -> LogMessage:
    """Return the message of an entry. A time that makes no sense is told as it is printed."""
    time = parse_time(entry.date, entry.clock, day_first) if entry.date else None
    at, stamp = (time.at, time.stamp) if time else (None, f"{entry.date} {entry.clock}".strip() or None)
    return LogMessage(entry.text, at, stamp, part=entry.part, message_id=entry.message_id, severity=entry.severity)

"""Event logs as CSV, as the web pages of iDRAC, iLO, XCC and Supermicro's BMC export them: columns by name.

Commas part the columns, semicolons where a spreadsheet saved them in Europe, or tabs where somebody copied its cells.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence

from assay.observe.logs.event_texts.event_records import split_time
from assay.observe.logs.event_texts.text_entry import LINE_ENDS, TextEntry, UnreadLine, join_words

TEXTS = ("message", "summary", "description", "event", "event description", "details")
SEVERITIES = ("severity", "event severity", "level", "sev", "priority", "type")
LOG_SERVICES_TEXT = "message"
WHOLE_TIMES = (
    *("date and time", "date/time", "last update", "timestamp", "created", "event timestamp", "initial update"),
    *("date", "time"),
)
PARTS = ("sensor", "sensor name", "component", "fqdd", "source", "subsystem")
MESSAGE_IDS = ("message id", "messageid", "common id", "event id")
OWN_COLUMNS = {
    *("message id", "messageid", "common id", "event id", "sensor", "sensor name", "sensor type", "sensor number"),
    *("class", "last update", "initial update", "summary", "fqdd", "component", "subsystem", "generator id"),
}
"""Columns by which a table is that of a BMC, not of a log service: one of these must be there."""
FEWEST_COLUMNS = 4
DELIMITERS = (",", ";", "\t")


class EventCsv:
    """A table whose first line names a severity, a text, a time, and what only a BMC names."""

    name = "CSV of a BMC's web page"

    def counts_lines(self, sample: Sequence[str]) -> int:
        """Return the number of lines if the first names such columns, else 0."""
        return 0 if find_event_delimiter(sample[0]) is None else len(sample)

    def read_entries(self, lines: Iterable[str]) -> Iterator[TextEntry | UnreadLine]:
        """Yield the entries. One with other columns than the first line names is a line that could not be read."""
        every = list(lines)
        delimiter = find_event_delimiter(every[0]) or DELIMITERS[0]
        columns = read_columns(every[0], delimiter)
        rows = csv.reader(every[1:], delimiter=delimiter)
        for left, cells in zip(range(len(every) - 1, 0, -1), rows, strict=False):
            if len(cells) != len(columns):
                yield UnreadLine(delimiter.join(cells), is_entry=True)
                continue
            is_cut = left == 1 and not every[-1].endswith((*LINE_ENDS, '"'))
            yield _read_entry(dict(zip(columns, map(str.strip, cells), strict=True)))._replace(is_cut=is_cut)


def find_event_delimiter(line: str) -> str | None:
    """Return what parts the columns of an event log in the line that names them; None for another line."""
    return next((one for one in DELIMITERS if one in line and _are_of_events(set(read_columns(line, one)))), None)


def _are_of_events(columns: set[str]) -> bool:
    texts = TEXTS if "severity" in columns else [text for text in TEXTS if text != LOG_SERVICES_TEXT]
    is_log = not any(map(columns.isdisjoint, (SEVERITIES, texts, WHOLE_TIMES)))
    return is_log and len(columns) >= FEWEST_COLUMNS and not columns.isdisjoint(OWN_COLUMNS)


def read_columns(line: str, delimiter: str) -> list[str]:
    """Return the names of the columns in small letters."""
    return [cell.strip().lower() for cell in split_cells(line.removeprefix("\ufeff"), delimiter)]


def split_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line."""
    try:
        return next(csv.reader([line.strip(" \r\n")], delimiter=delimiter), [])
    except csv.Error:
        return [line]


def _read_entry(fields: Mapping[str, str]) -> TextEntry:
    if fields.get("date") and fields.get("time"):
        date, clock = fields["date"], fields["time"]
    else:
        date, clock = split_time(_find(fields, WHOLE_TIMES))
    part = _find(fields, PARTS)
    ident = _find(fields, ("index", "id", "record", "#", "no."))
    text = join_words(*(name for name in (fields.get("class", ""), part) if name), _find(fields, TEXTS))
    entry = TextEntry.with_severity(_find(fields, SEVERITIES), ident, text, date, clock)
    is_over = entry.is_over or any(value.lower().startswith("deassert") for value in fields.values())
    return entry._replace(part=part, message_id=_find(fields, MESSAGE_IDS), is_over=is_over)


def _find(fields: Mapping[str, str], names: Sequence[str]) -> str:
    return next((fields[name] for name in names if fields.get(name)), "")

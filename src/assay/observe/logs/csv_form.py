"""Kernel lines in a table, as Splunk and Datadog export them: a first line that names the columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from assay.model.log_message import LogMessage
from assay.observe.logs.event_texts.event_csv import DELIMITERS, find_event_delimiter, split_cells
from assay.observe.logs.log_form_protocol import LogQuery
from assay.observe.logs.record_context import HOSTS, TIMES
from assay.observe.logs.record_messages import MESSAGES, RecordSearch

NAMES = {name.lower(): name for name in (*MESSAGES, *HOSTS, *TIMES)}
"""The names of fields in use. Tables write them with capitals of their own."""


class CsvLogForm:
    """A table in which a column is the message, and another one time or host. Commas, semicolons or tabs part them."""

    name, is_bmc_log = "CSV with a message, and time or host, in its columns", False

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return 1 for a table whose first line names such columns."""
        is_of_events = find_event_delimiter(sample[0].decode(errors="replace")) is not None
        return float(_find_delimiter(sample[0]) is not None and not is_of_events)

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all. A line with other columns is read as a text."""
        search, columns, delimiter = RecordSearch(query), list[str](), DELIMITERS[0]
        for line in (line for piece in pieces for line in piece.split(b"\n") if line.strip()):
            query.tally.lines += 1
            if not columns:
                delimiter = _find_delimiter(line) or delimiter
                columns = _read_columns(line, delimiter)
                continue
            cells = _split(line, delimiter)
            if len(cells) == len(columns):
                yield from search.find_messages(dict(zip(columns, cells, strict=True)))
            else:
                yield from search.find_messages({"line": line.decode(errors="replace")})


CSV_FORM = CsvLogForm()


def _find_delimiter(line: bytes) -> str | None:
    """Return what parts the columns of a first line that names a message, and time or host; None for another line."""
    for delimiter in DELIMITERS:
        columns = set(_read_columns(line, delimiter))
        if columns & set(MESSAGES) and columns & {*HOSTS, *TIMES}:
            return delimiter
    return None


def _read_columns(line: bytes, delimiter: str) -> list[str]:
    cells = _split(line.removeprefix(b"\xef\xbb\xbf"), delimiter)
    return [NAMES.get(cell.strip().lower(), cell) for cell in cells]


def _split(line: bytes, delimiter: str) -> list[str]:
    return split_cells(line.decode(errors="replace"), delimiter)

"""Kernel lines in a table with commas, as Splunk and Datadog export them: a first line that names the columns."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence

from assay.model.log_message import LogMessage
from assay.observe.logs.log_form_protocol import LogQuery
from assay.observe.logs.record_context import HOSTS, TIMES
from assay.observe.logs.record_messages import MESSAGES, RecordSearch

NAMES = {name.lower(): name for name in (*MESSAGES, *HOSTS, *TIMES)}
"""The names of fields in use. Tables write them with capitals of their own."""


class CsvLogForm:
    """A table in which a column is the message, and another one time or host."""

    name, is_bmc_log = "CSV with a message, and time or host, in its columns", False

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return 1 for a table whose first line names such columns."""
        columns = set(_read_columns(sample[0]))
        return float(bool(columns & set(MESSAGES)) and bool(columns & {*HOSTS, *TIMES}))

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all. A line with other columns is read as a text."""
        search, columns = RecordSearch(query), list[str]()
        for line in (line for piece in pieces for line in piece.split(b"\n") if line.strip()):
            query.tally.lines += 1
            cells = _split(line)
            if not columns:
                columns = _read_columns(line)
            elif len(cells) == len(columns):
                yield from search.find_messages(dict(zip(columns, cells, strict=True)))
            else:
                yield from search.find_messages({"line": line.decode(errors="replace")})


CSV_FORM = CsvLogForm()


def _read_columns(line: bytes) -> list[str]:
    return [NAMES.get(cell.strip().lower(), cell) for cell in _split(line.removeprefix(b"\xef\xbb\xbf"))]


def _split(line: bytes) -> list[str]:
    text = line.decode(errors="replace")
    try:
        return next(csv.reader([text]), [])
    except csv.Error:
        return [text]

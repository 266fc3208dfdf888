"""Logs in JSON, as journalctl, Docker, Loki and others write them: one object a line, or whole documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from assay.model.log_message import LogMessage
from assay.observe.logs.log_form import MAX_DOCUMENT_BYTES, LogQuery, TooLongDocument, UnknownLogForm
from assay.observe.logs.records import MAX_DEPTH, RecordSearch, is_log_record

FRAME = re.compile(rb"[\x1e\s]*(?:data: ?)?")
"""What stands before an object in a JSON text sequence, and in server-sent events."""
DOCUMENT_START = re.compile(rb'(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]]|$))')
BLANK = re.compile(r"[\s,\x1e]*(?:data: ?)?")
Record = Any


class JsonLogForm:
    """Log lines in JSON, of any program: a string that begins as a message of the kernel does is one."""

    name = "JSON (journalctl, dmesg -J, Docker, Loki, CloudWatch, …)"
    is_bmc_log = False

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return a rating above that of Redfish's entries unless the document is of Redfish."""
        if any(b'"@odata.' in line or b'"MessageId"' in line for line in sample):
            return 0.0
        return 0.9 if begins_document(sample[0]) else 0.0

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all. Raises UnknownLogForm for JSON that is no log."""
        lines = (line for piece in pieces for line in piece.split(b"\n") if line.strip(b"\r\n \x1e"))
        first = next(lines, b"")
        if _parse(first) is None:
            yield from _read_document(chain([first], lines), query)
        else:
            yield from _read_lines(chain([first], lines), query)


def begins_document(text: bytes) -> bool:
    """Whether a text begins as JSON does, perhaps in a frame."""
    return DOCUMENT_START.match(_strip_frame(text)) is not None


def _strip_frame(line: bytes) -> bytes:
    frame = FRAME.match(line)
    return line[frame.end() :] if frame else line


def _parse(line: bytes) -> Record | None:
    try:
        return json.loads(_strip_frame(line))
    except (ValueError, RecursionError):
        return None


def _read_lines(lines: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
    """Read one record a line. A line that is none counts as unread, and is told if it names a fault."""
    search = RecordSearch(query)
    knows = False
    for line in lines:
        query.tally.lines += 1
        record = _parse(line)
        if record is None:
            query.tally.unreadable += 1
            record = line.decode(errors="replace")
        knows = knows or is_log_record(record)
        for message in _read_records(search, record):
            knows = True
            yield message
    if not knows:
        raise UnknownLogForm


def _read_document(lines: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
    content = bytearray()
    for line in lines:
        content += line + b"\n"
        if len(content) > MAX_DOCUMENT_BYTES:
            raise TooLongDocument
    records = list(_decode_documents(content.decode(errors="replace")))
    search = RecordSearch(query)
    messages = [message for record in records for message in _read_records(search, record)]
    query.tally.lines += sum(map(_count_records, records))
    if not messages and not any(map(is_log_record, records)):
        raise UnknownLogForm
    yield from messages


def _read_records(search: RecordSearch, record: Record) -> Iterator[LogMessage]:
    """Yield the messages of a document, the oldest first: Loki begins with the newest."""
    messages = list(search.find_messages(record))
    times = [message.at for message in messages if message.at is not None]
    if len(times) == len(messages) > 1 and times[0] > times[-1] and times == sorted(times, reverse=True):
        messages.reverse()
    yield from messages


def _decode_documents(text: str) -> Iterator[Record]:
    """Yield the JSON values of a text, one after the other. Raises UnknownLogForm where something else follows."""
    decoder = json.JSONDecoder()
    place = 0
    while (blank := BLANK.match(text, place)) and blank.end() < len(text):
        try:
            record, place = decoder.raw_decode(text, blank.end())
        except (ValueError, RecursionError):
            raise UnknownLogForm from None
        yield record


def _count_records(record: Record, depth: int = MAX_DEPTH) -> int:
    """Return how many lines of a log a document holds: the length of the longest list of records in it, or 1."""
    if isinstance(record, dict) and depth:
        return max((_count_records(value, depth - 1) for value in record.values()), default=1)
    if isinstance(record, list) and depth and record and not isinstance(record[0], int):
        return max(len(record), *(_count_records(value, depth - 1) for value in record))
    return 1

"""Forms of logs whose lines are records: JSON, as journalctl, Docker, Loki and others give it, and journals' entries.

JSON is one object a line, or whole documents. `journalctl -o export` and `-o verbose` print a field a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from assay.model.log_message import LogMessage
from assay.observe.logs.line_envelope import FLUENT_TAG, FLUENT_TIME, split_line
from assay.observe.logs.log_form import MAX_DOCUMENT_BYTES, LogQuery, TooLongDocument, UnknownLogForm
from assay.observe.logs.records import MAX_DEPTH, RecordSearch, is_log_record

_FLUENT_TIME = rf"\[(?:{FLUENT_TIME}|\[{FLUENT_TIME}, ?\{{[^{{}}]*\}}\]), ?"
_FLUENT_RECORD = (_FLUENT_TIME + r'\{"[^"\\]*" ?:').encode()
FRAME = re.compile(rb"[\x1e\s]*(?:data: ?)?(?:" + FLUENT_TAG.encode() + rb"(?=" + _FLUENT_RECORD + rb"))?")
"""What stands before an object in a JSON text sequence, in server-sent events, and in fluent-bit's output."""
DOCUMENT_START = re.compile(rb'(?:\{\s*(?:["}]|$)|\[\s*(?:[\[{"\]]|$)|' + _FLUENT_RECORD + rb")")
BLANK = re.compile(r"[\s,\x1e]*(?:data: ?)?")
Record = Any
EXPORT_FIELD = re.compile(rb"(?P<name>[A-Z_][A-Z0-9_]*)(?:=(?P<value>.*))?$", re.DOTALL)
VERBOSE_FIELD = re.compile(rb"    (?P<name>[A-Z_][A-Z0-9_]*)=(?P<value>[^\r\n]*)")
VERBOSE_HEAD = re.compile(rb"\S.* \[s=[0-9a-f]+;.*b=(?P<boot>[0-9a-f]+);")
LENGTH_BYTES = 8
MAX_FIELD_BYTES = 64 * 1024 * 1024
Fields = dict[str, str]


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


class JournalExportForm:
    """`journalctl -o export`. A field with odd bytes is its name, its length as eight bytes, and its bytes."""

    name = "journalctl -o export"
    is_bmc_log = False

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return 1 for a log that begins with an entry's cursor or time."""
        return float(sample[0].startswith((b"__CURSOR=", b"__REALTIME_TIMESTAMP=")))

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all."""
        return _read_entries(_read_export(pieces), query)


class JournalVerboseForm:
    """`journalctl -o verbose`: a line with the time, and the fields below it, indented."""

    name = "journalctl -o verbose"
    is_bmc_log = False

    def rate(self, sample: Sequence[bytes]) -> float:
        """Return 1 for a log whose first lines have an entry's heading."""
        return float(any(VERBOSE_HEAD.match(line) for line in sample[:3]))

    def read(self, pieces: Iterable[bytes], query: LogQuery) -> Iterator[LogMessage]:
        """Yield the messages that may name a fault, or all."""
        return _read_entries(_read_verbose(pieces, query), query)


EXPORT_FORM, VERBOSE_FORM = JournalExportForm(), JournalVerboseForm()


def _read_entries(entries: Iterable[Fields], query: LogQuery) -> Iterator[LogMessage]:
    search = RecordSearch(query)
    for entry in entries:
        query.tally.lines += 1
        yield from search.find_messages(entry)


def _read_export(pieces: Iterable[bytes]) -> Iterator[Fields]:
    """Yield the fields of each entry. A blank line ends an entry."""
    fields: Fields = {}
    for name, value in _read_fields(_Bytes(pieces)):
        if name:
            _add_field(fields, name, value)
        elif fields:
            yield fields
            fields = {}
    if fields:
        yield fields


def _read_fields(content: _Bytes) -> Iterator[tuple[str, str]]:
    """Yield name and value of each field, ("", "") for a blank line. A line that is no field is a message."""
    while (line := content.take_line()) is not None:
        field = EXPORT_FIELD.match(line.rstrip(b"\r"))
        if not line.strip():
            yield "", ""
        elif field is None:
            yield "MESSAGE", line.decode(errors="replace")
        elif field["value"] is None:
            length = int.from_bytes(content.take(LENGTH_BYTES), "little")
            value = content.take(min(length, MAX_FIELD_BYTES) + 1)
            yield field["name"].decode(), value.decode(errors="replace")
        else:
            yield field["name"].decode(), field["value"].decode(errors="replace")


class _Bytes:
    """The bytes of a log, taken line by line or by their number."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""
        self._at = 0

    def take_line(self) -> bytes | None:
        """Return the next line without its end, None at the end of the log."""
        while (end := self._rest.find(b"\n", self._at)) < 0:
            if not self._fill():
                line, self._at = self._rest[self._at :], len(self._rest)
                return line or None
        line, self._at = self._rest[self._at : end], end + 1
        return line

    def take(self, count: int) -> bytes:
        """Return the next bytes, fewer at the end of the log."""
        while len(self._rest) - self._at < count and self._fill():
            pass
        piece = self._rest[self._at : self._at + count]
        self._at += len(piece)
        return piece

    def _fill(self) -> bool:
        piece = next(self._pieces, b"")
        self._rest = self._rest[self._at :] + piece
        self._at = 0
        return bool(piece)


def _read_verbose(pieces: Iterable[bytes], query: LogQuery) -> Iterator[Fields]:
    """Yield the fields of each entry, and the time in its heading as `timestamp`."""
    fields: Fields = {}
    name = ""
    for line in (line for piece in pieces for line in piece.split(b"\n")):
        if head := VERBOSE_HEAD.match(line):
            if fields:
                yield fields
            written = split_line(line.decode(errors="replace"), query.written_at).stamp or ""
            fields = {"_BOOT_ID": head["boot"].decode(), "timestamp": written}
            name = ""
        elif field := VERBOSE_FIELD.match(line):
            name = field["name"].decode()
            _add_field(fields, name, field["value"].decode(errors="replace"))
        elif line.strip():  # a further line of the field, or text between the entries
            name = name or "MESSAGE"
            _add_field(fields, name, line.decode(errors="replace").strip())
    if fields:
        yield fields


def _add_field(fields: Fields, name: str, value: str) -> None:
    """Add a field, or a further line of it: an entry may have a field several times, and a value several lines."""
    fields[name] = f"{fields[name]}\n{value}" if name in fields else value

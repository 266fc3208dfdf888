"""Finds the messages in records: objects of JSON, or entries of a journal, of whatever program wrapped them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from assay.model.log_message import LogMessage, replace_unencodable
from assay.observe.logs.log_form_protocol import LogQuery
from assay.observe.logs.message_search import MessageSearch
from assay.observe.logs.record_context import HOSTS, LABELS, TIMES, RecordContext

MESSAGES = (
    "MESSAGE",
    "message",
    "msg",
    "log",
    "line",
    "text",
    "textPayload",
    "_raw",
    "body",
    "@message",
    "SyslogMessage",
)
HOST_NAME = re.compile(
    r"(?=[a-zA-Z])(?=[\w.-]*\d)[\w.-]+|[a-zA-Z][\w-]*(?:\.[a-zA-Z][\w-]*){2,}|\d{1,3}(?:\.\d{1,3}){3}"
)
"""The names of a whole document's fields where each is a host: of `salt --out=json`."""
HOSTS_BY_NAME = ("hosts",)
"""Objects whose names are those of hosts: Ansible's."""
MAX_DEPTH = 32
SAMPLED_RECORDS = 100
PAIR = 2


class RecordSearch:
    """Finds the messages in records that may name a fault, or every message."""

    def __init__(self, query: LogQuery) -> None:
        self._every, self._written_at = query.every, query.written_at
        self._search = MessageSearch(query.matcher, query.written_at)

    def find_messages(self, record: Any) -> Iterator[LogMessage]:
        """Yield the messages of one record. What a record says in two of its fields is one message."""
        yield from self._walk(record, RecordContext(), "", MAX_DEPTH)

    def _walk(self, value: Any, around: RecordContext, name: str, depth: int) -> Iterator[LogMessage]:
        if depth <= 0:
            return
        if isinstance(value, Mapping):
            yield from self._walk_fields(value, around, name, depth)
        elif isinstance(value, list):
            yield from self._walk_list(value, around, name, depth)
        elif isinstance(value, str):
            yield from self._read_text(replace_unencodable(value), around, name)

    def _walk_fields(
        self, record: Mapping[str, Any], around: RecordContext, name: str, depth: int
    ) -> Iterator[LogMessage]:
        """Yield the messages of a record, each as often as in the field that has it most often."""
        if rows := _name_rows(record):
            yield from self._walk(rows, around, name, depth - 1)
            return
        context, told = around.extend(record), Counter[tuple[str, str]]()
        by_host = name in HOSTS_BY_NAME or (depth == MAX_DEPTH and all(map(HOST_NAME.fullmatch, map(str, record))))
        for key, inner in record.items():
            if key in TIMES:
                continue
            here = Counter[tuple[str, str]]()
            place = context._replace(host=key) if by_host else context
            for message in self._walk(inner, place, str(key), depth - 1):
                said = message.host, message.text
                here[said] += 1
                if here[said] > told[said]:
                    yield message
            told |= here

    def _walk_list(self, value: list[Any], around: RecordContext, name: str, depth: int) -> Iterator[LogMessage]:
        if fields := _pair_up(value):
            yield from self._walk(fields, around, name, depth - 1)
        elif text := _decode_bytes(value):
            yield from self._read_text(text, around, name)
        elif len(value) >= PAIR and all(isinstance(one, str) for one in value[:PAIR]) and value[0].isdecimal():
            context = around.extend({"time": value[0]})  # Loki: time and line
            yield from self._walk(value[1:], context, "line", depth - 1)
        elif (time := _find_fluent_time(value)) is not None:
            yield from self._walk(value[1], around.extend({"time": time}), name, depth - 1)
        else:
            for one in value:
                yield from self._walk(one, around, name or "line", depth - 1)

    def _read_text(self, text: str, around: RecordContext, name: str) -> Iterator[LogMessage]:
        is_message = name in MESSAGES
        told = datetime.fromtimestamp(around.wall[0], UTC) if around.wall else self._written_at
        self._search.written_at = told  # by which a time without a year is read
        for line in text.splitlines():
            messages = self._search.find_messages(line)
            if not messages and is_message and line.strip():
                every = self._every
                messages = [self._search.split_line(line)] if every else self._search.find_beginnings(line)
            yield from map(around.complete, messages)


def is_log_record(record: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value is a line of a log or holds some: objects with a message, and the time or where it comes from."""
    record = (_pair_up(record) or record) if isinstance(record, list) else record
    if isinstance(record, list):
        if _find_fluent_time(record) is not None:
            return any(name in record[1] for name in MESSAGES)
        return depth > 0 and any(is_log_record(one, depth - 1) for one in record[:SAMPLED_RECORDS])
    if not isinstance(record, Mapping):
        return False
    if rows := _name_rows(record):
        return depth > 0 and is_log_record(rows, depth - 1)
    says = any(name in record for name in MESSAGES) and any(name in record for name in (*TIMES, *LABELS, *HOSTS))
    return says or "stream" in record or (depth > 0 and any(is_log_record(one, depth - 1) for one in record.values()))


def _pair_up(value: list[Any]) -> dict[str, Any]:
    """Return the fields of a list such as `[{"field": "@message", "value": …}]` (CloudWatch), {} for another list."""
    if not value or not all(isinstance(one, Mapping) and one.keys() == {"field", "value"} for one in value):
        return {}
    return {str(one["field"]): one["value"] for one in value}


def _name_rows(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table, `{"columns": [{"name": …}], "rows": [[…]]}`, by column; [] for another record."""
    columns, rows = record.get("columns"), record.get("rows")
    if not isinstance(columns, list) or not isinstance(rows, list):
        return []
    names = [str(one.get("name") if isinstance(one, Mapping) else one) for one in columns]
    if not all(isinstance(row, list) and len(row) == len(names) for row in rows):
        return []
    return [dict(zip(names, row, strict=True)) for row in rows]


def _find_fluent_time(value: list[Any]) -> float | None:
    """Return the time of a record of fluent-bit, `[time, {…}]` or `[[time, {}], {…}]`; None for another list."""
    if len(value) != PAIR or not isinstance(value[1], Mapping):
        return None
    time = value[0][0] if isinstance(value[0], list) and value[0] else value[0]
    return time if isinstance(time, int | float) and not isinstance(time, bool) else None


def _decode_bytes(value: list[Any]) -> str:
    """Return the text of a list of bytes, which a journal gives for a message with odd bytes; "" for other lists."""
    if not value or not all(type(one) is int and 0 <= one < 256 for one in value):
        return ""
    return bytes(value).decode(errors="replace")

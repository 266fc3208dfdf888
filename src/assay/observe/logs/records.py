"""Finds the messages in lines and in records: objects of JSON, or entries of a journal, whatever program wrapped them.

In a line, the message is found first, its envelope second. What the fields of a record say of its messages is known by
the names in use: time, host, boot and program.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from assay.model.log_message import GPU_INTRODUCTION, LogMessage, parse_log_level, replace_unencodable
from assay.model.specs.log_patterns import LEAST_AFTER_WORDS, KernelLogMatcher, is_truncated_xid
from assay.observe.logs.line_envelope import (
    EPOCH_UNITS,
    MAX_ENVELOPE,
    Envelope,
    ParsedStamp,
    parse_epoch,
    parse_iso_time,
    peel_line,
    read_envelope,
    split_line,
)
from assay.observe.logs.log_form import LogQuery

TIMES = (*("__REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "date", "datetime", "eventTime", "_time"),)
UPTIMES: tuple[str, ...] = ("_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP")
HOSTS = (
    *("_HOSTNAME", "hostname", "host", "node", "node_name", "nodename", "instance", "logStreamName", "@logStream"),
)
LEVEL_FIELDS = ("PRIORITY", "priority", "pri", "level", "severity")
LABELS = ("stream", "labels", "metric", "kubernetes", "resource", "host", "jsonPayload", "fields")
"""Objects beside a message that say where it comes from."""
SHORTEST_TIME = len("2026-11-21T18:00")
EARLIEST_EPOCH = EPOCH_UNITS[-1][0]
XID_ANYWHERE = rb"Xid(?: +\(|=\d)"
XID_HEAD = re.compile(r"NVRM: +Xid|nvidia-nvswitch\d+: SXid")
VALUE = re.compile(r'[:=>,;|\t]\s*"?')
ERROR_SIGN = re.compile(r"<[0-3]>|[0-3],\d+,\d+,|kern *[:.] *(?:emerg|alert|crit|err)\b")
"""How a line begins that says that the kernel calls it an error, or worse."""
CLOSING_QUOTES = tuple("\"'`")
OPEN_END = re.compile(r"(?:[:,;=(\[-]|(?<![\w-])[a-z]\w*_\w*(?::\d+)?|\(pid \d+\))\s*$|^\w+ \S*\d\S*(?: \S+)?$")
"""A sign after which more must come, the function that writes the message, such as `poll_health:812:(pid 0)`, or the
device that it is of, with one word at most."""
BRACKETS = (("(", ")"), ("[", "]"))
ESCAPED = re.compile(r"\\x([0-9a-f]{2})")
WRITTEN_END = re.compile(
    r"(?:\\+[nr])+|(?:#01[25])+|</?(?:br|p|div|li|pre|tr|td|th)\b[^<>]{0,80}>"
    r"|[\r\n\v\f\x00\x1c-\x1e\x85\u2028\u2029]+"
)
"""The end of a line that a tool wrote as text, so that several lines are one: `#012` of a syslog, `\\n`, `<br>`."""
_BYTE_SIGNS = {b"\\": rb"\\[nr]", b"#": rb"#01[25]", b"<": rb"<(?:/|br|p>|td|tr|li|div)", b"\0": rb"\0"}
BYTE_SIGNS = {first: re.compile(sign) for first, sign in _BYTE_SIGNS.items()}
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
MAX_DEPTH = 32
SAMPLED_RECORDS = 100
PAIR = 2


class RecordContext(NamedTuple):
    """What is known of the messages of a record."""

    wall: ParsedStamp | None = None
    uptime: ParsedStamp | None = None
    host: str = ""
    program: str = ""
    level: int | None = None

    def extend(self, record: Mapping[str, Any]) -> RecordContext:
        """Return the context within a record."""
        labels = [record[name] for name in LABELS if isinstance(record.get(name), Mapping)]
        within = [label["labels"] for label in labels if isinstance(label.get("labels"), Mapping)]
        places = [record, *labels, *within]
        wall = next((stamp for name in TIMES if (stamp := _parse_time(record.get(name)))), self.wall)
        host = next((host for place in places if (host := _find_host(place))), self.host)
        uptime = _find_uptime(record) or self.uptime
        written = next((record[name] for name in LEVEL_FIELDS if name in record), self.level)
        level = parse_log_level(str(written))
        return RecordContext(wall, uptime, host, _find_program(record) or self.program, level)

    def complete(self, message: LogMessage) -> LogMessage:
        """Return a message with what it does not say itself. Its own wall-clock time counts before the record's."""
        at, stamp = message.at, message.stamp
        if message.wall is None and (own := self.wall or (None if at is not None else self.uptime)):
            at, stamp = own
        uptime = self.uptime[0] if message.uptime_s is None and self.uptime else message.uptime_s
        return message._replace(
            at=at,
            stamp=stamp,
            uptime_s=uptime,
            host=message.host or self.host,
            program=message.program or self.program,
            level=self.level if message.level is None else message.level,
        )


def _parse_time(value: Any) -> ParsedStamp | None:
    """Return a time in a field, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return parse_epoch(text)
    with contextlib.suppress(ValueError, OverflowError):
        return parse_iso_time(text) if len(text) >= SHORTEST_TIME else None
    return None


def _find_uptime(record: Mapping[str, Any]) -> ParsedStamp | None:
    """Return the time since the boot: microseconds in a journal, seconds in `dmesg -J`."""
    micros = next((value for name in UPTIMES if isinstance(value := record.get(name), str)), "")
    seconds = int(micros) / 1e6 if micros.isascii() and micros.isdecimal() and len(micros) < 18 else record.get("time")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < EARLIEST_EPOCH:
        return None
    return float(seconds), f"boot+{seconds:.6f}s"


def _find_host(place: Mapping[str, Any]) -> str:
    for name in HOSTS:
        value = place.get(name)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("hostname")
        if isinstance(value, str) and value:
            return replace_unencodable(value)
    return ""


def _find_program(record: Mapping[str, Any]) -> str:
    """Return who wrote an entry of a journal: `kernel` only where it came from there, whatever it calls itself."""
    transport = _text(record.get("_TRANSPORT"))
    name = _text(record.get("SYSLOG_IDENTIFIER"))
    if transport in ("kernel", ""):
        return transport or name
    return name if name and name != "kernel" else transport


def _text(value: Any) -> str:
    return replace_unencodable(value) if isinstance(value, str) else ""


class MessageSearch:
    """Finds messages that a matcher may match. `written_at`: when the log was last written."""

    def __init__(self, matcher: KernelLogMatcher, written_at: datetime) -> None:
        self.matcher, self.written_at = matcher, written_at
        heads = [matcher.prefix_regex(), *map(re.escape, matcher.holds)]
        self._heads = re.compile(rf"(?<!\w)(?:{'|'.join(heads)})|{XID_HEAD.pattern}")
        self.head_bytes = re.compile(rb"(?<!\w)(?:" + "|".join(heads).encode() + rb")|" + XID_ANYWHERE)

    def find_messages(self, line: str) -> list[LogMessage]:
        """Return the messages of a line that name a fault, one for each that was joined to the line."""
        line = unescape(line.strip())
        if not (self._heads.search(line) or "Xid" in line or self.matcher.patterns or ERROR_SIGN.match(line)):
            return []
        if not may_hold_more(line) and self._find_message(line) is None:
            return []
        parts = [part for text in WRITTEN_END.split(line) for part in self._split_at_heads(text) if part.strip()]
        messages = [message for part in parts if (message := self._find_message(part))]
        if not messages:  # a message whose parts name no fault
            return [message] if (message := self._find_message(line)) else []
        around = peel_line(line, self.written_at)
        return messages if len(parts) == 1 else [_complete(message, around) for message in messages]

    def find_cut_message(self, line: str) -> list[LogMessage]:
        """Return the message with which a log breaks off, if it may be the beginning of one that names a fault."""
        line = unescape(line.strip())
        quote = line[-1:]
        if any(self.names_fault(message.text) for message in self.find_messages(line)):
            return []
        if quote in CLOSING_QUOTES and line.count(quote) % 2 == 0:
            return []
        starts = {peel_line(line, self.written_at).end, *(match.end() for match in VALUE.finditer(line))}
        begun = self._find_beginnings(line, starts, LEAST_AFTER_WORDS)
        return [message._replace(is_cut=True) for message in begun]

    def find_beginnings(self, line: str) -> list[LogMessage]:
        """Return the message of a line that names no fault, and might if more of it were there."""
        return self._find_beginnings(line, ())

    def _find_beginnings(self, line: str, more_starts: Iterable[int], letters: int = 0) -> list[LogMessage]:
        """Return the first message that may begin a fault, at a head or at one of these places."""
        starts = sorted({*more_starts, *(head.start() for head in self._heads.finditer(line))})
        texts = ((start, line[start:]) for start in starts)
        needed = ((start, text, 0 if ends_openly(text) else letters) for start, text in texts)
        begun = next((start for start, text, some in needed if self.matcher.may_begin_fault(text, some)), None)
        return [] if begun is None else [read_envelope(line, begun, self.written_at).make_message(line[begun:])]

    def is_unjudged(self, message: LogMessage) -> bool:
        """Whether a message is an error of a watched driver, by its words or its level, that no class has."""
        return bool(self.matcher.find_unjudged(message.text, message.level))

    def split_line(self, line: str) -> LogMessage:
        """Return the message of any line in which no fault is named."""
        return split_line(unescape(line.strip()), self.written_at)

    def may_name_fault(self, text: str) -> bool:
        """Whether a message begins as those of faults do, or names an XID anywhere."""
        return self._heads.match(text) is not None or ("xid " in text.lower() and self.names_fault(text))

    def is_one_fault(self, text: str) -> bool:
        """Whether a message begins as those of faults do, and holds no further one: quick, and false too often."""
        return self._heads.match(text) is not None and not may_hold_more(text)

    def names_fault(self, text: str) -> bool:
        """Whether a message names a fault, announces an XID without its number, or begins to tell one."""
        return bool(self.matcher.find_faults(text)) or is_truncated_xid(text) or text.startswith(GPU_INTRODUCTION)

    def _split_at_heads(self, part: str) -> Iterator[str]:
        """Yield a part of a line cut before each further message that begins within it, without a cut before it."""
        start = last = -1
        for head in self._heads.finditer(part):
            at = head.start()
            before = part[max(at - 8, 0) : at].rstrip()
            begins = XID_HEAD.match(part, at) or before.endswith("kernel:") or not before.endswith(":")
            # what stands before the beginning of a further message, and after it, names a fault
            is_further = last >= 0 and begins and self.names_fault(part[last:at])
            if is_further and self.names_fault(part[at : at + MAX_ENVELOPE]):
                yield part[max(start, 0) : at].rstrip()
                start = at
            last = at
        yield part[max(start, 0) :]

    def _find_message(self, line: str) -> LogMessage | None:
        """Return the message of a line that names a fault, None where none does.

        A message at which the layers of the line end goes before one with unknown words in front of it.
        """
        others = []
        for start in [head.start() for head in self._heads.finditer(line)]:
            if not self.names_fault(line[start : start + MAX_ENVELOPE]):
                continue
            text = line[start:]
            envelope = read_envelope(line, start, self.written_at)
            if envelope.is_clean:
                return envelope.make_message(text)
            others.append(envelope.make_message(text))
        if others:
            return others[0]
        message = split_line(line, self.written_at)
        if self.names_fault(message.text) or self.is_unjudged(message):
            return message
        return LogMessage(line) if self.names_fault(line) else None


def holds_written_line_ends(piece: bytes) -> bool:
    """Whether a line end was written as text in a piece of a log: quick, since few have its first letter."""
    return any(first in piece and sign.search(piece) for first, sign in BYTE_SIGNS.items())


def may_hold_more(text: str) -> bool:
    """Whether a text may hold a further message: quick, true too often, and false for one that follows on a blank."""
    holds_sign = "[" in text or "\\" in text or "#01" in text or "</" in text or "<br" in text or "kernel: " in text
    return holds_sign or text.find("NVRM: ", 1) > 0 or text.find("-nvswitch", 20) > 0 or not text.isprintable()


def ends_openly(text: str) -> bool:
    """Whether a text ends where no message does: within brackets, or before what it says."""
    return OPEN_END.search(text) is not None or any(text.count(opens) > text.count(ends) for opens, ends in BRACKETS)


def unescape(text: str) -> str:
    r"""Return text in which the kernel's `\x1b` is a character again."""
    return ESCAPED.sub(lambda code: chr(int(code[1], 16)), text) if "\\x" in text else text


def _complete(message: LogMessage, around: Envelope) -> LogMessage:
    """Return a message of a joined line with what stands before the whole line, where it does not say it itself."""
    if message.stamp is None:
        outer = around.make_message("")
        message = message._replace(at=outer.at, stamp=outer.stamp, uptime_s=outer.uptime_s)
    elif message.wall is None and around.wall:
        message = message._replace(at=around.wall[0], stamp=around.wall[1])
    return message._replace(host=message.host or around.host, program=message.program or around.program)


class RecordSearch:
    """Finds the messages in records that may name a fault."""

    def __init__(self, query: LogQuery) -> None:
        self._written_at = query.written_at
        self._search = MessageSearch(query.matcher, query.written_at)

    def find_messages(self, record: Any) -> Iterator[LogMessage]:
        """Yield the messages of one record. What a record says in two of its fields is one message."""
        yield from self._walk(record, RecordContext(), "", MAX_DEPTH)

    def _walk(self, value: Any, around: RecordContext, name: str, depth: int) -> Iterator[LogMessage]:
        if depth <= 0:
            return
        if isinstance(value, Mapping):
            yield from self._walk_fields(value, around, depth)
        elif isinstance(value, list):
            yield from self._walk_list(value, around, name, depth)
        elif isinstance(value, str):
            yield from self._read_text(replace_unencodable(value), around, name)

    def _walk_fields(self, record: Mapping[str, Any], around: RecordContext, depth: int) -> Iterator[LogMessage]:
        """Yield the messages of a record, each as often as in the field that has it most often."""
        context = around.extend(record)
        most: Counter[tuple[str, str]] = Counter()
        for key, inner in record.items():
            if key in TIMES:
                continue
            here = Counter[tuple[str, str]]()
            for message in self._walk(inner, context, str(key), depth - 1):
                key_of_message = message.host, message.text
                here[key_of_message] += 1
                if here[key_of_message] > most[key_of_message]:
                    yield message
            most |= here

    def _walk_list(self, value: list[Any], around: RecordContext, name: str, depth: int) -> Iterator[LogMessage]:
        if value and all(type(part) is int and 0 <= part < 256 for part in value):
            # bytes, which a journal gives for a message with odd ones
            yield from self._read_text(bytes(value).decode(errors="replace"), around, name)
        elif len(value) >= PAIR and all(isinstance(part, str) for part in value[:PAIR]) and value[0].isdecimal():
            context = around.extend({"time": value[0]})  # Loki: time and line
            yield from self._walk(value[1:], context, "line", depth - 1)
        else:
            for part in value:
                yield from self._walk(part, around, name or "line", depth - 1)

    def _read_text(self, text: str, around: RecordContext, name: str) -> Iterator[LogMessage]:
        is_message = name in MESSAGES
        written_at = datetime.fromtimestamp(around.wall[0], UTC) if around.wall else self._written_at
        self._search.written_at = written_at  # by which a time without a year is read
        for line in text.splitlines():
            messages = self._search.find_messages(line)
            if not messages and is_message and line.strip():
                message = around.complete(self._search.split_line(line))
                is_wanted = self._search.is_unjudged(message)
                messages = [message] if is_wanted else self._search.find_beginnings(line)
            yield from map(around.complete, messages)


def is_log_record(record: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value is a line of a log or holds some: objects with a message, and the time or where it comes from."""
    if isinstance(record, list):
        return depth > 0 and any(is_log_record(part, depth - 1) for part in record[:SAMPLED_RECORDS])
    if not isinstance(record, Mapping):
        return False
    says = any(name in record for name in MESSAGES) and any(name in record for name in (*TIMES, *LABELS, *HOSTS))
    return says or "stream" in record or (depth > 0 and any(is_log_record(part, depth - 1) for part in record.values()))

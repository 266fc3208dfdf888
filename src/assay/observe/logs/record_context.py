"""What the fields of a record say of its messages: time, host, boot and program, under the names in use."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from assay.model.log_message import LogMessage, replace_unencodable
from assay.observe.logs.time_stamps import EPOCH_UNITS, MONTHS, ParsedStamp, parse_epoch, parse_iso_time

TIMES = (
    *("__REALTIME_TIMESTAMP", "timestamp", "@timestamp", "time", "ts", "date", "datetime", "eventTime", "_time"),
    *("timeUnixNano", "observedTimeUnixNano", "TimeGenerated"),
)
UPTIMES: tuple[str, ...] = ("_SOURCE_MONOTONIC_TIMESTAMP", "__MONOTONIC_TIMESTAMP")
HOSTS = (
    *("_HOSTNAME", "hostname", "host", "node", "node_name", "nodename", "instance", "logStreamName", "@logStream"),
    *("host.name", "k8s.node.name", "Computer"),
)
SOURCE = "source"
SOURCE_HOST = re.compile(r"(?=[a-zA-Z])(?=[\w.-]*\d)[\w.-]{1,255}")
"""Graylog's host. Elsewhere, `source` is a file, a program or a stream."""
LABELS = ("stream", "labels", "metric", "kubernetes", "resource", "host", "jsonPayload", "fields")
"""Objects beside a message that say where it comes from."""
KIBANA_TIME = re.compile(rf"({'|'.join(MONTHS)}) (\d{{1,2}}), (\d{{4}}) @ (\d\d:\d\d:\d\d(?:\.\d{{1,9}})?)")
SHORTEST_TIME = len("2026-11-21T18:00")
EARLIEST_EPOCH = EPOCH_UNITS[-1][0]


class RecordContext(NamedTuple):
    """What is known of the messages of a record."""

    wall: ParsedStamp | None = None
    uptime: ParsedStamp | None = None
    host: str = ""
    boot: str = ""
    program: str = ""

    def extend(self, record: Mapping[str, Any]) -> RecordContext:
        """Return the context within a record."""
        labels = [record[name] for name in LABELS if isinstance(record.get(name), Mapping)]
        within = [_pair_attributes(one.get("attributes")) for one in labels]  # OpenTelemetry's resource
        within += [one["labels"] for one in labels if isinstance(one.get("labels"), Mapping)]
        places = [record, *labels, *within]
        wall = next((stamp for name in TIMES if (stamp := _parse_time(record.get(name)))), self.wall)
        host = next((host for place in places if (host := _find_host(place))), self.host)
        boot, program = _text(record.get("_BOOT_ID")) or self.boot, _find_program(record) or self.program
        return RecordContext(wall, _find_uptime(record) or self.uptime, host, boot, program)

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
            boot=message.boot or self.boot,
            program=message.program or self.program,
        )


def _parse_time(value: Any) -> ParsedStamp | None:
    """Return a time in a field, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return parse_epoch(text)
    if found := KIBANA_TIME.fullmatch(text):
        month, day, year, clock = found.groups()
        text = f"{year}-{MONTHS.index(month) + 1:02}-{int(day):02}T{clock}"
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


def _pair_attributes(attributes: Any) -> dict[str, Any]:
    """Return the texts of a list such as `[{"key": "host.name", "value": {"stringValue": …}}]`, {} for all else."""
    pairs = attributes if isinstance(attributes, list) else []
    return {
        str(one.get("key")): one["value"].get("stringValue")
        for one in pairs
        if isinstance(one, Mapping) and isinstance(one.get("value"), Mapping)
    }


def _find_host(place: Mapping[str, Any]) -> str:
    for name in HOSTS:
        value = place.get(name)
        if isinstance(value, Mapping):
            value = value.get("name") or value.get("hostname")
        if isinstance(value, str) and value:
            return replace_unencodable(value)
    source = place.get(SOURCE)
    return source if isinstance(source, str) and SOURCE_HOST.fullmatch(source) else ""


def _find_program(record: Mapping[str, Any]) -> str:
    """Return who wrote an entry of a journal: `kernel` only where it came from there, whatever it calls itself."""
    transport, name = _text(record.get("_TRANSPORT")), _text(record.get("SYSLOG_IDENTIFIER"))
    if transport in ("kernel", ""):
        return transport or name
    return name if name and name != "kernel" else transport


def _text(value: Any) -> str:
    return replace_unencodable(value) if isinstance(value, str) else ""

"""Envelopes of kernel lines as JSON: each writes lines as one program does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.log_spellings.envelopes import Envelope, Lines, boot, each, iso
from tests.support.log_spellings.events import BOOT_ID, HOST, Line


def _journal(line: Line) -> dict[str, Any]:
    return {
        "__REALTIME_TIMESTAMP": str(int(line.at.timestamp() * 1e6)),
        "__MONOTONIC_TIMESTAMP": str(int(line.uptime * 1e6)),
        "_BOOT_ID": BOOT_ID,
        "_TRANSPORT": "kernel",
        "_HOSTNAME": HOST,
        "SYSLOG_IDENTIFIER": "kernel",
        "PRIORITY": str(line.level),
        "MESSAGE": line.text,
    }


def _bytes(line: Line) -> dict[str, Any]:
    return {**_journal(line), "MESSAGE": list(line.text.encode() + b"\xff")}


def _docker(line: Line) -> dict[str, Any]:
    return {"log": f"{boot(line)} {line.text}\n", "stream": "stdout", "time": f"{iso(line)[:-6]}000Z"}


def _vector(line: Line) -> dict[str, Any]:
    return {"host": HOST, "message": line.text, "source_type": "journald", "timestamp": f"{iso(line)[:-6]}Z"}


def _fluent(line: Line) -> dict[str, Any]:
    kubernetes = {"pod_name": "watch-x1", "host": HOST}
    return {"date": line.at.timestamp(), "log": line.text, "kubernetes": kubernetes}


def _gcp(line: Line) -> dict[str, Any]:
    labels = {"type": "gce_instance", "labels": {"zone": "a"}}
    return {
        "jsonPayload": {"message": line.text, "hostname": HOST},
        "resource": labels,
        "timestamp": f"{iso(line)[:-6]}Z",
        "receiveTimestamp": "2026-11-21T23:00:00Z",
    }


def _elastic(line: Line) -> dict[str, Any]:
    return {"@timestamp": f"{iso(line)[:-6]}Z", "host": {"name": HOST}, "message": line.text, "log": {"level": "err"}}


def _lines(form: Callable[[Line], Any], before: str = "", after: str = "\n") -> Callable[[Lines], str]:
    return lambda lines: "".join(f"{before}{json.dumps(form(line))}{after}" for line in lines)


def _document(form: Callable[[Lines], Any], indent: int | None = None) -> Callable[[Lines], str]:
    return lambda lines: json.dumps(form(lines), indent=indent)


def _loki(lines: Lines) -> Any:
    """Return Loki's answer to a query, which begins with the newest line."""
    values = [[str(int(line.at.timestamp() * 1e6) * 1000), line.text] for line in reversed(lines)]
    stream = {"stream": {"job": "kernel", "host": HOST}, "values": values}
    return {"status": "success", "data": {"resultType": "streams", "result": [stream], "stats": {"ingester": {}}}}


def _cloudwatch(lines: Lines) -> Any:
    stamps = [int(line.at.timestamp() * 1000) for line in lines]
    events = [
        {"timestamp": at, "message": line.text, "ingestionTime": at + 7} for at, line in zip(stamps, lines, strict=True)
    ]
    return {"events": events, "nextForwardToken": "f/1"}


def _dmesg(lines: Lines) -> Any:
    return {"dmesg": [{"pri": line.level, "time": line.uptime, "msg": line.text} for line in lines]}


JSON_ENVELOPES = (
    Envelope("json-journal", _lines(_journal), "zone", HOST),
    Envelope("json-journal-bytes", _lines(_bytes), "zone", HOST),
    Envelope(
        "json-journal-pretty", lambda ls: "".join(json.dumps(_journal(x), indent=8) + "\n" for x in ls), "zone", HOST
    ),
    Envelope("json-journal-seq", _lines(_journal, "\x1e"), "zone", HOST),
    Envelope("json-journal-sse", _lines(_journal, "data: ", "\n\n"), "zone", HOST),
    Envelope("json-docker", _lines(_docker), "zone"),
    Envelope("json-vector", _lines(_vector), "zone", HOST),
    Envelope("json-fluent-bit", _lines(_fluent), "zone", HOST),
    Envelope("json-fluent-bit-list", _document(lambda lines: [_fluent(line) for line in lines]), "zone", HOST),
    Envelope("json-gcp", _lines(_gcp), "zone", HOST),
    Envelope("json-gcp-list", _document(lambda lines: [_gcp(line) for line in lines], 2), "zone", HOST),
    Envelope("json-elastic", _lines(_elastic), "zone", HOST),
    Envelope("json-loki", _document(_loki), "zone", HOST),
    Envelope("json-loki-pretty", _document(_loki, 2), "zone", HOST),
    Envelope("json-cloudwatch", _document(_cloudwatch, 4), "zone"),
    Envelope("logcli", each(lambda x: f'{iso(x)[:-6]}Z {{host="{HOST}", job="k"}} {x.text}'), "zone", HOST),
    Envelope("logcli-host", each(lambda x: f'{iso(x)[:-6]}Z {{host="{HOST}"}} {x.text}'), "zone", HOST),
    Envelope("json-dmesg", _document(_dmesg, 3), "boot"),
    Envelope("json-strings", _document(lambda lines: [f"{boot(line)} {line.text}" for line in lines]), "boot"),
)

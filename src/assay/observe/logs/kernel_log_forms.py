"""The forms in which kernel messages are written down by the million: each is searched without parsing every line.

A log of any other form, and every line that is not of its log's form, is read by `line_envelope`, which is slower.
"""

from __future__ import annotations

import re
from dataclasses import replace

from assay.observe.logs.kernel_log_search import KernelLogForm, StampParser
from assay.observe.logs.line_envelope import (
    parse_ctime,
    parse_iso_time,
    parse_microseconds_since_boot,
    parse_seconds_since_boot,
    parse_syslog_time,
)
from assay.observe.logs.record_forms import JsonLogForm

PRINTK = (
    rb"(?:\[ *(?P<uptime>\d+\.\d+)\] ?)?(?:\[ *[TC]\d+\] ?)?"  # journals and syslogs may have the kernel's stamp too
)
MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY = MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
FRACTION = rb"(?:\.\d+)?"
ZONE = rb"(?:Z|[+-]\d\d:?\d\d)"
LEVEL = rb"(?:<(?P<level>\d+)>|\w+ *: *(?P<level_name>\w+) *: )?"
THREAD = rb"(?:\[ *[TC]\d+\])? ?"
TAG = rb" (?P<host>\S+) (?P<program>[^\s:\[]+)(?:\[\d+\])?: "


def _text_form(
    name: str, header: bytes, prefix: bytes, first_bytes: bytes, stamp: StampParser, from_boot: bool = False
) -> KernelLogForm:
    """Return a form whose lines are a header with the group `stamp`, and the message."""
    return KernelLogForm(name, re.compile(header + rb"(?P<text>[^\r\n]*)"), prefix, first_bytes, stamp, from_boot)


_KMSG = _text_form(
    "/dev/kmsg",
    rb"(?P<level>\d+),\d+,(?P<stamp>\d+),[^;\n]*;",
    rb";",
    rb"\d ",
    parse_microseconds_since_boot,
    from_boot=True,
)
KMSG = replace(_KMSG, further=b" ")
DMESG = _text_form(
    "dmesg (not -e, -H or delta)",
    LEVEL + rb"\[ *(?P<stamp>\d+\.\d+)\]" + THREAD,
    rb"\] ",
    rb"\[<a-z",
    parse_seconds_since_boot,
    from_boot=True,
)
DMESG_CTIME = _text_form(
    "dmesg -T", LEVEL + rb"\[(?P<stamp>\w{3} " + DAY + rb" \d{4})\]" + THREAD, rb"\] ", rb"\[<a-z", parse_ctime
)
DMESG_ISO = _text_form(
    "dmesg --time-format iso",
    rb"(?P<stamp>" + ISO + rb",\d+" + ZONE + rb") (?!\[)",
    rb"\d ",
    rb"\d",
    parse_iso_time,
)
SYSLOG_5424 = _text_form(
    "RFC 5424",
    rb"<(?P<level>\d+)>1 (?P<stamp>"
    + ISO
    + FRACTION
    + ZONE
    + rb") (?P<host>\S+) (?P<program>\S+) \S+ \S+ - (?:\xef\xbb\xbf)?",
    rb"[-\]\xbf] ?",
    rb"<",
    parse_iso_time,
)
JOURNAL_SHORT_ISO = _text_form(
    "journalctl -o short-iso",
    rb"(?P<stamp>" + ISO + FRACTION + ZONE + rb")" + TAG + PRINTK,
    rb"[:\]] ",
    rb"\d",
    parse_iso_time,
)
SYSLOG = _text_form(
    "syslog",
    rb"(?:<(?P<level>\d+)>)?(?P<stamp>" + DAY + FRACTION + rb")" + TAG + PRINTK,
    rb"[:\]] ",
    rb"A-Z<",
    parse_syslog_time,
)
JOURNAL_JSON = JsonLogForm()

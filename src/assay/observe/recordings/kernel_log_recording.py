"""Reads a kernel log in a file, in any known form, into the branch `kernel_log` of the probe and the host's boot.

Lines of other programs in a journal are left out. Of a journal that names its boots, the last boot counts.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from assay.model.log_message import LogMessage
from assay.model.reading import absent, value
from assay.observe.logs.kernel_log_forms import JOURNAL_JSON, JOURNAL_SHORT_ISO, KMSG, SYSLOG, SYSLOG_5424
from assay.observe.logs.kernel_log_search import KernelLogForm
from assay.observe.logs.log_form_protocol import list_log_forms
from assay.observe.recordings.recording_format import Branches, RecordingError, RecordingFormat
from assay.probe.kernel_log import MAX_LOG_LINES, parse_kernel_record

SAMPLE_LINES = 40
MIN_FORM_SHARE = 0.5
"""The share of the first lines, without blank ones, that must be of one form."""

SHARED_FORMS = (JOURNAL_SHORT_ISO, SYSLOG, SYSLOG_5424)
"""Forms into which every program writes; the kernel's own lines are tagged `kernel`."""
BOOT_MESSAGE = "Linux version "


class RecordedLine(NamedTuple):
    """A line of the file; `boot` is the boot that it names, "" for none."""

    number: int
    text: bytes
    boot: str = ""


class NumberedMessage(NamedTuple):
    """A message and its number: the record's number where it has one, else the line's."""

    seq: int
    message: LogMessage


def _is_kernel_log(content: bytes) -> bool:
    return _detect_form(content) is not None


def _detect_form(content: bytes) -> KernelLogForm | None:
    sample = list(islice(filter(bytes.strip, content[: 1 << 16].splitlines()), SAMPLE_LINES))
    forms = [form for form in list_log_forms() if isinstance(form, KernelLogForm)]
    best = max(forms, key=lambda form: form.rate(sample)) if sample else None
    return best if best and best.rate(sample) >= MIN_FORM_SHARE else None


def _read_kernel_log(content: bytes, at: datetime) -> Branches:
    """Read the last messages and, if it comes before these, the last message of a boot; count the others as missed."""
    form = _detect_form(content)
    if form is None:
        raise RecordingError("it is no kernel log")
    last: deque[RecordedLine] = deque(maxlen=MAX_LOG_LINES)
    boot_line: RecordedLine | None = None
    count = 0
    for line in _kernel_lines(content, form):
        last.append(line)
        count += 1
        boot_line = line if BOOT_MESSAGE.encode() in line.text else boot_line
    boot = last[-1].boot if last else ""
    wanted = [line for line in last if line.boot == boot]
    earlier = [boot_line] if boot_line and boot_line.boot == boot and boot_line.number < last[0].number else []
    parsed = [_parse_message(line, form, at) for line in (*earlier, *wanted)]
    messages = [message for message in parsed if message]
    log = _log_branch(messages, missed=count - len(parsed), unread=len(parsed) - len(messages))
    return {("probe", "kernel_log"): log, ("probe", "host"): _host_branch(messages, boot, at)}


def _kernel_lines(content: bytes, form: KernelLogForm) -> Iterator[RecordedLine]:
    """Yield the kernel's lines, and those whose program is unknown."""
    for number, text in enumerate(content.splitlines()):
        if not text.strip() or (form is KMSG and text.startswith(b" ")):
            continue
        if form is JOURNAL_JSON:
            transport, boot = _journal_origin(text)
            if transport == "kernel":
                yield RecordedLine(number, text, boot)
        elif form not in SHARED_FORMS or b" kernel: " in text or not form.matches(text):
            yield RecordedLine(number, text)


def _journal_origin(text: bytes) -> tuple[str, str]:
    """Return an entry's transport into the journal, and its boot. A line that is no entry may be the kernel's."""
    try:
        entry = json.loads(text)
        return str(entry.get("_TRANSPORT", "kernel")), str(entry.get("_BOOT_ID", ""))
    except (ValueError, AttributeError, RecursionError):
        return "kernel", ""


def _parse_message(line: RecordedLine, form: KernelLogForm, at: datetime) -> NumberedMessage | None:
    if form is KMSG:
        record = parse_kernel_record(line.text)
        return NumberedMessage(record.seq, LogMessage(record.text, record.t_s, None, record.t_s)) if record else None
    message = form.parse_line(line.text, at)
    return NumberedMessage(line.number, message) if message else None


def _log_branch(messages: Sequence[NumberedMessage], missed: int, unread: int) -> dict[str, Any]:
    if not messages:
        raise RecordingError("it holds no message of the kernel")
    booted_at = _find_boot_time(messages)
    lines = [_line_leaf(numbered, booted_at, messages[0]) for numbered in messages]
    return {"cursor": value(messages[-1].seq), "lines": value(lines), "missed": value(missed), "unread": value(unread)}


def _line_leaf(numbered: NumberedMessage, booted_at: float | None, first: NumberedMessage) -> dict[str, Any]:
    """Return a line in the probe's form. Without the kernel's clock, `t_s` counts from the boot or the first line."""
    message, start = numbered.message, first.message.at if booted_at is None else booted_at
    plain = {"seq": numbered.seq, "text": message.text}
    if message.uptime_s is not None:
        return {**plain, "t_s": message.uptime_s}
    if message.at is None or start is None:
        return {**plain, "t_s": 0.0}
    return {**plain, "t_s": message.at - start, "at": datetime.fromtimestamp(message.at, UTC).isoformat()}


def _find_boot_time(messages: Sequence[NumberedMessage]) -> float | None:
    """Return the time of the last boot, where a log with wall-clock times has the kernel's first message."""
    for _, message in reversed(messages):
        if message.uptime_s is None and message.text.startswith(BOOT_MESSAGE):
            return message.at
    return None


def _host_branch(messages: Sequence[NumberedMessage], boot: str, at: datetime) -> dict[str, Any]:
    booted_at = _find_boot_time(messages)
    unknown = absent("the recording does not say when the node booted")
    uptime = (
        unknown if booted_at is None else value((at - datetime.fromtimestamp(booted_at, UTC)) / timedelta(seconds=1))
    )
    boot_id = value(_add_dashes(boot)) if boot else absent("the recording names no boot")
    return {"boot_id": boot_id, "uptime_s": uptime}


def _add_dashes(boot: str) -> str:
    """Return a boot id as the kernel writes it; the journal writes it without dashes."""
    return f"{boot[:8]}-{boot[8:12]}-{boot[12:16]}-{boot[16:20]}-{boot[20:]}" if len(boot) == 32 else boot


KERNEL_LOG = RecordingFormat("the kernel's log", _is_kernel_log, _read_kernel_log)

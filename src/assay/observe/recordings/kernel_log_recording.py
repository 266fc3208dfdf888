"""A kernel log in a file, in any form that is known: the branch `kernel_log` as the probe has it, and the host's boot.

What other programs wrote into a journal is passed over. Of a journal that tells its boots apart, the last boot counts.
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
from assay.observe.logs.log_formats import LogFormat as LogForm
from assay.observe.logs.log_formats import detect_log_format
from assay.observe.recordings.recording_format import Branches, RecordingError, RecordingFormat
from assay.probe.kernel_log import MAX_LOG_LINES
from assay.probe.kernel_log import parse_kernel_record as record_of

SAMPLE = 40
MIN_FORMAT_SHARE = 0.5
"""Of the first lines that say anything, so many must be of one form."""

KMSG, JOURNAL = "/dev/kmsg", "journalctl -o json"
SHARED_FORMATS = {"journalctl -o short-iso", "syslog", "RFC 5424"}
"""Forms into which every program writes; the kernel's lines say so."""
BOOT_MESSAGE = "Linux version "


class RecordedLine(NamedTuple):
    """A line of the file. `boot` is the boot that it names, if it names one."""

    number: int
    text: bytes
    boot: str = ""


class NumberedMessage(NamedTuple):
    """A message, and its number: the record's where it has one, else the line's."""

    seq: int
    message: LogMessage


def _shows(content: bytes) -> bool:
    return _form(content) is not None


def _form(content: bytes) -> LogForm | None:
    sample = list(islice(filter(bytes.strip, content[: 1 << 16].splitlines()), SAMPLE))
    form = detect_log_format(sample)
    return form if form and sum(map(form.matches, sample)) >= MIN_FORMAT_SHARE * len(sample) else None


def _read(content: bytes, at: datetime) -> Branches:
    """Read the last messages, and the last that tells of a boot; of those before them only the number is kept."""
    form = _form(content)
    if form is None:
        raise RecordingError("it is no kernel log")
    last: deque[RecordedLine] = deque(maxlen=MAX_LOG_LINES)
    began: RecordedLine | None = None
    seen = 0
    for line in _lines(content, form):
        last.append(line)
        seen += 1
        began = line if BOOT_MESSAGE.encode() in line.text else began
    boot = last[-1].boot if last else ""
    wanted = [line for line in last if line.boot == boot]
    earlier = [began] if began and began.boot == boot and began.number < last[0].number else []
    said = [_parse_message(line, form, at) for line in (*earlier, *wanted)]
    read = [one for one in said if one]
    log = _log(read, missed=seen - len(said), unread=len(said) - len(read))
    return {("probe", "kernel_log"): log, ("probe", "host"): _host(read, boot, at)}


def _lines(content: bytes, form: LogForm) -> Iterator[RecordedLine]:
    """Yield the lines that are the kernel's, or that nobody can tell."""
    for number, text in enumerate(content.splitlines()):
        if not text.strip() or (form.name == KMSG and text.startswith(b" ")):
            continue
        if form.name == JOURNAL:
            transport, boot = _journal_origin(text)
            if transport == "kernel":
                yield RecordedLine(number, text, boot)
        elif form.name not in SHARED_FORMATS or b" kernel: " in text or not form.matches(text):
            yield RecordedLine(number, text)


def _journal_origin(text: bytes) -> tuple[str, str]:
    """Return by which way an entry of the journal came, and its boot; what is no entry may be the kernel's."""
    try:
        entry = json.loads(text)
        return str(entry.get("_TRANSPORT", "kernel")), str(entry.get("_BOOT_ID", ""))
    except (ValueError, AttributeError, RecursionError):
        return "kernel", ""


def _parse_message(line: RecordedLine, form: LogForm, at: datetime) -> NumberedMessage | None:
    if form.name == KMSG:
        record = record_of(line.text)
        return NumberedMessage(record.seq, LogMessage(record.text, record.t_s, None, record.t_s)) if record else None
    message = form.parse_line(line.text, at)
    return NumberedMessage(line.number, message) if message else None


def _log(said: Sequence[NumberedMessage], missed: int, unread: int) -> dict[str, Any]:
    if not said:
        raise RecordingError("it holds no message of the kernel")
    booted = _find_boot_time(said)
    lines = [_line_leaf(one, booted, said[0]) for one in said]
    return {"cursor": value(said[-1].seq), "lines": value(lines), "missed": value(missed), "unread": value(unread)}


def _line_leaf(said: NumberedMessage, booted: float | None, first: NumberedMessage) -> dict[str, Any]:
    """Return a line as the probe has it; without the kernel's clock, `t_s` counts from the boot or the first line."""
    message, start = said.message, first.message.at if booted is None else booted
    plain = {"seq": said.seq, "text": message.text}
    if message.uptime_s is not None:
        return {**plain, "t_s": message.uptime_s}
    if message.at is None or start is None:
        return {**plain, "t_s": 0.0}
    return {**plain, "t_s": message.at - start, "at": datetime.fromtimestamp(message.at, UTC).isoformat()}


def _find_boot_time(said: Sequence[NumberedMessage]) -> float | None:
    """Return when the last boot was, where a log with wall-clock times has the kernel's first words."""
    for one in reversed(said):
        if one.message.uptime_s is None and one.message.text.startswith(BOOT_MESSAGE):
            return one.message.at
    return None


def _host(said: Sequence[NumberedMessage], boot: str, at: datetime) -> dict[str, Any]:
    booted = _find_boot_time(said)
    none = absent("the recording does not say when the node booted")
    uptime = none if booted is None else value((at - datetime.fromtimestamp(booted, UTC)) / timedelta(seconds=1))
    return {"boot_id": value(_dashed(boot)) if boot else absent("the recording names no boot"), "uptime_s": uptime}


def _dashed(boot: str) -> str:
    """Return a boot id as the kernel writes it; the journal leaves its dashes out."""
    return f"{boot[:8]}-{boot[8:12]}-{boot[12:16]}-{boot[16:20]}-{boot[20:]}" if len(boot) == 32 else boot


KERNEL_LOG = RecordingFormat("the kernel's log", _shows, _read)

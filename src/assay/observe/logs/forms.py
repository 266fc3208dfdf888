"""The forms in which kernel messages are written down: how a line begins, what stands before the message, its time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from assay.observe.logs import stamps
from assay.observe.logs.message import Message, legible

PRINTK = rb"(?:\[ *\d+\.\d+\] ?)?(?:\[ *[TC]\d+\] ?)?"  # journals and syslogs may keep the kernel's own stamp
MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DAY = MONTH + rb" [ \d]\d \d\d:\d\d:\d\d"
ISO = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
FRACTION = rb"(?:\.\d+)?"
ZONE = rb"(?:Z|[+-]\d\d:?\d\d)"


@dataclass(frozen=True)
class Form:
    """One form. `line`: a whole line, with the groups `stamp` (if any) and `text`. `lead`: what stands right before a
    message. `starts`: the bytes with which a line may begin, as a set of a regular expression.
    """  # noqa: D205

    name: str
    line: re.Pattern[bytes]
    lead: bytes
    starts: bytes
    stamp: stamps.Reader | None = None
    from_boot: bool = False
    unpack: Callable[[bytes, datetime], Message | None] | None = None

    def message(self, line: bytes, before: datetime) -> Message | None:
        """Return what a line says, None where it is none of this form. `before`: when the log was written at last."""
        if self.unpack:
            return self.unpack(line, before)
        match = self.line.match(line)
        if match is None:
            return None
        text = _plain(match["text"])
        if self.stamp is None:
            return Message(text)
        try:
            at, stamp = self.stamp(match["stamp"].decode(), before)
        except (ValueError, OverflowError):
            return None
        return Message(text, at, stamp, at if self.from_boot else None)

    def fits(self, line: bytes) -> bool:
        """Whether a line is of this form."""
        return self.line.match(line) is not None


def _plain(text: bytes) -> str:
    plain = text.decode(errors="replace")
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), plain) if "\\x" in plain else plain


_ESCAPED = re.compile(r"\\x([0-9a-f]{2})")


def _journal(line: bytes, before: datetime) -> Message | None:
    """Read one entry of `journalctl -o json`; a message with odd bytes is a list of numbers."""
    try:
        entry = json.loads(line)
        said, micros = entry["MESSAGE"], entry.get("__REALTIME_TIMESTAMP")
        text = bytes(said).decode(errors="replace") if isinstance(said, list) else legible(said)
        at, stamp = stamps.epoch_microseconds(micros, before) if micros else (None, None)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError, RecursionError):
        return None
    return Message(text, at, stamp)


def _form(
    name: str, before_text: bytes, lead: bytes, starts: bytes, stamp: stamps.Reader, from_boot: bool = False
) -> Form:
    return Form(name, re.compile(before_text + rb"(?P<text>[^\r\n]*)"), lead, starts, stamp, from_boot)


FORMS = (
    _form(
        "/dev/kmsg",
        rb"\d+,\d+,(?P<stamp>\d+),[^;\n]*;",
        rb";",
        rb"\d ",
        stamps.microseconds_since_boot,
        from_boot=True,
    ),
    _form(
        "dmesg",
        rb"(?:<\d+>|\w+ *: *\w+ *: )?\[ *(?P<stamp>\d+\.\d+)\](?:\[ *[TC]\d+\])? ?",
        rb"\] ",
        rb"\[<a-z",
        stamps.since_boot,
        from_boot=True,
    ),
    _form(
        "dmesg -T",
        rb"(?:<\d+>|\w+ *: *\w+ *: )?\[(?P<stamp>\w{3} " + DAY + rb" \d{4})\](?:\[ *[TC]\d+\])? ?",
        rb"\] ",
        rb"\[<a-z",
        stamps.ctime,
    ),
    _form("dmesg --time-format iso", rb"(?P<stamp>" + ISO + rb",\d+" + ZONE + rb") ", rb"\d ", rb"\d", stamps.iso),
    _form(
        "RFC 5424",
        rb"<\d+>1 (?P<stamp>"
        + ISO
        + rb"(?:\.\d+)?"
        + ZONE
        + rb")(?: \S+){4} (?:-|\[[^\]\n]*\]) (?:\xef\xbb\xbf)?"
        + PRINTK,
        rb"[-\]\xbf] ?",
        rb"<",
        stamps.iso,
    ),
    _form(
        "journalctl -o short-iso",
        rb"(?P<stamp>" + ISO + FRACTION + ZONE + rb") \S+ [^\s:\[]+(?:\[\d+\])?: " + PRINTK,
        rb"[:\]] ",
        rb"\d",
        stamps.iso,
    ),
    _form(
        "syslog",
        rb"(?:<\d+>)?(?P<stamp>" + DAY + rb")(?:\.\d+)? \S+ [^\s:\[]+(?:\[\d+\])?: " + PRINTK,
        rb"[:\]] ",
        rb"A-Z<",
        stamps.syslog,
    ),
    Form("journalctl -o json", re.compile(rb'\{.*"MESSAGE"'), rb'"MESSAGE" ?: ?"', rb"{", unpack=_journal),
)
BARE = Form("dmesg -t", re.compile(rb"(?P<text>[^\r\n]*)"), rb"\n", rb"\x00-\xff")
"""Messages alone. Any text is of this form, so it is tried last, and only where a line is one of interest."""


def form_of(lines: list[bytes]) -> Form | None:
    """Return the form that most of these lines have, None where none of them has any."""
    fitting = [(sum(map(form.fits, lines)), -number) for number, form in enumerate(FORMS)]
    most, number = max(fitting)
    return FORMS[-number] if most else None

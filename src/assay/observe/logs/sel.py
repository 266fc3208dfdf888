"""A BMC's event log as `ipmitool sel list` and `sel elist` print it.

A line is `2 | 11/21/2026 | 18:00:00 UTC | Power Supply PS1 | Failure detected | Asserted`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from assay.observe.logs.message import Message, Tally

LINE = re.compile(r"\s*[0-9a-fA-F]+ *\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
OLD = re.compile(r"\s*[0-9a-fA-F]+ *\| *(?:Pre-Init|Unknown)[^|]*\|()([^|]*)\|(.*)", re.IGNORECASE)


def is_sel(line: bytes) -> bool:
    """Whether a line is an entry of such a log."""
    return line.count(b"|") >= 3 and re.match(rb"\s*[0-9a-fA-F]+ *\|", line) is not None


def messages(lines: Iterable[str], tally: Tally) -> Iterator[Message]:
    """Yield the entries of the log that were asserted: what was deasserted is over."""
    for line in filter(str.strip, lines):
        tally.lines += 1
        entry = _entry(line)
        if entry is None:
            tally.unread += 1
        elif entry.text:
            yield entry


def _entry(line: str) -> Message | None:
    """Return an entry, one without text where it tells of an end, None where it cannot be read."""
    match = OLD.match(line) or LINE.match(line)
    if match is None:
        return None
    *when, sensor, event = (field.strip() for field in match.groups())
    said = [field.strip() for field in event.split("|")]
    over = "Deasserted" in said
    text = "" if over else ", ".join([sensor, *(field for field in said if field not in ("Asserted", ""))])
    at = _time(" ".join(when))
    if at is None:
        return Message(text, part=sensor)
    return Message(text, at.timestamp(), at.replace(tzinfo=None).isoformat(), part=sensor)


def _time(text: str) -> datetime | None:
    """Return the time of an entry, in the BMC's zone, which nobody knows. None before its clock was set."""
    for form in ("%m/%d/%Y %H:%M:%S", "%m/%d/%y %H:%M:%S"):
        try:
            return datetime.strptime(" ".join(text.split()[:2]), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None

"""Times with a date of numbers alone: `11/21/2026 06:00:00 PM` and `21.11.2026 18:00:00`, at the beginning of lines.

Each becomes `2026-11-21 18:00:00`, so that a line can be read without those before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from assay.observe.logs.event_texts.bmc_clock import is_day_first, parse_time

_DATE = rb"\d{1,2}(?P<mark>[./-])\d{1,2}(?P=mark)\d{4}"
NUMBERED = re.compile(
    rb"^(?P<before>[\s>|*\[\"'`]*(?:[\w.-]{1,64}: +\[?)?)(?P<day>" + _DATE + rb")(?:,? +|T)"
    rb"(?P<clock>\d{1,2}:\d\d:\d\d)(?P<fraction>[.,]\d{1,9})?(?P<half> ?[AaPp]\.?[Mm]\b\.?)?",
    re.MULTILINE,
)


def find_date_order(sample: Sequence[bytes]) -> bool | None:
    """Return whether the day stands first in the dates of a log's first lines, None where no line has such a date."""
    days = [found["day"].decode() for line in sample if (found := NUMBERED.match(line))]
    return is_day_first(days) if days else None


def write_iso_dates(pieces: Iterable[bytes], day_first: bool) -> Iterator[bytes]:
    """Yield the log with the year first. A date that is none stays as it is."""
    for piece in pieces:
        yield NUMBERED.sub(lambda found: _write_date(found, day_first), piece)


def _write_date(found: re.Match[bytes], day_first: bool) -> bytes:
    clock = (found["clock"] + (found["half"] or b"")).decode()
    told = parse_time(found["day"].decode(), clock, day_first or int(re.split(rb"\D", found["day"])[0]) > 12)
    if told is None:
        return found[0]
    return found["before"] + told.stamp.replace("T", " ").encode() + (found["fraction"] or b"").replace(b",", b".")

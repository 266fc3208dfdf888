"""Until when a hold is meant to last, as a person types it and as it is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from assay.lifecycle.node_state import OperatorNote
from assay.model.errors import AssayError
from assay.model.timestamps import format_duration, parse_time

SPAN_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,4}(?:\.\d+)?)([mhdw])")


def parse_hold_end(until: str, lasting: str, begun: datetime, now: datetime) -> str:
    """Return when a hold that was `begun` then ends (ISO 8601 UTC), "" where neither a time nor a span is given.

    Raises Trouble for both at once, for what is no time or span, and for a time that is over.
    """
    if until and lasting:
        raise AssayError("--until and --for say the same thing", fix="give one of them")
    end = _parse_time(until) if until else begun + _parse_span(lasting) if lasting else None
    if end is None:
        return ""
    if end <= now:
        raise AssayError(f"{until or lasting} is over: it is {now:%Y-%m-%d %H:%M} UTC", fix="name a time to come")
    return end.astimezone(UTC).isoformat(timespec="seconds")


def is_hold_expired(held: OperatorNote, now: datetime) -> bool:
    """Whether a hold's end has come, though no pass has written that down yet."""
    return bool(held.until) and parse_time(held.until) <= now


def format_hold_end(until: str, now: datetime) -> str:
    """Return the end of a hold for people, "until released" where it has none."""
    if not until:
        return "until released"
    end = parse_time(until)
    left = f"in {format_duration(end - now)}" if end > now else "which is over: the next pass releases it"
    return f"until {end:%Y-%m-%d %H:%M} UTC, {left}"


def _parse_time(text: str) -> datetime:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(
            f"{text!r} is no time", fix="--until 2026-12-01, or 2026-12-01T18:00+01:00; or --for 3d"
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _parse_span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text.strip().lower())
    if not found or float(found[1]) == 0:
        raise AssayError(f"{text!r} is no span of time", fix="--for 90m, 12h, 3d or 2w")
    return timedelta(**{SPAN_UNITS[found[2]]: float(found[1])})

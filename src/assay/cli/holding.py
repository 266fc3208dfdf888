"""Until when a hold is meant to last, as a person types it and as it is told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from assay.lifecycle.story import Word
from assay.lifecycle.when import moment, spoken
from assay.model.errors import Trouble

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d{1,4}(?:\.\d+)?)([mhdw])")


def ends_at(until: str, lasting: str, begun: datetime, now: datetime) -> str:
    """Return when a hold that was `begun` then ends (ISO 8601 UTC), "" where neither a time nor a span is given.

    Raises Trouble for both at once, for what is no time or span, and for a time that is over.
    """
    if until and lasting:
        raise Trouble("--until and --for say the same thing", fix="give one of them")
    end = _moment(until) if until else begun + _span(lasting) if lasting else None
    if end is None:
        return ""
    if end <= now:
        raise Trouble(f"{until or lasting} is over: it is {now:%Y-%m-%d %H:%M} UTC", fix="name a time to come")
    return end.astimezone(UTC).isoformat(timespec="seconds")


def is_over(held: Word, now: datetime) -> bool:
    """Whether a hold's end has come, though no pass has written that down yet."""
    return bool(held.until) and moment(held.until) <= now


def until_when(until: str, now: datetime) -> str:
    """Return the end of a hold for people, "until released" where it has none."""
    if not until:
        return "until released"
    end = moment(until)
    left = f"in {spoken(end - now)}" if end > now else "which is over: the next pass releases it"
    return f"until {end:%Y-%m-%d %H:%M} UTC, {left}"


def _moment(text: str) -> datetime:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise Trouble(
            f"{text!r} is no time", fix="--until 2026-12-01, or 2026-12-01T18:00+01:00; or --for 3d"
        ) from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _span(text: str) -> timedelta:
    found = _SPAN.fullmatch(text.strip().lower())
    if not found or float(found[1]) == 0:
        raise Trouble(f"{text!r} is no span of time", fix="--for 90m, 12h, 3d or 2w")
    return timedelta(**{UNITS[found[2]]: float(found[1])})

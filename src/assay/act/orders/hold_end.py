"""The end of a hold: parsed from what a person types, and formatted for people."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.decide.state.node_state import OperatorNote
from assay.model.durations import parse_duration
from assay.model.errors import AssayError
from assay.model.timestamps import format_duration, parse_time


def parse_hold_end(until: str, duration: str, start: datetime, now: datetime) -> str:
    """Return the end (ISO 8601 UTC) of a hold that began at `start`, "" if neither a time nor a duration is given.

    Raises AssayError for both at once, for an invalid time or duration, and for an end that is not after `now`.
    """
    if until and duration:
        raise AssayError("--until and --for are both given", fix="give one of them")
    end = _parse_time(until) if until else start + parse_duration(duration, "--for") if duration else None
    if end is None:
        return ""
    if end <= now:
        raise AssayError(
            f"the end {until or duration} is in the past: it is {now:%Y-%m-%d %H:%M} UTC", fix="give a later end"
        )
    return end.astimezone(UTC).isoformat(timespec="seconds")


def is_hold_expired(hold: OperatorNote, now: datetime) -> bool:
    """Return whether a hold has ended, even if no round of reconcile has recorded that yet."""
    return bool(hold.until) and parse_time(hold.until) <= now


def format_hold_end(until: str, now: datetime) -> str:
    """Return the end of a hold for people, "until released" if it has none."""
    if not until:
        return "until released"
    end = parse_time(until)
    remaining = f"in {format_duration(end - now)}" if end > now else "which is over: the next round releases it"
    return f"until {end:%Y-%m-%d %H:%M} UTC, {remaining}"


def _parse_time(text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise AssayError(
            f"{text!r} is not a time", fix="use --until 2026-12-01 or 2026-12-01T18:00+01:00, or --for 3d"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)

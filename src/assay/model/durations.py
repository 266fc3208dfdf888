"""Durations as people type them: a number and a unit, `90m`, `12h`, `3d` or `2w`."""

from __future__ import annotations

import re
from datetime import timedelta

from assay.model.errors import AssayError

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_FORM = re.compile(r"(\d{1,4}(?:\.\d+)?)([mhdw])")


def parse_duration(text: str, option: str) -> timedelta:
    """Return a typed duration, longer than none. Raises AssayError, which names the `option` that it was given to."""
    match = _FORM.fullmatch(text.strip().lower())
    if not match or float(match[1]) == 0:
        raise AssayError(f"{text!r} is not a duration", fix=f"use {option} 90m, 12h, 3d or 2w")
    return timedelta(**{UNITS[match[2]]: float(match[1])})

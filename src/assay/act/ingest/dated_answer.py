"""An answer that is kept as a file for pages, with the time when it was given. It may be deleted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.model.timestamps import parse_time


def read_dated_answer(file: Path) -> dict[str, Any]:
    """Return a JSON object with its time in `at` (ISO 8601), empty where there is none or it cannot be read."""
    try:
        known = json.loads(file.read_bytes())
        parse_time(known["at"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(known)

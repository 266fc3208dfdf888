"""The last answer about trends, as a file for pages. It may be deleted."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from assay.act.ingest.dated_answer import read_dated_answer
from assay.model.timestamps import parse_time

ANSWER_FILE = Path("trends") / "answer.json"
"""In the folder of reports."""


def read_answer(reports: Path) -> dict[str, Any]:
    """Return the last answer, empty where there is none or it cannot be read."""
    return read_dated_answer(reports / ANSWER_FILE)


def read_last_time(reports: Path) -> datetime | None:
    """Return when the last answer was given, None where it is lost."""
    known = read_answer(reports)
    return parse_time(known["at"]) if known else None

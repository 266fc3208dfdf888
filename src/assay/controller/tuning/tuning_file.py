"""The last review of limits and of missed failures, as a file for pages. It is made each week, and may be deleted."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from assay.controller.context import ControllerContext
from assay.controller.ingest.dated_answer import read_dated_answer
from assay.controller.tuning.limit_reviews import review_fleet_limits
from assay.model.errors import AssayError
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_store import write_atomically
from assay.results.history.outcome_and_pool_queries import OutcomeHistory
from assay.results.history.parquet_files import history_folder
from assay.trends.missed.missed_failures import find_missed_failures

TUNING_FILE = Path("trends") / "tuning.json"
"""In the folder of reports."""
REVIEWED_DAYS = 90
KEPT_FOR = timedelta(days=7)


def read_tuning(reports: Path) -> dict[str, Any]:
    """Return the last review, empty where there is none or it cannot be read.

    `at`: ISO 8601; `missed`: what `assay trends missed` gives as JSON; `limits`: the list of `assay trends limits`;
    `unread`: the damaged files of history that were left out.
    """
    return read_dated_answer(reports / TUNING_FILE)


def keep_tuning(context: ControllerContext) -> bool:
    """Review limits and failures unless that was done this week; return whether it was done now.

    Raises AssayError without a history of measurements.
    """
    now = context.clock.now()
    known = read_tuning(context.reports)
    if known and timedelta(0) <= now - parse_time(known["at"]) < KEPT_FOR:
        return False
    write_atomically(context.reports / TUNING_FILE, json.dumps(_review(context, now)).encode())
    return True


def _review(context: ControllerContext, now: datetime) -> dict[str, Any]:
    home = history_folder(context.reports)
    in_service = context.policy.states_in_service
    unread: list[str] = []

    def skip(error: AssayError) -> None:
        if str(error) not in unread:
            unread.append(str(error))

    with OutcomeHistory(home, now, skip) as history:
        missed = find_missed_failures(context.ledger, history, in_service, REVIEWED_DAYS)
    limits = review_fleet_limits(context.fleet, context.ledger, home, now, REVIEWED_DAYS, skip)
    return {
        "at": format_time(now),
        "missed": missed.as_json(),
        "limits": [one.as_json() for one in limits],
        "unread": unread,
    }

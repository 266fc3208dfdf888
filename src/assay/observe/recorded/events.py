"""Entries of a BMC's log, as the channel `bmc` has them when the BMC was asked itself."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from assay.model.reading import value
from assay.observe.bmc_log import Cursor
from assay.observe.recorded.form import Branches

Event = dict[str, str]


def branches(events: Sequence[Event]) -> Branches:
    """Return `events`, oldest first, and `event_log`: where they end, and how many were critical or warnings."""
    ordered = sorted(events, key=lambda event: datetime.fromisoformat(event["at"]))
    now = Cursor().after(ordered)
    counted = {"critical": value(now.critical), "warning": value(now.warning)}
    return {("bmc", "events"): value(ordered), ("bmc", "event_log"): {"cursor": value(str(now)), **counted}}

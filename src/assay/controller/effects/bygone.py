"""What the engine may forget: workflows that ended long ago. What they carried is in the ledger for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dbos import DBOS

from assay.ledger.store import Ledger

KEPT = timedelta(days=30)
"""Our own choice: how long somebody may want to see how often the engine took an effect up, and whose it was."""
EACH_S = 600.0
"""How often it is time to forget, in real seconds."""
AT_ONCE = 1000
"""How many are forgotten at a time, so that nobody who acts waits for it."""
ENDED = ["SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]


def forget(ledger: Ledger) -> int:
    """Forget workflows that have ended and were begun long ago, by the machine's clock; return how many.

    Of the controllers of a ledger one does so at a time.
    """
    begun_by = (datetime.now(UTC) - KEPT).isoformat()
    if not _bygone(begun_by):
        return 0
    with ledger.exclusively("forgetting"):
        found = _bygone(begun_by)
        DBOS.delete_workflows(found)
    return len(found)


def _bygone(begun_by: str) -> list[str]:
    found = DBOS.list_workflows(status=ENDED, end_time=begun_by, limit=AT_ONCE, load_input=False, load_output=False)
    return [one.workflow_id for one in found]

"""`assay reconcile --once` for the fleet at FOLDER, killed at an entry: `killed_at FOLDER before|after KIND [ACTION]`.

It is killed as soon as such an entry stands in the ledger, or just before it would.
"""

from __future__ import annotations

import os
import signal
import sys

from assay.cli.app import main
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry

FOLDER, WHEN, KIND, *ACTION = sys.argv[1:]
_append = Ledger.append


def append_and_die(self: Ledger, *entries: LedgerEntry) -> list[bool]:
    """Append entries; be killed where the one is among them."""
    is_it = any(entry.kind == KIND and ACTION in ([], [entry.body.get("action")]) for entry in entries)
    if is_it and WHEN == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    appended = _append(self, *entries)
    if is_it:
        os.kill(os.getpid(), signal.SIGKILL)
    return appended


if __name__ == "__main__":
    Ledger.append = append_and_die  # type: ignore[method-assign]
    sys.argv = ["assay", "reconcile", "--once", "--fleet", FOLDER]
    main()

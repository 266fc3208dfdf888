"""Names a home in which a lab of an earlier version wrote among the fleet's own: ledger, evidence and tickets.

Nothing in such a ledger says what was a rehearsal, and all of it has the time of the lab's clock.
"""

from __future__ import annotations

from pathlib import Path

from assay.model.errors import AssayError


def is_mixed(home: Path) -> bool:
    """Whether a lab of an earlier version ran in this home of a fleet."""
    return (home / "lab").is_dir()


def make_mixed_error(home: Path) -> AssayError:
    """Return the error for a command that would act on what a rehearsal wrote."""
    problem = "a lab of an earlier version wrote into this home: its ledger holds rehearsed faults, orders and passes"
    return AssayError(
        problem,
        where=str(home),
        fix=f"put it aside as a whole: mv {home.name} {home.name}-mixed-1; the fleet then begins a new ledger",
    )

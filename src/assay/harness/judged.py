"""What a file of outcomes holds, as ids only: many outcomes take little room."""

from __future__ import annotations

from assay.harness.store.read import Stored


def judged(stored: Stored) -> dict[str, set[str]]:
    """Return ids of subjects by that of the check that judged them; each id is in memory once."""
    subjects = dict(stored.connection.execute("SELECT id, name FROM subject"))
    by_number: dict[int, set[str]] = {}
    for check, subject in stored.connection.execute("SELECT check_, subject FROM outcome"):
        by_number.setdefault(check, set()).add(subjects[subject])
    found: dict[str, set[str]] = {}
    for number, check in stored.connection.execute("SELECT id, name FROM check_"):
        found.setdefault(check, set()).update(by_number.get(number, ()))
    return {check: names for check, names in found.items() if names}


def left_out(stored: Stored) -> dict[str, set[str]]:
    """Return ids of subjects by that of the check that the user kept from them."""
    found: dict[str, set[str]] = {}
    for check, subject in stored.connection.execute("SELECT check_, subject FROM left_out"):
        found.setdefault(check, set()).add(subject)
    return found

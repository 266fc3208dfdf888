"""Splits a home in which a lab of an earlier version wrote among the fleet's own: ledger, evidence and tickets.

Nothing in such a ledger says what was a rehearsal, and all of it has the time of the lab's clock. So the home is put
aside as a whole. A person who knows from which entry on the machines were real takes these over. Passed checks are not
taken over: they are proved again.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from assay.model.errors import AssayError

LEDGER_FILE = "ledger.sqlite"


def is_mixed(home: Path) -> bool:
    """Whether a lab of an earlier version ran in this home of a fleet."""
    return (home / "lab").is_dir()


def make_mixed_error(home: Path) -> AssayError:
    """Return the error for a command that would act on what a rehearsal wrote."""
    problem = "a lab of an earlier version wrote into this home: its ledger holds rehearsed faults, orders and passes"
    return AssayError(problem, where=str(home), fix="run: assay ledger split")


def split_home(home: Path, aside: Path, real_from: int | None) -> int:
    """Rename a mixed home to `aside`, and begin a new one, with the entries from `real_from` on; return how many.

    A kill in between loses nothing: the next call goes on. Raises AssayError if there is nothing to split.
    """
    from assay.ledger.store import Ledger  # loads SQLAlchemy, which a look at the folder does without

    begun = home.with_name(f"{home.name}.new")
    if not home.exists() and begun.exists():
        begun.rename(home)
    if not is_mixed(home):
        raise AssayError("no lab of an earlier version ran in this home: there is nothing to split", where=str(home))
    begun.mkdir(exist_ok=True)
    count = 0
    with closing(Ledger.open(begun / LEDGER_FILE, context="fleet")) as ledger:
        if real_from is not None and (home / LEDGER_FILE).exists():
            with closing(Ledger.open_for_reading(home / LEDGER_FILE)) as mixed:
                entries = mixed.entries(after=real_from - 1)
            ledger.append(*entries)
            count = len(entries)
    home.rename(aside)
    begun.rename(home)
    return count

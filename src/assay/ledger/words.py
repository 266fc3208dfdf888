"""The schema's version, and what to tell a person when a ledger cannot be used. Loads nothing."""

from __future__ import annotations

from assay.model.errors import Trouble

VERSION = 3

_SAYINGS = (
    ("database is locked", "the ledger is locked by another process", "wait for it, or end the process that holds it"),
    ("lock timeout", "another process does not let go of its turn", "wait for it, or end the process that holds it"),
    ("file is not a database", "this file is no ledger", "give the ledger a place of its own"),
    ("malformed", "the ledger's file is damaged", "restore it from a copy; keep this one for the salvage"),
    ("readonly database", "the ledger cannot be written", "check who owns the file and its folder"),
    ("unable to open", "the ledger cannot be opened", "check that its folder exists and may be written"),
    ("disk is full", "the disk that holds the ledger is full", "make room; nothing acknowledged was lost"),
)


def plainly(said: str, where: str) -> Trouble:
    """Return what a database said about the ledger at `where` as Trouble."""
    for sign, what, fix in _SAYINGS:
        if sign in said:
            return Trouble(what, where=where, fix=fix)
    what = f"the ledger's database says: {' '.join(said.split())}"
    return Trouble(what, where=where, fix="check that it runs and may be reached")


def no_ledger(tables: list[str], where: str) -> Trouble:
    """Return that a database holds something else."""
    what = f"a database, but no ledger (its tables: {', '.join(tables[:5])})"
    return Trouble(what, where=where, fix="give the ledger a place of its own")


def other_version(version: int, where: str) -> Trouble:
    """Return that a ledger was written by another assay."""
    what = f"the ledger has schema version {version}, this assay writes {VERSION}"
    return Trouble(what, where=where, fix="use the assay that wrote it, or point --fleet at another fleet")

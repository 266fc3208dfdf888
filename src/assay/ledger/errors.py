"""The schema's version, and the error messages for a ledger that cannot be used. Imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path

from assay.model.errors import AssayError

LEDGER_VARIABLE = "ASSAY_LEDGER"
"""The environment variable that names the ledger: a path, or a `postgresql://` URL."""
SCHEMA_VERSION = 6
UPGRADED_VERSIONS = (4, 5)
"""Older schemas that a ledger is upgraded from when it is opened for writing. Their entries are read as they are."""
FULL_BELOW_BYTES = 128 * 1024
"""A disk with less than this free is full: SQLite writes a log of some pages even for one entry."""

BROKEN_LEDGER_FIX = "keep this ledger as it is, find out who changed it, and continue with the last copy that verifies"


class LedgerError(AssayError):
    """A ledger that cannot be read or written, whatever the reason. Verbs that only read go on without it."""


class LedgerReadWarning(UserWarning):
    """Something that people should know about a ledger that was read nevertheless."""


class BrokenLedgerError(LedgerError):
    """A ledger that somebody changed, as its hash chains show."""

    def __init__(self, problems: list[str], where: str) -> None:
        super().__init__(f"this ledger cannot be verified: {problems[0]}", where=where, fix=BROKEN_LEDGER_FIX)
        self.problems = problems


_DATABASE_ERRORS = (
    ("database is locked", "the ledger is locked by another process", "wait for it, or end the process that holds it"),
    ("lock timeout", "another process does not let go of its turn", "wait for it, or end the process that holds it"),
    ("file is not a database", "this file is no ledger", "give the ledger a place of its own"),
    ("malformed", "the ledger's file is damaged", "restore it from a copy; keep this one for the salvage"),
    ("readonly database", "the ledger cannot be written", "check who owns the file and its folder"),
    ("unable to open", "the ledger cannot be opened", "check that its folder exists and may be written"),
    ("disk is full", "the disk that holds the ledger is full", "make room; nothing acknowledged was lost"),
    ("No space left on device", "the disk of the ledger's server is full", "make room; nothing acknowledged was lost"),
    (
        "read-only transaction",
        "the ledger's server takes no writes",
        "name the primary server, or end its read-only mode",
    ),
)
_STORAGE_SIGNS = ("disk I/O error", "disk is full", "unable to open", "readonly database", "readonly directory")


def make_database_error(message: str, where: str) -> LedgerError:
    """Return the database error of the ledger at `where` for people."""
    trouble = describe_storage(where) if any(sign in message for sign in _STORAGE_SIGNS) else ""
    if "full" in trouble:
        return LedgerError(trouble, where=where, fix="make room; nothing acknowledged was lost")
    if trouble:
        return LedgerError(trouble, where=where, fix="mount it writable, or name another ledger: ASSAY_LEDGER")
    for sign, problem, fix in _DATABASE_ERRORS:
        if sign in message:
            return LedgerError(problem, where=where, fix=fix)
    problem = f"the ledger's database says: {' '.join(message.split())}"
    return LedgerError(problem, where=where, fix="check that it runs and may be reached")


def describe_storage(where: str) -> str:
    """Return why nothing can be written to the disk of a ledger's file, "" if it is not full and not read-only."""
    if "://" in where:
        return ""
    folder = next((path for path in (Path(where), *Path(where).parents) if path.exists()), Path("/"))
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        return f"the file system that holds the ledger is read-only ({folder})"
    free = disk.f_bavail * disk.f_frsize
    if free < FULL_BELOW_BYTES:
        return f"the disk that holds the ledger is full ({free:,} bytes free for {folder})"
    return ""


def make_no_ledger_error(where: str) -> LedgerError:
    """Return the error for a ledger that nobody has begun."""
    fix = "run: assay reconcile --once. Or name another ledger: ASSAY_LEDGER"
    return LedgerError("there is no ledger yet: nothing was recorded", where=where, fix=fix)


def make_no_read_error(where: str, cause: str) -> LedgerError:
    """Return the error for a ledger's file that this user cannot read."""
    return LedgerError(f"the ledger cannot be read: {cause}", where=where, fix="check who owns the file and its folder")


def make_not_a_ledger_error(tables: list[str], where: str) -> LedgerError:
    """Return the error for a database that holds something else."""
    problem = f"a database, but no ledger (its tables: {', '.join(tables[:5])})"
    return LedgerError(problem, where=where, fix="give the ledger a place of its own")


def make_schema_version_error(version: int, where: str) -> LedgerError:
    """Return the error for a ledger that another version of assay wrote."""
    problem = f"the ledger has schema version {version}, this assay writes {SCHEMA_VERSION}"
    return LedgerError(problem, where=where, fix="use the assay that wrote it, or point --fleet at another fleet")


def make_other_context_error(made_in: str, chosen: str, where: str) -> LedgerError:
    """Return the error for the ledger of a lab where the fleet is chosen, or the other way round."""
    problem, fix = f"this is the ledger of a {made_in}, and the {chosen} is chosen", "name another ledger"
    return LedgerError(problem, where=where, fix=fix)

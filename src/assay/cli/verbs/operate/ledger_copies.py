"""`assay ledger backup` and `restore`: the whole ledger in one file, and a ledger from such a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.ledger.location import locate_existing_ledger
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.ledger.copies.backup import CopiedLedger
    from assay.ledger.errors import BrokenLedgerError


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The new file.", show_default=False)],
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Copy the whole ledger, as it is now, into a new file. Others may write into the ledger meanwhile.

    The copy is verified by every hash before it gets its name. It is an SQLite file, also of a ledger on PostgreSQL:
    `ASSAY_LEDGER=FILE` reads it as it is, and `assay ledger restore` makes a ledger from it, on either database.

    Exit codes: 0 copied and verified; 1 the ledger was changed by somebody, and no copy was made; 2 it cannot be read,
    or FILE cannot be written or exists already.
    """
    from assay.ledger.copies.backup import back_up
    from assay.ledger.errors import BrokenLedgerError

    workspace = open_ledger_workspace(fleet)
    try:
        copied = back_up(workspace.ledger_location, file)
    except BrokenLedgerError as error:
        raise _end_broken(error, "no copy was made", form) from None
    _print_copy(copied, f"{file} is a copy of the ledger", str(file), form)


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `assay ledger backup`.", show_default=False)],
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Make the ledger from a file of `assay ledger backup`. It replaces no ledger that holds entries.

    ASSAY_LEDGER names where the ledger shall be: a path, or `postgresql://…` to move it to a server. A backup of an
    older assay is upgraded. The ledger appears as a whole, when all its hashes are verified, or not at all.

    Exit codes: 0 restored and verified; 1 somebody changed the backup; 2 it cannot be read, or the ledger cannot be
    written or holds entries already.
    """
    from assay.ledger.copies.backup import restore as restore_ledger
    from assay.ledger.errors import BrokenLedgerError

    location = Workspace(fleet.resolve()).ledger_location
    try:
        copied = restore_ledger(file, location)
    except BrokenLedgerError as error:
        raise _end_broken(error, "nothing was restored", form) from None
    _print_copy(copied, f"the ledger is restored from {file}", str(file), form)


def open_ledger_workspace(fleet: Path) -> Workspace:
    """Return the workspace of a fleet that has a ledger. Raises AssayError if there is none."""
    workspace = Workspace(fleet.resolve())
    if not locate_existing_ledger(workspace.data_dir):
        where = str(workspace.ledger_location)
        raise AssayError("there is no ledger yet", where=where, fix="run: assay reconcile --once")
    return workspace


def _print_copy(copied: CopiedLedger, what: str, file: str, form: str) -> None:
    from assay.cli.render.ledger_verification import count_lines
    from assay.ledger.seals.seal import make_seal

    seal = make_seal(copied.ends)
    entries, runs = copied.ends["entry"][0], copied.ends["run"][0]
    if form == "json":
        plain = {"file": file, "entries": entries, "runs": runs, "seal": str(seal), "schema": copied.version}
        typer.echo(json.dumps(plain, ensure_ascii=False))
        return
    typer.echo(f"{what}: {count_lines(seal)}; every hash is verified")
    typer.echo(f"  its seal is {seal}")


def _end_broken(error: BrokenLedgerError, what: str, form: str) -> typer.Exit:
    from assay.cli.render.ledger_verification import format_broken

    if form == "json":
        typer.echo(json.dumps({"problems": error.problems}, ensure_ascii=False))
    else:
        typer.echo(format_broken(what, error.problems))
    return typer.Exit(1)

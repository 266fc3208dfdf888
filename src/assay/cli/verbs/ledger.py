"""`assay ledger verify`: hold the ledger to its hash chains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.workspace import FleetDir, OutputFormat, Workspace
from assay.ledger.location import locate_existing_ledger
from assay.model.errors import AssayError

ledger_app = typer.Typer(add_completion=False, no_args_is_help=True, help="Look after the ledger.")

FIX = "keep this ledger as it is, find out who wrote in it, and go on with the last copy that verifies"
MIN_SEAL_HASH_CHARS = 12
Seal = Annotated[
    str, typer.Option("--seal", metavar="SEQ:HASH", help="The end of its entries as it was written down elsewhere.")
]


@ledger_app.callback()
def _ledger() -> None:
    """Look after the ledger."""


@ledger_app.command()
def verify(seal: Seal = "", fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Hold every entry, run and outcome to the hash that was written with it, and to the one before.

    Exit 0: whole; 1: something was changed, taken out, swapped or put in; 2: it cannot be read.
    """
    desk = Workspace(fleet.resolve())
    if not locate_existing_ledger(desk.data_dir):
        raise AssayError("there is no ledger yet", where=str(desk.ledger_location), fix="run: assay reconcile --once")
    found = [*desk.ledger.verify(), *_check_seal(desk, seal)]
    ends = desk.ledger.chain_ends()
    typer.echo(
        json.dumps(format_verification_json(found, ends)) if form == "json" else format_verification_text(found, ends)
    )
    raise typer.Exit(1 if found else 0)


def format_verification_json(found: list[str], ends: dict[str, tuple[int, str]]) -> dict[str, Any]:
    """Return the answer as plain data."""
    last = {of: {"count": count, "hash": hash_} for of, (count, hash_) in ends.items()}
    return {"whole": not found, "problems": found, **last}


def format_verification_text(found: list[str], ends: dict[str, tuple[int, str]]) -> str:
    """Return the answer in lines: what does not fit and what to do, or how the ledger ends."""
    if found:
        return "\n".join(["the ledger is broken", *(f"  {line}" for line in found), f"  → {FIX}"])
    (entries, hash_), (runs, _) = ends["entry"], ends["run"]
    whole = f"the ledger is whole: {entries:,} entries, {runs:,} runs"
    return f"{whole}\n  its seal is {entries}:{hash_}" if entries else whole


def _check_seal(desk: Workspace, seal: str) -> list[str]:
    """Return what is wrong with a seal: every line may fit to the next, and still all of them be made anew."""
    if not seal:
        return []
    seq, _, hash_ = seal.partition(":")
    if not seq.isdecimal() or len(hash_) < MIN_SEAL_HASH_CHARS:
        raise AssayError(f"{seal!r} is no seal", fix="it is what `assay ledger verify` printed then: SEQ:HASH")
    kept = desk.ledger.hash_of(int(seq))
    if kept is not None and kept.startswith(hash_):
        return []
    return [f"entry {seq} is not the one that was sealed" if kept else f"entry {seq}, which was sealed, is not here"]

"""`assay ledger verify`: verifies the hash chains of the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.ledger.location import locate_existing_ledger
from assay.model.errors import AssayError

ledger_app = typer.Typer(add_completion=False, no_args_is_help=True)

FIX = "keep this ledger as it is, find out who changed it, and continue with the last copy that verifies"
MIN_SEAL_HASH_CHARS = 12


@ledger_app.callback()
def _ledger() -> None:
    """Verify the ledger."""


@ledger_app.command()
def verify(
    seal: Annotated[
        str,
        typer.Option(
            "--seal",
            metavar="SEQ:HASH",
            help="Also compare with a seal that an earlier `verify` printed and that is kept elsewhere.",
        ),
    ] = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Verify the hash of every entry, run and outcome, and its link to the one before. Print the seal of the ledger.

    Exit codes: 0 unchanged; 1 something was changed, removed, reordered or inserted; 2 it cannot be read.
    """
    workspace = Workspace(fleet.resolve())
    if not locate_existing_ledger(workspace.data_dir):
        where = str(workspace.ledger_location)
        raise AssayError("there is no ledger yet", where=where, fix="run: assay reconcile --once")
    problems = [*workspace.ledger.verify(), *_check_seal(workspace, seal)]
    ends = workspace.ledger.chain_ends()
    if form == "json":
        typer.echo(json.dumps(format_verification_json(problems, ends)))
    else:
        typer.echo(format_verification_text(problems, ends))
    raise typer.Exit(1 if problems else 0)


def format_verification_json(problems: list[str], ends: dict[str, tuple[int, str]]) -> dict[str, Any]:
    """Return the answer as JSON data; `ends` are count and last hash of each chain."""
    last = {chain: {"count": count, "hash": hash_} for chain, (count, hash_) in ends.items()}
    return {"whole": not problems, "problems": problems, **last}


def format_verification_text(problems: list[str], ends: dict[str, tuple[int, str]]) -> str:
    """Return the answer as text: the problems and what to do, or the size of the ledger and its seal."""
    if problems:
        return "\n".join(["the ledger is broken", *(f"  {line}" for line in problems), f"  → {FIX}"])
    (entries, hash_), (runs, _) = ends["entry"], ends["run"]
    text = f"the ledger is unchanged: {entries:,} entries, {runs:,} runs"
    return f"{text}\n  its seal is {entries}:{hash_}" if entries else text


def _check_seal(workspace: Workspace, seal: str) -> list[str]:
    """Return what contradicts a seal. Somebody could rewrite all entries with a valid chain; a seal shows that."""
    if not seal:
        return []
    seq, _, hash_ = seal.partition(":")
    if not seq.isdecimal() or len(hash_) < MIN_SEAL_HASH_CHARS:
        raise AssayError(f"{seal!r} is not a seal", fix="use SEQ:HASH as `assay ledger verify` printed it")
    present = workspace.ledger.hash_of(int(seq))
    if present is not None and present.startswith(hash_):
        return []
    return [f"entry {seq} is not the sealed one" if present else f"entry {seq}, which was sealed, is missing"]

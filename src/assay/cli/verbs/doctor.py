"""`assay doctor`: what is missing on this machine for this fleet."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from assay.cli.context_line import format_answer
from assay.cli.options import FleetDir, OutputFormat
from assay.cli.workspace import Workspace
from assay.model.text.text_lists import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.cli.answers.declaration_answers import DoctorAnswer
    from assay.cli.verbs.machine_needs import Need

doctor_app = typer.Typer(add_completion=False)


@doctor_app.command()
def doctor(fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show what this machine lacks to work on this fleet: packages, programs, secrets, disk, the ledger.

    This reads secrets, as a pass does, and shows none. It reaches no node.

    Exit codes: 0 nothing is missing; 1 something is; 2 the fleet repository cannot be read.
    """
    from assay.cli.verbs.machine_needs import find_unused_extras, list_needs
    from assay.lab.optional_parts import list_parts

    workspace = Workspace(fleet.resolve())
    needs, unused = list(list_needs(workspace)), find_unused_extras(workspace.fleet)
    lab = [str(part) for part in list_parts(workspace.fleet) if part.fix]
    typer.echo(_format_json(needs, unused) if form == "json" else "\n".join(_format_text(needs, unused, lab)))
    sys.exit(1 if any(need.trouble for need in needs) else 0)


def _format_json(needs: Sequence[Need], unused: Sequence[str]) -> str:
    answer: DoctorAnswer = {"needs": [*needs], "unused_extras": [*unused]}
    return format_answer(answer, indent=2, default=asdict)


def _format_text(needs: Sequence[Need], unused: Sequence[str], lab: Sequence[str]) -> list[str]:
    lines = []
    for need in needs:
        mark = "missing" if need.trouble else "ok     "
        lines.append(f"{mark}  {need.name} ({need.used_for})" + (f": {need.trouble}" if need.trouble else ""))
        if need.trouble and need.fix:
            lines.append(f"         → {need.fix}")
    if unused:
        lines.append(f"not installed, and not needed by this fleet: {', '.join(unused)}")
    lines += [f"only virtual in the lab: {part}" for part in lab]
    missing = sum(bool(need.trouble) for need in needs)
    lines.append(f"{format_count(len(needs), 'thing')} needed: {f'{missing} missing' if missing else 'all there'}")
    return lines

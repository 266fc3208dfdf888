"""Which compiled design a verb of `assay fabric` works with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.desk import Desk

if TYPE_CHECKING:
    from assay.fabric.planned import Plan

DesignOrFile = Annotated[str, typer.Option("--design", help="The FabricDesign's name, or the path of its file.")]


def plan_of(fleet: Path, design: str) -> Plan:
    """Return the plan of a design of the fleet, or of the file that `design` names; "" is the only one there is."""
    from assay.fabric.compiled import compiled

    file = Path(design) if _is_path(design) else None
    return compiled(fleet, "" if file else design, Desk(fleet).overlays, file)


def _is_path(design: str) -> bool:
    return "/" in design or design.endswith((".yaml", ".yml")) or Path(design).is_file()

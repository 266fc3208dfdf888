"""`assay fabric impact`: what the loss of one device or cable costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.desk import FleetDir, Format
from assay.cli.fabric_plan import DesignOrFile, plan_of


def impact(
    what: Annotated[str, typer.Argument(help="A node, a switch, or a port: n0005, spine-01, leaf-su01-r0[33].")],
    design: DesignOrFile = "",
    fleet: FleetDir = Path(),
    format: Format = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Say what the fabric lacks without a node, a switch, or the cable at a port. Exit code 2: no such thing."""
    from assay.fabric.impact import impact as of

    told = of(plan_of(fleet, design), what)
    print("\n".join(told.lines) if format == "text" else json.dumps(told.as_json(), indent=1))  # noqa: T201

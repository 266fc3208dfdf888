"""`assay fabric evaluate`: a week of stored scans, for the engineer who looks after the fabric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import typer

from assay.cli.desk import Desk, FleetDir

PageFormat = Annotated[
    Literal["text", "json", "html"],
    typer.Option("--format", help="text for people, json for machines, html for a page with pictures."),
]


def evaluate(
    design: Annotated[str, typer.Argument(help="The FabricDesign's name.")] = "",
    days: Annotated[float, typer.Option(help="How far back from the newest scan to look.", min=0.01, max=366)] = 7,
    fleet: FleetDir = Path(),
    format: PageFormat = "text",  # noqa: A002 — the option is called --format
) -> None:
    """Evaluate the stored scans of a week. Exit codes: 0 nothing stands out, 1 something does, 2 there is no scan."""
    from assay.cli.fabric_week import look_at
    from assay.fabric.compiled import chosen
    from assay.fabric.weekly.words import as_json, as_text

    desk = Desk(fleet)
    one = look_at(desk, chosen(desk.fleet, design), days)
    if format == "html":
        from assay.fabric.weekly.page import as_page

        print(as_page(one))  # noqa: T201
    else:
        print(as_text(one) if format == "text" else json.dumps(as_json(one), indent=1))  # noqa: T201
    raise typer.Exit(1 if one.ranked else 0)

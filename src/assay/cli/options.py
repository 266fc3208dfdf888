"""Command-line options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

FleetDir = Annotated[
    Path,
    typer.Option("--fleet", metavar="DIR", envvar="ASSAY_FLEET", help="The fleet repository.", show_default=False),
]
OptionalFleetDir = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="DIR",
        envvar="ASSAY_FLEET",
        help="The fleet repository. Default: the current folder if it is one, else the specs that assay ships.",
    ),
]
OutputFormat = Annotated[
    Literal["text", "json"], typer.Option("--format", help="text for people, json for machines.", show_default=False)
]
Jobs = Annotated[
    int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Run N processes, each with a part of the nodes.")
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="The run's id, the start of its id, or last, last~1, … for the latest runs.",
    ),
]

WHICH = "Selection"
HOW = "How to run"
FROM_FILES = "From files"
"""Titles of option groups in --help."""

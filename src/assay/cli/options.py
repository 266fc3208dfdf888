"""Command-line options that several verbs share, and what a shell completes for them: names of the fleet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from assay.cli.workspace import Workspace
from assay.model.errors import AssayError
from assay.model.text.lists import expand_names


def _from_fleet(list_names: Callable[[Workspace], Iterable[str]]) -> Callable[[Any, str], list[str]]:
    """Return what Typer calls with the context and the beginning of a word."""

    def complete(ctx: Any, incomplete: str) -> list[str]:
        named = ctx.params.get("fleet") or os.environ.get("ASSAY_FLEET") or ""
        try:
            names = list_names(Workspace(Path(named).resolve()))
            return sorted({name for name in names if name.startswith(incomplete)})
        except (AssayError, OSError):
            return []

    return complete


def _list_runs(workspace: Workspace) -> Iterable[str]:
    from assay.ledger.runs.reader import list_runs

    return ("last", *(file.parent.name for file in list_runs(workspace.reports_dir)))


def _list_checks_of_last_run(workspace: Workspace) -> Iterable[str]:
    from assay.ledger.runs.reader import StoredRun, find_run

    with StoredRun.open_whole(find_run(workspace.reports_dir, "last")) as stored:
        return [name.rpartition("::")[2] for (name,) in stored.connection.execute("SELECT name FROM check_")]


complete_nodes = _from_fleet(lambda workspace: workspace.fleet.nodes)
complete_pools = _from_fleet(lambda workspace: (node.pool for node in workspace.fleet.nodes.values()))
complete_racks = _from_fleet(lambda workspace: (node.rack for node in workspace.fleet.nodes.values()))
complete_phases = _from_fleet(lambda workspace: workspace.fleet.phases)
complete_checks = _from_fleet(_list_checks_of_last_run)
complete_runs = _from_fleet(_list_runs)


WHICH = "Selection"
HOW = "How to run"
"""Titles of option groups in --help."""


def unfold_names(names: list[str] | None) -> list[str] | None:
    """Return the nodes of names as ClusterShell folds them, such as `n[0001-0099],n0120`."""
    return names and [node for name in names for node in expand_names(name)]


def nodes_argument(meaning: str) -> Any:
    """Return the argument NODE of a command that takes several nodes; `meaning` is its line of help."""
    return typer.Argument(
        metavar="NODE", autocompletion=complete_nodes, callback=unfold_names, help=meaning, show_default=False
    )


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
TableFormat = Annotated[
    Literal["text", "json", "csv"],
    typer.Option("--format", help="text for people, json for machines, csv for spreadsheets.", show_default=False),
]
Jobs = Annotated[
    int, typer.Option("-j", "--jobs", min=1, metavar="N", help="Run N processes, each with a part of the nodes.")
]
RunName = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        autocompletion=complete_runs,
        help="The run's id, the start of its id, or last, last~1, … for the latest runs.",
    ),
]
Nodes = Annotated[
    list[str] | None,
    typer.Option(
        "--node",
        metavar="NODE",
        autocompletion=complete_nodes,
        callback=unfold_names,
        help="Only this node, or these: n[0001-0099]. May be repeated.",
        rich_help_panel=WHICH,
    ),
]
Pools = Annotated[
    list[str] | None,
    typer.Option(
        "--pool",
        metavar="POOL",
        autocompletion=complete_pools,
        help="Only this pool; may be repeated.",
        rich_help_panel=WHICH,
    ),
]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        metavar="PHASE",
        autocompletion=complete_phases,
        help="Only checks of this phase, such as test or production; may be repeated.",
        rich_help_panel=WHICH,
    ),
]
Pool = Annotated[
    str,
    typer.Option(
        "--pool",
        metavar="POOL",
        autocompletion=complete_pools,
        help="Only the nodes of this pool.",
        rich_help_panel=WHICH,
    ),
]
Racks = Annotated[
    list[str] | None,
    typer.Option("--rack", metavar="RACK", help="Only this rack; may be repeated.", rich_help_panel=WHICH),
]
States = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help="Only nodes in this state, such as triage; may be repeated.",
        rich_help_panel=WHICH,
    ),
]

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


def option(names: str, meaning: str, *, group: str | None = None, complete: Any = None, **more: Any) -> Any:
    """Return an option as its line of help begins: `names` are its flags and what follows them, as `-j --jobs N`.

    `group` is the title that it stands under, `complete` what a shell completes it by.
    """
    words = names.split()
    flags = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(flags) :]) or None
    return typer.Option(*flags, metavar=metavar, help=meaning, rich_help_panel=group, autocompletion=complete, **more)


def argument(name: str, meaning: str, *, complete: Any = None, show_default: bool = False, **more: Any) -> Any:
    """Return an argument, by the name that help gives it. `complete` is what a shell completes it by."""
    return typer.Argument(metavar=name, help=meaning, autocompletion=complete, show_default=show_default, **more)


WHICH = "Selection"
HOW = "How to run"
"""Titles of option groups in --help."""


def unfold_names(names: list[str] | None) -> list[str] | None:
    """Return the nodes of names as ClusterShell folds them, such as `n[0001-0099],n0120`."""
    return names and [node for name in names for node in expand_names(name)]


def nodes_argument(meaning: str) -> Any:
    """Return the argument NODE of a command that takes several nodes."""
    return argument("NODE", meaning, complete=complete_nodes, callback=unfold_names)


FleetDir = Annotated[Path, option("--fleet DIR", "The fleet repository.", envvar="ASSAY_FLEET", show_default=False)]
OptionalFleetDir = Annotated[
    Path | None,
    option(
        "--fleet DIR",
        "The fleet repository. Default: the current folder if it is one, else the specs that assay ships.",
        envvar="ASSAY_FLEET",
    ),
]


def hand_fleet_on(context: typer.Context, fleet: Path) -> None:
    """Let the command after a verb work where the verb was told to work, unless it is told another place itself."""
    context.default_map = {str(context.invoked_subcommand): {"fleet": fleet}}


OutputFormat = Annotated[
    Literal["text", "json"], option("--format", "text for people, json for machines.", show_default=False)
]
TableFormat = Annotated[
    Literal["text", "json", "csv"],
    option("--format", "text for people, json for machines, csv for spreadsheets.", show_default=False),
]
Jobs = Annotated[int, option("-j --jobs N", "Run N processes, each with a part of the nodes.", min=1)]
RunName = Annotated[
    str,
    argument(
        "RUN",
        "The run's id, the start of its id, or last, last~1, … for the latest runs.",
        complete=complete_runs,
        show_default=True,
    ),
]
Nodes = Annotated[
    list[str] | None,
    option(
        "--node NODE",
        "Only this node, or these: n[0001-0099]. May be repeated.",
        group=WHICH,
        complete=complete_nodes,
        callback=unfold_names,
    ),
]
Pools = Annotated[
    list[str] | None, option("--pool POOL", "Only this pool; may be repeated.", group=WHICH, complete=complete_pools)
]
Phases = Annotated[
    list[str] | None,
    option(
        "--phase PHASE",
        "Only checks of this phase, such as test or production; may be repeated.",
        group=WHICH,
        complete=complete_phases,
    ),
]
Pool = Annotated[str, option("--pool POOL", "Only the nodes of this pool.", group=WHICH, complete=complete_pools)]
Racks = Annotated[list[str] | None, option("--rack RACK", "Only this rack; may be repeated.", group=WHICH)]
States = Annotated[
    list[str] | None, option("--state STATE", "Only nodes in this state, such as triage; may be repeated.", group=WHICH)
]

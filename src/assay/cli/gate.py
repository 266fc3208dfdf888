"""`assay gate`: hold a run to the gates of the fleet."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from assay.cli.desk import Desk, FleetDir
from assay.model.errors import Trouble

if TYPE_CHECKING:
    from assay.harness.gates import Judged
    from assay.model.fleet import Fleet
    from assay.model.gates import Gates

app = typer.Typer(add_completion=False, help="Hold a run to the gates of the fleet.")

RunName = Annotated[str, typer.Argument(metavar="[RUN]", help="Its id, how that begins, last, last~1 …")]
Names = Annotated[list[str] | None, typer.Option("--gates", help="Only these gates, by name.", metavar="NAME")]
Shape = Annotated[
    Literal["text", "json", "github"],
    typer.Option("--format", help="text for people, json for machines, github for annotations."),
]


@app.command()
def gate(run: RunName = "last", gates: Names = None, fleet: FleetDir = Path(), form: Shape = "text") -> None:
    """Say which bound a run misses, where and by how much.

    Exit 0: every bound holds; 1: one is missed; 2: it could not be told.
    """
    from assay.harness.gates import judge
    from assay.harness.store.runs import all_runs, find

    desk = Desk(fleet.resolve())
    chosen = _chosen(desk.fleet, gates or [])
    judged = judge(desk.fleet, chosen, find(desk.reports, run), all_runs(desk.reports))
    typer.echo(SHAPES[form](judged))
    raise typer.Exit(0 if judged.holds else 1)


def _chosen(fleet: Fleet, names: Sequence[str]) -> list[Gates]:
    if not fleet.gates:
        raise Trouble("the fleet has no gates", fix="write specs/gates/default.yaml; `assay init` makes one to copy")
    for name in names:
        if name not in fleet.gates:
            near = get_close_matches(name, fleet.gates, n=1) or sorted(fleet.gates)
            raise Trouble(f"there are no gates {name!r}", fix=f"did you mean {near[0]}?")
    return [one for name, one in fleet.gates.items() if not names or name in names]


def _as_text(judged: Judged) -> str:
    said = [f"{'holds ' if one.holds else 'MISSED'} {one.says}  {one.source}" for one in judged.bounds]
    return "\n".join([*said, _last(judged)])


def _as_json(judged: Judged) -> str:
    bounds = [one.as_json() for one in judged.bounds]
    return json.dumps({"run": judged.run, "before": judged.before, "holds": judged.holds, "bounds": bounds})


def _as_github(judged: Judged) -> str:
    from assay.harness.results.workflow import annotation

    told = []
    for one in judged.bounds:
        if not one.holds:
            file, _, line = one.source.rpartition(":")
            title = f"gate {one.gates}: {one.pool or 'new failures'}"
            told.append(annotation("error", {"file": file, "line": line, "title": title}, one.says))
    return "\n".join([*told, _last(judged)])


def _last(judged: Judged) -> str:
    missed = sum(not one.holds for one in judged.bounds)
    said = f"{missed} of {len(judged.bounds)} bounds missed" if missed else f"all {len(judged.bounds)} bounds hold"
    return f"run {judged.run}: {said}"


SHAPES: dict[str, Callable[[Judged], str]] = {"text": _as_text, "json": _as_json, "github": _as_github}

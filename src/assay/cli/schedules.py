"""`assay schedules`: what is done by the clock, how it ended last, when it comes next; and to do it without a loop."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from assay.cli.desk import Desk, FleetDir, Format

if TYPE_CHECKING:
    from rich.table import Table

    from assay.controller.clock.timetable import Line, Past
    from assay.controller.desk import Desk as Work
    from assay.model.schedule import Schedule

app = typer.Typer(add_completion=False, help="Show what is done by the clock.")


@dataclass(frozen=True)
class Row:
    """One schedule, for one pool or fabric. Times are ISO 8601 UTC, "" where there is none; `due`: it is time."""

    schedule: str
    does: str
    of: str
    when: str
    slot: str
    ended: str
    reason: str
    next: str
    due: bool = False


Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME]...", help="These schedules, due or not; else what is due.", show_default=False),
]
Of = Annotated[str, typer.Option("--of", metavar="PART", help="Only of this pool, or this fabric.")]


@app.callback(invoke_without_command=True)
def schedules(asked: typer.Context, fleet: FleetDir = Path(), form: Format = "text") -> None:
    """Show every schedule, its last slot and how that ended, and the next one."""
    asked.obj = fleet
    if asked.invoked_subcommand:
        return
    desk = Desk(fleet.resolve())
    rows = list(_rows(desk))
    if form == "json":
        typer.echo(json.dumps({"schedules": [_plain(row) for row in rows]}, indent=1))
    elif rows:
        _show(rows)
    else:
        typer.echo("Nothing is done by the clock: there is no Schedules in specs/. `assay init` makes one to copy")


@app.command()
def run(
    asked: typer.Context, names: Names = None, of: Of = "", fleet: FleetDir = Path(), form: Format = "text"
) -> None:
    """Carry out what is due by the clock, as a running `assay reconcile` does, for those who call assay from cron.

    A schedule that is named is carried out now, due or not. Each slot is carried out once, whoever else is at it. The
    next pass decides on what comes to light. Exit codes: 0 done, 2 something could not be.
    """
    from assay.controller.accepted import accept_commit
    from assay.controller.clock.byhand import asked_for
    from assay.controller.clock.schedule import carry_out, past_of

    work = _work(Desk((asked.obj if fleet == Path() else fleet).resolve()))
    accept_commit(work)
    ours = [task for task in asked_for(work, names or [], of) if carry_out(work, task)]
    came = [past_of(work.ledger).of(task.line).ended[task.slot].body for task in ours]
    if form == "json":
        print(json.dumps({"ran": [_ran(one) for one in came]}))  # noqa: T201 — the answer
    else:
        lines = [f"{one['schedule']} of {one['part']} {one['ended']}: {one['reason']}" for one in came]
        print("\n".join(lines) or "nothing is due")  # noqa: T201 — the answer
    raise typer.Exit(2 if any(one["ended"] == "failed" for one in came) else 0)


def _ran(body: dict[str, Any]) -> dict[str, Any]:
    return {"of": body["part"], **{name: body[name] for name in ("schedule", "does", "slot", "ended", "reason")}}


def _work(desk: Desk) -> Work:
    from assay.controller.desk import Desk as Work
    from assay.observe.store import EvidenceStore

    store = EvidenceStore(desk.evidence)
    return Work(desk.fleet, desk.ledger, store, desk.clock, desk.home, desk.reports, progress=_progress)


def _progress(line: str) -> None:
    print(f"· {line}", file=sys.stderr, flush=True)  # noqa: T201 — people wait for this


def _rows(desk: Desk) -> Iterator[Row]:
    from assay.controller.clock.timetable import KINDS, Pasts, lines, parts_of, schedules, tasks
    from assay.ledger.where import told

    now, known, pasts = desk.clock.now(), list(lines(desk.fleet)), Pasts()
    pasts.hear(entry for entry in told(desk.ledger_at) if entry.kind in KINDS)
    due = {str(task) for task in tasks(known, pasts, now)}
    for name, schedule, zone in schedules(desk.fleet.schedules):
        if schedule.does == "observe":
            pools = ", ".join(parts_of(desk.fleet, schedule))
            yield Row(name, schedule.does, pools, _when(schedule, zone), "", "", "by each look of the running loop", "")
        elif name not in {line.name for line in known}:
            why = "no fabric" if schedule.does.startswith("fabric") else "no pool with a scheduler"
            yield Row(name, schedule.does, "", _when(schedule, zone), "", "", f"{why} in this fleet", "")
        own = [line for line in known if line.name == name]
        yield from (_row(line, pasts.of(line), now, due=str(line) in due) for line in own)


def _row(line: Line, past: Past, now: datetime, *, due: bool) -> Row:
    slot, ended, reason = _last(past)
    upcoming = line.next(now)
    when = _when(line.schedule, line.zone)
    following = upcoming.isoformat(timespec="seconds") if upcoming else ""
    return Row(line.name, line.schedule.does, line.part, when, slot, ended, reason, following, due)


def _last(past: Past) -> tuple[str, str, str]:
    newest = past.newest()
    if newest is None:
        return "", "", ""
    if entry := past.ended.get(newest):
        return newest.isoformat(), entry.body["ended"], entry.body["reason"]
    return newest.isoformat(), "begun", f"attempt {past.begun[newest]}"


def _when(schedule: Schedule, zone: str) -> str:
    if schedule.cron is None:
        return f"every {schedule.every_minutes} min"
    zone = schedule.time_zone or zone
    return schedule.cron if zone == "UTC" else f"{schedule.cron} {zone}"


def _plain(row: Row) -> dict[str, Any]:
    last = {"slot": row.slot, "ended": row.ended, "reason": row.reason} if row.slot else None
    return {
        "schedule": row.schedule,
        "does": row.does,
        "of": row.of,
        "when": row.when,
        "last": last,
        "due": row.due,
        "next": row.next or None,
    }


def _show(rows: list[Row]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print(_table(rows))


def _table(rows: list[Row]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim")
    for title in ("schedule", "of", "when", "last slot", "next"):
        table.add_column(title, no_wrap=True)
    table.add_column("how it ended", overflow="fold")
    for row in rows:
        table.add_row(
            row.schedule,
            row.of,
            row.when,
            _minute(row.slot),
            "now" if row.due else _minute(row.next),
            escape(_how(row)),
        )
    return table


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _how(row: Row) -> str:
    return row.reason if row.ended in ("", "done") else f"{row.ended}: {row.reason}"

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

from assay.cli.workspace import FleetDir, OutputFormat, Workspace

if TYPE_CHECKING:
    from rich.table import Table

    from assay.controller.context import ControllerContext as Work
    from assay.controller.schedules.due_slots import ScheduleLine, SlotHistory
    from assay.model.specs.schedules import FleetSchedule

schedules_app = typer.Typer(add_completion=False, help="Show what is done by the clock.")


@dataclass(frozen=True)
class ScheduleRow:
    """One schedule, for one pool or fabric. Times are ISO 8601 UTC, "" where there is none; `due`: it is time."""

    schedule: str
    job: str
    part: str
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


@schedules_app.callback(invoke_without_command=True)
def schedules(asked: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show every schedule, its last slot and how that ended, and the next one."""
    asked.obj = fleet
    if asked.invoked_subcommand:
        return
    desk = Workspace(fleet.resolve())
    rows = list(_rows(desk))
    if form == "json":
        typer.echo(json.dumps({"schedules": [_row_as_json(row) for row in rows]}, indent=1))
    elif rows:
        _show(rows)
    else:
        typer.echo("Nothing is done by the clock: there is no Schedules in specs/. `assay init` makes one to copy")


@schedules_app.command()
def run(
    asked: typer.Context, names: Names = None, of: Of = "", fleet: FleetDir = Path(), form: OutputFormat = "text"
) -> None:
    """Carry out what is due by the clock, as a running `assay reconcile` does, for those who call assay from cron.

    A schedule that is named is carried out now, due or not. Each slot is carried out once, whoever else is at it. The
    next pass decides on what comes to light. Exit codes: 0 done, 2 something could not be.
    """
    from assay.controller.schedules.slot_runner import read_schedule_history, run_slot_task, select_tasks
    from assay.controller.signed_commit_gate import accept_commit

    work = _controller_context(Workspace((asked.obj if fleet == Path() else fleet).resolve()))
    accept_commit(work)
    ours = [task for task in select_tasks(work, names or [], of) if run_slot_task(work, task)]
    came = [read_schedule_history(work.ledger).get(task.line).ended[task.slot].body for task in ours]
    if form == "json":
        print(json.dumps({"ran": [_run_as_json(one) for one in came]}))  # noqa: T201 — the answer
    else:
        lines = [f"{one['schedule']} of {one['part']} {one['ended']}: {one['reason']}" for one in came]
        print("\n".join(lines) or "nothing is due")  # noqa: T201 — the answer
    raise typer.Exit(2 if any(one["ended"] == "failed" for one in came) else 0)


def _run_as_json(body: dict[str, Any]) -> dict[str, Any]:
    return {"of": body["part"], **{name: body[name] for name in ("schedule", "does", "slot", "ended", "reason")}}


def _controller_context(desk: Workspace) -> Work:
    from assay.controller.context import ControllerContext as Work
    from assay.observe.evidence_store import EvidenceStore

    store = EvidenceStore(desk.evidence_dir)
    return Work(desk.fleet, desk.ledger, store, desk.clock, desk.data_dir, desk.reports_dir, progress=_progress)


def _progress(line: str) -> None:
    print(f"· {line}", file=sys.stderr, flush=True)  # noqa: T201 — people wait for this


def _rows(desk: Workspace) -> Iterator[ScheduleRow]:
    from assay.controller.schedules.due_slots import (
        SLOT_KINDS,
        ScheduleHistory,
        compute_due_tasks,
        list_schedule_lines,
        list_schedule_targets,
        list_schedules,
    )
    from assay.ledger.location import read_all_entries

    now, known, pasts = desk.clock.now(), list(list_schedule_lines(desk.fleet)), ScheduleHistory()
    pasts.add_entries(entry for entry in read_all_entries(desk.ledger_location) if entry.kind in SLOT_KINDS)
    due = {str(task) for task in compute_due_tasks(known, pasts, now)}
    for name, schedule, zone in list_schedules(desk.fleet.schedules):
        if schedule.does == "observe":
            pools = ", ".join(list_schedule_targets(desk.fleet, schedule))
            yield ScheduleRow(
                name,
                schedule.does,
                pools,
                _format_recurrence(schedule, zone),
                "",
                "",
                "by each look of the running loop",
                "",
            )
        elif name not in {line.name for line in known}:
            why = "no fabric" if schedule.does.startswith("fabric") else "no pool with a scheduler"
            yield ScheduleRow(
                name, schedule.does, "", _format_recurrence(schedule, zone), "", "", f"{why} in this fleet", ""
            )
        own = [line for line in known if line.name == name]
        yield from (_row(line, pasts.get(line), now, due=str(line) in due) for line in own)


def _row(line: ScheduleLine, past: SlotHistory, now: datetime, *, due: bool) -> ScheduleRow:
    slot, ended, reason = _last_slot(past)
    upcoming = line.find_next_start(now)
    when = _format_recurrence(line.schedule, line.zone)
    following = upcoming.isoformat(timespec="seconds") if upcoming else ""
    return ScheduleRow(line.name, line.schedule.does, line.target, when, slot, ended, reason, following, due)


def _last_slot(past: SlotHistory) -> tuple[str, str, str]:
    newest = past.find_newest()
    if newest is None:
        return "", "", ""
    if entry := past.ended.get(newest):
        return newest.isoformat(), entry.body["ended"], entry.body["reason"]
    return newest.isoformat(), "begun", f"attempt {past.begun[newest]}"


def _format_recurrence(schedule: FleetSchedule, zone: str) -> str:
    if schedule.cron is None:
        return f"every {schedule.every_minutes} min"
    zone = schedule.time_zone or zone
    return schedule.cron if zone == "UTC" else f"{schedule.cron} {zone}"


def _row_as_json(row: ScheduleRow) -> dict[str, Any]:
    last = {"slot": row.slot, "ended": row.ended, "reason": row.reason} if row.slot else None
    return {
        "schedule": row.schedule,
        "does": row.job,
        "of": row.part,
        "when": row.when,
        "last": last,
        "due": row.due,
        "next": row.next or None,
    }


def _show(rows: list[ScheduleRow]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 160
    console.print(_table(rows))


def _table(rows: list[ScheduleRow]) -> Table:
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
            row.part,
            row.when,
            _minute(row.slot),
            "now" if row.due else _minute(row.next),
            escape(_format_end(row)),
        )
    return table


def _minute(at: str) -> str:
    return at[:16].replace("T", " ")


def _format_end(row: ScheduleRow) -> str:
    return row.reason if row.ended in ("", "done") else f"{row.ended}: {row.reason}"

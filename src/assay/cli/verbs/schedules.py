"""`assay schedules`: scheduled jobs with their last and next slot; `run` runs the due ones without a running loop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.context_line import format_answer, print_answer
from assay.cli.options import FleetDir, OutputFormat, argument, hand_fleet_on, option
from assay.cli.output import print_step
from assay.cli.workspace import Workspace
from assay.ledger.location import read_all_entries
from assay.model.facts import fact

if TYPE_CHECKING:
    from assay.act.schedules.due_slots import ScheduleLine, SlotHistory
    from assay.model.entries.schedule_entries import ScheduleRanEntry
    from assay.model.ledger_entry import LedgerEntry
    from assay.model.specs.schedules import FleetSchedule


@fact
class ScheduleRow:
    """One schedule for one pool or fabric. Times are ISO 8601 with the offset of UTC."""

    schedule: str
    """The name of the schedule."""
    does: str
    """What it does, such as observe or validate."""
    of: str
    """The pool or fabric that it is for."""
    when: str
    """When it runs: a cron expression with its time zone, or every so many minutes."""
    slot: str = ""
    """When its last slot was due; "" if there was none."""
    ended: str = ""
    """How that ended: done, failed or lost; begun if it still runs."""
    reason: str = ""
    """Why it ended so, or which attempt it is."""
    next: str = ""
    """When it runs next; "" if nothing says it."""
    due: bool = False
    """Whether it is due now."""


@fact
class SchedulesAnswer:
    """Every schedule: its last slot, how that ended, and the next one."""

    schedules: list[ScheduleRow]
    """The schedules."""


@fact
class ScheduledRunsAnswer:
    """The scheduled jobs that were due and were run now."""

    ran: list[ScheduleRanEntry]
    """The jobs; with one that failed, the exit code is 2."""


schedules_app = typer.Typer(add_completion=False)


@schedules_app.callback(invoke_without_command=True)
def schedules(context: typer.Context, fleet: FleetDir = Path(), form: OutputFormat = "text") -> None:
    """Show every schedule: its last slot, how that ended, and the next one.

    Exit codes: 0 shown; 2 the ledger or the fleet cannot be read.
    """
    hand_fleet_on(context, fleet)
    if context.invoked_subcommand:
        return
    workspace = Workspace(fleet.resolve())
    rows = list(_list_rows(workspace, read_all_entries(workspace.ledger_location)))
    if form == "json":
        typer.echo(format_answer(SchedulesAnswer(rows), indent=1))
    elif rows:
        from assay.cli.output import escape, make_table, open_console

        console, texts = open_console(), []
        for row in rows:
            end = row.reason if row.ended in ("", "done") else f"{row.ended}: {row.reason}"
            next_ = "now" if row.due else _format_short_minute(row.next)
            texts.append([*map(escape, (row.schedule, row.of, row.when, _format_short_minute(row.slot), next_, end))])
        titles = ("schedule", "of", "when", "last slot", "next", "how it ended")
        console.print(make_table(titles, texts, console.width))
    else:
        typer.echo(
            "There are no schedules: specs/ has no document of the kind Schedules. `assay init` shows an example"
        )


@schedules_app.command()
def run(
    names: Annotated[
        list[str] | None, argument("NAME", "Run these schedules, due or not. Default: what is due.")
    ] = None,
    part: Annotated[str, option("--of PART", "Only for this pool or fabric.")] = "",
    fleet: FleetDir = Path(),
    form: OutputFormat = "text",
) -> None:
    """Run the scheduled jobs that are due, for example from cron; a running `assay reconcile` does the same.

    Each slot is run once, even if several processes try. The next round decides on the results.

    Exit codes: 0 done; 2 some job failed.
    """
    from assay.act.loop.fleet_reload import accept_commit
    from assay.act.schedules.scheduled_jobs import SCHEDULED_JOBS
    from assay.act.schedules.slot_runner import read_schedule_history, run_slot_task, select_tasks

    controller = Workspace(fleet.resolve()).controller_context(print_step)
    accept_commit(controller)
    tasks = select_tasks(controller, names or [], part)
    done = [task for task in tasks if run_slot_task(controller, task, SCHEDULED_JOBS)]
    results = [read_schedule_history(controller.ledger).get(task.line).ended[task.slot] for task in done]
    lines = [f"{result.schedule} of {result.part} {result.ended}: {result.reason}" for result in results]
    print_answer(ScheduledRunsAnswer(results), form, lines or ["nothing is due"])
    raise typer.Exit(2 if any(result.ended == "failed" for result in results) else 0)


def _list_rows(workspace: Workspace, entries: list[LedgerEntry]) -> Iterator[ScheduleRow]:
    from assay.act.schedules.due_slots import (
        SLOTS,
        compute_due_tasks,
        list_schedule_lines,
        list_schedule_targets,
        list_schedules,
    )

    now, lines, history = workspace.clock.now(), list(list_schedule_lines(workspace.fleet)), SLOTS.fold(entries)
    due = {str(task) for task in compute_due_tasks(lines, history, now)}
    with_lines = {line.name for line in lines}
    for name, schedule, zone in list_schedules(workspace.fleet.schedules):
        when = _format_recurrence(schedule, zone)
        if schedule.does == "observe":
            pools = ", ".join(list_schedule_targets(workspace.fleet, schedule))
            yield ScheduleRow(name, schedule.does, pools, when, reason="done by the running `assay reconcile`")
        elif name not in with_lines:
            lacking = "no fabric" if schedule.does.startswith("fabric") else "no pool with a scheduler"
            yield ScheduleRow(name, schedule.does, "", when, reason=f"{lacking} in this fleet")
        own = [line for line in lines if line.name == name]
        yield from (_make_row(line, history.get(line), now, due=str(line) in due) for line in own)


def _make_row(line: ScheduleLine, history: SlotHistory, now: datetime, *, due: bool) -> ScheduleRow:
    slot, ended, reason = _last_slot(history)
    start = line.find_next_start(now)
    when = _format_recurrence(line.schedule, line.zone)
    next_ = start.isoformat(timespec="seconds") if start else ""
    return ScheduleRow(line.name, line.schedule.does, line.target, when, slot, ended, reason, next_, due)


def _last_slot(history: SlotHistory) -> tuple[str, str, str]:
    newest = history.find_newest()
    if newest is None:
        return "", "", ""
    if result := history.ended.get(newest):
        return newest.isoformat(), result.ended, result.reason
    return newest.isoformat(), "begun", f"attempt {history.begun[newest]}"


def _format_recurrence(schedule: FleetSchedule, zone: str) -> str:
    if schedule.cron is None:
        return f"every {schedule.every_minutes} min"
    zone = schedule.time_zone or zone
    return schedule.cron if zone == "UTC" else f"{schedule.cron} {zone}"


def _format_short_minute(at: str) -> str:
    return at[:16].replace("T", " ")

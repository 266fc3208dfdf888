"""Runs the slots that are due, each once, whoever is killed in it.

A slot is held by a lease of the ledger, which ends soon after its holder dies. Its beginning and its end are ledger
entries whose ids follow from schedule and slot. Also selects what a person asks for by name, due or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from assay.act.loop.context import ControllerContext
from assay.act.loop.pass_log import records_pass
from assay.act.loop.projections import read_node_states
from assay.act.loop.rack_leases import CONTROLLER_LEASE_PREFIX
from assay.act.schedules.due_slots import (
    MAX_SLOT_ATTEMPTS,
    SLOTS,
    ScheduleHistory,
    ScheduleLine,
    SlotTask,
    compute_due_tasks,
    list_new_nodes_tasks,
    list_schedule_lines,
    list_schedules,
    make_new_nodes_lines,
)
from assay.decide.state.burn_in_record import BurnInRecord
from assay.ledger.leases import hold_lease
from assay.ledger.ledger_reader import read_projection
from assay.ledger.store import Ledger
from assay.model.entries.schedule_entries import ScheduleRanEntry, ScheduleStartedEntry
from assay.model.errors import AssayError
from assay.model.facts import frozen
from assay.model.ledger_entry import derive_id
from assay.model.specs.schedules import ScheduledWork
from assay.model.text.lists import suggest_names

SLOT_LEASE_S = 60.0


@frozen
class SlotResult:
    """How a slot ended: `done`, `failed` or `lost`, the reason for people, and facts for its ledger entry."""

    status: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


SlotJob = Callable[[ControllerContext, SlotTask], SlotResult]


def list_due_tasks(context: ControllerContext, now: datetime) -> list[SlotTask]:
    """Return what is due at `now`, without the lines of which a live process holds a slot."""
    lines, history = list(list_schedule_lines(context.fleet)), read_schedule_history(context.ledger)
    tasks = compute_due_tasks(lines, history, now)
    waiting: dict[str | None, list[BurnInRecord]] = {}
    for name, state in read_node_states(context.ledger).items():
        record, node = state.burn_in, context.fleet.nodes.get(name)
        if node and record and record.is_running and record.over_at and record.stay_id == state.stay_id:
            waiting.setdefault(node.settings.fabric, []).append(record)
    for fabric, line in make_new_nodes_lines(lines).items():
        tasks += list_new_nodes_tasks(line, history.get(line), waiting.get(fabric, ()))
    leases = context.ledger.leases() if any(task.attempt > 1 for task in tasks) else {}
    held = {(task.line.name, task.line.target) for task in tasks if task.lease_name in leases}
    return [task for task in tasks if (task.line.name, task.line.target) not in held]


@records_pass("jobs")
def run_slot_task(context: ControllerContext, task: SlotTask, jobs: Mapping[ScheduledWork, SlotJob]) -> bool:
    """Run a slot by the job of its name; return whether it was ours to run. Safe for threads.

    An AssayError of the job is how the slot ends, and is shown as progress. Raises AssayError only where the ledger
    cannot be written.
    """
    with hold_lease(context.ledger, task.lease_name, SLOT_LEASE_S) as is_ours:
        if not is_ours or task.slot in read_schedule_history(context.ledger).get(task.line).ended:
            return False
        if task.is_lost and task.attempt > MAX_SLOT_ATTEMPTS:
            result = SlotResult("failed", f"the process that ran it died {MAX_SLOT_ATTEMPTS} times")
        elif task.is_lost:
            result = SlotResult("lost", "the process that ran it died, and the next slot is there")
        else:
            begun = ScheduleStartedEntry(*_describe_task(task))
            context.ledger.append(begun.make_entry(derive_id(task.id, str(task.attempt)), context.now))
            context.progress(f"{task}, slot {task.slot:%Y-%m-%d %H:%M} UTC …")
            try:
                result = jobs[task.job](context, task)
            except AssayError as error:
                result = SlotResult("failed", str(error))
        facts = {**result.facts, "burn_ins": task.burn_ins} if task.burn_ins else result.facts
        ran = ScheduleRanEntry(*_describe_task(task), result.status, result.reason, facts)
        context.ledger.append(ran.make_entry(task.id, context.now))
        context.progress(f"{task}: {result.reason}")
        return True


def _describe_task(task: SlotTask) -> tuple[str, str, str, str, int]:
    """Return the fields that the entries about a slot begin with."""
    return task.line.name, task.line.target, task.job, task.slot.isoformat(), task.attempt


def read_schedule_history(ledger: Ledger) -> ScheduleHistory:
    """Return the history of all slots."""
    return read_projection(ledger, SLOTS)


def select_tasks(context: ControllerContext, names: Collection[str], target: str = "") -> list[SlotTask]:
    """Return the schedules `names`, due or not, or where none is named all that is due; `target` keeps one of it.

    Searches that burn-ins wait for have names too, and run if they are due. Leaves out lines of which a live process
    holds a slot. Raises AssayError for a name or target without a line.
    """
    lines = list(list_schedule_lines(context.fleet))
    for name in {*names} - {line.name for line in make_new_nodes_lines(lines).values()}:
        _require_line(context, name, lines)
    if target and target not in {line.target for line in lines}:
        targets = ", ".join(dict.fromkeys(line.target for line in lines))
        fix = f"they are for {targets or 'nothing: `assay schedules` says why'}"
        raise AssayError(f"no schedule is for {target}", fix=fix)
    due = [
        task
        for task in list_due_tasks(context, context.clock.now())
        if (not names or task.line.name in names) and target in ("", task.line.target)
    ]
    named = [line for line in lines if line.name in names and target in ("", line.target)]
    return [*due, *_make_extra_tasks(context, named, due)]


def find_unattended_tasks(context: ControllerContext) -> list[SlotTask]:
    """Return what is due while no controller runs on this ledger, without fabric scans, which each pass does itself."""
    if any(name.startswith(CONTROLLER_LEASE_PREFIX) for name in context.ledger.leases()):
        return []
    due = list_due_tasks(context, context.clock.now())
    return [task for task in due if not task.is_lost and task.job != "fabric-scan"]


def _make_extra_tasks(
    context: ControllerContext, named: Collection[ScheduleLine], due: Collection[SlotTask]
) -> Iterator[SlotTask]:
    """Yield a slot of now for the named lines that have none due, unless another process holds their slot."""
    now = context.clock.now()
    all_due = {str(task) for task in compute_due_tasks(named, read_schedule_history(context.ledger), now)}
    held = all_due - {str(task) for task in due}
    taken = held | {str(task) for task in due if not task.is_lost}
    yield from (SlotTask(line, now.replace(microsecond=0)) for line in named if str(line) not in taken)


def _require_line(context: ControllerContext, name: str, lines: Collection[ScheduleLine]) -> None:
    if name in {line.name for line in lines}:
        return
    declared = {known: schedule for known, schedule, _ in list_schedules(context.fleet.schedules)}
    if name not in declared:
        fix = suggest_names(name, declared, f"there are {', '.join(declared) or 'none'}")
        raise AssayError(f"no schedule is called {name}", fix=fix)
    if declared[name].does == "observe":
        fix = "poll every node with: assay reconcile --once"
        raise AssayError(f"{name} only says how often the loop polls nodes", fix=fix)
    raise AssayError(f"{name} is for nothing in this fleet", fix="`assay schedules` says why")

"""Carries out what is due by the clock, each slot once, whoever is killed in it.

A slot is claimed by a lease on the ledger, which a thread renews and which is over soon after its holder died. Its
beginning and its end are lines of the ledger with ids that follow from schedule and slot.

What a person asks the timetable for: what is due now, or lines of it by name, due or not.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from weakref import WeakKeyDictionary

from assay.controller.context import ControllerContext
from assay.controller.rack_leases import CONTROLLER_LEASE_PREFIX
from assay.controller.schedules.due_slots import (
    MAX_SLOT_ATTEMPTS,
    SLOT_BEGUN,
    SLOT_RAN,
    ScheduleHistory,
    ScheduleLine,
    SlotTask,
    compute_due_tasks,
    list_schedule_lines,
    list_schedules,
)
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.specs.schedules import ScheduledWork

SLOT_LEASE_S = 60.0
_histories: WeakKeyDictionary[Ledger, ScheduleHistory] = WeakKeyDictionary()
_histories_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class SlotResult:
    """How a slot ended: `done`, `failed` or `lost`, in words for people, with what else history should hold."""

    status: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


SlotJob = Callable[[ControllerContext, SlotTask], SlotResult]


def list_due_tasks(desk: ControllerContext, now: datetime) -> list[SlotTask]:
    """Return what is to be carried out at `now`; nothing of a line of which a slot is in living hands."""
    found = compute_due_tasks(list_schedule_lines(desk.fleet), read_schedule_history(desk.ledger), now)
    held = desk.ledger.leases() if any(task.attempt > 1 for task in found) else {}
    busy = {(task.line.name, task.line.target) for task in found if _lease_name(task) in held}
    return [task for task in found if (task.line.name, task.line.target) not in busy]


def run_slot_task(
    desk: ControllerContext, task: SlotTask, *, works: Mapping[ScheduledWork, SlotJob] | None = None
) -> bool:
    """Carry a task out; return whether it was ours to do. For any thread; it may take as long as the work takes.

    What stands in its way is how the slot ends, and is told by `desk.progress`. Raises Trouble only where the ledger
    itself cannot be written.
    """
    with _hold_lease(desk.ledger, _lease_name(task)) as ours:
        if not ours or task.slot in read_schedule_history(desk.ledger).get(task.line).ended:
            return False
        if not task.is_lost:
            desk.ledger.append(_make_entry(SLOT_BEGUN, derive_id(task.id, str(task.attempt)), desk.now, task))
        ended = _make_lost_result(task) if task.is_lost else _run_job(desk, task, works or _load_jobs())
        desk.ledger.append(_make_entry(SLOT_RAN, task.id, desk.now, task, ended))
        desk.progress(f"{task}: {ended.reason}")
        return True


def read_schedule_history(ledger: Ledger) -> ScheduleHistory:
    """Return what the ledger says of slots; only what is new in it is read."""
    with _histories_lock:
        pasts = _histories.setdefault(ledger, ScheduleHistory())
        pasts.add_entries(ledger.entries(kinds=[SLOT_BEGUN, SLOT_RAN], after=pasts.seq))
        return pasts


def _run_job(desk: ControllerContext, task: SlotTask, works: Mapping[ScheduledWork, SlotJob]) -> SlotResult:
    desk.progress(f"{task}, slot {task.slot:%Y-%m-%d %H:%M} UTC …")
    try:
        return works[task.job](desk, task)
    except AssayError as trouble:
        return SlotResult("failed", str(trouble))


def _make_lost_result(task: SlotTask) -> SlotResult:
    if task.attempt > MAX_SLOT_ATTEMPTS:
        return SlotResult("failed", f"whoever was at it died {MAX_SLOT_ATTEMPTS} times")
    return SlotResult("lost", "whoever was at it died, and the next slot is there")


def _load_jobs() -> Mapping[ScheduledWork, SlotJob]:
    from assay.controller.schedules.scheduled_jobs import SCHEDULED_JOBS

    return SCHEDULED_JOBS


def _make_entry(kind: str, ident: str, at: str, task: SlotTask, ended: SlotResult | None = None) -> LedgerEntry:
    body = {
        "schedule": task.line.name,
        "part": task.line.target,
        "does": task.job,
        "slot": task.slot.isoformat(),
        "attempt": task.attempt,
    }
    if ended:
        body |= {"ended": ended.status, "reason": ended.reason, **ended.facts}
    return LedgerEntry(ident, at, kind, body=body)


def _lease_name(task: SlotTask) -> str:
    return f"schedule/{task.id}"


@contextmanager
def _hold_lease(ledger: Ledger, name: str) -> Iterator[bool]:
    """Hold a lease for as long as the block lasts; gives False where somebody else holds it."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    if not ledger.claim_lease(name, holder, SLOT_LEASE_S):
        yield False
        return
    over = threading.Event()
    thread = threading.Thread(target=_renew_lease, args=(ledger, name, holder, over), name="slot", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        over.set()
        thread.join()
        with suppress(AssayError):  # it is over by itself soon
            ledger.release(name, holder)


def _renew_lease(ledger: Ledger, name: str, holder: str, over: threading.Event) -> None:
    while not over.wait(SLOT_LEASE_S / 4):
        with suppress(AssayError):  # whoever writes to the ledger next says so
            ledger.claim_lease(name, holder, SLOT_LEASE_S)


def select_tasks(desk: ControllerContext, names: Collection[str], of: str = "") -> list[SlotTask]:
    """Return what to carry out: of the schedules with these `names`, due or not; where none is named, all that is due.

    `of` leaves one pool or fabric. A line of which a slot is in living hands is left out. Raises Trouble for a name
    that has no line, and why.
    """
    known = list(list_schedule_lines(desk.fleet))
    for name in names:
        _require_line(desk, name, known)
    if of and of not in {line.target for line in known}:
        parts = ", ".join(dict.fromkeys(line.target for line in known))
        raise AssayError(
            f"no schedule is for {of}", fix=f"they are for {parts or 'nothing: `assay schedules` says why'}"
        )
    now = desk.clock.now()
    found = [
        task
        for task in list_due_tasks(desk, now)
        if (not names or task.line.name in names) and of in ("", task.line.target)
    ]
    asked = [line for line in known if line.name in names and of in ("", line.target)]
    return [*found, *_make_extra_tasks(desk, asked, found)]


def find_unattended_tasks(desk: ControllerContext) -> list[SlotTask]:
    """Return what is due and what nobody does: of a ledger that no controller goes on with. A pass scans by itself."""
    if any(name.startswith(CONTROLLER_LEASE_PREFIX) for name in desk.ledger.leases()):
        return []
    found = list_due_tasks(desk, desk.clock.now())
    return [task for task in found if not task.is_lost and task.job != "fabric-scan"]


def _make_extra_tasks(
    desk: ControllerContext, asked: Collection[ScheduleLine], found: Collection[SlotTask]
) -> Iterator[SlotTask]:
    """Yield a slot of now for the lines that have none to carry out, but for those that somebody is at."""
    now = desk.clock.now()
    busy = {str(task) for task in compute_due_tasks(asked, read_schedule_history(desk.ledger), now)} - {
        str(task) for task in found
    }
    taken = busy | {str(task) for task in found if not task.is_lost}
    yield from (SlotTask(line, now.replace(microsecond=0)) for line in asked if str(line) not in taken)


def _require_line(desk: ControllerContext, name: str, known: Collection[ScheduleLine]) -> None:
    if name in {line.name for line in known}:
        return
    declared = {one: schedule for one, schedule, _ in list_schedules(desk.fleet.schedules)}
    if name not in declared:
        near = get_close_matches(name, declared, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(declared) or 'none'}"
        raise AssayError(f"no schedule is called {name}", fix=hint)
    if declared[name].does == "observe":
        raise AssayError(
            f"{name} is what each look of the loop does", fix="a look at every node: assay reconcile --once"
        )
    raise AssayError(f"{name} is for nothing in this fleet", fix="`assay schedules` says why")

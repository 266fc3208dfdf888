"""Carries out what is due by the clock, each slot once, whoever is killed in it.

A slot is claimed by a lease on the ledger, which a thread renews and which is over soon after its holder died. Its
beginning and its end are lines of the ledger with ids that follow from schedule and slot.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from assay.controller.clock.timetable import ATTEMPTS, BEGUN, RAN, Pasts, Task, lines, tasks
from assay.controller.desk import Desk
from assay.ledger.store import Ledger
from assay.model.entry import Entry, derived_id
from assay.model.errors import Trouble
from assay.model.schedule import Does

LEASE_S = 60.0
_pasts: WeakKeyDictionary[Ledger, Pasts] = WeakKeyDictionary()
_turn = threading.Lock()


@dataclass(frozen=True, slots=True)
class Ended:
    """How a slot ended: `done`, `failed` or `lost`, in words for people, with what else history should hold."""

    how: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


Work = Callable[[Desk, Task], Ended]


def due(desk: Desk, now: datetime) -> list[Task]:
    """Return what is to be carried out at `now`; nothing of a line of which a slot is in living hands."""
    found = tasks(lines(desk.fleet), past_of(desk.ledger), now)
    held = desk.ledger.holders() if any(task.attempt > 1 for task in found) else {}
    busy = {(task.line.name, task.line.part) for task in found if _lease(task) in held}
    return [task for task in found if (task.line.name, task.line.part) not in busy]


def carry_out(desk: Desk, task: Task, *, works: Mapping[Does, Work] | None = None) -> bool:
    """Carry a task out; return whether it was ours to do. For any thread; it may take as long as the work takes.

    What stands in its way is how the slot ends, and is told by `desk.progress`. Raises Trouble only where the ledger
    itself cannot be written.
    """
    with _claimed(desk.ledger, _lease(task)) as ours:
        if not ours or task.slot in past_of(desk.ledger).of(task.line).ended:
            return False
        if not task.lost:
            desk.ledger.append(_line(BEGUN, derived_id(task.id, str(task.attempt)), desk.now, task))
        ended = _lost(task) if task.lost else _tried(desk, task, works or _works())
        desk.ledger.append(_line(RAN, task.id, desk.now, task, ended))
        desk.progress(f"{task}: {ended.reason}")
        return True


def past_of(ledger: Ledger) -> Pasts:
    """Return what the ledger says of slots; only what is new in it is read."""
    with _turn:
        pasts = _pasts.setdefault(ledger, Pasts())
        pasts.hear(ledger.entries(kinds=[BEGUN, RAN], after=pasts.seq))
        return pasts


def _tried(desk: Desk, task: Task, works: Mapping[Does, Work]) -> Ended:
    desk.progress(f"{task}, slot {task.slot:%Y-%m-%d %H:%M} UTC …")
    try:
        return works[task.does](desk, task)
    except Trouble as trouble:
        return Ended("failed", str(trouble))


def _lost(task: Task) -> Ended:
    if task.attempt > ATTEMPTS:
        return Ended("failed", f"whoever was at it died {ATTEMPTS} times")
    return Ended("lost", "whoever was at it died, and the next slot is there")


def _works() -> Mapping[Does, Work]:
    from assay.controller.clock.rounds import (
        WORKS,  # brings pytest's side along, which looking at what is due needs not
    )

    return WORKS


def _line(kind: str, ident: str, at: str, task: Task, ended: Ended | None = None) -> Entry:
    body = {
        "schedule": task.line.name,
        "part": task.line.part,
        "does": task.does,
        "slot": task.slot.isoformat(),
        "attempt": task.attempt,
    }
    if ended:
        body |= {"ended": ended.how, "reason": ended.reason, **ended.facts}
    return Entry(ident, at, kind, body=body)


def _lease(task: Task) -> str:
    return f"schedule/{task.id}"


@contextmanager
def _claimed(ledger: Ledger, name: str) -> Iterator[bool]:
    """Hold a lease for as long as the block lasts; gives False where somebody else holds it."""
    holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    if not ledger.claim(name, holder, LEASE_S):
        yield False
        return
    over = threading.Event()
    thread = threading.Thread(target=_renew, args=(ledger, name, holder, over), name="slot", daemon=True)
    thread.start()
    try:
        yield True
    finally:
        over.set()
        thread.join()
        with suppress(Trouble):  # it is over by itself soon
            ledger.let_go(name, holder)


def _renew(ledger: Ledger, name: str, holder: str, over: threading.Event) -> None:
    while not over.wait(LEASE_S / 4):
        with suppress(Trouble):  # whoever writes to the ledger next says so
            ledger.claim(name, holder, LEASE_S)

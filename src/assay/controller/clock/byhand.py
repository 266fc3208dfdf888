"""What a person asks the timetable for: what is due now, or lines of it by name, due or not."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches

from assay.controller.clock.schedule import due, past_of
from assay.controller.clock.timetable import Line, Task, lines, schedules, tasks
from assay.controller.desk import Desk
from assay.controller.share import CONTROLLER
from assay.model.errors import Trouble


def asked_for(desk: Desk, names: Collection[str], of: str = "") -> list[Task]:
    """Return what to carry out: of the schedules with these `names`, due or not; where none is named, all that is due.

    `of` leaves one pool or fabric. A line of which a slot is in living hands is left out. Raises Trouble for a name
    that has no line, and why.
    """
    known = list(lines(desk.fleet))
    for name in names:
        _must_have_a_line(desk, name, known)
    if of and of not in {line.part for line in known}:
        parts = ", ".join(dict.fromkeys(line.part for line in known))
        raise Trouble(f"no schedule is for {of}", fix=f"they are for {parts or 'nothing: `assay schedules` says why'}")
    now = desk.clock.now()
    found = [task for task in due(desk, now) if (not names or task.line.name in names) and of in ("", task.line.part)]
    asked = [line for line in known if line.name in names and of in ("", line.part)]
    return [*found, *_out_of_turn(desk, asked, found)]


def left_to_the_clock(desk: Desk) -> list[Task]:
    """Return what is due and what nobody does: of a ledger that no controller goes on with. A pass scans by itself."""
    if any(name.startswith(CONTROLLER) for name in desk.ledger.holders()):
        return []
    found = due(desk, desk.clock.now())
    return [task for task in found if not task.lost and task.does != "fabric-scan"]


def _out_of_turn(desk: Desk, asked: Collection[Line], found: Collection[Task]) -> Iterator[Task]:
    """Yield a slot of now for the lines that have none to carry out, but for those that somebody is at."""
    now = desk.clock.now()
    busy = {str(task) for task in tasks(asked, past_of(desk.ledger), now)} - {str(task) for task in found}
    taken = busy | {str(task) for task in found if not task.lost}
    yield from (Task(line, now.replace(microsecond=0)) for line in asked if str(line) not in taken)


def _must_have_a_line(desk: Desk, name: str, known: Collection[Line]) -> None:
    if name in {line.name for line in known}:
        return
    declared = {one: schedule for one, schedule, _ in schedules(desk.fleet.schedules)}
    if name not in declared:
        near = get_close_matches(name, declared, n=2, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(declared) or 'none'}"
        raise Trouble(f"no schedule is called {name}", fix=hint)
    if declared[name].does == "observe":
        raise Trouble(f"{name} is what each look of the loop does", fix="a look at every node: assay reconcile --once")
    raise Trouble(f"{name} is for nothing in this fleet", fix="`assay schedules` says why")

"""What is due by the clock. Pure: from the schedules, what the ledger says of their slots, and the time.

A slot is carried out once. One that was begun and never ended is taken up again, and counted as lost once the next
one is there. Slots that nobody was there for are made up for by the newest of them alone. What was recorded for a
later time than now, by a clock that ran ahead, counts for its own slot only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.model.entry import Entry, derived_id
from assay.model.fleet import Fleet, Node
from assay.model.schedule import Does, Schedule, Schedules
from assay.model.slots import slot_after, slot_before

BEGUN, RAN = KINDS = "schedule.begun", "schedule.ran"
ON_TIME = 4
"""A slot is late after one part in so many of the time to the next."""
ATTEMPTS = 3
"""Whoever dies so often in one slot is not sent into it again."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the timetable: a schedule for one pool, or one fabric (`part`)."""

    name: str
    part: str
    schedule: Schedule
    zone: str

    def __str__(self) -> str:
        return f"{self.name} of {self.part}"

    @property
    def later(self) -> timedelta:
        """By how much this part begins after each slot."""
        share = int(derived_id("spread", self.name, self.part), 16) / 16**16
        return timedelta(minutes=self.schedule.spread_minutes * share)

    def next(self, now: datetime) -> datetime | None:
        """Return when the next slot of this part begins, later than `now`."""
        slot = slot_after(self.schedule, self.zone, now - self.later)
        return slot + self.later if slot else None


@dataclass(frozen=True, slots=True)
class Task:
    """One slot of a line. `attempt` counts from 1; `lost` says that it is only to be ended in the ledger."""

    line: Line
    slot: datetime
    attempt: int = 1
    lost: bool = False

    @property
    def id(self) -> str:
        """The same slot has the same id, whoever asks."""
        return derived_id("schedule", self.line.name, self.line.part, self.slot.isoformat())

    @property
    def does(self) -> Does:
        """What is to be done."""
        return self.line.schedule.does

    def __str__(self) -> str:
        return str(self.line)


@dataclass(slots=True)
class Past:
    """What the ledger says of one line: how often each slot was begun, and how each ended."""

    begun: dict[datetime, int] = field(default_factory=dict)
    ended: dict[datetime, Entry] = field(default_factory=dict)

    def newest(self) -> datetime | None:
        """Return the slot that was begun or ended last, as the ledger has them."""
        return max([*self.begun, *self.ended], default=None)

    def left(self) -> list[datetime]:
        """Return the slots that were begun and have no end."""
        return sorted(slot for slot in self.begun if slot not in self.ended)


class Pasts:
    """The pasts of all lines; they grow with the ledger, from `seq` on."""

    def __init__(self) -> None:
        self.seq = 0
        self._of: dict[tuple[str, str], Past] = {}

    def hear(self, entries: Iterable[Entry]) -> None:
        """Take in the lines of slots that come next."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            past = self._of.setdefault((entry.body["schedule"], entry.body["part"]), Past())
            slot = datetime.fromisoformat(entry.body["slot"])
            if entry.kind == RAN:
                past.ended[slot] = entry
            else:
                past.begun[slot] = max(past.begun.get(slot, 0), entry.body["attempt"])

    def of(self, line: Line) -> Past:
        """Return the past of a line, empty where it has none."""
        return self._of.get((line.name, line.part)) or Past()


def lines(fleet: Fleet) -> Iterator[Line]:
    """Yield what has slots: each schedule for each of its pools, or for each fabric that they hang on."""
    for name, schedule, zone in schedules(fleet.schedules):
        if schedule.does != "observe":
            yield from (Line(name, part, schedule, zone) for part in parts_of(fleet, schedule))


def schedules(documents: Mapping[str, Schedules]) -> Iterator[tuple[str, Schedule, str]]:
    """Yield each schedule by name, with the time zone of its document."""
    for document in documents.values():
        yield from ((name, schedule, document.time_zone) for name, schedule in document.schedules.items())


def parts_of(fleet: Fleet, schedule: Schedule) -> list[str]:
    """Return the fabrics that a schedule is about, or its pools: to verify, those in which a scheduler places jobs."""
    nodes = [node for node in fleet.nodes.values() if not schedule.pools or node.pool in schedule.pools]
    if schedule.does in ("fabric-scan", "fabric-evaluation"):
        return list(dict.fromkeys(fabric for node in nodes if (fabric := fabric_of(node)) in fleet.designs))
    if schedule.does == "idle-verification":
        nodes = [node for node in nodes if str(node.variables.get("workloads", "none")) != "none"]
    return list(dict.fromkeys(node.pool for node in nodes))


def fabric_of(node: Node) -> str:
    """Return the fabric that a node hangs on, "" for none."""
    return str(node.variables.get("fabric") or "")


def tasks(timetable: Iterable[Line], pasts: Pasts, now: datetime) -> list[Task]:
    """Return what is due at `now`, in the order of the timetable."""
    return [task for line in timetable for task in _of_line(line, pasts.of(line), now)]


def _of_line(line: Line, past: Past, now: datetime) -> Iterator[Task]:
    """Yield the slots that were left in the middle, and the one of now."""
    slot = slot_before(line.schedule, line.zone, now - line.later)
    for left in past.left():
        yield Task(line, left, past.begun[left] + 1, lost=left != slot or past.begun[left] >= ATTEMPTS)
    if slot and _is_due(line, past, slot, now):
        yield Task(line, slot)


def _is_due(line: Line, past: Past, slot: datetime, now: datetime) -> bool:
    """Whether the newest slot was not begun, nor overtaken by one that was since; nor is too late for its schedule."""
    known = [*past.begun, *past.ended]
    if any(slot <= one <= now for one in known):
        return False
    return line.schedule.catch_up or _is_on_time(line, slot, now)


def _is_on_time(line: Line, slot: datetime, now: datetime) -> bool:
    following = slot_after(line.schedule, line.zone, slot)
    return following is None or now - line.later - slot <= (following - slot) / ON_TIME

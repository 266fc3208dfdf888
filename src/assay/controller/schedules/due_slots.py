"""What is due by the clock. Pure: from the schedules, what the ledger says of their slots, and the time.

A slot is carried out once. One that was begun and never ended is taken up again, and counted as lost once the next
one is there. Slots that nobody was there for are made up for by the newest of them alone. What was recorded for a
later time than now, by a clock that ran ahead, counts for its own slot only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.node import Node
from assay.model.specs.schedules import FleetSchedule, ScheduledWork, Schedules, find_next_slot, find_previous_slot

SLOT_BEGUN, SLOT_RAN = SLOT_KINDS = "schedule.begun", "schedule.ran"
LATE_FRACTION = 4
"""A slot is late after one part in so many of the time to the next."""
MAX_SLOT_ATTEMPTS = 3
"""Whoever dies so often in one slot is not sent into it again."""


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    """One line of the timetable: a schedule for one pool, or one fabric (`part`)."""

    name: str
    target: str
    schedule: FleetSchedule
    zone: str

    def __str__(self) -> str:
        return f"{self.name} of {self.target}"

    @property
    def offset(self) -> timedelta:
        """By how much this part begins after each slot."""
        share = int(derive_id("spread", self.name, self.target), 16) / 16**16
        return timedelta(minutes=self.schedule.spread_minutes * share)

    def find_next_start(self, now: datetime) -> datetime | None:
        """Return when the next slot of this part begins, later than `now`."""
        slot = find_next_slot(self.schedule, self.zone, now - self.offset)
        return slot + self.offset if slot else None


@dataclass(frozen=True, slots=True)
class SlotTask:
    """One slot of a line. `attempt` counts from 1; `lost` says that it is only to be ended in the ledger."""

    line: ScheduleLine
    slot: datetime
    attempt: int = 1
    is_lost: bool = False

    @property
    def id(self) -> str:
        """The same slot has the same id, whoever asks."""
        return derive_id("schedule", self.line.name, self.line.target, self.slot.isoformat())

    @property
    def job(self) -> ScheduledWork:
        """What is to be done."""
        return self.line.schedule.does

    def __str__(self) -> str:
        return str(self.line)


@dataclass(slots=True)
class SlotHistory:
    """What the ledger says of one line: how often each slot was begun, and how each ended."""

    begun: dict[datetime, int] = field(default_factory=dict)
    ended: dict[datetime, LedgerEntry] = field(default_factory=dict)

    def find_newest(self) -> datetime | None:
        """Return the slot that was begun or ended last, as the ledger has them."""
        return max([*self.begun, *self.ended], default=None)

    def find_unfinished(self) -> list[datetime]:
        """Return the slots that were begun and have no end."""
        return sorted(slot for slot in self.begun if slot not in self.ended)


class ScheduleHistory:
    """The pasts of all lines; they grow with the ledger, from `seq` on."""

    def __init__(self) -> None:
        self.seq = 0
        self._of: dict[tuple[str, str], SlotHistory] = {}

    def add_entries(self, entries: Iterable[LedgerEntry]) -> None:
        """Take in the lines of slots that come next."""
        for entry in entries:
            self.seq = max(self.seq, entry.seq)
            past = self._of.setdefault((entry.body["schedule"], entry.body["part"]), SlotHistory())
            slot = datetime.fromisoformat(entry.body["slot"])
            if entry.kind == SLOT_RAN:
                past.ended[slot] = entry
            else:
                past.begun[slot] = max(past.begun.get(slot, 0), entry.body["attempt"])

    def get(self, line: ScheduleLine) -> SlotHistory:
        """Return the past of a line, empty where it has none."""
        return self._of.get((line.name, line.target)) or SlotHistory()


def list_schedule_lines(fleet: Fleet) -> Iterator[ScheduleLine]:
    """Yield what has slots: each schedule for each of its pools, or for each fabric that they hang on."""
    for name, schedule, zone in list_schedules(fleet.schedules):
        if schedule.does != "observe":
            yield from (ScheduleLine(name, part, schedule, zone) for part in list_schedule_targets(fleet, schedule))


def list_schedules(documents: Mapping[str, Schedules]) -> Iterator[tuple[str, FleetSchedule, str]]:
    """Yield each schedule by name, with the time zone of its document."""
    for document in documents.values():
        yield from ((name, schedule, document.time_zone) for name, schedule in document.schedules.items())


def list_schedule_targets(fleet: Fleet, schedule: FleetSchedule) -> list[str]:
    """Return the fabrics that a schedule is about, or its pools: to verify, those in which a scheduler places jobs."""
    nodes = [node for node in fleet.nodes.values() if not schedule.pools or node.pool in schedule.pools]
    if schedule.does in ("fabric-scan", "fabric-evaluation"):
        return list(dict.fromkeys(fabric for node in nodes if (fabric := read_fabric_name(node)) in fleet.designs))
    if schedule.does == "idle-verification":
        nodes = [node for node in nodes if node.settings.workloads != "none"]
    return list(dict.fromkeys(node.pool for node in nodes))


def read_fabric_name(node: Node) -> str:
    """Return the fabric that a node hangs on, "" for none."""
    return node.settings.fabric or ""


def compute_due_tasks(timetable: Iterable[ScheduleLine], pasts: ScheduleHistory, now: datetime) -> list[SlotTask]:
    """Return what is due at `now`, in the order of the timetable."""
    return [task for line in timetable for task in _due_of_line(line, pasts.get(line), now)]


def _due_of_line(line: ScheduleLine, past: SlotHistory, now: datetime) -> Iterator[SlotTask]:
    """Yield the slots that were left in the middle, and the one of now."""
    slot = find_previous_slot(line.schedule, line.zone, now - line.offset)
    for left in past.find_unfinished():
        yield SlotTask(line, left, past.begun[left] + 1, is_lost=left != slot or past.begun[left] >= MAX_SLOT_ATTEMPTS)
    if slot and _is_due(line, past, slot, now):
        yield SlotTask(line, slot)


def _is_due(line: ScheduleLine, past: SlotHistory, slot: datetime, now: datetime) -> bool:
    """Whether the newest slot was not begun, nor overtaken by one that was since; nor is too late for its schedule."""
    known = [*past.begun, *past.ended]
    if any(slot <= one <= now for one in known):
        return False
    return line.schedule.catch_up or _is_on_time(line, slot, now)


def _is_on_time(line: ScheduleLine, slot: datetime, now: datetime) -> bool:
    following = find_next_slot(line.schedule, line.zone, slot)
    return following is None or now - line.offset - slot <= (following - slot) / LATE_FRACTION

"""Which slots of the schedules are due. Pure: from the schedules, the ledger's entries about slots, and the time.

A slot runs once. One that was interrupted runs again, and is lost once the next slot is there. Of slots that nobody
ran in time, only the newest is made up for. An entry dated later than now counts for its own slot only. A search that
burn-ins wait for is due at once, whatever the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from assay.decide.state.burn_in_record import BurnInRecord
from assay.model.entries.schedule_entries import ScheduleRanEntry, ScheduleStartedEntry
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.ledger_entry import LedgerEntry, Projection, derive_id
from assay.model.specs.schedules import FleetSchedule, ScheduledWork, Schedules, find_next_slot, find_previous_slot

SLOT_BEGUN, SLOT_RAN = SLOT_KINDS = ScheduleStartedEntry.kind, ScheduleRanEntry.kind
LATE_FRACTION = 4
"""A slot is late after this fraction (1/4) of the time to the next slot."""
WHOLE_WORK = {"ledger-seal": "ledger", "trend-evaluation": "fleet"}
"""Work that has one target, and the name of that."""
FABRIC_WORK = ("fabric-scan", "fabric-evaluation", "collectives-search")
"""Work that is for fabrics, not for pools."""
NEW_NODES = "new-nodes"
"""How the name of a line ends whose searches are of nodes whose burn-in is over but for collectives."""
MAX_SLOT_ATTEMPTS = 3
"""A slot in which controllers died this often is not tried again."""


@frozen
class ScheduleLine:
    """A schedule for one target: one pool or one fabric."""

    name: str
    target: str
    schedule: FleetSchedule
    zone: str

    def __str__(self) -> str:
        return f"{self.name} of {self.target}"

    @property
    def offset(self) -> timedelta:
        """How long after each slot this target starts: its share of `spread_minutes`."""
        share = int(derive_id("spread", self.name, self.target), 16) / 16**16
        return timedelta(minutes=self.schedule.spread_minutes * share)

    def find_next_start(self, now: datetime) -> datetime | None:
        """Return when the next slot after `now` starts for this target."""
        slot = find_next_slot(self.schedule, self.zone, now - self.offset)
        return slot + self.offset if slot else None


@frozen
class SlotTask:
    """One slot of a line, to be run. `attempt` counts from 1; a lost slot only gets its end in the ledger.

    `burn_ins`: the ids of those that wait for this search.
    """

    line: ScheduleLine
    slot: datetime
    attempt: int = 1
    is_lost: bool = False
    burn_ins: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """An id that every controller derives alike."""
        return derive_id("schedule", self.line.name, self.line.target, self.slot.isoformat())

    @property
    def lease_name(self) -> str:
        """The name of the ledger's lease for this slot."""
        return f"schedule/{self.id}"

    @property
    def job(self) -> ScheduledWork:
        """The job to do."""
        return self.line.schedule.does

    def __str__(self) -> str:
        return str(self.line)


@dataclass(slots=True)
class SlotHistory:
    """What the ledger has of one line: the attempts of each begun slot, and the entry that ended each."""

    begun: dict[datetime, int] = field(default_factory=dict)
    ended: dict[datetime, ScheduleRanEntry] = field(default_factory=dict)

    def find_newest(self) -> datetime | None:
        """Return the last slot that was begun or ended."""
        return max([*self.begun, *self.ended], default=None)

    def find_unfinished(self) -> list[datetime]:
        """Return the slots that were begun and not ended."""
        return sorted(slot for slot in self.begun if slot not in self.ended)

    def find_search(self, burn_in: str) -> ScheduleRanEntry | None:
        """Return the end of the search that a burn-in waited for."""
        return next((ran for ran in self.ended.values() if burn_in in ran.facts.get("burn_ins", ())), None)


class ScheduleHistory:
    """The histories of all lines."""

    def __init__(self, histories: Mapping[tuple[str, str], SlotHistory] | None = None) -> None:
        self._histories = dict(histories or {})
        self._own: set[tuple[str, str]] = set()

    def copy(self) -> ScheduleHistory:
        """Return one that changes for itself. It copies the history of a line when that changes first."""
        return ScheduleHistory(self._histories)

    def add_entry(self, entry: LedgerEntry) -> ScheduleHistory:
        """Add the next entry of `SLOT_KINDS`, and return this object.

        The oldest entries name no slot, and are of none that can be due.
        """
        content_class = ScheduleRanEntry if entry.kind == SLOT_RAN else ScheduleStartedEntry
        content = content_class.read(entry)
        if not content.slot:
            return self
        history = self._take_own((content.schedule, content.part))
        slot = datetime.fromisoformat(content.slot)
        if isinstance(content, ScheduleRanEntry):
            history.ended[slot] = content
        else:
            history.begun[slot] = max(history.begun.get(slot, 0), content.attempt)
        return self

    def _take_own(self, line: tuple[str, str]) -> SlotHistory:
        if line not in self._own:
            known = self._histories.get(line) or SlotHistory()
            self._histories[line] = SlotHistory(dict(known.begun), dict(known.ended))
            self._own.add(line)
        return self._histories[line]

    def get(self, line: ScheduleLine) -> SlotHistory:
        """Return the history of a line, empty where it has none."""
        return self._histories.get((line.name, line.target)) or SlotHistory()


SLOTS = Projection(SLOT_KINDS, ScheduleHistory, ScheduleHistory.add_entry, ScheduleHistory.copy)


def list_schedule_lines(fleet: Fleet) -> Iterator[ScheduleLine]:
    """Yield every schedule with slots, for each of its pools or fabrics."""
    for name, schedule, zone in list_schedules(fleet.schedules):
        if schedule.does != "observe":
            targets = list_schedule_targets(fleet, schedule)
            yield from (ScheduleLine(name, target, schedule, zone) for target in targets)


def list_schedules(documents: Mapping[str, Schedules]) -> Iterator[tuple[str, FleetSchedule, str]]:
    """Yield each schedule by name, with the time zone of its document."""
    for document in documents.values():
        yield from ((name, schedule, document.time_zone) for name, schedule in document.schedules.items())


def list_schedule_targets(fleet: Fleet, schedule: FleetSchedule) -> list[str]:
    """Return the targets of a schedule: fabrics, pools or one. Idle verification needs pools with a scheduler."""
    if schedule.does in WHOLE_WORK:
        return [WHOLE_WORK[schedule.does]]
    nodes = [node for node in fleet.nodes.values() if not schedule.pools or node.pool in schedule.pools]
    if schedule.does in FABRIC_WORK:
        fabrics = dict.fromkeys(node.settings.fabric for node in nodes)
        return [fabric for fabric in fabrics if fabric and fabric in fleet.designs]
    if schedule.does == "idle-verification":
        nodes = [node for node in nodes if node.settings.workloads != "none"]
    return list(dict.fromkeys(node.pool for node in nodes))


def compute_due_tasks(lines: Iterable[ScheduleLine], history: ScheduleHistory, now: datetime) -> list[SlotTask]:
    """Return the slots that are due at `now`, in the order of the lines."""
    return [task for line in lines for task in _list_due_tasks(line, history.get(line), now)]


def _list_due_tasks(line: ScheduleLine, history: SlotHistory, now: datetime) -> Iterator[SlotTask]:
    """Yield the interrupted slots of a line, and its current one."""
    current = find_previous_slot(line.schedule, line.zone, now - line.offset)
    for slot in history.find_unfinished():
        attempts = history.begun[slot]
        yield SlotTask(line, slot, attempts + 1, is_lost=slot != current or attempts >= MAX_SLOT_ATTEMPTS)
    if current and _is_due(line, history, current, now):
        yield SlotTask(line, current)


def make_new_nodes_lines(lines: Iterable[ScheduleLine]) -> dict[str, ScheduleLine]:
    """Return by fabric the line of its searches of new nodes: each is as the first schedule that searches it says."""
    searches = (line for line in lines if line.schedule.does == "collectives-search")
    return {line.target: replace(line, name=f"{line.name}-{NEW_NODES}") for line in reversed(list(searches))}


def list_new_nodes_tasks(
    line: ScheduleLine, history: SlotHistory, waiting: Iterable[BurnInRecord]
) -> Iterator[SlotTask]:
    """Yield the search that burn-ins of a fabric wait for. It stands for the time at which the first was over."""
    records = [record for record in waiting if history.find_search(record.id) is None]
    slots = [*history.find_unfinished(), *sorted(datetime.fromisoformat(record.over_at) for record in records)]
    if slots:
        attempt = history.begun.get(slots[0], 0) + 1
        is_lost = not records or attempt > MAX_SLOT_ATTEMPTS
        yield SlotTask(line, slots[0], attempt, is_lost, tuple(record.id for record in records))


def _is_due(line: ScheduleLine, history: SlotHistory, slot: datetime, now: datetime) -> bool:
    """Whether a slot, or a later one up to now, was not begun yet, and it is not too late for it."""
    if any(slot <= known <= now for known in (*history.begun, *history.ended)):
        return False
    following = find_next_slot(line.schedule, line.zone, slot)
    is_on_time = following is None or now - line.offset - slot <= (following - slot) / LATE_FRACTION
    return line.schedule.catch_up or is_on_time

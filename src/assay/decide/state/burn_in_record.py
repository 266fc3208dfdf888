"""What the ledger says of a node's last burn-in: how far it is, what it covered, what drifts, and how it ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from assay.model.entries.effects import (
    BurnInEndedEntry,
    BurnInHeldEntry,
    BurnInNoteEntry,
    BurnInOutcome,
    BurnInOverEntry,
    BurnInStartedEntry,
    BurnInWindowEntry,
)
from assay.model.facts import from_json, frozen
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.burn_in import BurnInWindow, PartWork
from assay.model.timestamps import format_time, parse_time


@frozen
class BurnInRecord:
    """The last burn-in of a node. `stay_id` is the stay in which it began.

    `hours` are planned, `hours_done` are over at the time `at`. `work`: what ran, by phase and load part. `log` and
    `line`: how far the node's journal has been read. `held_hours`: what was added because of drift. `outcome` is ""
    while it runs. `over_at`: when its phases were over, for one that waits for collectives. `fault`: the class of the
    verdict that ended it, if it has one. `part`: the load part without any result, for a fault of the plan. `rates`:
    Gflop/s by GPU. `reboots`: how often the node started again meanwhile. `silent`: since when and why it cannot be
    read. `interruptions`: what kept it from going on, or us from reading it. `is_stopped`: that its load has ended is
    known, where it ended early.
    """

    id: str
    spec: str
    stay_id: str
    started_at: str
    at: str
    hours: float
    hours_done: float = 0.0
    phase: str = ""
    log: str = ""
    line: int = 0
    boot: str = ""
    reboots: int = 0
    held_hours: float = 0.0
    drifts: tuple[str, ...] = ()
    windows: tuple[BurnInWindow, ...] = ()
    work: Mapping[str, Mapping[str, PartWork]] = field(default_factory=dict)
    serials: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    over_at: str = ""
    outcome: BurnInOutcome | None = None
    reason: str = ""
    fault: str = ""
    part: str = ""
    silent: str = ""
    interruptions: tuple[str, ...] = ()
    is_stopped: bool = False

    @property
    def must_stop(self) -> bool:
        """Whether it ended early, and the node has not answered yet that its load ended."""
        return self.outcome in ("failed", "incomplete", "stopped") and not self.over_at and not self.is_stopped

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.outcome is None

    @property
    def planned_hours(self) -> float:
        """The hours of the plan, with those that were added."""
        return self.hours + self.held_hours

    @property
    def known_hard_counters(self) -> dict[str, dict[str, int]]:
        """The last known hard counters of each subject."""
        known: dict[str, dict[str, int]] = {}
        for window in self.windows:
            for subject, counters in window.hard.items():
                known.setdefault(subject, {}).update(counters)
        return known

    def estimate_end(self) -> datetime:
        """Return when it ends if nothing interrupts it."""
        return parse_time(self.at) + timedelta(hours=max(0.0, self.planned_hours - self.hours_done))

    def list_coverage(self) -> Iterator[tuple[str, str, str, float]]:
        """Yield subject, serial number ("" if not known), load part, and hours with results.

        What loads the whole node counts for each of its DIMMs (`memory`), or of its GPUs.
        """
        hours: dict[tuple[str, str], float] = {}
        for part, work in ((part, work) for parts in self.work.values() for part, work in parts.items()):
            for subject, seconds in work.subjects.items():
                for name in self._expand(subject, part):
                    hours[name, part] = hours.get((name, part), 0.0) + seconds / 3600
        for (subject, part), count in sorted(hours.items()):
            yield subject, self.serials.get(subject, ""), part, round(count, 2)

    def describe_drifts(self) -> list[str]:
        """Return a line for each drift."""
        return [f"its burn-in of {self.started_at[:10]} drifted: {line}" for line in self.drifts]

    def _expand(self, subject: str, part: str) -> list[str]:
        gpus = [name for name in self.serials if name.startswith("gpu")]
        dimms = [name for name in self.serials if not name.startswith(("gpu", "nvme"))]
        return ((dimms if part == "memory" else gpus) or [subject]) if subject == "node" else [subject]

    def describe(self) -> str:
        """Return how far it is, or how it ended, in one line."""
        done = f"{self.hours_done:.1f} of {self.planned_hours:g} h"
        if self.is_running and self.over_at:
            return f"burn-in {done}, {self.reason}"
        if self.outcome is None:
            end = f"ends about {self.estimate_end():%d %b %H:%M} UTC"
            last = f"; {self.interruptions[-1]}" if self.interruptions else ""
            return f"burn-in {done}, phase {self.phase or 'not begun'}, {self.silent or f'{end}{last}'}"
        return f"burn-in {self.outcome} after {done}{f': {self.reason}' if self.reason else ''}"


BURN_IN_KINDS = {
    entry.kind: entry
    for entry in (
        BurnInStartedEntry,
        BurnInWindowEntry,
        BurnInHeldEntry,
        BurnInOverEntry,
        BurnInNoteEntry,
        BurnInEndedEntry,
    )
}


def advance_burn_in(record: BurnInRecord | None, entry: LedgerEntry, stay_id: str) -> BurnInRecord | None:
    """Return the record after an entry. Entries of an earlier burn-in change nothing."""
    if entry.kind == BurnInStartedEntry.kind:
        started = BurnInStartedEntry.read(entry)
        at = format_time(entry.at)
        is_known = record is not None and record.id == started.burn_in
        return record if is_known else BurnInRecord(started.burn_in, started.spec, stay_id, at, at, started.hours)
    content = BURN_IN_KINDS[entry.kind].read(entry)
    if record is None or (record.outcome is not None and entry.kind != BurnInNoteEntry.kind):
        return record
    match content:
        case BurnInNoteEntry() if content.burn_in == record.id:
            return _add_note(record, content)
        case BurnInWindowEntry() if content.burn_in == record.id:
            return _add_window(record, content, format_time(entry.at))
        case BurnInHeldEntry() if content.burn_in == record.id:
            return replace(record, held_hours=content.hours, drifts=content.drifts)
        case BurnInOverEntry() if content.burn_in == record.id:
            over_at, reason = format_time(entry.at), "waits for collectives with other nodes of its fabric"
            return replace(record, over_at=over_at, reason=reason, drifts=content.drifts, rates=content.rates)
        case BurnInEndedEntry() if content.burn_in == record.id:
            return _end(record, content, format_time(entry.at))
    return record


def _add_note(record: BurnInRecord, note: BurnInNoteEntry) -> BurnInRecord:
    if note.event == "stopped":
        return replace(record, is_stopped=True)
    if note.event == "silent":
        return replace(record, silent=note.text)
    return replace(record, silent="", interruptions=(*record.interruptions, note.text))


def _end(record: BurnInRecord, ended: BurnInEndedEntry, at: str) -> BurnInRecord:
    return replace(
        record,
        at=at,
        hours_done=max(record.hours_done, ended.hours),
        outcome=ended.outcome,
        reason=ended.reason,
        fault=ended.fault,
        part=ended.part,
        drifts=ended.drifts,
        rates=ended.rates,
        windows=(),
    )


def _add_window(record: BurnInRecord, entry: BurnInWindowEntry, at: str) -> BurnInRecord:
    window = from_json(BurnInWindow, entry.window)
    work = dict(record.work.get(window.phase, {}))
    for part, done in window.parts.items():
        work[part] = work.get(part, PartWork()).plus(done)
    return replace(
        record,
        at=at,
        hours_done=window.hours,
        phase=window.phase,
        log=entry.log,
        line=entry.line,
        boot=entry.boot,
        reboots=record.reboots + bool(record.boot and entry.boot and record.boot != entry.boot),
        windows=(*record.windows, window),
        work={**record.work, window.phase: work} if work else record.work,
        serials={**record.serials, **entry.serials},
    )

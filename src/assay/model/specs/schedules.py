"""Schedules: what the controller does by the clock, how often, and for which pools; and the due times (slots).

All times are UTC. In an hour that a time zone skips, a cron's slot is at the end of the hour. In an hour that occurs
twice, it has both slots.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Literal, get_args
from zoneinfo import ZoneInfo

from pydantic import Field, model_validator

from assay.model.specs.check_catalog import Phase
from assay.model.specs.load_parts import LoadPart, find_least_seconds
from assay.model.specs.spec_document import SpecDocument, SpecName, StrictModel

ScheduledWork = Literal[
    "observe",
    "fabric-scan",
    "fabric-evaluation",
    "idle-verification",
    "staleness-sweep",
    "ledger-seal",
    "trend-evaluation",
    "collectives-search",
]
Minutes = Annotated[float, Field(gt=0)]
CronText = Annotated[str, Field(pattern=r"^[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4}$")]
AnchorName = Annotated[str, Field(pattern=r"^(file:.+|git-note(:.+)?|rfc3161:https?://.+)$")]


class IdleVerificationSpec(StrictModel):
    """How idle nodes are verified: by the active checks of `phase`.

    Each of `parts` loads a node for about `seconds`, or for its `part_seconds`, one after the other, all within
    `within_minutes`. At most `at_once` nodes of a pool are loaded at the same time. A node that was in use in
    `told_after` slots in a row is reported.

    `budget_minutes`: for so long a visit loads a node, with the parts that its GPUs have not seen for longest. Without
    it, each visit runs all parts. `seeds`: after so many seeds, the battery begins again with the first. `cover_days`:
    within so many days, each GPU is to meet all parts and every unit of the battery; the others are shown as late.
    """

    phase: Phase
    parts: list[LoadPart] = Field(min_length=1)
    seconds: int = Field(ge=1, le=7200)
    within_minutes: float = Field(gt=0, le=1440)
    at_once: int = Field(ge=1, le=10_000)
    told_after: int = Field(ge=2, le=10_000)
    part_seconds: dict[LoadPart, Annotated[int, Field(ge=1, le=7200)]] = Field(default={})
    budget_minutes: Annotated[float, Field(gt=0, le=1440)] | None = None
    seeds: int = Field(default=1024, ge=1, le=1_000_000)
    cover_days: float = Field(default=7, gt=0, le=365)

    @model_validator(mode="after")
    def _times_fit(self) -> IdleVerificationSpec:
        if others := self.part_seconds.keys() - set(self.parts):
            raise ValueError(f"part_seconds names {', '.join(sorted(others))}, which parts does not")
        if self.budget_minutes is not None and self.budget_minutes > self.within_minutes:
            raise ValueError("budget_minutes is more than within_minutes")
        return self

    @property
    def seconds_by_part(self) -> dict[str, float]:
        """How long each part loads a node, or takes at least."""
        return {part: find_least_seconds(part, self.part_seconds.get(part, self.seconds)) for part in self.parts}


class CollectivesSearchSpec(StrictModel):
    """How the idle nodes of a fabric are searched with collectives: by the commands of the `workload`.

    `workload`: a CollectiveWorkload. `whole`: all nodes together run `last`, or not at all. `min_nodes`: with fewer
    idle nodes, nothing runs. `at_once`: so many runs at the same time.
    """

    workload: SpecName
    whole: Literal["no", "last"] = "last"
    min_nodes: int = Field(default=4, ge=2, le=100_000)
    at_once: int = Field(default=512, ge=1, le=10_000)


class FleetSchedule(StrictModel):
    """What to do, and when: by `cron` (five fields, in `time_zone`) or `every_minutes`, counted from midnight UTC.

    - `does: observe` is the interval at which the loop observes nodes. All other work has slots; each slot runs once.
    - `pools`: empty means all. `spread_minutes`: each pool or fabric starts later by a fixed delay of up to this long.
    - `catch_up`: missed slots are made up for by one run; without it they are skipped.
    - `stale_minutes`: the age by phase at which the staleness sweep reports an outcome.
    - `anchors`: where `ledger-seal` keeps the ledger's seal: `file:PATH`, `git-note[:REF]`,
      `rfc3161:URL[#ROOTS.pem]`.

    `does`: the kind of work. `cron`: five fields, in `time_zone`. `every_minutes`: the interval, counted from midnight
    UTC. `time_zone`: IANA name for this schedule. `verification`: how `does: idle-verification` loads nodes. `search`:
    how `does: collectives-search` searches them.
    """

    does: ScheduledWork
    cron: CronText | None = None
    every_minutes: int | None = Field(default=None, ge=1, le=10_080)
    time_zone: str = Field(default="", pattern=r"^[A-Za-z0-9_+/-]*$")
    spread_minutes: float = Field(default=0, ge=0, le=1440)
    pools: list[SpecName] = Field(default=[])
    catch_up: bool = True
    verification: IdleVerificationSpec | None = None
    search: CollectivesSearchSpec | None = None
    stale_minutes: dict[Phase, Minutes] = Field(default={})
    anchors: list[AnchorName] = Field(default=[])

    @model_validator(mode="after")
    def _is_consistent(self) -> FleetSchedule:
        if (self.cron is None) == (self.every_minutes is None):
            raise ValueError("give cron or every_minutes, and not both")
        if self.does == "observe" and self.every_minutes is None:
            raise ValueError("every_minutes is missing: observe is an interval, and has no slots")
        if (self.does == "idle-verification") != (self.verification is not None):
            raise ValueError("verification belongs to idle-verification, which cannot do without it")
        if (self.does == "collectives-search") != (self.search is not None):
            raise ValueError("search belongs to collectives-search, which cannot do without it")
        if (self.does == "staleness-sweep") != bool(self.stale_minutes):
            raise ValueError("stale_minutes belongs to staleness-sweep, which cannot do without it")
        if (self.does == "ledger-seal") != bool(self.anchors):
            raise ValueError("anchors belong to ledger-seal, which cannot do without them")
        if self.does == "ledger-seal" and self.pools:
            raise ValueError("ledger-seal is for the whole ledger, not for pools")
        if self.does == "trend-evaluation" and self.pools:
            raise ValueError("trend-evaluation compares the whole fleet, not pools")
        _check_cron(self.cron)
        find_time_zone(self.time_zone)
        return self


Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
WEEKDAYS: tuple[Weekday, ...] = get_args(Weekday)


class RolloutHours(StrictModel):
    """The hours of the day in which waves begin, from `from_hour` until before `to_hour`, on `days`, in `time_zone`.

    If `to_hour` is not later than `from_hour`, it is an hour of the next day.
    """

    from_hour: int = Field(default=0, ge=0, le=23)
    to_hour: int = Field(default=24, ge=1, le=24)
    days: list[Weekday] = Field(default=[*WEEKDAYS], min_length=1)
    time_zone: str = Field(default="UTC", pattern=r"^[A-Za-z0-9_+/-]+$")

    @model_validator(mode="after")
    def _zone_is_known(self) -> RolloutHours:
        find_time_zone(self.time_zone)
        return self

    def is_open(self, at: datetime) -> bool:
        """Whether a wave may begin at this time. After midnight, the day on which the hours began counts."""
        local = at.astimezone(find_time_zone(self.time_zone))
        is_next_day = self.to_hour <= self.from_hour and local.hour < self.to_hour
        day = WEEKDAYS[(local - timedelta(days=is_next_day)).weekday()]
        is_within = self.from_hour <= local.hour < (self.to_hour if self.to_hour > self.from_hour else 24)
        return day in self.days and (is_within or is_next_day)


class HistoryBound(StrictModel):
    """What a change of specs or suites may do otherwise with the stored history before a person must agree.

    - `wrongly_closed`: nodes that it would have closed and that were proven healthy later, without a repair.
    - `newly_closed`: nodes that it would have closed, these among them.
    - `lost_faults`: faults that it no longer sees.
    """

    wrongly_closed: int = Field(default=1, ge=0)
    newly_closed: int = Field(default=3, ge=0)
    lost_faults: int = Field(default=0, ge=0)
    source: str = (
        "our own choice: one healthy node may have had a fault that comes and goes, two are a rule that is wrong; and "
        "more than three nodes whose fault nobody saw are seldom all faulty"
    )


class RolloutRules(StrictModel):
    """How a merged change that takes nodes out of service is rolled out. The size of waves follows from `limits`.

    - `canaries`: so many nodes of each spec and pool must be proven before the others of that kind go.
    - `failed_percent`: if this share of the nodes that were ordered out failed, the rollout pauses. A failed canary
      always pauses it.
    - `wait_hours`: so long, the next wave waits for a node that was ordered out and still serves because of a job.
    - `lead_hours`: no node leaves sooner after the rollout began: customers read of it as planned work. One that only
      takes back what the last rollout brought begins at once: what may harm does not stay for the sake of notice.
    - `defer_hours`: for so long after that may customers defer it on their nodes, but not one that only takes back.
    - `hours`: when waves may begin. Without it, at any time.
    - `reviewed_plan`: `required` lets a rollout wait for a person if its commit names no plan with which it was
      reviewed. With `optional`, it starts.

    `history`: what a change may do otherwise with the stored history.
    """

    canaries: int = Field(default=1, ge=1, le=100)
    failed_percent: float = Field(default=10, gt=0, le=100)
    wait_hours: float = Field(default=24, gt=0, le=8760)
    lead_hours: float = Field(default=0, ge=0, le=8760)
    defer_hours: float = Field(default=336, ge=0, le=8760)
    hours: RolloutHours | None = None
    reviewed_plan: Literal["optional", "required"] = "optional"
    history: HistoryBound = Field(default_factory=HistoryBound)
    source: str = ""

    def describe_closed_hours(self, at: datetime) -> str:
        """Return why no wave may begin at this time, "" if one may."""
        window = self.hours
        if window is None or window.is_open(at):
            return ""
        days = "every day" if len(set(window.days)) == len(WEEKDAYS) else ", ".join(window.days)
        return f"waves begin from {window.from_hour}:00 to {window.to_hour}:00 {window.time_zone}, {days}"

    def find_open(self, at: datetime) -> datetime:
        """Return the first time from `at` on at which a wave may begin. All time zones begin an hour at a quarter."""
        while self.describe_closed_hours(at):
            at = at.replace(minute=at.minute // 15 * 15, second=0, microsecond=0) + timedelta(minutes=15)
        return at


class Schedules(SpecDocument):
    """What the controller does by the clock. `time_zone` is the IANA name for crons that name none themselves.

    `schedules`: the work by name.
    """

    kind: Literal["Schedules"]
    sources: list[str] = Field(min_length=1)
    time_zone: str = Field(default="UTC", pattern=r"^[A-Za-z0-9_+/-]+$")
    schedules: dict[SpecName, FleetSchedule] = Field(min_length=1)

    @model_validator(mode="after")
    def _zone_is_known(self) -> Schedules:
        find_time_zone(self.time_zone)
        return self


def find_time_zone(name: str) -> tzinfo:
    """Return a time zone by its IANA name, UTC for "". Raises ValueError if this machine does not know it."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):
        raise ValueError(f"time_zone {name!r} is not known; write it as Europe/Berlin is written") from None


def _check_cron(cron: str | None) -> None:
    """Raise ValueError if a cron is not valid."""
    if cron is None:
        return
    from croniter import croniter  # takes a tenth of a second to load, and few commands need it

    if not croniter.is_valid(cron):
        raise ValueError(f"cron {cron!r} says no time; write minute, hour, day, month and weekday as crontab(5) does")


SLOT_ORIGIN = datetime(1970, 1, 1, tzinfo=UTC)
SMALLEST_STEP = timedelta(microseconds=1)


def find_previous_slot(schedule: FleetSchedule, zone: str, at: datetime) -> datetime | None:
    """Return the newest slot not later than `at`, None if a cron has none. `zone` is the document's time zone."""
    if schedule.every_minutes is not None:
        step = timedelta(minutes=schedule.every_minutes)
        return at - (at - SLOT_ORIGIN) % step
    return _find_cron_slot(
        schedule.cron or "", find_time_zone(schedule.time_zone or zone), at + SMALLEST_STEP, back=True
    )


def find_next_slot(schedule: FleetSchedule, zone: str, at: datetime) -> datetime | None:
    """Return the first slot later than `at`, None if a cron has none."""
    if schedule.every_minutes is not None:
        step = timedelta(minutes=schedule.every_minutes)
        return at - (at - SLOT_ORIGIN) % step + step
    return _find_cron_slot(schedule.cron or "", find_time_zone(schedule.time_zone or zone), at, back=False)


def _find_cron_slot(cron: str, zone: tzinfo, at: datetime, *, back: bool) -> datetime | None:
    from croniter import CroniterBadDateError, croniter

    times = croniter(cron, at.astimezone(zone))
    try:
        slot: datetime = times.get_prev(datetime) if back else times.get_next(datetime)
    except CroniterBadDateError:
        return None
    return slot.astimezone(UTC)

"""Finds the faults in a log file: counts and correlates a stream of messages, and gives each fault its reasons.

Memory does not grow with the log: there is one entry for each fault and place. A log without times may run backwards,
as `dmesg -t | tac` prints it, and a log's clock may jump: with each boot, or when somebody sets the time.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from assay.decide.faults.unjudged import UnjudgedCounter
from assay.model.facts import extend, fact, shown
from assay.model.faults.counting import FaultCorrelator, FaultCounter, PrimaryFault, may_follow
from assay.model.faults.fault_record import SEVERITIES, FaultBlame, FaultSeverity, Remedy
from assay.model.log_message import LogMessage
from assay.model.specs.fault_catalog import EVENT_SECONDS, XID_NAMES, FaultCatalog, FaultClass
from assay.model.specs.fault_relations import matches
from assay.model.specs.nvlink_codes import NvlinkCode
from assay.model.text.lists import normalize_pci_address

CHANGE = re.compile(
    r"(?i)\bchanged from (?:0x[0-9a-f]+ )?\(?(?P<before>\w[\w ]*)\)? to (?:0x[0-9a-f]+ )?\(?(?P<after>\w[\w ]*)\)?\s*$"
)
RUNS_BACK = "its lines run backwards, so nobody can say which recovery action came last, and a person must look"


class RecoveryOrder:
    """The last change of the recovery action of each GPU of a host. `runs_back`: two of them follow the other way only.

    Two changes that lead there and back fit both ways; then the log counts as ordered.
    """

    def __init__(self) -> None:
        self.runs_back = False
        self._last: dict[str, tuple[str, str]] = {}

    def read(self, place: str, text: str) -> None:
        """Take the next message about the recovery action of a GPU."""
        if change := CHANGE.search(text):
            before, after = change["before"], change["after"]
            began, ended = self._last.get(place, ("", ""))
            self.runs_back = self.runs_back or (after == began and before != ended)
            self._last[place] = before, after


REORDERED_S = 10.0  # processors may write a little out of order; a larger jump back is a boot, or the clock was set
UNKNOWN_GAP_S = 61.0
"""What passes for the time between two lines where the clock was set: longer than any burst, and than what follows."""
LINE_S = EVENT_SECONDS / 10
"""What passes for the time between two faults of a log without times: ten of them may be one event."""
CLOCK_UNSET = 946_684_800.0
"""A time before 2000 is that of a machine that does not know the time yet."""


class SteadyClock:
    """Gives the lines of one host times that never go back. Seconds; only differences have a meaning.

    The time since the boot counts before the wall clock, which people and NTP set.
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._uptime: float | None = None
        self._wall: float | None = None
        self._untimed = self._later = self._earlier = 0

    def read(self, message: LogMessage) -> float | None:
        """Return the time of a line, after those that were read before it; None if it has no time."""
        if message.at is None:
            return None
        wall = message.wall
        uptime = message.at if wall is None else message.uptime_s
        if uptime is not None and self._uptime is not None:
            elapsed = uptime if uptime < self._uptime - REORDERED_S else uptime - self._uptime
        elif wall is not None and self._wall is not None:
            # Where the wall clock was set in between, the seconds are not known.
            was_set = wall < self._wall - REORDERED_S or (self._wall < CLOCK_UNSET <= wall)
            elapsed = UNKNOWN_GAP_S if was_set else wall - self._wall
            self._later += wall > self._wall
            self._earlier += wall < self._wall
        else:
            elapsed = message.at if self._uptime is self._wall is None else UNKNOWN_GAP_S
        self._uptime = uptime if uptime is not None else self._uptime
        self._wall = wall if wall is not None else self._wall
        self._now += max(elapsed, 0.0)
        return self._now

    @property
    def runs_back(self) -> bool:
        """Whether each line is older than the one before it, by the wall clock alone: the newest stands first."""
        return self._earlier > 0 and self._later == 0

    def count_line(self) -> float | None:
        """Return a time for a line of a log without times: its number. None where a line before it had a time."""
        if self._uptime is not None or self._wall is not None:
            return None
        self._untimed += 1
        return self._untimed * LINE_S


MOST_FAULTS = 4000
LEAST_PARTS, START_S = 3, 600.0
"""So many parts that say the same are one event. A node starts for so many seconds."""
TRAIT = (
    "noted only, as they say it while the node starts: where all nodes of its kind do, it is a trait of theirs, "
    "for `usual_faults` of their spec"
)
FURTHER_PARTS = "further parts"
"""What stands for the parts and hosts beyond so many faults: a log may name any number."""
FaultOwner = Literal["hardware", "application", "driver", "operator"]
NODE_SUBJECT = "node"


@dataclass(slots=True, eq=False)
class LogFault:
    """One fault of one part. `first` and `last` are time stamps as in the log, None if the log has none.

    `lines` counts all of its lines. `settling` counts those too soon after a boot. `secondary` counts, by class, the
    faults that follow from it. `host` is "" if the log names none. `overridden_by` is the class of a later recovery
    action. `newest` is its last line. `before` is the fault as it was when the event of `event_at` began.
    """

    name: str
    subject: str
    counter: FaultCounter
    settle_s: float
    host: str = ""
    first: str | None = None
    last: str | None = None
    lines: int = 0
    settling: int = 0
    detail: str = ""
    code: NvlinkCode | None = None
    last_at: float | None = None
    overridden_by: str = ""
    newest: LogMessage | None = None
    secondary: Counter[str] = field(default_factory=Counter)
    place: str = ""
    may_follow: bool = False
    event_at: float | None = None
    before: LogFault | None = None

    @property
    def is_of_start(self) -> bool:
        """Whether it was seen while the node started, as far as the log's times since the boot tell."""
        newest = self.newest
        uptime_s = newest.at if newest and newest.wall is None else newest.uptime_s if newest else None
        return uptime_s is None or uptime_s < START_S

    def begin_event(self, at: float) -> None:
        """Remember the fault as it is, unless a sighting came just before: what comes now may follow from another."""
        if self.event_at is None or at - self.event_at > EVENT_SECONDS:
            self.event_at = at
            self.before = replace(self, counter=self.counter.copy(), secondary=self.secondary.copy(), before=None)

    def take_back_event(self) -> Counter[str]:
        """Become what the fault was before its last event, and return what was counted since, by class."""
        if self.before is None:
            return Counter()
        before = self.before
        taken = self.secondary - before.secondary + Counter({self.name: self.lines - before.lines})
        for part in fields(self):
            setattr(self, part.name, getattr(before, part.name))
        self.event_at = None
        return taken

    def see(self, message: LogMessage, at: float | None, code: NvlinkCode | None, times: int) -> None:
        """Count a line of so many errors; `at` is its time on the steady clock of the log."""
        settling = message.uptime_s is not None and message.uptime_s < self.settle_s
        self.counter.add(at, not settling and (code is None or code.needs_action), times, message.lines)
        self.first, self.last = self.first or message.stamp, message.stamp or self.last
        self.detail, self.code = message.text, code
        self.last_at = at
        self.overridden_by = ""
        self.newest = message
        self.lines += message.lines
        self.settling += settling * message.lines


@fact
class FaultInLog:
    """A fault of one part."""

    fault: str
    """The fault class."""
    class_: FaultOwner = shown("class")
    """What is to blame."""
    severity: FaultSeverity
    """How serious it is."""
    subject: str
    """The part, or node."""
    host: str
    """The host that the log names, "" if it names none."""
    count: int
    """How often the fault happened."""
    first: str | None
    """The earliest time, as the log writes it; null if it has no times."""
    last: str | None
    """The latest time; null if the log has no times."""
    action: Remedy
    """What the fault asks for, such as reboot or ticket; none if nothing."""
    because: str
    """Why, with the source."""
    investigate: str
    """What to look at, "" if the catalogue does not say."""
    lines: int
    """How many lines tell of it."""
    detail: str
    """The last of these lines."""
    below_limit: bool
    """Whether too few came within the time of its class to make it a fault: it is counted, and asks for nothing."""


class LogFaultCollector:
    """Collects messages, and returns their faults. Every host has a clock and faults of its own."""

    def __init__(self, catalog: FaultCatalog) -> None:
        self._catalog, self.unjudged = catalog, UnjudgedCounter()
        self._recovery_actions = {
            name: rule.recovery_action for name, rule in catalog.classes.items() if rule.recovery_action
        }
        self._hosts: dict[str, tuple[SteadyClock, FaultCorrelator]] = {}
        self._orders: defaultdict[str, RecoveryOrder] = defaultdict(RecoveryOrder)
        self._faults: dict[tuple[str, str, str], LogFault] = {}
        self._by_place: defaultdict[tuple[str, str], list[LogFault]] = defaultdict(list)
        self._secondary: defaultdict[str, list[LogFault]] = defaultdict(list)

    def add(self, name: str, part: str, message: LogMessage, code: NvlinkCode | None = None, times: int = 1) -> None:
        """Add a sighting of the class `name`. `part` "" means the node. The message tells of so many errors.

        Where a log has no times, sightings that stand near each other are of one event.
        """
        host, place = message.host, normalize_pci_address(part) or part.lower().rstrip(":.")
        if len(self._faults) >= MOST_FAULTS and (host, name, place) not in self._faults:
            host, part, place = "", FURTHER_PARTS, FURTHER_PARTS
        if host not in self._hosts:
            self._hosts[host] = SteadyClock(), FaultCorrelator(self._catalog)
        clock, correlator = self._hosts[host]
        at = clock.read(message)
        near = clock.count_line() if at is None else at
        is_correlated, seen_at = near is not None and correlator.is_relevant(name), None
        if near is not None and is_correlated:
            if primary := self._find_primary(name, place, near, correlator, is_timed=at is not None):
                self._faults[host, *primary].secondary[name] += message.lines
                return
            seen_at = correlator.last_seen(name, place)
            correlator.record(name, place, near)
        fault = self._faults.get((host, name, place)) or self._start_fault(host, name, place, part)
        if near is not None and is_correlated:
            if fault.may_follow:
                fault.begin_event(near)
            if name in self._catalog.primary_faults and (seen_at is None or near - seen_at > EVENT_SECONDS):
                self._absorb(fault, near, correlator)
        fault.see(message, at, code, times)
        if name in self._recovery_actions:
            self._override(fault, place, self._recovery_actions[name].overrides_seconds)

    def _find_primary(
        self, name: str, place: str, near: float, correlator: FaultCorrelator, *, is_timed: bool
    ) -> PrimaryFault | None:
        """Return the fault from which this one follows. Without times, that is no lesser one."""
        if is_timed:
            return correlator.find_primary(name, place, near)
        primary = correlator.find_primary(name, place, near, EVENT_SECONDS)
        return primary if primary and may_follow(self._catalog, name, place, primary) else None

    def _absorb(self, primary: LogFault, at: float, correlator: FaultCorrelator) -> None:
        """Take back what was counted just before `primary` and follows from it: the lines of an event have no order."""
        cause = PrimaryFault(primary.name, primary.place)
        for fault in list(self._secondary[primary.host]):
            is_recent = fault.event_at is not None and at - fault.event_at <= EVENT_SECONDS
            if is_recent and fault is not primary and may_follow(self._catalog, fault.name, fault.place, cause):
                primary.secondary += fault.take_back_event()
                correlator.forget(fault.name, fault.place)
                if not fault.lines:
                    del self._faults[fault.host, fault.name, fault.place]
                    self._by_place[fault.host, fault.place].remove(fault)
                    self._secondary[fault.host].remove(fault)

    def _override(self, action: LogFault, place: str, seconds: float) -> None:
        """Mark the earlier XIDs of the GPU for which the driver names a recovery action.

        Lines may run backwards: by their times, or by what the driver says without them.
        """
        if action.last_at is None:
            self._orders[action.host].read(place, action.detail)
        for fault in self._by_place[action.host, place]:
            if fault is action or not fault.name.startswith(XID_NAMES) or _is_later(fault, action):
                continue
            if fault.last_at is None or action.last_at is None or action.last_at - fault.last_at <= seconds:
                fault.overridden_by = action.name

    def _start_fault(self, host: str, name: str, place: str, part: str) -> LogFault:
        rule = self._catalog.find_class(name)
        settle_s = rule.settle_seconds if rule else 0.0
        follows = rule is not None and rule.follows is not None
        counter = FaultCounter.for_class(rule)
        fault = LogFault(name, part or NODE_SUBJECT, counter, settle_s, host, place=place, may_follow=follows)
        self._faults[host, name, place] = fault
        self._by_place[host, place].append(fault)
        if follows:
            self._secondary[host].append(fault)
        return fault

    def faults(self) -> list[FaultInLog]:
        """Return every fault, the worst first. What all parts of a kind tell within minutes is one."""
        kinds: defaultdict[tuple[str, str], list[LogFault]] = defaultdict(list)
        for fault in self._faults.values():
            kinds[fault.host, fault.name].append(fault)
        described = [
            each
            for faults in kinds.values()
            for each in self._join_parts(faults) or [self._describe(fault) for fault in faults]
        ]
        return sorted(described, key=_urgency_key)

    def _join_parts(self, faults: list[LogFault]) -> list[FaultInLog]:
        """Return one fault for those of one class on parts of one kind, [] where they are events of their own.

        What they all say while the node starts is noted only: nothing tells it from a trait of the platform.
        """
        name, parts = faults[0].name, sorted(fault.subject for fault in faults)
        causes = self._catalog.fault_relations.find_causes(name)
        relation = next((each for _, each in causes if each.where == "kind" and matches(each.cause, name)), None)
        times = [fault.last_at for fault in faults if fault.last_at is not None]
        if relation is None or len(faults) < max(relation.parts, LEAST_PARTS) or len(times) < len(faults):
            return []
        if max(times) - min(times) > relation.minutes * 60:
            return []
        faults = sorted(faults, key=lambda fault: fault.last_at or 0.0)
        described = [self._describe(fault) for fault in faults]
        joined = replace(
            min(described, key=_urgency_key),
            subject=", ".join(parts),
            count=sum(each.count for each in described),
            lines=sum(each.lines for each in described),
            first=described[0].first,
            last=described[-1].last,
            because=f"{described[0].because}; {len(parts)} parts say so together: {relation.source}",
        )
        if all(fault.counter.count == 1 and fault.is_of_start for fault in faults):
            joined = replace(joined, action="none", severity="informational", because=f"{joined.because}; {TRAIT}")
        return [joined]

    def _describe(self, fault: LogFault) -> FaultInLog:
        runs_back = self._orders[fault.host].runs_back
        if runs_back:
            fault.overridden_by = ""
        described = describe_log_fault(fault, self._catalog)
        if runs_back and fault.name in self._recovery_actions:
            action: Remedy = "ticket" if described.action != "none" else "none"
            described = replace(described, action=action, because=f"{described.because}; {RUNS_BACK}")
        if self._hosts[fault.host][0].runs_back:
            described = replace(described, first=described.last, last=described.first)
        return described


def _is_later(fault: LogFault, action: LogFault) -> bool:
    """Whether a fault came after a recovery action by the time that its line tells, though it stands before it."""
    newest, action_newest = fault.newest, action.newest
    if newest is None or action_newest is None or newest.at is None or action_newest.at is None:
        return False
    is_one_clock = (newest.wall is None) == (action_newest.wall is None)
    return is_one_clock and newest.at > action_newest.at


def _urgency_key(fault: FaultInLog) -> tuple[bool, int, str, str]:
    return fault.action == "none", SEVERITIES.index(fault.severity), fault.fault, fault.subject


def find_fault_owner(blame: FaultBlame) -> FaultOwner:
    """Return who owns a fault. The surroundings of a node (cables, air, power) count as hardware."""
    return "hardware" if blame == "environment" else blame


def describe_log_fault(fault: LogFault, catalog: FaultCatalog) -> FaultInLog:
    """Return what is told of a fault: class, owner, severity, count, what it asks for, and why."""
    rule, treatment = catalog.find_class(fault.name), catalog.find_treatment(fault.name)
    reached = fault.counter.is_threshold_reached and not fault.overridden_by
    return extend(
        FaultInLog,
        fault,
        fault=fault.name,
        class_=find_fault_owner(treatment.blame),
        severity=treatment.severity if reached else "informational",
        count=fault.counter.count,
        action=treatment.remedy if reached else "none",
        because="; ".join(_list_reasons(fault, rule)),
        investigate=rule.investigate if rule else "",
        below_limit=_is_below_limit(fault, rule),
    )


def _is_below_limit(fault: LogFault, rule: FaultClass | None) -> bool:
    return rule is not None and rule.count > 1 and not (fault.overridden_by or fault.counter.is_threshold_reached)


def _list_reasons(fault: LogFault, rule: FaultClass | None) -> list[str]:
    if rule is None:
        return ["no fault catalogue holds it: noted, until somebody says what it means"]
    reasons = [rule.summary.rstrip("."), rule.source]
    if fault.code:
        reasons.append(str(fault.code))
    if fault.settling:
        reasons.append(f"{fault.settling} of them within {rule.settle_seconds:g} s after the boot, which belong to it")
    if fault.overridden_by:
        reasons.append(f"the driver's recovery action, {fault.overridden_by}, came after it and decides")
    elif not fault.counter.is_threshold_reached:
        window = f"of {rule.count} within {rule.window_minutes:g} min that would make it a fault"
        below = _is_below_limit(fault, rule)
        reasons.append(f"{len(fault.counter.recent)} {window}" if below else "so it is noted only")
    reasons += [
        f"{name} ×{count} followed from it and is not counted" for name, count in sorted(fault.secondary.items())
    ]
    return reasons

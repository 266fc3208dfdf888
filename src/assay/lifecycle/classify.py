"""From sightings to faults: de-duplicated per class and part, counted, and of full severity only at their threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from assay.lifecycle.alerted import SOURCE as ALERT
from assay.lifecycle.alerted import in_alerts
from assay.lifecycle.counting import Counting
from assay.lifecycle.echoes import Echoes
from assay.lifecycle.lines import booted
from assay.lifecycle.requirements import settled_from
from assay.lifecycle.sightings import Sighting, in_events, in_kernel_log, in_outcomes, parts_of
from assay.lifecycle.story import Known, Story
from assay.lifecycle.when import moment, written
from assay.model.entry import derived_id
from assay.model.evidence import Evidence
from assay.model.faults import Blame, FaultCatalog, Remedy, Severity
from assay.model.fleet import Node
from assay.model.nodespec import NodeSpec
from assay.model.outcome import Recorded
from assay.model.policy import LifecyclePolicy

NUMBERED = ("kernel", "nvml")
"""Sources that number what they tell, anew with each boot."""


@dataclass(frozen=True, slots=True)
class FaultSeen:
    """A fault that is new, or an open one that was seen again. Times are ISO 8601 UTC."""

    id: str
    node: str
    fault_class: str
    subject: str
    severity: Severity
    blame: Blame
    remedy: Remedy
    count: int
    first_seen: str
    last_seen: str
    detail: str
    marks: dict[str, str]
    times: tuple[str, ...]

    def as_body(self) -> dict[str, Any]:
        """Return the body of its ledger entry."""
        body = {name: getattr(self, name) for name in self.__slots__ if name not in ("id", "node", "fault_class")}
        return {"fault": self.id, "class": self.fault_class, **body, "times": list(self.times)}


@dataclass(frozen=True, slots=True)
class Cleared:
    """An open fault that a newer pass of its check has ended."""

    fault: str
    because: str


def faults_in(
    catalog: FaultCatalog,
    policy: LifecyclePolicy,
    node: Node,
    spec: NodeSpec,
    story: Story,
    evidence: Evidence | None = None,
    outcomes: Iterable[Recorded] = (),
) -> list[FaultSeen]:
    """Return the faults that this evidence and these outcomes add to what the story knows.

    Outcomes count in states that watch their phase; elsewhere the state's own requirements judge them. Evidence that
    is handed in twice, or an event log that is delivered whole each time, adds nothing the second time.
    """
    seen = list(in_outcomes(catalog, _watched(policy, story, outcomes)))
    if evidence is not None:
        seen += own(catalog, node, story, in_kernel_log(catalog, evidence, parts_of(spec)))
        seen += _since_boot(in_events(catalog, evidence), evidence, story)
        seen += in_alerts(evidence, parts_of(spec))
    return faults_of(catalog, node, story, seen)


def faults_of(catalog: FaultCatalog, node: Node, story: Story, seen: Iterable[Sighting]) -> list[FaultSeen]:
    """Return the faults that these sightings add to what the story knows, one for each class and part."""
    groups: dict[tuple[str, str], list[Sighting]] = {}
    for sighting in seen:
        subject = f"{node.subject}/{sighting.part}".rstrip("/")
        groups.setdefault((sighting.fault_class, subject), []).append(sighting)
    past = _known(story, groups)
    found = [_fault(catalog, node, story, key, past.get(key, []), group) for key, group in sorted(groups.items())]
    return [fault for fault in found if fault]


def cleared_in(story: Story, outcomes: Iterable[Recorded]) -> list[Cleared]:
    """Return the open faults of checks that pass again on the same subject, on evidence younger than the fault.

    `outcomes` are the newest of all checks of the node: while one that tells of the same fault fails, or cannot be
    judged, another's pass ends nothing. A fault that was seen in a log stays until the node is proved again: silence
    is no cure. One that moved the node stays as well.
    """
    told: dict[tuple[str, str], list[Recorded]] = defaultdict(list)
    for one in outcomes:
        told[(one.outcome.fault, one.outcome.subject)].append(one)
    asked = [
        known for known in story.faults if known.open and known.answer != "acted" and set(known.marks) == {"check"}
    ]
    return [
        Cleared(known.id, f"{proof.outcome.check.rpartition('::')[2]} passed again, {proof.id}")
        for known in asked
        if (proof := _proof(known, told.get((known.fault_class, known.subject), [])))
    ]


def _proof(known: Known, telling: Iterable[Recorded]) -> Recorded | None:
    """Return the youngest of the passes that end a fault, None where they do not."""
    judged = [one for one in telling if one.outcome.verdict != "skip"]
    young = [one for one in judged if moment(one.measured_at) > moment(known.last_seen)]
    if not young or any(one.outcome.verdict != "pass" for one in judged):
        return None
    return max(young, key=lambda one: (one.measured_at, one.id))


def resolved_in(story: Story, fault: str, subject: str, because: str) -> list[Cleared]:
    """Return the open faults that the end of an alert ends: what alerts alone told of, and what moved no node."""
    return [
        Cleared(known.id, because)
        for known in story.faults
        if known.open and (known.fault_class, known.subject) == (fault, subject)
        if known.answer != "acted" and set(known.marks) == {ALERT}
    ]


def _watched(policy: LifecyclePolicy, story: Story, outcomes: Iterable[Recorded]) -> list[Recorded]:
    watched, start = set(policy.states[story.state].watch), settled_from(policy, story)
    return [one for one in outcomes if watched & set(one.outcome.phases) and moment(one.measured_at) >= start]


def _known(story: Story, asked: Collection[tuple[str, str]]) -> dict[tuple[str, str], list[Known]]:
    """Return what the story knows of these classes and subjects, in its order."""
    names, found = {name for name, _ in asked}, dict[tuple[str, str], list[Known]]()
    for known in story.faults:
        if known.fault_class in names:
            found.setdefault((known.fault_class, known.subject), []).append(known)
    return found


def own(catalog: FaultCatalog, node: Node, story: Story, sightings: Iterable[Sighting]) -> Iterator[Sighting]:
    """Leave out what belongs to the boot, to a repair, or to another fault of which it is the echo."""
    told = sorted(sightings, key=lambda sighting: sighting.at)
    echoes = _heard_of(catalog, node, story, told[0].at) if told else Echoes(catalog)
    for sighting in told:
        if echoes.concern(sighting.fault_class):
            at = moment(sighting.at).timestamp()
            if echoes.cause(sighting.fault_class, sighting.part, at):
                continue
            echoes.hear(sighting.fault_class, sighting.part, at)
        if not _settling(catalog, story, sighting):
            yield sighting


def _heard_of(catalog: FaultCatalog, node: Node, story: Story, at: str) -> Echoes:
    """Return the echoes that faults which the story knows may still have at that time."""
    echoes, since = Echoes(catalog), written(moment(at) - timedelta(seconds=catalog.longest_echo))
    for known in story.faults:
        if known.last_seen >= since and known.fault_class in catalog.causes:
            part = known.subject[len(node.subject) + 1 :]
            echoes.hear(known.fault_class, part, moment(known.last_seen).timestamp())
    return echoes


def _settling(catalog: FaultCatalog, story: Story, sighting: Sighting) -> bool:
    """Whether a fault comes so soon after a boot or a repair that it belongs to that."""
    rule = catalog.class_of(sighting.fault_class)
    if rule is None or not rule.settle_seconds:
        return False
    if sighting.uptime_s is not None and sighting.uptime_s < rule.settle_seconds:
        return True
    since = moment(sighting.at) - moment(story.repaired_at)
    return timedelta() <= since < timedelta(seconds=rule.settle_seconds)


def _since_boot(sightings: Iterable[Sighting], evidence: Evidence, story: Story) -> list[Sighting]:
    """Leave out events from before this boot and before the node was known: an event log remembers for years."""
    start = min(booted(evidence) or evidence.at, moment(story.enrolled_at))
    return [sighting for sighting in sightings if moment(sighting.at) >= start]


def _fault(
    catalog: FaultCatalog,
    node: Node,
    story: Story,
    key: tuple[str, str],
    past: list[Known],
    group: list[Sighting],
) -> FaultSeen | None:
    name, subject = key
    group = _news(group, past, story)
    if not group:
        return None
    group.sort(key=_order)
    same = next((known for known in reversed(past) if _goes_on(known, story)), None)
    begun = _continued(node, same) if same else _new(catalog, node, name, subject, group[0])
    return _with(catalog, begun, group)


def _order(sighting: Sighting) -> tuple[str, int, str]:
    """Return a key that sorts sightings by time, and those of one moment by their number where they have one."""
    number = int(sighting.mark.rpartition(":")[2]) if sighting.source in NUMBERED else 0
    return (sighting.at, number, sighting.mark)


def _news(group: list[Sighting], past: list[Known], story: Story) -> list[Sighting]:
    """Return the sightings that no earlier reading of their source has told.

    A failing check is told once while its fault is open; one that fails after a repair is told again.
    """
    told = any(known.open and "check" in known.marks and known.last_seen > story.repaired_at for known in past)
    read = _furthest(past)
    return [sighting for sighting in group if _after(sighting, read) and not (told and sighting.source == "check")]


def _furthest(past: list[Known]) -> dict[str, Any]:
    """Return how far each source has been read: by number and boot where it numbers, else by its mark."""
    read: dict[str, Any] = {}
    for source, mark in (pair for known in past for pair in known.marks.items()):
        boot, _, number = mark.rpartition(":")
        key, far = (f"{source} {boot}", int(number)) if source in NUMBERED else (source, mark)
        read[key] = max(read.get(key, far), far)
    return read


def _after(sighting: Sighting, read: Mapping[str, Any]) -> bool:
    if sighting.source not in NUMBERED:
        return sighting.mark > str(read.get(sighting.source, ""))
    boot, _, number = sighting.mark.rpartition(":")
    return int(number) > int(read.get(f"{sighting.source} {boot}", -1))


def _goes_on(known: Known, story: Story) -> bool:
    """Whether a new sighting belongs to this fault, or begins another: after a repair or the breaker it is another."""
    return known.open and known.answer != "breaker" and known.last_seen > story.repaired_at


def _new(catalog: FaultCatalog, node: Node, name: str, subject: str, first: Sighting) -> FaultSeen:
    treatment = catalog.treatment(name)
    return FaultSeen(
        id=derived_id("fault", node.name, name, subject, first.source, first.mark),
        node=node.name,
        fault_class=name,
        subject=subject,
        severity=treatment.severity,
        blame=treatment.blame,
        remedy=treatment.remedy,
        count=0,
        first_seen=first.at,
        last_seen=first.at,
        detail=first.detail,
        marks={},
        times=(),
    )


def _continued(node: Node, known: Known) -> FaultSeen:
    plain = {name: getattr(known, name) for name in FaultSeen.__slots__ if name not in ("node", "marks")}
    return FaultSeen(**plain, node=node.name, marks=dict(known.marks))


def _with(catalog: FaultCatalog, fault: FaultSeen, group: list[Sighting]) -> FaultSeen:
    """Return the fault with the group's sightings in it; those of one burst count as one."""
    rule = catalog.class_of(fault.fault_class)
    counting = Counting.of(rule, [moment(at).timestamp() for at in fault.times], fault.count)
    marks = dict(fault.marks)
    for sighting in group:
        counting.see(moment(sighting.at).timestamp(), sighting.counts)
        marks[sighting.source] = sighting.mark
    reached = counting.reached or "check" in marks  # a check has a threshold of its own
    return replace(
        fault,
        severity=catalog.treatment(fault.fault_class).severity if reached else "informational",
        count=counting.count,
        last_seen=max(fault.last_seen, group[-1].at),
        marks=marks,
        times=tuple(written(datetime.fromtimestamp(at, UTC)) for at in counting.recent),
    )

"""Silence past its deadline is a fault of its own (`telemetry.lost`), and never health. Pure: told what was heard when.

It is not held against a node while nobody listened to it, while a repair has it down, or in states in which nobody
looks at it. Many nodes of a pool that fall silent together are more likely one broken collector: a wave is told as one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.lifecycle.classify import Cleared, FaultSeen
from assay.lifecycle.situation import NodeView, Situation
from assay.lifecycle.story import Known
from assay.lifecycle.when import moment, spoken, written
from assay.model.entry import derived_id
from assay.model.faults import FaultCatalog
from assay.model.fleet import Node
from assay.model.policy import Silence

LOST = "telemetry.lost"
WHO = {"agent": "its agent", "probe": "the probe", "bmc": "its BMC"}


@dataclass(frozen=True, slots=True)
class Ear:
    """One source of one node: when it was heard last (None: never), and `since` when it could have been and was not."""

    node: str
    source: str
    heard: datetime | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Wave:
    """Nodes of a pool whose source fell silent together, the first of them at `since`. Nothing is held against them."""

    pool: str
    source: str
    nodes: tuple[str, ...]
    of: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Silences:
    """What silence asks for: faults, the ends of faults, and waves that stand for faults that are not told."""

    lost: tuple[FaultSeen, ...]
    back: tuple[Cleared, ...]
    waves: tuple[Wave, ...]


def silences(situation: Situation, catalog: FaultCatalog, ears: Sequence[Ear]) -> Silences:
    """Return what the silence of these sources asks for, by the deadlines of the policy."""
    views = {view.name: view for view in situation.nodes}
    ears = [ear for ear in ears if ear.node in views and is_expected(situation, views[ear.node])]
    late = [(ear, at) for ear in ears if (at := _late_since(situation, views[ear.node], ear))]
    fresh = [(ear, at) for ear, at in late if not _known(views[ear.node], ear.source)]
    waves = tuple(_waves(situation, ears, fresh))
    held = {(name, wave.source) for wave in waves for name in wave.nodes}
    alone = [(ear, at) for ear, at in fresh if (ear.node, ear.source) not in held]
    lost = tuple(_fault(situation, catalog, views[ear.node], ear, at) for ear, at in alone)
    return Silences(lost, tuple(_back(situation, ears)), waves)


def is_expected(situation: Situation, view: NodeView) -> bool:
    """Whether a node is to be heard: its state looks at it, and nothing that was begun may have it down."""
    state = situation.state_of(view)
    return bool(state.watch or state.requires) and not view.story.in_flight


def deadline(silence: Silence, source: str) -> timedelta:
    """Return how long a source may stay silent."""
    return timedelta(minutes=silence.agent_minutes if source == "agent" else silence.readings_minutes)


def _late_since(situation: Situation, view: NodeView, ear: Ear) -> datetime | None:
    """Return when a silence began that is past its deadline. It counts from when the node was to be heard."""
    starts = [ear.since, moment(view.story.since), moment(view.story.repaired_at)]
    start = max([*starts, ear.heard] if ear.heard else starts)
    return start if situation.now - start > deadline(situation.policy.silence, ear.source) else None


def _known(view: NodeView, source: str) -> Known | None:
    subject = f"{view.node.subject}/{source}"
    told = (known for known in view.story.faults if known.open and known.fault_class == LOST)
    return next((known for known in told if known.subject == subject), None)


def _waves(situation: Situation, ears: Sequence[Ear], fresh: Sequence[tuple[Ear, datetime]]) -> Iterator[Wave]:
    pools = {view.name: view.node.pool for view in situation.nodes}
    listened: dict[tuple[str, str], int] = defaultdict(int)
    for ear in ears:
        listened[pools[ear.node], ear.source] += 1
    silent: dict[tuple[str, str], list[tuple[Ear, datetime]]] = defaultdict(list)
    for ear, at in fresh:
        silent[pools[ear.node], ear.source].append((ear, at))
    breaker = situation.policy.breaker
    for (pool, source), found in sorted(silent.items()):
        of = listened[pool, source]
        if len(found) >= breaker.min_nodes and len(found) * 100 >= breaker.percent * of:
            names = tuple(sorted(ear.node for ear, _ in found))
            yield Wave(pool, source, names, of, min(at for _, at in found))


def _fault(situation: Situation, catalog: FaultCatalog, view: NodeView, ear: Ear, at: datetime) -> FaultSeen:
    heard = "was never heard" if ear.heard is None else f"was last heard at {ear.heard:%Y-%m-%d %H:%M:%S} UTC"
    detail = f"{WHO[ear.source]} {heard}; silent for {spoken(situation.now - at)}"
    return lost(catalog, view.node, ear.source, "silence", at, situation.now, detail)


def lost(
    catalog: FaultCatalog, node: Node, part: str, mark: str, since: datetime, now: datetime, detail: str
) -> FaultSeen:
    """Return the fault that nothing is known of a `part` of a node `since` then; `mark` says by what that was seen."""
    treatment, subject = catalog.treatment(LOST), f"{node.subject}/{part}"
    return FaultSeen(
        id=derived_id("fault", node.name, LOST, subject, mark, written(since)),
        node=node.name,
        fault_class=LOST,
        subject=subject,
        severity=treatment.severity,
        blame=treatment.blame,
        remedy=treatment.remedy,
        count=1,
        first_seen=written(since),
        last_seen=written(now),
        detail=detail,
        marks={mark: written(since)},
        times=(written(now),),
    )


def _back(situation: Situation, ears: Sequence[Ear]) -> Iterator[Cleared]:
    """Yield the ends of silences: the source was heard since, or is no longer expected to speak."""
    heard = {(ear.node, ear.source): ear.heard for ear in ears}
    for view in situation.nodes:
        for known in view.story.faults:
            if known.open and "silence" in known.marks:
                source = known.subject.rpartition("/")[2]
                yield from _end(known, source, heard, (view.name, source))


def _end(
    known: Known, source: str, heard: Mapping[tuple[str, str], datetime | None], key: tuple[str, str]
) -> Iterator[Cleared]:
    if key not in heard:
        return
    at = heard[key]
    if at and at > moment(known.last_seen):
        yield Cleared(known.id, f"{WHO.get(source, source)} was heard again at {at:%Y-%m-%d %H:%M:%S} UTC")

"""The content of the overview: this week, new incidents, what cannot be judged, stale nodes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from assay.decide.state.fleet_snapshot import NodeTraits
from assay.decide.state.node_state import NodeState
from assay.decide.state.service_absences import Times
from assay.model.facts import frozen
from assay.model.fleet import Fleet
from assay.model.outcome import read_part
from assay.model.ticket import TicketRecord
from assay.model.timestamps import format_time
from assay.tell.report.failure_cards import (
    FailureCard,
    find_incidents,
    list_faults_of_logs,
    make_incident_cards,
    make_unknown_cards,
    name_outcome,
    shorten_check,
)
from assay.tell.report.fleet_week import FleetWeek, build_fleet_week
from assay.tell.report.latest_outcomes import (
    FAILING,
    KNOWN,
    ON_TRIAL,
    ON_TRIAL_PASSING,
    PASSING,
    UNKNOWN,
    HolderStatus,
    LatestOutcomes,
    ReportedRun,
)
from assay.tell.report.status_changes import (
    DAY_S,
    NO_ROLLOUT,
    RolloutWaits,
    StatusChange,
    find_baseline,
    find_changes,
    find_unchanged,
)
from assay.tell.views.incident_groups import IncidentMember


@frozen
class HolderSummary:
    """One node, rack or fabric: the number of checks that fail or cannot be judged, and how many of them newly.

    `waiting` checks fail because a rollout has not come there yet; they are counted apart from `failing`.
    `label` is its name beside those of pool and rack; `node` says whether it is a node. `measured` is the time of its
    newest evidence (Unix seconds), None where there was never any. `stale` checks passed on evidence that is older than
    the policy allows. `problems` are the first problems as text. `faults`: how many open ones its logs told.
    """

    name: str
    label: str
    node: bool
    pool: str
    rack: str
    failing: int = 0
    unknown: int = 0
    newly: int = 0
    excused: int = 0
    judged: int = 0
    measured: float | None = None
    problems: tuple[str, ...] = ()
    left_out: int = 0
    waiting: int = 0
    stale: int = 0
    faults: int = 0

    @property
    def is_ill(self) -> bool:
        """Whether any check fails or cannot be judged, or its logs told of a fault."""
        return self.failing + self.unknown + self.faults > 0


@frozen
class FleetOverview:
    """The content of the page. `waiting` are failures that the `rollout` explains: they are in no other list."""

    fleet: str
    spec: str
    newest: ReportedRun
    since: ReportedRun
    runs: int
    broke: tuple[StatusChange, ...]
    fixed: tuple[StatusChange, ...]
    lost: tuple[StatusChange, ...]
    incidents: tuple[IncidentMember, ...]
    """The new ones."""
    cards: tuple[FailureCard, ...]
    unknown_cards: tuple[FailureCard, ...]
    still_cards: tuple[FailureCard, ...]
    still_unknown_cards: tuple[FailureCard, ...]
    holders: tuple[HolderSummary, ...]
    week: FleetWeek
    waiting: tuple[StatusChange, ...] = ()
    rollout: str = ""

    @property
    def first(self) -> bool:
        """Whether there is no earlier run to compare with: then every failure counts as new."""
        return self.newest == self.since

    @property
    def stale(self) -> list[HolderSummary]:
        """The nodes, racks and fabrics with passes on evidence older than the policy allows, the oldest first."""
        stale = [holder for holder in self.holders if holder.stale]
        return sorted(stale, key=lambda holder: (holder.measured or 0.0, holder.name))

    @property
    def never(self) -> list[HolderSummary]:
        """The nodes that were never judged."""
        return [holder for holder in self.holders if holder.measured is None]


def build_overview(
    fleet: Fleet,
    latest: LatestOutcomes,
    window_s: float = DAY_S,
    rollout: RolloutWaits = NO_ROLLOUT,
    states: Mapping[str, NodeState] = MappingProxyType({}),
    traits: Mapping[str, NodeTraits] = MappingProxyType({}),
    tickets: Collection[TicketRecord] = (),
    now: datetime | None = None,
    unknown: Mapping[str, Times] = MappingProxyType({}),
) -> FleetOverview:
    """Return the overview, with the changes since the newest run before the window.

    What the `rollout` explains is no failure to act upon. `states` are those of the nodes: they know the faults that
    logs told, and who served when. `traits`: what each node may have in common with others. `now` ends the week, by
    default the newest run. `unknown`: when nobody knew how each node was.
    """
    runs = latest.list_reported_runs()
    since = find_baseline(runs, window_s)
    changed = list(find_changes(latest, since.at if len(runs) > 1 else 0.0))
    broke = tuple(rollout.select_rest(change for change in changed if change.broke))
    lost = tuple(change for change in changed if change.lost)
    rest = list(find_unchanged(latest, (*broke, *lost)))
    still, waiting = list(rollout.select_rest(rest)), tuple(filter(rollout.explains, rest))
    holders, incidents = _summarise_holders(fleet, latest, (*broke, *lost), waiting, states)
    known_before = {name_outcome(change.check, change.subject) for change in still if change.now == FAILING}
    start = format_time(datetime.fromtimestamp(since.at, UTC)) if len(runs) > 1 else ""
    new = [each for each in incidents if not _was_there(each, known_before, start)]
    old = [each for each in incidents if _was_there(each, known_before, start)]
    still_unknown = (change for change in still if change.now == UNKNOWN)
    return FleetOverview(
        fleet=fleet.root.name,
        spec=f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}",
        newest=runs[-1],
        since=since,
        runs=sum(run.at > since.at for run in runs),
        broke=broke,
        fixed=tuple(change for change in changed if change.fixed),
        lost=lost,
        incidents=tuple(new),
        cards=tuple(make_incident_cards(fleet, new, traits)),
        unknown_cards=tuple(make_unknown_cards(fleet, _drop_explained(lost, incidents))),
        still_cards=tuple(make_incident_cards(fleet, old, traits)),
        still_unknown_cards=tuple(make_unknown_cards(fleet, _drop_explained(still_unknown, incidents))),
        holders=tuple(holders),
        week=build_fleet_week(fleet, states, tickets, now or datetime.fromtimestamp(runs[-1].at, UTC), unknown),
        waiting=waiting,
        rollout=rollout.rollout,
    )


def _drop_explained(changes: Iterable[StatusChange], incidents: Iterable[IncidentMember]) -> Iterator[StatusChange]:
    """Yield what cannot be judged but for the parts of incidents: one that is gone answers no check."""
    parts = {(each.holder, symptom.named_part) for each in incidents for symptom in each.symptoms if symptom.named_part}
    return (change for change in changes if (change.holder, read_part(change.subject)) not in parts)


def _was_there(incident: IncidentMember, known_before: Collection[str], start: str) -> bool:
    """Whether any of an incident was known at the start of the window."""
    return any(
        symptom.id in known_before or ("::" not in symptom.id and symptom.recorded_at <= start)
        for symptom in incident.symptoms
    )


def _summarise_holders(
    fleet: Fleet,
    latest: LatestOutcomes,
    new: Iterable[StatusChange],
    waiting: Iterable[StatusChange],
    states: Mapping[str, NodeState],
) -> tuple[list[HolderSummary], list[IncidentMember]]:
    """Return the summaries of all nodes, then of racks and fabrics, and their incidents."""
    new_counts, waits = Counter(change.holder for change in new), defaultdict[str, set[tuple[str, str]]](set)
    for change in waiting:
        waits[change.holder].add((change.check, change.subject))
    judged, incidents = dict[str, HolderSummary](), list[IncidentMember]()
    catalog = fleet.sound_fault_catalog
    for holder in latest.read_holders():
        incidents += find_incidents(catalog, holder, states.get(holder.name), waits[holder.name])
        summary = _summarise_holder(fleet, holder, new_counts[holder.name], waits[holder.name])
        judged[holder.name] = replace(summary, faults=len(list_faults_of_logs(states.get(holder.name))))
    nodes = [
        judged.pop(node.name, HolderSummary(node.name, node.name, node=True, pool=node.pool, rack=node.rack))
        for node in fleet.nodes.values()
    ]
    return [*nodes, *judged.values()], incidents


def _summarise_holder(
    fleet: Fleet, holder: HolderStatus, newly: int, waits: Collection[tuple[str, str]]
) -> HolderSummary:
    node = fleet.nodes.get(holder.name)
    bad = [
        outcome
        for outcome in holder.abnormal
        if outcome.status in (FAILING, UNKNOWN) and (outcome.check, outcome.subject) not in waits
    ]
    own_name = holder.name.rpartition("/")[2]
    rack = own_name.removeprefix("rack-") if own_name.startswith("rack-") else ""
    return HolderSummary(
        name=holder.name,
        label="rack" if rack else own_name,
        node=node is not None,
        pool=node.pool if node else holder.scope,
        rack=node.rack if node else rack,
        failing=holder.count(FAILING) - len(waits),
        unknown=holder.count(UNKNOWN),
        newly=newly,
        excused=holder.count(KNOWN, ON_TRIAL),
        judged=holder.count(PASSING, FAILING, UNKNOWN, KNOWN, ON_TRIAL, ON_TRIAL_PASSING),
        measured=holder.measured,
        problems=tuple(f"{shorten_check(outcome.check)}: {outcome.reason}" for outcome in bad[:4]),
        left_out=max(0, len(bad) - 4),
        waiting=len(waits),
        stale=holder.stale,
    )


def group_by_pool_and_rack(holders: Sequence[HolderSummary]) -> dict[str, dict[str, list[HolderSummary]]]:
    """Return nodes, racks and fabrics by pool and rack, in the order of the inventory."""
    groups: dict[str, dict[str, list[HolderSummary]]] = {}
    for holder in holders:
        groups.setdefault(holder.pool, {}).setdefault(holder.rack, []).append(holder)
    return groups

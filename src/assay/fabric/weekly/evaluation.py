"""Evaluates a week of a fabric. The page, the text, the JSON and the checks all use this one result.

One kind of finding is an event that comes back on a port and hardly ever happens on its peers. Counted are scans, not
events: before how many of a week's scans a link went down, or counted errors. So a burst counts once. For a port that
is like its peers, that number follows a beta-binomial distribution. Its parameters come from the peers; a few odd ones
count no more than the others. A port stands out if so many scans or more, on any port and of any kind of event, are
less likely than the design's `chance` (Bonferroni). With 0.1 %, one of a thousand quiet weeks names a port that is like
its peers.

`compare_weeks` tells which findings are new since the week before, and which are gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from assay.fabric.fabric_answers import ChangedPort, WeekChanges
from assay.fabric.weekly.compared_readings import METRICS, READINGS, Drifts, judge_drifts
from assay.fabric.weekly.findings import (
    CABLING,
    FLAP_LIMIT,
    PortFinding,
    UnjudgedPart,
    find_drifts,
    find_flapping,
    find_outliers,
    find_unjudged_parts,
)
from assay.fabric.weekly.peers import (
    MIN_PEERS,
    PEER_SCORE,
    Limits,
    PeerDeviation,
    compare_with_peers,
)
from assay.fabric.weekly.week import FabricWeek, PortWeek, list_port_weeks
from assay.model.facts import frozen
from assay.model.peer_statistics import compute_tail, estimate_beta
from assay.model.specs.fabric.cable import Cable, PortId

CHANCE_LIMIT = "chance"
WORST_PART = 50
"""One of so many peers, the worst ones, count no more than the others: several odd ports must not hide each other."""
WORST_PORTS = 10
JUDGED_LIMITS = (
    PEER_SCORE,
    FLAP_LIMIT,
    CHANCE_LIMIT,
    *(metric.distance_limit for metric in METRICS),
    *(reading.drift_limit for reading in READINGS),
)
"""The limits that a design needs, so that everything is judged."""


@frozen
class RankedPort:
    """One port that stands out, with all of its findings."""

    port: PortWeek
    findings: tuple[PortFinding, ...]

    @property
    def weight(self) -> float:
        """The sum of the weights of all findings, which orders the ports."""
        return sum(finding.weight for finding in self.findings)


@dataclass(frozen=True)
class WeeklyEvaluation:
    """One evaluated week of one fabric.

    - `deviations`: how each port compares with its peers, by the metric's key.
    - `ranked`: the ports with findings, the worst first.
    - `unknown_reasons`: what the scans could not read, and what the design does not judge.
    - `drifts`: how far each reading drifts, by port and key, where that is more than noise.
    - `unjudged`: what too few scans could read, and what no counter counts.
    - `remarks`: what could not be read in the newest discovery of the cables, and what was foreign in it.
    """

    week: FabricWeek
    ports: tuple[PortWeek, ...]
    deviations: Mapping[str, Mapping[PortId, PeerDeviation]]
    ranked: tuple[RankedPort, ...]
    unknown_reasons: tuple[str, ...] = ()
    unjudged: tuple[UnjudgedPart, ...] = ()
    drifts: Drifts = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def fabric(self) -> str:
        """The design's name."""
        return self.week.fabric

    @cached_property
    def port_of(self) -> dict[PortId, PortWeek]:
        """Every port by its id."""
        return {port.end.port_id: port for port in self.ports}

    @cached_property
    def ports_between_switches(self) -> Mapping[str, list[PortWeek]]:
        """The ports to other switches, by switch."""
        ports: dict[str, list[PortWeek]] = defaultdict(list)
        for port in self.ports:
            if not (port.end.node or port.far.node):
                ports[port.end.device].append(port)
        return ports

    @property
    def is_whole(self) -> bool:
        """Whether all was judged that the site's tools can tell."""
        return not (self.week.doubt or self.unjudged)

    @property
    def worst(self) -> tuple[RankedPort, ...]:
        """The worst ports, at most `WORST_PORTS`."""
        return self.ranked[:WORST_PORTS]

    def list_manager_moves(self) -> list[str]:
        """Return, a line each, when the subnet manager moved, with the names of devices that have a designed cable."""
        names = {port.end.guid: port.end.device for port in self.ports}
        return [
            f"the subnet manager moved from {names.get(before, before)} to {names.get(now, now)},"
            f" seen at {datetime.fromisoformat(at):%Y-%m-%d %H:%M} UTC"
            for at, before, now in self.week.manager_moves
        ]

    def list_stuck_counters(self) -> list[str]:
        """Return, a line each, which counter of a port stood at its maximum and counted nothing, and what to do."""
        return [
            f"{port.end}: {summary.stuck_counter} stood at its maximum in {summary.stuck_scans} of"
            f" {self.week.growth_scans} scans: it cannot count, clear it"
            for port in self.ports
            if (summary := port.summary).stuck_counter
        ]

    @property
    def errors(self) -> int:
        """The errors of all links together."""
        return sum(port.summary.errors for port in self.ports)


def evaluate_fabric_week(
    week: FabricWeek, cables: Sequence[Cable], rails: Mapping[str, int], limits: Limits
) -> WeeklyEvaluation:
    """Evaluate a week. `rails` has the rail of each adapter by its GUID, `limits` are those of the design."""
    ports = list_port_weeks(cables, rails, week)
    deviations = {metric.key: compare_with_peers(ports, metric, limits) for metric in METRICS}
    drifts = judge_drifts(ports, week.hours)
    findings = [*find_flapping(ports, limits), *find_drifts(ports, drifts, limits)]
    findings += find_repeated_events(ports, week.growth_scans, limits)
    findings += [finding for of_metric in deviations.values() for finding in find_outliers(of_metric, ports, limits)]
    ranked = _rank_ports(findings)
    unjudged = tuple(find_unjudged_parts(week, ports))
    missing_limits = [name for name in JUDGED_LIMITS if name not in limits]
    return WeeklyEvaluation(
        week,
        tuple(ports),
        {
            key: {ports[index].end.port_id: deviation for index, deviation in of_metric.items()}
            for key, of_metric in deviations.items()
        },
        ranked,
        (
            *([week.doubt[1]] if week.doubt else []),
            *map(str, unjudged),
            *([f"{CABLING}: {week.incomplete_discoveries}"] if 0 < week.whole_discoveries < week.discoveries else []),
            *week.unknown_reasons,
            *(
                [f"the design sets no limit {', '.join(missing_limits)}: those are not judged"]
                if missing_limits
                else []
            ),
        ),
        unjudged,
        drifts,
    )


def _rank_ports(findings: Iterable[PortFinding]) -> tuple[RankedPort, ...]:
    by_port: dict[PortId, list[PortFinding]] = defaultdict(list)
    for finding in findings:
        by_port[finding.port.end.port_id].append(finding)
    ranked = [
        RankedPort(own[0].port, tuple(sorted(own, key=lambda finding: -finding.weight))) for own in by_port.values()
    ]
    return tuple(sorted(ranked, key=lambda each: (-each.weight, each.port.end.port_id)))


class RepeatedEvent(NamedTuple):
    """Something that a scan may find to have happened on a port since the scan before."""

    key: str
    words: str
    of: Callable[[PortWeek], int]


EVENTS = (
    RepeatedEvent("down_scans", "went down before", lambda port: port.summary.down_scans),
    RepeatedEvent("error_scans", "counted errors before", lambda port: port.summary.error_scans),
)


def find_repeated_events(ports: Sequence[PortWeek], scans: int, limits: Limits) -> Iterator[PortFinding]:
    """Yield a finding for each port on which an event comes back far more often than on its peers, over `scans`."""
    limit = limits.get(CHANCE_LIMIT)
    judged = [port for port in ports if port.counted_h]
    if not limit or scans < 1 or not judged:
        return
    comparisons = len(judged) * len(EVENTS)
    for event in EVENTS:
        groups: dict[str, list[PortWeek]] = defaultdict(list)
        for port in judged:
            groups[port.side].append(port)
        for peers, members in groups.items():
            if len(members) >= MIN_PEERS:
                yield from _judge_members(event, peers, members, scans, comparisons, limit.value / 100)


def _judge_members(
    event: RepeatedEvent, peers: str, members: Sequence[PortWeek], scans: int, comparisons: int, budget: float
) -> Iterator[PortFinding]:
    """Yield a finding for each member that exceeds the others, if one of all comparisons would in `budget` of weeks."""
    counts = [event.of(port) for port in members]
    alpha, beta = estimate_beta(_limit_worst(counts), scans)
    total, others = sum(counts), len(members) - 1
    for port, count in zip(members, counts, strict=True):
        if count and (chance := comparisons * compute_tail(count, scans, alpha, beta)) < budget:
            text = (
                f"{event.words} {count} of {scans} scans, where {others} {peers} have {(total - count) / others:.2g} on"
                f" average (a chance of {chance:.1g} that any port of a healthy fabric does)"
            )
            yield PortFinding("repeated", port, event.key, count, "count", text, 1 + 9 * count / scans)


def _limit_worst(counts: Sequence[int]) -> list[int]:
    """Return the counts, the worst ones no larger than the largest of the others, or 1.

    An event that is seen at all is part of the peers' rate. Without it, two chance events on one port look impossible.
    """
    ordered = sorted(counts)
    usual = len(ordered) - max(1, len(ordered) // WORST_PART)
    most = max(1, ordered[usual - 1])
    return [min(count, most) for count in ordered]


def compare_weeks(before: WeeklyEvaluation | None, now: WeeklyEvaluation) -> WeekChanges | None:
    """Compare an evaluation with that of the week before. Findings are the same if port, kind and reading are."""
    if before is None:
        return None
    was, will = _index(before.ranked), _index(now.ranked)
    new, gone = _subtract(now.ranked, was), _subtract(before.ranked, will)
    changed = {ranked.port.port_id for ranked in (*new, *gone)}
    staying = sum(ranked.port.end.port_id not in changed for ranked in now.ranked)
    return WeekChanges(before.week.end.isoformat(), new, gone, staying, before.errors)


def _index(ranked: Iterable[RankedPort]) -> set[tuple[PortId, str, str]]:
    return {_identify(each, finding) for each in ranked for finding in each.findings}


def _identify(ranked: RankedPort, finding: PortFinding) -> tuple[PortId, str, str]:
    return ranked.port.end.port_id, finding.kind, finding.what


def _subtract(ranked: Iterable[RankedPort], known: set[tuple[PortId, str, str]]) -> list[ChangedPort]:
    """Return the ports with those findings that are not known."""
    left = (
        (each.port.end, [finding.says for finding in each.findings if _identify(each, finding) not in known])
        for each in ranked
    )
    return [ChangedPort(end, says) for end, says in left if says]

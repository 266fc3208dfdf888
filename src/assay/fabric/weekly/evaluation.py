"""Evaluates a week of a fabric. The page, the text, the JSON and the checks all use this one result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from assay.fabric.weekly.cable_groups import CableGroup, group_cables
from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.drifts import Drifts, judge_drifts
from assay.fabric.weekly.findings import (
    FLAP_LIMIT,
    PortFinding,
    find_drifts,
    find_flapping,
    find_outliers,
    find_over_limits,
)
from assay.fabric.weekly.peer_comparison import METRICS, PEER_SCORE, Limits, PeerDeviation, compare_with_peers
from assay.fabric.weekly.repeated_events import CHANCE_LIMIT, find_repeated_events
from assay.fabric.weekly.transceiver_batches import TransceiverBatch, compute_hypergeometric_tail, group_by_batch
from assay.fabric.weekly.unjudged import CABLING, UnjudgedPart, find_unjudged_parts
from assay.fabric.weekly.week import FabricWeek, PortWeek, list_port_weeks
from assay.model.specs.fabric.ports_and_cables import Cable, PortId

WORST_PORTS = 10
JUDGED_LIMITS = (
    PEER_SCORE,
    FLAP_LIMIT,
    CHANCE_LIMIT,
    *(metric.distance_limit for metric in METRICS),
    *(reading.drift_limit for reading in READINGS),
)
"""The limits that a design needs, so that everything is judged."""


@dataclass(frozen=True, slots=True)
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
    - `groups`: the readings by vendor, length and batch of cables.
    - `drawing`: the part of the fabric around the worst ports, as SVG, "" where none stands out.
    - `unknown_reasons`: what the scans could not read, and what the design does not judge.
    - `drifts`: how far each reading drifts, by port and key, where that is more than noise.
    - `unjudged`: what too few scans could read, and what no counter counts.
    - `remarks`: what could not be read in the newest discovery of the cables, and what was foreign in it.
    """

    week: FabricWeek
    ports: tuple[PortWeek, ...]
    deviations: Mapping[str, Mapping[PortId, PeerDeviation]]
    ranked: tuple[RankedPort, ...]
    batches: tuple[TransceiverBatch, ...]
    groups: tuple[CableGroup, ...] = ()
    unknown_reasons: tuple[str, ...] = ()
    unjudged: tuple[UnjudgedPart, ...] = ()
    drifts: Drifts = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    drawing: str = ""

    @property
    def fabric(self) -> str:
        """The design's name."""
        return self.week.fabric

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

    @property
    def errors(self) -> int:
        """The errors of all links together."""
        return sum(port.summary.errors for port in self.ports)

    def list_findings(self, kind: str) -> list[PortFinding]:
        """Return the findings of a kind, the worst first."""
        findings = [finding for ranked in self.ranked for finding in ranked.findings if finding.kind == kind]
        return sorted(findings, key=lambda finding: -finding.weight)

    def rail(self, number: int) -> tuple[int, int, float]:
        """Return how many ports of a rail have findings, how many ports it has, and the probability by chance."""
        flagged = {ranked.port.end.port_id for ranked in self.ranked}
        on_rails = [port for port in self.ports if port.rail is not None]
        here = [port for port in on_rails if port.rail == number]
        count, total = (sum(port.end.port_id in flagged for port in ports) for ports in (here, on_rails))
        rails = len({port.rail for port in on_rails})
        return count, len(here), min(1.0, rails * compute_hypergeometric_tail(count, len(here), total, len(on_rails)))


def evaluate_fabric_week(
    week: FabricWeek, cables: Sequence[Cable], rails: Mapping[str, int], limits: Limits
) -> WeeklyEvaluation:
    """Evaluate a week. `rails` has the rail of each adapter by its GUID, `limits` are those of the design."""
    ports = list_port_weeks(cables, rails, week)
    deviations = {metric.key: compare_with_peers(ports, metric, limits) for metric in METRICS}
    drifts = judge_drifts(ports, week.hours)
    findings = [*find_over_limits(ports, limits), *find_flapping(ports, limits), *find_drifts(ports, drifts, limits)]
    findings += find_repeated_events(ports, week.counted_scans, limits)
    findings += [finding for of_metric in deviations.values() for finding in find_outliers(of_metric, ports, limits)]
    ranked = _rank_ports(findings)
    unjudged = find_unjudged_parts(week, ports)
    missing_limits = [name for name in JUDGED_LIMITS if name not in limits]
    return WeeklyEvaluation(
        week,
        tuple(ports),
        {
            key: {ports[index].end.port_id: deviation for index, deviation in of_metric.items()}
            for key, of_metric in deviations.items()
        },
        ranked,
        group_by_batch(ports, {each.port.end.port_id for each in ranked}),
        group_cables(ports, limits),
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

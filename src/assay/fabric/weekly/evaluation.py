"""The weekly evaluation: everything that the page, the text, the JSON and the checks tell, computed once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from assay.fabric.weekly.compared_readings import READINGS
from assay.fabric.weekly.findings import (
    FLAP_LIMIT,
    PortFinding,
    find_drifts,
    find_flapping,
    find_outliers,
    find_over_limits,
)
from assay.fabric.weekly.peer_comparison import METRICS, PEER_SCORE, Limits, PeerDeviation, compare_with_peers
from assay.fabric.weekly.transceiver_batches import TransceiverBatch, compute_hypergeometric_tail, group_by_batch
from assay.fabric.weekly.week import FabricWeek, PortWeek, list_port_weeks
from assay.model.fabric.ports_and_cables import Cable, PortId

WORST_PORTS = 10
JUDGED_LIMITS = (
    PEER_SCORE,
    FLAP_LIMIT,
    *(one.distance_limit for one in METRICS),
    *(one.drift_limit for one in READINGS),
)
"""The limits of a design without which something is not judged."""


@dataclass(frozen=True, slots=True)
class RankedPort:
    """One port that stands out, with all that was found."""

    port: PortWeek
    findings: tuple[PortFinding, ...]

    @property
    def weight(self) -> float:
        """What orders the worst: the weights of all findings together."""
        return sum(one.weight for one in self.findings)


@dataclass(frozen=True)
class WeeklyEvaluation:
    """One week of one fabric. `standing` says by metric and port where it stands among its peers.

    `unseen` says what the scans could not tell, and what the design does not judge.
    """

    week: FabricWeek
    ports: tuple[PortWeek, ...]
    standing: Mapping[str, Mapping[PortId, PeerDeviation]]
    ranked: tuple[RankedPort, ...]
    batches: tuple[TransceiverBatch, ...]
    unseen: tuple[str, ...] = ()

    @property
    def fabric(self) -> str:
        """The design's name."""
        return self.week.fabric

    @property
    def scans(self) -> int:
        """How many scans there were."""
        return self.week.scans

    @property
    def start(self) -> datetime:
        """Since when errors were counted."""
        return self.week.start

    @property
    def end(self) -> datetime:
        """The newest scan."""
        return self.week.end

    @property
    def worst(self) -> tuple[RankedPort, ...]:
        """The ten worst ports."""
        return self.ranked[:WORST_PORTS]

    @property
    def bad(self) -> set[PortId]:
        """The ports that stand out."""
        return {one.port.end.port_id for one in self.ranked}

    def list_findings(self, kind: str) -> list[PortFinding]:
        """Return the findings of a kind, the worst first."""
        found = [one for ranked in self.ranked for one in ranked.findings if one.kind == kind]
        return sorted(found, key=lambda one: -one.weight)

    @property
    def errors(self) -> int:
        """Errors of all links together."""
        return sum(port.summary.errors for port in self.ports)

    def rail(self, number: int) -> tuple[int, int, float]:
        """Return how many ports of a rail stand out, how many it has, and how likely that is by chance."""
        bad = self.bad
        on_rails = [port for port in self.ports if port.rail is not None]
        here = [port for port in on_rails if port.rail == number]
        count = sum(port.end.port_id in bad for port in here)
        of_all = sum(port.end.port_id in bad for port in on_rails)
        rails = len({port.rail for port in on_rails})
        return count, len(here), min(1.0, rails * compute_hypergeometric_tail(count, len(here), of_all, len(on_rails)))


def evaluate_fabric_week(
    week: FabricWeek, cables: Sequence[Cable], rails: Mapping[str, int], limits: Limits
) -> WeeklyEvaluation:
    """Evaluate a week. `rails` has the rail of each adapter by its GUID, `limits` are those of the design."""
    ports = list_port_weeks(cables, rails, week)
    standing = {metric.key: compare_with_peers(ports, metric, limits) for metric in METRICS}
    found = [*find_over_limits(ports, limits), *find_flapping(ports, limits), *find_drifts(ports, limits)]
    found += [one for stands in standing.values() for one in find_outliers(stands, ports, limits)]
    ranked = _ranked(found)
    return WeeklyEvaluation(
        week,
        tuple(ports),
        {key: {ports[number].end.port_id: one for number, one in stands.items()} for key, stands in standing.items()},
        ranked,
        group_by_batch(ports, {one.port.end.port_id for one in ranked}),
        (*([week.doubt[1]] if week.doubt else []), *week.unseen, *_unjudged(limits)),
    )


def _ranked(found: Iterable[PortFinding]) -> tuple[RankedPort, ...]:
    by_port: dict[PortId, list[PortFinding]] = defaultdict(list)
    for one in found:
        by_port[one.port.end.port_id].append(one)
    ranked = [RankedPort(ones[0].port, tuple(sorted(ones, key=lambda one: -one.weight))) for ones in by_port.values()]
    return tuple(sorted(ranked, key=lambda one: (-one.weight, one.port.end.port_id)))


def _unjudged(limits: Limits) -> Iterable[str]:
    if lacking := [name for name in JUDGED_LIMITS if name not in limits]:
        yield f"the design sets no limit {', '.join(lacking)}: what they judge was not looked at"

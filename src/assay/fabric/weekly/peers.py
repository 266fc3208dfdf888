"""Compares each port with its peers: the ports of its rail, of its switch, and with the same module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from assay.fabric.weekly.compared_readings import METRICS, OUTLIER_BUDGET, ComparedReading
from assay.fabric.weekly.week import PortWeek
from assay.model.facts import frozen
from assay.model.peer_statistics import compute_z_scores, find_group_bound
from assay.model.specs.node.node_spec import MetricLimit

MIN_PEERS = 8
"""A port with fewer peers is not compared with them."""
Limits = Mapping[str, MetricLimit]
PEER_SCORE = "peer_score"
"""The limit of a design beyond which a score stands out."""
FULL_SCORE = 3.5
"""The score of a port that is as far from its peers as the false-alarm budget allows."""


@frozen
class PeerDeviation:
    """How a port compares with its peers. `peers` describes them, `peer_median` is their median.

    `score` is positive if the port is worse. It is not, if the port is closer than the design's distance limit. It is
    3.5 where the false-alarm budget is used up: as many deviations from the median as chance gives one port of the
    whole fabric in one of many healthy weeks.
    """

    metric: ComparedReading
    value: float
    peer_median: float
    score: float
    peers: str

    def __str__(self) -> str:
        unit = f" {self.metric.unit}" if self.metric.unit else ""
        value, median_of_peers = format_figure(self.value), format_figure(self.peer_median)
        return f"{self.metric.name} {value}{unit}, where {self.peers} have {median_of_peers}"


def format_figure(value: float) -> str:
    """Return a number with three significant digits, from 1000 on in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def compare_with_peers(ports: Sequence[PortWeek], metric: ComparedReading, limits: Limits) -> dict[int, PeerDeviation]:
    """Return how each port compares with its peers, by its index in `ports`. Of several peer groups, the worst counts.

    The number of ports and groups, and the size of each group, decide how far away is too far.

    Ports without the reading, or with too few peers, are left out. If the design sets no distance limit, all are.
    """
    limit = limits.get(metric.distance_limit)
    if not limit:
        return {}
    values = {index: value for index, port in enumerate(ports) if (value := metric.find(port)) is not None}
    deviations: dict[int, PeerDeviation] = {}
    groups = {name: of for name, of in _group_by_peers(ports, values).items() if len(of) >= MIN_PEERS}
    comparisons = len(METRICS) * sum(map(len, groups.values()))
    for peers, members in groups.items():
        peer_median = median(values[index] for index in members)
        scale = FULL_SCORE / find_group_bound(len(members), comparisons, OUTLIER_BUDGET)
        z_scores = compute_z_scores([values[index] for index in members])
        for index, z_score in zip(members, z_scores, strict=True):
            is_close = (values[index] - peer_median) * metric.worse < limit.value
            score = (min(z_score * metric.worse, 0.0) if is_close else z_score * metric.worse) * scale
            if index not in deviations or score > deviations[index].score:
                deviations[index] = PeerDeviation(metric, values[index], peer_median, score, peers)
    return deviations


def _group_by_peers(ports: Sequence[PortWeek], indexes: Iterable[int]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for index in indexes:
        for name in _name_peer_groups(ports[index]):
            groups[name].append(index)
    return groups


def _name_peer_groups(port: PortWeek) -> Iterable[str]:
    side = "adapters" if port.end.node else "switch ports"
    if port.rail is not None:
        yield f"the {side} of rail {port.rail}"
    if not port.end.node:
        yield f"the ports of {port.end.device}"
    part = f" with {port.summary.vendor} {port.summary.part}" if port.summary.part else ""
    yield f"all {side}{part}"

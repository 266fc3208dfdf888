"""Finds ports on which something happens again and again that hardly ever happens on their peers.

Counted are scans, not events: before how many of a week's scans a link went down, or counted errors. So a burst counts
once. For a port that is like its peers, that number follows a beta-binomial distribution. Its parameters come from the
peers; a few odd ones count no more than the others. A port stands out if so many scans or more, on any port and of any
kind of event, are less likely than the design's `chance` (Bonferroni). With 0.1 %, one of a thousand quiet weeks names
a port that is like its peers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import exp, lgamma
from statistics import pvariance
from typing import NamedTuple

from assay.fabric.weekly.findings import PortFinding
from assay.fabric.weekly.peer_comparison import MIN_PEERS, Limits
from assay.fabric.weekly.week import PortWeek

CHANCE_LIMIT = "chance"
WORST_PART = 50
"""One of so many peers, the worst ones, count no more than the others: several odd ports must not hide each other."""


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
            groups[_name_peers(port)].append(port)
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


def _name_peers(port: PortWeek) -> str:
    return "adapters" if port.end.node else "leaf ports to nodes" if port.far.node else "ports between switches"


def estimate_beta(counts: Sequence[int], scans: int) -> tuple[float, float]:
    """Return the parameters of the beta distribution of the peers' rates, by moments, with half an event more."""
    mean = (sum(counts) + 0.5) / (len(counts) * scans + 1)
    spread = pvariance([count / scans for count in counts]) if len(counts) > 1 else 0.0
    alone = mean * (1 - mean) / scans
    # the part of the variance that chance alone does not explain
    correlation = min(max((spread - alone) / (mean * (1 - mean) - alone), 0.0), 0.9) if scans > 1 else 0.0
    strength = 1 / correlation - 1 if correlation > 1e-6 else 1e6
    return mean * strength, (1 - mean) * strength


@lru_cache(4096)
def compute_tail(count: int, scans: int, alpha: float, beta: float) -> float:
    """Return the probability of `count` or more scans with the event, by the beta-binomial distribution."""
    most = min(count, scans)
    terms = (
        exp(lgamma(scans + 1) - lgamma(k + 1) - lgamma(scans - k + 1) + _log_beta(k + alpha, scans - k + beta)
            - _log_beta(alpha, beta))
        for k in range(most, scans + 1)
    )  # fmt: skip
    return min(1.0, sum(terms))


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)

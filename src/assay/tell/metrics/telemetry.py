"""Which agents, probes and BMCs answer, and when each pool's most silent one last did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from assay.act.ingest.silent_nodes import list_sources, open_last_seen
from assay.decide.faults.telemetry_silence import silence_deadline
from assay.model.fleet import Fleet
from assay.model.timestamps import parse_epoch_seconds
from assay.observe.last_seen import ALL_AGENTS
from assay.tell.metrics import families
from assay.tell.metrics.family import Family, Series
from assay.tell.metrics.metric_source import MetricSource
from assay.tell.metrics.tally import oldest_series

NodeSource = tuple[str, str]
"""A node and one of its sources, as `LastSeen` names them."""
PoolSource = tuple[str, str]


class TelemetrySources:
    """The sources of a fleet's nodes, listed once for each version of the fleet."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._sources: list[tuple[NodeSource, PoolSource]] = []

    def series(self, source: MetricSource) -> Iterator[Series]:
        """Yield the series of agents, probes and BMCs."""
        if self._fleet is not source.context.fleet:
            self._fleet = source.context.fleet
            self._sources = [
                ((node.name, name), (node.pool, name))
                for node in self._fleet.nodes.values()
                for name in list_sources(node)
            ]
        heard = open_last_seen(source.context)
        answered, expected = heard.last_answers(), list_expected_nodes(source)
        must_answer = [(key, labels) for key, labels in self._sources if key[0] in expected]
        yield from _count(families.SOURCES, Counter(labels for _, labels in must_answer))
        silent = _count_silent(source, must_answer, answered)
        yield from _count(families.SOURCES_SILENT, Counter({labels: silent[labels] for _, labels in must_answer}))
        known = ((labels, answered[key]) for key, labels in must_answer if key in answered)
        yield from oldest_series(families.SOURCE_OLDEST, known, source.now_s)
        yield Series(families.AGENT_ITEMS, (), heard.count_received())
        if (listened_s := answered.get(ALL_AGENTS)) is not None:
            yield Series(families.LISTENING_AGE, (), max(0.0, source.now_s - listened_s))


def list_expected_nodes(source: MetricSource) -> set[str]:
    """Return the nodes that must be heard: their state asks for checks, and no effect may have shut them down."""
    states = {name for name, state in source.context.policy.states.items() if state.watch or state.requires}
    return {name for name, one in source.states.items() if one.state in states and not one.unsettled_effects}


def _count_silent(
    source: MetricSource, sources: Iterable[tuple[NodeSource, PoolSource]], answered: Mapping[NodeSource, float]
) -> Counter[PoolSource]:
    """Count the sources without an answer for too long; the time counts from the begin of the node's state."""
    silence, silent = source.context.policy.silence, Counter[PoolSource]()
    earliest = {
        name: source.now_s - silence_deadline(silence, name).total_seconds() for name in ("agent", "probe", "bmc")
    }
    for key, labels in sources:
        before = earliest[labels[1]]
        if answered.get(key, 0.0) < before and parse_epoch_seconds(source.states[key[0]].since) < before:
            silent[labels] += 1
    return silent


def _count(family: Family, counts: Counter[PoolSource]) -> Iterator[Series]:
    return (Series(family, labels, count) for labels, count in sorted(counts.items()))

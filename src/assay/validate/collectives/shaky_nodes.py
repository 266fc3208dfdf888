"""Tells a node that is bad now and then from its adapters, where each rail is measured apart.

Each rail is a run of its own. So a node that is bad in some of its runs looks like several bad adapters. If these are
two at least, and a third of its rails, the node is the simpler explanation: its bad pairs count against the node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set

from assay.validate.collectives.explanation import explain
from assay.validate.collectives.fabric_map import FabricMap, find_node
from assay.validate.collectives.judging import BY_SEVERITY, PairObservation, SpeedRule, observe
from assay.validate.collectives.pair_results import Pair, PairResult

MIN_ADAPTERS = 2
RAILS_FRACTION = 3
"""From this fraction (1/3) of the rails on, the node is bad, not each adapter."""


def observe_by_node(fabric: FabricMap, results: Iterable[PairResult], rule: SpeedRule) -> list[PairObservation]:
    """Return the observations of all results, with the bad pairs of shaky nodes counted against the nodes."""
    observations = observe(fabric, results, rule)
    shaky = find_shaky_nodes(fabric, observations)
    return list(_count_against_nodes(fabric, observations, shaky)) if shaky else observations


def find_shaky_nodes(fabric: FabricMap, observations: Sequence[PairObservation]) -> set[str]:
    """Return the nodes of which so many adapters would be named that the node itself is at fault."""
    if not any(one.is_bad and one.rail is not None for one in observations):
        return set()
    named = (one.part for one in explain(observations).faulty)
    adapters = Counter(find_node(part) for part in named if part.kind == "adapter")
    least = max(MIN_ADAPTERS, -(-fabric.rails // RAILS_FRACTION))
    return {node for node, count in adapters.items() if count >= least}


def _count_against_nodes(
    fabric: FabricMap, observations: Iterable[PairObservation], shaky: Set[str]
) -> Iterator[PairObservation]:
    by_pair: defaultdict[tuple[str, Pair], list[PairObservation]] = defaultdict(list)
    for one in observations:
        by_pair[one.round, one.pair].append(one)
    for (name, pair), own in by_pair.items():
        bad = [one for one in own if one.is_bad]
        if not bad or shaky.isdisjoint(pair):
            yield from own
            continue
        worst = next(verdict for verdict in BY_SEVERITY if any(one.verdict == verdict for one in bad))
        why = next(one.why for one in bad if one.verdict == worst)
        rails = len({one.rail for one in own if one.rail is not None}) or fabric.rails
        why = f"{why}, on {len(bad)} of {rails} rails" if bad[0].rail is not None else why
        yield PairObservation(name, pair, worst, fabric.list_node_parts(*pair), why)

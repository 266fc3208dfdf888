"""Finds the smallest set of faulty parts that explains the bad pairs: the partner changes, the faulty part stays.

A part is faulty if it was in two bad pairs at least that nobody else explains, and these were wrong, hung or died, or
are most of its pairs, or three of them and almost half. Slow pairs count only beyond what other traffic explains
(`congestion.py`). The part in most bad pairs is taken first. Its pairs then tell nothing about their other parts. What
is left of bad pairs is `by_traffic` for a part that was good twice as often, and no worse than sound parts are.

Where each rail is measured apart, a node that is bad in some of its runs looks like several bad adapters. If these are
two at least, and a third of its rails, its bad pairs count against the node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

from assay.model.facts import frozen
from assay.validate.collectives.congestion import MOST_BY_CHANCE, OPEN_BY_CHANCE, Traffic, Trial
from assay.validate.collectives.fabric_map import KIND_ORDER, FabricMap, FabricPart, find_node
from assay.validate.collectives.judging import BY_SEVERITY, HARD, PairObservation, SpeedRule, observe
from assay.validate.collectives.results import Pair, PairResult

MIN_BAD = 2
SLOW_SHARE = 0.6
"""The share of its pairs that must be bad, unless two were wrong, hung or died."""
MIN_OFTEN, OFTEN_SHARE = 3, 0.4
"""So many slow pairs are enough at this smaller share: noise does not hit one part three times."""
MIN_ADAPTERS = 2
RAILS_FRACTION = 3
"""From this fraction (1/3) of the rails on, the node is bad, not each adapter."""


@frozen
class FaultyPart:
    """A part that explains the observations `bad`, out of `tests` that nobody else explains.

    `rivals` are the parts that explain the same bad pairs as well. Each of them may be the faulty one instead.
    """

    part: FabricPart
    bad: tuple[PairObservation, ...]
    tests: int
    rivals: tuple[FabricPart, ...] = ()


@frozen
class PairExplanation:
    """The faulty parts, and the bad observations that none of them explains.

    `doubtful` parts are in such observations, and other traffic explains them almost, but not well; it explains what is
    left of the parts `by_traffic`.
    """

    faulty: tuple[FaultyPart, ...]
    unexplained: tuple[PairObservation, ...]
    doubtful: tuple[FaultyPart, ...] = ()
    by_traffic: frozenset[FabricPart] = frozenset()


def explain(observations: Sequence[PairObservation]) -> PairExplanation:
    """Return the faulty parts, those that explain most first."""
    tested = _index_suspected_parts(observations)
    bad = {number for number, observation in enumerate(observations) if observation.is_bad}
    open_tests = {part: set(numbers) for part, numbers in tested.items()}
    traffic = _read_traffic(observations)

    def describe(part: FabricPart, rivals: tuple[FabricPart, ...] = ()) -> FaultyPart:
        numbers = sorted(open_tests[part] & bad)
        return FaultyPart(part, tuple(observations[number] for number in numbers), len(open_tests[part]), rivals)

    def is_by_traffic(part: FabricPart) -> bool:
        own = open_tests[part] & bad
        is_rare = 3 * len(own) <= len(open_tests[part]) and not any(observations[each].verdict in HARD for each in own)
        return is_rare and traffic.count_by_chance(open_tests[part]) > OPEN_BY_CHANCE

    faulty: list[FaultyPart] = []
    while True:
        suspicious = {
            part: traffic.count_by_chance(numbers)
            for part, numbers in open_tests.items()
            if _is_suspicious(numbers, bad, observations)
        }
        candidates = [part for part, by_chance in suspicious.items() if by_chance <= MOST_BY_CHANCE]
        if not candidates:
            break
        chosen, rivals = _choose(candidates, open_tests, bad, observations, traffic)
        faulty.append(describe(chosen, rivals))
        explained = open_tests[chosen] & bad
        bad -= explained
        for numbers in open_tests.values():
            numbers.difference_update(explained)
    doubtful = tuple(describe(part) for part, count in suspicious.items() if count <= OPEN_BY_CHANCE)
    unexplained = tuple(observations[number] for number in sorted(bad))
    left = {part for observation in unexplained for part in observation.parts}
    sound = frozenset(filter(is_by_traffic, left))
    return PairExplanation(tuple(faulty), unexplained, doubtful, sound)


def _index_suspected_parts(observations: Sequence[PairObservation]) -> Mapping[FabricPart, set[int]]:
    """Return the numbers of the judged observations of each part that is in a bad pair."""
    suspected = {part for observation in observations if observation.is_bad for part in observation.parts}
    tested: defaultdict[FabricPart, set[int]] = defaultdict(set)
    for number, observation in enumerate(observations):
        if observation.verdict != "unknown":
            for part in observation.parts:
                if part in suspected:
                    tested[part].add(number)
    return tested


def _read_traffic(observations: Sequence[PairObservation]) -> Traffic:
    trials = []
    for observation in observations:
        how = "together" if observation.rail is None else "by rail"
        places = [how, *((how, place) for place in (observation.round, *observation.units))]
        trials.append(Trial(observation.parts, places, observation.verdict))
    return Traffic(trials)


def _is_suspicious(numbers: Collection[int], bad: set[int], observations: Sequence[PairObservation]) -> bool:
    own = [observations[number] for number in numbers if number in bad]
    hard = sum(observation.verdict in HARD for observation in own)
    share = OFTEN_SHARE if len(own) >= MIN_OFTEN else SLOW_SHARE
    return len(own) >= MIN_BAD and (hard >= MIN_BAD or len(own) >= share * len(numbers))


def _choose(
    candidates: Sequence[FabricPart],
    tests: Mapping[FabricPart, set[int]],
    bad: set[int],
    observations: Sequence[PairObservation],
    traffic: Traffic,
) -> tuple[FabricPart, tuple[FabricPart, ...]]:
    """Return the part in most bad pairs, and its rivals: faulty parts in exactly the same bad pairs, and as likely.

    Slow pairs do not count beside those that hung, died or were wrong, where other traffic explains them.
    """

    def rank(part: FabricPart) -> tuple[int, bool, int, str]:
        own = tests[part] & bad
        hard = {number for number in own if observations[number].verdict in HARD}
        counted = own
        if hard and hard < own and traffic.count_by_chance(tests[part] - hard) > MOST_BY_CHANCE:
            counted = hard
        return -len(counted), _is_unlikely(part, own, tests[part], observations), KIND_ORDER[part.kind], part.name

    chosen = min(candidates, key=rank)
    explained = tests[chosen] & bad
    same = (part for part in candidates if part != chosen and tests[part] & bad == explained)
    return chosen, tuple(sorted((part for part in same if rank(part)[1] == rank(chosen)[1]), key=rank))


def _is_unlikely(part: FabricPart, own: set[int], tests: set[int], observations: Sequence[PairObservation]) -> bool:
    """Whether another part in the same bad pairs is likelier.

    Links check every packet, so an uplink that makes results wrong is unlikely. Otherwise it is a part that was good
    as often as bad.
    """
    if any(observations[number].verdict == "wrong" for number in own):
        return part.kind == "uplink"
    return 2 * len(own) <= len(tests)


def observe_by_node(fabric: FabricMap, results: Iterable[PairResult], rule: SpeedRule) -> list[PairObservation]:
    """Return the observations of all results, with the bad pairs of shaky nodes counted against the nodes."""
    observations = observe(fabric, results, rule)
    shaky = find_shaky_nodes(fabric, observations)
    return list(_count_against_nodes(fabric, observations, shaky)) if shaky else observations


def find_shaky_nodes(fabric: FabricMap, observations: Sequence[PairObservation]) -> set[str]:
    """Return the nodes of which so many adapters would be named that the node itself is at fault."""
    if not any(observation.is_bad and observation.rail is not None for observation in observations):
        return set()
    named = (faulty.part for faulty in explain(observations).faulty)
    adapters = Counter(find_node(part) for part in named if part.kind == "adapter")
    least = max(MIN_ADAPTERS, -(-fabric.rails // RAILS_FRACTION))
    return {node for node, count in adapters.items() if count >= least}


def _count_against_nodes(
    fabric: FabricMap, observations: Iterable[PairObservation], shaky: Set[str]
) -> Iterator[PairObservation]:
    by_pair: defaultdict[tuple[str, Pair], list[PairObservation]] = defaultdict(list)
    for observation in observations:
        by_pair[observation.round, observation.pair].append(observation)
    for (name, pair), own in by_pair.items():
        bad = [observation for observation in own if observation.is_bad]
        if not bad or shaky.isdisjoint(pair):
            yield from own
            continue
        worst = next(verdict for verdict in BY_SEVERITY if any(observation.verdict == verdict for observation in bad))
        reason = next(observation.why for observation in bad if observation.verdict == worst)
        rails = len({observation.rail for observation in own if observation.rail is not None}) or fabric.rails
        reason = f"{reason}, on {len(bad)} of {rails} rails" if bad[0].rail is not None else reason
        parts, units = fabric.list_node_parts(*pair), fabric.list_units(pair)
        yield PairObservation(name, pair, worst, parts, reason, None, units)

"""Judges results. A pair's becomes observations of the parts that it used: good, slow, wrong, hung or died.

A group's is compared too: a node alone with the other nodes, all nodes together with what is expected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import median
from typing import Literal

from assay.model.facts import fact, internal
from assay.validate.collectives.fabric_map import FabricMap, FabricPart
from assay.validate.collectives.results import (
    EVIDENCE_ENDINGS,
    Group,
    GroupResult,
    Pair,
    PairResult,
    PairVerdict,
    make_pair,
)

HARD: frozenset[PairVerdict] = frozenset({"wrong", "hung", "died"})
"""Verdicts that noise does not cause: two of them are enough."""
BAD: frozenset[PairVerdict] = HARD | {"slow"}
BY_SEVERITY: tuple[PairVerdict, ...] = ("wrong", "hung", "died", "slow")
NO_FABRIC = FabricMap({})
MIN_PEERS = 3
"""Fewer results than this say nothing about the usual speed."""


@fact
class PairObservation:
    """What one result of a pair says about the parts that it used."""

    round: str
    """The round."""
    pair: Pair
    """The two nodes."""
    verdict: PairVerdict
    """How it ended."""
    parts: tuple[FabricPart, ...] = internal()
    why: str = ""
    """What was wrong, for people, such as `hung until the deadline` or `0.71 of the median`; "" if nothing was."""
    rail: int | None = None
    """The rail; null if all rails were measured together."""
    units: tuple[str, ...] = internal(default=())

    @property
    def is_bad(self) -> bool:
        """Whether the pair was slow, wrong, hung or died."""
        return self.verdict in BAD

    @property
    def label(self) -> str:
        """The pair in words."""
        return f"{self.pair[0]} – {self.pair[1]}" + (f" rail {self.rail}" if self.rail is not None else "")


@fact
class SpeedRule:
    """When a pair is slow: below `share` of the median of like pairs, or of `expected_gb_s` where that is given."""

    share: float = 0.93
    expected_gb_s: float = 0.0


def observe(fabric: FabricMap, results: Iterable[PairResult], rule: SpeedRule) -> list[PairObservation]:
    """Return the observations of all results, in their order."""
    known = [result for result in results if all(name in fabric.nodes for name in result.pair)]
    medians = _SpeedMedians(fabric, known)
    pairs: defaultdict[tuple[str, Pair], list[tuple[PairResult, PairVerdict, str]]] = defaultdict(list)
    for result in known:
        verdict, reason = judge_ending(result)
        if verdict == "good":
            verdict, reason = _judge_speed(result, result.speed or 0, rule, medians)
        pairs[result.round, make_pair(*result.pair)].append((result, verdict, reason))
    return [
        observation
        for (round_name, pair), own in pairs.items()
        for observation in _observe_pair(fabric, round_name, pair, own)
    ]


def _observe_pair(
    fabric: FabricMap, round_name: str, pair: Pair, own: Sequence[tuple[PairResult, PairVerdict, str]]
) -> Iterator[PairObservation]:
    """Yield the observations of one pair.

    Measured by rail, a pair that is bad on all its rails says that a node is faulty, not each of its adapters; a pair
    that is bad on some rails says nothing against its nodes.
    """
    by_rail = [(result.rail, verdict, reason) for result, verdict, reason in own if result.rail is not None]
    units = fabric.list_units(pair)
    for result, verdict, reason in own:
        if result.rail is None:
            yield PairObservation(round_name, pair, verdict, fabric.list_pair_parts(*pair), reason, None, units)
    if not by_rail:
        return
    verdicts = {verdict for _, verdict, _ in by_rail}
    nodes = fabric.list_node_parts(*pair)
    if verdicts <= BAD and len(by_rail) > 1:
        whole = next(verdict for verdict in BY_SEVERITY if verdict in verdicts)
        reason = f"{by_rail[0][2]}, on all {len(by_rail)} rails"
        yield PairObservation(round_name, pair, whole, nodes, reason, None, units)
        return
    if "good" in verdicts:
        yield PairObservation(round_name, pair, "good", nodes, units=units)
    for rail, verdict, reason in by_rail:
        parts = fabric.list_rail_parts(*pair, rail) if rail is not None else ()
        parts = parts if "good" in verdicts else (*nodes, *parts)  # one rail only: it may be the node as well
        yield PairObservation(round_name, pair, verdict, parts, reason, rail, units)


def judge_ending(result: PairResult | GroupResult) -> tuple[PairVerdict, str]:
    """Return the verdict and its reason, as far as speed is no matter: `good` means ended, with a time, not wrong."""
    if result.ended not in EVIDENCE_ENDINGS:
        return "unknown", f"not measured: {result.ended}"
    if result.ended != "ok":
        return ("hung", "hung until the deadline") if result.ended == "deadline" else ("died", "ended with an error")
    if result.wrong:
        return "wrong", f"{result.wrong} wrong results"
    return ("good", "") if result.speed else ("unknown", "no time was reported")


def _judge_speed(result: PairResult, speed: float, rule: SpeedRule, medians: _SpeedMedians) -> tuple[PairVerdict, str]:
    is_expected_known = bool(rule.expected_gb_s and result.gb_s)
    usual = rule.expected_gb_s if is_expected_known else medians.find(result)
    if not usual:
        return "unknown", f"fewer than {MIN_PEERS} pairs to compare its speed with"
    share = speed / usual
    if share < rule.share:
        return "slow", f"{share:.2f} of the {'expected speed' if is_expected_known else 'median'}"
    return "good", ""


class _SpeedMedians:
    """The usual speed: the median of like pairs of the same round, or where these are few, of all screening rounds.

    Like pairs have the same rail, and the same kind of path. Rounds of confirmation have few pairs, mostly suspects:
    there, the screening rounds are the measure.
    """

    def __init__(self, fabric: FabricMap, results: Iterable[PairResult]) -> None:
        self._fabric = fabric
        speeds: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
        for result in results:
            if result.ended == "ok" and (speed := result.speed):
                for key in self._keys(result):
                    speeds[key].append(speed)
        self._medians = {key: median(values) for key, values in speeds.items() if len(values) >= MIN_PEERS}

    def find(self, result: PairResult) -> float:
        """Return the usual speed of pairs like this one, 0 if too few were measured."""
        return next((self._medians[key] for key in self._keys(result) if key in self._medians), 0.0)

    def _keys(self, result: PairResult) -> Iterator[tuple[str, ...]]:
        """Yield the groups that a result is compared with, the closest first."""
        unit = "gb_s" if result.gb_s else "seconds"
        like = (self._path(result), str(result.rail), unit)
        if not is_confirmation(result.round):
            yield (result.round, *like)
            yield result.round, unit
        yield like
        yield (unit,)

    def _path(self, result: PairResult) -> str:
        a, b = result.pair
        if self._fabric.share_domain(a, b):
            return "nvlink"
        return "leaf" if self._fabric.unit_of(a) == self._fabric.unit_of(b) else "spine"


def is_confirmation(round_name: str) -> bool:
    """Whether a round tests suspects only."""
    return round_name.startswith("C")


WholeStage = Literal["no", "last"]


@fact
class GroupRule:
    """Which groups are slow: below `share` of the expected speed in GB/s, 0 if it is not known.

    A node alone is compared with the median of all nodes alone if `alone_gb_s` is not known. The speed of all nodes
    together is not judged if `together_gb_s` is not known.
    """

    share: float = 0.93
    alone_gb_s: float = 0.0
    together_gb_s: float = 0.0


@fact
class GroupObservation:
    """What one result says about a group: one node alone, or many together."""

    round: str
    """The round."""
    nodes: Group
    """The nodes."""
    verdict: PairVerdict
    """How it ended."""
    why: str = ""
    """What was wrong, for people; "" if nothing was."""
    has_ended: bool = False
    """Whether it ended in time without a wrong result, whatever its speed."""
    units: tuple[str, ...] = internal(default=())

    @property
    def is_bad(self) -> bool:
        """Whether the group was slow, wrong, hung or died."""
        return self.verdict in BAD

    @property
    def label(self) -> str:
        """The group in words."""
        return f"{self.nodes[0]} alone" if len(self.nodes) == 1 else f"{len(self.nodes):,} nodes together"


def observe_alone(
    results: Iterable[GroupResult],
    rule: GroupRule,
    fabric: FabricMap = NO_FABRIC,
    basis: str = "median of the nodes alone",
) -> list[GroupObservation]:
    """Return what results of nodes alone, or of whole racks, say about them. `basis`: their usual speed, in words."""
    every = list(results)
    speeds: dict[str, list[float]] = {}
    for result in every:
        if result.ended == "ok" and result.speed:
            speeds.setdefault(_find_unit(result), []).append(result.speed)
    medians = {unit: median(values) for unit, values in speeds.items() if len(values) >= MIN_PEERS}
    observations = []
    for result in every:
        usual = (medians.get(_find_unit(result), 0.0), basis)
        if rule.alone_gb_s and result.gb_s:
            usual = (rule.alone_gb_s, "expected speed")
        observation = _judge_group(result, rule, usual)
        observations.append(replace(observation, units=fabric.list_units(result.nodes)))
    return observations


def observe_together(results: Iterable[GroupResult], rule: GroupRule) -> list[GroupObservation]:
    """Return what results of many nodes say about them. Without an expected speed, a slow group is not seen."""
    return [_judge_group(result, rule, (rule.together_gb_s, "expected speed")) for result in results]


def _judge_group(result: GroupResult, rule: GroupRule, usual: tuple[float, str]) -> GroupObservation:
    verdict, reason = judge_ending(result)
    has_ended = verdict == "good"
    if has_ended:
        verdict, reason = _judge_group_speed(result, rule, *usual)
    return GroupObservation(result.round, result.nodes, verdict, reason, has_ended)


def _judge_group_speed(result: GroupResult, rule: GroupRule, usual: float, basis: str) -> tuple[PairVerdict, str]:
    if not usual or not result.speed:
        return "unknown", "no usual speed to compare it with"
    share = result.speed / usual
    return ("slow", f"{share:.2f} of the {basis}") if share < rule.share else ("good", "")


def _find_unit(result: GroupResult) -> str:
    return "gb_s" if result.gb_s else "seconds"


def select_rounds(results: Sequence[GroupResult], letter: str) -> list[GroupResult]:
    """Return the results of the rounds whose names begin with a letter, in the order of the rounds."""
    own = [result for result in results if result.round[:1] == letter]
    return sorted(own, key=lambda result: int(result.round[1:]) if result.round[1:].isdecimal() else 0)

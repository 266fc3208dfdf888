"""Judges results of groups: a node alone is compared with the other nodes, all nodes together with what is expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal, NamedTuple

from assay.validate.collectives.group_results import Group, GroupResult
from assay.validate.collectives.judging import BAD, MIN_PEERS, judge_ending
from assay.validate.collectives.pair_results import PairVerdict

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import RunEvidence

WholeStage = Literal["no", "first", "last"]


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Which groups are slow: below `share` of the expected speed in GB/s, 0 if it is not known.

    A node alone is compared with the median of all nodes alone if `alone_gb_s` is not known. The speed of all nodes
    together is not judged if `together_gb_s` is not known.
    """

    share: float = 0.93
    alone_gb_s: float = 0.0
    together_gb_s: float = 0.0


class GroupObservation(NamedTuple):
    """What one result says about a group. `why` is the evidence for people.

    `is_checked`: its results were checked. `has_ended`: it ended in time without a wrong result, whatever its speed.
    """

    round: str
    nodes: Group
    verdict: PairVerdict
    why: str = ""
    is_checked: bool = False
    has_ended: bool = False

    @property
    def is_bad(self) -> bool:
        """Whether the group was slow, wrong, hung or died."""
        return self.verdict in BAD

    @property
    def label(self) -> str:
        """The group in words."""
        return f"{self.nodes[0]} alone" if len(self.nodes) == 1 else f"{len(self.nodes):,} nodes together"

    def as_json(self) -> RunEvidence:
        """Return plain JSON data."""
        return {"round": self.round, "nodes": list(self.nodes), "why": self.why}


def observe_alone(results: Iterable[GroupResult], rule: GroupRule) -> list[GroupObservation]:
    """Return what results of nodes alone say about them."""
    every = list(results)
    speeds: dict[str, list[float]] = {}
    for result in every:
        if result.ended == "ok" and result.speed:
            speeds.setdefault(_find_unit(result), []).append(result.speed)
    medians = {unit: median(found) for unit, found in speeds.items() if len(found) >= MIN_PEERS}
    return [_judge(result, rule, _find_usual(result, rule.alone_gb_s, medians)) for result in every]


def observe_together(results: Iterable[GroupResult], rule: GroupRule) -> list[GroupObservation]:
    """Return what results of many nodes say about them. Without an expected speed, a slow group is not seen."""
    return [_judge(result, rule, (rule.together_gb_s, "expected speed")) for result in results]


def _judge(result: GroupResult, rule: GroupRule, usual: tuple[float, str]) -> GroupObservation:
    verdict, why = judge_ending(result)
    has_ended = verdict == "good"
    if has_ended:
        verdict, why = _judge_speed(result, rule, *usual)
    return GroupObservation(result.round, result.nodes, verdict, why, result.wrong is not None, has_ended)


def _judge_speed(result: GroupResult, rule: GroupRule, usual: float, what: str) -> tuple[PairVerdict, str]:
    if not usual or not result.speed:
        return "unknown", "no usual speed to compare it with"
    share = result.speed / usual
    return ("slow", f"{share:.2f} of the {what}") if share < rule.share else ("good", "")


def _find_usual(result: GroupResult, expected: float, medians: Mapping[str, float]) -> tuple[float, str]:
    if expected and result.gb_s:
        return expected, "expected speed"
    return medians.get(_find_unit(result), 0.0), "median of the nodes alone"


def _find_unit(result: GroupResult) -> str:
    return "gb_s" if result.gb_s else "seconds"


def select_rounds(results: Sequence[GroupResult], letter: str) -> list[GroupResult]:
    """Return the results of the rounds whose names begin with a letter, in the order of the rounds."""
    own = [result for result in results if result.round[:1] == letter]
    return sorted(own, key=lambda result: int(result.round[1:]) if result.round[1:].isdecimal() else 0)

"""The report of a search: who is named on which evidence, what could not be told and why, and what was exercised."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.validate.collectives.coverage import CoverageShare, measure_coverage
from assay.validate.collectives.explanation import FaultyPart, PairExplanation, explain
from assay.validate.collectives.fabric_map import FabricMap, FabricPart
from assay.validate.collectives.group_judging import GroupObservation
from assay.validate.collectives.judging import BY_SEVERITY, PairObservation, SpeedRule
from assay.validate.collectives.pair_results import PairResult
from assay.validate.collectives.shaky_nodes import observe_by_node
from assay.validate.collectives.stage_findings import StageFindings

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import (
        CollectivesAnswer,
        NamedPartAnswer,
        SuspectPartAnswer,
        UndecidedAnswer,
    )


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part that the search names: what it does, in how many of its runs, and those runs."""

    part: FabricPart
    symptom: str
    tests: int
    evidence: tuple[PairObservation | GroupObservation, ...]

    def as_json(self) -> NamedPartAnswer:
        """Return plain JSON data."""
        pairs = [one.as_json() for one in self.evidence]
        return {
            "kind": self.part.kind,
            "name": self.part.name,
            "symptom": self.symptom,
            "bad": len(self.evidence),
            "tests": self.tests,
            "evidence": pairs,
        }


@dataclass(frozen=True, slots=True)
class UndecidedCase:
    """Bad pairs whose faulty part could not be told, and why. `suspects` are the parts that it may be."""

    suspects: tuple[FabricPart, ...]
    reason: str
    evidence: tuple[PairObservation, ...]

    def as_json(self) -> UndecidedAnswer:
        """Return plain JSON data."""
        pairs = [one.as_json() for one in self.evidence]
        suspects: list[SuspectPartAnswer] = [{"kind": part.kind, "name": part.name} for part in self.suspects]
        return {"suspects": suspects, "reason": self.reason, "evidence": pairs}


@dataclass(frozen=True, slots=True)
class CollectivesReport:
    """The answer of a search. `transient` are pairs that were bad once, and whose parts were all good in later pairs.

    `unmeasured` counts, by reason, results that say nothing; `unchecked` counts results whose numbers nobody checked.
    `routing` says how the uplinks of a pair are known. `stages`: what the nodes alone and all together showed.
    """

    named: tuple[NamedPart, ...]
    undecided: tuple[UndecidedCase, ...]
    transient: tuple[PairObservation, ...]
    coverage: tuple[CoverageShare, ...]
    pairs: int
    rounds: tuple[str, ...]
    unmeasured: Mapping[str, int]
    unchecked: int
    routing: str
    stages: StageFindings = field(default=StageFindings())

    def as_json(self) -> CollectivesAnswer:
        """Return plain JSON data."""
        return {
            "named": [one.as_json() for one in self.named],
            "could_not_tell": [one.as_json() for one in self.undecided],
            "transient": [one.as_json() for one in self.transient],
            "coverage": {f"{share.kind}s": share.as_json() for share in self.coverage},
            "pairs": self.pairs,
            "rounds": list(self.rounds),
            "unmeasured": dict(self.unmeasured),
            "unchecked": self.unchecked,
            "routing": self.routing,
            **self.stages.as_json(),
        }


def build_report(
    fabric: FabricMap, nodes: Collection[str], results: Sequence[PairResult], rule: SpeedRule
) -> CollectivesReport:
    """Return the report of all results so far."""
    observations = observe_by_node(fabric, results, rule)
    explanation = explain(observations) if any(one.verdict == "good" for one in observations) else None
    bad = tuple(one for one in observations if one.is_bad)
    transient, undecided = _sort_unexplained(explanation, observations) if explanation else ((), _blame_nobody(bad))
    faulty = [one for one in explanation.faulty if not one.rivals] if explanation else []
    culprits = {one.part for one in faulty}
    return CollectivesReport(
        tuple(_name(one, culprits) for one in faulty),
        tuple(undecided),
        tuple(transient),
        tuple(measure_coverage(fabric, nodes, observations)),
        len({(one.round, one.pair) for one in observations}),
        tuple(dict.fromkeys(result.round for result in results)),
        Counter(one.why for one in observations if one.verdict == "unknown"),
        sum(result.ended == "ok" and result.wrong is None for result in results),
        _describe_routing(fabric),
    )


def _name(faulty: FaultyPart, culprits: Collection[FabricPart]) -> NamedPart:
    """Return the part with its symptom. A pair with another faulty part shows a symptom that may be the other's."""
    alone = [one for one in faulty.bad if not any(part in culprits and part != faulty.part for part in one.parts)]
    return NamedPart(faulty.part, _describe_symptom(faulty, alone or faulty.bad), faulty.tests, faulty.bad)


def _describe_symptom(faulty: FaultyPart, shown: Sequence[PairObservation]) -> str:
    """Return what the part does, the worst first, such as `wrong, now and then`."""
    seen = {one.verdict for one in shown}
    words = " and ".join(verdict for verdict in BY_SEVERITY if verdict in seen)
    return words if len(faulty.bad) == faulty.tests else f"{words}, now and then"


def _sort_unexplained(
    explanation: PairExplanation, observations: Sequence[PairObservation]
) -> tuple[list[PairObservation], list[UndecidedCase]]:
    """Return the pairs that were bad once, and the cases that could not be told."""
    good_after: defaultdict[FabricPart, list[int]] = defaultdict(list)
    numbers = {(one.round, one.pair, one.rail): number for number, one in enumerate(observations)}
    for number, one in enumerate(observations):
        if one.verdict == "good":
            for part in one.parts:
                good_after[part].append(number)
    transient, undecided = [], list(_list_rivals(explanation))
    for one in explanation.unexplained:
        number = numbers[one.round, one.pair, one.rail]
        untested = tuple(part for part in one.parts if not any(later > number for later in good_after[part]))
        if untested:
            names = ", ".join(part.name for part in untested)
            reason = f"the pair was bad once, and no later pair was good with {names}"
            undecided.append(UndecidedCase(untested, reason, (one,)))
        else:
            transient.append(one)
    return transient, undecided


def _list_rivals(explanation: PairExplanation) -> Iterator[UndecidedCase]:
    for faulty in explanation.faulty:
        if faulty.rivals:
            reason = "these parts were in the same bad pairs, and no pair could tell them apart"
            yield UndecidedCase((faulty.part, *faulty.rivals), reason, faulty.bad)


def _blame_nobody(bad: tuple[PairObservation, ...]) -> list[UndecidedCase]:
    """Return the one case of a search without a good pair: the cause may be the command, or all of the network."""
    parts = dict.fromkeys(part for one in bad for part in one.parts if part.kind == "node")
    reason = "no pair was good: the command, its environment or the whole network may be the cause, so nobody is named"
    return [UndecidedCase(tuple(parts), reason, bad)] if bad else []


def _describe_routing(fabric: FabricMap) -> str:
    if not fabric.uplinks:
        return "unknown: links are not named"
    return "the subnet manager's tables" if fabric.routes else "assumed from the design: one uplink per destination"

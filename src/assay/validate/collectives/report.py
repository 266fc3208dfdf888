"""The report of a search: who is named on which evidence, what could not be told and why, and what was exercised.

What a search exercised, of all that the fabric has: a part that no pair used is not known to be good.

What the stages beside the pairs found: nodes alone, all nodes together, and blocks that fail only together.

The report of a search with all its stages: a node that fails alone is named as such, before what pairs show.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from assay.model.text.lists import format_list, format_nodes
from assay.validate.collectives.fabric_map import FabricMap, FabricPart, PartKind
from assay.validate.collectives.faulty_part_search import FaultyPart, PairExplanation, explain, observe_by_node
from assay.validate.collectives.judging import (
    BY_SEVERITY,
    GroupObservation,
    PairObservation,
    SpeedRule,
    observe_alone,
    observe_together,
    select_rounds,
)
from assay.validate.collectives.results import PairResult
from assay.validate.collectives.search import (
    Block,
    GateFindings,
    ScaleFinding,
    SearchResults,
    StagedSearch,
    WholeFinding,
)

if TYPE_CHECKING:
    from assay.validate.collectives.search_answers import (
        CollectivesAnswer,
        KindCoverage,
        NamedPartAnswer,
        NeededBlock,
        StagesAnswer,
        SuspectPartAnswer,
        UndecidedAnswer,
        WholeRun,
    )


COVERED_KINDS: tuple[PartKind, ...] = ("node", "adapter", "uplink")


@dataclass(frozen=True, slots=True)
class CoverageShare:
    """How many parts of one kind were exercised, of `total`; free nodes alone can exercise `reachable` of them."""

    kind: PartKind
    exercised: int
    reachable: int
    total: int

    def as_json(self) -> KindCoverage:
        """Return plain JSON data."""
        return {"exercised": self.exercised, "reachable": self.reachable, "total": self.total}

    def __str__(self) -> str:
        share = f"{self.exercised:,} of {self.total:,} {self.kind}s ({_format_percent(self.exercised, self.total)})"
        out_of_reach = self.total - self.reachable
        return f"{share}; the free nodes cannot exercise {out_of_reach:,} of them" if out_of_reach else share


def measure_coverage(
    fabric: FabricMap, nodes: Collection[str], observations: Iterable[PairObservation], beside: Collection[str] = ()
) -> list[CoverageShare]:
    """Return the coverage of nodes, of adapters if pairs were measured by rail, and of uplinks if they are known.

    `beside` are nodes that were measured otherwise: alone, or all together.
    """
    exercised = {part for one in observations if one.verdict != "unknown" for part in one.parts}
    exercised |= {FabricPart("node", name) for name in beside}
    uplinks = {name for names in fabric.uplinks.values() for name in names}
    adapters = sum(len(node.leaves) for node in fabric.nodes.values())
    free_adapters = sum(len(fabric.nodes[name].leaves) for name in nodes)
    has_rails = any(part.kind == "adapter" for part in exercised)
    counts = {
        "node": (len(nodes), len(fabric.nodes)),
        "adapter": (free_adapters, adapters) if has_rails else (0, 0),
        "uplink": (len(find_reachable_uplinks(fabric, nodes)), len(uplinks)),
    }
    return [CoverageShare(kind, _count(exercised, kind), *counts[kind]) for kind in COVERED_KINDS if counts[kind][1]]


def find_reachable_uplinks(fabric: FabricMap, nodes: Collection[str]) -> set[str]:
    """Return the uplinks that some pair of these nodes would use."""
    leaves = {(leaf, rail) for name in nodes for rail, leaf in enumerate(fabric.nodes[name].leaves)}
    found = {
        fabric.find_uplink(leaf, name, rail)
        for leaf, rail in leaves
        for name in nodes
        if rail < len(fabric.nodes[name].leaves) and fabric.nodes[name].leaves[rail] != leaf
    }
    return found - {""}


def _count(parts: Iterable[FabricPart], kind: PartKind) -> int:
    return sum(part.kind == kind for part in parts)


def _format_percent(part: int, whole: int) -> str:
    """Return a share. It is 100 % only if nothing is missing, and 0 % only if everything is."""
    share = 100 * part / max(whole, 1)
    return f"{min(max(round(share), 1), 99) if 0 < part < whole else round(share)} %"


RING_NOTE = "a ring of many nodes crosses few uplinks: this says nothing about the others"
WHOLE_WORDS: Mapping[str, str] = {
    "good": "as expected",
    "bad": "bad in two runs",
    "once": "bad once, and then good twice",
    "unjudged": "ended in time, without a wrong result; the speed that it should have is not known (no `expected`)",
    "open": "could not tell: too few runs gave an answer",
}


@dataclass(frozen=True, slots=True)
class StageFindings:
    """What the stages found; None for a stage that did not run. `is_early`: no pair ran, since all was as expected."""

    gate: GateFindings | None = None
    whole: WholeFinding | None = None
    is_early: bool = False
    scale: ScaleFinding | None = None
    blocks: Sequence[Block] = field(default=())
    runs: int = 0

    def as_json(self) -> StagesAnswer:
        """Return plain JSON data, without the stages that did not run."""
        found: StagesAnswer = {}
        if self.gate:
            once = {node: [one.as_json() for one in runs] for node, runs in self.gate.once.items()}
            found["alone"] = {"good": self.gate.good, "faulty": list(self.gate.faulty), "once": once}
        if self.whole:
            evidence: list[WholeRun] = [
                {"round": one.round, "nodes": list(one.nodes), "why": one.why, "verdict": one.verdict}
                for one in self.whole.runs
            ]
            found["together"] = {"verdict": self.whole.verdict, "ended_early": self.is_early, "runs": evidence}
        if self.scale:
            needed: list[NeededBlock] = [
                {"block": block.name, "nodes": list(block.nodes)} for block in self.needed_blocks
            ]
            found["scale"] = {
                "blocks": needed,
                "enough": self.scale.is_enough,
                "open": self.scale.is_open,
                "runs": self.runs,
            }
        return found

    @property
    def needed_blocks(self) -> list[Block]:
        """The blocks without which all nodes together do not fail."""
        return [self.blocks[number] for number in self.scale.blocks] if self.scale else []

    def list_lines(self) -> Iterator[str]:
        """Yield the findings for people."""
        if self.gate:
            bad = f", {len(self.gate.faulty)} named" if self.gate.faulty else ""
            yield f"each node alone: {self.gate.good:,} good{bad}"
            yield from _list_once(self.gate)
        if self.whole:
            yield f"{self.whole.runs[0].label}: {WHOLE_WORDS[self.whole.verdict]}"
            yield from (f"  {one.round}  {one.why}" for one in self.whole.runs if one.is_bad)
            if self.is_early:
                yield f"  so no pair was run; {RING_NOTE}"
        if self.scale:
            yield from self._describe_scale(self.scale)

    def _describe_scale(self, scale: ScaleFinding) -> Iterator[str]:
        if scale.is_open:
            yield f"could not tell which nodes fail only together: {self.runs} runs gave no answer"
            return
        yield f"pairs are good, and many nodes together fail; in {self.runs} runs, these were needed:"
        for block in self.needed_blocks:
            yield f"  {block.name}: {format_nodes(block.nodes)}" if len(block.nodes) > 1 else f"  {block.name}"
        if len(scale.blocks) == 1:
            yield "  it fails alone"
        elif scale.is_enough:
            yield "  the two fail together, without any other"
        else:
            yield "  the two alone do not fail: more nodes, or some of those between them, are needed too"


def _list_once(gate: GateFindings) -> Iterator[str]:
    if gate.note:
        yield f"  {gate.note}"
    elif gate.once:
        yield f"  bad once alone, and not named: {format_list(gate.once)}"
        runs: list[GroupObservation] = [one for own in gate.once.values() for one in own if one.is_bad]
        yield from (f"  {one.round}  {one.label}: {one.why}" for one in runs[:8])


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


ALONE = "alone"
"""How the symptom of a node that the gate names ends."""


def build_staged_report(search: StagedSearch, results: SearchResults) -> CollectivesReport:
    """Return the report of all results so far."""
    pairs = build_report(search.fabric, search.nodes, results.pairs, search.rule)
    if not results.groups and not search.stages.gate:
        return pairs
    stages = find_stages(search, results)
    coverage = measure_coverage(
        search.fabric, search.nodes, search.pair_search(results).observe(results.pairs), _list_measured(search, results)
    )
    rounds = dict.fromkeys([*(one.round for one in results.groups), *pairs.rounds])
    named = tuple(_name_alone(stages.gate)) if stages.gate else ()
    return replace(pairs, named=named + pairs.named, coverage=tuple(coverage), rounds=tuple(rounds), stages=stages)


def find_stages(search: StagedSearch, results: SearchResults) -> StageFindings:
    """Return what the stages beside the pairs found."""
    scale = search.ask_about_scale(results) if search.stages.whole != "no" else None
    return StageFindings(
        search.judge_gate(results) if search.stages.gate else None,
        search.judge_whole(results),
        search.is_over_early(results),
        scale if isinstance(scale, ScaleFinding) else None,
        search.list_blocks(search.list_survivors(results)) if scale else (),
        len(select_rounds(results.groups, "S")),
    )


def _name_alone(gate: GateFindings) -> Iterator[NamedPart]:
    for node, runs in gate.faulty.items():
        bad = tuple(one for one in runs if one.is_bad)
        words = " and ".join(verdict for verdict in BY_SEVERITY if any(one.verdict == verdict for one in bad))
        often = "" if len(bad) == len(runs) else ", now and then"
        yield NamedPart(FabricPart("node", node), f"{words} {ALONE}{often}", len(runs), bad)


def _list_measured(search: StagedSearch, results: SearchResults) -> set[str]:
    rule = search.stages.rule
    alone = observe_alone(select_rounds(results.groups, "G"), rule)
    together = observe_together([one for one in results.groups if one.round[:1] in "WS"], rule)
    return {node for one in (*alone, *together) if one.verdict != "unknown" or one.has_ended for node in one.nodes}

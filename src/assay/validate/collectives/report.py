"""The report of a search: who is named on which evidence, what could not be told and why, and what was exercised.

A node that fails alone is named as such, before what pairs show. A part that no pair used is not known to be good.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from assay.model.facts import fact, inline, internal, shown
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
    judge_gate,
)

COVERED_KINDS: tuple[PartKind, ...] = ("node", "adapter", "uplink")
ALONE = "alone"
"""How the symptom of a node that the gate names ends."""
WHOLE_WORDS: Mapping[str, str] = {
    "good": "as expected",
    "bad": "bad in two runs",
    "once": "bad once, and then good twice",
    "unjudged": "ended in time, without a wrong result; the speed that it should have is not known (no `expected`)",
    "open": "could not tell: too few runs gave an answer",
}


@fact
class CoverageShare:
    """How many parts of one kind are exercised."""

    kind: PartKind = internal()
    exercised: int
    """How many are exercised."""
    reachable: int
    """How many the free nodes can exercise."""
    total: int
    """How many there are."""

    def __str__(self) -> str:
        percent = round(100 * self.exercised / max(self.total, 1))
        if 0 < self.exercised < self.total:  # neither all nor nothing may be shown as such
            percent = min(max(percent, 1), 99)
        share = f"{self.exercised:,} of {self.total:,} {self.kind}s ({percent} %)"
        out_of_reach = self.total - self.reachable
        return f"{share}; the free nodes cannot exercise {out_of_reach:,} of them" if out_of_reach else share


def measure_coverage(
    fabric: FabricMap, nodes: Collection[str], observations: Iterable[PairObservation], beside: Collection[str] = ()
) -> dict[str, CoverageShare]:
    """Return the coverage of nodes, of adapters if pairs were measured by rail, and of uplinks if they are known.

    `beside` are nodes that were measured otherwise: alone, or all together.
    """
    exercised = {part for observation in observations if observation.verdict != "unknown" for part in observation.parts}
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
    seen = Counter(part.kind for part in exercised)
    return {f"{kind}s": CoverageShare(kind, seen[kind], *counts[kind]) for kind in COVERED_KINDS if counts[kind][1]}


def find_reachable_uplinks(fabric: FabricMap, nodes: Collection[str]) -> set[str]:
    """Return the uplinks that some pair of these nodes would use."""
    leaves = {(leaf, rail) for name in nodes for rail, leaf in enumerate(fabric.nodes[name].leaves)}
    reachable = {
        fabric.find_uplink(leaf, name, rail)
        for leaf, rail in leaves
        for name in nodes
        if rail < len(fabric.nodes[name].leaves) and fabric.nodes[name].leaves[rail] != leaf
    }
    return reachable - {""}


@fact
class ScaleAnswer:
    """Which blocks of nodes must be there for all together to fail."""

    blocks: tuple[Block, ...]
    """The blocks without which all nodes together do not fail."""
    enough: bool
    """Whether these alone fail."""
    open: bool
    """Whether the runs gave no answer."""
    runs: int
    """How many runs that took."""


@fact
class StageFindings:
    """What the stages of a search found."""

    alone: GateFindings | None = shown(omit=True, default=None)
    """What each node did alone; missing if that did not run."""
    racks: GateFindings | None = shown(omit=True, default=None)
    """What each rack that is one machine did together, over NVLink; missing if none ran."""
    together: WholeFinding | None = shown(omit=True, default=None)
    """What all nodes did together; missing if that did not run."""
    scale: ScaleAnswer | None = shown(omit=True, default=None)
    """Which blocks must be there for all to fail; missing if that did not run."""

    @property
    def needed_blocks(self) -> tuple[Block, ...]:
        """The blocks without which all nodes together do not fail."""
        return self.scale.blocks if self.scale else ()

    def list_lines(self) -> Iterator[str]:
        """Yield the findings for people."""
        if self.alone:
            bad = f", {len(self.alone.faulty)} named" if self.alone.faulty else ""
            yield f"each node alone: {self.alone.good:,} good{bad}"
            yield from _list_once(self.alone)
        if self.racks:
            yield f"each rack over NVLink: {self.racks.good:,} good"
            yield from _list_once(self.racks)
        if self.together:
            yield f"{self.together.runs[0].label}: {WHOLE_WORDS[self.together.verdict]}"
            yield from (f"  {run.round}  {run.why}" for run in self.together.runs if run.is_bad)
        if self.scale:
            yield from _describe_scale(self.scale)


def _describe_scale(scale: ScaleAnswer) -> Iterator[str]:
    if scale.open:
        yield f"could not tell which nodes fail only together: {scale.runs} runs gave no answer"
        return
    yield f"pairs are good, and many nodes together fail; in {scale.runs} runs, these were needed:"
    for block in scale.blocks:
        yield f"  {block.name}: {format_nodes(block.nodes)}" if len(block.nodes) > 1 else f"  {block.name}"
    if len(scale.blocks) == 1:
        yield "  it fails alone"
    elif scale.enough:
        yield "  the two fail together, without any other"
    else:
        yield "  the two alone do not fail: more nodes, or some of those between them, are needed too"


def _list_once(gate: GateFindings) -> Iterator[str]:
    if gate.note:
        yield f"  {gate.note}"
    elif gate.once:
        yield f"  bad alone, and not named: {format_list(gate.once)}"
        runs: list[GroupObservation] = [run for own in gate.once.values() for run in own if run.is_bad]
        yield from (f"  {run.round}  {run.label}: {run.why}" for run in runs[:8])


@fact
class NamedPart:
    """A part that the search names."""

    part: FabricPart = inline()
    symptom: str
    """What it does, such as slow or wrong."""
    tests: int
    """How many runs it had."""
    evidence: tuple[PairObservation | GroupObservation, ...]
    """The bad runs."""


@fact
class UndecidedCase:
    """Bad pairs whose faulty part could not be told."""

    suspects: tuple[FabricPart, ...]
    """The parts that it may be."""
    reason: str
    """Why it could not be told."""
    evidence: tuple[PairObservation, ...]
    """The bad runs."""


@fact
class CollectivesReport:
    """Which nodes and links make collectives slow, wrong or hang, on which evidence, and what could not be told."""

    named: tuple[NamedPart, ...]
    """The faulty parts."""
    undecided: tuple[UndecidedCase, ...]
    """Bad pairs whose faulty part could not be told."""
    transient: tuple[PairObservation, ...]
    """Pairs that were bad once, and whose parts were all good in later pairs."""
    coverage: Mapping[str, CoverageShare]
    """What was exercised: nodes, adapters and uplinks."""
    pairs: int
    """How many pairs ran."""
    rounds: tuple[str, ...]
    """The rounds that ran."""
    unmeasured: Mapping[str, int]
    """How many results say nothing, by reason."""
    unchecked: int
    """How many results have numbers that nobody checked."""
    routing: str
    """How the uplinks of a pair are known."""
    stages: StageFindings = inline()


def build_report(
    fabric: FabricMap, nodes: Collection[str], results: Sequence[PairResult], rule: SpeedRule
) -> CollectivesReport:
    """Return the report of all results so far."""
    observations = observe_by_node(fabric, results, rule)
    named, transient, undecided = _sort_bad(observations)
    routing = "assumed from the design: one uplink per destination"
    if not fabric.uplinks:
        routing = "unknown: links are not named"
    elif fabric.routes:
        routing = "the subnet manager's tables"
    return CollectivesReport(
        tuple(named),
        tuple(undecided),
        tuple(transient),
        measure_coverage(fabric, nodes, observations),
        len({(observation.round, observation.pair) for observation in observations}),
        tuple(dict.fromkeys(result.round for result in results)),
        Counter(observation.why for observation in observations if observation.verdict == "unknown"),
        sum(result.ended == "ok" and result.wrong is None for result in results),
        routing,
        StageFindings(),
    )


def _sort_bad(
    observations: Sequence[PairObservation],
) -> tuple[list[NamedPart], list[PairObservation], list[UndecidedCase]]:
    """Return the parts that are named, the pairs that were bad once, and the cases that could not be told.

    Without a good pair, the cause may be the command, or all of the network: then nobody is named.
    """
    if any(observation.verdict == "good" for observation in observations):
        explanation = explain(observations)
        faulty = [part for part in explanation.faulty if not part.rivals]
        culprits = {part.part for part in faulty}
        return [_name_part(part, culprits) for part in faulty], *_sort_unexplained(explanation, observations)
    bad = tuple(observation for observation in observations if observation.is_bad)
    if not bad:
        return [], [], []
    nodes = dict.fromkeys(part for observation in bad for part in observation.parts if part.kind == "node")
    reason = "no pair was good: the command, its environment or the whole network may be the cause, so nobody is named"
    return [], [], [UndecidedCase(tuple(nodes), reason, bad)]


def _name_part(faulty: FaultyPart, culprits: Collection[FabricPart]) -> NamedPart:
    """Return the part with its symptom, the worst first, such as `wrong, now and then`.

    A pair with another faulty part shows a symptom that may be the other's.
    """
    alone = [
        observation
        for observation in faulty.bad
        if not any(part in culprits and part != faulty.part for part in observation.parts)
    ]
    seen = {observation.verdict for observation in alone or faulty.bad}
    words = " and ".join(verdict for verdict in BY_SEVERITY if verdict in seen)
    often = "" if len(faulty.bad) == faulty.tests else ", now and then"
    return NamedPart(faulty.part, f"{words}{often}", faulty.tests, faulty.bad)


def _sort_unexplained(
    explanation: PairExplanation, observations: Sequence[PairObservation]
) -> tuple[list[PairObservation], list[UndecidedCase]]:
    """Return the pairs that were bad once, and the cases that could not be told."""
    good_after: defaultdict[FabricPart, list[int]] = defaultdict(list)
    numbers = {
        (observation.round, observation.pair, observation.rail): number
        for number, observation in enumerate(observations)
    }
    for number, observation in enumerate(observations):
        if observation.verdict == "good":
            for part in observation.parts:
                good_after[part].append(number)
    transient, undecided = [], list(_list_rivals(explanation))
    open_pairs = {id(observation) for doubtful in explanation.doubtful for observation in doubtful.bad}
    for observation in explanation.unexplained:
        if id(observation) in open_pairs:
            continue
        number = numbers[observation.round, observation.pair, observation.rail]
        open_parts = [part for part in observation.parts if part not in explanation.by_traffic]
        untested = tuple(part for part in open_parts if not any(later > number for later in good_after[part]))
        if untested:
            names = ", ".join(part.name for part in untested)
            reason = f"the pair was bad once, and no later pair was good with {names}"
            undecided.append(UndecidedCase(untested, reason, (observation,)))
        else:
            transient.append(observation)
    return transient, undecided


def _list_rivals(explanation: PairExplanation) -> Iterator[UndecidedCase]:
    for doubtful in explanation.doubtful:
        reason = f"bad in {len(doubtful.bad)} of {doubtful.tests} runs, which other traffic of this search may explain"
        yield UndecidedCase((doubtful.part,), reason, doubtful.bad)
    for faulty in explanation.faulty:
        if faulty.rivals:
            reason = "these parts were in the same bad pairs, and no pair could tell them apart"
            yield UndecidedCase((faulty.part, *faulty.rivals), reason, faulty.bad)


def build_staged_report(search: StagedSearch, results: SearchResults) -> CollectivesReport:
    """Return the report of all results so far."""
    pairs = build_report(search.fabric, search.nodes, results.pairs, search.rule)
    if not results.groups and not search.stages.gate:
        return pairs
    stages = find_stages(search, results)
    coverage = measure_coverage(
        search.fabric, search.nodes, search.pair_search(results).observe(results.pairs), _list_measured(search, results)
    )
    rounds = dict.fromkeys([*(result.round for result in results.groups), *pairs.rounds])
    named = tuple(_name_alone(search, results))
    return replace(pairs, named=named + pairs.named, coverage=coverage, rounds=tuple(rounds), stages=stages)


def find_stages(search: StagedSearch, results: SearchResults) -> StageFindings:
    """Return what the stages beside the pairs found."""
    finding = search.ask_about_scale(results) if search.stages.whole != "no" else None
    scale = None
    if isinstance(finding, ScaleFinding):
        blocks = search.list_blocks(search.list_survivors(results))
        needed = tuple(blocks[number] for number in finding.blocks)
        scale = ScaleAnswer(needed, finding.is_enough, finding.is_open, len(select_rounds(results.groups, "S")))
    racks = search.observe_racks(results)
    return StageFindings(
        search.judge_gate(results) if search.stages.gate else None,
        judge_gate(racks) if racks else None,
        search.judge_whole(results),
        scale,
    )


def _name_alone(search: StagedSearch, results: SearchResults) -> Iterator[NamedPart]:
    """Yield the NVLink domains and the nodes that need no partner to be bad; a domain stands for its nodes."""
    domains, nodes = search.find_bad_domains(results), search.judge_gate(results).faulty
    alone = {node: runs for node, runs in nodes.items() if search.fabric.nodes[node].domain not in domains}
    parts = [(FabricPart("nvlink", name), runs) for name, runs in domains.items()]
    for part, runs in (*parts, *((FabricPart("node", node), runs) for node, runs in alone.items())):
        bad = tuple(run for run in runs if run.is_bad)
        words = " and ".join(verdict for verdict in BY_SEVERITY if any(run.verdict == verdict for run in bad))
        often = "" if len(bad) == len(runs) else ", now and then"
        yield NamedPart(part, f"{words} {ALONE if part.kind == 'node' else 'over NVLink'}{often}", len(runs), bad)


def _list_measured(search: StagedSearch, results: SearchResults) -> set[str]:
    rule = search.stages.rule
    alone = observe_alone(select_rounds(results.groups, "G"), rule)
    together = observe_together([result for result in results.groups if result.round[:1] in "RWS"], rule)
    measured = set[str]()
    for observation in (*alone, *together):
        if observation.verdict != "unknown" or observation.has_ended:
            measured.update(observation.nodes)
    return measured

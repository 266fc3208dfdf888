"""The stages of a search for faulty parts: each node alone, pairs, all nodes together, blocks that only fail together.

Pure: the next round follows from the seed, the settings and the results so far, so an interrupted search continues.
Rounds are what costs time, not pairs: all pairs of a round run at once.

The gate runs each node alone, over its NVLink. Who fails is faulty itself, and takes no partner: a node is named if two
runs were bad, and if they were slow, if other traffic does not explain that. So a node that was bad in G1 runs again in
G2, and if it is not named then, in G3. If more than half of a rack that is one machine fail, the NVLink domain is named
in their place. Then, if many nodes run together at all, the nodes of each such rack do, over NVLink: R1 to R3. Pairs
are screened, then, if one was bad, confirmed in three rounds, or in up to six where traffic may be the reason.

The scale stage finds the blocks without which a large collective does not fail, though all its pairs are good. A prefix
of the blocks grows, by bisection, until it fails: its last block is needed. With that block kept, the group grows from
there towards the first block until it fails: its first block is needed too. If both are the same block, it fails alone.
Each answer is that of two runs of at most three. This is right if a larger group fails wherever a smaller one does. A
last question says whether the two blocks alone fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

from assay.model.facts import fact, frozen
from assay.validate.collectives.congestion import MOST_BY_CHANCE, Traffic, Trial
from assay.validate.collectives.fabric_map import FabricMap, find_node
from assay.validate.collectives.faulty_part_search import explain, observe_by_node
from assay.validate.collectives.judging import (
    GroupObservation,
    GroupRule,
    PairObservation,
    SpeedRule,
    WholeStage,
    observe_alone,
    observe_together,
    select_rounds,
)
from assay.validate.collectives.results import Group, GroupResult, GroupRound, PairResult
from assay.validate.collectives.rounds import CONFIRMATION_ROUNDS, PairRound, plan_confirmation, plan_screening

GATE_ROUNDS = ("G1", "G2", "G3")
RACK_ROUNDS = ("R1", "R2", "R3")
MIN_BAD = 2
VOTES = 2
"""So many equal answers decide a question."""
MAX_UNANSWERED = 3
"""After so many runs without an answer, the question stays open."""
MIN_TOGETHER = 3
"""Two nodes together are a pair."""
MIN_UNIT_BLOCKS = 4
"""With fewer units, the blocks of the scale stage are single nodes."""
MAX_RUNS = 3
"""All nodes together run so often at most, to decide whether they fail."""


@dataclass(frozen=True)
class CollectiveSearch:
    """One search among free nodes. `seed` chooses the partners; `rule` says which pairs are slow."""

    fabric: FabricMap
    nodes: Sequence[str]
    seed: int = 0
    rule: SpeedRule = field(default=SpeedRule())

    @cached_property
    def screening(self) -> Sequence[PairRound]:
        """The rounds that are always run."""
        return plan_screening(self.fabric, self.nodes, self.seed)

    def observe(self, results: Collection[PairResult]) -> list[PairObservation]:
        """Return what the results say about the parts."""
        return observe_by_node(self.fabric, results, self.rule)

    def find_next_round(self, results: Collection[PairResult], ended: Collection[str]) -> PairRound | None:
        """Return the next round after those that `ended`, None if the search is over."""
        for planned in self.screening:
            if planned.name not in ended:
                return planned
        names = [name for name in CONFIRMATION_ROUNDS if name not in ended]
        if not names:
            return None
        before = [result for result in results if result.round != names[0]]
        observations = [observation for observation in self.observe(before) if observation.round in ended]
        confirmation = plan_confirmation(self.fabric, self.nodes, observations, names[0])
        return confirmation if confirmation.pairs else None


@fact
class GateFindings:
    """What each node did alone, or each rack that is one machine, which is named by its first node."""

    faulty: Mapping[str, tuple[GroupObservation, ...]]
    """Those that were bad in two runs, with all their runs."""
    once: Mapping[str, tuple[GroupObservation, ...]]
    """Those that were bad, but are not named, with all their runs."""
    good: int = 0
    """How many were good."""
    note: str = ""
    """Why nobody is named; "" if that needs no word."""


def plan_gate(groups: Sequence[Group], observations: Sequence[GroupObservation], name: str) -> GroupRound:
    """Return a round of the gate: all nodes or racks, then those of which it is not known yet. It may have none."""
    if name in (GATE_ROUNDS[0], RACK_ROUNDS[0]):
        return GroupRound(name, tuple(groups))
    findings = judge_gate(observations)
    bad = {node: sum(run.is_bad for run in own) for node, own in findings.once.items()}
    # only there, another run can decide; if nobody was good, it cannot
    undecided = {node for node, count in bad.items() if count == 1 or findings.good}
    return GroupRound(name, tuple(group for group in groups if group[0] in undecided))


def judge_gate(observations: Sequence[GroupObservation]) -> GateFindings:
    """Return who is faulty alone. If no node was good, nobody is: the command may be the cause."""
    runs = {node: tuple(own) for node, own in _group_by_node(observations).items()}
    bad = {node: own for node, own in runs.items() if any(run.is_bad for run in own)}
    good = sum(node not in bad and any(run.verdict == "good" for run in own) for node, own in runs.items())
    if bad and not any(run.has_ended and not run.is_bad for run in observations):
        note = "nobody was good alone: the command or its environment may be the cause, so nobody is named"
        return GateFindings({}, bad, 0, note)
    faulty = {node: bad[node] for node in _find_faulty_alone(observations)}
    return GateFindings(faulty, {node: own for node, own in bad.items() if node not in faulty}, good)


def _find_faulty_alone(observations: Sequence[GroupObservation]) -> Iterator[str]:
    """Yield the nodes that were bad twice: wrong, hung or dead, or slow beyond what other traffic explains."""
    traffic = Traffic([Trial(run.nodes, [run.round, *run.units], run.verdict) for run in observations])
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for number, run in enumerate(observations):
        numbers[run.nodes[0]].append(number)
    for node, own in numbers.items():
        bad = sum(observations[number].is_bad for number in own)
        if bad >= MIN_BAD and traffic.count_by_chance(own) <= MOST_BY_CHANCE:
            yield node


def _group_by_node(observations: Sequence[GroupObservation]) -> Mapping[str, list[GroupObservation]]:
    by_node: defaultdict[str, list[GroupObservation]] = defaultdict(list)
    for observation in observations:
        by_node[observation.nodes[0]].append(observation)
    return by_node


def _plan_round(
    names: Sequence[str], groups: Sequence[Group], observations: Sequence[GroupObservation], ended: Collection[str]
) -> GroupRound | None:
    """Return the first of these rounds that has not ended, None if nobody has to run in it."""
    name = next((each for each in names if each not in ended), "")
    planned = plan_gate(groups, observations, name) if name else None
    return planned if planned and planned.groups else None


class ScaleQuestion(NamedTuple):
    """The numbers of the blocks that run together next. The answer is whether they fail."""

    blocks: tuple[int, ...]


@frozen
class ScaleFinding:
    """The blocks that are needed: one that fails alone, or two. With `is_enough`, these two alone fail.

    `is_open` means that the runs gave no answer: then `blocks` is empty.
    """

    blocks: tuple[int, ...] = ()
    is_enough: bool = True
    is_open: bool = False


_Questions = Generator[ScaleQuestion, bool, ScaleFinding]


def find_next_question(count: int, answers: Sequence[bool | None], needed: int = VOTES) -> ScaleQuestion | ScaleFinding:
    """Return the next question about `count` blocks that fail together, or the finding.

    `answers` are those of the runs so far, in their order: failed, did not, or None for a run that says nothing. So
    many equal ones as `needed` decide a question.
    """
    questions = _ask(count)
    try:
        question = next(questions)
        votes: list[bool | None] = []
        for answer in answers:
            votes.append(answer)
            if votes.count(None) >= MAX_UNANSWERED:
                return ScaleFinding(is_open=True)
            if votes.count(answer) >= needed and answer is not None:
                question, votes = questions.send(answer), []
    except StopIteration as end:
        finding: ScaleFinding = end.value
        return finding
    return question


def _ask(count: int) -> _Questions:
    """Ask for the shortest prefix that fails, then for its shortest end that fails. Together, all blocks fail."""
    good, bad = 0, count
    while bad - good > 1:
        middle = (good + bad) // 2
        fails = yield ScaleQuestion(tuple(range(middle)))
        good, bad = (good, middle) if fails else (middle, bad)
    last = bad - 1
    first, after = 0, last + 1
    while after - first > 1:
        middle = (first + after) // 2
        fails = yield ScaleQuestion(tuple(range(middle, last + 1)))
        first, after = (middle, after) if fails else (first, middle)
    if first == last:
        return ScaleFinding((last,))
    is_enough = last - first == 1 or (yield ScaleQuestion((first, last)))
    return ScaleFinding((first, last), is_enough)


class SearchResults(NamedTuple):
    """All results of a search so far."""

    pairs: Sequence[PairResult]
    groups: Sequence[GroupResult] = ()


@fact
class StageSettings:
    """Which stages a search has beside the pairs. `whole`: whether all nodes together run, last."""

    gate: bool = False
    whole: WholeStage = "no"
    rule: GroupRule = field(default=GroupRule())


@fact
class Block:
    """Nodes that the scale stage takes or leaves together: those of one unit, or one node."""

    name: str
    """The name of the block."""
    nodes: Group
    """Its nodes."""


@fact
class WholeFinding:
    """What all nodes did together."""

    verdict: Literal["good", "bad", "once", "unjudged", "open"]
    """Good, bad (in two runs), once (bad, and then good twice), unjudged (no speed is expected) or open (no answer)."""
    runs: tuple[GroupObservation, ...]
    """The runs."""


@dataclass(frozen=True)
class StagedSearch:
    """One search among free nodes, with the stages that its settings ask for."""

    fabric: FabricMap
    nodes: Sequence[str]
    seed: int = 0
    rule: SpeedRule = field(default=SpeedRule())
    stages: StageSettings = field(default=StageSettings())

    def find_next_round(self, results: SearchResults, ended: Collection[str]) -> PairRound | GroupRound | None:
        """Return the next round after those that `ended`, None if the search is over."""
        known = SearchResults(results.pairs, [run for run in results.groups if run.round in ended])
        if self.stages.gate and (planned := self._plan_gate(known, ended)):
            return planned
        if self.stages.whole != "no" and (planned := self._plan_racks(known, ended)):
            return planned
        pairs = self.pair_search(known).find_next_round(known.pairs, ended)
        return pairs or self._plan_together(known)

    def judge_gate(self, results: SearchResults) -> GateFindings:
        """Return what the nodes alone say."""
        return judge_gate(observe_alone(select_rounds(results.groups, "G"), self.stages.rule, self.fabric))

    def observe_racks(self, results: SearchResults) -> list[GroupObservation]:
        """Return what each rack that is one machine did together, compared with the others."""
        rule = replace(self.stages.rule, alone_gb_s=0.0)
        return observe_alone(select_rounds(results.groups, "R"), rule, self.fabric, "median of the racks")

    def list_domains(self, nodes: Iterable[str]) -> Mapping[str, list[str]]:
        """Return the nodes of this search by their NVLink domain."""
        domains: dict[str, list[str]] = {}
        for node in nodes:
            if domain := self.fabric.nodes[node].domain:
                domains.setdefault(domain, []).append(node)
        return domains

    def find_bad_domains(self, results: SearchResults) -> Mapping[str, tuple[GroupObservation, ...]]:
        """Return the NVLink domains that are bad, with all runs: more than half of their nodes alone, or together."""
        racks, alone = judge_gate(self.observe_racks(results)).faulty, self.judge_gate(results).faulty
        bad = {self.fabric.nodes[first].domain: runs for first, runs in racks.items()}
        for domain, nodes in self.list_domains(self.nodes).items():
            faulty = [node for node in nodes if node in alone]
            if len(nodes) >= MIN_TOGETHER and 2 * len(faulty) > len(nodes):
                bad[domain] = tuple(run for node in faulty for run in alone[node])
        return bad

    def list_partners(self, results: SearchResults) -> Group:
        """Return the nodes that run in pairs: all that did not fail alone."""
        faulty = self.judge_gate(results).faulty
        return tuple(node for node in self.nodes if node not in faulty)

    def pair_search(self, results: SearchResults) -> CollectiveSearch:
        """Return the search in pairs."""
        return CollectiveSearch(self.fabric, self.list_partners(results), self.seed, self.rule)

    def list_survivors(self, results: SearchResults) -> Group:
        """Return the nodes that should be good together: all that are not named. Empty if a link explains failures.

        Empty too if it could not be told who makes a pair bad: then a large group would fail for that reason.
        """
        search = self.pair_search(results)
        explanation = explain(search.observe(results.pairs))
        is_link = any(faulty.part.kind in ("uplink", "nvlink") or faulty.rivals for faulty in explanation.faulty)
        if is_link:
            return ()
        named = {find_node(faulty.part) for faulty in explanation.faulty}
        bad = self.find_bad_domains(results)
        return tuple(node for node in search.nodes if node not in named and self.fabric.nodes[node].domain not in bad)

    def judge_whole(self, results: SearchResults) -> WholeFinding | None:
        """Return how the survivors ended together, None if they have not run."""
        runs = tuple(self._observe_together(results, self.list_survivors(results)))
        if not runs:
            return None
        bad, ended = _count_votes(runs)
        if bad:
            return WholeFinding("bad" if bad >= VOTES else "once" if ended >= VOTES else "open", runs)
        is_good = any(run.verdict == "good" for run in runs)
        return WholeFinding("good" if is_good else "unjudged" if ended else "open", runs)

    def list_blocks(self, nodes: Sequence[str]) -> list[Block]:
        """Return the blocks of the scale stage: units, or nodes if there are few units."""
        units: dict[str, list[str]] = {}
        for node in nodes:
            units.setdefault(self.fabric.unit_of(node), []).append(node)
        if len(units) < MIN_UNIT_BLOCKS:
            return [Block(node, (node,)) for node in nodes]
        return [Block(name, tuple(members)) for name, members in units.items()]

    def ask_about_scale(self, results: SearchResults) -> ScaleQuestion | ScaleFinding | None:
        """Return the next question of the scale stage, or its finding. None if all nodes together did not fail."""
        whole, survivors = self.judge_whole(results), self.list_survivors(results)
        if whole is None or whole.verdict != "bad" or len(survivors) < MIN_TOGETHER:
            return None
        if whole.runs[0].nodes != survivors:
            return None
        observed = observe_together(select_rounds(results.groups, "S"), self.stages.rule)
        answers = [True if run.is_bad else False if run.has_ended else None for run in observed]
        return find_next_question(len(self.list_blocks(survivors)), answers)

    def _plan_gate(self, results: SearchResults, ended: Collection[str]) -> GroupRound | None:
        observations = observe_alone(select_rounds(results.groups, "G"), self.stages.rule, self.fabric)
        return _plan_round(GATE_ROUNDS, [(node,) for node in self.nodes], observations, ended)

    def _plan_racks(self, results: SearchResults, ended: Collection[str]) -> GroupRound | None:
        domains = self.list_domains(self.list_partners(results)).values()
        racks = [tuple(nodes) for nodes in domains if len(nodes) >= MIN_TOGETHER]
        return _plan_round(RACK_ROUNDS, racks, self.observe_racks(results), ended)

    def _plan_together(self, results: SearchResults) -> GroupRound | None:
        """Return the next round after the pairs: all survivors, until it is decided whether they fail; then blocks."""
        if self.stages.whole == "no":
            return None
        survivors = self.list_survivors(results)
        if len(survivors) < MIN_TOGETHER:
            return None
        own = self._observe_together(results, survivors)
        bad, ended = _count_votes(own)
        if not (bad >= VOTES or ended >= VOTES or (ended and not bad) or len(own) >= MAX_RUNS):
            number = 1 + len(select_rounds(results.groups, "W"))
            return GroupRound(f"W{number}", (survivors,))
        question = self.ask_about_scale(results)
        if not isinstance(question, ScaleQuestion):
            return None
        blocks = self.list_blocks(survivors)
        nodes = tuple(node for number in question.blocks for node in blocks[number].nodes)
        return GroupRound(f"S{1 + len(select_rounds(results.groups, 'S'))}", (nodes,))

    def _observe_together(self, results: SearchResults, nodes: Group) -> list[GroupObservation]:
        own = [run for run in select_rounds(results.groups, "W") if run.nodes == nodes]
        return observe_together(own, self.stages.rule)


def _count_votes(runs: Sequence[GroupObservation]) -> tuple[int, int]:
    """Return how many runs were bad, and how many ended well and were not slow."""
    bad = sum(run.is_bad for run in runs)
    return bad, sum(run.has_ended and not run.is_bad for run in runs)

"""The shapes of what `assay collectives` prints with `--format json`."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from assay.validate.collectives.fabric_map import PartKind
from assay.validate.collectives.results import PairVerdict


class PlannedRound(TypedDict):
    """Pairs that run at the same time."""

    round: str
    """The name of the round."""
    pairs: list[list[str]]
    """The pairs of nodes."""


class SearchMinutes(TypedDict):
    """How long a search takes."""

    healthy: float
    """In minutes, if nothing is wrong."""
    longest: float
    """In minutes, at most."""


class KindCoverage(TypedDict):
    """How many parts of one kind are exercised."""

    exercised: int
    """How many are exercised."""
    reachable: int
    """How many the free nodes can exercise."""
    total: int
    """How many there are."""


class CollectivesPlanAnswer(TypedDict):
    """Which nodes are free, the rounds of a search, how long they take, and what they would exercise."""

    design: str
    """The FabricDesign; "" without one, and then no link can be named."""
    free: list[str]
    """The free nodes."""
    excluded: dict[str, str]
    """The other nodes, each with the reason."""
    rounds: list[PlannedRound]
    """The rounds, in order."""
    minutes: SearchMinutes
    """How long it takes."""
    coverage: dict[str, KindCoverage]
    """What the rounds would exercise: nodes, adapters and uplinks."""


class RunEvidence(TypedDict):
    """A run of a pair or of a group that counts against a part."""

    round: str
    """The round."""
    pair: NotRequired[list[str]]
    """The two nodes; only for a pair."""
    nodes: NotRequired[list[str]]
    """The nodes; only for one node alone, or for a group."""
    why: str
    """What was wrong."""


class NamedPartAnswer(TypedDict):
    """A part that the search names."""

    kind: PartKind
    """The kind of part."""
    name: str
    """The part."""
    symptom: str
    """What it does, such as slow or wrong."""
    bad: int
    """How many of its runs were bad."""
    tests: int
    """How many runs it had."""
    evidence: list[RunEvidence]
    """The bad runs."""


class SuspectPartAnswer(TypedDict):
    """A part that may be faulty."""

    kind: PartKind
    """The kind of part."""
    name: str
    """The part."""


class UndecidedAnswer(TypedDict):
    """Bad pairs whose faulty part could not be told."""

    suspects: list[SuspectPartAnswer]
    """The parts that it may be."""
    reason: str
    """Why it could not be told."""
    evidence: list[RunEvidence]
    """The bad runs."""


class AloneAnswer(TypedDict):
    """What each node did alone."""

    good: int
    """How many nodes were good."""
    faulty: list[str]
    """The nodes that were bad in two runs."""
    once: dict[str, list[RunEvidence]]
    """The nodes that were bad once, with their runs."""


class WholeRun(TypedDict):
    """A run of all nodes together."""

    round: str
    """The round."""
    nodes: list[str]
    """The nodes."""
    why: str
    """What was wrong; "" if nothing was."""
    verdict: PairVerdict
    """How it ended."""


class TogetherAnswer(TypedDict):
    """What all nodes did together."""

    verdict: str
    """Good, bad (in two runs), once (bad, and then good twice), unjudged (no speed is expected) or open (no answer)."""
    ended_early: bool
    """Whether no pair ran, since all was as expected."""
    runs: list[WholeRun]
    """The runs."""


class NeededBlock(TypedDict):
    """A block of nodes without which all nodes together do not fail."""

    block: str
    """The name of the block."""
    nodes: list[str]
    """Its nodes."""


class ScaleAnswer(TypedDict):
    """Which blocks of nodes must be there for all together to fail."""

    blocks: list[NeededBlock]
    """The blocks."""
    enough: bool
    """Whether these alone fail."""
    open: bool
    """Whether the runs gave no answer."""
    runs: int
    """How many runs that took."""


class StagesAnswer(TypedDict, total=False):
    """What the stages of a search found; one that did not run is missing."""

    alone: AloneAnswer
    """What each node did alone; missing if that did not run."""
    together: TogetherAnswer
    """What all nodes did together; missing if that did not run."""
    scale: ScaleAnswer
    """Which blocks must be there for all to fail; missing if that did not run."""


class CollectivesAnswer(StagesAnswer):
    """Which nodes and links make collectives slow, wrong or hang, on which evidence, and what could not be told."""

    named: list[NamedPartAnswer]
    """The faulty parts."""
    could_not_tell: list[UndecidedAnswer]
    """Bad pairs whose faulty part could not be told."""
    transient: list[RunEvidence]
    """Pairs that were bad once, and whose parts were all good in later pairs."""
    coverage: dict[str, KindCoverage]
    """What was exercised: nodes, adapters and uplinks."""
    pairs: int
    """How many pairs ran."""
    rounds: list[str]
    """The rounds that ran."""
    unmeasured: dict[str, int]
    """How many results say nothing, by reason."""
    unchecked: int
    """How many results have numbers that nobody checked."""
    routing: str
    """How the uplinks of a pair are known."""

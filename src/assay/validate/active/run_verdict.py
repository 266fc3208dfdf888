"""The verdict on a run: a vote on each unit, and over all units which GPUs were outvoted, by whom, and how often.

What most GPUs of one kind computed is right. The majority is strict, and counted among all GPUs of the kind: silent
ones give nobody a majority. Where there is none, and where the majority differs from a golden digest, nobody is named:
such a unit cannot be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from assay.model.text.lists import format_count, format_list
from assay.validate.active.unit_results import LoadDevice, LoadRun, LoadUnit, UnitName

LEAST_VOTERS = 3
"""Of two GPUs that differ, nobody knows which one is wrong."""
LEAST_GOLDEN_VOTERS = 2
SHOWN_TESTS = 3


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """The vote of the GPUs of one kind on one unit. GPUs are places in the run's list of devices.

    - `right`: the GPUs that computed `expected`. `wrong`: the outvoted ones, with what they computed.
    - `silent`: the GPUs that gave no digest.
    - `undecided` says why nothing can be told, "" if it can. `common_cause`: the majority differs from the golden.
    - `by_golden`: a golden digest agrees with `expected`.
    """

    unit: LoadUnit
    right: tuple[int, ...] = ()
    wrong: Mapping[int, str] = field(default_factory=dict)
    silent: tuple[int, ...] = ()
    expected: str = ""
    undecided: str = ""
    common_cause: bool = False
    by_golden: bool = False

    @property
    def is_told(self) -> bool:
        """Whether the vote has a result."""
        return not self.undecided


def vote_on_unit(unit: LoadUnit, devices: tuple[LoadDevice, ...], golden: str = "") -> Iterator[UnitVerdict]:
    """Yield a verdict for each kind of GPU of a run. `golden`: the golden digest of this unit, "" for none."""
    kinds: dict[str, list[int]] = {}
    for place, device in enumerate(devices):
        kinds.setdefault(device.kind, []).append(place)
    for places in kinds.values():
        yield _vote(unit, places, golden)


def _vote(unit: LoadUnit, places: list[int], golden: str) -> UnitVerdict:
    digests = {place: digest for place in places if (digest := unit.digests[place]) is not None}
    silent = tuple(place for place in places if place not in digests)
    expected, doubt = _find_majority(digests, len(places), golden)
    if not expected:
        return UnitVerdict(unit, silent=silent, undecided=doubt)
    if golden and expected != golden:
        doubt = (
            f"most GPUs computed {expected}, and the golden digest is {golden}: a cause that they share, as a library"
        )
        return UnitVerdict(unit, silent=silent, undecided=doubt, common_cause=True)
    return UnitVerdict(
        unit,
        right=tuple(place for place, digest in digests.items() if digest == expected),
        wrong={place: digest for place, digest in digests.items() if digest != expected},
        silent=silent,
        expected=expected,
        by_golden=bool(golden),
    )


def _find_majority(digests: Mapping[int, str], voters: int, golden: str) -> tuple[str, str]:
    """Return the digest of the majority and "", or "" and why there is none. A golden digest decides a tie."""
    if not digests:
        return "", "no GPU computed it"
    counts = Counter(digests.values()).most_common()
    digest, most = counts[0]
    if voters < LEAST_VOTERS:
        return "", f"{format_count(voters, 'GPU')} of a kind cannot outvote anybody: that takes {LEAST_VOTERS}"
    if 2 * most > voters:
        return digest, ""
    agreeing = dict(counts).get(golden, 0)
    if agreeing >= LEAST_GOLDEN_VOTERS and agreeing == most:
        return golden, ""
    return "", _describe_no_majority([count for _, count in counts], voters)


def _describe_no_majority(counts: list[int], voters: int) -> str:
    if len(counts) > 1 and max(counts) == 1:
        return f"{len(counts)} GPUs computed {len(counts)} different results: the test, not a GPU, may be at fault"
    if len(counts) > 1 and counts[0] == counts[1]:
        return f"a tie: {' to '.join(str(count) for count in counts)} of {voters} GPUs"
    return f"no majority: at most {counts[0]} of {voters} GPUs agree"


@dataclass(frozen=True, slots=True)
class WrongUnits:
    """The units that one GPU computed wrong, in the order in which they ran. `outvoted_by`: places in the run."""

    units: tuple[UnitVerdict, ...]
    place: int
    judged: int

    @property
    def first(self) -> UnitVerdict:
        """The first wrong unit."""
        return self.units[0]

    @property
    def outvoted_by(self) -> tuple[int, ...]:
        """The GPUs that computed the first wrong unit right."""
        return self.first.right

    def describe(self, names: Mapping[int, str]) -> str:
        """Return what is wrong in one line; no digest tells which bits. `names` of GPUs are by place."""
        first, unit = self.first, self.first.unit
        golden = " and by the golden digest" if first.by_golden else ""
        tests = Counter(verdict.unit.test for verdict in self.units).most_common()
        shares = format_list((f"{test} {count}" for test, count in tests), SHOWN_TESTS + 1)
        return (
            f"of {self.judged} ({format_share(len(self.units), self.judged)}); first {unit.test}, seed {unit.seed}: "
            f"{first.wrong[self.place]}, not {first.expected}; outvoted by "
            f"{format_list(sorted(names[place] for place in self.outvoted_by), 9)}{golden}; wrong in {shares}"
        )


@dataclass(frozen=True)
class RunVerdict:
    """All votes of one run, in the order of its units."""

    run: LoadRun
    votes: tuple[UnitVerdict, ...]

    def find_wrong_units(self, place: int) -> WrongUnits | None:
        """Return what one GPU computed wrong, None if it was never outvoted."""
        wrong = tuple(vote for vote in self.votes if place in vote.wrong)
        judged = sum(place in vote.wrong or place in vote.right for vote in self.votes)
        return WrongUnits(wrong, place, judged) if wrong else None

    def count_right_units(self, place: int) -> int:
        """Return how many units one GPU computed as most of its peers did."""
        return sum(place in vote.right for vote in self.votes)

    def find_doubt(self, place: int) -> str:
        """Return why one GPU cannot pass although nobody outvoted it, "" if it can."""
        kind = self.run.devices[place].kind
        if silent := sum(place in vote.silent for vote in self.votes):
            return f"it gave no result in {format_count(silent, 'unit')} of {len(self._votes_of(kind))}"
        if untold := [vote for vote in self._votes_of(kind) if not vote.is_told]:
            return describe_untold(untold)
        return "" if self.count_right_units(place) else "it computed nothing"

    @property
    def silent_units(self) -> Counter[int]:
        """In how many units each GPU gave no result, by place."""
        return Counter(place for vote in self.votes for place in vote.silent)

    @cached_property
    def common_causes(self) -> tuple[UnitVerdict, ...]:
        """The units in which most GPUs differ from the golden digest."""
        return tuple(vote for vote in self.votes if vote.common_cause)

    @cached_property
    def golden_units(self) -> int:
        """How many units were compared with a golden digest."""
        return sum(vote.by_golden or vote.common_cause for vote in self.votes)

    def _votes_of(self, kind: str) -> list[UnitVerdict]:
        return self._votes_by_kind[kind]

    @cached_property
    def _votes_by_kind(self) -> dict[str, list[UnitVerdict]]:
        kinds = list(dict.fromkeys(device.kind for device in self.run.devices))
        return {kind: list(self.votes[at :: len(kinds)]) for at, kind in enumerate(kinds)}


def judge_run(run: LoadRun, golden: Mapping[UnitName, str] | None = None) -> RunVerdict:
    """Return the verdict on a run. `golden`: the golden digests for its key, by test and seed."""
    known = golden or {}
    votes = [vote for unit in run.units for vote in vote_on_unit(unit, run.devices, known.get(unit.name, ""))]
    return RunVerdict(run, tuple(votes))


def describe_untold(votes: list[UnitVerdict]) -> str:
    """Return why units cannot be told, by the first of them."""
    first = votes[0]
    more = f" (and {format_count(len(votes) - 1, 'more unit')})" if len(votes) > 1 else ""
    return f"{first.unit.test}, seed {first.unit.seed}: {first.undecided}{more}"


def format_share(part: int, whole: int) -> str:
    """Return a share as per cent with two digits that count: 2.8 %, 0.0013 %."""
    return f"{100 * part / whole:.2g} %" if part < whole else "100 %"

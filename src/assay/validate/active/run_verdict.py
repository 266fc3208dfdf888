"""The verdict on a run: a vote on each unit, and over all units which GPUs are wrong, by whom, and how often.

A wrong digest of a computation proves its GPU wrong, if the vote can tell (`unit_vote`). A wrong digest of a copy or a
collective proves its sender, its receiver or the way between wrong: all such units of the run together tell which, or
leave several suspects (`transfer_suspects`). What cannot be told names nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from assay.model.facts import frozen
from assay.model.text.lists import fold_names, format_count, format_list
from assay.validate.active.transfer_suspects import (
    HOST,
    SWITCH,
    Suspicion,
    Transfer,
    describe_parts,
    find_suspects,
    read_roles,
)
from assay.validate.active.unit_results import LoadDevice, LoadRun, LoadUnit, UnitName
from assay.validate.active.unit_vote import GOLDEN, NOBODY, Counts, VoteResult, find_most, vote

SHOWN_TESTS = 3
SOURCE = "copy.source"
"""Gives the digest that is right in all transfers of its seed."""
EXPLAINED = "{} is in every explanation of what is wrong between the GPUs"
Transfers = Mapping[int, Transfer]
"""What each GPU received in a unit, by place."""


@frozen
class OtherNodes:
    """How many GPUs of other nodes computed what, with the same key as a run. Units in which all agree may lack."""

    names: tuple[str, ...] = ()
    digests: Mapping[UnitName, Counts] = field(default_factory=dict)

    def of(self, unit: UnitName) -> Counts:
        """Return what they computed of a unit."""
        return self.digests.get(unit, NOBODY)

    def describe(self, unit: UnitName) -> str:
        """Return in words who computed a unit."""
        return f"{format_count(sum(self.of(unit).values()), 'GPU')} of {format_list(fold_names(self.names), 4)}"


@frozen
class Referees:
    """What a run is compared with: golden digests for its key by test and seed, and other nodes."""

    golden: Mapping[UnitName, str] = field(default_factory=dict)
    others: OtherNodes = field(default_factory=OtherNodes)

    def vote(self, unit: LoadUnit, places: Sequence[int]) -> VoteResult:
        """Return the vote of the GPUs in these places."""
        digests = {place: digest for place in places if (digest := unit.digests[place]) is not None}
        others = self.others.of(unit.name)
        names = self.others.describe(unit.name) if others else ""
        return vote(digests, len(places), self.golden.get(unit.name, ""), others, names)

    def judge(self, unit: LoadUnit, places: Sequence[int], result: VoteResult) -> UnitVerdict:
        """Return the verdict by a vote."""
        digests = {place: digest for place in places if (digest := unit.digests[place]) is not None}
        expected = result.expected
        spoilt = {place: digest for place, digest in digests.items() if digest != expected} if expected else {}
        by_golden = bool(expected) and self.golden.get(unit.name) == expected
        has_others = result.by_others and bool(self.others.of(unit.name))
        return UnitVerdict(
            unit,
            tuple(places),
            right=tuple(place for place, digest in digests.items() if digest == expected),
            wrong=spoilt,
            spoilt=spoilt,
            silent=tuple(place for place in places if place not in digests),
            expected=expected,
            undecided=result.doubt,
            common_cause=result.common_cause,
            by_golden=by_golden,
            support=GOLDEN if by_golden else self.others.describe(unit.name) if has_others else "",
            suspects=tuple(digests) if result.is_split else (),
        )


@frozen
class UnitVerdict:
    """The verdict on one unit: on the GPUs of one kind, or on what all sent each other. GPUs are places in the run.

    - `right`: the GPUs that computed or received `expected`. `wrong`: the guilty ones, with the digest that shows it.
    - `spoilt`: the GPUs that hold something else than `expected`, whoever is guilty of it.
    - `silent`: the GPUs that gave no digest.
    - `undecided` says why nothing can be told, "" if it can. `common_cause`: the majority differs from the golden.
    - `suspects`: the GPUs of which at least one is guilty, or the way between them.
    - `explained`: how it is known who is guilty, with `{}` for the GPU; "" after a vote.
    - `by_golden`: a golden digest agrees with `expected`. `support`: what else than these GPUs does, in words.
    """

    unit: LoadUnit
    voters: tuple[int, ...] = ()
    right: tuple[int, ...] = ()
    wrong: Mapping[int, str] = field(default_factory=dict)
    spoilt: Mapping[int, str] = field(default_factory=dict)
    silent: tuple[int, ...] = ()
    expected: str = ""
    undecided: str = ""
    common_cause: bool = False
    by_golden: bool = False
    support: str = ""
    suspects: tuple[int, ...] = ()
    explained: str = ""

    @property
    def is_told(self) -> bool:
        """Whether the vote has a result."""
        return not self.undecided


def vote_on_unit(
    unit: LoadUnit, devices: tuple[LoadDevice, ...], referees: Referees | None = None
) -> Iterator[UnitVerdict]:
    """Yield a verdict for each kind of GPU of a run."""
    kinds: dict[str, list[int]] = {}
    for place, device in enumerate(devices):
        kinds.setdefault(device.kind, []).append(place)
    referees = referees or Referees()
    yield from (referees.judge(unit, places, referees.vote(unit, places)) for places in kinds.values())


class _TransferUnits:
    """The units of a run in which GPUs received something, with the parts that explain what is wrong in them."""

    def __init__(self, run: LoadRun, referees: Referees) -> None:
        self._devices, self._referees = run.devices, referees
        places = range(len(run.devices))
        sources = {unit.seed: referees.vote(unit, places) for unit in run.units if unit.test == SOURCE}
        self.results: dict[UnitName, tuple[VoteResult, Transfers]] = {}
        for unit in run.units:
            roles = {place: role for place in places if (role := read_roles(unit.test, place, len(places)))}
            if roles:
                result = sources.get(unit.seed) if unit.test.startswith(("copy.", "collective.")) else None
                result = result or referees.vote(unit, places)
                given = {place: role for place, role in roles.items() if unit.digests[place] is not None}
                self.results[unit.name] = (
                    result,
                    {
                        place: replace(role, is_wrong=unit.digests[place] != result.expected, unit=unit.name)
                        for place, role in given.items()
                    },
                )

    def explain(self, sick: frozenset[int]) -> Suspicion:
        """Return who can be guilty. `sick`: the GPUs that compute wrong."""
        decided = [transfers for result, transfers in self.results.values() if result.expected]
        return find_suspects([transfer for transfers in decided for transfer in transfers.values()], sick)

    def judge(self, unit: LoadUnit, suspicion: Suspicion, sick: frozenset[int]) -> UnitVerdict:
        """Return the verdict on one unit."""
        result, transfers = self.results[unit.name]
        verdict = self._referees.judge(unit, range(len(self._devices)), result)
        spoilt = {place: transfer for place, transfer in transfers.items() if transfer.is_wrong}
        if not result.expected:
            return verdict
        if not spoilt:
            return replace(verdict, wrong={})
        guilty = suspicion.guilty_devices | sick
        wrong: dict[int, str] = {}
        left: list[Transfer] = []
        for place, transfer in spoilt.items():
            named = guilty & transfer.through
            wrong.update(dict.fromkeys(named, str(unit.digests[place])))
            left += [] if named else [transfer]
        verdict = replace(verdict, wrong=wrong, explained=EXPLAINED if wrong else "")
        return self._leave_open(verdict, left, suspicion) if left else verdict

    def _leave_open(self, verdict: UnitVerdict, left: Sequence[Transfer], suspicion: Suspicion) -> UnitVerdict:
        every = (*suspicion.guilty, *suspicion.suspects)
        between = SWITCH if any(HOST not in transfer.through for transfer in left) else frozenset()
        parts = [part for part in every if any(part <= transfer.through | between for transfer in left)]
        names = {place: f"gpu{device.index}" for place, device in enumerate(self._devices)}
        receivers = format_list((names[each.receiver] for each in left), 8)
        can_be = "can be guilty" if len(parts) > 1 else "explains it alone"
        doubt = f"{receivers} received what is wrong: {describe_parts(parts, names)} {can_be}"
        suspects = {place for part in parts for place in part if place >= 0} or {each.receiver for each in left}
        return replace(verdict, undecided=doubt, suspects=tuple(sorted(suspects)))


@frozen
class WrongUnits:
    """The units that one GPU computed wrong, in the order in which they ran."""

    units: tuple[UnitVerdict, ...]
    place: int
    judged: int

    @property
    def first(self) -> UnitVerdict:
        """The first wrong unit."""
        return self.units[0]

    def describe(self, names: Mapping[int, str]) -> str:
        """Return what is wrong in one line; no digest tells which bits. `names` of GPUs are by place."""
        first, unit = self.first, self.first.unit
        right = format_list(sorted(names[place] for place in first.right), 9)
        outvoted = f"outvoted by {' and by '.join(filter(None, (right, first.support)))}"
        tests = Counter(verdict.unit.test for verdict in self.units).most_common()
        shares = format_list((f"{test} {count}" for test, count in tests), SHOWN_TESTS + 1)
        return (
            f"of {self.judged} ({format_share(len(self.units), self.judged)}); first {unit.test}, seed {unit.seed}: "
            f"{first.wrong.get(self.place) or first.spoilt[self.place]}, not {first.expected}; "
            f"{first.explained.format(names[self.place]) or first.undecided or outvoted}; wrong in {shares}"
        )


@dataclass(frozen=True)
class RunVerdict:
    """All votes of one run, in the order of its units."""

    run: LoadRun
    votes: tuple[UnitVerdict, ...]

    def find_wrong_units(self, place: int) -> WrongUnits | None:
        """Return the units of which one GPU is guilty, None if there are none."""
        return self._collect(place, [vote for vote in self.votes if place in vote.wrong])

    def find_spoilt_units(self, place: int) -> WrongUnits | None:
        """Return the units in which one GPU holds something wrong, whoever is guilty; None if there are none."""
        return self._collect(place, [vote for vote in self.votes if place in vote.spoilt])

    def _collect(self, place: int, units: Sequence[UnitVerdict]) -> WrongUnits | None:
        judged = sum(any(place in places for places in (vote.wrong, vote.spoilt, vote.right)) for vote in self.votes)
        return WrongUnits(tuple(units), place, judged) if units else None

    def count_right_units(self, place: int) -> int:
        """Return how many units one GPU computed as most of its peers did."""
        return sum(place in vote.right for vote in self.votes)

    def find_doubt(self, place: int) -> str:
        """Return why one GPU cannot pass although nobody outvoted it, "" if it can."""
        cast = [vote for vote in self.votes if place in vote.voters]
        if silent := sum(place in vote.silent for vote in cast):
            return f"it gave no result in {format_count(silent, 'unit')} of {len(cast)}"
        if untold := [vote for vote in cast if not vote.is_told and place in (vote.suspects or vote.voters)]:
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

    @cached_property
    def suspicions(self) -> tuple[UnitVerdict, ...]:
        """The units in which something is wrong, and nobody knows which of several parts is guilty."""
        return tuple(vote for vote in self.votes if vote.suspects)


def judge_run(
    run: LoadRun, golden: Mapping[UnitName, str] | None = None, others: OtherNodes | None = None
) -> RunVerdict:
    """Return the verdict on a run. `golden`: the golden digests for its key, by test and seed."""
    referees = Referees(_list_trusted(run, golden or {}), others or OtherNodes())
    transfers = _TransferUnits(run, referees)
    computed = {
        unit.name: list(vote_on_unit(unit, run.devices, referees))
        for unit in run.units
        if unit.name not in transfers.results
    }
    sick = frozenset(place for verdicts in computed.values() for verdict in verdicts for place in verdict.wrong)
    suspicion = transfers.explain(sick)
    verdicts = (computed.get(unit.name) or [transfers.judge(unit, suspicion, sick)] for unit in run.units)
    return RunVerdict(run, tuple(chain.from_iterable(verdicts)))


def _list_trusted(run: LoadRun, golden: Mapping[UnitName, str]) -> Mapping[UnitName, str]:
    """Return the golden digests that may decide: if most GPUs contradict some, those alone, as suspects themselves."""
    contradicted = {}
    for unit in run.units:
        digests = {place: digest for place, digest in enumerate(unit.digests) if digest is not None}
        most, expected = find_most(digests, len(unit.digests)), golden.get(unit.name)
        if most and expected and most != expected:
            contradicted[unit.name] = expected
    return contradicted or golden


def describe_untold(votes: list[UnitVerdict]) -> str:
    """Return why units cannot be told, by the first of them."""
    first = votes[0]
    more = f" (and {format_count(len(votes) - 1, 'more unit')})" if len(votes) > 1 else ""
    return f"{first.unit.test}, seed {first.unit.seed}: {first.undecided}{more}"


def format_share(part: int, whole: int) -> str:
    """Return a share as per cent with two digits that count: 2.8 %, 0.0013 %."""
    return f"{100 * part / whole:.2g} %" if part < whole else "100 %"

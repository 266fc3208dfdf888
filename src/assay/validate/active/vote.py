"""The vote on one unit: what most GPUs of one kind computed is right, and who differs is outvoted.

The majority is strict, and counted among all GPUs of the kind: silent ones give nobody a majority. Where there is none,
and where the majority differs from a golden digest, nobody is named: such a unit cannot be told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from assay.model.text.text_lists import format_count
from assay.validate.active.unit_results import LoadDevice, LoadUnit

LEAST_VOTERS = 3
"""Of two GPUs that differ, nobody knows which one is wrong."""
LEAST_GOLDEN_VOTERS = 2


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
    said = {place: digest for place in places if (digest := unit.digests[place]) is not None}
    silent = tuple(place for place in places if place not in said)
    expected, why = _find_majority(said, len(places), golden)
    if not expected:
        return UnitVerdict(unit, silent=silent, undecided=why)
    if golden and expected != golden:
        why = f"most GPUs computed {expected}, and the golden digest is {golden}: a cause that they share, as a library"
        return UnitVerdict(unit, silent=silent, undecided=why, common_cause=True)
    return UnitVerdict(
        unit,
        right=tuple(place for place, digest in said.items() if digest == expected),
        wrong={place: digest for place, digest in said.items() if digest != expected},
        silent=silent,
        expected=expected,
        by_golden=bool(golden),
    )


def _find_majority(said: Mapping[int, str], voters: int, golden: str) -> tuple[str, str]:
    """Return the digest of the majority and "", or "" and why there is none. A golden digest decides a tie."""
    if not said:
        return "", "no GPU computed it"
    counts = Counter(said.values()).most_common()
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

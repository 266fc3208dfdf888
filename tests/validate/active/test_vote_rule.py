"""The rule of a vote, over all ways in which 2 to 18 GPUs can agree and differ: who may be named, and by what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from assay.validate.active.unit_vote import VoteResult, vote

COUNTS = range(2, 19)
ELSE = "ffffffff"


def list_groupings(count: int, most: int | None = None) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of groups of `count` GPUs, each way once, the largest group first."""
    if count == 0:
        yield ()
    for first in range(min(count, most or count), 0, -1):
        for rest in list_groupings(count - first, first):
            yield first, *rest


def make_digests(groups: tuple[int, ...]) -> dict[int, str]:
    places = iter(range(sum(groups)))
    return {next(places): f"{number:08x}" for number, size in enumerate(groups) for _ in range(size)}


def list_named(digests: dict[int, str], result: VoteResult) -> set[int]:
    return {place for place, digest in digests.items() if result.expected and digest != result.expected}


def list_votes(count: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield the groups of the GPUs that gave a digest, and how many were silent."""
    for silent in range(count):
        for groups in list_groupings(count - silent):
            yield groups, silent


@pytest.mark.parametrize("count", COUNTS)
def test_without_a_reference_only_a_large_majority_names_and_only_those_that_stand_alone(count: int) -> None:
    for groups, _ in list_votes(count):
        digests = make_digests(groups)
        result = vote(digests, count)
        named, others = list_named(digests, result), groups[1:]
        is_large = groups[0] >= 4 and 4 * groups[0] >= 3 * count
        assert bool(named) == (is_large and bool(others) and max(others) == 1), (groups, count)
        assert named == (set(range(groups[0], sum(groups))) if named else set())
        assert bool(result.doubt) == (not result.expected)
        if count > 2:
            assert not others or named or result.doubt, "where GPUs differ, nobody passes in silence"


@pytest.mark.parametrize("count", COUNTS)
def test_a_reference_never_names_more_than_half_and_never_against_a_majority(count: int) -> None:
    for groups, _ in list_votes(count):
        digests = make_digests(groups)
        for reference in {*digests.values(), ELSE}:
            result = vote(digests, count, reference)
            named = list_named(digests, result)
            assert 2 * len(named) <= count
            if 2 * groups[0] > count and digests[0] != reference:
                assert result.common_cause
                assert not named
                assert "suspects are the golden digest" in result.doubt
            if result.expected == reference:
                assert 2 * groups[0] > count or sum(digest == reference for digest in digests.values()) >= 2


@pytest.mark.parametrize("count", COUNTS)
def test_however_many_are_wrong_alike_a_healthy_gpu_is_named_only_beyond_the_stated_limit(count: int) -> None:
    """The limit: one healthy GPU against all others, of which four and more share one fault, without a reference."""
    for sick in range(1, count + 1):
        for silent in range(count - sick + 1):
            healthy = count - sick - silent
            digests = dict(enumerate(["bad00000"] * sick + ["900d0000"] * healthy))
            limit = healthy == 1 and sick >= 4 and 4 * sick >= 3 * count
            innocent = set(range(sick, sick + healthy))
            assert bool(list_named(digests, vote(digests, count)) & innocent) == limit
            assert not list_named(digests, vote(digests, count, "900d0000")) & innocent
            if sick < healthy:
                assert not list_named(digests, vote(digests, count, "bad00000")) & innocent, "a wrong golden digest"


@pytest.mark.parametrize(
    ("groups", "said"),
    [((4, 4), "a tie: 4 to 4 of 8"), ((5, 3), "5 of 8 GPUs agree against 3: too few"), ((3, 1), "3 of 4 GPUs agree"),
     ((6, 2), "2 of 8 GPUs agree on another result: they may be the healthy ones"), ((1, 1, 1), "the test, not a GPU")],
)  # fmt: skip
def test_what_cannot_be_told_says_why_and_a_golden_digest_decides_it(groups: tuple[int, ...], said: str) -> None:
    digests = make_digests(groups)
    untold = vote(digests, len(digests))
    assert said in untold.doubt
    assert untold.is_split == (len(groups) == 2), "if each GPU gave another result, none is a suspect"
    decided = vote(digests, len(digests), digests[0])
    assert list_named(digests, decided) == (set(range(groups[0], len(digests))) if groups[0] > 1 else set())


@pytest.mark.parametrize("count", range(2, 9))
def test_gpus_of_other_nodes_name_nobody_whom_they_and_three_quarters_of_all_do_not_contradict(count: int) -> None:
    """No more than half of a node is named against other nodes; without three quarters of all, they are a reference."""
    for groups, _ in list_votes(count):
        digests = make_digests(groups)
        for theirs in ((digests[0],) * 4, (ELSE,) * 4, (ELSE,) * 68, (digests[len(digests) - 1],) * 68, ("1", "2") * 9):
            others = Counter(theirs)
            result = vote(digests, count, "", others, "other nodes")
            named, (agreed, agreeing) = list_named(digests, result), others.most_common(1)[0]
            all_agreeing = agreeing + sum(digest == agreed for digest in digests.values())
            if len(others) == 1 and 4 * all_agreeing >= 3 * (count + len(theirs)):
                is_alike = digests[0] != agreed and 2 * groups[0] > count
                assert result.common_cause == is_alike
                assert named == (set() if is_alike else {at for at, digest in digests.items() if digest != agreed})
                assert result.is_split == is_alike, "the node is the suspect"
            elif len(others) > 1:
                assert result == vote(digests, count)
            else:
                assert list_named(digests, vote(digests, count, agreed)) == named


def test_other_nodes_that_contradict_a_golden_digest_do_not_decide() -> None:
    digests = make_digests((2, 2))
    assert list_named(digests, vote(digests, 4, digests[0], Counter({digests[2]: 68}))) == {2, 3}

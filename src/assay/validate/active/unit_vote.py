"""The rule of a vote: which digest of a unit is right, and whether anybody is outvoted.

- A majority names those that differ if it has at least four GPUs and three quarters of the kind, and those that differ
  also differ from each other. Fewer may share a fault; GPUs that agree on another result may be the healthy ones.
- A reference that agrees with half of the kind or more supports them: all others are named. So it decides a tie. One
  that more than half contradict is a suspect itself. It is a golden digest, or without one, what three quarters of the
  GPUs of other nodes computed.
- GPUs of other nodes vote too: what they and three quarters of all GPUs computed is right, and all others are named,
  also those that agree with each other. But where these are more than half of a node, what they share is the suspect.
- Whatever else differs cannot be told: the GPUs that gave a digest are suspects, unless each gave another one.

Silent GPUs count among the kind, so they give nobody a majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

from assay.model.facts import frozen
from assay.model.text.lists import format_count

LEAST_VOTERS = 3
"""Of two GPUs that differ, nobody knows which one is wrong."""
LEAST_AGREEING = 4
LEAST_GOLDEN_VOTERS = 2
GOLDEN = "the golden digest"
Counts = Mapping[str, int]
NOBODY: Counts = MappingProxyType({})


@frozen
class VoteResult:
    """`expected`: the right digest, "" where it cannot be told, for the reason `doubt`.

    `common_cause`: most GPUs contradict the reference. `is_split`: GPUs gave different results of which some agree, so
    one of them computes wrong, and nobody knows which.
    """

    expected: str = ""
    doubt: str = ""
    common_cause: bool = False
    is_split: bool = False
    by_others: bool = False


def find_most(digests: Mapping[int, str], voters: int) -> str:
    """Return the digest of more than half of the voters, "" if there is none."""
    digest, count = Counter(digests.values()).most_common(1)[0] if digests else ("", 0)
    return digest if 2 * count > voters else ""


def vote(
    digests: Mapping[int, str], voters: int, golden: str = "", others: Counts = NOBODY, other_names: str = ""
) -> VoteResult:
    """Return the result of a vote. `digests`: of the GPUs that gave one; `voters`: all GPUs of the kind.

    `others`: how many GPUs of other nodes computed what; `other_names`: these in words.
    """
    if not digests:
        return VoteResult(doubt="no GPU computed it")
    counts = Counter(digests.values()).most_common()
    (digest, most), losers = counts[0], [count for _, count in counts[1:]]
    agreed = _find_agreed(others)
    if agreed and golden in ("", agreed):
        all_agreeing = others[agreed] + dict(counts).get(agreed, 0)
        if all_agreeing >= LEAST_AGREEING and 4 * all_agreeing >= 3 * (voters + sum(others.values())):
            if digest == agreed or 2 * most <= voters:
                return VoteResult(agreed, by_others=True)
            doubt = f"{most} of {format_count(voters, 'GPU')} computed {digest}, and {other_names} computed {agreed}: "
            doubt += "suspect is the node, or what else they share"
            return VoteResult(doubt=doubt, common_cause=True, is_split=True)
    reference, whose = (golden, GOLDEN) if golden else (agreed, f"the digest of {other_names}")
    is_split = bool(losers) and (most > 1 or len(digests) == LEAST_VOTERS - 1)
    if reference and digest != reference and 2 * most > voters:
        return VoteResult(
            doubt=f"most GPUs computed {digest}, and {whose} is {reference}: suspects are {whose}, and a cause that "
            "they share, as a library",
            common_cause=True,
            is_split=bool(losers or others),
        )
    agreeing = dict(counts).get(reference, 0)
    if LEAST_GOLDEN_VOTERS <= agreeing == most and (not losers or 2 * agreeing >= voters):
        return VoteResult(reference, by_others=not golden)
    if voters < LEAST_VOTERS:
        words = f"{format_count(voters, 'GPU')} of a kind cannot outvote anybody: that takes {LEAST_VOTERS}"
        return VoteResult(doubt=words, is_split=is_split)
    doubt = _find_doubt(most, losers, voters)
    return VoteResult(doubt=doubt, is_split=is_split) if doubt else VoteResult(digest)


def _find_agreed(others: Counts) -> str:
    """Return what three quarters of the GPUs of other nodes computed, "" if there is nothing."""
    digest = max(others, key=lambda each: others[each], default="")
    return digest if digest and 4 * others[digest] >= 3 * sum(others.values()) else ""


def _find_doubt(most: int, losers: list[int], voters: int) -> str:
    """Return why the largest group of GPUs decides nothing, "" if it decides."""
    if losers and most == 1:
        return (
            f"{len(losers) + 1} GPUs computed {len(losers) + 1} different results: the test, not a GPU, may be at fault"
        )
    if losers and most == losers[0]:
        return f"a tie: {' to '.join(str(count) for count in (most, *losers))} of {voters} GPUs"
    if 2 * most <= voters:
        return f"no majority: at most {most} of {voters} GPUs agree"
    if losers and (most < LEAST_AGREEING or 4 * most < 3 * voters):
        return f"{most} of {voters} GPUs agree against {sum(losers)}: too few, without a golden digest"
    if max(losers, default=0) > 1:
        return f"{losers[0]} of {voters} GPUs agree on another result: they may be the healthy ones"
    return ""

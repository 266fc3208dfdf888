"""Which plug of each cable moves: of the ways to turn one chain of cables into another, the one with the least walking.

A chain alternates between cables as they are and as they will be; neighbours share the port that keeps its plug. Each
cable can be paired with the one before it or the one after, so there are two ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.fabric.discrepancy import Pair
from assay.model.cable import Cable, End

Step = tuple[bool, Cable]
"""Whether it is the cable as it will be, and the cable."""


def best_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that reuse the most cables, of equal ones those whose plugs move the least."""
    if len(pairs) < 2:
        return list(pairs)
    chain = _chain(pairs)
    return min((_paired(chain, 0), _paired(chain, 1)), key=_cost)


def shift(expected: Cable, observed: Cable) -> tuple[End, End, End]:
    """Return the end that both cables share, where the other plug is, and where it belongs."""
    seen = {end.at for end in observed.ends}
    kept = next(end for end in expected.ends if end.at in seen)
    right = next(end for end in expected.ends if end.at != kept.at)
    wrong = next(end for end in observed.ends if end.at != kept.at)
    return kept, wrong, right


def _chain(pairs: Sequence[Pair]) -> list[Step]:
    """Return the cables of pairs in the order of the walk: each shares a port with the next."""
    following = {end.at for cable in (pairs[1].expected, pairs[1].observed) if cable for end in cable.ends}
    expected_last = any(end.at in following for end in (pairs[0].expected.ends if pairs[0].expected else ()))
    chain: list[Step] = []
    for pair in pairs:
        both = [(True, pair.expected), (False, pair.observed)]
        chain += [(kind, cable) for kind, cable in (reversed(both) if expected_last else both) if cable]
    return chain


def _paired(chain: list[Step], start: int) -> list[Pair]:
    """Pair neighbours from `start` on; what is left over at either end stands alone."""
    found = [_alone(step) for step in chain[:start]]
    rest = chain[start:]
    found += [_both(*two) for two in zip(rest[::2], rest[1::2], strict=False)]
    return [*found, *([_alone(rest[-1])] if len(rest) % 2 else [])]


def _alone(step: Step) -> Pair:
    return Pair(step[1], None) if step[0] else Pair(None, step[1])


def _both(one: Step, other: Step) -> Pair:
    return Pair(one[1], other[1]) if one[0] else Pair(other[1], one[1])


def _cost(pairs: list[Pair]) -> tuple[int, int]:
    moved = [shift(pair.expected, pair.observed) for pair in pairs if pair.expected and pair.observed]
    return -len(moved), sum(_distance(wrong, right) for _, wrong, right in moved)


def _distance(wrong: End, right: End) -> int:
    """Rank how far a plug goes: on one device, in one rack, further."""
    if wrong.guid == right.guid:
        return 0
    return 1 if wrong.rack and wrong.rack == right.rack else 2

"""Whether warnings share a rack, a position, a SKU or a firmware more often than by chance: look there first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import comb

from assay.trends.peers.change_scores import GroupSize
from assay.trends.peers.change_warnings import ChangeWarning

TRAITS = ("rack", "position", "sku", "firmware")
LEAST_SHARED, MOST_P = 3, 0.01


def name_shared_groups(warnings: Sequence[ChangeWarning], groups: Iterable[GroupSize]) -> list[ChangeWarning]:
    """Return the warnings, each with the group that explains it best, "" for none.

    `groups`: of all series that were judged. p is hypergeometric, times the number of groups looked at.
    """
    sizes: dict[tuple[str, str], Counter[str]] = {}
    for one in groups:
        for trait in TRAITS:
            sizes.setdefault((one.name, trait), Counter())[getattr(one, trait)] += one.size
    named = []
    for warning in warnings:
        alike = [other for other in warnings if other.score.name == warning.score.name]
        explained = [_explain(warning, alike, trait, sizes[warning.score.name, trait]) for trait in TRAITS]
        p, group = min(explained)
        named.append(replace(warning, group=group) if p <= MOST_P else warning)
    return named


def _explain(
    warning: ChangeWarning, alike: Sequence[ChangeWarning], trait: str, sizes: Mapping[str, int]
) -> tuple[float, str]:
    """Return how probable so many warnings of one group are by chance, and the group in words."""
    group = str(getattr(warning.score, trait))
    shared = sum(getattr(other.score, trait) == group for other in alike)
    members, everybody = sizes.get(group, 0), sum(sizes.values())
    if not group or shared < LEAST_SHARED or members == everybody:
        return 1.0, ""
    p = min(1.0, _find_tail(shared, members, len(alike), everybody) * len(sizes))
    return p, f"{trait} {group}: {shared} of {members} (p {p:.2g})"


def _find_tail(shared: int, members: int, drawn: int, everybody: int) -> float:
    """Return the chance of `shared` or more of a group's `members` among `drawn` of `everybody`."""
    ways = sum(
        comb(members, hit) * comb(everybody - members, drawn - hit) for hit in range(shared, min(members, drawn) + 1)
    )
    return ways / comb(everybody, drawn)

"""Whether warnings share a rack, a batch, a firmware or the like more often than by chance: look there first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.decide.trends.change_warnings import ChangeWarning
from assay.decide.trends.fleet_tables import SHARED_TRAITS
from assay.decide.trends.warning_answers import SharedGroup
from assay.model.peer_statistics import compute_shared_tail

LEAST_SHARED, MOST_P = 3, 0.01


def name_shared_groups(
    warnings: Sequence[ChangeWarning], members: Mapping[tuple[str, int], Counter[str]]
) -> tuple[list[ChangeWarning], list[SharedGroup]]:
    """Return the warnings, each with the group that explains it best, "" for none; and the groups, the surest first.

    `members`: of all series that were judged, by measurement and trait. p is hypergeometric, times the number
    of groups looked at.
    """
    groups = {}
    for index, warning in enumerate(warnings):
        alike = [other for other in warnings if other.score.name == warning.score.name]
        explained = (_explain(warning, alike, place, members) for place in range(len(SHARED_TRAITS)))
        if sure := [group for group in explained if group and group.p <= MOST_P]:
            groups[index] = min(sure, key=lambda group: group.p)
    named = [
        replace(warning, group=groups[index].title) if index in groups else warning
        for index, warning in enumerate(warnings)
    ]
    return named, sorted(set(groups.values()), key=lambda group: (group.p, group.title))


def _explain(
    warning: ChangeWarning, alike: Sequence[ChangeWarning], place: int, every: Mapping[tuple[str, int], Counter[str]]
) -> SharedGroup | None:
    """Return the group of a trait, with how probable so many warnings of it are by chance; None for too few."""
    value, sizes = warning.score.traits[place], every[warning.score.name, place]
    shared = sum(other.score.traits[place] == value for other in alike)
    members, everybody = sizes[value], sizes.total()
    if not value or shared < LEAST_SHARED or members == everybody:
        return None
    p = min(1.0, compute_shared_tail(shared, members, len(alike), everybody) * len(sizes))
    trait, name = SHARED_TRAITS[place], warning.score.name
    because = f"{trait} {value}: {shared} of {members} (p {p:.2g}): {name}. Look there first"
    return SharedGroup(trait, value, name, shared, members, p, because)

"""Finds where failures cluster: the place or property that explains them best. Pure statistics, without a fleet.

A *member* is anything judged (a node, a GPU, an adapter); a *group* is a place or property that members share
(`("rack", "r07")`). A group explains failures when its members fail at least MIN_LIFT times as often as others. That
must be unlikely by chance (Fisher's exact test, one-sided, times the number of groups), or no other member may fail.
The best group is taken, and the search continues with the failures outside of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from assay.fabric.weekly.transceiver_batches import compute_hypergeometric_tail

MIN_MEMBERS, MIN_LIFT, MAX_CHANCE = 2, 2.0, 0.05
EVERYWHERE_SHARE = 0.5
"""Where no group explains failures, and at least this share of all members fails, they fail everywhere."""
MAX_PLACES = 25

M = TypeVar("M", bound=Hashable)
TraitGroup = tuple[str, str]
EVERYWHERE_GROUP: TraitGroup = ("", "everywhere")
UNRELATED_GROUP: TraitGroup = ("", "nothing in common")


@dataclass(frozen=True, slots=True)
class ClusterPlace(Generic[M]):
    """A group that explains failures. Of its `judged` members, `members` fail; of the `others`, `elsewhere` fail.

    `chance` is the probability of that if the group is no worse than others. `also` are groups that explain as much.
    """

    group: TraitGroup
    members: tuple[M, ...]
    judged: int
    elsewhere: int = 0
    others: int = 0
    chance: float = 0.0
    also: tuple[TraitGroup, ...] = ()

    @property
    def lift(self) -> float:
        """The failure rate of its members relative to that of others; where no other fails, half a failure counts."""
        return _lift(len(self.members), self.judged, self.elsewhere, self.others)

    @property
    def sure(self) -> bool:
        """Whether it is unlikely by chance."""
        return self.group != UNRELATED_GROUP and self.chance <= MAX_CHANCE


@dataclass(frozen=True, slots=True)
class _GroupFit:
    """How well a group explains the failures that are left."""

    group: TraitGroup
    count: int
    judged: int
    elsewhere: int
    others: int
    chance: float

    @property
    def good(self) -> bool:
        lift = _lift(self.count, self.judged, self.elsewhere, self.others)
        return lift >= MIN_LIFT and (self.chance <= MAX_CHANCE or self.elsewhere == 0)


def explain_failures(
    failing: Collection[M], groups: Mapping[M, Iterable[TraitGroup]], sizes: Mapping[TraitGroup, int]
) -> list[ClusterPlace[M]]:
    """Return the places that explain `failing`, the best first; each failing member is in exactly one place.

    `groups` are those of each failing member, preferred ones first. `sizes` are the numbers of judged members of each
    group, and under EVERYWHERE_GROUP of all. The last place holds the members that no group explains.
    """
    left, places = list(failing), list[ClusterPlace[M]]()
    while len(left) >= MIN_MEMBERS and len(places) < MAX_PLACES:
        fits = _fit_groups(left, groups, sizes)
        best = min((fit for fit in fits if fit.good), key=lambda fit: (fit.chance, fit.judged), default=None)
        if best is None:
            break
        inside = tuple(member for member in left if best.group in groups[member])
        same = (best.count, best.judged)
        also = tuple(fit.group for fit in fits if (fit.count, fit.judged) == same and fit.group != best.group)
        places.append(ClusterPlace(best.group, inside, best.judged, best.elsewhere, best.others, best.chance, also))
        left = [member for member in left if best.group not in groups[member]]
    if left:
        everywhere = not places and len(left) >= max(MIN_MEMBERS, EVERYWHERE_SHARE * sizes[EVERYWHERE_GROUP])
        group, chance = (EVERYWHERE_GROUP, 0.0) if everywhere else (UNRELATED_GROUP, 1.0)
        places.append(ClusterPlace(group, tuple(left), sizes[EVERYWHERE_GROUP], chance=chance))
    return places


def _fit_groups(
    left: Sequence[M], groups: Mapping[M, Iterable[TraitGroup]], sizes: Mapping[TraitGroup, int]
) -> list[_GroupFit]:
    """Return the fit of every group with at least MIN_MEMBERS of the members that are left."""
    counts = Counter(group for member in left for group in groups[member])
    total = max(sizes[EVERYWHERE_GROUP], len(left))
    fits = []
    for group, count in counts.items():
        judged = min(max(sizes[group], count), total - (len(left) - count))
        if count >= MIN_MEMBERS and judged < total:
            chance = min(1.0, len(counts) * compute_hypergeometric_tail(count, judged, len(left), total))
            fits.append(_GroupFit(group, count, judged, len(left) - count, total - judged, chance))
    return fits


def _lift(count: int, judged: int, elsewhere: int, others: int) -> float:
    return count / judged / (max(elsewhere, 0.5) / max(others, 1))

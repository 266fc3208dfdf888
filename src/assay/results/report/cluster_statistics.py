"""Where failures are clustered: the place or property that explains them best. Pure; knows no fleet.

A *member* is whatever was judged (a node, a GPU, an adapter); a *group* is a place or property that members share
(`("rack", "r07")`). A group explains failures when its members fail at least `MIN_LIFT` times as often as the others, and
that is hardly by chance (Fisher's exact test, one-sided, times the groups looked at), or when no other member fails.
The best is taken, its failures are explained, and what is left is looked at again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from assay.fabric.weekly.transceiver_batches import compute_hypergeometric_tail

MIN_MEMBERS, MIN_LIFT, MAX_CHANCE = 2, 2.0, 0.05
EVERYWHERE_SHARE = 0.5
"""Where so large a share of all fails, and no group stands out, it fails everywhere."""
MAX_PLACES = 25
"""So many places are told; what is left then is told as being in none."""

M = TypeVar("M", bound=Hashable)
TraitGroup = tuple[str, str]
EVERYWHERE_GROUP: TraitGroup = ("", "everywhere")
UNRELATED_GROUP: TraitGroup = ("", "nothing in common")


@dataclass(frozen=True, slots=True)
class ClusterPlace(Generic[M]):
    """A group that explains failures: its `members` fail, of `judged`; of all `others`, `elsewhere` fail.

    `compute_hypergeometric_tail` is how likely that is where the group is no worse than others. `also` are groups that explain as much.
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
        """How many times as often its members fail as others do; where no other fails, as if half a one did."""
        return _lift(len(self.members), self.judged, self.elsewhere, self.others)

    @property
    def sure(self) -> bool:
        """Whether it is hardly by chance."""
        return self.group != UNRELATED_GROUP and self.chance <= MAX_CHANCE


@dataclass(frozen=True, slots=True)
class _GroupFit:
    """How well a group explains what is left."""

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
    """Return what explains `failing`, the best first; each failing member is in exactly one place.

    `groups` says which groups a failing member belongs to, those that people would rather hear of first; `sizes` how
    many of all judged members a group has, and `sizes[ALL]` how many were judged. What nothing explains comes last.
    """
    left, found = list(failing), list[ClusterPlace[M]]()
    while len(left) >= MIN_MEMBERS and len(found) < MAX_PLACES:
        looks = _fit_groups(left, groups, sizes)
        best = min((look for look in looks if look.good), key=lambda look: (look.chance, look.judged), default=None)
        if best is None:
            break
        inside = tuple(member for member in left if best.group in groups[member])
        same = (best.count, best.judged)
        also = tuple(look.group for look in looks if (look.count, look.judged) == same and look.group != best.group)
        found.append(ClusterPlace(best.group, inside, best.judged, best.elsewhere, best.others, best.chance, also))
        left = [member for member in left if best.group not in groups[member]]
    if left:
        everywhere = not found and len(left) >= max(MIN_MEMBERS, EVERYWHERE_SHARE * sizes[EVERYWHERE_GROUP])
        found.append(
            ClusterPlace(
                EVERYWHERE_GROUP if everywhere else UNRELATED_GROUP,
                tuple(left),
                sizes[EVERYWHERE_GROUP],
                chance=0.0 if everywhere else 1.0,
            )
        )
    return found


def _fit_groups(
    left: Sequence[M], groups: Mapping[M, Iterable[TraitGroup]], sizes: Mapping[TraitGroup, int]
) -> list[_GroupFit]:
    """Look at every group that holds enough of what is left."""
    counts = Counter(group for member in left for group in groups[member])
    every = max(sizes[EVERYWHERE_GROUP], len(left))
    found = []
    for group, count in counts.items():
        judged = min(max(sizes[group], count), every - (len(left) - count))
        if count >= MIN_MEMBERS and judged < every:
            by_chance = min(1.0, len(counts) * compute_hypergeometric_tail(count, judged, len(left), every))
            found.append(_GroupFit(group, count, judged, len(left) - count, every - judged, by_chance))
    return found


def _lift(count: int, judged: int, elsewhere: int, others: int) -> float:
    return count / judged / (max(elsewhere, 0.5) / max(others, 1))

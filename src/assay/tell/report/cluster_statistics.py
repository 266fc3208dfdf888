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
from functools import cached_property
from typing import Generic, TypeVar

from assay.fabric.design.compiler import compile_topology
from assay.fabric.weekly.peers import compute_hypergeometric_tail
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import read_part, read_whole

MIN_MEMBERS, MIN_LIFT, MAX_CHANCE = 2, 2.0, 0.05
EVERYWHERE_SHARE = 0.5
"""Where no group explains failures, and at least this share of all members fails, they fail everywhere."""
MAX_PLACES = 25

M = TypeVar("M", bound=Hashable)
TraitGroup = tuple[str, str]
EVERYWHERE_GROUP: TraitGroup = ("", "everywhere")
UNRELATED_GROUP: TraitGroup = ("", "nothing in common")
GUID_BATCH_DIGITS = 14
"""Length of an adapter's GUID without the last four digits: adapters of one production batch share that prefix."""


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


class SubjectTraits:
    """The groups of subjects, computed once each, in order of preference.

    Switches are groups only in the fabrics of `broken` nodes, since no other switch can explain anything.
    """

    def __init__(self, fleet: Fleet, broken: Iterable[str]) -> None:
        self._fleet = fleet
        nodes = (fleet.nodes[name] for name in broken if name in fleet.nodes)
        self._fabrics = {node.settings.fabric or "" for node in nodes} & {*fleet.designs}
        self._of: dict[str, tuple[TraitGroup, ...]] = {}
        self._nodes: dict[str, tuple[TraitGroup, ...]] = {}
        self._leaves: dict[str, Mapping[tuple[str, str], str]] = {}

    def of(self, subject: str, holder: str) -> tuple[TraitGroup, ...]:
        """Return the groups of a subject. `holder` is its node, rack or fabric."""
        if subject not in self._of:
            self._of[subject] = self._groups(subject, self._fleet.nodes.get(holder))
        return self._of[subject]

    def _groups(self, subject: str, node: Node | None) -> tuple[TraitGroup, ...]:
        part = read_part(subject)
        if node is None:
            scope, name = read_whole(subject).split("/")
            return (("fabric", name),) if scope == "fabric" else (("rack", name.removeprefix("rack-")), ("pool", scope))
        if node.name not in self._nodes:
            self._nodes[node.name] = tuple(self._node_groups(node))
        if not part:
            return self._nodes[node.name]
        leaf = self._leaf(node, part)
        own: list[TraitGroup] = [("node", node.name), *([("leaf", leaf)] if leaf else [])]
        return (*own, *self._nodes[node.name], ("slot", part))

    def _node_groups(self, node: Node) -> list[TraitGroup]:
        """Return the groups of a node, which its parts belong to as well."""
        spec = self._fleet.node_specs.get(node.spec)
        groups = [("rack", node.rack), ("pool", node.pool)]
        groups += [("firmware", spec.firmware)] if spec and spec.firmware else []
        groups += [("adapters", node.hca_guids[0][:GUID_BATCH_DIGITS])] if node.hca_guids else []
        groups += [("spec", node.spec), ("profile", node.profile)]
        return [*groups, ("site", node.site)] if self._sites > 1 else groups

    @cached_property
    def _sites(self) -> int:
        return len({node.site for node in self._fleet.nodes.values()})

    def _leaf(self, node: Node, part: str) -> str:
        name = node.settings.fabric or ""
        spec = self._fleet.node_specs.get(node.spec)
        if name not in self._fabrics or spec is None or all(part != hca.name for hca in spec.hcas):
            return ""
        if name not in self._leaves:
            self._leaves[name] = self._find_leaves(name)
        return self._leaves[name].get((node.name, part), "")

    def _find_leaves(self, design: str) -> Mapping[tuple[str, str], str]:
        """Return the leaf switch of each node and adapter of a fabric; none where the design cannot be compiled."""
        try:
            cables = compile_topology(self._fleet.designs[design], self._fleet).cables
        except AssayError:
            return {}
        return {
            (end.node, end.device.rpartition(" ")[2]): far_end.device
            for cable in cables
            for end, far_end in (cable.ends, cable.ends[::-1])
            if end.node and not far_end.node
        }

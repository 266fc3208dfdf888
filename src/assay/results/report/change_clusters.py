"""Clusters changes: one cluster for all checks that changed in the same place.

`SubjectTraits` gives what a subject shares with others: place, parts, and the specs that it was judged by.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from assay.fabric.topology.design_compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.results.report.cluster_statistics import EVERYWHERE_GROUP, UNRELATED_GROUP, TraitGroup, explain_failures
from assay.results.report.latest_outcomes_database import FAILING, PASSING, UNKNOWN
from assay.results.report.latest_outcomes_reader import LatestOutcomes
from assay.results.report.status_changes import StatusChange

GUID_BATCH_DIGITS = 14
"""Length of an adapter's GUID without the last four digits: adapters of one production batch share that prefix."""


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
        part = subject.split("/", 2)[2] if subject.count("/") > 1 else ""
        if node is None:
            scope, name = subject.split("/")[:2]
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
        groups += [("firmware", spec.firmware)] if spec else []
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


JudgedPopulation = tuple[tuple[str, str, str], ...]
"""The subjects that a check judged: subject, holder, and the specs that it was judged by."""


@dataclass(frozen=True, slots=True)
class ChangeCluster:
    """Changes that one `group` explains. `judged` is the number of holders in the group.

    `sure`: the cluster is unlikely by chance. `also` are groups that explain as much.
    """

    group: TraitGroup
    changes: tuple[StatusChange, ...]
    judged: int
    sure: bool = True
    also: tuple[TraitGroup, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that changed, the most frequent first."""
        return tuple(check for check, _ in Counter(change.check for change in self.changes).most_common())

    @property
    def holders(self) -> tuple[str, ...]:
        """The nodes, racks and fabrics with these changes."""
        return tuple(dict.fromkeys(change.holder for change in self.changes))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons of the changes, the most frequent first."""
        return tuple(reason for reason, _ in Counter(change.reason for change in self.changes).most_common())


def cluster_changes(
    latest: LatestOutcomes, traits: SubjectTraits, changed: Sequence[StatusChange]
) -> list[ChangeCluster]:
    """Return the clusters, the widest first, and last the changes that have nothing in common.

    Checks that changed on several holders are explained by groups; other changes are clustered by holder.
    """
    by_check: dict[str, list[StatusChange]] = defaultdict(list)
    for change in changed:
        by_check[change.check].append(change)
    spread = {check: changes for check, changes in by_check.items() if len({each.holder for each in changes}) > 1}
    single = [change for check, changes in by_check.items() if check not in spread for change in changes]
    clusters: dict[TraitGroup, list[ChangeCluster]] = defaultdict(list)
    for cluster in _explain_spread_checks(latest, traits, spread):
        clusters[cluster.group].append(cluster)
    single += [change for cluster in clusters.pop(UNRELATED_GROUP, ()) for change in cluster.changes]
    for cluster in _cluster_by_holder(single):
        clusters[cluster.group].append(cluster)
    unrelated = clusters.pop(UNRELATED_GROUP, [])
    joined = [_join_clusters(of_group) for of_group in clusters.values()]
    return [
        *sorted(joined, key=lambda cluster: (-len(cluster.holders), -len(cluster.changes), cluster.group)),
        *unrelated,
    ]


def _explain_spread_checks(
    latest: LatestOutcomes, traits: SubjectTraits, spread: Mapping[str, list[StatusChange]]
) -> Iterator[ChangeCluster]:
    """Yield the clusters of checks that changed on several holders.

    Checks that changed on the same subjects, of the same judged population, are explained once.
    """
    populations = _read_populations(latest, spread)
    alike: dict[tuple[frozenset[str], int], list[str]] = defaultdict(list)
    for check, changes in spread.items():
        alike[frozenset(change.subject for change in changes), hash(populations[check])].append(check)
    sizes_of: dict[int, _PopulationSizes] = {}
    for (_, key), checks in alike.items():
        sizes = sizes_of.setdefault(key, _PopulationSizes(traits, populations[checks[0]]))
        yield from _cluster_checks(traits, sizes, [spread[check] for check in checks])


class _PopulationSizes:
    """The number of members, and the holders, of each group of a population."""

    def __init__(self, traits: SubjectTraits, population: JudgedPopulation) -> None:
        self.specs = {subject: spec for subject, _, spec in population}
        self.mixed = len(set(self.specs.values())) > 1
        self.members: Counter[TraitGroup] = Counter(
            {EVERYWHERE_GROUP: len(population), UNRELATED_GROUP: len(population)}
        )
        self.holders: dict[TraitGroup, set[str]] = defaultdict(set)
        for subject, holder, _ in population:
            for group in self.groups(traits, subject, holder):
                self.members[group] += 1
                self.holders[group].add(holder)
        self.holders[EVERYWHERE_GROUP] = self.holders[UNRELATED_GROUP] = {holder for _, holder, _ in population}

    def groups(self, traits: SubjectTraits, subject: str, holder: str) -> tuple[TraitGroup, ...]:
        """Return the groups of a subject; its specs are one where members were judged by different specs."""
        groups = traits.of(subject, holder)
        return (*groups, ("judged by", self.specs[subject])) if self.mixed and subject in self.specs else groups


def _cluster_checks(
    traits: SubjectTraits, sizes: _PopulationSizes, changed: Sequence[list[StatusChange]]
) -> Iterable[ChangeCluster]:
    """Yield the clusters of checks that changed on the same subjects."""
    groups = {change.subject: sizes.groups(traits, change.subject, change.holder) for change in changed[0]}
    for place in explain_failures(list(groups), groups, sizes.members):
        inside = set(place.members)
        of_place = tuple(change for changes in changed for change in changes if change.subject in inside)
        yield ChangeCluster(place.group, of_place, len(sizes.holders[place.group]), place.sure, place.also)


def _join_clusters(clusters: Sequence[ChangeCluster]) -> ChangeCluster:
    """Return one cluster of several in the same group."""
    changes = tuple(change for cluster in clusters for change in cluster.changes)
    also = [group for group in clusters[0].also if all(group in cluster.also for cluster in clusters)]
    judged, sure = max(cluster.judged for cluster in clusters), any(cluster.sure for cluster in clusters)
    return ChangeCluster(clusters[0].group, changes, judged, sure, tuple(also))


def _cluster_by_holder(single: Sequence[StatusChange]) -> Iterator[ChangeCluster]:
    """Yield a cluster for each holder with several changes, and one for all other changes."""
    by_holder: dict[str, list[StatusChange]] = defaultdict(list)
    for change in single:
        by_holder[change.holder].append(change)
    rest = []
    for holder, changes in by_holder.items():
        if len(changes) > 1:
            yield ChangeCluster(("node", holder), tuple(changes), 1)
        else:
            rest += changes
    if len(rest) == 1:
        yield ChangeCluster(("node", rest[0].holder), tuple(rest), 1)
    elif rest:
        yield ChangeCluster(UNRELATED_GROUP, tuple(rest), len(rest), sure=False)


def _read_populations(latest: LatestOutcomes, checks: Iterable[str]) -> dict[str, JudgedPopulation]:
    """Return the judged population of each check, without skips."""
    execute = latest.connection.execute
    populations: dict[str, list[tuple[str, str, str]]] = {name: [] for name in checks}
    names = {key: name for key, name in execute("SELECT id, name FROM check_") if name in populations}
    subjects = {key: (name, holder) for key, name, holder in execute("SELECT id, name, holder FROM subject")}
    specs = {run.n: run.spec for run in latest.list_reported_runs()}
    query = f"""SELECT check_, subject, run FROM state
        WHERE check_ IN ({", ".join(map(str, names))}) AND stands IN ({PASSING}, {FAILING}, {UNKNOWN})"""
    for check, subject, run in execute(query):
        populations[names[check]].append((*subjects[subject], specs[run]))
    return {name: tuple(rows) for name, rows in populations.items()}

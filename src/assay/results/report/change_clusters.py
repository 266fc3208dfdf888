"""Changes brought together: one cluster for all checks that broke in the same place.

What a subject shares with others: its place, what it is made of, and by which specs it was judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from assay.fabric.topology.design_compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.results.report.cluster_statistics import EVERYWHERE_GROUP, UNRELATED_GROUP, TraitGroup, explain_failures
from assay.results.report.latest_outcomes import LatestOutcomes
from assay.results.report.latest_outcomes_schema import FAILING, PASSING, UNKNOWN
from assay.results.report.status_changes import StatusChange

GUID_BATCH_DIGITS = 14
"""An adapter's GUID without its last four digits, `0x` counted: those that came out of one box share it."""


class SubjectTraits:
    """The groups of subjects, looked up once each; those that people would rather hear of come first.

    Switches are told of the fabrics of `broken` nodes only, as no other switch can explain anything.
    """

    def __init__(self, fleet: Fleet, broken: Iterable[str]) -> None:
        self._fleet = fleet
        nodes = (fleet.nodes[name] for name in broken if name in fleet.nodes)
        self._fabrics = {node.settings.fabric or "" for node in nodes} & {*fleet.designs}
        self._of: dict[str, tuple[TraitGroup, ...]] = {}
        self._nodes: dict[str, tuple[TraitGroup, ...]] = {}
        self._leaves: dict[str, Mapping[tuple[str, str], str]] = {}

    def of(self, subject: str, holder: str) -> tuple[TraitGroup, ...]:
        """Return the groups of a subject of a holder (a node, or else a rack or fabric)."""
        if subject not in self._of:
            self._of[subject] = self._groups(subject, self._fleet.nodes.get(holder))
        return self._of[subject]

    def _groups(self, subject: str, node: Node | None) -> tuple[TraitGroup, ...]:
        part = subject.split("/", 2)[2] if subject.count("/") > 1 else ""
        if node is None:
            scope, name = subject.split("/")[:2]
            return (("fabric", name),) if scope == "fabric" else (("rack", name.removeprefix("rack-")), ("pool", scope))
        if node.name not in self._nodes:
            self._nodes[node.name] = tuple(self._shared(node))
        if not part:
            return self._nodes[node.name]
        leaf = self._leaf(node, part)
        own: list[TraitGroup] = [("node", node.name), *([("leaf", leaf)] if leaf else [])]
        return (*own, *self._nodes[node.name], ("slot", part))

    def _shared(self, node: Node) -> list[TraitGroup]:
        """Return what a node and its parts share with others."""
        spec = self._fleet.node_specs.get(node.spec)
        found = [("rack", node.rack), ("pool", node.pool)]
        found += [("firmware", spec.firmware)] if spec else []
        found += [("adapters", node.hca_guids[0][:GUID_BATCH_DIGITS])] if node.hca_guids else []
        found += [("spec", node.spec), ("profile", node.profile)]
        return [*found, ("site", node.site)] if self._sites > 1 else found

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
        """Return the switch that each adapter of a fabric hangs on; nothing where the design cannot be compiled."""
        try:
            cables = compile_topology(self._fleet.designs[design], self._fleet).cables
        except AssayError:
            return {}
        return {
            (one.node, one.device.rpartition(" ")[2]): other.device
            for cable in cables
            for one, other in (cable.ends, cable.ends[::-1])
            if one.node and not other.node
        }


CheckSubject = tuple[str, str]
JudgedPopulation = tuple[tuple[str, str, str], ...]
"""Who was judged by a check: subject, its holder, and the specs by which it was."""


@dataclass(frozen=True, slots=True)
class ChangeCluster:
    """What broke together in one `group`: `changes` on `holders`, of the `judged` holders that the group has.

    `sure` where that is hardly by chance; `also` are groups that explain as much.
    """

    group: TraitGroup
    changes: tuple[StatusChange, ...]
    judged: int
    sure: bool = True
    also: tuple[TraitGroup, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that broke, the one that did so most often first."""
        return tuple(check for check, _ in Counter(change.check for change in self.changes).most_common())

    @property
    def holders(self) -> tuple[str, ...]:
        """The nodes, racks and fabrics that they broke on."""
        return tuple(dict.fromkeys(change.holder for change in self.changes))

    @property
    def reasons(self) -> tuple[str, ...]:
        """What was said, the commonest first."""
        return tuple(reason for reason, _ in Counter(change.reason for change in self.changes).most_common())


def cluster_changes(
    standing: LatestOutcomes, traits: SubjectTraits, changed: Sequence[StatusChange]
) -> list[ChangeCluster]:
    """Return what broke together, the widest first, and last what has nothing in common with anything."""
    by_check: dict[str, list[StatusChange]] = defaultdict(list)
    for change in changed:
        by_check[change.check].append(change)
    spread = {check: changes for check, changes in by_check.items() if len({one.holder for one in changes}) > 1}
    alone = [change for check, changes in by_check.items() if check not in spread for change in changes]
    alike: dict[tuple[frozenset[str], int], list[str]] = defaultdict(list)
    judged = _populations(standing, spread)
    for check, changes in spread.items():
        alike[frozenset(change.subject for change in changes), hash(judged[check])].append(check)
    sized: dict[int, _PopulationSizes] = {}
    gathered: dict[TraitGroup, list[ChangeCluster]] = defaultdict(list)
    for (_, key), checks in alike.items():
        sizes = sized.setdefault(key, _PopulationSizes(traits, judged[checks[0]]))
        for found in _cluster_checks(traits, sizes, [spread[check] for check in checks]):
            gathered[found.group].append(found)
    alone += [change for one in gathered.pop(UNRELATED_GROUP, ()) for change in one.changes]
    for found in _cluster_by_holder(alone):
        gathered[found.group].append(found)
    rest = gathered.pop(UNRELATED_GROUP, [])
    whole = [_join_clusters(found) for found in gathered.values()]
    return [*sorted(whole, key=lambda one: (-len(one.holders), -len(one.changes), one.group)), *rest]


class _PopulationSizes:
    """How many members, and which holders, each group of a population has."""

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
        """Return the groups of a subject; the specs it was judged by are one where not all were judged by the same."""
        groups = traits.of(subject, holder)
        return (*groups, ("judged by", self.specs[subject])) if self.mixed and subject in self.specs else groups


def _cluster_checks(
    traits: SubjectTraits, sizes: _PopulationSizes, changed: Sequence[list[StatusChange]]
) -> Iterable[ChangeCluster]:
    """Yield the clusters of checks that broke on the very same subjects."""
    groups = {change.subject: sizes.groups(traits, change.subject, change.holder) for change in changed[0]}
    for place in explain_failures(list(groups), groups, sizes.members):
        inside = set(place.members)
        held = tuple(change for changes in changed for change in changes if change.subject in inside)
        yield ChangeCluster(place.group, held, len(sizes.holders[place.group]), place.sure, place.also)


def _join_clusters(found: Sequence[ChangeCluster]) -> ChangeCluster:
    """Return one cluster of several in the same group."""
    changes = tuple(change for one in found for change in one.changes)
    also = [group for group in found[0].also if all(group in one.also for one in found)]
    judged, sure = max(one.judged for one in found), any(one.sure for one in found)
    return ChangeCluster(found[0].group, changes, judged, sure, tuple(also))


def _cluster_by_holder(alone: Sequence[StatusChange]) -> Iterable[ChangeCluster]:
    """Yield a cluster for each holder on which several things broke, and one of all the rest."""
    by_holder: dict[str, list[StatusChange]] = defaultdict(list)
    for change in alone:
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


def _populations(standing: LatestOutcomes, checks: Mapping[str, object]) -> dict[str, JudgedPopulation]:
    """Return who was judged by each check, skips left out."""
    ask = standing.connection.execute
    numbers = {n: name for n, name in ask("SELECT id, name FROM check_") if name in checks}
    subjects = {n: (name, holder) for n, name, holder in ask("SELECT id, name, holder FROM subject")}
    specs = {point.n: point.spec for point in standing.list_reported_runs()}
    found: dict[str, list[tuple[str, str, str]]] = {name: [] for name in checks}
    wanted = ", ".join(map(str, numbers))
    stands = f"{PASSING}, {FAILING}, {UNKNOWN}"
    query = f"SELECT check_, subject, run FROM state WHERE check_ IN ({wanted}) AND stands IN ({stands})"
    for check, subject, run in ask(query):
        found[numbers[check]].append((*subjects[subject], specs[run]))
    return {name: tuple(rows) for name, rows in found.items()}

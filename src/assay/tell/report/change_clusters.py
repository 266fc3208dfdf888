"""Clusters changes: one cluster for one cause, with the places where it is; causes of one place are one cluster.

A cause is a check and a reason (`failure_causes`). Its places are found afterwards, so that one cause in many racks is
one cluster.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from assay.tell.report.cluster_statistics import (
    EVERYWHERE_GROUP,
    UNRELATED_GROUP,
    SubjectTraits,
    TraitGroup,
    explain_failures,
)
from assay.tell.report.latest_outcomes import FAILING, PASSING, UNKNOWN, LatestOutcomes
from assay.tell.report.status_changes import StatusChange

SEVERAL_PLACES_GROUP: TraitGroup = ("", "several places")
"""The group of a cause that no single place explains."""
PLACE_KINDS = ("node", "leaf", "rack")
"""Causes in the same node, switch or rack are one cluster; causes of the same pool or spec need the same nodes too."""

JudgedPopulation = Mapping[str, tuple[str, str]]
"""The subjects that checks judged: for each its holder, and the specs that it was judged by."""


@dataclass(frozen=True, slots=True)
class PlaceShare:
    """How many `holders` of the `judged` ones in a group a cause has."""

    group: TraitGroup
    holders: int
    judged: int


@dataclass(frozen=True, slots=True)
class CauseSummary:
    """A cause within a cluster: the check, or the number of `checks` that share a reason, and one reason of all."""

    check: str
    checks: int
    reason: str
    holders: int


@dataclass(frozen=True, slots=True)
class ChangeCluster:
    """Changes that one `group` explains, or one cause in several `places`. `judged`: the holders in the group.

    `sure`: the cluster is unlikely by chance. `also` are groups that explain as much.
    """

    group: TraitGroup
    changes: tuple[StatusChange, ...]
    judged: int
    sure: bool = True
    also: tuple[TraitGroup, ...] = ()
    places: tuple[PlaceShare, ...] = ()

    @property
    def checks(self) -> tuple[str, ...]:
        """The checks that changed, the most frequent first."""
        return tuple(check for check, _ in Counter(change.check for change in self.changes).most_common())

    @property
    def holders(self) -> tuple[str, ...]:
        """The nodes, racks and fabrics with these changes."""
        return tuple(dict.fromkeys(change.holder for change in self.changes))

    @property
    def causes(self) -> list[CauseSummary]:
        """The causes, the widest first."""
        causes = []
        for changes in _group_by_cause(self.changes):
            checks, holders = {change.check for change in changes}, {change.holder for change in changes}
            causes.append(CauseSummary(changes[0].check, len(checks), changes[0].reason, len(holders)))
        return sorted(causes, key=lambda cause: (-cause.holders, -cause.checks))


def cluster_changes(
    latest: LatestOutcomes, traits: SubjectTraits, changed: Sequence[StatusChange]
) -> list[ChangeCluster]:
    """Return the clusters, the widest first, and last the changes that have nothing in common.

    A cause on several holders is one cluster. Where a check has another reason on each holder, its places are
    clusters. All other changes are clustered by holder.
    """
    populations = _Populations(latest, traits, {change.check for change in changed})
    causes = _group_by_cause(changed)
    clusters = [populations.explain_cause(cause) for cause in causes if _is_spread(cause)]
    single = [change for cause in causes if not _is_spread(cause) for change in cause]
    by_check: dict[str, list[StatusChange]] = defaultdict(list)
    for change in single:
        by_check[change.check].append(change)
    single = []
    for changes in by_check.values():
        of_check = list(populations.explain_check(changes)) if _is_spread(changes) else []
        clusters += of_check
        explained = {id(change) for cluster in of_check for change in cluster.changes}
        single += [change for change in changes if id(change) not in explained]
    *of_holders, rest = _cluster_by_holder(single)
    joined = _join_alike([*clusters, *of_holders])
    widest_first = sorted(
        joined, key=lambda cluster: (-len(cluster.holders), -len(cluster.changes), cluster.group, cluster.holders)
    )
    return [*widest_first, *([rest] if rest.changes else [])]


def _group_by_cause(changes: Iterable[StatusChange]) -> list[list[StatusChange]]:
    groups: dict[Hashable, list[StatusChange]] = defaultdict(list)
    for change in changes:
        groups[change.cause].append(change)
    return list(groups.values())


def _is_spread(changes: Iterable[StatusChange]) -> bool:
    return len({change.holder for change in changes}) > 1


class _Populations:
    """What `checks` judged. Explains changes by the groups of what was judged; equal questions are answered once."""

    def __init__(self, latest: LatestOutcomes, traits: SubjectTraits, checks: Iterable[str]) -> None:
        self._traits = traits
        self._of_check = _read_populations(latest, checks)
        self._sizes: dict[frozenset[int], _PopulationSizes] = {}

    def explain_cause(self, changes: Sequence[StatusChange]) -> ChangeCluster:
        """Return one cluster, whatever the number of places."""
        places = list(self._list_places(changes))
        if len(places) == 1:
            return places[0]
        shares = tuple(PlaceShare(place.group, len(place.holders), place.judged) for place in places)
        judged = len(self._measure({change.check for change in changes}).holders[EVERYWHERE_GROUP])
        sure = any(place.sure for place in places)
        return ChangeCluster(SEVERAL_PLACES_GROUP, tuple(changes), judged, sure, places=shares)

    def explain_check(self, changes: Sequence[StatusChange]) -> Iterator[ChangeCluster]:
        """Yield a cluster for each place; nothing for changes that no place explains."""
        yield from (place for place in self._list_places(changes) if place.group != UNRELATED_GROUP)

    def _list_places(self, changes: Sequence[StatusChange]) -> Iterator[ChangeCluster]:
        sizes = self._measure({change.check for change in changes})
        groups = {change.subject: sizes.groups(self._traits, change.subject, change.holder) for change in changes}
        for place in explain_failures(list(groups), groups, sizes.members):
            inside = set(place.members)
            of_place = tuple(change for change in changes if change.subject in inside)
            yield ChangeCluster(place.group, of_place, len(sizes.holders[place.group]), place.sure, place.also)

    def _measure(self, checks: Iterable[str]) -> _PopulationSizes:
        """Return the sizes of all that these checks judged. Most checks judge the same subjects: these count once."""
        distinct = {id(self._of_check[check]): self._of_check[check] for check in checks}
        key = frozenset(distinct)
        if key not in self._sizes:
            whole = dict(chain.from_iterable(population.items() for population in distinct.values()))
            self._sizes[key] = _PopulationSizes(self._traits, whole)
        return self._sizes[key]


class _PopulationSizes:
    """The number of members, and the holders, of each group of a population."""

    def __init__(self, traits: SubjectTraits, population: JudgedPopulation) -> None:
        self.specs = {subject: spec for subject, (_, spec) in population.items()}
        self.mixed = len(set(self.specs.values())) > 1
        self.members: Counter[TraitGroup] = Counter(
            {EVERYWHERE_GROUP: len(population), UNRELATED_GROUP: len(population)}
        )
        self.holders: dict[TraitGroup, set[str]] = defaultdict(set)
        for subject, (holder, _) in population.items():
            for group in self.groups(traits, subject, holder):
                self.members[group] += 1
                self.holders[group].add(holder)
        self.holders[EVERYWHERE_GROUP] = self.holders[UNRELATED_GROUP] = {holder for holder, _ in population.values()}

    def groups(self, traits: SubjectTraits, subject: str, holder: str) -> tuple[TraitGroup, ...]:
        """Return the groups of a subject; its specs are one where members were judged by different specs."""
        groups = traits.of(subject, holder)
        return (*groups, ("judged by", self.specs[subject])) if self.mixed and subject in self.specs else groups


def _join_alike(clusters: Iterable[ChangeCluster]) -> list[ChangeCluster]:
    """Return the clusters, with one for all that are in the same place, or have the same holders."""
    alike: dict[Hashable, list[ChangeCluster]] = defaultdict(list)
    for cluster in clusters:
        group = cluster.group
        alike[group if group[0] in PLACE_KINDS else (group, frozenset(cluster.holders))].append(cluster)
    return [_join_clusters(together) for together in alike.values()]


def _join_clusters(clusters: Sequence[ChangeCluster]) -> ChangeCluster:
    """Return one cluster of several in the same group."""
    changes = tuple(change for cluster in clusters for change in cluster.changes)
    also = [group for group in clusters[0].also if all(group in cluster.also for cluster in clusters)]
    judged, sure = max(cluster.judged for cluster in clusters), any(cluster.sure for cluster in clusters)
    return ChangeCluster(clusters[0].group, changes, judged, sure, tuple(also), clusters[0].places)


def _cluster_by_holder(single: Sequence[StatusChange]) -> Iterator[ChangeCluster]:
    """Yield a cluster for each holder with several changes, and last one for all other changes, which may be empty."""
    by_holder: dict[str, list[StatusChange]] = defaultdict(list)
    for change in single:
        by_holder[change.holder].append(change)
    rest = [changes[0] for changes in by_holder.values() if len(changes) == 1]
    for holder, changes in by_holder.items():
        if len(changes) > 1 or len(rest) == 1:
            yield ChangeCluster(("node", holder), tuple(changes), 1)
    rest = rest if len(rest) > 1 else []
    yield ChangeCluster(UNRELATED_GROUP, tuple(rest), len(rest), sure=False)


def _read_populations(latest: LatestOutcomes, checks: Iterable[str]) -> dict[str, JudgedPopulation]:
    """Return the judged population of each check, without skips. Equal populations are one object."""
    execute = latest.connection.execute
    wanted = set(checks)
    names = {key: name for key, name in execute("SELECT id, name FROM check_") if name in wanted}
    subjects = {key: (name, holder) for key, name, holder in execute("SELECT id, name, holder FROM subject")}
    spec_of = {run.n: run.spec for run in latest.list_reported_runs()}
    specs = list(dict.fromkeys(spec_of.values()))
    number_of = {run: specs.index(spec) for run, spec in spec_of.items()}
    judged = {key: array("q") for key in names}
    query = f"""SELECT check_, subject, run FROM state WHERE check_ IN ({", ".join(map(str, names))})
        AND stands IN ({PASSING}, {FAILING}, {UNKNOWN}) ORDER BY subject"""
    for check, subject, run in execute(query):
        judged[check].append(subject * len(specs) + number_of[run])
    distinct: dict[bytes, JudgedPopulation] = {}
    for pairs in judged.values():
        if (content := pairs.tobytes()) not in distinct:
            split = (divmod(pair, len(specs)) for pair in pairs)
            distinct[content] = {subjects[key][0]: (subjects[key][1], specs[number]) for key, number in split}
    return {name: distinct[judged[key].tobytes()] for key, name in names.items()}

"""Changes brought together: one cluster for all checks that broke in the same place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.harness.overview.changes import Change
from assay.harness.overview.clusters import ALL, ALONE, Group, places
from assay.harness.overview.standing import Standing
from assay.harness.overview.tables import FAILING, UNKNOWN, WELL
from assay.harness.overview.traits import Traits

Pair = tuple[str, str]
Population = tuple[tuple[str, str, str], ...]
"""Who was judged by a check: subject, its holder, and the specs by which it was."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What broke together in one `group`: `changes` on `holders`, of the `judged` holders that the group has.

    `sure` where that is hardly by chance; `also` are groups that explain as much.
    """

    group: Group
    changes: tuple[Change, ...]
    judged: int
    sure: bool = True
    also: tuple[Group, ...] = ()

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


def clusters(standing: Standing, traits: Traits, changed: Sequence[Change]) -> list[Cluster]:
    """Return what broke together, the widest first, and last what has nothing in common with anything."""
    by_check: dict[str, list[Change]] = defaultdict(list)
    for change in changed:
        by_check[change.check].append(change)
    spread = {check: changes for check, changes in by_check.items() if len({one.holder for one in changes}) > 1}
    alone = [change for check, changes in by_check.items() if check not in spread for change in changes]
    alike: dict[tuple[frozenset[str], int], list[str]] = defaultdict(list)
    judged = _populations(standing, spread)
    for check, changes in spread.items():
        alike[frozenset(change.subject for change in changes), hash(judged[check])].append(check)
    sized: dict[int, _Sizes] = {}
    gathered: dict[Group, list[Cluster]] = defaultdict(list)
    for (_, key), checks in alike.items():
        sizes = sized.setdefault(key, _Sizes(traits, judged[checks[0]]))
        for found in _of_checks(traits, sizes, [spread[check] for check in checks]):
            gathered[found.group].append(found)
    alone += [change for one in gathered.pop(ALONE, ()) for change in one.changes]
    for found in _of_one_holder(alone):
        gathered[found.group].append(found)
    rest = gathered.pop(ALONE, [])
    whole = [_joined(found) for found in gathered.values()]
    return [*sorted(whole, key=lambda one: (-len(one.holders), -len(one.changes), one.group)), *rest]


class _Sizes:
    """How many members, and which holders, each group of a population has."""

    def __init__(self, traits: Traits, population: Population) -> None:
        self.specs = {subject: spec for subject, _, spec in population}
        self.mixed = len(set(self.specs.values())) > 1
        self.members: Counter[Group] = Counter({ALL: len(population), ALONE: len(population)})
        self.holders: dict[Group, set[str]] = defaultdict(set)
        for subject, holder, _ in population:
            for group in self.groups(traits, subject, holder):
                self.members[group] += 1
                self.holders[group].add(holder)
        self.holders[ALL] = self.holders[ALONE] = {holder for _, holder, _ in population}

    def groups(self, traits: Traits, subject: str, holder: str) -> tuple[Group, ...]:
        """Return the groups of a subject; the specs it was judged by are one where not all were judged by the same."""
        groups = traits.of(subject, holder)
        return (*groups, ("judged by", self.specs[subject])) if self.mixed and subject in self.specs else groups


def _of_checks(traits: Traits, sizes: _Sizes, changed: Sequence[list[Change]]) -> Iterable[Cluster]:
    """Yield the clusters of checks that broke on the very same subjects."""
    groups = {change.subject: sizes.groups(traits, change.subject, change.holder) for change in changed[0]}
    for place in places(list(groups), groups, sizes.members):
        inside = set(place.members)
        held = tuple(change for changes in changed for change in changes if change.subject in inside)
        yield Cluster(place.group, held, len(sizes.holders[place.group]), place.sure, place.also)


def _joined(found: Sequence[Cluster]) -> Cluster:
    """Return one cluster of several in the same group."""
    changes = tuple(change for one in found for change in one.changes)
    also = [group for group in found[0].also if all(group in one.also for one in found)]
    judged, sure = max(one.judged for one in found), any(one.sure for one in found)
    return Cluster(found[0].group, changes, judged, sure, tuple(also))


def _of_one_holder(alone: Sequence[Change]) -> Iterable[Cluster]:
    """Yield a cluster for each holder on which several things broke, and one of all the rest."""
    by_holder: dict[str, list[Change]] = defaultdict(list)
    for change in alone:
        by_holder[change.holder].append(change)
    rest = []
    for holder, changes in by_holder.items():
        if len(changes) > 1:
            yield Cluster(("node", holder), tuple(changes), 1)
        else:
            rest += changes
    if len(rest) == 1:
        yield Cluster(("node", rest[0].holder), tuple(rest), 1)
    elif rest:
        yield Cluster(ALONE, tuple(rest), len(rest), sure=False)


def _populations(standing: Standing, checks: Mapping[str, object]) -> dict[str, Population]:
    """Return who was judged by each check, skips left out."""
    ask = standing.connection.execute
    numbers = {n: name for n, name in ask("SELECT id, name FROM check_") if name in checks}
    subjects = {n: (name, holder) for n, name, holder in ask("SELECT id, name, holder FROM subject")}
    specs = {point.n: point.spec for point in standing.points()}
    found: dict[str, list[tuple[str, str, str]]] = {name: [] for name in checks}
    wanted = ", ".join(map(str, numbers))
    stands = f"{WELL}, {FAILING}, {UNKNOWN}"
    query = f"SELECT check_, subject, run FROM state WHERE check_ IN ({wanted}) AND stands IN ({stands})"  # noqa: S608
    for check, subject, run in ask(query):
        found[numbers[check]].append((*subjects[subject], specs[run]))
    return {name: tuple(rows) for name, rows in found.items()}

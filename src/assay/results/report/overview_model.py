"""What the overview tells: how much broke since when, where, what is excused, who was not looked at, and the trend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.model.fleet import Fleet
from assay.results.report.change_clusters import ChangeCluster, SubjectTraits, cluster_changes
from assay.results.report.latest_outcomes import AbnormalOutcome, HolderStatus, LatestOutcomes, ReportedRun
from assay.results.report.latest_outcomes_schema import FAILING, KNOWN, ON_TRIAL, ON_TRIAL_PASSING, PASSING, UNKNOWN
from assay.results.report.status_changes import DAY_S, StatusChange, find_baseline, find_changes, find_unchanged

STALE_AFTER_S = 2 * DAY_S
TREND_RUNS = 30
"""So many runs of the trend are shown."""


@dataclass(frozen=True, slots=True)
class HolderSummary:
    """One node, rack or fabric: how many checks fail or cannot be judged, how many of them newly, and what it says.

    `label` is its name where its pool and rack are plain; `node` says whether it is one. `measured` is the time of its
    newest evidence (Unix seconds), None where there was never any.
    """

    name: str
    label: str
    node: bool
    pool: str
    rack: str
    failing: int = 0
    unknown: int = 0
    newly: int = 0
    excused: int = 0
    judged: int = 0
    measured: float | None = None
    says: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class ExcusedChecks:
    """What decides nothing: a known issue (`why` its link), or a check on trial, with all that it is about."""

    why: str
    checks: tuple[str, ...]
    holders: tuple[str, ...]
    reason: str
    judged: int = 0


@dataclass(frozen=True, slots=True)
class PoolTrend:
    """A pool through the runs: when, and the share of decided outcomes that passed (None: none was decided)."""

    pool: str
    holders: int
    ill: int
    shares: tuple[tuple[float, float | None], ...]


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """What the first page shows."""

    fleet: str
    spec: str
    newest: ReportedRun
    since: ReportedRun
    runs: int
    broke: tuple[StatusChange, ...]
    mended: tuple[StatusChange, ...]
    lost: tuple[StatusChange, ...]
    clusters: tuple[ChangeCluster, ...]
    unknown_clusters: tuple[ChangeCluster, ...]
    still_clusters: tuple[ChangeCluster, ...]
    stood: tuple[HolderSummary, ...]
    known: tuple[ExcusedChecks, ...]
    on_trial: tuple[ExcusedChecks, ...]
    trends: tuple[PoolTrend, ...]

    @property
    def first(self) -> bool:
        """Whether there is nothing to compare with yet: then everything that fails is told as if it just broke."""
        return self.newest == self.since

    @property
    def stale(self) -> list[HolderSummary]:
        """The nodes that were not judged for long, the longest first."""
        late = [one for one in self.stood if one.measured is not None and self.newest.at - one.measured > STALE_AFTER_S]
        return sorted(late, key=lambda one: (one.measured or 0.0, one.name))

    @property
    def never(self) -> list[HolderSummary]:
        """The nodes that were never judged."""
        return [one for one in self.stood if one.measured is None]


def build_overview(fleet: Fleet, standing: LatestOutcomes, window_s: float = DAY_S) -> FleetOverview:
    """Look at what stands, and at what changed since the newest run that is older than the window."""
    points = standing.list_reported_runs()
    since = find_baseline(points, window_s)
    changed = list(find_changes(standing, since.at if len(points) > 1 else 0.0))
    broke = tuple(change for change in changed if change.broke)
    lost = tuple(change for change in changed if change.lost)
    still = list(find_unchanged(standing, (*broke, *lost)))
    traits = SubjectTraits(fleet, {change.holder for change in (*broke, *lost, *still)})
    held, excused = _summarise_holders(fleet, standing, (*broke, *lost))
    return FleetOverview(
        fleet=fleet.root.name,
        spec=f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}",
        newest=points[-1],
        since=since,
        runs=sum(point.at > since.at for point in points),
        broke=broke,
        mended=tuple(change for change in changed if change.mended),
        lost=lost,
        clusters=tuple(cluster_changes(standing, traits, broke)),
        unknown_clusters=tuple(cluster_changes(standing, traits, lost)),
        still_clusters=tuple(cluster_changes(standing, traits, still)),
        stood=tuple(held),
        known=tuple(_excused(excused, KNOWN)),
        on_trial=tuple(_on_trial(standing, excused)),
        trends=tuple(_trends(standing)),
    )


def _summarise_holders(
    fleet: Fleet, standing: LatestOutcomes, new: Iterable[StatusChange]
) -> tuple[list[HolderSummary], list[AbnormalOutcome]]:
    """Return every node of the fleet as it stands, racks and fabrics after them, and all that is excused."""
    newly: dict[str, int] = defaultdict(int)
    for change in new:
        newly[change.holder] += 1
    found, excused = dict[str, HolderSummary](), list[AbnormalOutcome]()
    for holder in standing.read_holders():
        found[holder.name] = _summarise_holder(fleet, holder, newly[holder.name])
        excused += [one for one in holder.amiss if one.stands in (KNOWN, ON_TRIAL)]
    never = (
        HolderSummary(node.name, node.name, node=True, pool=node.pool, rack=node.rack) for node in fleet.nodes.values()
    )
    nodes = [found.pop(one.name, one) for one in never]
    return [*nodes, *found.values()], excused


def _summarise_holder(fleet: Fleet, holder: HolderStatus, newly: int) -> HolderSummary:
    node = fleet.nodes.get(holder.name)
    ill = [one for one in holder.amiss if one.stands in (FAILING, UNKNOWN)]
    own = holder.name.rpartition("/")[2]
    rack = own.removeprefix("rack-") if own.startswith("rack-") else ""
    return HolderSummary(
        name=holder.name,
        label="rack" if rack else own,
        node=node is not None,
        pool=node.pool if node else holder.scope,
        rack=node.rack if node else rack,
        failing=holder.count(FAILING),
        unknown=holder.count(UNKNOWN),
        newly=newly,
        excused=holder.count(KNOWN, ON_TRIAL),
        judged=holder.count(PASSING, FAILING, UNKNOWN, KNOWN, ON_TRIAL, ON_TRIAL_PASSING),
        measured=holder.measured,
        says=tuple(f"{one.check.rpartition('::test_')[2]}: {one.reason}" for one in ill[:4]),
        left_out=max(0, len(ill) - 4),
    )


def _excused(amiss: Iterable[AbnormalOutcome], stands: int) -> list[ExcusedChecks]:
    """Return what is excused, by issue for what is known, by check for what is on trial; the widest first."""
    groups: dict[str, list[AbnormalOutcome]] = defaultdict(list)
    for one in amiss:
        if one.stands == stands:
            groups[one.known if stands == KNOWN else one.check].append(one)
    found = [ExcusedChecks(why, _unique(one.check for one in held), _unique(_holder(one) for one in held), held[0].reason)
             for why, held in groups.items()]  # fmt: skip
    return sorted(found, key=lambda one: (-len(one.holders), one.why))


def _on_trial(standing: LatestOutcomes, amiss: Iterable[AbnormalOutcome]) -> list[ExcusedChecks]:
    """Return every check on trial, those that never fail too: these are the ones to promote."""
    failing = {one.why: one for one in _excused(amiss, ON_TRIAL)}
    query = """SELECT c.name, count(DISTINCT s.holder) FROM state o JOIN check_ c ON c.id = o.check_
      JOIN subject s ON s.id = o.subject WHERE o.stands IN (?, ?) GROUP BY c.name ORDER BY c.name"""
    return [
        ExcusedChecks(
            name, (name,), one.holders if (one := failing.get(name)) else (), one.reason if one else "", judged
        )
        for name, judged in standing.connection.execute(query, (ON_TRIAL, ON_TRIAL_PASSING))
    ]


def _trends(standing: LatestOutcomes) -> list[PoolTrend]:
    points = {point.n: point.at for point in standing.list_reported_runs()[-TREND_RUNS:]}
    found: dict[str, dict[int, tuple[int, int, int, int]]] = defaultdict(dict)
    for run, pool, *counts in standing.connection.execute("SELECT run, pool, well, decided, holders, ill FROM trend"):
        if run in points:
            found[pool][run] = (counts[0], counts[1], counts[2], counts[3])
    return [_trend(pool, points, rows) for pool, rows in sorted(found.items())]


def _trend(pool: str, points: dict[int, float], rows: dict[int, tuple[int, int, int, int]]) -> PoolTrend:
    _, _, holders, ill = rows[max(rows, key=lambda n: points[n])]
    shares = [(at, rows[n][0] / rows[n][1] if n in rows and rows[n][1] else None) for n, at in points.items()]
    return PoolTrend(pool, holders, ill, tuple(shares))


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _holder(one: AbnormalOutcome) -> str:
    return one.subject.split("/", 2)[1]


def group_by_pool_and_rack(stood: Sequence[HolderSummary]) -> dict[str, dict[str, list[HolderSummary]]]:
    """Return the nodes by pool and rack, as the inventory has them; racks stand with their nodes, fabrics alone."""
    found: dict[str, dict[str, list[HolderSummary]]] = {}
    for one in stood:
        found.setdefault(one.pool, {}).setdefault(one.rack, []).append(one)
    return found

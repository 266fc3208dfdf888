"""What the overview tells: how much broke since when, where, what is excused, who was not looked at, and the trend."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.harness.overview.changes import DAY_S, Change, baseline, changes, unchanged
from assay.harness.overview.standing import Amiss, Holder, Point, Standing
from assay.harness.overview.tables import FAILING, KNOWN, ON_TRIAL, TRIED_WELL, UNKNOWN, WELL
from assay.harness.overview.together import Cluster, clusters
from assay.harness.overview.traits import Traits
from assay.model.fleet import Fleet

STALE_S = 2 * DAY_S
TREND = 30
"""So many runs of the trend are shown."""


@dataclass(frozen=True, slots=True)
class Stood:
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
class Excused:
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
class Overview:
    """What the first page shows."""

    fleet: str
    spec: str
    newest: Point
    since: Point
    runs: int
    broke: tuple[Change, ...]
    mended: tuple[Change, ...]
    lost: tuple[Change, ...]
    clusters: tuple[Cluster, ...]
    unknown_clusters: tuple[Cluster, ...]
    still_clusters: tuple[Cluster, ...]
    stood: tuple[Stood, ...]
    known: tuple[Excused, ...]
    on_trial: tuple[Excused, ...]
    trends: tuple[PoolTrend, ...]

    @property
    def first(self) -> bool:
        """Whether there is nothing to compare with yet: then everything that fails is told as if it just broke."""
        return self.newest == self.since

    @property
    def stale(self) -> list[Stood]:
        """The nodes that were not judged for long, the longest first."""
        late = [one for one in self.stood if one.measured is not None and self.newest.at - one.measured > STALE_S]
        return sorted(late, key=lambda one: (one.measured or 0.0, one.name))

    @property
    def never(self) -> list[Stood]:
        """The nodes that were never judged."""
        return [one for one in self.stood if one.measured is None]


def overview(fleet: Fleet, standing: Standing, window_s: float = DAY_S) -> Overview:
    """Look at what stands, and at what changed since the newest run that is older than the window."""
    points = standing.points()
    since = baseline(points, window_s)
    changed = list(changes(standing, since.at if len(points) > 1 else 0.0))
    broke = tuple(change for change in changed if change.broke)
    lost = tuple(change for change in changed if change.lost)
    still = list(unchanged(standing, (*broke, *lost)))
    traits = Traits(fleet, {change.holder for change in (*broke, *lost, *still)})
    held, excused = _held(fleet, standing, (*broke, *lost))
    return Overview(
        fleet=fleet.root.name,
        spec=f"{fleet.commit[:12] or 'no commit'}{'+changes' if fleet.dirty else ''}",
        newest=points[-1],
        since=since,
        runs=sum(point.at > since.at for point in points),
        broke=broke,
        mended=tuple(change for change in changed if change.mended),
        lost=lost,
        clusters=tuple(clusters(standing, traits, broke)),
        unknown_clusters=tuple(clusters(standing, traits, lost)),
        still_clusters=tuple(clusters(standing, traits, still)),
        stood=tuple(held),
        known=tuple(_excused(excused, KNOWN)),
        on_trial=tuple(_on_trial(standing, excused)),
        trends=tuple(_trends(standing)),
    )


def _held(fleet: Fleet, standing: Standing, new: Iterable[Change]) -> tuple[list[Stood], list[Amiss]]:
    """Return every node of the fleet as it stands, racks and fabrics after them, and all that is excused."""
    newly: dict[str, int] = defaultdict(int)
    for change in new:
        newly[change.holder] += 1
    found, excused = dict[str, Stood](), list[Amiss]()
    for holder in standing.holders():
        found[holder.name] = _stood(fleet, holder, newly[holder.name])
        excused += [one for one in holder.amiss if one.stands in (KNOWN, ON_TRIAL)]
    never = (Stood(node.name, node.name, node=True, pool=node.pool, rack=node.rack) for node in fleet.nodes.values())
    nodes = [found.pop(one.name, one) for one in never]
    return [*nodes, *found.values()], excused


def _stood(fleet: Fleet, holder: Holder, newly: int) -> Stood:
    node = fleet.nodes.get(holder.name)
    ill = [one for one in holder.amiss if one.stands in (FAILING, UNKNOWN)]
    own = holder.name.rpartition("/")[2]
    rack = own.removeprefix("rack-") if own.startswith("rack-") else ""
    return Stood(
        name=holder.name,
        label="rack" if rack else own,
        node=node is not None,
        pool=node.pool if node else holder.scope,
        rack=node.rack if node else rack,
        failing=holder.count(FAILING),
        unknown=holder.count(UNKNOWN),
        newly=newly,
        excused=holder.count(KNOWN, ON_TRIAL),
        judged=holder.count(WELL, FAILING, UNKNOWN, KNOWN, ON_TRIAL, TRIED_WELL),
        measured=holder.measured,
        says=tuple(f"{one.check.rpartition('::test_')[2]}: {one.reason}" for one in ill[:4]),
        left_out=max(0, len(ill) - 4),
    )


def _excused(amiss: Iterable[Amiss], stands: int) -> list[Excused]:
    """Return what is excused, by issue for what is known, by check for what is on trial; the widest first."""
    groups: dict[str, list[Amiss]] = defaultdict(list)
    for one in amiss:
        if one.stands == stands:
            groups[one.known if stands == KNOWN else one.check].append(one)
    found = [Excused(why, _unique(one.check for one in held), _unique(_holder(one) for one in held), held[0].reason)
             for why, held in groups.items()]  # fmt: skip
    return sorted(found, key=lambda one: (-len(one.holders), one.why))


def _on_trial(standing: Standing, amiss: Iterable[Amiss]) -> list[Excused]:
    """Return every check on trial, those that never fail too: these are the ones to promote."""
    failing = {one.why: one for one in _excused(amiss, ON_TRIAL)}
    query = """SELECT c.name, count(DISTINCT s.holder) FROM state o JOIN check_ c ON c.id = o.check_
      JOIN subject s ON s.id = o.subject WHERE o.stands IN (?, ?) GROUP BY c.name ORDER BY c.name"""
    return [
        Excused(name, (name,), one.holders if (one := failing.get(name)) else (), one.reason if one else "", judged)
        for name, judged in standing.connection.execute(query, (ON_TRIAL, TRIED_WELL))
    ]


def _trends(standing: Standing) -> list[PoolTrend]:
    points = {point.n: point.at for point in standing.points()[-TREND:]}
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


def _holder(one: Amiss) -> str:
    return one.subject.split("/", 2)[1]


def pools(stood: Sequence[Stood]) -> dict[str, dict[str, list[Stood]]]:
    """Return the nodes by pool and rack, as the inventory has them; racks stand with their nodes, fabrics alone."""
    found: dict[str, dict[str, list[Stood]]] = {}
    for one in stood:
        found.setdefault(one.pool, {}).setdefault(one.rack, []).append(one)
    return found

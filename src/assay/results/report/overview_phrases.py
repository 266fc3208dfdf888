"""The overview in words: one sentence says what broke, one each says where."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from assay.model.text_lists import fold_names, format_list
from assay.pages.formatting import format_quantity
from assay.results.report.change_clusters import ChangeCluster
from assay.results.report.cluster_statistics import EVERYWHERE_GROUP, UNRELATED_GROUP, TraitGroup
from assay.results.report.overview_model import ExcusedChecks, FleetOverview, HolderSummary

_KINDS = {
    "rack": "rack {}",
    "pool": "pool {}",
    "leaf": "switch {}",
    "node": "{}",
    "firmware": "firmware bundle {}",
    "adapters": "adapters {}…",
    "spec": "node spec {}",
    "profile": "profile {}",
    "site": "site {}",
    "slot": "{} of each node",
    "judged by": "specs at {}",
    "fabric": "fabric {}",
}


def headline(one: FleetOverview) -> str:
    """Return what broke, in one sentence."""
    where = format_quantity(len({change.holder for change in one.broke}), "place" if _beyond_nodes(one) else "node")
    count = format_quantity(len(one.broke), "failure" if one.first else "new failure")
    if one.first:
        return f"{count} on {where} in the first run" if one.broke else "Nothing fails in the first run"
    if not one.broke and one.lost:
        on = format_quantity(len({change.holder for change in one.lost}), "place")
        return f"{format_quantity(len(one.lost), 'outcome')} on {on} cannot be judged any more {since(one)}"
    if not one.broke:
        return f"Nothing broke {since(one)}"
    return f"{count} on {where} {since(one)}"


def where(one: FleetOverview) -> str:
    """Return the places that stand out, the widest first; "" for none."""
    told = one.clusters or one.unknown_clusters
    named = [f"{place(each.group)} ({reach(each)})" for each in told if each.group != UNRELATED_GROUP]
    scattered = sum(len(each.holders) for each in told if each.group == UNRELATED_GROUP)
    named += [f"{format_quantity(scattered, 'node')} with nothing in common"] if scattered else []
    return _few(named, 3)


def since(one: FleetOverview) -> str:
    """Return the time that things are compared with: `since yesterday 14:02`."""
    now, then = _time(one.newest.at), _time(one.since.at)
    days = (now.date() - then.date()).days
    day = "" if days == 0 else "yesterday " if days == 1 else f"{then:%-d %b} "
    return f"since {day}{then:%H:%M} UTC"


def place(group: TraitGroup) -> str:
    """Return a group as people call it."""
    return _KINDS[group[0]].format(group[1]) if group[0] else group[1]


def reach(cluster: ChangeCluster) -> str:
    """Return how much of its place a cluster takes in."""
    held = len(cluster.holders)
    if cluster.group[0] == "node":
        return format_quantity(len(cluster.checks), "check")
    if cluster.group == UNRELATED_GROUP:
        return format_quantity(held, "node")
    return f"{held} of {format_quantity(cluster.judged, 'node')}"


def certainty(cluster: ChangeCluster) -> str:
    """Return what else explains a cluster as well, and whether chance would too; "" for nothing to add."""
    said = [f"as well explained by {_few([place(group) for group in cluster.also], 2)}"] if cluster.also else []
    if not cluster.sure and cluster.group not in (EVERYWHERE_GROUP, UNRELATED_GROUP):
        said.append("may be chance")
    return "; ".join(said)


def checks(names: Sequence[str], shown: int = 3) -> str:
    """Return checks by their short names, the first of them only."""
    return _few([short(name) for name in names], shown)


def short(check: str) -> str:
    """Return a check's function as people say it."""
    return check.rpartition("::")[2].removeprefix("test_")


def trial(one: ExcusedChecks) -> str:
    """Return how a check on trial does."""
    of = format_quantity(one.judged, "place")
    return f"fails on {len(one.holders)} of {of}" if one.holders else f"fails on none of {of}"


def names(stood: Sequence[HolderSummary]) -> str:
    """Return nodes by name, those that follow each other folded."""
    return format_list(fold_names(one.name for one in stood), 12)


def percent(share: float | None) -> str:
    """Return a share, never rounded up to all."""
    if share is None:
        return "nothing decided"
    return "100 %" if share == 1 else f"{min(100 * share, 99.99):.2f} %".replace(".00 %", " %")


def _few(names: Sequence[str], shown: int) -> str:
    left = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {left} more" if left > 0 else "")


def _beyond_nodes(one: FleetOverview) -> bool:
    return any("/" in change.holder for change in one.broke)


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)

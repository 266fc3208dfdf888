"""The sentences of the overview page: what changed, where, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from assay.model.page import format_quantity
from assay.model.text.lists import fold_names, format_list, format_percent
from assay.tell.report.change_clusters import SEVERAL_PLACES_GROUP, CauseSummary, ChangeCluster, PlaceShare
from assay.tell.report.cluster_statistics import EVERYWHERE_GROUP, UNRELATED_GROUP, TraitGroup
from assay.tell.report.overview_model import ExcusedChecks, FleetOverview, HolderSummary

_GROUP_TITLES = {
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


def headline(overview: FleetOverview) -> str:
    """Return the number of new failures as one sentence."""
    holders = {change.holder for change in overview.broke}
    are_nodes = not any("/" in holder for holder in holders)
    where = format_quantity(len(holders), "node" if are_nodes else "place")
    count = format_quantity(len(overview.broke), "failure" if overview.first else "new failure")
    if overview.first:
        return f"{count} on {where} in the first run" if overview.broke else "Nothing fails in the first run"
    if not overview.broke and overview.lost:
        on = format_quantity(len({change.holder for change in overview.lost}), "place")
        return f"{format_quantity(len(overview.lost), 'outcome')} on {on} can no longer be judged {since(overview)}"
    if not overview.broke:
        return f"Nothing broke {since(overview)}"
    return f"{count} on {where} {since(overview)}"


def where(overview: FleetOverview) -> str:
    """Return the places of the clusters, the widest first; "" for none."""
    clusters = overview.clusters or overview.unknown_clusters
    return _list_first([f"{title(cluster)} ({reach(cluster)})" for cluster in clusters], 3)


def since(overview: FleetOverview) -> str:
    """Return the time of the run to compare with: `since yesterday 14:02 UTC`."""
    now, then = _time(overview.newest.at), _time(overview.since.at)
    days = (now.date() - then.date()).days
    day = "" if days == 0 else "yesterday " if days == 1 else f"{then:%-d %b} "
    return f"since {day}{then:%H:%M} UTC"


def waiting(overview: FleetOverview) -> str:
    """Return how many failures wait for the rollout, and on how many nodes."""
    nodes = len({change.holder for change in overview.waiting})
    return f"{format_quantity(len(overview.waiting), 'failure')} on {format_quantity(nodes, 'node')}"


def waiting_nodes(overview: FleetOverview) -> str:
    """Return the names of the nodes that wait for the rollout."""
    return format_list(fold_names({change.holder for change in overview.waiting}), 12)


def place(group: TraitGroup) -> str:
    """Return a group's name with its kind: `rack r07`."""
    return _GROUP_TITLES[group[0]].format(group[1]) if group[0] else group[1]


def title(cluster: ChangeCluster) -> str:
    """Return where a cluster is: one place, or the number of its nodes."""
    holders = len(cluster.holders)
    if cluster.group in (SEVERAL_PLACES_GROUP, UNRELATED_GROUP):
        total = format_quantity(cluster.judged, "node")
        return f"{holders} of {total}" if cluster.judged > holders else format_quantity(holders, "node")
    return place(cluster.group)


def reach(cluster: ChangeCluster) -> str:
    """Return how many of a group's nodes a cluster has: `3 of 4 nodes`."""
    holders = len(cluster.holders)
    if cluster.group[0] == "node":
        return format_quantity(len(cluster.checks), "check")
    if cluster.group == UNRELATED_GROUP:
        return "no place in common" if len(cluster.causes) == 1 else "nothing in common"
    if cluster.group == SEVERAL_PLACES_GROUP:
        return f"in {format_quantity(len(cluster.places), 'place')}"
    return f"{holders} of {format_quantity(cluster.judged, 'node')}"


def places(shares: Sequence[PlaceShare]) -> str:
    """Return the places of a cause: `rack r02 (4 of 4), 1 node elsewhere`."""
    named = [f"{place(share.group)} ({share.holders} of {share.judged})" for share in shares if share.group[0]]
    elsewhere = sum(share.holders for share in shares if not share.group[0])
    left = [f"{format_quantity(elsewhere, 'node')} elsewhere"] if elsewhere else []
    return ", ".join([_list_first(named, 6), *left] if named else left)


def cause(summary: CauseSummary) -> str:
    """Return the check of a cause, or how many checks share its reason."""
    return short(summary.check) if summary.checks == 1 else format_quantity(summary.checks, "check")


def certainty(cluster: ChangeCluster) -> str:
    """Return which groups explain a cluster as well, and whether chance might; "" for neither."""
    parts = [f"as well explained by {_list_first([place(group) for group in cluster.also], 2)}"] if cluster.also else []
    if not cluster.sure and cluster.group not in (EVERYWHERE_GROUP, UNRELATED_GROUP, SEVERAL_PLACES_GROUP):
        parts.append("may be chance")
    return "; ".join(parts)


def checks(names: Sequence[str], shown: int = 3) -> str:
    """Return the short names of the first checks."""
    return _list_first([short(name) for name in names], shown)


def short(check: str) -> str:
    """Return the name of a check's function without `test_`."""
    return check.rpartition("::")[2].removeprefix("test_")


def trial(check: ExcusedChecks) -> str:
    """Return on how many places a check on trial fails."""
    total = format_quantity(check.judged, "place")
    return f"fails on {len(check.holders)} of {total}" if check.holders else f"fails on none of {total}"


def names(holders: Sequence[HolderSummary]) -> str:
    """Return names of nodes, with ranges for consecutive ones."""
    return format_list(fold_names(holder.name for holder in holders), 12)


def percent(share: float | None) -> str:
    """Return a share as a percentage, or that there is none."""
    return "nothing decided" if share is None else format_percent(share)


def _list_first(names: Sequence[str], shown: int) -> str:
    left = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {left} more" if left > 0 else "")


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)

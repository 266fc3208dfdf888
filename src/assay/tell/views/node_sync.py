"""How one node compares with the fleet repository: what differs, what was wanted, where that stands, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from typing_extensions import TypedDict

from assay.act.loop.sync_reading import ExpectedChecks, read_sync
from assay.decide.drift.sync_report import UNKNOWN_PREFIX, DriftItem, NodeSync, SyncState
from assay.decide.state.node_state import NodeState
from assay.model.timestamps import format_minute
from assay.tell.views.judging_hash_cache import JUDGING_HASHES, LastFleetCache
from assay.tell.views.record_source import RecordSource

STATE_WORDS: dict[SyncState, str] = {
    "in_sync": "in sync",
    "rolling": "rolling out",
    "drifted": "drifted",
    "held": "held",
    "unknown": "unknown",
}

EXPECTED_CHECKS = LastFleetCache(lambda fleet: ExpectedChecks(fleet, JUDGING_HASHES.find(fleet)))


def find_node_sync(source: RecordSource, state: NodeState) -> NodeSync | None:
    """Return how one node compares; None for a node that the inventory no longer has, or that is gone for good.

    None also for a fleet without a policy: nothing says then what drift is.
    """
    fleet = source.fleet
    if state.node not in fleet.nodes or len(fleet.policies) != 1:
        return None
    ledger, now, checks = source.ledger_for_reading, source.clock.now(), EXPECTED_CHECKS.find(fleet)
    return next(iter(read_sync(fleet, ledger, {state.node: state}, now, [state.node], checks).nodes), None)


class SyncDifference(TypedDict):
    """A component or setting that differs, or that nobody knows."""

    what: str
    """The component or setting, with the part that has it."""
    wanted: str
    """The declared value; "" if it is not known how the node compares."""
    seen: str
    """The value that was seen; where it is not known, "unknown: " and why."""
    where: str
    """The file and line of the declared value, as `file:line`; "" where no spec says it."""
    since: str | None
    """Since when it is seen so: ISO 8601 with the offset of UTC; null if nothing says it."""


class NodeSyncStatus(TypedDict):
    """How a node compares with the fleet repository."""

    node: str
    """The name of the node."""
    state: SyncState
    """In sync, on its way in a rollout, drifted, held (while on its way or drifted), or unknown."""
    items: list[SyncDifference]
    """What differs or is not known."""


def node_sync_as_json(node: NodeSync) -> NodeSyncStatus:
    """Return one node as plain JSON data."""
    return {"node": node.node, "state": node.state, "items": [_item_as_json(item) for item in node.items]}


def _item_as_json(item: DriftItem) -> SyncDifference:
    since = item.since or None
    return {"what": item.what, "wanted": item.wanted, "seen": item.seen, "where": item.where, "since": since}


def format_node_sync(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each difference of one node, from the data in its explanation. What is not known is one line."""
    items = [DriftItem(**{**item, "since": item["since"] or ""}) for item in node["items"]]
    for item in items:
        if item.is_known:
            since = f", since {format_minute(item.since)}" if item.since else ""
            yield f"{STATE_WORDS[node['state']]}: {item.what}: {format_difference(item)}{since}"
    yield from (f"remedy of {remedy}" for remedy in node["remedies"])
    unknown = [item for item in items if not item.is_known]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        yield f"not known to be in sync: {unknown[0].what}: {unknown[0].seen.removeprefix(UNKNOWN_PREFIX)}{more}"


def format_difference(item: DriftItem) -> str:
    """Return what is wanted and seen of one item, with the place that says it."""
    wanted = f", wanted {item.wanted}" if item.wanted and item.wanted != item.what else ""
    where = f" ({item.where})" if item.where else ""
    return f"{item.seen}{wanted}{where}"

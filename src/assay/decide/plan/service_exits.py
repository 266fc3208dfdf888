"""Finds the nodes that must leave service for a change, with the state that brings it to them, and what changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from assay.decide.plan.fleet_revision import FleetRevision
from assay.decide.plan.inventory_changes import compare_inventories
from assay.decide.plan.repair_routes import find_repair_route
from assay.decide.plan.spec_pair_comparison import SpecPair, compare_spec_pairs, spec_pair_key

MAX_ITEMS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ServiceExit:
    """The state that brings the change to a node, "" if the policy has none, and the changed items in one line."""

    to: str
    reason: str


def find_service_exits(before: FleetRevision, after: FleetRevision) -> dict[str, ServiceExit]:
    """Return the nodes of both revisions that must leave service, by name. Those that nobody acts on are left out."""
    kept = compare_inventories(before.fleet, after.fleet).kept
    pairs = compare_spec_pairs(before, after, kept)
    exits = {
        key: ServiceExit(find_repair_route(after.policy, after.policy.service_state, pair).repair, _describe(pair))
        for key, pair in pairs.items()
        if pair.needs_service_exit
    }
    keys = ((new, spec_pair_key(old, new)) for old, new in kept)
    return {
        new.name: exits[key] for new, key in keys if key in exits and after.fleet.profiles[new.profile].acts_on_faults
    }


def _describe(pair: SpecPair) -> str:
    items = [*_list_items(pair)]
    more = f" and {len(items) - MAX_ITEMS_SHOWN} more" if len(items) > MAX_ITEMS_SHOWN else ""
    return f"{', '.join(items[:MAX_ITEMS_SHOWN])}{more}"


def _list_items(pair: SpecPair) -> Iterator[str]:
    if pair.is_other_spec:
        yield f"spec {pair.old.name} → {pair.new.name}"
    for move in pair.moves:
        yield f"{move.component} {move.old or 'none'} → {move.new}"
    yield from (setting.field for setting in pair.settings)

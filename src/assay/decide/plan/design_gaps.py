"""Finds nodes that leave the middle of a fabric design without a gap, so that others would take their leaf ports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from assay.decide.plan.fleet_revision import FleetRevision, find_spec_line
from assay.model.specs.fabric.design_cables_and_partitions import expand_node_names, format_node_list
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.text.text_lists import format_nodes


def find_missing_gaps(
    before: FleetRevision, after: FleetRevision, new_names: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    """Yield design, `file:line` and reason of each design whose nodes move up into places of removed nodes.

    `new_names` are those of renamed machines, by their old names. A design whose nodes are in another order is meant
    to be cabled otherwise, and is left alone.
    """
    was, will = before.fleet.designs, after.fleet.designs
    for name in sorted(was.keys() & will.keys()):
        old, new = was[name], will[name]
        if old is new or (old.nodes, old.gaps) == (new.nodes, new.gaps) or not old.fat_tree:
            continue
        if found := _compare_places(old, new, new_names):
            yield name, find_spec_line(after.fleet, f"FabricDesign/{name}", "nodes"), found


def _compare_places(old: FabricDesign, new: FabricDesign, new_names: Mapping[str, str]) -> str:
    """Return what shifts, and the lines that keep it in place; "" if nothing does."""
    was = [new_names.get(name, name) for name in old.node_places]
    places = {name: number for number, name in enumerate(new.node_places) if name}
    removed = [name for name in was if name and name not in places]
    kept = [name for name in was if name in places]
    moved = [name for number, name in enumerate(was) if name in places and places[name] != number]
    if not removed or not moved or kept != sorted(kept, key=places.__getitem__):
        return ""
    every = [new_names.get(name, name) for name in _list_entries(old)]
    nodes = format_node_list([*every, *(name for name in new.node_places if name and name not in set(every))])
    gaps = format_node_list([name for name in every if name in {*removed, *old.gap_names}])
    shift = f"removing {format_nodes(removed)} would move the cables of {format_nodes(moved)} to other leaf ports"
    return f"{shift}; to keep their cables, write:\n  nodes: {nodes}\n  gaps: {gaps}"


def _list_entries(design: FabricDesign) -> list[str]:
    """Return the name at each place, also where it is a gap."""
    return [name for entry in design.nodes for name in expand_node_names(entry)]

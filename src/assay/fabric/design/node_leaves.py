"""The leaf switch of each adapter, by the designs of the fleet's fabrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from assay.declare.home import find_home_of
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.topology_cache import load_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet


def find_node_leaves(fleet: Fleet) -> dict[tuple[str, str], str]:
    """Return the name of the switch at each adapter, by its node and its place there (`mlx5_0`).

    The place "" is the node itself, where all its cables go to one switch. A design that cannot be compiled says
    nothing; `assay check` reports it.
    """
    found: dict[tuple[str, str], str] = {}
    for name in fleet.designs:
        try:
            found.update(_list_leaves(load_topology(fleet.root, name, find_home_of(fleet).overlays)))
        except AssayError:
            continue
    of_node: dict[str, set[str]] = defaultdict(set)
    for (node, _), leaf in found.items():
        of_node[node].add(leaf)
    return found | {(node, ""): leaf for node, (leaf, *others) in of_node.items() if not others}


def _list_leaves(topology: CompiledTopology) -> Iterator[tuple[tuple[str, str], str]]:
    devices = list(topology)
    for a, _, b, _ in topology.links:
        for here, there in ((devices[a], devices[b]), (devices[b], devices[a])):
            if here.node and not there.node:
                yield (here.node, here.name.removeprefix(f"{here.node} ")), there.name

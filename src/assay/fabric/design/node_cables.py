"""What the designs of the fleet's fabrics say about one node: a digest of its cables, and its leaf switches."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign


def digest_node_cables(fleet: Fleet, designs: Collection[str] | None = None) -> dict[str, str]:
    """Return, by node, a digest of both ends and the rate of each of its designed cables. Lengths do not count.

    `designs` names the fabrics that count, None for all; NVLink domains never do, since no check of a node's cables
    judges them. Nodes without a designed cable are left out. The cables of a design that cannot be compiled are not
    known, which is a digest too; `assay check` says what is wrong.
    """
    cables: defaultdict[str, list[str]] = defaultdict(list)
    for name in sorted(fleet.designs if designs is None else fleet.designs.keys() & set(designs)):
        if fleet.designs[name].nvlink:
            continue
        try:
            ends = list(_list_ends(fleet.designs[name], fleet))
        except AssayError:
            ends = [(node, "unknown") for node in fleet.designs[name].node_names()]
        for node, text in ends:
            cables[node].append(f"{name} {text}")
    return {node: hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()[:16] for node, lines in cables.items()}


def _list_ends(design: FabricDesign, fleet: Fleet) -> Iterator[tuple[str, str]]:
    """Yield the node and the text of each cable's end that is at a node."""
    topology = compile_topology(design, fleet)
    devices, links = list(topology), topology.links
    for (a, a_port, b, b_port), rate in zip(links, links.rates(), strict=True):
        first, second = (devices[a], a_port), (devices[b], b_port)
        for (here, port), (there, peer) in ((first, second), (second, first)):
            if here.node:
                yield here.node, f"{here.guid}/{port} {there.guid}/{peer} {rate}"


def find_node_leaves(fleet: Fleet) -> dict[tuple[str, str], str]:
    """Return the name of the switch at each adapter, by its node and its place there (`mlx5_0`).

    The place "" is the node itself, where all its cables go to one switch. A design that cannot be compiled says
    nothing; `assay check` reports it.
    """
    leaf_at: dict[tuple[str, str], str] = {}
    for design in fleet.designs.values():
        try:
            leaf_at.update(_list_leaves(compile_topology(design, fleet)))
        except AssayError:
            continue
    of_node: dict[str, set[str]] = defaultdict(set)
    for (node, _), leaf in leaf_at.items():
        of_node[node].add(leaf)
    return leaf_at | {(node, ""): leaf for node, (leaf, *others) in of_node.items() if not others}


def _list_leaves(topology: CompiledTopology) -> Iterator[tuple[tuple[str, str], str]]:
    devices = list(topology)
    for a, _, b, _ in topology.links:
        for here, there in ((devices[a], devices[b]), (devices[b], devices[a])):
            if here.node and not there.node:
                yield (here.node, here.name.removeprefix(f"{here.node} ")), there.name

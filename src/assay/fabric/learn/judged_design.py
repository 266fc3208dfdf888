"""Judges a discovery by its own pattern: the design that most of its cables follow, and what breaks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from assay.fabric.compare.compare import FabricComparison, compare_cabling
from assay.fabric.compare.discrepancy import CablingDiscrepancy
from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, FabricDiscovery
from assay.fabric.learn.boxes import fold_planes, renumber_leaf_ports, split_adapters
from assay.fabric.learn.rules import make_rules, name_by_rule
from assay.fabric.learn.tree import UNSEEN, FatTreeInference, NoPattern
from assay.fabric.readers.tool_text import PORTS_OF_PRODUCT, find_product
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.adapters import HostAdapter
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.text.lists import fold_names, format_list

MIN_SHARE = 0.75
"""A pattern that fewer cables follow is none: then every cable is listed as found."""
MIN_GAIN = 1.1
"""Our own choice: so many more cables must follow rules with several ranges of ports, or with unlike leaves."""
UNDESIGNED_KINDS = {"device-unknown", "unexpected"}


@dataclass(frozen=True)
class JudgedDesign:
    """A design of rules, the nodes that it needs, and how the discovery differs from it.

    `hosts` has the host of each adapter by GUID. `exceptions` are the differences that a person must look at. Other
    cables, of devices that the rules do not name, are listed beside the rules. `contradicted` are the nodes of which
    the inventory has other adapters. `notes` say what else a person must decide.
    """

    design: FabricDesign
    nodes: dict[str, tuple[str, ...]]
    topology: CompiledTopology
    comparison: FabricComparison
    hosts: Mapping[str, HostAdapter]
    contradicted: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def exceptions(self) -> list[CablingDiscrepancy]:
        """What breaks the pattern."""
        return [discrepancy for discrepancy in self.comparison.discrepancies if not self._is_beside(discrepancy)]

    def _is_beside(self, discrepancy: CablingDiscrepancy) -> bool:
        """Return whether it is only about devices that the rules do not name."""
        if discrepancy.kind not in UNDESIGNED_KINDS:
            return False
        return any(
            end.guid not in self.topology.devices
            for pair in discrepancy.cables
            if pair.observed
            for end in pair.observed.ends
        )

    def list_cables_beside(self) -> list[DiscoveredCable]:
        """Return the cables of devices that the rules do not name."""
        beside = (discrepancy for discrepancy in self.comparison.discrepancies if self._is_beside(discrepancy))
        seen = (pair.observed for discrepancy in beside for pair in discrepancy.cables if pair.observed)
        return [DiscoveredCable(cable.a.port_id, cable.b.port_id, cable.rate) for cable in seen]


def judge_discovery(
    discovery: FabricDiscovery, name: str, fleet: Fleet, hosts: Mapping[str, HostAdapter]
) -> JudgedDesign:
    """Return the design that most cables of a whole discovery follow. Raises NoPattern, with the reason, without one.

    `hosts` has the host of each adapter by GUID. The fleet says which adapters a node has, unless most of those that
    the fabric has in its place are others.
    """
    reasons, every = list[NoPattern](), list[JudgedDesign]()
    for anew in (False, True):
        try:
            judged = _judge(discovery, name, fleet, hosts, {}, anew=anew)
            standing_in = _find_seen(judged, discovery)
            every.append(_judge(discovery, name, fleet, hosts, standing_in, anew=anew) if standing_in else judged)
        except NoPattern as reason:
            reasons.append(reason)
    if not every:
        raise reasons[0]
    return every[-1] if every[-1].comparison.matching > MIN_GAIN * every[0].comparison.matching else every[0]


def _find_seen(judged: JudgedDesign, discovery: FabricDiscovery) -> dict[str, str]:
    """Return the switches that stand where the rules have one that nobody saw, by the GUID that this one was given."""
    seen = {}
    for discrepancy in judged.comparison.discrepancies:
        ends = {end.guid: end for end in discrepancy.ends} if discrepancy.kind == "device-replaced" else {}
        unseen = [guid for guid, end in ends.items() if end.device == discrepancy.device and is_unseen(guid)]
        strangers = [guid for guid in ends if guid not in judged.topology.devices]
        if len(unseen) == len(strangers) == 1 and discovery.devices[strangers[0]].kind == "switch":
            seen[unseen[0]] = strangers[0]
    return seen


def _replace_guids(rules: Any, seen: Mapping[str, str]) -> Any:
    """Return rules with the GUIDs of devices that were seen in place of those that were made."""
    if isinstance(rules, dict):
        return {key: _replace_guids(value, seen) for key, value in rules.items()}
    if isinstance(rules, list):
        return [_replace_guids(value, seen) for value in rules]
    return seen.get(rules, rules) if isinstance(rules, str) else rules


def _judge(
    discovery: FabricDiscovery,
    name: str,
    fleet: Fleet,
    hosts: Mapping[str, HostAdapter],
    standing_in: Mapping[str, str],
    *,
    anew: bool,
) -> JudgedDesign:
    """Judge once. `standing_in` has the devices of the discovery that stand in place of those that nobody saw.

    `anew`: the ports of leaves are numbered anew. Raises NoPattern where that is not needed.
    """
    folded = fold_planes(discovery)
    seen = folded.discovery if folded else discovery
    split = split_adapters(seen, hosts)
    seen = split.discovery if split else seen
    renumbered = renumber_leaf_ports(seen) if anew else None
    if anew and not renumbered:
        raise NoPattern("the leaves have one range of ports to nodes")
    tree = FatTreeInference(renumbered.discovery if renumbered else seen, split.hosts if split else hosts)
    try:
        nameless = list(_take_nameless_adapters(tree, split.hosts if split else hosts))
        rules = make_rules(tree, name, *_find_model(tree), max(discovery.split, 1))
        rules = renumbered.restore(rules) if renumbered else rules
        rules = folded.unfold(rules, tree.make_guid) if folded else rules
        rules = _replace_guids(split.join(rules) if split else rules, standing_in)
        design = FabricDesign.model_validate(name_by_rule(rules, FabricDesign.model_validate(rules)))
        contradicted = set()
        nodes = {}
        for node in design.node_names():
            listed = fleet.nodes[node].hca_guids if node in fleet.nodes else ()
            own = tuple(design.adapters[node])
            is_agreed = len(listed) == len(own) and 2 * len({*listed} & {*own}) >= len(own)  # others were replaced
            nodes[node] = listed if is_agreed else own
            if node in fleet.nodes and not is_agreed:
                contradicted.add(node)
        made = {node: Node(node, "", "", "", 0, "", "", "", guids) for node, guids in nodes.items()}
        topology = compile_topology(design, Fleet(Path(), made, designs={design.name: design}))
    except (AssayError, ValueError, LookupError) as error:
        reason = " ".join(str(error).split())
        if isinstance(error, ValidationError):
            reason = "; ".join(each["msg"].removeprefix("Value error, ") for each in error.errors())
        raise NoPattern(f"the rules that fit best are no design: {reason}") from error
    comparison = compare_cabling(topology, discovery)
    if comparison.matching < MIN_SHARE * comparison.expected:
        raise NoPattern(f"only {comparison.matching} of {comparison.expected} cables follow the rules that fit best")

    def find_port(leaf: str, port: int) -> int:
        return renumbered.find_real(leaf, [port])[0] if renumbered else port

    at = ((host, *tree.places[host]) for host in tree.crowded)
    crowded = (
        f"{host} is in port {find_port(next(filter(None, tree.units[unit])), port)} of its leaves, out of the order of"
        " the names: is that intended?"
        for host, unit, port in at
    )
    outside = _tell_outside(tree, find_port, design.leaves.down if design.leaves else "")
    notes = (*_tell_contradictions(contradicted), *outside, *crowded, *nameless)
    return JudgedDesign(design, nodes, topology, comparison, hosts, frozenset(contradicted), notes)


def _tell_contradictions(nodes: Iterable[str]) -> Iterator[str]:
    if names := fold_names(nodes):
        yield (
            f"{format_list(names)}: the inventory has other GUIDs than the fabric announces. `adapters` has those of"
            " the fabric; a comparison uses the inventory's: correct the inventory, or rename these nodes"
        )


def _tell_outside(tree: FatTreeInference, find_port: Callable[[str, int], int], down: str) -> Iterator[str]:
    leaves = set(tree.leaves.guids)
    for host in (host for host in tree.hosts if host not in tree.places):
        ends = [far for guid in tree.hosts[host].values() for _, far in tree.peers[guid] if far.guid in leaves]
        if where := ", ".join(f"{tree.discovery.devices[leaf].name} port {find_port(leaf, at)}" for leaf, at in ends):
            yield f"{host} is cabled to {where}, outside of the ports to nodes ({down}): a new node?"


def _take_nameless_adapters(tree: FatTreeInference, hosts: Mapping[str, HostAdapter]) -> Iterator[str]:
    """Give each node the adapters in its ports that announce no node, if nobody saw its own. Yield what to review."""
    devices = tree.discovery.devices
    for host, (unit, port) in tree.places.items():
        for rail in range(len(tree.slots)):
            at_leaf = tree.peers[leaf] if rail not in tree.hosts[host] and (leaf := tree.units[unit][rail]) else []
            adapter = next((devices.get(far.guid) for number, far in at_leaf if number == port), None)
            if (
                adapter
                and adapter.kind == "hca"
                and adapter.guid not in hosts
                and adapter.description != AGGREGATION_NODE
            ):
                tree.hosts[host][rail] = adapter.guid
                yield f"{host} has {adapter.guid} as {tree.slots[rail]}, by its port: it calls itself {adapter.name!r}"


def is_unseen(guid: str) -> bool:
    """Return whether a GUID stands for a device that nobody saw."""
    return int(guid, 16) > UNSEEN


def _find_model(tree: FatTreeInference) -> tuple[str, int]:
    """Return the product and the number of ports of most leaves. A port for an aggregation node is none of them.

    A tool that lists only links, such as UFM, does not tell how many ports a switch has. Then it has those of its
    product, or those that any switch of the tree needs.
    """
    devices, guids = tree.discovery.devices, [*tree.leaves.guids, *tree.spines.guids, *tree.cores.guids]
    known = [devices[guid] for guid in tree.leaves.guids if guid in devices]
    inside = any(device.description == AGGREGATION_NODE for device in devices.values())
    ports = Counter(device.ports for device in known).most_common(1)[0][0]
    ports -= 1 if inside and ports % 2 else 0
    needed = max((number for guid in guids for number, _ in tree.peers.get(guid, ()) if not inside), default=0)
    product, least = find_product(known[0].description), max(ports, needed)
    of_product = [count for count in PORTS_OF_PRODUCT.get(product, ()) if count >= least]
    return product or "unknown", min(of_product, default=least)

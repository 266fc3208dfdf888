"""What must be judged: every check of the catalogue, on every subject of its kind that the selected nodes have.

A rack or a fabric counts where it is whole. A shard has some of the nodes, and the racks and fabrics that are its turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import CheckSubject, read_whole
from assay.model.specs.check_catalog import CheckDeclaration

T = TypeVar("T")


MIN_RACKS_PER_SHARD = 4
"""With fewer racks in a shard, one rack more or less would make shards uneven."""


RackInPool = tuple[str, str]
"""Pool and rack."""
PART_KINDS = ("gpu", "hca", "nic", "psu", "nvme", "disk")


@dataclass(frozen=True)
class NodeSelection:
    """The selected nodes of a fleet. Of `shard_count` shards this is number `shard`, from 1; each holds whole nodes."""

    fleet: Fleet
    nodes: tuple[str, ...]
    shard: int = 1
    shard_count: int = 1

    def subjects(self, kind: str) -> list[tuple[CheckSubject, str]]:
        """Return the subjects of a kind, each with its node's name ("" for racks and fabrics).

        A rack, or a fabric with its switches and rails, is judged only when all of its nodes are selected. A
        `whole_rack` is one whose nodes work as one machine.
        """
        if kind in ("rack", "whole_rack"):
            whole = {name for name, spec in self.fleet.node_specs.items() if spec.rack is not None}
            nodes = (node for node in self.fleet.nodes.values() if kind == "rack" or node.spec in whole)
            racks = self._racks_of_this_shard(self._complete_groups(_group_by_rack(nodes)))
            return [(CheckSubject(pool, f"rack-{rack}"), "") for pool, rack in racks]
        if kind in ("fabric", "switch", "rail"):
            subjects = [
                subject for fabric in self._complete_fabrics for subject in _list_of_fabric(self.fleet, fabric, kind)
            ]
            return [(subject, "") for subject in self._of_this_shard(subjects)]
        return [(subject, name) for name in self.own_nodes() for subject in list_node_subjects(self.fleet, name, kind)]

    def due_subjects(self, check: CheckDeclaration) -> list[tuple[CheckSubject, str]]:
        """Return the subjects on which a check is due, as `subjects` does."""
        lacking, every = list_lacking(self.fleet, check), self.subjects(check.subject)
        return [(each, node) for each, node in every if (node or read_whole(str(each))) not in lacking]

    def own_nodes(self) -> Sequence[str]:
        """Return the nodes of this shard: whole racks where there are enough, since they share a rack's evidence."""
        turns = self._rack_turns()
        if turns is None:
            return self._of_this_shard(self.nodes)
        return [name for name in self.nodes if self._is_of_this_shard(turns[_rack_of(self.fleet.nodes[name])])]

    @cached_property
    def _complete_fabrics(self) -> list[CheckSubject]:
        fabrics = _group_by_fabric(self.fleet.nodes.values())
        return [CheckSubject("fabric", name) for name in self._complete_groups(fabrics)]

    def _racks_of_this_shard(self, racks: Iterable[RackInPool]) -> list[RackInPool]:
        turns = self._rack_turns()
        if turns is None:
            return self._of_this_shard(racks)
        return [rack for rack in racks if self._is_of_this_shard(turns[rack])]

    def _rack_turns(self) -> Mapping[RackInPool, int] | None:
        """Return the position by which each rack is dealt to a shard, None where racks are too few for even shards."""
        racks = dict.fromkeys(_rack_of(self.fleet.nodes[name]) for name in self.nodes) if self.shard_count > 1 else {}
        if len(racks) < MIN_RACKS_PER_SHARD * self.shard_count:
            return None
        return {rack: turn for turn, rack in enumerate(racks)}

    def _complete_groups(self, groups: dict[T, set[str]]) -> list[T]:
        """Return the names of the groups of which every node is selected."""
        selected = set(self.nodes)
        return [name for name, members in groups.items() if members <= selected]

    def _of_this_shard(self, things: Iterable[T]) -> list[T]:
        return [thing for index, thing in enumerate(things) if self._is_of_this_shard(index)]

    def _is_of_this_shard(self, turn: int) -> bool:
        return turn % self.shard_count == self.shard - 1


def list_node_subjects(fleet: Fleet, node: str, kind: str) -> list[CheckSubject]:
    """Return a node's subjects of a kind: the node itself, or each declared slot."""
    declared = fleet.nodes[node]
    if kind == "node":
        return [CheckSubject(declared.pool, node)]
    return [CheckSubject(declared.pool, node, slot) for slot in fleet.spec_of(node).slot_names(kind)]


def list_lacking(fleet: Fleet, check: CheckDeclaration) -> dict[str, str]:
    """Return what lacks what for a check: nodes by name; racks in which such nodes are, and fabrics, by id.

    A fabric has its kind, whatever its nodes have.
    """
    kinds = [(part, names) for parts, names in fleet.nodes_by_parts.items() if (part := check.find_lacking(parts))]
    lacking = {name: part for part, names in kinds for name in names}
    places = ((fleet.nodes[name], part) for name, part in lacking.items())
    fabrics = {
        f"fabric/{name}": check.find_lacking({"fabric", design.kind_of_links}) for name, design in fleet.designs.items()
    }
    return (
        lacking
        | {f"{node.pool}/rack-{node.rack}": part for node, part in places}
        | {name: part for name, part in fabrics.items() if part}
    )


def _rack_of(node: Node) -> RackInPool:
    return node.pool, node.rack


def _group_by_rack(nodes: Iterable[Node]) -> dict[RackInPool, set[str]]:
    """Return the names of the nodes by rack."""
    groups: dict[RackInPool, set[str]] = {}
    for node in nodes:
        groups.setdefault(_rack_of(node), set()).add(node.name)
    return groups


def _group_by_fabric(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """Return the names of the nodes by the fabric that they are connected to."""
    groups: dict[str, set[str]] = {}
    for node in nodes:
        if fabric := node.settings.fabric:
            groups.setdefault(fabric, set()).add(node.name)
    return groups


def _list_of_fabric(fleet: Fleet, fabric: CheckSubject, kind: str) -> list[CheckSubject]:
    """Return a fabric itself, its designed switches, or its rails. Without a design it has no switches or rails."""
    if kind == "fabric":
        return [fabric]
    design = fleet.designs.get(fabric.name)
    if design is None:
        return []
    if kind == "rail":
        return [CheckSubject(fabric.scope, fabric.name, f"rail-{rail}") for rail in range(design.rails)]
    return [CheckSubject(fabric.scope, fabric.name, chip.name) for chip in design.chips()]


def list_declared_outcomes(
    fleet: Fleet, node: str, phases: Collection[str] | None = None
) -> list[tuple[CheckDeclaration, CheckSubject]]:
    """Return every check × subject that must end in an outcome for a node in these phases (None: in any)."""
    checks = [check for check in list_declared_checks(fleet, phases) if check.subject in ("node", *PART_KINDS)]
    checks = [check for check in checks if not check.find_lacking(fleet.parts_of(node))]
    return [(check, subject) for check in checks for subject in list_node_subjects(fleet, node, check.subject)]


class DeclaredOutcomes:
    """`list_declared_outcomes` for many nodes of a fleet, in any phase, computed once for each kind of node."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[tuple[str, frozenset[str]], list[tuple[CheckDeclaration, str]]] = {}

    def of_node(self, node: str) -> tuple[tuple[CheckDeclaration, CheckSubject], ...]:
        """Return every check × subject that must end in an outcome for a node."""
        declared = self._fleet.nodes[node]
        kind = (declared.spec, self._fleet.parts_of(node))
        if kind not in self._known:
            known = list_declared_outcomes(self._fleet, node)
            self._known[kind] = [(check, subject.part) for check, subject in known]
        outcomes = self._known[kind]
        subjects = {part: CheckSubject(declared.pool, node, part) for _, part in outcomes}
        return tuple((check, subjects[part]) for check, part in outcomes)


def list_declared_checks(fleet: Fleet, phases: Collection[str] | None = None) -> list[CheckDeclaration]:
    """Return the declared checks of these phases (None or empty: of all)."""
    every = [check for catalog in fleet.check_catalogs.values() for check in catalog.checks]
    return [check for check in every if not phases or set(check.phases) & set(phases)]

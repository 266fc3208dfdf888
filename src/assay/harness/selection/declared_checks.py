"""What must be judged: every check of the catalogue, on every subject of its kind that the fleet declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from assay.harness.fixtures.spec_views import list_slots
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.outcome import CheckSubject
from assay.model.specs.check_catalog_and_gates import CheckDeclaration

T = TypeVar("T")
PART_KINDS = ("gpu", "hca", "nic", "psu", "nvme")
MIN_RACKS_PER_SHARE = 4
"""Racks of each share; with fewer, one more or less would matter."""
RackInPool = tuple[str, str]
"""Pool and rack."""


@dataclass(frozen=True)
class NodeSelection:
    """The nodes that are judged, of all that the fleet has. `share` of `shares` cuts the work, whole nodes each."""

    fleet: Fleet
    nodes: tuple[str, ...]
    share: int = 1
    shares: int = 1

    def subjects(self, kind: str) -> list[tuple[CheckSubject, str]]:
        """Return the subjects of a kind, each with its node's name ("" for racks and fabrics).

        A rack, or a fabric with its switches and rails, is judged only when all of its nodes are. In a whole rack they
        work as one machine.
        """
        if kind in ("rack", "whole_rack"):
            racks = _racks(
                node for node in self.fleet.nodes.values() if kind == "rack" or self._is_of_a_whole_rack(node)
            )
            return [
                (CheckSubject(pool, f"rack-{rack}"), "")
                for pool, rack in self._racks_of_this_share(self._complete_groups(racks))
            ]
        if kind in ("fabric", "switch", "rail"):
            parts = [part for fabric in self._whole_fabrics for part in _parts(self.fleet, fabric, kind)]
            return [(subject, "") for subject in self._of_this_share(parts)]
        return [(subject, name) for name in self.own_nodes() for subject in list_node_subjects(self.fleet, name, kind)]

    @cached_property
    def _whole_fabrics(self) -> list[CheckSubject]:
        return [CheckSubject("fabric", name) for name in self._complete_groups(_fabrics(self.fleet.nodes.values()))]

    def own_nodes(self) -> Sequence[str]:
        """Return the nodes of this share: whole racks where there are enough, since a rack's evidence is its nodes'."""
        turns = self._rack_turns()
        if turns is None:
            return self._of_this_share(self.nodes)
        return [name for name in self.nodes if self._is_of_this_share(turns[_rack(self.fleet.nodes[name])])]

    def _racks_of_this_share(self, racks: Iterable[RackInPool]) -> list[RackInPool]:
        turns = self._rack_turns()
        return (
            self._of_this_share(racks)
            if turns is None
            else [rack for rack in racks if self._is_of_this_share(turns[rack])]
        )

    def _rack_turns(self) -> Mapping[RackInPool, int] | None:
        """Return when it is each rack's turn, None where they are too few to be shared out evenly."""
        racks = dict.fromkeys(_rack(self.fleet.nodes[name]) for name in self.nodes) if self.shares > 1 else {}
        return (
            {rack: turn for turn, rack in enumerate(racks)} if len(racks) >= MIN_RACKS_PER_SHARE * self.shares else None
        )

    def _is_of_a_whole_rack(self, node: Node) -> bool:
        spec = self.fleet.node_specs.get(node.spec)
        return spec is not None and spec.rack is not None

    def _complete_groups(self, groups: dict[T, set[str]]) -> list[T]:
        """Return the names of the groups whose nodes are all chosen."""
        chosen = set(self.nodes)
        return [name for name, members in groups.items() if members <= chosen]

    def _of_this_share(self, things: Iterable[T]) -> list[T]:
        return [thing for index, thing in enumerate(things) if self._is_of_this_share(index)]

    def _is_of_this_share(self, turn: int) -> bool:
        return turn % self.shares == self.share - 1


def list_node_subjects(fleet: Fleet, node: str, kind: str) -> list[CheckSubject]:
    """Return a node's subjects of a kind: itself, or each declared slot."""
    declared = fleet.nodes[node]
    if kind == "node":
        return [CheckSubject(declared.pool, node)]
    return [CheckSubject(declared.pool, node, slot) for slot in list_slots(fleet.spec_of(node), kind)]


def list_declared_outcomes(
    fleet: Fleet, node: str, phases: Collection[str] | None = None
) -> list[tuple[CheckDeclaration, CheckSubject]]:
    """Return every check × subject that must end in an outcome for a node, in these phases (None: in any)."""
    of_nodes = [check for check in list_declared_checks(fleet, phases) if check.subject in ("node", *PART_KINDS)]
    return [(check, subject) for check in of_nodes for subject in list_node_subjects(fleet, node, check.subject)]


class DeclaredOutcomes:
    """The same for many nodes of a fleet, in any phase: thought through once for each NodeSpec."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._of_specs: dict[str, list[tuple[CheckDeclaration, str]]] = {}

    def of_node(self, node: str) -> tuple[tuple[CheckDeclaration, CheckSubject], ...]:
        """Return every check × subject that must end in an outcome for a node."""
        here = self._fleet.nodes[node]
        if here.spec not in self._of_specs:
            self._of_specs[here.spec] = [
                (check, subject.part) for check, subject in list_declared_outcomes(self._fleet, node)
            ]
        wanted = self._of_specs[here.spec]
        subjects = {part: CheckSubject(here.pool, node, part) for _, part in wanted}
        return tuple((check, subjects[part]) for check, part in wanted)


def list_selected_outcomes(
    selection: NodeSelection, phases: Collection[str] | None = None
) -> list[tuple[CheckDeclaration, CheckSubject, str]]:
    """Return every check × subject (and its node) of a selection, racks and fabrics too."""
    return [
        (check, subject, node)
        for check in list_declared_checks(selection.fleet, phases)
        for subject, node in selection.subjects(check.subject)
    ]


def list_declared_checks(fleet: Fleet, phases: Collection[str] | None = None) -> list[CheckDeclaration]:
    """Return the declared checks of these phases (None or none: of all)."""
    every = [check for catalogue in fleet.check_catalogs.values() for check in catalogue.checks]
    return [check for check in every if not phases or set(check.phases) & set(phases)]


def _rack(node: Node) -> RackInPool:
    return node.pool, node.rack


def _racks(nodes: Iterable[Node]) -> dict[RackInPool, set[str]]:
    """Return the names of the nodes by rack."""
    groups: dict[RackInPool, set[str]] = {}
    for node in nodes:
        groups.setdefault(_rack(node), set()).add(node.name)
    return groups


def _fabrics(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """Return the names of the nodes by the fabric that they hang on."""
    groups: dict[str, set[str]] = {}
    for node in nodes:
        if fabric := node.settings.fabric:
            groups.setdefault(fabric, set()).add(node.name)
    return groups


def _parts(fleet: Fleet, fabric: CheckSubject, kind: str) -> list[CheckSubject]:
    """Return a fabric itself, its designed switches, or its rails. A fabric without a design has none of these."""
    design = fleet.designs.get(fabric.name)
    if kind == "fabric" or design is None:
        return [fabric] if kind == "fabric" else []
    if kind == "rail":
        return [CheckSubject(fabric.scope, fabric.name, f"rail-{rail}") for rail in range(design.rails)]
    return [CheckSubject(fabric.scope, fabric.name, name) for name, *_ in design.switches()]

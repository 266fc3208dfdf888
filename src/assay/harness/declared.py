"""What must be judged: every check of the catalogue, on every subject of its kind that the fleet declares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from assay.harness.specs import slots
from assay.model.checks import Check
from assay.model.fleet import Fleet, Node
from assay.model.subject import Subject

T = TypeVar("T")
PARTS = ("gpu", "hca", "nic", "psu", "nvme")
ENOUGH = 4
"""Racks of each share; with fewer, one more or less would matter."""
Rack = tuple[str, str]
"""Pool and rack."""


@dataclass(frozen=True)
class Selection:
    """The nodes that are judged, of all that the fleet has. `share` of `shares` cuts the work, whole nodes each."""

    fleet: Fleet
    nodes: tuple[str, ...]
    share: int = 1
    shares: int = 1

    def subjects(self, kind: str) -> list[tuple[Subject, str]]:
        """Return the subjects of a kind, each with its node's name ("" for racks and fabrics).

        A rack, or a fabric with its switches and rails, is judged only when all of its nodes are. In a whole rack they
        work as one machine.
        """
        if kind in ("rack", "whole_rack"):
            racks = _racks(
                node for node in self.fleet.nodes.values() if kind == "rack" or self._is_of_a_whole_rack(node)
            )
            return [(Subject(pool, f"rack-{rack}"), "") for pool, rack in self._my_racks(self._whole(racks))]
        if kind in ("fabric", "switch", "rail"):
            parts = [part for fabric in self._whole_fabrics for part in _parts(self.fleet, fabric, kind)]
            return [(subject, "") for subject in self._mine(parts)]
        return [(subject, name) for name in self.own() for subject in of_node(self.fleet, name, kind)]

    @cached_property
    def _whole_fabrics(self) -> list[Subject]:
        return [Subject("fabric", name) for name in self._whole(_fabrics(self.fleet.nodes.values()))]

    def own(self) -> Sequence[str]:
        """Return the nodes of this share: whole racks where there are enough, since a rack's evidence is its nodes'."""
        turns = self._turns()
        if turns is None:
            return self._mine(self.nodes)
        return [name for name in self.nodes if self._is_mine(turns[_rack(self.fleet.nodes[name])])]

    def _my_racks(self, racks: Iterable[Rack]) -> list[Rack]:
        turns = self._turns()
        return self._mine(racks) if turns is None else [rack for rack in racks if self._is_mine(turns[rack])]

    def _turns(self) -> Mapping[Rack, int] | None:
        """Return when it is each rack's turn, None where they are too few to be shared out evenly."""
        racks = dict.fromkeys(_rack(self.fleet.nodes[name]) for name in self.nodes) if self.shares > 1 else {}
        return {rack: turn for turn, rack in enumerate(racks)} if len(racks) >= ENOUGH * self.shares else None

    def _is_of_a_whole_rack(self, node: Node) -> bool:
        spec = self.fleet.node_specs.get(node.spec)
        return spec is not None and spec.rack is not None

    def _whole(self, groups: dict[T, set[str]]) -> list[T]:
        """Return the names of the groups whose nodes are all chosen."""
        chosen = set(self.nodes)
        return [name for name, members in groups.items() if members <= chosen]

    def _mine(self, things: Iterable[T]) -> list[T]:
        return [thing for index, thing in enumerate(things) if self._is_mine(index)]

    def _is_mine(self, turn: int) -> bool:
        return turn % self.shares == self.share - 1


def of_node(fleet: Fleet, node: str, kind: str) -> list[Subject]:
    """Return a node's subjects of a kind: itself, or each declared slot."""
    declared = fleet.nodes[node]
    if kind == "node":
        return [Subject(declared.pool, node)]
    return [Subject(declared.pool, node, slot) for slot in slots(fleet.spec_of(node), kind)]


def declared(fleet: Fleet, node: str, phases: Collection[str] | None = None) -> list[tuple[Check, Subject]]:
    """Return every check × subject that must end in an outcome for a node, in these phases (None: in any)."""
    of_nodes = [check for check in checks(fleet, phases) if check.subject in ("node", *PARTS)]
    return [(check, subject) for check in of_nodes for subject in of_node(fleet, node, check.subject)]


class Declared:
    """The same for many nodes of a fleet, in any phase: thought through once for each NodeSpec."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._of_specs: dict[str, list[tuple[Check, str]]] = {}

    def of(self, node: str) -> tuple[tuple[Check, Subject], ...]:
        """Return every check × subject that must end in an outcome for a node."""
        here = self._fleet.nodes[node]
        if here.spec not in self._of_specs:
            self._of_specs[here.spec] = [(check, subject.part) for check, subject in declared(self._fleet, node)]
        wanted = self._of_specs[here.spec]
        subjects = {part: Subject(here.pool, node, part) for _, part in wanted}
        return tuple((check, subjects[part]) for check, part in wanted)


def promised(selection: Selection, phases: Collection[str] | None = None) -> list[tuple[Check, Subject, str]]:
    """Return every check × subject (and its node) of a selection, racks and fabrics too."""
    return [
        (check, subject, node)
        for check in checks(selection.fleet, phases)
        for subject, node in selection.subjects(check.subject)
    ]


def checks(fleet: Fleet, phases: Collection[str] | None = None) -> list[Check]:
    """Return the declared checks of these phases (None or none: of all)."""
    every = [check for catalogue in fleet.checks.values() for check in catalogue.checks]
    return [check for check in every if not phases or set(check.phases) & set(phases)]


def _rack(node: Node) -> Rack:
    return node.pool, node.rack


def _racks(nodes: Iterable[Node]) -> dict[Rack, set[str]]:
    """Return the names of the nodes by rack."""
    groups: dict[Rack, set[str]] = {}
    for node in nodes:
        groups.setdefault(_rack(node), set()).add(node.name)
    return groups


def _fabrics(nodes: Iterable[Node]) -> dict[str, set[str]]:
    """Return the names of the nodes by the fabric that they hang on."""
    groups: dict[str, set[str]] = {}
    for node in nodes:
        if fabric := node.variables.get("fabric"):
            groups.setdefault(fabric, set()).add(node.name)
    return groups


def _parts(fleet: Fleet, fabric: Subject, kind: str) -> list[Subject]:
    """Return a fabric itself, its designed switches, or its rails. A fabric without a design has none of these."""
    design = fleet.designs.get(fabric.name)
    if kind == "fabric" or design is None:
        return [fabric] if kind == "fabric" else []
    if kind == "rail":
        return [Subject(fabric.scope, fabric.name, f"rail-{rail}") for rail in range(design.rails)]
    return [Subject(fabric.scope, fabric.name, name) for name, *_ in design.switches()]

"""The coverage of each GPU, and the parts of a load that prove a node's repair. Pure.

Coverage follows the serial number: a GPU that moves to another node takes it along, and a new GPU has none. A fault is
open until the node serves again, so every fault since then is proven before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.projection import Projection
from assay.model.specs.load_parts import LoadPart
from assay.model.specs.policy_sections import PhaseRequirement


@dataclass(frozen=True, slots=True)
class PartCoverage:
    """One part on one GPU. Times are ISO 8601 UTC, "" for never.

    `turn_at`: the newest visit in which it had its turn. `covered_at`: the newest visit in which it ran to its end, or,
    where it counts in units, computed at least one. `visits`, `cut` and `lacking` count visits by how the part ended.
    `units`: how many units it computed in all; `tests`: by test. `last_unit`: the unit at which it stands.
    """

    turn_at: str = ""
    covered_at: str = ""
    visits: int = 0
    cut: int = 0
    lacking: int = 0
    units: int = 0
    tests: Mapping[str, int] = field(default_factory=dict)
    last_unit: str = ""

    @property
    def turn_was_used(self) -> bool:
        """Whether its newest turn covered it."""
        return bool(self.turn_at) and self.covered_at == self.turn_at


@dataclass(frozen=True, slots=True)
class GpuCoverage:
    """One GPU by its serial number; `node` is where it was seen last. `parts` is the coverage by part."""

    serial: str
    node: str = ""
    parts: Mapping[str, PartCoverage] = field(default_factory=dict)

    def find(self, part: str) -> PartCoverage:
        """Return the coverage of a part; that of a part that never ran is empty."""
        return self.parts.get(part) or PartCoverage()


NO_SERIAL = "unknown serials of "
"""Begins the name under which a node's GPUs are covered if nobody read their serial numbers."""


def name_gpus(node: str, serials: Iterable[str]) -> list[str]:
    """Return the names under which a node's GPUs are covered."""
    return sorted({serial for serial in serials if serial}) or [f"{NO_SERIAL}{node}"]


def _add_visit(gpus: dict[str, GpuCoverage], entry: LedgerEntry) -> dict[str, GpuCoverage]:
    visit = NodeLoadedEntry.read(entry)
    for serial in name_gpus(entry.node, visit.gpus):
        known = gpus.get(serial) or GpuCoverage(serial)
        coverage = {part: _add_part(known.find(part), result, visit.slot) for part, result in visit.parts.items()}
        gpus[serial] = GpuCoverage(serial, entry.node, {**known.parts, **coverage})
    return gpus


def _add_part(known: PartCoverage, result: Mapping[str, Any], at: str) -> PartCoverage:
    ended = str(result.get("ended", ""))
    units = int(result.get("units", 0))
    tests = dict(known.tests)
    for test, count in dict(result.get("tests") or {}).items():
        tests[test] = tests.get(test, 0) + int(count)
    return PartCoverage(
        turn_at=max(known.turn_at, at),
        covered_at=max(known.covered_at, at) if ended == "done" or units else known.covered_at,
        visits=known.visits + (ended == "done"),
        cut=known.cut + (ended == "cut"),
        lacking=known.lacking + (ended == "lacking"),
        units=known.units + units,
        tests=tests,
        last_unit=str(result.get("last_unit") or known.last_unit),
    )


COVERAGE = Projection[dict[str, GpuCoverage]]((NodeLoadedEntry.kind,), dict, _add_visit, dict)
"""The coverage by serial number."""


PROOF_FRESH_HOURS = 24.0
"""The greatest age of a proof where the state requires nothing else."""


def list_requirements(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[PhaseRequirement]:
    """Return what a node must pass to leave its state: the state's requirements, with the proof of its faults.

    If the state loads the node, its load gets more parts. If it does not, and leads into service, such as a restart in
    production, it loads the node for the proof.
    """
    state = snapshot.policy_state_of(view)
    required = list(state.requires)
    proof = find_proof(snapshot, view)
    if not proof:
        return required
    if any(requirement.active for requirement in required):
        return [
            want.model_copy(update={"parts": list(dict.fromkeys([*want.parts, *proof]))}) if want.active else want
            for want in required
        ]
    if state.in_service or not state.pass_to or not snapshot.policy.states[state.pass_to].in_service:
        return required
    hours = min([want.fresh_hours for want in required], default=PROOF_FRESH_HOURS)
    judging = [check for check, _ in view.declared if not check.report_only and set(check.parts) & set(proof)]
    phases = dict.fromkeys(check.phases[0] for check in judging)
    return [
        *required,
        *(PhaseRequirement(phase=phase, active=True, parts=list(proof), fresh_hours=hours) for phase in phases),
    ]


def find_proof(snapshot: FleetSnapshot, view: NodeSnapshot) -> tuple[LoadPart, ...]:
    """Return the parts that the open faults of a node ask for."""
    faults = [fault for fault in view.node_state.faults if fault.is_open]
    return tuple(dict.fromkeys(part for fault in faults for part in snapshot.proofs.get(fault.fault_class, ())))

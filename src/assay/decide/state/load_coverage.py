"""The coverage of each GPU, what a visit to an idle node runs, and the parts of a load that prove a repair. Pure.

Coverage follows the serial number: a GPU that moves to another node takes it along, and a new GPU has none. A fault is
open until the node serves again, so every fault since then is proven before.

A visit runs what the GPUs have not seen for longest. The part that was started longest ago goes first and always
starts, so no part starves where all visits are cut short. What was cut short goes before what was done. The coverage
is a channel of evidence too, which checks judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.entries.schedule_entries import NodeLoadedEntry
from assay.model.facts import fact, frozen
from assay.model.ledger_entry import LedgerEntry, Projection
from assay.model.reading import ReadingTree, value
from assay.model.specs.load_parts import LOAD_PARTS
from assay.model.specs.policy_sections import PhaseRequirement
from assay.model.timestamps import parse_time


@fact
class PartCoverage:
    """How one part of a load has covered one GPU. Times are ISO 8601 UTC, "" for never."""

    turn_at: str = ""
    """The newest visit in which it had its turn."""
    covered_at: str = ""
    """The newest visit in which it ran to its end, or, where it counts in units, computed at least one."""
    visits: int = 0
    """How many visits it covered the GPU in."""
    cut: int = 0
    """How many visits a customer's job cut short."""
    lacking: int = 0
    """In how many visits the node lacked something for it."""
    units: int = 0
    """How many units it computed in all; 0 for a part that does not count in units."""
    tests: Mapping[str, int] = field(default_factory=dict)
    """The units by test."""
    last_unit: str = ""
    """The unit at which it stands."""
    lap_from: str = ""
    """The visit that began with the first unit, if none was left out since then."""
    every_unit_at: str = ""
    """The newest visit after which it had computed every unit."""

    @property
    def turn(self) -> tuple[str, bool]:
        """Sorts parts by who waits longest: by the last turn, then by whether it was covered in it."""
        return self.turn_at, bool(self.turn_at) and self.covered_at == self.turn_at


@fact
class GpuCoverage:
    """A GPU, known by its serial number."""

    serial: str
    """The serial number."""
    node: str = ""
    """The node where it was seen last."""
    parts: Mapping[str, PartCoverage] = field(default_factory=dict)
    """How each part of the load has covered it."""

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
    lap_from, every_unit_at = _follow_lap(known, result, at)
    return PartCoverage(
        turn_at=max(known.turn_at, at),
        covered_at=max(known.covered_at, at) if ended == "done" or units else known.covered_at,
        visits=known.visits + (ended == "done"),
        cut=known.cut + (ended == "cut"),
        lacking=known.lacking + (ended == "lacking"),
        units=known.units + units,
        tests=tests,
        last_unit=str(result.get("last_unit") or known.last_unit),
        lap_from=lap_from,
        every_unit_at=every_unit_at,
    )


def _follow_lap(known: PartCoverage, result: Mapping[str, Any], at: str) -> tuple[str, str]:
    """Return `lap_from` and `every_unit_at` after a visit. A GPU from another node may have left units out."""
    seed = str(result.get("last_unit") or "").partition(":")[0]
    after = result.get("after")
    if after is None or not seed.isdecimal():
        return known.lap_from, known.every_unit_at
    lap_from = at if after == "" else known.lap_from if after == known.last_unit else ""
    return lap_from, at if lap_from and int(seed) >= int(result["seeds"]) else known.every_unit_at


COVERAGE = Projection[dict[str, GpuCoverage]]((NodeLoadedEntry.kind,), dict, _add_visit, dict)
"""The coverage by serial number."""


PROOF_FRESH_HOURS = 24.0
"""The greatest age of a proof where the state requires nothing else."""


def list_requirements(snapshot: FleetSnapshot, view: NodeSnapshot) -> list[PhaseRequirement]:
    """Return what a node must pass to leave its state: the state's requirements, with the proof of its faults.

    A node that is on no fabric has no links to prove. If the state loads the node, its load gets more parts. If it does
    not, and leads into service, such as a restart in production, it loads the node for the proof. Passive checks of the
    proof are required before service, also those of phases that the state does not require.
    """
    state = snapshot.policy_state_of(view)
    required = [want for want in state.requires if want.phase != "fabric" or view.node.settings.fabric]
    proof = find_proof(snapshot, view)
    parts, names = [part for part in LOAD_PARTS if part in proof], [name for name in proof if name not in LOAD_PARTS]
    is_loaded = any(want.active for want in required)
    if parts:
        required = [
            want.model_copy(update={"parts": list(dict.fromkeys([*want.parts, *parts]))}) if want.active else want
            for want in required
        ]
    if not proof or state.in_service or not state.pass_to or not snapshot.policy.states[state.pass_to].in_service:
        return required
    hours = min([want.fresh_hours for want in required], default=PROOF_FRESH_HOURS)
    known = {want.phase for want in required}
    checks = [check for check, _ in view.declared if not check.report_only]
    loading = dict.fromkeys(check.phases[0] for check in checks if not is_loaded and set(check.parts) & set(parts))
    reading = dict.fromkeys(
        check.phases[-1] for check in checks if check.name in names and known.isdisjoint(check.phases)
    )
    return [
        *required,
        *(PhaseRequirement(phase=phase, active=True, parts=parts, fresh_hours=hours) for phase in loading),
        *(PhaseRequirement(phase=phase, checks=names, fresh_hours=hours) for phase in reading),
    ]


def find_proof(snapshot: FleetSnapshot, view: NodeSnapshot) -> tuple[str, ...]:
    """Return the parts of a load, and the checks, that the open faults of a node ask for."""
    faults = [fault for fault in view.node_state.faults if fault.is_open]
    return tuple(dict.fromkeys(part for fault in faults for part in snapshot.proofs.get(fault.fault_class, ())))


UNIT_PART = "battery"
"""The part that counts in units and goes on where it stood."""


@frozen
class VisitPlan:
    """The parts of a visit in their order. `after_unit`: the unit after which the battery goes on, "" for its first."""

    parts: tuple[str, ...]
    after_unit: str = ""


def plan_visit(
    part_seconds: Mapping[str, float], budget_s: float | None, gpus: Sequence[GpuCoverage], seeds: int
) -> VisitPlan:
    """Return the plan of a visit to a node with these GPUs.

    `part_seconds`: the parts of the schedule and how long each takes. `budget_s`: how long a visit may load the node;
    None: each visit runs all parts. After the seed `seeds - 1`, the battery begins again with seed 0.
    """
    waiting = sorted(part_seconds, key=lambda part: min((gpu.find(part).turn for gpu in gpus), default=("", False)))
    chosen: list[str] = []
    left_s = float("inf") if budget_s is None else budget_s
    for part in waiting:
        if not chosen or part_seconds[part] <= left_s:
            chosen.append(part)
            left_s -= part_seconds[part]
    return VisitPlan(tuple(chosen), _find_last_unit(gpus, seeds))


def _find_last_unit(gpus: Sequence[GpuCoverage], seeds: int) -> str:
    """Return where the battery of these GPUs stands: where the one stands that has computed the fewest units."""
    if not gpus:
        return ""
    least = min(gpus, key=lambda gpu: (gpu.find(UNIT_PART).units, gpu.serial))
    unit = least.find(UNIT_PART).last_unit
    seed = unit.partition(":")[0]
    return unit if seed.isdecimal() and int(seed) < seeds else ""


def describe_coverage(
    gpus: Mapping[str, GpuCoverage], parts: Sequence[str], since: datetime, now: datetime
) -> ReadingTree:
    """Return the readings of GPUs by slot: `serial`, and for each of `parts` what `_describe_part` says.

    `since`: when the node came into service. A part that never covered a GPU is as old as that.
    """
    return {
        slot: {
            "serial": value(gpu.serial),
            "parts": {part: _describe_part(part, gpu.find(part), since, now) for part in parts},
        }
        for slot, gpu in gpus.items()
    }


def _describe_part(name: str, part: PartCoverage, since: datetime, now: datetime) -> ReadingTree:
    """Return `age_hours`, `seen` (whether it ever covered the GPU), `visits`, and `units` over all visits."""
    at = parse_time(part.covered_at) if part.covered_at else since
    units = {"units": value(part.units)} if name == UNIT_PART else {}
    age = round(max(0.0, (now - at).total_seconds()) / 3600, 2)
    return {"age_hours": value(age), "seen": value(bool(part.covered_at)), "visits": value(part.visits), **units}

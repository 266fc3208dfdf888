"""Which burn-in a node gets, and its plan: phases in seconds, which load runs beside which, when it swings or rests."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.burn_in import BurnIn, BurnInPhase

HELD_PHASE = "held-longer"
HOUR_S = 3600.0


def make_node_plan(spec: BurnIn, ident: str, shift: float = 0.0, *, held: bool = False) -> dict[str, Any]:
    """Return the plan as plain JSON data. `shift`: by which share of a period cycles and swings are moved.

    `held`: with the phase for nodes that drift, after all others.
    """
    phases = [_make_phase(spec, phase) for phase in spec.phases]
    if held and spec.drift.hold_longer_hours:
        longest = max(spec.phases, key=lambda phase: phase.hours)
        phases.append(
            {**_make_phase(spec, longest), "name": HELD_PHASE, "seconds": spec.drift.hold_longer_hours * HOUR_S}
        )
    return {"id": ident, "watch_s": spec.watch_seconds, "shift": round(shift, 4), "phases": phases}


def _make_phase(spec: BurnIn, phase: BurnInPhase) -> dict[str, Any]:
    cycles, swings = phase.cycles, phase.swings
    return {
        "name": phase.name,
        "seconds": phase.hours * HOUR_S,
        "unit_s": phase.unit_seconds or spec.unit_seconds,
        "rows": [list(row) for row in (phase.parts, phase.beside) if row],
        "cycles": [cycles.on_minutes * 60, cycles.off_minutes * 60] if cycles else [],
        "hertz": list(swings.hertz) if swings else [],
        "duty": swings.duty if swings else 1.0,
    }


def compute_shift(spec: BurnIn, rack: str, racks: Collection[str]) -> float:
    """Return the share of a period by which a rack's cycles and swings are moved: racks are spread over it evenly."""
    ordered = sorted(set(racks))
    if spec.stagger == "none" or rack not in ordered:
        return 0.0
    return ordered.index(rack) / len(ordered)


def list_expected_work(spec: BurnIn, *, held: bool = False) -> list[tuple[str, str]]:
    """Return phase and part of all that must have given results."""
    plan = make_node_plan(spec, "", held=held)
    return [(phase["name"], part) for phase in plan["phases"] for row in phase["rows"] for part in row]


def find_burn_in(fleet: Fleet, name: str) -> BurnIn | None:
    """Return the burn-in for a node: of those that states of the policy name, the first that is for its spec."""
    named = [plan_name for state in fleet.policy.states.values() for plan_name in state.burn_in]
    candidates = (fleet.burn_ins[plan_name] for plan_name in named if plan_name in fleet.burn_ins)
    return next((burn_in for burn_in in candidates if burn_in.applies_to(fleet.nodes[name].spec)), None)


def make_plan_for(
    fleet: Fleet, node: Node, spec: BurnIn, ident: str, *, done_s: float = 0.0, held: bool = False
) -> dict[str, Any]:
    """Return the plan for a node. `done_s`: how far it is, as far as we know; a node without its disk goes on there."""
    racks = {other.rack for other in fleet.nodes_in_pool(node.pool)}
    plan = make_node_plan(spec, ident, compute_shift(spec, node.rack, racks), held=held)
    return {**plan, "done_s": round(done_s, 1)}

"""Which burn-in a node gets, and the plan that it is sent."""

from __future__ import annotations

from typing import Any

from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.burn_in_spec import BurnIn
from assay.validate.active.node_plan import compute_shift, make_node_plan


def find_burn_in(fleet: Fleet, name: str) -> BurnIn | None:
    """Return the burn-in for a node: of those that states of the policy name, the first that is for its spec."""
    named = [one for state in fleet.policy.states.values() for one in state.burn_in]
    found = (fleet.burn_ins[one] for one in named if one in fleet.burn_ins)
    return next((burn_in for burn_in in found if burn_in.applies_to(fleet.nodes[name].spec)), None)


def make_plan_for(
    fleet: Fleet, node: Node, spec: BurnIn, ident: str, *, done_s: float = 0.0, held: bool = False
) -> dict[str, Any]:
    """Return the plan for a node. `done_s`: how far it is, as far as we know; a node without its disk goes on there."""
    racks = {other.rack for other in fleet.nodes_in_pool(node.pool)}
    plan = make_node_plan(spec, ident, compute_shift(spec, node.rack, racks), held=held)
    return {**plan, "done_s": round(done_s, 1)}

"""The action `burn-in`: starts the burn-in that the state names, on the node, where it runs without the controller.

The node knows a burn-in by the id of this effect, so starting it twice is starting it once. Its answer proves it.
"""

from __future__ import annotations

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.observe.transports.transport import TransportRegistry, ask_burn_in
from assay.observe.transports.transport_protocol import TransportContext
from assay.validate.active.burn_in_windows import find_burn_in, make_plan_for

patience_s = 300.0
undone_by = ""
"""A node that leaves its state is told to stop its burn-in; hours of load need no undoing."""


def before(context: ActionContext, intent: EffectIntent) -> EffectFacts:
    """Name the burn-in that will start."""
    spec = find_burn_in(context.fleet, intent.node)
    return {"burn_in": spec.name if spec else ""}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Start it, or let it go on. Raises AssayError if the node does not answer."""
    if (spec := find_burn_in(context.fleet, intent.node)) is None:
        return
    node = context.fleet.nodes[intent.node]
    plan = make_plan_for(context.fleet, node, spec, intent.effect)
    ask_burn_in(node, "start", TransportRegistry(TransportContext(context.evidence)), plan=plan)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the node says that it works on the burn-in of this effect, or has worked on it."""
    if (spec := find_burn_in(context.fleet, intent.node)) is None:
        return EffectVerification(True, "no burn-in is for this node", {"burn_in": ""})
    node = context.fleet.nodes[intent.node]
    answer = ask_burn_in(node, "read", TransportRegistry(TransportContext(context.evidence)))
    if answer.id != intent.effect:
        return EffectVerification(False, f"the node has {answer.id or 'no burn-in'}", {})
    is_there = answer.running or bool(answer.lines)
    text = f"burn-in {spec.name} runs, {spec.hours:g} h" if is_there else f"its supervisor ended: {answer.error}"
    return EffectVerification(is_there, text, {"burn_in": spec.name, "hours": spec.hours, "boot_id": answer.boot})

"""Which links go down with a plug that is pulled: two ports of a switch may share a cage, and then a transceiver."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fabric.discrepancy import Discrepancy
from assay.fabric.planned import Plan
from assay.model.cable import Cable, Port

BY_HAND = {"swap", "moved", "missing", "degraded", "unexpected"}
"""Kinds of which plugs are pulled to mend them."""


def beside(plan: Plan, one: Discrepancy) -> tuple[str, ...]:
    """Say of every other cable in the same cages where it ends, and whose traffic it carries."""
    if one.kind not in BY_HAND:
        return ()
    own = {end.at for end in one.ends}
    found = (plan.cable_at(port) for port in _together(plan, one) if port not in own)
    return tuple(dict.fromkeys(f"{cable.a}: {_whose(plan, cable)}" for cable in found if cable))


def _whose(plan: Plan, cable: Cable) -> str:
    node = next((end for end in cable.ends if end.node), None)
    if node is None:
        return f"the traffic between {cable.a.device} and {cable.b.device}"
    rails = [end.at for own in plan.of_node(node.node) for end in own.ends if end.node == node.node]
    return f"rail {rails.index(node.at)} of {node.node}"


def _together(plan: Plan, one: Discrepancy) -> Iterator[Port]:
    for end in one.ends:
        if device := plan.devices.get(end.guid):
            yield from (Port(end.guid, number) for number in device.together(end.port))

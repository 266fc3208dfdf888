"""The action `poweroff`: ends the node's system, and its power, through its BMC. The BMC's reading proves it."""

from __future__ import annotations

import contextlib

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification, wait_until
from assay.act.remedies.boot import BMC_S
from assay.adapters.bmc.client import open_fleet_bmc
from assay.ledger.file_locks import hold_node_lock
from assay.model.errors import AssayError

patience_s = 900.0
undone_by = ""
"""The next start is a new boot: checks that passed before it no longer count."""
WAIT_S = 300.0


def before(_context: ActionContext, _intent: EffectIntent) -> EffectFacts:
    """Nothing from before is needed: off is off."""
    return {}


def run(context: ActionContext, intent: EffectIntent) -> None:
    """Ask the system to end; force its power off after some minutes, or where the BMC cannot ask."""
    node = context.fleet.nodes[intent.node]
    with hold_node_lock(context.home, intent.node, WAIT_S), open_fleet_bmc(context.fleet, node) as bmc:
        if bmc.read_power_state() == "Off":
            return
        with contextlib.suppress(AssayError):
            bmc.reset_system("GracefulShutdown")
            wait_until(lambda: bmc.read_power_state() == "Off" or None, WAIT_S, "the system ends", bmc.where)
            return
        bmc.reset_system("ForceOff")
        wait_until(lambda: bmc.read_power_state() == "Off" or None, WAIT_S, "the power is off", bmc.where)


def verify(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Read the power from the BMC."""
    with open_fleet_bmc(context.fleet, context.fleet.nodes[intent.node], BMC_S) as bmc:
        power = bmc.system().get("PowerState")
    return EffectVerification(None if power is None else power == "Off", f"its BMC reads the power as {power}")

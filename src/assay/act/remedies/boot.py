"""Which boot a node runs, and how to restart a node: another boot id proves a restart."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification, wait_until
from assay.adapters.bmc.client import BmcClient, open_fleet_bmc
from assay.model.errors import AssayError
from assay.model.evidence import MachineIdentity, read_at_path
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.observe.transports.transport import run_remote_probe

PROBE_S = 10.0
BMC_S = 30.0
ASSET_TAG = "asset_tag"
"""The fact of an effect with the BMC's asset tag, which lends its place to a number that proves the machine."""


def read_boot_id(node: Node) -> str:
    """Return the boot id that the node's probe reads now. Raises AssayError if the node's machine does not answer."""
    channels = run_remote_probe(node, ["--areas", "host"], PROBE_S)
    seen = MachineIdentity.of_channels(channels)
    if seen.list_contradictions(MachineIdentity({"inventory": node.serial})):
        raise AssayError(f"another machine than {node.serial} answers: {seen.describe()}", where=node.name)
    reading = read_at_path(channels, ("probe", "host", "boot_id"))
    if reading.kind != "value":
        raise AssayError(f"no boot id from the probe: {reading.reason}", where=node.name)
    return str(reading.value)


def read_boot_facts(context: ActionContext, node: str) -> EffectFacts:
    """Return what can be read: `boot_id` (as of now, else as last collected); the BMC's `last_reset`, `asset_tag`."""
    facts: EffectFacts = {}
    try:
        facts["boot_id"] = read_boot_id(context.fleet.nodes[node])
    except AssayError:
        known = context.evidence.latest(node)
        if known and (seen := known.read("probe", "host", "boot_id")).kind == "value":
            facts["boot_id"] = seen.value
    with contextlib.suppress(AssayError), open_fleet_bmc(context.fleet, context.fleet.nodes[node], BMC_S) as bmc:
        system = bmc.system()
        facts[ASSET_TAG] = str(system.get("AssetTag") or "")
        if at := system.get("LastResetTime"):
            facts["last_reset"] = at
    return facts


def verify_boot(context: ActionContext, intent: EffectIntent) -> EffectVerification:
    """Done if the node runs another boot than before. Without a boot id from before, the BMC's last reset decides.

    If the node does not answer, its BMC says whether the power is off: then it has not come back.
    """
    node = context.fleet.nodes[intent.node]
    try:
        boot = read_boot_id(node)
    except AssayError as silence:
        with open_fleet_bmc(context.fleet, node, BMC_S) as bmc:
            power = bmc.read_power_state()
        reason = f"{silence.what}; its BMC reads the power as {power}"
        return EffectVerification(False if power == "Off" else None, reason, {"power": power})
    if before := intent.before.get("boot_id"):
        reason = f"boot id {before} → {boot}" if boot != before else f"still runs boot {boot}"
        return EffectVerification(boot != before, reason, {"boot_id": boot})
    if before := intent.before.get("last_reset"):
        reset = _read_last_reset(node, context.fleet)
        facts: EffectFacts = {"boot_id": boot, "last_reset": reset}
        return EffectVerification(reset != before, f"last reset {before} → {reset}", facts)
    return EffectVerification(None, f"runs boot {boot}; which boot it ran before is unknown", {"boot_id": boot})


def is_booting(system: dict[str, Any]) -> bool:
    """Say whether a node is starting, by the BMC's ComputerSystem: powering on, or before its operating system runs."""
    progress = (system.get("BootProgress") or {}).get("LastState")
    return system.get("PowerState") == "PoweringOn" or progress not in (None, "None", "OSRunning")


def has_restarted_since(node: Node, fleet: Fleet, before: str, wait_s: float) -> bool:
    """Say whether the node runs another boot than `before`. If it is booting, wait for the boot up to `wait_s`."""
    with contextlib.suppress(AssayError):
        return bool(before) and read_boot_id(node) != before
    with open_fleet_bmc(fleet, node, BMC_S) as bmc:
        booting = is_booting(bmc.system())
    return bool(before) and booting and wait_for_boot(node, before, wait_s) != before


def has_reset_since(node: Node, fleet: Fleet, before: Mapping[str, Any]) -> bool:
    """Say whether the BMC's last reset is newer than in `before`. It counts only if `before` has no boot id."""
    if before.get("boot_id") or not before.get("last_reset"):
        return False
    return _read_last_reset(node, fleet) != str(before["last_reset"])


def _read_last_reset(node: Node, fleet: Fleet) -> str:
    """Return when the system was last reset, by its BMC. Raises AssayError if the BMC does not say."""
    with open_fleet_bmc(fleet, node, BMC_S) as bmc:
        if at := bmc.system().get("LastResetTime"):
            return str(at)
    raise AssayError("its BMC does not say any more when the node was last reset", where=node.name)


def wait_for_boot(node: Node, before: str, wait_s: float) -> str:
    """Return the id of the first boot other than `before` whose probe answers. Raises AssayError after `wait_s`."""
    return wait_until(
        lambda: seen if (seen := read_boot_id(node)) != before else None,
        wait_s,
        "the node answers with a new boot id" if before else "the node answers",
        node.name,
    )


def restart_node(node: Node, fleet: Fleet, reset: str, unless_after: str, wait_s: float) -> tuple[bool, str]:
    """Reset the node and wait for the new boot, unless it runs another boot than `unless_after` already.

    `reset` is a Redfish reset type; with "" the node is only waited for. Return whether it was reset, and the boot id.
    """
    if not reset or has_restarted_since(node, fleet, unless_after, wait_s):
        return False, wait_for_boot(node, "", wait_s)
    before = unless_after
    with contextlib.suppress(AssayError):
        before = read_boot_id(node)
    with open_fleet_bmc(fleet, node) as bmc:
        bmc.reset_system(reset if bmc.read_power_state() != "Off" else "On")
    return True, wait_for_boot(node, before, wait_s)


def force_off_and_on(bmc: BmcClient, wait_s: float) -> None:
    """Turn the system off, wait until it is, and turn it on. A system that is off is only turned on."""
    if bmc.read_power_state() != "Off":
        bmc.reset_system("ForceOff")
    wait_until(lambda: bmc.read_power_state() == "Off" or None, wait_s, "the power is off", bmc.where)
    bmc.reset_system("On")

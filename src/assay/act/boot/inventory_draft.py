"""Drafts the inventory of machines that were expected and are there, for people to review."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from assay.act.boot.machine_matching import MachineMatch
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.expected_machines import ExpectedMachine, ExpectedMachines

FIRST_STATE = "discovered"
HEAD = "# yaml-language-server: $schema=../specs/schemas/inventory.json\n"


def draft_inventory(fleet: Fleet, delivery: str, matches: Sequence[MachineMatch], earlier: str = "") -> str:
    """Return the inventory file of a delivery: the hosts that it has `earlier`, and the expected machines in `matches`.

    Raises AssayError for a machine whose serial number or certificate is not known: a MAC address is no proof.
    """
    declared = fleet.deliveries[delivery]
    machines = {machine.name: machine for machine in declared.machines}
    hosts = _read_hosts(earlier, declared.pool)
    for match in matches:
        if match.seen.serial != machines[match.node].serial_number or not match.seen.fingerprint:
            fix = "assay discover --scan ADDRESS --login"
            raise AssayError(
                f"{match.node} cannot be proposed: nobody has read its serial number and certificate yet", fix=fix
            )
        hosts[match.node] = _draft_host(fleet, declared, machines[match.node], match)
    note = f"# Delivery {delivery}{f', order {declared.order}' if declared.order else ''}: drafted by assay discover.\n"
    return HEAD + note + yaml.safe_dump({declared.pool: {"hosts": hosts}}, sort_keys=False, allow_unicode=True)


def _read_hosts(text: str, pool: str) -> dict[str, Any]:
    group = (yaml.safe_load(text) or {}).get(pool) or {}
    return dict(group.get("hosts") or {})


def _draft_host(
    fleet: Fleet, delivery: ExpectedMachines, machine: ExpectedMachine, match: MachineMatch
) -> dict[str, Any]:
    """Return the variables of one host: what its pool does not give it already."""
    kind = {"node_spec": delivery.node_spec, "profile": delivery.profile, "site": delivery.site}
    pool = fleet.nodes_in_pool(delivery.pool)
    is_given = pool and all((node.spec, node.profile, node.site) == tuple(kind.values()) for node in pool)
    host: dict[str, Any] = {} if is_given else dict(kind)
    host |= {"rack": machine.rack, "u": machine.u, "serial_number": machine.serial_number}
    host |= {"bmc_address": match.seen.address, "bmc_mac": machine.bmc_mac, "mac": machine.mac}
    host |= {"bmc_fingerprint": match.seen.fingerprint, "hca_guids": machine.hca_guids}
    host |= {"endorsement_key_sha256": machine.endorsement_key_sha256}
    host |= {"lifecycle_start": FIRST_STATE} if _is_booted_by_assay(fleet, delivery) else {}
    return {name: value for name, value in host.items() if value}


def _is_booted_by_assay(fleet: Fleet, delivery: ExpectedMachines) -> bool:
    """Whether the new node's way begins before its first start: assay starts it, and the policy knows that state."""
    policy = next(iter(fleet.policies.values()), None)
    boots = any(one.applies_to(delivery.pool) for one in fleet.provisionings.values())
    return boots and policy is not None and FIRST_STATE in policy.states

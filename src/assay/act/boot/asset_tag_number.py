"""A random number in a BMC's asset tag, for one start: the machine behind this BMC alone can read it, by its SMBIOS."""

from __future__ import annotations

import contextlib
import hashlib
import secrets

from assay.act.actions.action import ActionContext, EffectIntent
from assay.act.remedies.boot import ASSET_TAG, BMC_S
from assay.adapters.bmc.bmc_client import BmcClient, open_fleet_bmc
from assay.adapters.bmc.boot_override import write_asset_tag
from assay.model.errors import AssayError


def give_number(context: ActionContext, node: str, bmc: BmcClient) -> str:
    """Give the BMC a new number, and return its SHA-256; "" where none is wanted, or where the BMC keeps none."""
    provisioning, number = context.fleet.provisioning_of(node), secrets.token_hex(16)
    if provisioning is None or "bmc-nonce" not in provisioning.proofs:
        return ""
    try:
        write_asset_tag(bmc, number)
    except AssayError as error:
        context.progress(f"{node}: no proof by its BMC: {error}")
        return ""
    return hashlib.sha256(number.encode()).hexdigest()


def restore_asset_tag(context: ActionContext, intent: EffectIntent) -> None:
    """Give the BMC the asset tag back that it had before the effect, if it could be read."""
    provisioning, tag = context.fleet.provisioning_of(intent.node), intent.before.get(ASSET_TAG)
    if tag is not None and provisioning is not None and "bmc-nonce" in provisioning.proofs:
        node = context.fleet.nodes[intent.node]
        with contextlib.suppress(AssayError), open_fleet_bmc(context.fleet, node, BMC_S) as bmc:
            write_asset_tag(bmc, str(tag))

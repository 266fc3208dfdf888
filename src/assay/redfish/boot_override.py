"""Lets a BMC start its machine from the network once, and gives the machine a text that only this BMC shows it."""

from __future__ import annotations

from assay.model.errors import AssayError
from assay.redfish.bmc_client import BmcClient
from assay.redfish.resource_changes import patch_resource
from assay.redfish.session import Resource

ENABLED, TARGET = "BootSourceOverrideEnabled", "BootSourceOverrideTarget"


def order_next_boot(bmc: BmcClient, target: str) -> None:
    """Set the source of the next start alone, such as `Pxe`, and read it back.

    Raises AssayError where the BMC does not offer it, refuses it, or shows something else afterwards.
    """
    system = bmc.system()
    allowed = _read_boot(system).get(f"{TARGET}@Redfish.AllowableValues") or [target]
    if target not in allowed:
        fix = "name another `boot_target` in the Provisioning, or update the BMC"
        raise AssayError(f"the BMC starts from {', '.join(allowed)}, and not from {target}", where=bmc.where, fix=fix)
    patch_resource(bmc, system["@odata.id"], {"Boot": {ENABLED: "Once", TARGET: target}})
    seen = _read_boot(bmc.system())
    if (seen.get(ENABLED), seen.get(TARGET)) != ("Once", target):
        what = f"asked to start from {target} once, the BMC shows {seen.get(TARGET)}, {seen.get(ENABLED)}"
        raise AssayError(what, where=bmc.where, fix="update the BMC, or let the machine's boot order begin with PXE")


def write_asset_tag(bmc: BmcClient, text: str) -> None:
    """Set the asset tag, which the machine's own SMBIOS shows it at its next start, and read it back.

    Raises AssayError where the BMC has none that can be set.
    """
    patch_resource(bmc, bmc.system()["@odata.id"], {"AssetTag": text})
    if (bmc.system().get("AssetTag") or "") != text:
        raise AssayError("the BMC did not keep the asset tag", where=bmc.where)


def describe_boot_progress(bmc: BmcClient) -> str:
    """Return how far the machine's start is, for people: its power, and the progress where the BMC shows it."""
    system = bmc.system()
    progress = (system.get("BootProgress") or {}).get("LastState")
    return f"power {system.get('PowerState')}" + (f", {progress}" if progress and progress != "None" else "")


def _read_boot(system: Resource) -> Resource:
    boot: Resource = system.get("Boot") or {}
    return boot

"""Lets a BMC start its machine from the network once, and tells how far the start is.

It also gives the machine a text that only this BMC shows it.
"""

from __future__ import annotations

import re

from assay.adapters.bmc.client import BmcClient
from assay.adapters.bmc.resource import patch_resource
from assay.adapters.bmc.session import Resource
from assay.model.errors import AssayError

CONSOLE_LOG = "HostLogger"
"""OpenBMC's log of the serial console, an entry for each line.

Source: openbmc/bmcweb, redfish-core/lib/systems_logservices_hostlogger.hpp.
"""
READ_LINES = 20
CONSOLE_LINES = 3
"""So many of the lines that were read, those that are not empty, are shown."""
MOST_CHARACTERS = 160
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
ENABLED = "BootSourceOverrideEnabled"
TARGET = "BootSourceOverrideTarget"


def order_next_boot(bmc: BmcClient, target: str) -> None:
    """Set the source of the next start alone, such as `Pxe`, and read it back.

    A BMC may keep it for all starts (sushy-emulator does): a node that assay starts boots from its image each time.
    Raises AssayError where the BMC does not offer it, refuses it, or shows something else afterwards.
    """
    system = bmc.system()
    allowed = _read_boot(system).get(f"{TARGET}@Redfish.AllowableValues") or [target]
    if target not in allowed:
        fix = "name another `boot_target` in the Provisioning, or update the BMC"
        raise AssayError(f"the BMC starts from {', '.join(allowed)}, and not from {target}", where=bmc.where, fix=fix)
    patch_resource(bmc, system["@odata.id"], {"Boot": {ENABLED: "Once", TARGET: target}})
    seen = _read_boot(bmc.system())
    if seen.get(ENABLED) not in ("Once", "Continuous") or seen.get(TARGET) != target:
        problem = f"asked to start from {target} once, the BMC shows {seen.get(TARGET)}, {seen.get(ENABLED)}"
        raise AssayError(problem, where=bmc.where, fix="update the BMC, or let the machine's boot order begin with PXE")


def write_asset_tag(bmc: BmcClient, text: str) -> None:
    """Set the asset tag, which the machine's own SMBIOS shows it at its next start, and read it back.

    Raises AssayError where the BMC has none that can be set.
    """
    patch_resource(bmc, bmc.system()["@odata.id"], {"AssetTag": text})
    if (bmc.system().get("AssetTag") or "") != text:
        raise AssayError("the BMC did not keep the asset tag", where=bmc.where)


def describe_boot_progress(bmc: BmcClient) -> str:
    """Return how far the machine's start is, for people: its power, its progress and its console, as far as shown."""
    system = bmc.system()
    progress = (system.get("BootProgress") or {}).get("LastState")
    progress_text = f"power {system.get('PowerState')}" + (f", {progress}" if progress and progress != "None" else "")
    try:
        lines = read_console_end(bmc, system)
    except AssayError as error:
        return f"{progress_text}; its console cannot be read: {error.what}"
    return f"{progress_text}; its console ends with: {' / '.join(lines)}" if lines else progress_text


def read_console_end(bmc: BmcClient, system: Resource) -> list[str]:
    """Return the last lines of the system's serial console that are not empty; none where the BMC keeps no such log."""
    services = bmc.members(bmc.follow(system, "LogServices", 1)) if "LogServices" in system else []
    log = next((service for service in services if service.get("Id") == CONSOLE_LOG and "Entries" in service), None)
    if log is None:
        return []
    path, query = log["Entries"]["@odata.id"], {"$top": str(READ_LINES)}
    if bmc.has_feature("TopSkipQuery"):
        count = int(bmc.get_with(path, {"$top": "1"}).get("Members@odata.count", 0))
        query["$skip"] = str(max(0, count - READ_LINES))
    entries = bmc.get_with(path, query).get("Members", [])
    lines = []
    for entry in entries:
        plain = _TERMINAL_CODE.sub("", str(entry.get("Message") or ""))
        lines.append("".join(char for char in plain if char.isprintable()).strip()[:MOST_CHARACTERS])
    return [line for line in lines if line][-CONSOLE_LINES:]


def _read_boot(system: Resource) -> Resource:
    boot: Resource = system.get("Boot") or {}
    return boot

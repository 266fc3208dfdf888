"""The firmware inventory of a BMC, in our ids and spelling."""

from __future__ import annotations

from typing import NamedTuple

from assay.model.reading import failed, value
from assay.observe.bmc_leaves import Resource, Tree
from assay.observe.session import Session
from assay.observe.spelling import spelled


class Firmware(NamedTuple):
    """What runs, id → reading of its version; what waits for a reset, id → reading; id → the BMC's own resource."""

    runs: Tree
    waits: Tree
    paths: dict[str, str]


def read_firmware(bmc: Session) -> Firmware:
    """Return the inventory. Raises Trouble where there is none to read.

    A part that is listed twice is read once where both say the same; where they do not, that is what it reads.
    """
    service = bmc.follow(bmc.root, "UpdateService")
    found = Firmware({}, {}, {})
    for item in bmc.members(bmc.follow(service, "FirmwareInventory", 1)):
        _take(found, item, bmc)
    return found


def _take(found: Firmware, item: Resource, bmc: Session) -> None:
    ident = str(item.get("Id"))
    one = spelled(ident, item.get("Version"), bmc.ways.firmware)
    if one.leave_out or (one.pending and not one.version):  # an empty entry for what could wait says that nothing does
        return
    if one.pending:
        found.waits[one.part] = value(one.version)
        return
    reading = value(one.version) if one.version else failed("the BMC lists this part without a version")
    other = found.runs.get(one.part)
    if other is not None and other != reading and "value" in other and "value" in reading:
        reading = failed(f"the BMC lists {one.part} twice, as {other['value']} and as {one.version}")
    elif other is not None and "value" in other:
        reading = other
    found.runs[one.part] = reading
    found.paths.setdefault(one.part, str(item.get("@odata.id")))

"""The update service and the firmware inventory."""

from __future__ import annotations

from assay.lab.bmc.flash import MAX_IMAGE_BYTES
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/UpdateService"
INVENTORY = f"{PATH}/FirmwareInventory"
SIMPLE_UPDATE = f"{ROOT}{PATH}/Actions/UpdateService.SimpleUpdate"
PUSH = f"{ROOT}{PATH}/update-multipart"


def update_service(_: View) -> Resource:
    """Both ways of bringing an image: SimpleUpdate fetches it, the multipart push carries it."""
    return resource(
        "UpdateService",
        "1_14_0",
        "UpdateService",
        "Update service",
        ServiceEnabled=True,
        Status=status(),
        MaxImageSizeBytes=MAX_IMAGE_BYTES,
        MultipartHttpPushUri=PUSH,
        FirmwareInventory=link(INVENTORY),
        Actions={
            "#UpdateService.SimpleUpdate": {
                "target": SIMPLE_UPDATE,
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
            }
        },
    )


def inventory(view: View) -> Resource:
    """Every piece of firmware of the node."""
    return collection(
        "SoftwareInventory", "Firmware inventory", [f"{INVENTORY}/{name}" for name in view.state["firmware"]]
    )


def firmware(view: View, ident: str) -> Resource:
    """One piece of firmware: the version that runs, which is not the one that is staged."""
    return resource(
        "SoftwareInventory",
        "1_10_0",
        ident,
        ident,
        Version=view.state["firmware"][ident],
        Updateable=True,
        SoftwareId=ident,
        Status=status(),
    )

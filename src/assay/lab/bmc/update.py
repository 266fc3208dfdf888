"""The update service and the firmware inventory."""

from __future__ import annotations

from assay.lab.bmc.flash import MAX_IMAGE_BYTES
from assay.lab.bmc.tree import ROOT, Resource, View, collection, link, resource, status

PATH = "/UpdateService"
INVENTORY = f"{PATH}/FirmwareInventory"
SIMPLE_UPDATE = f"{ROOT}{PATH}/Actions/UpdateService.SimpleUpdate"
PENDING = "_Pending"
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
    """Every piece of firmware of the node, and what waits for a reset to run."""
    names = [*view.state["firmware"], *(f"{name}{PENDING}" for name in view.state.get("staged", {}))]
    return collection("SoftwareInventory", "Firmware inventory", [f"{INVENTORY}/{name}" for name in names])


def firmware(view: View, ident: str) -> Resource:
    """One piece of firmware: the version that runs, or, by an id of its own, the one that is staged."""
    stem = ident.removesuffix(PENDING)
    waits = stem != ident and stem in view.state.get("staged", {})
    return resource(
        "SoftwareInventory",
        "1_10_0",
        ident,
        ident,
        Version=view.state["staged"][stem]["version"] if waits else view.state["firmware"][ident],
        Updateable=not waits,
        SoftwareId=stem if waits else ident,
        Status=status(None, "StandbyOffline") if waits else status(),
    )

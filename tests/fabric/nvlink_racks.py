"""A made-up GB200 NVL72 rack: its design, and what NMX Controller would say. Which port leads where is invented."""

import json
import random
import zlib
from pathlib import Path

from assay.fabric.design.compiler import compile_topology
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.fabric.fabric_design import FabricDesign

DESIGN = {
    "kind": "FabricDesign", "name": "rack-07", "rate": "2xXDR",
    "nvlink": {"compute_trays": ["n0001..n0018"], "rack": "r07"},
}  # fmt: skip
NODES = [f"n{tray + 1:04}" for tray in range(18)]
GPUS = [("gpu", tray, number) for tray in range(18) for number in range(1, 5)]
ASICS = [("asic", tray, number) for tray in range(9) for number in (1, 2)]
PARTS = {"gpu": "gpuTopoInfo", "asic": "switchTopoInfo"}
STATES = {
    True: {
        "physicalState": "NMX_PORT_PHYS_STATE_LINKUP",
        "logicalState": "NMX_LOGICAL_LINK_STATE_ACTIVE",
        "linkRateMbps": 400000,
    },
    False: {"physicalState": "NMX_PORT_PHYS_STATE_POLLING", "logicalState": "NMX_LOGICAL_LINK_STATE_DOWN"},
}


def make_nodes():
    return {name: Node(name, "", "", "r07", 10 + tray, "", "", "", ()) for tray, name in enumerate(NODES)}


def topology(**changes):
    return compile_topology(FabricDesign.model_validate(DESIGN | changes), Fleet(Path(), make_nodes()))


def uid(device):
    """A device's UID, of which nothing can be told."""
    return 1 + zlib.crc32(repr(device).encode())


def numbered_ports(seed):
    """The port of each device that leads to each device of the other kind, in any order."""
    shuffle = random.Random(seed)
    for near, far in ((GPUS, ASICS), (ASICS, GPUS)):
        for device in near:
            yield from (((device, there), port) for port, there in enumerate(shuffle.sample(far, len(far)), start=1))


def dump(lost=(), down=(), *, first=1, seed=0):
    """What NMX Controller says of a rack without the devices `lost` and the links `down` (pairs of GPU and ASIC).

    `first` is the number of the first device of a tray.
    """
    port_to = dict(numbered_ports(seed))
    devices = []
    for device in GPUS + ASICS:
        if device in lost:
            continue
        ports = []
        for there in ASICS if device[0] == "gpu" else GPUS:
            up = there not in lost and (device, there) not in down and (there, device) not in down
            peer = {"peerPortDeviceUid": str(uid(there)), "peerPortNum": str(port_to[there, device])} if up else {}
            ports.append({"portNum": str(port_to[device, there]), **STATES[up], **peer})
        kind, tray, number = device
        where = {"chassisSerialNumber": "1820325190001", **({"trayIndex": str(tray)} if tray else {})}
        own = {"loc": where, "deviceUid": str(uid(device)), "portTopoInfo": ports}
        if first + number > 1:
            own["deviceId"] = first + number - 1
        devices.append({PARTS[kind]: own})
    return json.dumps({"serverHeader": {}, "deviceTopoInfo": devices})

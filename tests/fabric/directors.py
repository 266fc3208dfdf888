"""A small director switch: a box with line cards and spine cards, several chips each."""

from pathlib import Path

from assay.fabric.design.compiler import compile_topology
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign

HOSTS, LEAVES = 4, ("dir-L1a", "dir-L1b", "dir-L2a", "dir-L2b")
SPINES = ("dir-S1", "dir-S2")


def director():
    """A director with two line cards of two chips and two spine cards, and a switch beside it with a node."""
    guids = {name: f"0x{number:016x}" for number, name in enumerate((*LEAVES, *SPINES, "top"), start=0xB0)}
    devices = [
        {"guid": guid, "name": name, "ports": 40, "rack": "r1", "u": 10}
        | ({"box": "dir", "module": name[4:6]} if name != "top" else {})
        for name, guid in guids.items()
    ]
    cables = [f"{leaf}/{20 + s} - {spine}/{1 + n}" for n, leaf in enumerate(LEAVES) for s, spine in enumerate(SPINES)]
    cables += [f"{leaf}/{10 + n} - top/{2 * number + n}" for number, leaf in enumerate(LEAVES) for n in (1, 2)]
    for number in range(HOSTS):
        for rail, leaf in enumerate((LEAVES[0], LEAVES[2])):
            name, guid = f"h{number} mlx5_{rail}", f"0x{0xA000 + 16 * number + rail:016x}"
            devices.append({"guid": guid, "name": name, "kind": "hca", "ports": 1, "node": f"h{number}"})
            cables.append(f"{name}/1 - {leaf}/{number + 1}")
    for port in (30, 31):
        guid = f"0x{0xC000 + port:016x}"
        devices.append({"guid": guid, "name": f"far mlx5_{port}", "kind": "hca", "ports": 1, "node": "far"})
        cables.append(f"far mlx5_{port}/1 - top/{port}")
    design = FabricDesign.model_validate(
        {"kind": "FabricDesign", "name": "d", "rate": "4xHDR", "devices": devices, "cables": cables}
    )
    return compile_topology(design, Fleet(Path(), {}))

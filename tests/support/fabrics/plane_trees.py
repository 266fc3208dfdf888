"""Small fat trees of rules with planes, compiled, and as a discovery in which chips announce their box."""

from dataclasses import replace

from assay.fabric.design.compiler import compile_topology
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import in_reach
from tests.support.fabrics.superpods import fleet_of


def row(tier, count, planes):
    """Boxes that stand one to a rack; their chips have GUIDs one after another."""
    guids = [[f"0x{0xE000 + tier << 16 | box << 4 | plane:016x}" for plane in range(planes)] for box in range(count)]
    return [
        {"guid": own[0], "other_planes": own[1:], "rack": f"t{tier}", "u": box + 1} for box, own in enumerate(guids)
    ]


def plane_design(planes=4, units=2, places=3, rails=2, tops=2, pair=2, cores=0, **changes):
    rules = {
        "kind": "FabricDesign", "name": "planes", "rate": "1xXDR", "rails": rails, "planes": planes,
        "nodes": [f"n0001..n{units * places:04}"],
        "switch": {"product": "Q3400", "ports": 144},
        "leaves": {"name": "leaf-{unit}-{rail}", "down": f"1..{places}", "up": f"10..{9 + tops * pair}",
                   "at": row(1, units * rails, planes)},
        "spines": {"name": "spine-{index}", "per_pair": pair, "at": row(2, tops, planes)},
    }  # fmt: skip
    if cores:
        rules["spines"] |= {"down": f"1..{units * rails * pair}", "up": f"101..{100 + cores * pair}"}
        rules["cores"] = {"name": "core-{index}", "per_pair": pair, "plane": "all", "at": row(3, cores, planes)}
    return FabricDesign.model_validate(rules | changes)


def plane_tree(**shape):
    rules = plane_design(**shape)
    return compile_topology(rules, fleet_of(rules, rules.rails))


def announced(plan, cables):
    """A discovery in which chips announce their box, and adapters their node."""
    seen = in_reach(plan, cables)
    devices = dict(seen.devices)
    for guid, device in devices.items():
        own = plan.devices[guid]
        if own.box:
            text = f"MF0;{own.box}:Q3400/U{own.plane}"
            devices[guid] = device._replace(description=text, system=f"0x{int(guid, 16) & ~15:016x}")
    return replace(seen, devices=devices)

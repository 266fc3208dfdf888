"""`python -m bench.big_fabric DIR NODES` makes a fleet repository with a three-tier fabric, and a discovery of it.

2,048 nodes of 8 rails are the largest DGX SuperPOD: 49,152 cables on 64-port switches. Larger fabrics keep the leaves
and spines, and get cores with more ports.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from assay.fabric.design.compiled_topology import CompiledTopology
from assay.fabric.design.devices import DesignedDevice
from assay.fabric.design.topology_cache import load_topology

RAILS, UNIT, POD, UP = 8, 32, 32, 32
DUMP = "discovery.txt"

INVENTORY = """\
all:
  vars:
    node_spec: hgx
    profile: managed
    site: lab1
    fabric: big
  hosts:
"""
DESIGN = """\
kind: FabricDesign
name: big
description: Rail-optimised fat tree of {units} scalable units
owner: fabric
site: lab1
nodes: ["{first}..{last}"]
rails: 8
rate: 4xNDR
hca_label: "R{{rail}}"
switch: {{product: MQM9700, ports: {ports}, labels: cage/port}}
leaves:
  name: leaf-su{{unit:03}}-r{{rail}}
  down: 1..32
  up: 33..64
  at: {{count: {leaves}, rack: "l{{rack:04}}", per_rack: 8, u: 20, u_step: 2, guids: {{first: "0xb83fd20100000000", step: 64}}}}
spines:
  name: spine-p{{pod:02}}-r{{rail}}-{{number:02}}
  group: rail
  pod: 32
  per_pair: 1
  down: 1..32
  up: 33..64
  at: {{count: {spines}, rack: "s{{rack:04}}", per_rack: 8, u: 20, u_step: 2, guids: {{first: "0xb83fd20200000000", step: 64}}}}
cores:
  name: core-{{plane:02}}-{{number:02}}
  per_pair: {per_pair}
  at: {{count: {cores}, rack: "c{{rack:04}}", per_rack: 8, u: 20, u_step: 2, guids: {{first: "0xb83fd20300000000", step: 64}}}}
lengths: {{node_leaf: 10, leaf_spine: 30, spine_core: 50}}
"""  # noqa: E501 — a line of YAML
DEVICE_ID = {"switch": "0xd2f2", "hca": "0x1021", "router": "0xd2f2"}


def make(folder: Path, nodes: int) -> Path:
    """Make a repository for `nodes` nodes, a multiple of 1,024, and return its folder."""
    for part in ("inventory", "specs/fabrics"):
        (folder / part).mkdir(parents=True)
    (folder / "inventory" / "all.yml").write_text(INVENTORY + "".join(map(_host, range(nodes))))
    (folder / "specs" / "fabrics" / "big.yaml").write_text(_design(nodes))
    return folder


def dump(plan: CompiledTopology) -> Iterator[str]:
    """Yield the records of a discovery that matches the design, the last device first."""
    for device in reversed(plan.devices.values()):
        yield _record(plan, device)


def node_name(number: int) -> str:
    """Return the name of the node `number`, counted from 0."""
    return f"n{number + 1:05}"


def _design(nodes: int) -> str:
    units = nodes // UNIT
    groups = units // POD * RAILS
    per_pair = max(1, 64 // groups)
    return DESIGN.format(
        units=units, first=node_name(0), last=node_name(nodes - 1), ports=max(64, groups * per_pair),
        leaves=units * RAILS, spines=groups * UP, cores=UP * UP // per_pair, per_pair=per_pair,
    )  # fmt: skip


def _host(number: int) -> str:
    guids = ", ".join(f'"0xa088c203{number + 1:06x}{rail}0"' for rail in range(RAILS))
    place = f"rack: r{number // 4 + 1:05}, u: {4 + 10 * (number % 4)}, serial_number: S{number:06}"
    return f"    {node_name(number)}: {{{place}, hca_guids: [{guids}]}}\n"


def _record(plan: CompiledTopology, device: DesignedDevice) -> str:
    digits, switch = device.guid[2:], device.kind == "switch"
    head = f"vendid=0x2c9\ndevid={DEVICE_ID[device.kind]}\nsysimgguid={device.guid}\n"
    if switch:
        head += f"switchguid={device.guid}({digits})\nSwitch\t{device.ports} "
        head += f'"S-{digits}"\t\t# "{device.description}" enhanced port 0 lid 7 lmc 0\n'
    else:
        head += f'caguid={device.guid}\nCa\t1 "H-{digits}"\t\t# "{device.description}"\n'
    return head + "".join(_port(plan, digits, row, switch) for row in plan.rows[digits]) + "\n"


def _port(plan: CompiledTopology, digits: str, row: tuple[str, str, str, str], switch: bool) -> str:
    port, far, far_port, rate = row
    peer = plan.devices[f"0x{far}"]
    there = f'"{"S" if peer.kind == "switch" else "H"}-{far}"[{far_port}]'
    if switch:
        there += "" if peer.kind == "switch" else f"({far}) "
        return f'[{port}]\t{there}\t\t# "{peer.description}" lid 7 {rate}\n'
    return f'[{port}]({digits}) \t{there}\t\t# lid 7 lmc 0 "{peer.description}" lid 7 {rate}\n'


if __name__ == "__main__":
    made = make(Path(sys.argv[1]), int(sys.argv[2]))
    with (made / DUMP).open("w") as file:
        file.writelines(dump(load_topology(made)))

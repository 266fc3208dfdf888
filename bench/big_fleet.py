"""`python -m bench.big_fleet DIR [NODES]` makes a fleet repository of any size, always the same for the same size.

Specs, suites, playbooks and firmware are this repository's. Pools have 2,500 nodes, one inventory file each, with all
variables of the example. Fabrics have 256 nodes: two tiers of 64-port switches carry these at full rate.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
TAKEN = ("specs", "suites", "playbooks", "ansible.cfg")
POOL, FABRIC, UNIT, RAILS, SPINES = 2500, 256, 32, 8, 32

POOL_HEAD = """\
# yaml-language-server: $schema=../specs/schemas/inventory.json
{pool}:
  vars:
    node_spec: hgx-h100
    profile: managed
    site: lab1
    workloads: none
    service_import: {{nodes: {names}, reason: they serve already, expires: 2999-01-01}}
    bmc_credentials: {{env: ASSAY_BMC}}
  hosts:
"""
HOST = """\
    {name}:
      rack: {rack}
      u: {u}
      serial_number: A52{number:012}
      bmc_address: {bmc}
      fabric: {fabric}
      hca_guids:
"""
DESIGN_HEAD = """\
# yaml-language-server: $schema=../schemas/fabric-design.json
kind: FabricDesign
name: {name}
description: Rail-optimised 4xNDR fat tree of {units} scalable units
owner: fabric
site: lab1
nodes: ["{first}..{last}"]
rails: 8
rate: 4xNDR
hca_label: "R{{rail}}"
switch: {{product: MQM9700, ports: 64, labels: cage/port}}
lengths: {{node_leaf: 10, leaf_spine: 5}}
"""


def make(folder: Path, nodes: int) -> Path:
    """Make a fleet of `nodes` nodes in `folder`, a git repository with one commit, and return the folder."""
    folder.mkdir(parents=True)
    for name in TAKEN:
        _take(ROOT / name, folder / name)
    _take(ROOT / "src/assay/declare/starter/own/pytest.ini", folder / "pytest.ini")
    _write(folder / "inventory", {f"{pool_name(at)}.yml": pool(at, nodes) for at in range(0, nodes, POOL)})
    designs = {f"{fabric_name(at)}.yaml": design(at, nodes) for at in range(0, nodes, FABRIC)}
    shutil.rmtree(folder / "specs" / "fabrics")
    _write(folder / "specs" / "fabrics", designs)
    _commit(folder)
    return folder


def node_name(number: int) -> str:
    """Return the name of the node `number`, counted from 0."""
    return f"n{number + 1:06}"


def pool_name(number: int) -> str:
    """Return the pool of the node `number`."""
    return f"pool-{number // POOL + 1:02}"


def fabric_name(number: int) -> str:
    """Return the fabric of the node `number`."""
    return f"fabric-{number // FABRIC + 1:03}"


def pool(first: int, nodes: int) -> str:
    """Return the inventory file of the pool that starts at node `first`, in a fleet of `nodes`."""
    numbers = range(first, min(first + POOL, nodes))
    names = f"[{node_name(numbers[0])}..{node_name(numbers[-1])}]"
    return POOL_HEAD.format(pool=pool_name(first), names=names) + "".join(_host(number) for number in numbers)


def design(first: int, nodes: int) -> str:
    """Return the design of the fabric that starts at node `first`, in a fleet of `nodes`."""
    last = min(first + FABRIC, nodes) - 1
    units = -(-(last + 1 - first) // UNIT)
    index = first // FABRIC
    head = {"name": fabric_name(first), "units": units, "first": node_name(first), "last": node_name(last)}
    leaves = list(_switches(index, "l", units * RAILS))
    spines = list(_switches(index, "s", SPINES))
    return "".join(
        [
            DESIGN_HEAD.format(**head),
            f"leaves:\n  name: f{index + 1:03}-leaf-su{{unit:02}}-r{{rail}}\n  down: 1..32\n  up: 33..64\n  at:\n",
            *leaves,
            f"spines:\n  name: f{index + 1:03}-spine-{{index:02}}\n  per_pair: 1\n  at:\n",
            *spines,
            _limits(),
        ]
    )


@cache
def _limits() -> str:
    """Return the limits of the example's fabric design, as YAML."""
    example = yaml.safe_load((ROOT / "specs" / "fabrics" / "compute.yaml").read_text())
    limits: str = yaml.safe_dump({"limits": example["limits"]}, allow_unicode=True)
    return limits


def _host(number: int) -> str:
    facts = {
        "name": node_name(number),
        "rack": f"r{number // 4 + 1:05}",
        "u": 4 + 10 * (number % 4),
        "number": number + 1,
        "bmc": f"10.{32 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
        "fabric": fabric_name(number),
    }
    guids = (f'        - "0xa088c203{number + 1:06x}{rail}6"\n' for rail in range(RAILS))
    return HOST.format(**facts) + "".join(guids)


def _switches(fabric: int, tier: str, count: int) -> Iterator[str]:
    """Yield the switches of a tier, nine to a rack."""
    base = 0xB83FD20300000000 + (fabric << 16) + (0x8000 if tier == "s" else 0)
    for at in range(count):
        rack, u = f"f{fabric + 1:03}{tier}{at // 9 + 1:02}", 20 + 2 * (at % 9)
        yield f'    - {{guid: "0x{base + at * 64:016x}", rack: {rack}, u: {u}}}\n'


def _take(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source, target)


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)


def _commit(folder: Path) -> None:
    who = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false")
    for words in (["init", "--quiet"], ["add", "--all"], [*who, "commit", "--quiet", "--message", "A big fleet"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)

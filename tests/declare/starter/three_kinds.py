"""A fleet of 200 nodes of three kinds, as a fleet engineer makes it: `assay init`, then files of one's own.

120 HGX H200 under Slurm, 54 GB200 trays in three racks under Kubernetes, 26 MI300X that nobody schedules. The fabrics
are fat trees with places left. What stands in for a site's own in the example is gone, or is the site's.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from assay.declare.repository.tree import WorkingFolder
from assay.declare.rules.repository_files import FILE as CODE_OWNERS
from assay.declare.rules.repository_files import format_code_owners
from assay.declare.spec_reader import read_specs
from assay.declare.starter.new_repository import create_repository, render_starter
from assay.declare.starter.starter_record import format_record, make_record

SCHEMAS = {"inventory": "../specs/schemas/inventory.json", "fabrics": "../schemas/fabric-design.json"}
H200, GB200, MI300X = (
    [f"{kind}{number:03}" for number in range(1, count + 1)] for kind, count in (("h", 120), ("g", 54), ("m", 26))
)
EXPIRES = "2036-12-31"
EARLIER = Path(__file__).with_name("earlier_starter.tar.gz")
MI300X_SPEC = """\
# yaml-language-server: $schema=../schemas/node-spec.json
kind: NodeSpec
name: mi300x
extends: hgx-h200
description: Eight MI300X OAM in a chassis of the same maker as our HGX H200; what is not said here is as there.
owner: hardware-platform
product: AS-8125GS-TNMR2
firmware: mi300x-2026-10
driver: null
fabric_manager: null
gpus: {vendor: amd, model: AMD Instinct MI300X OAM}
hcas: []
gpu_settings: null
hca_settings: null
host:
  services: [chrony]
  modules: [amdgpu]
  module_options: null
limits:
  gpu_power_limit: {value: 750, unit: W, source: "AMD Instinct MI300X data sheet: 750 W"}
  gpu_memory: {value: 196592, unit: MiB, source: "amd-smi static on MI300X: 196592 MiB"}
"""
MI300X_BUNDLE = """\
# yaml-language-server: $schema=../schemas/firmware-bundle.json
kind: FirmwareBundle
name: mi300x-2026-10
description: What we qualified together on our MI300X in October 2026.
owner: hardware-platform
components:
  - {name: bmc, version: "01.05.11", inventory: [BMC], push: multipart, reset: bmc, order: 10}
  - {name: bios, version: "3.1.0", inventory: [BIOS], push: simple, reset: host, order: 30}
"""
IMAGE = f"""\
# yaml-language-server: $schema=../schemas/image.json
kind: Image
name: oslo-2026.10
description: What our MI300X boot.
owner: fleet-engineering
sources: ["our own build"]
version: "2026.10"
kernel: {{url: "https://images.oslo.internal/2026.10/vmlinuz", sha256: {"1a" * 32}}}
initrds: [{{url: "https://images.oslo.internal/2026.10/initrd", sha256: {"2b" * 32}}}]
arguments: [console=ttyS0, quiet]
"""
PROVISIONING = """\
# yaml-language-server: $schema=../schemas/provisioning.json
kind: Provisioning
name: oslo
description: How our MI300X boot.
owner: fleet-engineering
sources: ["our own choice"]
pools: [mi300x]
url: http://boot.oslo.internal:8080
secure_url: https://boot.oslo.internal:8443
images: {mi300x: oslo-2026.10}
"""
OUR_CHECK = '''"""Checks of our own."""

import pytest

pytestmark = [pytest.mark.phase("production"), pytest.mark.passive]


@pytest.mark.fault("gpu.throttled")
def test_power_draw(gpu, limits, measure):
    """Compare the GPU's power draw with our limit."""
    measure("power_draw", gpu.power.draw_w, at_most=limits.oslo_power_draw)
'''
OUR_CHECK_DECLARED = """\
# yaml-language-server: $schema=../schemas/check-catalog.json
kind: CheckCatalog
name: oslo
owner: fleet-engineering
checks:
  - id: suites/production/test_oslo.py::test_power_draw
    subject: gpu
    phases: [production]
    fault: gpu.throttled
    needs: [nvidia]
    stage: observe
"""
OUR_CHECK_CASES = """\
suites/production/test_oslo.py::test_power_draw:
  - name: a GPU that draws too much
    subject: gpu4
    leaves: {"probe/gpu/devices/0000:9d:00.0/power/draw_w": {value: 1400.0}}
    says: power_draw 1400 W, expected at most
"""
LIMIT_OF_OURS = "  oslo_power_draw: {value: 1300, unit: W, source: our own choice}\n"
EXAMPLES = (
    "inventory/h100-a.yml",
    "specs/provisioning/lab1.yaml",
    "specs/images/gpu-node.yaml",
    "specs/expected/2026-11-hgx-h100.yaml",
)


def make_three_kinds(root: Path, slurm_conf: Path, kubeconfig: Path) -> None:
    """Make the repository, without a commit. The schedulers are those of a slurm.conf and of a kubeconfig."""
    create_repository(root)
    _take_earlier_playbooks(root)
    for path in EXAMPLES:
        (root / path).unlink()
    for path in sorted((root / "specs").rglob("*.yaml")):
        text = path.read_text().replace("lab1.example", "oslo.internal").replace("@example/", "@acme/")
        path.write_text(re.sub(r"(?m)^stands_in: .*\n", "", text) if path.parent.name == "firmware" else text)
    (root / "specs/images/oslo.yaml").write_text(IMAGE)
    (root / "specs/provisioning/oslo.yaml").write_text(PROVISIONING)
    profile = root / "specs/profiles/managed.yaml"
    profile.write_text(profile.read_text().replace("may: []", "may: [ac-cycles, network-starts]"))
    design = yaml.safe_load((root / "specs/fabrics/compute.yaml").read_text())
    _write(root, "specs/fabrics/compute.yaml", {**design, **_wire("h001..h120", rails=8, units=4, spines=16, first=0)})
    trays = {**design, "name": "trays", **_wire("g001..g054", rails=4, units=2, spines=4, first=1)}
    _write(root, "specs/fabrics/trays.yaml", trays)
    (root / "specs/nodes/mi300x.yaml").write_text(MI300X_SPEC)
    (root / "specs/firmware/mi300x-2026-10.yaml").write_text(MI300X_BUNDLE)
    slurm = {"workloads": "slurm", "slurm_conf": str(slurm_conf), "fabric": "compute"}
    trays_run_by = {"workloads": "kubernetes", "kubernetes": {"kubeconfig": str(kubeconfig)}, "fabric": "trays"}
    _write_pool(root, "h200", "hgx-h200", H200, slurm, 8)
    _write_pool(root, "gb200", "gb200-nvl72", GB200, trays_run_by, 4)
    _write_pool(root, "mi300x", "mi300x", MI300X, {"workloads": "none"}, 0)
    (root / CODE_OWNERS).write_text(format_code_owners(read_specs(WorkingFolder(root))[0]))


def _take_earlier_playbooks(root: Path) -> None:
    """Let the repository be one that an earlier version of assay made, whose playbooks it still has."""
    shipped = render_starter("github")[1]
    with tarfile.open(EARLIER) as archive:
        for member in archive.getmembers():
            if member.isfile() and member.name.startswith("playbooks/") and member.name in shipped:
                archive.extract(member, root, filter="data")
    copied = {path: (root / path).read_bytes() for path in shipped}
    for path, content in format_record(make_record("0.0.9", "github", copied)).items():
        (root / path).write_bytes(content)


def list_guids(name: str, rails: int) -> list[str]:
    """Return the port GUIDs of a node's adapters."""
    kind = "hgm".index(name[0]) + 1
    return [f"0x9c63c003{kind:02x}{rail:02x}{int(name[1:]):04x}" for rail in range(rails)]


def make_host(name: str, rails: int) -> dict[str, Any]:
    """Return where a node stands, and what identifies it."""
    number, per_rack, height = int(name[1:]), 18 if name[0] == "g" else 4, 1 if name[0] == "g" else 10
    rack, place = divmod(number - 1, per_rack)
    identity = {
        "serial_number": f"{name[0].upper()}52{number:06}",
        "bmc_address": f"10.{'hgm'.index(name[0])}.1.{number}",
    }
    guids = {"hca_guids": list_guids(name, rails)} if rails else {}
    return {"rack": f"{name[0]}r{rack + 1:02}", "u": place * height + 2, **identity, **guids}


def _write_pool(root: Path, pool: str, spec: str, names: list[str], more: dict[str, Any], rails: int) -> None:
    served = {"nodes": [f"{names[0]}..{names[-1]}"], "reason": "they served before assay", "expires": EXPIRES}
    variables = {"node_spec": spec, "profile": "managed", "site": "oslo", "service_import": served, **more}
    variables["bmc_credentials"] = {"env": "ASSAY_BMC"}
    hosts = {name: make_host(name, rails) for name in names}
    _write(root, f"inventory/{pool}.yml", {pool: {"vars": variables, "hosts": hosts}})


def _wire(nodes: str, *, rails: int, units: int, spines: int, first: int) -> dict[str, Any]:
    """Return what differs from the example's design in a larger one, whose switches stand in racks of their own."""
    leaves, upper = list(_place_switches(units * rails, f"x{first}1")), list(_place_switches(spines, f"x{first}2"))
    return {
        "site": "oslo",
        "description": "A rail-optimised fat tree with places left",
        "nodes": [nodes],
        "rails": rails,
        "leaves": {"name": "leaf-su{unit:02}-r{rail}", "down": "1..32", "up": "33..64", "at": leaves},
        "spines": {"name": "spine-{index:02}", "per_pair": 32 // spines, "at": upper},
    }


def _place_switches(count: int, row: str) -> Iterator[dict[str, Any]]:
    for number in range(count):
        guid = f"0xb83fd203{int(row[1:]):04x}{number * 0x40:04x}"
        yield {"guid": guid, "rack": f"{row}-{number // 8 + 1}", "u": 20 + 2 * (number % 8)}


def _write(root: Path, path: str, data: dict[str, Any]) -> None:
    schema = SCHEMAS[Path(path).parent.name]
    text = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, default_flow_style=None, allow_unicode=True)
    (root / path).write_text(f"# yaml-language-server: $schema={schema}\n{text}")

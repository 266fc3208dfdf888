"""A full NVL72 rack in the lab: its trays vote as one, and who is sick, a GPU or a switch tray, is named everywhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import yaml

from assay.lab.faults.injection import inject_fault
from assay.lab.world import LabWorld
from assay.model.evidence import FABRIC_EVIDENCE_PREFIX, EvidenceDocument
from assay.model.reading import value
from assay.observe.evidence_store import EvidenceStore
from tests.fabric.nvlink_racks import ASICS, DESIGN, NODES, dump, numbered_ports
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT

SICK, HEALTHY = "n0005", ["n0006", "n0011", "n0018"]


def assay(home: Path, *words: str, code: int = 0) -> str:
    done = run_assay(*words, "--fleet", home, cwd=home)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fleet of eighteen trays in one rack, which serve, with the design of its NVLinks; its lab up."""
    tmp_path = tmp_path_factory.mktemp("rack")
    for folder in ("specs", "suites", "playbooks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "fabrics"))
    (tmp_path / "specs/fabrics").mkdir()
    (tmp_path / "specs/fabrics/rack-07.yaml").write_text(yaml.safe_dump(DESIGN))
    (tmp_path / "inventory").mkdir()
    hosts = {
        name: {
            "u": place,
            "serial_number": f"S{name}",
            "bmc_address": f"198.18.0.{place}",
            "hca_guids": [f"0xa088c20401{rail:02x}00{place:02x}" for rail in range(4)],
        }
        for place, name in enumerate(NODES, 1)
    }
    start = {"nodes": NODES, "reason": "they serve", "expires": "2999-01-01"}
    variables = {"node_spec": "gb200-nvl72", "profile": "managed", "site": "lab1", "rack": "r07"}
    pool = {"nvl": {"vars": {**variables, "service_import": start}, "hosts": hosts}}
    (tmp_path / "inventory/r07.yml").write_text(yaml.safe_dump(pool))
    assay(tmp_path, "lab", "up")
    yield tmp_path
    assay(tmp_path, "lab", "down")


@pytest.mark.slow(minutes=8)
def test_a_wrong_gpu_of_72_is_named_on_every_surface(home: Path) -> None:
    assay(home, "reconcile", "--once")
    assay(home, "lab", "inject", "gpu.computes-wrong", "--node", SICK, "--with", "gpu=2")
    assay(home, "observe", *HEALTHY, "--active", "battery")
    for name in HEALTHY:
        assay(home, "validate", "--phase", "test", "--node", name)
    assay(home, "schedules", "run", "idle-verification")
    for _ in range(3):
        assay(home, "reconcile", "--once")
    status = {node["node"]: node["state"] for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}
    assert {name: state for name, state in status.items() if state != "production"} == {SICK: "rma"}
    for text in (assay(home, "explain", SICK), assay(home, "history", SICK), assay(home, "tickets")):
        assert f"{SICK}" in text
        assert "gpu2" in text
    assert "n0006" in " ".join(assay(home, "explain", SICK, "--full").split()), "who outvoted it"
    whole = LabWorld(home / ".assay-lab/world")
    assert sum(len(whole.load(name)["gpus"]) for name in NODES) == 72


@pytest.mark.slow(minutes=4)
def test_a_sick_switch_tray_is_one_ticket_that_every_node_names(home: Path) -> None:
    """The tray's ASICs spoil a link of each GPU of 17 nodes; the scan is the one that NMX Controller would answer."""
    world, well = LabWorld(home / ".assay-lab/world"), [name for name in NODES if name != SICK]
    ports = dict(numbered_ports(0))
    for name, gpu, asic in product(well, range(4), [asic for asic in ASICS if asic[1] == 5]):
        link = ports[("gpu", NODES.index(name), gpu + 1), asic] - 1
        inject_fault(world, "gpu.nvlink.errors", name, {"gpu": gpu, "link": link, "count": 400})
    scan = {"discovery": {"text": value(dump()), "stderr": value("")}}
    evidence = EvidenceStore(home / ".assay-lab/evidence")
    evidence.store_latest(EvidenceDocument(f"{FABRIC_EVIDENCE_PREFIX}rack-07", world.clock().now(), scan))
    assay(home, "lab", "advance", "2")
    assay(home, "reconcile", "--once", code=1)  # the breaker holds the nodes back
    tickets = json.loads(assay(home, "tickets", "--format", "json"))["tickets"]
    (title,) = [each["title"] for each in tickets if "NVLink" in each["title"]]
    assert title.endswith("before any GPU: NVLink domain lab1/r07, switch tray nvswitch-5")
    nodes = {node["node"]: node for node in json.loads(assay(home, "status", "--format", "json"))["nodes"]}
    assert [name for name, node in nodes.items() if "switch tray nvswitch-5" in str(node)] == well
    said = " ".join(assay(home, "explain", well[-1]).split())
    assert "switch tray nvswitch-5" in said
    assert said.count("An NVLink recovers") == 1, "four GPUs of a node are one incident"

"""The output of the lab's port tools is read completely, and planted readings show at their port."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.fabric.health.stored_scan import FabricScan, read_scan
from assay.lab.fabric import port_telemetry
from assay.lab.fabric.cabling import lay_cables, load_cabling, unplug_cable
from assay.lab.world import LabWorld
from assay.model.evidence import EvidenceDocument
from assay.model.reading import value
from tests.support.places import ROOT
from tests.support.port_facts import plant_port_facts


@pytest.fixture
def world(tmp_path: Path) -> LabWorld:
    fleet = load_fleet(ROOT)
    lab = LabWorld(tmp_path)
    lay_cables(lab, compile_topology(fleet.designs["compute"], fleet))
    return lab


def read(world: LabWorld) -> FabricScan:
    said = {name: {"text": value(say(world)), "stderr": value("")} for name, say in port_telemetry.TOOL_OUTPUTS.items()}
    return read_scan(EvidenceDocument("fabric-compute", datetime(2026, 11, 21, tzinfo=UTC), {"ports": said}))


def test_a_healthy_lab_is_read_whole_and_has_no_errors(world):
    seen = read(world)
    assert (seen.problems, dict(seen.failed_commands), len(seen.switches)) == ((), {}, 12)
    assert seen.manager
    assert seen.manager.master
    assert len(seen.facts) == 832
    assert not any(facts.counters for facts in seen.facts.values())


def test_what_is_planted_is_seen_there_and_nowhere_else(world):
    plant_port_facts(world, "leaf-su01-r2[40]", counters={"SymbolErrorCounter": 65535}, temperature_c=83.0)
    port = load_cabling(world).port("leaf-su01-r2[40]")
    seen = read(world)
    assert {at for at, facts in seen.facts.items() if facts.counters} == {port}
    assert seen.find_port_facts(port).saturated == {"SymbolErrorCounter"}
    assert seen.find_port_facts(port).module["temperature_c"] == 83.0


def test_a_port_without_a_cable_has_no_module(world):
    unplug_cable(world, "n0005/mlx5_3")
    assert load_cabling(world).port("n0005/mlx5_3") not in read(world).facts


def test_a_module_reads_alike_at_every_look(world):
    assert read(world).facts == read(world).facts


def test_the_command_of_the_inventory_prints_it(world):
    command = [sys.executable, "-m", "assay.lab.fabric.port_telemetry", str(world.home)]
    done = subprocess.run([*command, "errors"], capture_output=True, text=True, check=True)
    assert done.stdout == port_telemetry.format_ibqueryerrors(world)
    assert subprocess.run([*command, "nothing"], capture_output=True, check=False).returncode == 2


def test_printing_starts_in_a_moment(world):
    # a virtual node prints its fabric at every look: pydantic alone would take 0.3 CPU s each time
    modules = "assay.lab.fabric.port_telemetry, assay.lab.fabric.ibnetdiscover"
    ask = f"import sys, {modules}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0

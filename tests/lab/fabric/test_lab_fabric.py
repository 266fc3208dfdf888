"""Changes of the lab's cables show in its discovery, which is what the real tools print of the same cables."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.declare.loader import load_fleet
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import CompiledTopology, compile_topology
from assay.fabric.readers.ibnetdiscover import parse
from assay.lab.fabric.cabling import (
    find_links,
    lay_cables,
    load_cabling,
    repair_cabling,
    slow_cable,
    swap_cables,
    unplug_cable,
)
from assay.lab.fabric.ibnetdiscover import discover_lab_fabric, format_net_file
from assay.lab.virtual_node_state import write_json
from assay.lab.world import LabWorld
from assay.model.errors import AssayError
from tests.support.fabrics import ibsim
from tests.support.fabrics.fat_trees import fat_tree
from tests.support.fabrics.recorded_fabric import COMPUTE
from tests.support.places import ROOT

TOOLS = ibsim.find_ibsim_tools()
needs_ibsim = pytest.mark.skipif(not TOOLS, reason=f"needs the packages {ibsim.PACKAGES}")


@pytest.fixture(scope="module")
def compute() -> CompiledTopology:
    fleet = load_fleet(ROOT)
    return compile_topology(fleet.designs["compute"], fleet)


@pytest.fixture
def world(tmp_path, compute) -> LabWorld:
    lab = LabWorld(tmp_path)
    lay_cables(lab, compute)
    return lab


def hca_says(world: LabWorld, compute: CompiledTopology, node: str, rail: int, **facts) -> None:
    """Let a node's state say something of one adapter."""
    guid = compute.cables_of_node(node)[rail].a.guid
    adapter = {"guid": guid, "state": "ACTIVE", "rate_gbps": 400, **facts}
    write_json(world.folder(node) / "state.json", {"hcas": [adapter]})


def ask_real_tools(world: LabWorld) -> tuple[str, str]:
    """Return what the real ibnetdiscover prints of the lab's present cables, and its stderr."""
    now = load_cabling(world)
    switches = sum(device.kind == "switch" for device in now.devices.values())
    net = format_net_file(now.devices, find_links(world, now))
    return ibsim.run_ibnetdiscover(TOOLS, net, len(now.devices), switches)


def run_discover(home: Path, *node: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "assay.lab.fabric.ibnetdiscover", str(home), *node]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def as_designed(world, compute):
    """Nobody touches anything."""


def one_swap(world, compute):
    swap_cables(world, "n0005/mlx5_3", "n0006/mlx5_3")


def spine_swap(world, compute):
    swap_cables(world, "leaf-su01-r0[33]", "leaf-su01-r1[47]")


def one_unplugged(world, compute):
    unplug_cable(world, "n0007/mlx5_1")


def one_moved(world, compute):
    unplug_cable(world, "leaf-su01-r7[30]")
    swap_cables(world, "leaf-su01-r7[9]", "leaf-su01-r7[30]")


def one_slow(world, compute):
    slow_cable(world, "leaf-su01-r2[40]", "4xHDR")


def one_down(world, compute):
    hca_says(world, compute, "n0011", 4, state="DOWN")


def one_slow_adapter(world, compute):
    hca_says(world, compute, "n0011", 4, rate_gbps=200)


def node_off(world, compute):
    for rail in range(8):
        unplug_cable(world, f"n0003/mlx5_{rail}")


def dead_leaf(world, compute):
    for port in range(1, 65):
        unplug_cable(world, f"leaf-su01-r6[{port}]")


def swap_and_back(world, compute):
    one_swap(world, compute)
    one_swap(world, compute)


def repaired(world, compute):
    one_swap(world, compute)
    node_off(world, compute)
    repair_cabling(world)


DEEDS = [
    (as_designed, []),
    (one_swap, [("swap", 2)]),
    (spine_swap, [("swap", 2)]),
    (one_unplugged, [("missing", 1)]),
    (one_moved, [("moved", 1)]),
    (one_slow, [("degraded", 1)]),
    (one_down, [("missing", 1)]),
    (one_slow_adapter, [("degraded", 1)]),
    (node_off, [("device-missing", 8)]),
    (dead_leaf, [("device-missing", 52)]),
    (swap_and_back, []),
    (repaired, []),
]


@pytest.mark.parametrize(("deed", "called"), DEEDS, ids=[deed.__name__ for deed, _ in DEEDS])
def test_what_hands_do_is_what_the_comparison_names(world, compute, deed, called):
    deed(world, compute)
    discovery = parse(discover_lab_fabric(world))
    assert discovery.problems == ()
    comparison = compare_cabling(compute, discovery)
    assert [(one.kind, len(one.cables)) for one in comparison.discrepancies] == called


def sort_lines(text: str) -> list[str]:
    return sorted(line for line in text.splitlines() if not line.startswith("#"))


@needs_ibsim
@pytest.mark.parametrize("deed", [deed for deed, _ in DEEDS], ids=[deed.__name__ for deed, _ in DEEDS])
def test_the_lab_and_the_real_tools_discover_the_same(world, compute, deed):
    deed(world, compute)
    printed, stderr = ask_real_tools(world)
    real, written = parse(printed), parse(discover_lab_fabric(world))
    assert (stderr, real.problems) == ("", ())
    assert {(frozenset(c[:2]), c.rate) for c in written.cables} == {(frozenset(c[:2]), c.rate) for c in real.cables}
    assert written.devices == real.devices
    assert sort_lines(discover_lab_fabric(world)) == sort_lines(printed)


def test_the_lab_prints_the_lines_that_the_real_tools_once_printed(world):
    assert sort_lines(discover_lab_fabric(world)) == sort_lines(COMPUTE)


@needs_ibsim
def test_lost_packets_of_the_real_tools_make_a_partial_discovery(world, compute):
    now = load_cabling(world)
    losing = format_net_file(now.devices, now.cables) + f'\ndo Error "H-{compute.cables[0].a.guid[2:]}"[1] 100\n'
    discovery = parse(*ibsim.run_ibnetdiscover(TOOLS, losing, len(now.devices), 12))
    assert len(discovery.cables) == 415
    comparison = compare_cabling(compute, discovery)
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())
    assert "bad status 110" in comparison.problems[0]


@needs_ibsim
def test_two_discoveries_at_once_do_not_meet(world):
    with ThreadPoolExecutor() as pool:
        both = pool.map(ask_real_tools, [world, world])
    assert [len(parse(*one).cables) for one in both] == [416, 416]


@needs_ibsim
def test_no_simulator_is_left_and_nothing_is_written_where_one_stands(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    ask_real_tools(world)
    assert set(tmp_path.iterdir()) == before
    assert all(process.poll() is not None for process in started)
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


@needs_ibsim
def test_a_net_that_the_simulator_refuses_is_said():
    with pytest.raises(AssayError, match="ibsim did not start"):
        ibsim.run_ibnetdiscover(TOOLS, 'Switch\t64 "S-1"\n[99999]\t"H-1"[1]\n', 4, 1)


def test_ndr_goes_into_the_simulator_as_hdr_and_a_slow_link_stays_slower(world, compute):
    slow_cable(world, "n0001/mlx5_0", "4xHDR")
    now = load_cabling(world)
    shifted = ibsim._shifted(format_net_file(now.devices, now.cables), ibsim.SLOWED)
    assert (shifted.count("4xEDR\n"), shifted.count("4xHDR\n"), shifted.count("NDR")) == (2, 830, 0)


def test_the_command_prints_a_discovery_and_nothing_on_stderr(world):
    done = run_discover(world.home)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(parse(done.stdout).cables) == 416


def test_a_lab_without_a_fabric_says_so(tmp_path):
    done = run_discover(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the lab has no fabric" in done.stderr
    assert "Traceback" not in done.stderr


def test_each_fabric_is_discovered_from_its_own_nodes(world, compute):
    storage = fat_tree(units=1, nodes=2, rails=2, spines=1)
    lay_cables(world, compute, storage)
    node = next(device.node for device in storage.devices.values() if device.node)
    assert node not in {device.node for device in compute.devices.values()}
    discoveries = [parse(discover_lab_fabric(world, one)) for one in ("n0001", node)]
    seen = zip((compute, storage), discoveries, strict=True)
    assert [compare_cabling(*pair).verdict for pair in seen] == ["match", "match"]
    assert run_discover(world.home, "n9999").returncode == 1


@pytest.mark.parametrize("end", ["n0005", "n9999/mlx5_0", "leaf-su01-r9[3]", ""])
def test_an_end_that_is_not_there_is_refused_and_nothing_changes(world, end):
    before = (world.home / "fabric.json").read_text()
    with pytest.raises(AssayError, match="the lab's fabric has no"):
        swap_cables(world, "n0001/mlx5_0", end)
    assert (world.home / "fabric.json").read_text() == before


def test_unplugging_an_empty_port_changes_nothing(world):
    before = load_cabling(world).cables
    unplug_cable(world, "leaf-su01-r0[31]")
    assert load_cabling(world).cables == before


def test_swapping_with_an_empty_port_moves_the_one_plug(world, compute):
    swap_cables(world, "leaf-su01-r0[1]", "leaf-su01-r0[31]")
    (one,) = compare_cabling(compute, parse(discover_lab_fabric(world))).discrepancies
    assert one.kind == "moved"


def test_a_device_out_of_reach_is_not_discovered(world, compute):
    dead_leaf(world, compute)
    discovery = parse(discover_lab_fabric(world))
    assert len(discovery.devices) == len(compute.devices) - 1 - 20

"""The lab's cables: hands change them, and the discovery shows it, by the real tools and by replay alike."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay.fabric.compare import compare
from assay.fabric.design import Plan, plan
from assay.fabric.ibnetdiscover import parse
from assay.fleet.load import load_fleet
from assay.lab import fabric, ibsim, replay
from assay.lab.discover import discover
from assay.lab.fabric import lay, move, repair, slow, swap, unplug, wiring
from assay.lab.netfile import net
from assay.lab.world import World, write_json
from assay.model.errors import Trouble

REPOSITORY = Path(__file__).parents[2]
TOOLS = ibsim.installed()
needs_ibsim = pytest.mark.skipif(not TOOLS, reason=f"needs the packages {ibsim.PACKAGES}")
WAYS = [pytest.param(None, id="recorded"), pytest.param(TOOLS, id="ibsim", marks=needs_ibsim)]


@pytest.fixture(scope="module")
def compute() -> Plan:
    fleet = load_fleet(REPOSITORY)
    return plan(fleet.designs["compute"], fleet)


@pytest.fixture
def world(tmp_path, compute) -> World:
    lab = World(tmp_path)
    lay(lab, compute)
    return lab


def hca_says(world: World, compute: Plan, node: str, rail: int, **facts) -> None:
    """Let a node's state say something of one adapter."""
    guid = compute.of_node(node)[rail].a.guid
    adapter = {"guid": guid, "state": "ACTIVE", "rate_gbps": 400, **facts}
    write_json(world.folder(node) / "state.json", {"hcas": [adapter]})


def run_discover(home: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "assay.lab.discover", str(home)]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


def as_designed(world, compute):
    """Nobody touches anything."""


def one_swap(world, compute):
    swap(world, "n0005/mlx5_3", "n0006/mlx5_3")


def spine_swap(world, compute):
    swap(world, "leaf-su01-r0[33]", "leaf-su01-r1[47]")


def one_unplugged(world, compute):
    unplug(world, "n0007/mlx5_1")


def one_moved(world, compute):
    move(world, "leaf-su01-r7[9]", "leaf-su01-r7[30]")


def one_slow(world, compute):
    slow(world, "leaf-su01-r2[40]", "4xHDR")


def one_down(world, compute):
    hca_says(world, compute, "n0011", 4, state="DOWN")


def one_slow_adapter(world, compute):
    hca_says(world, compute, "n0011", 4, rate_gbps=200)


def node_off(world, compute):
    for rail in range(8):
        unplug(world, f"n0003/mlx5_{rail}")


def dead_leaf(world, compute):
    for port in range(1, 65):
        unplug(world, f"leaf-su01-r6[{port}]")


def swap_and_back(world, compute):
    one_swap(world, compute)
    one_swap(world, compute)


def repaired(world, compute):
    one_swap(world, compute)
    node_off(world, compute)
    repair(world)


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


@pytest.mark.parametrize("tools", WAYS)
@pytest.mark.parametrize(("deed", "called"), DEEDS, ids=[deed.__name__ for deed, _ in DEEDS])
def test_what_hands_do_is_what_the_comparison_names(world, compute, tools, deed, called):
    deed(world, compute)
    discovery = parse(*discover(world, tools))
    assert discovery.problems == ()
    comparison = compare(compute, discovery)
    assert [(one.kind, len(one.cables)) for one in comparison.discrepancies] == called


@needs_ibsim
@pytest.mark.parametrize("deed", [deed for deed, _ in DEEDS], ids=[deed.__name__ for deed, _ in DEEDS])
def test_the_replay_and_the_real_tools_discover_the_same(world, compute, deed):
    deed(world, compute)
    real, replayed = (parse(*discover(world, tools)) for tools in (TOOLS, None))
    assert {(frozenset(c[:2]), c.rate) for c in replayed.cables} == {(frozenset(c[:2]), c.rate) for c in real.cables}
    assert replayed.devices == real.devices


@needs_ibsim
def test_the_recording_is_what_the_real_tools_print_today(world):
    def lines(text):
        return sorted(line for line in text.splitlines() if not line.startswith("#"))

    out, err = discover(world, TOOLS)
    assert lines(out) == lines(replay.recording("compute"))
    assert err == ""


@needs_ibsim
def test_lost_packets_of_the_real_tools_make_a_partial_discovery(world, compute):
    now = wiring(world)
    losing = net(now.devices, now.cables) + f'\ndo Error "H-{compute.cables[0].a.guid[2:]}"[1] 100\n'
    discovery = parse(*ibsim.discover(TOOLS, losing, len(now.devices), 12))
    assert len(discovery.cables) == 415
    comparison = compare(compute, discovery)
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())
    assert "bad status 110" in comparison.problems[0]


@needs_ibsim
def test_two_discoveries_at_once_do_not_meet(world):
    command = [sys.executable, "-m", "assay.lab.discover", str(world.home)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [len(parse(one.communicate(timeout=60)[0]).cables) for one in both] == [416, 416]


@needs_ibsim
def test_no_simulator_is_left_and_nothing_is_written_where_one_stands(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(popen(*a, **k)) or started[-1])
    discover(world, TOOLS)
    assert set(tmp_path.iterdir()) == before
    assert all(process.poll() is not None for process in started)
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.killpg(process.pid, 0)


@needs_ibsim
def test_a_net_that_the_simulator_refuses_is_said():
    with pytest.raises(Trouble, match="ibsim did not start"):
        ibsim.discover(TOOLS, 'Switch\t64 "S-1"\n[99999]\t"H-1"[1]\n', 4, 1)


def test_ndr_goes_into_the_simulator_as_hdr_and_a_slow_link_stays_slower(world, compute):
    slow(world, "n0001/mlx5_0", "4xHDR")
    now = wiring(world)
    shifted = ibsim._shifted(net(now.devices, now.cables), ibsim.SLOWED)
    assert (shifted.count("4xEDR\n"), shifted.count("4xHDR\n"), shifted.count("NDR")) == (2, 830, 0)


def test_the_command_prints_a_discovery_and_nothing_on_stderr(world):
    done = run_discover(world.home)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(parse(done.stdout).cables) == 416


def test_where_the_tools_are_missing_the_recording_stands_in(world, monkeypatch):
    monkeypatch.setattr(ibsim, "LIBRARIES", ())
    assert ibsim.installed() is None
    assert fabric.mode() == "recorded"
    assert ibsim.PACKAGES in fabric.describe()


@needs_ibsim
def test_where_the_tools_are_the_lab_says_ibsim():
    assert fabric.mode() == "ibsim"
    assert "NDR" in fabric.describe()


def test_a_lab_without_a_fabric_says_so(tmp_path):
    done = run_discover(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the lab has no fabric" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_recording_of_another_cabling_is_not_replayed(world):
    plain = json.loads((world.home / "fabric.json").read_text())
    plain["designed"].pop()
    write_json(world.home / "fabric.json", plain)
    with pytest.raises(Trouble, match="another cabling") as trouble:
        discover(world, None)
    assert "ibsim-utils" in trouble.value.fix


def test_a_design_without_a_recording_is_not_replayed():
    with pytest.raises(Trouble, match="no recorded discovery of the fabric storage"):
        replay.recording("storage")


@pytest.mark.parametrize("end", ["n0005", "n9999/mlx5_0", "leaf-su01-r9[3]", ""])
def test_an_end_that_is_not_there_is_refused_and_nothing_changes(world, end):
    before = (world.home / "fabric.json").read_text()
    with pytest.raises(Trouble, match="the lab's fabric has no"):
        swap(world, "n0001/mlx5_0", end)
    assert (world.home / "fabric.json").read_text() == before


def test_unplugging_an_empty_port_changes_nothing(world):
    before = wiring(world).cables
    unplug(world, "leaf-su01-r0[31]")
    assert wiring(world).cables == before


def test_swapping_with_an_empty_port_moves_the_one_plug(world, compute):
    swap(world, "leaf-su01-r0[1]", "leaf-su01-r0[31]")
    (one,) = compare(compute, parse(*discover(world, None))).discrepancies
    assert one.kind == "moved"


def test_a_device_out_of_reach_is_not_in_the_replay(world, compute):
    dead_leaf(world, compute)
    discovery = parse(*discover(world, None))
    assert len(discovery.devices) == len(compute.devices) - 1 - 20

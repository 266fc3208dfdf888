"""A day of burn-in in lab time: a reboot, a killed controller, a drift that holds the node longer, an early end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from assay.lab.virtual_node_state import VirtualNodeState
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from tests.support.forked_assay import assay, run_assay
from tests.support.serving_fleet import POLICY, change_yaml, make_serving_fleet

NODE, RATE = "n0001", 200.0
PHASES = [
    {"name": "heat", "hours": 3, "parts": ["gpu_burn"]},
    {"name": "again", "hours": 1, "parts": ["all_reduce"], "beside": ["memory"]},
]


def name_burn_in(policy: dict[str, Any]) -> None:
    policy["states"]["test"] |= {"burn_in": ["day"], "soak_hours": 0, "entry": ["cordon", "drain", "burn-in"]}
    policy["edges"]["production"].append("test")


def shorten_day(spec: dict[str, Any]) -> None:
    spec |= {"phases": PHASES, "unit_seconds": 300, "watch_seconds": 300}
    spec["drift"] |= {"hold_longer_hours": 1, "points_at_least": 5}
    spec["drift"]["limits"]["gflops"] = {"per_day": 2}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet of one node in the state `test`, whose burn-in has been ordered, its lab up."""
    make_serving_fleet(tmp_path, [NODE])
    change_yaml(tmp_path / POLICY, name_burn_in)
    change_yaml(tmp_path / "specs/burnin/day.yaml", shorten_day)
    assay(tmp_path, "lab", "up")
    world = LabWorld(tmp_path / ".assay-lab/world")
    world.set_clock(world.clock().now(), RATE)
    assay(tmp_path, "reconcile", "--once")
    assay(tmp_path, "move", NODE, "test", "--reason", "a day of load")
    yield tmp_path
    stop_supervisor(tmp_path)
    assay(tmp_path, "lab", "down")


def node_folder(home: Path, name: str = NODE) -> Path:
    return home / f".assay-lab/world/nodes/{name}/root/var/lib/assay/burn-in"


def stop_supervisor(home: Path, name: str = NODE) -> None:
    if node_folder(home, name).exists():
        (node_folder(home, name) / "stop").write_text("")


def change_node(home: Path, change: Callable[[VirtualNodeState], None]) -> None:
    with LabWorld(home / ".assay-lab/world").change(NODE) as state:
        change(state)


def read_burn_in(home: Path) -> dict[str, Any]:
    status = json.loads(assay(home, "status", "--format", "json"))
    node = status["nodes"][0]
    return {"state": node["state"], **(node["burn_in"] or {})}


def reconcile_until(home: Path, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Run rounds until something has come; what must come, never how soon."""
    for _ in range(200):
        assay(home, "reconcile", "--once")
        if is_so(found := read_burn_in(home)):
            return found
        time.sleep(0.5)
    raise AssertionError(found)


def count_entries(home: Path) -> Counter[str]:
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    kinds = Counter(
        entry.kind if not entry.kind.startswith("effect") else f"{entry.kind} {entry.body.get('action', '')}"
        for entry in ledger.entries(NODE)
    )
    ledger.close()
    return kinds


@contextmanager
def planting(home: Path, plant: Callable[[VirtualNodeState, float], object]) -> Iterator[None]:
    """Change the node by the hours of its burn-in, however long rounds take."""
    over = Event()

    def keep_planting() -> None:
        while not over.wait(0.5):
            clock = node_folder(home) / "clock"
            hours = float(clock.read_text()) / 3600 if clock.exists() else 0.0
            change_node(home, lambda state, hours=hours: plant(state, hours))

    planter = Thread(target=keep_planting)
    planter.start()
    try:
        yield
    finally:
        over.set()
        planter.join()


@pytest.mark.slow(minutes=6)
def test_it_survives_a_killed_controller_and_a_reboot_and_holds_a_node_that_drifts(home: Path) -> None:
    first = LabWorld(home / ".assay-lab/world").load(NODE)["gpus"][5]["burn_gflops"]

    def lose_a_percent_an_hour(state: VirtualNodeState, hours: float) -> None:
        state["gpus"][5]["burn_gflops"] = round(first * (1 - hours / 100))

    with planting(home, lose_a_percent_an_hour):
        kill_controllers(home)
        reconcile_until(home, lambda found: found.get("hours", 0) >= 0.25)
        assert count_entries(home)["effect.intent burn-in"] == 1, "however often the controller was killed"

        before = read_burn_in(home)
        change_node(home, reboot)
        after = reconcile_until(home, lambda found: found.get("reboots", 0) >= 1)
        assert after["hours"] >= before["hours"], "it went on, and did not begin again"

        held = reconcile_until(home, lambda found: found["held_hours"] > 0 or found["outcome"] != "running")
        assert held["held_hours"] == 1, [held[name] for name in ("outcome", "reason", "drifts", "hours")]
        assert any(line.startswith("gpu5: Gflop/s") for line in held["drifts"])
        done = reconcile_until(home, lambda found: found["outcome"] != "running")
    assert (done["outcome"], done["hours"] >= 5) == ("done", True)
    assert {one["serial"] for one in done["coverage"] if one["load"] == "gpu_burn"} == {
        one["serial"] for one in LabWorld(home / ".assay-lab/world").load(NODE)["gpus"]
    }
    assert "gpu5: Gflop/s" in assay(home, "history", NODE)
    assert "drift" in assay(home, "explain", NODE)


def kill_controllers(home: Path) -> None:
    """Kill controllers at several places of the start."""
    words = [sys.executable, "-m", "assay", "reconcile", "--once", "--fleet", str(home)]
    for wait_s in (1.5, 3.0, 4.5):
        controller = subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait_s)
        controller.send_signal(signal.SIGKILL)
        controller.wait()


def reboot(state: VirtualNodeState) -> None:
    """Give the node another boot, at once."""
    state["boot"] |= {"id": "11111111-2222-3333-4444-555555555555", "count": 2}


@pytest.mark.slow(minutes=2)
def test_a_wrong_result_ends_it_early_and_sends_the_node_to_people(home: Path) -> None:
    with planting(home, lambda state, hours: state["gpus"][5].update(burn_ok=hours < 0.25)):
        failed = reconcile_until(home, lambda found: found.get("outcome", "running") != "running")
    assert (failed["outcome"], failed["reason"]) == ("failed", "gpu5: gpu_burn computed wrong results")
    assert failed["hours"] < 4
    reconcile_until(home, lambda found: found["state"] == "triage")
    answer = json.loads(assay(home, "explain", NODE, "--format", "json"))
    assert "gpu5: gpu_burn computed wrong results" in json.dumps(answer["chain"])


def begin_after_onboarding(policy: dict[str, Any]) -> None:
    name_burn_in(policy)
    policy["states"]["test"] |= {"requires": []}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Path]:
    """A fleet of `assay init` with a fabric, two of whose nodes have been ordered to burn in, its lab up."""
    home = tmp_path / "our-fleet"
    assert run_assay("init", str(home)).returncode == 0
    change_yaml(home / POLICY, begin_after_onboarding)
    day = {"phases": [{"name": "heat", "hours": 0.5, "parts": ["gpu_burn"]}], "unit_seconds": 300}
    change_yaml(home / "specs/burnin/day.yaml", lambda spec: spec.update(day))
    assay(home, "lab", "up")
    world = LabWorld(home / ".assay-lab/world")
    world.set_clock(world.clock().now(), RATE)
    assay(home, "reconcile", "--once")
    for name in (NODE, "n0002"):
        assay(home, "move", name, "test", "--reason", "half an hour of load")
    yield home
    for name in (NODE, "n0002"):
        stop_supervisor(home, name)
    assay(home, "lab", "down")


@pytest.mark.slow(minutes=3)
def test_collectives_run_beside_the_rounds_and_a_later_round_ends_the_burn_in(started: Path) -> None:
    waits = reconcile_until(started, lambda found: found.get("reason"))
    assert (waits["outcome"], waits["reason"]) == ("running", "waits for collectives with other nodes of its fabric")
    assay(started, "reconcile", "--once")
    assert read_burn_in(started)["outcome"] == "running", "a round runs no search"
    assert "collectives-new-nodes of compute done: 4 nodes ran collectives: nobody named" in assay(
        started, "schedules", "run"
    )
    done = reconcile_until(started, lambda found: found["outcome"] != "running")
    assert (done["outcome"], done["reason"]) == ("done", "4 nodes ran collectives: nobody named")

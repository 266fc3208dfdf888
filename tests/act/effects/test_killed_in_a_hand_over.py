"""assay is killed at each step of a hand-over between customers: nothing is done twice, and nothing opens too early."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.act.boot.attempts import BOOT_KINDS, fold_attempts
from assay.declare.loader import load_fleet
from assay.lab.faults.injection import inject_fault
from assay.lab.scheduler import LabScheduler
from assay.lab.world import LabWorld
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import DecisionEntry
from assay.model.ledger_entry import LedgerEntry
from tests.act.boot.boot_room import BootServer, declare_image
from tests.support.forked_assay import assay
from tests.support.places import ROOT
from tests.support.reserved_ports import reserve_ports
from tests.support.serving_fleet import change_yaml, make_serving_fleet

NODE, DRIVES = "n0001", 8
PROOFS = ["drives", "gpu-memory", "tpm-owner", "settings", "firmware", "accounts", "image"]
MOMENTS = [
    ("after", "effect.intent", "cordon"),
    ("after", "effect.verified", "cordon"),
    ("after", "effect.intent", "drain"),
    ("before", "effect.verified", "drain"),
    ("after", "effect.verified", "drain"),
    ("after", "effect.intent", "wipe"),
    ("before", "wipe.ordered"),
    ("after", "wipe.ordered"),
    ("before", "effect.done", "wipe"),
    ("before", "effect.verified", "wipe"),
    ("after", "effect.verified", "wipe"),
    ("after", "effect.intent", "netboot"),
    ("before", "boot.started"),
    ("after", "boot.started"),
    ("after", "effect.done", "netboot"),
    ("before", "effect.verified", "netboot"),
    ("after", "effect.verified", "netboot"),
    ("before", "transition"),
    ("after", "transition"),
]
"""Where the controller is killed, one after the other in one hand-over. What is done already has no `done` entry."""


pytestmark = pytest.mark.slow(minutes=5)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet of one node that serves customer a, its lab up; the inventory gives it to b, so it is closed."""
    (port,) = reserve_ports(1)
    make_serving_fleet(tmp_path, [NODE])
    declare_image(tmp_path, port, pools=["a"])
    change_yaml(tmp_path / "inventory/a.yml", lambda pools: pools["a"]["hosts"][NODE].update(mac="02:00:00:00:00:01"))
    give(tmp_path, "a")
    assay(tmp_path, "lab", "up")
    server = BootServer(tmp_path, port)
    try:
        server.start()
        with LabWorld(tmp_path / ".assay-lab/world").change(NODE) as state:
            state["boot_server"] = server.url
        assay(tmp_path, "reconcile", "--once")
        give(tmp_path, "b")
        assay(tmp_path, "reconcile", "--once")
        assert show(tmp_path)["state"] == "cordoned"
        yield tmp_path
    finally:
        server.stop()
        assay(tmp_path, "lab", "down")


def give(home: Path, customer: str) -> None:
    change_yaml(home / "inventory/a.yml", lambda pools: pools["a"]["vars"].update(customer=customer))


def show(home: Path) -> dict[str, Any]:
    (shown,) = json.loads(assay(home, "status", "--format", "json"))["nodes"]
    return dict(shown)


def order(home: Path) -> str:
    return assay(home, "move", NODE, "hand-over", "--reason", "a left, b comes", "--who", "ann", "--within", "24h")


def kill_at(home: Path, *moment: str) -> None:
    """Let a controller work until it is killed there."""
    command = [sys.executable, "-m", "tests.act.effects.killed_at", str(home), *moment]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == -signal.SIGKILL, (moment, done.stdout[-2000:], done.stderr[-3000:])


def read(home: Path, *kinds: str) -> list[LedgerEntry]:
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    entries = list(ledger.entries(NODE, kinds))
    ledger.close()
    return entries


def is_closed(home: Path) -> bool:
    node = load_fleet(home, [home / ".assay-lab/world/inventory.yml"]).nodes[NODE]
    return bool(LabScheduler(node.settings).read_cordon_reason(NODE))


def test_a_hand_over_that_is_killed_at_each_step_happens_once_and_opens_with_every_proof(home: Path) -> None:
    world = LabWorld(home / ".assay-lab/world")
    boots = world.load(NODE)["boot"]["count"]
    order(home)
    for moment in MOMENTS:
        kill_at(home, *moment)
        is_last = moment == ("after", "transition")
        assert is_closed(home), moment
        assert show(home)["state"] == ("production" if is_last else "hand-over"), moment
    assay(home, "reconcile", "--once")
    assert not is_closed(home)

    after = world.load(NODE)
    assert [len(drive["sanitizes"]) for drive in after["nvme"]] == [1] * DRIVES
    assert after["boot"]["count"] == boots + 1
    opened = next(each for each in map(DecisionEntry.read, read(home, "decision")) if each.from_state == "hand-over")
    assert (opened.to_state, opened.customer) == ("production", "b")
    proofs = [cause for cause in opened.causes if cause.kind == "hand-over"]
    assert [cause.text.partition(":")[0] for cause in proofs] == PROOFS
    done = Counter(
        (entry.kind, entry.body["action"])
        for entry in read(home, "effect.intent", "effect.verified", "effect.failed", "effect.unknown")
        if entry.body["effect"] in {effect for cause in proofs for effect in cause.id.split()} | {opened.decision}
    )
    once = {(kind, action): 1 for kind in ("effect.intent", "effect.verified") for action in ("wipe", "netboot")}
    assert {one: count for one, count in done.items() if one in once} == once
    assert not [one for one in done if one[0] == "effect.failed"]
    # the machine's first start was recorded, and its controller killed before it cut the power
    attempts = fold_attempts(read(home, *BOOT_KINDS)).values()
    assert [bool(one.failure) for one in attempts] == [True, False]
    assert len(read(home, "wipe.ordered")) == len(read(home, "wipe.proved")) == DRIVES


def test_a_hand_over_that_is_refused_halfway_stays_closed_with_an_incident(home: Path) -> None:
    inject_fault(LabWorld(home / ".assay-lab/world"), "nvme.sanitize-lies", NODE, {"drive": 3})
    order(home)
    kill_at(home, "before", "effect.failed")
    for _ in range(3):
        assay(home, "reconcile", "--once")
        assert is_closed(home)
    assert show(home)["state"] == "triage"
    assert not [entry for entry in read(home, "effect.intent") if entry.body["action"] == "netboot"]
    refused = assay(home, "move", NODE, "production", "--reason", "b waits", "--who", "ann", codes=(0, 1, 2))
    assay(home, "reconcile", "--once")
    assert is_closed(home), refused
    assert show(home)["state"] != "production"

    (fault,) = [entry for entry in read(home, "fault") if entry.body["class"] == "hand-over.refused"]
    assert "it served a, and the inventory gives it to b: wipe failed: nvme3" in fault.body["detail"]
    assert "remove these drives and shred them" in fault.body["detail"]
    tickets = json.loads(assay(home, "tickets", "--format", "json"))["tickets"]
    (ticket,) = [each for each in tickets if "hand-over.refused" in json.dumps(each)]
    assert "remove these drives and shred them" in json.dumps(ticket)
    assert show(home)["incident"].startswith("A hand-over between customers was refused")

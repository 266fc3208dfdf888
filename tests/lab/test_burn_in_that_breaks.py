"""A node that is rebooted, and whose verifying burn-in raises a new fault, does not come back into production."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.ledger.store import Ledger
from assay.model.entries.node_entries import DecisionEntry, read_entered_state
from tests.support.forked_assay import assay
from tests.support.serving_fleet import make_serving_fleet

NODE = "n0001"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A fleet of one node that serves, its lab up."""
    make_serving_fleet(tmp_path, [NODE])
    assay(tmp_path, "lab", "up")
    yield tmp_path
    assay(tmp_path, "lab", "down")


def reboot_and_verify(home: Path, provoked_xid: int | None) -> tuple[list[str], set[str]]:
    """Plant what a reboot mends, and let the node be verified; return its states and its faults."""
    assay(home, "reconcile", "--once")
    assay(home, "lab", "inject", "gpu.xid", "--node", NODE, "--with", "gpu=0", "--with", "xid=151")
    if provoked_xid:
        xid = f"xid={provoked_xid}"
        assay(home, "lab", "inject", "load.provokes", "--node", NODE, "--with", "gpu=2", "--with", xid)
    for _ in range(6):
        assay(home, "reconcile", "--once")
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    states = [read_entered_state(entry) for entry in ledger.entries(NODE, ["node.enrolled", "transition"])]
    faults = {f"{entry.body['class']} on {entry.body['subject']}" for entry in ledger.entries(NODE, ["fault"])}
    ledger.close()
    return states, faults


def read_decisions(home: Path) -> list[DecisionEntry]:
    ledger = Ledger.open_for_reading(home / ".assay-lab/ledger.sqlite")
    found = [DecisionEntry.read(entry) for entry in ledger.entries(NODE, ["decision"])]
    ledger.close()
    return found


@pytest.mark.slow
def test_a_catastrophic_fault_of_the_verifying_burn_in_keeps_the_node_out(home: Path) -> None:
    states, faults = reboot_and_verify(home, 119)
    assert states[:2] == ["production", "production-reboot"], states
    assert f"gpu.xid.119 on a/{NODE}/gpu2" in faults
    assert "production" not in states[2:], states


@pytest.mark.slow
def test_a_degraded_fault_of_the_verifying_burn_in_sends_the_node_to_people(home: Path) -> None:
    states, faults = reboot_and_verify(home, 62)
    assert states[:4] == ["production", "production-reboot", "draining", "triage"], states
    assert f"gpu.xid.62 on a/{NODE}/gpu2" in faults
    assert "production" not in states[2:], states
    moved = next(one for one in read_decisions(home) if one.to_state == "draining")
    assert moved.rule.endswith(" degraded-again")
    assert "gpu.xid.62" in moved.causes[0].text


@pytest.mark.slow
def test_a_burn_in_that_raises_nothing_brings_the_node_back(home: Path) -> None:
    states, _ = reboot_and_verify(home, None)
    assert states == ["production", "production-reboot", "production"]

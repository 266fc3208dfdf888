"""A node of the lab drifts, and its spec changes: `assay sync`, `explain` and the ticket say what, where and when."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.test_burn_in_that_breaks import NODE, assay, home  # noqa: F401 — a fixture
from tests.support.forked_assay import run_assay

OLD, WANTED = "2.6.9", "2.7.3"


def sync(home: Path) -> tuple[int, dict[str, Any]]:  # noqa: F811
    """Return the exit code of `assay sync`, and what it says of the node."""
    done = run_assay("sync", "--format", "json", "--fleet", home, cwd=home)
    (node,) = json.loads(done.stdout)["nodes"]
    return done.returncode, node


@pytest.mark.slow
def test_what_differs_on_a_node_is_shown_until_it_is_judged_by_todays_spec(home: Path) -> None:  # noqa: F811
    assert sync(home)[1]["state"] == "unknown"
    assay(home, "reconcile", "--once")
    code, node = sync(home)
    assert (code, node["state"], node["items"]) == (0, "in_sync", [])

    assay(home, "lab", "inject", "firmware.old", "--node", NODE, "--with", "ids=BIOS", "--with", f"version={OLD}")
    assay(home, "reconcile", "--once")
    code, node = sync(home)
    bios = next(item for item in node["items"] if item["what"] == "BIOS")
    assert "remedy of firmware.drift: noted, ticket [specs/lifecycle/" in assay(home, "sync")
    assert (code, node["state"], bios["wanted"], bios["seen"]) == (1, "drifted", WANTED, OLD)
    bundle, line = bios["where"].split(":")
    assert WANTED in (home / bundle).read_text().splitlines()[int(line) - 1]
    assay(home, "reconcile", "--once")
    assert sync(home)[1]["items"][0]["since"] == node["items"][0]["since"], "the first time counts"

    explained = " ".join(assay(home, "explain", NODE).split())
    assert f"drifted: BIOS: {OLD}, wanted {WANTED} ({bios['where']}), since " in explained
    ticket = assay(home, "tickets")
    assert f"BIOS: {WANTED} ({bios['where']})" in ticket
    assert "since 20" in ticket

    spec = home / "specs/nodes/hgx-h100.yaml"
    spec.write_text(spec.read_text().replace("governor: performance", "governor: powersave"))
    unknown = [item for item in sync(home)[1]["items"] if item["seen"].startswith("unknown: ")]
    assert [item["what"] for item in unknown] == ["frequency governor"]


RULE = """faults:
  old-firmware: {classes: [firmware.drift], states: [production], timing: pending, to: zap}
"""
POLICY = (
    ("    entry: [zap]\n", "    entry: [cordon, drain-now, zap]\n"),
    ("-test, wipe, draining, confirmation, hand-over]\n", "-test, wipe, draining, confirmation, hand-over, zap]\n"),
    ("faults:\n", RULE),
)


@pytest.mark.slow
def test_a_rule_of_the_policy_brings_drifted_firmware_back_by_zap(home: Path) -> None:  # noqa: F811
    policy = home / "specs/lifecycle/default.yaml"
    text = policy.read_text()
    for old, new in POLICY:
        assert old in text, old
        text = text.replace(old, new, 1)
    policy.write_text(text)
    assay(home, "reconcile", "--once")
    assay(home, "lab", "inject", "firmware.old", "--node", NODE, "--with", "ids=BIOS", "--with", f"version={OLD}")
    assay(home, "reconcile", "--once")
    assert sync(home)[1]["state"] == "rolling"
    assay(home, "reconcile", "--once")
    assay(home, "reconcile", "--once")
    code, node = sync(home)
    assert (code, node["state"], node["items"]) == (0, "in_sync", [])

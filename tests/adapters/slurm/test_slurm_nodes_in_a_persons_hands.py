"""With a real slurmctld: assay restarts no node that a person drained, says what it would do, and does it later."""

from __future__ import annotations

import json

import pytest
import yaml

from assay.act.loop.reconcile_pass import reconcile_once
from assay.cli.workspace import Workspace
from assay.ledger.store import Ledger
from tests.adapters.slurm.test_a_node_of_slurm_goes_round_the_loop import NODE, Hall, hall  # noqa: F401 — a fixture
from tests.support.slurm_cluster import needs_slurm, said
from tests.support.slurm_room import by_hand, job, state

pytestmark = [needs_slurm, pytest.mark.slow(minutes=2)]
FANS = "fans: bob, until 16:00 (don't touch)"
TITLE = f"{NODE} is broken, and somebody keeps it closed"


def drained_by() -> str:
    """Return the node's whole reason in Slurm, with who set it and when."""
    shown = said("scontrol", "--oneliner", "show", "node", NODE).partition(" Reason=")[2]
    return shown.partition(" Comment=")[0]


def boot_of(hall: Hall) -> str:  # noqa: F811
    return str(hall.world.load(NODE)["boot"]["id"])


def begun(hall: Hall) -> list[str]:  # noqa: F811
    """Return the actions that assay began, in their order."""
    ledger = Ledger.open_for_reading(hall.root / ".assay-lab/ledger.sqlite")
    actions = [entry.body["action"] for entry in ledger.entries(NODE, ["effect.intent"])]
    ledger.close()
    return actions


def open_tickets(hall: Hall) -> list[dict[str, str]]:  # noqa: F811
    return list(json.loads(hall.assay("tickets", "--format", "json"))["tickets"])


def break_node(hall: Hall) -> None:  # noqa: F811
    hall.assay("lab", "inject", "gpu.xid", "--node", NODE, "--with", "gpu=4", "--with", "xid=79")


def name_reason_in_policy(hall: Hall) -> None:  # noqa: F811
    """Let the policy name the person's reason as one that assay may overrule."""
    path = hall.root / "specs/lifecycle/default.yaml"
    policy = yaml.safe_load(path.read_text())
    policy["cordons"]["overrule"].append("fans: *")
    path.write_text(yaml.safe_dump(policy, sort_keys=False))


def hold_to_one_restart(hall: Hall, boot: str) -> None:  # noqa: F811
    """Hold the node to exactly one restart after `boot`, also after one more pass."""
    restarted = boot_of(hall)
    assert restarted != boot
    hall.assay("reconcile", "--once", "--node", NODE)
    assert boot_of(hall) == restarted
    assert begun(hall).count("reboot") == 1


@pytest.mark.parametrize("end", ["resumed", "named"])
def test_a_broken_node_that_a_person_drained_waits_for_him_or_for_a_rule_that_names_his_reason(
    hall: Hall,  # noqa: F811
    end: str,
):
    by_hand(NODE, state="drain", reason=FANS)
    reason, boot = drained_by(), boot_of(hall)
    assert reason.startswith(FANS)
    break_node(hall)

    waits = f"closed by others ({FANS}): assay waits, and would go to production-reboot: drain-now, reboot"
    assert waits in hall.assay("reconcile", "--once", "--node", NODE)
    assert waits in " ".join(hall.assay("explain", NODE).split()), "it wraps at 80 columns"
    assert "closed by others" in hall.assay("status")
    (ticket,) = [one for one in open_tickets(hall) if one["title"] == TITLE]
    assert FANS in ticket["seen"]
    assert FANS in ticket["steps"]
    assert "nothing changed" in hall.assay("reconcile", "--once", "--node", NODE)
    assert (begun(hall), boot_of(hall), drained_by(), state(NODE)) == ([], boot, reason, "drained")

    if end == "resumed":
        by_hand(NODE, state="resume")
        hall.assay("reconcile", "--once", "--node", NODE)
        assert drained_by().startswith("assay: gpu.xid.79")
    else:
        name_reason_in_policy(hall)
        hall.assay("reconcile", "--once", "--node", NODE)
        assert drained_by() == reason, "it stays his drain, with his words"
    assert begun(hall)[:4] == ["cordon", "drain-now", "collect", "reboot"]
    hold_to_one_restart(hall, boot)
    assert TITLE not in {one["title"] for one in open_tickets(hall)}


def test_a_person_who_drains_the_node_between_our_drain_and_our_reboot_is_left_alone(hall: Hall):  # noqa: F811
    boot = boot_of(hall)
    break_node(hall)
    lines: list[str] = []

    def watch(line: str) -> None:
        lines.append(line)
        if line.startswith(f"{NODE}: drain-now: done"):
            by_hand(NODE, state="drain", reason=FANS)

    workspace = Workspace(hall.root)
    reconcile_once(workspace.controller_context(watch), [NODE])
    workspace.ledger.close()
    reason = drained_by()
    assert reason.startswith(FANS)
    assert f"{NODE}: closed by others ({FANS}), so assay waits" in lines
    assert (begun(hall), boot_of(hall)) == (["cordon", "drain-now", "collect"], boot)

    hall.assay("reconcile", "--once", "--node", NODE)
    assert (begun(hall), boot_of(hall), drained_by()) == (["cordon", "drain-now", "collect"], boot, reason)
    assert TITLE in {one["title"] for one in open_tickets(hall)}

    by_hand(NODE, state="resume")
    number = job("llama-405b", NODE)
    hall.assay("reconcile", "--once", "--node", NODE)
    assert begun(hall)[3:6] == ["cordon", "drain-now", "reboot"], "closed and emptied again before the restart"
    assert said("squeue", "--noheader", f"--job={number}", "--format=%T") == "PENDING", "requeued, not lost"
    hold_to_one_restart(hall, boot)
    assert TITLE not in {one["title"] for one in open_tickets(hall)}

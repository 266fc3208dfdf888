"""A profile may forbid only what the policy does not rely on for its nodes: the example's profiles, and worse ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.declare.check import check_repository

Told = Callable[..., list[str]]


@pytest.fixture
def told(example: Path, tmp_path: Path) -> Told:
    """Change the example's managed or unmanaged profile, and return what `check` says of profiles."""
    for folder in ("inventory", "specs"):
        shutil.copytree(example / folder, tmp_path / folder)

    def told(profile: str, old: str, new: str) -> list[str]:
        path = tmp_path / f"specs/profiles/{profile}.yaml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        found = [problem for problem in check_repository(tmp_path).problems if problem.code == "ASY0100"]
        assert {problem.file for problem in found} <= {f"specs/profiles/{profile}.yaml"}
        return [problem.message for problem in found]

    return told


def test_the_example_s_profiles_forbid_nothing_that_the_policy_relies_on(told: Told) -> None:
    """A node that nobody manages may be escalated to rma, which takes a dossier; a person certifies it to debug."""
    assert told("unmanaged", "burn-in, ticket", "burn-in, ticket") == []


def test_every_action_that_a_managed_node_needs_is_missed(told: Told) -> None:
    by = "(faults.catastrophic-in-production) takes"
    listed = "drain-now, configure, collect, gpu-reset, reboot, powercycle"
    assert told("managed", listed, "collect, gpu-reset, reboot") == [
        f"managed does not allow drain-now, powercycle, which production → production-powercycle-test {by}",
        "managed does not allow drain-now, which production → confirmation (faults.outvoted-in-production) takes",
        "managed does not allow drain-now, which production → draining (faults.other-machine-in-service) takes",
        f"managed does not allow drain-now, which production → production-reboot {by}",
    ]


def test_what_is_done_while_a_decision_waits_is_needed_too(told: Told) -> None:
    assert any("does not allow cordon" in said for said in told("managed", "[cordon, ", "["))


def test_a_node_that_is_brought_up_needs_what_bring_up_takes(told: Told, tmp_path: Path) -> None:
    """The example's byo nodes start in production; a profile forbids nothing where no node comes to."""
    assert told("unmanaged", "[cordon, uncordon, drain, netboot, zap, burn-in, ticket]", "[ticket]") == []
    inventory = tmp_path / "inventory/byo-b.yml"
    inventory.write_text(inventory.read_text().replace("nodes: [n0017, n0018, n0019, n0020]", "nodes: [n0016]"))
    assert told("unmanaged", "[ticket]", "[cordon, drain, ticket]") == [
        "unmanaged does not allow zap, which seatrial → zap (pass_to) takes"
    ]
    assert told("unmanaged", "[cordon, drain, ticket]", "[cordon, drain, zap, ticket]") == [
        "unmanaged does not allow burn-in, which zap → test (pass_to) takes"
    ]
    assert told("unmanaged", "[cordon, drain, zap, ticket]", "[cordon, drain, zap, burn-in, ticket]") == [
        "unmanaged does not allow uncordon, which test → production (pass_to) takes"
    ]


def test_a_profile_that_begins_to_act_on_faults_needs_what_they_take(told: Told) -> None:
    found = told("unmanaged", "acts_on_faults: false", "acts_on_faults: true")
    assert any("production → draining" in said for said in found)
    assert any("triage → rma (escalate.0)" in said for said in found) is False, "draining is never reached"


def test_an_escalation_counts_where_faults_are_acted_on(told: Told) -> None:
    assert told("managed", ", dossier]", "]") == [
        "managed does not allow dossier, which confirmation → rma (fail_to) takes",
    ]

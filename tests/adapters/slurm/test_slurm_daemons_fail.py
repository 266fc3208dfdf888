"""Daemons of Slurm are killed in the middle of things: nothing is lost, and what cannot be told is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.act.actions import drain
from assay.act.effects.effect_attempt_and_verification import verify_safely
from assay.adapters.scheduler import CustomerJob
from assay.model.errors import AssayError
from tests.support.slurm_cluster import Cluster, cluster, needs_slurm, said, until
from tests.support.slurm_room import SETTINGS, adapter, context, job, reason, state, wish

pytestmark = [needs_slurm, pytest.mark.slow]


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("own"), "n0001", "n0002", "n0003", "n0004", more=SETTINGS) as running:
        yield running


def is_idle_after_boot(node: str) -> bool:
    """`slurmd -b` may register twice within a second: Slurm takes that for another boot, and the node down again."""
    if state(node) == "down":
        said("scontrol", "update", f"nodename={node}", "state=resume")
    return state(node) == "idle"


def test_a_drain_outlives_slurmctld_and_its_absence_is_said(own: Cluster):
    number = job("llama", "n0001")
    adapter().drain("n0001", "firmware")
    own.daemons["slurmctld"].terminate()
    own.daemons["slurmctld"].wait()

    for asked in (adapter().list_jobs, adapter().read_cordon_reason, adapter().uncordon):
        with pytest.raises(AssayError, match="slurmctld does not answer"):
            asked("n0001")
    with pytest.raises(AssayError, match="slurmctld does not answer"):
        adapter().drain("n0001", "firmware", now=True)

    own.control()
    until(lambda: [one.id for one in heard("n0001")] == [number])
    assert adapter().read_cordon_reason("n0001") == "assay: firmware"
    said("scancel", number)
    until(lambda: state("n0001") == "drained")
    adapter().uncordon("n0001")
    until(lambda: state("n0001") == "idle")


def test_a_drain_that_slurmctld_had_not_saved_when_it_was_killed_is_made_again(own: Cluster, tmp_path: Path):
    """Slurm saves its nodes every few seconds; what it was told in between is lost with it."""
    ctx = context(tmp_path, "n0002")
    drain.run(ctx, wish("drain", "n0002"))
    own.kill("slurmctld")
    assert verify_safely(ctx, drain, wish("drain", "n0002")).done is None, "nobody can tell"

    own.control()
    until(lambda: verify_safely(ctx, drain, wish("drain", "n0002")).done is not None)
    if not (found := drain.verify(ctx, wish("drain", "n0002"))).done:
        assert found.reason == "in the scheduler, the node is open for jobs"
        drain.run(ctx, wish("drain", "n0002"))
    assert drain.verify(ctx, wish("drain", "n0002")).done
    adapter().uncordon("n0002")
    until(lambda: state("n0002") == "idle")


def heard(node: str) -> tuple[CustomerJob, ...]:
    """Return a node's jobs, none while nobody can tell."""
    try:
        return adapter().list_jobs(node)
    except AssayError:
        return ()


def test_a_node_that_crashed_gets_our_drain_and_does_not_come_back_for_jobs_by_itself(own: Cluster):
    own.kill("n0002")
    said("scontrol", "update", "nodename=n0002", "state=down", "reason=Not responding")
    assert adapter().read_cordon_reason("n0002") == "DOWN in Slurm: Not responding"

    adapter().cordon("n0002", "node is silent")
    assert adapter().read_cordon_reason("n0002") == "assay: node is silent"
    own.join("n0002", "-b")
    until(lambda: "NOT_RESPONDING" not in said("sinfo", "--json", "--nodes=n0002"))
    assert adapter().read_cordon_reason("n0002") == "assay: node is silent"
    assert said("srun", "--nodelist=n0002", "--immediate=2", "hostname") == ""

    adapter().uncordon("n0002")
    until(lambda: is_idle_after_boot("n0002"), 120)
    assert reason("n0002") == ""


def test_a_drained_node_that_reboots_stays_ours_and_is_given_back(own: Cluster):
    """Our reboot goes through the BMC: Slurm sees a node that is silent for as long as it takes, then down."""
    adapter().cordon("n0003", "reboot")
    own.kill("n0003")
    until(lambda: state("n0003").startswith("down") or state("n0003").endswith("*"), 120)
    assert adapter().read_cordon_reason("n0003") == "assay: reboot"
    own.join("n0003", "-b")
    until(lambda: not state("n0003").endswith("*"), 120)
    assert adapter().read_cordon_reason("n0003") == "assay: reboot"
    adapter().uncordon("n0003")
    until(lambda: is_idle_after_boot("n0003"), 120)


def test_a_killed_slurmd_is_told_and_its_job_is_gone(own: Cluster):
    job("llama", "n0004")
    own.kill("n0004")
    until(lambda: state("n0004").startswith("down"), 120)
    assert adapter().read_cordon_reason("n0004") == "DOWN in Slurm: Not responding"
    assert adapter().list_jobs("n0004") == ()
    own.join("n0004")
    until(lambda: adapter().read_cordon_reason("n0004") == "", 120)

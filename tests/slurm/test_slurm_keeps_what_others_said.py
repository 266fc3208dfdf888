"""With a real slurmctld: our cordons are drains with our reason; only what is wholly ours is undone."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from slurm_cluster import Cluster, needs_slurm, said, until
from slurm_room import DRAINED, NODES, adapter, by_hand, job, reason, state

from assay.actions.workloads import ours, undrain_verified
from assay.model.errors import Trouble

pytestmark = needs_slurm
NODE = "n0001"


def test_a_cordon_is_a_drain_with_our_reason_and_is_undone(fresh: Cluster):
    adapter().cordon(NODE, 'gpu.missing: "gpu3"\nfell off')

    assert state(NODE) == "drained"
    assert reason(NODE).startswith("assay: gpu.missing: 'gpu3' fell off #")
    assert adapter().cordoned(NODE) == "assay: gpu.missing: 'gpu3' fell off"
    adapter().uncordon(NODE)
    assert adapter().cordoned(NODE) == ""
    assert reason(NODE) == ""


@pytest.mark.parametrize("hand", ["maintenance by hand", "NHC: disk full", "assay: by hand"])
def test_a_drain_by_others_stays_as_it_is_and_is_shown(fresh: Cluster, hand: str):
    by_hand(NODE, state="drain", reason=hand)
    adapter().cordon(NODE, "gpu.missing")
    adapter().uncordon(NODE)

    assert reason(NODE) == hand
    assert state(NODE) == "drained"
    assert hand in adapter().cordoned(NODE)
    assert not ours(adapter().cordoned(NODE))


@pytest.mark.parametrize("change", ["{}; bob: wait for the fans", "bob: {}", "bob has it"])
def test_a_reason_that_somebody_changed_or_drained_over_is_no_longer_ours(fresh: Cluster, change: str):
    adapter().cordon(NODE, "gpu.missing")
    by_hand(NODE, state="drain", reason=change.format(reason(NODE)))
    adapter().uncordon(NODE)

    assert state(NODE) == "drained"
    assert "bob" in adapter().cordoned(NODE)
    assert not ours(adapter().cordoned(NODE))


@pytest.mark.parametrize("closed", ["down", "fail"])
def test_a_node_that_somebody_set_down_or_failed_is_closed_and_stays_so(fresh: Cluster, closed: str):
    by_hand(NODE, state=closed, reason="bob: PSU smells")
    adapter().cordon(NODE, "psu.failed")
    adapter().uncordon(NODE)

    assert adapter().cordoned(NODE) == f"{closed.upper()} in Slurm: bob: PSU smells"
    assert reason(NODE) == "bob: PSU smells"


def test_a_drain_waits_for_the_job_and_says_whose_it_is_and_since_when(fresh: Cluster):
    number = job("llama-405b", NODE, 600, "--time=60")
    adapter().drain(NODE, "firmware")
    (seen,) = adapter().jobs(NODE)

    assert state(NODE) == "draining"
    assert (seen.id, seen.name, seen.owner) == (number, "llama-405b", "root")
    assert datetime.now(UTC) - datetime.fromisoformat(seen.since) < timedelta(minutes=2)
    assert "time limit until 2" in seen.kept_by

    said("scancel", number)
    until(lambda: not adapter().jobs(NODE))
    assert state(NODE) == "drained"


def test_draining_now_requeues_what_can_start_again_and_cancels_the_rest(fresh: Cluster):
    again, once = job("gemma", NODE), job("interactive", NODE, 600, "--no-requeue")
    ours_goes_on = job("assay-probe", NODE)
    adapter().drain(NODE, "gpu.missing", now=True)

    until(lambda: not adapter().jobs(NODE))
    states = dict(line.split() for line in said("squeue", "--states=all", "--noheader", "--format=%A %T").splitlines())
    assert states[again] == "PENDING"
    assert states[once] == "CANCELLED"
    assert states[ours_goes_on] == "RUNNING"


def test_a_job_that_is_only_named_like_ours_is_a_customers(fresh: Cluster, monkeypatch: pytest.MonkeyPatch):
    job("assay-probe", NODE)
    assert adapter().jobs(NODE) == ()
    monkeypatch.setattr("getpass.getuser", lambda: "assay")
    assert [one.name for one in adapter().jobs(NODE)] == ["assay-probe"]


def test_all_nodes_stand_in_one_answer_and_one_that_slurm_does_not_know_is_left_out(fresh: Cluster):
    job("llama", "n0002")
    by_hand("n0003", state="drain", reason="bob has it")
    stand = adapter().standings([*NODES, "n7777"])

    assert sorted(stand) == [*NODES]
    assert [len(stand[name].jobs) for name in NODES] == [0, 1, 0]
    assert [stand[name].cordon for name in NODES] == ["", "", "bob has it"]


def test_many_nodes_are_cordoned_though_one_is_unknown_and_that_one_is_said(fresh: Cluster):
    by_hand("n0003", state="drain", reason="bob has it")
    with pytest.raises(Trouble, match="no node n7777"):
        adapter().cordon_many(dict.fromkeys(["n7777", *NODES], "a switch is gone"))
    assert [reason(name).partition(" #")[0] for name in NODES] == ["assay: a switch is gone"] * 2 + ["bob has it"]
    with pytest.raises(Trouble, match="no node n7777"):
        adapter().jobs("n7777")


def test_a_reserved_node_takes_our_jobs_and_no_others(fresh: Cluster):
    reserving = adapter(slurm_cordon="reservation")
    number = job("llama", NODE)
    reserving.cordon(NODE, "gpu.thermal")
    reserving.cordon(NODE, "gpu.thermal again")

    assert reserving.cordoned(NODE) == "assay: gpu.thermal"
    assert adapter().cordoned(NODE) == "assay: gpu.thermal", "whatever the inventory says now"
    assert [one.id for one in reserving.jobs(NODE)] == [number], "what runs goes on"
    said("scancel", number)
    until(lambda: not reserving.jobs(NODE))
    refused = said("srun", f"--nodelist={NODE}", "--immediate=1", "hostname")
    assert refused == ""
    assert reserving.spare(NODE, ["echo", "checked"], b"", 60).output == b"checked\n"

    adapter().uncordon(NODE)
    assert reserving.cordoned(NODE) == ""
    assert "assay" not in said("scontrol", "show", "reservation")


def test_a_reservation_and_a_comment_by_others_stay(fresh: Cluster):
    reserving = adapter(slurm_cordon="reservation")
    said("scontrol", "create", "reservationname=bobs", "users=root", f"nodes={NODE}", "starttime=now", "duration=60")
    by_hand(NODE, comment="rack opened")
    reserving.cordon("n0002", "x")
    reserving.cordon(NODE, "y")
    assert reserving.cordoned(NODE) == "assay: suspicious"
    reserving.uncordon(NODE)
    assert "ReservationName=bobs" in said("scontrol", "show", "reservation")
    assert "Comment=rack opened" in said("scontrol", "show", "node", NODE)


def test_a_drain_that_asks_for_it_ends_with_the_next_passed_verification(fresh: Cluster):
    by_hand(NODE, state="drain", reason="fans reseated assay:verify-undrain")
    by_hand("n0002", state="drain", reason="fans reseated")
    before = datetime.now(UTC) - timedelta(seconds=30)
    assert undrain_verified(adapter(), NODE, before) == "", "a verification that began before the drain proves nothing"

    after = datetime.now(UTC) + timedelta(seconds=1)
    assert undrain_verified(adapter(), NODE, after) == "fans reseated assay:verify-undrain"
    assert undrain_verified(adapter(), "n0002", after) == ""
    assert [adapter().cordoned(name) for name in NODES] == ["", "fans reseated", ""]


def test_a_cordon_of_all_takes_a_moment(fresh: Cluster):
    adapter().standings(NODES)
    best = 60.0
    for turn in range(3):
        began = time.monotonic()
        adapter().cordon_many({name: f"reason {turn} of {name}" for name in NODES})
        best = min(best, time.monotonic() - began)
        assert all(state(name) in DRAINED for name in NODES)
        for name in NODES:
            adapter().uncordon(name)
    assert best < 1.0

"""With a real slurmctld: our cordons are drains with our reason; only what is wholly ours is undone."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from assay.adapters.scheduler import undrain_if_supported
from assay.model.cordon_ownership import is_our_reason
from assay.model.errors import AssayError
from tests.support.slurm_cluster import needs_slurm, said, until
from tests.support.slurm_room import DRAINED, adapter, by_hand, job, reason, state

pytestmark = needs_slurm
Take = Callable[[], str]


def test_a_cordon_is_a_drain_with_our_reason_and_is_undone(node: str):
    adapter().cordon(node, 'gpu.missing: "gpu3"\nfell off')

    assert state(node) == "drained"
    assert reason(node).startswith("assay: gpu.missing: 'gpu3' fell off #")
    assert adapter().read_cordon_reason(node) == "assay: gpu.missing: 'gpu3' fell off"
    adapter().uncordon(node)
    assert adapter().read_cordon_reason(node) == ""
    assert reason(node) == ""


def test_slurm_gets_a_hostile_reason_as_one_printable_line_and_no_order(node: str):
    adapter().cordon(node, f'\x1b]0;owned\x07\u202egnol\n"\r\nupdate nodename={node} state=resume\x00')

    assert state(node) == "drained"
    assert reason(node).startswith(f"assay: ]0;owned gnol ' update nodename={node} state=resume #")
    adapter().uncordon(node)
    assert reason(node) == ""


@pytest.mark.parametrize("hand", ["maintenance by hand", "NHC: disk full", "assay: by hand"])
def test_a_drain_by_others_stays_as_it_is_and_is_shown(node: str, hand: str):
    by_hand(node, state="drain", reason=hand)
    adapter().cordon(node, "gpu.missing")
    adapter().uncordon(node)

    assert reason(node) == hand
    assert state(node) == "drained"
    assert hand in adapter().read_cordon_reason(node)
    assert not is_our_reason(adapter().read_cordon_reason(node))


@pytest.mark.parametrize("change", ["{}; bob: wait for the fans", "bob: {}", "bob has it"])
def test_a_reason_that_somebody_changed_or_drained_over_is_no_longer_ours(node: str, change: str):
    adapter().cordon(node, "gpu.missing")
    by_hand(node, state="drain", reason=change.format(reason(node)))
    adapter().uncordon(node)

    assert state(node) == "drained"
    assert "bob" in adapter().read_cordon_reason(node)
    assert not is_our_reason(adapter().read_cordon_reason(node))


@pytest.mark.parametrize("closed", ["down", "fail"])
def test_a_node_that_somebody_set_down_or_failed_is_closed_and_stays_so(node: str, closed: str):
    by_hand(node, state=closed, reason="bob: PSU smells")
    adapter().cordon(node, "psu.failed")
    adapter().uncordon(node)

    assert adapter().read_cordon_reason(node) == f"{closed.upper()} in Slurm: bob: PSU smells"
    assert reason(node) == "bob: PSU smells"


def test_a_drain_waits_for_the_job_and_says_whose_it_is_and_since_when(node: str):
    number = job("llama-405b", node, 600, "--time=60")
    adapter().drain(node, "firmware")
    (seen,) = adapter().list_jobs(node)

    assert state(node) == "draining"
    assert (seen.id, seen.name, seen.owner) == (number, "llama-405b", "root")
    assert datetime.now(UTC) - datetime.fromisoformat(seen.since) < timedelta(minutes=2)
    assert "time limit until 2" in seen.blocked_by

    said("scancel", number)
    until(lambda: not adapter().list_jobs(node))
    assert state(node) == "drained"


def test_draining_now_requeues_what_can_start_again_and_cancels_the_rest(node: str):
    again, once = job("gemma", node), job("interactive", node, 600, "--no-requeue")
    ours_goes_on = job("assay-probe", node)
    adapter().drain(node, "gpu.missing", now=True)

    until(lambda: not adapter().list_jobs(node))
    states = dict(line.split() for line in said("squeue", "--states=all", "--noheader", "--format=%A %T").splitlines())
    assert states[again] == "PENDING"
    assert states[once] == "CANCELLED"
    assert states[ours_goes_on] == "RUNNING"


def test_a_job_that_is_only_named_like_ours_is_a_customers(node: str, monkeypatch: pytest.MonkeyPatch):
    job("assay-probe", node)
    assert adapter().list_jobs(node) == ()
    monkeypatch.setattr("assay.adapters.slurm.jobs.read_user_name", lambda: "assay")
    assert [one.name for one in adapter().list_jobs(node)] == ["assay-probe"]


def test_all_nodes_stand_in_one_answer_and_one_that_slurm_does_not_know_is_left_out(take: Take):
    free, used, drained = take(), take(), take()
    job("llama", used)
    by_hand(drained, state="drain", reason="bob has it")
    stand = adapter().read_statuses([free, used, drained, "n7777"])

    assert sorted(stand) == sorted([free, used, drained])
    assert [len(stand[name].jobs) for name in (free, used, drained)] == [0, 1, 0]
    assert [stand[name].cordon for name in (free, used, drained)] == ["", "", "bob has it"]


def test_many_nodes_are_cordoned_though_one_is_unknown_and_that_one_is_said(take: Take):
    nodes = [take(), take(), take()]
    by_hand(nodes[2], state="drain", reason="bob has it")
    with pytest.raises(AssayError, match="no node n7777"):
        adapter().cordon_many(dict.fromkeys(["n7777", *nodes], "a switch is gone"))
    assert [reason(name).partition(" #")[0] for name in nodes] == ["assay: a switch is gone"] * 2 + ["bob has it"]
    with pytest.raises(AssayError, match="no node n7777"):
        adapter().list_jobs("n7777")


def test_a_reserved_node_takes_our_jobs_and_no_others(node: str):
    reserving = adapter(slurm_cordon="reservation")
    number = job("llama", node)
    reserving.cordon(node, "gpu.thermal")
    reserving.cordon(node, "gpu.thermal again")

    assert reserving.read_cordon_reason(node) == "assay: gpu.thermal"
    assert adapter().read_cordon_reason(node) == "assay: gpu.thermal", "whatever the inventory says now"
    assert [one.id for one in reserving.list_jobs(node)] == [number], "what runs goes on"
    said("scancel", number)
    until(lambda: not reserving.list_jobs(node))
    refused = said("srun", f"--nodelist={node}", "--immediate=1", "hostname")
    assert refused == ""
    assert reserving.run_spare(node, ["echo", "checked"], b"", 60).output == b"checked\n"

    adapter().uncordon(node)
    assert reserving.read_cordon_reason(node) == ""
    assert "assay" not in said("scontrol", "show", "reservation")


def test_a_reservation_and_a_comment_by_others_stay(node: str):
    reserving = adapter(slurm_cordon="reservation")
    said("scontrol", "create", "reservationname=bobs", "users=root", f"nodes={node}", "starttime=now", "duration=60")
    by_hand(node, comment="rack opened")
    reserving.cordon(node, "y")
    assert reserving.read_cordon_reason(node) == "assay: suspicious"
    reserving.uncordon(node)
    assert "ReservationName=bobs" in said("scontrol", "show", "reservation")
    assert "Comment=rack opened" in said("scontrol", "show", "node", node)


def test_a_drain_that_asks_for_it_ends_with_the_next_passed_verification(take: Take):
    node, other = take(), take()
    by_hand(node, state="drain", reason="fans reseated assay:verify-undrain")
    by_hand(other, state="drain", reason="fans reseated")
    before = datetime.now(UTC) - timedelta(seconds=30)
    assert undrain_if_supported(adapter(), node, before) == "", (
        "a verification that began before the drain proves nothing"
    )

    after = datetime.now(UTC) + timedelta(seconds=1)
    assert undrain_if_supported(adapter(), node, after) == "fans reseated assay:verify-undrain"
    assert undrain_if_supported(adapter(), other, after) == ""
    assert [adapter().read_cordon_reason(name) for name in (node, other)] == ["", "fans reseated"]


@pytest.mark.slow
def test_many_cordons_take_a_moment(take: Take):
    nodes = [take() for _ in range(20)]
    took = []
    for _ in range(3):
        began = time.monotonic()
        adapter().cordon_many({name: f"the reason of {name}" for name in nodes})
        took.append(time.monotonic() - began)
        assert all(state(name) in DRAINED for name in nodes)
        for name in nodes:
            by_hand(name, state="resume")
    assert min(took) < 1.0

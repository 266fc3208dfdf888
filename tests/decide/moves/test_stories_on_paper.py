"""The stories of the issue, told to `decide` alone: what was seen goes in, what should happen comes out."""

from __future__ import annotations

from datetime import timedelta

import pytest


def moves(made):
    return [(one.from_state, one.to_state, one.timing) for one in made if one.timing != "record"]


def records(made):
    return [(one.remedy, one.causes[0].kind) for one in made if one.timing == "record"]


def quiet(paper, name):
    """Judge, settle and decide until nothing more is decided."""
    path = []
    for _ in range(12):
        paper.settle(name)
        paper.pass_all(name)
        made = paper.step()
        path += [one.to_state for one in made if one.timing == "immediate"]
        if not made:
            return path
    raise AssertionError(f"never quiet: {path}")


def test_a_new_node_waits_for_a_person_then_goes_all_the_way_into_production(paper):
    paper.add("n1", "onboard")
    assert paper.step() == []
    paper.say("certified", "n1")
    assert quiet(paper, "n1") == ["seatrial", "zap", "test"]
    paper.later(hours=23)
    assert quiet(paper, "n1") == []
    paper.later(hours=2)
    assert quiet(paper, "n1") == ["production"]
    assert paper.story("n1").effects[-1].action == "uncordon"


def test_zap_does_not_end_before_it_is_verified_and_read_back(paper):
    paper.add("n1", "onboard")
    paper.say("certified", "n1")
    paper.step()
    paper.pass_all("n1")
    assert paper.step() == [], "a customer may still be on it"
    assert paper.settle("n1") == ["cordon", "drain"]
    paper.pass_all("n1")
    assert moves(paper.step()) == [("seatrial", "zap", "immediate")]
    paper.judge("n1", "zap")
    assert paper.step() == [], "read back before the zap was done"
    assert paper.settle("n1") == ["zap"]
    assert paper.step() == [], "read back before the zap was verified"
    paper.pass_all("n1")
    assert moves(paper.step()) == [("zap", "test", "immediate")]


@pytest.mark.parametrize("ending", ["failed", "late", "read back wrong"])
def test_a_zap_that_fails_or_takes_more_than_six_hours_ends_in_zapfail(paper, ending):
    paper.add("n1", "seatrial")
    paper.pass_all("n1")
    (made,) = paper.step()
    if ending == "failed":
        paper.effect("n1", "failed", made.id, "zap", "the update task ended in Exception")
    elif ending == "late":
        paper.later(hours=6, minutes=1)
    else:
        paper.settle("n1")
        paper.later(minutes=3)
        paper.judge("n1", "zap", "fail", "BIOS reads 1.0")
    (made,) = paper.step()
    assert (made.to_state, made.timing) == ("zapfail", "immediate")
    paper.say("certified", "n1", reason="reseated the BMC")
    assert moves(paper.step()) == [("zapfail", "seatrial", "immediate")]


def test_a_burn_in_that_did_not_start_is_begun_again_for_a_person_once_and_its_end_counts(paper):
    paper.add("n1", "zap")
    paper.say("move", "n1", to="test")
    (made,) = paper.step()
    paper.effect("n1", "failed", made.id, "burn-in", "no answer over SSH")
    (told,) = paper.step()
    assert (told.to_state, told.timing, told.remedy) == ("test", "record", "ticket")
    paper.say("certified", "n1", reason="sshd runs again")
    assert paper.step() == [], "it waits for the second try"
    assert paper.settle("n1") == ["burn-in"]
    paper.say("certified", "n1", reason="sshd runs again")
    assert paper.settle("n1") == [], "what began is not begun again"
    paper.later(hours=25)
    assert quiet(paper, "n1") == ["production"]


def test_a_node_with_seven_gpus_stays_in_seatrial_on_one_ticket(paper):
    paper.add("n1", "seatrial")
    paper.judge("n1", "seatrial", "fail", "7 of 8 GPUs")
    (made,) = paper.step()
    assert (made.to_state, made.timing, made.remedy) == ("seatrial", "record", "ticket")
    assert "7 of 8 GPUs" in made.causes[0].text
    paper.judge("n1", "seatrial", "fail", "7 of 8 GPUs")
    assert paper.step() == [], "the same failure is the same decision, in any later run"
    paper.judge("n1", "seatrial")
    assert moves(paper.step()) == [("seatrial", "zap", "immediate")]


def test_xid_79_on_a_busy_node_reboots_it_at_once_and_only_a_newer_active_suite_brings_it_back(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    for phase in ("test", "production"):
        paper.judge("n1", phase)
    paper.later(minutes=1)
    fault = paper.fault("n1", "gpu.xid.79", "gpu2")
    (made,) = paper.step()
    assert (made.to_state, made.timing, made.remedy) == ("production-reboot", "immediate", "reboot")
    assert made.causes[0].id == fault
    assert paper.step() == [], "the old passes are older than the repair that is owed"
    assert paper.settle("n1") == ["cordon", "drain-now", "collect", "reboot"]
    assert paper.step() == [], "the old passes are older than the reboot"
    paper.judge("n1", "production")
    assert paper.step() == [], "a passive pass is not enough"
    paper.judge("n1", "test")
    assert moves(paper.step()) == [("production-reboot", "production", "immediate")]
    assert not any(known.is_open for known in paper.story("n1").faults)
    assert paper.settle("n1") == ["uncordon"]


def test_xid_79_again_within_the_window_leads_through_triage_to_rma(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    assert quiet(paper, "n1") == ["production-reboot", "production"]
    paper.later(hours=20)
    paper.fault("n1", "gpu.xid.79", "gpu2")
    assert quiet(paper, "n1") == ["draining", "triage", "rma"]
    assert [effect.action for effect in paper.story("n1").effects][-1] == "dossier"
    paper.say("certified", "n1", reason="GPU replaced")
    assert quiet(paper, "n1") == ["seatrial", "zap", "test"], "all is proved anew"


def test_xid_79_again_after_the_window_is_a_first_time(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    quiet(paper, "n1")
    paper.later(hours=169)
    paper.fault("n1", "gpu.xid.79", "gpu2")
    assert quiet(paper, "n1") == ["production-reboot", "production"]


def test_a_fault_that_comes_back_while_the_reboot_is_verified_ends_in_triage(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    paper.step()
    paper.fault("n1", "gpu.xid.48", "gpu2")
    assert paper.step() == [], "what is seen before the reboot is verified is the reboot's to answer"
    paper.settle("n1")
    paper.fault("n1", "gpu.xid.79", "gpu2")
    assert quiet(paper, "n1") == ["draining", "triage", "rma"]


def test_a_hot_gpu_on_a_busy_node_waits_for_its_job_cordoned(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("job 17 (train, ann)",)
    paper.fault("n1", "gpu.thermal", "gpu3")
    (made,) = paper.step()
    assert (made.to_state, made.timing, made.blockers) == ("draining", "pending", ("job 17 (train, ann)",))
    assert paper.settle("n1") == ["cordon"]
    paper.later(hours=5)
    assert paper.step() == []
    paper.jobs["n1"] = None
    assert paper.step() == [], "a scheduler that cannot tell is no sign of idleness"
    paper.jobs["n1"] = ()
    (applied,) = paper.step()
    assert (applied.to_state, applied.timing) == ("draining", "immediate")
    assert (applied.causes[0].kind, applied.causes[0].id) == ("decision", made.id)
    paper.settle("n1")
    assert moves(paper.step()) == [("draining", "triage", "immediate")]


def test_a_hot_gpu_on_an_idle_node_waits_for_nothing(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.thermal", "gpu3")
    assert moves(paper.step()) == [("production", "draining", "immediate")]


def test_a_worse_fault_overtakes_a_pending_decision(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.fault("n1", "gpu.thermal", "gpu3")
    paper.step()
    paper.fault("n1", "gpu.xid.79", "gpu3")
    assert moves(paper.step()) == [("production", "production-reboot", "immediate")]
    assert paper.story("n1").pending is None


def test_draining_ends_only_when_no_job_is_left(paper):
    paper.add("n1")
    paper.jobs["n1"] = ("train",)
    paper.fault("n1", "gpu.xid.54")
    paper.jobs["n1"] = ()
    paper.step()
    paper.settle("n1")
    paper.jobs["n1"] = ("straggler",)
    assert paper.step() == []
    paper.jobs["n1"] = ()
    assert moves(paper.step()) == [("draining", "triage", "immediate")]


def test_a_flapping_link_on_an_unmanaged_node_is_recorded_and_nothing_else(paper):
    paper.add("n1", pool="byo", profile="unmanaged")
    paper.fault("n1", "ib.link.flap", "mlx5_3")
    (made,) = paper.step()
    assert (made.timing, made.causes[0].kind) == ("record", "profile")
    assert "tracked, not acted on" in made.causes[0].text
    assert paper.step() == []


def test_an_unmanaged_node_is_brought_in_like_any_other(paper):
    paper.add("n1", "onboard", pool="byo", profile="unmanaged")
    paper.say("certified", "n1")
    assert quiet(paper, "n1") == ["seatrial", "zap", "test"]


def test_errors_move_nothing_whatever_state_the_node_is_in(paper):
    for state in ("seatrial", "test", "production", "production-reboot"):
        paper.add(f"in-{state}", state)
        for phase in ("seatrial", "zap", "test", "production"):
            paper.judge(f"in-{state}", phase, "error", "the BMC did not answer within 10 s")
    paper.later(hours=30)
    made = paper.step()
    assert moves(made) == []
    late = {one.node: one.remedy for one in made}
    assert late == {"in-seatrial": "ticket", "in-production-reboot": "ticket"}, "a person is asked to look"


def test_an_application_fault_is_recorded_once_however_often_it_is_seen(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.13", "gpu0")
    assert records(paper.step()) == [("none", "fault")]
    assert paper.step() == []


def test_a_failed_power_supply_asks_for_a_technician_and_leaves_the_node_to_its_customer(paper):
    paper.add("n1")
    paper.fault("n1", "psu.failed", "psu2")
    assert records(paper.step()) == [("ticket", "fault")]


def test_a_kernel_deadlock_is_answered_by_a_power_cycle(paper):
    paper.add("n1")
    paper.fault("n1", "host.kernel.deadlock")
    assert moves(paper.step()) == [("production", "production-powercycle-test", "immediate")]
    assert paper.settle("n1") == ["cordon", "drain-now", "collect", "powercycle"]


def test_a_reboot_that_fails_takes_the_node_to_triage(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    (made,) = paper.step()
    paper.effect("n1", "verified", made.id, "cordon")
    paper.effect("n1", "verified", made.id, "drain-now")
    paper.effect("n1", "failed", made.id, "reboot", "the boot id did not change")
    (made,) = paper.step()
    assert (made.to_state, made.causes[0].kind) == ("draining", "effect")


def test_a_reboot_of_unknown_end_is_waited_for(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    (made,) = paper.step()
    for action, standing in (("cordon", "verified"), ("drain-now", "verified"), ("reboot", "unknown")):
        paper.effect("n1", standing, made.id, action)
    for phase in ("test", "production"):
        paper.judge("n1", phase)
    paper.later(hours=1)
    assert paper.step() == []
    paper.effect("n1", "verified", made.id, "reboot")
    paper.later(seconds=1)
    assert quiet(paper, "n1") == ["production"]


def test_what_fails_within_the_settling_time_after_a_reboot_is_looked_at_again(paper):
    paper.add("n1")
    paper.fault("n1", "gpu.xid.79")
    paper.step()
    paper.settle("n1")
    paper.judge("n1", "test", "fail", "0 GPUs just after boot")
    assert paper.step() == []
    paper.later(minutes=3)
    assert quiet(paper, "n1") == ["production"]


def test_a_fault_in_burn_in_ends_the_burn_in(paper):
    paper.add("n1", "test")
    paper.fault("n1", "gpu.xid.48", "gpu0")
    assert moves(paper.step()) == [("test", "triage", "immediate")]


def test_a_pass_goes_stale(paper):
    paper.add("n1", "seatrial")
    paper.judge("n1", "seatrial", age=timedelta(hours=25))
    assert paper.step() == []
    paper.judge("n1", "seatrial", age=timedelta(hours=23))
    assert moves(paper.step()) == [("seatrial", "zap", "immediate")]


def test_what_gets_worse_is_noted_and_moves_holds_and_stops_nothing(paper):
    nodes = [f"n{number}" for number in range(8)]
    for name in nodes:
        paper.add(name)
        paper.fault(name, "trend.heat", "gpu2")
    noted = paper.step()
    assert {one.timing for one in noted} == {"record"}, "eight nodes at once are no wave that trips the breaker"
    assert {one.remedy for one in noted} == {"none"}
    paper.add("n9", "zap")
    paper.fault("n9", "trend.heat", "gpu2")
    paper.settle("n9")
    paper.pass_all("n9")
    assert ("zap", "test", "immediate") in moves(paper.step()), "it holds nobody back"


def test_a_fault_whose_remedy_is_a_reset_resets_its_gpu_and_then_goes_up_the_ladder(paper):
    paper.add("n1", "production")
    paper.pass_all("n1")
    paper.fault("n1", "psu.failed", "psu1")
    assert moves(paper.step()) == []
    paper.fault("n1", "gpu.xid.119", "gpu3")
    (made,) = paper.step()
    assert (made.to_state, made.timing, made.remedy) == ("production-gpu-reset", "immediate", "reset")
    paper.effect("n1", "verified", made.id, "cordon")
    paper.effect("n1", "verified", made.id, "gpu-reset", "gpu3: reset", parts=["gpu3"])
    assert paper.settle("n1") == ["collect", "drain"]
    state = paper.story("n1")
    assert {fault.fault_class: state.is_repaired(fault) for fault in state.faults} == {
        "gpu.xid.119": True,
        "psu.failed": False,
    }
    paper.later(minutes=5)
    paper.fault("n1", "gpu.xid.119", "gpu3")
    assert moves(paper.step()) == [("production-gpu-reset", "production-reboot", "immediate")]

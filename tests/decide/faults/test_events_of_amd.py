"""What AMD's driver says of one event is told as one: the first error has the action, its consequences have none."""

from __future__ import annotations

PCI = "0000:43:00.0"
DRIVER = f"amdgpu {PCI}: amdgpu:"


def actions(told):
    return {fault["fault"]: fault["action"] for fault in told["faults"]}


def test_what_follows_a_fatal_error_belongs_to_it(tell):
    told = tell(
        f"[   10.0] {DRIVER} uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        f"[   10.1] {DRIVER} GPU reset begin!",
        "[   11.0] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=5, emitted seq=7",
        f"[   12.0] {DRIVER} GPU reset(1) failed",
        f"[   12.1] {DRIVER} GPU reset end with ret = -62",
    )
    (acting,) = [name for name, action in actions(told).items() if action != "none"]
    assert acting == "gpu.ras.fatal"


def test_a_ring_that_times_out_is_a_fault_and_one_that_recovers_is_only_recorded(tell):
    line = f"[   10.0] {DRIVER} ring sdma0 timeout, signaled seq=5, emitted seq=7"
    assert actions(tell(line)) == {"gpu.ring.timeout": "reboot"}
    assert actions(tell(line.partition(", ")[0] + ", but soft recovered")) == {"gpu.reset.by-driver": "none"}


def test_a_reset_that_fails_by_itself_has_its_own_action(tell):
    assert actions(tell(f"[   10.0] {DRIVER} GPU reset(2) failed")) == {"gpu.reset.failed": "reboot"}


def test_the_driver_s_own_count_of_corrected_errors_counts(tell):
    line = f"[   10.0] {DRIVER} 131 correctable hardware errors detected in umc block, no user action is needed."
    (fault,) = tell(line)["faults"]
    assert (fault["fault"], fault["count"], fault["action"]) == ("gpu.ras.corrected", 131, "ticket")
    (few,) = tell(line.replace("131", "3"))["faults"]
    assert few["action"] == "none"

"""A scheduler's word that no job is left is borne out by the node's own readings; what cannot be told is not "none"."""

from __future__ import annotations

import pytest

from assay.act.actions import drain, drain_now
from assay.act.remedies.gpu_occupancy import GpuOccupancy
from assay.adapters.scheduler import SchedulerNodeStatus
from tests.support.lab_room import Room, wish

NODE = "n0009"
WORD = (SchedulerNodeStatus(), "no customer job is left")
NO_WORD = (SchedulerNodeStatus(places_jobs=False), "no customer job is left")


def test_a_process_that_the_scheduler_knows_nothing_of_keeps_a_drain_waiting(room: Room):
    room.fresh(NODE)
    drain.run(room.context(), wish("drain", NODE))
    room.change(NODE, lambda state: state["gpus"][2].update(pids=[4711]))

    waits = drain.verify(room.context(), wish("drain", NODE))
    forced = drain_now.verify(room.context(), wish("drain-now", NODE))
    room.change(NODE, lambda state: state["gpus"][2].update(pids=[]))
    over = drain.verify(room.context(), wish("drain", NODE))

    assert (waits.done, waits.is_waiting) == (False, True)
    assert waits.reason.startswith("no customer job is left, but process 4711 holds GPU 0000:")
    assert forced.done is False
    assert over.done
    assert over.reason == "no customer job is left, and no process holds a GPU"


@pytest.mark.parametrize(("by_force", "done"), [(False, None), (True, True)])
def test_a_gpu_that_cannot_tell_leaves_a_drain_open_and_does_not_keep_a_broken_node_from_its_repair(by_force, done):
    told = GpuOccupancy(unreadable_gpus=("gpu3 is silent: GPU is lost",)).confirm_drain(*WORD, by_force=by_force)
    assert told.done is done
    assert "whether a process holds a GPU is not known: gpu3 is silent: GPU is lost" in told.reason


@pytest.mark.parametrize(("word", "by_force", "done"), [(WORD, True, True), (WORD, False, True), (NO_WORD, True, None)])
def test_of_a_node_that_tells_nothing_only_a_schedulers_word_is_enough(word, by_force, done):
    told = GpuOccupancy(read_error="n0009 tells nothing of its GPUs: no answer").confirm_drain(*word, by_force=by_force)
    assert told.done is done
    assert told.facts["untold"] == "n0009 tells nothing of its GPUs: no answer"
    assert "is not known" in told.reason
    assert ("no scheduler places jobs" in told.reason) == (word is NO_WORD), "nobody says that no job was running"


def test_a_process_on_one_gpu_outweighs_the_silence_of_another():
    left = GpuOccupancy(processes=("process 7 holds gpu0",), unreadable_gpus=("gpu3 is silent: GPU is lost",))
    assert left.confirm_drain(*WORD, by_force=True).done is False

"""A scheduler's word that no job is left is borne out by the node's own readings; what cannot be told is not "none"."""

from __future__ import annotations

import pytest
from lab_room import Room, wish

from assay.act.actions import drain, drain_now
from assay.act.actions.action import EffectVerification
from assay.act.remedies.boot import GpuOccupancy

NODE = "n0009"
WORD = EffectVerification(True, "no customer job is left")


def test_a_process_that_the_scheduler_knows_nothing_of_keeps_a_drain_waiting(room: Room):
    room.fresh(NODE)
    drain.run(room.context(), wish("drain", NODE))
    room.change(NODE, lambda state: state["gpus"][2].update(pids=[4711]))

    waits = drain.verify(room.context(), wish("drain", NODE))
    forced = drain_now.verify(room.context(), wish("drain-now", NODE))
    room.change(NODE, lambda state: state["gpus"][2].update(pids=[]))
    over = drain.verify(room.context(), wish("drain", NODE))

    assert (waits.done, waits.is_waiting) == (False, True)
    assert waits.reason.startswith("the scheduler has no job, but process 4711 holds GPU 0000:")
    assert forced.done is False
    assert over.done
    assert over.reason == "no customer job is left, and no process holds a GPU"


@pytest.mark.parametrize(("by_force", "done"), [(False, None), (True, True)])
def test_a_gpu_that_cannot_tell_leaves_a_drain_open_and_does_not_keep_a_broken_node_from_its_repair(by_force, done):
    told = GpuOccupancy(unreadable_gpus=("gpu3 is silent: GPU is lost",)).confirm_drain(WORD, by_force=by_force)
    assert told.done is done
    assert "whether a process holds a GPU is unknown: gpu3 is silent: GPU is lost" in told.reason


def test_of_a_node_that_tells_nothing_the_schedulers_word_stands_and_says_so():
    told = GpuOccupancy(read_error="n0009 tells nothing of its GPUs: no answer").confirm_drain(WORD, by_force=False)
    assert told.done
    assert told.facts["untold"] == "n0009 tells nothing of its GPUs: no answer"
    assert "is unknown" in told.reason


@pytest.mark.parametrize(("by_force", "done"), [(False, None), (True, True)])
def test_where_no_scheduler_is_and_the_node_tells_nothing_nobody_says_that_it_is_empty(by_force, done):
    told = GpuOccupancy(read_error="n0009 gives no reading of its GPUs: no answer", is_only_witness=True)
    drained = told.confirm_drain(WORD, by_force=by_force)
    assert drained.done is done
    assert drained.reason.startswith("no scheduler knows its jobs, and n0009 gives no reading of its GPUs: no answer")
    assert ("whatever ran there ends now" in drained.reason) == by_force


def test_a_process_on_one_gpu_outweighs_the_silence_of_another():
    left = GpuOccupancy(processes=("process 7 holds gpu0",), unreadable_gpus=("gpu3 is silent: GPU is lost",))
    assert left.confirm_drain(WORD, by_force=True).done is False

"""gpu-reset in the lab: only the GPU that a fault names, only its jobs, and a proof that is read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from assay.act.actions import gpu_reset
from assay.act.actions.action import EffectIntent
from assay.model.decision import Decision, DecisionCause
from assay.model.entries.node_entries import DecisionEntry, MoveEntry, NodeEnrolledEntry, OrderedOperation
from assay.model.errors import AssayError
from tests.support.lab_room import Room, wish

NODE = "n0004"


@pytest.fixture
def asked(room: Room) -> EffectIntent:
    """Return the wish of a person's operation for gpu3, as the ledger has it."""
    room.fresh(NODE)
    context = room.context()
    operation = OrderedOperation("op", "gpu-reset", "key-of-a-test", gpus=(3,))
    order = MoveEntry("production-gpu-reset", "ann", "it hangs", operation=operation)
    cause = DecisionCause("person", "order-3", "ann asked")
    made = Decision("d1", NODE, "production", "production-gpu-reset", "immediate", "p.yaml:1 person", causes=(cause,))
    at = room.world.clock().now().isoformat()
    context.ledger.append(
        NodeEnrolledEntry("production", "a test").make_entry("enrolled-4", at, NODE),
        order.make_entry("order-3", at, NODE),
        DecisionEntry.from_decision(made).make_entry("d1", at, NODE),
    )
    return wish("gpu-reset", NODE)


def begin(room: Room, intent: EffectIntent) -> EffectIntent:
    return replace(intent, before=gpu_reset.before(room.context(), intent))


def break_gpu(room: Room, slot: int, **more: Any) -> None:
    room.change(NODE, lambda state: state["gpus"][slot].update(recovery_action=1, remap_pending=1, **more))


def test_only_the_gpu_is_reset_and_only_its_jobs_end(room: Room, asked: EffectIntent) -> None:
    scheduler = room.scheduler(NODE)
    theirs, others = (scheduler.place(name, "acme", NODE, 86_400) for name in ("on-gpu3", "on-gpu5"))
    break_gpu(room, 3, pids=[77], pid_jobs={"77": int(theirs.id)})
    room.change(NODE, lambda state: state["gpus"][5].update(pids=[78], pid_jobs={"78": int(others.id)}))
    break_gpu(room, 6)
    intent = begin(room, asked)
    assert (intent.before["gpus"], intent.before["jobs"]) == ([3], [theirs.id])
    assert gpu_reset.verify(room.context(), intent).done is False, "nothing was done yet"

    for _ in range(2):  # a kill after the first, and the same wish again
        gpu_reset.run(room.context(), intent)

    proof = gpu_reset.verify(room.context(), intent)
    assert proof.done, proof.reason
    assert proof.facts["parts"] == ["gpu3"]
    gpus = room.state(NODE)["gpus"]
    assert [gpus[slot]["recovery_action"] for slot in (3, 6)] == [0, 1]
    assert gpus[3]["persistence"], "it is as it was"
    assert [job.id for job in scheduler.list_jobs(NODE)] == [others.id]
    assert "nvidia-dcgm.service loaded active" in (room.world.folder(NODE) / "root/run/systemctl").read_text()


def test_a_process_of_which_nobody_knows_the_job_ends_all_jobs_and_stays_a_refusal(
    room: Room, asked: EffectIntent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_reset, "find_action_effort", lambda *_: type("E", (), {"deadline_s": 0.2}))
    scheduler = room.scheduler(NODE)
    scheduler.uncordon(NODE)
    scheduler.place("somewhere", "acme", NODE, 86_400)
    break_gpu(room, 3, pids=[79])
    with pytest.raises(AssayError, match="no process holds the GPUs"):
        gpu_reset.run(room.context(), begin(room, asked))
    assert scheduler.list_jobs(NODE) == ()
    assert room.state(NODE)["gpus"][3]["recovery_action"] == 1
    scheduler.uncordon(NODE)


def test_a_gpu_that_is_lost_is_not_reset_and_says_so(room: Room, asked: EffectIntent) -> None:
    intent = begin(room, asked)
    room.change(NODE, lambda state: state["gpus"][3].update(lost=True))
    with pytest.raises(AssayError, match="No devices were found"):
        gpu_reset.run(room.context(), intent)
    proof = gpu_reset.verify(room.context(), intent)
    assert proof.done is False
    assert "gpu3 does not answer" in proof.reason

"""cordon, drain, drain-now and uncordon as the controller carries them, against a real Slurm."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.act.actions import cordon, drain, drain_now, uncordon
from assay.act.actions.action import ActionContext
from tests.support.slurm_cluster import needs_slurm, said, until
from tests.support.slurm_room import by_hand, context, job, reason, state, wish

pytestmark = needs_slurm


@pytest.fixture
def ctx(tmp_path: Path, node: str) -> ActionContext:
    return context(tmp_path, node)


def test_a_node_is_cordoned_drained_and_given_back_once_its_job_is_over(ctx: ActionContext, node: str):
    number = job("llama-405b", node)
    assert cordon.verify(ctx, wish("cordon", node)).done is False
    cordon.run(ctx, wish("cordon", node))
    assert cordon.verify(ctx, wish("cordon", node)).done
    assert reason(node).startswith("assay: gpu.missing on gpu3 #")

    drain.run(ctx, wish("drain", node))
    waits = drain.verify(ctx, wish("drain", node))
    assert (waits.done, waits.is_waiting) == (False, True)
    assert f"job {number} (llama-405b, root" in waits.reason
    said("scancel", number)
    until(lambda: drain.verify(ctx, wish("drain", node)).done)

    uncordon.run(ctx, wish("uncordon", node))
    assert uncordon.verify(ctx, wish("uncordon", node)).reason == "open for jobs"


def test_drain_now_ends_and_requeues_the_job(ctx: ActionContext, node: str):
    job("gemma", node)
    intent = wish("drain-now", node, before=drain_now.before(ctx, wish("drain-now", node)))
    drain_now.run(ctx, intent)
    until(lambda: drain_now.verify(ctx, intent).done)
    assert "gemma" in drain_now.verify(ctx, intent).reason
    assert "gemma PENDING" in said("squeue", "--noheader", "--format=%j %T")


def test_what_runs_again_after_a_crash_changes_nothing(ctx: ActionContext, node: str):
    cordon.run(ctx, wish("cordon", node))
    before = said("scontrol", "show", "node", node).partition("Reason=")[2]
    cordon.run(ctx, wish("cordon", node))
    drain.run(ctx, wish("drain", node))
    assert said("scontrol", "show", "node", node).partition("Reason=")[2] == before


def test_somebody_who_wrote_into_our_reason_keeps_the_node_and_the_effect_ends_with_that(ctx: ActionContext, node: str):
    cordon.run(ctx, wish("cordon", node))
    by_hand(node, state="drain", reason=f"{reason(node)} bob: wait for me")
    uncordon.run(ctx, wish("uncordon", node))
    proof = uncordon.verify(ctx, wish("uncordon", node))
    assert proof.done
    assert "bob: wait for me" in proof.reason
    assert state(node) == "drained"

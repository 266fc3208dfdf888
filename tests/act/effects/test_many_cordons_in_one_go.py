"""Cordons and uncordons of many nodes are one order and one reading; killed anywhere, each is done and proved once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pytest

from assay.act.effects.effect_journal import EFFECT_KINDS
from assay.act.effects.pending_effect_runner import run_effects
from assay.act.loop.context import ControllerContext
from assay.adapters.scheduler import SchedulerNodeStatus
from tests.act.effects.batch_once import MOMENTS, FileScheduler, desk_of, moved


def said(desk: ControllerContext) -> Counter[str]:
    return Counter(entry.kind.removeprefix("effect.") for entry in desk.ledger.entries(kinds=EFFECT_KINDS))


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_any_moment_each_node_is_cordoned_by_one_order_and_proved_once(tmp_path: Path, moment: str):
    desk = desk_of(tmp_path, FileScheduler(tmp_path))
    desk.ledger.append(*moved(desk, "production", "draining", "d1"))
    desk.ledger.close()
    if (child := os.fork()) == 0:
        run_effects(desk_of(tmp_path, FileScheduler(tmp_path, moment)))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9, "it was to die"

    desk = desk_of(tmp_path, FileScheduler(tmp_path))
    run_effects(desk)

    orders = FileScheduler(tmp_path).read()
    assert len(orders) == 24
    assert {len(reasons) for reasons in orders.values()} == {1}
    assert said(desk)["intent"] == said(desk)["verified"] == 24
    assert not set(said(desk)) & {"failed", "unknown", "tried"}
    before = said(desk)
    run_effects(desk)
    assert said(desk) == before, "nothing is left to do"


def test_many_are_given_back_in_one_go(tmp_path: Path):
    scheduler = FileScheduler(tmp_path)
    desk = desk_of(tmp_path, scheduler)
    scheduler.cordon_many(dict.fromkeys(desk.fleet.nodes, "a fault"))
    desk.ledger.append(*moved(desk, "test", "production", "d1"))
    run_effects(desk)
    assert said(desk)["verified"] == 24
    assert {reasons[-1] for reasons in scheduler.read().values()} == {""}


def test_a_scheduler_that_is_down_in_the_middle_leaves_all_unknown_says_so_and_its_return_settles_them(tmp_path: Path):
    scheduler, told = FileScheduler(tmp_path), list[str]()
    desk = desk_of(tmp_path, scheduler, tell=told.append)
    desk.ledger.append(*moved(desk, "production", "draining", "d1"))
    scheduler.silent_after = 1
    run_effects(desk)
    assert said(desk)["unknown"] == 24
    assert "n0000: cordon: cannot tell: slurmctld does not answer" in told
    run_effects(desk)
    assert said(desk)["unknown"] == 24, "silence settles nothing, and adds nothing"

    scheduler.silent_after = 10**6
    run_effects(desk)
    assert said(desk)["verified"] == said(desk)["intent"] == 24


def test_what_a_scheduler_took_down_itself_and_will_open_itself_is_cordoned_all_the_same(tmp_path: Path):
    class Crashed(FileScheduler):
        def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
            told = super().read_statuses(nodes)
            down = SchedulerNodeStatus((), "DOWN in Slurm: Not responding", is_self_clearing=True)
            return {node: one if one.cordon else down for node, one in told.items()}

    scheduler = Crashed(tmp_path)
    desk = desk_of(tmp_path, scheduler)
    desk.ledger.append(*moved(desk, "production", "draining", "d1"))
    run_effects(desk)
    assert len(scheduler.read()) == said(desk)["verified"] == 24


def test_one_node_that_its_scheduler_does_not_know_keeps_no_other_waiting(tmp_path: Path):
    scheduler = FileScheduler(tmp_path)
    scheduler.strangers = {"n0003"}
    desk = desk_of(tmp_path, scheduler)
    desk.ledger.append(*moved(desk, "production", "draining", "d1"))
    run_effects(desk)
    assert said(desk)["verified"] == 23
    (unknown,) = desk.ledger.entries(kinds=["effect.unknown"])
    assert (unknown.node, unknown.body["reason"]) == ("n0003", "the scheduler does not know this node")

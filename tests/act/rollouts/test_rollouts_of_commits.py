"""A merged change becomes a rollout: from the adopted commit through waves to its end, once, whoever is killed."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from assay.act.loop.fleet_reload import CurrentContext, FleetReloader
from assay.act.loop.rack_leases import WHOLE_FLEET
from assay.act.loop.reconcile_loop import LoopListener, ReconcileLoop
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.adapters.scheduler import CustomerJob
from assay.declare.loader import load_fleet
from assay.model.clock import SystemClock
from tests.act.rollouts.rolling_fleet import RollingFleet


def finish(rolling: RollingFleet, turns: int = 40, failing: str = "") -> None:
    for _ in range(turns):
        rolling.turn(failing)
        if not rolling.rollout.is_active:
            return


def test_a_first_start_adopts_the_commit_and_rolls_nothing_out(rolling):
    assert rolling.kinds() == ["commit.adopted"]
    rolling.take_up()
    assert rolling.kinds() == ["commit.adopted"]


def test_new_firmware_reaches_every_node_canary_first(rolling):
    base, commit = rolling.history.adopted.body["commit"], rolling.set_version("2")
    rolling.turn()
    assert (rolling.rollout.base, rolling.rollout.commit) == (base, commit)
    assert {member.reason for member in rolling.rollout.members.values()} == {"bmc 1 → 2"}
    assert Counter(rolling.states().values()) == {"production": 3, "draining": 1}
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"
    assert rolling.kinds().count("move") == 4
    assert set(rolling.states().values()) == {"production"}


def test_a_change_that_needs_no_exit_and_a_dirty_tree_roll_nothing_out(rolling):
    rolling.git.write("specs/node.yaml", rolling.git.text("specs/node.yaml").replace("value: 85", "value: 86"))
    rolling.take_up()
    assert rolling.kinds() == ["commit.adopted"], "it is not committed"
    rolling.git.commit()
    rolling.take_up()
    assert rolling.kinds() == ["commit.adopted", "commit.adopted"]
    rolling.set_version("2")
    rolling.git.write("specs/node.yaml", rolling.git.text("specs/node.yaml").replace("value: 86", "value: 87"))
    rolling.take_up()
    assert "specs/node.yaml is not as committed" in rolling.told[-1]
    assert "rollout.started" not in rolling.kinds()


def test_edits_that_no_commit_has_are_told_also_where_the_commit_is_adopted(rolling):
    rolling.take_up()
    rolling.git.write("specs/node.yaml", rolling.git.text("specs/node.yaml").replace("value: 85", "value: 86"))
    told, kinds = len(rolling.told), rolling.kinds()
    rolling.take_up()
    assert [line for line in rolling.told[told:] if "specs/node.yaml is not as committed" in line]
    assert rolling.kinds() == kinds
    rolling.git.git("checkout", "--quiet", "specs/node.yaml")
    told = len(rolling.told)
    rolling.take_up()
    assert not [line for line in rolling.told[told:] if "committed" in line]


def test_an_older_commit_does_not_roll_the_fleet_back_and_a_revert_does(rolling):
    rolling.set_version("2")
    rolling.take_up()
    rolling.git.git("checkout", "--quiet", "HEAD~1")
    rolling.turn()
    assert "merge a `git revert`" in rolling.told[-1]
    assert rolling.kinds().count("rollout.started") == 1
    assert "move" not in rolling.kinds(), "a controller with another commit gives no orders"
    rolling.git.git("checkout", "--quiet", "main")
    finish(rolling)
    rolling.git.git("revert", "--no-edit", "HEAD")
    rolling.turn()
    assert {member.reason for member in rolling.rollout.members.values()} == {"bmc 2 → 1"}
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"


def test_a_revert_does_not_wait_until_customers_have_heard_of_it_and_any_other_change_does(rolling):
    rolling.add_rules("{lead_hours: 72}")
    rolling.git.commit()
    rolling.set_version("2")
    finish(rolling, turns=2)
    assert "move" not in rolling.kinds(), "customers were told"
    rolling.clock.at += timedelta(hours=72)
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"
    rolling.git.git("revert", "--no-edit", "HEAD")
    rolling.turn()
    assert rolling.rollout.takes_back
    assert Counter(rolling.states().values()) == {"production": 3, "draining": 1}, "the canary leaves at once"
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"
    for version in ("2", "3"):
        rolling.set_version(version)
        finish(rolling, turns=2)
        assert rolling.kinds().count("move") == 8, "neither the same change again nor another one is taken back"


def test_a_node_that_is_new_is_no_reason_to_wait_and_another_version_is(rolling):
    rolling.add_rules("{lead_hours: 1}")
    rolling.git.commit()
    rolling.set_version("2")
    rolling.take_up()
    rolling.clock.at += timedelta(hours=1)
    finish(rolling)
    rolling.add_node(5)
    rolling.set_version("1")
    rolling.take_up()
    assert rolling.rollout.takes_back, "a node that is new needs nothing"
    finish(rolling)
    rolling.clock.at += timedelta(hours=1)
    rolling.set_version("4")
    rolling.take_up()
    assert not rolling.rollout.takes_back


def test_a_failing_canary_pauses_and_a_person_aborts(rolling):
    rolling.set_version("2")
    for _ in range(8):
        rolling.turn(failing="n1")
    assert rolling.rollout.pause.rule == "failures"
    assert Counter(rolling.states().values()) == {"production": 3, "triage": 1}
    (told,) = [one for one in rolling.tickets("opened") if one["title"].startswith("rollout ")]
    assert (told["node"], told["seen"][:27]) == ("n1", "canary n1 failed: in triage")
    rolling.say("rollout.aborted")
    for _ in range(3):
        rolling.turn()
    assert rolling.kinds().count("move") == 1
    assert rolling.rollout.status == "aborted"
    assert "the rollout goes on, or has ended" in {one["by"] for one in rolling.tickets("closed")}


def test_a_later_merge_folds_in_and_a_revert_leaves_alone_what_never_left(rolling):
    rolling.set_version("2")
    for _ in range(2):
        rolling.turn()
    assert rolling.states()["n1"] == "zap"
    rolling.set_version("3")
    rolling.turn()
    first, second = rolling.history.rollouts.values()
    assert (first.status, first.replaced_by) == ("superseded", second.id)
    assert first.end_reason.endswith(f"4 nodes of it go on in rollout {second.id[:8]}")
    assert {member.node: member.reason for member in second.members.values()} == {
        "n1": "bmc 2 → 3", "n2": "bmc 1 → 3", "n3": "bmc 1 → 3", "n4": "bmc 1 → 3",
    }  # fmt: skip
    rolling.set_version("1")
    rolling.turn()
    assert set(rolling.rollout.members) == {"n1"}, "the others have version 1"
    finish(rolling)
    assert rolling.rollout.end_reason == "1 of 1 node proven"


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_revert_brings_a_failed_canary_back_and_withdraws_what_it_makes_needless(rolling, is_aborted):
    rolling.set_version("2")
    for _ in range(8):
        rolling.turn(failing="n1")
    opened = {entry["ticket"] for entry in rolling.tickets("opened")}
    assert (rolling.states()["n1"], rolling.rollout.status, len(opened)) == ("triage", "paused", 3)
    if is_aborted:
        rolling.say("rollout.aborted")
    rolling.git.git("revert", "--no-edit", "HEAD")
    finish(rolling)
    assert rolling.rollout.end_reason == "1 of 1 node proven"
    assert set(rolling.rollout.members) == {"n1"}, "the others never left, and have what git wants"
    assert set(rolling.states().values()) == {"production"}
    assert {entry["ticket"] for entry in rolling.tickets("closed")} >= opened


def test_a_revert_withdraws_the_order_of_a_node_whose_job_still_runs(rolling):
    rolling.far.jobs["n1"] = (CustomerJob("4711", "train", "alice", "2026-11-20T10:00:00Z"),)
    rolling.set_version("2")
    for _ in range(2):
        rolling.turn()
    node = FleetSnapshotCache(rolling.context()).node_states()["n1"]
    assert node.move_request.rollout == rolling.rollout.id
    assert node.pending is not None
    rolling.git.git("revert", "--no-edit", "HEAD")
    rolling.turn()
    node = FleetSnapshotCache(rolling.context()).node_states()["n1"]
    assert (node.state, node.move_request, node.pending) == ("production", None, None)
    assert rolling.rollout.end_reason.endswith("4 nodes need nothing more")
    (withdrawn,) = rolling.ledger.entries("n1", kinds=["decision.withdrawn"])
    assert withdrawn.body["reason"].startswith(f"rollout {rolling.rollout.id[:8]} is over: commit ")


@pytest.mark.parametrize("is_aborted", [False, True])
def test_a_node_on_its_way_when_the_change_is_reverted_says_what_it_gets_and_gets_it_once(rolling, is_aborted):
    rolling.set_version("2")
    rolling.turn()
    assert rolling.states()["n1"] == "draining"
    if is_aborted:
        rolling.say("rollout.aborted")
    rolling.git.git("revert", "--no-edit", "HEAD")
    finish(rolling)
    assert rolling.rollout.end_reason == "1 of 1 node proven"
    decided = [one.body for one in rolling.ledger.entries("n1", kinds=["decision"])]
    (left,) = (one for one in decided if one["from"] == "draining")
    assert left["because"][0]["text"] == f"rollout {rolling.rollout.id[:8]} asked for zap: bmc 2 → 1"
    assert rolling.moves("n1") == ["draining", "zap", "test", "production"]


@pytest.mark.parametrize("said", ["", "rollout.paused", "rollout.aborted"])
@pytest.mark.parametrize(("turns", "reached", "way"), [(2, "zap", ["zap", "zap"]), (3, "test", ["zap", "test", "zap"])])
def test_a_node_that_was_just_flashed_when_the_change_is_reverted_is_no_drift(rolling, turns, reached, way, said):
    rolling.set_version("2")
    for _ in range(turns):
        rolling.turn()
    assert (rolling.states()["n1"], rolling.versions["n1"]) == (reached, "2")
    if said:
        rolling.say(said)
    rolling.git.git("revert", "--no-edit", "HEAD")
    finish(rolling, turns=8)
    if said == "rollout.paused":
        rolling.say("rollout.resumed")
        rolling.turn()
    assert rolling.rollout.end_reason == "1 of 1 node proven"
    assert rolling.moves("n1") == ["draining", *way, "test", "production"], "nothing accused the node"
    assert set(rolling.versions.values()) == {"1"}
    assert rolling.tickets("opened") == [] or said, "only what a person paused or ended asks for somebody"


def test_a_node_on_its_way_by_hand_gets_a_merge_before_checks_compare_it(rolling):
    rolling.order("n1", "zap")
    for _ in range(2):
        rolling.turn()
    assert (rolling.states()["n1"], rolling.history.rollouts) == ("zap", {})
    rolling.set_version("2")
    finish(rolling)
    assert rolling.rollout.end_reason == "4 of 4 nodes proven"
    assert rolling.moves("n1") == ["draining", "zap", "zap", "test", "production"]
    assert set(rolling.versions.values()) == {"2"}


def test_a_person_who_has_the_failed_node_in_hand_is_not_disturbed_by_a_revert(rolling):
    rolling.set_version("2")
    for _ in range(8):
        rolling.turn(failing="n1")
    rolling.move("n1", "triage", "test")
    rolling.move("n1", "test", "triage")
    rolling.git.git("revert", "--no-edit", "HEAD")
    for _ in range(4):
        rolling.turn()
    assert rolling.states()["n1"] == "triage"


def test_a_merge_that_changes_nothing_for_the_nodes_lets_a_paused_rollout_be(rolling):
    rolling.set_version("2")
    rolling.take_up()
    rolling.say("rollout.paused")
    rolling.git.write("specs/node.yaml", rolling.git.text("specs/node.yaml").replace("value: 85", "value: 86"))
    rolling.git.commit()
    rolling.turn()
    assert (rolling.rollout.status, rolling.kinds().count("rollout.started")) == ("paused", 1)


def test_a_controller_that_was_killed_at_any_entry_does_nothing_twice(rolling, tmp_path):
    rolling.set_version("2")
    finish(rolling)
    entries = rolling.ledger.entries()
    for twice in (1, 2):
        assert not any(rolling.ledger.append(*entries)), f"what was written is there, time {twice}"
        rolling.turn()
    moves = Counter(entry.node for entry in rolling.ledger.entries(kinds=["move"]))
    assert moves == {"n1": 1, "n2": 1, "n3": 1, "n4": 1}
    assert Counter(rolling.kinds())["rollout.finished"] == 1
    zaps = [entry for entry in rolling.ledger.entries(kinds=["effect.intent"]) if entry.body["action"] == "zap"]
    assert Counter(entry.node for entry in zaps) == moves


def test_of_two_controllers_that_adopt_a_commit_at_once_one_starts_the_rollout(rolling):
    rolling.set_version("2")
    rolling.take_up_twice_at_once()
    assert rolling.kinds() == ["commit.adopted", "commit.adopted", "rollout.started"]


def test_a_server_follows_a_merge_and_says_that_reconcile_adopts_it(rolling):
    root, said = rolling.git.root, rolling.told
    current = CurrentContext(
        rolling.context(), FleetReloader(root, lambda cache: load_fleet(root, cache=cache), SystemClock(), said.append)
    )
    commit = rolling.set_version("2")
    assert current.refresh().fleet.commit == commit
    assert said[-1].endswith("`assay reconcile` adopts the commit and starts its rollout")
    assert rolling.kinds() == ["commit.adopted"], "one process decides and acts"
    rolling.git.write("specs/node.yaml", rolling.git.text("specs/node.yaml").replace("value: 85", "value: 86"))
    current.look_again()
    current.refresh()
    assert said[-1] == "read the fleet again (no new commit)"


def test_the_running_loop_follows_a_merge_and_orders_the_canary(rolling):
    root, said = rolling.git.root, rolling.told
    reloader = FleetReloader(root, lambda cache: load_fleet(root, cache=cache), SystemClock(), said.append)
    listener = LoopListener(lambda _: None, said.append)
    memory = FleetSnapshotCache(rolling.context())
    loop = ReconcileLoop(memory, WHOLE_FLEET, reloader, lambda _: [], listener)
    loop.begin()
    commit = rolling.set_version("2")
    loop.run_everything_due()
    assert rolling.rollout.commit == commit, said
    assert rolling.kinds()[-1] == "move"


def test_a_shallow_clone_waits_for_its_history_and_a_rewritten_history_starts_over(rolling):
    base = rolling.git.git("rev-parse", "HEAD").strip()
    rolling.set_version("2")
    grafted = rolling.git.root / ".git" / "shallow"
    head = rolling.git.git("rev-parse", "HEAD")
    grafted.write_text(head)
    rolling.git.git("reflog", "expire", "--expire=now", "--all")
    rolling.git.git("gc", "--quiet", "--prune=now")
    rolling.take_up()
    assert f"does not have {base[:12]}" in rolling.told[-1]
    assert rolling.kinds() == ["commit.adopted"]
    grafted.unlink()
    rolling.git.git("checkout", "--quiet", "--orphan", "rewritten")
    rolling.git.commit()
    rolling.take_up()
    assert "cannot be compared" in rolling.told[-1]
    assert rolling.kinds() == ["commit.adopted", "commit.adopted"]
    assert f"git knows no revision {base}" in rolling.history.find_uncompared().body["uncompared"], "it stays visible"

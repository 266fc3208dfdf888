"""A merge is held to the plan that was reviewed: the same plan starts, another one waits for a person."""

from __future__ import annotations

import pytest

from assay.act.rollouts.commit_adoption import find_reviewed_plan, read_plan_record, store_reviewed_plan
from assay.decide.plan.review import NEEDS_NOTHING
from tests.act.rollouts.rolling_fleet import RollingFleet


def head(rolling: RollingFleet) -> str:
    return rolling.git.git("rev-parse", "HEAD").strip()


def amend(rolling: RollingFleet, message: str) -> None:
    rolling.git.git("commit", "--quiet", "--amend", "-m", message)


def orders(rolling: RollingFleet) -> int:
    return rolling.kinds().count("move")


def test_a_merge_with_the_reviewed_plan_starts_and_records_it(rolling) -> None:
    base, commit = head(rolling), rolling.set_version("2")
    content = rolling.plan(base)
    store_reviewed_plan(rolling.git.root, commit, content)
    rolling.turn()
    assert (rolling.rollout.plan, rolling.rollout.status, orders(rolling)) == (content.digest, "running", 1)
    assert content.nodes["n1"] == ("bmc 1 → 2", "leaves service through zap")


def test_a_trailer_of_the_merge_is_enough_and_no_name_of_a_revision_is_in_the_digest(rolling) -> None:
    base = head(rolling)
    rolling.set_version("2")
    digest = rolling.plan(base, "HEAD").digest
    amend(rolling, f"Merge pull request #7\n\nnew firmware\n\nAssay-Plan: {digest}\nReviewed-by: ann")
    rolling.turn()
    assert (rolling.rollout.plan, rolling.rollout.status) == (digest, "running")


def test_the_note_of_a_merged_branch_counts_for_its_merge(rolling) -> None:
    base = head(rolling)
    rolling.git.git("checkout", "--quiet", "-b", "topic")
    store_reviewed_plan(rolling.git.root, rolling.set_version("2"), rolling.plan(base))
    rolling.git.git("checkout", "--quiet", "main")
    rolling.git.git("merge", "--quiet", "--no-ff", "--no-edit", "topic")
    rolling.turn()
    assert (rolling.rollout.plan[:7], rolling.rollout.status) == ("sha256:", "running")


def test_a_fleet_that_moved_waits_says_what_differs_and_a_person_resumes(rolling) -> None:
    base = head(rolling)
    reviewed = rolling.set_version("2")
    content = rolling.plan(base)
    rolling.add_node(5)
    rolling.git.commit()
    rolling.take_up()
    assert rolling.rollout.status == "running", "no reviewed plan is named"
    rolling.set_version("3")
    store_reviewed_plan(rolling.git.root, "HEAD", content)
    for _ in range(3):
        rolling.turn()
    assert reviewed != head(rolling)
    pause = rolling.rollout.pause
    assert (pause.rule, pause.who, rolling.rollout.plan) == ("plan", "the rule for reviewed plans", content.digest)
    assert "n5: not in the reviewed plan; now bmc 2 → 3" in pause.reason
    assert "4 nodes (n1..n4): reviewed was bmc 1 → 2; now bmc 2 → 3" in pause.reason
    assert orders(rolling) == 0, "no node leaves service"
    (told,) = [one for one in rolling.tickets("opened") if one["title"].startswith("rollout ")]
    assert "waits: a person must accept its plan" in told["title"]
    rolling.say("rollout.resumed")
    rolling.turn(failing="n1")
    assert (rolling.rollout.status, orders(rolling)) == ("running", 1)
    for _ in range(6):
        rolling.turn(failing="n1")
    assert rolling.rollout.pause.rule == "failures", "a person who accepts a plan accepts no failure"


def test_a_plan_with_facts_is_made_again_from_the_ledger_of_its_time(rolling) -> None:
    base, commit = head(rolling), rolling.set_version("2")
    content, position = rolling.plan(base, facts=rolling.facts()), rolling.ledger.head()
    assert (content.facts, len(content.waves)) == ({}, 3)
    store_reviewed_plan(rolling.git.root, commit, content, position)
    rolling.move("n4", "production", "triage")
    rolling.turn()
    assert (rolling.rollout.plan, rolling.rollout.status) == (content.digest, "running"), "fewer nodes leave: no risk"


def test_a_node_that_would_leave_now_and_did_not_when_it_was_reviewed_waits_for_a_person(rolling) -> None:
    rolling.move("n4", "production", "triage")
    base, commit = head(rolling), rolling.set_version("2")
    content, position = rolling.plan(base, facts=rolling.facts()), rolling.ledger.head()
    assert content.facts == {"n4": "in triage"}
    store_reviewed_plan(rolling.git.root, commit, content, position)
    rolling.move("n4", "triage", "production")
    rolling.turn()
    pause = rolling.rollout.pause
    assert (pause.rule, orders(rolling)) == ("plan", 0)
    assert "the fleet is not as it was reviewed, n4 would leave service too" in pause.reason
    assert "n4: reviewed was in triage; now in a wave" in pause.reason


@pytest.mark.parametrize("turns", [0, 2], ids=["merged at once", "merged when more have left"])
def test_the_plan_of_a_revert_has_the_nodes_that_have_left_and_no_other(rolling, turns) -> None:
    commit = rolling.set_version("2")
    for _ in range(4):
        rolling.turn()
    rolling.git.git("revert", "--no-edit", "HEAD")
    rolling.git.git("branch", "revert")
    content, position = rolling.plan(commit, "revert", rolling.facts()), rolling.ledger.head()
    needs_nothing = {name for name, why in content.facts.items() if why == NEEDS_NOTHING}
    assert (content.waves, needs_nothing) == ((("n1",),), {"n2", "n3", "n4"})
    rolling.git.git("checkout", "--quiet", commit)
    for _ in range(turns):
        rolling.turn()
    left = {name for name, state in rolling.states().items() if state != "production"}
    assert bool(left) is bool(turns)
    rolling.git.git("checkout", "--quiet", "revert")
    store_reviewed_plan(rolling.git.root, "HEAD", content, position)
    rolling.turn()
    assert (rolling.rollout.status, set(rolling.rollout.members)) == ("running", {"n1"} | left)


def test_a_plan_without_facts_is_held_to_its_files(rolling) -> None:
    rolling.move("n4", "production", "triage")
    base = head(rolling)
    rolling.set_version("2")
    amend(rolling, f"x\n\nAssay-Plan: {rolling.plan(base, 'HEAD').digest}")
    rolling.turn()
    assert rolling.rollout.status == "running"


def test_facts_of_another_ledger_are_another_plan(rolling) -> None:
    base = head(rolling)
    rolling.set_version("2")
    digest = rolling.plan(base, "HEAD", rolling.facts()).digest
    amend(rolling, f"x\n\nAssay-Plan: {digest} at 1")
    rolling.turn()
    assert rolling.rollout.pause.rule == "plan"


def test_an_older_adopted_base_is_another_plan_and_differences_need_no_note(rolling) -> None:
    rolling.add_node(5)
    parent = rolling.git.commit()
    rolling.set_version("2")
    amend(rolling, f"new firmware\n\nAssay-Plan: {rolling.plan(parent, 'HEAD').digest}")
    rolling.turn()
    assert rolling.rollout.pause.rule == "plan"
    assert (
        "n5: reviewed was bmc 1 → 2, leaves service through zap; now added: pool pool-a" in rolling.rollout.pause.reason
    )


def test_a_digest_that_fits_nothing_says_how_to_see_the_plan_of_now(rolling) -> None:
    base = head(rolling)
    rolling.set_version("2")
    amend(rolling, f"x\n\nAssay-Plan: sha256:{'0' * 64}")
    rolling.turn()
    assert f"`assay plan --base {base[:12]}` shows the plan of now" in rolling.rollout.pause.reason


def test_a_policy_that_requires_a_reviewed_plan_lets_a_merge_without_one_wait(rolling) -> None:
    rolling.add_rules("{reviewed_plan: required}")
    rolling.git.commit()
    rolling.add_rules("{}")
    rolling.set_version("2")
    rolling.take_up()
    assert rolling.rollout.status == "running", "both were merged at once: the adopted policy asked for none"
    rolling.add_rules("{reviewed_plan: required}")
    rolling.set_version("3")
    rolling.take_up()
    assert "the policy requires a reviewed plan" in rolling.rollout.pause.reason
    rolling.add_rules("{}")
    rolling.set_version("4")
    rolling.take_up()
    assert rolling.rollout.pause.reason.startswith("the policy requires"), "the adopted policy still asked for it"


def test_a_later_merge_does_not_start_the_nodes_of_a_plan_that_nobody_accepted(rolling) -> None:
    rolling.set_version("2")
    amend(rolling, f"x\n\nAssay-Plan: sha256:{'0' * 64}")
    rolling.take_up()
    base = head(rolling)
    store_reviewed_plan(rolling.git.root, rolling.set_version("3"), rolling.plan(base))
    rolling.turn()
    assert len(rolling.history.rollouts) == 2
    assert rolling.rollout.pause.reason.startswith("the rollout before it was paused by the rule for reviewed plans")
    assert orders(rolling) == 0


def test_of_two_controllers_one_pauses_the_rollout_and_a_killed_one_writes_nothing_twice(rolling) -> None:
    rolling.set_version("2")
    amend(rolling, f"x\n\nAssay-Plan: sha256:{'0' * 64}")
    rolling.take_up_twice_at_once()
    assert rolling.kinds() == ["commit.adopted", "commit.adopted", "rollout.started", "rollout.paused"]
    assert not any(rolling.ledger.append(*rolling.ledger.entries()))
    rolling.turn()
    assert (rolling.rollout.pauses, orders(rolling)) == (1, 0)


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", ""),
        (f"Assay-Plan: sha256:{'a' * 64}", f"sha256:{'a' * 64}"),
        (f"x\n\nAssay-Plan: sha256:{'a' * 64}\r\nAssay-Plan: sha256:{'b' * 64}\nmore", f"sha256:{'b' * 64}"),
        (f"Assay-Plan: sha256:{'a' * 64} at 17", f"sha256:{'a' * 64}"),
        (f"Assay-Plan: sha256:{'a' * 64} at x", ""),
        (f"> Assay-Plan: sha256:{'a' * 64}", ""),
        ("Assay-Plan: sha256:abc", ""),
        (f'Assay-Plan: sha256:{"a" * 64}\n\n{{"version": 1}}', f"sha256:{'a' * 64}"),
    ],
)
def test_the_line_of_a_plan_is_read_as_it_is_written(text, digest) -> None:
    found = read_plan_record(text)
    assert (found.digest if found else "", found.content if found else None) == (digest, None)


def test_a_stored_plan_is_read_back_and_a_commit_without_one_has_none(rolling) -> None:
    base, commit = head(rolling), rolling.set_version("2")
    assert find_reviewed_plan(rolling.git.root, commit) is None
    for _ in range(2):
        store_reviewed_plan(rolling.git.root, commit, rolling.plan(base))
    found = find_reviewed_plan(rolling.git.root, commit)
    assert (found.digest, found.content) == (rolling.plan(base).digest, rolling.plan(base))

"""A change of the policy is told as the cases whose answer changes, and every setting besides by its line."""

from __future__ import annotations

from assay.decide.plan.output_formats import format_plan_text


def cases(made) -> set[tuple[str, str, bool | None]]:
    return {case for one in made.answers for case in one.cases}


def test_a_class_that_leaves_a_rule_is_answered_by_the_next(repository) -> None:
    made = repository.policy("psu.failed, ", "").plan()
    serving, verified, reset = (
        next(one for one in made.answers if one.old.rule == rule)
        for rule in ("for-people", "for-people-after-repair", "for-people-after-a-reset")
    )
    assert len(made.answers) == 3
    assert (reset.old.rule, reset.new.rule) == ("for-people-after-a-reset", "after-a-reset")
    assert {state for state, _, _ in serving.cases} == {"production", "spare"}
    assert (serving.old.rule, serving.new.rule) == ("for-people", "degraded-in-production")
    restarts = {f"production-{how}" for how in ("netboot", "poweron", "reboot", "powercycle-test")}
    assert {state for state, _, _ in verified.cases} == {*restarts, "wipe", "hand-over"}
    assert (verified.old.rule, verified.new.rule) == ("for-people-after-repair", "degraded-again")


def test_a_severity_that_changes_counts_through_the_same_cases(repository) -> None:
    fault = (
        "    check: true\n    severity: degraded\n    blame: hardware\n    remedy: triage\n"
        "    proof: [gpu_burn, dcgmproftester]\n    investigate: >-\n      check heat sink"
    )
    repository.edit("specs/faults/hgx.yaml", fault, fault.replace("degraded", "catastrophic"))
    made = repository.plan()
    said = {case: (str(one.old), str(one.new)) for one in made.answers for case in one.cases}
    assert said["production", "gpu.thermal", None] == ("triage, to draining, when idle", "triage, to draining, at once")
    assert said["production-reboot", "gpu.thermal", None][1] == "triage, to draining, at once"
    assert [(one.path, one.old, one.new) for one in made.faults] == [
        ("classes.gpu.thermal.severity", "degraded", "catastrophic")
    ]
    assert made.faults[0].line.startswith("specs/faults/hgx.yaml:")


def test_a_rule_for_nodes_in_use_changes_the_answer_for_those_only(repository) -> None:
    rule = "  degraded-in-production:\n    severity: [degraded]\n"
    made = repository.policy(rule, f"{rule}    in_use: true\n").plan()
    assert {in_use for _, _, in_use in cases(made)} == {False}
    assert {str(one.new) for one in made.answers} <= {"noted"}


def test_every_xid_of_a_class_is_a_case_of_its_own(repository) -> None:
    made = repository.edit("specs/faults/xid.yaml", "xid: [1, 2, 3,", "xid: [1, 2,").plan()
    assert {fault for _, fault, _ in cases(made)} == {"gpu.xid.3"}


def test_a_state_that_is_new_has_answers_where_there_were_none(repository) -> None:
    repository.policy("  retired:\n", "  parked:\n    summary: Kept aside.\n    certified_to: onboard\n  retired:\n")
    repository.policy("  rma: [seatrial, onboard]\n", "  rma: [seatrial, onboard]\n  parked: [onboard]\n")
    made = repository.plan()
    assert {state for state, _, _ in cases(made)} == {"parked"}
    assert {one.old for one in made.answers} == {None}


def test_limits_deadlines_and_requirements_are_told_by_their_lines(repository) -> None:
    repository.policy("pool_percent: 25", "pool_percent: 10").policy("deadline: {hours: 6", "deadline: {hours: 8")
    repository.policy("soak_hours: 24", "soak_hours: 36").policy(
        "ladder:\n  window_hours: 168", "ladder:\n  window_hours: 72"
    )
    repository.policy("min_nodes: 4\n", "min_nodes: 5\n").policy(
        "{phase: seatrial, fresh_hours: 24}", "{phase: seatrial, fresh_hours: 12}"
    )
    made = repository.plan()
    assert {(one.path, one.old, one.new) for one in made.policy} == {
        ("limits.pool_percent", "25", "10"),
        ("states.zap.deadline.hours", "6", "8"),
        ("states.test.soak_hours", "24", "36"),
        ("states.seatrial.requires.0.fresh_hours", "24", "12"),
        ("ladder.window_hours", "168", "72"),
        ("breaker.min_nodes", "4", "5"),
    }
    assert all(one.line.startswith("specs/lifecycle/default.yaml:") for one in made.policy)
    assert "limits.pool_percent: 25 → 10" in format_plan_text(made)


def test_what_automation_may_do_to_a_profile_s_nodes_is_told(repository) -> None:
    repository.edit("specs/profiles/managed.yaml", "acts_on_faults: true", "acts_on_faults: false")
    (one,) = repository.plan().profiles
    assert (one.path, one.old, one.new) == ("managed.acts_on_faults", "true", "false")
    assert one.line.startswith("specs/profiles/managed.yaml:")


def test_an_artifact_that_changes_behind_its_version_is_told_and_flashes_nothing(repository) -> None:
    bundle = "specs/firmware/hgx-h100-2026-10.yaml"
    artifact = f"    artifact: {{url: firmware/bmc.bin, sha256: {'a' * 64}, size: 1, file: bmc.bin}}\n"
    repository.edit(bundle, "    inventory: [BMC]\n", f"    inventory: [BMC]\n{artifact}").commit()
    repository.edit(bundle, "url: firmware/bmc.bin", "url: firmware/bmc-again.bin")
    made = repository.plan()
    assert made.firmware == ()
    (one,) = made.bundles
    assert (one.path, one.new) == ("hgx-h100-2026-10.bmc.artifact.url", "firmware/bmc-again.bin")
    assert one.line.startswith(f"{bundle}:")


def test_what_a_fabric_is_held_to_is_told_beside_its_cables(repository) -> None:
    repository.edit("specs/fabrics/compute.yaml", "rails: 8", "rails: 8\noversubscription: 2.0")
    made = repository.plan()
    assert made.cables == ()
    assert [(one.path, one.old, one.new) for one in made.fabrics] == [("compute.oversubscription", "1", "2")]


def test_words_about_the_policy_change_no_answer(repository) -> None:
    repository.policy("summary: Gone for good.", "summary: Scrapped.")
    repository.edit("specs/firmware/hgx-h100-2026-10.yaml", "owner: hardware-platform", "owner: somebody")
    assert not repository.plan().has_changes


def test_a_changed_lemon_score_names_the_nodes_that_become_lemons(repository, known) -> None:
    repository.policy("  threshold: 24\n", "  threshold: 8.5\n")
    made = repository.plan(known("n0003", "draining", "triage", "rma", "onboard"))
    assert not [note for note in made.notes if "lemon" in note], "8 points for the RMA"
    made = repository.plan(known("n0003", *["draining", "triage"] * 3))
    (note,) = [note for note in made.notes if "lemon" in note]
    assert note.startswith("by the new score, a lemon: n0003 with 9 of 8.5 (specs/lifecycle/default.yaml:")
    assert [(one.path, one.old, one.new) for one in made.policy] == [("lemon.threshold", "24", "8.5")]

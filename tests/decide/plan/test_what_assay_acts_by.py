"""Planted changes of what assay acts by, beside nodes and specs: none is merged unseen, and its pools are rehearsed."""

from __future__ import annotations

import json

import pytest

from assay.decide.plan.other_spec_changes import OtherChange
from assay.decide.plan.output_formats import (
    find_touched_pools,
    format_plan_json,
    format_plan_markdown,
    format_plan_text,
)

GATES = "specs/gates/default.yaml"
SCHEDULES = "specs/schedules/default.yaml"
MODULES = "playbooks/collections/ansible_collections/assay/fleet/plugins/action"
ANN = "ann@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFubmFubmFubmFubmFubmFubmFubmFubmFubmFubmFubmFu\n"
EVE = "eve@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2ZWV2\n"
ROUTE = 'kind: TicketRoute\nname: ops\nwebhook: {url: "https://tickets.example.org/new", credentials: {env: HOOK}}\n'
ISSUE = """issues:
  - issue: https://issues.example.org/1
    match: {check: "suites/production/test_gpu.py::test_gpu_temperature", pool: byo-b}
    reason: a fan is on its way
    owner: fleet-engineering
    expires: "2026-12-24"
"""
BOTH = ["byo-b", "h100-a"]


def add(repository, path: str, text: str):
    file = repository.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + text)
    return repository


def only(plan) -> OtherChange:
    (one,) = plan.other
    return one


def test_a_reboot_in_a_playbook_is_a_risk_that_is_named_and_rehearsed_everywhere(repository) -> None:
    add(repository, "playbooks/zap.yml", "\n    - name: once more\n      ansible.builtin.command: reboot\n")
    plan = repository.plan()
    told = format_plan_text(plan)
    assert plan.has_changes
    assert find_touched_pools(plan) == BOTH
    assert "playbooks/zap.yml: 2 lines new" in told
    assert told.index("a playbook does something else (playbooks/zap.yml:") < told.index("Also changed")
    assert "playbooks/zap.yml: 2 lines new" in format_plan_markdown(plan)
    read = json.loads(format_plan_json(plan))
    assert (read["changes"], read["pools"]) == (True, BOTH)
    assert read["risks"][0]["risk"] == "a playbook does something else"
    assert set(read["other"][0]) == {"topic", "what", "line", "pools", "weakens"}


@pytest.mark.parametrize(
    ("path", "text", "topic"),
    [
        (f"{MODULES}/power.py", "\nSLEEP = 5\n", "playbook"),
        ("suites/conftest.py", "\nimport os\n", "suite"),
        ("suites/recordings/late.json", "{}\n", "suite"),
        ("pytest.ini", "[pytest]\naddopts = -k nothing\n", "suite"),
        ("ansible.cfg", "[defaults]\nforks = 50\n", "setting"),
        (".github/workflows/merge.yml", "on: push\n", "workflow"),
        ("specs/forge.asc", "a key\n", "spec"),
    ],
)
def test_a_file_that_nobody_compares_is_named_with_all_pools(repository, path, text, topic) -> None:
    plan = add(repository, path, text).plan()
    assert (only(plan).topic, only(plan).line.partition(":")[0], list(only(plan).pools)) == (topic, path, BOTH)
    assert find_touched_pools(plan) == BOTH


def test_a_file_that_is_removed_is_named(repository) -> None:
    (repository.root / "playbooks/reboot.yml").unlink()
    assert only(repository.plan()).what == "playbooks/reboot.yml is removed"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("playbooks/zap.yml", "\n# a remark\n"),
        (f"{MODULES}/power.py", "\n# a remark\n"),
        ("suites/production/test_gpu.py", "\n# a remark\n"),
        ("playbooks/README.md", "prose\n"),
        ("specs/schemas/gates.json", "\n"),
        ("playbooks/__pycache__/zap.pyc", "x"),
    ],
)
def test_comments_and_prose_change_nothing(repository, path, text) -> None:
    plan = add(repository, path, text).plan()
    assert (plan.other, plan.has_changes) == ((), False)


def test_a_fixture_beside_a_rewritten_check_is_named_and_the_check_alone_is_not(repository) -> None:
    path = "suites/production/test_gpu.py"
    repository.edit(path, "at_most=limits.gpu_temperature", "at_most=limits.gpu_temperature - 1")
    assert repository.plan().other == ()
    add(repository, path, '\n\n@pytest.fixture(autouse=True)\ndef quiet():\n    pytest.skip("no")\n')
    assert only(repository.plan()).topic == "suite"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("every_minutes: 5\n", "every_minutes: 500\n", "observe runs every 500 min instead of every 5 min"),
        ('"17 */6 * * *"', '"17 */3 * * *"', "runs at `17 */3 * * *` (UTC) instead of at `17 */6 * * *` (UTC)"),
        ("  looks:\n    does: observe\n    every_minutes: 5\n", "", "observe no longer runs every 5 min"),
        ("at_once: 200", "at_once: 100", "verification.at_once 200 → 100"),
    ],
)
def test_a_schedule_is_told_by_when_it_runs(repository, old, new, said) -> None:
    one = only(repository.edit(SCHEDULES, old, new, 1).plan())
    assert (said in one.what, one.topic, list(one.pools)) == (True, "schedule", BOTH)
    assert one.line.startswith(f"{SCHEDULES}:")


def test_a_schedule_of_one_pool_touches_that_pool(repository) -> None:
    add(repository, SCHEDULES, '  extra:\n    does: fabric-scan\n    cron: "1 1 * * *"\n    pools: [byo-b]\n')
    one = only(repository.plan())
    assert (one.what, one.pools) == ("schedule extra: fabric-scan begins to run at `1 1 * * *` (UTC)", ("byo-b",))


@pytest.mark.parametrize(
    ("old", "new", "said", "is_risk"),
    [
        ("success_percent: 99", "success_percent: 1", "looser", True),
        ("success_percent: 99", "success_percent: 99.5", "stricter", False),
        ("unknown_percent: 1", "unknown_percent: 50", "looser", True),
        ("new_failures: 0", "new_failures: 9", "looser", True),
        ("new_failures: 0\n", "", "looser", True),
    ],
)
def test_a_gate_becomes_looser_or_stricter(repository, old, new, said, is_risk) -> None:
    plan = repository.edit(GATES, old, new).plan()
    assert only(plan).what.endswith(said)
    assert [one.risk for one in plan.risks] == (["a looser gate"] if is_risk else [])


def test_a_ticket_route_to_another_host_is_shown_with_its_line_and_no_secret(repository) -> None:
    add(repository, "specs/tickets/ops.yaml", ROUTE)
    assert only(repository.plan()).what == "TicketRoute ops is new: tickets to webhook"
    repository.commit()
    repository.edit("specs/tickets/ops.yaml", "tickets.example.org", "elsewhere.example.org")
    one = only(repository.plan())
    assert (one.line, "https://elsewhere.example.org/new" in one.what) == ("specs/tickets/ops.yaml:3", True)
    repository.edit("specs/tickets/ops.yaml", "HOOK", "CROOK")
    assert "CROOK" not in format_plan_json(repository.plan())


def test_a_known_issue_needs_no_ledger_to_be_seen_and_is_a_risk(repository) -> None:
    plan = repository.edit("specs/known-issues.yaml", "issues: []", ISSUE).plan()
    assert (only(plan).topic, only(plan).pools) == ("known issue", ("byo-b",))
    assert "excuses suites/production/test_gpu.py::test_gpu_temperature of pool byo-b" in only(plan).what
    assert "1 check that production requires" in plan.risks[0].why
    repository.commit()
    repository.edit("specs/known-issues.yaml", "2026-12-24", "2027-01-24")
    assert only(repository.plan()).what.endswith("until 2027-01-24 instead of 2026-12-24")
    repository.edit("specs/known-issues.yaml", ISSUE.replace("2026-12-24", "2027-01-24"), "issues: []")
    assert (only(repository.plan()).what.endswith("no longer"), repository.plan().risks) == (True, ())


def test_a_check_that_only_observes_though_production_requires_it_is_a_risk(repository) -> None:
    line = "  - id: suites/production/test_gpu.py::test_gpu_temperature\n"
    plan = repository.edit("specs/checks/checks.yaml", line, f"{line}    stage: observe\n").plan()
    assert [(one.risk, "production requires it" in one.why) for one in plan.risks] == [("a check decides less", True)]


def test_a_new_signer_is_a_risk_and_one_who_goes_is_named(repository) -> None:
    add(repository, "specs/allowed_signers", ANN).commit()
    (repository.root / "specs/allowed_signers").write_text("# people\n" + EVE)
    plan = repository.plan()
    assert [one.what.partition(" with ")[0] for one in plan.other] == ["eve@example.org", "ann@example.org"]
    assert [(one.risk, one.where) for one in plan.risks] == [("a new signer", "specs/allowed_signers:2")]
    assert "ssh-ed25519 SHA256:" in plan.risks[0].why
    assert plan.other[1].what.endswith("may sign commits no longer")


def test_a_quirk_is_shown_value_by_value(repository) -> None:
    one = only(repository.edit("specs/quirks/bmc.yaml", "login: basic", "login: session", 1).plan())
    assert (one.topic, one.what.endswith("basic → session")) == ("spec", True)


def test_a_component_that_leaves_a_bundle_is_named(repository) -> None:
    path = "specs/firmware/hgx-h100-2026-10.yaml"
    text = (repository.root / path).read_text()
    start = text.index("  - name: hca")
    end = text.find("\n  - ", start)
    (repository.root / path).write_text(text[:start] + (text[end + 1 :] if end > 0 else ""))
    assert any("hca" in one.what and one.weakens for one in repository.plan().other)


def test_a_variable_that_only_ansible_reads_is_shown_and_a_command_is_shown_whole(repository) -> None:
    repository.edit("inventory/byo-b.yml", "  vars:\n", "  vars:\n    ansible_user: admin\n    reach: [ssh, -v]\n", 1)
    plan = repository.plan()
    assert {(one.what, one.new) for one in plan.nodes.changed} == {("ansible_user", "admin"), ("reach", "ssh -v")}
    assert find_touched_pools(plan) == ["byo-b"]


def test_a_variable_that_may_be_a_secret_is_not_shown(repository) -> None:
    repository.edit("inventory/byo-b.yml", "  vars:\n", "  vars:\n    ansible_become_password: hunter2\n", 1)
    told = format_plan_json(repository.plan())
    assert ("ansible_become_password" in told, "hunter2" in told) == (True, False)


def test_all_spines_at_once_come_first_and_touch_the_pools_of_the_fabric(repository) -> None:
    plan = repository.edit("specs/fabrics/compute.yaml", "0xb83fd203001004", "0xb83fd203001005").plan()
    assert plan.risks[0].why == "all 4 spines of compute are replaced: none of them carries traffic meanwhile"
    assert format_plan_text(plan).split("\n")[2] == "Risks"
    assert "**Risks**" in format_plan_markdown(plan)
    assert find_touched_pools(plan) == BOTH


def test_one_spine_is_a_job_and_no_risk(repository) -> None:
    plan = repository.edit("specs/fabrics/compute.yaml", "0xb83fd20300100400", "0xb83fd20300100500").plan()
    assert (len(plan.cables), plan.risks) == (1, ())


def test_a_serving_node_that_changes_its_scheduler_is_a_risk_with_its_line(repository, known) -> None:
    repository.edit("inventory/h100-a.yml", "workloads: none", "workloads: slurm", 1).commit()
    repository.edit("inventory/h100-a.yml", "workloads: slurm", "workloads: kubernetes", 1)
    (risk,) = repository.plan().risks
    assert risk.where == "inventory/h100-a.yml:9"
    assert "in service would move from slurm to kubernetes" in risk.why


def test_no_line_of_a_file_is_shown_which_may_hold_a_secret_or_rule_a_terminal(repository) -> None:
    add(repository, "playbooks/zap.yml", '\n    - name: "\x1b[2J"\n')
    add(repository, "playbooks/reboot.yml", "\n    - name: x\n      vars: {bmc_password: hunter2}\n")
    told = format_plan_text(repository.plan())
    assert ("\x1b" in told, "hunter2" in told, "playbooks/reboot.yml: " in told) == (False, False, True)


def test_a_line_that_only_looks_like_a_comment_is_compared(repository) -> None:
    add(repository, "playbooks/files/start.sh", "#!/bin/sh\ntrue\n").commit()
    repository.edit("playbooks/files/start.sh", "#!/bin/sh", "#!/usr/bin/env evil")
    assert only(repository.plan()).line == "playbooks/files/start.sh:1"


@pytest.mark.parametrize("policy", ["commits: {signed: true}\n"])
def test_commits_that_need_no_signature_any_more_are_a_risk(repository, policy) -> None:
    add(repository, "specs/allowed_signers", ANN)
    add(repository, "specs/lifecycle/default.yaml", policy).commit()
    repository.edit("specs/lifecycle/default.yaml", "signed: true", "signed: false")
    assert [one.risk for one in repository.plan().risks] == ["commits need no signature"]


def test_a_spec_that_no_node_uses_is_named_and_touches_no_pool(repository) -> None:
    plan = repository.edit("specs/nodes/gb300-nvl72.yaml", "\ndescription: ", "\nfans: 10\ndescription: ").plan()
    assert (only(plan).topic, only(plan).pools, find_touched_pools(plan)) == ("spec", (), [])

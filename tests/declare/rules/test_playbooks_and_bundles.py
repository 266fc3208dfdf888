"""Playbooks and bundles agree: however a playbook is written, what it brings is known, or nobody is blamed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from assay.declare.check import check_repository
from assay.declare.repository.playbooks import read_firmware_tasks
from assay.declare.repository.tree import WorkingFolder
from tests.declare.rules.cases.case import POOL, Link
from tests.declare.rules.cases.firmware_bundles import TWO

Write = Callable[[Mapping[str, "str | None"]], Path]
CODES = {"ASY0270", "ASY0271"}
ZAP = "playbooks/zap.yml"
ROLE = "playbooks/roles/flash/tasks/main.yml"
OWN_ROLE = "playbooks/collections/ansible_collections/assay/fleet/roles/flash/tasks/main.yml"


def play(tasks: str, hosts: str = "all", more: str = "") -> str:
    """Return a playbook of one play; `tasks` begin at the left margin."""
    indented = "".join(f"    {line}\n" for line in tasks.splitlines())
    return f"- hosts: {hosts}\n{more}  tasks:\n{indented}"


def bring(*names: str) -> str:
    return f"- assay.fleet.firmware: {{components: [{', '.join(names)}]}}\n"


BOTH, BMC, BIOS = bring("bmc", "bios"), bring("bmc"), bring("bios")
ALL = "- assay.fleet.firmware:\n"

DOUBLED = "".join(f"- &b{number} {{block: [*b{number - 1}, *b{number - 1}]}}\n" for number in range(1, 40))
NEW_POOL = POOL + "pool-b: {}\n"
WHOLE: dict[str, Mapping[str, str | None]] = {
    "one task for all": {ZAP: play(ALL)},
    "one task with other options": {ZAP: play("- assay.fleet.firmware: {deadline_s: 60}\n")},
    "a task for each": {ZAP: play(BMC + BIOS)},
    "names in one string": {ZAP: play("- assay.fleet.firmware: {components: 'bmc, bios'}\n")},
    "names in args": {ZAP: play("- assay.fleet.firmware:\n  args: {components: [bmc, bios]}\n")},
    "the free form": {ZAP: play("- assay.fleet.firmware: components=bmc,bios deadline_s=60\n")},
    "an action": {ZAP: play("- action: assay.fleet.firmware components=bmc,bios\n")},
    "an action with a mapping": {ZAP: play("- action: {module: assay.fleet.firmware, components: [bmc, bios]}\n")},
    "a short name": {ZAP: play("- firmware:\n", more="  collections: [assay.fleet]\n")},
    "a block": {ZAP: play(f"- block:\n    {BOTH}")},
    "a template": {ZAP: play("- assay.fleet.firmware: {components: '{{ mine }}'}\n")},
    "a loop": {ZAP: play("- assay.fleet.firmware: {components: ['{{ item }}']}\n  loop: [bmc, bios]\n")},
    "a condition": {ZAP: play("- assay.fleet.firmware: {components: [bmc, bios]}\n  when: mine\n")},
    "a play for each pool": {ZAP: play(BOTH, "pool-a") + play(BMC, "pool-b"), "inventory/pool.yml": NEW_POOL},
    "a play for each node": {ZAP: play(ALL, "n1") + play(BOTH, "n2")},
    "an excluded group": {ZAP: play(BOTH, "all:!pool-b") + play(BMC, "pool-b"), "inventory/pool.yml": NEW_POOL},
    "tasks of another file": {ZAP: play("- import_tasks: tasks/both.yml\n"), "playbooks/tasks/both.yml": BOTH},
    "the same with file:": {
        ZAP: play("- ansible.builtin.include_tasks: {file: both.yml}\n"),
        "playbooks/both.yml": BOTH,
    },
    "another playbook": {ZAP: "- import_playbook: other.yml\n", "playbooks/other.yml": play(BOTH)},
    "a role": {ZAP: "- hosts: all\n  roles: [flash]\n", ROLE: BOTH},
    "a role of the collection": {
        ZAP: play("- include_role: {name: assay.fleet.flash}\n"),
        OWN_ROLE: "- firmware:\n",
    },
    "a role of somebody else": {ZAP: play("- include_role: {name: other.things.flash}\n")},
    "a file named by a template": {ZAP: play("- include_tasks: '{{ kind }}.yml'\n")},
    "defaults of the module": {
        ZAP: play(BMC, more="  module_defaults: {assay.fleet.firmware: {components: [bios]}}\n"),
    },
    "a secret of Ansible's vault": {ZAP: play(BOTH, more="  vars: {token: !vault abc}\n")},
    "no playbook": {},
    "a block in itself": {ZAP: "- hosts: all\n  tasks: &all\n    - block: *all\n    - assay.fleet.firmware:\n"},
    "blocks that double": {ZAP: play("- &b0 {name: x}\n" + DOUBLED + ALL)},
    "a file that includes itself": {
        ZAP: play(BOTH + "- import_tasks: more.yml\n"),
        "playbooks/more.yml": "- import_tasks: more.yml\n",
    },
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_playbook_that_brings_all_or_may_do_so_is_left_in_peace(name: str, fleet_with: Write) -> None:
    found = check_repository(fleet_with({"specs/bundle.yaml": TWO, **WHOLE[name]})).problems
    assert [problem for problem in found if problem.code in CODES] == []


WRONG: dict[str, tuple[Mapping[str, str | None], str, str]] = {
    "no YAML": ({ZAP: "- hosts: [\n"}, f"{ZAP}:2:1", "nobody knows what this playbook brings: it is no YAML"),
    "no end of lists": (
        {ZAP: "[" * 100_000},
        f"{ZAP}:1:201",
        "nobody knows what this playbook brings: it is no YAML: nested too deeply",
    ),
    "a component in no task": (
        {ZAP: play(BMC)},
        "specs/bundle.yaml:13:5",
        "bios: no task of playbooks/zap.yml brings it",
    ),
    "no firmware task at all": ({ZAP: play("- debug: {}\n")}, "specs/bundle.yaml:5:5", "bmc: no task of"),
    "another playbook that has it": (
        {ZAP: play(BMC), "playbooks/other.yml": play(BIOS)},
        "specs/bundle.yaml:13:5",
        "bios: no task of playbooks/zap.yml brings it",
    ),
    "a name that no bundle has": ({ZAP: play(ALL + bring("bmcc"))}, f"{ZAP}:4:43", "no bundle has a component bmcc"),
    "such a name under a condition": (
        {ZAP: play(ALL + bring("bmcc").rstrip() + "\n  when: mine\n")},
        f"{ZAP}:4:43",
        "no bundle has a component bmcc",
    ),
    "such a name in a file that is included": (
        {ZAP: play(ALL + "- import_tasks: more.yml\n"), "playbooks/more.yml": bring("bmcc")},
        "playbooks/more.yml:1:39",
        "no bundle has a component bmcc",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_playbook_that_disagrees_is_told_so_at_its_line(name: str, fleet_with: Write) -> None:
    files, where, message = WRONG[name]
    found = [
        one for one in check_repository(fleet_with({"specs/bundle.yaml": TWO, **files})).problems if one.code in CODES
    ]
    assert found[0].where == where
    assert message in found[0].message
    assert found[0].fix


def test_a_link_to_a_playbook_is_read(fleet_with: Write) -> None:
    root = fleet_with({"playbooks/real/zap.yml": play(BMC), ZAP: Link("real/zap.yml")})
    assert [list(task.components) for task in read_firmware_tasks(WorkingFolder(root))] == [["bmc"], ["bmc"]]

"""Which roles a repository's configure.yml names: ours, those that others stand for, those of imported playbooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.repository.playbooks import list_configuring_roles
from assay.declare.repository.tree import WorkingFolder
from assay.model.specs.node.declared_settings import SETTING_ROLES
from tests.support.places import ROOT


def test_this_repository_brings_every_setting():
    named = list_configuring_roles(WorkingFolder(ROOT))
    assert {entry.role for entry in SETTING_ROLES.values()} <= named
    roles = ROOT / "playbooks/collections/ansible_collections/assay/fleet/roles"
    assert {path.name for path in roles.iterdir()} == {*named, "declared", "drive_wipe", "gpu_reset"}, (
        "the actions wipe and gpu-reset have a role and a playbook of their own"
    )


@pytest.mark.parametrize(
    ("text", "roles"),
    [
        ("- hosts: all\n  roles: [assay.fleet.sysctls, {role: assay.fleet.services, tags: [x]}]\n", "services sysctls"),
        ("- hosts: all\n  tasks: [{import_role: {name: assay.fleet.sysctls}}]\n", "sysctls"),
        ("- hosts: all\n  roles: [{role: site.mine, vars: {assay_brings: [sysctls, nic_mtu]}}]\n", "nic_mtu sysctls"),
        ("- hosts: all\n  vars:\n    assay_brings: gpu_driver\n  roles: [site.mine]\n", "gpu_driver"),
        ("- ansible.builtin.import_playbook: host.yml\n", "cpu_governor"),
        ("- import_playbook: configure.yml\n", ""),
        ("# assay.fleet.sysctls\n- hosts: all\n", ""),
        ("- hosts: [\n", ""),
        (None, ""),
    ],
)
def test_roles_are_found_where_a_playbook_names_them(tmp_path: Path, text: str | None, roles: str):
    playbooks = tmp_path / "playbooks"
    playbooks.mkdir()
    (playbooks / "host.yml").write_text("- hosts: all\n  roles: [assay.fleet.cpu_governor]\n")
    if text is not None:
        (playbooks / "configure.yml").write_text(text)
    assert " ".join(sorted(list_configuring_roles(WorkingFolder(tmp_path)))) == roles

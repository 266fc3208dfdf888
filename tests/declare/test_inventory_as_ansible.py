"""The inventory reader against the real thing: `ansible-inventory --list` must see the same variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.declare.group_variables import AnsibleInventory, merge_variables
from assay.declare.inventory_reader import open_disk_source, read_inventory

LAYERED = {
    "inventory/a.yml": """
all:
  vars: {who: all, deep: {a: 1, b: 2}, from_all: yes}
  children:
    site:
      vars: {who: site, site_only: 1, ansible_group_priority: 5}
      children:
        pool-a:
          vars: {who: pool-a, number: 010, text: "010", ratio: 1.5, none: null, when: 2026-11-21}
          hosts:
            n[01:03]: {who: host, list: [1, two, {three: 3}]}
            n04:
            n05:2222: {x: 1}
    other:
      vars: {who: other, deep: {c: 3}}
      hosts: {n02: , n04: {who: n04}}
    zebra:
      vars: {who: zebra, ansible_group_priority: "20"}
      hosts: {n03: , n06: }
ungrouped:
  hosts: {lonely: {y: 2}}
""",
    "inventory/b.yaml": """
pool-a:
  vars: {number: 11, late: true}
  hosts:
    n04: {text: from-b, deep: {d: 4}}
""",
    "inventory/notes.md": "not an inventory",
    "inventory/.hidden.yml": "nonsense: [",
    "inventory/sub/c.json": '{"other": {"hosts": {"n07": {"j": [1, 2]}}}}',
    "inventory/group_vars/all.yml": "who: files-all\nfrom_file: 1\nsite_only: 2\n",
    "inventory/group_vars/pool-a/one.yml": "number: 12\npart: one\n",
    "inventory/group_vars/pool-a/two.yml": "part: two\n",
    "inventory/group_vars/pool-a/.skipped.yml": "part: hidden\n",
    "inventory/group_vars/other.yaml": "who: files-other\n",
    "inventory/group_vars/zebra": "stripes: 7\n",
    "inventory/host_vars/n02.yml": "who: files-n02\n",
    "inventory/host_vars/n04": "anchored: &x {k: v}\nalso: *x\nmerged: {<<: *x, l: w}\n",
    "overlay/lab.yml": "all:\n  hosts:\n    n01: {who: overlay, bmc_port: 8443}\n    n99: {new: host}\n",
    "overlay/group_vars/zebra.yml": "stripes: 8\n",
}


@pytest.fixture
def layered(tmp_path: Path) -> list[Path]:
    """Two sources that use every place where Ansible looks for variables."""
    for name, text in LAYERED.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [tmp_path / "inventory", tmp_path / "overlay" / "lab.yml"]


def test_every_host_of_a_layered_inventory_has_the_variables_that_ansible_gives_it(layered: list[Path]) -> None:
    inventory, problems = read_inventory([open_disk_source(path, layered[0].parent) for path in layered])
    assert problems == []
    assert _ours(inventory) == _theirs(layered)


def test_every_host_of_the_example_fleet_has_the_variables_that_ansible_gives_it(example: Path) -> None:
    inventory, problems = read_inventory([open_disk_source(example / "inventory", example)])
    assert problems == []
    assert len(inventory.hosts) == 20
    assert _ours(inventory) == _theirs([example / "inventory"])


def test_the_example_inventory_is_read_by_ansible_without_a_warning(example: Path) -> None:
    run = subprocess.run(_command([]), capture_output=True, text=True, cwd=example, check=True, env=_environment())
    assert run.stderr == ""
    assert len(json.loads(run.stdout)["_meta"]["hostvars"]) == 20


def _ours(inventory: AnsibleInventory) -> Any:
    """Return the merged variables as JSON would carry them; Ansible writes dates as text."""
    plain = {name: merge_variables(inventory.layers(host)) for name, host in inventory.hosts.items()}
    return json.loads(json.dumps(plain, default=str))


def _theirs(sources: Sequence[Path]) -> Any:
    run = subprocess.run(_command(sources), capture_output=True, text=True, check=True, env=_environment())
    assert "Unable to parse" not in run.stderr
    hosts = json.loads(run.stdout)["_meta"]["hostvars"]
    return {**hosts, **{name: {} for name in _names(json.loads(run.stdout)) if name not in hosts}}


def _names(listing: dict[str, Any]) -> set[str]:
    groups = [group for name, group in listing.items() if name != "_meta"]
    return {name for group in groups for name in group.get("hosts", [])}


def _command(sources: Sequence[Path]) -> list[str]:
    program = Path(sys.executable).with_name("ansible-inventory")
    return [str(program), "--list", *(part for source in sources for part in ("-i", str(source)))]


def _environment() -> dict[str, str]:
    return {**{k: v for k, v in os.environ.items() if not k.startswith("ANSIBLE_")}, "LC_ALL": "C.UTF-8"}

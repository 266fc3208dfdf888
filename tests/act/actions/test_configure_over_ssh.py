"""The roles of configure.yml with the real ssh: run once they bring the settings, run again they change nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from assay.declare.loader import load_fleet
from assay.lab.node.shell import CHRONYC, MODPROBE, SYSTEMCTL
from assay.lab.node.virtual_node import make_initial_state, node_files, write_file_tree
from assay.lab.tools.command_lines import write_form_check
from tests.act.actions.overlay_node import OverlayNode, find_obstacle, run_overlay_node
from tests.support.lab_room import lay_out

NODE = "n0004"
SPEC = """
kind: NodeSpec
name: farm
extends: hgx-h100
fabric_manager: null
gpu_settings: {persistence: null, ecc: null, mig: null, compute_mode: null}  # the probe finds no NVML there
hca_settings: null            # there is no mstconfig
host:
  kernel: null                  # another kernel would need a restart
  iommu: null
  transparent_hugepages: null   # a plain file has no brackets around the value in force
"""
PYTHON = """\
case "$*" in "-I -S -"*) set -- "$@" --root "$ASSAY_ROOT" ;; esac
exec /usr/bin/python3 "$@"
"""
"""Python on the node. It tells the probe where the node's files are."""
PROGRAMS = {
    "chronyc": write_form_check("chronyc") + CHRONYC,
    "systemctl": write_form_check("systemctl") + SYSTEMCTL,
    "modprobe": write_form_check("modprobe") + MODPROBE,
    "modinfo": write_form_check("modinfo") + 'exec cat "$ASSAY_ROOT/sys/module/nvidia/version"\n',
    "update-initramfs": '[ "$*" = "-u -k all" ] && echo updated >> "$ASSAY_ROOT/run/initramfs.log"\n',
    "update-grub": '[ $# = 0 ] && echo updated >> "$ASSAY_ROOT/run/grub.log"\n',
    "node-python": PYTHON,
}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, OverlayNode]]:
    if reason := find_obstacle():
        pytest.skip(reason)
    root = tmp_path_factory.mktemp("farm")
    lay_out(root)
    for file in (*root.glob("inventory/*.yml"), *root.glob("specs/nodes/*.yaml")):  # examples reach no real machine
        file.write_text(file.read_text().replace("A520112X44", "FARM12X44").replace("lab1.example", "lab1.farm"))
    (root / "specs/nodes/farm.yaml").write_text(SPEC)
    overlay = root / "inventory/zz-farm.yml"
    overlay.write_text(yaml.safe_dump({"all": {"hosts": {NODE: {"node_spec": "farm"}}}}))
    fleet = load_fleet(root)
    start = datetime(2026, 11, 1, 8, 0, tzinfo=UTC)
    state = make_initial_state(fleet.nodes[NODE], fleet.spec_of(NODE), fleet.bundle_of(NODE), start)
    state["host"]["sysctls"]["vm.zone_reclaim_mode"] = "1"
    state["host"]["modules"].remove("nvidia_peermem")
    state["host"]["services"]["chrony"] = "inactive"
    state["host"]["governor"] = "powersave"
    state["nics"][1]["mtu"] = 1500
    tree = root / "tree"
    write_file_tree(tree, node_files(state), root / "tree.json")
    with run_overlay_node(root / "overlay", tree, PROGRAMS) as node:
        reach = {
            "node_spec": "farm",
            "ansible_host": "127.0.0.1",
            "ansible_port": node.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(node.key),
            "ansible_ssh_common_args": "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null",
            "ansible_python_interpreter": "/usr/local/sbin/node-python",
        }
        overlay.write_text(yaml.safe_dump({"all": {"hosts": {NODE: reach}}}))
        yield root, node


def run_configure(root: Path, *options: str) -> str:
    program = Path(sys.executable).parent / "ansible-playbook"
    places = ["-i", "inventory", "playbooks/configure.yml"]
    environment = os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(root / ".ansible")}
    done = subprocess.run(
        [program, *places, "--limit", NODE, "--tags", "host", *options],
        cwd=root,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_settings_are_shown_then_brought_then_left_alone(farm: tuple[Path, OverlayNode]):
    root, node = farm
    shown = run_configure(root, "--check", "--diff")
    assert "+vm.zone_reclaim_mode = 0" in shown
    assert "zone_reclaim_mode: 1" in shown
    assert not node.path("etc/sysctl.d/90-assay.conf").exists()
    assert node.path("proc/sys/vm/zone_reclaim_mode").read_text() == "1\n"

    assert "changed=0" not in run_configure(root)
    assert node.path("proc/sys/vm/zone_reclaim_mode").read_text() == "0\n"
    assert "nvidia_peermem" in node.path("proc/modules").read_text()
    assert "chrony.service loaded active" in node.path("run/systemctl").read_text()
    assert node.path("sys/class/net/eth1/mtu").read_text() == "9000\n"
    assert "iommu=pt" in node.path("etc/default/grub.d/90-assay.cfg").read_text()
    assert node.path("run/grub.log").read_text() == "updated\n"

    again = run_configure(root)
    assert "changed=0" in again, again
    assert not Path("/etc/sysctl.d/90-assay.conf").exists(), "this machine is left alone"

"""The playbook configure.yml, with the real ansible-playbook, against the lab."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lab_room import Room


def run_configure(room: Room, node: str, *options: str) -> str:
    """Run the playbook as a person would, without assay. Return what it printed."""
    program = Path(sys.executable).parent / "ansible-playbook"
    places = ["-i", "inventory", "-i", ".assay/lab/inventory.yml"]
    command = [program, *places, "playbooks/configure.yml", "--limit", node, *options]
    done = subprocess.run(
        command, cwd=room.root, capture_output=True, text=True, env=os.environ | {"ANSIBLE_NOCOLOR": "1"}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_bios_settings_are_shown_then_brought_then_left_alone(room: Room):
    room.fresh("n0004")
    room.change("n0004", lambda state: state["box"]["bios"].update(ACSControl="Enabled"))

    shown = run_configure(room, "n0004", "--check", "--diff", "--tags", "bmc")
    assert "-bios.ACSControl: Enabled" in shown
    assert "+bios.ACSControl: Disabled" in shown
    assert room.state("n0004")["box"]["bios_pending"] == {}

    assert "changed=1" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["box"]["bios"]["ACSControl"] == "Disabled"
    assert "changed=0" in run_configure(room, "n0004", "--tags", "bmc")
    assert room.state("n0004")["boot"]["count"] == 2

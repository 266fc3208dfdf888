"""Playbooks and suites of the last starter before there was `assay.fleetkit`, by this version of assay.

`earlier_starter.tar.gz` has `playbooks/`, and the Python files of `suites/`, as commit ae0cc6e9 copied them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.act.actions import zap
from assay.declare.starter.new_repository import create_repository, render_starter
from tests.declare.starter.copied_fleet import CopiedFleet
from tests.support.lab_room import Room, lab_room, lay_out, wish

PACKED = Path(__file__).with_name("earlier_starter.tar.gz")
POWER = "playbooks/collections/ansible_collections/assay/fleet/plugins/action/power.py"
FIRMWARE = POWER.replace("power.py", "firmware.py")
IMPORT_ALL = """
import pathlib, runpy, sys
sys.path.insert(0, "playbooks/collections")
root = pathlib.Path("playbooks")
for plugin in sorted([*root.rglob("plugins/action/*.py"), *root.glob("vars_plugins/*.py")]):
    names = runpy.run_path(str(plugin))
    assert "ActionModule" in names or names["refusal"] == "", names.get("refusal")
    print(plugin.stem)
"""


def unpack(root: Path) -> None:
    with tarfile.open(PACKED) as archive:
        archive.extractall(root, filter="data")


def run(root: Path, *command: str | Path, context: str = "fleet") -> str:
    environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ASSAY_CONTEXT": context}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("earlier") / "fleet"
    create_repository(root)
    unpack(root)
    return root


def test_every_plug_in_is_imported(fleet: Path) -> None:
    told = run(fleet, sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORT_ALL).split()
    assert {"assay_context", "bmc_settings", "declared_settings", "firmware", "power"} < set(told)


def test_every_playbook_is_read(fleet: Path) -> None:
    program = Path(sys.executable).parent / "ansible-playbook"
    playbooks = [f"playbooks/{name}.yml" for name in ("configure", "reboot", "wipe", "zap")]
    told = run(fleet, program, "-i", "inventory", "--syntax-check", *playbooks)
    assert [line for line in told.splitlines() if line] == [f"playbook: {playbook}" for playbook in playbooks]


@pytest.mark.slow
def test_its_suites_are_collected(fleet: Path) -> None:
    told = run(fleet, sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "suites")
    assert "error" not in told.splitlines()[-1]
    assert "suites/zap/test_image.py" in told


@pytest.mark.slow
def test_an_upgrade_carries_it_over(fleet: Path, tmp_path: Path) -> None:
    ours, new = (tmp_path / "ours"), render_starter("github")[1]
    ours.mkdir()
    unpack(tmp_path / "old")
    old = {path: (tmp_path / "old" / path).read_bytes() for path in new if (tmp_path / "old" / path).is_file()}
    site = CopiedFleet(ours, old)
    changed = old[POWER] + b"\nOURS = 1\n"
    own = POWER.replace("power", "our_power")
    site.change({POWER: changed, own: old[FIRMWARE]})
    found = site.upgrade({path: new[path] for path in old})
    assert [change.path for change in found.values() if change.status == "conflict"] == []
    assert (ours / FIRMWARE).read_bytes() == new[FIRMWARE]
    assert (ours / POWER).read_bytes() == new[POWER] + b"\nOURS = 1\n"
    assert b"from assay.fleetkit import FirmwareUpdateRun, StageResult\n" in (ours / own).read_bytes()
    assert b"from assay." not in (ours / own).read_bytes().replace(b"from assay.fleetkit import", b"")
    told = run(ours, sys.executable, "-W", "error::DeprecationWarning", "-c", IMPORT_ALL)
    assert "our_power" in told.split()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    def lay_out_earlier(root: Path) -> None:
        lay_out(root)
        unpack(root)

    with lab_room(tmp_path_factory.mktemp("lab"), lay_out=lay_out_earlier) as room:
        yield room


@pytest.mark.slow
def test_zap_runs_in_the_lab(room: Room) -> None:
    room.fresh("n0003", BMC="01.00.00")
    context, intent = room.context(), wish("zap", "n0003")
    zap.run(context, intent)
    assert zap.verify(context, intent).done
    assert room.flashes("n0003") == ["bmc"]


@pytest.mark.slow
def test_configure_runs_in_the_lab(room: Room) -> None:
    room.fresh("n0004")
    room.change("n0004", lambda state: state["box"]["bios"].update(ACSControl="Enabled"))
    program = Path(sys.executable).parent / "ansible-playbook"
    command = (program, "-i", "inventory", "playbooks/configure.yml", "--limit", "n0004", "--tags", "bmc")
    assert "changed=1" in run(room.root, *command, context="lab")
    assert room.state("n0004")["box"]["bios"]["ACSControl"] == "Disabled"

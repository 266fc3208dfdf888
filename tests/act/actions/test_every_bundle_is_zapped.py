"""Every shipped bundle is brought onto a node of its kind by the real playbook, and updates that go wrong end right."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.act.actions import zap
from assay.act.remedies.firmware_stages import list_stages
from assay.declare.loader import load_fleet
from assay.lab.faults.injection import inject_fault
from assay.model.errors import AssayError
from tests.support.lab_room import Room, lab_room, lay_out, wish
from tests.support.places import ROOT

KINDS = sorted(load_fleet(ROOT).node_specs)
pytestmark = pytest.mark.slow


def lay_out_kinds(root: Path) -> None:
    """Lay out a fleet with one node of every node spec."""
    lay_out(root)
    for folder in ("inventory", "specs/fabrics"):
        shutil.rmtree(root / folder)
    (root / "inventory").mkdir()
    for number, (name, spec) in enumerate(load_fleet(ROOT).node_specs.items(), 1):
        guids = [f"0xa088c204{number:02x}00{rail:02x}06" for rail in range(len(spec.hcas))]
        host = {"rack": f"r{number}", "u": 1, "serial_number": f"S{number:04}", "bmc_address": f"192.0.2.{number}"}
        variables = {"node_spec": name, "profile": "managed", "site": "lab1", "hca_guids": guids}
        pool = {name: {"vars": variables, "hosts": {f"one-{name}": host}}}
        (root / "inventory" / f"{name}.yml").write_text(yaml.safe_dump(pool))


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with lab_room(tmp_path_factory.mktemp("kinds"), lay_out=lay_out_kinds) as room:
        yield room


@pytest.mark.parametrize("kind", KINDS)
def test_all_components_of_a_bundle_are_brought_in_their_order(kinds: Room, kind: str) -> None:
    node = f"one-{kind}"
    bundle = kinds.fleet.bundle_of(node)
    kinds.fresh(node, **{ident: "0.1" for part in bundle.components for ident in part.inventory})

    zap.run(kinds.context(), wish("zap", node))

    assert zap.verify(kinds.context(), wish("zap", node)).done
    assert kinds.flashes(node) == [part.name for stage in list_stages(bundle.components) for part in stage.components]
    events = [event["message_id"] for event in kinds.state(node)["events"]]
    cuts = sum(stage.reset in ("host", "ac") for stage in list_stages(bundle.components))
    assert events.count("Assay.1.0.SystemReset") == cuts


TROUBLES: dict[str, tuple[str, dict[str, Any], str]] = {
    "a second reset": ("flash.second-reset", {}, ""),
    "a lost task of an image that was written": ("flash.task-lost", {"written": True}, ""),
    "a lost task of an image that was not": ("flash.task-lost", {"written": False}, "nobody knows whether bios was"),
    "a BMC that restarts in the middle": (
        "flash.bmc-restarts",
        {},
        "Watchdog restart of the BMC while bios was being written; the BMC restarted in the middle of it",
    ),
    "one that goes on writing": ("flash.bmc-restarts", {"forgets": True, "breaks": False}, ""),
    "one that forgets the task": ("flash.bmc-restarts", {"forgets": True}, "the BMC restarted in the middle of it"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_an_update_that_goes_wrong_ends_right_and_its_image_is_pushed_once(kinds: Room, trouble: str) -> None:
    fault, arguments, why = TROUBLES[trouble]
    node = "one-hgx-b200"
    kinds.fresh(node, BIOS="0.1")
    inject_fault(kinds.world, fault, node, {"component": "bios", **arguments})

    error = _zap(kinds, node)

    assert why in error
    assert bool(error) == bool(why), error
    assert kinds.flashes(node) == ["bios"]
    assert zap.verify(kinds.context(), wish("zap", node)).done == (not why)
    assert not (why and _zap(kinds, node)), "the next run pushes again, because the inventory reads the old version"


def test_firmware_that_rolls_back_by_itself_is_told_and_not_pushed_again(kinds: Room) -> None:
    node = "one-hgx-h200"
    kinds.fresh(node, BIOS="0.1")
    inject_fault(kinds.world, "flash.rolls-back", node, {"component": "bios", "after_s": 4200})

    error = _zap(kinds, node, firmware_steady_s=10)

    assert "BIOS read 2.7.3 after the update and reads 0.1 again: it rolled back by itself" in error
    assert kinds.flashes(node) == ["bios"]


def test_a_playbook_of_a_site_may_list_components(kinds: Room) -> None:
    node, tasks = "one-gb200-nvl72", "  gather_facts: false\n  tasks:\n    - assay.fleet.firmware: {components: "
    kinds.fresh(node, HGX_FW_CPLD_0="0.1", HGX_FW_FPGA_1="0.1")
    for name, names in (("some", "[cpld, hmc]"), ("wrong", "[cpld, retimer]")):
        text = f"- hosts: all\n  connection: local\n{tasks}{names}}}\n"
        (kinds.root / "playbooks" / f"{name}.yml").write_text(text)

    assert _zap(kinds, node, "some.yml") == ""
    assert kinds.flashes(node) == ["cpld"]
    assert "the bundle gb200-nvl72-1.3 has no retimer" in _zap(kinds, node, "wrong.yml")


def _zap(room: Room, node: str, playbook: str = "zap.yml", **variables: Any) -> str:
    """Run a playbook. Return the error that it ends with, "" without one."""
    from assay.act.remedies.ansible_playbook import run_playbook

    try:
        run_playbook(room.context(), wish("zap", node), playbook, variables)
    except AssayError as error:
        return str(error)
    return ""

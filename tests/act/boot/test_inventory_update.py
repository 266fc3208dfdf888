"""What another machine, board, BMC or place changes in the inventory is drafted line by line, and nothing else."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.act.boot.inventory_update import draft_guids, draft_node_lines, find_update, format_diff
from assay.declare.loader import load_fleet
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument
from assay.model.specs.machines import SeenMachine
from tests.support.places import ROOT
from tests.support.serving_fleet import GIT

NODE = "n0002"
FLEET = load_fleet(ROOT)
DECLARED = FLEET.nodes[NODE]
PRINT = "sha256:" + "ab" * 32


def read(serial: str = DECLARED.serial, *, probe: Any = None, bmc: Any = None) -> EvidenceDocument:
    host = {"serial": {"value": serial}} if serial else {"serial": {"absent": "no DMI"}}
    channels = {"probe": {"host": host, **(probe or {})}, "bmc": bmc or {}}
    return EvidenceDocument(NODE, datetime(2026, 11, 30, tzinfo=UTC), channels)


def test_a_machine_as_it_is_declared_changes_nothing():
    adapters = zip(FLEET.spec_of(NODE).hcas, DECLARED.hca_guids, strict=True)
    hcas = {hca.name: {"guid": {"value": guid}} for hca, guid in adapters}
    place = {"chassis": {"place": {"rack": {"value": DECLARED.rack}, "u": {"value": DECLARED.u}}}}
    assert (
        find_update(FLEET, DECLARED, SeenMachine(fingerprint=PRINT), read(probe={"hca": hcas}, bmc=place)).changes == {}
    )


def test_another_chassis_changes_serial_number_certificate_and_guids_and_asks_for_what_it_does_not_say():
    node = replace(
        DECLARED,
        mac="b8:3f:d2:00:00:01",
        bmc_mac="02:00:5e:00:02:00",
        settings=DECLARED.settings.model_copy(update={"endorsement_key_sha256": "00" * 32}),
    )
    guids = [f"0xa088c20300aa{number:04x}" for number in range(8)]
    probe = {
        "hca": {hca.name: {"guid": {"value": guid}} for hca, guid in zip(FLEET.spec_of(NODE).hcas, guids, strict=True)},
        "nic": {name: {"mac": {"value": f"b8:3f:d2:00:00:1{at}"}} for at, name in enumerate(("eth0", "eth1"))},
    }
    bmc = {"failed": "its certificate is not the one that bmc_fingerprint pins: it shows sha256:ab…"}
    update = find_update(FLEET, node, SeenMachine(fingerprint=PRINT), read("NEW1", probe=probe, bmc=bmc))
    assert update.changes == {"serial_number": "NEW1", "bmc_fingerprint": PRINT, "hca_guids": guids}
    assert [question.partition(":")[0] for question in update.questions] == ["mac", "endorsement_key_sha256"]


def test_a_delivery_tells_what_its_machine_does_not():
    delivery = next(iter(FLEET.deliveries.values()))
    machine = delivery.machines[0]
    update = find_update(FLEET, DECLARED, SeenMachine(), read(machine.serial_number))
    assert update.changes["bmc_mac"] == machine.bmc_mac
    assert update.changes["mac"] == machine.mac


def test_another_place_changes_rack_and_unit_alone():
    place = {"chassis": {"place": {"rack": {"value": "r09"}, "u": {"value": 2}}}}
    update = find_update(FLEET, DECLARED, SeenMachine(), read(bmc=place))
    assert (update.changes, update.questions) == ({"rack": "r09", "u": 2}, ())


@pytest.mark.parametrize(
    ("serial", "at_the_bmc", "said"), [("", "", "nobody could read it"), ("A1001", "B2002", "A1001 and B2002")]
)
def test_a_machine_without_one_serial_number_is_refused(serial, at_the_bmc, said):
    with pytest.raises(AssayError, match=said):
        find_update(FLEET, DECLARED, SeenMachine(serial=at_the_bmc), read(serial))


def git(folder: Path, *words: str) -> None:
    subprocess.run([*GIT, *words], cwd=folder, check=True)


INVENTORY = """\
a:
  hosts:
    n0001: {serial_number: n0002, rack: r1}  # a serial number like a name
    n0002:
      rack: r01  # by the door
      u: 14
      serial_number: A52
      hca_guids:
        - "0x01"
        - "0x02"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "inventory").mkdir()
    (tmp_path / "specs/fabrics").mkdir(parents=True)
    (tmp_path / "inventory/a.yml").write_text(INVENTORY)
    (tmp_path / "specs/fabrics/f.yaml").write_text('leaves:\n  - {guid: "0xB83f", u: 1}\n  - {guid: "0xb840", u: 2}\n')
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=a fleet")
    return tmp_path


def test_only_the_lines_of_the_node_change_and_comments_stay(repository):
    changes = {"serial_number": "007", "rack": "r02", "hca_guids": ["0x03", "0x04"], "bmc_fingerprint": PRINT}
    path, before, after = draft_node_lines(repository, NODE, changes)
    assert (path, before) == ("inventory/a.yml", INVENTORY)
    assert after == INVENTORY.replace("r01  #", "r02  #").replace(
        "serial_number: A52", f"serial_number: '007'\n      bmc_fingerprint: {PRINT}"
    ).replace("0x01", "0x03").replace("0x02", "0x04")
    (repository / "drafted.diff").write_text(format_diff(path, before, after) + "\n")
    git(repository, "apply", "drafted.diff")
    assert (repository / path).read_text() == after


def test_a_new_switch_changes_its_guid_alone(repository):
    path, before, after = draft_guids(repository, {"0xb83f": "0xcafe"})
    assert (path, after) == ("specs/fabrics/f.yaml", before.replace("0xB83f", "0xcafe"))


def test_a_host_that_no_file_has_is_refused(repository):
    with pytest.raises(AssayError, match="no host n0009"):
        draft_node_lines(repository, "n0009", {"u": 1})

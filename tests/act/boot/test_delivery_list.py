"""A vendor's list becomes the draft of a delivery, and nothing of it is dropped in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml
from typer.testing import CliRunner

from assay.act.boot.delivery_list import DeliveryList, draft_delivery, read_delivery_file
from assay.cli.app import app
from assay.model.errors import AssayError
from assay.model.specs.machines import ExpectedMachines

COMMA = """Service Tag,iDRAC MAC,Rack,RU,PXE MAC
ABC1,02005E002100,r06,U04,02-00-5e-00-21-01

ABC2,0200.5e00.2200,r06,14,
"""
SEMICOLON = "\ufeffSerial;Hostname;BMC MAC address;Cabinet;Position\nABC1;N0021;02:00:5E:00:21:00;r06;4\n"
ONE = {"serial_number": "ABC1", "name": "", "bmc_mac": "02:00:5e:00:21:00", "mac": "02:00:5e:00:21:01"}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(text: str, name: str = "list.csv") -> DeliveryList:
        (tmp_path / name).write_text(text)
        return read_delivery_file(tmp_path / name)

    return read


def test_the_headings_of_vendors_are_known(read: Any) -> None:
    assert read(COMMA) == DeliveryList(
        [
            {**ONE, "rack": "r06", "u": 4},
            {"serial_number": "ABC2", "name": "", "bmc_mac": "02:00:5e:00:22:00", "rack": "r06", "u": 14},
        ],
        [],
        [],
    )


@pytest.mark.parametrize(
    "heading",
    """
    MAC; NIC MAC; LAN MAC; Host MAC; eth0 MAC; System MAC; Mac Addr; NIC1 MAC Address; PXE-MAC; Boot MAC Address
    LOM1 MAC; Onboard LAN 1 MAC; mac_addr; Data NIC mac address; MAC (PXE)
    """.replace("\n", ";").split(";"),
)
def test_any_heading_with_the_word_mac_is_read(read: Any, heading: str) -> None:
    (one, _) = read(COMMA.replace("PXE MAC", heading.strip() or "MAC")).machines
    assert one["mac"] == "02:00:5e:00:21:01"


@pytest.mark.parametrize("heading", ["BMC MAC", "Mgmt MAC Address", "IPMI LAN MAC", "OOB mac"])
def test_the_address_of_a_bmc_is_told_from_that_of_the_machine(read: Any, heading: str) -> None:
    (one, _) = read(COMMA.replace("iDRAC MAC", heading)).machines
    assert one == {**ONE, "rack": "r06", "u": 4}


@pytest.mark.parametrize(
    ("cell", "unit"), [("U04-U11", 4), ("RU14", 14), ("14", 14), ("u7", 7), ("11 - 4", 4), ("RU 3–RU 10", 3)]
)
def test_a_range_of_units_begins_at_its_lowest(read: Any, cell: str, unit: int) -> None:
    assert read(COMMA.replace("U04", cell)).machines[0]["u"] == unit


def test_what_is_not_used_is_named_with_the_nearest_that_is_known(read: Any) -> None:
    text = "Serial Number,Rack,BMC MAC,U,Asset Tag,Host Name,Cabinett,PXE MAC,NIC2 MAC,Switch MAC\n"
    listed = read(f"{text}A1,r1,020000000001,4,77,n1,x,020000000002,020000000003,020000000004\n")
    assert listed.machines[0]["mac"] == "02:00:00:00:00:02"
    assert listed.unused_columns == [
        "the column Asset Tag is not used",
        "the column Cabinett is not used: rack is read from the column Rack",
        "the column NIC2 MAC is not used: mac is read from the column PXE MAC",
        "the column Switch MAC is not used",
    ]


@pytest.mark.parametrize(("old", "new"), [("ABC2", "ABC1"), ("0200.5e00.2200", "02:00:5e:00:21:00")])
def test_a_machine_that_stands_there_twice_is_told(read: Any, old: str, new: str) -> None:
    listed = read(COMMA.replace(old, new))
    assert len(listed.machines) == 1
    (refused,) = listed.refused_rows
    assert f"list.csv:4: {new} stands in " in refused
    assert "list.csv:2 too" in refused


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("U04", "top", 2, "top is no rack unit"),
        ("0200.5e00.2200", "0200", 4, "bmc_mac 0200 is no MAC address"),
        ("ABC2", "", 4, "the row has no serial_number"),
    ],
)
def test_a_wrong_row_is_refused_with_its_number_and_the_rest_is_kept(
    read: Any, old: str, new: str, line: int, what: str
) -> None:
    listed = read(COMMA.replace(old, new))
    assert len(listed.machines) == 1
    assert f"list.csv:{line}: {what}" in listed.refused_rows[0]
    assert "→" in listed.refused_rows[0]


@pytest.mark.parametrize(
    ("text", "name", "what"),
    [
        (COMMA.replace("Service Tag", "Colour"), "list.csv", "no column for serial_number among Colour"),
        ("", "list.csv", "among nothing"),
        (COMMA[: COMMA.index("\n")] + "\n", "list.csv", "the list has no machine"),
        (COMMA[: COMMA.index("\n")] + "\nA,B,C,D,E\n", "list.csv", "D is no rack unit"),
        ("{", "list.json", "the list cannot be read"),
        ('["x"]', "list.json", "it is no list of machines"),
        ("text", "list.xlsx", "the list cannot be read"),
    ],
)
def test_a_list_without_a_machine_is_refused(read: Any, text: str, name: str, what: str) -> None:
    with pytest.raises(AssayError) as refused:
        read(text, name)
    assert what in str(refused.value)
    assert name in str(refused.value)


def test_workbooks_and_json_are_read_as_csv_is(read: Any, tmp_path: Path) -> None:
    wanted = read(COMMA).machines
    lines = [line.split(",") for line in COMMA.splitlines() if line]
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append([int(cell) if cell == "14" else cell or None for cell in line])
    book.save(tmp_path / "list.xlsx")
    assert read_delivery_file(tmp_path / "list.xlsx").machines == wanted
    machines = [dict(zip(lines[0], line, strict=False)) for line in lines[1:]]
    for document in (machines, {"order": "4711", "systems": machines}):
        assert read(json.dumps(document), "list.json").machines == wanted


def test_a_list_of_another_dialect_is_read(read: Any) -> None:
    (machine,) = read(SEMICOLON).machines
    assert machine == {"serial_number": "ABC1", "name": "n0021", "bmc_mac": "02:00:5e:00:21:00", "rack": "r06", "u": 4}


def test_the_draft_becomes_a_delivery_once_a_person_has_filled_it_in(read: Any) -> None:
    draft = yaml.safe_load(draft_delivery("new", read(COMMA).machines))
    filled = {**draft, "vendor": "V", "model": "M", "site": "s"}
    assert [one.name for one in ExpectedMachines.model_validate(filled).machines] == ["todo-1", "todo-2"]


@pytest.mark.parametrize(("old", "new", "code"), [("ABC2", "ABC2", 0), ("ABC2", "ABC1", 1)])
def test_the_verb_says_on_stderr_what_it_left_out(tmp_path: Path, old: str, new: str, code: int) -> None:
    (tmp_path / "list.csv").write_text(COMMA.replace("PXE MAC", "Colour").replace(old, new))
    done = CliRunner().invoke(app, ["discover", "delivery", "new", str(tmp_path / "list.csv")])
    assert done.exit_code == code
    assert "the column Colour is not used" in done.stderr
    assert ("stands in" in done.stderr) == bool(code)
    assert len(yaml.safe_load(done.stdout)["machines"]) == 2 - code

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


def write_book(path: Path, lines: list[list[str]], *sheets: str) -> Path:
    book = openpyxl.Workbook()
    for line in lines:
        book.active.append([int(cell) if cell.isdigit() and len(cell) < 4 else cell or None for cell in line])
    for sheet in sheets:
        book.create_sheet(sheet)
    book.save(path)
    return path


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
    ("cell", "units"),
    [
        ("RU14", {"u": 14}),
        ("14", {"u": 14}),
        ("u7", {"u": 7}),
        ("U04-U11", {"u": 4, "top_u": 11}),
        ("11 - 4", {"u": 4, "top_u": 11}),
        ("RU 3–RU 10", {"u": 3, "top_u": 10}),
        ("4 to 11", {"u": 4, "top_u": 11}),
        ("4U:11U", {"u": 4, "top_u": 11}),
    ],
)
def test_both_ends_of_a_range_of_units_are_read(read: Any, cell: str, units: dict[str, int]) -> None:
    assert read(COMMA.replace("U04", cell)).machines[0] == {**ONE, "rack": "r06", **units}


@pytest.mark.parametrize(
    ("headings", "cells"),
    [("U Start,U End", "4,11"), ("U,Height", "4,8U"), ("RU,Height U", "U4,8"), ("U,Top U", "4,U11")],
)
def test_the_highest_unit_may_have_a_column_of_its_own(read: Any, headings: str, cells: str) -> None:
    listed = read(f"Serial,BMC MAC,Rack,{headings}\nA1,020000000001,r1,{cells}\n")
    assert (listed.machines[0]["u"], listed.machines[0]["top_u"], listed.unused_columns) == (4, 11, [])


def test_what_a_delivery_can_say_is_read(read: Any) -> None:
    digest = "AB" * 32
    (machine,) = read(
        "System S/N,BMC MAC,Rack ID,U,PDU,HCA GUID 1,HCA GUID 2,EK SHA256\n"
        f"A1,020000000001,r1,4,r1-a,0002c903:0000:0001,0x0002C90300000002,{digest}\n"
    ).machines
    assert machine["hca_guids"] == ["0x0002c90300000001", "0x0002c90300000002"]
    assert (machine["pdu"], machine["endorsement_key_sha256"]) == ("r1-a", digest.lower())


def test_what_is_not_used_is_named_with_the_nearest_that_is_known(read: Any) -> None:
    text = "Serial Number,Rack,BMC MAC,U,Asset Tag,Host Name,Cabinett,PXE MAC,NIC2 MAC,PDU Outlet,Switch Port,\n"
    listed = read(f"{text}A1,r1,020000000001,4,77,n1,x,020000000002,020000000003,12,swp1,spare\n")
    assert listed.machines[0]["mac"] == "02:00:00:00:00:02"
    known = "is not used; the nearest that is known is"
    assert listed.unused_columns == [
        f"the column Asset Tag {known} servicetag, for serial_number, which is read from the column Serial Number",
        f"the column Cabinett {known} cabinet, for rack, which is read from the column Rack",
        f"the column NIC2 MAC {known} nic1mac, for mac, which is read from the column PXE MAC",
        f"the column PDU Outlet {known} pduname, for pdu",
        f"the column Switch Port {known} ustart, for u, which is read from the column U",
        "the column 12 has no heading, and is not used",
    ]


def test_what_stands_outside_of_the_table_is_named(read: Any, tmp_path: Path) -> None:
    listed = read(f"Delivery note 4711,,\n\n{COMMA}")
    assert len(listed.machines) == 2
    assert listed.unused_columns == [f"{tmp_path}/list.csv:1 stands above the headings, and is not used"]
    lines = [line.split(",") for line in COMMA.splitlines()]
    assert read_delivery_file(write_book(tmp_path / "list.XLSX", lines, "Spares")).unused_columns == [
        "the sheet Spares is not used"
    ]


def test_json_of_a_vendor_is_read_to_its_leaves(read: Any) -> None:
    system = {
        "SerialNumber": "A1",
        "bmc": {"macAddress": "020000000001", "password": "calvin"},
        "placement": {"rack": "r1", "u": "4-11"},
        "interfaces": [{"name": "eth0", "mac": "020000000002"}, {"name": "eth1", "mac": "020000000003"}],
        "gpus": [{"serial": "G1"}],
        "hca_guids": ["0002c90300000001", "0002c90300000002"],
    }
    listed = read(json.dumps({"order": "4711", "notes": [], "systems": [system]}), "list.json")
    assert listed.machines == [
        {"serial_number": "A1", "name": "", "bmc_mac": "02:00:00:00:00:01", "mac": "02:00:00:00:00:02"}
        | {"rack": "r1", "u": 4, "top_u": 11, "hca_guids": ["0x0002c90300000001", "0x0002c90300000002"]}
    ]
    unused = "\n".join(listed.unused_columns)
    for name in ("order", "notes", "bmc.password", "interfaces.1.name", "interfaces.2.mac", "gpus.1.serial"):
        assert name in unused
    assert "calvin" not in unused


@pytest.mark.parametrize(("old", "new"), [("ABC2", "ABC1"), ("0200.5e00.2200", "02:00:5e:00:21:00")])
def test_a_machine_that_stands_there_twice_is_told(read: Any, old: str, new: str) -> None:
    listed = read(COMMA.replace(old, new))
    assert len(listed.machines) == 1
    (refused,) = listed.refused_rows
    assert f"list.csv:4: {new} stands in " in refused
    assert "list.csv:2 too" in refused


def test_two_machines_in_one_place_are_told(read: Any) -> None:
    listed = read(COMMA.replace("U04", "U11-U18"))
    assert (len(listed.machines), listed.refused_rows[0].partition(": ")[2].partition(" in ")[0]) == (
        1,
        "r06 U14 stands",
    )


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("U04", "top", 2, "top is no rack unit"),
        ("0200.5e00.2200", "0200", 4, "bmc_mac 0200 is no MAC address"),
        ("ABC2", "", 4, "the row has no serial_number"),
        (",14,", ",70,", 4, "u 70: "),
        (",14,", ",14,,spare", 4, "the row has more cells than the headings"),
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
        (COMMA[: COMMA.index("\n")] + "\nA,B,C,D,E\n", "list.csv", "B is no MAC address"),
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

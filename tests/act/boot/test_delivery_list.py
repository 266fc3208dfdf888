"""A vendor's list becomes the draft of a delivery."""

from __future__ import annotations

import pytest
import yaml

from assay.act.boot.reports import draft_delivery, read_delivery_list
from assay.model.errors import AssayError
from assay.model.specs.machines import ExpectedMachines

COMMA = """Service Tag,iDRAC MAC,Rack,RU,PXE MAC
ABC1,02005E002100,r06,U04,02-00-5e-00-21-01

ABC2,0200.5e00.2200,r06,14,
"""
SEMICOLON = "\ufeffSerial No.;Hostname;BMC MAC address;Cabinet;Position\nABC1;N0021;02:00:5E:00:21:00;r06;4\n"


def test_the_headings_of_vendors_are_known() -> None:
    machines = read_delivery_list(COMMA, "list.csv")
    assert machines == [
        {"serial_number": "ABC1", "name": "", "bmc_mac": "02:00:5e:00:21:00", "mac": "02:00:5e:00:21:01"}
        | {"rack": "r06", "u": 4},
        {"serial_number": "ABC2", "name": "", "bmc_mac": "02:00:5e:00:22:00", "rack": "r06", "u": 14},
    ]


def test_the_draft_becomes_a_delivery_once_a_person_has_filled_it_in() -> None:
    draft = yaml.safe_load(draft_delivery("new", read_delivery_list(COMMA, "list.csv")))
    filled = {**draft, "vendor": "V", "model": "M", "site": "s"}
    assert [one.name for one in ExpectedMachines.model_validate(filled).machines] == ["todo-1", "todo-2"]


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ("Service Tag", "Colour", "list.csv:1", "no column for serial_number"),
        ("U04", "top", "list.csv:2", "top is no rack unit"),
        ("0200.5e00.2200", "0200", "list.csv:4", "bmc_mac 0200 is no MAC address"),
        ("ABC2", "", "list.csv:4", "the row has no serial_number"),
        (COMMA, "", "list.csv:1", "among nothing"),
        (COMMA[COMMA.index("\n") :], "\n", "list.csv", "the list has no machine"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(old: str, new: str, where: str, what: str) -> None:
    with pytest.raises(AssayError) as refused:
        read_delivery_list(COMMA.replace(old, new), "list.csv")
    assert refused.value.where == where
    assert what in refused.value.what
    assert refused.value.fix


def test_a_list_of_another_dialect_is_read() -> None:
    (machine,) = read_delivery_list(SEMICOLON.replace("Serial No.", "Serial"), "list.csv")
    assert machine == {"serial_number": "ABC1", "name": "n0021", "bmc_mac": "02:00:5e:00:21:00", "rack": "r06", "u": 4}

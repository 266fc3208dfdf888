"""A list of cables, or a topology file of NVIDIA's tools, becomes a design; what is wrong is told by line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.app import main
from assay.declare.loader import load_fleet
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.cabling_file import CablingDraft, read_cabling_file
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.places import ROOT

HEADER = "device,port,device,port\n"
NOBODY = Fleet(Path(), {})
TOPO = """\
# ibdiagnet -w
MQM9700 leaf-0 U1=1
   P1 -4x-100G-> HCA_1 n00 mlx5_0/P1
   P33 -4x-100G-> MQM9700 spine-0 P1
   P34 -4x-50G-> MQM9700 spine-0 P2

MQM9700 spine-0 CFG: M1=X
   P1 -4x-100G-> MQM9700 leaf-0 P33
HCA_1 n00
   mlx5_0/P1 -4x-100G-> MQM9700 leaf-0 P1
"""
PASTED = (
    "admin@head:~$ cat cables.csv", "[root@head ~]# cat x.csv", "Last login: Mon Nov 23 08:12:45 2026 from 10.1.2.3",
    "^C", "(base) ops@mgmt01 % ", "PS C:\\Users\\ops> type cables.csv", "-- more --", "Connection to ufm01, closed.",
)  # fmt: skip
FILES = {
    "list": [HEADER.strip(), *(f"n{n:03},mlx5_0,leaf-1,{n}/1" for n in range(1, 7))],
    "topology": ["MQM9700 leaf-1", *(f"   P{n} -4x-100G-> MQM9700 spine-1 P{n + 10}" for n in range(1, 7)),
                 "MQM9700 leaf-2 CFG: M1=X", *(f"   P{n} -4x-100G-> MQM9700 spine-1 P{n + 20}" for n in range(1, 7))],
}  # fmt: skip


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


def draft(text, fleet=NOBODY, found=None):
    file = read_cabling_file(text)
    return CablingDraft(file, fleet, found).draft("hall1"), sorted(file.problems)


NDT = """\
#StartDevice,StartPort,EndDevice,EndPort,LinkType
GPU0053,GPU0053 ibp11s0f0,TOR-20IB0,Port 1, Data
GPU0053,GPU0053 ibp21s0f0,TOR-20IB0,Port 2, Data
TOR-20IB0,Port 21,CORE-01IB1-A,Blade 16_Port 2/20,Data
TOR-20IB0,Port 22,CORE-01IB1-A,Blade 16_Port 1/20,Data
CORE-01IB1-A,Blade 16_Port 1/20,TOR-20IB0,Port 22,Data
TOR-20IB0,Mgmt,OOB-1,Port 3,Management
"""


@pytest.mark.parametrize("first", ["#StartDevice", "#Fields:StartDevice", "StartDevice"])
def test_an_ndt_file_is_read_as_nvidia_ships_it(first):
    drafted, problems = draft(NDT.replace("#StartDevice", first))
    assert not problems
    assert [(cable.a, cable.b) for cable in drafted.cables] == [
        ("GPU0053 ibp11s0f0/1", "TOR-20IB0/1"),
        ("GPU0053 ibp21s0f0/1", "TOR-20IB0/2"),
        ("TOR-20IB0/21", "CORE-01IB1-A L16/U2/20"),
        ("TOR-20IB0/22", "CORE-01IB1-A L16/U1/20"),
    ]
    assert [(device.name, device.kind) for device in drafted.devices if " " in device.name] == [
        ("GPU0053 ibp11s0f0", "hca"),
        ("GPU0053 ibp21s0f0", "hca"),
        ("CORE-01IB1-A L16/U2", "switch"),
        ("CORE-01IB1-A L16/U1", "switch"),
    ]


def test_a_broken_line_of_an_ndt_file_is_told():
    _, problems = draft(NDT.replace("TOR-20IB0,Port 2, Data", "TOR-20IB0, Data").replace("Port 21", "Port abra"))
    assert [line for line, _ in problems] == [3, 4]


def test_the_list_of_the_example_fleet_is_its_cabling(fleet):
    designed = compile_topology(fleet.designs["compute"], fleet)
    lines = [f"{_cells(cable.a)},{_cells(cable.b)}\n" for cable in designed.cables]
    made, problems = draft(HEADER + "".join(lines), fleet)
    assert problems == []
    again = compile_topology(FabricDesign.model_validate(yaml.safe_load(made.as_yaml())), fleet)
    assert again.rows == designed.rows
    assert [cable.b.label for cable in again.cables] == [cable.b.label for cable in designed.cables]


def _cells(end):
    name, _, hca = end.device.partition(" ")
    return f"{name},{hca or end.label}"


def test_a_topology_file_has_each_cable_once_with_its_rate():
    file = read_cabling_file(TOPO)
    assert (file.problems, file.is_cut) == ([], False)
    assert [(one.a, one.b, one.rate) for one in file.cables] == [
        (("leaf-0", "P1"), ("n00", "mlx5_0/P1"), "4xNDR"),
        (("leaf-0", "P33"), ("spine-0", "P1"), "4xNDR"),
        (("leaf-0", "P34"), ("spine-0", "P2"), "4xHDR"),
    ]
    made, _ = draft(TOPO)
    assert [(one.a, one.b, one.rate) for one in made.cables] == [
        ("leaf-0/1", "n00 mlx5_0/1", ""),
        ("leaf-0/33", "spine-0/1", ""),
        ("leaf-0/34", "spine-0/2", "4xHDR"),
    ]
    assert made.rate == "4xNDR"


def test_a_line_of_a_topology_file_that_is_neither_is_told_by_its_number():
    file = read_cabling_file("MQM9700 leaf-0\n   P1 -4x-77G-> HCA n00 mlx5_0/P1\n   P2 leads nowhere\n")
    assert file.problems == [(2, "4x of 77 Gb/s are no known rate"),
                             (3, "'P2 leads nowhere' is neither a system nor a port of one")]  # fmt: skip


def test_what_is_wrong_is_told_by_line_and_the_rest_is_read(fleet):
    made, problems = draft(
        f"{HEADER}leaf-su01-r0,17/1,storage-1,1\n"
        "\n"
        "leaf-su01-r0,33,storage-2,1\n"
        "leaf-su01-r0,17/3,storage-2,1\n"
        "leaf-su01-r0,18/1,storage-2\n"
        "leaf-su01-r0,18/1,storage-2,\n"
        "n0001,9,storage-2,1\n"
        "n0001,mlx5_77,storage-2,1\n"
        "leaf-su01-r0,18/1,leaf-su01-r0,35\n",
        fleet,
    )
    assert len(made.cables) == 1
    assert [number for number, _ in problems] == [4, 5, 6, 7, 8, 9, 10]
    told = [said for _, said in problems]
    assert told[0] == "leaf-su01-r0/33 has a cable already: line 2"
    assert told[1] == "'17/3' is no port: write it as 7, 17/1 or mlx5_3"
    assert told[2] == told[3] == "a line has a device and a port, twice"
    assert told[4] == "'9' is no port: write it as 7, 17/1 or mlx5_3"
    assert told[5].startswith("n0001 has no adapter mlx5_77: it has mlx5_0, ")
    assert told[6] == "leaf-su01-r0/35 is at both ends"


def test_a_device_without_a_guid_is_left_to_the_reader(fleet):
    made, _ = draft(f"{HEADER}n0001,mlx5_0,storage-1,1\n", fleet)
    text = made.as_yaml()
    assert '# devices:\n#   - {guid: "0x", name: "storage-1"' in text
    assert "# review: the file has no rate; 4xNDR is a guess\n" in text
    assert yaml.safe_load(text)["cables"] == ["n0001 mlx5_0/1 - storage-1/1"]


def test_a_discovery_gives_guids_and_the_rate_to_names():
    switch, hca = "0x00000000000000b1", "0x00000000000000a1"
    devices = {
        switch: DiscoveredDevice(switch, "switch", 64, "MF0;Leaf1:MQM9700/U1"),
        hca: DiscoveredDevice(hca, "hca", 1, "gpu01 HCA-1"),
    }
    found = FabricDiscovery([DiscoveredCable(PortId(switch, 5), PortId(hca, 1), "4xHDR")], devices)
    made, _ = draft(f"{HEADER}gpu01,HCA-1,Leaf1,5\n", found=found)
    design = FabricDesign.model_validate(yaml.safe_load(made.as_yaml()))
    (cable,) = compile_topology(design, NOBODY).cables
    assert (cable.a.port_id, cable.b.port_id, cable.rate) == (PortId(hca, 1), PortId(switch, 5), "4xHDR")


def test_a_name_that_two_devices_announce_gives_no_guid():
    devices = {guid: DiscoveredDevice(guid, "hca", 1, "gpu01 mlx5_0") for guid in ("0xa1", "0xa2")}
    made, _ = draft(f"{HEADER}gpu01,mlx5_0,leaf1,5\n", found=FabricDiscovery([], devices))
    assert [(device.name, device.guid) for device in made.devices] == [("gpu01 mlx5_0", ""), ("leaf1", "")]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Rack,U,Name,Port,Rack,U,Name,Port\n", f"l1,1,s1,1\n{HEADER}"])
def test_a_list_with_other_columns_is_refused(text):
    with pytest.raises(AssayError, match="this is no list of cables"):
        read_cabling_file(text)


def test_what_is_no_csv_is_refused():
    with pytest.raises(AssayError, match="this is no CSV"):
        read_cabling_file(f'{HEADER}a,"1"x,b,1\n')


def cables(file):
    return [cable[1:] for cable in file.cables]


@pytest.mark.parametrize("pasted", PASTED)
@pytest.mark.parametrize("name", FILES)
def test_a_line_pasted_anywhere_changes_no_cable_and_is_told(name, pasted):
    lines = FILES[name]
    for at in range(1, len(lines) + 1):
        file = read_cabling_file("\n".join([*lines[:at], pasted, *lines[at:], ""]))
        assert cables(file) == cables(read_cabling_file("\n".join([*lines, ""])))
        assert [line for line, _ in file.problems] == [at + 1]


@given(st.sampled_from(sorted(FILES)), st.data())
def test_a_text_that_is_cut_off_says_so(name, data):
    text = "\n".join([*FILES[name], ""])
    part = text[: data.draw(st.integers(1, len(text)))]
    try:
        file = read_cabling_file(part)
    except AssayError:
        return
    assert file.is_cut == (not part.endswith("\n"))
    assert any("cut off" in line for line in CablingDraft(file, NOBODY).draft("x").review) == file.is_cut


@given(st.text(alphabet='abn01/,;"\n\t |_-PortNameRkU#', max_size=200))
def test_any_lines_are_read_or_told(text):
    try:
        file = read_cabling_file(HEADER + text)
    except AssayError:  # a quote in the middle of a cell
        return
    CablingDraft(file, NOBODY).draft("hall1").as_yaml()
    assert all(number > 1 and said for number, said in file.problems)


@given(st.lists(st.sampled_from([*TOPO.splitlines(), "\t", " P1 -> a b", "P1"])).map("\n".join))
def test_any_lines_of_a_topology_file_are_read_or_told(text):
    file = read_cabling_file(f"{TOPO}{text}")
    told = {line for line, _ in file.problems} | {cable.line for cable in file.cables}
    assert told <= set(range(1, len(f"{TOPO}{text}".splitlines()) + 1))


@pytest.fixture
def assay(monkeypatch, capsys, tmp_path):
    def run(text, *words):
        (tmp_path / "cables.csv").write_text(text)
        monkeypatch.setattr(sys, "argv", ["assay", "fabric", "import", str(tmp_path / "cables.csv"), *words])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return run


def test_the_verb_prints_a_design_that_check_accepts(assay):
    code, out, _ = assay(f"{HEADER}n0001,mlx5_0,leaf-su01-r0,1/1\n", "--fleet", str(ROOT), "--name", "hall1")
    design = FabricDesign.model_validate(yaml.safe_load(out))
    assert (code, design.name, len(design.cables)) == (0, "hall1", 1)


def test_the_verb_says_which_lines_it_passed_over(assay, tmp_path):
    code, out, err = assay(f"{HEADER}a,1,b,1\na,1,c,1\n", "--fleet", str(tmp_path))
    assert (code, "a/1 - b/1" in out) == (1, True)
    assert err == f"{tmp_path}/cables.csv:3: a/1 has a cable already: line 2\n"


def test_the_verb_ends_with_2_where_nothing_can_be_read(assay, tmp_path):
    code, out, err = assay(f"{HEADER}a,,b,1\n", "--fleet", str(tmp_path))
    assert (code, out) == (2, "")
    assert "cables.csv:2: a line has a device and a port, twice\n" in err
    assert "no line of the file is a cable" in err

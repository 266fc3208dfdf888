"""A point-to-point sheet, as NVIDIA's tools and sites write it, becomes a design; what is wrong is told by line."""

import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.app import main
from assay.fabric.discovery import DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.drafts.sheets.point_to_point_sheet import read_adapter_mapping, read_sheet
from assay.fabric.drafts.sheets.sheet_import import SheetImport
from assay.fabric.drafts.sheets.sheet_port_labels import PortLabelScheme, SheetPortLabel, parse_port_label
from assay.fabric.drafts.sheets.topology_file import is_topology_file, read_topology_file
from assay.fabric.topology.design_compiler import compile_topology
from assay.fleet.fleet_loader import load_fleet
from assay.model.errors import AssayError
from assay.model.fabric.fabric_design import FabricDesign
from assay.model.fabric.ports_and_cables import PortId
from assay.model.fleet import Fleet

REPOSITORY = Path(__file__).parents[2]
CVT = "Rack,U,Name,HCA/Port,Rack,U,Name,Port\n"
NDT = "#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
NOBODY = Fleet(Path(), {})


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(REPOSITORY)


def draft(text, fleet=NOBODY, found=None, mapping=None):
    work = SheetImport(read_sheet(text), fleet, found, mapping or {})
    return work.draft("hall1"), sorted(work.sheet.problems)


def cables(text, fleet=NOBODY, **more):
    made, problems = draft(text, fleet, **more)
    assert problems == []
    return [f"{one.a} - {one.b}" for one in made.cables]


def test_the_sheet_of_the_example_fleet_is_its_design(fleet):
    designed = compile_topology(fleet.designs["compute"], fleet)
    lines = []
    for cable in designed.cables:
        lines.append(",".join([*_cells(cable.a), *_cells(cable.b), "400G", f"{cable.length_m:g} m"]))
    header = "Rack,U,Name,HCA/Port,Rack,U,Name,Port,Speed,Cable Length\n"
    made, problems = draft(header + "\n".join(lines), fleet)
    assert problems == []
    again = compile_topology(FabricDesign.model_validate(yaml.safe_load(made.as_yaml())), fleet)
    assert again.rows == designed.rows
    assert [(c.rate, c.length_m, c.b.label) for c in again.cables] == [
        (c.rate, c.length_m, c.b.label) for c in designed.cables
    ]


def _cells(end):
    name, _, hca = end.device.partition(" ")
    return end.rack, str(end.u), name, hca or end.label


def test_network_design_of_ufm_is_read():
    assert cables(NDT + "sw1,Port 21,dir1,Blade 16_Port 2/20,x\n") == ["sw1/21 - dir1/L16/U2/20"]


@pytest.mark.parametrize(
    "header",
    [
        "Source Name,Source Port,Destination Name,Destination Port",
        "From Device;From Port;To Device;To Port",
        "A Node\tA Interface\tB Node\tB Interface",
        "Device A,Port A,Device Z,Port Z",
        "\ufeffStart Device|Start Port|End Device|End Port",
        "Our cables,,,\n\nName,Port,Name,Port",
    ],
)
def test_headers_are_told_by_their_words(header):
    parted = next((sign for sign in ";\t|" if sign in header), ",")
    assert cables(f"{header}\n{parted.join(['s1', '1', 's2', '2'])}\n") == ["s1/1 - s2/2"]


def test_a_sheet_without_a_header_is_nvidia_s():
    assert cables("r1,4,s1,1,r2,5,s2,1/2\n")[0] == "s1/1 - s2/2"


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("7", SheetPortLabel(numbers=(7,))),
        ("Port 21", SheetPortLabel(numbers=(21,))),
        ("p3", SheetPortLabel(numbers=(3,))),
        ("17/1", SheetPortLabel(numbers=(17, 1))),
        ("1/17/1/2", SheetPortLabel(numbers=(1, 17, 1, 2))),
        ("mlx5_11", SheetPortLabel(adapter="mlx5_11", numbers=(1,))),
        ("mlx5_3/1", SheetPortLabel(adapter="mlx5_3", numbers=(1,))),
        ("HCA-4/1", SheetPortLabel(adapter="mlx5_3", numbers=(1,))),
        ("Blade 16_Port 2/20", SheetPortLabel(part="L16/U2", numbers=(20,))),
    ],
)
def test_ports_are_read_as_they_are_written(text, means):
    assert parse_port_label(text) == means


@pytest.mark.parametrize("text", ["", "port", "0", "1/0", "HCA-0", "1/2/3/4/5", "eth-a"])
def test_what_is_no_port_is_refused(text):
    with pytest.raises(ValueError, match="is no port"):
        parse_port_label(text)


@pytest.mark.parametrize(
    ("labels", "port", "means"),
    [
        ([(17, 1)], (17, 1), 33),
        ([(1, 17, 1), (1, 4, 2)], (1, 4, 2), 8),
        ([(17, 1, 2), (1, 1, 1)], (17, 1, 2), 66),
        ([(1, 17, 1, 2)], (1, 17, 1, 2), 66),
        ([(5,)], (5,), 5),
    ],
)
def test_labels_mean_ports_together_with_their_neighbours(labels, port, means):
    assert PortLabelScheme.infer(labels).find_port_number(port) == means


@given(st.integers(1, 144), st.sampled_from([1, 2]))
def test_a_label_is_read_as_a_switch_prints_it(port, split):
    from assay.model.fabric.ports_and_cables import PortLabelling

    label = tuple(map(int, PortLabelling(2, split).label(port).split("/")))
    assert PortLabelScheme(cages=True, split=split).find_port_number(label) == port


def test_what_is_wrong_is_told_by_line_and_the_rest_is_read(fleet):
    made, problems = draft(
        "Rack,U,Name,Port,Rack,U,Name,Port,Speed,Length\n"
        "r06,30,leaf-su01-r0,17/1,r20,U7,storage-1,Port 1,200,2\n"
        "\n"
        "r06,30,leaf-su01-r0,17/1,r20,U8,storage-2,1,400,2\n"
        "r06,30,leaf-su01-r0,17/3,r20,U8,storage-2,1,400,2\n"
        "r06,x,leaf-su01-r0,18/1,r20,U8,storage-2,1,400,2\n"
        "r06,30,leaf-su01-r0,18/1,r20,U8,storage-2,,400,2\n"
        "r06,30,leaf-su01-r0,18/1,r20,U8,storage-2,1,warp,2\n"
        "r06,30,leaf-su01-r0,18/1,r20,U8,storage-2,1,400,3 hands\n"
        "r06,30,leaf-su01-r0,18/1\n"
        "r06,30,n0001,9,r20,U8,storage-2,1,400,2\n"
        "r06,30,leaf-su01-r0,18/1,r06,30,leaf-su01-r0,18/1,400,2\n",
        fleet,
    )
    assert len(made.cables) == 1
    assert [number for number, _ in problems] == [4, 5, 6, 7, 8, 9, 10, 11, 12]
    told = [said for _, said in problems]
    assert told[0] == "port 33 of leaf-su01-r0 has a cable already: line 2"
    assert told[1] == "17/3 is no label of a switch with 2 ports a cage"
    assert told[2] == "'x' is no unit of a rack"
    assert told[3] == "the second end has no port"
    assert told[4] == "'warp' is no known speed: write it as 4xNDR"
    assert told[5] == "'3 hands' is no length in metres or feet"
    assert told[6] == "the second end has no name"
    assert told[7] == "n0001 has 8 adapters, and none at port 9"
    assert told[8] == "port 35 of leaf-su01-r0 is at both ends"


def test_a_device_without_a_guid_is_left_to_the_reader(fleet):
    made, _ = draft(CVT + "r01,4,n0001,mlx5_0,r20,7,storage-1,1\n", fleet)
    text = made.as_yaml()
    assert (
        "# review: the GUIDs of these are not known; write them, and remove the #\n"
        '# devices:\n#   - {guid: "0x", name: "storage-1"' in text
    )
    assert "# review: the sheet has no speed; 4xNDR is a guess\n" in text
    assert yaml.safe_load(text)["cables"] == ["n0001 mlx5_0/1 - storage-1/1"]


def test_a_discovery_gives_guids_and_the_rate_to_names():
    switch, hca = "0x00000000000000b1", "0x00000000000000a1"
    devices = {
        switch: DiscoveredDevice(switch, "switch", 64, "MF0;Leaf1:MQM9700/U1"),
        hca: DiscoveredDevice(hca, "hca", 1, "gpu01 mlx5_0"),
    }
    found = FabricDiscovery([DiscoveredCable(PortId(switch, 5), PortId(hca, 1), "4xHDR")], devices)
    made, _ = draft(NDT + "gpu01,HCA-1,leaf1,Port 5,x\n", found=found)
    design = FabricDesign.model_validate(yaml.safe_load(made.as_yaml()))
    (cable,) = compile_topology(design, NOBODY).cables
    assert (cable.a.port_id, cable.b.port_id, cable.rate) == (PortId(hca, 1), PortId(switch, 5), "4xHDR")


def test_a_mapping_names_the_adapters_behind_a_node_s_ports(fleet):
    mapping = read_adapter_mapping("port,hca\n1/1,mlx5_7\n1/2,mlx5_6\n")
    sheet = CVT + "r01,4,n0001,1/1,r13,1,leaf-su01-r7,1\nr01,4,n0001,1/2,r13,1,leaf-su01-r6,1\n"
    assert [line.split(" - ")[0] for line in cables(sheet, fleet, mapping=mapping)] == [
        "n0001 mlx5_7/1",
        "n0001 mlx5_6/1",
    ]
    assert [line.split(" - ")[0] for line in cables(sheet, fleet)] == ["n0001 mlx5_0/1", "n0001 mlx5_1/1"]


@given(st.text(alphabet='abn01/,;"\n\t |_-PortNameRkU#', max_size=200))
def test_any_lines_are_read_or_told(text):
    sheet = read_sheet(CVT + text)
    assert all(number > 1 and said for number, said in sheet.problems)
    SheetImport(sheet, NOBODY).draft("hall1").as_yaml()


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Name,Port\nn1,1\n"])
def test_a_text_without_columns_is_refused(text):
    with pytest.raises(AssayError, match="no line names the columns"):
        read_sheet(text)


@pytest.fixture
def assay(monkeypatch, capsys, tmp_path):
    def run(text, *words):
        (tmp_path / "sheet.csv").write_text(text)
        monkeypatch.setattr(sys, "argv", ["assay", "fabric", "import", str(tmp_path / "sheet.csv"), *words])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return run


def test_the_verb_prints_a_design_that_check_accepts(assay, tmp_path):
    code, out, _ = assay(
        CVT + "r01,4,n0001,mlx5_0,r06,30,leaf-su01-r0,1/1\n", "--fleet", str(REPOSITORY), "--name", "hall1"
    )
    design = FabricDesign.model_validate(yaml.safe_load(out))
    assert (code, design.name, len(design.cables)) == (0, "hall1", 1)


def test_the_verb_says_which_lines_it_passed_over(assay, tmp_path):
    code, out, err = assay(NDT + "a,1,b,1,\na,1,c,1,\n", "--fleet", str(tmp_path))
    assert (code, "a/1 - b/1" in out) == (1, True)
    assert err == f"{tmp_path}/sheet.csv:3: port 1 of a has a cable already: line 2\n"


def test_the_verb_ends_with_2_where_nothing_can_be_read(assay, tmp_path):
    code, out, err = assay(NDT + "a,,b,1,\n", "--fleet", str(tmp_path))
    assert (code, out) == (2, "")
    assert "sheet.csv:2: the first end has no port\n" in err
    assert "no line of the sheet is a cable" in err


@pytest.mark.parametrize(
    "speed", ["400", "400G", "400 Gb/s", "400Gbps", "NDR", "4X NDR", "4x-ndr", "400000", "2x200G", "0.4T"]
)
def test_a_speed_in_any_unit_is_a_rate(speed):
    (cable,) = read_sheet(f"From Device,From Port,To Device,To Port,Speed\nl1,1,s1,1,{speed}\n").cables
    assert cable.rate == "4xNDR"


@pytest.mark.parametrize(("length", "metres"), [("3", 3), ("3 m", 3), ("10ft", 3.048), ("10 feet", 3.048)])
def test_a_length_in_feet_is_one_in_metres(length, metres):
    (cable,) = read_sheet(f"From Device,From Port,To Device,To Port,Length\nl1,1,s1,1,{length}\n").cables
    assert cable.length_m == metres


def test_a_cable_that_is_listed_from_either_end_is_one_cable():
    header = "# exported\n#StartDevice,StartPort,EndDevice,EndPort,LinkType\n"
    sheet = read_sheet(f"{header}l1,Port 1,s1,Port 9,IB\ns1,Port 9,l1,Port 1,IB\n")
    assert (len(sheet.cables), sheet.problems) == (1, [])


@pytest.mark.parametrize(
    ("text", "numbers"), [("IB Port 7", (7,)), ("IB1/1", (1, 1)), ("sw17p1", (17, 1)), ("sw17p1s2", (17, 1, 2))]
)
def test_interface_names_of_switches_are_ports(text, numbers):
    assert parse_port_label(text).numbers == numbers
    assert parse_port_label("mlx5_ib3").adapter == "mlx5_3"


TOPO = """\
# ibdiagnet -w
MQM9700 leaf-0 U1=1
   P1 -4x-100G-> HCA_1 n00 mlx5_0/P1
   P33 -4x-100G-> MQM9700 spine-0 P1
   P34 -4x-50G-> MQM9700 spine-0 P2

MQM9700 spine-0
   P1 -4x-100G-> MQM9700 leaf-0 P33
HCA_1 n00
   mlx5_0/P1 -4x-100G-> MQM9700 leaf-0 P1
"""


def test_a_topology_file_is_a_sheet_with_each_cable_once():
    sheet = read_topology_file(TOPO)
    assert (is_topology_file(TOPO), is_topology_file(CVT), sheet.problems) == (True, False, [])
    assert [(one.a.name, one.a.port, one.b.name, one.b.port, one.rate) for one in sheet.cables] == [
        ("leaf-0", "P1", "n00", "mlx5_0/P1", "4xNDR"),
        ("leaf-0", "P33", "spine-0", "P1", "4xNDR"),
        ("leaf-0", "P34", "spine-0", "P2", "4xHDR"),
    ]
    first = SheetImport(sheet, NOBODY).draft("hall1").cables[0]
    assert (first.a, first.b) == ("leaf-0/1", "n00 mlx5_0/1")


def test_a_line_of_a_topology_file_that_is_neither_is_told_by_its_number():
    sheet = read_topology_file("MQM9700 leaf-0\n   P1 -4x-77G-> HCA n00 mlx5_0/P1\n   P2 leads nowhere\n")
    assert sheet.problems == [(2, "4x of 77 Gb/s are no known rate"),
                              (3, "'P2 leads nowhere' is neither a system nor a port of one")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "part", "adapter", "number"),
    [
        ("L16/U2/20", "L16/U2", "", 20), ("L16/U2/P20", "L16/U2", "", 20), ("L16/P20", "L16", "", 20),
        ("Spine 3 Port 7", "S3", "", 7), ("ibp24s0", "", "ibp24s0", 1), ("ibP2p1s0f1", "", "ibP2p1s0f1", 1),
        ("ib3", "", "ib3", 1),
    ],
)  # fmt: skip
def test_chassis_ports_and_network_devices_are_ports(text, part, adapter, number):
    assert parse_port_label(text) == SheetPortLabel(adapter, part, (number,))


def test_a_network_device_of_a_node_of_the_inventory_needs_a_map(fleet):
    line = NDT + "n0001,ibp24s0,leaf-su01-r0,Port 1,data\n"
    _, problems = draft(line, fleet)
    assert problems[0][1].startswith("n0001 has no adapter ibp24s0, only mlx5_0")
    assert cables(line, fleet, mapping={"ibp24s0": "mlx5_0"})[0].startswith("n0001 mlx5_0/1 - ")


def test_a_network_device_of_another_host_is_an_adapter(fleet):
    made, problems = draft(NDT + "gpu7,ibp24s0,leaf-9,Port 1,data\n", fleet)
    assert (problems, [one.kind for one in made.devices]) == ([], ["hca", "switch"])


@given(st.text(max_size=120) | st.lists(st.sampled_from([*TOPO.splitlines(), "\t", " P1 -> a b", "P1"])).map("\n".join))
def test_any_text_is_a_topology_file_or_is_told_by_line(text):
    sheet = read_topology_file(text)
    told = {line for line, _ in sheet.problems} | {cable.line for cable in sheet.cables}
    assert told <= set(range(1, len(text.splitlines()) + 1))


@pytest.mark.parametrize("written", ["HCA-1", "mlx5_0", "hca_1"])
@pytest.mark.parametrize("announced", ["gpu01 HCA-1", "GPU01 mlx5_0"])
def test_an_adapter_has_the_name_that_the_discovery_announces(written, announced):
    found = FabricDiscovery([], {"0xa1": DiscoveredDevice("0xa1", "hca", 1, announced)})
    made, _ = draft(NDT + f"gpu01,{written},leaf1,Port 5,x\n", found=found)
    (adapter,) = [device for device in made.devices if device.kind == "hca"]
    assert (adapter.name, adapter.guid) == (announced, "0xa1")
    assert made.cables[0].a == f"{announced}/1"


def test_an_adapter_whose_name_two_announce_keeps_that_of_the_sheet():
    devices = {guid: DiscoveredDevice(guid, "hca", 1, "gpu01 HCA-1") for guid in ("0xa1", "0xa2")}
    made, _ = draft(NDT + "gpu01,HCA-1,leaf1,Port 5,x\n", found=FabricDiscovery([], devices))
    assert [(device.name, device.guid) for device in made.devices if device.kind == "hca"] == [("gpu01 mlx5_0", "")]


def merged_sheet(blank):
    """A sheet of two nodes with three cables each; the lines of `blank` lack rack, U and name of the node."""
    rows = [(f"r01,{4 + n},n{n}", f"mlx5_{rail},r09,30,leaf{rail},{n + 1}") for n in (0, 1) for rail in (0, 1, 2)]
    lines = [f"{',,' if at in blank else node},{rest}" for at, (node, rest) in enumerate(rows)]
    return "\n".join(["Rack,U,Name,HCA/Port,Rack,U,Name,Port", *lines, ""])


def test_merged_cells_are_filled_and_told(fleet):
    whole, merged = draft(merged_sheet([]), fleet), draft(merged_sheet([1, 2, 4, 5]), fleet)
    assert (merged[0].cables, merged[0].devices, merged[1]) == (whole[0].cables, whole[0].devices, [])
    assert "4 ends without rack, U and name: read as merged with the line above" in merged[0].review


def test_a_name_that_is_missing_once_is_no_merged_cell(fleet):
    _, problems = draft(merged_sheet([4]), fleet)
    assert problems == [(6, "the first end has no name")]

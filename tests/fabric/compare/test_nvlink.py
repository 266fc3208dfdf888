"""The NVLink domain of a rack: what its controller says is held against 72 GPUs with one link to each of 18 ASICs."""

import json

import pytest
from pydantic import ValidationError

from assay.fabric.compare.common_causes import group_by_common_cause
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.impact import assess_failure
from assay.fabric.readers.format_detection import read_topology
from assay.fabric.scan import judge_scan, run_fabric_scan
from assay.model.errors import AssayError, ConflictError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.fabric.nvlink_racks import ASICS, DESIGN, GPUS, dump, make_nodes, topology


@pytest.fixture(scope="module")
def rack():
    return topology()


def judge(rack, text):
    comparison = compare_cabling(rack, read_topology(text))
    return comparison, group_by_common_cause(comparison.discrepancies)


def links(gpus, asics):
    return {(gpu, asic) for gpu in gpus for asic in asics}


def test_a_rack_has_a_link_from_each_gpu_to_each_asic(rack):
    assert (len(rack.devices), len(rack.cables)) == (90, 1296)
    assert len({frozenset((one.a.guid, one.b.guid)) for one in rack.cables}) == 1296
    assert len(rack.cables_of_node("n0007")) == 4 * 18


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("first", [0, 1])
def test_a_whole_rack_matches_whichever_port_leads_where_and_however_devices_are_counted(rack, first, seed):
    comparison, _ = judge(rack, dump(first=first, seed=seed))
    assert (comparison.verdict, comparison.matching) == ("match", 1296)


TRAY_3, TRAY_OF_ASICS = [gpu for gpu in GPUS if gpu[1] == 3], [asic for asic in ASICS if asic[1] == 5]


@pytest.mark.parametrize(("said", "title"), [
    ({"lost": TRAY_3}, "n0004 (r07 U13) is not in the fabric"),
    ({"lost": TRAY_3[:1]}, "No link: 18 ports of n0004 gpu1"),
    ({"down": links(GPUS[:1], ASICS)}, "No link: 18 ports of n0001 gpu1"),
    ({"lost": TRAY_OF_ASICS}, "nvswitch-5: 2 chips not in the fabric"),
    ({"lost": TRAY_OF_ASICS[:1]}, "nvswitch-5 asic1 (r07) is not in the fabric"),
    ({"down": links(GPUS, TRAY_OF_ASICS[:1])}, "nvswitch-5 asic1 (r07) is not in the fabric"),
    ({"down": links(TRAY_3, TRAY_OF_ASICS)}, "No link: 8 links between n0004 and nvswitch-5"),
    ({"down": links(GPUS[:1], ASICS[:1])}, "no link between n0001 gpu1 port 1 (r07 U10) and nvswitch-0 asic1"),
])  # fmt: skip
def test_what_is_dead_is_one_cause(rack, said, title):
    comparison, (repair,) = judge(rack, dump(**said))
    assert comparison.verdict == "mismatch"
    assert (repair.title or repair.first.summary).startswith(title)


def test_a_single_link_that_is_down_has_no_plug(rack):
    _, (repair,) = judge(rack, dump(down=links(GPUS[:1], ASICS[:1])))
    assert "cartridges, where it has no plug" in repair.first.summary
    assert "nvidia-smi nvlink -s` on n0001" in repair.first.corrections[0]


def changed(change):
    document = json.loads(dump())
    change(document["deviceTopoInfo"])
    return json.dumps(document)


@pytest.mark.parametrize(("change", "said"), [
    (lambda devices: devices.append(devices[0]), "compute tray 0 gpu 1 is listed twice"),
    (lambda devices: devices[0]["gpuTopoInfo"].pop("deviceUid"), "device 1 is no GPU or switch with a `device_uid`"),
    (lambda devices: devices[0]["gpuTopoInfo"]["loc"].update(chassisSerialNumber="2"), "these are 2 chassis"),
    (lambda devices: devices[0]["gpuTopoInfo"]["portTopoInfo"].pop(), "which is not listed there"),
    (lambda devices: devices[0]["gpuTopoInfo"]["portTopoInfo"][0].update(peerPortDeviceUid="7"), "unlisted device"),
    (lambda devices: devices[0]["gpuTopoInfo"]["portTopoInfo"][0].pop("linkRateMbps"), "reports no rate"),
])  # fmt: skip
def test_a_document_that_contradicts_itself_is_partial(rack, change, said):
    comparison, _ = judge(rack, changed(change))
    assert any(said in problem for problem in comparison.problems), comparison.problems


def test_rates_of_another_unit_are_unknown_and_never_a_match(rack):
    comparison, _ = judge(rack, dump().replace("400000", "50000"))
    assert (comparison.verdict, comparison.discrepancies) == ("partial", ())


def test_a_slow_link_is_told(rack):
    comparison, _ = judge(rack, dump().replace("400000", "200000", 1))
    assert [one.kind for one in comparison.discrepancies] == ["degraded"]


def test_the_protocols_own_names_are_read_as_well_as_those_of_json(rack):
    document = json.loads(dump())
    text = json.dumps(document).replace("deviceTopoInfo", "device_topo_info").replace("portTopoInfo", "port_topo_info")
    for name in ("gpuTopoInfo", "switchTopoInfo", "deviceUid", "deviceId", "trayIndex", "portNum", "physicalState",
                 "peerPortDeviceUid", "peerPortNum", "linkRateMbps"):  # fmt: skip
        text = text.replace(f'"{name}"', '"' + "".join(f"_{c.lower()}" if c.isupper() else c for c in name) + '"')
    assert judge(rack, text)[0].verdict == "match"


def test_a_switch_tray_costs_every_node_a_ninth_of_its_links(rack):
    impact = assess_failure(rack, "nvswitch-3")
    assert impact.lines == ("without nvswitch-3 18 nodes are left with 64 of 72 links",)


def test_a_gpu_has_many_links_and_a_question_about_it_names_one(rack):
    with pytest.raises(AssayError, match="n0004 gpu1 has 18 links"):
        assess_failure(rack, "n0004 gpu1")
    assert "n0004 gpu1 port 5" in assess_failure(rack, "n0004 gpu1[5]").lost


def scan(tmp_path, *, is_lab=False, **nvlink):
    design = FabricDesign.model_validate(DESIGN | {"nvlink": DESIGN["nvlink"] | nvlink})
    fleet = Fleet(tmp_path, make_nodes(), designs={design.name: design}, is_lab=is_lab)
    return judge_scan(fleet, design, run_fabric_scan(fleet, design))


def test_a_scan_asks_the_command_of_the_design(tmp_path):
    (tmp_path / "nmx.json").write_text(dump(lost=TRAY_OF_ASICS))
    comparison = scan(tmp_path, discover=["cat", str(tmp_path / "nmx.json")])
    assert (comparison.verdict, len(comparison.discrepancies)) == ("mismatch", 2)


def test_a_scan_in_the_lab_runs_no_command_of_the_site(tmp_path):
    comparison = scan(tmp_path, is_lab=True, discover=["touch", str(tmp_path / "ran")])
    assert (comparison.verdict, comparison.found) == ("partial", 0)
    assert "in the lab there is none" in comparison.problems[0]
    assert not (tmp_path / "ran").exists()


def test_a_scan_without_a_command_knows_nothing_and_never_asks_ibnetdiscover(tmp_path):
    comparison = scan(tmp_path)
    assert (comparison.verdict, comparison.found) == ("partial", 0)
    assert "`nvlink.discover`" in comparison.problems[0]


@pytest.mark.parametrize(("change", "said"), [
    ({"nvlink": {"compute_trays": ["n0001..n0019"]}}, "19 compute trays, but a rack has 18"),
    ({"nvlink": {"compute_trays": ["n0001", "n0001"]}}, "a node is given twice"),
    ({"nvlink": {"compute_trays": ["n0001"], "switch_trays": 10}}, "less than or equal to 9"),
    ({"nvlink": {"compute_trays": ["n0003..n0001"]}}, "n0003..n0001"),
])  # fmt: skip
def test_a_domain_that_no_rack_has_is_refused(change, said):
    with pytest.raises(ValidationError, match=said):
        FabricDesign.model_validate(DESIGN | change)


def test_a_domain_beside_a_fat_tree_is_refused():
    with pytest.raises((ValidationError, ConflictError), match="nvlink beside nodes"):
        FabricDesign.model_validate(DESIGN | {"nodes": ["n0001"]})


def test_a_node_that_the_inventory_lacks_is_an_error():
    with pytest.raises(AssayError, match="n0200, which the inventory does not have"):
        topology(nvlink={"compute_trays": ["n0200"]})

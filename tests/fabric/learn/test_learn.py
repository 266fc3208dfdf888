"""A design that was learnt from a discovery says what that discovery says, and nothing is learnt from a partial one."""

import os
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.app import main
from assay.declare.starter.shipped_specs import find_adapter_names
from assay.declare.yaml import parse_yaml
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import AGGREGATION_NODE, DiscoveredCable, DiscoveredDevice, FabricDiscovery
from assay.fabric.learn.draft import DesignDraft, draft_from_discovery
from assay.fabric.learn.hosts import find_hosts
from assay.fabric.readers.format_detection import read_topology
from assay.lab.fabric.ibnetdiscover import format_net_file
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.cable import PortId
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach, renamed
from tests.support.fabrics.recorded_fabric import COMPUTE
from tests.support.fabrics.superpods import fleet_of, superpod

SAMPLES = Path(os.environ.get("ASSAY_SAMPLES", "no samples")) / "infiniband"
NOBODY = Fleet(Path(), {})
NAMES = find_adapter_names(None)


def design_of(text: str) -> FabricDesign:
    return FabricDesign.model_validate(parse_yaml(text.encode(), "learned.yaml").data)


def draft(discovery: FabricDiscovery, name: str) -> DesignDraft:
    return draft_from_discovery(discovery, name, find_hosts(discovery.devices.values(), NAMES))


def learnt(discovery: FabricDiscovery, fleet: Fleet = NOBODY):
    return compile_topology(design_of(draft(discovery, "learned").as_yaml()), fleet)


@st.composite
def discoveries(draw) -> FabricDiscovery:
    """Any cabling of any devices, with names as strange as tools print them."""
    names = st.text(max_size=12) | st.sampled_from(
        ["MF0;s1:MQM9700/U1", "MT4129 ConnectX7   Mellanox Technologies", "n1"]
    )
    kinds = st.sampled_from(["switch", "hca", "router"])
    devices = [
        DiscoveredDevice(f"0x{number + 1:016x}", draw(kinds), draw(st.integers(1, 64)), draw(names).strip())
        for number in range(draw(st.integers(2, 8)))
    ]
    ports = draw(st.permutations([PortId(one.guid, port) for one in devices for port in range(1, one.ports + 1)][:60]))
    rates = st.sampled_from(["4xNDR", "4xNDR", "4xHDR", "1xSDR"])
    many = draw(st.integers(1, len(ports) // 2))
    cables = [DiscoveredCable(ports[2 * n], ports[2 * n + 1], draw(rates)) for n in range(many)]
    return FabricDiscovery(cables, {one.guid: one for one in devices})


@given(discoveries())
def test_what_was_learnt_from_matches(discovery):
    compared = compare_cabling(learnt(discovery), discovery)
    assert (compared.verdict, compared.matching) == ("match", len(discovery.cables))


@given(discoveries(), st.data())
def test_what_changes_afterwards_is_found(discovery, data):
    cables = list(discovery.cables)
    cables.remove(data.draw(st.sampled_from(cables)))
    assert compare_cabling(learnt(discovery), FabricDiscovery(cables, discovery.devices)).verdict != "match"


def test_the_recorded_discovery_matches_what_was_learnt_from_it():
    discovery = read_topology(COMPUTE)
    assert compare_cabling(learnt(discovery), discovery).verdict == "match"


def test_the_inventory_s_adapters_keep_their_places():
    design = superpod(2)
    fleet, discovery = fleet_of(design), as_found(compile_topology(design, fleet_of(design)))
    cable = learnt(discovery, fleet).cables_of_node("n0033")[5]
    assert (str(cable.a), cable.b.device) == ("n0033 mlx5_5 port 1 (r008 U1)", "leaf-su02-r5")
    assert compare_cabling(learnt(discovery, fleet), discovery).verdict == "match"


def as_found(compiled) -> FabricDiscovery:
    devices = {g: DiscoveredDevice(g, one.kind, one.ports, one.description) for g, one in compiled.devices.items()}
    return FabricDiscovery([DiscoveredCable(c.a.port_id, c.b.port_id, c.rate) for c in compiled.cables], devices)


def test_names_are_hints_and_rates_are_what_most_run_at():
    design = superpod(2)
    discovery = as_found(compile_topology(design, fleet_of(design)))
    slow = discovery.cables[7]._replace(rate="4xHDR")
    slower = FabricDiscovery([*discovery.cables[:7], slow, *discovery.cables[8:]], discovery.devices)
    text = draft(slower, "hall1").as_yaml()
    assert yaml.safe_load(text)["rate"] == "4xNDR"
    assert "4xHDR # n0001 mlx5_7 – leaf-su01-r7; review: most run at 4xNDR\n" in text
    assert "# review: 1 cable with another rate than 4xNDR: is that intended?\n" in text
    assert text.startswith("# yaml-language-server: $schema=../schemas/fabric-design.json\n")


def test_what_is_inside_a_switch_is_not_learnt():
    leaf, inner, node = (f"0x{n:016x}" for n in (1, 2, 3))
    devices = {
        leaf: DiscoveredDevice(leaf, "switch", 64, "leaf"),
        inner: DiscoveredDevice(inner, "hca", 1, AGGREGATION_NODE),
        node: DiscoveredDevice(node, "hca", 1, "n1 mlx5_0"),
    }
    cables = [
        DiscoveredCable(PortId(leaf, 65), PortId(inner, 1), "4xNDR"),
        DiscoveredCable(PortId(leaf, 1), PortId(node, 1), "4xNDR"),
    ]
    drafted = draft(FabricDiscovery(cables, devices), "learned")
    assert (len(drafted.cables), [one.name for one in drafted.devices]) == (1, ["leaf", "n1 mlx5_0"])
    assert (
        compare_cabling(learnt(FabricDiscovery(cables, devices)), FabricDiscovery(cables, devices)).verdict == "match"
    )


def test_nothing_is_learnt_from_a_partial_discovery():
    with pytest.raises(AssayError, match=r"no design can be drafted from a partial discovery: .* \(and \d+ more\)"):
        draft(read_topology(COMPUTE[:5000]), "learned")


def test_a_name_that_no_design_can_have_is_refused():
    with pytest.raises(AssayError, match="is no name for a design"):
        draft(read_topology(COMPUTE), "Hall 1")


@pytest.fixture
def assay(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["assay", "fabric", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        return (end.value.code or 0, *capsys.readouterr())

    return run


def test_a_learnt_design_needs_no_inventory_to_be_compared(assay, tmp_path):
    (tmp_path / "dump").write_text(COMPUTE)
    code, out, _ = assay("learn", "--from", tmp_path / "dump", "--name", "hall1", "--fleet", tmp_path)
    assert code == 0
    (tmp_path / "hall1.yaml").write_text(out)
    design = ("--design", tmp_path / "hall1.yaml", "--fleet", tmp_path)
    code, out, _ = assay("compare", *design, "--from", tmp_path / "dump")
    assert (code, out) == (0, "fabric hall1: match (416 of 416 cables as designed, 416 found)\n")


def test_a_design_s_file_may_be_called_anything(assay, tmp_path, monkeypatch):
    (tmp_path / "dump").write_text(COMPUTE)
    (tmp_path / "known-good").write_text(assay("learn", "--from", tmp_path / "dump", "--fleet", tmp_path)[1])
    monkeypatch.chdir(tmp_path)
    for file in ("known-good", tmp_path / "known-good"):
        assert assay("compare", "--design", file, "--from", "dump")[0] == 0


def test_the_verb_refuses_a_partial_discovery_with_2(assay, tmp_path):
    (tmp_path / "dump").write_text(COMPUTE[:5000])
    code, out, err = assay("learn", "--from", tmp_path / "dump")
    assert (code, out) == (2, "")
    assert "no design can be drafted from a partial discovery" in err


def test_a_list_of_cables_says_why_there_are_no_rules(assay, tmp_path):
    plan = fat_tree(units=1, nodes=2, rails=2, spines=1)
    seen = in_reach(plan, as_built(plan)[:4])
    (tmp_path / "dump").write_text(format_net_file(seen.devices, seen.cables))
    code, out, _ = assay("learn", "--from", tmp_path / "dump", "--fleet", tmp_path)
    assert (code, "no pattern (no switch joins the leaves): this is the cabling as found" in out) == (0, True)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="ASSAY_SAMPLES names no folder of real recordings")
def test_real_dumps_match_what_was_learnt_from_them():
    tried = 0
    for path in sorted(SAMPLES.rglob("*")):
        try:
            discovery = read_topology(path.read_text(errors="replace")) if path.is_file() else None
        except AssayError:
            continue
        if discovery and not discovery.partial:
            tried += 1
            assert compare_cabling(learnt(discovery), discovery).verdict == "match", path
    assert tried


def hosts(*names: str) -> dict[str, str]:
    """The node that each adapter is learnt to be in, by its name."""
    devices = {f"0x{n:016x}": DiscoveredDevice(f"0x{n:016x}", "hca", 1, name) for n, name in enumerate(names, start=1)}
    return {one.name: one.node for one in draft(FabricDiscovery([], devices), "learned").devices}


def test_an_adapter_s_name_tells_its_node_unless_two_announce_the_same():
    assert hosts("n1 mlx5_10", "n1 mlx5_2", "n2 HCA-1", "n2 HCA-1", "localhost HCA-3", "MT4129 ConnectX7") == {
        "MT4129 ConnectX7": "",
        "localhost HCA-3": "",
        "n1 mlx5_2": "n1",
        "n1 mlx5_10": "n1",
        "n2 HCA-1": "",
    }


def test_two_nodes_in_each_other_s_place_are_one_discrepancy_of_a_learnt_design():
    found = as_found(fat_tree())
    one, other = ([guid for guid, d in found.devices.items() if d.name.startswith(node)] for node in ("n000", "n004"))
    moved = dict(zip([*one, *other], [*other, *one], strict=True))
    (said,) = compare_cabling(learnt(found), FabricDiscovery(renamed(found.cables, moved), found.devices)).discrepancies
    assert (said.kind, said.device, len(said.cables)) == ("device-exchanged", "n000 and n004", 6)
    assert said.nodes == ("n000", "n004")


def test_a_node_that_is_gone_is_one_discrepancy_of_a_learnt_design():
    found = as_found(fat_tree())
    gone = {guid for guid, device in found.devices.items() if device.name.startswith("n003")}
    left = [cable for cable in found.cables if not {cable.a.guid, cable.b.guid} & gone]
    devices = {guid: device for guid, device in found.devices.items() if guid not in gone}
    (said,) = compare_cabling(learnt(found), FabricDiscovery(left, devices)).discrepancies
    assert (said.kind, said.device, len(said.cables)) == ("device-missing", "n003", 3)

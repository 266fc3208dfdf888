"""LLDP of an Ethernet fabric compares with a design as ibnetdiscover does, in whatever form its switches report it."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.yaml import parse_yaml
from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.discovery import DiscoveredCable
from assay.fabric.readers.format_detection import read_topology
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from tests.fabric.conftest import small_design, small_fleet
from tests.fabric.lldp_dumps import Dump, by_clush, list_cables, tabulate

SPLIT = {"product": "SN5600", "ports": 64, "labels": "number", "split": 2}


@pytest.fixture(scope="module")
def ethernet():
    return make_ethernet()


def make_ethernet(up: str = "9..23/2", spine_down: str = "1..31/2"):
    """A design of Ethernet: NICs by the GUIDs that mlx5 makes of MACs, switches by MACs, cages split in two."""
    leaves = [{"guid": f"0x0000b8cef6{0x5000 + rail:06x}", "rack": "r09", "u": 10 + rail} for rail in range(4)]
    spines = [{"guid": f"0x0000b8cef6{0x6000 + index:06x}", "rack": "r10", "u": 10 + index} for index in range(2)]
    design = small_design(
        rate="400G",
        rates={"leaf_spine": "800G"},
        switch=SPLIT,
        leaves={"name": "leaf-{unit}-{rail}", "down": "1..8", "up": up, "at": leaves},
        spines={"name": "spine-{index}", "per_pair": 4, "down": spine_down, "at": spines},
    )
    fleet = small_fleet(design)
    nodes = {
        name: replace(node, hca_guids=tuple(f"0xb8cef60300{int(guid, 16):06x}" for guid in node.hca_guids))
        for name, node in fleet.nodes.items()
    }
    return compile_topology(design, replace(fleet, nodes=nodes))


def cumulus(port: int) -> str:
    cage, part = divmod(port - 1, 2)
    return f"swp{cage + 1}s{part}"


def lane(port: int) -> str:
    return f"Ethernet{4 * (port - 1)}"


def alias(port: int) -> str:
    return f"etp{(port + 1) // 2}{'ab'[(port - 1) % 2]}"


def eos(port: int) -> str:
    return f"Ethernet{(port + 1) // 2}/{1 + 4 * ((port - 1) % 2)}"


def swp(port: int) -> str:
    """Uplinks are whole cages: only the cages of nodes are split."""
    return cumulus(port) if port <= 8 else f"swp{(port + 1) // 2}"


FORMS = {
    "lldpctl": (cumulus, lambda dump, guid: dump.lldpctl(guid)),
    "whole cages": (swp, lambda dump, guid: dump.nvue(guid)),
    "nvue": (cumulus, lambda dump, guid: dump.nvue(guid)),
    "sonic": (lane, lambda dump, guid: dump.sonic(guid, alias)),
    "openconfig": (eos, lambda dump, guid: dump.openconfig(guid)),
}


def make_dump(topology, cables, form: str, **names) -> str:
    interface, report = FORMS[form]
    dump = Dump(topology, cables, interface, names.get("names"))
    return by_clush({dump.name(guid): report(dump, guid) for guid in dump.reports})


@pytest.mark.parametrize("form", FORMS)
def test_a_fabric_as_designed_matches(ethernet, form):
    comparison = compare_cabling(ethernet, read_topology(make_dump(ethernet, list_cables(ethernet), form)))
    assert (comparison.verdict, comparison.matching) == ("match", 56), (comparison.summary, comparison.problems)
    told_speeds = not any("no speeds" in note for note in comparison.notes)
    assert told_speeds == (form != "openconfig")


def swap(cables, one: int, other: int):
    a, b = cables[one], cables[other]
    cables[one], cables[other] = DiscoveredCable(a.a, b.b, a.rate), DiscoveredCable(b.a, a.b, b.rate)


def remove(cables, one: int, _):
    del cables[one]


def slow(cables, one: int, _):
    cables[one] = cables[one]._replace(rate="100G")


def move(cables, one: int, _):
    a, b, rate = cables[one]
    cables[one] = DiscoveredCable(a, b._replace(number=40), rate)


MISTAKES = {"swap": swap, "missing": remove, "degraded": slow, "moved": move}


KNOWN = [(form, kind) for form in FORMS for kind in MISTAKES if (form, kind) != ("openconfig", "degraded")]
"""openconfig-lldp has no speeds."""


@pytest.mark.parametrize(("form", "kind"), KNOWN)
def test_one_mistake_is_one_discrepancy(ethernet, form, kind):
    for one, other in ((0, 5), (30, 41)):
        cables = list_cables(ethernet)
        MISTAKES[kind](cables, one, other)
        comparison = compare_cabling(ethernet, read_topology(make_dump(ethernet, cables, form)))
        assert [each.kind for each in comparison.discrepancies] == [kind], comparison.problems
        assert comparison.verdict == "mismatch"


def test_nodes_that_are_known_by_names_alone_match(ethernet):
    """`nv show interface lldp` and hosts that announce the names of their ports: no MAC is told."""
    dump = Dump(ethernet, list_cables(ethernet), swp)
    reports = {}
    for guid, ends in dump.reports.items():
        rows = []
        for number, far, rate in ends:
            host, port = dump.host_port(far.guid)
            where = (dump.name(far.guid), swp(far.number)) if dump.is_switch(far.guid) else (host, port)
            rows.append((swp(number), rate, "swp", *where))
        rows.append(("eth0", "1G", "eth", "oob-mgmt-1", "swp10"))
        reports[dump.name(guid)] = tabulate(("Interface", "Speed", "Type", "Remote Host", "Remote Port"), rows)
    comparison = compare_cabling(ethernet, read_topology(by_clush(reports)))
    assert (comparison.verdict, comparison.matching) == ("match", 56), (comparison.summary, comparison.problems)


def test_what_hosts_say_themselves_agrees(ethernet):
    dump = Dump(ethernet, list_cables(ethernet), swp)
    reports = {dump.name(guid): dump.lldpctl(guid) for guid in dump.reports}
    hosts: dict[str, dict[str, object]] = {}
    for here, (far, _) in dump.ends.items():
        if not dump.is_switch(here.guid):
            host, port = dump.host_port(here.guid)
            name, chassis, port_id, kind, text = dump.neighbour(far)
            known = {"port": {"id": {"type": kind, "value": port_id}, "descr": text}, "via": "LLDP"}
            hosts.setdefault(host, {})[port] = known | {"chassis": {name: {"id": {"type": "mac", "value": chassis}}}}
    every = reports | {host: json.dumps({"lldp": {"interface": ports}}) for host, ports in hosts.items()}
    comparison = compare_cabling(ethernet, read_topology(by_clush(every)))
    assert (comparison.verdict, comparison.matching) == ("match", 56), comparison.problems
    alone = {host: text for host, text in every.items() if host not in reports}
    comparison = compare_cabling(ethernet, read_topology(by_clush(alone)))
    assert comparison.matching == 24, "of 56 cables, hosts see their own"
    assert not {node for each in comparison.discrepancies for node in each.nodes}, "nothing is wrong at the nodes"


def test_a_switch_that_was_replaced_is_one_discrepancy(ethernet):
    """Its name is the old one, its MAC is new: as with InfiniBand, the design is to learn the new identity."""
    text = make_dump(ethernet, list_cables(ethernet), "lldpctl").replace("b8:ce:f6:00:50:01", "b8:ce:f6:0a:bc:de")
    comparison = compare_cabling(ethernet, read_topology(text))
    assert len(comparison.discrepancies) == 1, [each.summary for each in comparison.discrepancies]
    assert "0x0000b8cef60abcde" in comparison.discrepancies[0].summary


def test_an_adapter_that_was_replaced_is_one_discrepancy(ethernet):
    text = make_dump(ethernet, list_cables(ethernet), "lldpctl").replace("b8:ce:f6:00:a0:11", "b8:ce:f6:0a:bc:de")
    comparison = compare_cabling(ethernet, read_topology(text))
    assert len(comparison.discrepancies) == 1, [each.summary for each in comparison.discrepancies]
    assert "n02" in comparison.discrepancies[0].summary


def test_a_silent_switch_is_seen_by_its_neighbours(ethernet):
    """One switch did not answer: its cables to other switches are known, those to nodes are not."""
    dump = Dump(ethernet, list_cables(ethernet), swp)
    reports = {dump.name(guid): dump.lldpctl(guid) for guid in dump.reports}
    del reports["leaf-1-2"]
    stderr = "leaf-1-2: ssh: connect to host leaf-1-2 port 22: Connection refused\n"
    comparison = compare_cabling(ethernet, read_topology(by_clush(reports), stderr))
    assert comparison.verdict == "partial"
    assert comparison.matching == 50
    assert len(comparison.unknown) == 6, "nothing is told of the nodes' cables at that leaf"


def test_a_text_that_names_no_host_is_refused(ethernet):
    dump = Dump(ethernet, list_cables(ethernet), swp)
    discovery = read_topology(dump.lldpctl(next(iter(dump.reports))))
    assert discovery.partial
    assert "clush" in discovery.problems[0]


def test_a_text_that_was_cut_off_is_partial(ethernet):
    text = make_dump(ethernet, list_cables(ethernet), "nvue")
    comparison = compare_cabling(ethernet, read_topology(text[: len(text) * 2 // 3]))
    assert comparison.verdict == "partial"


def test_switches_with_one_name_are_refused(ethernet):
    text = make_dump(ethernet, list_cables(ethernet), "lldpctl")
    text = text.replace("spine-1", "cumulus").replace("spine-2", "cumulus")
    comparison = compare_cabling(ethernet, read_topology(text))
    assert comparison.verdict == "partial"
    assert any("announce the name cumulus" in problem for problem in comparison.problems)


@pytest.mark.parametrize(("contiguous", "rules"), [(True, True), (False, False)])
def test_a_draft_of_lldp_matches_it(ethernet, contiguous, rules, tmp_path):
    """Where uplinks are whole cages among split ones, their numbers have gaps, and every cable is listed."""
    topology = make_ethernet(up="9..16", spine_down="1..16") if contiguous else ethernet
    dump = tmp_path / "lldp.txt"
    dump.write_text(make_dump(topology, list_cables(topology), "nvue"))
    empty = tmp_path / "fleet"
    empty.mkdir()
    drafted = CliRunner().invoke(app, ["fabric", "learn", f"--from={dump}", f"--fleet={empty}"]).stdout
    design = FabricDesign.model_validate(parse_yaml(drafted.encode(), "learned.yaml").data)
    assert (design.fat_tree is not None) == rules, drafted[:400]
    learned = compile_topology(design, Fleet(tmp_path, {}, designs={design.name: design}))
    comparison = compare_cabling(learned, read_topology(dump.read_text()))
    assert (comparison.verdict, comparison.matching) == ("match", 56), comparison.summary


def test_no_design_is_drafted_without_speeds(ethernet, tmp_path):
    dump = tmp_path / "lldp.txt"
    dump.write_text(make_dump(ethernet, list_cables(ethernet), "openconfig"))
    drafted = CliRunner().invoke(app, ["fabric", "learn", f"--from={dump}", f"--fleet={tmp_path}"])
    assert isinstance(drafted.exception, AssayError)
    assert "show interfaces status" in drafted.exception.fix

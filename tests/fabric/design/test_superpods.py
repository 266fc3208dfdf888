"""NVIDIA's reference architectures come out of the rules: their counts exactly, and what makes them work."""

from collections import Counter, defaultdict

import pytest
from pydantic import ValidationError

from assay.fabric.design.compiler import compile_topology
from tests.support.fabrics.superpods import COUNTS, POD, RAILS, fleet_of, row, superpod

THREE_TIERS = [16, 32, 64]


@pytest.fixture(scope="module")
def compiled():
    known = {}

    def compiled(units):
        if units not in known:
            design = superpod(units)
            known[units] = compile_topology(design, fleet_of(design))
        return known[units]

    return compiled


def tier_of(name):
    return name.split("-")[0] if "-" in name else "node"


def tiers(cable):
    return tier_of(cable.a.device), tier_of(cable.b.device)


@pytest.mark.parametrize("units", COUNTS)
def test_the_rules_give_the_counts_of_the_table(units, compiled):
    nodes, leaves, spines, cores, cables = COUNTS[units]
    pod = compiled(units)
    assert Counter(tier_of(one.name) for one in pod.devices.values() if one.kind == "switch") == Counter(
        leaf=leaves, spine=spines, **({"core": cores} if cores else {})
    )
    assert len([one for one in pod.devices.values() if one.kind == "hca"]) == nodes * RAILS
    wanted = {("node", "leaf"): cables, ("leaf", "spine"): cables, ("spine", "core"): cables}
    assert Counter(map(tiers, pod.cables)) == {key: cables for key in wanted if cores or key != ("spine", "core")}
    assert len(pod.cables) == cables * (3 if cores else 2)


@pytest.mark.parametrize("units", COUNTS)
def test_every_port_of_every_switch_has_one_cable(units, compiled):
    pod = compiled(units)
    assert len(pod.cable_numbers) == 2 * len(pod.cables)
    used = Counter(port.guid for port in pod.cable_numbers)
    assert {used[one.guid] for one in pod.devices.values() if one.kind == "switch"} == {64}
    assert max(port.number for port in pod.cable_numbers) == 64


@pytest.mark.parametrize("units", THREE_TIERS)
def test_below_the_cores_rails_do_not_meet(units, compiled):
    pairs = [(c.a.device, c.b.device) for c in compiled(units).cables if tiers(c) == ("leaf", "spine")]
    assert {leaf.rpartition("-r")[2] == spine.split("-")[2][1:] for leaf, spine in pairs} == {True}


@pytest.mark.parametrize("units", THREE_TIERS)
def test_a_core_sees_one_spine_of_every_group(units, compiled):
    seen = defaultdict(Counter)
    for cable in compiled(units).cables:
        if tiers(cable) == ("spine", "core"):
            seen[cable.b.device][cable.a.device] += 1
    groups = RAILS * max(1, units // POD)
    for core, spines in seen.items():
        assert len(spines) == groups
        assert set(spines.values()) == {64 // groups}
        assert len({spine.rpartition("-")[0] for spine in spines}) == groups
        assert {int(spine.rpartition("-")[2]) for spine in spines} == {int(core.split("-")[1])}


@pytest.mark.parametrize("units", THREE_TIERS)
def test_every_tier_has_as_much_up_as_down(units, compiled):
    ports = defaultdict(lambda: [0, 0])
    for cable in compiled(units).cables:
        ports[cable.b.device][0] += 1
        ports[cable.a.device][1] += 1
    assert {tuple(ports[name]) for name in ports if tier_of(name) in ("leaf", "spine")} == {(32, 32)}


@pytest.mark.parametrize("units", COUNTS)
def test_the_ports_that_a_switch_uses_are_those_that_are_cabled(units, compiled):
    design, pod = superpod(units), compiled(units)
    cabled = defaultdict(set)
    for port in pod.cable_numbers:
        cabled[port.guid].add(port.number)
    assert all(design.used_ports(tier, at) == cabled[switch.guid] for tier, at, switch in design.list_switch_places())


def test_the_far_end_of_a_port_is_where_its_cable_leads():
    design = superpod(16, nodes=["n0001..n0500"])
    pod, wiring = compile_topology(design, fleet_of(design)), design.fat_tree
    guids = {(tier, number): switch.guid for tier, number, switch in design.list_switch_places()}
    adapters = [one.guid for one in pod.devices.values() if one.kind == "hca"]
    for tier, number, port in [("leaves", 127, 20), ("leaves", 127, 21), ("leaves", 9, 40), ("spines", 17, 3),
                               ("spines", 100, 64), ("cores", 63, 64), ("cores", 0, 1)]:  # fmt: skip
        far = pod.cable_at((guids[tier, number], port))
        told = wiring.find_far_end(tier, number, port)
        if told is None:
            assert far is None
        else:
            guid = adapters[told[1]] if told[0] == "nodes" else guids[told[0], told[1]]
            assert far.b.port_id == (guid, told[2])


def test_one_node_less_leaves_its_leaf_ports_free():
    """H100: 127 nodes at 4 units, where the fabric manager takes the place of the last one."""
    design = superpod(4, nodes=["n0001..n0127"])
    pod = compile_topology(design, fleet_of(design))
    assert Counter(map(tiers, pod.cables)) == {("node", "leaf"): 127 * 8, ("leaf", "spine"): 1024}


def test_a_b300_unit_of_64_nodes_has_two_leaves_a_rail():
    """B300: 64 nodes, 16 leaves and 8 spines a unit; two of the rules' units make one of NVIDIA's."""
    design = superpod(2)
    leaves = Counter(design.fat_tree.rail_of_switch("leaves", number) for number in range(len(design.leaves.at)))
    assert leaves == dict.fromkeys(range(RAILS), 2)
    assert (len(design.node_names()), len(design.leaves.at), len(design.spines.at)) == (64, 16, 8)


def test_a_b300_unit_with_xdr_has_larger_leaves():
    """B300 XDR: 72 nodes, 8 leaves and 4 spines of 144 ports a unit."""
    design = superpod(
        2, rate="4xXDR", nodes=["n0001..n0072"], switch={"product": "Q3400-RA", "ports": 144, "labels": "cage/port"},
        leaves={"name": "leaf-r{rail}", "down": "1..72", "up": "73..144", "at": row(8, 1)},
        spines={"name": "spine-{index}", "per_pair": 18, "at": row(4, 2)},
    )  # fmt: skip
    pod = compile_topology(design, fleet_of(design))
    assert Counter(map(tiers, pod.cables)) == {("node", "leaf"): 576, ("leaf", "spine"): 576}
    assert max(port.number for port in pod.cable_numbers) == 144


def test_cores_may_also_be_cabled_to_every_spine():
    design = superpod(16, spines={"name": "s-{index}", "group": "rail", "per_pair": 8, "down": "1..32", "up": "33..64",
                                  "at": row(32, 2)}, nodes=["n0001..n0128"],
                      leaves={"name": "leaf-{unit}-{rail}", "down": "1..32", "up": "33..64", "at": row(32, 1)},
                      cores={"name": "c-{index}", "plane": "all", "per_pair": 2, "at": row(16, 3)})  # fmt: skip
    pod = compile_topology(design, fleet_of(design))
    pairs = Counter((c.a.device, c.b.device) for c in pod.cables if c.b.device.startswith("c-"))
    assert len(pairs) == 32 * 16
    assert set(pairs.values()) == {2}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cores": None}, "spines have `up` ports and there are no cores"),
        ({"cores": {"name": "c-{index}", "per_pair": 8, "at": row(60, 3)}}, "60 cores do not make 16 equal planes"),
        ({"cores": {"name": "c-{index}", "per_pair": 4, "at": row(64, 3)}},
         "4 cores a plane × 4 cables do not use the spines' 32 up ports"),
        ({"cores": {"name": "c-{index}", "per_pair": 16, "at": row(32, 3)}}, "8 spines × 16 cables exceed 64 ports"),
        ({"leaves": {"name": "{unit}-{rail}", "down": "1..32", "up": "33..64", "at": row(120, 1)}}, "need 128 leaves"),
    ],
)  # fmt: skip
def test_three_tiers_that_do_not_fit_together_are_refused(changes, says):
    with pytest.raises(ValidationError, match=says):
        superpod(16, **changes)


@pytest.mark.parametrize(
    ("spines", "says"),
    [
        ({"down": "1..31"}, "16 leaves × 2 cables exceed the 31 ports of `down`"),
        ({"up": None}, "cores need the spines' `up` ports"),
        ({"up": "30..61"}, "the ports of `down` and `up` overlap"),
        ({"up": "34..65"}, "a MQM9700 has 64 ports, `up` ends at 65"),
        ({"at": row(120, 2)}, "15 spines × 2 cables do not use the leaves' 32 up ports"),
        ({"at": row(127, 2)}, "127 spines do not make 8 equal groups"),
    ],
)
def test_spines_that_do_not_fit_their_neighbours_are_refused(spines, says):
    rules = superpod(16).spines.model_dump() | spines
    with pytest.raises(ValidationError, match=says):
        superpod(16, spines=rules)

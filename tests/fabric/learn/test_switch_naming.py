"""Names that follow a rule become the rule, and a switch that nobody saw gets the name that the rule gives it."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.fabric.compare.compare import compare_cabling
from assay.fabric.design.compiler import compile_topology
from assay.fabric.learn.draft import draft_rules
from assay.fabric.learn.rules import infer_name_pattern
from assay.model.fleet import Fleet
from assay.model.specs.fabric.fabric_design import FabricDesign
from assay.model.specs.fabric.switches import fill_pattern, parse_switch_position
from tests.fabric.learn.test_judged_design import grown, judge
from tests.support.fabrics.fat_trees import as_built, fat_tree, in_reach
from tests.support.fabrics.superpods import row, superpod

LEAVES = [{"unit": unit, "rail": rail, "index": 4 * unit + rail - 3} for unit in range(1, 13) for rail in range(4)]
SPINES = [
    {"index": 16 * pod + 4 * rail + number + 1, "pod": pod + 1, "rail": rail, "number": number + 1}
    for pod in range(3) for rail in range(4) for number in range(4)
]  # fmt: skip
CORES = [{"index": 3 * plane + n + 1, "plane": plane + 1, "number": n + 1} for plane in range(4) for n in range(3)]
TEXTS = st.text("abz-_. ", min_size=1, max_size=6)
TIERS = {
    "leaves": (LEAVES, ("unit", "rail")),
    "leaves by index": (LEAVES, ("index",)),
    "spines": (SPINES, ("pod", "rail", "number")),
    "spines by index": (SPINES, ("index",)),
    "cores": (CORES, ("plane", "number")),
    "cores by index": (CORES, ("index",)),
}


@st.composite
def placeholders(draw, name):
    """A placeholder with a number added or not, of a width that shows or none."""
    added = draw(st.sampled_from((0, 0, 1, 9, 100, 1000) + (() if name == "rail" else (-1,))))
    width = draw(st.integers(len(str(added + 1)) + 1, 5) | st.just(0))
    return f"{{{name}{f'{added:+}' if added else ''}{f':0{width}' if width else ''}}}"


@st.composite
def patterns(draw, names):
    """A pattern with each placeholder once, in any order and width, among texts and fixed numbers."""
    pieces = [draw(placeholders(name)) for name in draw(st.permutations(names))]
    fixed = draw(st.sampled_from(("", "77")))
    return draw(TEXTS) + fixed + "".join(draw(TEXTS) + piece for piece in pieces) + draw(st.sampled_from(("", "-x")))


@pytest.mark.parametrize("tier", TIERS)
@given(data=st.data())
def test_any_pattern_is_inferred_also_where_switches_were_not_seen(tier, data):
    fields, names = TIERS[tier]
    pattern = data.draw(patterns(names))
    written = [fill_pattern(pattern, own) for own in fields]
    unseen = data.draw(st.sets(st.integers(0, len(written) - 1), max_size=3))
    assert infer_name_pattern(["" if at in unseen else name for at, name in enumerate(written)], fields) == pattern


@pytest.mark.parametrize("tier", TIERS)
@given(data=st.data())
def test_names_in_any_order_are_sorted_as_the_switches_stand(tier, data):
    fields, names = TIERS[tier]
    pattern = data.draw(patterns(names))
    written = [fill_pattern(pattern, own) for own in fields]
    shuffled = data.draw(st.permutations(written))
    assert sorted(shuffled, key=lambda name: parse_switch_position(pattern, name) or ()) == written


@pytest.mark.parametrize(
    ("fields", "pattern"),
    [
        (LEAVES, "leaf{unit}{rail+1:02}"),
        (LEAVES, "leaf{unit:02}{rail}"),
        (LEAVES, "dc7-{rail+1}{unit:02}"),
        (SPINES, "s{pod}{rail+1}{number:02}"),
        (SPINES, "spine{rail+1:03}-{pod}{number}"),
        (CORES, "c{plane-1}{number+9:02}"),
        (LEAVES[:4], "leaf-{index}"),
        (LEAVES[:4], "leaf-{rail}"),
        (LEAVES[:4], "leaf-{index+99}"),
        (LEAVES[:4], "su{unit:02}-r{rail+1}"),
        (LEAVES[:4], "row7-r{rail+1}"),
        (LEAVES[:4], "row0-r{rail}"),
    ],
)
def test_a_rule_reads_as_a_person_would_write_it(fields, pattern):
    names = [fill_pattern(pattern, own) for own in fields]
    assert infer_name_pattern(names, fields) == pattern
    assert sorted(names, key=lambda name: parse_switch_position(pattern, name) or ()) == names


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (LEAVES, [f"{{leaf}}-{own['unit']}-{own['rail']}" for own in LEAVES]),
        (LEAVES, [f"leaf-{own['unit']}-{own['rail']}" for own in [LEAVES[1], LEAVES[0], *LEAVES[2:]]]),
        (LEAVES, [f"leaf-{2 * own['index']}" for own in LEAVES]),
        (LEAVES, [f"leaf-{own['index'] + 99990}" for own in LEAVES]),
        (LEAVES, [""] * len(LEAVES)),
        (LEAVES, ["leaf-1-0"] + [""] * (len(LEAVES) - 1)),
        (LEAVES[:8], [f"leaf-{own['rail'] + 1}" for own in LEAVES[:4]] + ["spare"] + [""] * 3),  # two would be leaf-1
        (CORES, [chr(ord("a") + at) for at in range(len(CORES))]),
    ],
)
def test_names_without_a_rule_have_none(fields, names):
    assert infer_name_pattern(names, fields) == ""


def test_another_name_among_those_of_the_rule_leaves_the_rule():
    names = [f"leaf-{own['unit']}-{own['rail']}" for own in LEAVES]
    assert infer_name_pattern(["new switch", *names[1:]], LEAVES) == "leaf-{unit}-{rail}"


def test_a_fixed_number_of_the_only_unit_is_the_unit():
    names = [f"dc1-leaf-su1-r{rail}" for rail in range(4)]
    assert infer_name_pattern(names, LEAVES[:4]) == "dc1-leaf-su{unit}-r{rail}"


def test_a_fixed_number_is_no_pod_where_there_is_one():
    fields = [{"index": at, "pod": 1, "rail": 0, "number": at} for at in range(1, 5)]
    assert infer_name_pattern([f"dc1-spine-0-{at}" for at in range(1, 5)], fields) == "dc1-spine-0-{index}"


def named_by_site(names, gone=()):
    """A fabric of two units with four rails, its leaves named so, without some of them."""
    plan = fat_tree(units=2, nodes=4, rails=4, spines=2, pair=2)
    leaves = [guid for guid, device in plan.devices.items() if device.name.startswith("leaf")]
    name_of = dict(zip(leaves, names, strict=True))
    lost = {leaves[at] for at in gone}
    seen = in_reach(plan, [cable for cable in as_built(plan) if not {cable.a.guid, cable.b.guid} & lost])
    devices = {guid: one._replace(description=name_of.get(guid, one.description)) for guid, one in seen.devices.items()}
    return replace(seen, devices=devices)


SITE = [f"leaf-su{unit:02}-r{rail}" for unit in (1, 2) for rail in range(4)]


def test_a_draft_has_the_rule_and_an_unseen_leaf_its_name():
    seen = named_by_site(SITE, gone=[2])
    judged = judge(seen)
    leaves = yaml.safe_load(draft_rules(judged, seen))["leaves"]
    assert leaves["name"] == "leaf-su{unit:02}-r{rail}"
    assert not any("name" in switch for switch in leaves["at"])
    assert [name for name, tier, *_ in judged.design.switches() if tier == "leaves"] == SITE
    assert "leaf-su01-r2" in judged.exceptions[0].summary


def test_rails_from_1_and_units_from_0_are_a_rule_and_an_unseen_leaf_has_its_name():
    names = [f"leaf-{unit}{rail:02}" for unit in (0, 1) for rail in range(1, 5)]
    seen = named_by_site(names, gone=[5])
    judged = judge(seen)
    draft = yaml.safe_load(draft_rules(judged, seen))
    assert draft["leaves"]["name"] == "leaf-{unit-1}{rail+1:02}"
    design = FabricDesign.model_validate(draft)
    assert [name for name, tier, *_ in design.switches() if tier == "leaves"] == names
    topology = compile_topology(design, Fleet(Path(), {}))
    (lost,) = (one for one in compare_cabling(topology, seen).discrepancies if one.kind == "device-missing")
    assert lost.device == names[5]


@st.composite
def rules_of_all_tiers(draw):
    tiers = (tier + draw(st.sampled_from(("", " by index"))) for tier in ("leaves", "spines", "cores"))
    return [letter + draw(patterns(TIERS[tier][1])) for letter, tier in zip("lsc", tiers, strict=True)]


@settings(max_examples=10)
@given(rules_of_all_tiers())
def test_the_rules_of_all_tiers_are_learnt(rules):
    plan = grown(*rules)
    assert [tier.name for _, tier in judge(in_reach(plan, as_built(plan))).design.tiers] == rules


def test_labels_of_nodes_may_count_from_1():
    assert [superpod(2, hca_label="p{rail+1:02}").label_rail(rail) for rail in (0, 9)] == ["p01", "p10"]


@pytest.mark.parametrize("name", ["leaf-{unit-2}-{rail}", "leaf-{unit}-{rail-1}", "leaf-{unit+x}-{rail}", "{rail+-1}"])
def test_a_rule_that_gives_no_number_is_refused(name):
    with pytest.raises(ValueError, match=r"leaves\.name"):
        superpod(2, leaves={"name": name, "down": "1..32", "up": "33..64", "at": row(16, 1)})


def test_leaves_with_each_others_names_are_spelled_out():
    seen = named_by_site([SITE[1], SITE[0], *SITE[2:]])
    judged = judge(seen)
    leaves = yaml.safe_load(draft_rules(judged, seen))["leaves"]
    assert [switch["name"] for switch in leaves["at"]] == [SITE[1], SITE[0], *SITE[2:]]
    assert judged.exceptions == []


def test_one_leaf_with_another_name_keeps_it():
    judged = judge(named_by_site(["spare", *SITE[1:]]))
    assert [switch.name for switch in judged.design.leaves.at] == ["spare"] + [""] * 7
    assert judged.exceptions == []


def test_spines_with_each_others_names_are_spelled_out():
    seen = named_by_site(SITE)
    spines = [guid for guid, one in seen.devices.items() if one.description.startswith("spine")]
    names = dict(zip(spines, ("spine 2", "spine 1"), strict=True))
    devices = {guid: one._replace(description=names.get(guid, one.description)) for guid, one in seen.devices.items()}
    judged = judge(replace(seen, devices=devices))
    assert [switch.name for switch in judged.design.spines.at] == ["spine 2", "spine 1"]

"""Names that follow a rule become the rule, and a switch that nobody saw gets the name that the rule gives it."""

from dataclasses import replace

import pytest
import yaml
from fat_trees import as_built, fat_tree, in_reach
from hypothesis import given
from hypothesis import strategies as st
from test_judged_design import judge

from assay.fabric.drafts.rule_draft import draft_rules
from assay.fabric.drafts.switch_naming import infer_name_pattern
from assay.model.fabric.switch_settings import parse_switch_position

LEAVES = [{"unit": unit, "rail": rail} for unit in range(1, 13) for rail in range(4)]
SPINES = [
    {"index": 16 * pod + 4 * rail + number + 1, "pod": pod + 1, "rail": rail, "number": number + 1}
    for pod in range(3) for rail in range(4) for number in range(4)
]  # fmt: skip
CORES = [{"index": 3 * plane + n + 1, "plane": plane + 1, "number": n + 1} for plane in range(4) for n in range(3)]
TEXTS = st.text("abz-_. ", min_size=1, max_size=6)
TIERS = {
    "leaves": (LEAVES, ("unit", "rail")),
    "spines": (SPINES, ("pod", "rail", "number")),
    "spines by index": (SPINES, ("index",)),
    "cores": (CORES, ("plane", "number")),
    "cores by index": (CORES, ("index",)),
}


@st.composite
def patterns(draw, placeholders):
    """A pattern with each placeholder once, in any order and width, among texts and fixed numbers."""
    pieces = [f"{{{name}{draw(st.sampled_from(('', ':02', ':03')))}}}" for name in draw(st.permutations(placeholders))]
    fixed = draw(st.sampled_from(("", "77")))
    return draw(TEXTS) + fixed + "".join(draw(TEXTS) + piece for piece in pieces) + draw(st.sampled_from(("", "-x")))


@pytest.mark.parametrize("tier", TIERS)
@given(data=st.data())
def test_any_pattern_is_inferred_also_where_switches_were_not_seen(tier, data):
    fields, placeholders = TIERS[tier]
    pattern = data.draw(patterns(placeholders))
    names = [pattern.format(**own) for own in fields]
    unseen = data.draw(st.sets(st.integers(0, len(names) - 1), max_size=3))
    seen = ["" if at in unseen else name for at, name in enumerate(names)]
    found = infer_name_pattern(seen, fields)
    assert [found.format(**own) for own in fields] == names
    assert all(parse_switch_position(found, name) is not None for name in names)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (LEAVES, [f"leaf-su{own['unit'] - 1:02}-r{own['rail']}" for own in LEAVES]),  # units count from 0
        (LEAVES, [f"leaf-su{own['unit']:02}-r{own['rail'] + 1}" for own in LEAVES]),  # rails count from 1
        (LEAVES, [f"leaf{own['unit']:02}{own['rail']}" for own in LEAVES]),  # nothing between two numbers
        (LEAVES, [f"{{leaf}}-{own['unit']}-{own['rail']}" for own in LEAVES]),
        (LEAVES, [f"leaf-{own['unit']}-{own['rail']}" for own in [LEAVES[1], LEAVES[0], *LEAVES[2:]]]),
        (LEAVES, [""] * len(LEAVES)),
        (LEAVES, ["leaf-1-0"] + [""] * (len(LEAVES) - 1)),
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

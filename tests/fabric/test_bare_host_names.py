"""Adapters that announce only the name of their host are told apart by the leaves that they are cabled to."""

from dataclasses import replace
from pathlib import Path

import pytest
from fat_trees import as_built, fat_tree, in_reach

from assay.fabric.drafts.bare_host_names import find_bare_hosts
from assay.fabric.drafts.judged_design import judge_discovery
from assay.model.fleet import Fleet
from assay.starter.shipped_specs import find_adapter_names

NAMES = find_adapter_names(None)
PLAN = fat_tree(units=2, nodes=4, rails=4, spines=2, pair=2)


def bare(cables, text=lambda node: node):
    """What is discovered of the cables, where each adapter announces a text for its node."""
    found = in_reach(PLAN, cables)
    node_of = {device.guid: device.node for device in PLAN}
    devices = {guid: device._replace(description=text(node_of[guid])) if node_of[guid] else device
               for guid, device in found.devices.items()}  # fmt: skip
    return replace(found, devices=devices)


def judge(seen):
    return judge_discovery(seen, "learned", Fleet(Path(), {}), find_bare_hosts(seen, NAMES))


def test_bare_names_give_the_rules_of_the_tree():
    judged = judge(bare(as_built(PLAN)))
    assert judged.exceptions == []
    assert judged.design.node_names() == sorted({device.node for device in PLAN if device.node})
    assert len(judged.topology.cables) == len(PLAN.cables)


def test_an_exchange_of_nodes_and_a_dead_adapter_are_exceptions():
    cables = as_built(PLAN)
    cables[1], cables[5] = cables[1]._replace(b=cables[5].b), cables[5]._replace(b=cables[1].b)
    judged = judge(bare([*cables[:10], *cables[11:]]))
    assert sorted(one.kind for one in judged.exceptions) == ["missing", "swap"]


@pytest.mark.parametrize("text", ["localhost", "MT4129 ConnectX7", "same"])
def test_a_text_of_many_hosts_is_none(text):
    assert find_bare_hosts(bare(as_built(PLAN), lambda _: text), NAMES) == {}

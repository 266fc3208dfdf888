"""A new name enters service through proof. Only a named, dated import lets a node serve at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from assay.lifecycle.node_entry import describe_entry, find_start_state
from assay.model.node import Node
from assay.model.specs.node_settings import NodeSettings, ServiceImport

NOW = datetime(2026, 11, 22, tzinfo=UTC)
IMPORT = ServiceImport(nodes=["n1", "n2"], reason="it served before", expires="2026-12-01")
NODE = Node("n1", "a", "lab1", "r1", 1, "S1", "hgx", "managed", settings=NodeSettings(service_import=IMPORT))


def test_a_node_that_an_import_names_starts_in_service_until_the_import_expires(policy):
    assert find_start_state(policy, NODE, NOW) == "production"
    assert find_start_state(policy, NODE, IMPORT.expires_at) == "onboard"
    assert describe_entry(NODE).startswith("starts in service without proof, by an import until 2026-12-01")


@pytest.mark.parametrize(
    "settings",
    [
        NodeSettings(),
        NodeSettings(service_import=IMPORT),
        NodeSettings(lifecycle_start="production"),
        NodeSettings(lifecycle_start="production", service_import=IMPORT),
    ],
)
def test_any_other_name_enters_through_proof(policy, settings):
    other = replace(NODE, name="n0025", settings=settings)
    assert find_start_state(policy, other, NOW) == "onboard"


def test_another_start_out_of_service_stays_possible(policy):
    assert find_start_state(policy, replace(NODE, settings=NodeSettings(lifecycle_start="seatrial")), NOW) == "seatrial"

"""A node whose spec has an example of a site's value is not taken out of service for a zap that would be refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.moves.decide import decide
from assay.model.specs.trust_rules import TrustRules
from tests.act.quiet_site import FLEET, NODES

NODE = NODES[0]


@pytest.mark.parametrize(("is_lab", "timings"), [(False, {"record"}), (True, {"pending", "immediate"})])
def test_an_order_to_zap_waits_until_the_example_is_replaced(site, is_lab, timings):
    policy = FLEET.policy.model_copy(update={"trust": TrustRules(fleet="act")})
    fleet = replace(FLEET, policies={policy.name: policy}, is_lab=is_lab)
    site.say("move", NODE, to="zap")
    snapshot = FleetSnapshotCache(replace(site.desk, fleet=fleet)).build_snapshot()
    (made,) = [one for one in decide(snapshot) if one.node == NODE]
    assert made.timing in timings
    assert ("is refused on a real machine" in str(made.causes)) is not is_lab

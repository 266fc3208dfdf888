"""The serial number says which machine a node is: a new name keeps the history, a new machine starts through proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.ledger.store import Ledger
from assay.model.node import Node
from assay.model.specs.node_settings import ServiceImport
from tests.act.quiet_site import FLEET, Site

OLD = "n0003"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "empty.sqlite", tmp_path / "home")
    made.ledger.close()
    made.ledger = Ledger.open(tmp_path / "ledger.sqlite")
    made.desk = replace(made.desk, ledger=made.ledger)
    enroll_nodes(made.desk)
    yield made
    made.ledger.close()


def with_nodes(site: Site, **changed: Node | None) -> ControllerContext:
    """Return the context with these nodes changed, added, or (None) removed."""
    nodes = {name: node for name, node in {**FLEET.nodes, **changed}.items() if node}
    return replace(site.desk, fleet=replace(FLEET, nodes=nodes))


def states(site: Site) -> dict[str, str]:
    return {name: state.state for name, state in FleetSnapshotCache(site.desk).node_states().items()}


def test_only_nodes_that_an_import_names_start_in_service(site: Site) -> None:
    new = replace(FLEET.nodes[OLD], name="n0025", serial="S25")
    enroll_nodes(with_nodes(site, n0025=new))
    found = states(site)
    assert (found[OLD], found["n0001"], found["n0025"]) == ("production", "onboard", "onboard")


def test_a_node_that_starts_in_a_state_with_a_burn_in_is_closed_and_loaded_if_its_profile_allows(site: Site) -> None:
    settings = FLEET.nodes[OLD].settings.model_copy(update={"lifecycle_start": "test"})
    new = replace(FLEET.nodes[OLD], name="n0025", serial="S25", settings=settings)
    watched = replace(new, name="n0026", serial="S26", profile="watched")
    plain = replace(new, name="n0027", serial="S27", settings=FLEET.nodes[OLD].settings)
    desk = with_nodes(site, n0025=new, n0026=watched, n0027=plain)
    no_load = FLEET.profiles["unmanaged"].model_copy(update={"actions": ["cordon", "drain"]})
    enroll_nodes(replace(desk, fleet=replace(desk.fleet, profiles={**FLEET.profiles, "watched": no_load})))
    known = FleetSnapshotCache(site.desk).node_states()
    wanted = {name: list_outstanding_effects(FLEET.policy, known[name]) for name in ("n0025", "n0026", "n0027")}
    assert {name: [effect.action for effect in effects] for name, effects in wanted.items()} == {
        "n0025": ["cordon", "drain", "burn-in"],
        "n0026": [],
        "n0027": [],
    }


def test_a_node_whose_import_has_expired_starts_through_proof_and_status_says_why(site: Site) -> None:
    lapsed = ServiceImport(nodes=["n0025"], reason="it served", expires="2020-01-01")
    settings = FLEET.nodes[OLD].settings.model_copy(update={"service_import": lapsed})
    enroll_nodes(with_nodes(site, n0025=replace(FLEET.nodes[OLD], name="n0025", serial="S25", settings=settings)))
    found = FleetSnapshotCache(site.desk).node_states()["n0025"]
    assert found.state == "onboard"
    assert found.reason.endswith("starts it in onboard: its service_import expired on 2020-01-01")


def test_a_renamed_node_keeps_its_faults_and_holds_also_for_who_watches(site: Site) -> None:
    memory = FleetSnapshotCache(site.desk)
    site.fault(OLD)
    site.say("hold", OLD)
    assert OLD in memory.node_states()
    desk = with_nodes(site, n0003=None, n0103=replace(FLEET.nodes[OLD], name="n0103"))
    enroll_nodes(desk)
    memory.replace_context(desk)
    head = site.ledger.head()
    for known in (memory.node_states(), FleetSnapshotCache(desk).node_states()):
        assert OLD not in known
        assert known["n0103"].hold
        assert [fault.subject for fault in known["n0103"].faults] == ["h100-a/n0103/gpu0"]
    assert "n0103" in {view.name for view in memory.build_snapshot(["n0103"]).nodes}
    enroll_nodes(desk)
    assert site.ledger.head() == head, "it is renamed once"


def test_a_node_may_get_its_old_name_again(site: Site) -> None:
    site.say("hold", OLD)
    away = with_nodes(site, n0003=None, n0103=replace(FLEET.nodes[OLD], name="n0103"))
    for desk in (away, site.desk, away, site.desk):
        enroll_nodes(desk)
    known = FleetSnapshotCache(site.desk).node_states()
    assert "n0103" not in known
    assert known[OLD].hold


def test_another_machine_under_an_old_name_starts_through_proof(site: Site) -> None:
    site.say("hold", OLD)
    enroll_nodes(with_nodes(site, n0003=replace(FLEET.nodes[OLD], serial="S9")))
    known = FleetSnapshotCache(site.desk).node_states()[OLD]
    assert (known.state, known.hold, known.serial) == ("onboard", None, "S9")


def test_two_nodes_that_swap_their_names_swap_their_histories(site: Site) -> None:
    one, other = FLEET.nodes[OLD], FLEET.nodes["n0001"]
    enroll_nodes(with_nodes(site, n0003=replace(one, serial=other.serial), n0001=replace(other, serial=one.serial)))
    found = states(site)
    assert (found[OLD], found["n0001"]) == ("onboard", "production")

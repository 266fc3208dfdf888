"""Where TrendRules ask for it, jobs come last to a node with two warnings: recorded, told, and read again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from assay.act.ingest.trend_evaluation import rank_worn_nodes
from assay.act.loop.context import ControllerContext
from assay.act.loop.projections import read_node_states
from assay.decide.faults.recovery import make_clearance
from assay.decide.state.decision_and_fault_entries import make_cleared_entry
from assay.declare.starter.shipped_specs import find_trend_rules
from assay.model.entries.faults import NodeRankedEntry
from assay.model.errors import AssayError
from assay.model.node import Node
from assay.model.specs.trend_rules import TrendActs
from assay.model.specs.trust_rules import TrustRules
from tests.act.quiet_site import FLEET, NODES, Far, Site

WORN = NODES[3]


class Ranker(Far):
    """A scheduler that keeps which nodes come last, and forgets or refuses it when told."""

    def __init__(self) -> None:
        super().__init__()
        self.last: set[str] = set()
        self.stubborn = False

    def rank_nodes(self, is_last: Mapping[str, bool]) -> dict[str, str]:
        if self.silent:
            raise AssayError("slurmctld does not answer")
        for name, wanted in {} if self.stubborn else is_last.items():
            (self.last.add if wanted else self.last.discard)(name)
        return {name: "its weight is 1" for name, wanted in is_last.items() if (name in self.last) != wanted}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "ledger.sqlite", tmp_path)
    made.far = Ranker()
    yield made
    made.ledger.close()


def ask(site: Site, *, wanted: bool = True, watched: bool = False) -> ControllerContext:
    rules = find_trend_rules(FLEET).model_copy(update={"acts": TrendActs(last_for_jobs=wanted)})
    fleet = replace(FLEET, trend_rules={rules.name: rules})
    if watched:
        policy = FLEET.policy.model_copy(update={"trust": TrustRules(fleet="watch")})
        fleet = replace(fleet, policies={policy.name: policy}, is_lab=False)
    return replace(site.desk, fleet=fleet)


def warn(site: Site, *classes: str) -> None:
    for name in classes or ("trend.heat", "trend.speed"):
        site.fault(WORN, name)


def end_warnings(site: Site) -> None:
    for fault in read_node_states(site.ledger)[WORN].faults:
        site.ledger.append(make_cleared_entry(WORN, make_clearance(fault, "it was wrong", fault.seq), site.clock.at))


def read_record(site: Site) -> list[tuple[str, bool, str]]:
    entries = [(entry.node, NodeRankedEntry.read(entry)) for entry in site.ledger.entries(kinds=[NodeRankedEntry.kind])]
    return [(node, ranked.is_last, ranked.standing) for node, ranked in entries]


def test_it_is_off_by_default(site: Site) -> None:
    warn(site)
    rank_worn_nodes(site.desk)
    assert (site.far.last, read_record(site)) == (set(), [])


def test_one_warning_is_not_enough(site: Site) -> None:
    warn(site, "trend.heat")
    rank_worn_nodes(ask(site))
    assert (site.far.last, read_record(site)) == (set(), [])


def test_it_is_recorded_before_and_proved_after_once(site: Site) -> None:
    warn(site)
    for _ in range(2):
        rank_worn_nodes(ask(site))
    assert site.far.last == {WORN}
    assert read_record(site) == [(WORN, True, "intent"), (WORN, True, "verified")]


def test_what_the_scheduler_forgot_is_said_again(site: Site) -> None:
    warn(site)
    rank_worn_nodes(ask(site))
    site.far.last.clear()
    rank_worn_nodes(ask(site))
    assert site.far.last == {WORN}


@pytest.mark.parametrize("ended", ["warnings", "rules"])
def test_the_end_of_it_gives_the_node_its_place_back(site: Site, ended: str) -> None:
    warn(site)
    rank_worn_nodes(ask(site))
    site.later(days=1)
    if ended == "warnings":
        end_warnings(site)
    rank_worn_nodes(ask(site, wanted=ended == "warnings"))
    assert site.far.last == set()
    assert read_record(site)[2:] == [(WORN, False, "intent"), (WORN, False, "verified")]


@pytest.mark.parametrize("way", ["stubborn", "silent"])
def test_what_did_not_work_is_told_and_tried_again(site: Site, way: str) -> None:
    warn(site)
    setattr(site.far, way, True)
    rank_worn_nodes(ask(site))
    assert read_record(site) == [(WORN, True, "intent"), (WORN, True, "failed")]
    setattr(site.far, way, False)
    site.later(days=1)
    rank_worn_nodes(ask(site))
    assert site.far.last == {WORN}


def test_nothing_is_said_of_a_watched_node(site: Site) -> None:
    warn(site)
    rank_worn_nodes(ask(site, watched=True))
    assert (site.far.last, read_record(site)) == (set(), [])


@pytest.mark.parametrize(("places_jobs", "record"), [(True, [(WORN, True, "failed")]), (False, [])])
def test_a_scheduler_without_an_order_is_told(
    site: Site, places_jobs: bool, record: list[tuple[str, bool, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    site.far = Far()
    monkeypatch.setattr(site.far, "places_jobs", places_jobs)
    warn(site)
    rank_worn_nodes(ask(site))
    assert read_record(site) == record


def test_a_scheduler_that_is_none_is_told(site: Site) -> None:
    def find_none(node: Node) -> Ranker:
        raise AssayError(f"no scheduler of {node.name}")

    warn(site)
    rank_worn_nodes(replace(ask(site), workloads=find_none))
    assert read_record(site) == [(WORN, True, "failed")]

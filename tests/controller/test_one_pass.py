"""What a pass looks at, loads and judges, and when it is over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from quiet_site import FLEET, NODES, Site

from assay.actions.workloads import Job
from assay.controller.known.memory import Memory
from assay.controller.looking.judging import grouped
from assay.controller.looking.look import look_at_nodes, wants_load
from assay.controller.once import PASSES, PassReport, decide_now, reconcile_once, settle
from assay.ledger.store import Ledger
from assay.model.entry import Entry
from assay.model.errors import Trouble
from assay.model.evidence import Evidence
from assay.observe.store import EvidenceStore

ONE, OTHER = NODES[0], NODES[1]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "ledger.sqlite", tmp_path / "home")
    made.later(minutes=1)
    yield made
    made.ledger.close()


def rebooted(site: Site) -> Memory:
    """Let one node have been rebooted for a fault, and wait for its proof."""
    memory = Memory(site.desk)
    site.fault(ONE)
    decide_now(memory)
    site.settle(ONE)
    site.later(minutes=3)
    return memory


def test_what_is_watched_is_judged_of_quiet_nodes_and_what_is_required_of_the_others(site: Site):
    memory = rebooted(site)
    groups = grouped(memory.situation(), memory.stories(), [ONE, OTHER, OTHER, "a stranger"])
    assert groups == {("production", "test"): [ONE], ("fabric", "production"): [OTHER]}


def test_nothing_that_is_required_is_judged_before_the_repair_is_proved(site: Site):
    memory = Memory(site.desk)
    site.fault(ONE)
    decide_now(memory)
    assert grouped(memory.situation(), memory.stories(), [ONE]) == {}


@pytest.mark.parametrize("jobs", [(), (Job("7", "llama", "customer", ""),), None])
def test_only_a_node_that_waits_for_its_proof_and_is_known_to_be_idle_is_loaded(site: Site, jobs):
    memory = rebooted(site)
    site.far.jobs[ONE] = jobs or ()
    site.far.silent = jobs is None
    situation = memory.situation([OTHER])
    loaded = {view.name: wants_load(situation, view) for view in situation.nodes}
    assert loaded == {ONE: jobs == (), OTHER: False}


def test_a_channel_that_falls_silent_is_told_when_it_does_and_not_again(site: Site, monkeypatch):
    memory, answers = Memory(site.desk), iter([{"v": {"value": 1}}, {"failed": "no answer"}, {"failed": "no answer"}])
    memory.news()

    def collect(_fleet, names, **_):
        channels = {"probe": next(answers)}
        return {name: Evidence(name, site.clock.now(), channels) for name in names}

    monkeypatch.setattr("assay.controller.looking.look.collect", collect)
    told = []
    for _ in range(3):
        site.later(minutes=5)
        look_at_nodes(site.desk, memory.situation(), [ONE])
        told.append([(one.kind, one.body["channel"]) for one in memory.news()])
    assert told == [[], [("observe.failed", "probe")], []]


def test_passes_are_repeated_until_one_changes_nothing():
    busy, quiet = PassReport("now", [Entry("1", "now", "fault")]), PassReport("now")
    numbers: list[int] = []
    assert settle(lambda number: (numbers.append(number), quiet if number == 2 else busy)[1]) == [busy, busy, quiet]
    assert numbers == [0, 1, 2]
    assert len(settle(lambda _: busy)) == PASSES


def test_a_pass_over_a_node_that_the_inventory_lacks_is_refused(tmp_path: Path, site: Site):
    with pytest.raises(Trouble, match="the inventory has no node n9999"):
        reconcile_once(FLEET, site.ledger, EvidenceStore(tmp_path), site.clock, nodes=["n9999"], home=tmp_path)


def test_a_pass_over_no_node_changes_nothing(tmp_path: Path, site: Site):
    before = site.ledger.head()
    report = reconcile_once(
        FLEET, site.ledger, EvidenceStore(tmp_path / "evidence"), site.clock, lambda _: site.far, nodes=[],
        home=tmp_path / "home", reports=tmp_path / "reports", scan_fabric=False,
    )  # fmt: skip
    assert [entry.kind for entry in report.entries if entry.node in (ONE, OTHER)] == []
    assert (report.runs, Ledger.head(site.ledger) - before) == ([], len(report.entries))

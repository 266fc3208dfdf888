"""How far nodes are what the repository says, from a real ledger: each state, and every way of not knowing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from assay.act.loop.sync_reading import ExpectedChecks, read_sync
from assay.decide.drift.sync_report import NodeSync, SyncReport
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.node_projection import project_node_states
from assay.model.entries.rollouts import NodeProvenEntry, RolloutGroup, RolloutStartedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import CheckVerdict, Outcome, SuiteRun
from tests.act.quiet_site import FLEET, START, Site

NODE = "n0001"
EXPECTED = ExpectedChecks(FLEET)
DRIVER = "suites/zap/test_configuration.py::test_driver_version"
FIRMWARE = "suites/zap/test_firmware.py::test_firmware_is_the_bundles"
PERSISTENCE = "suites/zap/test_gpu_settings.py::test_persistence_mode"
SPEC = f"specs/nodes/{FLEET.nodes[NODE].spec}.yaml"
WRONG_DRIVER = f"driver 1.2, expected 570 ({SPEC}:1)"
Said = tuple[CheckVerdict, str]


class SyncedSite(Site):
    """A site whose checks of drift are recorded as wanted."""

    def check(
        self,
        said: Mapping[str, Said] = {},
        *,
        commit: str = "c0ffee",
        without: str = "",
        judged_by: str = "",
        age_h: float = 0,
        phase: str = "",
    ) -> None:
        """Record a run on the node: everything passes, but what is `said` by check, or by check and part."""
        at = (self.clock.at - timedelta(hours=age_h)).isoformat()
        node, number = FLEET.nodes[NODE], next(self.serial)
        told = []
        for expected in [one for one in EXPECTED.of_node(node) if not phase or phase in one.check.phases]:
            judged_today = EXPECTED.find_own_hash(expected.check.id, node)
            for part in expected.parts:
                check = expected.check
                verdict, reason = said.get(f"{check.id}[{part}]", said.get(check.id, ("pass", "")))
                if check.id != without:
                    subject, hash_ = f"{node.subject}/{part}".rstrip("/"), judged_by or judged_today
                    phases = tuple(check.phases)
                    told.append(
                        Outcome(
                            check.id,
                            subject,
                            NODE,
                            verdict,
                            reason,
                            check.fault,
                            phases,
                            evidence="e",
                            evidence_at=at,
                            judged_by=hash_,
                        )
                    )
        self.ledger.record(SuiteRun(f"sync-{number}", at, spec_commit=commit), told, self.clock.at)

    def report(self, *names: str) -> SyncReport:
        states = project_node_states(self.ledger.entries())
        return read_sync(FLEET, self.ledger, states, self.clock.at, names or (NODE,))

    def see(self) -> NodeSync:
        return self.report().nodes[0]


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedSite]:
    made = SyncedSite(tmp_path / "ledger.sqlite", tmp_path / "home")
    made.later(minutes=1)
    yield made
    made.ledger.close()


def test_a_node_is_in_sync_when_every_check_of_drift_has_passed(synced):
    synced.check()
    report = synced.report()
    assert report.is_in_sync
    assert report.nodes[0].items == ()
    assert report.nodes[0].revision == report.revision
    assert [(pool.pool, pool.nodes, pool.counts["in_sync"]) for pool in report.pools] == [("h100-a", 1, 1)]


def test_a_difference_is_named_with_its_place_and_its_begin(synced):
    synced.check(commit="before")
    synced.later(minutes=10)
    first = synced.clock.at
    synced.check({DRIVER: ("fail", WRONG_DRIVER)})
    synced.later(minutes=10)
    synced.check({DRIVER: ("fail", WRONG_DRIVER), PERSISTENCE + "[gpu3]": ("fail", "persistence mode is off")})
    seen = synced.see()
    driver, persistence = sorted(seen.items, key=lambda item: item.what)
    assert (seen.state, seen.revision) == ("drifted", "before")
    assert (driver.what, driver.wanted, driver.seen) == ("driver", "570", "1.2")
    rule = FLEET.lines["LifecyclePolicy/default", "faults.settings-in-production"]
    brought = "host.sysctls, host.transparent_hugepages, host.governor at once; anything else: ticket"
    assert seen.remedies == (f"host.config.drift: brought in service: {brought} [{rule} settings-in-production]",)
    assert driver.where == FLEET.lines[f"NodeSpec/{FLEET.nodes[NODE].spec}", "driver"]  # where it is now
    assert driver.since == first.isoformat()
    assert (persistence.what, persistence.wanted) == ("gpu3 persistence mode", "")
    assert persistence.where == FLEET.lines[f"NodeSpec/{FLEET.nodes[NODE].spec}", "gpu_settings.persistence"]
    assert persistence.since == synced.clock.at.isoformat()


@pytest.mark.parametrize(
    ("check", "reason", "path"),
    [
        ("suites/zap/test_settings.py::test_secure_boot", "secure boot is on", "boot"),
        ("suites/production/test_kernel.py::test_kernel_version", "kernel 5.15, expected 6.8", "host.kernel"),
    ],
)
def test_a_check_of_one_value_has_the_place_of_that_value(synced, check, reason, path):
    synced.check({check: ("fail", reason)})
    (item,) = synced.see().items
    assert item.where == FLEET.lines[f"NodeSpec/{FLEET.nodes[NODE].spec}", path]


def test_the_begin_is_after_the_last_pass_and_of_the_same_difference(synced):
    for reason in (WRONG_DRIVER, "", "driver 1.1, expected 570", WRONG_DRIVER):
        synced.check({DRIVER: ("fail", reason)} if reason else {})
        synced.later(minutes=1)
    (driver,) = synced.see().items
    assert driver.since == (synced.clock.at - timedelta(minutes=1)).isoformat()


def test_one_of_two_differences_keeps_its_begin_when_the_other_comes(synced):
    bios, hca = "BIOS 2.6.9, expected 2.7.3 (f.yaml:1)", "HCA_6 28.4, expected 28.5 (f.yaml:2)"
    synced.check({FIRMWARE: ("fail", bios)})
    begin = synced.clock.at.isoformat()
    synced.later(minutes=5)
    synced.check({FIRMWARE: ("fail", f"{bios}; {hca}")})
    assert {item.what: item.since for item in synced.see().items} == {
        "BIOS": begin,
        "HCA_6": synced.clock.at.isoformat(),
    }


COUNTING = sum("production" in one.check.phases for one in EXPECTED.of_node(FLEET.nodes[NODE]))
OLD = "its evidence is older than 1 h"
CHANGED = "not judged since its spec or its check has changed"


@pytest.mark.parametrize(
    ("run", "what", "why"),
    [
        (None, f"{COUNTING} checks", "never judged"),
        ({"without": DRIVER}, "driver version", "never judged"),
        ({"said": {DRIVER: ("error", "bmc: failed: timeout")}}, "driver version", "bmc: failed: timeout"),
        ({"said": {DRIVER: ("skip", "unsupported here")}}, "driver version", "unsupported here"),
        ({"age_h": 1.1}, None, OLD),
        ({"judged_by": "another"}, None, CHANGED),
        ({"said": {DRIVER: ("fail", WRONG_DRIVER)}, "judged_by": "another"}, None, CHANGED),
    ],
)  # fmt: skip
def test_what_nobody_knows_is_never_in_sync(synced, run, what, why):
    if run is not None:
        synced.check(**run)
    report = synced.report()
    (item,) = report.nodes[0].items
    assert (report.nodes[0].state, report.is_in_sync) == ("unknown", False)
    assert report.nodes[0].remedies == ()
    assert (item.wanted, item.seen, item.where) == ("", f"unknown: {why}", "")
    assert what is None or item.what == what


def test_an_old_difference_is_shown_and_is_not_known_any_more(synced):
    synced.check({DRIVER: ("fail", WRONG_DRIVER)}, age_h=2)
    seen = synced.see()
    assert seen.state == "unknown"
    assert {item.seen for item in seen.items} == {"1.2", f"unknown: {OLD}"}


def test_evidence_from_before_a_repair_proves_nothing(synced):
    synced.check()
    synced.later(minutes=1)
    synced.say("certified", NODE)
    assert (synced.see().state, synced.see().revision) == ("unknown", "c0ffee")
    synced.later(minutes=1)
    synced.check()
    assert synced.see().state == "in_sync"


def test_a_hold_keeps_a_drifted_node_until_it_ends(synced):
    synced.check({DRIVER: ("fail", WRONG_DRIVER)})
    synced.say("hold", NODE, until=(synced.clock.at + timedelta(minutes=30)).isoformat())
    assert (synced.see().state, synced.see().held_by) == ("held", "ann: as planted")
    synced.later(minutes=31)
    assert synced.see().state == "drifted"


def test_a_node_before_service_is_unknown_until_the_checks_of_service_have_run(synced):
    name = next(iter(set(FLEET.nodes) - {NODE}))
    states = project_node_states(
        [make_enrolled_entry(NODE, "h100-a", "seatrial", START), make_enrolled_entry(name, "h100-a", "retired", START)]
    )
    synced.check(phase="seatrial")
    (node,) = read_sync(FLEET, synced.ledger, states, synced.clock.at, [NODE, name]).nodes
    assert (node.node, node.state) == (NODE, "unknown")
    synced.check()
    assert read_sync(FLEET, synced.ledger, states, synced.clock.at, [NODE]).is_in_sync


def test_a_hold_on_a_node_in_sync_changes_nothing(synced):
    synced.check()
    synced.say("hold", NODE)
    assert synced.see().state == "in_sync"


def test_a_node_that_is_ordered_to_zap_is_rolling_until_somebody_holds_it(synced):
    synced.check({DRIVER: ("fail", WRONG_DRIVER)})
    synced.say("move", NODE, to="zap")
    assert synced.see().state == "rolling"
    assert synced.see().items[0].what == "driver"
    synced.say("hold", NODE)
    assert synced.see().state == "held"


def test_a_node_of_a_rollout_is_rolling_until_the_rollout_has_proved_it(synced):
    groups = (RolloutGroup("zap", "driver 1.2 → 570", "before", (NODE,)),)
    started = RolloutStartedEntry("r1", "before", "after", groups)
    synced.check(commit="before")
    synced.later(minutes=1)
    synced.check({DRIVER: ("fail", WRONG_DRIVER)}, commit="after")
    synced.ledger.append(started.make_entry("r1", synced.clock.at.isoformat()))
    assert (synced.see().state, synced.see().revision) == ("rolling", "before")
    synced.later(minutes=1)
    synced.check()
    assert synced.see().state == "rolling"
    proven = NodeProvenEntry("r1", "every check passes")
    synced.ledger.append(LedgerEntry("r1-proven", synced.clock.at.isoformat(), proven.kind, NODE, proven.to_body()))
    assert synced.see().state == "in_sync"


def test_nodes_without_a_ledger_are_unknown():
    report = read_sync(FLEET, None, {}, START)
    assert {node.state for node in report.nodes} == {"unknown"}
    assert len(report.nodes) == len(FLEET.nodes)

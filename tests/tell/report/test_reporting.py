"""Allure results have identities that last, and a second run shows as a trend."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from urllib.request import urlopen

import pytest

from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import NodeEnrolledEntry
from assay.model.errors import AssayError
from assay.model.evidence import pack_object
from assay.model.faults.fault_record import FaultRecord
from assay.model.outcome import FailureArtefact, Measurement, Outcome, SuiteRun, format_measurement
from assay.model.ticket import Ticket
from assay.tell.report.allure import (
    ReportAttachments,
    allure_result,
    find_incident,
    list_categories,
    write_allure_results,
)
from assay.tell.report.latest_outcomes import HolderStatus, LatestOutcomes
from assay.tell.report.report_builder import (
    ALLURE_HISTORY,
    AllureTools,
    ReportPages,
    build_reports,
)
from tests.support.places import ROOT

pytest_plugins = ["pytester"]

FLEET = load_fleet(ROOT)
RUN = SuiteRun("20261121T120000.000-abcdef", "2026-11-21T12:00:00+00:00", ("seatrial",), ("n0003",))
SECOND = replace(RUN, id="20261121T130000.000-abcdef", at="2026-11-21T13:00:00+00:00")
WIDTH = Measurement("pcie_width", 8, "lanes", at_least=16.0, source="specs/nodes/hgx-h100.yaml:58")
FAILED = Outcome(
    "suites/seatrial/test_gpu.py::test_pcie_link", "h100-a/n0003/gpu3", "n0003", "fail", "pcie_width 8 lanes",
    "gpu.pcie.degraded", ("seatrial", "production"), evidence="ab" * 32, evidence_at="2026-11-21T11:59:00+00:00",
    measurements=(WIDTH,),
)  # fmt: skip
MENDED = replace(FAILED, verdict="pass", reason="", evidence="cd" * 32, evidence_at="2026-11-21T12:59:00+00:00")
WELL = replace(MENDED, subject="h100-a/n0003/gpu4", evidence="ab" * 32, evidence_at=FAILED.evidence_at)
HOT = replace(FAILED, check="suites/production/test_gpu.py::test_gpu_temperature", reason="88 °C", fault="gpu.thermal")


def keep(reports: Path, run: SuiteRun, *outcomes: Outcome, ended: bool = True) -> Path:
    """Write a run as `validate` does."""
    path = reports / "runs" / run.id / "run.sqlite"
    path.parent.mkdir(parents=True)
    writer = OutcomeWriter(path, run)
    for outcome in outcomes:
        writer(outcome)
    if ended:
        writer.set_about(ended=run.at)
    writer.close()
    return path


def held(folder: Path, *outcomes: Outcome) -> HolderStatus:
    """Return the one holder of these outcomes."""
    keep(folder, RUN, *outcomes)
    with closing(record(folder)) as ledger, LatestOutcomes(ledger, folder, {}) as standing:
        (holder,) = standing.read_holders()
    return holder


def record(reports: Path) -> Ledger:
    """Return the ledger beside the runs, with all that have ended."""
    ledger = Ledger.open(reports / "ledger.sqlite")
    for path in list_runs(reports):
        with suppress(AssayError), StoredRun.open(path) as stored:
            if stored.has_ended:
                ledger.record(stored.run, stored.outcomes())
    return ledger


def build(reports: Path) -> ReportPages:
    """Build the reports of all ended runs."""
    with closing(record(reports)) as ledger:
        return build_reports(FLEET, ledger, reports, reports)


def labels_of(document: dict) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label in document["labels"]:
        found.setdefault(label["name"], []).append(label["value"])
    return found


def steps_of(document: dict) -> dict[str, dict]:
    return {step["name"]: step for step in document["steps"]}


needs_node = pytest.mark.skipif(
    AllureTools.find_installed(ROOT) is None, reason="node_modules is not installed: make test installs it"
)


def test_a_node_is_one_result_with_where_when_and_by_which_specs(tmp_path):
    labels = labels_of(allure_result(FLEET, held(tmp_path, FAILED, WELL), RUN.id))
    assert (labels["pool"], labels["rack"], labels["node"]) == (["h100-a"], ["r01"], ["n0003"])
    assert labels["phase"] == ["seatrial", "production"]
    assert labels["fault"] == ["gpu.pcie.degraded"]
    assert labels["run"] == [RUN.id]
    assert labels["spec"][0].startswith(FLEET.commit[:12] or "no commit")


def test_equal_causes_of_many_nodes_are_one_category_in_the_words_of_the_catalogue(tmp_path):
    count = "suites/seatrial/test_gpu.py::test_gpu_answers"
    lost = replace(FAILED, check=count, fault="gpu.missing", reason="gpus 7, expected 8")
    other = replace(lost, subject="h100-a/n0004/gpu1", node="n0004", reason="gpus 6, expected 8")
    holders = [held(tmp_path / "a", lost, FAILED), held(tmp_path / "b", other), held(tmp_path / "c", WELL)]
    incidents = Counter(find_incident(FLEET, holder) for holder in holders)
    assert incidents == {"gpu.missing": 2, "": 1}
    first, last = list_categories(FLEET, incidents)
    assert find_incident(replace(FLEET, fault_catalogs={}), holders[1]) == "gpu.missing"
    assert first["name"] == f"{FLEET.fault_catalog.describe('gpu.missing')} (gpu.missing)"
    assert first["groupByMessage"] is last["groupByMessage"] is False
    labels = labels_of(allure_result(FLEET, holders[1], RUN.id))
    assert re.search(first["matchers"]["labels"]["incident"], labels["incident"][0])
    assert last["matchers"] == {"statuses": ["broken"]}


def test_a_fault_that_logs_alone_told_is_a_failure_of_its_node_and_a_category(tmp_path):
    words = ("hardware", "reboot", 1, RUN.at, RUN.at, "fell off the bus")
    lost = FaultRecord("f", "gpu.xid.79", "h100-a/n0003/gpu4", "catastrophic", *words, marks={"kernel": "b:1"})
    others: list[dict] = [{"severity": "informational"}, {"cleared_at": SECOND.at}, {"marks": {"check": "x"}}]
    quiet = [replace(lost, **other) for other in others]
    for faults, status, incident in (([lost, *quiet], "failed", "gpu.xid.79"), (quiet, "passed", "")):
        states = {"n0003": NodeState("n0003", "h100-a", "production", "", "", "", "", faults=tuple(faults))}
        results, holder = tmp_path / f"results-{status}", held(tmp_path / status, WELL)
        counts = write_allure_results(results, FLEET, [holder], RUN.id, ReportAttachments(), states=states)
        assert counts == {incident: 1}
        (document,) = [json.loads(path.read_text()) for path in results.glob("*-result.json")]
        assert document["status"] == status
        assert ("logs: 1 of 1 failed" in steps_of(document)) == bool(incident)
        assert labels_of(document).get("incident", [""]) == [incident]


def test_the_message_counts_what_failed_and_names_it(tmp_path):
    document = allure_result(FLEET, held(tmp_path, FAILED, WELL, HOT), RUN.id)
    assert document["status"] == "failed"
    said = "2 of 3 checks failed: gpu_temperature gpu3 (88 °C); pcie_link gpu3 (pcie_width 8 lanes)"
    assert document["statusDetails"]["message"] == said


def test_each_area_is_a_step_and_each_failure_one_below_it(tmp_path):
    passing = replace(WELL, check="suites/zap/test_firmware.py::test_no_firmware_waits")
    steps = steps_of(allure_result(FLEET, held(tmp_path, FAILED, WELL, passing), RUN.id))
    assert list(steps) == ["seatrial/gpu: 1 of 2 failed", "zap/firmware: 1 passed"]
    (failing,) = steps["seatrial/gpu: 1 of 2 failed"]["steps"]
    assert failing["name"] == "pcie_link gpu3: pcie_width 8 lanes"
    assert {one["name"]: one["value"] for one in failing["parameters"]} == {
        "expected": "at least 16 lanes", "seen": "8 lanes", "source": "specs/nodes/hgx-h100.yaml:58",
        "fault": "gpu.pcie.degraded", "run": RUN.id,
    }  # fmt: skip
    assert [step["name"] for step in failing["steps"]] == [
        "pcie_width 8 lanes (at least 16; specs/nodes/hgx-h100.yaml:58)"
    ]
    assert steps["zap/firmware: 1 passed"]["steps"] == []
    assert format_measurement(Measurement("cables_matching", 416)) == "cables_matching 416"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"verdict": "pass", "reason": ""}, "passed"),
        ({}, "failed"),
        ({"verdict": "error"}, "broken"),
        ({"verdict": "skip"}, "skipped"),
        ({"known": "https://example.net/1"}, "passed"),
        ({"observed": True}, "passed"),
    ],
)
def test_a_node_stands_as_what_decides_about_it(changed, status, tmp_path):
    beside = [] if changed.get("verdict") == "skip" else [WELL]
    assert allure_result(FLEET, held(tmp_path, replace(FAILED, **changed), *beside), RUN.id)["status"] == status


def test_what_is_excused_is_shown_with_its_issue_and_counts_for_nothing(tmp_path):
    document = allure_result(FLEET, held(tmp_path, replace(FAILED, known="https://example.net/1"), WELL), RUN.id)
    (area,) = document["steps"]
    assert (area["name"], area["status"]) == ("seatrial/gpu: 1 excused or on trial", "passed")
    assert area["steps"][0]["name"] == "known (https://example.net/1): pcie_link gpu3: pcie_width 8 lanes"
    assert labels_of(document)["tag"] == ["known issue"]
    assert document["statusDetails"] == {}


def test_what_one_cause_did_to_many_checks_of_an_area_is_one_step(tmp_path):
    lost = [replace(FAILED, subject=f"h100-a/n0003/gpu{at}", verdict="error", reason="no evidence") for at in range(8)]
    (area,) = allure_result(FLEET, held(tmp_path, *lost), RUN.id)["steps"]
    assert area["name"] == "seatrial/gpu: 8 of 8 could not be judged"
    (step,) = area["steps"]
    assert step["name"].startswith("8 checks: no evidence (pcie_link gpu0, pcie_link gpu1, ")


def test_the_identity_is_the_node_and_nothing_that_varies(tmp_path):
    first = allure_result(FLEET, held(tmp_path / "a", FAILED), RUN.id)
    later = allure_result(replace(FLEET, commit="f" * 40), held(tmp_path / "b", MENDED, WELL), SECOND.id)
    for key in ("historyId", "testCaseId", "fullName", "parameters", "name"):
        assert first[key] == later[key], key
    assert first["uuid"] != later["uuid"]
    other = allure_result(
        FLEET, held(tmp_path / "c", replace(FAILED, subject="h100-a/n0004/gpu3", node="n0004")), RUN.id
    )
    assert other["historyId"] != first["historyId"]
    assert other["parameters"] != first["parameters"]


def test_a_rack_and_a_fabric_have_results_of_their_own(tmp_path):
    rack = labels_of(
        allure_result(FLEET, held(tmp_path / "a", replace(FAILED, subject="h100-a/rack-r01", node="")), RUN.id)
    )
    assert (rack["pool"], rack["rack"]) == (["h100-a"], ["r01"])
    fabric = allure_result(
        FLEET, held(tmp_path / "b", replace(FAILED, subject="fabric/compute/rail-0", node="")), RUN.id
    )
    assert (fabric["name"], labels_of(fabric)["node"]) == ("fabric/compute", ["compute"])


def test_what_was_kept_of_a_failure_is_attached_where_it_still_is(tmp_path):
    kept = [
        FailureArtefact("log/n0003", "ab" * 32, 5), FailureArtefact("evidence/n0003", "cd" * 32, 2),
        FailureArtefact("evidence/cut", "02" * 32, 2),
        FailureArtefact("evidence/gone", "ef" * 32, 5), FailureArtefact("log/n0003: not stored: no space", "", 0),
    ]  # fmt: skip
    packed = pack_object(b'{"node":1}')
    files = {
        f"logs/ab/{'ab' * 32}.txt": b"hello", f"objects/cd/{'cd' * 32}.json.gz": packed,
        f"objects/02/{'02' * 32}.json.gz": packed[:-1],
    }  # fmt: skip
    for name, each in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(each)
    holder = held(tmp_path, replace(FAILED, artefacts=tuple(kept)))
    attachments = ReportAttachments((tmp_path / "logs", tmp_path / "objects"))
    assert write_allure_results(tmp_path / "results", FLEET, [holder], RUN.id, attachments).total() == 1
    (document,) = [json.loads(path.read_text()) for path in (tmp_path / "results").glob("*-result.json")]
    (step,) = document["steps"][0]["steps"]
    content = {one["name"]: (tmp_path / "results" / one["source"]).read_text() for one in step["attachments"]}
    assert content == {"log/n0003": "hello", "evidence/n0003": '{"node":1}'}
    types = {one["name"]: (one["type"], Path(one["source"]).suffix) for one in step["attachments"]}
    assert types["evidence/n0003"] == ("application/json", ".json")
    missing = [one["value"] for one in step["parameters"] if one["name"] == "not attached"]
    assert missing == [
        f"evidence/cut, sha256 {'02' * 32}", f"evidence/gone, sha256 {'ef' * 32}", "log/n0003: not stored: no space",
    ]  # fmt: skip


def test_a_report_takes_no_more_along_than_it_may(tmp_path):
    for digest in ("ab" * 32, "cd" * 32):
        path = tmp_path / digest[:2] / f"{digest}.txt"
        path.parent.mkdir()
        path.write_text("12345678")
    attachments = ReportAttachments((tmp_path,), max_bytes=10)
    first, second = (attachments.find_file(FailureArtefact("log", digest, 8)) for digest in ("ab" * 32, "cd" * 32))
    assert (first is not None, second) == (True, None)


def test_there_must_be_a_run_to_report_on(tmp_path):
    keep(tmp_path, RUN, FAILED, ended=False)
    with pytest.raises(AssayError, match="there is no run"):
        build(tmp_path)


def test_without_node_there_is_the_overview_and_what_to_run_for_the_rest(tmp_path, monkeypatch):
    keep(tmp_path, RUN, FAILED)
    monkeypatch.setattr("assay.tell.report.report_builder.sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(AssayError, match="npm ci"):
        build(tmp_path)
    assert "1 incident on 1 node in the first run" in (tmp_path / "index.html").read_text()


def read_points(folder: Path) -> list[tuple[str, int, dict[str, str]]]:
    """Return each point of the trend: its run, its time, and the status of each node by its name."""
    points = [json.loads(line) for line in (folder / ALLURE_HISTORY).read_text().splitlines()]
    return [
        (point["uuid"], point["timestamp"], {each["name"]: each["status"] for each in point["testResults"].values()})
        for point in points
    ]


def read_allure(folder: Path) -> tuple[dict[str, int], dict[str, list[tuple[str, int]]]]:
    """Return what Allure's page shows: the time of each point of its trend, and each node's history."""
    data = folder / "allure" / "data"
    (charts,) = folder.joinpath("allure").rglob("charts.json")
    shown = next(
        chart for chart in json.loads(charts.read_text())["general"].values() if chart["type"] == "statusDynamics"
    )
    results = [json.loads(path.read_text()) for path in (data / "test-results").glob("*.json")]
    histories = {one["name"]: [(past["status"], past["start"]) for past in one.get("history", ())] for one in results}
    return {point["name"]: point["timestamp"] for point in shown["data"]}, histories


@needs_node
def test_the_trend_has_every_run_at_its_own_time_from_the_first(tmp_path):
    third = replace(RUN, id="20261121T140000.000-abcdef", at="2026-11-21T14:00:00+00:00")
    keep(tmp_path, RUN, WELL, replace(WELL, subject="h100-a/n0004", node="n0004"))
    keep(tmp_path, SECOND, replace(FAILED, subject=WELL.subject, evidence_at=MENDED.evidence_at))
    keep(tmp_path, third, replace(MENDED, subject=WELL.subject, evidence_at="2026-11-21T13:59:00+00:00"))
    build(tmp_path)
    runs = [(run.id, ms(run.at)) for run in (RUN, SECOND, third)]
    points = read_points(tmp_path)
    assert [(name, at) for name, at, _ in points] == runs
    assert [statuses for *_, statuses in points] == [
        {"n0003": "passed", "n0004": "passed"}, {"n0003": "failed"}, {"n0003": "passed"},
    ]  # fmt: skip
    trend, histories = read_allure(tmp_path)
    assert [at for name, at in trend.items() if name != "current"] == [at for _, at in runs[:2]]
    assert histories["n0003"] == [("failed", ms(MENDED.evidence_at)), ("passed", ms(WELL.evidence_at))]
    assert histories["n0004"] == [], "its only judgement is the present one"


@needs_node
def test_a_judgement_of_the_same_evidence_stands_once_in_the_history_of_its_node(tmp_path):
    for number, run in enumerate(
        (RUN, SECOND, replace(RUN, id="20261121T150000.000-abcdef", at="2026-11-21T15:00:00+00:00"))
    ):
        keep(tmp_path, run, FAILED)
        build(tmp_path)
        trend, histories = read_allure(tmp_path)
        assert (len(trend), histories["n0003"]) == (number + 1, [])


@needs_node
def test_what_comes_and_goes_is_flaky_and_nothing_is_a_retry(tmp_path):
    for hour, outcome in enumerate((FAILED, MENDED, FAILED)):
        at = f"2026-11-21T{12 + hour}:00:00+00:00"
        keep(tmp_path, replace(RUN, id=f"20261121T{12 + hour}0000.000-abcdef", at=at), replace(outcome, evidence_at=at))
    build(tmp_path)
    (result,) = [json.loads(path.read_text()) for path in (tmp_path / "allure/data/test-results").glob("*.json")]
    assert (result["flaky"], result["retries"]) == (True, [])


@needs_node
def test_what_the_ledger_learnt_since_the_last_report_is_in_the_next_one(tmp_path):
    keep(tmp_path, RUN, WELL)
    page = build(tmp_path).allure
    page.write_text("kept")
    assert build(tmp_path).allure.read_text() == "kept", "nothing has changed"
    with closing(record(tmp_path)) as ledger:
        ledger.append(NodeEnrolledEntry("h100-a", "production", "n0003").make_entry("e", RUN.at, "n0003"))
    assert build(tmp_path).allure.read_text() != "kept"


def ms(at: str) -> int:
    return int(datetime.fromisoformat(at).timestamp() * 1000)


def test_a_result_leads_to_the_page_and_the_tickets_of_its_node(tmp_path):
    policies = {
        name: one.model_copy(update={"pages": "https://assay.acme.net"}) for name, one in FLEET.policies.items()
    }
    tickets = {"n0003": {"1034a9c8": Ticket("1034a9c8", "k", "Reseat gpu4 of n0003", "n0003")}}
    for fleet in (FLEET, replace(FLEET, policies=policies)):
        folder = tmp_path / f"results-{fleet is FLEET}"
        holder = held(tmp_path / f"runs-{fleet is FLEET}", FAILED)
        write_allure_results(folder, fleet, [holder], RUN.id, ReportAttachments(), tickets)
        (document,) = [json.loads(path.read_text()) for path in folder.glob("*-result.json")]
        assert [link["url"] for link in document["links"]] == (
            [] if fleet is FLEET else ["https://assay.acme.net/nodes/n0003", "https://assay.acme.net/tickets/1034a9c8"]
        )


@needs_node
def test_an_old_history_gives_way_to_the_runs_themselves(tmp_path):
    keep(tmp_path, RUN, FAILED)
    point = {"uuid": "5d2c", "name": f"run {RUN.id}", "timestamp": 5, "testResults": {}}
    (tmp_path / ALLURE_HISTORY).write_text(json.dumps(point) + "\n{half a line")
    build(tmp_path)
    assert [name for name, *_ in read_points(tmp_path)] == [RUN.id]


@needs_node
def test_a_node_of_the_overview_links_to_the_result_that_allure_makes(tmp_path):
    keep(tmp_path, RUN, FAILED)
    build(tmp_path)
    page = (tmp_path / "index.html").read_text()
    (name,) = set(re.findall(r"allure/index.html#([0-9a-f]{32})", page))
    assert list((tmp_path / "allure").rglob(f"{name}.json"))


@pytest.mark.parametrize("damage", [b"", b"no run at all", None])
def test_a_damaged_run_hides_no_other(tmp_path, damage):
    keep(tmp_path, RUN, FAILED)
    path = keep(tmp_path, SECOND, replace(MENDED, subject="h100-a/n0003/gpu5"))
    record(tmp_path).close()
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = b"?" * (len(content) - len(content) // 2)
    path.write_bytes(bytes(content) if damage is None else damage)
    with suppress(AssayError):  # where Node is not installed
        assert SECOND.id in "".join(build(tmp_path).unread)
    assert "pcie_width 8 lanes" in (tmp_path / "index.html").read_text()


@pytest.mark.slow
@needs_node
def test_serving_shows_both_pages_until_the_user_ends_it(tmp_path):
    root = tmp_path / "fleet"
    root.mkdir()
    for name in ("inventory", "specs", "node_modules"):
        (root / name).symlink_to(ROOT / name)
    keep(root / "reports", RUN, FAILED)
    (root / ".assay").mkdir()
    with closing(Ledger.open(root / ".assay" / "ledger.sqlite")) as ledger:
        ledger.record(RUN, [FAILED])
    command = [sys.executable, "-m", "assay", "report", "--serve", "--fleet", str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        address = re.search(r"http://127\.0\.0\.1:\d+/", served.stderr.readline())[0]
        for page in ("", "allure/"):
            with urlopen(address + page, timeout=60) as answer:
                assert b"<html" in answer.read()
        served.send_signal(signal.SIGINT)
        assert served.wait(60) == 0


def test_plain_pytest_with_alluredir_carries_the_same_labels(fleet_copy, tmp_path):
    fleet_copy.collected("n0003")
    folder = tmp_path / "results"
    options = ("-p", "allure_pytest.plugin", "--alluredir", str(folder))
    fleet_copy.pytest("--assay-node", "n0003", "-k", "pcie_link and gpu3", *options)
    (document,) = [json.loads(path.read_text()) for path in folder.glob("*-result.json")]
    assert len(list(folder.iterdir())) == 1, "a file for each fixture of each check is 26,844 for four nodes"
    labels = labels_of(document)
    assert (labels["pool"], labels["rack"], labels["node"]) == (["h100-a"], ["r01"], ["n0003"])
    assert labels["phase"] == ["seatrial", "production"]
    assert "spec" in labels
    assert [step["name"].split(" (")[0] for step in document["steps"]] == [
        "pcie_width 16 lanes", "pcie_generation 5 generation",
    ]  # fmt: skip
    assert [parameter["name"] for parameter in document["parameters"]] == ["subject"]

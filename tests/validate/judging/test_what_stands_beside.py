"""Beside an outcome: the issue that excuses it, that its check only observes, and what a failure was judged on."""

from __future__ import annotations

import hashlib
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.model.evidence import EvidenceDocument, encode_canonical_json, find_object_path, pack_object
from assay.model.fleet import Fleet
from assay.model.outcome import CheckSubject, Measurement, Outcome
from assay.validate.judging import failure_notes
from assay.validate.judging.evidence_cache import CachedEvidence, EvidenceCache
from assay.validate.judging.failure_notes import MAX_EXCERPT_BYTES, FailureArtefacts, artefact_folder
from assay.validate.judging.verdict import CheckContext
from tests.support.places import ROOT

pytest_plugins = ["pytester"]

SUITE = """
import pytest

pytestmark = pytest.mark.phase("production")


def test_count(node):
    assert node.gpu.count == 9, f"{node.gpu.count} of 9 GPUs"


def test_passes(node):
    assert node.gpu.count


def test_cannot_tell(node):
    assert node.gpu.no_such_reading
"""
KNOWN = """kind: KnownIssues
name: fleet
issues:
  - issue: https://git.example/issues/7
    match: {{check: "suites/test_own.py::*", node: n0003}}
    reason: slot 9 waits for its GPU
    owner: ann
    expires: "{expires}"
"""
CATALOG = """kind: CheckCatalog
name: own
checks:
  - {{id: "suites/test_own.py::test_count", subject: node, phases: [production]{stage}}}
"""


def by_check(outcomes: list[Outcome]) -> dict[tuple[str, str], Outcome]:
    return {(one.check.rpartition("::")[2], one.node): one for one in outcomes}


def test_a_failure_that_is_known_stays_a_failure_and_names_its_issue(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003", "n0004")
    tomorrow = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%d}"
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text(KNOWN.format(expires=tomorrow))
    found = by_check(fleet_copy.outcomes("--assay-node", "n0003,n0004"))
    known, other = found["test_count", "n0003"], found["test_count", "n0004"]
    assert (known.verdict, known.known, known.counts_against_subject) == ("fail", "https://git.example/issues/7", False)
    assert (other.verdict, other.known, other.counts_against_subject) == ("fail", "", True)
    error = found["test_cannot_tell", "n0003"]
    assert (error.verdict, error.known, error.counts_against_subject) == ("error", "", True)
    assert found["test_passes", "n0003"].known == ""


def test_an_entry_that_has_expired_excuses_nothing(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text(KNOWN.format(expires=today))
    assert by_check(fleet_copy.outcomes("--assay-node", "n0003"))["test_count", "n0003"].counts_against_subject


def test_the_terminal_says_what_is_known(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text(KNOWN.format(expires="2999-01-01"))
    fleet_copy.pytest("--assay-node", "n0003").stdout.fnmatch_lines(
        ["fail *test_count*8 of 9 GPUs  (known: https://git.example/issues/7)"]
    )


def test_a_list_that_cannot_be_read_ends_the_session_before_anything_is_judged(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    (fleet_copy.root / "specs" / "known-issues.yaml").write_text("issues: []\n")
    result = fleet_copy.pytest("--assay-node", "n0003")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert fleet_copy.kept() == []
    result.stderr.fnmatch_lines(["*specs/known-issues.yaml*"])


@pytest.mark.parametrize(("stage", "observed"), [("", False), (", stage: observe", True)])
def test_what_a_check_finds_that_observes_is_marked_so_and_decides_nothing(stage, observed, fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    (fleet_copy.root / "specs" / "checks" / "own.yaml").write_text(CATALOG.format(stage=stage))
    found = by_check(fleet_copy.outcomes("--assay-node", "n0003"))
    assert found["test_count", "n0003"].verdict == "fail"
    assert (found["test_count", "n0003"].observed, found["test_count", "n0003"].counts_against_subject) == (
        observed,
        not observed,
    )
    assert not found["test_passes", "n0003"].observed


@pytest.mark.parametrize("option", ["--reruns=2", "--retries=2", "--force-flaky"])
def test_a_plugin_that_judges_again_until_it_passes_is_refused(option, fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    fleet_copy.pytester.makepyfile(
        stand_in="def pytest_addoption(parser):\n"
        "    parser.addoption('--reruns', type=int)\n"
        "    parser.addoption('--retries', type=int)\n"
        "    parser.addoption('--force-flaky', action='store_true', dest='force_flaky')\n"
    )
    fleet_copy.pytester.syspathinsert()
    result = fleet_copy.pytest("-p", "stand_in", option, "--assay-node", "n0003")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*run again until they pass*"])
    assert fleet_copy.kept() == []


def test_a_check_that_is_marked_flaky_is_an_error(fleet_copy):
    fleet_copy.suite(SUITE.replace("def test_passes", "@pytest.mark.flaky(reruns=3)\ndef test_passes"))
    fleet_copy.collected("n0003")
    found = by_check(fleet_copy.outcomes("--assay-node", "n0003"))["test_passes", "n0003"]
    assert (found.verdict, found.reason) == (
        "error",
        "no check runs again until it passes; only collecting is retried",
    )


def test_a_failure_keeps_the_document_that_was_judged_and_a_pass_nothing(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    document = EvidenceDocument.from_json(json.loads((fleet_copy.evidence / "n0003.json").read_text()))
    content, digest = encode_canonical_json(document.as_json()), document.digest()
    stored = find_object_path(fleet_copy.evidence.parent / "objects", digest)
    stored.parent.mkdir(parents=True)
    stored.write_bytes(pack_object(content))
    found = by_check(fleet_copy.outcomes("--assay-node", "n0003"))
    (kept,) = found["test_count", "n0003"].artefacts
    assert (kept.name, kept.digest, kept.bytes) == ("evidence/n0003", digest, len(content))
    assert found["test_passes", "n0003"].artefacts == ()


def test_a_document_that_the_store_does_not_hold_is_said_not_to_be_kept(fleet_copy):
    fleet_copy.suite(SUITE)
    fleet_copy.collected("n0003")
    (kept,) = by_check(fleet_copy.outcomes("--assay-node", "n0003"))["test_count", "n0003"].artefacts
    assert (kept.name, kept.digest, kept.bytes) == ("evidence/n0003: not stored: No such file or directory", "", 0)


LINE = {"seq": 7, "t_s": 12.5, "text": "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', GPU has fallen off the bus."}
PLAIN = {"seq": 6, "t_s": 11.5, "text": "usb 1-1: new high-speed USB device number 2 using xhci_hcd"}
EVENT = {
    "id": "9",
    "at": "2026-11-21T12:00:00+00:00",
    "severity": "Critical",
    "message": "Drive 3 fault",
    "message_id": "",
}
GOOD = {
    "id": "8",
    "at": "2026-11-21T11:00:00+00:00",
    "severity": "OK",
    "message": "System power is on",
    "message_id": "",
}


class Kept:
    """One failure's trial over one document, and what is kept of it."""

    def __init__(self, folder: Path, fleet: Fleet, lines=(), events=()) -> None:
        channels = {
            "probe": {"kernel_log": {"lines": {"value": list(lines)}}},
            "bmc": {"events": {"value": list(events)}},
        }
        self.folder = folder
        self.trial = CheckContext(
            "suites/x.py::test_y", CheckSubject("a", "n1"), "n1", EvidenceCache(folder / "latest")
        )
        evidence = EvidenceDocument("n1", datetime(2026, 11, 21, tzinfo=UTC), channels)
        self.trial.documents["n1"] = CachedEvidence(evidence, "ab" * 32)
        self.artefacts = FailureArtefacts(folder / "artefacts", folder / "objects", fleet)

    def of(self, reason: str, fault: str = "", measured: str = ""):
        numbers = (Measurement(measured, 1.0),) if measured else ()
        outcome = Outcome("suites/x.py::test_y", "a/n1", "n1", "fail", reason, fault, measurements=numbers)
        return [one for one in self.artefacts.capture(outcome, self.trial) if not one.name.startswith("evidence/")]

    def text(self, digest: str) -> str:
        content = (self.folder / "artefacts" / digest[:2] / f"{digest}.txt").read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        return content.decode()


@pytest.fixture(scope="session")
def catalogued() -> Fleet:
    from assay.declare.loader import load_fleet

    return load_fleet(ROOT)


@pytest.mark.parametrize(
    ("reason", "fault", "measured", "says"),
    [
        (f"the kernel said: {LINE['text']}", "", "", ["kernel 7", "fallen off the bus"]),
        ("GPU 0 is gone", "gpu.xid.79", "", ["kernel 7", "fallen off the bus"]),
        ("critical_events 1, expected at most 0", "bmc.unhealthy", "critical_events", ["sel 9", "Drive 3 fault"]),
        ("a drive is unwell", "bmc.event.drive", "", ["sel 9", "Drive 3 fault"]),
    ],
)
def test_the_lines_that_a_failure_is_about_are_kept_and_no_others(reason, fault, measured, says, tmp_path, catalogued):
    kept = Kept(tmp_path, catalogued, [PLAIN, LINE], [GOOD, EVENT])
    (excerpt,) = kept.of(reason, fault, measured)
    assert excerpt.name == "log/n1"
    text = kept.text(excerpt.digest)
    assert (len(text.encode()), len(text.splitlines())) == (excerpt.bytes, 1)
    assert all(piece in text for piece in says)


def test_a_failure_that_is_about_no_log_keeps_none(tmp_path, catalogued):
    assert Kept(tmp_path, catalogued, [PLAIN, LINE], [GOOD, EVENT]).of("7 of 8 GPUs", "gpu.missing") == []
    assert not (tmp_path / "artefacts").exists()


def test_what_many_failures_share_is_there_once(tmp_path, catalogued):
    kept = Kept(tmp_path, catalogued, [LINE])
    first, again = kept.of("gone", "gpu.xid.79"), kept.of("gone", "gpu.xid.79")
    assert first == again
    assert len(list((tmp_path / "artefacts").rglob("*.txt"))) == 1


def test_an_excerpt_is_cut_at_its_beginning_to_what_may_be_kept(tmp_path, catalogued):
    kept = Kept(tmp_path, catalogued, [{**LINE, "seq": number} for number in range(2000)])
    (excerpt,) = kept.of("gone", "gpu.xid.79")
    lines = kept.text(excerpt.digest).splitlines()
    assert MAX_EXCERPT_BYTES - 200 < excerpt.bytes < MAX_EXCERPT_BYTES + 50
    assert lines[0] == f"… {2000 - len(lines) + 1} earlier lines left out"
    assert lines[-1].startswith("kernel 1999 ")


def test_a_capture_that_fails_says_so_and_loses_nothing_else(tmp_path, catalogued, monkeypatch):
    kept = Kept(tmp_path, catalogued, [LINE])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(failure_notes, "_write_once", full)
    outcome = Outcome("suites/x.py::test_y", "a/n1", "n1", "fail", "gone", "gpu.xid.79")
    stored = find_object_path(tmp_path / "objects", "ab" * 32)
    stored.parent.mkdir(parents=True)
    stored.write_bytes(pack_object(b"{}"))
    document, excerpt = kept.artefacts.capture(outcome, kept.trial)
    assert (document.name, document.bytes) == ("evidence/n1", 2)
    assert (excerpt.name, excerpt.digest) == ("log/n1: not stored: No space left on device", "")


def test_a_failure_costs_less_than_a_millisecond_however_many_there_are(tmp_path, catalogued):
    kept = Kept(tmp_path, catalogued, [PLAIN] * 400, [GOOD] * 400)
    kept.of("warm", "gpu.missing")
    began = time.process_time()
    for number in range(500):
        kept.of(f"{number} of 8 GPUs", "gpu.missing")
    assert (time.process_time() - began) / 500 < 0.001


def test_excerpts_of_all_runs_lie_together():
    assert artefact_folder(Path("/fleet/reports/runs/R/run.sqlite")) == Path("/fleet/reports/artefacts")
    assert artefact_folder(Path("/tmp/own.sqlite")) == Path("/tmp/artefacts")

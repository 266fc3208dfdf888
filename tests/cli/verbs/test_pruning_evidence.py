"""`assay prune` deletes evidence that is old and that nothing refers to; whoever uses a document meanwhile keeps it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.ledger.history.append import append_missing_runs
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.evidence import EvidenceDocument
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import FailureArtefact, Outcome, SuiteRun
from assay.model.reading import value
from assay.observe.evidence_store import EvidenceStore
from assay.validate.judging.evidence_cache import EvidenceCache
from assay.validate.results.retention import EvidencePlan, restore_set_aside
from tests.support.places import ROOT

NOW = datetime.now(UTC)
LOOKS = ("first", "unread", "judged", "shared", "kept", "told", "named", "chained", "gone run", "newest")


class Site:
    """A fleet with one document for each way in which something may refer to it."""

    def __init__(self, root: Path) -> None:
        self.root, self.reports = root, root / "reports"
        for folder in ("inventory", "suites"):
            (root / folder).symlink_to(ROOT / folder)
        shutil.copytree(ROOT / "specs", root / "specs")
        self.store = EvidenceStore(root / ".assay" / "evidence")
        self.digest: dict[str, str] = {}
        for number, name in enumerate(LOOKS):
            channels = {"probe": {"look": value(name)}}
            if name == "newest":
                channels["previous"] = value(self.digest["chained"])
            document = EvidenceDocument("n0003", NOW - timedelta(days=90 - number), channels)
            self.digest[name] = self.store.store_latest(document)
        self.age(*LOOKS)
        self.pushed = self.store.store_pushed(EvidenceDocument("n0004", NOW - timedelta(days=90), {}))
        self.ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
        self.ledger.record(SuiteRun("r", NOW.isoformat()), [self.outcome("told")])
        self.ledger.append(
            LedgerEntry("e", NOW.isoformat(), "hold", "n0003", {"reason": f"see {self.digest['named']}"})
        )
        for days, name, extra in ((80, "gone run", ()), (2, "judged", ("kept",)), (1, "shared", ())):
            self.run(days, name, extra)
        assert append_missing_runs(self.reports) == []

    def outcome(self, name: str, artefacts: tuple[FailureArtefact, ...] = ()) -> Outcome:
        at = NOW.isoformat()
        verdict = "fail" if artefacts else "pass"
        return Outcome(
            "suites/a.py::test_a", "h100-a/n0003", "n0003", verdict, "so" if artefacts else "",
            evidence=self.digest[name], evidence_at=at, artefacts=artefacts,
        )  # fmt: skip

    def run(self, days: float, name: str, kept: tuple[str, ...]) -> Path:
        when = NOW - timedelta(days=days)
        run = SuiteRun(f"{when:%Y%m%dT%H%M%S}.000-abcdef", when.isoformat(), nodes=("n0003",), spec_commit="c" * 40)
        file = self.reports / "runs" / run.id / "run.sqlite"
        file.parent.mkdir(parents=True)
        writer = OutcomeWriter(file, run, {"ended": "whole"})
        writer(self.outcome(name, tuple(FailureArtefact("evidence/n0003", self.digest[one], 1) for one in kept)))
        writer.close()
        return file

    def file(self, name: str) -> Path:
        digest = self.digest[name]
        return self.store.folder / "objects" / digest[:2] / f"{digest}.json.gz"

    def age(self, *names: str, days: float = 60) -> None:
        for name in names:
            os.utime(self.file(name), (NOW.timestamp() - days * 86400,) * 2)

    def allow(self, **rules: float) -> None:
        policy = self.root / "specs" / "lifecycle" / "default.yaml"
        text = policy.read_text().partition("\nretention: ")[0]
        policy.write_text(f"{text}\nretention: {json.dumps(rules)}\n")

    def prune(self, *words: str) -> str:
        done = CliRunner().invoke(app, ["prune", "--fleet", str(self.root), *words])
        assert done.exit_code == 0, done.exception
        return done.stdout

    def left(self) -> set[str]:
        return {name for name in LOOKS if self.file(name).exists()}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_only_what_nothing_refers_to_is_deleted_and_that_is_noted_first(site: Site) -> None:
    site.allow(runs_days=30, least_runs=2, evidence_days=30)
    said = site.prune()
    assert "3 documents of evidence, 0.0 MB; nothing is deleted without --yes" in said
    assert "nothing can judge them again" in said
    assert (site.left(), site.ledger.entries(kinds=["evidence.pruned"])) == (set(LOOKS), [])
    before = {name: site.file(name).stat().st_size for name in LOOKS}
    plain = json.loads(site.prune("--yes", "--format", "json", "--who", "ann"))["evidence"]
    assert site.left() == set(LOOKS) - {"first", "unread", "gone run"}
    assert plain["bytes"] == sum(before[name] for name in ("first", "unread", "gone run"))
    (entry,) = site.ledger.entries(kinds=["evidence.pruned"])
    assert (entry.body["documents"], entry.body["bytes"], entry.body["who"]) == (3, plain["bytes"], "ann")
    assert site.store.get(site.pushed).node == "n0004"
    assert "0 documents of evidence" in site.prune("--yes")
    assert len(site.ledger.entries(kinds=["evidence.pruned"])) == 1


@pytest.mark.parametrize("rules", [{}, {"runs_days": 30, "least_runs": 2}])
def test_without_a_rule_for_evidence_all_of_it_stays(site: Site, rules: dict[str, float]) -> None:
    site.allow(**rules)
    assert "of evidence" not in site.prune("--yes")
    assert site.left() == set(LOOKS)


def test_a_run_that_stays_keeps_what_it_judged(site: Site) -> None:
    site.allow(evidence_days=30)
    site.prune("--yes")
    assert site.left() == set(LOOKS) - {"first", "unread"}


def test_an_outcome_that_stays_keeps_its_evidence_and_one_that_is_pruned_does_not(site: Site) -> None:
    site.ledger.close()
    for file in (site.root / ".assay").glob("ledger.sqlite*"):
        file.unlink()
    site.ledger = Ledger.open(site.root / ".assay" / "ledger.sqlite")
    for days, name in ((50, "first"), (40, "unread"), (0, "told")):
        at = (NOW - timedelta(days=days)).isoformat()
        site.ledger.record(SuiteRun(name, at), [replace(site.outcome(name), evidence_at=at)])
    site.allow(evidence_days=30)
    assert "1 document of evidence" in site.prune()  # the one that was named in the former ledger
    site.allow(evidence_days=30, outcomes_days=30)
    assert "3 documents of evidence" in site.prune()
    assert "3 documents of evidence" in site.prune("--yes")
    assert site.left() == set(LOOKS) - {"first", "unread", "named"}
    assert list(site.ledger.verify()) == []


@pytest.mark.parametrize("damage", ["run", "share", "newest", "ledger"])
def test_if_what_may_refer_to_evidence_cannot_be_read_all_of_it_stays(site: Site, damage: str) -> None:
    site.allow(runs_days=30, least_runs=2, evidence_days=30)
    if damage == "newest":
        (site.store.folder / "latest" / "n0009.json").mkdir()
    elif damage == "ledger":
        site.ledger.close()
        site.root.joinpath(".assay", "ledger.sqlite").unlink()
    else:
        newest = max((site.reports / "runs").iterdir())
        names = {"run": newest / "run.sqlite", "share": newest / "share-0.sqlite"}
        names[damage].write_bytes(b"nothing that a database begins with" * 40)
    plain = json.loads(site.prune("--yes", "--format", "json"))["evidence"]
    assert (plain["documents"], bool(plain["kept_all"])) == (0, True)
    assert site.left() == set(LOOKS)


def test_a_document_that_is_stored_or_judged_again_counts_as_new(site: Site) -> None:
    site.allow(evidence_days=30)
    site.store.store_document(site.store.get(site.digest["first"]))
    judged = site.store.get(site.digest["unread"])
    site.store.store_latest(judged)
    site.age("unread")
    assert EvidenceCache(site.store.folder / "latest").read_latest("n0003").digest == site.digest["unread"]
    site.store.store_latest(site.store.get(site.digest["newest"]))
    site.prune("--yes")
    assert {"first", "unread"} <= site.left()


def test_a_document_that_is_used_while_others_are_deleted_stays(site: Site) -> None:
    files = (site.file("first"), site.file("unread"))
    plan = EvidencePlan(files, 1, NOW.timestamp() - 30 * 86400)
    site.store.store_document(site.store.get(site.digest["first"]))
    assert plan.execute() == 1
    assert [file.exists() for file in files] == [True, False]
    assert plan.execute() == 0


def test_a_kill_between_two_steps_loses_no_document(site: Site) -> None:
    file = site.file("first")
    aside = file.with_name(f".{file.name}.pruned")
    file.rename(aside)
    restore_set_aside(site.store.folder)
    assert (file.exists(), aside.exists()) == (True, False)
    shutil.copyfile(file, aside)
    restore_set_aside(site.store.folder)
    assert (file.exists(), aside.exists()) == (True, False)
    assert site.store.get(site.digest["first"]).node == "n0003"

"""A stored run is judged again: by its own specs to the same bytes, by others to what differs; nothing is recorded."""

from __future__ import annotations

import copy
import gzip
import json
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.act.loop.history_replay import StoredHistory, replay_stored_history, replay_upgrade
from assay.act.loop.plan_inputs import load_folder_revision
from assay.cli.app import load_verb
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.loader import load_fleet
from assay.declare.starter.starter_record import StarterRecord
from assay.declare.starter.upgrade_plan import FileChange, UpgradePlan
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.evidence import EvidenceDocument, encode_canonical_json, find_object_path
from assay.model.outcome import Outcome
from assay.observe.evidence_store import EvidenceStore
from assay.validate.must_fail_recordings import read_check_recording
from assay.validate.runs.rejudge import RejudgedRun, rejudge_run
from assay.validate.runs.run_validation import run_validation
from tests.support.places import ROOT

rejudge_app = load_verb("rejudge")

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NARROW = ("-k", "temperature or flap or rack_breathes")
GIT = ("git", "-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")


class At:
    """A clock that stands."""

    def __init__(self, hours: int) -> None:
        self._hours = hours

    def now(self) -> datetime:
        return NOON + timedelta(hours=self._hours)

    def sleep(self, seconds: float) -> None:
        raise AssertionError


@dataclass
class Repository:
    """A fleet repository in git, with evidence, a ledger, and runs that were recorded."""

    root: Path

    @property
    def store(self) -> EvidenceStore:
        return EvidenceStore(self.root / ".assay" / "evidence")

    def commit(self) -> None:
        subprocess.run([*GIT, "add", "."], cwd=self.root, check=True)
        subprocess.run([*GIT, "commit", "-qm", "change"], cwd=self.root, check=True)

    def observe(self, node: str, hours: int, **leaves: Any) -> str:
        """Keep evidence of a node, with these hours of age and readings of every adapter (`link_downed`)."""
        document = copy.deepcopy(read_check_recording(ROOT / "suites" / "recordings", "hgx-h100"))
        for hca in document["channels"]["probe"]["hca"].values():
            hca["counters"] |= {name: {"value": value} for name, value in leaves.items()}
        for place in (document["channels"]["probe"]["host"], document["channels"]["bmc"]["system"]):
            place["serial"] = {"value": f"A520112X44000{node[-2:]}"}
        at = (NOON + timedelta(hours=hours)).isoformat()
        return self.store.store_latest(EvidenceDocument.from_json({**document, "node": node, "at": at}))

    def limit(self, text: str, other: str) -> None:
        path = self.root / "specs" / "nodes" / "hgx-h100.yaml"
        said = path.read_text()
        assert text in said
        path.write_text(said.replace(text, other))

    def validate(self, hours: int, *nodes: str, extra: tuple[str, ...] = NARROW) -> Path:
        """Judge nodes and record the run, as `assay validate` does; return its file."""
        ledger = Ledger.open(self.root / ".assay" / "ledger.sqlite")
        result = run_validation(
            load_fleet(self.root),
            self.store.folder / "latest",
            nodes=nodes or ("n0003",),
            phases=("production",),
            reports=self.root / "reports",
            ledger=ledger,
            clock=At(hours),
            extra=extra,
        )
        ledger.close()
        result.stored.close()
        return result.stored.path

    def again(self, file: Path, rev: str = "") -> Any:
        ledger = str(self.root / ".assay" / "ledger.sqlite")
        return rejudge_run(self.root, file, self.store.folder, rev, ledger=ledger)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """A repository with one run of a good node, one that was never seen, and a rack."""
    root = tmp_path_factory.mktemp("rejudging") / "fleet"
    for folder in ("inventory", "specs", "suites"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (root / ".gitignore").write_text(".assay/\nreports/\n__pycache__/\n")
    subprocess.run([*GIT, "init", "-q", "-b", "main"], cwd=root, check=True)
    made = Repository(root)
    made.commit()
    for node in ("n0003", "n0005", "n0006", "n0007", "n0008"):
        made.observe(node, 0, link_downed=3)
    made.validate(1, "n0001", "n0003", "n0005", "n0006", "n0007", "n0008")
    return made


@pytest.fixture
def fleet(first: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A copy of it that a test may change, and that knows nothing of the first."""
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    fleet = Repository(Path(shutil.copytree(first.root, tmp_path / "fleet", symlinks=True)))
    say(run_of(fleet), evidence=str(fleet.store.folder / "latest"))
    return fleet


def run_of(fleet: Repository) -> Path:
    return list_runs(fleet.root / "reports")[-1]


def say(file: Path, **about: str) -> None:
    """Let a run's file say something else of the run."""
    with sqlite3.connect(file) as connection:
        connection.executemany("UPDATE about SET value = ? WHERE key = ?", [(said, key) for key, said in about.items()])
    connection.close()


def lines(file: Path) -> list[bytes]:
    """Return the canonical JSON of every outcome, without how long it took."""
    with StoredRun.open(file) as stored:
        return sorted(encode_canonical_json({**one.as_json(), "duration_s": 0}) for one in stored.outcomes())


def of(again: RejudgedRun, **wanted: Any) -> list[Outcome]:
    with StoredRun.open(again.new) as stored:
        return list(stored.outcomes(**wanted))


def kept(fleet: Repository) -> dict[str, bytes]:
    every = [path for folder in ("reports", ".assay") for path in (fleet.root / folder).rglob("*")]
    return {str(path): path.read_bytes() for path in every if path.is_file()}


def test_the_same_inputs_give_the_same_bytes_and_nothing_is_recorded(fleet: Repository) -> None:
    file, before = run_of(fleet), kept(fleet)
    with fleet.again(file) as again:
        assert lines(again.new) == lines(file)
        assert (again.equality.identical, again.is_original_spec, again.equality.both) == (True, True, len(lines(file)))
        verdicts = {(one.node, one.verdict) for one in of(again)}
    assert verdicts == {(f"n000{node}", "pass") for node in (3, 5, 6, 7, 8)} | {("", "pass"), ("n0001", "error")}
    assert not again.new.exists()
    assert kept(fleet) == before


@pytest.mark.slow
def test_what_came_later_changes_nothing(fleet: Repository) -> None:
    fleet.observe("n0003", 10, link_downed=7)
    grown = fleet.validate(11)
    with StoredRun.open(grown) as stored:
        seen = {one.value for outcome in stored.outcomes() for one in outcome.measurements if one.name == "link_downed"}
    assert seen == {4}, "since the pass of the first run, in which there were 3"
    fleet.observe("n0003", 20, link_downed=7)
    fleet.validate(21)  # passes too, and the ledger knows it
    fleet.limit("gpu_temperature: {value: 85", "gpu_temperature: {value: 20")
    (fleet.root / "suites" / "production" / "test_gpu.py").write_text("import no_such_module\n")
    fleet.commit()
    fleet.observe("n0003", 25, link_downed=99)
    with fleet.again(grown) as again:
        assert lines(again.new) == lines(grown)


def test_other_thresholds_give_other_verdicts(fleet: Repository) -> None:
    file = run_of(fleet)
    say(file, assay="0.0.1")
    fleet.limit("gpu_temperature: {value: 85", "gpu_temperature: {value: 36")
    fleet.commit()
    with fleet.again(file, "HEAD") as again:
        hot = {one.subject.removeprefix("h100-a/") for one in of(again, verdicts=["fail"], nodes=["n0003"])}
        assert hot == {f"n0003/gpu{slot}" for slot in (1, 4, 6)}
        assert (again.is_original_spec, again.equality.agrees) == (False, False)
        (program,) = again.programs
    assert program.startswith("assay was 0.0.1, is ")


def test_evidence_that_is_gone_or_was_changed_is_an_error_that_names_it(fleet: Repository) -> None:
    file = run_of(fleet)
    with StoredRun.open(file) as stored:
        digests = {name: digest for name, (digest, _) in stored.documents().items()}
    for node in ("n0003", "n0005"):
        fleet.observe(node, 5)
    objects = fleet.store.folder / "objects"
    gone, changed = (find_object_path(objects, digests[node]) for node in ("n0003", "n0005"))
    gone.unlink()
    changed.write_bytes(gzip.compress(gzip.decompress(changed.read_bytes()).replace(b'"value":3', b'"value":4', 1)))
    with fleet.again(file) as again:
        assert not again.equality.identical
        for node in ("n0003", "n0005"):
            outcomes = of(again, nodes=[node])
            assert {one.verdict for one in outcomes} == {"error"}
            assert {one.reason for one in outcomes} == {
                f"the evidence {digests[node]} of {node}, on which the run was judged, is gone or changed"
            }
        assert {one.verdict for one in of(again, nodes=["n0006"])} == {"pass"}
        (rack,) = of(again, subjects=["h100-a/rack-r02"])
        assert (rack.verdict, digests["n0005"] in rack.reason) == ("error", True)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"dirty": True}, "uncommitted changes"),
        ({"spec_commit": ""}, "a folder without git"),
        ({"suite_hash": "0" * 64}, "files in suites/ that git does not track"),
    ],
)
def test_a_run_that_no_commit_gives_again_says_so(fleet: Repository, change: dict[str, Any], what: str) -> None:
    file = run_of(fleet)
    with StoredRun.open(file) as stored:
        say(file, run=json.dumps(json.loads(stored.about["run"]) | change))
    with pytest.raises(AssayError, match=f"was judged with {what}") as refused, fleet.again(file):
        pass
    assert "--spec ." in refused.value.fix


def told(fleet: Repository, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(rejudge_app, [*words, "--fleet", str(fleet.root)], catch_exceptions=False)
    return done.exit_code, done.stdout


def test_the_verb_says_it_in_one_line_or_what_differs(fleet: Repository) -> None:
    code, out = told(fleet, "last")
    assert (code, out.count("\n")) == (0, 1)
    assert out.endswith("outcomes, all identical\n")
    fleet.limit("gpu_temperature: {value: 85", "gpu_temperature: {value: 36")
    code, out = told(fleet, "last", "--spec", ".")
    assert code == 1
    assert "newly failing: 15 outcomes" in out
    fleet.limit("gpu_temperature: {value: 36", "gpu_temperature: {value: 84")
    code, out = told(fleet, "last", "--spec", ".", "--format", "json")
    document = json.loads(out)
    assert (code, document["identical"], document["verdicts"]) == (0, False, 0)
    assert document["differing"] > 0
    assert document["comparison"]["worse"] == 0


def test_an_upgrade_that_tightens_a_limit_tells_of_nodes_that_the_newest_run_did_not_judge(fleet: Repository) -> None:
    fleet.validate(2, "n0003")
    ledger = Ledger.open(fleet.root / ".assay" / "ledger.sqlite")
    ledger.append(make_enrolled_entry("n0005", "h100-a", "production", NOON - timedelta(days=1)))
    ledger.close()
    path = "specs/nodes/hgx-h100.yaml"
    text = (fleet.root / path).read_text().replace("gpu_temperature: {value: 85", "gpu_temperature: {value: 5")
    record = StarterRecord("1.0.0", "github", {}, {})
    plan = UpgradePlan(record, "2.0.0", (FileChange(path, "updated", after=text.encode()),), {})
    now = NOON + timedelta(hours=3)
    stored = StoredHistory(fleet.root / ".assay" / "ledger.sqlite", fleet.store, fleet.root / "reports", now)
    report, excess = replay_upgrade(plan, fleet.root, stored)
    assert report
    assert [(each.fault, each.nodes) for each in report.closed] == [("gpu.thermal", ("n0005",))]
    assert (report.days, report.missing, excess) == (1.12, (), "")


def test_a_run_of_a_lab_is_judged_as_in_the_lab(fleet: Repository) -> None:
    where = fleet.root / ".assay" / "lab.sqlite"
    ledger = Ledger.open(where, context="lab")
    ledger.append(make_enrolled_entry("n0005", "h100-a", "production", NOON - timedelta(days=1)))
    ledger.close()
    with rejudge_run(fleet.root, run_of(fleet), fleet.store.folder, ledger=str(where), is_lab=True) as again:
        assert again.equality.identical
    with rejudge_run(fleet.root, run_of(fleet), fleet.store.folder, ledger=str(where)) as again:
        assert any("the ledger of a lab" in one.reason for one in of(again, verdicts=["error"]))


def test_new_checks_are_told_with_the_nodes_that_they_would_have_closed(fleet: Repository) -> None:
    before = load_folder_revision(fleet.root)
    file = fleet.root / "suites" / "production" / "test_gpu.py"
    file.write_text(file.read_text().replace("at_most=limits.gpu_temperature", "at_most=5"))
    now = NOON + timedelta(hours=2)
    ledger = Ledger.open(fleet.root / ".assay" / "ledger.sqlite")
    ledger.append(make_enrolled_entry("n0005", "h100-a", "production", NOON - timedelta(days=1)))
    ledger.close()
    stored = StoredHistory(fleet.root / ".assay" / "ledger.sqlite", fleet.store, fleet.root / "reports", now)
    report = replay_stored_history(fleet.root, "", before, load_folder_revision(fleet.root), stored)
    assert report
    assert report.outcomes == 5 * 8
    assert [(each.fault, each.nodes) for each in report.closed] == [("gpu.thermal", ("n0005",))]
    assert (report.lost, report.missing) == ((), ())

"""`assay sync`: the table, each difference once with its nodes, the JSON document, and the exit codes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from assay.act.loop.sync_reading import ExpectedChecks
from assay.cli.app import app
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, SuiteRun
from tests.support.noted_readings import note_readings
from tests.support.places import ROOT

DRIVER = "suites/zap/test_configuration.py::test_driver_version"
ECC = "suites/zap/test_gpu_settings.py::test_ecc_mode"
NOW = datetime.now(UTC)
Asked = Callable[..., Result]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Path:
    """The example fleet in production: n0002 and n0003 have an old driver, n0004 has ECC off, n0005 was never seen."""
    root: Path = tmp_path_factory.mktemp("sync") / "fleet"
    root.mkdir()
    for name in ("inventory", "specs", "suites", "playbooks", "ansible.cfg"):
        (root / name).symlink_to(ROOT / name)
    declared = load_fleet(root)
    ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
    nodes = declared.nodes.values()
    ledger.append(*(make_enrolled_entry(node.name, node.pool, "production", NOW - timedelta(days=1)) for node in nodes))
    old = ("fail", "driver 1.2, expected 570 (specs/nodes/hgx-h100.yaml:1)")
    off = ("fail", "ECC will be off after the next reset")
    _record(ledger, declared, {("n0002", DRIVER): old, ("n0003", DRIVER): old, ("n0004", ECC): off})
    ledger.close()
    note_readings(root)
    return root


def _record(ledger: Ledger, fleet: Fleet, said: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    expected, at = ExpectedChecks(fleet), (NOW - timedelta(minutes=3)).isoformat()
    told = []
    for node in fleet.nodes.values():
        for one in expected.of_node(node) if node.name != "n0005" else ():
            verdict, reason = said.get((node.name, one.check.id), ("pass", ""))
            judged_by = expected.find_own_hash(one.check.id, node)
            for part in one.parts:
                subject = f"{node.subject}/{part}".rstrip("/")
                told.append(
                    Outcome(one.check.id, subject, node.name, verdict, reason, evidence_at=at, judged_by=judged_by)  # type: ignore[arg-type]
                )
    ledger.record(SuiteRun("run-1", at, spec_commit="c0ffee1234567"), told, NOW)


@pytest.fixture(scope="module")
def asked(fleet: Path) -> Asked:
    return lambda *words: CliRunner().invoke(app, ["sync", "--fleet", str(fleet), *words])


def test_the_json_document_has_exactly_these_fields(asked):
    answer = asked("--format", "json", "--pool", "h100-a")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, set(document)) == (1, {"revision", "pools", "nodes", "context"})
    (pool,) = document["pools"]
    assert list(pool) == ["pool", "nodes", "counts", "revisions", "oldest"]
    assert pool["pool"] == "h100-a"
    assert pool["counts"] == {"in_sync": pool["nodes"] - 4, "rolling": 0, "drifted": 3, "held": 0, "unknown": 1}
    nodes = {node["node"]: node for node in document["nodes"]}
    assert list(nodes["n0001"]) == ["node", "pool", "state", "items", "revision", "held_by", "remedies"]
    assert (nodes["n0001"]["state"], nodes["n0001"]["items"]) == ("in_sync", [])
    (item,) = nodes["n0002"]["items"]
    assert list(item) == ["what", "wanted", "seen", "where", "since"]
    assert (item["wanted"], item["seen"]) == ("570", "1.2")
    assert [one["seen"] for one in nodes["n0005"]["items"]] == ["unknown: never judged"]
    assert nodes["n0005"]["items"][0]["since"] == ""


def test_a_difference_is_shown_once_with_all_its_nodes(asked):
    answer = asked("--pool", "h100-a")
    assert answer.exit_code == 1
    lines = answer.stdout.splitlines()
    titles = "pool nodes in sync rolling out drifted held unknown actual revision oldest drift"
    assert " ".join(lines[0].split()) == titles
    assert "drifted: 3 nodes: n0002..n0004" in lines
    assert any("driver: 1.2, wanted 570 (specs/nodes/hgx-h100.yaml:" in line for line in lines)
    assert any(line.startswith("    on n0002, n0003, since ") for line in lines)
    assert any(line.startswith("  gpu0..gpu7 ecc mode: ECC will be off") for line in lines)
    assert "unknown: 1 node: n0005" in lines
    assert "n0001" not in answer.stdout


def test_explain_shows_what_differs_on_a_node(fleet):
    def explain(*words: str) -> str:
        return CliRunner().invoke(app, ["explain", "--fleet", str(fleet), *words], catch_exceptions=False).stdout

    told = " ".join(explain("n0002").split())
    assert "now drifted: driver: 1.2, wanted 570 (specs/nodes/hgx-h100.yaml:" in told
    assert ", since " in told
    assert "not known to be in sync: " in " ".join(explain("n0005").split())
    assert "sync" not in explain("n0001")
    sync = json.loads(explain("n0002", "--format", "json"))["sync"]
    assert (sync["node"], sync["state"], [item["what"] for item in sync["items"]]) == ("n0002", "drifted", ["driver"])


def test_nodes_in_sync_exit_0(asked):
    answer = asked("--node", "n0001", "--node", "n0006")
    assert answer.exit_code == 0
    assert len(answer.stdout.splitlines()) == 4


def test_what_cannot_be_read_exits_2(fleet, tmp_path):
    unknown = CliRunner().invoke(app, ["sync", "--fleet", str(fleet), "--node", "n9999"])
    assert "there is no node n9999" in str(unknown.exception)
    (tmp_path / "inventory").symlink_to(ROOT / "inventory")
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    (tmp_path / "suites").symlink_to(ROOT / "suites")
    (tmp_path / ".assay").mkdir()
    (tmp_path / ".assay" / "ledger.sqlite").write_text("no database at all, but text that is long enough\n" * 40)
    words = [str(ROOT / ".venv" / "bin" / "assay"), "sync", "--fleet", str(tmp_path)]
    broken = subprocess.run(words, capture_output=True, text=True, check=False)
    assert broken.returncode == 2
    assert "ledger.sqlite" in broken.stderr
    assert "Traceback" not in broken.stderr

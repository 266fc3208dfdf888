"""`assay observe` as a person and as a machine meet it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from assay.cli.app import main
from assay.cli.verbs.observe import describe_collection, exit_code_of
from assay.model.evidence import EvidenceDocument
from assay.model.facts import to_json
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.observe.evidence_collector import BMC_PATIENCE
from assay.observe.evidence_store import EvidenceStore
from tests.support.forked_assay import run_assay


def observe(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_assay("observe", "--fleet", root, *arguments, env={**os.environ, "ASSAY_CONTEXT": "lab", **environment})


def test_every_node_gets_a_calm_line_and_its_evidence_is_kept(rehearsal: Any) -> None:
    done = observe(rehearsal.root, "n0001", "n0017")
    assert done.returncode == 0, done.stderr
    assert "✓ n0001  probe ok; bmc ok" in done.stdout
    assert re.search(r"2 observed in [\d.]+ s, 0 with channels that did not answer", done.stdout)
    assert done.stderr.startswith("context lab: ")
    assert done.stderr.count("\n") == 1
    latest = EvidenceStore(rehearsal.root / ".assay-lab/evidence").latest("n0017")
    assert latest is not None
    assert latest.read("bmc", "system", "power").value == "On"
    secret = (rehearsal.world.home / "credentials").read_text().strip().partition(":")[2]
    assert secret not in done.stdout + done.stderr
    assert not any(secret in path.read_text() for path in rehearsal.root.glob(".assay-lab/evidence/**/*.json"))


def test_what_failed_is_named_with_its_reason_and_exit_1(rehearsal: Any) -> None:
    with rehearsal.world.change("n0002") as state:
        state["fails"]["bmc_silent"] = True
    try:
        for seconds in ("3", "30"):
            done = observe(rehearsal.root, "n0002", "--deadline", seconds, "--format", "json")
            if done.returncode == 1:
                break  # else the machine is too busy for the probe
    finally:
        with rehearsal.world.change("n0002") as state:
            state["fails"]["bmc_silent"] = False
    assert done.returncode == 1
    (node,) = json.loads(done.stdout)["nodes"]
    assert node["channels"] == {"probe": "value", "bmc": "failed"}
    assert node["unanswered"] == {"bmc": {"": f"no answer within {BMC_PATIENCE * float(seconds):g} s"}}
    assert EvidenceStore(rehearsal.root / ".assay-lab/evidence").get(node["evidence"]).node == "n0002"


def test_nobody_who_answers_is_exit_2_with_every_reason(rehearsal: Any) -> None:
    with rehearsal.world.change("n0002") as state:
        before = dict(state["fails"])
        state["fails"] |= {"bmc_silent": True, "probe_hangs": True}
    try:
        done = observe(rehearsal.root, "n0002", "--deadline", "2")
    finally:
        with rehearsal.world.change("n0002") as state:
            state["fails"] = before
    assert done.returncode == 2
    assert "✗ n0002  probe failed: no answer within 2 s; bmc failed: no answer within 3 s" in done.stdout


def test_one_reading_that_hangs_is_named_and_the_rest_is_there(rehearsal: Any, tmp_path: Path) -> None:
    file = rehearsal.world.folder("n0003") / "root/sys/class/infiniband/mlx5_2/ports/1/state"
    kept = file.read_text()
    file.unlink()
    os.mkfifo(file)
    try:
        done = observe(rehearsal.root, "n0003", "--deadline", "20", "--format", "json", "--out", str(tmp_path))
    finally:
        file.unlink()
        file.write_text(kept)
    (node,) = json.loads(done.stdout)["nodes"]
    reasons = [reason for path, reason in node["failed"].items() if "mlx5_2" in path]
    assert reasons
    assert all(reason.startswith("no answer within 2 s (state S") for reason in reasons)
    assert node["readings"]["value"] > 100


def test_failures_further_down_are_shown_few_and_counted() -> None:
    lost = {f"0000:{n:02x}:00.0": {"failed": "GPU is lost"} for n in range(5)}
    evidence = EvidenceDocument("n1", datetime(2026, 1, 1, tzinfo=UTC), {"probe": {"gpu": {"devices": lost}}})
    fleet = Fleet(Path(), {"n1": Node("n1", "p", "s", "r01", 1, "x", "spec", "managed")})
    said = describe_collection(fleet, evidence, "digest")
    assert exit_code_of([said]) == 0
    assert said.line.startswith("n1  probe ok (gpu.devices.0000:00:00.0: GPU is lost; ")
    assert said.line.endswith("; and 2 more)")
    shown = to_json(said.answer)
    assert len(shown["failed"]) == shown["readings"]["failed"] == 5


def test_evidence_can_be_written_elsewhere_for_suites_to_read(rehearsal: Any, tmp_path: Path) -> None:
    done = observe(rehearsal.root, "n0003", "--active", "memory", "--out", str(tmp_path / "taken"))
    assert done.returncode == 0
    document = EvidenceDocument.from_json(json.loads((tmp_path / "taken/n0003.json").read_text()))
    assert document.read("active", "memory", "errors").value == 0
    assert not (rehearsal.root / ".assay-lab/evidence/latest/n0003.json").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["n9999"], "there is no node n9999"),
        (["--pool", "nope"], "known: byo-b, h100-a"),
        (["n0001", "--active", "dance"], "there is no active part dance"),
        (["n0001", "--out", "/proc/nowhere", "--deadline", "20"], "cannot be written"),
        (["n0001", "--here"], "--here reads this machine only"),
    ],
)
def test_what_cannot_be_done_is_exit_2_with_a_message_and_no_traceback(
    rehearsal: Any, arguments: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["assay", "observe", "--fleet", str(rehearsal.root), *arguments])
    with pytest.raises(SystemExit) as left:
        main()
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (2, "")
    assert said in err


def test_this_machine_shows_what_is_not_there_as_absent_never_as_zero(tmp_path: Path) -> None:
    done = observe(tmp_path, "--here", COLUMNS="40")
    assert done.returncode in (0, 1), done.stderr  # 1 where a part of this machine does not answer
    shown = dict(line.split("  ", 1) for line in done.stdout.splitlines()[1:])
    assert shown["probe.host.boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    if not Path("/sys/class/infiniband").exists():
        assert shown["probe.hca"].startswith("absent: ")


def test_this_machine_as_json_is_one_evidence_document_and_no_fleet_is_needed(tmp_path: Path) -> None:
    done = observe(tmp_path, "--here", "--format", "json", "--out", str(tmp_path))
    document = EvidenceDocument.from_json(json.loads(done.stdout))
    written = json.loads((tmp_path / f"{document.node}.json").read_text())
    assert written == document.as_json()

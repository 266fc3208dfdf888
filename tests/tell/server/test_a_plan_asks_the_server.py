"""The plan of a pull request asks the fleet's server over HTTPS, with a token that may only read.

It says what the controller then does: the same waves, under the digest that its reviewer saw.
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.rollouts.commit_adoption import adopt_commit, read_plan_record
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.entries.node_entries import HoldEntry
from assay.observe.evidence_store import EvidenceStore
from tests.support.forked_assay import run_assay
from tests.support.serving_fleet import change_yaml, merge_bmc_image, start_history
from tests.support.site_of_agents import Site, digest

TOKEN = "token-of-the-runner"
HELD = "n0005"


def adopt(site: Site) -> Rollout | None:
    """Let a controller adopt the commit; return its rollout."""
    home = site.fleet / ".assay"
    ledger = Ledger.open(home / "ledger.sqlite")
    store = EvidenceStore(home / "evidence")
    adopt_commit(ControllerContext(load_fleet(site.fleet), ledger, store, SystemClock(), home, home / "reports"))
    active = ROLLOUTS.fold(ledger.entries(kinds=ROLLOUTS.kinds)).find_active()
    ledger.close()
    return active


def bring_into_service(site: Site) -> None:
    """Let the ledger know every node as serving, one of them held by a person."""
    ledger, now = Ledger.open(site.fleet / ".assay" / "ledger.sqlite"), datetime.now(UTC)
    nodes = load_fleet(site.fleet).nodes.values()
    ledger.append(*(make_enrolled_entry(node.name, node.pool, "production", now, node.serial) for node in nodes))
    ledger.append(HoldEntry("ann", "RCA").make_entry("a hold", now, HELD))
    ledger.close()


def test_the_comment_says_what_the_controller_does(site: Site, tmp_path: Path) -> None:
    visitor = {"role": "viewer", "token": {"sha256": digest(TOKEN)}}
    policy = site.fleet / "specs/lifecycle/default.yaml"
    change_yaml(policy, lambda rules: rules.update(access={"visitors": {"ci": visitor}}))
    start_history(site.fleet)
    (site.fleet / ".assay").mkdir()
    bring_into_service(site)
    assert adopt(site) is None
    site.serve()
    merge_bmc_image(site.fleet, "01.05.12")
    clone = tmp_path / "runner"
    subprocess.run(["git", "clone", "--quiet", site.fleet, clone], check=True)
    words = ["plan", "--fleet", clone, "--base", "HEAD~1", "--head", "HEAD", "--format"]
    missing = run_assay(*words, "markdown")
    assert missing.returncode == 0, missing.stderr
    assert "the facts of the fleet are missing (there is no ledger here" in missing.stdout
    assert "wave |" not in missing.stdout
    (tmp_path / "token").write_text(TOKEN)
    asked = ["--server", site.url, "--ca", tmp_path / "ca.pem", "--token-file", tmp_path / "token"]
    comment = run_assay(*words, "markdown", *asked)
    assert comment.returncode == 0, comment.stderr
    assert "| 0, canary | 1 |" in comment.stdout
    assert f"waits: {HELD}: held by ann: RCA" in comment.stdout
    reviewed = read_plan_record(comment.stdout)
    assert reviewed.digest != read_plan_record(missing.stdout).digest
    beside = run_assay("plan", "--fleet", site.fleet, "--base", "HEAD~1", "--format", "json")
    plan = json.loads(beside.stdout)
    assert (plan["digest"], plan["facts"]["position"]) == (reviewed.digest, reviewed.position), "as beside the ledger"

    subprocess.run(["git", "notes", "--ref=assay-plan", "add", "-m", _line(comment.stdout)], cwd=site.fleet, check=True)
    rollout = adopt(site)
    assert (rollout.plan, rollout.status) == (reviewed.digest, "running")
    assert set(rollout.members) == {name for wave in plan["work"]["waves"] for name in wave["nodes"]} | {HELD}
    again = run_assay(*words, "markdown", *asked)
    shown = f"rollout {rollout.id[:8]} of commit {rollout.commit[:12]} is running, 16 nodes of it not proven"
    assert f"{shown}: the merge replaces it, and its nodes are in the waves of this plan" in again.stdout
    waves = plan["work"]["waves"]
    assert f"- its wave 1 of {len(waves)} to come, without the merge: {waves[0]['nodes'][0]}\n" in again.stdout

    (tmp_path / "token").write_text("another")
    refused = run_assay(*words, "markdown", *asked)
    assert (refused.returncode, "(401)" in refused.stderr) == (2, True)
    assert "the facts of the fleet are missing" in refused.stdout


def _line(comment: str) -> str:
    return next(line for line in comment.splitlines() if line.startswith("Assay-Plan: "))

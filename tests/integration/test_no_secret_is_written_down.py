"""Planted canaries: no file that assay writes, and nothing that it says, holds a secret, whatever works or fails.

Left out of the search is only what lies outside of the fleet's folder: the files, the commands, the vault password and
the environment that the inventory refers to. They hold the canaries because that is where a site keeps its secrets.
The lab's own file with its BMCs' account is taken away first; the BMCs know it by heart.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator

import pytest

from assay.cli import app
from assay.ledger.store import Ledger
from assay.model.text.safe_text import REDACTION, register_secret
from assay.observe.evidence_store import EvidenceStore
from tests.integration.canary_fleet import BAD, GOOD, REBOOTED, CanaryFleet, canary_fleet

pytestmark = pytest.mark.slow(minutes=2)  # references to secrets, and what is redacted, have quick tests of their own


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CanaryFleet]:
    """A fleet after a pass: everything was observed, judged and told, and five nodes were to be rebooted."""
    home = tmp_path_factory.mktemp("canaries")
    with canary_fleet(home / "fleet", home / "outside") as fleet:
        fleet.assay("observe", *GOOD, *BAD)
        fleet.assay("validate", "--phase", "production", *(f"--node={node}" for node in (*GOOD, *BAD)))
        assert fleet.assay("reconcile", "--once", *(f"--node={node}" for node in REBOOTED)) == 0
        for verb in (["status"], ["explain", "n0009"], ["history", "n0009"], ["check"], ["show", "n0003"]):
            fleet.assay(*verb)
        yield fleet


def test_no_file_and_no_word_holds_a_canary(fleet: CanaryFleet) -> None:
    assert fleet.leaks() == []


@pytest.mark.parametrize("node", GOOD)
def test_a_bmc_was_reached_in_each_of_the_four_ways(fleet: CanaryFleet, node: str) -> None:
    evidence = EvidenceStore(fleet.root / ".assay-lab" / "evidence").latest(node)
    assert evidence is not None
    assert evidence.read("bmc", "system", "power").value == "On"


@pytest.mark.parametrize("node", GOOD)
def test_a_playbook_rebooted_the_node_in_each_of_the_four_ways(fleet: CanaryFleet, node: str) -> None:
    entries = Ledger.open(fleet.root / ".assay-lab" / "ledger.sqlite").entries(node, kinds=["effect.verified"])
    assert "reboot" in [entry.body["action"] for entry in entries]


def test_what_failed_is_told_by_the_place_and_not_by_the_secret(fleet: CanaryFleet) -> None:
    store = EvidenceStore(fleet.root / ".assay-lab" / "evidence")
    said = {node: str(store.latest(node)) for node in BAD}
    assert "refuses the user or the password" in said["n0009"]
    assert "no-pair does not hold" in said["n0010"]
    assert "the command fail ended with exit status 1" in said["n0011"]
    (entry,) = Ledger.open(fleet.root / ".assay-lab" / "ledger.sqlite").entries("n0009", kinds=["effect.tried"])
    assert "refuses the user or the password" in entry.body["reason"]


def test_what_a_task_printed_of_its_environment_is_covered_in_the_runners_files(fleet: CanaryFleet) -> None:
    texts = [path.read_text() for path in (fleet.root / ".assay-lab" / "runner").glob("*/artifacts/*/stdout")]
    assert [REDACTION in text for text in texts if "A task that says what it was given" in text] == [True] * len(GOOD)


def test_the_search_finds_a_canary_wherever_it_is_planted(fleet: CanaryFleet) -> None:
    canary = fleet.canaries["a wrong password"]
    places = {name: fleet.root / ".assay-lab" / f"planted-{name}" for name in ("plain", "json", "header", "sqlite")}
    places["plain"].write_text(f"password={canary}\n")
    places["json"].write_text(json.dumps({"password": canary}))
    places["header"].write_bytes(b"Authorization: Basic " + base64.b64encode(f"assay:{canary}".encode()))
    with sqlite3.connect(places["sqlite"]) as database:
        database.execute("create table said (what)")
        database.execute("insert into said values (?)", [canary])
    database.close()
    found = fleet.leaks()
    for place in places.values():
        place.unlink()
    assert sorted(found) == sorted(f"a wrong password in .assay-lab/planted-{name}" for name in places)


def test_a_crash_file_and_its_message_hold_no_secret(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register_secret("assay:canary-in-a-crash")
    monkeypatch.setenv("SITE_TOKEN", "canary-in-the-environment")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def crash(color: bool | None) -> None:
        raise RuntimeError("https://assay:canary-in-a-crash@bmc and canary-in-the-environment")

    monkeypatch.setattr(app, "app", crash)
    with pytest.raises(SystemExit) as ended:
        app.main()
    (file,) = tmp_path.glob("assay-crash-*.txt")
    told = file.read_text() + capsys.readouterr().err
    assert ended.value.code == 2
    assert "RuntimeError" in told
    assert "canary" not in told

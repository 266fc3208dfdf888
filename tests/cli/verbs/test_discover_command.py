"""`assay discover` as people use it: a scan, a lease, the table, and the proposal on a branch."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from typer.testing import CliRunner

from assay.act.boot.matching import record_sightings
from assay.adapters.bmc.session import UserPassword
from assay.cli.app import app
from assay.cli.verbs import discover
from assay.cli.workspace import Workspace
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.specs.machines import SeenMachine
from tests.support.bmc_rehearsal import PASSWORD, USER, authority, serve_tiny, tiny
from tests.support.places import ROOT

__all__ = ["authority", "tiny"]
SERIAL, DELIVERY = "A520112X4400021", "2026-11-hgx-h100"
MAC = "02:00:5e:00:21:00"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the example fleet as a repository of its own, with the login of its delivery."""
    for part in ("inventory", "specs", "suites", "playbooks"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("ansible.cfg", "CODEOWNERS"):
        shutil.copy(ROOT / name, tmp_path)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "ann")
    git(tmp_path, "config", "user.email", "ann@example.org")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "fleet: begin")
    (tmp_path / ".git/info/exclude").write_text(".assay/\n")
    monkeypatch.setenv("ASSAY_FACTORY_BMC", f"{USER}:{PASSWORD}")
    monkeypatch.setenv("ASSAY_FLEET", str(tmp_path))
    return tmp_path


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["discover", *words])


def put_machine(tiny: Any, serial: str = SERIAL, address: str = "127.0.0.1") -> list[str]:
    """Let the small BMC be a machine of the delivery, and return the words that scan it."""
    system = next(one for path, one in tiny.tree.items() if "/Systems/" in path and "SerialNumber" in one)
    system |= {"SerialNumber": serial, "Manufacturer": "Virtual", "Model": "HGX H100 of the lab"}
    return ["--scan", address, "--port", str(tiny.port)]


def report(root: Path, address: str) -> None:
    """Record what a DHCP server reports."""
    workspace = Workspace(root)
    seen = SeenMachine.parse({"bmc_mac": MAC, "address": address})
    record_sightings(workspace.ledger, [seen], "report", workspace.clock.now())


def test_a_machine_of_a_delivery_is_found_and_proposed(root: Path, tiny: Any) -> None:
    listed = root / f"specs/expected/{DELIVERY}.yaml"
    listed.write_text(listed.read_text().replace("    name: n0021\n", "    name: n0021\n    pdu: r06-a\n"))
    git(root, "-c", "core.hooksPath=/dev/null", "commit", "-qam", "the PDU of a machine")
    answer = run(*put_machine(tiny), "--login", "--propose")
    assert answer.exit_code == 0, answer.output
    assert "1 machine of a delivery" in answer.output
    assert f"discover/{DELIVERY} has 1 new node in inventory/{DELIVERY}.yml" in answer.output
    assert "before the merge, settle ASY0237: the design compute does not list n0021" in answer.output
    proposed = load_fleet(root, rev=f"discover/{DELIVERY}").nodes["n0021"]
    assert (proposed.serial, proposed.rack, proposed.pool) == (SERIAL, "r06", "h100-a")
    assert proposed.settings.bmc_fingerprint.startswith("sha256:")
    assert proposed.settings.pdu == "r06-a"
    assert git(root, "status", "--porcelain") == ""
    assert "exists already" in str(run("--propose").exception)


@pytest.mark.slow
def test_a_second_machine_joins_the_first_in_its_file(root: Path, tiny: Any, authority: trustme.CA) -> None:
    run(*put_machine(tiny), "--login", "--propose")
    git(root, "-c", "core.hooksPath=/dev/null", "merge", "-q", f"discover/{DELIVERY}")
    git(root, "branch", "-q", "-d", f"discover/{DELIVERY}")
    with serve_tiny(authority, "127.0.0.2") as second:
        answer = run(*put_machine(second, "A520112X4400022", "127.0.0.2"), "--login", "--propose")
    assert answer.exit_code == 0, (answer.output, answer.exception)
    hosts = yaml.safe_load(git(root, "show", f"discover/{DELIVERY}:inventory/{DELIVERY}.yml"))["h100-a"]["hosts"]
    assert list(hosts) == ["n0021", "n0022"]


def test_a_machine_known_by_its_mac_address_alone_is_not_proposed(root: Path) -> None:
    report(root, "10.0.0.7")
    assert run().exit_code == 0
    refused = run("--propose").exception
    assert isinstance(refused, AssayError)
    assert "nobody has read its serial number" in refused.what
    assert git(root, "branch", "--list", "discover/*") == ""


def test_a_stranger_is_told_with_what_it_says(root: Path, tiny: Any) -> None:
    answer = run(*put_machine(tiny, "<b>X</b>"), "--login", "--format", "json")
    assert answer.exit_code == 1
    (machine,) = json.loads(answer.stdout)["machines"]
    assert (machine["verdict"], machine["seen"]["serial"]) == ("stranger", "<b>X</b>")


def test_a_bmc_that_refuses_the_login_is_listed_all_the_same(
    root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_FACTORY_BMC", "root:canary-7d1e")
    answer = run(*put_machine(tiny), "--login")
    assert "127.0.0.1: the BMC refuses the user or the password" in answer.stderr
    assert "serial not read" in answer.stdout
    assert "canary-7d1e" not in answer.output


def test_a_machine_with_a_login_of_its_own_gets_that_one(
    root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_FACTORY_BMC", "root:of-the-others-7d1e")
    monkeypatch.setenv("ITS_OWN", f"{USER}:{PASSWORD}")
    path = root / f"specs/expected/{DELIVERY}.yaml"
    delivery = yaml.safe_load(path.read_text())
    delivery["machines"][0]["bmc_credentials"] = {"env": "ITS_OWN"}
    path.write_text(yaml.safe_dump(delivery))
    report(root, "127.0.0.1")
    answer = run(*put_machine(tiny), "--login")
    assert (answer.exit_code, f"serial {SERIAL}" in answer.stdout) == (0, True), answer.output
    assert sum(one.startswith("POST") for one in tiny.asked) == 1, "no other login was tried"


def test_the_logins_of_many_deliveries_lock_no_account(root: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    logins = [UserPassword("root", f"wrong-{number}") for number in range(5)]
    monkeypatch.setattr(discover, "list_factory_logins", lambda _: [*logins, UserPassword(USER, PASSWORD)])
    answer = run(*put_machine(tiny), "--login")
    assert f"serial {SERIAL}" in answer.stdout, "another user is asked all the same"
    assert sum(one.startswith("POST") for one in tiny.asked) == discover.TRIES_OF_USER + 1


def test_the_same_look_is_recorded_once(root: Path, tiny: Any) -> None:
    words = put_machine(tiny)
    for _ in range(3):
        run(*words)
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    assert len(ledger.entries(kinds=["machine.seen"])) == 1
    ledger.close()


def test_a_vendors_list_is_drafted(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("Serial,BMC MAC,Rack,U\nABC1,02005e002100,r06,4\n")
    answer = run("delivery", "new", str(tmp_path / "list.csv"))
    assert answer.exit_code == 0
    assert "serial_number: ABC1" in answer.stdout


def test_a_machine_whose_certificate_nobody_has_read_is_not_proposed(root: Path) -> None:
    (root / ".assay").mkdir()
    ledger = Ledger.open(root / ".assay/ledger.sqlite")
    record_sightings(ledger, [SeenMachine("10.0.0.7", MAC, SERIAL)], "report", datetime.now(UTC))
    ledger.close()
    assert "nobody has read its serial number and certificate yet" in str(run("--propose").exception)

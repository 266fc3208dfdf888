"""`assay doctor` names what a machine lacks for a fleet, with what it is for and what to do."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assay.cli.verbs import doctor
from assay.cli.verbs.doctor import doctor_app
from assay.declare.secret_lookup import forget_command_answers
from assay.declare.starter.new_repository import create_repository

SMALLEST = Path(__file__).parents[1] / "fleet" / "smallest"
SECRET = "CANARY:of-a-bmc"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed fleet on a machine that has every program, in any version, as far as the PATH tells."""
    root = tmp_path / "fleet"
    shutil.copytree(SMALLEST, root)
    commit(root)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.delenv("ASSAY_LEDGER", raising=False)
    return root


def commit(root: Path) -> None:
    by = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "one"]):
        subprocess.run([*by, *words], check=True)


def declare(root: Path, variables: str) -> None:
    """Give node n1 more variables."""
    pool = root / "inventory/pool.yml"
    pool.write_text(pool.read_text().replace("node_spec: small", f"node_spec: small, {variables}", 1))
    commit(root)


def ask(root: Path) -> tuple[int, dict[str, Mapping[str, Any]]]:
    """Return the exit code, and the needs by name."""
    done = CliRunner().invoke(doctor_app, ["--format", "json", "--fleet", str(root)], catch_exceptions=False)
    return done.exit_code, {one["name"]: one for one in json.loads(done.stdout)["needs"]}


def find_missing(root: Path) -> dict[str, str]:
    """Return what is missing, and hold the exit code to it."""
    code, needs = ask(root)
    missing = {name: one["trouble"] for name, one in needs.items() if one["trouble"]}
    assert code == (1 if missing else 0)
    assert all(needs[name]["fix"] for name in missing)
    return missing


def test_nothing_is_missing_where_all_is_there(root: Path) -> None:
    assert find_missing(root) == {}
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)]).stdout
    assert said.splitlines()[-1].endswith("needed: all there")
    assert not (root / ".assay").exists()


def test_only_programs_that_the_fleet_uses_are_missed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name != "git" else "/usr/bin/git")
    assert find_missing(root) == {"ssh": "not on the PATH"}
    declare(root, "workloads: slurm")
    assert find_missing(root).keys() == {"ssh", *doctor.SLURM_PROGRAMS}


def test_what_the_jobs_of_a_schedule_start_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_repository(tmp_path / "fleet", "github", "day")
    schedules = tmp_path / "fleet/specs/schedules/default.yaml"
    text = schedules.read_text().replace("workload: virtual", "workload: nccl-mpirun")
    schedules.write_text(
        f"{text}  seal: {{does: ledger-seal, cron: 7 3 * * *, anchors: ['rfc3161:https://tsa.acme.net']}}\n"
    )
    monkeypatch.setenv("ASSAY_CONTEXT", "fleet")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    _, needs = ask(tmp_path / "fleet")
    missing = {name for name, one in needs.items() if one["trouble"] == "not on the PATH"}
    assert missing == {"git", "ssh", "ibnetdiscover", "ibqueryerrors", "iblinkinfo", "mpirun", "openssl"}


def test_an_extra_is_missed_where_the_fleet_uses_it_and_else_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: None if name in ("duckdb", "kubernetes") else installed(name),
    )
    assert find_missing(root) == {"extra duckdb": "not installed: duckdb"}
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)]).stdout
    assert "→ pip install 'assay-fleet[duckdb]'" in said
    assert "not needed by this fleet: kubernetes\n" in said


def test_files_that_are_not_committed_are_told(root: Path) -> None:
    (root / "specs" / "node.yaml").write_text((root / "specs" / "node.yaml").read_text() + "\n")
    ((name, trouble),) = find_missing(root).items()
    assert name.startswith("commit ")
    assert "files differ from it" in trouble
    shutil.rmtree(root / ".git")
    assert find_missing(root) == {"commit": "the fleet repository has no commit"}


@pytest.mark.parametrize(
    ("reference", "name", "trouble"),
    [
        ("{env: BMC_OF_N1}", "the environment variable BMC_OF_N1", "not set"),
        ("{file: /nowhere/bmc}", "/nowhere/bmc", "/nowhere/bmc cannot be read: No such file or directory"),
        ("{file: bmc}", "bmc", "others on this machine may read it"),
        ('{command: ["false"]}', "the command false", "the command false ended with exit status 1"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_and_never_shown(
    root: Path, reference: str, name: str, trouble: str
) -> None:
    forget_command_answers()
    (root / ".gitignore").write_text("bmc\n")
    (root / "bmc").write_text(SECRET)
    (root / "bmc").chmod(0o644)
    declare(root, f"bmc_credentials: {reference}")
    assert find_missing(root) == {name: trouble}
    (root / "bmc").chmod(0o600)
    said = CliRunner().invoke(doctor_app, ["--fleet", str(root)], env={"BMC_OF_N1": SECRET}).stdout
    assert ("all there" in said) == (reference in ("{env: BMC_OF_N1}", "{file: bmc}"))
    assert "CANARY" not in said


def test_a_ledger_that_cannot_be_read_and_a_full_disk_are_told(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".assay").mkdir()
    (root / ".assay" / "ledger.sqlite").write_text("no ledger")
    (root / ".gitignore").write_text(".assay/\n")
    commit(root)
    assert find_missing(root).keys() == {"ledger"}
    (root / ".assay" / "ledger.sqlite").unlink()
    usage = shutil.disk_usage(root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5 * 2**20))
    assert find_missing(root) == dict.fromkeys([str(root / ".assay"), str(root / "reports")], "only 5 MiB are free")


def test_what_is_no_fleet_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="no fleet repository"):
        CliRunner().invoke(doctor_app, ["--fleet", str(tmp_path)], catch_exceptions=False)

"""A node proves itself by its TPM: a real one (swtpm) whose endorsement key the inventory has, and no other."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.act.boot.attempts import fold_attempts
from assay.act.boot.tpm import find_endorsement_digest
from assay.model.entries.boot import JoinRefusedEntry
from assay.node.agent.node_join import prove_by_tpm
from tests.act.boot.real_tpm import RealTpm, run_tpm
from tests.act.boot.secure_site import AGENT_TOKEN, SecureSite, join
from tests.support.places import ROOT
from tests.support.real_systemd import RealSystemd, needs_systemd

UNIT = ROOT / "deploy/assay-join.service"
DEBUG_REGISTER = 16
"""The register that can be reset."""


class Machines(NamedTuple):
    """A site, and the TPMs of n0001 and n0002. n0003 has a TPM that nobody has declared."""

    site: SecureSite
    mine: RealTpm
    neighbours: RealTpm


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    home = tmp_path_factory.mktemp("tpms")
    with run_tpm(home / "a") as mine, run_tpm(home / "b") as neighbours:
        digests = {}
        for node, tpm in (("n0001", mine), ("n0002", neighbours)):
            tpm.run("tpm2_createek", "-c", "ek.ctx", "-G", "rsa", "-u", "ek.pub")
            digests[node] = find_endorsement_digest(tpm.read("ek.pub"))
        site = SecureSite(tmp_path_factory.mktemp("site"), digests, {DEBUG_REGISTER: "00" * 32})
        yield Machines(site, mine, neighbours)
        site.server.stop()


def start_and_join(machines: Machines, node: str, tpm: RealTpm, folder: Path, nonce: str = "") -> tuple[int, str, str]:
    """Return the exit code, what was said, and how the start was proved."""
    attempt = machines.site.start(node, "the-number")
    done = join(machines.site.lay_out_node(folder, attempt, nonce), TPM2TOOLS_TCTI=tpm.environment["TPM2TOOLS_TCTI"])
    return done.returncode, done.stderr, fold_attempts(machines.site.ledger.entries(node))[attempt.name].proven_by


def test_the_machine_with_the_declared_tpm_gets_its_secrets(machines: Machines, tmp_path: Path) -> None:
    code, said, proven_by = start_and_join(machines, "n0001", machines.mine, tmp_path)
    assert (code, proven_by) == (0, "tpm"), said
    assert (tmp_path / "etc/assay-agent/token").read_text() == f"{AGENT_TOKEN}\n"


@pytest.mark.slow
@needs_systemd
def test_the_shipped_unit_proves_the_machine_to_its_end(machines: Machines, tmp_path: Path) -> None:
    node = machines.site.lay_out_node(tmp_path / "node", machines.site.start("n0001", ""), "")
    shutil.rmtree(node / "sys")
    (units := node / "etc/systemd/system").mkdir(parents=True)
    shutil.copy(UNIT, units)
    (units / f"{UNIT.name}.d").mkdir()
    where = machines.mine.environment["TPM2TOOLS_TCTI"]
    (units / f"{UNIT.name}.d" / "tpm.conf").write_text(f"[Service]\nEnvironment=TPM2TOOLS_TCTI={where}\n")
    archive = node / "etc/assay-agent/assay-join.pyz"
    subprocess.run([sys.executable, "-m", "assay.node.agent.pack", "--join", str(archive)], check=True)
    machine = RealSystemd(tmp_path, node, own_network=False)
    try:
        machine.start()
        machine.do("systemctl", "start", UNIT.name)
        assert machine.path("/etc/assay-agent/token").read_text() == f"{AGENT_TOKEN}\n"
    finally:
        machine.stop()


def test_a_start_that_nobody_ordered_is_proved_by_the_tpm_too(machines: Machines, tmp_path: Path) -> None:
    attempt = machines.site.start("n0002", "")
    environment = machines.neighbours.environment["TPM2TOOLS_TCTI"]
    done = join(machines.site.lay_out_node(tmp_path, attempt, ""), TPM2TOOLS_TCTI=environment)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("node", ["n0002", "n0003"])
def test_another_tpm_or_one_that_nobody_declared_proves_nothing(machines: Machines, tmp_path: Path, node: str) -> None:
    code, said, proven_by = start_and_join(machines, node, machines.mine, tmp_path, nonce="a-guess")
    assert (code, proven_by) == (1, "")
    assert "tpm: assay refused" in said
    assert "bmc-nonce: assay refused" in said
    assert not (tmp_path / "etc/assay-agent/token").exists()


def test_without_a_proof_by_tpm_the_number_of_the_bmc_is_the_next(machines: Machines, tmp_path: Path) -> None:
    code, said, proven_by = start_and_join(machines, "n0003", machines.mine, tmp_path, nonce="the-number")
    assert (code, proven_by) == (0, "bmc-nonce"), said


def test_a_machine_that_started_something_else_gets_no_secret(machines: Machines, tmp_path: Path) -> None:
    machines.mine.run("tpm2_pcrextend", f"{DEBUG_REGISTER}:sha256={'ab' * 32}")
    code, said, proven_by = start_and_join(machines, "n0001", machines.mine, tmp_path)
    machines.mine.run("tpm2_pcrreset", str(DEBUG_REGISTER))
    assert (code, proven_by) == (1, ""), said
    (entry,) = machines.site.ledger.entries("n0001", [JoinRefusedEntry.kind])
    assert "the registers differ" in str(entry.body)


@pytest.mark.parametrize("proof", [{}, {"quote": "AAAA", "signature": "AAAA"}])
def test_what_the_tpm_unwrapped_is_not_enough_where_the_image_declares_registers(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, proof: dict[str, str]
) -> None:
    attempt = machines.site.start("n0001", "the-number")

    def ask(path: str, body: dict[str, str], wanted: str) -> object:
        return machines.site.post(f"attempts/{attempt.name}/{path}", body)[1][wanted]

    monkeypatch.setenv("TPM2TOOLS_TCTI", machines.mine.environment["TPM2TOOLS_TCTI"])
    whole = prove_by_tpm(ask)
    without = {name: whole[name] for name in ("attestation_key", "secret")}
    assert machines.site.post(f"attempts/{attempt.name}/identity", without | proof)[0] == 401
    assert machines.site.post(f"attempts/{attempt.name}/identity", whole)[0] == 200


@pytest.mark.parametrize("keys", [{}, {"endorsement_key": "AAAA", "attestation_key": "AAAA"}, {"endorsement_key": "?"}])
def test_keys_that_are_none_are_refused(machines: Machines, keys: dict[str, str]) -> None:
    attempt = machines.site.start("n0001", "the-number")
    status, answer = machines.site.post(f"attempts/{attempt.name}/challenge", keys)
    assert status in (401, 422), answer

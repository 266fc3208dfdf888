"""A node that has booted proves itself over HTTPS with what only its own BMC showed it, and gets each secret once."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from assay.act.boot.attempts import fold_attempts, make_stage_entry
from assay.model.clock import SystemClock
from tests.act.boot.secure_site import AGENT_TOKEN, SLURM_KEY, SecureSite, join


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureSite]:
    site = SecureSite(tmp_path_factory.mktemp("secure"))
    yield site
    site.server.stop()


def test_the_node_with_the_right_number_gets_its_secrets_once(site: SecureSite, tmp_path: Path) -> None:
    attempt = site.start("n0001", "number-1")
    node = site.lay_out_node(tmp_path, attempt, "number-1")
    done = join(node)
    assert done.returncode == 0, done.stderr
    written = {path: (node / path).read_text() for path in ("etc/assay-agent/token", "etc/slurm/slurm.key")}
    assert written == {"etc/assay-agent/token": f"{AGENT_TOKEN}\n", "etc/slurm/slurm.key": f"{SLURM_KEY}\n"}
    assert {(node / path).stat().st_mode & 0o777 for path in written} == {0o600}
    assert "slurm.lab1.example" in (node / "etc/default/slurmd").read_text()
    assert site.kinds("n0001") == ["join.issued", "join.issued", "join.used", "join.used"]

    once_more = join(node)
    assert once_more.returncode == 1
    assert "assay refused" in once_more.stderr
    said = "".join(done.stderr + once_more.stderr)
    ledger = (site.root / ".assay" / "ledger.sqlite").read_bytes()
    for secret in (AGENT_TOKEN, SLURM_KEY, "number-1"):
        assert secret not in said
        assert secret.encode() not in ledger


def test_the_proof_is_a_proven_stage(site: SecureSite, tmp_path: Path) -> None:
    attempt = site.start("n0002", "number-2")
    assert join(site.lay_out_node(tmp_path, attempt, "number-2")).returncode == 0
    entries = site.ledger.entries("n0002")
    assert fold_attempts(entries)[attempt.name].proven_by == "bmc-nonce"


@pytest.mark.parametrize("wrong", ["number-of-a-neighbour", " "])
def test_a_wrong_number_gets_nothing(site: SecureSite, tmp_path: Path, wrong: str) -> None:
    attempt = site.start("n0003", "number-3")
    done = join(site.lay_out_node(tmp_path, attempt, wrong))
    assert done.returncode == 1
    assert not (tmp_path / "etc/assay-agent/token").exists()
    assert set(site.kinds("n0003")) <= {"join.refused"}


def test_a_start_of_the_machines_own_has_no_number_and_proves_nothing(site: SecureSite) -> None:
    attempt = site.start("n0004", "")
    site.ledger.append(make_stage_entry(attempt, "kernel", SystemClock().now()))
    status, _ = site.post(f"attempts/{attempt.name}/identity", {"bmc_nonce": "anything"})
    assert status == 401


def test_a_start_that_is_over_gets_no_token(site: SecureSite) -> None:
    attempt = site.start("n0005", "number-5", minutes_ago=20)
    status, answer = site.post(f"attempts/{attempt.name}/identity", {"bmc_nonce": "number-5"})
    assert (status, answer["error"]) == (401, "refused: assay's ledger says why")
    assert site.kinds("n0005") == ["join.refused"]


def test_a_token_that_somebody_shows_for_other_nodes_is_an_alarm_of_its_own_node_and_ends_no_other_start(
    site: SecureSite,
) -> None:
    mine, other = site.start("n0006", "number-6"), site.start("n0007", "number-7")
    stolen = read_tokens(site, mine.name, "number-6")
    honest = read_tokens(site, other.name, "number-7")
    for start in (other.name, "n0008.deadbeefdeadbeefdeadbeefdeadbeef", "n0009.0"):
        assert site.post(f"attempts/{start}/join/slurm", {}, stolen["slurm"])[0] == 401
    for framed in ("n0007", "n0008", "n0009"):
        assert not [kind for kind in site.kinds(framed) if kind.startswith(("fault", "join.refused", "join.revoked"))]
    assert site.kinds("n0006").count("fault") == 1
    assert site.post(f"attempts/{other.name}/join/agent", {}, honest["agent"])[0] == 200, "it had nothing to do with it"
    assert site.post(f"attempts/{mine.name}/join/agent", {}, stolen["agent"])[0] == 401, "its start gets no more"


def read_tokens(site: SecureSite, start: str, nonce: str) -> dict[str, str]:
    _, answer = site.post(f"attempts/{start}/identity", {"bmc_nonce": nonce})
    tokens = answer["tokens"]
    assert isinstance(tokens, dict)
    return tokens


def test_plain_http_carries_no_secret(boot, tmp_path: Path) -> None:
    for path in ("identity", "join/agent"):
        with pytest.raises(urllib.error.HTTPError, match="403"):
            boot.server.ask(f"attempts/n0001.0/{path}", b'{"bmc_nonce": "1"}')


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"bmc_nonce": 1}', b"\xff", b'{"bmc_nonce": ""}'])
def test_a_body_that_is_none_is_said_so(site: SecureSite, body: bytes) -> None:
    request = urllib.request.Request(f"{site.url}/boot/v1/attempts/n0001.0/identity", body)
    context = ssl.create_default_context(cafile=str(site.root / "ca.pem"))
    with pytest.raises(urllib.error.HTTPError, match="422"):
        urllib.request.urlopen(request, timeout=60, context=context)


@pytest.mark.slow
def test_a_server_that_the_node_does_not_trust_gets_nothing(site: SecureSite, tmp_path: Path) -> None:
    attempt = site.start("n0008", "number-8")
    node = site.lay_out_node(tmp_path, attempt, "number-8")
    trustme.CA().cert_pem.write_to_path(node / "etc/assay-agent/ca.pem")
    done = join(node)
    assert done.returncode == 1
    assert "its certificate is not trusted" in done.stderr
    assert site.kinds("n0008") == []

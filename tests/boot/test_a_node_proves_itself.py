"""A node that has booted proves itself over HTTPS with what only its own BMC showed it, and gets each secret once."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import trustme
import yaml
from boot_room import BootServer, find_free_port, lay_out_boot

from assay.fleet.fleet_loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.provisioning.boot_attempts import (
    BootAttempt,
    fold_attempts,
    make_stage_entry,
    make_started_entry,
    name_attempt,
)
from assay.provisioning.cloud_init.node_data import make_join_plan, make_node_boot
from assay.provisioning.identity.join_tokens import hash_token

AGENT_TOKEN, SLURM_KEY = "the-agents-own-token-41", "the-key-of-the-cluster-77"


class SecureSite:
    """A fleet with a boot server over HTTPS, whose nodes join Slurm and have agents."""

    def __init__(self, root: Path) -> None:
        self.root, port = root, find_free_port()
        slurm = {"conf_server": "slurm.lab1.example:6817", "key": {"file": "slurm.key"}}
        self.url = f"https://127.0.0.1:{port}"
        lay_out_boot(root, port, secure_url=self.url, ca_file="ca.pem", joins={"slurm": slurm})
        (root / "slurm.key").write_text(SLURM_KEY)
        (root / "agent.token").write_text(AGENT_TOKEN)
        path = root / "inventory" / "macs.yml"
        hosts = yaml.safe_load(path.read_text())
        for host in hosts["h100-a"]["hosts"].values():
            host["agent_token"] = {"file": "agent.token"}
        path.write_text(yaml.safe_dump(hosts))
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(root / "ca.pem")
        self.authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(root / "server.pem")
        self.ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
        self.server = BootServer(root, port)
        self.server.start("--cert", str(root / "server.pem"))

    def start(self, node: str, nonce: str, minutes_ago: float = 0) -> BootAttempt:
        """Return a start of a node that has fetched its script."""
        now = SystemClock().now() - timedelta(minutes=minutes_ago)
        fleet = load_fleet(self.root)
        image = fleet.image_of(node)
        assert image is not None
        started = make_started_entry(node, name_attempt(node), image, now, effect="e1", nonce_sha256=hash_token(nonce))
        attempt = next(iter(fold_attempts([started]).values()))
        self.ledger.append(started, make_stage_entry(attempt, "pxe", now))
        return attempt

    def lay_out_node(self, folder: Path, attempt: BootAttempt, nonce: str) -> Path:
        """Lay out what cloud-init and SMBIOS give a node."""
        fleet = load_fleet(self.root)
        provisioning = fleet.provisioning_of(attempt.node)
        assert provisioning is not None
        boot = make_node_boot(fleet, attempt.node, provisioning, attempt.name)
        for name, text in {
            "etc/assay/joins.json": json.dumps(make_join_plan(boot)),
            "etc/assay-agent/ca.pem": (self.root / "ca.pem").read_text(),
            "sys/class/dmi/id/chassis_asset_tag": f"{nonce}\n",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        return folder

    def post(self, path: str, body: object, token: str = "") -> tuple[int, dict[str, object]]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{self.url}/boot/v1/{path}", json.dumps(body).encode(), headers)
        context = ssl.create_default_context(cafile=str(self.root / "ca.pem"))
        try:
            with urllib.request.urlopen(request, timeout=60, context=context) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def kinds(self, node: str) -> list[str]:
        return [entry.kind for entry in self.ledger.entries(node) if entry.kind.startswith(("join.", "fault"))]


def join(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the node's own program, with what a node has: the standard library."""
    command = [sys.executable, "-m", "assay.agent.node_join", "--root", str(folder), "--wait", "5"]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)


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
    assert site.kinds("n0003") == []


def test_a_start_of_the_machines_own_has_no_number_and_proves_nothing(site: SecureSite) -> None:
    attempt = site.start("n0004", "")
    site.ledger.append(make_stage_entry(attempt, "kernel", SystemClock().now()))
    status, _ = site.post(f"attempts/{attempt.name}/identity", {"bmc_nonce": "anything"})
    assert status == 401


def test_a_start_that_is_over_gets_no_token(site: SecureSite) -> None:
    attempt = site.start("n0005", "number-5", minutes_ago=20)
    status, answer = site.post(f"attempts/{attempt.name}/identity", {"bmc_nonce": "number-5"})
    assert (status, answer) == (401, {"error": "refused: assay's ledger says why"})
    assert site.kinds("n0005") == ["join.refused"]


def test_a_token_that_a_neighbour_shows_is_refused_and_an_alarm(site: SecureSite) -> None:
    mine, other = site.start("n0006", "number-6"), site.start("n0007", "number-7")
    _, answer = site.post(f"attempts/{mine.name}/identity", {"bmc_nonce": "number-6"})
    tokens = answer["tokens"]
    assert isinstance(tokens, dict)
    status, _ = site.post(f"attempts/{other.name}/join/slurm", {}, tokens["slurm"])
    assert status == 401
    assert "join.refused" in site.kinds("n0007")
    assert any(kind.startswith("fault") for kind in site.kinds("n0007"))
    status, _ = site.post(f"attempts/{mine.name}/join/agent", {}, tokens["agent"])
    assert status == 401, "the open tokens of both are revoked"


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


def test_a_server_that_the_node_does_not_trust_gets_nothing(site: SecureSite, tmp_path: Path) -> None:
    attempt = site.start("n0008", "number-8")
    node = site.lay_out_node(tmp_path, attempt, "number-8")
    trustme.CA().cert_pem.write_to_path(node / "etc/assay-agent/ca.pem")
    done = join(node)
    assert done.returncode == 1
    assert "its certificate is not trusted" in done.stderr
    assert site.kinds("n0008") == []

"""A fleet with a boot server over HTTPS, and what a node of it has after cloud-init."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import trustme
import yaml

from assay.act.boot.attempts import BootAttempt, fold_attempts, make_stage_entry, make_started_entry, name_attempt
from assay.act.boot.cloud_init import make_join_plan, make_node_boot
from assay.act.boot.joins import hash_token
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from tests.act.boot.boot_room import BootServer, lay_out_boot
from tests.support.reserved_ports import reserve_ports

AGENT_TOKEN, SLURM_KEY = "the-agents-own-token-41", "the-key-of-the-cluster-77"


class SecureSite:
    """A fleet with a boot server over HTTPS, whose nodes join Slurm and have agents.

    `endorsements`: the digests of the nodes' endorsement keys. `pcrs`: the registers of their TPMs, by their image.
    """

    def __init__(
        self, root: Path, endorsements: Mapping[str, str] | None = None, pcrs: Mapping[int, str] | None = None
    ) -> None:
        self.root, port = root, reserve_ports(1)[0]
        slurm = {"conf_server": "slurm.lab1.example:6817", "key": {"file": "slurm.key"}}
        self.url = f"https://127.0.0.1:{port}"
        lay_out_boot(root, port, secure_url=self.url, ca_file="ca.pem", joins={"slurm": slurm})
        (root / "slurm.key").write_text(SLURM_KEY)
        (root / "agent.token").write_text(AGENT_TOKEN)
        path = root / "inventory" / "macs.yml"
        hosts = yaml.safe_load(path.read_text())
        for host in hosts["h100-a"]["hosts"].values():
            host["agent_token"] = {"file": "agent.token"}
        for node, digest in (endorsements or {}).items():
            hosts["h100-a"]["hosts"][node]["endorsement_key_sha256"] = digest
        path.write_text(yaml.safe_dump(hosts))
        image = root / "specs/images/gpu-node.yaml"
        image.write_text(yaml.safe_dump(yaml.safe_load(image.read_text()) | {"pcrs": dict(pcrs or {})}))
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


def join(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the node's own program, with what a node has: the standard library."""
    command = [sys.executable, "-m", "assay.node.agent.node_join", "--root", str(folder), "--wait", "5"]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=120, env=environment | dict(os.environ)
    )

"""The parts of a site with agents, all real: the fleet, `assay serve` over HTTPS, and agents as processes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import trustme

from assay.declare.home import find_home
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.node.agent.delivery import DeliveryBuffer
from tests.support.forked_python import ForkedAssay
from tests.support.places import ROOT
from tests.support.reserved_ports import reserve_ports

ASSAY = [sys.executable, "-m", "assay"]
BOOT = "6f1c1f6e-0000-4000-8000-000000000001"
TOKENS = {f"n{number:04}": f"token-of-{number:04}-8d1f" for number in range(3, 13)}
PATIENCE_S = 60.0  # others load this machine


class Site:
    """One fleet in `home/fleet`, one server, and nodes below `home/nodes`."""

    def __init__(self, home: Path) -> None:
        self.home, self.fleet = home, home / "fleet"
        for part in ("inventory", "specs", "suites"):
            shutil.copytree(ROOT / part, self.fleet / part)
        self.declare(*TOKENS)
        self.authority = trustme.CA()
        self.authority.cert_pem.write_to_path(home / "ca.pem")
        self.authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(home / "server.pem")
        self.running: list[subprocess.Popen[str]] = []
        self.server: subprocess.Popen[str] | None = None
        (self.port,), self.scheme = reserve_ports(1), "https"

    @classmethod
    def of_fleet(cls, home: Path) -> Site:
        """Return a site whose fleet is in `home/fleet` already, with no agents, which speaks plain HTTP."""
        site = cls.__new__(cls)
        site.home, site.fleet, site.running, site.server = home, home / "fleet", [], None
        (site.port,), site.scheme = reserve_ports(1), "http"
        return site

    def declare(self, *names: str) -> None:
        """Let these nodes have agents."""
        declared = {name: {"agent_token": {"sha256": digest(TOKENS[name])}} for name in names}
        (self.fleet / "inventory/agents.yml").write_text(json.dumps({"h100-a": {"hosts": declared}}))

    def limit(self, **limits: dict[str, float]) -> None:
        """Let the policy's `intake` have these limits, of `connections` and `node`."""
        policy = self.fleet / "specs/lifecycle/default.yaml"
        whole = re.sub(r"(?m)^intake:\n(?:  .*\n)*", "", policy.read_text())
        policy.write_text(f"{whole}\nintake: {json.dumps(limits)}\n")

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def reader(self) -> dict[str, str]:
        """The headers by which somebody reads who is on the server's machine, where nobody is declared."""
        token = (find_home(self.fleet).folder / "reader-token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def serve(self) -> None:
        """Start what listens, on the same port each time."""
        words = ["serve", "--port", str(self.port), "--fleet", str(self.fleet)]
        words += ["--cert", str(self.home / "server.pem")] if self.scheme == "https" else []
        self.server = self._start([*ASSAY, *words], "serve")
        self.wait_for(lambda: self.said("serve", self.server), "the server listens")

    def said(self, name: str, process: Any = None) -> str:
        """Return the last line of a process that has written one; a process that has ended is an error."""
        if process is not None and process.poll() is not None:
            raise AssertionError(f"{name} ended {process.returncode}: {self.log(name)}")
        lines = [line for line in self.log(name).splitlines() if "listens on" in line]
        return lines[-1] if len(lines) >= self.started(name) else ""

    def started(self, name: str) -> int:
        return int((self.home / f"{name}.starts").read_text())

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()

    def kill(self, process: subprocess.Popen[str], how: int = signal.SIGKILL) -> int:
        """End a process and return its exit code."""
        process.send_signal(how)
        return process.wait(PATIENCE_S)

    def node(self, name: str = "n0003") -> Node:
        return Node(self, name)

    def agent(self, node: Node, *words: str, token: str = "", before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start the agent of a node, by the command `before` it."""
        (node.root.parent / "token").write_text(f"{token or TOKENS[node.name]}\n")
        command = [sys.executable, "-m", "assay.node.agent", "--server", self.url, "--node", node.name]
        command += ["--token-file", str(node.root.parent / "token"), "--ca", str(self.home / "ca.pem")]
        command += ["--root", str(node.root), "--state", str(node.state), "--beat", "1", "--no-events", *words]
        return self._start([*before, *command], f"agent-{node.name}")

    def post(self, name: str, body: bytes, token: str | None = None) -> tuple[int, dict[str, Any]]:
        """Return the status and the object that a POST of a node's is answered with."""
        shown = TOKENS.get(name, "") if token is None else token
        request = urllib.request.Request(
            f"{self.url}/agent/v1/nodes/{name}/batches", body, {"Authorization": f"Bearer {shown}"}
        )
        context = ssl.create_default_context(cafile=str(self.home / "ca.pem"))
        try:
            with urllib.request.urlopen(request, context=context, timeout=PATIENCE_S) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"{}")

    def faults(self, fault_class: str = "", node: str | None = None) -> list[LedgerEntry]:
        """Return the fault entries of the ledger, of one class, of one node."""
        path = find_home(self.fleet).folder / "ledger.sqlite"
        if not path.exists():
            return []
        ledger = Ledger.open(path)
        try:
            found = ledger.entries(node, kinds=["fault"])
        finally:
            ledger.close()
        return [entry for entry in found if fault_class in ("", entry.body["class"])]

    def wait_for(self, what: Callable[[], Any], said: str) -> Any:
        """Wait until something is so and return it."""
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            if found := what():
                return found
            time.sleep(0.1)  # each look opens the ledger
        logs = {path.name: path.read_text()[-800:] for path in self.home.glob("*.log")}
        raise AssertionError(f"waited in vain until {said}; {logs}")

    def end(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE_S)

    def _start(self, command: list[str], name: str) -> subprocess.Popen[str]:
        counter = self.home / f"{name}.starts"
        counter.write_text(str(int(counter.read_text()) + 1 if counter.exists() else 1))
        environment = {key: text for key, text in os.environ.items() if not key.startswith("ASSAY_")}
        with (self.home / f"{name}.log").open("a") as log:
            process = ForkedAssay(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        self.running.append(process)
        return process


class Node:
    """A node's root, with a kernel log that is a plain file of records."""

    def __init__(self, site: Site, name: str) -> None:
        self.name, self.root = name, site.home / "nodes" / name / "root"
        self.state = self.root.parent / "state"
        self.log = self.root / "dev/kmsg"
        boot = self.root / "proc/sys/kernel/random/boot_id"
        for path in (self.log, boot):
            path.parent.mkdir(parents=True, exist_ok=True)
        boot.write_text(f"{BOOT}\n")
        (self.root / "proc/uptime").write_text("5000.00 5000.00\n")
        self.number = 0
        self.log.touch()

    def says(self, *texts: str, level: int = 3) -> int:
        """Write lines into the kernel log and return the number of the last."""
        with self.log.open("a") as file:
            for text in texts:
                self.number += 1
                file.write(f"{level},{self.number},{5000_000000 + self.number},-;{text}\n")
        return self.number

    def xid(self, number: int = 79, gpu: str = "0000:1b:00", times: int = 1) -> int:
        """Let a GPU report an XID."""
        return self.says(*[f"NVRM: Xid (PCI:{gpu}): {number}, pid='<unknown>', name=<unknown>"] * times)

    def waiting(self) -> int:
        """Return how many items wait in the agent's buffer."""
        buffer = DeliveryBuffer(self.state / "buffer.sqlite", 10**9)
        try:
            return buffer.count
        finally:
            buffer.close()


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def batch(node: str = "n0003", life: str = "11111111-1111-1111-1111-111111111111", **changed: Any) -> dict[str, Any]:
    """Return a batch that is right, but for what is changed."""
    state = {"cpu_s": 0.1, "rss_bytes": 1, "buffered": 0, "buffered_bytes": 0, "dropped": {}, "missed": 0}
    return {
        "schema": "assay.agent/1",
        "node": node,
        "life": life,
        "after": 0,
        "now": time.time(),
        "items": [],
        "agent": {**state, "log": "", "nvml": "", "words": []},
        **changed,
    }


def xid_item(
    seq: int, line: int | None = None, number: int = 79, kind: str = "kernel", **changed: Any
) -> dict[str, Any]:
    """Return an item that tells of an XID."""
    text = f"NVRM: Xid (PCI:0000:1b:00): {number}, told"
    body = {"boot": BOOT, "seq": seq if line is None else line, "t_s": 10.0 + seq, "text": text, **changed}
    return {"seq": seq, "kind": kind, "at": time.time(), "body": body}

"""The delay from a kernel line to a stored fault: kernel log, agent, HTTPS, `assay serve`, ledger, on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme

from assay.observe.last_seen import LastSeen
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

NODE, TOKEN, BOOT = "n0003", "a-token-of-the-bench-7c41", "6f1c1f6e-0000-4000-8000-000000000001"
RATE, SECONDS, BURST = 500, 20, 5000
MEDIAN_S, WORST_S = 0.3, 1.0
XIDS = (13, 31, 32, 46, 48, 62, 63, 64, 92, 94, 95, 109, 110, 136, 140, 143)  # none is a secondary fault of another
GPU_BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")  # of the node's spec
PATIENCE_S = 120.0
UP_S = 5000
TICKS = os.sysconf("SC_CLK_TCK")


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure a steady stream, then a burst, and count lost lines."""
    site = Site(folder / "agent")
    try:
        site.start()
        yield from measure_delays(f"{RATE} kernel lines a second for {SECONDS} s", site, site.write_steadily)
        yield from measure_delays(f"a burst of {BURST} kernel lines", site, site.write_burst)
    finally:
        site.end()


def measure_delays(what: str, site: Site, write: Callable[[], None]) -> Iterator[Measurement]:
    """Write lines, wait until all are stored, and measure delays, CPU and lost lines."""
    before, begun, first = site.cpu_s(), time.monotonic(), site.line
    write()
    site.wait()
    delays = sorted(site.stored[line] - site.written[line] for line in range(first, site.line) if line in site.stored)
    cost = {name: spent - before[name] for name, spent in site.cpu_s().items()}
    made_of = {f"{name}_cpu_s": spent for name, spent in cost.items()} | {"wall_s": time.monotonic() - begun}
    worst = delays[int(len(delays) * 0.99)]
    yield Measurement(
        f"{what}: written → fault stored, median", statistics.median(delays), "s", "at most", MEDIAN_S, made_of
    )
    yield Measurement(
        f"{what}: written → fault stored, 99 of 100", worst, "s", "at most", WORST_S, {"slowest_s": delays[-1]}
    )
    yield Measurement(f"{what}: lines lost or taken twice", abs(site.received() - site.line), "lines", "at most", 0)


@dataclass
class Site:
    """A fleet with one agent in `home`, and the monotonic times when each line was written and stored."""

    home: Path
    running: list[subprocess.Popen[str]] = field(default_factory=list)
    written: dict[int, float] = field(default_factory=dict)
    stored: dict[int, float] = field(default_factory=dict)
    line: int = 0
    seen: int = 0

    def start(self) -> None:
        """Start `assay serve`, then the agent."""
        self._write_files()
        certificate = str(self.home / "server.pem")
        self._run([*ASSAY, "serve", "--port", "0", "--cert", certificate, "--fleet", str(self.home / "fleet")], "serve")
        port = self._wait_for_line("serve", "listens on").rpartition(":")[2]
        words = ["--server", f"https://127.0.0.1:{port}", "--node", NODE, "--token-file", str(self.home / "token")]
        words += ["--ca", str(self.home / "ca.pem"), "--root", str(self.home / "root"), "--no-events"]
        self._run([sys.executable, "-m", "assay.node.agent", *words, "--state", str(self.home / "state")], "agent")
        self._wait_for_line("agent", "accepts the items")
        self._ledger = sqlite3.connect(self.home / "fleet/.assay/ledger.sqlite")

    def write_steadily(self) -> None:
        """Write lines at `RATE`, a few at a time as a kernel does."""
        begun, first = time.monotonic(), self.line
        while (done := self.line - first) < RATE * SECONDS:
            due = int((time.monotonic() - begun) * RATE) - done
            self._write(max(0, min(due, RATE * SECONDS - done)))
            self._read_ledger()
            time.sleep(0.004)

    def write_burst(self) -> None:
        """Write all lines at once."""
        self._write(BURST)

    def wait(self) -> None:
        """Wait until every line is stored and acknowledged."""
        ends_at = time.monotonic() + PATIENCE_S
        while (len(self.stored) < self.line or self.received() < self.line) and time.monotonic() < ends_at:
            self._read_ledger()
            time.sleep(0.004)

    def received(self) -> int:
        """Return how many lines the server has received."""
        position = LastSeen(self.home / "fleet/.assay/heard.sqlite").positions().get(NODE)
        return position.received if position else 0

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds of the server and of the agent."""
        return {name: _cpu_s(process.pid) for name, process in zip(("server", "agent"), self.running, strict=True)}

    def end(self) -> None:
        """End both."""
        for process in self.running:
            process.kill()
            process.wait()

    def _write_files(self) -> None:
        for part in ("inventory", "specs", "suites"):
            shutil.copytree(ROOT / part, self.home / "fleet" / part)
        digest = {"agent_token": {"sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}}
        (self.home / "fleet/inventory/agent.yml").write_text(json.dumps({"h100-a": {"hosts": {NODE: digest}}}))
        (self.home / "token").write_text(TOKEN)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.home / "ca.pem")
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(self.home / "server.pem")
        boot = self.home / "root/proc/sys/kernel/random/boot_id"
        for path in (boot, self.home / "root/dev/kmsg"):
            path.parent.mkdir(parents=True)
        boot.write_text(BOOT)
        (self.home / "root/proc/uptime").write_text(f"{UP_S} {UP_S}")
        (self.home / "root/dev/kmsg").touch()

    def _write(self, count: int) -> None:
        """Write lines. All lines of one call get the time when the last of them was written."""
        lines = "".join(record(number) for number in range(self.line, self.line + count))
        with (self.home / "root/dev/kmsg").open("a") as log:
            log.write(lines)
        self.written |= dict.fromkeys(range(self.line, self.line + count), time.monotonic())
        self.line += count

    def _read_ledger(self) -> None:
        """Note the lines that are stored by now: a fault's mark is the last line counted for it."""
        query = "SELECT seq, body FROM entry WHERE seq > ? AND kind = 'fault' ORDER BY seq"
        rows = self._ledger.execute(query, (self.seen,)).fetchall()
        now = time.monotonic()
        for seq, body in rows:
            self.seen = seq
            self._note_stored(json.loads(body), now)

    def _note_stored(self, fault: dict[str, Any], now: float) -> None:
        line = int(fault["marks"]["kernel"].rpartition(":")[2])
        while line >= 0 and line not in self.stored:
            self.stored[line] = now
            line -= len(XIDS) * 8

    def _run(self, command: list[str], name: str) -> None:
        with (self.home / f"{name}.log").open("w") as log:
            self.running.append(subprocess.Popen(command, stdout=log, stderr=log, text=True))

    def _wait_for_line(self, name: str, text: str) -> str:
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            for line in (self.home / f"{name}.log").read_text().splitlines():
                if text in line:
                    return line
            time.sleep(0.02)
        raise RuntimeError(f"{name} did not print {text!r}: {(self.home / f'{name}.log').read_text()[-500:]}")


def record(number: int) -> str:
    """Return the kernel record `number`: each XID on each of eight GPUs, in turn."""
    gpu, xid = number % 8, XIDS[number // 8 % len(XIDS)]
    text = f"NVRM: Xid (PCI:0000:{GPU_BUSES[gpu]}:00): {xid}, pid=4242, name=python3"
    return f"3,{number},{UP_S * 1_000_000 + number},-;{text}\n"


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS

"""200 people look at live pages of `assay serve` while passes run over 10,000 nodes and an agent delivers batches.

The ledger is that of the part `quiet`. In each round, entries come one after another, a pass runs, and an agent
delivers. The same rounds without viewers say what the viewers cost the pass and the agent.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.act.loop.context import ControllerContext
from assay.act.loop.reconcile_loop import ReconcileLoop
from assay.model.entries.boot import MachineSeenEntry
from assay.model.specs.machines import SeenMachine
from bench.big_fleet import make, node_name, pool_name
from bench.measurement import Measurement
from bench.programs import ASSAY
from bench.quiet import NODES, make_context, make_loop, write_past

VIEWERS, TOKENS, ROUNDS, ENTRIES, BATCHES = 200, 20, 8, 10, 20
FRESH_S, WORST_S, TIMES = 5.0, 10.0, 2.0
ENTRY_EACH_S, PAUSE_S = 0.1, 4.0
AGENT, AGENT_TOKEN = node_name(0), "a-token-of-the-bench-9d02"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Rounds:
    """What some rounds took: CPU seconds of each pass, wall seconds of each batch, and when each entry was written."""

    passes: list[float] = field(default_factory=list)
    batches: list[float] = field(default_factory=list)
    written: dict[int, float] = field(default_factory=dict)
    wall_s: float = 0.0
    server_cpu_s: float = 0.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure without and with viewers, in a fleet below `folder`."""
    root = make(folder / "viewers", NODES)
    shutil.rmtree(root / "specs/schedules")  # a pass is to do the same each time
    context = make_context(root)
    write_past(context)
    loop = make_loop(context)
    loop.begin()
    loop.run_everything_due()
    _let_in(root)  # the loop does not know the agent: its clock is another one, and the agent would seem to be silent
    server = Server(root)
    try:
        without = _run_rounds(context, loop, server, 0)
        with Audience(server.port) as audience:
            among = _run_rounds(context, loop, server, ROUNDS)
        yield from _compare(without, among, audience.shown)
    finally:
        server.end()
        context.ledger.close()


def _compare(without: Rounds, among: Rounds, shown: Sequence[Sequence[tuple[int, float]]]) -> Iterator[Measurement]:
    delays = sorted(
        next((at for entry, at in pages if entry >= seq), among.wall_s) - written
        for pages in shown
        for seq, written in among.written.items()
    )
    what = f"{VIEWERS} viewers, {NODES:,} nodes"
    cpu = {"server_cores": among.server_cpu_s / among.wall_s, "without_cores": without.server_cpu_s / without.wall_s}
    pages = {"pages": sum(map(len, shown)), "entries": len(among.written)}
    yield Measurement(
        f"{what}: entry → page, median", statistics.median(delays), "s", "at most", FRESH_S, {**cpu, **pages}
    )
    worst = delays[int(len(delays) * 0.95)]
    yield Measurement(f"{what}: entry → page, 95 of 100", worst, "s", "at most", WORST_S, {"slowest_s": delays[-1]})
    for name, before, after in (
        ("a pass, CPU", without.passes, among.passes),
        ("a batch of an agent, wall", without.batches, among.batches),
    ):
        quiet, busy = statistics.median(before), statistics.median(after)
        figures = {"with_s": busy, "without_s": quiet, "slowest_with_s": max(after), "slowest_without_s": max(before)}
        yield Measurement(f"{what}: {name}, with viewers / without", busy / quiet, "×", "at most", TIMES, figures)


def _run_rounds(context: ControllerContext, loop: ReconcileLoop, server: Server, first: int) -> Rounds:
    took, begun, before = Rounds(), time.monotonic(), server.cpu_s()
    for at in range(first, first + ROUNDS):
        for number in range(ENTRIES):
            machine = MachineSeenEntry(SeenMachine(serial=f"S{at}-{number}"), "scan")
            context.ledger.append(machine.make_entry(f"seen-{at}-{number}", context.now))
            took.written[context.ledger.head()] = time.monotonic()
            time.sleep(ENTRY_EACH_S)
        start = time.process_time()
        loop.run_everything_due()
        took.passes.append(time.process_time() - start)
        took.batches += [server.deliver() for _ in range(BATCHES)]
        time.sleep(PAUSE_S)
    took.wall_s, took.server_cpu_s = time.monotonic() - begun, server.cpu_s() - before
    return took


class Server:
    """`assay serve` of a fleet, and the connection of an agent."""

    def __init__(self, root: Path) -> None:
        words = [*ASSAY, "serve", "--port", "0", "--fleet", str(root)]
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert self._process.stdout
        said = next(line for line in self._process.stdout if "listens on" in line)
        self.port = int(said.rpartition(":")[2])
        self._agent = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def deliver(self) -> float:
        """Deliver a batch, and return how many seconds that took."""
        state = {"cpu_s": 0.1, "rss_bytes": 1, "buffered": 0, "buffered_bytes": 0, "dropped": {}, "missed": 0}
        life = "11111111-1111-1111-1111-111111111111"
        batch = {"schema": "assay.agent/1", "node": AGENT, "life": life, "after": 0, "now": time.time(), "items": []}
        body = json.dumps(batch | {"agent": {**state, "log": "", "nvml": "", "words": []}})
        begun = time.monotonic()
        self._agent.request(
            "POST", f"/agent/v1/nodes/{AGENT}/batches", body, {"Authorization": f"Bearer {AGENT_TOKEN}"}
        )
        answer = self._agent.getresponse()
        assert (answer.status, answer.read())[0] == 200
        return time.monotonic() - begun

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def end(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait()


class Audience:
    """The viewers, in a process of their own. `shown` is what each saw, after the end."""

    def __init__(self, port: int) -> None:
        words = [sys.executable, "-m", "bench.viewing", str(port), str(VIEWERS), *map(_token, range(TOKENS))]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.shown: Sequence[Sequence[tuple[int, float]]] = ()

    def __enter__(self) -> Audience:
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        said, _ = self._process.communicate("")
        self.shown = json.loads(said)


def _token(number: int) -> str:
    return f"token-of-viewer-{number:02}"


def _let_in(root: Path) -> None:
    """Declare the viewers, every other one an operator, and the agent of one node."""
    visitors = {
        f"viewer{number:02}": {
            "role": ("viewer", "operator")[number % 2],
            "token": {"sha256": hash_token(_token(number))},
        }
        for number in range(TOKENS)
    }
    policy = root / "specs/lifecycle/default.yaml"
    policy.write_text(f"{policy.read_text()}\naccess: {json.dumps({'visitors': visitors})}\n")
    hosts = {AGENT: {"agent_token": {"sha256": hash_token(AGENT_TOKEN)}}}
    (root / "inventory/agents.yml").write_text(json.dumps({pool_name(0): {"hosts": hosts}}))


def hash_token(token: str) -> str:
    """Return a token as inventory and policy name it."""
    return hashlib.sha256(token.encode()).hexdigest()

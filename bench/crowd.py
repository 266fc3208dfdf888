"""Ten people read ten pages each of `assay serve`, while the agents of 10,000 nodes report and entries come in.

The ledger is that of the part `quiet`. First the agents are alone: what a batch costs, and what they leave for people.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from assay.model.entries.boot import MachineSeenEntry
from assay.model.specs.machines import SeenMachine
from bench.big_fleet import make, node_name, pool_name
from bench.measurement import Measurement
from bench.quiet import NODES, make_context, write_past
from bench.viewers import Server, hash_token

PEOPLE, SECONDS, ENTRY_EACH_S = 10, 60.0, 10.0
BOUND_S = 0.3
EVERYBODYS = ("/", "/tickets", "/machines", "/trends", "/fabric", "/rollouts", "/idle")


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure in a fleet below `folder`."""
    root = make(folder / "crowd", NODES)
    context = make_context(root)
    write_past(context)
    context.ledger.close()
    _let_in(root)
    yield from measure(root)


def measure(root: Path) -> Iterator[Measurement]:
    """Measure in this fleet, whose policy lets everybody in."""
    context, server = make_context(root), Server(root)
    agents = {node_name(number): _token(node_name(number)) for number in range(NODES)}
    try:
        before = server.cpu_s()
        alone = _run(server.port, SECONDS / 2, {"agents": agents, "people": []}).communicate()[0]
        batch = (server.cpu_s() - before) / len(json.loads(alone)["batches"])
        people = [(_token(f"person{at}"), list(_list_pages(at))) for at in range(PEOPLE)]
        before, crowd = server.cpu_s(), _run(server.port, SECONDS, {"agents": agents, "people": people})
        for number in range(int(SECONDS / ENTRY_EACH_S)):
            seen = MachineSeenEntry(SeenMachine(serial=f"S-{number}"), "scan")
            context.ledger.append(seen.make_entry(f"crowd-{before}-{number}", context.now))
            try:
                crowd.wait(ENTRY_EACH_S)
            except subprocess.TimeoutExpired:
                continue
        seen_by_all = json.loads(crowd.communicate()[0])
        yield from _judge(seen_by_all, batch, server.cpu_s() - before)
    finally:
        server.end()
        context.ledger.close()


def _judge(saw: Mapping[str, Any], batch: float, cpu_s: float) -> Iterator[Measurement]:
    pages = sorted(each for times in saw["pages"].values() for each in times)
    still, again = sorted(saw["still"]), sorted(saw["again"])
    slowest = {f"{page}_s": max(times) for page, times in saw["pages"].items() if page in EVERYBODYS}
    figures = {
        "median_s": statistics.median(pages),
        "pages": len(pages),
        "still_95_s": _find_95(still),
        "again_95_s": _find_95(again),
        **slowest,
    }
    figures |= {"batches": len(saw["batches"]), "server_cores": cpu_s / SECONDS, "a_batch_cpu_ms": batch * 1000}
    what = f"{PEOPLE} people beside {NODES:,} agents: a page, 95 of 100"
    yield Measurement(what, _find_95(pages), "s", "at most", BOUND_S, figures)


def _find_95(values: Sequence[float]) -> float:
    return values[int(len(values) * 0.95)]


def _list_pages(person: int) -> Iterator[str]:
    """Yield ten pages: those that everybody looks at, each person first at another, and those of what is theirs."""
    own = (f"/nodes/{node_name(person * 997)}", f"/pools/{pool_name(person * 997)}", f"/racks/r{person * 249 + 1:05}")
    at = person % len(EVERYBODYS)
    yield from (*EVERYBODYS[at:], *EVERYBODYS[:at], *own)


def _run(port: int, seconds: float, given: Mapping[str, Any]) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "bench.crowding", str(port), str(seconds)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin
    process.stdin.write(json.dumps(given))
    process.stdin.close()
    process.stdin = None  # communicate() would close it again
    return process


def _token(name: str) -> str:
    return f"token-of-the-crowd-{name}"


def _let_in(root: Path) -> None:
    """Declare the people, and an agent for each node."""
    names = [f"person{number}" for number in range(PEOPLE)]
    visitors = {name: {"role": "operator", "token": {"sha256": hash_token(_token(name))}} for name in names}
    policy = root / "specs/lifecycle/default.yaml"
    policy.write_text(f"{policy.read_text()}\naccess: {json.dumps({'visitors': visitors})}\n")
    pools: dict[str, Any] = {}
    for number in range(NODES):
        agent = {"agent_token": {"sha256": hash_token(_token(node_name(number)))}}
        pools.setdefault(pool_name(number), {"hosts": {}})["hosts"][node_name(number)] = agent
    (root / "inventory/agents.yml").write_text(json.dumps(pools))

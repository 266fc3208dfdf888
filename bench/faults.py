"""The cost to classify kernel logs, compared with grep; the memory for any log; the cost of a pushed event.

grep looks for how the messages of the catalogue's classes and watched drivers begin: the same words, in the same log.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from assay.cli.verbs.faults import classify_log
from assay.cli.workspace import load_surrounding_catalog
from assay.decide.faults.detection import detect_faults
from assay.decide.state.node_state import NodeState
from assay.declare.loader import load_fleet
from assay.model.evidence import EvidenceDocument
from assay.model.facts import to_json
from assay.model.faults.fault_record import FaultRecord
from assay.model.reading import value
from assay.model.specs.fault_catalog import FaultCatalog
from bench.cost import cost
from bench.measurement import Measurement
from bench.programs import ASSAY, ROOT

LINES = 1_000_000
EVERY = 100  # every n-th line is a fault
TURNS = 9
HEALTHY = 20_000
HEALTHY_HEAD = (
    "mlx5_core 0000:{bus:02x}:00.0: poll_health:{number}:(pid 0): sensor {number} reads 40 degrees, all is well"
)
HARMLESS = (
    "IPv6: ADDRCONF(NETDEV_CHANGE): cali{:x}: link becomes ready",
    "nvidia-nvswitch2: open (major=510)",
    'audit: type=1400 audit(1700000000.123:456): apparmor="DENIED" operation="open" profile="snap" pid={}',
    "docker0: port 3(veth{:x}) entered forwarding state",
    "usb 1-1: new high-speed USB device number {} using xhci_hcd",
    "systemd[1]: Started Session {} of user root.",
    "overlayfs: upperdir is in-use as upperdir/workdir of another mount",
    "TCP: request_sock_TCP: Possible SYN flooding on port {}. Sending cookies.",
)
KNOWN = (
    "nfs: server n{} OK",
    "nvme nvme0: {}/0/0 default/read/poll queues",
)
FAULTS = (
    "NVRM: Xid (PCI:0000:1b:00): 13, pid={}, name=python3, Graphics Exception: ESR 0x504730=0x2",
    "NVRM: Xid (PCI:0000:3b:00): 31, pid={}, name=python3, Ch 00000010, intr 00000000. MMU Fault",
    "mlx5_core 0000:18:00.0 ibp24s0: Link down",
    "pcieport 0000:15:01.0: AER: Correctable error message received from 0000:16:00.0",
    "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20001, Non-fatal, Link {} TX Replay Error",
)


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure on logs below `folder`."""
    catalog = load_surrounding_catalog(ROOT)
    yield against_grep(write_log(folder / "kernel.log"), catalog, LINES // EVERY, "a million kernel lines", 10)
    busy = write_log(folder / "busy.log", (*HARMLESS, *KNOWN))
    yield against_grep(busy, catalog, 0, "a million lines, a fifth of them of drivers that classes know", 10)
    told = write_log(folder / "storm.log", FAULTS)
    yield against_grep(told, catalog, LINES, "a storm of a million faults", 30)
    yield from healthy_heads(folder, catalog)
    yield storm(folder)
    yield subjects(folder)
    yield pushed()


def write_log(path: Path, others: Sequence[str] = HARMLESS) -> Path:
    """Write a million lines as dmesg prints them, every hundredth a fault; always the same lines."""
    chance = random.Random(5)  # noqa: S311 — no secret
    with path.open("w", encoding="ascii") as file:
        for number in range(LINES):
            line = chance.choice(FAULTS if number % EVERY == 7 else others)
            file.write(f"[{100 + number / 100:12.6f}] {line.format(chance.randrange(99999))}\n")
    return path


def against_grep(log: Path, catalog: FaultCatalog, faults: int, what: str, most: float) -> Measurement:
    """Return the CPU time of classifying as a multiple of that of grep for the same starts of lines.

    `faults`: so many lines tell of a fault, 0 for any number.
    """
    beginnings = "|".join(re.sub(r"([\[\](){}.*+?|^$\\])", r"\\\1", head) for head in catalog.kernel_log_matcher.begins)
    grep = ["grep", "-cE", f"{beginnings}|nvidia-nvswitch[0-9]+: SXid".replace("<number>", "[0-9]+"), str(log)]
    ours, theirs = [], []
    for _ in range(TURNS):
        start = time.process_time()
        document = to_json(classify_log(str(log), catalog))
        ours.append(time.process_time() - start)
        theirs.append(_grep_seconds(grep))
    assert document["lines"] == LINES
    assert not faults or sum(fault["lines"] for fault in document["faults"]) == faults
    made_of = {"cpu_s": min(ours), "against_cpu_s": min(theirs)}
    return Measurement(f"{what} / grep -cE for how they begin", min(ours) / min(theirs), "×", "at most", most, made_of)


def _grep_seconds(grep: list[str]) -> float:
    """Return the CPU seconds of a counting grep. With /dev/null as stdout, grep would stop at the first match."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run(grep, env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert int(run.stdout) >= LINES // EVERY
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def healthy_heads(folder: Path, catalog: FaultCatalog) -> Iterator[Measurement]:
    """Yield what lines that begin as faults do and name none cost in JSON, and how that grows with their number."""
    logs = {}
    for lines in (HEALTHY // 4, HEALTHY):
        texts = [HEALTHY_HEAD.format(bus=number % 256, number=number) for number in range(lines)]
        times = [datetime.fromtimestamp(1_800_000_000 + number, UTC).isoformat() for number in range(lines)]
        plain = "".join(f"[{1000 + number / 10:12.6f}] {text}\n" for number, text in enumerate(texts))
        told = ({"host": "n1", "time": at, "message": text} for at, text in zip(times, texts, strict=True))
        for form, log in (("plain", plain), ("json", "".join(f"{json.dumps(one)}\n" for one in told))):
            path = folder / f"healthy-{lines}.{form}"
            path.write_text(log, encoding="ascii")
            logs[form, lines] = _classify_seconds(path, lines, catalog)
    made_of = {"json_cpu_s": logs["json", HEALTHY], "plain_cpu_s": logs["plain", HEALTHY]}
    what = f"{HEALTHY:,} healthy lines with heads of faults, in JSON"
    against_plain = made_of["json_cpu_s"] / made_of["plain_cpu_s"]
    yield Measurement(f"{what} / as dmesg prints them", against_plain, "×", "at most", 4, made_of)
    growth = logs["json", HEALTHY] / logs["json", HEALTHY // 4]
    yield Measurement(f"{what} / a quarter of them", growth, "×", "at most", 6)


def _classify_seconds(log: Path, lines: int, catalog: FaultCatalog) -> float:
    """Return the CPU seconds to classify a log that names no fault."""
    spent = []
    for _ in range(3):
        start = time.process_time()
        document = to_json(classify_log(str(log), catalog))
        spent.append(time.process_time() - start)
    assert (document["lines"], document["faults"], document["uncounted"]) == (lines, [], "")
    return min(spent)


def storm(folder: Path) -> Measurement:
    """Return how much more memory a storm of a million lines needs than one of a thousand."""
    peaks = {}
    for lines in (1_000, LINES):
        path = folder / f"storm-{lines}.log"
        with path.open("w", encoding="ascii") as file:
            for number in range(lines):
                text = f"NVRM: Xid (PCI:0000:{number % 8:02x}:00): 45, pid={number}, name=python3, Ch {number:08x}"
                file.write(f"[{100 + number / 1000:12.6f}] {text}\n")
        peaks[lines] = cost([*ASSAY, "faults", str(path)], ROOT, times=1).peak_mb
    few, many = peaks.values()
    made_of = {"of_a_thousand_mb": few, "of_a_million_mb": many}
    return Measurement(
        "a storm of a million XIDs: memory beyond that of a thousand", many - few, "MB", "at most", 8, made_of
    )


def subjects(folder: Path) -> Measurement:
    """Return the memory for four million lines in which a quarter of a million servers do not answer."""
    path = folder / "subjects.log"
    with path.open("w", encoding="ascii") as file:
        for number in range(4 * LINES):
            text = HARMLESS[0].format(number) if number % 16 else f"nfs: server n{number} not responding, still trying"
            file.write(f"[{100 + number / 1000:12.6f}] {text}\n")
    peak = cost([*ASSAY, "faults", str(path)], ROOT, times=1).peak_mb
    path.unlink()
    return Measurement("the memory for four million lines, whatever they name", peak, "MB", "at most", 120)


def pushed() -> Measurement:
    """Return the CPU time of one event in a burst of 5,000, on a node with a hundred earlier faults."""
    fleet = load_fleet(ROOT)
    node = next(iter(fleet.nodes.values()))
    spec, policy = fleet.spec_of(node.name), next(iter(fleet.policies.values()))
    state, burst = _make_state(node.name, node.pool, node.subject), _make_burst(node.name, spec.gpus.pci)
    spent = []
    for _ in range(TURNS):
        start = time.process_time()
        found = detect_faults(fleet.fault_catalog, policy, node, spec, state, burst)
        spent.append((time.process_time() - start) / 5_000)
    assert len(found) == 8
    return Measurement("a pushed event classified, in bursts of 5,000", min(spent) * 1e3, "CPU ms", "at most", 0.1)


def _make_state(node: str, pool: str, subject: str) -> NodeState:
    at = "2026-01-01T00:00:00.000000+00:00"
    known = tuple(
        FaultRecord(
            f"f{one}", "gpu.xid.13", f"{subject}/gpu{one % 8}", "informational", "application", "none", 1, at, at, ""
        )
        for one in range(100)
    )
    return NodeState(node, pool, "production", at, "stay", "", at, faults=known)


def _make_burst(node: str, gpus: list[str]) -> EvidenceDocument:
    lines = [
        {"seq": number, "t_s": 1000 + number / 500, "text": FAULTS[0].replace("0000:1b:00", gpus[number % 8][:-2])}
        for number in range(5_000)
    ]
    host = {"boot_id": value("boot"), "uptime_s": value(5000.0)}
    return EvidenceDocument(
        node, datetime(2026, 11, 21, tzinfo=UTC), {"probe": {"host": host, "kernel_log": {"lines": value(lines)}}}
    )

"""The cost of the ledger's hash chains when it is written, the speed of their verification, and the cost of seals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from unittest.mock import patch

from assay.ledger import hash_chain
from assay.ledger.copies.anchors import FileAnchor
from assay.ledger.copies.seal import StoredSeal, make_seal
from assay.ledger.copies.sealing import check_anchor
from assay.ledger.store import Ledger
from assay.model.ledger_entry import LedgerEntry
from assay.model.outcome import Measurement as Measured
from assay.model.outcome import Outcome, SuiteRun
from bench.measurement import Measurement

AT = "2026-11-21T12:00:00+00:00"
HOT = Measured("gpu_temperature", 61.0, "°C", at_most=90.0, source="specs/nodes/hgx-h100.yaml:41")
ENTRIES, OUTCOMES, MANY = 10_000, 10_000, 100_000
DEARER, VERIFY_S = 1.3, 1.5
TIMES = 9
SEALS, COMPARE_S = 1_000, 2.0


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure SQLite ledgers below `folder`."""
    ledger = Ledger.open(folder / "ledger.sqlite")
    yield _measure_hashing(f"{ENTRIES:,} entries in one transaction", lambda name: _append(ledger, name))
    yield _measure_hashing(f"a run of {OUTCOMES:,} outcomes", lambda name: _record(ledger, name))
    ledger.close()
    whole = Ledger.open(folder / "whole.sqlite")
    for number in range(MANY // ENTRIES):
        _append(whole, f"{number}")
    start = time.process_time()
    if problems := whole.verify():
        raise RuntimeError(f"the chain is broken: {problems[0]}")
    took = time.process_time() - start
    yield Measurement(f"{MANY:,} entries verified", took, "CPU s", "at most", VERIFY_S)
    yield _measure_anchor(whole, folder)


def _measure_anchor(ledger: Ledger, folder: Path) -> Measurement:
    """Return the cost of comparing a ledger with many seals in a file, and of the last one that was stored there."""
    anchor = FileAnchor("file:seals", folder / "seals", folder / "register")
    for _ in range(SEALS - 1):
        anchor.store(StoredSeal(make_seal(ledger.chain_ends()), AT, "bench"))
    seal_s = _cpu_s(lambda: anchor.store(StoredSeal(make_seal(ledger.chain_ends()), AT, "bench")))
    took = _cpu_s(lambda: check_anchor(ledger, anchor))
    return Measurement(f"{SEALS:,} seals compared", took, "CPU s", "at most", COMPARE_S, {"seal_cpu_s": seal_s})


def _measure_hashing(what: str, write: Callable[[str], None]) -> Measurement:
    """Return the cost of writing as a multiple of the cost without hashes. The runs alternate."""
    plain, hashed = [], []
    for number in range(TIMES):
        with patch.object(hash_chain, "hash_line", lambda *_: "0" * 64), patch.multiple(hash_chain.RunDigest, **_IDLE):
            plain.append(_cpu_s(lambda: write(f"plain-{number}")))  # noqa: B023 — called at once
        hashed.append(_cpu_s(lambda: write(f"hashed-{number}")))  # noqa: B023
    figures = {"cpu_s": min(hashed), "without_cpu_s": min(plain)}
    ratio = median(one / other for one, other in zip(hashed, plain, strict=True))
    return Measurement(f"{what}: with hashes / without", ratio, "×", "at most", DEARER, figures)


def _cpu_s(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _append(ledger: Ledger, name: str) -> None:
    body = {"class": "gpu.thermal", "subject": "a/n1/gpu0", "count": 3, "detail": "it was hot"}
    ledger.append(
        *(LedgerEntry(f"{name}-{n}", AT, "fault", f"n{n % 500}", {**body, "fault": f"{n}"}) for n in range(ENTRIES))
    )


def _record(ledger: Ledger, name: str) -> None:
    ledger.record(SuiteRun(name, AT), (_outcome(n) for n in range(OUTCOMES)))


def _outcome(number: int) -> Outcome:
    node, measured = f"n{number // 100}", (HOT,) if number % 3 == 0 else ()
    fields = {"verdict": "pass", "evidence": f"{number // 100:064}", "evidence_at": AT, "measurements": measured}
    return Outcome(f"suites/p.py::test_{number % 100}", f"a/{node}/gpu{number % 8}", node, **fields)  # type: ignore[arg-type]


_IDLE = {name: lambda *_: None for name in ("texts", "outcomes", "measured")}

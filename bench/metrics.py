"""The cost of a scrape of assay's metrics at 10,000 nodes; its floor is Prometheus' client writing the same series.

The ledger is that of the part `quiet`: ten entries and twenty outcomes a node. Before a scrape of the second figure,
200 nodes were judged, and 100 of them moved.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from assay.act.loop.context import ControllerContext
from assay.model.entries.node_entries import TransitionEntry
from assay.model.outcome import Outcome, SuiteRun
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from bench.big_fleet import make
from bench.measurement import Measurement
from bench.quiet import NODES, make_context, write_past

SCRAPE_S, FIRST_S, SERIES = 0.3, 20.0, 5000
JUDGED, CHECKS, MOVED = 200, 20, 100
CHECK = "suites/production/test_bench_{number}.py::test_it"


def measurements(folder: Path) -> Iterator[Measurement]:
    """Measure scrapes of a fleet below `folder`."""
    context = make_context(make(folder / "metrics", NODES))
    write_past(context)
    metrics = FleetMetrics(lambda: context)
    first, _ = _measure(lambda: format_metrics(metrics))
    scrapes = [_measure(lambda: format_metrics(metrics)) for _ in range(5)]
    quiet, text = min(scrapes)
    floor = min(_measure_floor(metrics) for _ in range(5))
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    what = f"a scrape of {NODES:,} nodes"
    yield Measurement(what, quiet, "CPU s", "at most", SCRAPE_S, {"series": series, "floor_cpu_s": floor})
    busy = min(_measure_after_news(context, metrics, at) for at in range(3))
    yield Measurement(f"{what}, {JUDGED} just judged, {MOVED} just moved", busy, "CPU s", "at most", SCRAPE_S)
    yield Measurement(f"{what}: the first of a process", first, "CPU s", "at most", FIRST_S)
    yield Measurement(f"{what}: series", series, "series", "at most", SERIES)
    context.ledger.close()


def _measure(work: Callable[[], bytes]) -> tuple[float, bytes]:
    begun = time.process_time()
    text = work()
    return time.process_time() - begun, text


def _measure_after_news(context: ControllerContext, metrics: FleetMetrics, at: int) -> float:
    names, now = list(context.fleet.nodes), context.clock.now()
    outcomes = [
        Outcome(CHECK.format(number=number), f"{name}/check{number}", name, "pass", evidence_at=now.isoformat())
        for name in names[:JUDGED]
        for number in range(CHECKS)
    ]
    context.ledger.record(SuiteRun(f"news-{at}", now.isoformat()), outcomes, now)
    moves = [TransitionEntry("production", "production", f"d{at}") for _ in range(MOVED)]
    entries = (move.make_entry(f"{at}-{name}", now.isoformat(), name) for move, name in zip(moves, names, strict=False))
    context.ledger.append(*entries)
    return _measure(lambda: format_metrics(metrics))[0]


class _Collected(Collector):
    """Families that were collected before."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Any:
        """Return the families."""
        return self._families


def _measure_floor(metrics: FleetMetrics) -> float:
    """Return what Prometheus' client takes for the text alone."""
    registry, collected = CollectorRegistry(), _Collected(list(metrics.collect()))
    registry.register(collected)
    return _measure(lambda: generate_latest(registry))[0]

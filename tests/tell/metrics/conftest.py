"""A fleet at a time that stands still, with a new ledger: what tests of metrics write into it, Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from assay.act.ingest.silent_nodes import open_last_seen
from assay.act.loop.context import ControllerContext
from assay.act.loop.enrollment import enroll_nodes
from assay.declare.loader import load_fleet
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.observe.evidence_store import EvidenceStore
from assay.tell.metrics.fleet_metrics import FleetMetrics, format_metrics
from tests.support.places import ROOT

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


class StandingClock:
    """A clock that says NOW until somebody sets it."""

    time = NOW

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return load_fleet(ROOT)


@pytest.fixture
def context(fleet: Fleet, tmp_path: Path) -> Iterator[ControllerContext]:
    """Yield the controller's context with a new ledger, where every node is enrolled an hour ago, and was just read."""
    ledger, clock = Ledger.open(tmp_path / "ledger.sqlite"), StandingClock()
    context = ControllerContext(fleet, ledger, EvidenceStore(tmp_path / "e"), clock, tmp_path, tmp_path / "reports")
    clock.time = NOW - timedelta(hours=1)
    enroll_nodes(context)
    clock.time = NOW
    open_last_seen(context).record_polls({(name, "probe"): True for name in fleet.nodes}, NOW)
    yield context
    ledger.close()


def read(context: ControllerContext) -> dict[tuple[str, ...], float]:
    """Return every sample of a process that starts now: its name, then its labels' values by the labels' names."""
    text = format_metrics(FleetMetrics(lambda: context)).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

"""Runs as they are stored, made in a moment, and the history that they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from assay.ledger.history.append import append_run
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Measurement, Outcome, SuiteRun

NOW = datetime(2026, 11, 21, 20, tzinfo=UTC)
HEAT = "suites/production/test_gpu.py::test_gpu_temperature"


def outcome(
    verdict: str = "pass", *, node: str = "n1", check: str = HEAT, value: float | None = None, **more
) -> Outcome:
    """Return what a check said of a GPU, with a measurement where there is a value."""
    numbers = () if value is None else (Measurement("gpu_temperature", value, "°C", None, 85, "specs/x.yaml:3"),)
    reason = "" if verdict == "pass" else f"it is a {verdict}"
    given = {"reason": reason, "measurements": numbers, **more}
    return Outcome(check, f"h100-a/{node}/gpu0", node, verdict, fault="gpu.thermal", phases=("production",), **given)


@dataclass
class Kept:
    """A fleet's reports, in which runs are written and kept."""

    reports: Path

    @property
    def home(self) -> Path:
        return history_folder(self.reports)

    def stored(self, outcomes: Sequence[Outcome], ago: timedelta = timedelta(), *, ended: str = "whole") -> Path:
        """Write down a run of so long ago."""
        at = NOW - ago
        run = SuiteRun(
            f"{at:%Y%m%dT%H%M%S.%f}"[:-3] + "-abcdef", at.isoformat(), ("production",), ("n1",), "c0ffee", who="me"
        )
        file = self.reports / "runs" / run.id / "run.sqlite"
        file.parent.mkdir(parents=True)
        writer = OutcomeWriter(file, run, {"ended": ended} if ended else {})
        for one in outcomes:
            writer(one)
        writer.close()
        return file

    def kept(self, outcomes: Sequence[Outcome], ago: timedelta = timedelta()) -> str:
        """Write down a run and keep it; return its id."""
        file = self.stored(outcomes, ago)
        append_run(file, self.home)
        return file.parent.name

    def asked(self) -> OutcomeHistory:
        """Return the history as of now."""
        return OutcomeHistory(self.home, NOW)


@pytest.fixture(scope="session")
def reports_in() -> Callable[[Path], Kept]:
    """Return how to make reports in a folder of one's own."""
    return Kept


@pytest.fixture
def reports(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "reports")


@pytest.fixture(scope="session")
def said() -> Callable[..., Outcome]:
    """Return how to make what a check said of a GPU."""
    return outcome

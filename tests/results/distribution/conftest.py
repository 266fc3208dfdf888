"""A fleet repository whose history holds measurements of like nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest

from assay.ledger.history.append import append_run
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Measurement, Outcome, SuiteRun

ROOT = Path(__file__).parents[3]
BURN = "suites/test/test_gpu.py::test_gpu_burn"
NODES = tuple(f"n{number:04}" for number in range(1, 17))

Keep = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a copy of the example fleet, with no runs yet."""
    root = tmp_path / "fleet"
    root.mkdir()
    for name in ("inventory", "specs", "suites"):
        (root / name).symlink_to(ROOT / name)
    return root


@pytest.fixture
def keep(home: Path) -> Keep:
    """Return how to keep a run of so many days ago: the speed of each GPU, by its name, where it is not 50,000."""

    def keep(
        days: float,
        speeds: Mapping[str, float] = MappingProxyType({}),
        *,
        usual: float = 50_000,
        spec: str = "a" * 40,
    ) -> Path:
        at = datetime.now(UTC) - timedelta(days=days)
        run = SuiteRun(f"{at:%Y%m%dT%H%M%S}.000-abcdef", at.isoformat(), ("test",), NODES, spec)
        path = home / "reports/runs" / run.id / "run.sqlite"
        path.parent.mkdir(parents=True)
        writer = OutcomeWriter(path, run, {"ended": "whole"})
        for number, node in enumerate(NODES):
            for gpu in range(2):
                speed = speeds.get(f"{node}/gpu{gpu}", usual + 37 * number - 11 * gpu)
                reading = Measurement(
                    "gpu_burn", speed, "Gflop/s", at_least=40_000, source="specs/nodes/hgx-h100.yaml:9"
                )
                writer(Outcome(BURN, f"h100-a/{node}/gpu{gpu}", node, "pass", measurements=(reading,)))
        writer.close()
        append_run(path, history_folder(home / "reports"))
        return path

    return keep

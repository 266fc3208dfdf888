"""What the tests of logs share: the shipped catalogues, and a log's faults by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.cli.verbs.faults import classify_log
from assay.cli.workspace import load_surrounding_catalog
from assay.model.facts import to_json
from assay.model.specs.fault_catalog import FaultCatalog
from tests.support.places import ROOT

RECORDINGS = ROOT / "tests/observe/logs/recordings"
Tell = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def catalog() -> FaultCatalog:
    return load_surrounding_catalog(ROOT)


@pytest.fixture
def tell(tmp_path: Path, catalog: FaultCatalog) -> Tell:
    """Write lines to a log, or name a recording, and return what it tells; faults by (name, subject)."""

    def read(*lines: str, recording: str = "", judge: FaultCatalog = catalog) -> dict[str, Any]:
        path = RECORDINGS / recording if recording else tmp_path / "log"
        if not recording:
            path.write_text("".join(f"{line}\n" for line in lines))
        document = to_json(classify_log(str(path), judge))
        return {**document, "by": {(fault["fault"], fault["subject"]): fault for fault in document["faults"]}}

    return read

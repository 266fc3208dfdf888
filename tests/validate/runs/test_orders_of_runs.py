"""What a run was told to do, read from its file."""

from __future__ import annotations

import pytest

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.run_manifest import RunManifest
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.errors import AssayError
from assay.model.outcome import SuiteRun


def order_of(file, **about: str) -> RunManifest:
    OutcomeWriter(file, SuiteRun("20261121T000000.000-abcdef", "2026-11-21T00:00:00+00:00", (), ("n1",)), about).close()
    with StoredRun.open(file) as stored:
        return RunManifest.read(stored)


def test_a_file_that_no_validate_made_has_no_order(tmp_path):
    with pytest.raises(AssayError, match="was not made by"):
        order_of(tmp_path / "run.sqlite")

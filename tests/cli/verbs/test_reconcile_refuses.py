"""A controller does not begin with a fleet that nobody could mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.model.errors import AssayError
from tests.support.serving_fleet import change_yaml, make_serving_fleet


@pytest.mark.parametrize("how", [("--once",), ("--settle",), ()])
def test_a_fleet_with_errors_is_refused_in_one_sentence_and_nothing_is_recorded(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    make_serving_fleet(tmp_path, ["n0001", "n0002"])
    change_yaml(
        tmp_path / "inventory/a.yml", lambda pools: pools["a"]["hosts"]["n0002"].update(pools["a"]["hosts"]["n0001"])
    )
    done = CliRunner().invoke(app, ["reconcile", *how, "--fleet", str(tmp_path)])
    assert isinstance(done.exception, AssayError)
    said = str(done.exception)
    assert "is given by n0001 too (and 4 more)" in said.partition("\n")[0]
    assert "`assay check` lists every problem" in said
    assert not (tmp_path / ".assay/ledger.sqlite").exists()

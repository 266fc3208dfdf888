"""`assay results --distribution` and the pages show a measurement over like nodes, its outliers and its course."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from assay.cli.app import app
from assay.declare.loader import load_fleet
from assay.ledger.history.append import append_run
from assay.ledger.history.parquet_files import history_folder
from assay.ledger.history.queries import OutcomeHistory
from assay.ledger.runs.reader import StoredRun, list_runs
from assay.ledger.runs.writer import OutcomeWriter
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.outcome import Measurement, Outcome, SuiteRun
from assay.tell.report.distribution_page import read_past
from assay.tell.report.report_builder import AllureTools, build_reports
from assay.validate.results.distribution import NodeKind, list_node_kinds, query_distributions
from tests.support.places import ROOT

BURN = "suites/test/test_gpu.py::test_gpu_burn"
NODES = tuple(f"n{number:04}" for number in range(1, 17))
SLOW = {"n0005/gpu1": 43_000.0}

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


def ask(home, *words: str):
    return CliRunner().invoke(app, ["results", *words, "--fleet", str(home)])


@pytest.fixture
def measured(home, keep):
    """Two runs with old specs and one with new ones, which are slower; one GPU is slower still."""
    keep(3)
    keep(2)
    keep(1, SLOW, usual=48_000, spec="b" * 40)
    return home


@pytest.mark.parametrize("what", ["gpu_burn", "test_gpu_burn", "*burn", "test/test_gpu.py::*"])
def test_a_measurement_is_shown_over_like_nodes_by_any_of_its_names(measured, what):
    answer = ask(measured, "--distribution", what)
    assert answer.exit_code == 0, answer.output
    first, second, _, course, change, outlier = answer.output.splitlines()
    assert first.startswith("gpu_burn, test/test_gpu.py::test_gpu_burn: hgx-h100, firmware hgx-h100-")
    assert ", driver 5" in first
    assert second.startswith("  32 parts of 16 nodes: median 48")
    assert "limit at least 40000 (specs/nodes/hgx-h100.yaml:9)" in answer.output
    assert course.startswith("  medians of 3 runs: ██▁ now")
    assert change.startswith("  specs aaaaaaaaaaaa → bbbbbbbbbbbb: median 50")
    assert change.endswith("on 32 parts")
    assert "h100-a/n0005/gpu1" in outlier
    assert "deviations below" in outlier


@pytest.mark.parametrize("field", NodeKind.__slots__)
def test_nodes_of_another_sku_firmware_or_driver_are_no_peers(home, keep, field):
    nodes = [f"n{number:04}" for number in range(1, 17)]
    odd = [f"{node}/gpu{gpu}" for node in nodes[:4] for gpu in range(2)]
    keep(1, dict.fromkeys(odd, 42_000.0))
    usual = NodeKind("hgx-h100", "bundle", "580.1")
    kinds = dict.fromkeys(nodes[:4], replace(usual, **{field: "other"})) | dict.fromkeys(nodes[4:], usual)
    with OutcomeHistory(history_folder(home / "reports"), datetime.now(UTC)) as history:
        alike = query_distributions(history, kinds, days=30)
        mixed = query_distributions(history, dict.fromkeys(nodes, usual), days=30)
    assert {each.kind: (each.nodes, len(each.outliers)) for each in alike} == {
        kinds["n0001"]: (4, 0),
        usual: (12, 0),
    }
    assert [len(each.outliers) for each in mixed] == [8]


def test_the_kind_of_a_node_is_what_its_spec_declares():
    fleet = load_fleet(ROOT)
    spec = fleet.node_specs[fleet.nodes["n0001"].spec]
    assert list_node_kinds(fleet)["n0001"] == NodeKind(fleet.nodes["n0001"].spec, spec.firmware, spec.driver)


def test_the_json_has_values_limits_and_reasons(measured):
    (one, *_) = json.loads(ask(measured, "--distribution", "gpu_burn", "--format", "json").output)
    (outlier,) = one["outliers"]
    assert (outlier["value"], outlier["limit"]["at_least"]) == (43_000, 40_000)
    assert [len(one["course"]), sum(one["bars"]), one["change"]["now"]] == [3, 32, "b" * 12]


def test_what_was_never_measured_is_an_error_that_helps(measured):
    error = ask(measured, "--distribution", "gpu_burnt").exception
    assert isinstance(error, AssayError)
    assert error.what == "nothing named 'gpu_burnt' was measured in 90 days"


def test_a_format_that_has_no_distribution_is_refused(measured):
    assert isinstance(ask(measured, "--distribution", "gpu_burn", "--format", "junit").exception, AssayError)


def test_the_pages_show_the_distribution_and_the_outlier(measured, monkeypatch):
    monkeypatch.setattr(AllureTools, "find_installed", classmethod(lambda _, __: None))
    with closing(Ledger.open(measured / "ledger.sqlite")) as ledger:
        for path in list_runs(measured / "reports"):
            with StoredRun.open(path) as stored:
                ledger.record(stored.run, stored.outcomes())
        with pytest.raises(Exception, match="Allure report needs Node"):
            build_reports(load_fleet(measured), ledger, measured / "reports", measured / "evidence")
    overview = (measured / "reports/index.html").read_text()
    assert "Unlike their peers: 1" in overview
    assert "h100-a/n0005/gpu1" in overview
    assert f'href="distributions.html#{quote(BURN)}"' in overview
    page = (measured / "reports/distributions.html").read_text()
    assert f'id="{BURN}"' in page
    assert page.count('class="bound"') == 2, "the limit in the histogram and in the medians of the runs"
    assert "medians of 3 runs" in page
    assert "specs aaaaaaaaaaaa → bbbbbbbbbbbb" in page
    assert "gpu_burn 43000 Gflop/s" in page


def test_a_report_of_too_many_values_reads_fewer_days_and_says_when_none_fits(measured, monkeypatch):
    def read(most: int) -> tuple[list[int], list[str]]:
        unread: list[str] = []
        monkeypatch.setattr("assay.tell.report.distribution_page.MAX_VALUES", most)
        now = datetime.now(UTC).timestamp()
        found = read_past(load_fleet(measured), measured / "reports", now, unread)
        return [len(each.course) for each in found.distributions], unread

    assert read(96) == ([3], [])
    assert read(95)[0] < [3], "two days have fewer runs"
    assert read(1) == ([], ["distributions: too many values for one page: see `assay results --distribution NAME`"])

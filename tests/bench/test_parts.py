"""How the parts of the benchmark run: each alone or side by side, and an error in one costs no other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bench import __main__ as bench_main
from bench.measurement import Measurement
from bench.part_run import run_part, run_parts
from bench.parts import COUNTED, PARTS
from tests.support import serving_fleet, slurm_cluster


def _measure_one(folder: Path) -> Iterator[Measurement]:
    (folder / "prepared").touch()
    yield Measurement("one", 1.0, "×", "at most", 2.0)


def _break_off(folder: Path) -> Iterator[Measurement]:
    assert not list(folder.iterdir()), "the folder of another part"
    yield Measurement("before", 1.0, "×", "at most", 2.0)
    raise RuntimeError("no chromium here")


@pytest.fixture(autouse=True)
def _two_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = {"broken": _break_off, "whole": _measure_one}
    for module in ("bench.part_run", "bench.__main__"):
        monkeypatch.setattr(f"{module}.PARTS", made)
    monkeypatch.setattr("bench.kept.KEPT", tmp_path / "figures.tsv")


def test_a_part_that_breaks_off_keeps_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_part("broken")
    assert [one.what for one in run.taken] == ["before"]
    assert run.broke_off == "RuntimeError: no chromium here"
    assert json.loads(capsys.readouterr().out)["what"] == "before"


def test_the_others_run_all_the_same() -> None:
    assert [(run.name, len(run.taken), bool(run.broke_off)) for run in run_parts(["whole", "broken"])] == [
        ("broken", 1, True),
        ("whole", 1, False),
    ]


@pytest.mark.parametrize(("names", "code"), [(["whole"], 0), (["broken"], 1), (["ful"], 2)])
def test_the_exit_code_says_whether_all_was_measured_and_holds(names: list[str], code: int) -> None:
    assert bench_main.main(names) == code


def test_what_runs_side_by_side_is_a_part() -> None:
    assert PARTS.keys() >= set(COUNTED)


@pytest.mark.parametrize(
    ("module", "names"),
    [
        (slurm_cluster, ["Cluster", "SLURM_CONF", "NODE", "PARTITION", "reserve_ports", "until"]),
        (serving_fleet, ["POLICY", "change_yaml", "make_serving_fleet", "merge_bmc_image", "start_history"]),
    ],
)
def test_what_parts_borrow_of_the_tests_is_there(module: ModuleType, names: list[str]) -> None:
    assert [name for name in names if not hasattr(module, name)] == []

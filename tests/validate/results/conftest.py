"""Runs as they are stored, made from outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from assay.ledger.runs.reader import StoredRun
from assay.ledger.runs.writer import OutcomeWriter
from assay.model.outcome import Outcome, SuiteRun
from assay.tell.report.registry import RESULT_FORMATS, FormatName
from assay.validate.results.comparison_summary import collect_differences
from assay.validate.results.outcome_filter import NO_FILTER, OutcomeFilter
from assay.validate.results.run_comparison import RunComparison
from assay.validate.results.run_summary import RunSummary

Kept = Callable[..., Path]


def _of(check: str, subject: str, verdict: str = "pass", reason: str = "", **more: Any) -> Outcome:
    """Return an outcome of `suites/production/test_CHECK.py::test_CHECK` in pool h100-a."""
    module = f"suites/production/test_{check}.py::test_{check}"
    node = "" if subject.startswith("rack-") else subject.partition("/")[0]
    more = {"phases": ("production",)} | more
    return Outcome(module, f"h100-a/{subject}", node, verdict, reason or verdict * (verdict != "pass"), **more)


def _judged(verdicts: dict[str, str], **more: Any) -> list[Outcome]:
    """Return outcomes from `{"temperature n0003/gpu1": "fail: too hot"}`."""
    found = []
    for what, said in verdicts.items():
        check, subject = what.split()
        verdict, _, reason = said.partition(": ")
        found.append(_of(check, subject, verdict, reason, **more))
    return found


@pytest.fixture(scope="session")
def of() -> Callable[..., Outcome]:
    """Return how to make one outcome."""
    return _of


@pytest.fixture(scope="session")
def judged() -> Callable[..., list[Outcome]]:
    """Return how to make outcomes from words."""
    return _judged


def _hot(node: str, gpu: int, degrees: int, **more: Any) -> Outcome:
    """Return a GPU that is too hot."""
    said = f"gpu_temperature {degrees} °C, expected at most 85 (specs/nodes/h100.yaml:82)"
    return _of("heat", f"{node}/gpu{gpu}", "fail", said, **more)


@pytest.fixture
def day(keep: Kept) -> tuple[Path, Path]:
    """Return two runs of five nodes: a quiet one, and one in which four of them are hot and some is known."""
    cool = [_of("heat", f"n000{node}/gpu{gpu}") for node in range(1, 6) for gpu in range(2)]
    quiet = [*cool, _of("power", "n0001", "fail", "psu1 is absent"), _of("ecc", "n0002", "skip", "no ECC | here")]
    warm = [_hot(f"n000{node}", gpu, 90 + node) for node in range(1, 5) for gpu in range(2)] + cool[8:]
    more = [
        _of("power", "n0001"),
        _of("ecc", "n0002", "error", "n0002.bmc: failed: no answer"),
        _of("fan", "n0001", "fail", "0 rpm", known="https://issues.example/7"),
        _of("new", "n0001", "fail", "x <y> & @z \x1b[1m", observed=True),
    ]
    return keep(quiet), keep([*warm, *more])


@pytest.fixture
def told() -> Callable[..., list[str]]:
    """Return how to tell a run in a format, or two of them."""

    def tell(form: FormatName, *files: Path, wanted: OutcomeFilter = NO_FILTER) -> list[str]:
        if len(files) == 1:
            with StoredRun.open(files[0]) as stored:
                return list(RESULT_FORMATS[form].run(RunSummary(stored, wanted)))
        tell_two = RESULT_FORMATS[form].comparison
        assert tell_two is not None
        with RunComparison(files[-2], files[-1], wanted) as comparison:
            return list(tell_two(collect_differences(comparison)))

    return tell


@pytest.fixture
def keep(tmp_path: Path) -> Kept:
    """Return how to keep a run: by default of the nodes that its outcomes name, `last` being the one kept last."""
    return _keep_in(tmp_path)


@pytest.fixture(scope="session")
def keep_in() -> Callable[[Path], Kept]:
    """Return how to keep runs in a folder."""
    return _keep_in


def _keep_in(folder: Path) -> Kept:
    made: list[Path] = []

    def kept(
        outcomes: Iterable[Outcome] = (), left_out: Iterable[tuple[str, str]] = (), ended: str = "done", **about: Any
    ) -> Path:
        every = list(outcomes)
        number = len(made)
        run = SuiteRun(
            **{
                "id": f"20261121T{number:02}0000.000-abcdef",
                "at": f"2026-11-21T{number:02}:00:00+00:00",
                "nodes": tuple(sorted({one.node for one in every if one.node})),
                "spec_commit": "c0ffee" + "0" * 34,
                "who": "ines",
            }
            | about
        )
        path = folder / "reports" / "runs" / run.id / "run.sqlite"
        path.parent.mkdir(parents=True)
        writer = OutcomeWriter(path, run)
        for outcome in every:
            writer(outcome)
        writer.add_left_out(left_out)
        if ended:
            writer.set_about(ended=ended)
        writer.close()
        made.append(path)
        return path

    return kept

"""Runs as they are stored, made from outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from assay.harness.store.write import Writer
from assay.model.outcome import Outcome, Run

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


@pytest.fixture
def keep(tmp_path: Path) -> Kept:
    """Return how to keep a run: by default of the nodes that its outcomes name, `last` being the one kept last."""
    made: list[Path] = []

    def kept(
        outcomes: Iterable[Outcome] = (), left_out: Iterable[tuple[str, str]] = (), ended: str = "done", **about: Any
    ) -> Path:
        every = list(outcomes)
        number = len(made)
        run = Run(
            **{
                "id": f"20261121T{number:02}0000.000-abcdef",
                "at": f"2026-11-21T{number:02}:00:00+00:00",
                "nodes": tuple(sorted({one.node for one in every if one.node})),
                "spec_commit": "c0ffee" + "0" * 34,
                "who": "ines",
            }
            | about
        )
        path = tmp_path / "reports" / "runs" / run.id / "run.sqlite"
        path.parent.mkdir(parents=True)
        writer = Writer(path, run)
        for outcome in every:
            writer(outcome)
        writer.left_out(left_out)
        if ended:
            writer.say(ended=ended)
        writer.close()
        made.append(path)
        return path

    return kept

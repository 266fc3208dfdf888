"""No stand-in is lenient: each that `outside_calls.yaml` names takes what the real one takes, and refuses the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.architecture.stand_ins import JUDGES, SLOW

PARTNERS: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("outside_calls.yaml").read_text())
STAND_INS = {name: row for name, row in PARTNERS.items() if row["by"] == "stand-in"}


def list_cases(kind: str) -> list[Any]:
    """Return the judges of each row with what they are given, which they take or refuse."""
    return [
        pytest.param(judge, given, id=f"{name}-{judge}-{at}", marks=[pytest.mark.slow] if judge in SLOW else [])
        for name, row in STAND_INS.items()
        for judge, cases in row.get(kind, {}).items()
        for at, given in enumerate(cases)
    ]


@pytest.mark.parametrize("name", STAND_INS)
def test_each_stand_in_is_asked_for_both(name: str) -> None:
    takes, refuses = (STAND_INS[name].get(kind, {}) for kind in ("takes", "refuses"))
    assert takes.keys() == refuses.keys() != set()
    assert all([*takes.values(), *refuses.values()])


@pytest.mark.parametrize(("judge", "given"), list_cases("takes"))
def test_it_takes_what_the_real_one_takes(judge: str, given: Any, tmp_path: Path) -> None:
    assert JUDGES[judge](given, tmp_path) == ""


@pytest.mark.parametrize(("judge", "given"), list_cases("refuses"))
def test_it_refuses_what_the_real_one_refuses(judge: str, given: Any, tmp_path: Path) -> None:
    assert JUDGES[judge](given, tmp_path), "a lenient stand-in: it took what the real one refuses"


def test_each_judge_is_asked() -> None:
    assert {case.values[0] for case in list_cases("refuses")} == set(JUDGES)

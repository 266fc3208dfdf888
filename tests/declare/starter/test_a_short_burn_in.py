"""`assay init --burn-in short`: another burn-in is a named choice, and every text then tells its hours."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.declare.loader import fill_in_hours, format_hours, load_fleet
from assay.declare.repository.git import run_git
from assay.declare.starter.new_repository import POLICY
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from tests.support.forked_assay import run_assay
from tests.support.places import ROOT


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("short") / "our-fleet"
    done = run_assay("init", str(folder), "--burn-in", "short")
    assert done.returncode == 0, done.stderr
    return folder


def list_words(policy: LifecyclePolicy) -> list[str]:
    states = policy.states.values()
    return [
        text
        for state in states
        for text in (state.summary, *state.for_customers.model_dump().values())
        if " of tests" in text or "under load for" in text or "Burn-in" in text
    ]


def test_the_default_loads_a_node_for_a_day_and_says_so() -> None:
    fleet = load_fleet(ROOT)
    test = fleet.policy.states["test"]
    assert ("burn-in" in test.entry, [fleet.burn_ins[name].hours for name in test.burn_in]) == (True, [24, 24])
    assert all("a day" in text for text in list_words(fleet.policy))
    assert {part for phase in fleet.burn_ins["day"].phases for part in phase.parts} >= {"battery", "training"}
    assert fleet.burn_ins["day"].drift.limits
    assert fleet.burn_ins["day"].collectives
    assert "fabric" in [want.phase for want in test.requires]


def test_a_shorter_burn_in_is_told_with_its_own_hours(short: Path) -> None:
    fleet = load_fleet(short)
    test = fleet.policy.states["test"]
    assert (test.burn_in, test.soak_hours) == (["short", "host-short"], 4)
    assert [fleet.burn_ins[name].hours for name in test.burn_in] == [4, 4]
    words = list_words(fleet.policy)
    assert len(words) == 4
    assert all("4 hours" in text and "a day" not in text for text in words)
    assert run_assay("check", cwd=short).returncode == 0


def test_an_upgrade_keeps_the_choice(short: Path) -> None:
    chosen = (short / POLICY).read_text()
    for words in (["add", "--all"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "ours"]):
        assert run_git(short, *words).returncode == 0
    done = run_assay("upgrade", cwd=short)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (short / POLICY).read_text() == chosen


@pytest.mark.parametrize(
    ("hours", "text"),
    [(24, "a day"), (48, "2 days"), (1, "an hour"), (4, "4 hours"), (1.5, "1.5 hours"), (0.5, "30 minutes")],
)
def test_hours_are_told_in_plain_words(hours: float, text: str) -> None:
    assert format_hours(hours) == text


def test_several_burn_ins_are_told_together_and_none_by_no_number() -> None:
    fleet = load_fleet(ROOT)
    plain = fleet.policies["default"].model_copy()
    test = plain.states["test"].model_copy(update={"burn_in": ["day", "short"], "summary": "for {burn_in}"})
    both = plain.model_copy(update={"states": {**plain.states, "test": test}})
    assert fill_in_hours(both, fleet.burn_ins).states["test"].summary == "for 4 hours or a day"
    assert fill_in_hours(both, {}).states["test"].summary == "for some time"

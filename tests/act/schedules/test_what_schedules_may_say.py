"""What no schedule may say, told at its line; and what the model takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from assay.declare.check import check_repository
from assay.model.specs.schedules import find_time_zone
from assay.model.specs.spec_document import load_spec_model
from tests.support.places import ROOT

HOW = {"phase": "test", "parts": ["memory"], "seconds": 9, "within_minutes": 5, "at_once": 1, "told_after": 2}
WRONG = {
    "61 * * * * says no time": {"does": "fabric-scan", "cron": "61 * * * *"},
    "cron or every_minutes, and not both": {"does": "fabric-scan", "cron": "0 * * * *", "every_minutes": 5},
    "give cron or every_minutes": {"does": "fabric-scan"},
    "observe is an interval": {"does": "observe", "cron": "0 * * * *"},
    "verification belongs to": {"does": "fabric-scan", "every_minutes": 5, "verification": HOW},
    "cannot do without it": {"does": "idle-verification", "every_minutes": 60},
    "stale_minutes belongs to": {"does": "staleness-sweep", "every_minutes": 60},
    "search belongs to": {"does": "collectives-search", "every_minutes": 60},
    "anchors belong to ledger-seal": {"does": "ledger-seal", "every_minutes": 60},
    "compares the whole fleet": {"does": "trend-evaluation", "every_minutes": 60, "pools": ["a"]},
    "is for the whole ledger": {"does": "ledger-seal", "every_minutes": 60, "anchors": ["git-note"], "pools": ["a"]},
    "'Mars/Olympus' is not known": {"does": "fabric-scan", "cron": "0 * * * *", "time_zone": "Mars/Olympus"},
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(ROOT / "tests/data/smallest", tmp_path_factory.mktemp("fleet"), dirs_exist_ok=True)


def said(fleet: Path, schedule: dict) -> list[tuple[str, str]]:
    document = {"kind": "Schedules", "name": "ours", "sources": ["us"], "schedules": {"a": schedule}}
    (fleet / "specs/ours.yaml").write_text(json.dumps(document, indent=1))
    return [(one.code, one.message) for one in check_repository(fleet).problems if one.file == "specs/ours.yaml"]


@pytest.mark.parametrize("words", WRONG)
def test_a_schedule_that_contradicts_itself_is_told_so(fleet, words):
    [(code, message)] = said(fleet, WRONG[words])
    assert code == "ASY0004"
    assert words in message.replace("'61 * * * *'", "61 * * * *")


def test_a_schedule_that_makes_sense_is_left_in_peace(fleet):
    assert said(fleet, {"does": "fabric-scan", "cron": "0 0 * * SUN", "time_zone": "Asia/Tokyo"}) == []


def test_the_time_is_utc_where_nothing_else_is_said():
    assert find_time_zone("") is find_time_zone("UTC")
    assert str(find_time_zone("Europe/Berlin")) == "Europe/Berlin"


def test_the_schedules_of_the_example_do_all_that_a_schedule_can_do():
    document = load_spec_model("Schedules").model_validate(
        yaml.safe_load((ROOT / "specs/schedules/default.yaml").read_text())
    )
    does = {one.does for one in document.schedules.values()}
    assert does == {
        "observe",
        "fabric-scan",
        "fabric-evaluation",
        "idle-verification",
        "collectives-search",
        "staleness-sweep",
        "trend-evaluation",
    }
    assert document.owner
    assert document.sources

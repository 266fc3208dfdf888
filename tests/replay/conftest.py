"""Plays histories with the example's policy, catalogue and profiles."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.fleet.load import load_fleet
from assay.model.fleet import Node
from assay.trends.replay.answer import answer
from assay.trends.replay.cast import cast
from assay.trends.replay.events import History
from assay.trends.replay.pace import Pace, Span
from assay.trends.replay.play import play
from assay.trends.replay.played import Played
from assay.trends.replay.reader import read_history
from assay.trends.replay.rules import Rules

sys.path.append(str(Path(__file__).parent))

ROOT = Path(__file__).resolve().parents[2]
PLANTED = "as planted"
ACTIONS = {"drain-now": 0.25, "reboot": 0.5, "powercycle": 0.75, "zap": 2.0, "dossier": 0.1}


@pytest.fixture(scope="session")
def rules() -> Rules:
    fleet = load_fleet(ROOT)
    spans = {name: Span(hours, PLANTED) for name, hours in ACTIONS.items()}
    pace = Pace(spans, suites=Span(0.5, PLANTED), person=Span(1, PLANTED), vendor=Span(240, PLANTED))
    return Rules(fleet.policies["default"], fleet.catalog, fleet.profiles, pace, fleet.lines)


@pytest.fixture(scope="session")
def played(rules: Rules) -> Callable[..., Played]:
    def of(events: list[dict[str, Any]], listed: dict[str, Node] | None = None, by: Rules = rules) -> Played:
        return _played(_history(events), listed or {}, by)

    return of


@pytest.fixture(scope="session")
def replayed(rules: Rules) -> Callable[..., dict[str, Any]]:
    def of(events: list[dict[str, Any]], listed: dict[str, Node] | None = None, by: Rules = rules) -> dict[str, Any]:
        history = _history(events)
        return answer(history, by, _played(history, listed or {}, by))

    return of


def _history(events: list[dict[str, Any]]) -> History:
    return read_history((json.dumps(event).encode() for event in events), "events")


def _played(history: History, listed: dict[str, Node], by: Rules) -> Played:
    return play(by, cast(listed, history.events, by), history.events)

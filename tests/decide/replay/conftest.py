"""Plays histories with the example's policy, catalogue and profiles."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from assay.decide.plan.inputs import AssumedHours
from assay.decide.replay.history import FaultHistory, read_history
from assay.decide.replay.replay_nodes import ReplayDurations, ReplayRules, collect_replay_nodes
from assay.decide.replay.result import ReplayResult, make_replay_answer
from assay.decide.replay.simulator import run_replay
from assay.declare.loader import load_fleet
from assay.model.facts import to_json
from assay.model.node import Node
from tests.support.places import ROOT

PLANTED = "as planted"
ACTIONS = {
    "drain-now": 0.25,
    "collect": 0.0,
    "gpu-reset": 0.25,
    "reboot": 0.5,
    "powercycle": 0.75,
    "zap": 2.0,
    "dossier": 0.1,
}


@pytest.fixture(scope="session")
def rules() -> ReplayRules:
    fleet = load_fleet(ROOT)
    spans = {name: AssumedHours(hours, PLANTED) for name, hours in ACTIONS.items()}
    pace = ReplayDurations(
        spans,
        suites=AssumedHours(0.5, PLANTED),
        person=AssumedHours(1, PLANTED),
        vendor=AssumedHours(240, PLANTED),
    )
    return ReplayRules(fleet.policies["default"], fleet.fault_catalog, fleet.profiles, pace, fleet.lines)


@pytest.fixture(scope="session")
def played(rules: ReplayRules) -> Callable[..., ReplayResult]:
    def of(
        events: list[dict[str, Any]], listed: dict[str, Node] | None = None, by: ReplayRules = rules
    ) -> ReplayResult:
        return _played(_history(events), listed or {}, by)

    return of


@pytest.fixture(scope="session")
def replayed(rules: ReplayRules) -> Callable[..., dict[str, Any]]:
    def of(
        events: list[dict[str, Any]],
        listed: dict[str, Node] | None = None,
        by: ReplayRules = rules,
    ) -> dict[str, Any]:
        history = _history(events)
        return to_json(make_replay_answer(history, by, _played(history, listed or {}, by)))

    return of


def _history(events: list[dict[str, Any]]) -> FaultHistory:
    return read_history((json.dumps(event).encode() for event in events), "events")


def _played(history: FaultHistory, listed: dict[str, Node], by: ReplayRules) -> ReplayResult:
    return run_replay(by, collect_replay_nodes(listed, history.events, by), history.events)

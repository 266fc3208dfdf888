"""What allure-pytest writes for a plain `pytest suites --alluredir DIR`: the same labels and measurements."""

from __future__ import annotations

import pytest

from assay.harness.allure import labels, measured
from assay.harness.trial import Trial
from assay.model.fleet import Fleet


def is_asked_for(config: pytest.Config) -> bool:
    """Return whether allure-pytest writes results in this session."""
    return bool(config.getoption("allure_report_dir", default=None))


def label(fleet: Fleet, trial: Trial) -> None:
    """Put the labels of a trial on the test that allure-pytest has just opened."""
    import allure

    for name, value in labels(fleet, trial.node, str(trial.subject), trial.phases, trial.fault):
        allure.dynamic.label(name, value)  # type: ignore[no-untyped-call]


def show_measurements(trial: Trial) -> None:
    """Add each measurement as a step; a parameter that varies would break the test's history."""
    import allure

    for measurement in trial.measurements:
        with allure.step(measured(measurement)):
            pass

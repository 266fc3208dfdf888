"""Judges ordinary items: pytest's own phases, fixtures and plugins, with the rules of suites around them.

What allure-pytest writes for a plain `pytest suites --alluredir DIR`: the same labels and measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

from assay.harness.items import terminal_report
from assay.harness.judging.evidence_cache import UnjudgeableCheck
from assay.harness.judging.verdict import (
    CheckContext,
    convert_exception,
    find_pass_objection,
    find_phase_verdict,
    format_reason,
    refuse_excusing_marks,
    refuse_rerun_options,
)
from assay.model.fleet import Fleet
from assay.model.outcome import CheckVerdict, Outcome
from assay.results.report.allure_results import allure_labels, format_measurement


def is_allure_requested(config: pytest.Config) -> bool:
    """Return whether allure-pytest writes results in this session."""
    return bool(config.getoption("allure_report_dir", default=None))


def add_allure_labels(fleet: Fleet, trial: CheckContext) -> None:
    """Put the labels of a trial on the test that allure-pytest has just opened."""
    import allure

    for name, value in allure_labels(fleet, trial.node, str(trial.subject), trial.phases, trial.fault):
        allure.dynamic.label(name, value)  # type: ignore[no-untyped-call]


def add_measurement_steps(trial: CheckContext) -> None:
    """Add each measurement as a step; a parameter that varies would break the test's history."""
    import allure

    for measurement in trial.measurements:
        with allure.step(format_measurement(measurement)):
            pass


CONTEXT_KEY = pytest.StashKey[CheckContext]()
PHASE_RESULTS_KEY = pytest.StashKey[list[tuple[CheckVerdict, str, float]]]()
CHECK_EXCEPTIONS = (Exception, pytest.skip.Exception, pytest.fail.Exception)
VERDICTS_BY_SEVERITY = ("pass", "skip", "fail", "error")


class OrdinaryItemHooks:
    """The hooks of ordinary items. `trial` opens one for an item of the suites, None for any other.

    Raises Trouble where failed checks shall be judged again.
    """

    def __init__(
        self,
        config: pytest.Config,
        fleet: Fleet,
        trial: Callable[[pytest.Item], CheckContext | None],
        take: Callable[[Outcome, CheckContext], None],
    ) -> None:
        refuse_rerun_options(config)
        self._fleet, self._trial, self._take = fleet, trial, take
        self._calm, self._allure = terminal_report.is_one_line_output(config), is_allure_requested(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Take the outcome of an ordinary item once it is through with its teardown."""
        ran = yield
        if CONTEXT_KEY in item.stash:
            self._take_outcome(item)
        return ran

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Open the trial."""
        __tracebackhide__ = True
        trial = self._trial(item)
        if trial is None:
            return (yield)
        item.stash[CONTEXT_KEY], item.stash[PHASE_RESULTS_KEY] = trial, []
        if self._allure:
            add_allure_labels(self._fleet, trial)
        try:
            return (yield)
        except CHECK_EXCEPTIONS as raised:
            raise convert_exception(raised) from None

    @pytest.hookimpl(specname="pytest_runtest_setup", tryfirst=True)
    def pytest_refuse(self, item: pytest.Item) -> None:
        """Refuse what suites may not do, before pytest makes something else of it. Raises Unjudgeable."""
        if CONTEXT_KEY not in item.stash:
            return
        refuse_excusing_marks(item)
        if not hasattr(item, "callspec"):
            raise UnjudgeableCheck(
                "asks for no subject: node, gpu, hca, nic, nvme, psu, link, rack, fabric, switch or rail"
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let the check end as the rules of suites say it ends."""
        __tracebackhide__ = True
        trial = item.stash.get(CONTEXT_KEY, None)
        if trial is None:
            return (yield)
        try:
            result = yield
        except CHECK_EXCEPTIONS as raised:
            raise convert_exception(raised) from None
        else:
            if ending := find_pass_objection(trial):
                raise ending
            return result
        finally:
            if self._allure:
                add_measurement_steps(trial)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the verdict of each phase, and put one line where the traceback would be."""
        report = yield
        if CONTEXT_KEY in item.stash:
            self._note_phase(item, call, report)
        return report

    def _note_phase(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        error = call.excinfo.value if call.excinfo else None
        verdict = find_phase_verdict(error, call.when)
        reason = format_reason(error) if error else ""
        item.stash[PHASE_RESULTS_KEY].append((verdict, reason, call.duration))
        if call.when == "call" or verdict != "pass":
            report.__dict__["verdict"] = verdict  # read by pytest_report_teststatus, also after a trip through xdist
        if self._calm and report.failed:
            report.longrepr = terminal_report.OneLineFailure(str(item.path), item.location[1] or 0, reason)  # type: ignore[assignment]

    def _take_outcome(self, item: pytest.Item) -> None:
        heard = item.stash[PHASE_RESULTS_KEY] or [("error", "never ran", 0.0)]
        verdict, reason, _ = max(heard, key=lambda phase: VERDICTS_BY_SEVERITY.index(phase[0]))
        trial = item.stash[CONTEXT_KEY]
        self._take(trial.make_outcome(verdict, reason, sum(duration for *_, duration in heard)), trial)

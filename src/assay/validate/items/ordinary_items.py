"""Judges ordinary items: pytest's own phases, fixtures and plugins, with the rules of suites around them.

A check is judged once, and only collecting evidence may be repeated: pytest's options and marks that excuse a failed
check, or run it again until it passes, are refused. Where allure-pytest runs, its tests get the same labels and
measurements as assay's own report.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from assay.model.errors import AssayError
from assay.model.fleet import Fleet, allure_labels
from assay.model.outcome import CheckVerdict, Outcome, format_measurement
from assay.validate.fixtures.check_fixtures import CheckFixtures
from assay.validate.items import terminal_report
from assay.validate.judging.evidence_cache import UnjudgeableCheck
from assay.validate.judging.unjudged_checks import CurrentCheck
from assay.validate.judging.verdict import (
    CheckContext,
    convert_exception,
    find_pass_objection,
    find_phase_verdict,
    format_reason,
)
from assay.validate.pytest_internals import find_fixture_functions

RERUN_OPTIONS = ("reruns", "retries", "force_flaky")
"""Options of pytest-rerunfailures, pytest-retry and flaky; an ini file can set the first two."""
REFUSED_MARKS = {
    "xfail": "xfail does not exist here; a known issue is data, not code",
    "flaky": "no check runs again until it passes; only collecting is retried",
}
CONTEXT_KEY = pytest.StashKey[CheckContext]()
PHASE_RESULTS_KEY = pytest.StashKey[list[tuple[CheckVerdict, str, float]]]()
CHECK_EXCEPTIONS = (Exception, pytest.skip.Exception, pytest.fail.Exception)
VERDICTS_BY_SEVERITY = ("pass", "skip", "fail", "error")


def refuse_rerun_options(config: pytest.Config) -> None:
    """Raise AssayError where an option would run failed checks again."""
    for name in RERUN_OPTIONS:
        if config.getoption(name, default=None) or _is_in_ini(config, name):
            problem = f"`{name}` is set: failed checks would run again until they pass"
            raise AssayError(problem, fix="unset it for suites; collect again with `assay observe`, then judge once")


def _is_in_ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except ValueError:  # no plugin has registered it, so it has no effect
        return False


def refuse_foreign_fixtures(item: pytest.Function, root: Path) -> None:
    """Raise UnjudgeableCheck where a file of the fleet, other than the check's own, changes what the check does.

    Nothing in the check names a fixture that runs by itself, or that stands in place of assay's.
    """
    module = item.getparent(pytest.Module)
    assert module is not None
    automatic = find_fixture_functions(module, lambda: None)
    used = find_fixture_functions(module, item.function)
    changed = {name: used[name] for name in used.keys() & vars(CheckFixtures).keys()}
    for name, function in sorted((automatic | changed).items()):
        file = Path(inspect.getfile(inspect.unwrap(function)))
        if file != module.path and file.is_relative_to(root):
            way = "runs by itself" if name in automatic else "stands in place of assay's"
            raise UnjudgeableCheck(
                f"the fixture {name} of {file.relative_to(root)} {way}, and changes what the check does; "
                "give it a name of its own, and ask for it as an argument of the check"
            )


class OrdinaryItemHooks:
    """The hooks of ordinary items.

    `open_context` returns the context of an item of the suites, None for any other item. `take_outcome` receives each
    outcome, `current` notes what is judged. Raises AssayError where an option would run failed checks again.
    """

    def __init__(
        self,
        config: pytest.Config,
        fleet: Fleet,
        open_context: Callable[[pytest.Item], CheckContext | None],
        take_outcome: Callable[[Outcome, CheckContext], None],
        current: CurrentCheck | None,
    ) -> None:
        refuse_rerun_options(config)
        self._current = current
        self._fleet = fleet
        self._open_context = open_context
        self._take_outcome = take_outcome
        self._one_line_output = terminal_report.is_one_line_output(config)
        self._allure = is_allure_requested(config)
        if self._allure:
            write_no_containers()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Deliver the outcome of an ordinary item after its teardown: that of its worst phase."""
        ran = yield
        if CONTEXT_KEY in item.stash:
            if self._current is not None:
                self._current.end()
            phases = item.stash[PHASE_RESULTS_KEY] or [("error", "never ran", 0.0)]
            verdict, reason, _ = max(phases, key=lambda phase: VERDICTS_BY_SEVERITY.index(phase[0]))
            context = item.stash[CONTEXT_KEY]
            duration_s = sum(duration for *_, duration in phases)
            self._take_outcome(context.make_outcome(verdict, reason, duration_s), context)
        return ran

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Open the item's context."""
        __tracebackhide__ = True
        context = self._open_context(item)
        if context is None:
            return (yield)
        item.stash[CONTEXT_KEY], item.stash[PHASE_RESULTS_KEY] = context, []
        if self._current is not None:
            self._current.begin(context.check, str(context.subject))
        if self._allure:
            add_allure_labels(self._fleet, context)
        try:
            return (yield)
        except CHECK_EXCEPTIONS as raised:
            raise convert_exception(raised) from None

    @pytest.hookimpl(specname="pytest_runtest_setup", tryfirst=True)
    def pytest_refuse(self, item: pytest.Item) -> None:
        """Refuse what suites may not do, before pytest acts on it. Raises UnjudgeableCheck."""
        if CONTEXT_KEY not in item.stash:
            return
        for name, reason in REFUSED_MARKS.items():
            if item.get_closest_marker(name):
                raise UnjudgeableCheck(reason)
        if isinstance(item, pytest.Function):
            refuse_foreign_fixtures(item, self._fleet.root)
        if inspect.iscoroutinefunction(getattr(item, "function", None)):
            raise UnjudgeableCheck("is `async def`, which pytest does not await; write `def`")
        if hasattr(item, "callspec") and item.callspec.params.keys() != {"subject"}:
            raise UnjudgeableCheck(
                "has a parametrize of its own, but a check gives one outcome for each subject; "
                "write a function for each value, or a loop with `measure(…, place=…)`"
            )
        if not hasattr(item, "callspec"):
            raise UnjudgeableCheck(
                "has no argument that is a subject: node, gpu, hca, nic, nvme, disk, psu, link, rack, fabric, switch …"
            )

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Apply the rules of suites to what the check raised, or to its return."""
        __tracebackhide__ = True
        context = item.stash.get(CONTEXT_KEY, None)
        if context is None:
            return (yield)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", pytest.PytestReturnNotNoneWarning)
                result = yield
        except CHECK_EXCEPTIONS as raised:
            raise convert_exception(raised) from None
        else:
            if objection := find_pass_objection(context):
                raise objection
            return result
        finally:
            if self._allure:
                add_measurement_steps(context)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the verdict of each phase, and put one line in place of the traceback."""
        report = yield
        if CONTEXT_KEY in item.stash:
            error = call.excinfo.value if call.excinfo else None
            verdict = find_phase_verdict(error, call.when)
            reason = format_reason(error) if error else ""
            item.stash[PHASE_RESULTS_KEY].append((verdict, reason, call.duration))
            if call.when == "call" or verdict != "pass":
                # pytest_report_teststatus reads it, also from a report that xdist has sent
                report.__dict__["verdict"] = verdict
            if self._one_line_output and report.failed:
                report.longrepr = terminal_report.OneLineFailure(str(item.path), item.location[1] or 0, reason)  # type: ignore[assignment]
        return report


def is_allure_requested(config: pytest.Config) -> bool:
    """Return whether allure-pytest writes results in this session."""
    return bool(config.getoption("allure_report_dir", default=None))


def write_no_containers() -> None:
    """Let allure-pytest write results alone: it has a file for each fixture of each check, which say nothing more."""
    from allure_commons import plugin_manager
    from allure_commons.logger import AllureFileLogger

    for logger in [plugin for plugin in plugin_manager.get_plugins() if isinstance(plugin, AllureFileLogger)]:
        plugin_manager.unregister(logger)
        vars(logger)["report_container"] = None  # pluggy registers what can be called
        plugin_manager.register(logger)


def add_allure_labels(fleet: Fleet, context: CheckContext) -> None:
    """Label the test that allure-pytest has just opened."""
    import allure

    for name, value in allure_labels(fleet, context.node, str(context.subject), context.phases, context.fault):
        allure.dynamic.label(name, value)  # type: ignore[no-untyped-call]


def add_measurement_steps(context: CheckContext) -> None:
    """Add each measurement as a step. As a parameter, a value that varies would break the test's history."""
    import allure

    for measurement in context.measurements:
        with allure.step(format_measurement(measurement)):
            pass

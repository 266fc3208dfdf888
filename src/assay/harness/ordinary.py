"""Judges ordinary items: pytest's own phases, fixtures and plugins, with the rules of suites around them."""

from __future__ import annotations

from collections.abc import Callable, Generator

import pytest

from assay.harness import adhoc, calm
from assay.harness.repeats import refuse_marks, refuse_repeats
from assay.harness.silence import Unjudgeable
from assay.harness.trial import Trial
from assay.harness.verdict import said, settled, unearned, verdict_of
from assay.model.fleet import Fleet
from assay.model.outcome import Outcome, Verdict

TRIAL = pytest.StashKey[Trial]()
HEARD = pytest.StashKey[list[tuple[Verdict, str, float]]]()
ENDINGS = (Exception, pytest.skip.Exception, pytest.fail.Exception)
WORST = ("pass", "skip", "fail", "error")


class Ordinary:
    """The hooks of ordinary items. `trial` opens one for an item of the suites, None for any other.

    Raises Trouble where failed checks shall be judged again.
    """

    def __init__(
        self,
        config: pytest.Config,
        fleet: Fleet,
        trial: Callable[[pytest.Item], Trial | None],
        take: Callable[[Outcome, Trial], None],
    ) -> None:
        refuse_repeats(config)
        self._fleet, self._trial, self._take = fleet, trial, take
        self._calm, self._allure = calm.is_asked_for(config), adhoc.is_asked_for(config)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Take the outcome of an ordinary item once it is through with its teardown."""
        ran = yield
        if TRIAL in item.stash:
            self._settle(item)
        return ran

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Open the trial."""
        __tracebackhide__ = True
        trial = self._trial(item)
        if trial is None:
            return (yield)
        item.stash[TRIAL], item.stash[HEARD] = trial, []
        if self._allure:
            adhoc.label(self._fleet, trial)
        try:
            return (yield)
        except ENDINGS as raised:
            raise settled(raised) from None

    @pytest.hookimpl(specname="pytest_runtest_setup", tryfirst=True)
    def pytest_refuse(self, item: pytest.Item) -> None:
        """Refuse what suites may not do, before pytest makes something else of it. Raises Unjudgeable."""
        if TRIAL not in item.stash:
            return
        refuse_marks(item)
        if not hasattr(item, "callspec"):
            raise Unjudgeable("asks for no subject: node, gpu, hca, nic, nvme, psu, link, rack, fabric, switch or rail")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let the check end as the rules of suites say it ends."""
        __tracebackhide__ = True
        trial = item.stash.get(TRIAL, None)
        if trial is None:
            return (yield)
        try:
            result = yield
        except ENDINGS as raised:
            raise settled(raised) from None
        else:
            if ending := unearned(trial):
                raise ending
            return result
        finally:
            if self._allure:
                adhoc.show_measurements(trial)

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note the verdict of each phase, and put one line where the traceback would be."""
        report = yield
        if TRIAL in item.stash:
            self._hear(item, call, report)
        return report

    def _hear(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        error = call.excinfo.value if call.excinfo else None
        verdict = verdict_of(error, call.when)
        reason = said(error) if error else ""
        item.stash[HEARD].append((verdict, reason, call.duration))
        if call.when == "call" or verdict != "pass":
            report.__dict__["verdict"] = verdict  # read by pytest_report_teststatus, also after a trip through xdist
        if self._calm and report.failed:
            report.longrepr = calm.CalmRepr(str(item.path), item.location[1] or 0, reason)  # type: ignore[assignment]

    def _settle(self, item: pytest.Item) -> None:
        heard = item.stash[HEARD] or [("error", "never ran", 0.0)]
        verdict, reason, _ = max(heard, key=lambda phase: WORST.index(phase[0]))
        trial = item.stash[TRIAL]
        self._take(trial.outcome(verdict, reason, sum(duration for *_, duration in heard)), trial)

"""Takes over the functions of a fleet's suites: one pytest item per check × subject, one outcome per item."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from assay.fleet.load import load_fleet
from assay.harness import adhoc, calm
from assay.harness.choose import chosen, kind_of
from assay.harness.fixtures import Fixtures
from assay.harness.marks import Marks
from assay.harness.shelf import Shelf
from assay.harness.silence import Unjudgeable
from assay.harness.trial import Trial
from assay.harness.verdict import said, settled, unearned, verdict_of
from assay.model.errors import Trouble
from assay.model.outcome import Outcome, Verdict
from assay.model.subject import Subject

TRIAL = pytest.StashKey[Trial]()
HEARD = pytest.StashKey[list[tuple[Verdict, str, float]]]()
ENDINGS = (Exception, pytest.skip.Exception, pytest.fail.Exception)
WORST = ("pass", "skip", "fail", "error")


class Refusal:
    """Stands in for suites that cannot be judged: pytest ends with a usage error and nothing runs."""

    def __init__(self, trouble: Trouble) -> None:
        self._trouble = trouble

    def pytest_collection_modifyitems(self) -> None:
        """End the session. Raises UsageError, which pytest prints as one message."""
        raise pytest.UsageError(str(self._trouble))


def wake(config: pytest.Config, folder: Path, home: Path) -> Suites | Refusal:
    """Return the hooks for the suites in `folder`, which judge the fleet at `home`."""
    try:
        return Suites(config, folder, home)
    except Trouble as trouble:
        return Refusal(trouble)


class Suites:
    """The hooks of one session. `folder` holds the modules, `home` the fleet that they judge."""

    def __init__(self, config: pytest.Config, folder: Path, home: Path) -> None:
        self.config, self.folder, self.outcomes = config, folder, list[Outcome]()
        option = config.getoption
        self.fleet = load_fleet(home)
        self.selection = chosen(self.fleet, config)
        self.phases = {name for given in option("--phase") for name in given.split(",")}
        self.shelf = Shelf(Path(option("--evidence") or home / ".assay" / "evidence" / "latest"))
        self.calm, self.allure = calm.is_asked_for(config), adhoc.is_asked_for(config)
        config.pluginmanager.register(
            Fixtures(self.fleet, option("--ledger") or os.environ.get("ASSAY_LEDGER", ""), TRIAL), "assay-fixtures"
        )
        if self.calm:
            calm.hush(config)

    def owns(self, node: pytest.Item | pytest.Collector) -> bool:
        """Return whether a test or module belongs to this fleet's suites."""
        return self.folder in node.path.parents

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
        """Make no items of a check that nothing is selected for: neither its evidence nor its fixtures are touched."""
        if not self.owns(collector) or not collector.istestfunction(obj, name):
            return None
        marks = Marks.of_function(obj, collector)
        if self.phases and not self.phases & set(marks.phases):
            return []
        kind = kind_of(obj)
        return [] if kind and not self.selection.subjects(kind) else None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat a check over the declared subjects of the kind that its arguments ask for."""
        if self.owns(metafunc.definition) and (kind := kind_of(metafunc.function)):
            subjects = [str(subject) for subject, _ in self.selection.subjects(kind)]
            metafunc.parametrize("subject", subjects, ids=subjects, indirect=True)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Write down what the user left out with -k, -m or --deselect, so that nobody misses it."""
        if self._file is not None:
            left_out = [json.dumps(self._name(item)) + "\n" for item in items if self.owns(item)]
            with self._file.with_suffix(".left-out").open("a") as file:
                file.writelines(left_out)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write the outcome once the item is through with its teardown."""
        ran = yield
        if TRIAL in item.stash:
            self._deliver(item)
        return ran

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        """Open the trial."""
        __tracebackhide__ = True
        if not self.owns(item):
            return (yield)
        item.stash[TRIAL], item.stash[HEARD] = self._trial(item), []
        if self.allure:
            adhoc.label(self.fleet, item.stash[TRIAL])
        try:
            return (yield)
        except ENDINGS as raised:
            raise settled(raised) from None

    @pytest.hookimpl(specname="pytest_runtest_setup", tryfirst=True)
    def pytest_refuse(self, item: pytest.Item) -> None:
        """Refuse what suites may not do, before pytest makes something else of it. Raises Unjudgeable."""
        if not self.owns(item):
            return
        if item.get_closest_marker("xfail"):
            raise Unjudgeable("xfail does not exist here; a known issue is data, not code")
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
            if self.allure:
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

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what did not pass, one line each."""
        if self.calm:
            calm.tell(terminalreporter, self.outcomes)

    def _name(self, item: pytest.Item) -> tuple[str, str]:
        """Return an item's check and subject."""
        module = item.path.relative_to(self.folder).as_posix()
        callspec = getattr(item, "callspec", None)
        check = f"{self.folder.name}/{module}::{getattr(item, 'originalname', None) or item.name}"
        return check, callspec.params["subject"] if callspec else "fleet/all"

    def _trial(self, item: pytest.Item) -> Trial:
        marks, (check, subject) = Marks.of_item(item), self._name(item)
        judged = Subject.parse(subject)
        node = judged.name if judged.name in self.fleet.nodes else ""
        return Trial(check, judged, node, self.shelf, marks.phases, marks.fault, marks.active)

    def _hear(self, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
        error = call.excinfo.value if call.excinfo else None
        verdict = verdict_of(error, call.when)
        reason = said(error) if error else ""
        item.stash[HEARD].append((verdict, reason, call.duration))
        if call.when == "call" or verdict != "pass":
            report.__dict__["verdict"] = verdict  # read by pytest_report_teststatus, also after a trip through xdist
        if self.calm and report.failed:
            report.longrepr = calm.CalmRepr(str(item.path), item.location[1] or 0, reason)  # type: ignore[assignment]

    def _deliver(self, item: pytest.Item) -> None:
        heard = item.stash[HEARD] or [("error", "never ran", 0.0)]
        verdict, reason, _ = max(heard, key=lambda phase: WORST.index(phase[0]))
        outcome = item.stash[TRIAL].outcome(verdict, reason, sum(duration for *_, duration in heard))
        self.outcomes.append(outcome)
        if self._file is not None:
            with self._file.open("a") as file:
                file.write(json.dumps(outcome.as_json(), ensure_ascii=False) + "\n")

    @cached_property
    def _file(self) -> Path | None:
        given = self.config.getoption("--outcomes")
        return Path(given) if given else None

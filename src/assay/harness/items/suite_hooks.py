"""Takes over the functions of a fleet's suites: one pytest item per check × subject, one outcome per item."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.harness.fixtures.check_fixtures import CheckFixtures
from assay.harness.fleet_cache import load_cached_fleet
from assay.harness.items import terminal_report
from assay.harness.items.item_factory import ItemFactory, wants_slim_items
from assay.harness.items.ordinary_items import CONTEXT_KEY, OrdinaryItemHooks
from assay.harness.items.slim_item_runner import SlimItemProtocol, SuiteLoop, sort_items_by_node
from assay.harness.items.slim_items import SlimCheck, SlimItem
from assay.harness.judging.evidence_cache import EvidenceCache
from assay.harness.judging.outcome_annotator import OutcomeAnnotator
from assay.harness.judging.verdict import CheckContext
from assay.harness.markers import CheckMarks
from assay.harness.selection.command_line_selection import (
    ANY_SUBJECT,
    ExpressionFilter,
    RequestedIds,
    find_requested_ids,
    find_subject_kind,
    select_nodes,
)
from assay.harness.selection.selected_subjects import NamedSubject, SelectedSubjects
from assay.model.errors import AssayError
from assay.model.outcome import CheckSubject, Outcome

if TYPE_CHECKING:  # who keeps no outcomes does not wait for what keeps them
    from assay.harness.judging.outcome_delivery import OutcomeDelivery
    from assay.harness.selection.declared_checks import NodeSelection
    from assay.model.fleet import Fleet

MANY_ITEMS = 5000  # items, or nodes
LEDGER_VARIABLE, REJUDGED_RUN_VARIABLE = "ASSAY_LEDGER", "ASSAY_JUDGED_AGAIN"
"""Where a process finds the ledger, and the run that it judges again, by environment."""


class RefusedSuites:
    """Stands in for suites that cannot be judged: pytest ends with a usage error and nothing runs."""

    def __init__(self, trouble: AssayError) -> None:
        self._trouble = trouble

    def pytest_collection_modifyitems(self) -> None:
        """End the session. Raises UsageError, which pytest prints as one message."""
        raise pytest.UsageError(str(self._trouble))


def open_suites(config: pytest.Config, folder: Path, home: Path) -> SuiteHooks | RefusedSuites:
    """Return the hooks for the suites in `folder`, which judge the fleet at `home`."""
    try:
        return SuiteHooks(config, folder, home)
    except AssayError as trouble:
        return RefusedSuites(trouble)


class SuiteHooks:
    """The hooks of one session. `folder` holds the modules, `home` the fleet that they judge."""

    def __init__(self, config: pytest.Config, folder: Path, home: Path) -> None:
        self.config, self.folder, self.outcomes = config, folder, list[Outcome]()
        option = config.getoption
        self.fleet = load_cached_fleet(home)
        selection = select_nodes(self.fleet, config)
        self.subjects = SelectedSubjects(selection)
        self.phases = {name for given in option("--phase") for name in given.split(",")}
        self._delivery = _open_delivery(config, self.fleet, selection)
        where = Path(option("--evidence") or home / ".assay" / "evidence" / "latest")
        self.evidence = self._delivery.open_evidence(where) if self._delivery else EvidenceCache(where)
        self._beside = OutcomeAnnotator(self.fleet, self._delivery, self.evidence)
        self.one_line_output = terminal_report.is_one_line_output(config)
        told = os.environ.get
        fixtures = CheckFixtures(
            self.fleet, option("--ledger") or told(LEDGER_VARIABLE, ""), CONTEXT_KEY, told(REJUDGED_RUN_VARIABLE, "")
        )
        self._narrow, self._making = ExpressionFilter(config), ItemFactory(fixtures, slim=wants_slim_items(config))
        self._subjects: dict[tuple[Path, str], list[str]] = {}
        self._asked: dict[Path, RequestedIds | None] = {}
        config.pluginmanager.register(fixtures, "assay-fixtures")
        protocol = SlimItemProtocol(config, self.evidence, self.take_outcome)
        config.pluginmanager.register(protocol, "assay-protocol")
        config.pluginmanager.register(SuiteLoop(protocol), "assay-loop")
        config.pluginmanager.register(
            OrdinaryItemHooks(config, self.fleet, self.open_context, self.take_outcome), "assay-ordinary"
        )
        if self.one_line_output:
            terminal_report.suppress_tracebacks(config)

    def owns(self, node: pytest.Item | pytest.Collector) -> bool:
        """Return whether a test or module belongs to this fleet's suites."""
        return self.folder in node.path.parents

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
        """Make slim items, leave ordinary ones to pytest, and none where nothing is selected for a check.

        Neither the evidence nor the fixtures of what is not selected are touched.
        """
        if not self.owns(collector) or not collector.istestfunction(obj, name):
            return None
        check = self._making.describe_check(self._check_id(collector, name), obj, collector)
        if self.phases and not self.phases & set(check.marks.phases):
            return []
        kind = find_subject_kind(obj)
        if not kind:
            return None
        names = self._requested_ids_of(collector.path) if isinstance(collector, pytest.Module) else None
        if names is not None and name not in names:
            return []
        judges = self._making.is_slim_check(check, collector)
        subjects = self._selected(check, collector, kind, names) if judges else self.subjects.of_kind(kind)
        if self._delivery is not None:
            subjects = self._delivery.skip_judged(check.id, subjects)
        if subjects and judges and self._making.slim:
            return self._making.make_items(check, collector, subjects)
        self._subjects[collector.path, name] = [one.id for one in subjects]
        return None if subjects else []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Repeat an ordinary check over the selected subjects of the kind that its arguments ask for."""
        if self.owns(metafunc.definition) and find_subject_kind(metafunc.function):
            subjects = self._subjects[metafunc.definition.path, metafunc.definition.name]
            metafunc.parametrize("subject", subjects, ids=subjects, indirect=True)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put slim items first, those of one node or rack together, so that its evidence is read once."""
        if self._delivery is not None:
            items[:] = [item for item in items if isinstance(item, SlimItem) or not self._was_judged(item)]
        sort_items_by_node(items, self.fleet)
        if len(items) >= MANY_ITEMS or len(self.fleet.nodes) >= MANY_ITEMS:
            gc.freeze()  # all that there is stays until the end, and need not be looked through again and again

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Write down what the user left out with -k, -m or --deselect, so that nobody misses it."""
        if self._delivery is not None:
            self._delivery.left_out(self._name(item) for item in items if self.owns(item))

    def close_delivery(self) -> None:
        """Put on disk what was taken, and let go of the file."""
        if self._delivery is not None:
            self._delivery.close()
            self._delivery = None

    def pytest_unconfigure(self) -> None:
        """Deliver no more."""
        self.close_delivery()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Tell what did not pass, one line each."""
        if self.one_line_output:
            terminal_report.print_problems(terminalreporter, self.outcomes)

    def take_outcome(self, outcome: Outcome, trial: CheckContext) -> None:
        """Put beside an outcome what belongs there, deliver it, and keep it for the summary unless it passed."""
        outcome = self._beside(outcome, trial)
        if outcome.verdict != "pass":
            self.outcomes.append(outcome)
        if self._delivery is not None:
            self._delivery(outcome)

    def open_context(self, item: pytest.Item) -> CheckContext | None:
        """Open the trial of an ordinary item, None for one that is not of these suites."""
        if not self.owns(item):
            return None
        marks, (check, subject) = CheckMarks.of_item(item), self._name(item)
        judged = CheckSubject.parse(subject)
        node = judged.name if judged.name in self.fleet.nodes else ""
        return CheckContext(check, judged, node, self.evidence, marks.phases, marks.fault, marks.active)

    def _was_judged(self, item: pytest.Item) -> bool:
        return self._delivery is not None and self.owns(item) and self._delivery.has_judged(*self._name(item))

    def _selected(
        self, check: SlimCheck, module: pytest.Collector, kind: str, names: RequestedIds | None
    ) -> list[NamedSubject]:
        """Return the subjects of a check that the ids of the command line (`names`), -m and -k leave."""
        if names is not None:
            ids = names[check.name]
            return self.subjects.of_kind(kind) if ids is None else self.subjects.with_ids(kind, ids)
        words = self._narrow.pattern_of(self._making.make_example(check, module))
        fitting = self.subjects.matching(kind, words)
        if self._delivery is not None and words != ANY_SUBJECT:
            kept = {one.id for one in fitting}
            self._delivery.left_out((check.id, one.id) for one in self.subjects.of_kind(kind) if one.id not in kept)
        return fitting

    def _requested_ids_of(self, module: Path) -> RequestedIds | None:
        """Return what the command line asks for in a module, made out once for all of its functions."""
        if module not in self._asked:
            self._asked[module] = find_requested_ids(self.config, module)
        return self._asked[module]

    def _check_id(self, place: pytest.Item | pytest.Collector, name: str) -> str:
        return f"{self.folder.name}/{place.path.relative_to(self.folder).as_posix()}::{name}"

    def _name(self, item: pytest.Item) -> tuple[str, str]:
        """Return an item's check and subject."""
        if isinstance(item, SlimItem):
            return item.check.id, str(item.subject)
        callspec = getattr(item, "callspec", None)
        check = self._check_id(item, getattr(item, "originalname", None) or item.name)
        return check, callspec.params["subject"] if callspec else "fleet/all"


def _open_delivery(config: pytest.Config, fleet: Fleet, selection: NodeSelection) -> OutcomeDelivery | None:
    if not config.getoption("--store"):
        return None
    from assay.harness.judging.outcome_delivery import open_delivery

    return open_delivery(config, fleet, selection.nodes)

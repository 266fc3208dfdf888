"""Takes over the test functions of a fleet's suites: one pytest item per check × subject, one outcome per item."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.declare.fleet_cache import load_cached_fleet
from assay.declare.home import find_home
from assay.model.errors import AssayError
from assay.model.outcome import CheckSubject, Outcome
from assay.validate.fixtures.check_fixtures import CheckFixtures
from assay.validate.items import terminal_report
from assay.validate.items.item_factory import ItemFactory, wants_slim_items
from assay.validate.items.ordinary_items import CONTEXT_KEY, OrdinaryItemHooks
from assay.validate.items.slim_item_runner import SlimItemProtocol, SuiteLoop, sort_items_by_node
from assay.validate.items.slim_items import SlimCheck, SlimItem
from assay.validate.judging.evidence_cache import EvidenceCache
from assay.validate.judging.failure_excuses_and_artefacts import OutcomeAnnotator
from assay.validate.judging.verdict import CheckContext
from assay.validate.markers import CheckMarks
from assay.validate.pytest_internals import IS_SILENT_KEY, escape_terminal, fixture_order_only_of_ordinary_items
from assay.validate.runs.command_line_selection import (
    ANY_SUBJECT,
    ExpressionFilter,
    RequestedIds,
    find_requested_ids,
    find_subject_kind,
    select_nodes,
)
from assay.validate.runs.last_failed import find_last_failed
from assay.validate.runs.parent_process import RECEIVED_SIGNALS
from assay.validate.runs.selected_subjects import NamedSubject, SelectedSubjects
from assay.validate.runs.typed_selection import TypedSelection

if TYPE_CHECKING:  # loaded only in sessions that store outcomes
    from assay.model.fleet import Fleet
    from assay.validate.judging.session_outcome_file import OutcomeDelivery
    from assay.validate.runs.node_selection import NodeSelection

LEFT_OUT_REASON = "left out by a conftest or a plugin; only the command line may leave checks out: -- -k …"
MANY_ITEMS = 5000  # items, or nodes
LEDGER_VARIABLE, REJUDGED_RUN_VARIABLE = "ASSAY_LEDGER", "ASSAY_JUDGED_AGAIN"
"""Environment variables: the ledger's path or URL, and the id of the run that is judged again."""


def open_suites(config: pytest.Config, folder: Path, home: Path) -> SuiteHooks | RefusedSuites:
    """Return the hooks for the suites in `folder`, which judge the fleet at `home`."""
    try:
        return SuiteHooks(config, folder, home)
    except AssayError as error:
        return RefusedSuites(error)


class RefusedSuites:
    """Replaces the hooks of suites that cannot be judged: pytest ends with a usage error before any item runs."""

    def __init__(self, error: AssayError) -> None:
        self._error = error

    def pytest_collection_modifyitems(self) -> None:
        """End the session. Raises UsageError, which pytest prints as one message."""
        raise pytest.UsageError(str(self._error))


class SuiteHooks:
    """The hooks of one session. `folder` holds the modules, `home` the fleet that they judge."""

    def __init__(self, config: pytest.Config, folder: Path, home: Path) -> None:
        self.config, self.folder, self.outcomes = config, folder, list[Outcome]()
        option = config.getoption
        chosen = find_home(home)
        self.fleet = load_cached_fleet(home, chosen.overlays)
        selection = select_nodes(self.fleet, config)
        self.subjects = SelectedSubjects(selection)
        self.phases = {name for text in option("--assay-phase") for name in text.split(",")}
        self._delivery = _open_delivery(config, self.fleet, selection)
        evidence_folder = Path(option("--assay-evidence") or chosen.folder / "evidence" / "latest")
        self.evidence = (
            self._delivery.open_evidence(evidence_folder) if self._delivery else EvidenceCache(evidence_folder)
        )
        self._annotate = OutcomeAnnotator(self.fleet, self._delivery, self.evidence)
        escape_terminal(config)
        self.one_line_output = terminal_report.is_one_line_output(config)
        self._is_silent = config.stash.get(IS_SILENT_KEY, False)
        ledger = option("--assay-ledger") or os.environ.get(LEDGER_VARIABLE, "")
        fixtures = CheckFixtures(self.fleet, ledger, CONTEXT_KEY, os.environ.get(REJUDGED_RUN_VARIABLE, ""))
        self._expressions, self._factory = (
            ExpressionFilter(TypedSelection.of_session(config)),
            ItemFactory(fixtures, slim=wants_slim_items(config)),
        )
        self._ordinary_subjects: dict[tuple[Path, str], list[str]] = {}
        self._requested_ids: dict[Path, RequestedIds | None] = {}
        self._last_failed = find_last_failed(config, set(selection.nodes))
        self._register_plugins(fixtures)
        if self.one_line_output:
            terminal_report.suppress_tracebacks(config)

    def _register_plugins(self, fixtures: CheckFixtures) -> None:
        config, current = self.config, self._delivery.current if self._delivery else None
        protocol = SlimItemProtocol(config, self.evidence, self.take_outcome, current)
        ordinary = OrdinaryItemHooks(config, self.fleet, self.open_context, self.take_outcome, current)
        if self._delivery is not None:
            from assay.validate.items.module_collection import ModuleCollection
            from assay.validate.runs.outside_influences import list_influences

            config.pluginmanager.register(ModuleCollection(self._delivery, self._name_module), "assay-modules")
            self._delivery.note_influences(list_influences(config, self.fleet.root))
        config.pluginmanager.register(fixtures, "assay-fixtures")
        config.pluginmanager.register(protocol, "assay-protocol")
        config.pluginmanager.register(SuiteLoop(protocol), "assay-loop")
        config.pluginmanager.register(ordinary, "assay-ordinary")

    def owns(self, node: pytest.Item | pytest.Collector) -> bool:
        """Return whether an item or module belongs to these suites."""
        return self.folder in node.path.parents

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: pytest.Module, name: str, obj: Any) -> list[pytest.Item] | None:
        """Make slim items, leave ordinary ones to pytest, and make none where no subject is selected.

        Evidence and fixtures of what is not selected are not read.
        """
        if not self.owns(collector) or not collector.istestfunction(obj, name):
            return None
        check = self._factory.describe_check(self._check_id(collector, name), obj, collector)
        if self.phases and not self.phases & set(check.marks.phases):
            return []
        kind = find_subject_kind(obj)
        if not kind:
            return None
        requested = self._find_requested_ids(collector.path) if isinstance(collector, pytest.Module) else None
        if requested is not None and name not in requested:
            return []
        is_slim = self._factory.is_slim_check(check, collector)
        subjects = self._select_subjects(check, collector, kind, requested) if is_slim else self.subjects.of_kind(kind)
        if self._delivery is not None:
            subjects = self._delivery.skip_judged(check.id, subjects)
        if subjects and is_slim and self._factory.slim:
            return self._factory.make_items(check, collector, subjects)
        self._ordinary_subjects[collector.path, name] = [subject.id for subject in subjects]
        return None if subjects else []

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Parametrize an ordinary check over the selected subjects of its kind."""
        if self.owns(metafunc.definition) and find_subject_kind(metafunc.function):
            subjects = self._ordinary_subjects[metafunc.definition.path, metafunc.definition.name]
            metafunc.parametrize("subject", subjects, ids=subjects, indirect=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True, specname="pytest_collection_modifyitems")
    def pytest_order_ordinary_items(self) -> Generator[None]:
        """Let slim items be, which have no fixtures to order."""
        with fixture_order_only_of_ordinary_items():
            yield

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Drop ordinary items that an earlier session judged; put slim items first, grouped by node."""
        if self._delivery is not None:
            items[:] = [item for item in items if isinstance(item, SlimItem) or not self._was_judged(item)]
        sort_items_by_node(items, self.fleet)
        is_large = len(items) >= MANY_ITEMS or len(self.fleet.nodes) >= MANY_ITEMS
        if is_large or self.config.getoption("--assay-shard"):  # a shard is a process of its own
            gc.freeze()  # these objects live until the end: no collection need look at them

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Store what -k, -m or --deselect left out, so that it does not count as missing.

        In a shard of a run, what else leaves an item out makes it an error.
        """
        if self._delivery is None:
            return
        own, is_shard = [item for item in items if self.owns(item)], bool(self.config.getoption("--assay-shard"))
        asked = {item: is_shard and not self._expressions.leaves_out(item) for item in own}
        self._delivery.add_left_out(self._name(item) for item in own if not asked[item])
        for item in own:
            if asked[item] and (context := self.open_context(item)) is not None:
                self.take_outcome(context.make_outcome("error", LEFT_OUT_REASON, 0.0), context)

    def close_delivery(self) -> None:
        """Write what was delivered to disk and close the file."""
        if self._delivery is not None:
            if RECEIVED_SIGNALS and self._delivery.current is not None:
                self._delivery.current.note_signal()
            self._delivery.close()
            self._delivery = None

    def pytest_unconfigure(self) -> None:
        """Close the file of outcomes."""
        self.close_delivery()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what did not pass, one line each."""
        if self.one_line_output:
            terminal_report.print_problems(terminalreporter, self.outcomes)

    def take_outcome(self, outcome: Outcome, context: CheckContext) -> None:
        """Annotate an outcome, deliver it, and keep it for the summary unless it passed or the run shows it."""
        outcome = self._annotate(outcome, context)
        if outcome.verdict != "pass" and not self._is_silent:
            self.outcomes.append(outcome)
        if self._delivery is not None:
            self._delivery(outcome)

    def open_context(self, item: pytest.Item) -> CheckContext | None:
        """Return the context of an ordinary item, None for one that is not of these suites."""
        if not self.owns(item):
            return None
        marks, (check, subject_id) = CheckMarks.of_item(item), self._name(item)
        subject = CheckSubject.parse(subject_id)
        node = subject.name if subject.name in self.fleet.nodes else ""
        return CheckContext(check, subject, node, self.evidence, marks.phases, marks.fault, marks.active)

    def _was_judged(self, item: pytest.Item) -> bool:
        return self._delivery is not None and self.owns(item) and self._delivery.has_judged(*self._name(item))

    def _select_subjects(
        self, check: SlimCheck, module: pytest.Collector, kind: str, requested: RequestedIds | None
    ) -> list[NamedSubject]:
        """Return the subjects of a check that the ids on the command line, or else -m and -k, select."""
        if requested is not None:
            ids = requested[check.name]
            return self.subjects.of_kind(kind) if ids is None else self.subjects.with_ids(kind, ids)
        pattern = self._expressions.pattern_of(self._factory.make_example(check, module))
        selected = self.subjects.matching(kind, pattern)
        if self._delivery is not None and pattern != ANY_SUBJECT:
            selected_ids = {subject.id for subject in selected}
            left_out = (subject.id for subject in self.subjects.of_kind(kind) if subject.id not in selected_ids)
            self._delivery.add_left_out((check.id, subject) for subject in left_out)
        return selected

    def _find_requested_ids(self, module: Path) -> RequestedIds | None:
        """Return what ids on the command line or --lf ask for in a module, found once for all of its functions."""
        if module not in self._requested_ids:
            self._requested_ids[module] = find_requested_ids(self.config, module) or self._last_failed.get(module)
        return self._requested_ids[module]

    def _name_module(self, module: pytest.Collector) -> str:
        return self._check_id(module, "").removesuffix("::") if self.owns(module) else ""

    def _check_id(self, place: pytest.Item | pytest.Collector, name: str) -> str:
        return f"{self.folder.name}/{place.path.relative_to(self.folder).as_posix()}::{name}"

    def _name(self, item: pytest.Item) -> tuple[str, str]:
        """Return the ids of an item's check and subject."""
        if isinstance(item, SlimItem):
            return item.check.id, str(item.subject)
        callspec = getattr(item, "callspec", None)
        check = self._check_id(item, getattr(item, "originalname", None) or item.name)
        return check, callspec.params["subject"] if callspec else "fleet/all"


def _open_delivery(config: pytest.Config, fleet: Fleet, selection: NodeSelection) -> OutcomeDelivery | None:
    if not config.getoption("--assay-store"):
        return None
    from assay.validate.judging.session_outcome_file import open_delivery

    return open_delivery(config, fleet, selection.nodes)

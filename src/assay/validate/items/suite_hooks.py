"""Takes over the test functions of a fleet's suites: one pytest item per check × subject, one outcome per item.

Items are slim where a check only judges evidence, else pytest makes them. In a session that stores outcomes, a module
that cannot be opened costs its own checks only. It also notes files outside the suites that may change what is judged.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.declare.fleet_cache import load_cached_fleet
from assay.declare.home import find_home
from assay.model import outcome as outcome_model
from assay.model.errors import AssayError
from assay.model.gc_pause import keep_objects
from assay.model.outcome import CheckSubject, Outcome
from assay.validate.fixtures.check_fixtures import CheckFixtures
from assay.validate.items import ordinary_items, slim_item_runner, slim_items, terminal_report
from assay.validate.items.ordinary_items import CONTEXT_KEY, OrdinaryItemHooks
from assay.validate.items.slim_item_runner import SlimItemProtocol, SuiteLoop, sort_items_by_node
from assay.validate.items.slim_items import FixtureBinding, SlimCheck, SlimItem
from assay.validate.items.terminal_report import find_collection_error
from assay.validate.judging import evidence_cache, failure_notes, verdict
from assay.validate.judging.evidence_cache import EvidenceCache
from assay.validate.judging.failure_notes import OutcomeAnnotator
from assay.validate.judging.session_outcome_file import IMPORTED, OutcomeDelivery
from assay.validate.judging.verdict import CheckContext
from assay.validate.markers import CHECK_MARKERS, CheckMarks
from assay.validate.pytest_internals import (
    IS_SILENT_KEY,
    escape_terminal,
    find_fixture_functions,
    fixture_order_only_of_ordinary_items,
)
from assay.validate.runs.command_line import (
    ANY_SUBJECT,
    ExpressionFilter,
    NamedSubject,
    RequestedIds,
    SelectedSubjects,
    find_last_failed,
    find_requested_ids,
    find_subject_kind,
    read_parameters,
    select_nodes,
)
from assay.validate.runs.due_checks import DueChecks
from assay.validate.runs.parent_process import RECEIVED_SIGNALS
from assay.validate.runs.typed_selection import TypedSelection

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.validate.runs.subjects import NodeSelection

OWN_MARKS = frozenset(line.partition(":")[0].partition("(")[0] for line in CHECK_MARKERS)
"""Marks on which no plugin acts. A check with any other mark gets ordinary items, so that the mark takes effect."""
DEBUG_OPTIONS = ("usepdb", "trace", "setupshow", "setuponly", "setupplan", "assay_ordinary_items")
"""Options that show what slim items lack: phases, fixtures, a traceback."""
NO_SUBJECT = NamedSubject(CheckSubject("", ""), "", "")
LEFT_OUT_REASON = "left out by a conftest or a plugin; only the command line may leave checks out: -- -k …"
MANY_ITEMS = 5000  # items, or nodes
LEDGER_VARIABLE, REJUDGED_RUN_VARIABLE = "ASSAY_LEDGER", "ASSAY_JUDGED_AGAIN"
"""Environment variables: the ledger's path or URL, and the id of the run that is judged again."""


def wants_slim_items(config: pytest.Config) -> bool:
    """Return whether slim items will do: no option asks for tracebacks, a debugger, fixtures or Allure's files."""
    is_debugging = any(config.getoption(option, default=False) for option in DEBUG_OPTIONS)
    return (
        terminal_report.is_one_line_output(config)
        and not ordinary_items.is_allure_requested(config)
        and not is_debugging
    )


class ItemFactory:
    """Makes the slim items of one session. `slim` says whether it may; without, all items are ordinary."""

    def __init__(self, fixtures: CheckFixtures, *, slim: bool) -> None:
        self._fixtures = fixtures
        self._binding = FixtureBinding(fixtures)
        self.slim = slim

    def describe_check(self, check_id: str, function: Any, module: pytest.Collector) -> SlimCheck:
        """Return what the items of a test function have in common."""
        own_markers: list[pytest.Mark] = list(getattr(function, "pytestmark", []))
        return SlimCheck(check_id, function, CheckMarks.of_function(function, module), own_markers, module.ihook)

    def is_slim_check(self, check: SlimCheck, module: pytest.Collector) -> bool:
        """Return whether a check is a plain function whose arguments, marks and fixtures are all assay's.

        It then has one item for each subject, and the item's id ends with the subject's.
        """
        if not isinstance(module, pytest.Module) or not _is_plain_function(check.function):
            return False
        marks = {mark.name for mark in (*check.own_markers, *module.iter_markers())}
        if not (
            marks <= OWN_MARKS
            and self._binding.knows(list(read_parameters(check.function)))
            and not hasattr(module.obj, "pytest_generate_tests")
        ):
            return False
        # pytest must use assay's fixtures only: no module overrides one, and none is automatic
        used = find_fixture_functions(module, check.function)
        used.pop("request", None)
        return all(getattr(fixture, "__self__", None) is self._fixtures for fixture in used.values())

    def make_example(self, check: SlimCheck, module: pytest.Collector) -> SlimItem:
        """Return an item without a subject, against which `ExpressionFilter` holds -k and -m."""
        return _make_item(check, module, f"{check.name}[", NO_SUBJECT)

    def make_items(
        self, check: SlimCheck, module: pytest.Collector, subjects: Iterable[NamedSubject]
    ) -> list[pytest.Item]:
        """Return a slim item for each subject."""
        check.recipe = self._binding.make_recipe(list(read_parameters(check.function)))
        check.keywords = dict.fromkeys((check.name, *module.keywords, *(mark.name for mark in check.own_markers)), 1)
        return [_make_item(check, module, f"{check.name}[{subject.id}]", subject) for subject in subjects]


def _make_item(check: SlimCheck, module: pytest.Collector, name: str, subject: NamedSubject) -> SlimItem:
    item: SlimItem = SlimItem.from_parent(
        module, name=name, check=check, subject=subject.subject, node_name=subject.node
    )
    return item


def _is_plain_function(function: Any) -> bool:
    """Return whether a call with its arguments by name is all that the function needs: no defaults, no generator."""
    special = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    if (
        not inspect.isfunction(function)
        or hasattr(function, "__wrapped__")
        or any(is_special(function) for is_special in special)
    ):
        return False
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return all(
        parameter.kind in kinds and parameter.default is parameter.empty
        for parameter in read_parameters(function).values()
    )


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
        self.config = config
        self.folder = folder
        self.outcomes = list[Outcome]()
        option = config.getoption
        chosen = find_home(home)
        self.fleet = load_cached_fleet(home, chosen.overlays)
        selection = select_nodes(self.fleet, config)
        self.subjects = SelectedSubjects(selection)
        self.phases = {name for text in option("--assay-phase") for name in text.split(",")}
        self._delivery = _open_delivery(config, self.fleet, selection)
        evidence_folder = Path(option("--assay-evidence") or chosen.folder / "evidence" / "latest")
        nodes = self.fleet.nodes
        self.evidence = (
            self._delivery.open_evidence(evidence_folder, nodes)
            if self._delivery
            else EvidenceCache(evidence_folder, nodes)
        )
        self.due_checks = DueChecks(self.fleet, self.evidence)
        self._annotate = OutcomeAnnotator(self.fleet, self._delivery, self.evidence)
        escape_terminal(config)
        self.one_line_output = terminal_report.is_one_line_output(config)
        self._is_silent = config.stash.get(IS_SILENT_KEY, False)
        ledger = option("--assay-ledger") or os.environ.get(LEDGER_VARIABLE, "")
        fixtures = CheckFixtures(self.fleet, ledger, CONTEXT_KEY, os.environ.get(REJUDGED_RUN_VARIABLE, ""))
        self._expressions = ExpressionFilter(TypedSelection.of_session(config))
        self._factory = ItemFactory(fixtures, slim=wants_slim_items(config))
        self._ordinary_subjects: dict[tuple[Path, str], list[str]] = {}
        self._requested_ids: dict[Path, RequestedIds | None] = {}
        self._modules = set[Path]()
        self._last_failed = find_last_failed(config, set(selection.nodes))
        self._register_plugins(fixtures)
        if self.one_line_output:
            terminal_report.suppress_tracebacks(config)

    def _register_plugins(self, fixtures: CheckFixtures) -> None:
        config, current = self.config, self._delivery.current if self._delivery else None
        protocol = SlimItemProtocol(config, self.evidence, self.take_outcome, current)
        ordinary = OrdinaryItemHooks(config, self.fleet, self.open_context, self.take_outcome, current)
        if self._delivery is not None:
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
        self._modules.add(collector.path)
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
        if requested is None:
            subjects = self._select_due(check, subjects)
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
        """Drop ordinary items that an earlier session judged; put slim items first, grouped by node.

        Raises UsageError where something has replaced what judges.
        """
        require_own_judges(self.fleet.root)
        if self._delivery is not None:
            checks = {item.path for item in items} | self._modules
            self._delivery.note_influences(list_influences(self.config, self.fleet.root, checks))
            left = []
            for item in items:
                is_ordinary = self.owns(item) and not isinstance(item, SlimItem)
                if not (is_ordinary and self._delivery.has_judged(*self._name(item))):
                    left.append(item)
            items[:] = left
        sort_items_by_node(items, self.fleet)
        is_large = len(items) >= MANY_ITEMS or len(self.fleet.nodes) >= MANY_ITEMS
        if is_large or self.config.getoption("--assay-shard"):  # a shard is a process of its own
            keep_objects()  # these objects live until the end: no collection need look at them

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
        """Write what was delivered to disk and close the file. Raises UsageError where a check replaced what judges."""
        if self._delivery is not None:
            require_own_judges(self.fleet.root)
            if RECEIVED_SIGNALS and self._delivery.current is not None:
                self._delivery.current.note_signal()
            self._delivery.close()
            self._delivery = None

    def pytest_unconfigure(self) -> None:
        """Close the file of outcomes."""
        self.close_delivery()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what did not pass, one line each, and how many checks were not due."""
        if self.one_line_output:
            terminal_report.print_problems(terminalreporter, self.outcomes)
        if not self._is_silent:
            terminal_report.print_not_due(terminalreporter, self.due_checks.not_due)

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

    def _select_due(self, check: SlimCheck, subjects: list[NamedSubject]) -> list[NamedSubject]:
        """Return the subjects on which a check is due. A phase asks for all of its checks of what there is."""
        subjects = self.due_checks.select_fitting(check.id, subjects)
        if self.phases:
            return subjects
        due = self.due_checks.select(read_parameters(check.function), subjects, active=check.marks.active)
        if self._delivery is not None and len(due) < len(subjects):
            due_ids = {subject.id for subject in due}
            self._delivery.add_left_out((check.id, subject.id) for subject in subjects if subject.id not in due_ids)
        return due

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


class ModuleCollection:
    """The hook around the import of each module. `name_module` returns its name, "" for one of other suites."""

    def __init__(self, delivery: OutcomeDelivery, name_module: Callable[[pytest.Collector], str]) -> None:
        self._delivery, self._name_module = delivery, name_module

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Note which module is imported, and store why one was not."""
        name = self._name_module(collector) if isinstance(collector, pytest.Module) else ""
        if not name:
            return (yield)
        current = self._delivery.current
        if current is not None:
            current.begin(name)
        report = yield
        if current is not None:
            current.end()
        if report.outcome != "passed":
            self._delivery.add_unjudged(name, f"{name} cannot be imported: {find_collection_error(report)}")
        return report

    @pytest.hookimpl(specname="pytest_make_collect_report", tryfirst=True)
    def pytest_skip_crashed(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Import no module again that has crashed its process."""
        name = self._name_module(collector) if isinstance(collector, pytest.Module) else ""
        if name and self._delivery.unjudged.find(name):
            return pytest.CollectReport(collector.nodeid, "passed", None, [])
        return None


INFLUENCING_HOOKS = (
    *("pytest_collect", "pytest_pycollect", "pytest_ignore_collect", "pytest_itemcollected", "pytest_generate_tests"),
    *("pytest_make_collect_report", "pytest_deselected", "pytest_runtest", "pytest_fixture_setup", "pytest_exception"),
    *("pytest_report_teststatus", "pytest_configure", "pytest_sessionfinish"),
)
"""Beginnings of the names of hooks that touch selection or reports."""
TRUSTED_PACKAGES = frozenset({"_pytest", "assay", "pluggy", "pytest", "xdist"})
ASSAY_FOLDER = str(Path(assay.__file__).parent)
SHIPPED_SETTINGS = Path(ASSAY_FOLDER, "declare/starter/own/pytest.ini")
"""What `assay init` writes: it influences nothing that the suites do not know."""
JUDGING_MODULES = (verdict, evidence_cache, failure_notes, outcome_model, ordinary_items, slim_items, slim_item_runner)


def list_influences(config: pytest.Config, root: Path, checks: Collection[Path] = ()) -> Mapping[str, str]:
    """Return these files, by their name relative to `root`: the sha256, and the hooks that each has.

    Other files below `root` that are imported are named so; the modules of `checks` judge by what they declare.
    """
    own = {Path(file) for module in [*sys.modules.values()] if (file := _find_own_file(module, root))}
    influences = {_shorten(path, root): f"{_hash(path)} {IMPORTED}" for path in own - {*checks} if path.is_file()}
    influences |= {_shorten(path, root): f"{_hash(path)} {hooks}" for path, hooks in _find_plugins(config)}
    if config.inipath is not None and _hash(config.inipath) != _hash(SHIPPED_SETTINGS):
        influences[_shorten(config.inipath, root)] = f"{_hash(config.inipath)} settings"
    return dict(sorted(influences.items()))


def _find_own_file(module: Any, root: Path) -> str:
    file = getattr(module, "__file__", None) or ""
    return file if _is_of_fleet(str(file), root) else ""


def _is_of_fleet(file: str, root: Path) -> bool:
    """Whether a file is the fleet repository's own: neither assay's nor one that is installed."""
    others = (f"{ASSAY_FOLDER}{os.sep}", f"{sys.prefix}{os.sep}")
    return file.startswith(f"{root}{os.sep}") and not file.startswith(others) and "site-packages" not in file


def _list_judges() -> Iterator[tuple[Any, str, Any]]:
    """Yield the functions of the modules that judge, and those of their classes: the owner, the name, the function."""
    for module in JUDGING_MODULES:
        for name, thing in vars(module).items():
            if inspect.isfunction(thing):
                yield module, name, thing
            elif inspect.isclass(thing) and thing.__module__.startswith("assay."):
                yield from ((thing, key, each) for key, each in vars(thing).items() if inspect.isfunction(each))


JUDGES = [(owner, name, function, function.__code__) for owner, name, function in _list_judges()]
"""As they were when this module was imported."""


def require_own_judges(root: Path) -> None:
    """Raise UsageError where a function that judges is not assay's own any more: then no pass proves anything."""
    for owner, name, function, code in JUDGES:
        now = vars(owner).get(name)
        file = getattr(getattr(now, "__code__", None), "co_filename", "")
        if now is not function or function.__code__ is not code or _is_of_fleet(file, root):
            by = f" by {_shorten(Path(file), root)}" if _is_of_fleet(file, root) else ""
            where = owner.__name__.rpartition(".")[2]
            raise pytest.UsageError(f"{where}.{name}, by which assay judges, was replaced{by}: nothing is judged so")


def _find_plugins(config: pytest.Config) -> Iterator[tuple[Path, str]]:
    """Yield the file and the hooks of each plugin that is neither pytest's nor assay's."""
    manager = config.pluginmanager
    for plugin in manager.get_plugins():
        module = sys.modules.get(getattr(plugin, "__name__", "") or type(plugin).__module__, plugin)
        names = sorted({caller.name for caller in manager.get_hookcallers(plugin) or ()})
        hooks = [name.removeprefix("pytest_") for name in names if name.startswith(INFLUENCING_HOOKS)]
        file = getattr(plugin, "__file__", None) or getattr(module, "__file__", None)
        package = getattr(module, "__name__", "").partition(".")[0]
        if hooks and file and package not in TRUSTED_PACKAGES:
            yield Path(file), ", ".join(hooks)


def _shorten(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()

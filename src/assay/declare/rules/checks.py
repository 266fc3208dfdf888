"""Checks that the catalogues declare, compared with those in the suites; and checks that cannot mean what they say."""

from __future__ import annotations

import ast
import configparser
import sys
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.suite_source import SuiteTest
from assay.model.specs.check_catalog import (
    NEEDS_OF_FIXTURES,
    SUBJECT_KIND_OF_FIXTURE,
    CheckCatalog,
    CheckDeclaration,
    Phase,
)
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.load_parts import find_lacking_part

FABRIC_SUBJECTS = ("fabric", "switch", "rail")
FABRIC_PHASES = {"fabric", "weekly"}
"""The phases in which scans of a fabric, and its weekly evaluation, are judged."""
WEEK_HOURS = 168.0
STALE_READINGS_REASON = "a node may be unread for `silence.readings_minutes`"
EXCUSING_MARKS = {"flaky", "xfail"}
"""Marks of pytest, pytest-rerunfailures, pytest-retry and flaky that repeat a test or expect its failure."""
KNOWN_MARKS = ("active", "fault", "parametrize", "passive", "phase", "skip", "skipif", "usefixtures")


@rule("ASY0060", "a declared check that does not exist")
def missing_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Every run lacks the outcomes of this check, and fails."""
    suites = draft.suites
    tests = {test.name for test in suites.tests}
    broken = {mention.file for mention, _ in suites.broken}
    for place, check in draft.declared_checks:
        if check.id not in tests and check.id.partition("::")[0] not in broken:
            yield RuleFinding(place, f"the suites hold no {check.id}", suggest_name(check.id, tests))


@rule("ASY0061", "a check that no catalogue declares", needs=(CheckCatalog,))
def undeclared_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """If the check disappears, nobody notices that its outcomes are missing."""
    known = {check.id for _, check in draft.declared_checks}
    for test in draft.suites.tests:
        if test.name not in known:
            place = (test.file, test.line, test.column)
            yield RuleFinding(place, f"no CheckCatalog declares {test.name}", "add it to specs/checks")


@rule("ASY0062", "a check declared twice")
def repeated_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Two declarations may disagree on its phases."""
    seen: dict[str, FilePosition] = {}
    for place, check in draft.declared_checks:
        first = seen.setdefault(check.id, place)
        if first != place:
            message = f"{check.id} is already declared at {first[0]}:{first[1]}"
            yield RuleFinding(place, message, "keep one of the two")


@rule("ASY0063", "a suite that is not valid Python")
def broken_suite(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """pytest cannot collect the suite, so its checks do not run."""
    for where, message in draft.suites.broken:
        yield RuleFinding((where.file, where.line, where.column), message, "correct the syntax")


@rule("ASY0064", "a check of an unknown fault class", needs=(FaultCatalog,))
def unknown_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """assay treats failures of this check as an unknown fault."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    known = {name for catalog in catalogs for name in catalog.classes}
    for place, check in draft.declared_checks:
        if check.fault and not any(catalog.find_class(check.fault) for catalog in catalogs):
            message = f"{check.id}: no FaultCatalog holds the class {check.fault}"
            yield RuleFinding(place, message, suggest_name(check.fault, known))


@rule("ASY0065", "a fault class that no check recognises", needs=(CheckCatalog,))
def silent_class(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Only a check can find this fault, and no such check exists."""
    carried = {check.fault for _, check in draft.declared_checks}
    for catalog in draft.specs_of_model(FaultCatalog).values():
        for name, fault in catalog.classes.items():
            seen_elsewhere = (
                fault.kernel_log or fault.recovery_action or fault.sel or fault.measurement or fault.by_assay
            )
            if not (fault.list_xid_names() or seen_elsewhere or name in carried):
                place = draft.find_position(f"FaultCatalog/{catalog.name}", "classes", name)
                message = f"{name} is a fault that only a check finds, but no check names it"
                yield RuleFinding(place, message, "name it as the `fault` of a check in specs/checks")


@rule("ASY0066", "a check whose declaration differs from its code")
def contradicted_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The plan and the outcomes of the check contradict each other."""
    for place, check, test in _pair_with_functions(draft):
        for field, declared, mark in (
            ("phases", sorted(check.phases), sorted(test.marks.get("phase", ()))),
            ("fault", check.fault, "".join(test.marks.get("fault", ()))),
            ("active", check.active, test.active),
        ):
            if declared != mark:
                message = f"{check.id}: {field} is {declared}, but {mark} at {test.file}:{test.line}"
                yield RuleFinding(place, message, "make the two agree")


@rule("ASY0246", "a check declared for a subject that its function does not take")
def contradicted_subject(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The run expects an outcome for each of these subjects, and the check never gives one."""
    # Fixtures of a suite's own do not tell the subject.
    for place, check, test in _pair_with_functions(draft):
        kinds = [kind for name, kind in SUBJECT_KIND_OF_FIXTURE.items() if name in test.arguments]
        if kinds and check.subject != kinds[0]:
            message = f"{check.id} is declared for a {check.subject}, but takes a {kinds[0]} at {test.file}:{test.line}"
            yield RuleFinding(
                place, message, f"write `subject: {kinds[0]}`, or let the function take `{check.subject}`"
            )


@rule("ASY0398", "a check of what a node does not have")
def needy_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """On such a node, the check always ends as an error."""
    kinds = [(parts, host) for by_parts in draft.parts_by_spec.values() for parts, host in by_parts.items() if host]
    for place, check, test in _pair_with_functions(draft):
        needs = [NEEDS_OF_FIXTURES[name] for name in test.arguments if name in NEEDS_OF_FIXTURES]
        lacks = ((host, find_lacking_part(needs, parts)) for parts, host in kinds if not check.find_lacking(parts))
        if lacking := next(((host, part) for host, part in lacks if part), None):
            message = f"{check.id} needs `{lacking[1]}`, and {lacking[0].name} has none"
            yield RuleFinding(place, message, f"write `needs: [{', '.join([*check.needs, lacking[1]])}]`")


@rule("ASY0067", "a check that no state asks for", needs=(LifecyclePolicy,))
def idle_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Nothing runs this check, and its failures move no node."""
    # Checks of a fabric, a switch or a rail belong to no node's state: they run with every scan, or once a week. A
    # check with `report_only` declares that no state asks for it.
    wanted = _required_phases(draft)
    for place, check in draft.declared_checks if draft.specs_of_model(LifecyclePolicy) else ():
        reached = wanted | FABRIC_PHASES if check.subject in FABRIC_SUBJECTS else wanted
        if not check.report_only and reached.isdisjoint(check.phases):
            message = f"{check.id}: no state watches or requires the phase {' or '.join(check.phases)}"
            fix = "give it a phase that a state asks for, let a state require it, or write `report_only: true`"
            yield RuleFinding(place, message, fix)


@rule("ASY0122", "a `report_only` check in a phase that a state asks for", needs=(LifecyclePolicy,))
def gating_report(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Its failures move nodes, although the catalogue says that they do not."""
    wanted = _required_phases(draft)
    for place, check in draft.declared_checks:
        if check.report_only and (phases := sorted(wanted & set(check.phases))):
            message = f"{check.id} is report_only, but a state watches or requires the phase {' and '.join(phases)}"
            yield RuleFinding(place, message, "remove `report_only`, or give the check a phase of its own")


@rule("ASY0176", "a pass that expires before the next observation")
def fleeting_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The pass becomes too old before it can be renewed. It then blocks every state that requires it."""
    # Weekly checks run once a week. For all others, the policy's `silence` says how long a node may be unread.
    policies = draft.specs_of_model(LifecyclePolicy).values()
    unread = max((policy.silence.readings_minutes / 60 for policy in policies), default=0.0)
    for place, check in draft.declared_checks:
        weekly = "weekly" in check.phases
        period = WEEK_HOURS if weekly else unread
        reason = "a week is judged once a week" if weekly else STALE_READINGS_REASON
        if check.valid_hours is not None and check.valid_hours < period:
            message = f"{check.id}: a pass is valid for {check.valid_hours:g} h, but {reason}: {period:g} h"
            yield RuleFinding(place, message, f"write `valid_hours: {period:g}` or more")


@rule("ASY0177", "a check that repeats or excuses itself")
def self_excusing_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """If a check repeats until it passes, nobody sees the failure."""
    for test in draft.suites.tests:
        for mark in sorted(EXCUSING_MARKS & test.marks.keys()):
            place = (test.file, test.line, test.column)
            fix = "remove it: retries belong to the collection of evidence, known issues to specs/known-issues.yaml"
            yield RuleFinding(place, f"{test.name} is marked {mark}", fix)


def _required_phases(draft: RepositoryDraft) -> set[Phase]:
    """Return every phase that a state of a policy watches or requires."""
    states = [state for policy in draft.specs_of_model(LifecyclePolicy).values() for state in policy.states.values()]
    return {phase for state in states for phase in (*state.watch, *(need.phase for need in state.requires))}


def _pair_with_functions(draft: RepositoryDraft) -> Iterator[tuple[FilePosition, CheckDeclaration, SuiteTest]]:
    """Yield the place of each declared check that the suites hold, its declaration, and its function."""
    functions = {test.name: test for test in draft.suites.tests}
    for place, check in draft.declared_checks:
        if function := functions.get(check.id):
            yield place, check, function


@rule("ASY0392", "a check that is a coroutine")
def coroutine_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """pytest does not await it, so nothing of it is judged."""
    for check in draft.suites.checks:
        if isinstance(check.function, ast.AsyncFunctionDef):
            place = (check.file, check.function.lineno, check.function.col_offset + 1)
            yield RuleFinding(place, f"{check.name} is `async def`", "write `def`")


@rule("ASY0393", "a mark that nobody knows")
def misspelt_mark(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A misspelt mark has no effect: no phase, no fault, no skip."""
    for file, module in draft.suites.modules:
        for node in (node for node in ast.walk(module) if isinstance(node, ast.Attribute)):
            is_unknown = isinstance(node.value, ast.Attribute) and node.value.attr == "mark"
            is_unknown = is_unknown and node.attr not in KNOWN_MARKS
            if is_unknown and (near := get_close_matches(node.attr, KNOWN_MARKS, n=1, cutoff=0.75)):
                place = (file, node.lineno, node.col_offset + 1)
                yield RuleFinding(place, f"there is no mark {node.attr}", f"did you mean {near[0]}?")


@rule("ASY0395", "two checks of one name in a module")
def repeated_name(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Python keeps only the last of two functions."""
    seen: dict[str, SuiteTest] = {}
    for test in draft.suites.tests:
        first = seen.setdefault(test.name, test)
        if first is not test:
            message = f"{test.name} is already defined in line {first.line}"
            yield RuleFinding((test.file, test.line, test.column), message, "give one of the two another name")


@rule("ASY0396", "a check with a parametrize of its own")
def parametrized_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A check gives one outcome for each subject."""
    fix = "write a function for each value, or a loop with `measure(…, place=…)`"
    for file, module in draft.suites.modules:
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name == "parametrize" or (name == "fixture" and any(word.arg == "params" for word in call.keywords)):
                words = "a parametrize" if name == "parametrize" else "a fixture with params"
                message = f"{words} gives a check several outcomes for one subject"
                yield RuleFinding((file, call.lineno, call.col_offset + 1), message, fix)


@rule("ASY0397", "an import of what is not installed")
def missing_import(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """pytest cannot import the module: its checks are errors."""
    settings = configparser.ConfigParser(interpolation=None)
    with suppress(configparser.Error):  # pytest says what is wrong with it
        settings.read(draft.root / "pytest.ini")
    paths = settings.get("pytest", "pythonpath", fallback="").split()
    folders = [draft.root, *(draft.root / path for path in paths)]
    for file, module in draft.suites.modules:
        for name, node in _list_imports(module):
            is_own = any((folder / f"{name}.py").exists() or (folder / name).is_dir() for folder in folders)
            if not is_own and not _is_installed(name):
                place = (file, node.lineno, node.col_offset + 1)
                beside = (draft.root / file).with_name(f"{name}.py")
                base = next(folder for folder in reversed(folders) if beside.is_relative_to(folder))
                fix = "install it where assay runs, or name its folder in `pythonpath` of pytest.ini"
                if beside.exists():
                    parts = beside.relative_to(base).with_suffix("").parts
                    is_hidden = parts[0] in sys.stdlib_module_names  # which count before a plain folder
                    fix = f"import it as {'.'.join(parts)}"
                    fix = f"move it to {base.name}/: Python has a {parts[0]} of its own" if is_hidden else fix
                yield RuleFinding(place, f"there is no module {name} here", fix)


def _list_imports(module: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the packages that a module imports in any case."""
    for node in module.body:
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], node


@cache
def _is_installed(name: str) -> bool:
    """Return whether Python finds a package, without importing it."""
    try:
        return name in sys.modules or find_spec(name) is not None
    except (ImportError, ValueError):
        return False

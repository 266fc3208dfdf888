"""Checks that the catalogues declare, compared with the checks in the suites."""

from __future__ import annotations

from collections.abc import Iterator

from assay.declare.repository.repository_draft import RepositoryDraft
from assay.declare.repository_check import FilePosition, RuleFinding, rule
from assay.declare.rules.dangling_names import suggest_name
from assay.declare.suite_source import SuiteTest
from assay.model.specs.check_catalog_and_gates import SUBJECT_KIND_OF_FIXTURE, CheckCatalog, CheckDeclaration, Phase
from assay.model.specs.fault_catalog import FaultCatalog
from assay.model.specs.lifecycle_policy import LifecyclePolicy

FABRIC_SUBJECTS = ("fabric", "switch", "rail")
FABRIC_PHASES = {"fabric", "weekly"}
"""The phases in which scans of a fabric, and its weekly evaluation, are judged."""
WEEK_HOURS = 168.0
STALE_READINGS_REASON = "a node may be unread for `silence.readings_minutes`"
EXCUSING_MARKS = {"flaky", "xfail"}
"""Marks of pytest, pytest-rerunfailures, pytest-retry and flaky that repeat a test or expect its failure."""


@rule("ASY0060", "a declared check that does not exist", why="Every run lacks the outcomes of this check, and fails.")
def missing_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks of a catalogue that are no test function of the suites."""
    suites = draft.suites
    tests, broken = {test.name for test in suites.tests}, {where.file for where, _ in suites.broken}
    for place, check in draft.declared_checks:
        if check.id not in tests and check.id.partition("::")[0] not in broken:
            yield RuleFinding(place, f"the suites hold no {check.id}", suggest_name(check.id, tests))


@rule(
    "ASY0061",
    "a check that no catalogue declares",
    why="If the check disappears, nobody notices that its outcomes are missing.",
    needs=(CheckCatalog,),
)
def undeclared_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find test functions of the suites that no catalogue lists."""
    known = {check.id for _, check in draft.declared_checks}
    for test in draft.suites.tests:
        if test.name not in known:
            place = (test.file, test.line, test.column)
            yield RuleFinding(place, f"no CheckCatalog declares {test.name}", "add it to specs/checks")


@rule("ASY0062", "a check declared twice", why="Two declarations may disagree on its phases.")
def repeated_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks that the catalogues list twice."""
    seen: dict[str, FilePosition] = {}
    for place, check in draft.declared_checks:
        first = seen.setdefault(check.id, place)
        if first != place:
            message = f"{check.id} is already declared at {first[0]}:{first[1]}"
            yield RuleFinding(place, message, "keep one of the two")


@rule("ASY0063", "a suite that is not valid Python", why="pytest cannot collect the suite, so its checks do not run.")
def broken_suite(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find suites that cannot be parsed."""
    for where, message in draft.suites.broken:
        yield RuleFinding((where.file, where.line, where.column), message, "correct the syntax")


@rule(
    "ASY0064",
    "a check of an unknown fault class",
    why="assay treats failures of this check as an unknown fault.",
    needs=(FaultCatalog,),
)
def unknown_fault(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks with a fault class that no catalogue has."""
    catalogs = draft.specs_of_model(FaultCatalog).values()
    known = {name for catalog in catalogs for name in catalog.classes}
    for place, check in draft.declared_checks:
        if check.fault and not any(catalog.find_class(check.fault) for catalog in catalogs):
            message = f"{check.id}: no FaultCatalog holds the class {check.fault}"
            yield RuleFinding(place, message, suggest_name(check.fault, known))


@rule(
    "ASY0065",
    "a fault class that no check recognises",
    why="Only a check can find this fault, and no such check exists.",
    needs=(CheckCatalog,),
)
def silent_class(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find fault classes that only a check can recognise, and that no check has."""
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


@rule(
    "ASY0066",
    "a check whose declaration differs from its code",
    why="The plan and the outcomes of the check contradict each other.",
)
def contradicted_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks with other phases, another fault class or another kind in the suite than in the catalogue."""
    for place, check, test in _pair_with_functions(draft):
        for field, declared, mark in (
            ("phases", sorted(check.phases), sorted(test.marks.get("phase", ()))),
            ("fault", check.fault, "".join(test.marks.get("fault", ()))),
            ("active", check.active, test.active),
        ):
            if declared != mark:
                message = f"{check.id}: {field} is {declared}, but {mark} at {test.file}:{test.line}"
                yield RuleFinding(place, message, "make the two agree")


@rule(
    "ASY0246",
    "a check declared for a subject that its function does not take",
    why="The run expects an outcome for each of these subjects, and the check never gives one.",
)
def contradicted_subject(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks whose `subject` is another than that of their function's arguments. Own fixtures say nothing."""
    for place, check, test in _pair_with_functions(draft):
        kinds = [kind for name, kind in SUBJECT_KIND_OF_FIXTURE.items() if name in test.arguments]
        if kinds and check.subject != kinds[0]:
            message = f"{check.id} is declared for a {check.subject}, but takes a {kinds[0]} at {test.file}:{test.line}"
            yield RuleFinding(
                place, message, f"write `subject: {kinds[0]}`, or let the function take `{check.subject}`"
            )


@rule(
    "ASY0067",
    "a check that no state asks for",
    why="Nothing runs this check, and its failures move no node.",
    needs=(LifecyclePolicy,),
)
def idle_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks whose phases no state of the policy watches or requires.

    Checks of a fabric, a switch or a rail belong to no node's state: they run with every scan, or once a week. A
    check with `report_only` declares that no state asks for it.
    """
    wanted = _required_phases(draft)
    for place, check in draft.declared_checks if draft.specs_of_model(LifecyclePolicy) else ():
        reached = wanted | FABRIC_PHASES if check.subject in FABRIC_SUBJECTS else wanted
        if not check.report_only and reached.isdisjoint(check.phases):
            message = f"{check.id}: no state watches or requires the phase {' or '.join(check.phases)}"
            fix = "give it a phase that a state asks for, let a state require it, or write `report_only: true`"
            yield RuleFinding(place, message, fix)


@rule(
    "ASY0122",
    "a `report_only` check in a phase that a state asks for",
    why="Its failures move nodes, although the catalogue says that they do not.",
    needs=(LifecyclePolicy,),
)
def gating_report(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks with `report_only` in a phase that a state of the policy watches or requires."""
    wanted = _required_phases(draft)
    for place, check in draft.declared_checks:
        if check.report_only and (phases := sorted(wanted & set(check.phases))):
            message = f"{check.id} is report_only, but a state watches or requires the phase {' and '.join(phases)}"
            yield RuleFinding(place, message, "remove `report_only`, or give the check a phase of its own")


@rule(
    "ASY0176",
    "a pass that expires before the next observation",
    why="The pass becomes too old before it can be renewed. It then blocks every state that requires it.",
)
def fleeting_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find checks whose `valid_hours` are shorter than the time between two observations of what they judge.

    Weekly checks run once a week. For all others, the policy's `silence` says how long a node may be unread.
    """
    policies = draft.specs_of_model(LifecyclePolicy).values()
    unread = max((policy.silence.readings_minutes / 60 for policy in policies), default=0.0)
    for place, check in draft.declared_checks:
        weekly = "weekly" in check.phases
        period, why = (WEEK_HOURS, "a week is judged once a week") if weekly else (unread, STALE_READINGS_REASON)
        if check.valid_hours is not None and check.valid_hours < period:
            message = f"{check.id}: a pass is valid for {check.valid_hours:g} h, but {why}: {period:g} h"
            yield RuleFinding(place, message, f"write `valid_hours: {period:g}` or more")


@rule(
    "ASY0177",
    "a check that repeats or excuses itself",
    why="If a check repeats until it passes, nobody sees the failure.",
)
def self_excusing_check(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find test functions with a mark that repeats them, or expects them to fail."""
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

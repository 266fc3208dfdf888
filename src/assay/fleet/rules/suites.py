"""Checks: what the catalogues declare against what the suites hold."""

from __future__ import annotations

from collections.abc import Iterator

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import nearest
from assay.model.checks import CheckCatalog, Phase
from assay.model.faults import FaultCatalog
from assay.model.policy import LifecyclePolicy

OF_FABRICS = ("fabric", "switch", "rail")
WEEK_HOURS = 168.0
READINGS = "a node may go unread for as long as `silence.readings_minutes`"
EXCUSES = {"flaky", "xfail"}
"""The marks of pytest, pytest-rerunfailures, pytest-retry and flaky."""


@rule("ASY0060", "a declared check that does not exist", why="Every run would miss its outcomes, and so fail.")
def missing_check(draft: Draft) -> Iterator[Finding]:
    """Find checks of a catalogue for which the suites hold no test function."""
    suites = draft.suites
    tests, broken = {test.name for test in suites.tests}, {where.file for where, _ in suites.broken}
    for place, check in draft.checks:
        if check.id not in tests and check.id.partition("::")[0] not in broken:
            yield Finding(place, f"the suites hold no {check.id}", nearest(check.id, tests))


@rule(
    "ASY0061",
    "a check that no catalogue declares",
    why="Nobody would miss its outcomes if it vanished.",
    needs=(CheckCatalog,),
)
def undeclared_check(draft: Draft) -> Iterator[Finding]:
    """Find test functions of the suites that no catalogue lists."""
    known = {check.id for _, check in draft.checks}
    for test in draft.suites.tests:
        if test.name not in known:
            place = (test.file, test.line, test.column)
            yield Finding(place, f"no CheckCatalog declares {test.name}", "add it to specs/checks")


@rule("ASY0062", "a check declared twice", why="Two declarations may disagree on its phases.")
def repeated_check(draft: Draft) -> Iterator[Finding]:
    """Find checks that the catalogues list twice."""
    seen: dict[str, Place] = {}
    for place, check in draft.checks:
        first = seen.setdefault(check.id, place)
        if first != place:
            said = f"{check.id} is already declared at {first[0]}:{first[1]}"
            yield Finding(place, said, "keep one of the two")


@rule("ASY0063", "a suite that is no Python", why="pytest could not collect it, and its checks would not run.")
def broken_suite(draft: Draft) -> Iterator[Finding]:
    """Find suites that cannot be parsed."""
    for where, said in draft.suites.broken:
        yield Finding((where.file, where.line, where.column), said, "correct the syntax")


@rule(
    "ASY0064",
    "a check of an unknown fault class",
    why="Its failures would be treated as something unknown.",
    needs=(FaultCatalog,),
)
def unknown_fault(draft: Draft) -> Iterator[Finding]:
    """Find checks whose fault class no catalogue holds."""
    catalogs = draft.of(FaultCatalog).values()
    known = {name for catalog in catalogs for name in catalog.classes}
    for place, check in draft.checks:
        if check.fault and not any(catalog.class_of(check.fault) for catalog in catalogs):
            said = f"{check.id}: no FaultCatalog holds the class {check.fault}"
            yield Finding(place, said, nearest(check.fault, known))


@rule(
    "ASY0065",
    "a fault class that nothing recognises",
    why="It waits for a check that does not exist.",
    needs=(CheckCatalog,),
)
def silent_class(draft: Draft) -> Iterator[Finding]:
    """Find fault classes that only a check could recognise, and that no check carries."""
    carried = {check.fault for _, check in draft.checks}
    for catalog in draft.of(FaultCatalog).values():
        for name, fault in catalog.classes.items():
            if not (fault.numbers() or fault.kernel_log or fault.sel or fault.measurement or name in carried):
                place = draft.at(f"FaultCatalog/{catalog.name}", "classes", name)
                said = f"{name} is recognised by a check, but no check carries it"
                yield Finding(place, said, "name it as the `fault` of a check in specs/checks")


@rule("ASY0066", "a check declared otherwise than it is written", why="Outcomes would say one thing, the plan another.")
def contradicted_check(draft: Draft) -> Iterator[Finding]:
    """Find checks whose phases, fault class or kind differ between catalogue and suite."""
    tests = {test.name: test for test in draft.suites.tests}
    for place, check in draft.checks:
        test = tests.get(check.id)
        if test is None:
            continue
        for called, promise, mark in (
            ("phases", sorted(check.phases), sorted(test.marks.get("phase", ()))),
            ("fault", check.fault, "".join(test.marks.get("fault", ()))),
            ("active", check.active, test.active),
        ):
            if promise != mark:
                where = f"{test.file}:{test.line}"
                yield Finding(place, f"{check.id}: {called} is {promise}, but {mark} at {where}", "make the two agree")


@rule(
    "ASY0067",
    "a check that no state asks for",
    why="It would be run by nobody, and its failures would follow no node.",
    needs=(LifecyclePolicy,),
)
def idle_check(draft: Draft) -> Iterator[Finding]:
    """Find checks none of whose phases a state of the policy watches or requires.

    What is checked of a whole fabric, a switch or a rail belongs to no node's state: it is judged with every scan. One
    that is `report_only` says itself that no state asks for it.
    """
    wanted = _asked_for(draft)
    for place, check in draft.checks if draft.of(LifecyclePolicy) else ():
        if not (check.report_only or check.subject in OF_FABRICS) and wanted.isdisjoint(check.phases):
            said = f"{check.id}: no state watches or requires the phase {' or '.join(check.phases)}"
            fix = "give it a phase that a state asks for, let a state require it, or say `report_only: true`"
            yield Finding(place, said, fix)


@rule(
    "ASY0122",
    "a check for the report only that a state asks for",
    why="Its failures would move nodes, though the catalogue says that they do not.",
    needs=(LifecyclePolicy,),
)
def gating_report(draft: Draft) -> Iterator[Finding]:
    """Find checks that are `report_only`, in a phase that a state of the policy watches or requires."""
    wanted = _asked_for(draft)
    for place, check in draft.checks:
        if check.report_only and (asked := sorted(wanted & set(check.phases))):
            said = f"{check.id} is report_only, but a state watches or requires the phase {' and '.join(asked)}"
            yield Finding(place, said, "take `report_only` away, or give it a phase of its own")


@rule(
    "ASY0176",
    "a pass that does not last until the next look",
    why="It would be too old again before it can be renewed, and block every state that requires it.",
)
def fleeting_check(draft: Draft) -> Iterator[Finding]:
    """Find checks whose `valid_hours` are shorter than the time that may pass between two looks at what they judge.

    A week is looked at once a week; of anything else the policy says how long it may go unread (`silence`).
    """
    policies = draft.of(LifecyclePolicy).values()
    unread = max((policy.silence.readings_minutes / 60 for policy in policies), default=0.0)
    for place, check in draft.checks:
        weekly = "weekly" in check.phases
        period, why = (WEEK_HOURS, "a week is judged once a week") if weekly else (unread, READINGS)
        if check.valid_hours is not None and check.valid_hours < period:
            said = f"{check.id}: a pass is valid for {check.valid_hours:g} h, but {why}: {period:g} h"
            yield Finding(place, said, f"say `valid_hours: {period:g}` or more")


@rule(
    "ASY0177",
    "a check that repeats or excuses itself",
    why="A failure that is tried again until it passes is a failure that nobody sees.",
)
def self_excusing_check(draft: Draft) -> Iterator[Finding]:
    """Find test functions that ask pytest to run them again, or to expect that they fail."""
    for test in draft.suites.tests:
        for mark in sorted(EXCUSES & test.marks.keys()):
            place = (test.file, test.line, test.column)
            fix = "take it away: retries belong to collecting, and a known issue stands in specs/known-issues.yaml"
            yield Finding(place, f"{test.name} is marked {mark}", fix)


def _asked_for(draft: Draft) -> set[Phase]:
    """Return every phase that a state of the policies watches or requires."""
    states = [state for policy in draft.of(LifecyclePolicy).values() for state in policy.states.values()]
    return {phase for state in states for phase in (*state.watch, *(need.phase for need in state.requires))}

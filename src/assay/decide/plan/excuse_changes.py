"""Says which failures a merge excuses, or excuses no longer: by known issues, or by what checks declare."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from assay.decide.plan.fleet_revision import FleetRevision, find_spec_line
from assay.decide.plan.other_change import OtherChange, list_all_pools
from assay.model.specs.check_catalog_and_gates import CheckDeclaration
from assay.model.specs.known_issues import KnownIssue
from assay.model.text.text_lists import format_count, format_list


def list_known_issue_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each known issue that comes, goes, or gets another last day."""
    was = {_key(issue): issue for issue in before.fleet.known_issues}
    will = {_key(issue): (issue, line) for issue, line in _list_issues(after)}
    for key, (issue, line) in will.items():
        old = was.get(key)
        pools = tuple(sorted(set(_list_matched_pools(after, issue))))
        if old is None:
            what = f"excuses {_describe(issue)} until {issue.expires}{_required(after, issue)}"
            yield OtherChange("known issue", f"{issue.issue} {what}", line, pools, weakens=True)
        elif old.expires != issue.expires:
            what = f"excuses {_describe(issue)} until {issue.expires} instead of {old.expires}"
            is_longer = issue.expires > old.expires
            yield OtherChange("known issue", f"{issue.issue} {what}", line, pools, is_longer)
    for key in was.keys() - will.keys():
        what = f"{was[key].issue} excuses {_describe(was[key])} no longer"
        pools = tuple(sorted(set(_list_matched_pools(after, was[key]))))
        yield OtherChange("known issue", what, "specs/known-issues.yaml", pools)


def _key(issue: KnownIssue) -> tuple[str, ...]:
    return issue.sort_key


def _list_issues(revision: FleetRevision) -> Iterator[tuple[KnownIssue, str]]:
    for name, document in revision.fleet.known_issue_lists.items():
        for number, issue in enumerate(document.issues):
            yield issue, find_spec_line(revision.fleet, f"KnownIssues/{name}", f"issues.{number}")


def _list_matched_pools(after: FleetRevision, issue: KnownIssue) -> Iterator[str]:
    for node in after.fleet.nodes.values():
        if issue.match.may_match_place(node.name, node.pool, node.rack):
            yield node.pool


def _describe(issue: KnownIssue) -> str:
    match = issue.match
    given = {"subject": match.subject, "node": match.node, "pool": match.pool, "rack": match.rack}
    places = [f"{name} {pattern}" for name, pattern in given.items() if pattern != "*"]
    return f"{match.check} of {format_list(places) or 'every node'}"


def _required(after: FleetRevision, issue: KnownIssue) -> str:
    phases = list_required_phases(after)
    found = [one for one in after.checks.values() if fnmatchcase(one.id, issue.match.check)]
    needed = [one.id for one in found if phases.intersection(one.phases)]
    return f"; {format_count(len(needed), 'check')} that production requires" if needed else ""


def list_required_phases(revision: FleetRevision) -> set[str]:
    """Return the phases that a state in service watches, or that a state requires before it leads into service."""
    states = revision.policy.states
    doors = [one for one in states.values() if one.in_service or (one.pass_to and states[one.pass_to].in_service)]
    watched = {phase for one in doors if one.in_service for phase in one.watch}
    return watched | {need.phase for one in doors for need in one.requires}


def list_check_declaration_changes(before: FleetRevision, after: FleetRevision) -> Iterator[OtherChange]:
    """Yield each check that decides less or more: it only observes, only reports, or its pass counts for longer."""
    required = list_required_phases(after)
    for name in sorted(before.checks.keys() & after.checks.keys()):
        for what, weakens in _compare_declarations(before.checks[name], after.checks[name], required):
            line = _find_check_line(after, name)
            yield OtherChange("check", f"{name} {what}", line, list_all_pools(after), weakens)
    for name in sorted(before.checks.keys() - after.checks.keys()):
        if required.intersection(before.checks[name].phases):
            what = f"{name}, which production requires, is judged no longer"
            yield OtherChange("check", what, "specs/checks", list_all_pools(after), weakens=True)


def _find_check_line(revision: FleetRevision, check: str) -> str:
    declared = (
        find_spec_line(revision.fleet, f"CheckCatalog/{name}", f"checks.{number}")
        for name, catalog in revision.fleet.check_catalogs.items()
        for number, one in enumerate(catalog.checks)
        if one.id == check
    )
    return next(declared)


def _compare_declarations(
    old: CheckDeclaration, new: CheckDeclaration, required: set[str]
) -> Iterator[tuple[str, bool]]:
    needed = ", though production requires it" if required.intersection(old.phases) else ""
    if old.is_observe_only != new.is_observe_only:
        yield (f"only observes{needed}", bool(needed)) if new.is_observe_only else ("decides", False)
    if old.report_only != new.report_only:
        yield (f"only reports{needed}", bool(needed)) if new.report_only else ("is asked for by states", False)
    if lost := sorted(required.intersection(old.phases) - set(new.phases)):
        yield f"leaves the phases {format_list(lost)}, which production requires", True
    if old.valid_hours != new.valid_hours:
        was, will = (f"{hours:g} h" if hours else "as long as the state allows" for hours in _hours(old, new))
        is_longer = new.valid_hours is None or (old.valid_hours is not None and new.valid_hours > old.valid_hours)
        yield f"has a pass that counts {will} instead of {was}", is_longer and bool(needed)


def _hours(old: CheckDeclaration, new: CheckDeclaration) -> tuple[float | None, float | None]:
    return old.valid_hours, new.valid_hours

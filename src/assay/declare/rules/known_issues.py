"""Known issues that have expired, match nothing or are listed twice; and gates without effect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.checks import FABRIC_SUBJECTS
from assay.declare.rules.dangling_names import suggest_name
from assay.model.outcome import read_whole
from assay.model.specs.check_catalog import ANY_POOL, CheckCatalog, CheckDeclaration, Gates
from assay.model.specs.known_issues import KnownIssue, KnownIssues
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.text.lists import format_count

FABRIC_POOL = "fabric"
"""The pool under which outcomes of fabrics count."""
EXPIRY_NOTICE = timedelta(days=14)
SUBJECTS_WITHOUT_NODE = (*FABRIC_SUBJECTS, "rack", "whole_rack")
EXPIRED_FIX = "repair it and remove the entry, or agree on another day with {}"


@rule("ASY0180", "a gate for a pool that does not exist")
def unknown_gate_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The bounds of this gate apply to no pool."""
    pools = {host.pool for host in draft.hosts}
    for gates in draft.specs_of_model(Gates).values() if draft.all_hosts_read else ():
        for name in gates.pools:
            if name not in pools | {ANY_POOL, FABRIC_POOL}:
                place = draft.find_position(f"Gates/{gates.name}", "pools", name)
                yield RuleFinding(place, f"there is no pool {name}", suggest_name(name, pools))


@rule("ASY0245", "a gate that is written as a fraction")
def fraction_gate(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """0.99 is not 99 %: a run passes this gate when only one outcome of a hundred does."""
    for gates in draft.specs_of_model(Gates).values():
        for name, gate in gates.pools.items():
            if gate.success_percent is not None and gate.success_percent <= 1:
                place = draft.find_position(f"Gates/{gates.name}", "pools", name, "success_percent")
                message = f"{name}: success_percent is {gate.success_percent:g} %"
                yield RuleFinding(place, message, f"write a percentage: {gate.success_percent * 100:g}")


@rule("ASY0170", "a known issue that has expired")
def expired_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The entry excuses nothing any more, and the failures that it matches count again."""
    for place, known in _issues(draft, "expires"):
        if known.expires_at <= draft.now:
            yield RuleFinding(place, f"{known.issue} expired on {known.expires}", EXPIRED_FIX.format(known.owner))


@rule("ASY0171", "a known issue that expires soon", severity="notice")
def expiring_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """From that day on, its failures take nodes out of service, block admission and fail runs."""
    for place, known in _issues(draft, "expires"):
        if draft.now < known.expires_at <= draft.now + EXPIRY_NOTICE:
            left = format_count(max(1, (known.expires_at - draft.now).days), "day")
            message = f"{known.issue} expires on {known.expires}, in {left}"
            yield RuleFinding(place, message, EXPIRED_FIX.format(known.owner))


@rule("ASY0172", "a known issue that matches nothing", needs=(CheckCatalog,))
def unmatched_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The entry excuses nothing, and nobody notices when it can be removed."""
    checks = [check for _, check in draft.declared_checks]
    for place, known in _issues(draft, "match"):
        pattern = known.match.check
        matched = [check for check in checks if fnmatchcase(check.id, pattern)]
        if not matched:
            fix = suggest_name(pattern, {check.id for check in checks})
            yield RuleFinding(place, f"no check fits {pattern}", fix)
        elif draft.all_hosts_read and not _matches_a_node(draft, known, matched):
            yield RuleFinding(
                place, "no node of the inventory matches all its patterns", "correct the entry, or remove it"
            )


@rule("ASY0175", "the same failures excused twice")
def repeated_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """If one entry expires, the other still excuses the same failures."""
    seen: dict[tuple[str, ...], FilePosition] = {}
    for place, known in _issues(draft, "match"):
        first = seen.setdefault(known.match.patterns, place)
        if first != place:
            yield RuleFinding(place, f"the entry at {first[0]}:{first[1]} already matches this", "keep one of the two")


@rule("ASY0178", "a known issue over several checks")
def unspecific_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Whatever fails there for another reason is excused too, and nobody looks."""
    for place, known in _issues(draft, "match"):
        if not known.match.names_one_check:
            message = f"{known.match.check} is a pattern: an entry excuses one check"
            yield RuleFinding(place, message, "write the check's full id, and one entry for each check")


@rule("ASY0179", "a known issue that lasts too long", needs=(LifecyclePolicy,))
def lasting_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """What is excused for so long is forgotten."""
    allowed = [policy.excuses.max_days for policy in draft.specs_of_model(LifecyclePolicy).values()]
    most = min(allowed, default=math.inf)
    for place, known in _issues(draft, "expires"):
        if math.isfinite(most) and known.expires_at > draft.now + timedelta(days=most):
            last = f"{draft.now + timedelta(days=most):%Y-%m-%d}"
            message = f"{known.issue} expires on {known.expires}, in more than the {most:g} days that the policy allows"
            yield RuleFinding(place, message, f"write a day until {last}; extend it then if need be")


@rule("ASY0182", "a known issue for a check that admission requires", needs=(LifecyclePolicy, CheckCatalog))
def excused_admission(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A node would enter service although what it must prove fails."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        states = [state for state in policy.states.values() if state.pass_to in policy.states]
        doors = [state for state in states if policy.states[state.pass_to or ""].in_service]
        phases = {need.phase for state in doors for need in state.requires}
        required = [check.id for _, check in draft.declared_checks if phases & set(check.phases)]
        for place, known in _issues(draft, "match"):
            checks = [check for check in required if fnmatchcase(check, known.match.check)]
            if refused := [check for check in checks if not policy.excuses.may_excuse_admission(check)]:
                message = f"{refused[0]} must pass before a node serves; there, this entry excuses nothing"
                fix = f"repair it; or let it be excused: excuses.admission of the policy {policy.name}"
                yield RuleFinding(place, message, fix)


def _issues(draft: RepositoryDraft, entry: str) -> Iterator[tuple[FilePosition, KnownIssue]]:
    """Yield every known issue, with the position of one of its fields."""
    for name, document in draft.specs_of_model(KnownIssues).items():
        for number, known in enumerate(document.issues):
            yield draft.find_position(f"KnownIssues/{name}", "issues", number, entry), known


def _matches_a_node(draft: RepositoryDraft, known: KnownIssue, checks: list[CheckDeclaration]) -> bool:
    """Whether a node matches; or a check judges racks or fabrics, and the entry does not restrict the node."""
    if known.match.node == "*" and any(check.subject in SUBJECTS_WITHOUT_NODE for check in checks):
        return True
    head = read_whole(known.match.subject)
    return any(
        known.match.may_match_place(host.name, host.pool, host.settings.rack if host.settings else "")
        and (any(sign in head for sign in "*?[") or head == f"{host.pool}/{host.name}")
        for host in draft.hosts
    )

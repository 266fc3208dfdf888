"""Known issues: lists of excuses that stay short, in order, and true.

Gates that hold nobody to anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase

from assay.fleet.check import FilePosition, RuleFinding, rule
from assay.fleet.repository_draft import RepositoryDraft
from assay.fleet.rules.dangling_names import suggest_name
from assay.fleet.rules.declared_checks import FABRIC_SUBJECTS
from assay.model.specs.check_catalog_and_gates import ANY_POOL, CheckCatalog, CheckDeclaration, Gates
from assay.model.specs.known_issues import KnownIssue, KnownIssues

FABRIC_POOL = "fabric"
"""What is judged of fabrics counts as a pool of this name."""


@rule("ASY0180", "a gate for a pool that does not exist", why="Nobody would be held to its bounds.")
def unknown_gate_pool(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find pools of gates that the inventory does not have."""
    pools = {host.pool for host in draft.hosts}
    for gates in draft.specs_of_model(Gates).values() if draft.all_hosts_read else ():
        for name in gates.pools:
            if name not in pools | {ANY_POOL, FABRIC_POOL}:
                place = draft.find_position(f"Gates/{gates.name}", "pools", name)
                yield RuleFinding(place, f"there is no pool {name}", suggest_name(name, pools))


@rule(
    "ASY0181",
    "a bound for any other pool where there is none",
    why="It looks as if something were held to it, and nothing is.",
)
def overridden_default_gate(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find bounds of `any` that every pool has in its own right."""
    pools = {host.pool for host in draft.hosts}
    pools |= {FABRIC_POOL for host in draft.hosts if host.variables.get("fabric")}
    for gates in draft.specs_of_model(Gates).values() if draft.all_hosts_read else ():
        for bound in ("success_percent", "unknown_percent"):
            own = {name for name, gate in gates.pools.items() if getattr(gate, bound) is not None}
            if ANY_POOL in own and pools <= own:
                place = draft.find_position(f"Gates/{gates.name}", "pools", ANY_POOL, bound)
                yield RuleFinding(place, f"every pool has a {bound} of its own", "take this one out")


EXPIRY_NOTICE = timedelta(days=14)
SUBJECTS_WITHOUT_NODE = (*FABRIC_SUBJECTS, "rack", "whole_rack")
EXPIRED_FIX = "mend it and take the entry out, or agree with {} on another day"


@rule("ASY0170", "a known issue that has expired", why="It excuses nothing any more: what it matches counts again.")
def expired_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find entries whose day has come."""
    for place, one in _issues(draft, "expires"):
        if one.expires_at <= draft.now:
            yield RuleFinding(place, f"{one.issue} expired on {one.expires}", EXPIRED_FIX.format(one.owner))


@rule(
    "ASY0171",
    "a known issue that expires soon",
    why="From that day on its failures take nodes out, block admission and fail runs.",
    severity="notice",
)
def expiring_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find entries whose day comes within two weeks."""
    for place, one in _issues(draft, "expires"):
        if draft.now < one.expires_at <= draft.now + EXPIRY_NOTICE:
            left = max(1, (one.expires_at - draft.now).days)
            said = f"{one.issue} expires on {one.expires}, in {left} {'day' if left == 1 else 'days'}"
            yield RuleFinding(place, said, EXPIRED_FIX.format(one.owner))


@rule(
    "ASY0172",
    "a known issue of nothing that there is",
    why="It excuses nothing, and nobody will see the day on which it could go.",
    needs=(CheckCatalog,),
)
def unmatched_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find entries that match no declared check, or no place of the inventory."""
    checks = [check for _, check in draft.declared_checks]
    for place, one in _issues(draft, "match"):
        about = [check for check in checks if fnmatchcase(check.id, one.match.check)]
        if not about:
            yield RuleFinding(
                place, f"no check fits {one.match.check}", suggest_name(one.match.check, {c.id for c in checks})
            )
        elif draft.all_hosts_read and not _is_somewhere(draft, one, about):
            yield RuleFinding(place, "no node of the inventory fits all of it", "correct it, or take the entry out")


@rule("ASY0174", "known issues out of order", why="In order, two entries of one issue stand together and are seen.")
def unsorted_issues(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find entries that should stand before the one above."""
    for name, listed in draft.specs_of_model(KnownIssues).items():
        for number in range(1, len(listed.issues)):
            if listed.issues[number].sort_key < listed.issues[number - 1].sort_key:
                place = draft.find_position(f"KnownIssues/{name}", "issues", number)
                above = listed.issues[number - 1].issue
                fix = "sort the entries by issue, then by check, pool, rack, node and subject"
                yield RuleFinding(place, f"{listed.issues[number].issue} stands below {above}", fix)


@rule("ASY0175", "the same failures excused twice", why="One of the two would go on excusing what the other let go.")
def repeated_issue(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Find entries that match word for word what another does."""
    seen: dict[tuple[str, ...], FilePosition] = {}
    for place, one in _issues(draft, "match"):
        first = seen.setdefault(one.match.sort_key, place)
        if first != place:
            yield RuleFinding(place, f"this is matched at {first[0]}:{first[1]} already", "keep one of the two")


def _issues(draft: RepositoryDraft, entry: str) -> Iterator[tuple[FilePosition, KnownIssue]]:
    """Yield every entry with the place of one part of it."""
    for name, listed in draft.specs_of_model(KnownIssues).items():
        for number, one in enumerate(listed.issues):
            yield draft.find_position(f"KnownIssues/{name}", "issues", number, entry), one


def _is_somewhere(draft: RepositoryDraft, one: KnownIssue, about: list[CheckDeclaration]) -> bool:
    """Whether a node fits; or the check is of something larger, and nothing is said of nodes."""
    if one.match.node == "*" and any(check.subject in SUBJECTS_WITHOUT_NODE for check in about):
        return True
    head = "/".join(one.match.subject.split("/")[:2])
    return any(
        one.match.may_match_place(host.name, host.pool, host.settings.rack if host.settings else "")
        and (any(sign in head for sign in "*?[") or head == f"{host.pool}/{host.name}")
        for host in draft.hosts
    )

"""Known issues: lists of excuses that stay short, in order, and true."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from fnmatch import fnmatchcase

from assay.fleet.draft import Draft
from assay.fleet.rules.book import Finding, Place, rule
from assay.fleet.rules.names import nearest
from assay.fleet.rules.suites import OF_FABRICS
from assay.model.checks import Check, CheckCatalog
from assay.model.known import KnownIssue, KnownIssues

SOON = timedelta(days=14)
OF_NO_NODE = (*OF_FABRICS, "rack", "whole_rack")
AGREE = "mend it and take the entry out, or agree with {} on another day"


@rule("ASY0170", "a known issue that has expired", why="It excuses nothing any more: what it matches counts again.")
def expired(draft: Draft) -> Iterator[Finding]:
    """Find entries whose day has come."""
    for place, one in _issues(draft, "expires"):
        if one.ends <= draft.now:
            yield Finding(place, f"{one.issue} expired on {one.expires}", AGREE.format(one.owner))


@rule(
    "ASY0171",
    "a known issue that expires soon",
    why="From that day on its failures take nodes out, block admission and fail runs.",
    severity="notice",
)
def expiring(draft: Draft) -> Iterator[Finding]:
    """Find entries whose day comes within two weeks."""
    for place, one in _issues(draft, "expires"):
        if draft.now < one.ends <= draft.now + SOON:
            left = max(1, (one.ends - draft.now).days)
            said = f"{one.issue} expires on {one.expires}, in {left} {'day' if left == 1 else 'days'}"
            yield Finding(place, said, AGREE.format(one.owner))


@rule(
    "ASY0172",
    "a known issue of nothing that there is",
    why="It excuses nothing, and nobody will see the day on which it could go.",
    needs=(CheckCatalog,),
)
def idle_issue(draft: Draft) -> Iterator[Finding]:
    """Find entries that match no declared check, or no place of the inventory."""
    checks = [check for _, check in draft.checks]
    for place, one in _issues(draft, "match"):
        about = [check for check in checks if fnmatchcase(check.id, one.match.check)]
        if not about:
            yield Finding(place, f"no check fits {one.match.check}", nearest(one.match.check, {c.id for c in checks}))
        elif draft.all_hosts_read and not _is_somewhere(draft, one, about):
            yield Finding(place, "no node of the inventory fits all of it", "correct it, or take the entry out")


@rule("ASY0174", "known issues out of order", why="In order, two entries of one issue stand together and are seen.")
def unsorted(draft: Draft) -> Iterator[Finding]:
    """Find entries that should stand before the one above."""
    for name, listed in draft.of(KnownIssues).items():
        for number in range(1, len(listed.issues)):
            if listed.issues[number].order < listed.issues[number - 1].order:
                place = draft.at(f"KnownIssues/{name}", "issues", number)
                above = listed.issues[number - 1].issue
                fix = "sort the entries by issue, then by check, pool, rack, node and subject"
                yield Finding(place, f"{listed.issues[number].issue} stands below {above}", fix)


@rule("ASY0175", "the same failures excused twice", why="One of the two would go on excusing what the other let go.")
def repeated(draft: Draft) -> Iterator[Finding]:
    """Find entries that match word for word what another does."""
    seen: dict[tuple[str, ...], Place] = {}
    for place, one in _issues(draft, "match"):
        first = seen.setdefault(one.match.words, place)
        if first != place:
            yield Finding(place, f"this is matched at {first[0]}:{first[1]} already", "keep one of the two")


def _issues(draft: Draft, entry: str) -> Iterator[tuple[Place, KnownIssue]]:
    """Yield every entry with the place of one part of it."""
    for name, listed in draft.of(KnownIssues).items():
        for number, one in enumerate(listed.issues):
            yield draft.at(f"KnownIssues/{name}", "issues", number, entry), one


def _is_somewhere(draft: Draft, one: KnownIssue, about: list[Check]) -> bool:
    """Whether a node fits; or the check is of something larger, and nothing is said of nodes."""
    if one.match.node == "*" and any(check.subject in OF_NO_NODE for check in about):
        return True
    head = "/".join(one.match.subject.split("/")[:2])
    return any(
        one.match.fits_place(host.name, host.pool, host.read.rack if host.read else "")
        and (any(sign in head for sign in "*?[") or head == f"{host.pool}/{host.name}")
        for host in draft.hosts
    )

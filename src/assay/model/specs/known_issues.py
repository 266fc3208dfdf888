"""KnownIssues: failures that somebody already owns, as data. Until its date, such a failure decides nothing.

An entry excuses a `fail`, never an `error`. From 00:00 UTC of `expires` on it excuses nothing, and the failures count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.node import Node
from assay.model.outcome import Outcome
from assay.model.specs.spec_document import IsoDay, SpecDocument, StrictModel

GlobPattern = Annotated[str, Field(min_length=1)]


class ExcuseCandidate(NamedTuple):
    """A failure that an entry may excuse: a check and its subject, with node, pool and rack ("" if there is none)."""

    check: str
    subject: str
    node: str = ""
    pool: str = ""
    rack: str = ""

    @classmethod
    def from_node(cls, check: str, subject: str, node: Node | None) -> ExcuseCandidate:
        """Return the candidate for a subject of `node`; None for a rack or fabric, which belongs to no single node."""
        if node is not None:
            return cls(check, subject, node.name, node.pool, node.rack)
        scope, _, name = subject.partition("/")
        rack = name.removeprefix("rack-")
        return cls(check, subject) if rack == name else cls(check, subject, "", scope, rack)


class KnownIssueMatch(StrictModel):
    """The failures that an entry excuses: shell patterns (`*`, `?`, `[...]`), all of which must match.

    `check` is a pytest id without parameters; `assay check` refuses patterns there. `subject` is an id such as
    `h100-a/n0007/gpu3`.

    `node`, `pool`, `rack`: the name of one.
    """

    check: GlobPattern
    subject: GlobPattern = "*"
    node: GlobPattern = "*"
    pool: GlobPattern = "*"
    rack: GlobPattern = "*"

    def matches(self, failure: ExcuseCandidate) -> bool:
        """Whether all patterns match a failure."""
        return (
            fnmatchcase(failure.check, self.check)
            and fnmatchcase(failure.subject, self.subject)
            and self.may_match_place(failure.node, failure.pool, failure.rack)
        )

    def may_match_place(self, node: str, pool: str, rack: str) -> bool:
        """Whether the patterns of node, pool and rack match."""
        return fnmatchcase(node, self.node) and fnmatchcase(pool, self.pool) and fnmatchcase(rack, self.rack)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns: of checks, pools, racks, nodes and subjects."""
        return (self.check, self.pool, self.rack, self.node, self.subject)

    @property
    def names_one_check(self) -> bool:
        """Whether the pattern of the check names a single check."""
        return not any(sign in self.check for sign in "*?[")

    @property
    def matches_everything(self) -> bool:
        """Whether every failure matches."""
        return all(set(pattern) == {"*"} for pattern in self.patterns)


class ExcuseLimits(StrictModel):
    """What known issues may excuse, and for how long: part of the lifecycle policy.

    An entry expires at most `max_days` from today. `admission`: patterns of the checks that an entry may excuse where a
    node must pass them to enter service; by default none.
    """

    max_days: float = Field(default=90, gt=0, le=3660)
    admission: list[GlobPattern] = Field(default=[])
    source: str = ""

    def may_excuse_admission(self, check: str) -> bool:
        """Whether a known issue may excuse this check where it must pass before a node serves."""
        return any(fnmatchcase(check, pattern) for pattern in self.admission)


class KnownIssue(StrictModel):
    """One issue that somebody owns: its URL, the failures that it causes, the reason, the owner, and its last day.

    From 00:00 UTC of `expires` (YYYY-MM-DD) on it excuses nothing.

    `issue`: its URL. `match`: the failures that it excuses. `owner`: who works on it.
    """

    issue: str = Field(pattern=r"^https?://[^\s]+$")
    match: KnownIssueMatch
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    expires: IsoDay

    @property
    def expires_at(self) -> datetime:
        """The time (UTC) from which it excuses nothing."""
        return datetime.fromisoformat(self.expires).replace(tzinfo=UTC)

    @property
    def sort_key(self) -> tuple[str, ...]:
        """The key by which entries are sorted: the issue, then its patterns."""
        return (self.issue, *self.match.patterns)

    @property
    def annotation(self) -> str:
        """The remark in reports beside a failure that it excuses."""
        return f"known: {self.issue} until {self.expires}"


class KnownIssues(SpecDocument):
    """A list of known issues. It may be empty. A list that cannot be read makes every run fail.

    `issues`: the entries.
    """

    kind: Literal["KnownIssues"]
    issues: list[KnownIssue] = Field(default=[])

    @model_validator(mode="after")
    def _excuses_something_specific(self) -> KnownIssues:
        if conflicts := list(_find_catch_all(self.issues)):
            raise ConflictError(*conflicts)
        return self


def _find_catch_all(issues: Iterable[KnownIssue]) -> Iterator[FieldConflict]:
    for number, issue in enumerate(issues):
        if issue.match.matches_everything:
            message = "this excuses every failure of the fleet"
            fix = "name the checks, or the nodes, that it is about"
            yield FieldConflict("ASY0173", ("issues", number, "match"), message, fix)


def find_known_issue(
    issues: Collection[KnownIssue], outcome: Outcome, node: Node | None, now: datetime
) -> KnownIssue | None:
    """Return the known issue that excuses an outcome at `now`, None if the outcome counts.

    All of assay asks this function. Only the verdict `fail` can be excused. `node` is the node of the outcome's
    subject, None for a rack or fabric. If several issues match, the function returns the one that expires last.
    """
    if outcome.verdict != "fail" or not issues:
        return None
    failure = ExcuseCandidate.from_node(outcome.check, outcome.subject, node)
    current = (issue for issue in issues if now < issue.expires_at and issue.match.matches(failure))
    return max(current, key=lambda issue: issue.expires, default=None)

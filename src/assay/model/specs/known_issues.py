"""KnownIssues: failures that somebody looks after already, as data. They stay failures, and decide nothing until a day.

An entry excuses what *fails*; what could not be judged is never excused. From 00:00 UTC of `expires` on it excuses
nothing, and what it excused counts at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay.model.errors import ConflictError, FieldConflict
from assay.model.node import Node
from assay.model.specs.spec_document import SpecDocument, StrictModel

GlobPattern = Annotated[str, Field(min_length=1)]


def _date_to_text(day: Any) -> Any:
    """Return a day as text: YAML makes a date of it where it has no quotes."""
    return day.isoformat() if type(day) is date else day


def _check_day(day: str) -> str:
    try:
        date.fromisoformat(day)
    except ValueError as error:
        raise ValueError(f"{day} is no day: {error}") from None
    return day


IsoDay = Annotated[
    str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), BeforeValidator(_date_to_text), AfterValidator(_check_day)
]


class ExcuseCandidate(NamedTuple):
    """What an entry is held against: a check and its subject, and where that is ("" for what is nowhere)."""

    check: str
    subject: str
    node: str = ""
    pool: str = ""
    rack: str = ""

    @classmethod
    def from_node(cls, check: str, subject: str, node: Node | None) -> ExcuseCandidate:
        """Return it for a node's subject, or (None) for a rack's or a fabric's, which is on no one node."""
        if node is not None:
            return cls(check, subject, node.name, node.pool, node.rack)
        scope, _, name = subject.partition("/")
        rack = name.removeprefix("rack-")
        return cls(check, subject) if rack == name else cls(check, subject, "", scope, rack)


class KnownIssueMatch(StrictModel):
    """Which failures an entry is about: shell patterns (`*`, `?`, `[...]`), of which all must fit.

    `check` is a pytest id without its subject, `subject` an id such as `h100-a/n0007/gpu3`. Nothing else can be said.
    """

    check: GlobPattern
    subject: GlobPattern = "*"
    node: GlobPattern = "*"
    pool: GlobPattern = "*"
    rack: GlobPattern = "*"

    def matches(self, judged: ExcuseCandidate) -> bool:
        """Whether this is about that check on that subject."""
        return (
            fnmatchcase(judged.check, self.check)
            and fnmatchcase(judged.subject, self.subject)
            and self.may_match_place(judged.node, judged.pool, judged.rack)
        )

    def may_match_place(self, node: str, pool: str, rack: str) -> bool:
        """Whether this may be about something on that node."""
        return fnmatchcase(node, self.node) and fnmatchcase(pool, self.pool) and fnmatchcase(rack, self.rack)

    @property
    def sort_key(self) -> tuple[str, ...]:
        """The patterns, in the order in which entries are sorted."""
        return (self.check, self.pool, self.rack, self.node, self.subject)

    @property
    def matches_everything(self) -> bool:
        """Whether no failure at all is left out."""
        return all(set(pattern) == {"*"} for pattern in self.sort_key)


class KnownIssue(StrictModel):
    """One issue that somebody looks after: what it makes fail, where it is followed, why, who, and until when.

    From 00:00 UTC of `expires` (YYYY-MM-DD) on it excuses nothing.
    """

    issue: str = Field(pattern=r"^https?://[^\s]+$")
    match: KnownIssueMatch
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    expires: IsoDay

    @property
    def expires_at(self) -> datetime:
        """The moment from which it excuses nothing, UTC."""
        return datetime.fromisoformat(self.expires).replace(tzinfo=UTC)

    @property
    def sort_key(self) -> tuple[str, ...]:
        """What entries are sorted by: the issue, then what they match."""
        return (self.issue, *self.match.sort_key)

    @property
    def annotation(self) -> str:
        """What people read beside a failure that it excuses."""
        return f"known: {self.issue} until {self.expires}"


class KnownIssues(SpecDocument):
    """A list of known issues. It may be empty; one that cannot be read fails every run."""

    kind: Literal["KnownIssues"]
    issues: list[KnownIssue] = Field(default=[])

    @model_validator(mode="after")
    def _says_what_it_excuses(self) -> KnownIssues:
        if found := list(_excusing_all(self.issues)):
            raise ConflictError(*found)
        return self


def find_excuse(issues: Iterable[KnownIssue], judged: ExcuseCandidate, now: datetime) -> KnownIssue | None:
    """Return the entry that excuses this failure at `now`, None where none does; of several the longest."""
    standing = (one for one in issues if one.match.matches(judged) and now < one.expires_at)
    return max(standing, key=lambda one: one.expires, default=None)


def _excusing_all(issues: Iterable[KnownIssue]) -> Iterator[FieldConflict]:
    for number, one in enumerate(issues):
        if one.match.matches_everything:
            said = "this excuses every failure of the fleet"
            yield FieldConflict(
                "ASY0173", ("issues", number, "match"), said, "name the checks, or the nodes, that it is about"
            )

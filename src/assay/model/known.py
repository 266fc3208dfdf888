"""KnownIssues: failures that somebody looks after already, as data. They stay failures, and decide nothing until a day.

An entry excuses what *fails*; what could not be judged is never excused. From 00:00 UTC of `expires` on it excuses
nothing, and what it excused counts at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from assay.model.errors import Contradiction, Misfit
from assay.model.spec import Spec, Strict

if TYPE_CHECKING:
    from assay.model.fleet import Node

Glob = Annotated[str, Field(min_length=1)]


def _written(day: Any) -> Any:
    """Return a day as text: YAML makes a date of it where it has no quotes."""
    return day.isoformat() if type(day) is date else day


def _exists(day: str) -> str:
    try:
        date.fromisoformat(day)
    except ValueError as error:
        raise ValueError(f"{day} is no day: {error}") from None
    return day


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), BeforeValidator(_written), AfterValidator(_exists)]


class Judged(NamedTuple):
    """What an entry is held against: a check and its subject, and where that is ("" for what is nowhere)."""

    check: str
    subject: str
    node: str = ""
    pool: str = ""
    rack: str = ""

    @classmethod
    def of(cls, check: str, subject: str, node: Node | None) -> Judged:
        """Return it for a node's subject, or (None) for a rack's or a fabric's, which is on no one node."""
        if node is not None:
            return cls(check, subject, node.name, node.pool, node.rack)
        scope, _, name = subject.partition("/")
        rack = name.removeprefix("rack-")
        return cls(check, subject) if rack == name else cls(check, subject, "", scope, rack)


class Match(Strict):
    """Which failures an entry is about: shell patterns (`*`, `?`, `[...]`), of which all must fit.

    `check` is a pytest id without its subject, `subject` an id such as `h100-a/n0007/gpu3`. Nothing else can be said.
    """

    check: Glob
    subject: Glob = "*"
    node: Glob = "*"
    pool: Glob = "*"
    rack: Glob = "*"

    def fits(self, judged: Judged) -> bool:
        """Whether this is about that check on that subject."""
        return (
            fnmatchcase(judged.check, self.check)
            and fnmatchcase(judged.subject, self.subject)
            and self.fits_place(judged.node, judged.pool, judged.rack)
        )

    def fits_place(self, node: str, pool: str, rack: str) -> bool:
        """Whether this may be about something on that node."""
        return fnmatchcase(node, self.node) and fnmatchcase(pool, self.pool) and fnmatchcase(rack, self.rack)

    @property
    def words(self) -> tuple[str, ...]:
        """The patterns, in the order in which entries are sorted."""
        return (self.check, self.pool, self.rack, self.node, self.subject)

    @property
    def fits_everything(self) -> bool:
        """Whether no failure at all is left out."""
        return all(set(pattern) == {"*"} for pattern in self.words)


class KnownIssue(Strict):
    """One issue that somebody looks after: what it makes fail, where it is followed, why, who, and until when.

    From 00:00 UTC of `expires` (YYYY-MM-DD) on it excuses nothing.
    """

    issue: str = Field(pattern=r"^https?://[^\s]+$")
    match: Match
    reason: str = Field(min_length=1)
    owner: str = Field(min_length=1)
    expires: Day

    @property
    def ends(self) -> datetime:
        """The moment from which it excuses nothing, UTC."""
        return datetime.fromisoformat(self.expires).replace(tzinfo=UTC)

    @property
    def order(self) -> tuple[str, ...]:
        """What entries are sorted by: the issue, then what they match."""
        return (self.issue, *self.match.words)

    @property
    def said(self) -> str:
        """What people read beside a failure that it excuses."""
        return f"known: {self.issue} until {self.expires}"


class KnownIssues(Spec):
    """A list of known issues. It may be empty; one that cannot be read fails every run."""

    kind: Literal["KnownIssues"]
    issues: list[KnownIssue] = Field(default=[])

    @model_validator(mode="after")
    def _says_what_it_excuses(self) -> KnownIssues:
        if found := list(_excusing_all(self.issues)):
            raise Contradiction(*found)
        return self


def excuse(issues: Iterable[KnownIssue], judged: Judged, now: datetime) -> KnownIssue | None:
    """Return the entry that excuses this failure at `now`, None where none does; of several the longest."""
    standing = (one for one in issues if one.match.fits(judged) and now < one.ends)
    return max(standing, key=lambda one: one.expires, default=None)


def _excusing_all(issues: Iterable[KnownIssue]) -> Iterator[Misfit]:
    for number, one in enumerate(issues):
        if one.match.fits_everything:
            said = "this excuses every failure of the fleet"
            yield Misfit(
                "ASY0173", ("issues", number, "match"), said, "name the checks, or the nodes, that it is about"
            )

"""One mistake in a fleet repository, at its place, with the way out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong at `file`:`line`:`column` (both from 1; 0 where the whole file is meant), and how to fix it.

    A `notice` is of what is right today and soon will not be. `code` is stable for ever and explained by
    `assay check --explain`; `file` is relative to the repository.
    """

    file: str
    line: int
    column: int
    code: str
    severity: Severity
    message: str
    fix: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    @property
    def where(self) -> str:
        """`file:line:column`, without the parts that are not known."""
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)

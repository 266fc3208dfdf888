"""Errors for people: what happened, where, and what to do."""

from __future__ import annotations

from typing import NamedTuple

from assay.model.texts.printable_text import escape_line


class AssayError(Exception):
    """What happened, `where` (file:line, node, port), and the `fix`. The CLI prints it and exits with 2."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        what = self.what.replace("\n", "\n  ")  # a name with a line break begins no line of its own
        lines = [f"{escape_line(self.where)}: {what}" if self.where else what]
        if self.fix:
            lines.append(f"  → {self.fix}")
        return "\n".join(lines)


def describe_error(error: Exception) -> str:
    """Return what went wrong, for people: an AssayError as it is, anything else as an internal error."""
    return str(error) if isinstance(error, AssayError) else f"internal error: {type(error).__name__}: {error}"


class FieldConflict(NamedTuple):
    """One entry of a spec that contradicts another: the rule's code, the entry's path, a message and a fix."""

    code: str
    path: tuple[str | int, ...]
    message: str
    fix: str = ""


class ConflictError(ValueError):
    """A spec whose parts fit their schema, but not each other. Models raise it when they are validated."""

    def __init__(self, *conflicts: FieldConflict) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, found.path))}: {found.message}" for found in conflicts))
        self.conflicts = conflicts

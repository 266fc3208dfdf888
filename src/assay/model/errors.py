"""How a person is told that something could not be done, or does not fit together."""

from __future__ import annotations

from typing import NamedTuple


class AssayError(Exception):
    """What happened, where (file:line, node, port), and what to do about it. The CLI prints it and exits with 2."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.fix:
            lines.append(f"  → {self.fix}")
        return "\n".join(lines)


class FieldConflict(NamedTuple):
    """One entry of a spec that contradicts another: the rule's code, the entry's path, what is wrong, the way out."""

    code: str
    path: tuple[str | int, ...]
    message: str
    fix: str = ""


class ConflictError(ValueError):
    """A spec whose parts fit their schema, but not each other. Models raise it, so that none can be used wrongly."""

    def __init__(self, *found: FieldConflict) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, one.path))}: {one.message}" for one in found))
        self.conflicts = found

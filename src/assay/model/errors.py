"""The one way to tell a person that something could not be done."""

from __future__ import annotations


class Trouble(Exception):
    """What happened, where (file:line, node, port), and what to do about it. The CLI prints it and exits with 2."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.fix:
            lines.append(f"  → {self.fix}")
        return "\n".join(lines)

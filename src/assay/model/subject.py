"""What a check judges. The id is stable from run to run: `h100-a/n0017/gpu3`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Subject:
    """A pool's node, a part of it, a rack (`h100-a/rack-r01`), or a fabric (`fabric/compute`) with its parts.

    The parts of a fabric are its switches (`fabric/compute/leaf-su01-r0`) and rails (`fabric/compute/rail-0`).
    """

    scope: str
    name: str
    part: str = ""

    def __str__(self) -> str:
        if self.scope and self.name:  # nearly always, and often
            return f"{self.scope}/{self.name}/{self.part}" if self.part else f"{self.scope}/{self.name}"
        return "/".join(piece for piece in (self.scope, self.name, self.part) if piece)

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Read an id back. Raises ValueError unless it has two or three parts."""
        pieces = text.split("/", 2)
        if len(pieces) < 2 or not all(pieces):
            raise ValueError(f"{text!r} is no subject id; expected pool/node or pool/node/part")
        return cls(*pieces)

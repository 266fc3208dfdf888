"""What stops a check from being judged. None of these may end in a pass."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class Unjudgeable(Exception):
    """The check itself cannot be judged: it asks for what does not exist, or breaks a rule of suites."""


class Silence(Exception):
    """A reading that is no value. `kind` is absent, unsupported or failed; `where` its path; `reason` why."""

    def __init__(self, kind: str, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}" if where else reason)
        self.kind, self.where, self.reason = kind, where, reason


def no_such(name: str, where: str, known: Iterable[str]) -> Unjudgeable:
    """Return the complaint about a name that does not exist, with the ones that the author may have meant."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3) or names[:8]
    there = f"; there is {', '.join(near)}" if near else "; nothing is there"
    return Unjudgeable(f"{where} has no {name!r}{there}")

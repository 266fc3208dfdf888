"""What should happen to a node, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Timing = Literal["immediate", "pending", "record"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One link of the chain; `id` finds it again and `text` says it in one line for people.

    `kind` is outcome (`<run>/<check>[<subject>]`, for a phase that passed whole `<run>/<phase>`), fault, deadline,
    certified, effect, decision, known (the issue that excuses a failure) or, for what stood in the way, person,
    profile, limit and breaker.
    """

    kind: str
    id: str
    text: str

    def as_json(self) -> dict[str, str]:
        """Return plain JSON data."""
        return {"kind": self.kind, "id": self.id, "text": self.text}


@dataclass(frozen=True, slots=True)
class Decision:
    """`node` goes `from_state` → `to_state`, by `rule` (`file:line name`), because of `because`.

    `id` derives from the node, its stay in `from_state` and the reasons, not from the time: the same reasons give the
    same decision, once. `pending` waits for the node to be idle; `record` moves nothing. `blockers` names what a
    pending one waits for, or (remedy `wait`) what held a move back. `remedy` `ticket` asks for a technician.
    """

    id: str
    node: str
    from_state: str
    to_state: str
    timing: Timing
    rule: str
    remedy: str = ""
    because: tuple[Cause, ...] = ()
    blockers: tuple[str, ...] = ()

    def as_body(self) -> dict[str, Any]:
        """Return the body of its ledger entry."""
        return {
            "decision": self.id,
            "from": self.from_state,
            "to": self.to_state,
            "timing": self.timing,
            "rule": self.rule,
            "remedy": self.remedy,
            "because": [cause.as_json() for cause in self.because],
            "blockers": list(self.blockers),
        }

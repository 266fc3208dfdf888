"""What should happen to a node, and why.

What automation can do to a node, by name. Plain names, so that history can be read without the specs' machinery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

ActionName = Literal["cordon", "uncordon", "drain", "drain-now", "reboot", "powercycle", "zap", "ticket", "dossier"]
REPAIR_ACTIONS: frozenset[ActionName] = frozenset({"reboot", "powercycle", "zap"})
"""Actions after which earlier passes no longer count."""
RESTART_ACTIONS: frozenset[ActionName] = frozenset({"reboot", "powercycle"})
"""Actions that count against the restarts of an hour."""


DecisionTiming = Literal["immediate", "pending", "record"]


@dataclass(frozen=True, slots=True)
class DecisionCause:
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
    timing: DecisionTiming
    rule: str
    remedy: str = ""
    causes: tuple[DecisionCause, ...] = ()
    blockers: tuple[str, ...] = ()

    def as_entry_body(self) -> dict[str, Any]:
        """Return the body of its ledger entry."""
        return {
            "decision": self.id,
            "from": self.from_state,
            "to": self.to_state,
            "timing": self.timing,
            "rule": self.rule,
            "remedy": self.remedy,
            "because": [cause.as_json() for cause in self.causes],
            "blockers": list(self.blockers),
        }

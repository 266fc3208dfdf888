"""Holds what a story declared against what the ledger, the scheduler and the hardware say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.lab.scenario import Expect, TicketExpected
from assay.lab.world import World
from assay.model.entry import Entry


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was declared: what, whether it came out so, and what was seen."""

    declared: str
    met: bool
    seen: str = ""


@dataclass(frozen=True)
class Seen:
    """What there is to look at: the whole history, the answer of `assay status`, and the hardware itself."""

    entries: Sequence[Entry]
    status: dict[str, dict[str, Any]]
    world: World

    def of(self, node: str, *kinds: str) -> list[Entry]:
        """Return a node's entries of some kinds, oldest first."""
        return [entry for entry in self.entries if entry.node == node and entry.kind in kinds]


def findings(expect: Expect, seen: Seen) -> Iterator[Finding]:
    """Yield one finding for everything that `expect` declares."""
    yield from (_state(node, state, seen) for node, state in expect.state.items())
    yield from (_path(node, states, seen) for node, states in expect.path.items())
    yield from (_waiting(node, job, seen) for node, job in expect.waiting.items())
    yield from (_fault(node, name, seen) for node, name in expect.faults.items())
    yield from (_unanswered(node, channels, seen) for node, channels in expect.unanswered.items())
    for node, effects in expect.effects.items():
        yield from (_effect(node, action, times, seen) for action, times in effects.items())
    for node, flashes in expect.flashes.items():
        yield _flashes(node, flashes, seen)
    yield from (_ticket(ticket, seen) for ticket in expect.tickets)


def _state(node: str, state: str, seen: Seen) -> Finding:
    now = str(seen.status.get(node, {}).get("state", "unknown"))
    return Finding(f"{node} is in {state}", now == state, f"it is in {now}")


def _path(node: str, states: list[str], seen: Seen) -> Finding:
    went = [str(e.body.get("state") or e.body.get("to")) for e in seen.of(node, "node.enrolled", "transition")]
    return Finding(f"{node} went {' → '.join(states)}", went[-len(states) :] == states, f"it went {' → '.join(went)}")


def _waiting(node: str, job: str, seen: Seen) -> Finding:
    pending = seen.status.get(node, {}).get("pending") or {}
    names = " ".join(str(name) for name in pending.get("waiting_for", []))
    return Finding(f"status says that {node} waits for {job}", job in names, f"it waits for {names or 'nothing'}")


def _fault(node: str, name: str, seen: Seen) -> Finding:
    classes = sorted({str(entry.body["class"]) for entry in seen.of(node, "fault")})
    return Finding(f"{node} has {name} in its history", name in classes, f"it has {', '.join(classes) or 'no fault'}")


def _unanswered(node: str, channels: list[str], seen: Seen) -> Finding:
    silent = {str(entry.body["channel"]): str(entry.body["reason"]) for entry in seen.of(node, "observe.failed")}
    said = "; ".join(f"{channel}: {reason}" for channel, reason in silent.items())
    return Finding(f"{node}: no answer from {', '.join(channels)}", set(channels) <= set(silent), said)


def _effect(node: str, action: str, times: int, seen: Seen) -> Finding:
    intents = {entry.body["effect"] for entry in seen.of(node, "effect.intent") if entry.body["action"] == action}
    verified = [entry.body["effect"] for entry in seen.of(node, "effect.verified") if entry.body["effect"] in intents]
    once = len(intents) == times and sorted(verified) == sorted(intents)
    text = f"{node}: {action} journalled and verified {'once' if times == 1 else f'{times} times'}"
    return Finding(text, once, f"{len(intents)} intents, {len(verified)} verified")


def _flashes(node: str, flashes: dict[str, int], seen: Seen) -> Finding:
    counted = Counter(str(flash["component"]) for flash in seen.world.load(node)["flashes"])
    wanted = ", ".join(f"{component} {times}×" for component, times in sorted(flashes.items()))
    found = ", ".join(f"{component} {times}×" for component, times in sorted(counted.items()))
    return Finding(f"{node}'s BMC took {wanted}", dict(counted) == flashes, f"it took {found or 'none'}")


def _ticket(expected: TicketExpected, seen: Seen) -> Finding:
    opened = [entry.body for entry in seen.entries if entry.kind == "ticket.opened"]
    ended = (entry for entry in seen.entries if entry.kind in ("ticket.closed", "ticket.reopened"))
    ends = {entry.body["ticket"]: entry for entry in ended}.values()
    closed = {one.body["ticket"] for one in ends if one.kind == "ticket.closed"}
    about = [body for body in opened if all(word in str(body) for word in expected.mentions)]
    still = [body for body in about if body["ticket"] not in closed]
    met = len(about) == expected.count and len(still) == (expected.count if expected.open else 0)
    state = "open" if expected.open else "closed"
    text = f"{expected.count} ticket, {state}, naming {', '.join(expected.mentions)}"
    return Finding(text, met, f"{len(about)} such tickets, {len(still)} open; {len(opened)} in all")

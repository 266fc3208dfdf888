"""How chaos ends: what people still do, how long a controller may take, and why it does not settle where it does not.

Nodes that went to triage take the room of their rack and pool until they serve: without people a fleet can wait for
ever with nothing begun, and is right to.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from assay.decide.moves.held_answers import OpenBreaker, find_nodes_to_clear, list_open_breakers
from assay.decide.state.node_projection import NodeStateProjection
from assay.decide.state.node_state import NodeState
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from tests.integration.chaos.chaos_world import World

STACKS = "stacks"
"""The file in a controller's root to which all its threads are written when it is sent STACKS_PLEASE."""
STACKS_PLEASE = signal.SIGUSR1
HANDS = ("triage", "debug", "rma", "zapfail", "onboard", "discovered", "initializing")
"""The states in which a node waits for somebody's hands."""
QUIET_S, PASSES, HANGS_S, LINES = 40.0, 30, 300.0, 500
"""How long the ledger may have nothing new (hours of the fleet's), and in how many passes; how long a pass may take
that says nothing; how many lines a node may need."""
LAST = 20


class Bench:
    """Technicians, who repair and certify what waits for them, and let go of whatever is held."""

    def __init__(self, world: World, place: str, word: Callable[[str, str], LedgerEntry]) -> None:
        self.world, self.place, self._word = world, place, word
        self.heard, self.entries, self._news = NodeStateProjection(), list[LedgerEntry](), set[str]()
        self._cleared = set[OpenBreaker]()

    def work(self) -> int:
        """Do what is there to be done by people; return how many lines the ledger has."""
        with suppress(AssayError), closing(Ledger.open(self.place, patience_s=2)) as ledger:  # when busy: another time
            self._hear(ledger.entries(after=self.heard.seq))
            ledger.append(*(word for node in sorted(self._news) for word in self._words(node)), *self._clear_breakers())
            self._news.clear()
        return len(self.entries)

    def _hear(self, new: list[LedgerEntry]) -> None:
        for entry in new:
            self.heard.apply(entry)
        self.entries += new
        self._news |= {entry.node for entry in new}

    def _clear_breakers(self) -> Iterator[LedgerEntry]:
        """Yield a person's word about each node whose faults opened a breaker, once for what each breaker holds."""
        states = list(self.heard.node_states().values())
        for breaker in set(list_open_breakers(states)) - self._cleared:
            self._cleared.add(breaker)
            for story in find_nodes_to_clear(states, breaker.pool, since=""):
                word = self._word("breaker.cleared", story.node)
                yield replace(word, body={**word.body, "pool": breaker.pool})

    def _words(self, node: str) -> Iterator[LedgerEntry]:
        story = self.heard.node_state(node)
        if story:
            yield from approve_late_orders(story, self._word)
        if story and story.hold:
            yield self._word("release", node)
        if story and story.state in HANDS:
            self.world.mend(node)
            if not story.certified:
                yield self._word("certified", node)


def approve_late_orders(story: NodeState, word: Callable[[str, str], LedgerEntry]) -> Iterator[LedgerEntry]:
    """Yield a yes to each order that waits for a person: a controller with another clock found it too old, or new."""
    for order, _ in story.trust.outlived:
        approved = word("approved", story.node)
        yield replace(approved, body={**approved.body, "decision": order})


@dataclass(frozen=True)
class Look:
    """How many lines the ledger has and how many passes have ended, `at` seconds by a clock that only goes on."""

    lines: int
    passes: int
    at: float


class Patience:
    """How long to wait for `nodes` nodes: while there is progress, and not where that has no end."""

    def __init__(self, nodes: int, first: Look) -> None:
        self._most, self._line, self._pass = first.lines + nodes * LINES, first, first

    def over(self, now: Look) -> bool:
        """Whether many passes had nothing new to say, or one does not end, or they go on and on."""
        if now.lines != self._line.lines:
            self._line = now
        if (now.lines, now.passes) != (self._pass.lines, self._pass.passes):
            self._pass = now
        quiet = now.at - self._line.at > QUIET_S and now.passes - self._line.passes >= PASSES
        return quiet or now.at - self._pass.at > HANGS_S or now.lines > self._most


def stacks_of(root: Path, pid: int) -> str:
    """Return what every thread of a controller is at, as far as it has written that within seconds."""
    os.kill(pid, STACKS_PLEASE)
    said, before = "", None
    for _ in range(20):
        time.sleep(0.2)
        said, before = (root / STACKS).read_text(), said
        if said and said == before:
            break
    return said


def unsettled(policy: LifecyclePolicy, bench: Bench) -> Iterator[str]:
    """Yield what keeps a fleet from being settled: by the world, by each node's story and lines, by the last of all."""
    bench.work()
    ill = bench.world.ill()
    yield f"still ill: {ill}"
    for story in bench.heard.node_states().values():
        if (
            story.unsettled_effects
            or list_outstanding_effects(policy, story)
            or story.node in ill
            or not policy.states[story.state].in_service
        ):
            yield from _standing(policy, story)
            yield from _lines([one for one in bench.entries if one.node == story.node])
    yield f"of all {len(bench.entries)} lines:"
    yield from _lines(bench.entries)


def _lines(entries: list[LedgerEntry]) -> Iterator[str]:
    """Yield the last of these lines of the ledger."""
    yield from (f"    {one.seq} {one.at} {one.kind} {one.node} {str(one.body)[:300]}" for one in entries[-LAST:])


def _standing(policy: LifecyclePolicy, story: NodeState) -> Iterator[str]:
    waits = f", waits to go to {story.pending.to}" if story.pending else ""
    held = f", held by {story.hold.who}" if story.hold else ""
    yield f"{story.node} is in {story.state} since {story.since}{waits}{held}: {story.reason}; {story.note}"
    yield from (f"  {one.action} is {one.standing} since {one.at}: {one.reason}" for one in story.unsettled_effects)
    yield from (f"  is owed {one.action}: {one.reason}" for one in list_outstanding_effects(policy, story))

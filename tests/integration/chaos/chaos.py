"""Chaos: faults, people, customers, clocks at random; controllers and PostgreSQL killed at random; what must hold."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from assay.act.effects.effect_journal import parse_effects
from assay.decide.moves.blast_radius_limits import is_in_service, is_out_of_service
from assay.decide.state.node_projection import NodeStateProjection, project_node_states
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.ledger.store import Ledger
from assay.model.errors import AssayError
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.policy_sections import count_allowed_out
from tests.integration.chaos.chaos_controller import ORIGIN, fleet_of
from tests.integration.chaos.chaos_settling import HANDS, Bench, Look, Patience, stacks_of, unsettled
from tests.integration.chaos.chaos_world import World
from tests.support.places import ROOT
from tests.support.real_postgres import Postgres

NURSERY = "tests.integration.chaos.chaos_controller"
CLASSES = ("gpu.missing", "gpu.memory.uncorrectable", "gpu.pcie.degraded", "gpu.thermal", "psu.failed", "ib.link.down")
CURES = ("reboot", "reboot", "reboot", "powercycle", "zap", "hand")
ONCE = ("reboot", "powercycle", "zap")
EACH_S = 0.05


@dataclass
class Chaos:
    """One story of chaos in `root`, on the ledger at `place`; of which everything but time follows from `seed`."""

    root: Path
    place: str
    nodes: int
    seed: int
    rate: float = 600.0
    server: Postgres | None = None
    killed: Counter[str] = field(default_factory=Counter)

    program, once = NURSERY, ONCE

    def __post_init__(self) -> None:
        self.prepare()
        self.world.make(self.names)
        self.world.fall_ill(self.names[0], "gpu.missing", "reboot")  # so that something is done, however short it is

    def prepare(self) -> None:
        """Make what every story needs."""
        self.make_world()
        self.chance, self.names = random.Random(self.seed), list(self.fleet.nodes)
        (self.root / ".assay" / "locks").mkdir(parents=True)

    def make_world(self) -> None:
        self.fleet, self.world = fleet_of(self.root, self.nodes), World(self.root)

    @property
    def policy(self):
        return next(iter(self.fleet.policies.values()))

    @contextmanager
    def nursery(self) -> Iterator[None]:
        words = [sys.executable, "-m", self.program, str(self.root), self.place, str(self.nodes), str(self.rate)]
        with (self.root / "log").open("w") as log:
            self._nursery = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=log, text=True, cwd=ROOT)
        try:
            assert self._answer() == "ready\n", self.said("log")
            self._anchor = json.loads((self.root / "clock").read_text())[0]
            yield
        finally:
            self._nursery.kill()
            self._nursery.communicate()

    def rage(self, kills: int, of_postgres: int = 0, most_s: float = 2.0, word: str = "go", at_once: int = 1) -> None:
        """Let controllers live for a random while, `at_once` of them, and kill one after the other; and PostgreSQL."""
        alive: list[int] = []
        struck = set(self.chance.sample(range(kills), of_postgres))
        for number in range(kills):
            alive += [self._ask(word, self.chance.getrandbits(31)) for _ in range(at_once - len(alive))]
            until = time.monotonic() + self.chance.uniform(0.02, most_s)
            if number in struck:
                self._happens_until((until + time.monotonic()) / 2)
                self._strike()
            self._happens_until(until)
            self._kill(alive.pop(self.chance.randrange(at_once)))
        for pid in alive:
            self._kill(pid)

    def _kill(self, pid: int) -> None:
        assert self._ask("kill", pid) == -9, self.said("crashes")
        self.killed["controller"] += 1

    def settle(self) -> None:
        """Let nothing happen any more; one controller finishes what is left, and mends the first node."""
        for name in self.names[1:]:
            self.world.mend(name)
            self.world.use(name, "")
        pid, bench = self._ask("settle", 1), Bench(self.world, self.place, self._word)
        patience = Patience(len(self.names), self._look(bench))
        while _lives(pid):
            if patience.over(self._look(bench)):
                self._give_up(pid, bench)
            time.sleep(EACH_S)
        assert self._ask("wait", pid) == 0, self.said("crashes")

    def _look(self, bench: Bench) -> Look:
        return Look(bench.work(), self.said("passes").count("x"), time.monotonic())

    def _give_up(self, pid: int, bench: Bench) -> NoReturn:
        stacks = stacks_of(self.root, pid)
        self._ask("kill", pid)
        said = [f"troubles: {self.said('troubles')[-500:]}", stacks]
        raise AssertionError("\n".join(["nothing settles", *unsettled(self.policy, bench), *said]))

    def said(self, file: str) -> str:
        path = self.root / file
        return path.read_text() if path.exists() else ""

    def _ask(self, word: str, number: int) -> int:
        assert self._nursery.stdin
        self._nursery.stdin.write(f"{word} {number}\n")
        self._nursery.stdin.flush()
        return int(self._answer())

    def _answer(self) -> str:
        assert self._nursery.stdout
        return self._nursery.stdout.readline()

    def _strike(self) -> None:
        assert self.server
        self.server.end(signal.SIGKILL)
        time.sleep(self.chance.uniform(0, 0.2))
        self.server.start()
        self.killed["postgres"] += 1

    def _happens_until(self, until: float) -> None:
        while time.monotonic() < until:
            self._something_happens()
            time.sleep(EACH_S)

    def _something_happens(self) -> None:
        node, dice = self.chance.choice(self.names[1:]), self.chance.random()
        if dice < 0.25:
            self.world.fall_ill(node, self.chance.choice(CLASSES), self.chance.choice(CURES))
        elif dice < 0.45:
            self.world.use(node, f"j{self.chance.randrange(1000)}")
        elif dice < 0.7:
            self.world.use(node, "")
        elif dice < 0.75:
            self._people()

    def _people(self) -> None:
        """Technicians mend and certify what waits for them; somebody holds a node or lets it go."""
        try:
            ledger = Ledger.open(self.place, patience_s=2)
            stories = project_node_states(ledger.entries())
        except AssayError:
            return
        said = []
        for story in stories.values():
            if story.state in HANDS and not story.pending:
                self.world.mend(story.node)
                said.append(("certified", story.node))
            elif story.hold and self.chance.random() < 0.3:
                said.append(("release", story.node))
        if self.chance.random() < 0.3:
            said.append(("hold", self.chance.choice(self.names[1:])))
        try:
            ledger.append(*(self._word(kind, node) for kind, node in said))
            ledger.close()
        except AssayError:
            return

    def _word(self, kind: str, node: str) -> LedgerEntry:
        body = {"who": "ann", "reason": "chaos"}
        return LedgerEntry(uuid.UUID(int=self.chance.getrandbits(128)).hex, self._now(), kind, node, body)

    def _now(self) -> str:
        passed = (time.time() - self._anchor) * self.rate
        return (datetime.fromisoformat(ORIGIN) + timedelta(seconds=passed)).isoformat()

    def wrongs(self) -> list[str]:
        """Return everything that must not be."""
        ledger = Ledger.open(self.place)
        entries = ledger.entries()
        found = [f"ledger: {line}" for line in ledger.verify()]
        ledger.close()
        ways = [*self._transitions(entries), *self._limits(entries)]
        return [*found, *self._deeds(entries), *ways, *self._lost(entries)]

    def _deeds(self, entries: list[LedgerEntry]) -> Iterator[str]:
        """Hold what the world counted against what the ledger says was done."""
        done = Counter((node, what, effect) for node, what, effect in self.world.done())
        yield from (f"{count} times: {told}" for told, count in done.items() if count > 1)
        effects = parse_effects(entries)
        for node, what, effect in done:
            if effect not in effects or effects[effect].intent.node != node or effects[effect].intent.action != what:
                yield f"nobody meant to {what} {node} ({effect})"
        for effect in effects.values():
            told = (effect.intent.node, effect.intent.action, effect.intent.effect)
            if effect.intent.action in self.once and effect.status == "verified" and not done[told]:
                yield f"the world knows nothing of {told}, which is verified"
            if effect.intent.action in self.once and effect.status == "failed" and done[told]:
                yield f"{told} was done and is said to have failed"

    def _transitions(self, entries: list[LedgerEntry]) -> Iterator[str]:
        at: dict[str, str] = {}
        decisions = Counter(entry.id for entry in entries if entry.kind == "decision")
        for entry in entries:
            if entry.kind == "node.enrolled":
                if entry.node in at:
                    yield f"{entry.node} was enrolled twice"
                at[entry.node] = entry.body["state"]
            if entry.kind == "transition":
                origin, target = entry.body["from"], entry.body["to"]
                if at[entry.node] != origin:
                    yield f"{entry.node} went from {origin}, but was in {at[entry.node]}"
                if not self.policy.has_edge(origin, target):
                    yield f"{entry.node} went from {origin} to {target}, where nothing leads"
                if decisions[entry.body["decision"]] != 1:
                    yield f"{entry.node} went to {target} without one decision"
                at[entry.node] = target

    def _limits(self, entries: list[LedgerEntry]) -> Iterator[str]:
        """Count who was out, line by line: nobody leaves service where his rack or pool has given enough."""
        heard, out, nodes = NodeStateProjection(), set[str](), self.fleet.nodes
        most = count_allowed_out(len(nodes) // 2, self.policy.limits.pool_percent)
        for entry in entries:
            served = (story := heard.node_state(entry.node)) and is_in_service(self.policy, story)
            heard.apply(entry)
            if not (story := heard.node_state(entry.node)) or not is_out_of_service(self.policy, story):
                out.discard(entry.node)
            elif entry.node not in out:
                out.add(entry.node)
                rack = [name for name in out if nodes[name].rack == nodes[entry.node].rack]
                pool = [name for name in out if nodes[name].pool == nodes[entry.node].pool]
                if served and len(rack) > self.policy.limits.rack_concurrent:
                    yield f"{entry.node} left service as number {len(rack)} of its rack (entry {entry.seq})"
                if served and len(pool) > most:
                    yield f"{entry.node} left service as number {len(pool)} of its pool (entry {entry.seq})"

    def _lost(self, entries: list[LedgerEntry]) -> Iterator[str]:
        for effect in parse_effects(entries).values():
            if not effect.has_ended and not effect.reason:
                yield f"{effect.intent.action} of {effect.intent.node} is open without a reason ({effect.status})"
        for story in project_node_states(entries).values():
            for one in list_outstanding_effects(self.policy, story):
                yield f"{story.node} is still owed {one.action}: {one.reason}"


def go_through(story: Chaos, kills: int, of_postgres: int = 0, **how: Any) -> None:
    """Rage, settle, and assert that nothing is as it must not be."""
    with story.nursery():
        story.rage(kills, of_postgres, **how)
        story.settle()
    assert (story.killed["controller"] >= kills, story.killed["postgres"]) == (True, of_postgres)
    assert story.said("crashes") == ""
    assert not (wrongs := story.wrongs()), "\n".join(wrongs)
    assert story.world.done(), "something was done at all"


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"

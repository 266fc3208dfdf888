"""A world of many nodes in one file: what is done to a node is counted here, whatever any ledger says of it.

A deed is one transaction of the world's own: a controller that is killed has done it whole or not at all, as a BMC has
taken a command or not. Some deeds are done by a child that outlives its controller, as ansible-playbook does.
"""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.adapters.scheduler import CustomerJob, SchedulerNodeStatus, SpareRunResult
from assay.model.cordon_ownership import is_our_reason, prefix_reason
from assay.model.errors import AssayError

TABLES = """
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS node (name TEXT PRIMARY KEY, deeds INTEGER DEFAULT 0, ill TEXT DEFAULT '',
  cure TEXT DEFAULT '', cordon TEXT DEFAULT '', job TEXT DEFAULT '');
CREATE TABLE IF NOT EXISTS deed (id INTEGER PRIMARY KEY, node TEXT, what TEXT, effect TEXT);
"""
CHILD = """
import fcntl, sqlite3, sys, time
lock, file, node, what, effect, before = sys.argv[1:]
with open(lock, "a") as held:
    fcntl.flock(held, fcntl.LOCK_EX)
    time.sleep(0.05)
    world = sqlite3.connect(file, timeout=60, isolation_level=None)
    world.execute("PRAGMA synchronous = OFF")
    world.execute("BEGIN IMMEDIATE")
    ((deeds,),) = world.execute("SELECT deeds FROM node WHERE name = ?", (node,))
    if deeds == int(before):  # as playbooks restart only a node that still runs the boot from before
        world.execute("INSERT INTO deed (node, what, effect) VALUES (?, ?, ?)", (node, what, effect))
        world.execute("UPDATE node SET deeds = deeds + 1 WHERE name = ?", (node,))
        world.execute("UPDATE node SET ill = '' WHERE name = ? AND cure = ?", (node, what))
    world.execute("COMMIT")
"""


@dataclass(frozen=True)
class World:
    """The nodes, in the file `world.sqlite` of a folder."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "world.sqlite"

    @contextmanager
    def open(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.file, timeout=60, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = OFF")  # processes are killed here, machines are not
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()

    def make(self, names: Iterable[str]) -> None:
        with sqlite3.connect(self.file) as database:
            database.executescript(TABLES)
            database.executemany("INSERT INTO node (name) VALUES (?)", [(name,) for name in names])

    def fall_ill(self, node: str, fault: str, cure: str) -> None:
        with self.open() as world:
            world.execute("UPDATE node SET ill = ?, cure = ? WHERE name = ? AND ill = ''", (fault, cure, node))

    def mend(self, node: str) -> None:
        with self.open() as world:
            world.execute("UPDATE node SET ill = '' WHERE name = ?", (node,))

    def use(self, node: str, job: str) -> None:
        """Let a customer's job start, where the scheduler places any, or end (`job` is "")."""
        with self.open() as world:
            world.execute("UPDATE node SET job = ? WHERE name = ? AND (cordon = '' OR ? = '')", (job, node, job))

    def ill(self) -> dict[str, str]:
        with self.open() as world:
            return dict(world.execute("SELECT name, ill FROM node WHERE ill != ''"))

    def deeds(self, node: str) -> int:
        with self.open() as world:
            ((deeds,),) = world.execute("SELECT deeds FROM node WHERE name = ?", (node,))
            return int(deeds)

    def do(self, node: str, what: str, effect: str) -> None:
        with self.open() as world:
            world.execute("INSERT INTO deed (node, what, effect) VALUES (?, ?, ?)", (node, what, effect))
            world.execute("UPDATE node SET deeds = deeds + 1 WHERE name = ?", (node,))
            world.execute("UPDATE node SET ill = '' WHERE name = ? AND cure = ?", (node, what))

    def done(self) -> list[tuple[str, str, str]]:
        """Return every deed in its order: node, what, effect."""
        with self.open() as world:
            return world.execute("SELECT node, what, effect FROM deed ORDER BY id").fetchall()


@dataclass(frozen=True)
class Scheduler:
    """The world's scheduler: one cordon and at most one job a node."""

    world: World
    places_jobs: bool = True

    def list_jobs(self, node: str) -> tuple[CustomerJob, ...]:
        return self.read_statuses([node])[node].jobs

    def read_cordon_reason(self, node: str) -> str:
        return self.read_statuses([node])[node].cordon

    def cordon(self, node: str, reason: str) -> None:
        self.cordon_many({node: reason})

    def uncordon(self, node: str) -> None:
        if is_our_reason(self.read_cordon_reason(node)):
            with self.world.open() as world:
                world.execute("UPDATE node SET cordon = '' WHERE name = ?", (node,))

    def drain(self, node: str, reason: str, now: bool = False) -> None:
        self.cordon(node, reason)
        if now:
            self.world.use(node, "")

    def read_statuses(self, nodes: Collection[str]) -> dict[str, SchedulerNodeStatus]:
        with self.world.open() as world:
            rows = world.execute("SELECT name, cordon, job FROM node").fetchall()
        found = {name: SchedulerNodeStatus(_jobs(job), cordon) for name, cordon, job in rows}
        return {name: found[name] for name in nodes}

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        with self.world.open() as world:
            for node, reason in reasons.items():
                world.execute(
                    "UPDATE node SET cordon = ? WHERE name = ? AND cordon = ''", (prefix_reason(reason), node)
                )

    def run_spare(self, *_: object) -> SpareRunResult:
        raise AssayError("nothing is lent here")


def _jobs(job: str) -> tuple[CustomerJob, ...]:
    return (CustomerJob(job, "train", "lab", "2026-11-21T00:00:00+00:00"),) if job else ()


class Deed:
    """Something done to a node that must not be done twice: a reboot, a power cycle, a zap. Proved by their number.

    The part `refused` of its orders comes to nothing, and as many questions for it have no answer.
    """

    patience_s = 0.0

    def __init__(self, world: World, what: str, chance: random.Random, refused: float) -> None:
        self.world, self.what, self.chance, self.refused = world, what, chance, refused

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {"deeds": self.world.deeds(intent.node)}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        """Do it; nothing but our caller keeps it from being done twice, but where children do it. It may be refused."""
        if self.chance.random() < self.refused:
            raise AssayError("the BMC is busy")
        if intent.node.endswith("3"):  # always: only deeds that all ask the same lock and guard may be orphaned
            self._by_a_child(ctx, intent)
        else:
            self.world.do(intent.node, self.what, intent.effect)

    def _by_a_child(self, ctx: ActionContext, intent: EffectIntent) -> None:
        before = str(intent.before["deeds"])
        words = [ctx.home / "locks" / intent.node, self.world.file, intent.node, self.what, intent.effect, before]
        subprocess.run([sys.executable, "-S", "-c", CHILD, *map(str, words)], check=True)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        if self.chance.random() < self.refused:
            raise AssayError("no answer within 5 s")
        before, now = intent.before.get("deeds"), self.world.deeds(intent.node)
        if before is None:
            return EffectVerification(None, "what was before was never read")
        return EffectVerification(now > before, f"{before} deeds before, {now} now")


class Nothing:
    """An action of which nothing can be seen in this world: a dossier, what is collected, a wipe."""

    patience_s = 0.0

    def before(self, *_: object) -> EffectFacts:
        return {}

    def run(self, *_: object) -> None:
        pass

    def verify(self, *_: object) -> EffectVerification:
        return EffectVerification(True, "written")


class DrainNow:
    """drain-now by the scheduler's word alone: nobody can ask these nodes for their processes."""

    patience_s = 0.0

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {"jobs": [str(job) for job in ctx.scheduler(intent.node).list_jobs(intent.node)]}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        ctx.scheduler(intent.node).drain(intent.node, intent.reason, now=True)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        standing = ctx.scheduler(intent.node).read_statuses([intent.node])[intent.node]
        return EffectVerification(bool(standing.cordon) and not standing.jobs, f"{standing}")

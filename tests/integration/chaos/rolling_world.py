"""A world whose nodes have firmware, with one journal of all that happens to them, in its order.

The journal has what was flashed, which failures were planted, and the scheduler's own log of cordons. Nothing here
keeps a controller from doing something twice.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.model.cordon_ownership import is_our_reason, prefix_reason
from assay.model.errors import AssayError
from tests.integration.chaos.chaos_world import Scheduler, World

TABLES = """
CREATE TABLE firmware (node TEXT PRIMARY KEY, versions TEXT, plant TEXT DEFAULT '', times INTEGER DEFAULT 0);
CREATE TABLE event (id INTEGER PRIMARY KEY, node TEXT, what TEXT, detail TEXT, effect TEXT);
"""
Versions = Mapping[str, str]
FAILURES = ("refused", "stuck", "hot")
"""What can be planted: the BMC refuses orders, or takes one without effect, or the node is too hot after it."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a node: see RollingWorld. `effect` is the id of the effect that did it, or ""."""

    node: str
    what: str
    detail: str = ""
    effect: str = ""


class RollingWorld(World):
    """Nodes with firmware.

    Its events, with their details: `flash` (component and version), then `reset` (all versions), even if nothing was
    flashed; a planted failure that came true; `by hand` (all versions, by a technician); `cordon`, `uncordon` (the
    reason).
    """

    def install(self, names: Iterable[str], versions: Versions) -> None:
        """Make the nodes, with these versions of their firmware."""
        self.make(names := list(names))
        with sqlite3.connect(self.file) as database:
            database.executescript(TABLES)
            rows = [(name, encode(versions)) for name in names]
            database.executemany("INSERT INTO firmware (node, versions) VALUES (?, ?)", rows)

    def plant(self, node: str, failure: str, times: int = 1) -> None:
        """Let the next flashes of a node fail, `times` of them."""
        with self.open() as world:
            world.execute("UPDATE firmware SET plant = ?, times = ? WHERE node = ?", (failure, times, node))

    def versions(self) -> dict[str, dict[str, str]]:
        with self.open() as world:
            rows = world.execute("SELECT node, versions FROM firmware").fetchall()
        return {node: json.loads(versions) for node, versions in rows}

    def events(self) -> list[Event]:
        with self.open() as world:
            return [Event(*row) for row in world.execute("SELECT node, what, detail, effect FROM event ORDER BY id")]

    def done(self) -> list[tuple[str, str, str]]:
        """Return each effect that reset its node, once, since it may bring the versions of a later merge too."""
        return list(dict.fromkeys((one.node, "zap", one.effect) for one in self.events() if one.what == "reset"))

    def flash(self, node: str, effect: str, versions: Versions, before: Versions) -> None:
        """Flash the components that had other versions `before`, as a playbook that has read them; then reset."""
        with self.open() as world:
            failure = _take_plant(world, node)
            if failure:
                _note(world, Event(node, failure, "", effect))
            if failure in ("refused", "stuck"):
                return
            ((job,),) = world.execute("SELECT job FROM node WHERE name = ?", (node,))
            for component, version in versions.items():
                if before[component] != version:
                    _note(world, Event(node, "flash", f"{component} {version}", effect))
            _note(world, Event(node, "reset", encode(versions), effect))
            if job:
                _note(world, Event(node, "disturbed", job, effect))
            world.execute("UPDATE firmware SET versions = ? WHERE node = ?", (encode(versions), node))
            world.execute("UPDATE node SET deeds = deeds + 1, ill = ? WHERE name = ?", (failure, node))

    def repair(self, node: str, versions: Versions) -> None:
        """Let a technician mend a node and bring its firmware there by hand."""
        with self.open() as world:
            _note(world, Event(node, "by hand", encode(versions)))
            world.execute("UPDATE firmware SET versions = ?, plant = '' WHERE node = ?", (encode(versions), node))
            world.execute("UPDATE node SET ill = '' WHERE name = ?", (node,))

    def has_refused(self, node: str, effect: str, since: int) -> bool:
        """Whether the BMC has refused an order of this effect, after so many events of the node."""
        return any(one.what == "refused" and one.effect == effect for one in self._of(node)[since:])

    def count(self, node: str) -> int:
        return len(self._of(node))

    def _of(self, node: str) -> list[Event]:
        return [one for one in self.events() if one.node == node]


def encode(versions: Versions) -> str:
    return json.dumps(dict(sorted(versions.items())))


def _note(world: sqlite3.Connection, event: Event) -> None:
    told = (event.node, event.what, event.detail, event.effect)
    world.execute("INSERT INTO event (node, what, detail, effect) VALUES (?, ?, ?, ?)", told)


def _take_plant(world: sqlite3.Connection, node: str) -> str:
    ((failure, times),) = world.execute("SELECT plant, times FROM firmware WHERE node = ?", (node,))
    rest = max(0, times - 1)
    left = failure if rest else ""
    world.execute("UPDATE firmware SET plant = ?, times = ? WHERE node = ?", (left, rest, node))
    return str(failure)


class LoggingScheduler(Scheduler):
    """The world's scheduler, which writes down each cordon that it took and each that it lifted."""

    world: RollingWorld

    def uncordon(self, node: str) -> None:
        with self.world.open() as world:
            ((reason,),) = world.execute("SELECT cordon FROM node WHERE name = ?", (node,))
            if is_our_reason(reason):
                self._lift(world, node, reason)

    def open_by_hand(self, node: str) -> None:
        """Lift whatever cordon there is, as an administrator does."""
        with self.world.open() as world:
            ((reason,),) = world.execute("SELECT cordon FROM node WHERE name = ?", (node,))
            if reason and not is_our_reason(reason):
                self._lift(world, node, reason)

    def _lift(self, world: sqlite3.Connection, node: str, reason: str) -> None:
        world.execute("UPDATE node SET cordon = '' WHERE name = ?", (node,))
        _note(world, Event(node, "uncordon", reason))

    def cordon_many(self, reasons: Mapping[str, str]) -> None:
        for node, reason in reasons.items():
            self._close(node, prefix_reason(reason))

    def close_by_hand(self, node: str, reason: str) -> None:
        """Cordon a node as an administrator does."""
        self._close(node, reason)

    def _close(self, node: str, reason: str) -> None:
        with self.world.open() as world:
            ((before,),) = world.execute("SELECT cordon FROM node WHERE name = ?", (node,))
            if not before:
                world.execute("UPDATE node SET cordon = ? WHERE name = ?", (reason, node))
                _note(world, Event(node, "cordon", reason))


class Flash:
    """The action zap on this world: it takes a moment, and is proved by the versions that it reads."""

    patience_s = 0.0
    undone_by = ""
    TAKES_S = 0.1

    def __init__(self, world: RollingWorld) -> None:
        self.world = world

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {"firmware": self.world.versions()[intent.node]}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        """Flash what differs from the bundle of the controller's fleet when it begins, as a playbook does."""
        before, seen = self.world.versions()[intent.node], self.world.count(intent.node)
        time.sleep(self.TAKES_S)
        self.world.flash(intent.node, intent.effect, _wanted(ctx, intent.node), before)
        if self.world.has_refused(intent.node, intent.effect, seen):
            raise AssayError("the BMC is busy")
        time.sleep(self.TAKES_S)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        seen, wanted = self.world.versions()[intent.node], _wanted(ctx, intent.node)
        return EffectVerification(seen == wanted, f"{seen}, wanted {wanted}", {"firmware": seen})


def _wanted(ctx: ActionContext, node: str) -> dict[str, str]:
    return {component.name: component.version for component in ctx.fleet.bundle_of(node).components}

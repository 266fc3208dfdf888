"""A controller of its own, on a ledger that it shares: it acts on what falls to it until nothing is left open.

The world is a folder in which each deed leaves a line, so that a second one is seen. A deed is done by a child that
outlives its controller, as ansible-playbook does.
"""

# ruff: noqa: T201 — a stand-in has the shape of the real thing; the program answers on stdout
from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.act.effects import dbos_workflows
from assay.act.effects import pending_effect_runner as acting
from assay.act.loop.context import ControllerContext
from assay.act.loop.rack_leases import hold_rack_assignment
from assay.decide.state.node_projection import project_node_states
from assay.declare.loader import load_fleet
from assay.ledger.leases import NodeLeaseHolder
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.model.specs.policy_sections import EffectRetryPolicy
from assay.observe.evidence_store import EvidenceStore
from tests.support.places import ROOT

CHILD = """
import sys, time
from pathlib import Path
from assay.ledger.file_locks import hold_node_lock
home, node, file, seconds = sys.argv[1:]
with hold_node_lock(Path(home), node, 60):
    time.sleep(float(seconds))
    with open(file, "a") as world:
        world.write("x")
"""


class Counted:
    """Leaves a mark in the world, by a child; a second deed would leave a second one."""

    patience_s = 0.0

    def __init__(self, world: Path, seconds: float) -> None:
        self.world, self.seconds = world, seconds

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        (self.world / f"{intent.node}.begun").write_text(str(os.getpid()))
        file = str(self.world / intent.node)
        command = [sys.executable, "-c", CHILD, str(ctx.home), intent.node, file, str(self.seconds)]
        subprocess.run(command, check=True)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        done = (self.world / intent.node).exists()
        return EffectVerification(done, "it left its mark" if done else "there is no mark of it")


def fleet_of(root: Path, racks: int, nodes: int, deadline_s: float, at_once: int) -> Fleet:
    """Return this repository's policies over some nodes in some racks."""
    real = load_fleet(ROOT)
    names = [f"n{number:04}" for number in range(nodes)]
    some = {name: Node(name, "h100-a", "s1", f"r{i % racks}", i, "", "", "") for i, name in enumerate(names)}
    policy = next(iter(real.policies.values()))
    paced = policy.limits.model_copy(
        update={"effects_at_once": policy.limits.effects_at_once.model_copy(update={"pool": at_once, "rack": at_once})}
    )
    told = policy.model_copy(
        update={"limits": paced, "effects": {"zap": EffectRetryPolicy(deadline_minutes=deadline_s / 60)}}
    )
    return replace(real, root=root, nodes=some, policies={told.name: told})


def desk_of(root: Path, url: str, asked: dict[str, float]) -> ControllerContext:
    """Return the desk of such a fleet, with its own `.assay/`."""
    home = root / ".assay"
    home.mkdir(parents=True, exist_ok=True)
    fleet = fleet_of(root, int(asked["racks"]), int(asked["nodes"]), asked["deadline_s"], int(asked["at_once"]))
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    store = EvidenceStore(home / "evidence")
    return ControllerContext(fleet, Ledger.open(url), store, SystemClock(), home, root / "reports", progress=tell)


def open_(desk: ControllerContext) -> list[str]:
    """Return the nodes whose effect has not ended."""
    stories = project_node_states(desk.ledger.entries()).values()
    return [story.node for story in stories if not any(e.standing == "verified" for e in story.effects)]


def main(root: Path, url: str, asked: dict[str, float]) -> None:
    """Look after what falls to us until nothing is open."""
    dbos_workflows.load_action = lambda name: Counted(root.parent / "world", asked["seconds"])
    if asked.get("elsewhere"):  # as another machine would be
        NodeLeaseHolder.of_this_process = classmethod(
            lambda cls, home: cls("elsewhere", os.getpid(), str(home), "another place")
        )  # type: ignore[method-assign]
    desk = desk_of(root, url, asked)
    (root / "ready").touch()
    while asked.get("waits") and not (root.parent / "go").exists():
        time.sleep(0.02)
    with hold_rack_assignment(desk, lease_s=asked["lease_s"]) as share:
        while left := open_(desk):
            acting.run_effects(desk, share.select_assigned(left), wait=False)
            time.sleep(0.1)
    print("nothing is open")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))

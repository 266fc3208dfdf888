"""A world of one number, and an action that raises it: small enough to be killed anywhere. Also a program, for that."""

# ruff: noqa: T201 — a stand-in has the shape of the real thing; the program answers on stdout
from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from assay.act.actions.action import ActionContext, EffectFacts, EffectIntent, EffectVerification
from assay.adapters.scheduler import load_scheduler_adapter
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import AssayError
from assay.model.fleet import Fleet
from assay.model.node import Node
from assay.observe.evidence_store import EvidenceStore
from tests.support.trusted import trusted_policies


class Switch:
    """Raises the level by one, as often as it is run; done when the level is above what it was before."""

    patience_s = 0.0

    def __init__(self, home: Path, *, works=True, dark=False, bug=False, says="", hang="never") -> None:
        self.home, self.works, self.dark, self.bug, self.says, self.hang = home, works, dark, bug, says, hang

    def level(self) -> int:
        path = self.home / "level"
        return int(path.read_text()) if path.exists() else 0

    def runs(self) -> int:
        path = self.home / "runs"
        return path.read_text().count("x") if path.exists() else 0

    def before(self, ctx: ActionContext, intent: EffectIntent) -> EffectFacts:
        return {"level": self.level()}

    def run(self, ctx: ActionContext, intent: EffectIntent) -> None:
        self._hang("before")
        with (self.home / "runs").open("a") as runs:
            runs.write("x")
        if self.works:
            (self.home / "level").write_text(str(intent.before.get("level", 0) + 1))
        self._hang("during")
        if self.says:
            raise AssayError(self.says)

    def verify(self, ctx: ActionContext, intent: EffectIntent) -> EffectVerification:
        if self.bug:
            return EffectVerification(bool(1 / 0), "")
        if self.dark:
            raise AssayError("no answer within 5 s")
        done = self.level() > intent.before["level"]
        if done:
            self._hang("after")
        return EffectVerification(done, f"the level is {self.level()}")

    def _hang(self, moment: str) -> None:
        if self.hang == moment:
            (self.home / "hanging").touch()
            time.sleep(60)


def context(home: Path) -> ActionContext:
    """Return a context of nothing but a ledger, a clock and a folder."""
    return ActionContext(
        fleet=Fleet(home, {"n0001": Node("n0001", "h100", "s1", "r1", 1, "", "", "")}, policies=trusted_policies()),
        ledger=Ledger.open(home / "ledger.sqlite"),
        clock=SystemClock(),
        home=home,
        reports=home / "reports",
        workloads=load_scheduler_adapter,
        evidence=EvidenceStore(home / "evidence"),
        progress=lambda line: None,
    )


def replace_tell(ctx: ActionContext, tell) -> ActionContext:
    """Return the context with another listener."""
    return replace(ctx, progress=tell)


def main(home: Path, hang: str) -> None:
    """Take up what was left, or carry the effect e1."""
    from assay.act.effects import dbos_workflows
    from assay.act.effects.workflow_queues import QueueLimits, format_queue_name

    dbos_workflows.load_action = lambda name: Switch(home, hang=hang, dark=hang == "dark")
    ctx = context(home)
    with dbos_workflows.hold_engine(ctx, [QueueLimits(format_queue_name("h100"), 4, 4, 1000)]):
        left = dbos_workflows.find_running_workflows(["e1"]).get("e1", "")
        dbos_workflows.wait_for_any_workflow(
            ctx, [left or dbos_workflows.enqueue_effect(ctx, EffectIntent("e1", "reboot", "n0001", "d1", "because"))]
        )
    print(json.dumps({"left": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

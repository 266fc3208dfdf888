"""A world of one number, and an action that raises it: small enough to be killed anywhere. Also a program, for that."""

# ruff: noqa: T201 — a stand-in has the shape of the real thing; the program answers on stdout
from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

from assay.actions.action import Context, Facts, Intent, Verification
from assay.actions.workloads import workloads_of
from assay.ledger.store import Ledger
from assay.model.clock import SystemClock
from assay.model.errors import Trouble
from assay.model.fleet import Fleet, Node
from assay.observe.store import EvidenceStore


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

    def before(self, ctx: Context, intent: Intent) -> Facts:
        return {"level": self.level()}

    def run(self, ctx: Context, intent: Intent) -> None:
        self._hang("before")
        with (self.home / "runs").open("a") as runs:
            runs.write("x")
        if self.works:
            (self.home / "level").write_text(str(intent.before.get("level", 0) + 1))
        self._hang("during")
        if self.says:
            raise Trouble(self.says)

    def verify(self, ctx: Context, intent: Intent) -> Verification:
        if self.bug:
            return Verification(bool(1 / 0), "")
        if self.dark:
            raise Trouble("no answer within 5 s")
        done = self.level() > intent.before["level"]
        if done:
            self._hang("after")
        return Verification(done, f"the level is {self.level()}")

    def _hang(self, moment: str) -> None:
        if self.hang == moment:
            (self.home / "hanging").touch()
            time.sleep(60)


def context(home: Path) -> Context:
    """Return a context of nothing but a ledger, a clock and a folder."""
    return Context(
        fleet=Fleet(home, {"n0001": Node("n0001", "h100", "s1", "r1", 1, "", "", "")}),
        ledger=Ledger.open(home / "ledger.sqlite"),
        clock=SystemClock(),
        home=home,
        reports=home / "reports",
        workloads=workloads_of,
        evidence=EvidenceStore(home / "evidence"),
        tell=lambda line: None,
    )


def replace_tell(ctx: Context, tell) -> Context:
    """Return the context with another listener."""
    return replace(ctx, tell=tell)


def main(home: Path, hang: str) -> None:
    """Take up what was left, or carry the effect e1."""
    from assay.controller.effects import durable
    from assay.controller.effects.queues import Pace, queue_of

    durable.action = lambda name: Switch(home, hang=hang, dark=hang == "dark")
    ctx = context(home)
    with durable.durable(ctx, [Pace(queue_of("h100"), 4, 4, 1000)]):
        left = durable.under_way("e1")
        durable.wait_for_any(ctx, [left or durable.carry(ctx, Intent("e1", "reboot", "n0001", "d1", "because"))])
    print(json.dumps({"left": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

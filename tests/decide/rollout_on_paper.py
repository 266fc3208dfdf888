"""A rollout of the fleet on paper: what is decided is written down, as the controller does it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from assay.decide.moves.blast_radius_limits import is_out_of_service
from assay.decide.rollouts.decide_rollouts import RolloutStep, decide_rollouts, make_rollout_entries
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory
from assay.decide.state.fleet_snapshot import FleetSnapshot, NodeSnapshot
from assay.model.entries.rollouts import RolloutGroup, RolloutStartedEntry
from assay.model.ledger_entry import LedgerEntry
from assay.model.specs.schedules import RolloutRules


class RolloutOnPaper:
    """One fleet with rollouts. `paper` is the fleet."""

    def __init__(self, paper: Any, **rules: Any) -> None:
        self.paper = paper
        paper.policy = paper.policy.model_copy(update={"rollouts": RolloutRules(**rules)})
        paper.situation = self._situation(paper.situation)
        self.count = 0

    def _situation(self, build: Any) -> Any:
        def situation(*views: NodeSnapshot, **more: Any) -> FleetSnapshot:
            active = self.history.find_active()
            running = frozenset([active.id]) if active and active.status == "running" else frozenset()
            rolling = active.unproven if active else frozenset()
            return build(*views, running_rollouts=running, rolling_nodes=rolling, **more)

        return situation

    @property
    def history(self) -> RolloutHistory:
        return ROLLOUTS.fold(self.paper.log.values())

    @property
    def rollout(self) -> Rollout:
        return list(self.history.rollouts.values())[-1]

    def start(self, nodes: Collection[str], to: str = "zap", under_way: Collection[str] = ()) -> str:
        self.count += 1
        ident = f"rollout{self.count}"
        groups = [RolloutGroup(to, "bmc 1 → 2", "a" * 40, tuple(name for name in nodes if name not in under_way))]
        groups += [RolloutGroup(to, "bmc 1 → 2", "a" * 40, tuple(under_way), "replaced")] if under_way else []
        entry = RolloutStartedEntry(ident, "a" * 40, "b" * 40, tuple(groups))
        self.paper.write(entry.make_entry(ident, self.paper.now.isoformat()))
        return ident

    def say(self, kind: str, **body: Any) -> None:
        self.count += 1
        body = {"rollout": self.rollout.id, "who": "ann", "reason": "as planted", **body}
        self.paper.write(LedgerEntry(f"{kind}-{self.count}", self.paper.now.isoformat(), kind, "", body))

    def look(self) -> RolloutStep:
        return decide_rollouts(self.paper.situation(), self.rollout)

    def advance(self) -> RolloutStep:
        """Decide about the rollout once, and write down what was decided."""
        step, rollout = self.look(), self.rollout
        if rollout.is_active:
            self.paper.write(*make_rollout_entries(rollout, step, self.paper.now))
            self.paper.later(seconds=1)
        return step

    def turn(self, failing: Collection[str] = ()) -> None:
        """Let the controller go round once: orders, decisions, effects and suites."""
        self.advance()
        self.paper.step()
        for name in self.paper.nodes:
            if name in failing and self.paper.story(name).state == "zap":
                self._fail_zap(name)
            else:
                self.paper.settle(name)
            self.paper.pass_all(name)
        self.paper.step()

    def days(self, count: int, failing: Collection[str] = ()) -> None:
        """Let days pass. On each, a wave may come back from its burn-in, and another one leave for it."""
        for _ in range(count):
            for _ in range(5):
                self.turn(failing)
            self.paper.later(hours=25)
            self.turn(failing)

    def _fail_zap(self, name: str) -> None:
        story = self.paper.story(name)
        if not story.find_effect(story.decision, "zap"):
            self.paper.effect(name, "failed", story.decision, "zap", "the BMC refused the image")

    def states(self) -> dict[str, str]:
        return {name: self.paper.story(name).state for name in self.paper.nodes}

    def out(self) -> set[str]:
        return {name for name, state in self.states().items() if state != "production"}

    def counted_out(self) -> set[str]:
        """Return the nodes that automation has out of service, as limits count them."""
        policy, stories = self.paper.policy, self.paper.stories()
        return {name for name, story in stories.items() if is_out_of_service(policy, story)}

    def kinds(self) -> dict[str, str]:
        return {one.node: one.kind for one in self.look().progress}

    def order_entries(self) -> list[LedgerEntry]:
        return [entry for entry in self.paper.log.values() if entry.kind == "move" and entry.body.get("rollout")]

    def orders(self) -> list[str]:
        return [entry.node for entry in self.order_entries()]

    def proofs(self, rollout: str) -> list[LedgerEntry]:
        entries = (entry for entry in self.paper.log.values() if entry.kind == "rollout.proven")
        return [entry for entry in entries if entry.body["rollout"] == rollout]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:02}" for number in range(count)]

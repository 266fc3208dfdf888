"""Four small nodes in a real git repository, on a real ledger; effects and checks are faked, decisions are real."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

from assay.act.loop.context import ControllerContext
from assay.act.loop.plan_inputs import load_earlier_revisions, load_facts_at, load_plan_revisions
from assay.act.loop.reconcile_pass import record_decisions
from assay.act.loop.snapshot import FleetSnapshotCache
from assay.act.rollouts.commit_adoption import take_up_fleet
from assay.act.tickets.ticket_updates import update_tickets
from assay.decide.plan.change_plan import make_change_plan
from assay.decide.plan.inputs import NO_FACTS, FleetFacts
from assay.decide.plan.review import PlanContent
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory
from assay.decide.state.decision_and_fault_entries import make_enrolled_entry
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.declare.loader import load_fleet
from assay.declare.spec_values_read_by_checks import JudgingHashes
from assay.fabric.design.node_cables import digest_node_cables
from assay.ledger.store import Ledger
from assay.model.entries.node_entries import MoveEntry
from assay.model.evidence import EvidenceBasis
from assay.model.ledger_entry import LedgerEntry, derive_id
from assay.model.outcome import Outcome, SuiteRun
from assay.model.timestamps import format_time
from assay.observe.evidence_store import EvidenceStore
from assay.validate.runs.subjects import list_declared_outcomes
from tests.act.quiet_site import Far, Hands
from tests.support.signed_fleet import ROLLOUT_POLICY, SignedFleet

ZAP = "zap: {summary: firmware, entry: [zap], pass_to: test, effect_failed_to: triage}"
PROVED_ZAP = """zap:
    summary: firmware
    entry: [zap]
    requires: [{phase: production, fresh_hours: 24}]
    pass_to: test
    fail_to: triage
    effect_failed_to: triage"""
POLICY = f"""{ROLLOUT_POLICY.replace(ZAP, PROVED_ZAP)}
limits: {{pool_percent: 50, rack_concurrent: 2, reboots_per_hour: 9}}
breaker: {{percent: 50, min_nodes: 3, window_minutes: 5, drift: [gpu.hot]}}
"""
PLACE = "site: lab, rack: r{0}, u: {0}, serial_number: S{0}, bmc_address: 10.0.0.{0}"
NODE = f"{{{{node_spec: small, profile: managed, {PLACE}}}}}"


class RollingFleet:
    """The repository at `root`, and a controller that works with its commits."""

    def __init__(self, root: Path, keys: Path) -> None:
        self.git, self.clock, self.far, self.serial = SignedFleet(root, keys), Hands(), Far(), itertools.count()
        self.git.lay_out()
        self.git.write("specs/policy.yaml", POLICY)
        profile = self.git.text("specs/profile.yaml")
        self.git.write("specs/profile.yaml", profile.replace("[reboot]", "[cordon, uncordon, drain-now, zap, ticket]"))
        hosts = "".join(f"    n{one}: {NODE.format(one)}\n" for one in range(1, 5))
        self.git.write("inventory/pool.yml", f"pool-a:\n  hosts:\n{hosts}")
        self.ledger = Ledger.open(root / ".assay" / "ledger.sqlite")
        self.told: list[str] = []
        self.versions = defaultdict(lambda: "1")
        """The firmware that each node has: what was declared at its last zap. Where that differs, `gpu.hot` fails."""
        self.ledger.append(
            *(make_enrolled_entry(f"n{one}", "pool-a", "production", self.clock.at, f"S{one}") for one in range(1, 5))
        )

    def set_version(self, version: str) -> str:
        """Merge another version of the firmware; return the commit."""
        bundle = self.git.text("specs/bundle.yaml").splitlines()
        lines = [f'    version: "{version}"' if line.strip().startswith("version:") else line for line in bundle]
        self.git.write("specs/bundle.yaml", "\n".join(lines) + "\n")
        return self.git.commit()

    def context(self) -> ControllerContext:
        root, home = self.git.root, self.git.root / ".assay"
        store = EvidenceStore(home / "evidence")
        return ControllerContext(
            load_fleet(root),
            self.ledger,
            store,
            self.clock,
            home,
            root / "reports",
            lambda _: self.far,
            self.told.append,
        )

    def add_rules(self, rules: str) -> None:
        """Put a section `rollouts` into the policy, without a commit."""
        self.git.write("specs/policy.yaml", POLICY + f"rollouts: {rules}\n")

    def plan(self, base: str, head: str = "", facts: FleetFacts = NO_FACTS) -> PlanContent:
        """Return what the plan between two commits decides."""
        root = self.git.root
        earlier = load_earlier_revisions(root, facts, head)
        return make_change_plan(*load_plan_revisions(root, base, head), facts, earlier).content

    def facts(self) -> FleetFacts:
        """Return what the ledger says now."""
        return load_facts_at(self.ledger, load_fleet(self.git.root), self.ledger.head(), self.clock.at)

    def move(self, node: str, origin: str, target: str) -> None:
        """Let a person move a node."""
        body = {"from": origin, "to": target, "who": "ann", "reason": "as planted"}
        ident = f"move-{next(self.serial)}"
        self.ledger.append(LedgerEntry(ident, format_time(self.clock.at), "transition", node, body))

    def order(self, node: str, to: str) -> None:
        """Let a person order a node into a state, in the policy's way."""
        ordered = MoveEntry(to, "ann", "as planted")
        self.ledger.append(ordered.make_entry(f"move-{next(self.serial)}", format_time(self.clock.at), node))

    def add_node(self, number: int) -> None:
        """Add a node to the inventory, without a commit."""
        inventory = self.git.text("inventory/pool.yml")
        self.git.write("inventory/pool.yml", f"{inventory}    n{number}: {NODE.format(number)}\n")

    def take_up(self) -> None:
        take_up_fleet(self.context())

    def take_up_twice_at_once(self) -> None:
        """Let two controllers adopt the commit at the same time."""
        both, gate = [self.context(), self.context()], Barrier(2)

        def adopt(context: ControllerContext) -> None:
            gate.wait()
            take_up_fleet(context)

        threads = [Thread(target=adopt, args=[context]) for context in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def turn(self, failing: str = "") -> None:
        """Let a controller that has just started go once round."""
        context = self.context()
        take_up_fleet(context)
        memory = FleetSnapshotCache(context)
        record_decisions(memory)
        for name in context.fleet.nodes:
            self._settle(memory, name, "failed" if name == failing else "verified")
            self._judge(memory, name)
        self.clock.at += timedelta(minutes=1)

    def _settle(self, memory: FleetSnapshotCache, name: str, zap: str) -> None:
        state = memory.node_states()[name]
        for one in list_outstanding_effects(memory.context.policy, state):
            effect, at = derive_id(one.decision, one.action), format_time(self.clock.at)
            standing = zap if one.action == "zap" else "verified"
            if (one.action, standing) == ("zap", "verified"):
                self.versions[name] = self._declared
            about = {"effect": effect, "action": one.action, "decision": one.decision, "reason": "", "facts": {}}
            begun = LedgerEntry(effect, at, "effect.intent", name, about | {"before": {}, "params": {}})
            self.ledger.append(begun, LedgerEntry(derive_id(effect, standing), at, f"effect.{standing}", name, about))

    @property
    def _declared(self) -> str:
        return self.git.text("specs/bundle.yaml").partition('version: "')[2].partition('"')[0]

    def _judge(self, memory: FleetSnapshotCache, name: str) -> None:
        fleet, at = memory.context.fleet, self.clock.at.isoformat()
        hashes, basis = JudgingHashes(fleet, digest_node_cables).of_node(name), EvidenceBasis(self.ledger.head())
        told = [
            Outcome(
                check.id, str(subject), name,
                "fail" if check.fault == "gpu.hot" and self.versions[name] != self._declared else "pass",
                fault=check.fault, phases=tuple(check.phases), evidence_at=at, basis=basis,
                judged_by=hashes.get(check.id, ""),
            )
            for check, subject in list_declared_outcomes(fleet, name, ["production"])
        ]  # fmt: skip
        self.ledger.record(SuiteRun(f"run-{next(self.serial)}", at), told)

    @property
    def history(self) -> RolloutHistory:
        return ROLLOUTS.fold(self.ledger.entries(kinds=ROLLOUTS.kinds))

    @property
    def rollout(self) -> Rollout:
        return list(self.history.rollouts.values())[-1]

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.ledger.entries(kinds=ROLLOUTS.kinds)]

    def states(self) -> dict[str, str]:
        return {name: state.state for name, state in FleetSnapshotCache(self.context()).node_states().items()}

    def moves(self, node: str) -> list[str]:
        """Return the states that a node came to."""
        return [entry.body["to"] for entry in self.ledger.entries(node, kinds=["transition"])]

    def tickets(self, what: str) -> list[Mapping[str, Any]]:
        """Bring the tickets up to date; return all that were opened or closed."""
        update_tickets(self.context())
        return [entry.body for entry in self.ledger.entries(kinds=[f"ticket.{what}"])]

    def say(self, kind: str, **body: str) -> None:
        body = {"rollout": self.rollout.id, "who": "ann", "reason": "as planted", **body}
        self.ledger.append(LedgerEntry(f"{kind}-{next(self.serial)}", format_time(self.clock.at), kind, "", body))

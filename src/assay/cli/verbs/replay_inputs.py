"""What `assay replay` reads: a history, policies, the fleet around them, and the cost assumptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.surrounding_fleet import load_surrounding_fleet
from assay.model.errors import AssayError

if TYPE_CHECKING:
    from assay.decide.replay.fault_history import FaultHistory
    from assay.decide.replay.policy_costs import CostModel
    from assay.decide.replay.replay_nodes import ReplayRules
    from assay.decide.replay.replay_result import ReplayResult
    from assay.model.fleet import Fleet
    from assay.model.node import Node


@dataclass(frozen=True)
class ReplayInputs:
    """Everything but the policy."""

    fleet: Fleet
    nodes: dict[str, Node]
    history: FaultHistory
    costs: CostModel

    def load_rules(self, policy: Path) -> ReplayRules:
        """Return the rules of a policy file. Raises AssayError if it cannot be read."""
        from assay.act.loop.replay_durations import list_replay_durations
        from assay.decide.replay.replay_nodes import ReplayRules
        from assay.declare.policy_file import read_policy

        read = read_policy(policy, self.fleet.root)
        catalog, profiles = self.fleet.fault_catalog, self.fleet.profiles
        return ReplayRules(read.policy, catalog, profiles, list_replay_durations(), read.lines)

    def run(self, rules: ReplayRules) -> ReplayResult:
        """Replay the history under the policy of the rules."""
        from assay.decide.replay.replay_nodes import collect_replay_nodes
        from assay.decide.replay.simulator import run_replay

        cast = collect_replay_nodes(self.nodes, self.history.events, rules)
        return run_replay(rules, cast, self.history.events)


def load_replay_inputs(fleet: Path | None, events: Path) -> ReplayInputs:
    """Read the history and the fleet around it. Raises AssayError."""
    from assay.decide.replay.policy_costs import CostModel
    from assay.declare.starter.shipped_specs import find_cost_assumptions

    surrounding, nodes = load_surrounding_fleet(fleet)
    history = _read_history_file(events)
    assumptions, where = find_cost_assumptions(surrounding)
    return ReplayInputs(surrounding, nodes, history, CostModel(assumptions, where, history.says_use))


def _read_history_file(file: Path) -> FaultHistory:
    from assay.decide.replay.fault_history import read_history

    try:
        with file.open("rb") as lines:
            return read_history(lines, str(file))
    except OSError as error:
        fix = "name a file of events"
        raise AssayError(f"cannot be read: {error.strerror}", where=str(file), fix=fix) from None

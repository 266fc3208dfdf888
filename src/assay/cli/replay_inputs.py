"""What `assay replay` reads: a history, policies, jobs, the fleet around them, and the cost assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from assay.cli.surrounding_fleet import load_surrounding_fleet
from assay.model.errors import AssayError
from assay.model.text_lists import format_count

if TYPE_CHECKING:
    from assay.model.fleet import Fleet
    from assay.model.node import Node
    from assay.model.specs.lifecycle_policy import LifecyclePolicy
    from assay.trends.replay.fault_history import FaultHistory
    from assay.trends.replay.policy_costs import CostModel
    from assay.trends.replay.replay_nodes import ReplayRules
    from assay.trends.replay.replay_result import ReplayResult

FileT = TypeVar("FileT")


@dataclass(frozen=True)
class ReplayInputs:
    """Everything but the policy."""

    fleet: Fleet
    nodes: dict[str, Node]
    history: FaultHistory
    costs: CostModel

    def load_rules(self, policy: Path) -> ReplayRules:
        """Return the rules of a policy file. Raises AssayError if it cannot be read."""
        from assay.controller.replay_durations import list_replay_durations
        from assay.fleet.policy_file import read_policy
        from assay.trends.replay.replay_nodes import ReplayRules

        read = read_policy(policy, self.fleet.root)
        catalog, profiles = self.fleet.fault_catalog, self.fleet.profiles
        return ReplayRules(read.policy, catalog, profiles, list_replay_durations(), read.lines)

    def run(self, rules: ReplayRules, policy: LifecyclePolicy | None = None) -> ReplayResult:
        """Replay the history, under another policy than that of the rules if one is given.

        How large pools are that no inventory knows follows from the rules, so that it is the same for every policy.
        """
        from assay.trends.replay.replay_nodes import collect_replay_nodes
        from assay.trends.replay.simulator import run_replay

        cast = collect_replay_nodes(self.nodes, self.history.events, rules)
        tried = replace(rules, policy=policy) if policy else rules
        return run_replay(tried, cast, self.history.events, self.costs.jobs)


def load_replay_inputs(fleet: Path | None, events: Path, jobs: Path | None) -> ReplayInputs:
    """Read the history, the jobs if there is a file of them, and the fleet around. Raises AssayError."""
    from assay.trends.replay.fault_history import read_history

    surrounding, nodes = load_surrounding_fleet(fleet)
    history = _read_file(events, "name a file of events", lambda lines: read_history(lines, str(events)))
    return ReplayInputs(surrounding, nodes, history, _load_costs(surrounding, history, jobs))


def _load_costs(fleet: Fleet, history: FaultHistory, jobs: Path | None) -> CostModel:
    from assay.starter.shipped_specs import find_cost_assumptions
    from assay.trends.replay.job_file import read_jobs
    from assay.trends.replay.jobs_hit import RecordedJobLoad
    from assay.trends.replay.policy_costs import CostModel, assume_jobs

    assumptions, where = find_cost_assumptions(fleet)
    if jobs is None:
        return assume_jobs(assumptions, where, history.says_use)
    read = _read_file(jobs, "name a file of jobs", lambda lines: read_jobs(lines, str(jobs), history.in_seconds))
    return CostModel(assumptions, RecordedJobLoad(read), f"{format_count(len(read), 'job')} of {jobs}", where)


def _read_file(file: Path, fix: str, read: Callable[[Iterable[bytes]], FileT]) -> FileT:
    try:
        with file.open("rb") as lines:
            return read(lines)
    except OSError as error:
        raise AssayError(f"cannot be read: {error.strerror}", where=str(file), fix=fix) from None

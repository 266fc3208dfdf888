"""Counts outcomes, and dates the oldest passes, from the ledger's tables. Reads only what new runs have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from assay.act.schedules.staleness_sweep import list_judged_phases
from assay.decide.state.node_state import NodeState
from assay.ledger.store import Ledger
from assay.model.fleet import Fleet
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.timestamps import parse_epoch_seconds
from assay.tell.metrics import families
from assay.tell.metrics.family import Series
from assay.tell.metrics.tally import oldest_series

Phases = dict[str, frozenset[str]]
"""The checks of each phase."""


class CheckCounts:
    """The outcomes up to the run number `last`, and the oldest pass of each node in each phase."""

    def __init__(self) -> None:
        self.last = 0
        self._runs, self._last_at_s = 0, 0.0
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._phases: Phases = {}
        self._oldest: dict[str, dict[str, float]] = {}

    def refresh(self, ledger: Ledger, fleet: Fleet) -> None:
        """Read what was recorded since the last call. Other phases, or other checks in them, are read anew."""
        phases = list_phases(fleet)
        if ledger.outcomes_head() == self.last and phases == self._phases:
            return
        nodes = ledger.find_judged_nodes(self.last) if self.last and phases == self._phases else None
        new = ledger.count_outcomes(self.last)
        for (check, verdict), count in new.outcomes.items():
            self._outcomes[find_check_family(check), verdict] += count
        self._runs += new.runs
        if new.last_at:
            self._last_at_s = parse_epoch_seconds(new.last_at)
        self._read_oldest(ledger, phases, nodes)
        self.last, self._phases = new.last, phases

    def _read_oldest(self, ledger: Ledger, phases: Phases, nodes: Collection[str] | None) -> None:
        before = self._oldest if nodes is not None else {}
        found = {phase: ledger.oldest_passes(checks, nodes) for phase, checks in phases.items()}
        self._oldest = {phase: {**before.get(phase, {}), **passes} for phase, passes in found.items()}

    def series(
        self, policy: LifecyclePolicy, states: Iterable[NodeState], pools: Mapping[str, str], now_s: float
    ) -> Iterator[Series]:
        """Yield the series of checks; `states` are the nodes of the inventory, `pools` their pools by name."""
        for labels, count in sorted(self._outcomes.items()):
            yield Series(families.OUTCOMES, labels, count)
        yield Series(families.RUNS, (), self._runs)
        if self._runs:
            yield Series(families.RUN_AGE, (), max(0.0, now_s - self._last_at_s))
        oldest, unproven = list[tuple[tuple[str, str], float]](), Counter[tuple[str, str]]()
        judged: dict[str, list[tuple[str, dict[str, float]]]] = {}
        for state in states:
            if state.unsettled_effects:
                continue
            if state.state not in judged:
                phases = list_judged_phases(policy, state) & self._phases.keys()
                judged[state.state] = [(phase, self._oldest.get(phase, {})) for phase in sorted(phases)]
            for phase, passes in judged[state.state]:
                labels, at_s = (pools[state.node], phase), passes.get(state.node)
                unproven[labels] += at_s is None
                if at_s is not None:
                    oldest.append((labels, at_s))
        yield from oldest_series(families.PASS_OLDEST, oldest, now_s)
        yield from (Series(families.UNPROVEN, labels, count) for labels, count in sorted(unproven.items()))


def find_check_family(check: str) -> str:
    """Return the file of a check below suites/, such as `production/test_gpu`."""
    return check.partition("::")[0].removeprefix("suites/").removesuffix(".py")


def list_phases(fleet: Fleet) -> Phases:
    """Return the checks of each phase."""
    checks = [check for catalog in fleet.check_catalogs.values() for check in catalog.checks]
    phases = {phase for check in checks for phase in check.phases}
    return {phase: frozenset(check.id for check in checks if phase in check.phases) for phase in sorted(phases)}

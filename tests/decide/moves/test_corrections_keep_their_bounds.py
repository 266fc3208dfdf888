"""Whatever a mix of settings, jobs, holds, cordons, rollouts and breakers is like: a correction keeps its bounds."""

from __future__ import annotations

from datetime import timedelta
from itertools import chain
from typing import Any

from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from assay.decide.moves.circuit_breaker import find_new_waves
from assay.decide.state.outstanding_effects import list_outstanding_effects
from assay.model.decision import CORRECTION_REMEDIES, Decision
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.node.declared_settings import SETTING_ROLES, needs_idle_node
from assay.model.timestamps import parse_time

REASONS = {
    "host.sysctls": ("vm.zone_reclaim_mode 1, expected 0", "vm.nr_hugepages 512, expected 0"),
    "host.governor": ("governor powersave, expected performance",),
    "host.services": ("chrony is inactive, expected active", "nvidia-fabricmanager is inactive, expected active"),
    "nics.mtu": ("mtu 1500, expected 9000",),
    "host.kernel": ("kernel 6.5, expected 6.8",),
}
NODES = ("n1", "n2", "n3", "n4")
names = st.sampled_from(NODES)
drifts = st.sampled_from([(path, reason) for path, reasons in REASONS.items() for reason in reasons])
drifting = st.tuples(st.just("drift"), names, drifts)
steps = st.one_of(
    drifting,
    drifting,
    drifting,
    st.tuples(st.just("end"), names, st.just("verified")),
    st.tuples(st.just("mend"), names, st.sampled_from(sorted(REASONS))),
    st.tuples(st.just("end"), names, st.sampled_from(["verified", "failed"])),
    st.tuples(st.just("jobs"), names, st.sampled_from([(), ("job 17",), None])),
    st.tuples(st.just("foreign"), names, st.sampled_from(["", "bob: RAM"])),
    st.tuples(st.sampled_from(["hold", "release", "certified", "roll", "prove", "fault"]), names, st.none()),
    st.tuples(st.just("drift_everywhere"), names, drifts),
    st.tuples(st.just("wave"), names, st.sampled_from(["nvme.slow", "psu.failed"])),
    st.tuples(st.just("later"), names, st.sampled_from([0.05, 0.6, 5, 30])),
)
fights = st.builds(
    lambda name, drift, times: [("drift", name, drift), ("end", name, "verified"), ("later", name, 5)] * times,
    names,
    drifts,
    st.integers(1, 4),
)
obstacles = st.builds(
    lambda name, obstacle, drift: [(obstacle[0], name, obstacle[1]), ("drift", name, drift)],
    names,
    st.sampled_from([("hold", None), ("foreign", "bob: RAM"), ("roll", None), ("jobs", ("job 17",)), ("jobs", None)]),
    drifts,
)
mixes = st.lists(fights | obstacles | steps.map(lambda step: [step]), min_size=5, max_size=25)
policies = st.fixed_dictionaries(
    {
        "at_once": st.sets(st.sampled_from(["host.sysctls", "host.governor", "host.services"]), min_size=1),
        "idle": st.just({"nics.mtu"}) | st.just(set()),
        "times": st.integers(1, 3),
        "window_hours": st.sampled_from([24, 168]),
        "per_hour": st.integers(1, 3),
    }
)


class Mix:
    """A fleet on paper to which things happen. After each, all that was decided is held to its bounds."""

    def __init__(self, paper: Any, rules: dict[str, Any], timing: str, drift: list[str]) -> None:
        lists = {name: sorted(rules[name]) for name in ("at_once", "idle")}
        corrections = paper.policy.corrections.model_copy(update=rules | lists)
        rule = paper.policy.faults["settings-in-production"].model_copy(update={"timing": timing})
        faults = paper.policy.faults | {"settings-in-production": rule}
        breaker = paper.policy.breaker.model_copy(update={"drift": drift})
        paper.policy = paper.policy.model_copy(
            update={"corrections": corrections, "faults": faults, "breaker": breaker}
        )
        self.paper, self.rules, self.timing = paper, corrections, timing
        self.rolling: set[str] = set()
        self.since = {name: paper.now - timedelta(days=1) for name in NODES}
        for path in REASONS:
            ident = f"suites/p.py::test_{path.replace('.', '_')}"
            paper.checks[path] = CheckDeclaration(
                id=ident, subject="node", phases=["production"], fault="host.config.drift"
            )
        for name in NODES:
            paper.add(name)
            paper.jobs[name] = ()
        self._situate()

    def _situate(self) -> None:
        read = {self.paper.checks[path].id: frozenset([path]) for path in REASONS}
        original = type(self.paper).situation
        self.paper.situation = lambda **lines: original(
            self.paper, settings_of_checks=read, rolling_nodes=frozenset(self.rolling), **lines
        )

    def apply(self, what: str, name: str, value: Any) -> None:
        happen = getattr(self, f"_{what}", None)
        if happen:
            happen(name, value)
        else:
            self.paper.say(what, name)
        before = {node: self.paper.view(node) for node in NODES}
        waves = find_new_waves(self.paper.situation())
        for decision in self.paper.step():
            if decision.remedy in CORRECTION_REMEDIES:
                event(decision.remedy)
                self._hold_to_bounds(decision, before[decision.node], waves)
        self._hold_counts()

    def _drift(self, name: str, value: tuple[str, str]) -> None:
        path, reason = value
        self.paper.judge(name, path, "fail", reason)
        if not any(one.fault_class == "host.config.drift" and one.is_open for one in self.paper.story(name).faults):
            self.paper.fault(name, "host.config.drift")

    def _drift_everywhere(self, _: str, value: tuple[str, str]) -> None:
        for name in NODES:
            self._drift(name, value)

    def _mend(self, name: str, path: str) -> None:
        self.paper.judge(name, path)

    def _end(self, name: str, standing: str) -> None:
        for one in list_outstanding_effects(self.paper.policy, self.paper.story(name)):
            self.paper.effect(name, standing, one.decision, one.action)

    def _jobs(self, name: str, jobs: tuple[str, ...] | None) -> None:
        self.paper.jobs[name] = jobs

    def _foreign(self, name: str, reason: str) -> None:
        self.paper.foreign[name] = reason

    def _roll(self, name: str, _: None) -> None:
        self.rolling.add(name)

    def _prove(self, name: str, _: None) -> None:
        self.rolling.discard(name)

    def _fault(self, name: str, _: None) -> None:
        self.paper.fault(name, "gpu.thermal", "gpu3")

    def _wave(self, _: str, reason: str) -> None:
        """Let most nodes of the pool fail at once, so that the breaker opens."""
        for name in NODES:
            self.paper.fault(name, reason)

    def _later(self, _: str, hours: float) -> None:
        self.paper.later(hours=hours)

    def _certified(self, name: str, _: None) -> None:
        self.since[name] = self.paper.now
        self.paper.say("certified", name)

    def _hold_to_bounds(self, decision: Decision, view: Any, waves: Any) -> None:
        reasons = {cause.id: cause.text for cause in decision.causes if cause.kind == "setting"}
        assert reasons
        assert decision.timing == "record", "a correction moves no node"
        assert view.node_state.hold is None
        assert not view.foreign_cordon
        assert decision.node not in self.rolling
        assert not waves, "the breaker of the pool has just opened"
        for path, reason in reasons.items():
            assert path in (*self.rules.at_once, *self.rules.idle), "the policy does not bring it"
            assert SETTING_ROLES[path].applied != "zap"
            if path in self.rules.idle or needs_idle_node(path, reason) or self.timing == "pending":
                assert decision.remedy == "configure-idle"
        if decision.remedy == "configure-idle":
            assert view.jobs == ()

    def _hold_counts(self) -> None:
        """Never more often than `times` in the window, nor than `per_hour` in the fleet, in whatever hour."""
        begun = [(name, one) for name in NODES for one in self.paper.story(name).corrections]
        for name, last in begun:
            end = parse_time(last.at)
            since = max(end - timedelta(hours=self.rules.window_hours), self.since[name])
            for path in last.settings:
                times = [
                    one for node, one in begun if node == name and path in one.settings and since < parse_time(one.at)
                ]
                assert sum(parse_time(one.at) <= end for one in times) <= self.rules.times
            hour = [one for _, one in begun if end - timedelta(hours=1) < parse_time(one.at) <= end]
            assert len(hour) <= self.rules.per_hour


GOVERNOR = ("host.governor", REASONS["host.governor"][0])
GOVERNOR_ONLY = {"at_once": {"host.governor"}, "idle": set[str](), "times": 1, "window_hours": 24, "per_hour": 1}
DRIFT = ["host.config.drift"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@example(rules=GOVERNOR_ONLY, timing="immediate", drift=[], mix=[[("roll", "n1", None), ("drift", "n1", GOVERNOR)]])
@example(rules=GOVERNOR_ONLY, timing="immediate", drift=DRIFT, mix=[[("drift_everywhere", "n1", GOVERNOR)]])
@given(
    rules=policies,
    timing=st.sampled_from(["immediate", "immediate", "pending"]),
    drift=st.sampled_from([[], DRIFT]),
    mix=mixes,
)
def test_a_correction_never_exceeds_what_policy_and_setting_allow(new_paper, rules, timing, drift, mix):
    fleet = Mix(new_paper(), rules, timing, drift)
    for what, name, value in chain.from_iterable(mix):
        fleet.apply(what, name, value)

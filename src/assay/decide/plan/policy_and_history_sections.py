"""Sections of a plan about what will follow: the policy's answers, the backtest, failures that come to count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from assay.decide.plan.change_plan import ChangePlan
from assay.decide.plan.drift_response import DriftResponse
from assay.decide.plan.policy_changes import ResponseChange
from assay.model.backtest_report import PolicyCostPoint
from assay.model.specs.policy_response import PolicyResponse
from assay.model.text.text_lists import format_count, format_list, format_nodes


def format_backtest(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes about which the recorded history would have led to other decisions."""
    test = plan.backtest
    if test is None:
        return
    said = f"{test.days:.3g} days of history: {format_count(test.measurements, 'measurement')} of changed limits"
    lost = f"; of {test.unmapped} nobody can say to which limit they were held" if test.unmapped else ""
    yield f"{said}, {format_count(test.faults, 'fault')}{lost}"
    for acts, title in ((True, "would have acted, and does not now"), (False, "acts now, and would not have")):
        for one in (one for one in test.differences if one.acts == acts):
            still = "; it is still so" if one.still_holds else ""
            times = f", {one.times} times" if one.times > 1 else ""
            yield f"{title}: {one.node}: {one.reason}: {one.old_result} → {one.new_result}{times}{still}"
    if not test.differences:
        yield "on no node would anything have been decided otherwise"


POLICY_COSTS = {
    "node-hours out or cordoned while idle": ("out_node_hours", "cordoned_idle_node_hours"),
    "node-hours served with an open fault": ("catastrophic_node_hours", "degraded_node_hours"),
    "jobs that met a fault": ("catastrophic_jobs", "degraded_jobs"),
    "jobs that automation ended": ("jobs_ended",),
    "hours of people": ("person_hours",),
}
"""What a plan says of the costs of a policy; the JSON has each of them."""


def format_policy_replay(plan: ChangePlan) -> Iterator[str]:
    """Yield what both policies cost on recorded faults, and where old and new value of each number lie."""
    found = plan.policy_replay
    if found is None:
        return
    faults = f"{format_count(found.faults, 'fault')} on {format_count(found.nodes, 'node')}"
    yield f"replay of the last {found.days:g} days, {faults}: {found.note}"
    if found.old_costs:
        yield "\n".join(["old policy → new policy:", *_compare_costs(found.old_costs, found.new_costs)])
    for curve in found.curves:
        points = (f"  {point.value:g}{_mark(point)}: {_format_costs(point.costs)}" for point in curve.points)
        yield "\n".join([f"{curve.path}, with nothing else changed:", *points])


def _compare_costs(old: Mapping[str, float], new: Mapping[str, float]) -> Iterator[str]:
    for title, names in POLICY_COSTS.items():
        was, will = (sum(costs[name] for name in names) for costs in (old, new))
        said = "the same" if was == will else "lower" if will < was else "higher"
        yield f"  {title}: {was:,.1f} → {will:,.1f}, {said}"


def _mark(point: PolicyCostPoint) -> str:
    return f" ({point.revision})" if point.revision else ""


def _format_costs(costs: Mapping[str, float]) -> str:
    return ", ".join(f"{sum(costs[name] for name in names):,.1f} {title}" for title, names in POLICY_COSTS.items())


def format_recounts(plan: ChangePlan) -> Iterator[str]:
    """Yield the nodes on which a failure begins to count, or stops counting."""
    for one in plan.recounts:
        where = (
            f"fails on {format_nodes(one.nodes)} by its last outcomes"
            if one.nodes
            else "fails on no node as far as known"
        )
        yield f"{one.what} {one.why}; {where}"


def format_drift_responses(plan: ChangePlan) -> Iterator[str]:
    """Yield what the policy will do about nodes that no longer match their spec."""
    for one in plan.follows:
        yield f"{format_nodes(one.nodes)} in {one.state}: {_describe_drift_response(one)}"


def _describe_drift_response(one: DriftResponse) -> str:
    seen = f"seen as {one.fault} by {format_list(map(shorten_test_name, one.checks), 2)}"
    said = {
        "rolls": f"{seen}; they wait for their wave, and nobody is asked meanwhile [{one.rule}]",
        "at_once": f"{seen}; brought at once, in service; no node moves [{one.rule}]",
        "idle": f"{seen}; brought with the next idle moment, under a short cordon [{one.rule}]",
        "moves": f"{seen}; {one.answer} [{one.rule}]",
        "noted": f"{seen}; {_noted(one.answer)} [{one.rule}]",
        "tracked": f"{seen}; tracked and never acted on, by their profile",
        "fails": f"{format_list(map(shorten_test_name, one.checks), 2)} will fail, and lead to {one.to} [{one.rule}]",
        "stays": f"{format_list(map(shorten_test_name, one.checks), 2)} will fail; they stay, on a ticket [{one.rule}]",
        "ahead": "they take it when they come to the repair",
        "unseen": "no check of this state looks at it",
    }
    return said[one.what]


def _noted(answer: PolicyResponse | None) -> str:
    asks = "asks for a technician" if answer and answer.remedy == "ticket" else "is recorded"
    return f"the policy {asks} and moves no node"


def format_policy_answers(plan: ChangePlan) -> Iterator[str]:
    """Yield the answers of the policy to faults that change."""
    for one in plan.answers:
        yield f"{_format_response(one.old)} → {_format_response(one.new)}: {format_list(_cases(one), 6)}"


def _cases(one: ResponseChange) -> Iterator[str]:
    states: dict[tuple[str, bool | None], list[str]] = defaultdict(list)
    for state, fault, in_use in one.cases:
        states[fault, in_use].append(state)
    grouped: dict[tuple[tuple[str, ...], bool | None], list[str]] = defaultdict(list)
    for (fault, in_use), some in states.items():
        grouped[tuple(some), in_use].append(fault)
    for (places, in_use), faults in grouped.items():
        use = {None: "", True: ", in use", False: ", idle"}[in_use]
        yield f"{format_list(faults, 5)} in {format_list(places, 4)}{use}"


def _format_response(answer: PolicyResponse | None) -> str:
    return f"{answer} [{answer.rule}]" if answer else "not there"


def shorten_test_name(check: str) -> str:
    """Return the function's name of a check."""
    return check.rpartition("::")[2]

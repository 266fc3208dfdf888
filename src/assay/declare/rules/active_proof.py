"""Burn-ins and other loads that no node gets, or that do not fit the time they have; and golden digests for no GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from assay.declare.check import FilePosition, RuleFinding, rule
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.rules.dangling_names import suggest_name
from assay.model.specs.burn_in import BurnIn
from assay.model.specs.golden_digests import GoldenDigests, GoldenKey
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.load_parts import LoadPart, find_least_seconds
from assay.model.specs.node.node_spec import NodeSpec
from assay.model.specs.policy_sections import LifecycleState
from assay.model.specs.schedules import Schedules


class _NamedBurnIn(NamedTuple):
    """A burn-in that a state of a policy names, and where."""

    place: FilePosition
    state_name: str
    state: LifecycleState
    name: str


@rule("ASY0310", "a state that names a burn-in that does not exist", needs=(BurnIn,))
def unknown_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """No node leaves this state: the burn-in that it waits for never starts."""
    known = set(draft.specs_of_model(BurnIn))
    for named in _list_named(draft):
        if named.name not in known:
            message = f"{named.state_name}: there is no burn-in {named.name}"
            yield RuleFinding(named.place, message, suggest_name(named.name, known))


@rule("ASY0311", "a burn-in that takes longer than its state may")
def long_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Every node misses the deadline of the state, or the state promises a shorter stay than it keeps."""
    burn_ins = draft.specs_of_model(BurnIn)
    for named in _list_named(draft):
        if (burn_in := burn_ins.get(named.name)) is None:
            continue
        soak, deadline = named.state.soak_hours, named.state.deadline
        if soak and burn_in.hours > soak:
            message = (
                f"{named.state_name}: the phases of {named.name} take {burn_in.hours:g} h, and soak_hours is {soak:g}"
            )
            yield RuleFinding(named.place, message, f"say soak_hours: {burn_in.hours:g}, or shorten phases")
        elif deadline and burn_in.longest_hours >= deadline.hours:
            takes = f"{burn_in.longest_hours:g} h, with the time that a drifting node is held"
            message = f"{named.state_name}: {named.name} takes {takes}, and the deadline is {deadline.hours:g} h"
            yield RuleFinding(named.place, message, "let the deadline be longer, or shorten the burn-in")


@rule("ASY0312", "a burn-in for a node spec that does not exist", needs=(NodeSpec,))
def unknown_spec_of_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The nodes that are meant get another burn-in, or none."""
    known = set(draft.specs_of_model(NodeSpec))
    for burn_in in draft.specs_of_model(BurnIn).values():
        for number, name in enumerate(burn_in.node_specs):
            if name not in known:
                place = draft.find_position(f"BurnIn/{burn_in.name}", "node_specs", number)
                yield RuleFinding(place, f"there is no node spec {name}", suggest_name(name, known))


@rule("ASY0313", "a burn-in that never has its turn")
def hidden_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """An earlier burn-in of the same state is for every node that this one is for."""
    burn_ins = draft.specs_of_model(BurnIn)
    earlier: dict[str, list[BurnIn]] = {}
    for named in _list_named(draft):
        if (burn_in := burn_ins.get(named.name)) is None:
            continue
        for other in earlier.setdefault(named.state_name, []):
            is_wider = not other.node_specs or (burn_in.node_specs and set(burn_in.node_specs) <= set(other.node_specs))
            if is_wider and set(other.needs) <= set(burn_in.needs):
                message = f"{named.state_name}: {other.name}, which stands before {named.name}, is for the same nodes"
                yield RuleFinding(named.place, message, f"put {named.name} first, or say in node_specs what it is for")
                break
        earlier[named.state_name].append(burn_in)


@rule("ASY0317", "a node that no burn-in is for", severity="warning", needs=(BurnIn, NodeSpec))
def unloaded_node(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """It serves without one: nothing has loaded it before."""
    burn_ins = draft.specs_of_model(BurnIn)
    named = [each for each in _list_named(draft) if each.name in burn_ins]
    for spec, kinds in draft.parts_by_spec.items() if named else ():
        for parts, host in kinds.items():
            if host and not any(burn_ins[each.name].applies_to(spec, parts) for each in named):
                message = f"{named[0].state_name}: no burn-in has anything for {host.name} ({spec})"
                yield RuleFinding(named[0].place, message, "name one that its parts can run, such as host-day")


def _list_named(draft: RepositoryDraft) -> Iterator[_NamedBurnIn]:
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            for number, burn_in in enumerate(state.burn_in):
                place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, "burn_in", number)
                yield _NamedBurnIn(place, name, state, burn_in)


@rule("ASY0314", "a burn-in that nothing starts")
def unstarted_burn_in(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The state waits for a burn-in that never begins, or starts one that it does not name."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            if bool(state.burn_in) == ("burn-in" in state.entry):
                continue
            field = "burn_in" if state.burn_in else "entry"
            place = draft.find_position(f"LifecyclePolicy/{policy.name}", "states", name, field)
            if state.burn_in:
                yield RuleFinding(
                    place, f"{name} names a burn-in, and its entry starts none", "add burn-in to its entry"
                )
            else:
                yield RuleFinding(place, f"{name} starts a burn-in, and names none", "name one: burn_in: [NAME]")


@rule("ASY0207", "a verification whose parts do not fit into a visit")
def overfull_visit(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A visit ends after within_minutes in any case, so its last parts never end, and their checks never pass."""
    for document in draft.specs_of_model(Schedules).values():
        for name, schedule in document.schedules.items():
            how = schedule.verification
            if how is None:
                continue
            times = how.seconds_by_part.values()
            if how.budget_minutes is None:
                takes_s = sum(times)
                load = "its parts take"
                fix = "let parts take turns (budget_minutes), give them fewer seconds, or let the visit be longer"
            else:
                takes_s = max(times)
                load = "its longest part takes"
                fix = "give the part fewer seconds, leave it out, or let the visit be longer"
            if takes_s > how.within_minutes * 60:
                path = ("schedules", name, "verification", "within_minutes")
                place = draft.find_position(f"Schedules/{document.name}", *path)
                message = f"{name}: {load} {takes_s / 60:g} min, and within_minutes is {how.within_minutes:g}"
                yield RuleFinding(place, message, fix)


@rule("ASY0315", "a phase of a burn-in that is too short for its parts")
def overfull_phase(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """A part that never ran to its end makes the burn-in incomplete, so no node leaves its state.

    A training of the site takes as long as the longest that a node declares.
    """
    declared = [host.settings.load_tools for host in draft.hosts if host.settings and host.settings.load_tools]
    training_s = max((tools.training.deadline_s for tools in declared if tools.training), default=0)
    for burn_in in draft.specs_of_model(BurnIn).values():
        for number, phase in enumerate(burn_in.phases):
            unit_s = phase.unit_seconds or burn_in.unit_seconds
            takes_s = max(_add_up(parts, unit_s, training_s) for parts in (phase.parts, phase.beside))
            share = phase.cycles.on_minutes * 60 / phase.cycles.period_s if phase.cycles else 1.0
            loads_s = phase.hours * 3600 * share
            if takes_s > loads_s:
                place = draft.find_position(f"BurnIn/{burn_in.name}", "phases", number, "hours")
                takes = f"{takes_s / 60:.3g} min"
                loads = f"{loads_s / 60:.3g} min"
                message = f"{phase.name}: one run of each part takes {takes}, and the phase loads the node for {loads}"
                yield RuleFinding(place, message, "give the phase more hours, fewer parts or shorter units")


@rule("ASY0318", "a limit on power steps that cannot be held", needs=(BurnIn, NodeSpec))
def unheld_step(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """The burn-in is refused when it should start, on every node of its site."""
    specs = draft.specs_of_model(NodeSpec)
    for burn_in in draft.specs_of_model(BurnIn).values():
        for name, kinds in draft.parts_by_spec.items():
            _, problem = burn_in.measure_swing(specs[name].limits)
            if problem and any(host and burn_in.applies_to(name, parts) for parts, host in kinds.items()):
                place = draft.find_position(f"BurnIn/{burn_in.name}", "step_kw")
                yield RuleFinding(place, f"{name}: {problem}", "raise step_kw, give the limit, or take step_kw out")


@rule("ASY0316", "a state whose load takes longer than its deadline")
def overdue_load(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """Every node misses the deadline of the state, because its load has not ended by then."""
    for policy in draft.specs_of_model(LifecyclePolicy).values():
        for name, state in policy.states.items():
            if state.deadline is None:
                continue
            for number, need in enumerate(state.requires):
                takes_h = _add_up(need.parts, 0, 0) / 3600 if need.active else 0
                if takes_h >= state.deadline.hours:
                    path = ("states", name, "requires", number, "parts")
                    message = f"{name}: its load takes {takes_h:g} h, and the deadline is {state.deadline.hours:g} h"
                    place = draft.find_position(f"LifecyclePolicy/{policy.name}", *path)
                    yield RuleFinding(place, message, "let the deadline be longer, or name parts that take less time")


def _add_up(parts: Sequence[LoadPart], seconds: float, training_s: float) -> float:
    long = dict.fromkeys(parts, seconds) | {"site_training": max(seconds, training_s)}
    return sum(find_least_seconds(part, long[part]) for part in parts)


@rule("ASY0330", "golden digests for a GPU that no node spec has", needs=(NodeSpec,))
def unused_golden(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """No result is ever compared with these digests, and nobody notices."""
    models = {spec.gpus.model for spec in draft.specs_of_model(NodeSpec).values()}
    for golden in draft.specs_of_model(GoldenDigests).values():
        if golden.computed_by.gpu not in models:
            place = draft.find_position(f"GoldenDigests/{golden.name}", "computed_by", "gpu")
            message = f"no node spec has the GPU {golden.computed_by.gpu}"
            yield RuleFinding(place, message, suggest_name(golden.computed_by.gpu, models))


@rule("ASY0331", "two golden digests for the same result")
def contradicting_golden(draft: RepositoryDraft) -> Iterator[RuleFinding]:
    """One of them is wrong. Where it is compared, all healthy GPUs of a node differ from it."""
    known: dict[tuple[GoldenKey, tuple[str, str]], tuple[str, str]] = {}
    for golden in draft.specs_of_model(GoldenDigests).values():
        for unit, digest in golden.list_digests():
            name, earlier = known.setdefault((golden.computed_by, unit), (golden.name, digest))
            if earlier != digest:
                place = draft.find_position(f"GoldenDigests/{golden.name}", "digests", unit[0])
                message = f"{unit[0]}, seed {unit[1]}: {digest} here and {earlier} in {name}"
                yield RuleFinding(place, message, "learn both anew from nodes that agree: assay specs learn --golden")
                break

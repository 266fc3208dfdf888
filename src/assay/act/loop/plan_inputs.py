"""What `assay plan` reads: the two revisions; from the ledger states, durations, a backtest and newest outcomes.

Parts of a base that cannot be read are taken from the head, so they compare as equal, and the plan of their repair is
not blocked; the plan names each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from assay.decide.plan.backtest import BACKTEST_DAYS, find_changed_scopes, run_backtest
from assay.decide.plan.check_reruns import find_affected_checks, find_counting_changes, select_newest_outcomes
from assay.decide.plan.inputs import (
    BacktestReport,
    FleetFacts,
    FleetRevision,
    MedianDuration,
    PresentFacts,
    RunningRollout,
)
from assay.decide.rollouts.decide_rollouts import forecast_waves, snapshot_rollout
from assay.decide.rollouts.node_progress import judge_progress
from assay.decide.rollouts.rollout_history import ROLLOUTS, Rollout, RolloutHistory
from assay.decide.state.node_projection import project_node_states
from assay.decide.state.node_state import NodeState
from assay.declare.loader import build_fleet, build_readable_fleet, read_draft
from assay.declare.repository.acting_files import read_acting_files
from assay.declare.repository.draft import RepositoryDraft
from assay.declare.spec_values_read_by_checks import read_check_inputs
from assay.declare.yaml import ParseCache
from assay.ledger.location import is_server_url, read_all_entries
from assay.model.entries.effects import EffectIntentEntry, EffectVerifiedEntry
from assay.model.entries.node_entries import NodeEnrolledEntry, TransitionEntry
from assay.model.errors import AssayError
from assay.model.fleet import FIELD_OF_KIND, Fleet
from assay.model.ledger_entry import LedgerEntry
from assay.model.node import Node
from assay.model.outcome import RecordedOutcome
from assay.model.text.lists import format_count, format_nodes
from assay.model.timestamps import format_time, parse_time
from assay.observe.evidence_store import EvidenceStore

if TYPE_CHECKING:
    from assay.ledger.store import Ledger

ONE_HOUR = timedelta(hours=1)


def load_plan_facts(
    ledger: Path | str, before: FleetRevision, after: FleetRevision, now: datetime, evidence: EvidenceStore
) -> FleetFacts:
    """Return the facts from the ledger at a path or URL. Without a ledger they are missing; none is created."""
    entries = read_all_entries(ledger)
    checks = find_affected_checks(before, after)
    newest = select_newest_outcomes(read_recent_outcomes(ledger, checks, now))
    changes = find_counting_changes(before, after, newest, now)
    if not entries:
        return FleetFacts(recounts=changes, now=now, missing="there is no ledger here; --server asks an `assay serve`")
    node_states = project_node_states(entries)
    known = make_present_facts(before.fleet, node_states, entries, ROLLOUTS.fold(entries), evidence, now)
    return replace(
        _take_facts(known), backtest=_run_backtest(ledger, before, after, entries, now), recounts=changes, now=now
    )


def take_server_facts(known: PresentFacts, before: FleetRevision, after: FleetRevision) -> FleetFacts:
    """Return the facts that a server has told. It tells no outcomes, so the last days cannot be asked."""
    now = parse_time(known.at)
    changes = find_counting_changes(before, after, {}, now)
    is_asked = any((*find_changed_scopes(before, after), changes, before.reads != after.reads))
    missing = "the last days were not asked: beside the ledger, `assay plan` does it" if is_asked else ""
    return replace(_take_facts(known), now=now, history_missing=missing)


def _take_facts(known: PresentFacts) -> FleetFacts:
    return FleetFacts(
        known.node_states,
        known.actions,
        known.stays,
        position=known.position,
        rollout=known.rollout,
        evidence_at=known.evidence_at,
    )


def make_present_facts(
    fleet: Fleet,
    node_states: Mapping[str, NodeState],
    durations: Collection[LedgerEntry],
    rollouts: RolloutHistory,
    evidence: EvidenceStore,
    now: datetime,
    position: int = 0,
) -> PresentFacts:
    """Return what is known of the fleet; `durations` are entries of DURATION_KINDS, and may have others too."""
    unfinished = rollouts.find_unfinished()
    read_at = {name: evidence.read_time(name) for name in sorted(node_states)}
    return PresentFacts(
        position or max((entry.seq for entry in durations), default=0),
        format_time(now),
        node_states,
        median_action_durations(durations),
        median_state_durations(durations),
        _show_rollout(fleet, node_states, unfinished, now) if unfinished else None,
        {name: at for name, at in read_at.items() if at},
    )


def _show_rollout(
    fleet: Fleet, node_states: Mapping[str, NodeState], rollout: Rollout, now: datetime
) -> RunningRollout:
    snapshot = snapshot_rollout(fleet, node_states.values(), rollout, now)
    progress = judge_progress(snapshot, rollout)
    paused = f"paused by {rollout.pause.who}: {rollout.pause.reason}" if rollout.pause else ""
    stays: dict[str, list[str]] = defaultdict(list)
    for name in sorted(rollout.unproven & node_states.keys()):
        member = rollout.members[name]
        if not member.has_left(fleet.policy, node_states[name]):
            stays[member.base].append(name)
    return RunningRollout(
        rollout.id,
        rollout.commit,
        paused or rollout.end_reason,
        tuple(sorted(rollout.unproven)),
        {base: tuple(names) for base, names in stays.items()},
        tuple(node.node for node in progress if node.kind in ("out", "leaving")),
        tuple(wave.nodes for wave in forecast_waves(snapshot, progress).waves) if rollout.is_active else (),
    )


def load_facts_at(ledger: Ledger, fleet: Fleet, position: int, now: datetime) -> FleetFacts:
    """Return nodes and rollout as they were at a position of the ledger: what the content of a plan depends on."""
    entries = [entry for entry in ledger.entries() if entry.seq <= position]
    node_states, unfinished = project_node_states(entries), ROLLOUTS.fold(entries).find_unfinished()
    rollout = _show_rollout(fleet, node_states, unfinished, now) if unfinished else None
    return FleetFacts(node_states, now=now, position=position, rollout=rollout)


def load_earlier_revisions(
    root: Path, facts: FleetFacts, head: str = "", cache: ParseCache | None = None
) -> dict[str, FleetRevision]:
    """Return by its commit what nodes had before the rollout that is under way, as far as git has it."""
    earlier: dict[str, FleetRevision] = {}
    for base in facts.rollout.stays if facts.rollout else ():
        with suppress(AssayError):
            earlier[base] = load_plan_revisions(root, base, head, cache)[0]
    return earlier


def _run_backtest(
    ledger: Path | str, before: FleetRevision, after: FleetRevision, entries: list[LedgerEntry], now: datetime
) -> BacktestReport | None:
    """Return the backtest, None if neither limits nor policy change."""
    limits, rules = find_changed_scopes(before, after)
    if not limits and not rules:
        return None
    bounds = {
        (check, measurement): sides
        for check, reads in {**before.reads, **after.reads}.items()
        for measurement, sides in reads.limits_by_measurement().items()
    }
    recent = read_recent_outcomes(ledger, {check for check, _ in bounds} if limits else (), now)
    return run_backtest(before, after, bounds, entries, recent, now)


def read_recent_outcomes(where: Path | str, checks: Collection[str], now: datetime) -> list[RecordedOutcome]:
    """Return the outcomes of these checks in the last days; makes no ledger if there is none."""
    if not checks or not (is_server_url(where) or Path(where).exists()):
        return []
    from assay.ledger.store import Ledger

    ledger = Ledger.open_for_reading(where)
    try:
        return ledger.outcomes(checks=checks, since=format_time(now - timedelta(days=BACKTEST_DAYS)))
    finally:
        ledger.close()


DURATION_KINDS = (EffectIntentEntry.kind, EffectVerifiedEntry.kind, NodeEnrolledEntry.kind, TransitionEntry.kind)
"""The entries from which the durations of actions and stays follow."""


def median_action_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours from intent to verification of an effect, by action. Failed effects do not count."""
    started: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == EffectIntentEntry.kind:
            intent = EffectIntentEntry.read(entry)
            started.setdefault(intent.effect, (intent.action, entry.at))
        elif entry.kind == EffectVerifiedEntry.kind:
            action, at = started.pop(EffectVerifiedEntry.read(entry).effect, ("", ""))
            if action:
                hours[action].append(_count_hours(at, entry.at))
    return _find_medians(hours)


def median_state_durations(entries: Iterable[LedgerEntry]) -> dict[str, MedianDuration]:
    """Return the median hours of the stays in each state that have ended."""
    stays: dict[str, tuple[str, str]] = {}
    hours: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.kind == NodeEnrolledEntry.kind:
            stays.pop(entry.node, None)  # where the node was before, and since when, is not known
        elif entry.kind == TransitionEntry.kind:
            move = TransitionEntry.read(entry)
            state, since = stays.get(entry.node, ("", ""))
            if state == move.from_state:
                hours[state].append(_count_hours(since, entry.at))
            stays[entry.node] = (move.to_state, entry.at)
    return _find_medians(hours)


def _count_hours(start: str, end: str) -> float:
    return (parse_time(end) - parse_time(start)) / ONE_HOUR


def _find_medians(hours: Mapping[str, list[float]]) -> dict[str, MedianDuration]:
    return {name: MedianDuration(median(own), len(own)) for name, own in sorted(hours.items())}


Unread = tuple[str, str]
"""`file:line`, and why it cannot be read."""


def load_plan_revisions(
    root: Path, base: str, head: str = "", cache: ParseCache | None = None
) -> tuple[FleetRevision, FleetRevision]:
    """Return base and head of a plan; "" is the working tree.

    Raises AssayError if the head has a mistake, or if git does not know a revision.
    """
    cache = cache or ParseCache()
    was, will = (read_draft(root, rev=rev or None, cache=cache) for rev in (base, head))
    after = _make_revision(will, _build_head(will, head), head)
    unread = list(_list_unread_files(was))
    fleet, dangling = mend_fleet(build_readable_fleet(was), after.fleet, was, will)
    before = _make_revision(was, fleet, base)
    return replace(before, unread=(*unread, *dangling)), after


def load_folder_revision(root: Path) -> FleetRevision:
    """Return a folder as a revision. Raises AssayError if it has a mistake."""
    draft = read_draft(root)
    return _make_revision(draft, _build_head(draft, ""), "")


def _build_head(draft: RepositoryDraft, rev: str) -> Fleet:
    try:
        return build_fleet(draft)
    except AssayError as error:
        name = rev or "the working tree"
        fix = f"`assay check` on {name} lists every mistake; a plan needs a head without mistakes"
        raise AssayError(f"{name} cannot be read: {error.what}", where=error.where, fix=fix) from error


def _make_revision(draft: RepositoryDraft, fleet: Fleet, rev: str) -> FleetRevision:
    return FleetRevision(
        fleet,
        read_check_inputs(draft.tree),
        rev or "the working tree",
        read_acting_files(draft.tree),
        {host.name: host for host in draft.hosts},
    )


def _list_unread_files(draft: RepositoryDraft) -> Iterator[Unread]:
    """Yield the first problem of each file, with the number of the others."""
    problems: dict[str, list[Unread]] = {}
    for problem in sorted(draft.problems):
        problems.setdefault(problem.file, []).append((problem.where, problem.message))
    for (where, message), *others in problems.values():
        yield where, f"{message}, and {format_count(len(others), 'more mistake')}" if others else message


def mend_fleet(
    fleet: Fleet, head: Fleet, draft: RepositoryDraft, head_draft: RepositoryDraft
) -> tuple[Fleet, list[Unread]]:
    """Return the base's fleet with the parts that cannot be used taken from the head, and what dangles in it."""
    fleet = _take_refused_specs(fleet, head, draft, head_draft)
    fleet = replace(fleet, nodes=_take_unread_nodes(fleet, head, draft))
    unread: list[Unread] = []
    for kind, fits in (("LifecyclePolicy", _has_one_policy), ("FaultCatalog", _has_one_catalog)):
        if misfit := fits(fleet):
            unread += [("specs", misfit)] if not draft.problems else []
            fleet = replace(fleet, **{FIELD_OF_KIND[kind]: getattr(head, FIELD_OF_KIND[kind])})
    fleet, dangling = _take_dangling_nodes(fleet, head)
    return _take_unfit_designs(fleet, head, [*unread, *dangling])


def _take_refused_specs(fleet: Fleet, head: Fleet, draft: RepositoryDraft, head_draft: RepositoryDraft) -> Fleet:
    """Return the fleet with the head's specs where the base's cannot be read."""
    if not draft.refused:
        return fleet
    files = {problem.file for problem in draft.problems}
    lost = {f"{spec.kind}/{spec.name}" for spec in draft.refused}
    lost |= {key for key, entry in head_draft.spec_files.items() if entry.document.file in files}
    fields: dict[str, Mapping[str, Any]] = {}
    for kind, place in FIELD_OF_KIND.items():
        own, theirs = getattr(fleet, place), getattr(head, place)
        fields[place] = {**{name: spec for name, spec in theirs.items() if f"{kind}/{name}" in lost}, **own}
    return replace(fleet, **fields)  # type: ignore[arg-type]  # each place holds specs of its own kind


def _take_unread_nodes(fleet: Fleet, head: Fleet, draft: RepositoryDraft) -> Mapping[str, Node]:
    """Return the nodes; those that the base declares and nobody can read are as in the head."""
    if draft.all_hosts_read and all(host.settings for host in draft.hosts):
        return fleet.nodes
    if not draft.tree.files("inventory"):
        return fleet.nodes
    named = None if not draft.all_hosts_read else {host.name for host in draft.hosts}
    lost = {name: node for name, node in head.nodes.items() if named is None or name in named}
    return {**lost, **fleet.nodes}


def _has_one_policy(fleet: Fleet) -> str:
    return "" if len(fleet.policies) == 1 else f"there are {len(fleet.policies)} lifecycle policies"


def _has_one_catalog(fleet: Fleet) -> str:
    try:
        return "" if fleet.fault_catalog else "there is no fault catalogue"
    except AssayError as error:
        return error.what


def _take_dangling_nodes(fleet: Fleet, head: Fleet) -> tuple[Fleet, list[Unread]]:
    """Return the fleet with the head's nodes and specs where a name of the base leads nowhere."""
    whole = {name for name, spec in fleet.node_specs.items() if not spec.firmware or spec.firmware in fleet.bundles}
    dangling = {
        name for name, node in fleet.nodes.items() if node.spec not in whole or node.profile not in fleet.profiles
    }
    if not dangling:
        return fleet, []
    theirs = {name: head.nodes[name] for name in dangling if name in head.nodes}
    kept = {name: node for name, node in fleet.nodes.items() if name not in dangling}
    specs = {node.spec: head.node_specs[node.spec] for node in theirs.values()}
    bundles = {spec.firmware: head.bundles[spec.firmware] for spec in specs.values() if spec.firmware}
    profiles = {node.profile: head.profiles[node.profile] for node in theirs.values()}
    mended = replace(
        fleet,
        nodes={**kept, **theirs},
        node_specs={**fleet.node_specs, **specs},
        bundles={**bundles, **fleet.bundles},
        profiles={**profiles, **fleet.profiles},
    )
    message = f"{format_nodes(sorted(dangling))}: a spec, profile or bundle that does not exist"
    return mended, [("inventory", message)]


def _take_unfit_designs(fleet: Fleet, head: Fleet, unread: list[Unread]) -> tuple[Fleet, list[Unread]]:
    """Return the fleet with the head's designs where the base's names nodes that are not there, or have other rails."""
    unfit = []
    for name, design in fleet.designs.items():
        named = [fleet.nodes.get(node) for node in design.node_names()]
        if any(node is None or len(node.hca_guids) != design.adapters_per_node for node in named):
            unfit.append(name)
    if not unfit:
        return fleet, unread
    designs = {name: design for name, design in fleet.designs.items() if name not in unfit}
    designs |= {name: head.designs[name] for name in unfit if name in head.designs}
    lines = [(fleet.lines.get((f"FabricDesign/{name}", "nodes"), "specs/fabrics"), name) for name in unfit]
    missing = [(line, f"{name} does not fit the nodes of the inventory") for line, name in lines]
    nodes = {node: head.nodes[node] for name in designs for node in designs[name].node_names() if node in head.nodes}
    return replace(fleet, designs=designs, nodes={**nodes, **fleet.nodes}), [*unread, *missing]

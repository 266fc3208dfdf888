"""Finds the checks whose passes stop counting: something that they read changes, or the node is repaired.

These checks must run again on these nodes. Also the failures that begin or stop to count: checks change their stage,
known issues come or go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase

from assay.decide.plan.inputs import CountingChange, FleetRevision
from assay.decide.plan.rollout_nodes import ServiceRoute
from assay.decide.plan.setting_routes import reads_field
from assay.decide.plan.spec_pair_comparison import NodeGroup, SpecPair, SpecPairKey
from assay.declare.spec_values_read_by_checks import CheckInputs, list_spec_paths, normalize_declaration, value_at
from assay.model.facts import fact, frozen, internal
from assay.model.outcome import RecordedOutcome
from assay.model.specs.check_catalog import CheckDeclaration
from assay.model.specs.known_issues import KnownIssue, find_known_issue
from assay.model.specs.lifecycle_policy import LifecyclePolicy
from assay.model.specs.load_parts import GOLDEN_FIXTURES

NO_READS = CheckInputs(frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), frozenset(), (), "")


@frozen
class StaleCheck:
    """A check that must be run again, and why. `certain`: it fails until somebody has worked on the node.

    `unmet`: the settings that it then finds different, with their old and new values.
    """

    check: str
    phases: tuple[str, ...]
    fault: str
    because: tuple[str, ...]
    certain: bool
    unmet: tuple[str, ...] = ()


class StaleCheckFinder:
    """The checks of two revisions. Each answer is computed once for all nodes that change in the same way."""

    def __init__(self, before: FleetRevision, after: FleetRevision) -> None:
        self._before, self._after = before, after
        self.rewritten = dict(self._rewritten())
        self.removed_checks = tuple(sorted(before.checks.keys() - after.checks.keys()))
        self._known: dict[tuple[SpecPairKey, frozenset[str]], tuple[StaleCheck, ...]] = {}

    def find(self, group: NodeGroup) -> tuple[StaleCheck, ...]:
        """Return the stale checks on nodes of a group, of those that are due there."""
        asked = group.key, group.changed_fields
        if asked not in self._known:
            self._known[asked] = tuple(self._stale(group))
        return self._known[asked]

    def list_due(self, group: NodeGroup) -> list[CheckDeclaration]:
        """Return the checks of the later revision for which the nodes of a group have all parts."""
        parts = self._after.fleet.parts_of(group.names[0])
        return [check for check in self._after.checks.values() if not check.find_lacking(parts)]

    def _stale(self, group: NodeGroup) -> Iterator[StaleCheck]:
        pair, changed = group.pair, group.changed_fields
        old = self._before.fleet.profiles[group.key[2]]
        new = self._after.fleet.profiles[group.key[3]]
        for check in self.list_due(group):
            reads = self._after.reads.get(check.id, NO_READS)
            applied = [setting for setting in pair.settings if setting.how == "applied"]
            unmet = [setting for setting in applied if reads_field(check, reads, setting.field)]
            # The node cannot have the versions of its bundle yet.
            unmet_bundle = ["the firmware bundle"] if "bundle" in reads.fixtures and pair.moves else []
            certain = (*unmet_bundle, *(f"spec.{setting.field}" for setting in unmet))
            maybe = (
                *self.rewritten.get(check.id, ()),
                *_find_changed_inputs(check, reads, pair, changed),
                *(f"profile.{path}" for path in sorted(reads.profile) if value_at(old, path) != value_at(new, path)),
            )
            if because := tuple(dict.fromkeys((*certain, *maybe))):
                yield StaleCheck(
                    check.id,
                    tuple(check.phases),
                    check.fault,
                    because,
                    bool(certain),
                    tuple(f"{setting.field} {setting.old} {setting.new}" for setting in unmet),
                )

    def _rewritten(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the checks that are new, or whose declaration or code changes."""
        for ident, check in self._after.checks.items():
            was = self._before.checks.get(ident)
            if was is None:
                yield ident, ("a new check",)
                continue
            reads = self._before.reads.get(ident, NO_READS), self._after.reads.get(ident, NO_READS)
            signs = {
                "declared otherwise": normalize_declaration(was) != normalize_declaration(check),
                "written otherwise": reads[0].digest != reads[1].digest,
            }
            if because := tuple(sign for sign, holds in signs.items() if holds):
                yield ident, because


def _find_changed_inputs(
    check: CheckDeclaration, reads: CheckInputs, pair: SpecPair, changed: frozenset[str]
) -> Iterator[str]:
    if "bundle" in reads.fixtures and pair.bundle:
        yield "the firmware bundle"
    if any(GOLDEN_FIXTURES[fixture] in pair.golden for fixture in GOLDEN_FIXTURES.keys() & reads.fixtures):
        yield "golden digests"
    for threshold in pair.thresholds:
        if threshold.limit in reads.limits:
            yield f"limit {threshold.limit} {threshold.old or 'none'} → {threshold.new or 'none'}"
    for path in list_spec_paths(check, reads):
        if value_at(pair.old, path) != value_at(pair.new, path):
            yield f"spec.{path}".rstrip(".")
    for root, field in sorted(reads.declared):
        if (field if root == "node" else f"{root}_{field}s") in changed:
            yield f"{root}.declared.{field}"
    if "cables" in changed and reads.has_cables:
        yield "its cables"


@fact
class CheckRerun:
    """Checks that must run again on some nodes."""

    nodes: tuple[str, ...]
    """The nodes."""
    phases: Mapping[str, tuple[str, ...]]
    """The checks, by phase."""
    because: Mapping[str, tuple[str, ...]]
    """The reasons, by check."""
    is_repaired: bool = internal(default=False)
    """Whether a repair ends the passes of whole phases too."""


def list_check_reruns(
    groups: Iterable[NodeGroup], staleness: StaleCheckFinder, after: FleetRevision, ways: Mapping[str, ServiceRoute]
) -> tuple[CheckRerun, ...]:
    """Return the checks to run again; `ways` holds the way out of service of every node that leaves."""
    return tuple(rerun for group in groups for rerun in _list_reruns_of_group(group, staleness, after, ways))


def _list_reruns_of_group(
    group: NodeGroup, staleness: StaleCheckFinder, after: FleetRevision, ways: Mapping[str, ServiceRoute]
) -> Iterator[CheckRerun]:
    stale = staleness.find(group)
    by_way: dict[ServiceRoute | None, list[str]] = {}
    for name in group.names:
        by_way.setdefault(ways.get(name), []).append(name)
    because = {each.check: each.because for each in stale}
    for route, names in by_way.items():
        phases: dict[str, list[str]] = {}
        for each in stale:
            for phase in each.phases:
                phases.setdefault(phase, []).append(each.check)
        reproved = list_reproved_phases(after.policy, route) if route else ()
        for phase in reproved:
            own = [check.id for check in staleness.list_due(group) if phase in check.phases]
            phases[phase] = list(dict.fromkeys([*phases.get(phase, []), *own]))
        if stale or reproved:
            named = {phase: tuple(checks) for phase, checks in phases.items()}
            yield CheckRerun(tuple(names), named, because, bool(reproved))


def list_reproved_phases(policy: LifecyclePolicy, route: ServiceRoute) -> list[str]:
    """Return the phases whose passes must be newer than the repair, in the order in which the node needs them."""
    states = route.states[route.states.index(route.repair) :] if route.repair else ()
    wanted = [want.phase for name in states for want in policy.states[name].requires if want.newer_than_repair]
    return list(dict.fromkeys(wanted))


NO_EXCUSE = "excuses no more what fails now"


def find_affected_checks(before: FleetRevision, after: FleetRevision) -> set[str]:
    """Return the checks whose failures may begin or stop to count. Only their last outcomes need to be read."""
    patterns = {issue.match.check for issue in set(before.fleet.known_issues) ^ set(after.fleet.known_issues)}
    stages = before.fleet.observed_checks ^ after.fleet.observed_checks
    fitting = {check for check in after.checks for pattern in patterns if fnmatchcase(check, pattern)}
    return fitting | (stages & before.checks.keys() & after.checks.keys())


def find_counting_changes(
    before: FleetRevision, after: FleetRevision, last: Iterable[RecordedOutcome], now: datetime
) -> tuple[CountingChange, ...]:
    """Return every change of stage, and every known issue that comes or goes and matches a failure, as of `now`.

    `last` are the newest outcomes of the checks that `find_affected_checks` names.
    """
    failing = [
        recorded
        for recorded in last
        if recorded.outcome.verdict == "fail" and recorded.outcome.node in after.fleet.nodes
    ]
    return (*_find_stage_changes(before, after, failing), *_find_issue_changes(before, after, failing, now))


def select_newest_outcomes(outcomes: Iterable[RecordedOutcome]) -> list[RecordedOutcome]:
    """Return the newest outcome of each check and subject, by the time of its evidence."""
    newest: dict[tuple[str, str], RecordedOutcome] = {}
    for recorded in outcomes:
        key = (recorded.outcome.check, recorded.outcome.subject)
        if key not in newest or newest[key].measured_at <= recorded.measured_at:
            newest[key] = recorded
    return list(newest.values())


def _find_stage_changes(
    before: FleetRevision, after: FleetRevision, failing: Collection[RecordedOutcome]
) -> Iterator[CountingChange]:
    was, shall = before.fleet.observed_checks, after.fleet.observed_checks
    for check in sorted((was ^ shall) & before.checks.keys() & after.checks.keys()):
        nodes = sorted({recorded.outcome.node for recorded in failing if recorded.outcome.check == check})
        effect = "is promoted: from now on it decides" if check in was else "only observes from now on"
        yield CountingChange(check, effect, check in was, tuple(nodes))


def _find_issue_changes(
    before: FleetRevision, after: FleetRevision, failing: Iterable[RecordedOutcome], now: datetime
) -> Iterator[CountingChange]:
    nodes_by_issue: dict[tuple[str, str], set[str]] = {}
    for recorded in failing:
        node = after.fleet.nodes[recorded.outcome.node]
        was, shall = (
            find_known_issue(side.fleet.known_issues, recorded.outcome, node, now) for side in (before, after)
        )
        if (was is None) != (shall is None):
            issue = was or shall
            nodes_by_issue.setdefault(
                (issue.issue if issue else "", _describe_excuse(after, recorded, shall)), set()
            ).add(node.name)
    for (link, reason), nodes in sorted(nodes_by_issue.items()):
        yield CountingChange(link, reason, reason == NO_EXCUSE, tuple(sorted(nodes)))


def _describe_excuse(after: FleetRevision, failure: RecordedOutcome, issue: KnownIssue | None) -> str:
    """Return what a known issue does with a failure from the merge on; it may admit no node to service."""
    if issue is None:
        return NO_EXCUSE
    policy, check = after.policy, failure.outcome.check
    doors = [state for state in policy.states.values() if state.pass_to and policy.states[state.pass_to].in_service]
    is_required = {need.phase for state in doors for need in state.requires} & set(failure.outcome.phases)
    admits = not is_required or policy.excuses.may_excuse_admission(check)
    return "excuses what fails now" if admits else "excuses what fails now in service, and admits no node"
